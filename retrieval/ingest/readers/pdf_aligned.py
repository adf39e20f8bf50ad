"""Tables without drawn lines: columns are the gaps that stay free over several lines of a PDF page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from retrieval.ingest.readers.pdf_lines import Line, cell_text, intervals, text_height, text_size
from retrieval.ingest.readers.pdf_page import Span

MOST_LINES = 1000  # of one page
MOST_GAPS = 80  # widths of gap between rows that are tried
FEWEST_ROWS = 3  # lines that fill two columns or more
LEAST_GAP = 0.15  # heights of a character between columns: spans end at wider gaps, or where a column starts
MANY_COLUMNS = 4  # two such lines are enough
WIDEST_FIRST = 0.35  # share of the width that the first of two columns takes in a table; in prose it is a half
HEADING_SIZE = 1.2  # against the size of the table's first line
WIDEST_SKIP = 3.5  # heights of a line between two lines of one table
Limits = Sequence[tuple[float, float]]
_LIST_MARK = re.compile(r"(?:\(?[0-9]{1,2}[.)、）]|[•▪◦‣➢✓●○■□*–—-]|[a-z][.)]|\([a-z]\)|[①-⑳])\s*")
_SECTION = re.compile(
    r"(?:chapter\s|第\s*)?(?:[0-9]{1,2}|[A-Z])(?:\.[0-9]{1,3})+\.?|(?:chapter|appendix)\s.{1,4}|第.{1,3}章", re.I
)
_PAGE_NUMBER = re.compile(r"(?:[.… ]*\s)?(?:[0-9]{1,4}|[ivxlc]{1,6})")
_RANGE = re.compile(r"\s*(?:[-–—~～至到]|\bto\b)\s*")


@dataclass(frozen=True)
class AlignedTable:
    """Lines `first` to `last` (excluded) of those looked at, and the table that they make."""

    first: int
    last: int
    rows: tuple[tuple[str, ...], ...]


def aligned_tables(lines: Sequence[Line], *, page_start: bool) -> list[AlignedTable]:
    """Tables among lines from the top down; `page_start` is True where the first line is the first of its page."""
    found: list[AlignedTable] = []
    start = 0
    while start < len(lines) <= MOST_LINES:
        if len(lines[start].spans) < 2:
            start += 1
            continue
        end, columns = _run(lines, start)
        for later in range(start + 1, min(end, start + 3)):
            # a line of the text before may leave some of a table's gaps free
            other_end, others = _run(lines, later)
            if len(others) > len(columns) and other_end >= end:
                start, end, columns = later, other_end, others
        end = _without_tail(lines, start, end, columns)
        first = _with_head(lines, start, columns) if page_start and not found else start
        if _is_table(lines[first:end], columns):
            spans = [span for line in lines[first:end] for span in line.spans]
            rows = split_rows(spans, columns)
            if len(rows) >= 2:
                found.append(AlignedTable(first, end, tuple(rows)))
                start = end
                continue
        start += 1
    return found


def _run(lines: Sequence[Line], start: int) -> tuple[int, list[tuple[float, float]]]:
    """Where the lines from `start` on stop leaving the same gaps free, and the columns between the gaps."""
    spans = list(lines[start].spans)
    least = LEAST_GAP * text_height(spans)
    columns = intervals(spans, least)
    end = start + 1
    while end < len(lines):
        line = lines[end]
        if line.top - lines[end - 1].bottom > WIDEST_SKIP * line.height:
            break
        if len(line.spans) == 1 and text_size(line.spans) > HEADING_SIZE * text_size(spans):
            break
        wider = intervals([*(Span(x0, 0, x1, 0, [], [], [], 0) for x0, x1 in columns), *line.spans], least)
        lost = len(columns) > len(wider) or any(_crosses(line, gap) for gap in _gaps(columns))
        if len(wider) < 2 or (lost and _settled(lines[start:end], columns, line)):
            break
        columns, end = wider, end + 1
    return end, columns


def _gaps(columns: Limits) -> list[tuple[float, float]]:
    return [(left[1], right[0]) for left, right in pairwise(columns)]


def _crosses(line: Line, gap: tuple[float, float]) -> bool:
    return any(span.x0 < gap[0] and span.x1 > gap[1] for span in line.spans)


def _settled(lines: Sequence[Line], columns: Limits, breaking: Line) -> bool:
    """Whether a gap that `breaking` closes has text on both sides in three lines or more."""
    for gap in _gaps(columns):
        if any(span.x0 < gap[1] - 0.5 and span.x1 > gap[0] + 0.5 for span in breaking.spans) and _crosses(
            breaking, gap
        ):
            both = sum(line.x0 < gap[0] and line.x1 > gap[1] for line in lines)
            if both >= FEWEST_ROWS:
                return True
    return False


def _filled(line: Line, columns: Limits) -> list[int]:
    """Columns in which the line has text."""
    middles = [(span.x0 + span.x1) / 2 for span in line.spans]
    return [k for k, (x0, x1) in enumerate(columns) if any(x0 <= middle <= x1 for middle in middles)]


def _without_tail(lines: Sequence[Line], start: int, end: int, columns: Limits) -> int:
    """The end without the lines that have text at the left only: the text after a table begins there."""
    while end > start and _filled(lines[end - 1], columns) in ([0], []):
        end -= 1
    return end


def _with_head(lines: Sequence[Line], start: int, columns: Limits) -> int:
    """The start moved up to the top of the page if all there continues cells of a row of the page before."""
    head = lines[:start]
    edges = [x0 for x0, _ in columns[1:]]
    fits = all(
        any(abs(span.x0 - edge) <= 3.0 for edge in edges) and 0 not in _filled(line, columns)
        for line in head
        for span in line.spans
    )
    return 0 if head and fits else start


def _is_table(lines: Sequence[Line], columns: Limits) -> bool:
    """Whether lines with common gaps are a table, and not a list, a table of contents or prose in columns."""
    filled = [_filled(line, columns) for line in lines]
    several = sum(len(one) >= 2 for one in filled)
    if (
        len(columns) < 2
        or several < (2 if len(columns) >= MANY_COLUMNS else FEWEST_ROWS)
        or several < 0.25 * len(lines)
    ):
        return False
    firsts = _texts(lines, columns, 0)
    lasts = _texts(lines, columns, len(columns) - 1)
    marks = sum(bool(_LIST_MARK.fullmatch(text) or _SECTION.fullmatch(text)) for text in firsts)
    numbers = sum(bool(_PAGE_NUMBER.fullmatch(text.lower())) for text in lasts)
    leaders = sum("..." in line.text or " . ." in line.text for line in lines)
    if marks >= 0.6 * max(1, len(firsts)) or leaders >= 0.3 * len(lines):
        return False
    if numbers >= 0.8 * max(1, len(lasts)) and len(columns) == 2 and median(map(len, firsts or [""])) > 12:
        return False
    whole = columns[-1][1] - columns[0][0]
    if len(columns) == 2:
        short = sum(len(text) <= 30 for text in firsts)
        if columns[0][1] - columns[0][0] > WIDEST_FIRST * whole or short < 0.7 * len(firsts):
            return False
    return not _is_prose(lines, columns, filled)


def _is_prose(lines: Sequence[Line], columns: Limits, filled: list[list[int]]) -> bool:
    """Columns of prose are full in every line; cells end raggedly, and the first column is short or has holes."""
    share = [sum(k in one for one in filled) / len(filled) for k in range(len(columns))]
    wide = [k for k, (x0, x1) in enumerate(columns) if x1 - x0 > 0.25 * (columns[-1][1] - columns[0][0])]
    if len(lines) < 8 or len(wide) < 2 or min(share[k] for k in wide) < 0.9:
        return False
    fills = [
        (span.x1 - span.x0) / max(columns[k][1] - columns[k][0], 1.0)
        for line in lines
        for span in line.spans
        for k in wide
        if columns[k][0] <= (span.x0 + span.x1) / 2 <= columns[k][1]
    ]
    return mean(fills) > 0.75


def _texts(lines: Sequence[Line], columns: Limits, k: int) -> list[str]:
    x0, x1 = columns[k]
    found = (" ".join(s.text for s in line.spans if x0 <= (s.x0 + s.x1) / 2 <= x1).strip() for line in lines)
    return [text for text in found if text]


def split_rows(spans: Sequence[Span], columns: Limits) -> list[tuple[str, ...]]:
    """Rows of cell texts: bands with free space between them, else from one entry of the first column to the next."""
    held = [sorted((s for s in spans if _column(s, columns) == k), key=lambda s: s.top) for k in range(len(columns))]
    bands = _bands(spans, held[0]) or _starts(held)
    rows = []
    for top, bottom in bands:
        row = tuple(cell_text(s for s in column if top <= (s.top + s.bottom) / 2 < bottom) for column in held)
        if any(row):
            rows.append(row)
    return rows


def _column(span: Span, columns: Limits) -> int:
    middle = (span.x0 + span.x1) / 2
    return min(range(len(columns)), key=lambda k: max(columns[k][0] - middle, middle - columns[k][1], 0.0))


def _bands(spans: Sequence[Span], first: Sequence[Span]) -> list[tuple[float, float]]:
    """Bands parted by free space such that each has one entry of the first column; empty if no width of gap does it."""
    edges: list[list[float]] = []
    for span in sorted(spans, key=lambda s: s.top):
        if edges and span.top < edges[-1][1] - 0.5 * span.height:
            edges[-1][1] = max(edges[-1][1], span.bottom)
        else:
            edges.append([span.top, span.bottom])
    gaps = sorted({round(below[0] - above[1], 1) for above, below in pairwise(edges)})
    for least in gaps[:MOST_GAPS]:
        bands = [list(edges[0])]
        for edge in edges[1:]:
            if edge[0] - bands[-1][1] >= least - 0.05:
                bands.append(list(edge))
            else:
                bands[-1][1] = max(bands[-1][1], edge[1])
        inside = [[s for s in first if top <= (s.top + s.bottom) / 2 < bottom] for top, bottom in bands]
        entries = [_entries(column, least) for column in inside]
        lone = sum(len(column) == 1 for column in inside)
        # the first band, or the one below a header, may go on from the page before; most entries take one line
        if max(entries[:2]) <= 1 and all(count == 1 for count in entries[2:]) and lone >= 0.7 * len(bands) - 1:
            return [(top, bottom) for top, bottom in bands]
    return []


def _entries(column: Sequence[Span], row_gap: float) -> int:
    """Number of entries in a stretch of the first column: lines clearly nearer than rows are one."""
    gaps = (below.top - above.bottom for above, below in pairwise(column))
    return sum(gap > row_gap - 0.2 * text_height(column) for gap in gaps) + bool(column)


def _starts(held: Sequence[Sequence[Span]]) -> list[tuple[float, float]]:
    """Bands from one line that has text in the first column and another one to the next such line."""
    rest = [span for column in held[1:] for span in column]
    tops: list[float] = []
    last = None
    for span in held[0]:
        beside = any(min(span.bottom, s.bottom) - max(span.top, s.top) > 0.5 * span.height for s in rest)
        if beside and not (last and _goes_on(last.text, span.text)):
            tops.append(span.top - 0.25 * span.height)
        last = span
    highest = min((s.top for column in held for s in column), default=0.0)
    lowest = max((s.bottom for column in held for s in column), default=0.0)
    limits = [highest - 1.0, *(top for top in tops if top > highest), lowest + 1.0]
    return list(pairwise(limits))


def _goes_on(text: str, below: str) -> bool:
    """Whether `below` is the rest of a range of codes that did not fit on its line, such as `4500-` and `4509`."""
    first, *rest = _RANGE.split(text, maxsplit=1)
    if not rest or _RANGE.search(below):
        return False
    return not rest[0] or (len(rest[0]) < len(first) and _form(below) != _form(first))


def _form(code: str) -> str:
    return re.sub(r"[A-Za-z]", "A", re.sub(r"[0-9]", "9", code))
