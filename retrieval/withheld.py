"""Rows that the screening kept out of the base: named where somebody asks for their code, never quoted."""

from __future__ import annotations

import json
from collections.abc import Iterable

from retrieval.codes import number_of
from retrieval.records import CodeReading, Record
from retrieval.store import KnowledgeStore, split_code


class WithheldRow(Record):
    """A row of a document that is not answered from: where it stands, its code or range, and why not."""

    document: str
    place: str
    code: str
    reason: str


def withheld_rows(
    store: KnowledgeStore, readings: Iterable[CodeReading], vendor: str | None, *, bare: bool
) -> tuple[WithheldRow, ...]:
    """Withheld rows of current documents on a code.

    Args:
        store: the rows.
        readings: what the code may be.
        vendor: of the machine; None takes rows of any maker.
        bare: the code is a plain number, which any prefix fits.
    """
    with store.database.reading() as connection:
        reports = connection.execute(
            "SELECT name, report FROM document WHERE current AND instr(report, '\"withheld_rows\"') ORDER BY name"
        ).fetchall()
    wanted = [(reading.vendor or vendor, reading.code) for reading in readings] if reports else []
    found: dict[WithheldRow, None] = {}
    for name, report in reports:
        for maker, _family, code, last, place, reason in json.loads(report).get("withheld_rows", ()):
            for whose, asked in wanted:
                if whose in (None, maker) and _is(asked, code, last, bare=bare):
                    found[_row(name, place, code, last, reason)] = None
    return tuple(found)


def _row(document: str, place: str, code: str, last: str, reason: str) -> WithheldRow:
    return WithheldRow(document=document, place=place, code=f"{code}-{last}" if last else code, reason=reason)


def _is(asked: str, code: str, last: str, *, bare: bool) -> bool:
    if asked == code or (bare and not last and number_of(asked) == number_of(code)):
        return True
    (prefix, low), (_, high), (mine, number) = split_code(code), split_code(last), split_code(asked)
    if not last or low is None or high is None or number is None:
        return False
    return low <= number <= high and (bare or mine == prefix)
