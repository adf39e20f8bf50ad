"""Reads DOCX: headings by style and outline level, numbered lists with their numbers, tables with merged cells.

The XML is read directly: what Word keeps in content controls, tracked insertions, links and text boxes is text like any
other, and a reader that leaves it out loses steps of a procedure. Tracked deletions are left out.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrieval.ingest.archive import ZIP_ERRORS, damaged, open_package
from retrieval.ingest.document import Block, Document, DocumentUnreadable, Place, Row
from retrieval.ingest.encoding import clean
from retrieval.ingest.readers.docx_styles import Numbering, Styles, child, local, value
from retrieval.ingest.readers.html import grid

MAX_PART_BYTES = 200_000_000  # the tree takes some ten times that; a manual of 3,000 pages has 40 MB
MAX_TABLE_DEPTH = 5
_DROPPED = frozenset(("del", "moveFrom", "Fallback", "instrText", "delText", "rPr", "pPr", "sdtPr", "tblPr", "tcPr"))
_LETTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
# Characters that Word writes by their place in the font Symbol: a limit of "≤ 50" must not become "50".
_SYMBOLS = {
    0x22: "∀", 0x2D: "−", 0x44: "Δ", 0x57: "Ω", 0x61: "α", 0x62: "β", 0x64: "δ", 0x6A: "φ", 0x6D: "μ", 0x70: "π",
    0x71: "θ", 0x73: "σ", 0x77: "ω", 0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓",
    0xB0: "°", 0xB1: "±", 0xB2: "″", 0xB3: "≥", 0xB4: "×", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBB: "≈", 0xD6: "√",
    0xE5: "∑",
}  # fmt: skip


def read(path: Path, name: str) -> Document:
    """Open a DOCX or DOCM file; page numbers are not known, for they are made when it is shown.

    Raises:
        DocumentUnreadable: damaged, protected by a password, or made to harm.
    """
    document = Document(name, "docx", iter(()))
    with open_package(path, name) as package:
        main = main_part(package)
        if main is None:
            raise DocumentUnreadable(f"{name} holds no Word document.", "open it in a word processor and save it anew.")
        body = _part(package, main, name)
        folder = posixpath.dirname(main)
        styles = Styles(_part(package, f"{folder}/styles.xml", name))
        numbering = Numbering(_part(package, f"{folder}/numbering.xml", name))
        core = _part(package, "docProps/core.xml", name)
        inner = package.namelist()
    if body is None:
        raise DocumentUnreadable(f"{name} is damaged: {main} is missing.", "copy or download the file again.")
    if any(part.endswith("vbaProject.bin") for part in inner):
        document.warnings.append(f"{name}: its macros were ignored.")
    if core is not None:
        titles = [clean(node.text or "").strip() for node in core.iter() if local(node) == "title"]
        document.title = titles[0] if titles else ""
    document.blocks = _Walk(styles, numbering).blocks(body)
    return document


def main_part(package: zipfile.ZipFile) -> str | None:
    """Path in the package of the document itself; Word on the web calls it document2.xml."""
    names = package.namelist()
    parts = [n for n in names if n.startswith("word/document") and n.endswith(".xml") and n.count("/") == 1]
    return min(parts, key=len) if parts else None


def _part(package: zipfile.ZipFile, part: str, name: str) -> Any:
    """Root element of a part, None where the package has none of that name."""
    from lxml import etree  # noqa: PLC0415 - loads a library of 12 MB

    try:
        info = package.getinfo(part)
    except KeyError:
        return None
    if info.file_size > MAX_PART_BYTES:
        raise DocumentUnreadable(f"{name} has more than {MAX_PART_BYTES // 1_000_000} MB of text.", "split it.")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, huge_tree=True
    )
    try:
        with package.open(info) as handle:
            return etree.parse(handle, parser).getroot()
    except (etree.XMLSyntaxError, *ZIP_ERRORS) as error:
        raise damaged(name, error) from error


class _Walk:
    """One pass over the body: paragraphs of a list are gathered into one block."""

    def __init__(self, styles: Styles, numbering: Numbering) -> None:
        self.styles, self.numbering = styles, numbering

    def blocks(self, body: Any) -> Iterator[Block]:
        """Blocks in the order of the document."""
        items: list[str] = []
        for node in _content(body):
            if local(node) == "tbl":
                yield from _list(items)
                yield from self.table(node)
                continue
            if self.styles.is_contents(node):
                continue
            text, boxes = self.paragraph(node)
            level = self.styles.heading_level(node)
            label = self.numbering.label(node, self.styles) if text else ""
            if level and text:
                yield from _list(items)
                yield Block("heading", text=" ".join(f"{label}{text}".split()), level=level)
            elif label:
                items.append(label + text)
            elif text:
                yield from _list(items)
                yield Block("text", text=text)
            for box in boxes:
                yield from _list(items)
                yield from self.blocks(box)
        yield from _list(items)

    def paragraph(self, node: Any) -> tuple[str, list[Any]]:
        """(text of a paragraph, text boxes that hang on it)."""
        parts: list[str] = []
        boxes: list[Any] = []
        todo = [node]
        while todo:
            item = todo.pop()
            kind = local(item)
            if kind == "t":
                parts.append(item.text or "")
            elif kind in _LETTERS:
                parts.append(_LETTERS[kind])
            elif kind == "sym":
                parts.append(_symbol(item))
            elif kind == "txbxContent":
                boxes.append(item)
            elif kind not in _DROPPED:
                todo += reversed(item)
        lines = (line.strip(" ") for line in clean("".join(parts)).split("\n"))
        return "\n".join(line for line in lines if line.strip()), boxes

    def table(self, node: Any, depth: int = 1) -> Iterator[Block]:
        """A table as a block; one that is a frame around text is read as that text."""
        cells = [cell for row in _rows(node) for cell in _cells(row)]
        if len(cells) == 1 and depth < MAX_TABLE_DEPTH:
            yield from self.blocks(cells[0])
            return
        rows, _ = grid(self.spans(node, depth))
        if rows:
            placed = tuple(Row(tuple(texts), Place(row=number)) for number, texts in rows)
            yield Block("table", placed[0].place, rows=placed)

    def spans(self, table: Any, depth: int) -> list[list[tuple[str, int, int]]]:
        """Rows of (text, columns spanned, rows spanned), as `grid` takes them."""
        rows: list[list[tuple[str, int, int]]] = []
        open_cells: dict[int, tuple[int, int]] = {}  # column → (row, cell) of what goes on below
        for number, row in enumerate(_rows(table)):
            column = _whole(child(child(row, "trPr"), "gridBefore"), 0)
            found: list[tuple[str, int, int]] = [("", 1, 1)] * column
            going_on: dict[int, tuple[int, int]] = {}
            for cell in _cells(row):
                properties = child(cell, "tcPr")
                width = _whole(child(properties, "gridSpan"), 1)
                merge = child(properties, "vMerge")
                if merge is not None and value(merge) != "restart" and column in open_cells:
                    above, at = open_cells[column]
                    text, columns, height = rows[above][at]
                    rows[above][at] = (text, columns, height + 1)
                    going_on[column] = open_cells[column]
                    column += columns
                    continue
                if merge is not None:
                    going_on[column] = (number, len(found))
                found.append((self.cell(cell, depth), max(1, width), 1))
                column += max(1, width)
            open_cells = going_on
            rows.append(found)
        return rows

    def cell(self, cell: Any, depth: int) -> str:
        """Text of a cell; a table in it becomes lines, its cells parted by tabs."""
        lines: list[str] = []
        for node in _content(cell):
            if local(node) == "tbl":
                if depth < MAX_TABLE_DEPTH:
                    rows, _ = grid(self.spans(node, depth + 1))
                    lines += ["\t".join(" ".join(text.split()) for text in texts).strip() for _, texts in rows]
                continue
            text, boxes = self.paragraph(node)
            if text:
                lines.append(self.numbering.label(node, self.styles) + text)
            lines += [inner for box in boxes if (inner := self.cell(box, depth))]
        return "\n".join(lines)


def _content(parent: Any) -> Iterator[Any]:
    """Paragraphs and tables of a body or cell, those in content controls and tracked insertions included."""
    todo = list(reversed(parent))
    while todo:
        node = todo.pop()
        kind = local(node)
        if kind in ("p", "tbl"):
            yield node
        elif kind not in _DROPPED and kind != "sectPr":
            todo += reversed(node)


def _rows(table: Any) -> Iterator[Any]:
    yield from _inside(table, "tr", ("tbl",))


def _cells(row: Any) -> Iterator[Any]:
    yield from _inside(row, "tc", ("tr",))


def _inside(parent: Any, wanted: str, closed: tuple[str, ...]) -> Iterator[Any]:
    todo = list(reversed(parent))
    while todo:
        node = todo.pop()
        kind = local(node)
        if kind == wanted:
            yield node
        elif kind not in _DROPPED and kind not in closed:
            todo += reversed(node)


def _whole(node: Any, default: int) -> int:
    text = value(node)
    return min(1_000, int(text)) if text.isdecimal() else default


def _symbol(node: Any) -> str:
    font = next((text for key, text in node.attrib.items() if key.endswith("}font")), "")
    code = next((text for key, text in node.attrib.items() if key.endswith("}char")), "")
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    if 0xF000 <= number <= 0xF0FF:
        number -= 0xF000
    elif number > 0xFF:
        return chr(number) if number < 0x110000 else ""
    return _SYMBOLS.get(number, "") if font == "Symbol" else ""


def _list(items: list[str]) -> Iterator[Block]:
    if items:
        yield Block("text", text="\n".join(items))
        items.clear()
