"""The PDF reader against generated manuals whose cells are known, and against every kind of bad file."""

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pypdfium2 as pdfium
import pytest
from reportlab.pdfgen.canvas import Canvas

from evaluation.documents.pdf import LAYOUTS, Placed, manual, wrapped, write_manual
from evaluation.documents.truth import VENDOR_STYLES, alarms
from retrieval.ingest.document import DocumentUnreadable
from retrieval.ingest.readers.pdf import read
from retrieval.records import UNPRINTABLE

HEADERS = {"AlarmNo.", "报警号"}
TABLES = LAYOUTS[:3]


def fold(text: str) -> Any:
    return re.sub(r"\s", "", normalize("NFKC", text))


def rows_of(blocks: Any) -> Any:
    """Rows of all tables, those joined that a page break or a merged code cell parts; headers and group rows out."""
    found: list[list[str]] = []
    for block in blocks:
        for row in block.rows:
            cells = [fold(cell) for cell in row.cells]
            if cells[0] in HEADERS or len(set(cells)) == 1:
                continue
            if found and len(found[-1]) == len(cells) and (not cells[0] or cells[0] == found[-1][0]):
                for k, cell in enumerate(cells[1:], start=1):
                    if not (k == 1 and cells[0]):
                        found[-1][k] += cell
            else:
                found.append(cells)
    return found


def precision_and_recall(placed: Any, blocks: Any) -> Any:
    true = Counter(tuple(map(fold, one.cells)) for one in placed)
    found = Counter(tuple(row) for row in rows_of(blocks))
    right = sum((true & found).values())
    return right / max(1, sum(found.values())), right / sum(true.values())


@pytest.mark.parametrize("layout", TABLES)
@pytest.mark.parametrize("style", VENDOR_STYLES)
def test_cells_of_tables(tmp_path: Path, layout: Any, style: Any) -> None:
    path = tmp_path / "alarms.pdf"
    seed = VENDOR_STYLES.index(style) + 10
    placed = write_manual(path, alarms(50, seed, style), layout, seed)
    blocks = list(read(path, path.name).blocks)
    assert precision_and_recall(placed, blocks) >= ((0.93, 0.93) if layout == "unruled" else (0.98, 0.98))
    pages = {fold(row.cells[0]): row.place.page for block in reversed(blocks) for row in reversed(block.rows)}
    assert {one.page for one in placed if pages.get(fold(one.cells[0])) != one.page} == set()


def test_rows_are_numbered_on_their_page_and_equally_wide(tmp_path: Path) -> None:
    path = tmp_path / "alarms.pdf"
    write_manual(path, alarms(50, 3, "fanuc"), "ruled", 3)
    by_page: dict[Any, Any] = {}
    for block in read(path, path.name).blocks:
        assert len({len(row.cells) for row in block.rows}) <= 1
        for row in block.rows:
            by_page.setdefault(row.place.page, []).append(row.place.row)
    assert all(rows == list(range(1, len(rows) + 1)) for rows in by_page.values())


def test_blocks_layout_keeps_its_lines_and_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "alarms.pdf"
    placed = write_manual(path, alarms(40, 5, "fanuc"), "blocks", 5)
    blocks = list(read(path, path.name).blocks)
    assert {block.kind for block in blocks} == {"heading", "text"}
    text = fold("\n".join(block.text for block in blocks))
    at = 0
    for one in placed:
        for part in one.cells:
            at = text.index(fold(part), at)
    lines = "\n".join(block.text for block in blocks).split("\n")
    assert all(any(line.startswith(one.cells[0] + " ") for line in lines) for one in placed)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("manual") / "manual.pdf"
    placed = manual(path, 1)
    document = read(path, path.name)
    return placed, document, list(document.blocks)


def test_manual_that_mixes_all_layouts(whole: Any) -> None:
    placed, document, blocks = whole
    assert document.pages == 40
    assert document.title.startswith("CNC-500 Maintenance Manual")
    scan = {one.page for one in placed if one.layout == "scan"}
    tabled = [one for one in placed if one.layout in TABLES]
    kept = [block for block in blocks if block.place.page not in scan]
    assert min(precision_and_recall(tabled, kept)) >= 0.97


def test_headings_of_the_outline_nest_and_running_lines_are_gone(whole: Any) -> None:
    _, _, blocks = whole
    headings = [(block.level, block.text) for block in blocks if block.kind == "heading"]
    assert (1, "3 NC alarms") in headings
    assert (2, "3.1 Before you start") in headings
    assert (2, "6.1 操作之前") in headings
    assert len(headings) == 20
    texts = [block.text for block in blocks if block.kind == "text"]
    assert not [text for text in texts if "Maintenance Manual" in text or re.search(r"B-\d+EN", text)]
    assert not [text for text in texts if re.fullmatch(r"\d+", text)]
    assert all(not UNPRINTABLE.search(text) for text in texts)


def test_contents_are_no_table(whole: Any) -> None:
    _, _, blocks = whole
    first = [block for block in blocks if block.place.page == 1]
    assert {block.kind for block in first} == {"heading", "text"}


def page_of(draw: Any, path: Path, pages: int = 1) -> Any:
    canvas = Canvas(str(path), pagesize=(595, 842))
    for number in range(pages):
        draw(canvas, number)
        canvas.showPage()
    canvas.save()
    document = read(path, path.name)
    return document, list(document.blocks)


def test_two_columns_are_read_one_after_the_other_and_words_made_whole(tmp_path: Path) -> None:
    prose = " ".join(f"word{k} and more text of the left and right side" for k in range(120))
    lines = wrapped(prose, 235.0, 9)
    half = -(-len(lines) // 2)
    lines[3:5] = ["the axis moves beyond its limits and the commu-", "nication fails while code X-", "7001 stays"]

    def draw(canvas: Any, _: Any) -> Any:
        canvas.setFont("Helvetica", 9)
        for k, line in enumerate(lines):
            canvas.drawString(50 + 255 * (k // half), 780 - 11 * (k % half), line)

    _, blocks = page_of(draw, tmp_path / "two.pdf")
    assert {block.kind for block in blocks} == {"text"}
    text = "\n".join(block.text for block in blocks)
    assert "communication fails while code X-\n7001 stays" in text
    order = [int(number) for number in re.findall(r"word(\d+)", text)]
    assert order == sorted(order)


def test_headings_by_size_without_an_outline(tmp_path: Path) -> None:
    def draw(canvas: Any, number: Any) -> Any:
        canvas.setFont("Helvetica-Bold", 20)
        canvas.drawString(50, 780, f"{number + 1} Chapter of the manual")
        canvas.setFont("Helvetica-Bold", 12)
        canvas.drawString(50, 740, "Before you start")
        canvas.setFont("Helvetica", 9)
        for k in range(20):
            canvas.drawString(50, 715 - 11 * k, f"Line {k} of the text on page {number} goes on and on.")

    _, blocks = page_of(draw, tmp_path / "sizes.pdf", pages=2)
    assert [(b.level, b.text) for b in blocks if b.kind == "heading"] == [
        (1, "1 Chapter of the manual"), (3, "Before you start"), (1, "2 Chapter of the manual"), (3, "Before you start"),
    ]  # fmt: skip


def test_landscape_table_on_a_turned_page(tmp_path: Path) -> None:
    def draw(canvas: Any, _: Any) -> Any:
        canvas.setPageRotation(90)
        canvas.rotate(90)
        canvas.setFont("Helvetica", 9)
        for k in range(6):
            canvas.rect(60, -100 - 20 * k, 80, 20)
            canvas.rect(140, -100 - 20 * k, 300, 20)
            canvas.drawString(65, -94 - 20 * k, f"SV040{k}")
            canvas.drawString(145, -94 - 20 * k, f"SERVO ALARM {k}")

    _, blocks = page_of(draw, tmp_path / "turned.pdf")
    assert [row.cells for row in blocks[0].rows] == [(f"SV040{k}", f"SERVO ALARM {k}") for k in range(6)]


def test_memory_does_not_grow_with_pages(tmp_path: Path) -> None:
    def draw(canvas: Any, number: Any) -> Any:
        canvas.setFont("Helvetica", 9)
        for k in range(10):
            canvas.drawString(50, 700 - 12 * k, f"Page {number} line {k}: a sentence of the manual stands here.")

    canvas = Canvas(str(tmp_path / "long.pdf"))
    for number in range(1200):
        draw(canvas, number)
        canvas.showPage()
    canvas.save()
    early: int = 0
    last: int | None = 0
    for block in read(tmp_path / "long.pdf", "long.pdf").blocks:
        last = block.place.page
        if last == 300 and not early:
            early = resident_bytes()
    assert last == 1200
    assert resident_bytes() < early + 20_000_000


def resident_bytes() -> Any:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def simple(path: Path, *, encrypt: Any = None) -> Any:
    canvas = Canvas(str(path), encrypt=encrypt)
    for number in range(3):
        canvas.drawString(50, 700, f"Text of page {number + 1} of the manual, long enough to be text.")
        canvas.showPage()
    canvas.save()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 not a pdf at all", "not a PDF"),
        (b"%PDF-1.7\n", "is damaged"),
        (b"%PDF-1.7\n" + b"\x00\xff" * 5000, "is damaged"),
    ],
)
def test_files_that_are_no_pdf_are_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    with pytest.raises(DocumentUnreadable, match=says) as caught:
        read(path, "inbox.zip/bad.pdf")
    assert "inbox.zip/bad.pdf" in caught.value.what
    assert caught.value.next_step


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentUnreadable, match="cannot be opened"):
        read(tmp_path / "none.pdf", "none.pdf")


def test_password_is_named_and_no_password_opens(tmp_path: Path) -> None:
    from reportlab.lib.pdfencrypt import StandardEncryption

    simple(tmp_path / "locked.pdf", encrypt=StandardEncryption("secret", "owner", strength=128))
    with pytest.raises(DocumentUnreadable, match="save a copy without a password"):
        read(tmp_path / "locked.pdf", "locked.pdf")
    simple(tmp_path / "open.pdf", encrypt=StandardEncryption("", "owner", strength=128))
    assert len(list(read(tmp_path / "open.pdf", "open.pdf").blocks)) == 3


def test_no_pages_is_named(tmp_path: Path) -> None:
    document = pdfium.PdfDocument.new()
    document.save(tmp_path / "none.pdf")
    document.close()
    with pytest.raises(DocumentUnreadable, match="has no pages"):
        read(tmp_path / "none.pdf", "none.pdf")


def test_cut_short_files_give_what_is_there_or_a_named_error(tmp_path: Path) -> None:
    content = simple(tmp_path / "whole.pdf")
    path = tmp_path / "cut.pdf"
    named = read_some = 0
    for size in range(0, len(content), len(content) // 40):
        path.write_bytes(content[:size])
        try:
            document = read(path, path.name)
            list(document.blocks)
            assert document.warnings
            read_some += 1
        except DocumentUnreadable as error:
            named += bool(error.next_step)
    assert named + read_some >= 40
    assert read_some


def test_scrambled_bytes_never_crash(tmp_path: Path) -> None:
    content = simple(tmp_path / "whole.pdf")
    path = tmp_path / "scrambled.pdf"
    for at in range(0, len(content) - 60, 41):
        path.write_bytes(content[:at] + bytes((byte + 3) % 256 for byte in content[at : at + 30]) + content[at + 30 :])
        try:
            list(read(path, path.name).blocks)
        except DocumentUnreadable as error:
            assert error.next_step


def test_a_page_that_fails_is_a_warning_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from retrieval.ingest.readers import pdf, pdf_page

    simple(tmp_path / "three.pdf")
    load = pdf_page.load_page

    def failing(page: Any, number: Any) -> Any:
        if number == 2:
            raise pdfium.PdfiumError("Failed to load page.")
        return load(page, number)

    monkeypatch.setattr(pdf, "load_page", failing)
    document = read(tmp_path / "three.pdf", "three.pdf")
    assert [block.place.page for block in document.blocks] == [1, 3]
    assert document.warnings == ["three.pdf, page 2 cannot be read: Failed to load page.."] or "page 2" in str(
        document.warnings
    )


def scanned(path: Path, pages: int) -> Any:
    from PIL import Image
    from reportlab.lib.utils import ImageReader

    picture = ImageReader(Image.new("L", (300, 400), 200))
    canvas = Canvas(str(path))
    for _ in range(pages):
        canvas.drawImage(picture, 0, 0, 595, 842)
        canvas.showPage()
    canvas.drawString(50, 700, "A page of text follows the scanned pages of the manual.")
    canvas.save()


def test_scanned_pages_without_ocr_are_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "retrieval.ingest.readers.image", None)
    scanned(tmp_path / "scan.pdf", 4)
    document = read(tmp_path / "scan.pdf", "scan.pdf")
    assert [block.place.page for block in document.blocks] == [5]
    assert len(document.warnings) == 1
    assert "1-4" in document.warnings[0]
    assert "pip install 'faultwright[ocr]'" in document.warnings[0]


def test_scanned_pages_go_to_ocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    from retrieval.ingest.document import Block, Place

    def page_blocks(image: Any, page: Any) -> Any:
        return [Block("text", Place(page), text=f"read {image.size}", confidence=0.8)]

    monkeypatch.setitem(sys.modules, "retrieval.ingest.readers.image", SimpleNamespace(page_blocks=page_blocks))
    scanned(tmp_path / "scan.pdf", 2)
    document = read(tmp_path / "scan.pdf", "scan.pdf")
    blocks = list(document.blocks)
    assert [(block.place.page, block.confidence) for block in blocks] == [(1, 0.8), (2, 0.8), (3, 1.0)]
    assert document.warnings == []


@pytest.mark.parametrize("size", [(3, 3), (14400, 14400), (200, 14000)])
def test_absurd_page_sizes(tmp_path: Path, size: Any) -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=size)
    canvas.setFont("Helvetica", 1)
    canvas.drawString(0.5, 1, "ab")
    canvas.save()
    path = tmp_path / "size.pdf"
    path.write_bytes(buffer.getvalue())
    assert [block.text for block in read(path, path.name).blocks] == ["ab"]


def test_truth_is_seeded_and_unique() -> None:
    for style in VENDOR_STYLES:
        some = alarms(80, 4, style)
        assert some == alarms(80, 4, style)
        assert len({one.code for one in some}) == 80
        assert {one.language for one in some} == {"en", "zh"}
        assert all(one.causes and one.remedies and one.heading for one in some)
    with pytest.raises(ValueError, match="could be drawn"):
        alarms(5000, 1, "free")


def test_placed_is_what_the_layout_says(tmp_path: Path) -> None:
    placed = write_manual(tmp_path / "a.pdf", alarms(10, 1, "bare", "zh"), "ruled", 1)
    assert all(isinstance(one, Placed) and one.cells[1] == one.alarm.heading for one in placed)


def test_letters_that_the_file_does_not_tell_are_read_as_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
    path = tmp_path / "unmapped.pdf"
    canvas = Canvas(str(path), pageCompression=0)
    canvas.setFont("Vera", 10)
    for k in range(10):
        canvas.drawString(50, 700 - 12 * k, "SV0401 servo alarm: detected while not ready")
    canvas.save()
    content = re.sub(rb"(?m)^(<[0-9A-F]{2}>) <00([0-9A-F]{2})>$", rb"\1 <E0\2>", path.read_bytes())
    assert content != path.read_bytes()
    path.write_bytes(content)
    monkeypatch.setitem(sys.modules, "retrieval.ingest.readers.image", None)
    document = read(path, path.name)
    assert list(document.blocks) == []
    assert "page 1" in document.warnings[0]


BLACK = (0, 0, 0)
# How other programs draw tables: lines and shades by name, as reportlab's own table engine sets them.
DRAWN: dict[str, Any] = {
    "inner lines only": [("INNERGRID", (0, 0), (-1, -1), 0.5, BLACK)],
    "columns ruled, rows not": [
        ("LINEBEFORE", (1, 0), (-1, -1), 0.5, BLACK), ("BOX", (0, 0), (-1, -1), 0.5, BLACK),
        ("LINEBELOW", (0, 0), (-1, 0), 0.5, BLACK),
    ],
    "three lines": [
        ("LINEABOVE", (0, 0), (-1, 0), 1, BLACK), ("LINEBELOW", (0, 0), (-1, 0), 0.5, BLACK),
        ("LINEBELOW", (0, -1), (-1, -1), 1, BLACK),
    ],
    "shaded rows": [("ROWBACKGROUNDS", (0, 0), (-1, -1), [(0.8, 0.8, 0.8), (1, 1, 1)])],
    "grid, code half way down": [("GRID", (0, 0), (-1, -1), 0.5, BLACK), ("VALIGN", (0, 0), (-1, -1), "MIDDLE")],
    "nothing": [],
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("drawn", DRAWN)
def test_tables_as_another_program_sets_them(tmp_path: Path, drawn: Any, language: Any) -> None:
    from types import SimpleNamespace

    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

    write_manual(tmp_path / "font.pdf", alarms(1, 1, "fanuc", "zh"), "blocks", 1)  # registers the Chinese font

    def cell(text: str) -> Any:
        wide = any(ord(letter) > 0x2E7F for letter in text)
        font, wrap = ("STSong-Light", "CJK") if wide else ("Helvetica", None)
        style = ParagraphStyle("cell", fontName=font, fontSize=8, leading=9.6, wordWrap=wrap)
        return Paragraph(text.replace("\n", "<br/>"), style)

    known = alarms(40, 5, "sinumerik", language)
    cells = [(one.code_text, one.heading, "\n".join(one.causes), "\n".join(one.remedies)) for one in known]
    head = ("Alarm No.", "Message", "Cause", "Remedy") if language == "en" else ("报警号", "信息", "原因", "处理")
    table = Table([[cell(text) for text in row] for row in (head, *cells)], colWidths=(70, 110, 160, 160), repeatRows=1)
    pads = [(side, (0, 0), (-1, -1), 4) for side in ("LEFTPADDING", "RIGHTPADDING", "TOPPADDING", "BOTTOMPADDING")]
    table.setStyle(TableStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), *pads, *DRAWN[drawn]]))
    intro = cell(
        "This chapter lists the alarms of the control. Read the safety notes before you open the cabinet. " * 3
    )
    SimpleDocTemplate(str(tmp_path / "t.pdf"), leftMargin=45, rightMargin=45).build([intro, table, intro])
    placed = [SimpleNamespace(cells=row) for row in cells]
    assert min(precision_and_recall(placed, read(tmp_path / "t.pdf", "t.pdf").blocks)) >= 0.95


def test_no_text_is_lost_wherever_it_stands() -> None:
    import random

    from retrieval.ingest.readers.pdf_layout import Text, arrange, edge_lines
    from retrieval.ingest.readers.pdf_page import Page, Rule, Span

    for seed in range(250):
        rng = random.Random(seed)
        columns = sorted(rng.sample(range(20, 560, 20), rng.randint(1, 6)))
        spans = []
        for k in range(rng.choice((1, 5, 40, 120))):
            x, y, word = (
                rng.choice((*columns, rng.uniform(0, 590))),
                12 * rng.randint(0, 65) + rng.choice((0, 0, -5)),
                f"w{k}x",
            )
            lefts = [x + 5 * i for i in range(len(word))]
            spans.append(Span(x, y, x + 5 * len(word), y + 10, list(word), lefts, [left + 2.5 for left in lefts], 9.0))
        levels = [12.0 * rng.randint(0, 65) - 1 for _ in range(rng.choice((0, 0, 3, 12)))]
        uprights = [column - 2.0 for column in columns] if levels and rng.random() < 0.5 else []
        page = Page(
            1,
            595,
            842,
            spans,
            [Rule(y, 15, 570) for y in levels],
            [Rule(x, min(levels), max(levels)) for x in uprights],
        )
        edge_lines(page)
        found = ""
        for item in arrange(page, spans):
            found += " ".join(
                [line.text for line in item.lines] if isinstance(item, Text) else ["\n".join(row) for row in item.rows]
            )
        # a drawn line may cut a word in two: letters are counted, not words
        assert not Counter("".join(span.text for span in spans)) - Counter(found)
