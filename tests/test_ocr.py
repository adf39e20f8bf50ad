"""Pictures: what is made of their text, which slips are forgiven, and what bad pictures say."""

from __future__ import annotations

import builtins
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL", reason="the extra ocr is not installed")

from PIL import Image, ImageDraw

from evaluation.documents.photos import STYLES, alarm_photo, alarm_photos, chinese_font_found, scanned_page
from retrieval import ocr
from retrieval.codes import find_codes
from retrieval.errors import RetrievalError
from retrieval.ingest.document import DocumentUnreadable
from retrieval.ingest.readers.image import page_blocks, read
from retrieval.ocr import OcrLine, OcrUnavailable, picture_count, picture_pages, read_lines, to_rgb
from retrieval.records import Language
from retrieval.screen_photo import (
    ReadCode,
    ScreenReading,
    _agreed,
    _Book,
    codes_on_screen,
    read_screen,
    screen_question,
)

CODES = {
    ("fanuc", "30i"): {
        "SV0401",
        "SV0410",
        "SV0411",
        "SV0430",
        "SV0436",
        "OT0500",
        "DS0300",
        "DS0307",
        "OH0701",
        "SW0100",
        "SP9001",
        "BG0085",
    },
    ("fanuc", "16i"): {"401", "411"},
    ("siemens", "sinumerik"): {"25050", "10720", "3000", "21612"},
    ("siemens", "sinamics"): {"F30021", "F07011", "F30002", "A30005", "F30005"},
    ("haas", "ngc"): {"103", "104", "120", "9.993", "1320"},
    ("grbl", "grbl"): {"ALARM:1", "error:9"},
}


def known(vendor: str, family: str | None) -> set[str]:
    return {code for (v, f), codes in CODES.items() if v == vendor and family in (None, f) for code in codes}


def rows(*texts: str, confidence: float = 0.95) -> list[OcrLine]:
    return [OcrLine(text, confidence, (0, 30 * k, 400, 30 * k + 20), k) for k, text in enumerate(texts)]


def screen(
    *texts: str, vendor: str | None = None, family: str | None = None, confidence: float = 0.95
) -> ScreenReading:
    return codes_on_screen(rows(*texts, confidence=confidence), vendor=vendor, family=family, known=known)


@pytest.mark.parametrize(
    ("text", "code", "corrected"),
    [
        # as it stands
        ("SV0401 (X) V_READY OFF", "SV0401", False),
        ("F30021 Power unit: ground fault", "F30021", False),
        ("SV0404 (X) V_READY ON", "SV0404", False),  # not known, not changed into a neighbour
        # letters and digits that look alike
        ("5V04O1 (X) V_READY OFF", "SV0401", True),
        ("5V0401 SERVO ALARM", "SV0401", True),
        ("SVO4O1", "SV0401", True),
        ("SV04I0", "SV0410", True),
        ("SV04l1", "SV0411", True),
        ("SV04|1", "SV0411", True),
        ("0T0500 (X) + OVERTRAVEL", "OT0500", True),
        ("0S0300 APC ALARM", "DS0300", True),
        ("D50307 BATTERY LOW", "DS0307", True),
        ("8G0085 COMMUNICATION", "BG0085", True),
        ("BGOO85 COMMUNICATION", "BG0085", True),
        ("5P9OO1 MOTOR OVERHEAT", "SP9001", True),
        ("F3OO2I ground fault", "F30021", True),
        ("F3OOZ1 ground fault", "F30021", True),
        ("F0701I motor", "F07011", True),
        ("OHO7O1 FAN MOTOR STOP", "OH0701", True),
        ("SP90G1 MOTOR OVERHEAT", "SP9001", True),  # G is read for 6 and for 0
        ("SVO43G (X) SOFTTHERMAL", None, False),
        # spaces inside
        ("SV 0401", "SV0401", False),
        ("SV04 01 V_READY OFF", "SV0401", False),
        ("SV 04 O1 V_READY OFF", "SV0401", True),
        ("F300 21", "F30021", False),
        # lost zeros
        ("SV401 (X) IMPROPER V_READY OFF", "SV0401", True),
        ("SW010 PARAMETER ENABLE SWITCH ON", None, False),  # SW0010 or SW0100
        ("SV041", None, False),  # SV0401, SV0410 or SV0041
        # full width
        ("ＳＶ０４０１（Ｘ）", "SV0401", False),
        # glued to its message
        ("SV0401SERVO ALARM", "SV0401", False),
    ],
)
def test_slips_are_forgiven_by_grammar_and_known_codes(text: str, code: str | None, corrected: bool) -> None:
    reading = screen(text)
    (found,) = reading.codes
    assert (found.code, found.corrected) == (code, corrected)
    if corrected:
        assert any(found.raw in p.en and "taken as" in p.en for p in reading.problems)
        assert any(found.raw in p.zh and code in p.zh for p in reading.problems if code)
    if code is None:
        assert len(found.alternatives) >= 2
        assert any(all(key.code in p.en for key in found.alternatives) for p in reading.problems)


@pytest.mark.parametrize(
    ("vendor", "texts", "codes"),
    [
        ("haas", ("ALARM NO. MESSAGE", "103 X AXIS SERVO ERROR", "l20 LOW AIR PRESSURE"), ["103", "120"]),
        ("haas", ("9.993 TOOL CHANGER SHORT CIRCUIT",), ["9.993"]),
        ("siemens", ("25O50 Axis X1 contour monitoring", "3000 Emergency stop"), ["25050", "3000"]),
        ("siemens", ("2505O 轴 X1 轮廓监控", "3000 急停"), ["25050", "3000"]),
        ("siemens", ("27254 Channel 1 safety fault",), ["27254"]),  # not known, and said so
        ("grbl", ("ALARM;1", "error:9"), ["ALARM:1", "error:9"]),
        (None, ("SINUMERIK 840D sl", "25050 Axis X1 contour monitoring"), ["25050"]),
    ],
)
def test_numbers_that_open_a_message_are_codes(vendor: str | None, texts: tuple[str, ...], codes: list[str]) -> None:
    assert [code.code for code in screen(*texts, vendor=vendor).codes] == codes


@pytest.mark.parametrize("vendor", [None, "fanuc", "siemens", "haas", "mitsubishi", "heidenhain"])
@pytest.mark.parametrize(
    "text",
    [
        "O1234 N00020", "01234 N00020", "O0103", "097631.NC N223", "N3980 G1 X73 F2200", "N3190 G1X43F2300",
        "2026/11/30 12:34:56", "26.12.0812:20:51", "30.11.26 12.34.56", "26.11.0401:29.51",
        "X 123.456 F 3033 MM/MIN", "X -335.957", "-183.317", "-103", "Y 103.000 S 7821 RPM", "F = 2685.910", "S1 = 4748.8",
        "F 30000 mm/min", "F 401", "F2200", "S1200 M03", "S 103", "S120", "M80", "T0024 H20", "T103", "M30 COUNTER #1: 103",
        "SPINDLE SPEED: 1320 RPM", "FEED RATE: 248.9638 IPM", "SPINDLE LOAD 103%", "103 4861 MP/MIN", "1320 RPM",
        "050300 APC", "SINUMERIK 8400 sl", "ALM 21:32:32", "ALARM MESSAGE", "MEM **** *** *** ALM", "G54", "PARTS 103", "",
    ],
)  # fmt: skip
def test_what_else_stands_on_a_screen_is_no_code(text: str, vendor: str | None) -> None:
    assert screen("ALARM MESSAGE", text, vendor=vendor).codes == ()


def test_a_maker_on_the_screen_goes_before_the_one_given() -> None:
    reading = screen("SINUMERIK 840D sl", "25050 Axis X1 contour monitoring", vendor="haas")
    assert [(code.vendor, code.family, code.code) for code in reading.codes] == [("siemens", "sinumerik", "25050")]
    assert any("Haas" in p.en and "Siemens" in p.en for p in reading.problems)
    assert not any("was given" in p.en for p in screen("SV0401 alarm", vendor="fanuc").problems)


def test_unknown_and_faint_codes_are_said_to_be() -> None:
    reading = screen("SV0404 (X) V_READY ON", confidence=0.6)
    assert any("not in the knowledge base" in p.en for p in reading.problems)
    assert any("hard to read" in p.en and p.zh for p in reading.problems)
    assert "no fault code" in screen("RDY OK").problems[0].en
    assert "Nothing legible" in screen().problems[0].en


def test_one_code_twice_is_one() -> None:
    assert [code.code for code in screen("SV0401 X", "SV0401 Y", "OT0500 Z").codes] == ["SV0401", "OT0500"]


def test_drives_of_a_control_are_read_with_it() -> None:
    reading = screen("F3OO21 Power unit: ground fault", vendor="siemens", family="sinumerik")
    assert [(code.family, code.code) for code in reading.codes] == [("sinamics", "F30021")]
    (both,) = screen("230005 Power unit overload", vendor="siemens").codes
    assert both.code is None
    assert {key.code for key in both.alternatives} == {"F30005", "A30005"}


def code(value: str, confidence: float = 0.9) -> ReadCode:
    return ReadCode(value, value, "fanuc", "30i", False, (), confidence)


def test_two_readings_of_a_picture_must_agree() -> None:
    book = _Book(known, "fanuc", None)
    (same,) = _agreed([code("SV0401")], [code("SV0401", 0.95)], book)
    assert (same.code, same.confidence) == ("SV0401", 0.95)
    (torn,) = _agreed([code("DS0300")], [code("DS0380")], book)
    assert torn.code is None
    assert [key.code for key in torn.alternatives] == ["DS0300", "DS0380"]
    (once, unknown) = _agreed([code("SV0401")], [code("EX1234")], book)
    assert (once.code, once.confidence) == ("SV0401", 0.45)
    assert (unknown.code, [key.code for key in unknown.alternatives]) == (None, ["EX1234"])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("vendor", "texts", "codes"),
    [
        ("fanuc", ("SV0401 V_READY OFF", "OT0500 OVERTRAVEL"), ["SV0401", "OT0500"]),
        (
            "haas",
            ("103 X AXIS SERVO ERROR", "104 Y AXIS SERVO ERROR", "9.993 TOOL CHANGER SHORT"),
            ["103", "104", "9.993"],
        ),
        ("siemens", ("25050 Axis X1 contour monitoring", "F07011 Drive: motor"), ["25050", "F07011"]),
    ],
)
def test_the_question_names_maker_and_codes(vendor: str, texts: tuple[str, ...], codes: list[str], language: Language) -> None:
    question = screen_question(screen(*texts, vendor=vendor), language)
    mentions = find_codes(question)
    assert [mention.readings[0].code for mention in mentions] == codes, question
    assert {mention.readings[0].vendor for mention in mentions} == {vendor}


def test_no_question_without_a_settled_code() -> None:
    assert screen_question(screen("SV041"), "en") == ""


# ---- pictures, good and bad ----


def saved(tmp_path: Path, image: Image.Image, name: str, **options: Any) -> Path:
    path = tmp_path / name
    image.save(path, **options)
    return path


def lettered(size: tuple[int, int] = (640, 480)) -> Image.Image:
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).rectangle((10, 10, 60, 40), fill="black")
    return image


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "HEIC"),
        (b"just text, no picture", "no picture of a kind"),
        (b"\x89PNG\r\n\x1a\n" + b"\x00" * 40, "picture"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "no picture of a kind"),
    ],
)
def test_files_that_are_no_pictures_are_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(content)
    with pytest.raises(DocumentUnreadable, match=words) as error:
        list(picture_pages(path, "shop/bad.bin"))
    assert "shop/bad.bin" in error.value.what
    assert error.value.next_step
    with pytest.raises(DocumentUnreadable, match=r"shop/bad\.bin"):
        list(read(path, "shop/bad.bin").blocks)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.png", tmp_path):
        with pytest.raises(DocumentUnreadable, match="cannot be opened"):
            list(picture_pages(path, path.name))


def test_a_cut_off_jpeg_is_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = saved(tmp_path, Image.fromarray(rng.integers(0, 255, (400, 600, 3), dtype=np.uint8)), "cut.jpg")
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(DocumentUnreadable, match="cut off"):
        list(picture_pages(path, "cut.jpg"))


@pytest.mark.parametrize("side", [12_000, 60_000])
def test_decompression_bombs_are_refused_before_they_unfold(tmp_path: Path, side: int) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    path = tmp_path / "bomb.png"
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 4096))
        + chunk(b"IEND", b"")
    )
    with pytest.raises(DocumentUnreadable, match="too big"):
        list(picture_pages(path, "bomb.png"))


def test_cmyk_grey_16_bit_palette_and_transparent_pictures_become_rgb(tmp_path: Path) -> None:
    plain = lettered()
    deep = Image.fromarray((np.asarray(plain.convert("L")).astype(np.uint16)) * 16)
    ink = Image.new("RGBA", plain.size, (0, 0, 0, 0))
    ImageDraw.Draw(ink).rectangle((10, 10, 60, 40), fill="white")
    for image, name in (
        (plain.convert("CMYK"), "cmyk.jpg"),
        (deep, "deep.png"),
        (plain.convert("P"), "palette.png"),
        (plain.convert("1"), "bilevel.tif"),
        (ink, "ink.png"),
        (ink.convert("LA"), "la.png"),
    ):
        (page,) = picture_pages(saved(tmp_path, image, name), name)
        grey = np.asarray(page.convert("L")).astype(int)
        assert page.mode == "RGB", name
        assert abs(grey[25, 30] - grey[200, 300]) > 200, name  # the mark stands out
    assert to_rgb(Image.fromarray(np.full((4, 4), np.nan, dtype=np.float32))).mode == "RGB"


def test_exif_turn_pages_and_animation(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    (page,) = picture_pages(saved(tmp_path, lettered(), "turned.jpg", exif=exif), "turned.jpg")
    assert page.size == (480, 640)
    frames = [lettered() for _ in range(3)]
    tiff = saved(tmp_path, frames[0], "three.tif", save_all=True, append_images=frames[1:])
    assert picture_count(tiff, "three.tif") == (3, 3)
    assert len(list(picture_pages(tiff, "three.tif"))) == 3
    for number, frame in enumerate(frames):
        frame.putpixel((number, 0), (255, 0, 0))
    gif = saved(tmp_path, frames[0], "moves.gif", save_all=True, append_images=frames[1:])
    assert len(list(picture_pages(gif, "moves.gif"))) == 1
    assert "animated" in read(gif, "moves.gif").warnings[0]


def test_pages_before_a_broken_one_are_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pages = [Image.fromarray(rng.integers(0, 255, (200, 300, 3), dtype=np.uint8)) for _ in range(2)]
    path = saved(tmp_path, pages[0], "two.tif", save_all=True, append_images=pages[1:], compression="tiff_lzw")
    content = bytearray(path.read_bytes())
    with Image.open(path) as opened:
        opened.seek(1)
        start = opened.tag_v2[273][0]  # type: ignore[attr-defined] # a TIFF has it
    content[start : start + 2000] = b"\xff" * 2000
    path.write_bytes(content)
    walk = picture_pages(path, "two.tif")
    assert next(walk).size == (300, 200)
    with pytest.raises(DocumentUnreadable, match=r"two\.tif, page 2"):
        next(walk)


@pytest.mark.parametrize("missing", ["rapidocr", "PIL"])
def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    path = saved(tmp_path, lettered(), "screen.png")
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == missing:
            raise ImportError(f"No module named {missing!r}")
        return real(name, *args, **kwargs)

    ocr._engine.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(OcrUnavailable, match=r"pip install 'faultwright\[ocr\]'") as error:
        read_screen(path, known=known)
    assert isinstance(error.value, RetrievalError)


# ---- real OCR ----


@pytest.mark.integration
@pytest.mark.parametrize("style", STYLES)
def test_codes_of_a_clear_photo_are_read(style: Any) -> None:
    if style.endswith("_zh") and not chinese_font_found():
        pytest.skip("no Chinese font on this machine")
    photo = alarm_photo(7, style)
    table = {(alarm.vendor, alarm.family, alarm.code) for alarm in photo.alarms}
    reading = read_screen(
        photo.image,
        vendor=photo.alarms[0].vendor,
        known=lambda v, f: {c for vendor, family, c in table if vendor == v and f in (None, family)},
    )
    assert sorted(code.code or "" for code in reading.codes) == sorted(alarm.code for alarm in photo.alarms)


@pytest.mark.integration
def test_a_photo_on_its_side_or_head_is_turned(tmp_path: Path) -> None:
    photo = alarm_photo(3, "fanuc")
    truth = {alarm.code for alarm in photo.alarms}
    for turn in (90, 180):
        path = saved(tmp_path, photo.image.rotate(turn, expand=True), f"turn{turn}.png")
        assert {code.code for code in read_screen(path, vendor="fanuc", known=known).codes} == truth, turn


@pytest.mark.integration
def test_tiny_huge_and_empty_pictures() -> None:
    photo = alarm_photo(3, "drive_panel")
    want = photo.alarms[0].code
    for size in ((232, 180), (3480, 2700)):
        assert want in " ".join(line.text for line in read_lines(photo.image.resize(size))), size
    for size in ((1, 1), (2, 3000)):
        assert read_lines(Image.new("RGB", size)) == ()
    assert "Nothing legible" in read_screen(Image.new("L", (300, 200)), known=known).problems[0].en


@pytest.mark.integration
def test_a_scanned_table_keeps_rows_and_columns(tmp_path: Path) -> None:
    table = [
        ("Code", "Alarm", "Cause", "Remedy"),
        ("SV0401", "V-READY OFF", "1. Amplifier not ready\n2. Cable loose", "Check the E-stop\ncircuit"),
        ("SV0410", "EXCESS ERROR", "Load too high\nat stop", "Check the gain"),
        ("DS0300", "NEED REF", "Battery was\nremoved", "Return to reference"),
    ]
    page = scanned_page(table, heading="Servo alarms", seed=3)
    blocks = page_blocks(page, 5)
    assert [block.kind for block in blocks] == ["heading", "table"]
    assert [row.cells for row in blocks[1].rows] == table
    assert (blocks[1].place.page, blocks[1].rows[2].place.row) == (5, 3)
    assert 0.9 < blocks[1].confidence < 1
    document = read(saved(tmp_path, page, "page.png"), "page.png")
    assert (document.format, document.pages) == ("image", 1)
    assert [block.kind for block in document.blocks] == ["heading", "table"]


def test_photos_come_from_their_seed() -> None:
    first, second = (list(alarm_photos(3, seed=5, styles=("fanuc", "haas"))) for _ in range(2))
    assert [photo.codes for photo in first] == [photo.codes for photo in second]
    assert all(np.array_equal(np.asarray(one.image), np.asarray(other.image)) for one, other in zip(first, second, strict=True))
