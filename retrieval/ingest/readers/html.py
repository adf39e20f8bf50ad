"""Reads HTML: headings, paragraphs, lists and tables, without scripts, styles and menus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrieval.ingest.document import Block, Document, DocumentUnreadable, Place, Row
from retrieval.ingest.encoding import clean, encoding_of, read_bytes

MAX_HTML_BYTES = 50_000_000  # a manual on one page; the tree takes some twenty times that
MAX_SPAN = 1_000  # columns, as browsers have it
MAX_CELLS = 2_000_000  # of one table with its spans filled
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,30})""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{2,30})""")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_DROPPED = frozenset(
    "script style nav noscript template svg math head iframe object embed canvas audio video form select button"
    " textarea map title meta link".split()
)
_PARTING = frozenset(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer header"
    " hr html li main ol p pre section summary ul table caption tr td th thead tbody tfoot".split()
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def read(path: Path, name: str) -> Document:
    """Open an HTML file.

    Raises:
        DocumentUnreadable: the file cannot be opened, is empty, too large, or is no text.
    """
    data = read_bytes(path, name, MAX_HTML_BYTES)
    encoding = _encoding(data)
    if encoding is None:
        raise DocumentUnreadable(
            f"{name} is not HTML: its bytes fit no encoding.", "save the page again from a browser, or print it to PDF."
        )
    root, fault = _tree(data.decode(encoding, errors="replace"))
    title = next((clean(node.text or "") for node in root.iter("title")), "") if root is not None else ""
    document = Document(name, "html", iter(()), title=" ".join(title.split()), encoding=encoding)
    if fault:
        document.warnings.append(f"{name} breaks off: {fault}. What follows was not read.")
    if root is not None:
        document.blocks = _Walk(document.warnings, name).blocks(root)
    return document


def fragment_blocks(markup: str) -> Iterator[Block]:
    """Blocks of a piece of HTML, as Markdown may hold."""
    root, _ = _tree(markup)
    if root is not None:
        yield from _Walk([], "").blocks(root)


def _encoding(data: bytes) -> str | None:
    """The encoding that the bytes show, else the one that the page states; pages often state a wrong one."""
    found = encoding_of(data)
    if found in (None, "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be"):
        return found
    if found == "utf-8" and not data.isascii():
        return found
    hit = _CHARSET.search(data[:4096]) or _XML_ENCODING.search(data[:200])
    stated = hit.group(1).decode("ascii").lower() if hit else ""
    if stated.startswith(("gb", "x-gbk")):
        return "gb18030"
    if stated in ("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii"):
        return "cp1252" if found != "gb18030" else found  # browsers read it as Windows-1252 too
    try:
        "".encode(stated)
        data.decode(stated)
    except (LookupError, UnicodeDecodeError, ValueError):
        return found
    return stated


def _tree(markup: str) -> tuple[Any, str]:
    """(root element or None where there is nothing, why the parser gave up or "")."""
    from lxml import etree, html  # noqa: PLC0415 - loads libraries of 12 MB

    # lxml wants bytes where the text states an encoding of its own; that one is done with.
    # huge_tree: elements 2,000 deep rather than 256; HTML has no entities that could grow
    parser = html.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    data = markup.replace("\x00", "").encode("utf-8", errors="replace")
    try:
        root = html.document_fromstring(data, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None, ""  # nothing in it but comments
    fault = next((str(entry.message) for entry in parser.error_log if entry.level_name == "FATAL"), "")
    return root, clean(fault)


@dataclass
class _Walk:
    """One pass over a tree: collects text until an element parts it from what follows."""

    warnings: list[str]
    name: str
    found: list[Block] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    line: int | None = None

    def blocks(self, root: Any) -> Iterator[Block]:
        """Blocks in the order of the file. A stack of our own: pages nest deeper than Python calls may."""
        todo: list[tuple[str, Any]] = [("open", root)]
        while todo:
            step, node = todo.pop()
            if step == "tail":
                self.text.append(node.tail or "")
                continue
            if step == "close":
                self.flush()
            elif _is_dropped(node):
                pass
            elif node.tag in _HEADINGS:
                self.flush()
                heading = " ".join(_flat(node).split())
                if heading:
                    self.found.append(
                        Block("heading", Place(row=node.sourceline, line=True), text=heading, level=_HEADINGS[node.tag])
                    )
            elif node.tag == "table" and not _is_layout(node):
                self.flush()
                self.table(node)
            else:
                self.enter(node, todo)
            yield from self.found
            self.found.clear()
        self.flush()
        yield from self.found

    def enter(self, node: Any, todo: list[tuple[str, Any]]) -> None:
        """Put the children of an element on the stack, and its own text where it belongs."""
        parting = node.tag in _PARTING
        if parting:
            # the items of a list stand together as lines
            if node.tag == "li" and node.getprevious() is not None:
                self.text.append("\n")
            elif node.tag not in ("li", "tr") or not "".join(self.text).strip():
                self.flush()
            self.line = self.line or node.sourceline
            if node.tag == "li":
                self.text.append(_marker(node))
            if node.tag not in ("li",):
                todo.append(("close", node))
        if node.tag == "br":
            self.text.append("\n")
        self.text.append(_own(node.text, node))
        for child in reversed(node):
            todo.append(("tail", child))
            todo.append(("open", child))

    def flush(self) -> None:
        """Make what was collected a text block."""
        text = _lines("".join(self.text))
        if text:
            self.found.append(Block("text", Place(row=self.line, line=True), text=text))
        self.text.clear()
        self.line = None

    def table(self, node: Any) -> None:
        """Add a table's caption and rows."""
        for caption in node.iterchildren("caption"):
            if text := _lines(_flat(caption)):
                self.found.append(Block("text", Place(row=caption.sourceline, line=True), text=text))
        rows, whole = grid([_cells(row) for row in _rows(node)])
        if not whole:
            self.warnings.append(f"{self.name}: a table has more than {MAX_CELLS} cells; the rest was left out.")
        if rows:
            placed = tuple(Row(tuple(cells), Place(row=number)) for number, cells in rows)
            self.found.append(Block("table", placed[0].place, rows=placed))


def _is_dropped(node: Any) -> bool:
    if not isinstance(node.tag, str) or node.tag in _DROPPED:
        return True
    if node.get("role") == "navigation" or node.get("aria-hidden") == "true" or node.get("hidden") is not None:
        return True
    return _HIDDEN.search(node.get("style") or "") is not None


def _marker(item: Any) -> str:
    parent = item.getparent()
    if parent is None or parent.tag != "ol":
        return "- "
    start = parent.get("start") or "1"
    number = (int(start) if re.fullmatch(r"\d{1,6}", start) else 1) + sum(
        1 for _ in item.itersiblings("li", preceding=True)
    )
    return f"{number}. "


def _own(text: str | None, node: Any) -> str:
    """Text as it is in `<pre>`, else with its white space collapsed to single spaces."""
    if not text:
        return ""
    return text if node.tag == "pre" else re.sub(r"[ \t\r\n\f]+", " ", text)


def _flat(node: Any) -> str:
    """All text in an element, with line breaks where its parts stand below each other."""
    parts: list[str] = []
    todo: list[tuple[str, Any]] = [("open", node)]
    while todo:
        step, item = todo.pop()
        if step == "tail":
            parts.append(re.sub(r"[ \t\r\n\f]+", " ", item.tail or ""))
        elif step == "close":
            parts.append("\n")
        elif not _is_dropped(item):
            if item.tag == "br" or (item.tag in _PARTING and item is not node):
                parts.append(" " if item.tag in ("td", "th") else "\n")
                if item.tag not in ("br", "td", "th"):
                    todo.append(("close", item))
            if item.tag == "li":
                parts.append(_marker(item))
            parts.append(_own(item.text, item))
            for child in reversed(item):
                todo.append(("tail", child))
                todo.append(("open", child))
    return "".join(parts)


def _lines(text: str) -> str:
    lines = (re.sub(r"[ \t]+", " ", line).strip() for line in clean(text).split("\n"))
    return "\n".join(line for line in lines if line)


def _is_layout(table: Any) -> bool:
    """Whether a table only places things on the page: then its cells are read one after the other."""
    if table.get("role") in ("presentation", "none"):
        return True
    if next(table.iterdescendants("h1", "h2", "h3"), None) is not None:
        return True
    rows = list(_rows(table))
    if max((len(row) for row in rows), default=0) <= 1:
        return True
    heads = any(cell.tag == "th" for row in rows for cell in row)
    return not heads and next(table.iterdescendants("table"), None) is not None


def _rows(table: Any) -> Iterator[Any]:
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from child.iterchildren("tr")


def _cells(row: Any) -> list[tuple[str, int, int]]:
    return [
        (_lines(_flat(cell)), _span(cell.get("colspan"), 1), _span(cell.get("rowspan"), 0))
        for cell in row.iterchildren("td", "th")
    ]


def _span(text: str | None, least: int) -> int:
    number = int(text) if text and re.fullmatch(r"\s*\d{1,9}\s*", text) else 1
    return max(least, min(MAX_SPAN, number))


def grid(rows: Sequence[Sequence[tuple[str, int, int]]]) -> tuple[list[tuple[int, list[str]]], bool]:
    """Rows of (text, columns spanned, rows spanned) as rows of texts of one length; 0 rows is "to the end".

    Returns:
        (number of the row from 1, texts) of each row with text of its own, and whether all cells fitted in.
    """
    below: dict[int, tuple[str, int]] = {}
    found: list[tuple[int, list[str]]] = []
    cells = 0
    for number, row in enumerate(rows, start=1):
        texts: list[str] = []
        own = False
        reaching = dict(below)
        below = {column: (text, left - 1) for column, (text, left) in reaching.items() if left > 1}
        for text, columns, depth in row:
            while len(texts) in reaching:
                texts.append(reaching[len(texts)][0])
            own = own or bool(text)
            for _ in range(columns):
                if depth != 1:
                    below[len(texts)] = (text, depth - 1 if depth else len(rows))
                texts.append(text)
        end = max(reaching, default=-1) + 1
        texts += [reaching[column][0] if column in reaching else "" for column in range(len(texts), end)]
        cells += len(texts)
        if cells > MAX_CELLS:
            return _even(found), False
        if own:
            found.append((number, texts))
    return _even(found), True


def _even(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    width = max((len(texts) for _, texts in rows), default=0)
    used = 1 + max((k for _, texts in rows for k, text in enumerate(texts) if text), default=-1)
    width = min(width, used)
    return [(number, (texts + [""] * (width - len(texts)))[:width]) for number, texts in rows]
