"""Alarm manuals as PDF, drawn from invented alarms: what stands in them is known cell by cell.

English is set in Helvetica and Chinese in STSong-Light, which every PDF reader has: no font file is needed and none
is embedded.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, get_args

from evaluation.documents.truth import TrueAlarm, VendorStyle, alarms
from retrieval.records import Language

Layout = Literal["ruled", "ruled_horizontal", "unruled", "blocks", "scan"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)[:4]
WIDTH_PT, HEIGHT_PT = 595.0, 842.0
LEFT_PT, RIGHT_PT, TOP_PT, BOTTOM_PT = 50.0, 545.0, 785.0, 60.0
SIZE_PT, LEADING_PT = 8.5, 10.5
MANUAL_PAGES = 40
SCAN_ROWS = 8
_COLUMNS: dict[Language, tuple[str, str, str, str]] = {
    "en": ("Alarm No.", "Message", "Cause", "Remedy"),
    "zh": ("报警号", "信息", "原因", "处理"),
}
_NO_LINE_START = "，。）、；：！？％℃)],.;:"
_SHARES = (0.17, 0.22, 0.305, 0.305)


@dataclass(frozen=True)
class Placed:
    """An alarm as it stands in the file: the page that it begins on (from 1) and the texts of its four cells.

    The cells are code, heading, causes, remedies; several causes are numbered. In a `blocks` layout they are the parts.
    """

    alarm: TrueAlarm
    page: int
    layout: Layout
    cells: tuple[str, str, str, str]


def write_manual(path: Path, known: Sequence[TrueAlarm], layout: Layout, seed: int) -> tuple[Placed, ...]:
    """Write the alarms in one layout, English before Chinese; returns what stands where.

    Args:
        path: the PDF to write.
        known: the alarms; each language gets a heading and tables of its own.
        layout: `ruled` (grid, some cells merged), `ruled_horizontal` (level lines only), `unruled` (no lines) or
            `blocks` (a line with code and heading, then paragraphs).
        seed: decides on merged cells, padding, alignment.
    """
    rng = random.Random(seed)  # noqa: S311 - made-up layout, no secrets
    sheet = _Sheet(path, "Alarm list 报警一览", f"B-{rng.randint(10000, 99999)}EN/02")
    placed: list[Placed] = []
    languages: tuple[Language, ...] = ("en", "zh")
    for language in languages:
        if some := [alarm for alarm in known if alarm.language == language]:
            sheet.heading({"en": "Alarm list", "zh": "报警一览"}[language], 0)
            placed += _alarms(sheet, some, layout, rng)
    sheet.close()
    return tuple(placed)


def manual(path: Path, seed: int) -> tuple[Placed, ...]:
    """Write a manual of 40 pages that mixes all layouts and languages with prose, contents and one scanned page."""
    rng = random.Random(seed)  # noqa: S311
    sheet = _Sheet(path, "CNC-500 Maintenance Manual 维修手册", f"B-{rng.randint(10000, 99999)}EN/03")
    sheet.heading("Maintenance manual", 0)
    sheet.contents(rng)
    placed: list[Placed] = []
    parts: list[tuple[str, Language, VendorStyle, Layout]] = [
        ("Servo and spindle alarms", "en", "fanuc", "ruled"),
        ("伺服报警", "zh", "fanuc", "ruled"),
        ("NC alarms", "en", "sinumerik", "ruled_horizontal"),
        ("驱动报警", "zh", "drive", "ruled_horizontal"),
        ("Messages of the machine builder", "en", "free", "unruled"),
        ("系统报警", "zh", "bare", "unruled"),
        ("Drive messages", "en", "drive", "blocks"),
        ("三菱报警", "zh", "mitsubishi", "blocks"),
    ]
    for number, (title, language, style, layout) in enumerate(parts, start=1):
        sheet.new_page()
        sheet.heading(f"{number} {title}", 0)
        _prose(sheet, language, rng, paragraphs=3, columns=1)
        if number % 3 == 0:
            sheet.heading({"en": f"{number}.1 Before you start", "zh": f"{number}.1 操作之前"}[language], 1)
            _prose(sheet, language, rng, paragraphs=6, columns=2)
        sheet.heading(f"{number}.2 {title}", 1)
        placed += _alarms(sheet, alarms(26, rng.randrange(10**6), style, language), layout, rng)
    placed += _scan(sheet, alarms(120, rng.randrange(10**6), "fanuc", "en"))
    sheet.new_page()
    sheet.heading("9 Periodic maintenance", 0)
    while sheet.page < MANUAL_PAGES or sheet.y > BOTTOM_PT + 200:
        _prose(sheet, "en", rng, paragraphs=1, columns=1)
    sheet.close()
    return tuple(placed)


class _Sheet:
    """Where on which page the next line goes."""

    def __init__(self, path: Path, head: str, foot: str) -> None:
        from reportlab.pdfgen.canvas import Canvas  # noqa: PLC0415 - only needed to make documents

        self.canvas: Any = Canvas(str(path), pagesize=(WIDTH_PT, HEIGHT_PT), invariant=1)
        self.canvas.setTitle(head)
        self.head, self.foot = head, foot
        self.page, self.marks = 1, 0
        self.y = TOP_PT
        self._edges()

    def _edges(self) -> None:
        self.text(LEFT_PT, HEIGHT_PT - 35, self.head, 8)
        self.canvas.setLineWidth(0.5)
        self.canvas.line(LEFT_PT, HEIGHT_PT - 40, RIGHT_PT, HEIGHT_PT - 40)
        self.text(LEFT_PT, 30, self.foot, 8)
        self.text(RIGHT_PT - 20, 30, f"{self.page}", 8)

    def new_page(self) -> None:
        self.canvas.showPage()
        self.page += 1
        self.y = TOP_PT
        self._edges()

    def close(self) -> None:
        self.canvas.save()

    def room(self, points: float) -> None:
        if self.y - points < BOTTOM_PT:
            self.new_page()

    def text(self, x: float, y: float, text: str, size: float, *, bold: bool = False) -> None:
        self.canvas.setFont(_font(text, bold=bold), size)
        self.canvas.drawString(x, y, text)

    def heading(self, text: str, level: int) -> None:
        self.room(80)
        self.y -= 26
        self.marks += 1
        self.canvas.bookmarkPage(f"h{self.marks}", fit="XYZ", left=0, top=self.y + 20, zoom=0)
        self.canvas.addOutlineEntry(text, f"h{self.marks}", level)
        self.text(LEFT_PT, self.y, text, 16 - 3 * level, bold=True)
        self.y -= 14

    def contents(self, rng: random.Random) -> None:
        for k in range(1, 16):
            self.text(LEFT_PT, self.y, f"{k % 9 + 1}.{k} Alarms of group {k} " + ". " * 60, SIZE_PT)
            self.text(RIGHT_PT - 15, self.y, str(2 * k + rng.randint(0, 1)), SIZE_PT)
            self.y -= LEADING_PT
        self.y -= LEADING_PT


def _font(text: str, *, bold: bool = False) -> str:
    if any(ord(letter) > 0x2E7F for letter in text):
        return _chinese_font()
    return "Helvetica-Bold" if bold else "Helvetica"


@cache
def _chinese_font() -> str:
    from reportlab.pdfbase import pdfmetrics  # noqa: PLC0415
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont  # noqa: PLC0415

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    return "STSong-Light"


def wrapped(text: str, width: float, size: float = SIZE_PT) -> list[str]:
    """Lines of at most `width` points: English between words, Chinese between characters, never in a number."""
    from reportlab.pdfbase.pdfmetrics import stringWidth  # noqa: PLC0415

    lines, line = [], ""
    for piece in _pieces(text):
        if line.strip() and stringWidth((line + piece).rstrip(), _font(text), size) > width:
            lines.append(line.strip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line.strip()]


def _pieces(text: str) -> Iterator[str]:
    """The parts between which a line may end."""
    piece = ""
    for letter in text:
        breaks = piece.endswith(" ") or _wide(letter) or (piece and _wide(piece[-1]))
        if piece and breaks and letter not in _NO_LINE_START and letter != " ":
            yield piece
            piece = ""
        piece += letter
    yield piece


def _wide(letter: str) -> bool:
    return ord(letter) > 0x2E7F


def _numbered(texts: Sequence[str], language: Language) -> list[str]:
    if len(texts) == 1:
        return list(texts)
    return [f"{k}. {text}" if language == "en" else f"（{k}）{text}" for k, text in enumerate(texts, start=1)]


def _alarms(sheet: _Sheet, known: Sequence[TrueAlarm], layout: Layout, rng: random.Random) -> Iterator[Placed]:
    if layout == "blocks":
        yield from _blocks(sheet, known)
    else:
        yield from _Grid(sheet, layout, known[0].language, rng).draw(known)


class _Grid:
    """A table of alarms, drawn row by row, its header repeated on each page."""

    def __init__(self, sheet: _Sheet, layout: Layout, language: Language, rng: random.Random) -> None:
        self.sheet, self.layout, self.language, self.rng = sheet, layout, language, rng
        whole = RIGHT_PT - LEFT_PT
        self.widths = [share * whole for share in _SHARES]
        self.lefts = [LEFT_PT + sum(self.widths[:k]) for k in range(4)]
        self.pad = {"ruled": 3.0, "ruled_horizontal": 3.0, "unruled": rng.choice((0.0, 2.5))}[layout]
        self.centred = layout == "ruled" and rng.random() < 0.5

    def draw(self, known: Sequence[TrueAlarm]) -> Iterator[Placed]:
        self._header()
        for k, alarm in enumerate(known):
            causes = _numbered(alarm.causes, self.language)
            remedies = _numbered(alarm.remedies, self.language)
            cells = [[alarm.code_text], [alarm.heading], causes, remedies]
            lines = [self._lines(texts, column) for column, texts in enumerate(cells)]
            if self.layout == "ruled" and k and k % 9 == 0:
                self._group(f"Group {k // 9}" if self.language == "en" else f"第{k // 9}组")
            if self.sheet.y - self._height(lines) < BOTTOM_PT and self.sheet.y - 60 < BOTTOM_PT:
                self._next_page()
            page = self.sheet.page
            if self.layout == "ruled" and len(causes) == len(remedies) > 1 and self._fits(lines):
                self._merged_row(lines[:2], causes, remedies)
            else:
                self._row(lines)
            texts = (alarm.code_text, alarm.heading, "\n".join(causes), "\n".join(remedies))
            yield Placed(alarm, page, self.layout, texts)

    def _lines(self, texts: Iterable[str], column: int) -> list[str]:
        gap = 6.0 if self.layout == "ruled" else 12.0
        return [line for text in texts for line in wrapped(text, self.widths[column] - gap)]

    def _height(self, lines: Sequence[Sequence[str]]) -> float:
        return max(map(len, lines)) * LEADING_PT + 2 * self.pad

    def _fits(self, lines: Sequence[Sequence[str]]) -> bool:
        return self.sheet.y - self._height(lines) - 40 > BOTTOM_PT

    def _next_page(self) -> None:
        self.sheet.new_page()
        self._header()

    def _header(self) -> None:
        self.sheet.room(100)
        names = [[name] for name in _COLUMNS[self.language]]
        self._box(0, 4, self._height(names))
        self._rule_above()
        self._cells(names, self._height(names), bold=True)

    def _row(self, lines: list[list[str]]) -> None:
        """One row; what does not fit on the page goes on at the top of the next one, its code cell empty."""
        while self.sheet.y - self._height(lines) < BOTTOM_PT:
            fit = int((self.sheet.y - BOTTOM_PT - 2 * self.pad) / LEADING_PT)
            now = [column[:fit] for column in lines]
            self._cells(now, self._height(now))
            lines = [column[fit:] for column in lines]
            self._next_page()
        self._cells(lines, self._height(lines))

    def _cells(self, lines: Sequence[Sequence[str]], height: float, *, bold: bool = False) -> None:
        for column, texts in enumerate(lines):
            if self.layout == "ruled":
                self._box(column, column + 1, height)
            self._fill(column, texts, height, bold=bold)
        self.sheet.y -= height
        self._rule_above()

    def _fill(self, column: int, texts: Sequence[str], height: float, *, bold: bool = False) -> None:
        free = height - 2 * self.pad - len(texts) * LEADING_PT if self.centred and column == 0 else 0.0
        y = self.sheet.y - self.pad - free / 2 - SIZE_PT
        for text in texts:
            self.sheet.text(self.lefts[column] + 3, y, text, SIZE_PT, bold=bold)
            y -= LEADING_PT

    def _box(self, first: int, last: int, height: float) -> None:
        if self.layout == "ruled":
            width = sum(self.widths[first:last])
            self.sheet.canvas.rect(self.lefts[first], self.sheet.y - height, width, height)

    def _rule_above(self) -> None:
        if self.layout == "ruled_horizontal":
            self.sheet.canvas.line(LEFT_PT, self.sheet.y, RIGHT_PT, self.sheet.y)

    def _group(self, text: str) -> None:
        """A row of one cell over all columns."""
        height = LEADING_PT + 2 * self.pad
        if self.sheet.y - height - 60 < BOTTOM_PT:
            self._next_page()
        self._box(0, 4, height)
        self._fill(1, [text], height)
        self.sheet.y -= height

    def _merged_row(self, head: list[list[str]], causes: Sequence[str], remedies: Sequence[str]) -> None:
        """Code and heading once, beside one row for each cause with its remedy."""
        pairs = [(self._lines([c], 2), self._lines([r], 3)) for c, r in zip(causes, remedies, strict=True)]
        heights = [self._height(pair) for pair in pairs]
        heights[-1] += max(0.0, self._height(head) - sum(heights))
        if self.sheet.y - sum(heights) < BOTTOM_PT:
            self._next_page()
        for column, texts in enumerate(head):
            self._box(column, column + 1, sum(heights))
            self._fill(column, texts, sum(heights))
        for pair, height in zip(pairs, heights, strict=True):
            for column, texts in enumerate(pair, start=2):
                self._box(column, column + 1, height)
                self._fill(column, texts, height)
            self.sheet.y -= height


def _blocks(sheet: _Sheet, known: Sequence[TrueAlarm]) -> Iterator[Placed]:
    """A line with code and heading in bold, then paragraphs for causes and remedies."""
    for alarm in known:
        language = alarm.language
        causes, remedies = _numbered(alarm.causes, language), _numbered(alarm.remedies, language)
        names = ("Cause:", "Remedy:") if language == "en" else ("原因：", "处理：")
        sheet.room(60)
        page = sheet.page
        for line in wrapped(f"{alarm.code_text} {alarm.heading}", RIGHT_PT - LEFT_PT - 30, SIZE_PT + 0.5):
            sheet.text(LEFT_PT, sheet.y, line, SIZE_PT + 0.5, bold=True)
            sheet.y -= LEADING_PT + 2
        for name, texts in zip(names, (causes, remedies), strict=True):
            parts = [f"{name} {texts[0]}"] if len(texts) == 1 else [name, *texts]
            for line in (line for text in parts for line in wrapped(text, RIGHT_PT - LEFT_PT - 12)):
                sheet.room(LEADING_PT)
                sheet.text(LEFT_PT + 12, sheet.y, line, SIZE_PT)
                sheet.y -= LEADING_PT
        sheet.y -= LEADING_PT
        yield Placed(alarm, page, "blocks", (alarm.code_text, alarm.heading, "\n".join(causes), "\n".join(remedies)))


def _prose(sheet: _Sheet, language: Language, rng: random.Random, *, paragraphs: int, columns: int) -> None:
    """Paragraphs of plain sentences; in two columns the left one is read first."""
    gap = 18.0
    width = (RIGHT_PT - LEFT_PT - gap * (columns - 1)) / columns
    lines: list[str] = []
    for _ in range(paragraphs):
        sentences = [text for alarm in alarms(4, rng.randrange(10**6), "fanuc", language) for text in alarm.remedies]
        stop = {"en": ". ", "zh": "。"}[language]
        lines += [*wrapped(stop.join(text.rstrip(".。") for text in sentences) + stop.strip(), width)]
        if columns == 1:
            lines.append("")
    share = -(-len(lines) // columns)
    sheet.room(share * LEADING_PT if columns > 1 else 4 * LEADING_PT)
    top = sheet.y
    for column in range(columns):
        sheet.y = top
        for line in lines[column * share : (column + 1) * share]:
            if columns == 1:
                sheet.room(LEADING_PT)
            sheet.text(LEFT_PT + column * (width + gap), sheet.y, line, SIZE_PT)
            sheet.y -= LEADING_PT
    sheet.y = (sheet.y if columns == 1 else top - share * LEADING_PT) - LEADING_PT


def _scan(sheet: _Sheet, known: Sequence[TrueAlarm]) -> Iterator[Placed]:
    """A page that is one picture of a table; of the alarms those whose cells take one short text each."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415
    from reportlab.lib.utils import ImageReader  # noqa: PLC0415

    picture = Image.new("L", (1240, 1754), 250)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(22)
    sheet.canvas.showPage()
    sheet.page += 1
    short = [a for a in known if len(a.causes) == len(a.remedies) == 1 and len(a.causes[0] + a.remedies[0]) < 130]
    rows = [_COLUMNS["en"], *((a.code_text, a.heading, a.causes[0], a.remedies[0]) for a in short[:SCAN_ROWS])]
    for k, row in enumerate(rows):
        for x, text in zip((60, 260, 600, 920), row, strict=True):
            draw.multiline_text((x, 120 + 130 * k), "\n".join(wrap(text, 20)), fill=20, font=font, spacing=6)
    for alarm, row in zip(short, rows[1:], strict=False):
        yield Placed(alarm, sheet.page, "scan", row)
    sheet.canvas.drawImage(ImageReader(picture), 0, 0, WIDTH_PT, HEIGHT_PT)
