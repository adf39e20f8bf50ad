"""A code looked up without a question: every row that a spelling may mean, and an entry as text."""

from __future__ import annotations

import re

from agents.render import as_section, cause_numbers, heading, section_ids, section_text, sources_text
from retrieval.codes import find_codes, number_of
from retrieval.records import Citation, FaultCode, KnowledgeEntry, Language
from retrieval.search import Searcher
from retrieval.withheld import WithheldRow, withheld_rows

_NUMBER = re.compile(r"\s*(?:parameter|参数)?\s*(?:no\.?)?\s*(\d{1,6})\s*", re.IGNORECASE)


def entries_for_code(
    searcher: Searcher, text: str, vendor: str | None, family: str | None
) -> tuple[tuple[FaultCode, KnowledgeEntry], ...]:
    """Entries for a code or a parameter number in any spelling, with the key that matched; several where it is open."""
    mentions = find_codes(text, vendor=vendor, family=family) or find_codes(
        f"alarm {text}", vendor=vendor, family=family
    )
    found: dict[str, FaultCode] = {}
    for mention in mentions:
        for reading in mention.readings:
            reading_vendor = reading.vendor or vendor
            rows = (
                searcher.by_number(number_of(reading.code), reading_vendor, family)
                if mention.bare
                else searcher.exact(reading_vendor or "", reading.code, None)
            )
            for row in rows:
                if row.fault_code is not None and vendor in (None, row.fault_code.vendor):
                    found.setdefault(row.entry_id, row.fault_code)
    if not found and (number := _NUMBER.fullmatch(text)):
        for row in searcher.by_number(number_of(number.group(1)), vendor, family, kind="parameter"):
            if row.fault_code is not None:
                found.setdefault(row.entry_id, row.fault_code)
    entries = {e.id: e for e in searcher.store.entries(found)}
    return tuple((key, entries[entry_id]) for entry_id, key in found.items() if entry_id in entries)


def withheld_for_code(
    searcher: Searcher, text: str, vendor: str | None, family: str | None
) -> tuple[WithheldRow, ...]:
    """Rows of the shop's documents on a code that are kept out of answers."""
    mentions = find_codes(text, vendor=vendor, family=family) or find_codes(
        f"alarm {text}", vendor=vendor, family=family
    )
    rows = (withheld_rows(searcher.store, m.readings, vendor, bare=m.bare) for m in mentions)
    return tuple(dict.fromkeys(row for found in rows for row in found))


def entry_text(entry: KnowledgeEntry, key: FaultCode | None, language: Language) -> str:
    """The whole entry for a person, with its sources."""
    sections = [as_section(entry, name, ids, language, 1) for name, ids in section_ids(entry)]
    citation = Citation(
        number=1,
        entry_id=entry.id,
        item_ids=(),
        title=entry.title.get(language),
        status=entry.status,
        sources=entry.sources,
    )
    return "\n".join(
        [
            heading(entry, key, language),
            *(section_text(entry, s, language, cause_numbers(entry, sections)) for s in sections),
            sources_text((citation,), {entry.id: entry}, language),
        ]
    )
