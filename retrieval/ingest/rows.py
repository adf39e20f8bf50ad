"""Rows of alarms and parameters out of tables and texts; everything else goes past them as it came.

Tables are judged by `retrieval.ingest.headers`, texts by `retrieval.ingest.layouts`. Rows that go on over a page break
are put together. What stands in a table of alarms and is no alarm is handed on as a table of its own, so that nothing
is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from retrieval.codes import fold
from retrieval.ingest.document import Block, Place, Row
from retrieval.ingest.headers import (
    Columns,
    Role,
    Span,
    codes_in,
    columns_of,
    head_of,
    is_code,
    is_header,
    language_of,
)
from retrieval.ingest.layouts import Listed, Trail, first_number, items_of, joined, parts_of, text_layouts, width_of
from retrieval.records import Language, Severity

_FOOTER = 100  # characters of a running head, a page number, "continued"
_MOST_FOOTERS = 4
_NOTHING = frozenset({"", "-", "--", "---", "/", "\\", "无", "none", "n/a", "na", "没有", "*"})
_DITTO = frozenset({"同上", "同前", "ditto", "same as above", "see above", "〃", "″", '"', "do."})
_SEVERITIES: tuple[tuple[Severity, str], ...] = (
    ("message", r"\b(?:messages?|info(?:rmation)?|notes?|notice|hint)\b|提示|信息|消息"),
    ("warning", r"\b(?:warn(?:ing)?s?|caution|minor|low)\b|警告|预警|注意|轻"),
    ("fault", r"\b(?:faults?|alarms?|errors?|stop|major|severe|critical|fatal|high)\b|报警|故障|错误|严重|重"),
)
_SEVERITY = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _SEVERITIES)
_ENDS = tuple("。.!?！？")
_STATED: tuple[Role, ...] = ("cause", "remedy", "check")
_BESIDE: tuple[Role, ...] = ("axis", "note", "other", "index")


@dataclass(frozen=True)
class AlarmRow:
    """An alarm or a parameter as a document states it.

    `code` is as written, `first` the code alone and `last` the end of a range, else empty. `setting` is unit, range and
    default of a parameter. `reset` and `reaction` are what the document says of clearing the alarm and of what the
    machine does. `heading_other` is the heading in the other language where the table has both. `paired` is True where
    the n-th action answers the n-th cause.
    """

    kind: Literal["alarm", "parameter"]
    code: str
    first: str
    last: str = ""
    heading: str = ""
    meaning: str = ""
    causes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    severity: Severity | None = None
    place: Place = field(default_factory=Place)
    language: Language = "en"
    confidence: float = 1.0
    heading_other: str = ""
    reset: str = ""
    reaction: str = ""
    setting: str = ""
    paired: bool = False


def split(
    blocks: Iterable[Block], vendor: str | None, family: str | None, dropped: list[str] | None = None
) -> Iterator[AlarmRow | Block]:
    """Take the rows of alarms and parameters out of a document, lazily; all other blocks pass unchanged and in order.

    Args:
        blocks: in reading order.
        vendor: whose controller the document speaks of, where that is known: it helps to tell a list without a header.
        family: its family; not needed to find rows.
        dropped: gets a line for each row with a code and no heading, which is handed on as a table of its own.
    """
    del family  # rows are found alike for all families of a vendor
    walk = _Walk(vendor, dropped if dropped is not None else [])
    for item in text_layouts(blocks, vendor):
        yield from walk.take(item)
    yield from walk.end()


@dataclass
class _Draft:
    """A row while it is read: per column the texts of the rows that make it up."""

    columns: Columns
    spans: tuple[Span, ...]
    raw: str
    place: Place
    confidence: float
    source: Row
    pieces: dict[int, list[list[str]]] = field(default_factory=dict)
    known: dict[int, set[str]] = field(default_factory=dict)
    widths: list[float] = field(default_factory=list)

    def add(self, cells: Sequence[str], *, go_on: bool) -> None:
        """Add the cells of one row: to the text before where a row goes on, else as statements of their own."""
        for k, cell in enumerate(cells):
            if (k == self.columns.code and not self.columns.combined) or not (text := _text(cell)):
                continue
            pieces = self.pieces.setdefault(k, [])
            if go_on and pieces:
                pieces[-1].append(text)
            elif text not in self.known.setdefault(k, set()):
                pieces.append([text])
            self.known.setdefault(k, set()).add(text)

    def texts(self) -> dict[int, list[str]]:
        """By column, the texts of the cells that make up the row."""
        return {k: ["\n".join(piece) for piece in pieces] for k, pieces in sorted(self.pieces.items())}


class _Walk:
    """One pass over a document; holds back at most one row and the footers behind it."""

    def __init__(self, vendor: str | None, dropped: list[str]) -> None:
        self.vendor = vendor
        self.dropped = dropped
        self.trail = Trail()
        self.columns: Columns | None = None
        self.page: int | None = None
        self.draft: _Draft | None = None
        self.footers: list[Block] = []
        self.seen_headings: set[str] = set()

    def take(self, item: Block | Listed) -> Iterator[AlarmRow | Block]:
        """Go over one block; yields what is settled."""
        if isinstance(item, Listed):
            yield from self._settle()
            yield from _of_listed(item)
        elif item.kind == "table":
            yield from self._table(item)
        elif self.draft is not None and (rest := self._rest_in(item, self.draft)):
            # the end of a row in one column alone: readers see no table in it
            yield from self._take_rest(item, rest, self.draft)
        elif self.columns is not None and self._is_footer(item):
            self.footers.append(item)
        else:
            yield from self._settle()
            if item.kind == "heading":
                self.seen_headings.add(item.text)
            self.trail.follow(item)
            yield item

    def end(self) -> Iterator[AlarmRow | Block]:
        """What is still held when the blocks are over."""
        yield from self._settle()

    def _rest_in(self, block: Block, draft: _Draft) -> str:
        """What stands below the header of the table at the top of the next page, where that is text."""
        if block.kind != "text" or self.page is None or block.place.page != self.page + 1:
            return ""
        names = [name for name in draft.columns.names if name]
        first, _, below = block.text.partition("\n")
        if _is_names(first, names):
            return below
        return block.text if self.footers and _is_names(self.footers[-1].text, names) else ""

    def _take_rest(self, block: Block, rest: str, draft: _Draft) -> Iterator[AlarmRow | Block]:
        self.page = block.place.page
        column = _unfinished(draft, rest)
        if column is not None:
            draft.pieces[column][-1].append(rest)
            names = [name for name in draft.columns.names if name]
            self.footers = [footer for footer in self.footers if not _is_names(footer.text, names)]
            return
        # Which column it belongs to is not clear, and a row that lacks its end is wrong.
        self.draft = None
        self.dropped.append(f"{draft.place}: code {draft.raw} goes on over the page and cannot be put together")
        yield _leftover([draft.source], draft.columns, draft.confidence)
        yield from self._past_footers()
        yield block

    def _is_footer(self, block: Block) -> bool:
        if len(self.footers) >= _MOST_FOOTERS or len(block.text) > _FOOTER or block.text.count("\n") > 1:
            return False
        return block.kind == "text" or block.text in self.seen_headings

    def _settle(self) -> Iterator[AlarmRow | Block]:
        yield from self._finish()
        self.columns = None
        for footer in self.footers:
            self.trail.follow(footer)
        yield from self.footers
        self.footers = []

    def _finish(self) -> Iterator[AlarmRow | Block]:
        draft, self.draft = self.draft, None
        if draft is None:
            return
        rows = list(_rows_of(draft))
        if rows:
            yield from rows
            return
        self.dropped.append(f"{draft.place}: code {draft.raw} has no heading")
        yield _leftover([draft.source], draft.columns, draft.confidence)

    def _table(self, block: Block) -> Iterator[AlarmRow | Block]:
        context = "\n".join([str(self.trail), *(footer.text for footer in self.footers)])
        before, page = self.columns, block.place.page
        near = not self.footers or (page is not None and page != self.page)
        columns = columns_of(block.rows, context, self.vendor) if block.rows else None
        if columns is not None and columns.data_from == 0 and block.confidence < 1:
            columns = None  # in a picture a list without a header may well be two columns read as one
        if before is not None and near and (columns is None or columns.data_from == 0):
            columns = _carried_on(before, block.rows) or columns
        if columns is None:
            yield from self._settle()
            yield block
            return
        same = before is not None and near and columns.roles == before.roles and columns.kind == before.kind
        if not same:
            yield from self._settle()
        self.columns = columns
        yield from self._rows(block, columns, top=same)
        self.page = block.rows[-1].place.page or page

    def _rows(self, block: Block, columns: Columns, *, top: bool) -> Iterator[AlarmRow | Block]:
        header = [row.cells for row in block.rows[: columns.data_from]]
        widths = _widths(block.rows[columns.data_from :])
        above: tuple[str, ...] = ()
        left: list[Row] = []

        def settled() -> Iterator[AlarmRow | Block]:
            yield from self._finish()
            if left:
                yield _leftover(left, columns, block.confidence)
                left.clear()

        for number, row in enumerate(block.rows[columns.data_from :]):
            if row.cells in header or is_header(row) or not any(cell.strip() for cell in row.cells):
                continue
            cells = _without_ditto(row.cells, above)
            code = cells[columns.code].strip()
            draft = self.draft
            if not code and number == 0 and _code_below(block.rows[columns.data_from :], columns):
                yield from self._finish()
                yield from self._past_footers()
                left.append(row)
                continue
            if (
                not code
                and draft is not None
                and (draft.columns.of("heading") == () or self._goes_on(cells, number, top=top))
            ):
                draft.add(cells, go_on=True)
                draft.widths = [max(pair) for pair in zip(draft.widths, widths, strict=True)]
                above = ()  # "same as above" would mean several rows
                continue
            spans, raw = ((), "") if len(set(cells)) == 1 else _codes(code, columns)
            if spans and draft is not None and _again(draft, spans, cells):
                draft.add(cells, go_on=False)
            elif spans:
                yield from settled()
                yield from self._past_footers()
                self.draft = _Draft(columns, spans, raw, row.place, block.confidence, row, widths=widths)
                self.draft.add(cells, go_on=False)
            else:
                yield from self._finish()
                yield from self._past_footers()
                left.append(row)
            above = cells
        if left:
            yield from settled()

    def _past_footers(self) -> Iterator[Block]:
        yield from self.footers
        self.footers = []

    def _goes_on(self, cells: Sequence[str], number: int, *, top: bool) -> bool:
        """Whether a row without a code carries on the one before: at the top of a page, or where it has no heading."""
        assert self.draft is not None
        headed = any(cells[k].strip() for k in self.draft.columns.of("heading"))
        return not headed or (top and number == 0)


def _is_names(line: str, names: Sequence[str]) -> bool:
    return len(names) > 1 and [" ".join(cell.split()) for cell in line.split("\t")] == list(names)


def _unfinished(draft: _Draft, rest: str) -> int | None:
    """The one column that a text can be the rest of: by its next number, else the only one that has no end."""
    words = [line.split(None, 1)[0] for line in rest.split("\n") if line.strip()]
    if "\t" in rest or any(is_code(word) and len(word) > 2 for word in words):
        return None
    texts = draft.texts()
    stated = [k for k in draft.columns.of(*_STATED) if k in texts]
    number = first_number(rest)
    if number > 1:
        counted = {k: items_of(texts[k][-1], None) for k in stated}
        fitting = [k for k, (items, numbered) in counted.items() if numbered and len(items) == number - 1]
        if len(fitting) == 1:
            return fitting[0]
    ending = [k for k in stated if not texts[k][-1].endswith(_ENDS)]
    return ending[0] if len(ending) == 1 else None


def _text(cell: str) -> str:
    text = cell.strip()
    return "" if len(text) < 6 and fold(text)[0].lower() in _NOTHING else text


def _without_ditto(cells: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    if not above or not any(len(cell) < 16 and cell.strip().lower() in _DITTO for cell in cells):
        return cells
    return tuple(a if c.strip().lower() in _DITTO else c for c, a in zip(cells, above, strict=True))


def _code_below(rows: Sequence[Row], columns: Columns) -> bool:
    """Whether the first row has a heading and no code, and the next a code and no heading: one row in two pieces."""
    headings = columns.of("heading")
    if len(rows) < 2 or not headings:
        return False
    headed = [any(row.cells[k].strip() for k in headings) for row in rows[:2]]
    return headed == [True, False] and is_code(rows[1].cells[columns.code])


def _codes(cell: str, columns: Columns) -> tuple[tuple[Span, ...], str]:
    spans = codes_in(cell)
    if spans:
        return spans, " ".join(cell.split())
    spans = head_of(cell)[0] if columns.combined else ()
    return spans, ", ".join(span.raw for span in spans)


def _again(draft: _Draft, spans: tuple[Span, ...], cells: Sequence[str]) -> bool:
    """Whether a row repeats code and heading of the one before: merged cells beside several causes."""
    if [(s.first, s.last) for s in draft.spans] != [(s.first, s.last) for s in spans] or draft.columns.combined:
        return False
    headings = draft.columns.of("heading") or draft.columns.of("meaning")
    return all(_text(cells[k]) in ("", *draft.known.get(k, ())) for k in headings)


def _carried_on(before: Columns, rows: Sequence[Row]) -> Columns | None:
    """The columns of the table before, if a table without a header looks like more of it."""
    if not rows or len(rows[0].cells) != len(before.roles):
        return None
    codes = [row.cells[before.code] for row in rows if row.cells[before.code].strip()]
    if before.combined:
        fitting = sum(bool(head_of(code)[0]) for code in codes)
    else:
        fitting = sum(map(is_code, codes))
    if codes and fitting < 0.6 * len(codes):
        return None
    if not codes and len(rows) > 2:
        return None
    return replace(before, data_from=0)


def _widths(rows: Sequence[Row]) -> list[float]:
    """Width in ems of each column: that of its longest line."""
    widths = [0.0] * (len(rows[0].cells) if rows else 0)
    for row in rows:
        for k, cell in enumerate(row.cells):
            if cell:
                widths[k] = max(widths[k], *map(width_of, cell.split("\n")))
    return widths


def _leftover(rows: Sequence[Row], columns: Columns, confidence: float) -> Block:
    head = (Row(columns.names, rows[0].place),) if any(columns.names) else ()
    return Block("table", rows[0].place, rows=(*head, *rows), confidence=confidence)


# ---- from the texts of a row to what they state ----
def _rows_of(draft: _Draft) -> Iterator[AlarmRow]:
    """The rows of a draft: one for each code of a list, and for each language where causes or remedies have both."""
    by_language = {k: language_of("\n".join(texts)) for k, texts in draft.texts().items()}
    both = any(
        len({by_language[k] for k in draft.columns.of(role) if k in by_language}) > 1 for role in ("cause", "remedy")
    )
    versions: tuple[Language | None, ...] = ("en", "zh") if both else (None,)
    for version in versions:
        row = _row(draft, by_language, version)
        if row is not None:
            yield from _per_code(row, draft.spans, draft.raw)


def _per_code(row: AlarmRow, spans: Sequence[Span], raw: str) -> Iterator[AlarmRow]:
    for span in spans:
        yield replace(row, code=raw if len(spans) == 1 else span.raw, first=span.first, last=span.last)


def _row(draft: _Draft, by_language: dict[int, Language], version: Language | None) -> AlarmRow | None:
    columns = draft.columns
    told: dict[str, list[tuple[str, float | None]]] = {}
    by_rows: dict[str, list[int]] = {}

    def tell(role: str, text: str, column: int) -> None:
        if text:
            width = draft.widths[column] if draft.place.page is not None else None
            told.setdefault(role, []).append((text, width))

    headings = columns.of("heading") or (() if columns.combined else columns.of("meaning"))
    for k, texts in draft.texts().items():
        role: str = columns.roles[k]
        several = len(columns.of(columns.roles[k])) > 1
        if version and several and role in (*_STATED, "meaning") and by_language[k] != version:
            continue
        by_rows.setdefault(role, []).append(len(texts))
        for text in texts:
            if columns.combined and k == columns.code:
                role, text = "heading", head_of(text)[1]  # noqa: PLW2901 - the cell without its code
            elif k in headings:
                role = "heading"
            lead, sections = (
                parts_of(text) if role in ("heading", "meaning", "cause", "remedy", "cause_remedy") else (text, [])
            )
            if role in _BESIDE or (role == "cause_remedy" and lead):
                name = columns.names[k]
                lead = f"{name}: {joined(lead.split(chr(10)))}" if name and role != "index" else ""
                tell("meaning", lead, k)
            else:
                tell(role, lead, k)
            for labelled, rest in sections:
                tell("meaning" if labelled in ("axis", "cause_remedy") else labelled, rest, k)
    return _stated(told, draft, version, one_each=by_rows.get("cause", []) == by_rows.get("remedy", [0]))


def _stated(
    told: dict[str, list[tuple[str, float | None]]], draft: _Draft, version: Language | None, *, one_each: bool
) -> AlarmRow | None:
    causes, causes_numbered = _items(told.get("cause", ()))
    actions, actions_numbered = _items(told.get("remedy", ()))
    checks, _ = _items(told.get("check", ()))
    meaning = "\n".join(_flow(told.get("meaning", ())))
    headings = [part for text, _ in told.get("heading", ()) for part in _by_language(text)]
    if not headings and draft.columns.combined is False and meaning and not draft.columns.of("heading"):
        headings, meaning = [joined(meaning.split("\n"))], ""
    body = "\n".join([*causes, *actions, *checks, meaning])
    language = version or language_of(body if re.search(r"[A-Za-z]{3}|[\u3400-\u9fff]", body) else "\n".join(headings))
    heading, other = _chosen(headings, language)
    if not re.search(r"[^\W\d_]", heading):
        return None
    several = len(causes) == len(actions) > 1
    rows_paired = one_each and len(told.get("cause", ())) == len(causes) and len(told.get("remedy", ())) == len(actions)
    facts = draft.texts()
    setting = "; ".join(
        f"{draft.columns.names[k]}: {joined(chr(10).join(facts[k]).split(chr(10)))}"
        for k in draft.columns.of("unit", "range", "default")
        if k in facts
    )
    return AlarmRow(
        kind=draft.columns.kind,
        code=draft.raw,
        first=draft.spans[0].first,
        heading=heading,
        heading_other=other,
        meaning=meaning,
        causes=causes,
        checks=checks,
        actions=actions,
        severity=_severity(" ".join(_flow(told.get("severity", ())))),
        place=draft.place,
        language=language,
        confidence=draft.confidence,
        reset=" ".join(_flow(told.get("reset", ()))),
        reaction=" ".join(_flow(told.get("reaction", ()))),
        setting=setting,
        paired=several and ((causes_numbered and actions_numbered) or rows_paired),
    )


def _items(texts: Iterable[tuple[str, float | None]]) -> tuple[tuple[str, ...], bool]:
    found: list[str] = []
    numbered = True
    texts = list(texts)
    if len(texts) > 1:  # one statement for each of several merged rows, numbered through
        items, counted = items_of("\n".join(text for text, _ in texts), texts[0][1])
        if counted and len(items) >= len(texts):
            return items, True
    for text, width in texts:
        items, counted = items_of(text, width)
        found += items
        numbered = numbered and counted
    return tuple(found), numbered and bool(found)


def _flow(texts: Iterable[tuple[str, float | None]]) -> list[str]:
    return [joined(text.split("\n")) for text, _ in texts]


def _by_language(text: str) -> list[str]:
    """A heading as one text, or two where its lines are in two languages."""
    lines = [line for line in text.split("\n") if line.strip()]
    chinese = [line for line in lines if re.search(r"[\u3400-\u9fff]", line)]
    english = [line for line in lines if re.search(r"[A-Za-z]{3}", line) and line not in chinese]
    # "（不是\nERR 57）" is one heading with a code in it
    whole = "（" not in text and len(re.findall(r"[A-Za-z]", "".join(english))) >= 6
    if whole and chinese and english and len(chinese) + len(english) == len(lines):
        order = (chinese, english) if lines[0] in chinese else (english, chinese)
        if lines == [*order[0], *order[1]]:
            return [joined(part) for part in order]
    return [joined(lines)]


def _chosen(headings: Sequence[str], language: Language) -> tuple[str, str]:
    """(heading in the row's language, heading in the other); all of one language go together."""
    groups: dict[Language, list[str]] = {}
    for heading in dict.fromkeys(headings):
        groups.setdefault(language_of(heading), []).append(heading)
    if len(groups) < 2:
        return " / ".join(next(iter(groups.values()), [])), ""
    other: Language = "en" if language == "zh" else "zh"
    return " / ".join(groups[language]), " / ".join(groups[other])


def _severity(text: str) -> Severity | None:
    return next((name for name, pattern in _SEVERITY if pattern.search(text)), None) if text else None


def _of_listed(found: Listed) -> Iterator[AlarmRow]:
    """Rows of an alarm in running text."""
    told: dict[str, list[tuple[str, float | None]]] = {}
    for role, text in found.sections:
        widest = max(width_of(line) for line in text.split("\n"))
        told.setdefault("meaning" if role in ("axis", "cause_remedy") else role, []).append((text, widest))
    columns = Columns("alarm", ("code", "heading"), ("", ""), 0, False, 0)
    raw = ", ".join(span.raw for span in found.codes)
    told["heading"] = [(found.heading, None)]
    draft = _Draft(columns, found.codes, raw, found.place, found.confidence, Row((raw, found.heading), found.place))
    if row := _stated(told, draft, None, one_each=False):
        yield from _per_code(row, found.codes, raw)
