"""What stands on one PDF page: runs of characters with their boxes, and the lines that are drawn.

Everything is turned upright and measured in points (1/72 inch) from the top left corner of the page, y downwards.
Characters are read through pdfium's C functions with numbers for pointers, which is 20 times faster than one wrapped
call each.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, repeat
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from retrieval.records import UNPRINTABLE

MAX_CHARACTERS = 200_000  # a page of text has 2,000 to 8,000
MAX_SEGMENTS = 20_000  # more is a drawing, not a table
MAX_FORM_DEPTH = 4
# Gaps within a line, in heights of a character: a wider one may part two columns.
COLUMN_GAP = 0.6
# Set with free space on the right, which may reach into the next cell.
HANGING = frozenset("，。、；：）》」』】！？")
THIN_PT = 3.0
SHORTEST_RULE_PT = 5.0
_SYMBOL_FONT = {
    0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓", 0xF0E0: "→", 0xF0AE: "→", 0xF0B0: "°", 0xF06D: "μ",
    0xF057: "Ω", 0xF0B1: "±", 0xF0A3: "≤", 0xF0B3: "≥", 0xF0B4: "×", 0xF0B8: "÷", 0xF044: "Δ",
}  # fmt: skip
_UNSEEN = re.compile(r"[\s\u200b-\u200d\u2060]|" + UNPRINTABLE.pattern)
# pdfium shows a hyphen at the end of a line as one of these; a soft hyphen only shows there
_HYPHENS = (0x02, 0xFFFE, 0xAD)


class Span(NamedTuple):
    """Characters that follow each other without a gap that could part two columns.

    `marks` are the characters, each with the space before it if there is one; `lefts` and `middles` where they
    start and have their middles in x. `size` is the size of the font in points as it shows on the page.
    """

    x0: float
    top: float
    x1: float
    bottom: float
    marks: list[str]
    lefts: list[float]
    middles: list[float]
    size: float

    @property
    def text(self) -> str:
        """The characters in order."""
        return "".join(self.marks).strip()

    @property
    def height(self) -> float:
        """Height of the font's box, 0.9 to 1.4 times its size."""
        return self.bottom - self.top

    def cut(self, x: float) -> tuple[Span | None, Span | None]:
        """The parts left and right of `x`; Chinese punctuation that hangs over `x` stays with what it ends."""
        at = sum(middle < x for middle in self.middles)
        if at == 0:
            return None, self
        while at < len(self.marks) and self.marks[at] in HANGING:
            at += 1
        if at == len(self.marks):
            return self, None
        return (
            self._replace(x1=x, marks=self.marks[:at], lefts=self.lefts[:at], middles=self.middles[:at]),
            self._replace(x0=x, marks=self.marks[at:], lefts=self.lefts[at:], middles=self.middles[at:]),
        )


class Rule(NamedTuple):
    """A drawn line or side of a box: at `at` (y of a horizontal one, x of a vertical), from `start` to `end`."""

    at: float
    start: float
    end: float


@dataclass
class Page:
    """One page, upright. `image_share` is the part of it that pictures cover; `unmapped` that of unreadable letters."""

    number: int
    width: float
    height: float
    spans: list[Span] = field(default_factory=list)
    horizontal: list[Rule] = field(default_factory=list)
    vertical: list[Rule] = field(default_factory=list)
    image_share: float = 0.0
    unmapped: float = 0.0

    @property
    def letters(self) -> int:
        """Number of visible characters."""
        return sum(len(span.marks) for span in self.spans)


def load_page(page: Any, number: int) -> Page:
    """Read the characters and the drawn lines of a `pypdfium2.PdfPage`; the caller closes it."""
    import pypdfium2.raw as pdfium_c  # noqa: PLC0415 - loads a library of 8 MB

    bounds = pdfium_c.FS_RECTF()
    pdfium_c.FPDF_GetPageBoundingBox(page.raw, ctypes.byref(bounds))
    box = (bounds.left, bounds.bottom, bounds.right, bounds.top)
    text = page.get_textpage()
    try:
        count = min(int(pdfium_c.FPDFText_CountChars(text.raw)), MAX_CHARACTERS)
        address = ctypes.cast(text.raw, ctypes.c_void_p).value or 0
        angle = _angle(address, count, page.get_rotation())
        sideways = angle in (90, 270)
        width, height = box[2] - box[0], box[3] - box[1]
        found = Page(number, height if sideways else width, width if sideways else height)
        if count:
            found.spans, found.unmapped = _spans(address, count, box, angle)
    finally:
        text.close()
    _drawn(pdfium_c, page.raw, found, box, angle)
    return found


@cache
def _functions() -> dict[str, Any]:
    """Functions of pdfium that take an address as a plain number."""
    import pypdfium2.raw as pdfium_c  # noqa: PLC0415

    def plain(name: str, result: Any, *arguments: Any) -> Any:
        address = ctypes.cast(getattr(pdfium_c, name), ctypes.c_void_p).value or 0
        return ctypes.PYFUNCTYPE(result, ctypes.c_void_p, ctypes.c_int, *arguments)(address)

    return {
        "box": plain("FPDFText_GetLooseCharBox", ctypes.c_int, ctypes.c_void_p),
        "code": plain("FPDFText_GetUnicode", ctypes.c_uint),
        "size": plain("FPDFText_GetFontSize", ctypes.c_double),
        "matrix": plain("FPDFText_GetMatrix", ctypes.c_int, ctypes.c_void_p),
        "angle": plain("FPDFText_GetCharAngle", ctypes.c_float),
        "unmapped": plain("FPDFText_HasUnicodeMapError", ctypes.c_int),
    }


def _angle(address: int, count: int, page_rotation: int) -> int:
    """Direction in degrees (0, 90, 180, 270) that most of the text runs in; the page's own where there is no text."""
    read = _functions()["angle"]
    angles = [read(address, i) for i in range(0, count, max(1, count // 60))]
    # pdfium counts the angle clockwise
    turns = Counter(round(-math.degrees(angle) / 90) * 90 % 360 for angle in angles if angle >= 0)
    return turns.most_common(1)[0][0] if turns else page_rotation % 360


def _upright(boxes: NDArray[Any], box: tuple[float, ...], angle: int) -> NDArray[Any]:
    """(n, 4) left, bottom, right, top on the page → x0, top, x1, bottom upright."""
    left, bottom, right, top = box
    x0, y0, x1, y1 = boxes.T
    if angle == 90:
        sides = (y0 - bottom, x0 - left, y1 - bottom, x1 - left)
    elif angle == 180:
        sides = (right - x1, y0 - bottom, right - x0, y1 - bottom)
    elif angle == 270:
        sides = (top - y1, right - x1, top - y0, right - x0)
    else:
        sides = (x0 - left, top - y1, x1 - left, top - y0)
    return np.stack(sides, axis=1)


def _spans(address: int, count: int, box: tuple[float, ...], angle: int) -> tuple[list[Span], float]:
    """Spans in the order of the file, and the share of characters whose letter the file does not tell."""
    functions = _functions()
    codes = list(map(functions["code"], repeat(address), range(count)))
    raw = np.zeros((count, 4), dtype=np.float32)
    start = raw.ctypes.data
    deque(map(functions["box"], repeat(address), range(count), range(start, start + 16 * count, 16)), maxlen=0)
    letters = [_letter(code) for code in codes]
    sides = _upright(raw[:, [0, 3, 2, 1]].astype(float), box, angle)
    width, height = (box[3] - box[1], box[2] - box[0]) if angle in (90, 270) else (box[2] - box[0], box[3] - box[1])
    middle_x, middle_y = (sides[:, 0] + sides[:, 2]) / 2, (sides[:, 1] + sides[:, 3]) / 2
    shown = np.array([bool(letter) for letter in letters]) & (sides[:, 3] > sides[:, 1])
    shown &= np.isfinite(sides).all(axis=1)
    shown &= (middle_x >= 0) & (middle_x <= width) & (middle_y >= 0) & (middle_y <= height)
    index = np.flatnonzero(shown)
    if not len(index):
        return [], 0.0
    probe = index[:: max(1, len(index) // 100)]
    wrong = sum(functions["unmapped"](address, int(i)) == 1 or _unreadable(codes[i]) for i in probe)
    x0, top, x1, bottom = sides[index].T
    tall = bottom - top
    level = (top + bottom) / 2
    least = np.minimum(tall[1:], tall[:-1])
    parts = (
        (np.abs(level[1:] - level[:-1]) > 0.5 * least)
        | (x0[1:] < x0[:-1] - 0.5 * least)
        | (x0[1:] - x1[:-1] > COLUMN_GAP * np.maximum(tall[1:], tall[:-1]))
    )
    spaced = np.concatenate(([False], np.diff(index) > 1)).tolist()
    cuts = [0, *(np.flatnonzero(parts) + 1).tolist(), len(index)]
    lefts, middles = x0.tolist(), middle_x[index].tolist()
    marks = [" " + letters[i] if space else letters[i] for i, space in zip(index.tolist(), spaced, strict=True)]
    spans = [
        Span(
            float(x0[a:b].min()), float(top[a:b].min()), _ink_end(x1[a:b], marks[b - 1], lefts[b - 1], middles[b - 1]),
            float(bottom[a:b].max()),
            marks[a:b], lefts[a:b], middles[a:b], _size(address, int(index[a])),
        )
        for a, b in pairwise(cuts)
    ]  # fmt: skip
    return spans, wrong / len(probe)


def _ink_end(x1: NDArray[Any], last: str, left: float, middle: float) -> float:
    """Right end of a span: where the ink ends, if it ends with Chinese punctuation."""
    return left + 0.6 * (middle - left) if last in HANGING else float(x1.max())


def _size(address: int, index: int) -> float:
    """Size of a character's font in points: what the file calls its size, times the scale it is drawn at."""
    matrix = (ctypes.c_float * 6)()
    _functions()["matrix"](address, index, ctypes.addressof(matrix))
    return float(round(_functions()["size"](address, index) * math.hypot(matrix[2], matrix[3]), 1))


@cache
def _letter(code: int) -> str:
    """What a character code shows as; "" for white space and what no text may hold."""
    if code in _HYPHENS:
        return "-"
    if code in _SYMBOL_FONT:
        return _SYMBOL_FONT[code]
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF or code == 0:
        return "\ufffd" if code else ""
    letter = chr(code)
    if 0xFB00 <= code <= 0xFB06 or 0x2E80 <= code < 0x2FE0:
        return normalize("NFKC", letter)  # ligatures, and radicals that some writers put for the character itself
    return "" if _UNSEEN.match(letter) else letter


def _unreadable(code: int) -> bool:
    return code == 0xFFFD or (0xE000 <= code < 0xF900 and code not in _SYMBOL_FONT) or code < 0x20


def _drawn(pdfium_c: Any, page: Any, found: Page, box: tuple[float, ...], angle: int) -> None:
    """Add the drawn lines of the page and the share of it that pictures cover."""
    boxes: list[tuple[float, float, float, float]] = []
    pictures: list[tuple[float, float, float, float]] = []
    identity = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    todo: list[tuple[Any, ...]] = [
        (pdfium_c.FPDFPage_CountObjects(page), pdfium_c.FPDFPage_GetObject, page, identity, 0)
    ]
    limits = [ctypes.c_float() for _ in range(4)]
    refs = [ctypes.byref(value) for value in limits]
    paths = 0
    while todo:
        count, get, holder, matrix, depth = todo.pop()
        for k in range(count):
            item = get(holder, k)
            kind = pdfium_c.FPDFPageObj_GetType(item)
            if kind == pdfium_c.FPDF_PAGEOBJ_TEXT or not pdfium_c.FPDFPageObj_GetBounds(item, *refs):
                continue
            bounds = _moved(matrix, *(value.value for value in limits))
            if kind == pdfium_c.FPDF_PAGEOBJ_PATH:
                paths += 1
                if paths <= MAX_SEGMENTS:
                    boxes += _sides(pdfium_c, item, bounds, matrix)
            elif kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
                pictures.append(bounds)
            elif kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth < MAX_FORM_DEPTH:
                inner = pdfium_c.FS_MATRIX()
                pdfium_c.FPDFPageObj_GetMatrix(item, inner)
                count_inner = pdfium_c.FPDFFormObj_CountObjects(item)
                joined = _product((inner.a, inner.b, inner.c, inner.d, inner.e, inner.f), matrix)
                todo.append((count_inner, pdfium_c.FPDFFormObj_GetObject, item, joined, depth + 1))
    if pictures:
        area = sum(max(0.0, x1 - x0) * max(0.0, y1 - y0) for x0, y0, x1, y1 in pictures)
        found.image_share = min(1.0, area / max(1.0, found.width * found.height))
    if not boxes or paths > MAX_SEGMENTS or len(boxes) > MAX_SEGMENTS:
        return
    upright = _upright(np.array(boxes), box, angle)
    for x0, top, x1, bottom in upright[np.isfinite(upright).all(axis=1)].tolist():
        if bottom - top <= THIN_PT and x1 - x0 >= SHORTEST_RULE_PT:
            found.horizontal.append(Rule((top + bottom) / 2, x0, x1))
        elif x1 - x0 <= THIN_PT and bottom - top >= SHORTEST_RULE_PT:
            found.vertical.append(Rule((x0 + x1) / 2, top, bottom))


def _sides(
    pdfium_c: Any, path: Any, bounds: tuple[float, float, float, float], matrix: tuple[float, ...]
) -> list[tuple[float, float, float, float]]:
    """Upright and level lines of a path as thin boxes: a thin path is one, a box has four, else segment by segment."""
    x0, y0, x1, y1 = bounds
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium_c.FPDFPath_GetDrawMode(path, fill, stroke)
    if not fill.value and not stroke.value:
        return []
    if x1 - x0 <= THIN_PT or y1 - y0 <= THIN_PT:
        return [bounds]
    if not stroke.value and _white(pdfium_c, path):
        return []
    points: list[tuple[float, float]] = []
    found: list[tuple[float, float, float, float]] = []
    own = pdfium_c.FS_MATRIX()
    pdfium_c.FPDFPageObj_GetMatrix(path, own)
    whole = _product((own.a, own.b, own.c, own.d, own.e, own.f), matrix)
    x, y = ctypes.c_float(), ctypes.c_float()
    for k in range(min(pdfium_c.FPDFPath_CountSegments(path), MAX_SEGMENTS)):
        segment = pdfium_c.FPDFPath_GetPathSegment(path, k)
        pdfium_c.FPDFPathSegment_GetPoint(segment, x, y)
        moved = _moved(whole, x.value, y.value, x.value, y.value)[:2]
        kind = pdfium_c.FPDFPathSegment_GetType(segment)
        if kind == pdfium_c.FPDF_SEGMENT_MOVETO:
            points = [moved]
        else:
            if kind == pdfium_c.FPDF_SEGMENT_LINETO and points:
                found += _thin(points[-1], moved)
            points.append(moved)
        if pdfium_c.FPDFPathSegment_GetClose(segment) and len(points) > 1:
            found += _thin(points[-1], points[0])
    return found


def _thin(a: tuple[float, float], b: tuple[float, float]) -> list[tuple[float, float, float, float]]:
    if min(abs(a[0] - b[0]), abs(a[1] - b[1])) > 1.0:
        return []
    return [(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))]


def _white(pdfium_c: Any, path: Any) -> bool:
    colour = [ctypes.c_uint() for _ in range(4)]
    pdfium_c.FPDFPageObj_GetFillColor(path, *colour)
    return all(value.value > 250 for value in colour[:3])


def _product(first: tuple[float, ...], then: tuple[float, ...]) -> tuple[float, ...]:
    a, b, c, d, e, f = first
    m, n, o, p, q, r = then
    return (a * m + b * o, a * n + b * p, c * m + d * o, c * n + d * p, e * m + f * o + q, e * n + f * p + r)


def _moved(matrix: tuple[float, ...], x0: float, y0: float, x1: float, y1: float) -> tuple[float, float, float, float]:
    a, b, c, d, e, f = matrix
    xs = sorted((a * x0 + c * y0 + e, a * x1 + c * y1 + e))
    ys = sorted((b * x0 + d * y0 + f, b * x1 + d * y1 + f))
    return xs[0], ys[0], xs[1], ys[1]
