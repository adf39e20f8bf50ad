"""Tables with drawn lines on a PDF page: full grids, and tables with level lines only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from retrieval.ingest.readers.pdf_aligned import HEADING_SIZE, LEAST_GAP, split_rows
from retrieval.ingest.readers.pdf_lines import cell_text, intervals, lines_of, text_height, text_size
from retrieval.ingest.readers.pdf_page import Page, Rule, Span

NEAR_PT = 2.5  # lines this near are one, or meet
FEWEST_STACKED = 4
MOST_CELLS = 20_000
MOST_LINES = 400  # of one direction in one grid; more is hatching
Texts = list[tuple[str, ...]]


@dataclass(frozen=True)
class Table:
    """Rows of cell texts, and where they stand on the page."""

    rows: tuple[tuple[str, ...], ...]
    x0: float
    top: float
    x1: float
    bottom: float


def ruled_tables(page: Page, spans: Sequence[Span]) -> tuple[list[Table], list[Span]]:
    """Tables that lines make, and the spans that stand in none of them."""
    horizontal, vertical = _merged(page.horizontal), _merged(page.vertical)
    left = list(spans)
    tables: list[Table] = []
    used: set[Rule] = set()
    if max(len(horizontal), len(vertical)) <= MOST_LINES:
        for level, upright in _grids(horizontal, vertical):
            table, left = _grid_table(level, upright, left)
            if table:
                tables.append(table)
                used.update(level)
        # sides of the boxes that shade a header or every other row are no columns
        for group in _level_groups([rule for rule in horizontal if rule not in used]):
            found, left = _level_tables(group, left)
            tables += found
    return tables, left


def _merged(rules: Sequence[Rule]) -> list[Rule]:
    """Lines of one direction, pieces that touch or overlap made one."""
    found: list[Rule] = []
    lanes: list[list[Rule]] = []
    for rule in sorted(rules):
        if lanes and rule.at - lanes[-1][0].at <= NEAR_PT:
            lanes[-1].append(rule)
        else:
            lanes.append([rule])
    for lane in lanes:
        at = median(rule.at for rule in lane)
        for rule in sorted(lane, key=lambda one: one.start):
            if found and found[-1].at == at and rule.start - found[-1].end <= NEAR_PT:
                found[-1] = Rule(at, found[-1].start, max(found[-1].end, rule.end))
            else:
                found.append(Rule(at, rule.start, rule.end))
    return found


def _grids(horizontal: list[Rule], vertical: list[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Lines that meet, directly or through others: one pair of lists per grid."""
    group = list(range(len(horizontal) + len(vertical)))
    for i, level in enumerate(horizontal):
        for j, upright in enumerate(vertical, start=len(horizontal)):
            meets = upright.start - NEAR_PT <= level.at <= upright.end + NEAR_PT
            if meets and level.start - NEAR_PT <= upright.at <= level.end + NEAR_PT:
                group[_root(group, j)] = _root(group, i)
    found: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for i, rule in enumerate((*horizontal, *vertical)):
        found.setdefault(_root(group, i), ([], []))[i >= len(horizontal)].append(rule)
    return [pair for pair in found.values() if pair[0] and pair[1]]


def _positions(own: list[Rule], across: list[Rule]) -> list[float]:
    """Where a grid is cut in one direction; open sides end where the lines across end."""
    found: list[float] = []
    for at in sorted(rule.at for rule in own):
        if not found or at - found[-1] > NEAR_PT:
            found.append(at)
    first, last = min(rule.start for rule in across), max(rule.end for rule in across)
    if first < found[0] - 2 * NEAR_PT:
        found.insert(0, first)
    if last > found[-1] + 2 * NEAR_PT:
        found.append(last)
    return found


def _grid_table(horizontal: list[Rule], vertical: list[Rule], spans: list[Span]) -> tuple[Table | None, list[Span]]:
    """The table of one grid and the spans outside; None where the lines make fewer than two columns or rows."""
    xs, ys = _positions(vertical, horizontal), _positions(horizontal, vertical)
    columns, rows = len(xs) - 1, len(ys) - 1
    if columns < 2 or rows < 1 or columns * rows > MOST_CELLS:
        return None, spans
    inside = [s for s in spans if xs[0] < (s.x0 + s.x1) / 2 < xs[-1] and ys[0] < (s.top + s.bottom) / 2 < ys[-1]]
    if not inside:
        return None, spans
    walls = [
        [_covered(vertical, xs[j], (ys[i] + ys[i + 1]) / 2) for j in range(1, columns)] for i in range(rows)
    ]  # between a cell and the one right of it
    floors = [
        [_covered(horizontal, ys[i], (xs[j] + xs[j + 1]) / 2) for j in range(columns)] for i in range(1, rows)
    ]  # between a cell and the one below
    owner = _merged_cells(walls, floors, rows, columns)
    held: dict[int, list[Span]] = {}
    for span in inside:
        i = bisect_right(ys, (span.top + span.bottom) / 2) - 1
        rest: Span | None = span
        for j in range(columns):
            if rest and (j == columns - 1 or walls[i][j]):
                part, rest = rest.cut(xs[j + 1]) if j < columns - 1 else (rest, None)
                if part:
                    held.setdefault(owner[i][j], []).append(part)
    texts = {cell: cell_text(parts) for cell, parts in held.items()}
    body: Texts = [tuple(texts.get(owner[i][j], "") for j in range(columns)) for i in range(rows)]
    limits = list(pairwise(xs))
    bands = [[s for s in inside if ys[i] < (s.top + s.bottom) / 2 < ys[i + 1]] for i in range(rows)]
    if rows <= 2:
        # columns are ruled, rows are not: they start where the first column does
        body = [row for i in range(rows) for row in _band(bands[i], limits, body[i], header=rows == 2 and i == 0)]
    else:
        body = [row for i in range(rows) for row in _stack(bands[i], limits, body[i])]
    body = _tight([row for row in body if any(row)])
    if len(body) < 2 or len(body[0]) < 2:
        return None, spans
    return Table(tuple(body), xs[0], ys[0], xs[-1], ys[-1]), [span for span in spans if span not in inside]


def _band(spans: list[Span], limits: list[tuple[float, float]], whole: tuple[str, ...], *, header: bool) -> Texts:
    """Rows of a band of a table that has one or two: they start where the first column has an entry."""
    rows = split_rows(spans, limits)
    first = [span for span in spans if (span.x0 + span.x1) / 2 < limits[0][1]]
    if rows and first and not rows[0][0]:
        # one code half way down its cell, or the rest of a row of the page before and a row below it?
        middle = (min(span.top for span in first) + max(span.bottom for span in first)) / 2
        whole_middle = (min(span.top for span in spans) + max(span.bottom for span in spans)) / 2
        if abs(middle - whole_middle) <= first[0].height:
            return [whole]
    return rows if len(rows) >= (3 if header else 2) else [whole]


def _stack(spans: list[Span], limits: list[tuple[float, float]], whole: tuple[str, ...]) -> Texts:
    """Rows of a band whose cells hold lists of one length, four lines or more, side by side."""
    counts = {cell.count("\n") + 1 for cell in whole}
    if len(counts) > 1 or min(counts) < FEWEST_STACKED or len(set(whole)) == 1:
        return [whole]
    rows = split_rows(spans, limits)
    return rows if len(rows) in counts else [whole]


def _covered(rules: list[Rule], at: float, middle: float) -> bool:
    return any(abs(rule.at - at) <= NEAR_PT and rule.start <= middle <= rule.end for rule in rules)


def _merged_cells(walls: list[list[bool]], floors: list[list[bool]], rows: int, columns: int) -> list[list[int]]:
    """For each cell of the grid the number of the merged cell that it belongs to."""
    group = list(range(rows * columns))
    for i in range(rows):
        for j in range(columns):
            cell = i * columns + j
            if j + 1 < columns and not walls[i][j]:
                group[_root(group, cell + 1)] = _root(group, cell)
            if i + 1 < rows and not floors[i][j]:
                group[_root(group, cell + columns)] = _root(group, cell)
    return [[_root(group, i * columns + j) for j in range(columns)] for i in range(rows)]


def _root(group: list[int], i: int) -> int:
    """The number that stands for the group of `i`; `group` points each member towards it."""
    while group[i] != i:
        group[i] = group[group[i]]
        i = group[i]
    return i


def _tight(rows: Texts) -> Texts:
    """Without the columns that are empty throughout, or the same as the one before throughout."""
    if not rows:
        return rows
    columns = list(zip(*rows, strict=True))
    kept = [c for k, c in enumerate(columns) if any(c) and (k == 0 or c != columns[k - 1])]
    return list(zip(*kept, strict=True))


def _level_groups(rules: list[Rule]) -> list[list[Rule]]:
    """Three or more level lines of the same width below each other."""
    groups: list[list[Rule]] = []
    for rule in rules:
        for group in groups:
            if abs(group[0].start - rule.start) <= 2 * NEAR_PT and abs(group[0].end - rule.end) <= 2 * NEAR_PT:
                group.append(rule)
                break
        else:
            groups.append([rule])
    return [group for group in groups if len(group) >= 3]


def _level_tables(rules: list[Rule], spans: list[Span]) -> tuple[list[Table], list[Span]]:
    """Tables between level lines of one width: neighbouring bands whose texts leave the same gaps free."""
    x0, x1 = rules[0].start - NEAR_PT, rules[0].end + NEAR_PT
    bands: list[tuple[float, float, list[Span]]] = []
    for above, below in pairwise(rules):
        held = [s for s in spans if above.at < (s.top + s.bottom) / 2 < below.at and x0 <= (s.x0 + s.x1) / 2 <= x1]
        if held:
            bands.append((above.at, below.at, held))
    tables: list[Table] = []
    start = 0
    while start < len(bands):
        run = list(bands[start][2])
        gap = LEAST_GAP * text_height(run)
        columns = intervals(run, gap)
        end = start + 1
        while len(columns) >= 2 and end < len(bands):
            wider = intervals([*run, *bands[end][2]], gap)
            if len(bands[end][2]) == 1 and bands[end][2][0].size > HEADING_SIZE * text_size(run):
                break
            if len(wider) < max(2, len(columns) - (end - start == 1)):
                break
            run, columns, end = [*run, *bands[end][2]], wider, end + 1
        first = start - 1 if start and _goes_on(bands[start - 1][2], columns) else start
        table = None
        if end - start >= 2:
            run_bands = bands[first:end]
            outside = [s for s in spans if x0 <= (s.x0 + s.x1) / 2 <= x1]
            if first == 0 and (head := _beyond(outside, columns, run_bands[0][0], above=True)):
                run_bands.insert(0, (min(s.top for s in head), run_bands[0][0], head))
            if end == len(bands) and (tail := _beyond(outside, columns, run_bands[-1][1], above=False)):
                run_bands.append((run_bands[-1][1], max(s.bottom for s in tail), tail))
            table = _level_table(run_bands, columns)
        if table:
            tables.append(table)
            inside = {id(span) for _, _, held in run_bands for span in held}
            spans = [span for span in spans if id(span) not in inside]
        start = end if table else start + 1
    return tables, spans


def _goes_on(spans: list[Span], columns: list[tuple[float, float]]) -> bool:
    """Whether a band holds the rest of cells from the page before: text in later columns only."""
    return all(any(abs(span.x0 - x0) <= 3.0 and span.x1 <= x1 + 3.0 for x0, x1 in columns[1:]) for span in spans)


def _beyond(spans: list[Span], columns: list[tuple[float, float]], limit: float, *, above: bool) -> list[Span]:
    """A row outside the outermost line, such as a header without a line above: lines beside it that fit the columns."""
    lines = [line for line in lines_of(spans) if (line.bottom <= limit + 1 if above else line.top >= limit - 1)]
    found: list[Span] = []
    edge = limit
    for line in reversed(lines) if above else lines:
        fits = all(any(x0 - 3.0 <= span.x0 and span.x1 <= x1 + 3.0 for x0, x1 in columns) for span in line.spans)
        room = edge - line.bottom if above else line.top - edge
        if not fits or room > line.height:
            break
        found += line.spans
        edge = line.top if above else line.bottom
    filled = {k for span in found for k, (x0, x1) in enumerate(columns) if x0 - 3.0 <= span.x0 and span.x1 <= x1 + 3.0}
    return found if 0 in filled and len(filled) >= 2 else []


def _level_table(bands: list[tuple[float, float, list[Span]]], columns: list[tuple[float, float]]) -> Table | None:
    rows: Texts = []
    for k, (_, _, held) in enumerate(bands):
        whole = tuple(cell_text(s for s in held if x0 - 0.1 <= (s.x0 + s.x1) / 2 <= x1 + 0.1) for x0, x1 in columns)
        rows += _band(held, columns, whole, header=k == 0) if len(bands) <= 2 else [whole]
    if sum(sum(map(bool, row)) >= 2 for row in rows) < 2:
        return None
    return Table(tuple(rows), columns[0][0], bands[0][0], columns[-1][1], bands[-1][1])
