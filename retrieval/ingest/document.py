"""What a reader makes of a file: headings, texts and tables in reading order, each with the place to check it at.

Readers know formats and nothing of alarms; `retrieval.ingest.rows` and `retrieval.ingest.passages` know alarms and
nothing of formats. Blocks come lazily, page by page, so that a manual of ten thousand pages needs no more memory than
one of ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from retrieval.errors import RetrievalError

Format = Literal["pdf", "docx", "xlsx", "xls", "csv", "html", "markdown", "text", "jsonl", "image"]


class DocumentUnreadable(RetrievalError):
    """A file that cannot be read: names it, the reason and the next step. Other files are not affected."""


@dataclass(frozen=True)
class Place:
    """Where in the document: `page` and `row` count from 1.

    `row` is the row of a sheet or a delimited file, the line of a text or JSONL file (`line` is True), or the row of a
    table on its page. `sheet` is the name of a worksheet. What a format does not have stays None or empty.
    """

    page: int | None = None
    sheet: str = ""
    row: int | None = None
    line: bool = False

    def __str__(self) -> str:
        parts = [
            f"page {self.page}" if self.page is not None else "",
            f"sheet {self.sheet}" if self.sheet else "",
            f"{'line' if self.line else 'row'} {self.row}" if self.row is not None else "",
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class Row:
    """One row of a table: the texts of its cells, left to right ("" for an empty one), and where it stands.

    All rows of a table have the same number of cells. A merged cell has its text in every column and row it spans. Line
    breaks inside a cell are kept: they often separate numbered causes.
    """

    cells: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Block:
    """A heading, a text or a table.

    `text` is the text of a heading or a text block, with the line breaks of the source; a text block is a paragraph
    where the format tells, else the lines that stand together. `level` is 1 to 6 for a heading (outline, heading style,
    `<h1>`). `rows` are a table's rows in order, header row included as it stands. `confidence` in [0, 1] is below 1
    only for text read by OCR.
    """

    kind: Literal["heading", "text", "table"]
    place: Place = Place()
    text: str = ""
    level: int = 0
    rows: tuple[Row, ...] = ()
    confidence: float = 1.0


@dataclass
class Document:
    """One file, opened. `blocks` may be walked once; it raises `DocumentUnreadable` where the file breaks off.

    `name` is what people see (the file's name, or `archive.zip/inner/name.pdf`). `pages` is None where the format has
    no pages. `encoding` is what a text file was decoded with.
    """

    name: str
    format: Format
    blocks: Iterator[Block]
    title: str = ""
    pages: int | None = None
    encoding: str = ""
    warnings: list[str] = field(default_factory=list)


Reader = Callable[[Path, str], Document]
"""(path of the file on disk, name to show) → Document. Raises DocumentUnreadable."""
