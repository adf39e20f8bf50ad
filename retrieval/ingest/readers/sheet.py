"""Reads XLSX and XLS: all sheets as tables, cells as a person sees them, merged cells filled.

An alarm number shown as 0401 is often the number 401 with a format, so number formats are followed as far as they
change digits: leading zeros, decimals, per cent, words before and after.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any

from retrieval.ingest.archive import damaged, open_package
from retrieval.ingest.document import Block, Document, DocumentUnreadable, Place, Row
from retrieval.ingest.encoding import clean

ROWS_PER_BLOCK = 20_000  # longer than any alarm list; what a sheet of a million rows is streamed in
MAX_COLUMNS = 2_000  # beyond it a sheet is a drawing or a mistake
MAX_MERGES = 200_000
MOST_ACTIVE = 500  # merged ranges in one row; more overlap, which no spreadsheet program writes
WIDEST_FILL = 256  # columns: a title merged over the whole width of the sheet is not repeated 16,384 times
_DEFAULT_NAME = re.compile(r"(?:sheet|tabelle|feuil|工作表|表)\s*\d*", re.IGNORECASE)
_MERGE = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?\bref="([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}[0-9]{1,7})"')
_UNCALCULATED = re.compile(rb"(?:</(?:\w+:)?f>|<(?:\w+:)?f\b[^>]*/>)\s*(?:<(?:\w+:)?v\s*/>|<v></v>)?\s*</(?:\w+:)?c>")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_NUMBER_FORMAT = re.compile(
    r'(?P<before>(?:"[^"]*"|\\.|[-()/ ])*)[#,?]*(?P<zeros>0[0,]*)?(?P<point>\.(?P<decimals>[0#?]*))?(?P<percent>%)?'
    r'(?P<after>(?:"[^"]*"|\\.|[-()/ ])*)'
)
Merges = list[tuple[int, int, int, int]]
"""Merged ranges: (first row, first column, last row, last column), from 1."""


@dataclass
class _Sheet:
    """One worksheet: its rows as they come, (row number from 1, texts by column from 0)."""

    name: str
    rows: Iterator[tuple[int, list[str]]]
    merges: Merges = field(default_factory=list)


def read(path: Path, name: str) -> Document:
    """Open an XLSX, XLSM or XLS file; nothing in it is run or calculated.

    Args:
        path: the file on disk.
        name: what people see.

    Raises:
        DocumentUnreadable: damaged, protected by a password, or of a kind that is not read; or, while blocks are
            walked, a sheet that breaks off.
    """
    try:
        with path.open("rb") as handle:
            old = handle.read(4) == b"\xd0\xcf\x11\xe0"
    except OSError as error:
        raise DocumentUnreadable(
            f"{name} cannot be opened: {error.strerror or error}.", "check the path and its rights."
        ) from error
    document = Document(name, "xls" if old else "xlsx", iter(()))
    sheets = _xls(path, document) if old else _xlsx(path, document)
    document.blocks = _blocks(sheets, document)
    return document


def _blocks(sheets: Iterable[_Sheet], document: Document) -> Iterator[Block]:
    found = False
    for sheet in sheets:
        headed = _DEFAULT_NAME.fullmatch(sheet.name.strip()) is not None
        for rows in _tables(sheet, document):
            if not headed:
                yield Block("heading", Place(sheet=sheet.name), text=sheet.name, level=1)
                headed = True
            found = True
            yield Block("table", rows[0].place, rows=rows)
    if not found:
        document.warnings.append(f"{document.name}: no cell with text in any sheet.")


def _tables(sheet: _Sheet, document: Document) -> Iterator[tuple[Row, ...]]:
    """Rows of a sheet in pieces of at most ROWS_PER_BLOCK, without the empty columns at its left and right."""
    filled = _filled(sheet)
    first = MAX_COLUMNS
    while piece := list(islice(filled, ROWS_PER_BLOCK)):
        # a piece that begins further right than the one before must not move its columns
        first = min(first, *(next(k for k, text in enumerate(texts) if text) for _, texts in piece))
        last = max(max(k for k, text in enumerate(texts) if text) for _, texts in piece) + 1
        if last > MAX_COLUMNS:
            document.warnings.append(f"{document.name}, sheet {sheet.name}: columns after {MAX_COLUMNS} left out.")
            last = MAX_COLUMNS
        yield tuple(
            Row(tuple(texts[first:last] + [""] * (last - max(first, len(texts)))), Place(sheet=sheet.name, row=number))
            for number, texts in piece
        )


def _filled(sheet: _Sheet) -> Iterator[tuple[int, list[str]]]:
    """Rows that have a text of their own, with merged cells filled in."""
    waiting = sorted(sheet.merges, reverse=True)
    active: list[tuple[int, int, int, int, str]] = []
    for number, texts in sheet.rows:
        if not any(texts):
            continue
        active = [merge for merge in active if merge[2] >= number]
        while waiting and waiting[-1][0] <= number:
            top, left, bottom, right = waiting.pop()
            anchor = texts[left - 1] if top == number and left <= len(texts) else ""
            if anchor and bottom >= number and len(active) < MOST_ACTIVE:
                active.append((top, left, bottom, right, anchor))
        for _, left, _, right, anchor in active:
            width = min(right - left + 1, WIDEST_FILL)
            texts.extend([""] * (left - 1 + width - len(texts)))
            texts[left - 1 : left - 1 + width] = [anchor] * width
        yield number, texts


def _xlsx(path: Path, document: Document) -> Iterator[_Sheet]:
    name = document.name
    with open_package(path, name) as package:
        inner = set(package.namelist())
        if any(part.endswith("vbaProject.bin") for part in inner):
            document.warnings.append(f"{name}: its macros were ignored.")
        if "xl/workbook.xml" in inner and b"purl.oclc.org/ooxml" in package.read("xl/workbook.xml")[:5000]:
            raise DocumentUnreadable(
                f"{name} is saved as Strict Open XML.", "save it as an ordinary Excel workbook (.xlsx)."
            )
    import openpyxl  # noqa: PLC0415 - a fifth of a second

    handle = path.open("rb")  # openpyxl leaves a file open that it cannot read
    try:
        with warnings.catch_warnings(action="ignore"):  # what openpyxl does not keep when it writes is nothing to us
            book = openpyxl.load_workbook(handle, read_only=True, data_only=True, keep_links=False)
        document.title = clean(book.properties.title or "").strip()
    except MemoryError:
        handle.close()
        raise
    except Exception as error:  # openpyxl raises whatever Python does on nonsense in a part
        handle.close()
        raise damaged(name, error) from error
    return _xlsx_sheets(path, handle, book, document)


def _xlsx_sheets(path: Path, handle: IO[bytes], book: Any, document: Document) -> Iterator[_Sheet]:
    try:
        for worksheet in book.worksheets:
            title = clean(worksheet.title)
            if worksheet.sheet_state != "visible":
                document.warnings.append(f"{document.name}: sheet {title} is hidden; it was read all the same.")
            merges, uncalculated = _scan(path, worksheet._worksheet_path, document)
            if uncalculated:
                document.warnings.append(
                    f"{document.name}, sheet {title}: {uncalculated} formulas have no stored value and were left"
                    " empty; open the file in a spreadsheet program and save it, then read it in again."
                )
            worksheet.reset_dimensions()  # some writers state a size that is too small
            yield _Sheet(title, _xlsx_rows(worksheet, title, document), merges)
    finally:
        book.close()
        handle.close()


def _scan(path: Path, part: str, document: Document) -> tuple[Merges, int]:
    """Merged ranges, which stand after the cells in the file, and the number of formulas without a value."""
    merges: Merges = []
    uncalculated = 0
    try:
        with zipfile.ZipFile(path) as package, package.open(part) as handle:
            rest = b""
            while chunk := handle.read(1 << 20):
                text = rest + chunk
                # what the last cell or range of a chunk is cut into is looked at with the next chunk
                begun = max(text.rfind(b"c r="), text.rfind(b"mergeCell "))
                end = max(text.rfind(b"<", 0, begun) if begun > 0 else 0, len(text) - (1 << 16))
                rest = text[end:]
                uncalculated += sum(1 for _ in _UNCALCULATED.finditer(text, 0, end))
                merges += [_range(hit.group(1).decode()) for hit in _MERGE.finditer(text, 0, end)]
                if len(merges) > MAX_MERGES:
                    document.warnings.append(f"{document.name}: {part} has too many merged cells; not filled.")
                    return [], uncalculated
            uncalculated += sum(1 for _ in _UNCALCULATED.finditer(rest))
            merges += [_range(hit.group(1).decode()) for hit in _MERGE.finditer(rest)]
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError) as error:
        raise damaged(document.name, error) from error
    return merges, uncalculated


def _range(reference: str) -> tuple[int, int, int, int]:
    from openpyxl.utils.cell import range_boundaries  # noqa: PLC0415

    left, top, right, bottom = range_boundaries(reference)
    return top, left, bottom, right


def _xlsx_rows(worksheet: Any, title: str, document: Document) -> Iterator[tuple[int, list[str]]]:
    rows = enumerate(worksheet.iter_rows(), start=1)
    number = 0
    while True:
        before = number
        piece = []
        try:
            with warnings.catch_warnings(action="ignore"):  # a date out of range, which comes out as its number
                for number, cells in islice(rows, 1000):
                    if cells:
                        piece.append((number, [_xlsx_text(cell) for cell in cells]))
        except MemoryError:
            raise
        except Exception as error:
            yield from piece
            document.warnings.append(
                f"{document.name}, sheet {title} breaks off after row {number}: {error or type(error).__name__}."
            )
            return
        yield from piece
        if number == before:
            return


def _xlsx_text(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(_ESCAPED.sub(lambda hit: chr(int(hit.group(1), 16)), value)).strip()
    return shown(value, cell.number_format)


def _xls(path: Path, document: Document) -> Iterator[_Sheet]:
    import xlrd  # noqa: PLC0415 - only old files need it

    name = document.name
    try:
        book = xlrd.open_workbook(path, logfile=io.StringIO(), formatting_info=True, on_demand=True)
    except xlrd.XLRDError as error:
        if "encrypted" in str(error).lower():
            raise DocumentUnreadable(
                f"{name} is protected by a password.", "save a copy without a password."
            ) from error
        raise damaged(name, error) from error
    except MemoryError:
        raise
    except Exception as error:  # xlrd takes offsets in the file on trust
        raise damaged(name, error) from error
    return _xls_sheets(book, document)


def _xls_sheets(book: Any, document: Document) -> Iterator[_Sheet]:
    for index, raw_title in enumerate(book.sheet_names()):
        title = clean(raw_title)
        try:
            sheet = book.sheet_by_index(index)
        except MemoryError:
            raise
        except Exception as error:
            document.warnings.append(f"{document.name}, sheet {title} cannot be read: {error or type(error).__name__}.")
            continue
        if sheet.visibility:
            document.warnings.append(f"{document.name}: sheet {title} is hidden; it was read all the same.")
        merges = [(top + 1, left + 1, bottom, right) for top, bottom, left, right in sheet.merged_cells]
        rows = ((n + 1, [_xls_text(book, cell) for cell in sheet.row(n)]) for n in range(sheet.nrows))
        yield _Sheet(title, rows, merges)
        book.unload_sheet(index)


def _xls_text(book: Any, cell: Any) -> str:
    import xlrd  # noqa: PLC0415

    if cell.ctype == xlrd.XL_CELL_TEXT:
        return clean(cell.value).strip()
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return shown(bool(cell.value))
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, ""))
    if cell.ctype not in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
        return ""
    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            moment = xlrd.xldate_as_datetime(cell.value, book.datemode)
        except (ValueError, OverflowError):
            return shown(cell.value)
        return shown(moment.time() if 0 <= cell.value < 1 else moment)
    form = book.format_map.get(book.xf_list[cell.xf_index].format_key)
    return shown(cell.value, form.format_str if form else "General")


def shown(value: object, number_format: str = "General") -> str:
    """A cell's value as text: dates in ISO form, numbers without a needless `.0` and with the zeros of their format."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        whole = (value.hour, value.minute, value.second) == (0, 0, 0)
        return value.date().isoformat() if whole else value.isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat() if isinstance(value, date) else value.isoformat("seconds")
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    if isinstance(value, int | float):
        return _number(value, number_format)
    return clean(str(value)).strip()


def _number(value: int | float, number_format: str) -> str:
    zeros, decimals, percent, before, after = _layout(number_format)
    scaled = value * 100 if percent else value
    if decimals is not None:
        text = f"{scaled:.{decimals}f}"
    elif isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        text = str(int(scaled)) if not percent else f"{scaled:.15g}"
    else:
        text = f"{scaled:.15g}"
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, point, fraction = digits.partition(".")
    return f"{sign}{before}{whole.rjust(zeros, '0')}{point}{fraction}{'%' if percent else ''}{after}"


@lru_cache(maxsize=512)
def _layout(number_format: str) -> tuple[int, int | None, bool, str, str]:
    """(least digits before the point, decimals, per cent, words before, words after) of a number format."""
    section = re.sub(r"\[[^\]]*\]|[_*].", "", number_format.partition(";")[0])
    hit = _NUMBER_FORMAT.fullmatch(section)
    if hit is None or not (hit["zeros"] or hit["point"] or "#" in section):
        return 0, None, False, "", ""
    zeros = len((hit["zeros"] or "").replace(",", ""))
    decimals = hit["decimals"]
    exact = decimals is not None and "#" not in decimals and "?" not in decimals
    fixed = len(decimals) if exact else None
    if decimals is None and zeros == 1:
        fixed = 0
    words = [re.sub(r'"([^"]*)"|\\(.)', r"\1\2", hit[side]) for side in ("before", "after")]
    return zeros, fixed, bool(hit["percent"]), words[0].lstrip(), words[1].rstrip()
