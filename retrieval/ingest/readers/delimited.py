"""Reads CSV and TSV: the delimiter and the encoding are found from the content."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from retrieval.ingest.document import Block, Document, Place, Row
from retrieval.ingest.encoding import MAX_TEXT_BYTES, decoded

DELIMITERS = (",", ";", "\t", "|")
SAMPLE_RECORDS = 200
ROWS_PER_BLOCK = 20_000  # longer than any alarm list; what a file of a million rows is handed on in
MAX_COLUMNS = 2_000
_SEPARATOR_LINE = re.compile(r"sep=([,;\t|])\n")  # how a file tells Excel
MOST_LINES = 300  # in one record; more is a quotation mark that is never closed


def read(path: Path, name: str) -> Document:
    """Open a delimited file.

    Raises:
        DocumentUnreadable: the file cannot be opened, is empty or too large, or is no text.
    """
    text, encoding, warnings = decoded(path, name)
    document = Document(name, "csv", iter(()), encoding=encoding, warnings=warnings)
    document.blocks = _blocks(text, document)
    return document


def delimiter_of(text: str) -> tuple[str, float]:
    """(delimiter, share of the first records that have the usual number of columns, two or more); ("", 0) if none.

    Rows above the header and ragged rows have other numbers, so the delimiter that most records agree on is taken.
    """
    best, best_rank, best_share = "", (0.0, 0), 0.0
    sample = text[: 1 << 18]
    for delimiter in DELIMITERS:
        if delimiter not in sample:
            continue
        widths = Counter(
            len(record) for _, record in islice(_records(sample, delimiter, quoted=True), SAMPLE_RECORDS) if any(record)
        )
        width, count = max(widths.items(), key=lambda item: (item[1] * (item[0] > 1), item[0]), default=(0, 0))
        share = count / max(1, widths.total())
        if width > 1 and (rank := (round(share, 1), width)) > best_rank:
            best, best_rank, best_share = delimiter, rank, share
    return best, best_share


def _records(text: str, delimiter: str, *, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    """(line that the record starts in, its fields)."""
    csv.field_size_limit(MAX_TEXT_BYTES)  # the library's own limit is less than a log pasted in one cell
    source = io.StringIO(text, newline="")
    reader = csv.reader(source, delimiter=delimiter or ",", quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
    line = 1
    for record in reader:
        yield line, record
        line = reader.line_num + 1


def _blocks(text: str, document: Document) -> Iterator[Block]:
    if hit := _SEPARATOR_LINE.match(text):
        delimiter, text = hit.group(1), "\n" + text[hit.end() :]
    else:
        delimiter, _ = delimiter_of(text)
    quoted = _quotes_close(text, delimiter)
    if not quoted:
        document.warnings.append(
            f"{document.name}: a quotation mark is never closed; quotation marks were read as ordinary characters."
        )
    records = (
        (row, [field.strip() for field in record])
        for row, (_, record) in enumerate(_records(text, delimiter, quoted=quoted), start=1)
        if any(field.strip() for field in record)
    )
    width = 0
    ragged: list[int] = []
    while piece := list(islice(records, ROWS_PER_BLOCK)):
        usual = Counter(len(record) for _, record in piece).most_common(1)[0][0]
        ragged += [row for row, record in piece if len(record) != usual and any(record[1:])]
        width = min(MAX_COLUMNS, max(width, *(len(record) for _, record in piece)))
        used = 1 + max(k for _, record in piece for k, field in enumerate(record[:width]) if field or k == 0)
        yield Block(
            "table",
            Place(row=piece[0][0]),
            rows=tuple(
                Row(tuple((record + [""] * (used - len(record)))[:used]), Place(row=row)) for row, record in piece
            ),
        )
    if ragged:
        document.warnings.append(
            f"{document.name}: {len(ragged)} rows have more or fewer columns than the others, the first in row"
            f" {ragged[0]}; they were filled up with empty cells."
        )


def _quotes_close(text: str, delimiter: str) -> bool:
    """Whether no quotation mark swallows the records after it, up to the end or over more lines than a cell has."""
    end = "the end"
    before, record = 1, [""]
    for line, record in _records(f"{text}\n{end}", delimiter, quoted=True):  # noqa: B007 - the last one counts
        if line - before > MOST_LINES:
            return False
        before = line
    return record == [end]
