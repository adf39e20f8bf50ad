"""Text in pictures: a picture file made upright and plain, and its lines read by RapidOCR.

The models lie in the library's wheel: nothing is fetched. Library, models and Pillow are loaded at the first picture;
without the extra `ocr` the rest of the product works and this module says what to install.
"""

from __future__ import annotations

import struct
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import atan2, cos, radians, sin, tan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from retrieval.errors import RetrievalError
from retrieval.ingest.document import DocumentUnreadable

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 120_000_000  # A3 at 600 dpi is 70 million; 120 million need 360 MB as RGB
FORMATS = ("JPEG", "PNG", "TIFF", "BMP", "WEBP", "GIF", "PPM")  # Pillow reads more, EPS by running a program
LONG_SIDE = 2000  # pixels; more costs time and reads no better
SHORT_SIDE = 480  # pixels; letters of a smaller picture are below what the models were trained on
LONGEST_STRIP = 6  # long side over narrow side
THREADS = 2
MIN_CONFIDENCE = 0.5  # below it a line is more often the grain of the picture than text
SURE = 0.8  # mean confidence from which no other turn of the picture is tried
FEW_CHARACTERS = 6
EXTRA = "pip install 'faultwright[ocr]'"

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels of the picture as it was read: upright and straightened."""


class OcrUnavailable(RetrievalError):
    """The library for reading pictures is missing or its models cannot be loaded."""


class OcrFailed(RetrievalError):
    """The library broke off on one picture. Other pictures are not affected."""


@dataclass(frozen=True)
class OcrLine:
    """A stretch of text without a wide gap. `confidence` in [0, 1]; stretches side by side share the same `row`.

    Rows count from 0 at the top; they follow the slant of the text, so that a picture taken from the side keeps them.
    """

    text: str
    confidence: float
    box: Box
    row: int = 0


@dataclass(frozen=True)
class _Found:
    """What the library found: text, confidence, and the corners from the upper left on, clockwise."""

    text: str
    confidence: float
    corners: tuple[tuple[float, float], ...]

    @property
    def slope(self) -> float:
        (left, top), (right, top_right) = self.corners[:2]
        return atan2(top_right - top, right - left)

    @property
    def width(self) -> float:
        return self.corners[1][0] - self.corners[0][0]

    @property
    def height(self) -> float:
        return self.corners[3][1] - self.corners[0][1]

    @property
    def tall(self) -> bool:
        xs, ys = zip(*self.corners, strict=True)
        return bool(max(ys) - min(ys) > 1.5 * (max(xs) - min(xs)))


def read_lines(image: Image.Image) -> tuple[OcrLine, ...]:
    """The lines of a picture in reading order: from the top down, within a row from left to right.

    A picture that lies on its side or head is turned; a huge one is scaled down and a small one up, and boxes are
    given in pixels of `image` (turned the way it was read).

    Args:
        image: any mode and size; `picture_pages` opens files and makes them upright by their EXIF mark.

    Raises:
        OcrUnavailable: the extra `ocr` is not installed or cannot be loaded.
        OcrFailed: the library broke off on this picture.
    """
    return read_turned(image)[1]


def read_turned(image: Image.Image) -> tuple[int, tuple[OcrLine, ...]]:
    """As `read_lines`, with the turn that the picture was read in: degrees against the clock."""
    scaled, scale = _scaled(_padded(to_rgb(image)))
    best, turn = _read(scaled), 0
    if _doubtful(best):
        for degrees in (90, 270, 180):
            found = _read(scaled.rotate(degrees, expand=True))
            if _worth(found) > _worth(best):
                best, turn = found, degrees
            if not _doubtful(found):
                break
    return turn, _in_rows(_straightened(best, scale))


def _read(image: Image.Image) -> list[_Found]:
    import numpy as np  # noqa: PLC0415 - slow, and only pictures need it

    pixels = np.ascontiguousarray(np.asarray(image)[:, :, ::-1])  # the library takes BGR
    engine = _engine()
    try:
        with _ONE_AT_A_TIME:
            result = engine(pixels)
    except Exception as error:  # the library lets through what OpenCV and ONNX Runtime raise
        raise OcrFailed(
            f"The picture ({image.width}x{image.height}) cannot be read: {type(error).__name__}: {error}.",
            "take the photo again, closer and from the front, or type the code.",
        ) from error
    if result.txts is None:
        return []
    return [
        _Found(text.strip(), float(score), tuple((float(x), float(y)) for x, y in box))
        for text, score, box in zip(result.txts, result.scores, result.boxes, strict=True)
        if text.strip() and score >= MIN_CONFIDENCE
    ]


_ONE_AT_A_TIME = threading.Lock()  # each read may use all THREADS; two at once would use twice as many


@lru_cache(maxsize=1)
def _engine() -> Any:
    try:
        import rapidocr  # noqa: PLC0415 - half a second, and only pictures need it

        models = Path(rapidocr.__file__).parent / "models"
        det, rec = (next(models.glob(f"*_{kind}_*.onnx")) for kind in ("det", "rec"))
        return rapidocr.RapidOCR(
            params={
                # with paths of their own the models are never fetched
                "Det.model_path": str(det),
                "Rec.model_path": str(rec),
                # `read_lines` turns whole pictures; by the line, a short one is often turned for nothing
                "Global.use_cls": False,
                "Global.text_score": MIN_CONFIDENCE,
                "Global.log_level": "critical",
                "EngineConfig.onnxruntime.intra_op_num_threads": THREADS,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )
    except ImportError as error:
        raise OcrUnavailable(f"Pictures cannot be read here: {error}.", f"{EXTRA}, or type the code.") from error
    except (StopIteration, OSError, ValueError) as error:
        raise OcrUnavailable(
            f"The models for reading pictures cannot be loaded: {error or 'files are missing'}.",
            "pip install --force-reinstall rapidocr, or type the code.",
        ) from error


def _padded(image: Image.Image) -> Image.Image:
    """The picture with its narrow side filled up: the library scales by the narrow side, and a strip would explode."""
    from PIL import Image  # noqa: PLC0415 - part of the extra

    least = max(image.size) // LONGEST_STRIP
    if min(image.size) >= least:
        return image
    wide = Image.new("RGB", (max(image.width, least), max(image.height, least)), image.getpixel((0, 0)))
    wide.paste(image, (0, 0))
    return wide


def _scaled(image: Image.Image) -> tuple[Image.Image, float]:
    """The picture in a size that is read well, and its size as a share of the original's."""
    from PIL import Image  # noqa: PLC0415 - part of the extra

    scale = min(1.0, LONG_SIDE / max(image.size))
    if min(image.size) * scale < SHORT_SIDE:
        scale = min(SHORT_SIDE / min(image.size), LONG_SIDE / max(image.size), 4.0)
    if scale == 1.0:
        return image, 1.0
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.BICUBIC), scale


def _worth(found: Sequence[_Found]) -> float:
    """How much was read, and how surely: characters weighed by confidence; lines that stand upright say nothing."""
    return sum(len(line.text) * (line.confidence - MIN_CONFIDENCE) for line in found if not line.tall)


def _doubtful(found: Sequence[_Found]) -> bool:
    characters = sum(len(line.text) for line in found)
    if characters < FEW_CHARACTERS:
        return True
    sure = sum(len(line.text) * line.confidence for line in found) / characters
    return sure < SURE or sum(line.tall for line in found) * 2 > len(found)


def _straightened(found: Sequence[_Found], scale: float) -> list[_Found]:
    """Corners turned by the usual slant of the lines, in pixels of the original."""
    long = [line.slope for line in found if line.width > 3 * line.height > 0]
    slant = median(long) if long else 0.0
    along, across = cos(-slant) / scale, sin(-slant) / scale
    return [
        replace(line, corners=tuple((x * along - y * across, x * across + y * along) for x, y in line.corners))
        for line in found
    ]


def _in_rows(found: Sequence[_Found]) -> tuple[OcrLine, ...]:
    """Lines put in rows: from left to right, each joins the row whose last line points at it."""
    rows: list[list[_Found]] = []
    for line in sorted(found, key=lambda line: line.corners[0][0]):
        best = None
        nearest = 0.5 * max(line.height, 1.0)
        for row in rows:
            last = row[-1]
            ahead = line.corners[0][0] - last.corners[1][0]
            if ahead < -max(line.height, 1.0):  # boxes are drawn wide and overlap a little
                continue
            slope = max(-radians(20), min(radians(20), last.slope if last.width > 2 * last.height else line.slope))
            off = abs(_middle(line, 0, 3) - (_middle(last, 1, 2) + ahead * tan(slope)))
            if off < nearest:
                best, nearest = row, off
        if best is None:
            rows.append([line])
        else:
            best.append(line)
    rows.sort(key=lambda row: _middle(row[0], 0, 3))
    return tuple(
        OcrLine(line.text, line.confidence, _box(line), number) for number, row in enumerate(rows) for line in row
    )


def _middle(line: _Found, upper: int, lower: int) -> float:
    return (line.corners[upper][1] + line.corners[lower][1]) / 2


def _box(line: _Found) -> Box:
    xs, ys = zip(*line.corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def to_rgb(image: Image.Image) -> Image.Image:
    """The picture in 8-bit RGB: 16-bit and float samples stretched, transparency laid on a ground that shows the text.

    Raises:
        OcrUnavailable: the extra `ocr` is not installed.
    """
    import numpy as np  # noqa: PLC0415 - slow, and only pictures need it
    from PIL import Image  # noqa: PLC0415 - part of the extra

    if image.mode == "RGB":
        return image
    if image.mode in ("I", "F") or image.mode.startswith("I;"):
        samples = np.nan_to_num(np.asarray(image, dtype=np.float32))
        low, high = float(samples.min()), float(samples.max())
        stretched = (samples - low) * (255 / (high - low)) if high > low else samples * 0
        return Image.fromarray(stretched.astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        full = image.convert("RGBA")
        seen = np.asarray(full.convert("L"))[np.asarray(full.getchannel("A")) > 127]
        ground = "white" if seen.size == 0 or seen.mean() < 128 else "black"
        return Image.alpha_composite(Image.new("RGBA", full.size, ground), full).convert("RGB")
    return image.convert("RGB")


def picture_pages(path: Path, name: str) -> Iterator[Image.Image]:
    """The pages of a picture file, upright by their EXIF mark, in RGB: all pages of a TIFF, else the first frame.

    Args:
        path: the file.
        name: what to call it in errors.

    Raises:
        OcrUnavailable: the extra `ocr` is not installed.
        DocumentUnreadable: no picture, a kind that is not read, one too big, or one that is cut off; raised where
            the pages end, so that those before it are kept.
    """
    with _opened(path, name) as picture:
        page = 1
        try:
            from PIL import ImageOps  # noqa: PLC0415 - part of the extra

            for page in range(1, _counts(picture)[0] + 1):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of damaged EXIF marks
                    if page > 1:
                        picture.seek(page - 1)
                    _refuse_huge(picture.size, name)
                    picture.draft("RGB", (LONG_SIDE, LONG_SIDE))  # a big JPEG is decoded small
                    upright = to_rgb(ImageOps.exif_transpose(picture))
                yield upright
        except _DAMAGE as error:
            raise _damaged(f"{name}, page {page}" if page > 1 else name, error) from error


def picture_count(path: Path, name: str) -> tuple[int, int]:
    """Pages that `picture_pages` gives, and frames that the file has; raises what `picture_pages` does."""
    with _opened(path, name) as picture:
        try:
            return _counts(picture)
        except _DAMAGE as error:
            raise _damaged(name, error) from error


def _counts(picture: Image.Image) -> tuple[int, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged EXIF marks
        frames = int(getattr(picture, "n_frames", 1))
    return (frames if picture.format == "TIFF" else 1), frames


# what Pillow lets through on damaged files
_DAMAGE = (OSError, ValueError, SyntaxError, EOFError, MemoryError, TypeError, KeyError, IndexError, struct.error)


def _opened(path: Path, name: str) -> Image.Image:
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - part of the extra
    except ImportError as error:
        raise OcrUnavailable(f"{name} cannot be read here: {error}.", f"{EXTRA}, or type the code.") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of size: the limit here is our own
            return Image.open(path, formats=FORMATS)
    except UnidentifiedImageError as error:
        raise _unidentified(path, name) from error
    except Image.DecompressionBombError as error:
        raise _huge(name, str(error)) from error
    except _DAMAGE as error:
        raise _damaged(name, error) from error


def _damaged(where: str, error: Exception) -> DocumentUnreadable:
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
        return DocumentUnreadable(f"{where} cannot be opened: {error.strerror}.", "check the path and its rights.")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return DocumentUnreadable(
        f"{where}: the picture is damaged or cut off ({reason}).",
        "copy the file again from where it came, or take the photo again.",
    )


def _refuse_huge(size: tuple[int, int], name: str) -> None:
    if size[0] * size[1] > MAX_PIXELS:
        raise _huge(name, f"{size[0]}x{size[1]} pixels")


def _huge(name: str, reason: str) -> DocumentUnreadable:
    return DocumentUnreadable(
        f"{name}: too big to read ({reason}; at most {MAX_PIXELS // 1_000_000} million pixels).",
        "save it smaller, about 2000 pixels on the long side, or cut out the part with the alarm.",
    )


def _unidentified(path: Path, name: str) -> DocumentUnreadable:
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        return DocumentUnreadable(f"{name}: the file is empty.", "copy it again from where it came.")
    if head[4:8] == b"ftyp" and head[8:12] in (b"heic", b"heix", b"heim", b"hevc", b"hevx", b"mif1", b"msf1"):
        return DocumentUnreadable(
            f"{name}: HEIC pictures are not read.",
            "save it as JPEG (iPhone: Settings > Camera > Formats > Most Compatible), or send a screenshot.",
        )
    return DocumentUnreadable(
        f"{name}: no picture of a kind that is read (JPEG, PNG, TIFF, BMP, WebP, GIF).", "save it as JPEG or PNG."
    )


def text_rows(lines: Sequence[OcrLine]) -> tuple[tuple[OcrLine, ...], ...]:
    """Lines by row, in order."""
    rows: dict[int, list[OcrLine]] = {}
    for line in lines:
        rows.setdefault(line.row, []).append(line)
    return tuple(tuple(rows[number]) for number in sorted(rows))
