"""Reading order of a PDF page: tables, columns of prose, paragraphs; and what repeats at the edges of the pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from retrieval.ingest.readers.pdf_aligned import aligned_tables
from retrieval.ingest.readers.pdf_lines import Line, cut_at_edges, lines_of, text_size
from retrieval.ingest.readers.pdf_page import Page, Span
from retrieval.ingest.readers.pdf_ruled import Table, ruled_tables

EDGE_SHARE = 0.12  # of the page's height: where running headers and footers stand
EDGE_LINES = 4
TABLE_LOOK = 15  # lines below a table's header in which two of its columns start again
SAME_HEIGHT_PT = 4.0
NARROWEST_COLUMN = 0.25  # share of the text's width that a column of prose takes at least
FEWEST_COLUMN_LINES = 5
PARAGRAPH_GAP = 0.5  # heights of a line, beyond the usual distance of lines
OTHER_SIZE = 1.12
_PAGE_NUMBER = re.compile(
    r"[-–—\s]*(?:(?:page|seite|p\.|第)?\s*[0-9ivxlc]{1,4}(?:\s*(?:/|of|von|页\s*共|页，共)\s*[0-9]{1,4})?\s*页?)[-–—\s]*",
    re.I,
)
_COUNTED = re.compile(r"[0-9]+|\b[ivxlc]+\b")  # what differs from page to page in a running line
EdgeLines = tuple[list[tuple[str, float, Line]], list[tuple[str, float, Line]]]
"""Lines at the top and at the bottom: (text with its numbers left open, top in points, the line)."""


@dataclass
class Text:
    """Lines that stand together."""

    lines: list[Line] = field(default_factory=list)

    @property
    def top(self) -> float:
        """Top of the first line in points."""
        return self.lines[0].top


def edge_lines(page: Page) -> EdgeLines:
    """Lines near the top and the bottom, the outermost first; none within a drawn grid, and no header of a table."""
    lines = lines_of(page.spans)
    top, bottom = EDGE_SHARE * page.height, (1 - EDGE_SHARE) * page.height
    heads = [line for line in lines[:EDGE_LINES] if line.bottom <= top and not _in_grid(page, line)]
    feet = [line for line in lines[-EDGE_LINES:] if line.top >= bottom and not _in_grid(page, line)]
    for k, line in enumerate(heads):
        if _heads_table(line, lines[k + 1 : k + 1 + TABLE_LOOK]):
            heads = heads[:k]
            break
    return (
        [(_COUNTED.sub("#", line.text), line.top, line) for line in heads],
        [(_COUNTED.sub("#", line.text), line.top, line) for line in reversed(feet)],
    )


def _in_grid(page: Page, line: Line) -> bool:
    """Whether three upright lines or more pass the line: a page may have a frame, a table has columns."""
    middle = (line.top + line.bottom) / 2
    return len({round(rule.at) for rule in page.vertical if rule.start <= middle <= rule.end}) >= 3


def _heads_table(line: Line, below: Sequence[Line]) -> bool:
    """Whether the columns of `line` go on below it: the header of a table, which must stay."""
    starts = [span.x0 for span in line.spans]
    return len(starts) >= 2 and any(
        sum(any(abs(span.x0 - x) < 2 for x in starts) for span in other.spans) >= 2 for other in below
    )


def running(edges: EdgeLines, others: Sequence[EdgeLines]) -> list[Line]:
    """Those of a page's edge lines that pages near it have too, from the outermost inwards until one is its own.

    Digits may differ. A lone page number counts where other pages have one at that height.
    """
    found = []
    for side, lines in enumerate(edges):
        for text, top, line in lines:
            same = sum(any(text == t and abs(top - y) <= SAME_HEIGHT_PT for t, y, _ in other[side]) for other in others)
            number = len(line.spans) == 1 and bool(_PAGE_NUMBER.fullmatch(line.text))
            if same < max(1 if number else 2, 0.25 * len(others)) and not (number and not others):
                break
            found.append(line)
    return found


def arrange(page: Page, spans: Sequence[Span]) -> list[Text | Table]:
    """Tables and texts of a page in the order in which a person reads them."""
    spans = cut_at_edges(spans)
    tables: list[Table] = []
    if len(page.horizontal) + len(page.vertical) >= 3:
        tables, left = ruled_tables(page, spans)
    else:
        left = list(spans)
    lines = lines_of(left)
    parts: list[tuple[float, list[Text | Table]]] = [(table.top, [table]) for table in tables]
    # a drawn table parts the text above it from the text below
    limits = [float("-inf"), *sorted((table.top + table.bottom) / 2 for table in tables), float("inf")]
    for k in range(len(limits) - 1):
        between = [line for line in lines if limits[k] <= line.top < limits[k + 1]]
        if between:
            parts.append((between[0].top, _stacked(between, page_start=k == 0)))
    return [item for _, items in sorted(parts, key=lambda part: part[0]) for item in items]


def _stacked(lines: Sequence[Line], *, page_start: bool) -> list[Text | Table]:
    """Tables without lines, and the text around them, from the top down."""
    found: list[Text | Table] = []
    at = 0
    for table in aligned_tables(lines, page_start=page_start):
        found += _prose(lines[at : table.first])
        inside = lines[table.first : table.last]
        x0, x1 = min(line.x0 for line in inside), max(line.x1 for line in inside)
        found.append(Table(table.rows, x0, inside[0].top, x1, inside[-1].bottom))
        at = table.last
    return [*found, *_prose(lines[at:])]


def _prose(lines: Sequence[Line]) -> list[Text | Table]:
    """Paragraphs; where they stand in two columns, the left one first."""
    found: list[Text | Table] = []
    for first, last, gutter in _regions(lines):
        region = lines[first:last]
        if gutter is None:
            found += _paragraphs(region)
            continue
        for right in (False, True):
            side = lines_of(s for line in region for s in line.spans if (s.x0 > gutter) == right)
            found += _stacked(side, page_start=False)
    return found


def _regions(lines: Sequence[Line]) -> list[tuple[int, int, float | None]]:
    """Stretches of lines: (first, last excluded, x of the gutter between two columns of prose or None)."""
    if not lines:
        return []
    gutter = _gutter(lines)
    if gutter is None:
        return [(0, len(lines), None)]
    found: list[tuple[int, int, float | None]] = []
    start = 0
    while start < len(lines):
        free = _free(lines[start], gutter)
        end = start
        while end < len(lines) and _free(lines[end], gutter) == free:
            end += 1
        both = sum(_both(line, gutter) for line in lines[start:end])
        kind = gutter if free and both >= FEWEST_COLUMN_LINES else None
        if kind is not None:
            while not _both(lines[start], gutter) and lines[start].x0 < gutter:
                found.append((start, start + 1, None))  # a heading over the columns
                start += 1
        if found and kind is None and found[-1][2] is None:
            found[-1] = (found[-1][0], end, None)
        else:
            found.append((start, end, kind))
        start = end
    return found


def _free(line: Line, x: float) -> bool:
    return not any(span.x0 < x < span.x1 for span in line.spans)


def _both(line: Line, x: float) -> bool:
    return _free(line, x) and line.x0 < x < line.x1


def _gutter(lines: Sequence[Line]) -> float | None:
    """Middle of the gap between two columns of prose; None where the lines have one column, or are a table."""
    x0, x1 = min(line.x0 for line in lines), max(line.x1 for line in lines)
    width = max(x1 - x0, 1.0)
    gaps = [
        (left.x1 + right.x0) / 2
        for line in lines
        for left, right in pairwise(line.spans)
        if NARROWEST_COLUMN < ((left.x1 + right.x0) / 2 - x0) / width < 1 - NARROWEST_COLUMN
    ]
    if len(gaps) < FEWEST_COLUMN_LINES:
        return None
    places = Counter(round(gap / 6) for gap in gaps)
    best: tuple[int, float] = (0, 0.0)
    for place, _ in places.most_common(5):
        near = sorted(gap for gap in gaps if abs(gap / 6 - place) <= 1.5)
        x = near[len(near) // 2]
        both = [line for line in lines if _both(line, x)]
        # in a line of two columns of prose each side is one run of words
        plain = [line for line in both if _is_full(line, x, x0, x1)]
        if len(plain) >= 0.6 * len(both):
            best = max(best, (len(both), x))
    return best[1] if best[0] >= FEWEST_COLUMN_LINES else None


def _is_full(line: Line, x: float, x0: float, x1: float) -> bool:
    """Whether words run on both sides of `x` for most of the width."""
    left = [span for span in line.spans if span.x1 <= x]
    right = [span for span in line.spans if span.x0 >= x]
    return all(sum(s.x1 - s.x0 for s in side) > 0.55 * width for side, width in ((left, x - x0), (right, x1 - x)))


def _paragraphs(lines: Sequence[Line]) -> list[Text | Table]:
    """Lines that stand together: apart from others by a wider gap or another size."""
    found: list[Text | Table] = []
    text: Text | None = None
    usual = _usual_gap(lines)
    for line in lines:
        last = text.lines[-1] if text else None
        if text is None or last is None or _apart(last, line, usual):
            text = Text()
            found.append(text)
        text.lines.append(line)
    return found


def _usual_gap(lines: Sequence[Line]) -> float:
    """Lower quartile of the gaps between lines, in points."""
    gaps = sorted(below.top - above.bottom for above, below in pairwise(lines))
    return gaps[len(gaps) // 4] if gaps else 0.0


def _apart(above: Line, below: Line, usual: float) -> bool:
    sizes = sorted((text_size(above.spans), text_size(below.spans)))
    gap = below.top - above.bottom
    return gap > usual + PARAGRAPH_GAP * min(above.height, below.height) or sizes[1] > OTHER_SIZE * sizes[0]
