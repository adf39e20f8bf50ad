"""Spans to lines, lines to texts: what the readers of tables and of paragraphs on a PDF page share."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from retrieval.ingest.readers.pdf_page import HANGING, Span

# Gaps in heights of a character: a wider one inside a line is shown as a tab, for a list of codes and messages.
TAB_GAP = 2.0
EDGE_SPANS = 5  # that start at one x: a column does
EDGE_NEAR_PT = 0.4
_BROKEN_WORD = re.compile(r"(?<=[a-z]{2})-\n(?=[a-z]{2})")
_LEADERS = re.compile(r"(?:\s?[.…·]){5,}")


@dataclass(frozen=True)
class Line:
    """Spans side by side, left to right."""

    spans: tuple[Span, ...]

    @property
    def x0(self) -> float:
        """Left end in points."""
        return self.spans[0].x0

    @property
    def x1(self) -> float:
        """Right end in points."""
        return max(span.x1 for span in self.spans)

    @property
    def top(self) -> float:
        """Top in points from the top of the page."""
        return min(span.top for span in self.spans)

    @property
    def bottom(self) -> float:
        """Bottom in points from the top of the page."""
        return max(span.bottom for span in self.spans)

    @property
    def height(self) -> float:
        """Height of the tallest characters, in points."""
        return max(span.height for span in self.spans)

    @property
    def text(self) -> str:
        """The spans in order: a tab for a wide gap, else a space; dot leaders are cut short."""
        parts = [self.spans[0].text]
        for left, right in pairwise(self.spans):
            parts.append("\t" if right.x0 - left.x1 > TAB_GAP * right.height else " ")
            parts.append(right.text)
        return _LEADERS.sub(" ...", "".join(parts))


def lines_of(spans: Iterable[Span]) -> list[Line]:
    """Lines from the top down: spans that share at least half of their height stand on one line."""
    rows: list[list[Span]] = []
    for span in sorted(spans, key=lambda one: (one.top + one.bottom, one.x0)):
        last = rows[-1][0] if rows else None
        shared = min(span.bottom, last.bottom) - max(span.top, last.top) if last else 0.0
        if last and shared >= 0.5 * min(span.height, last.height):
            rows[-1].append(span)
        else:
            rows.append([span])
    return [Line(tuple(sorted(row, key=lambda one: one.x0))) for row in rows]


def cut_at_edges(spans: Sequence[Span]) -> list[Span]:
    """Spans cut where the columns of a table come too near each other to show as gaps.

    That is at a space, or free room, after which a character starts just where spans of other lines start.
    """
    starts: dict[float, int] = {}
    for span in spans:
        starts[round(span.x0)] = starts.get(round(span.x0), 0) + 1
    edges = [x for x, count in starts.items() if count + max(starts.get(x - 1, 0), starts.get(x + 1, 0)) >= EDGE_SPANS]
    exact = sorted({round(span.x0, 1) for span in spans if round(span.x0) in edges})
    found: list[Span] = []
    for whole in spans:
        span = whole
        for x in exact:
            if span.x0 + 2.0 < x < span.x1:
                at = bisect_left(span.lefts, x - EDGE_NEAR_PT)
                if 0 < at < len(span.marks) and span.lefts[at] <= x + EDGE_NEAR_PT and _parted(span, at):
                    left, right = span.cut(span.lefts[at])
                    if left and right:
                        found.append(left._replace(x1=left.lefts[-1] + _width(left, -1)))
                        span = right
        found.append(span)
    return found


def _parted(span: Span, at: int) -> bool:
    """Whether there is a space, or free room, before the character `at`."""
    room = span.lefts[at] - span.lefts[at - 1] - _width(span, at - 1)
    return span.marks[at].startswith(" ") or room > 0.1 * span.height


def _width(span: Span, at: int) -> float:
    """Width of a character's ink: what hangs is narrow and stands at the left of its box."""
    return (0.6 if span.marks[at] in HANGING else 2.0) * (span.middles[at] - span.lefts[at])


def joined(lines: Iterable[str]) -> str:
    """Lines as one text, breaks kept; an English word that was broken at the end of a line is made whole."""
    return _BROKEN_WORD.sub("", "\n".join(line for line in lines if line))


def cell_text(spans: Iterable[Span]) -> str:
    """Text of a table cell, with its line breaks."""
    return joined(line.text.replace("\t", " ") for line in lines_of(spans))


def intervals(spans: Iterable[Span], least_gap: float) -> list[tuple[float, float]]:
    """Stretches in x that the spans cover, left to right; gaps below `least_gap` points are closed."""
    found: list[tuple[float, float]] = []
    for x0, x1 in sorted((span.x0, span.x1) for span in spans):
        if found and x0 - found[-1][1] < least_gap:
            found[-1] = (found[-1][0], max(found[-1][1], x1))
        else:
            found.append((x0, x1))
    return found


def text_height(spans: Sequence[Span]) -> float:
    """Median height of the characters in points; 10 where there are none."""
    return median(span.height for span in spans) if spans else 10.0


def text_size(spans: Sequence[Span]) -> float:
    """Size of the font of most characters, in points."""
    return max(spans, key=lambda span: len(span.marks)).size
