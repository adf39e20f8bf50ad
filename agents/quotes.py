"""What a shop's own documents say beside an entry: quoted with their place, never merged into its advice."""

from __future__ import annotations

from collections.abc import Sequence

from agents.render import render
from agents.wording import say
from retrieval.records import CitedItem, KnowledgeEntry, Language, Section

_KINDS = ("cause", "check", "action", "prevention", "range", "effect")
MAX_LINES = 14


def from_document(entry: KnowledgeEntry) -> bool:
    """True for a row or passage of an ingested document."""
    return entry.id.startswith("doc-")


def quoted(entry: KnowledgeEntry, number: int, language: Language) -> tuple[CitedItem, ...]:
    """An entry as quotes: a passage whole; a row with its heading, meaning, causes, checks and actions."""
    ids: list[str] = ["@meaning"] if entry.kind == "passage" else ["@title"]
    if entry.kind != "passage":
        if entry.meaning.get(language) != entry.title.get(language):
            ids.append("@meaning")
        ids += [item.id for item in entry.items if item.kind in _KINDS]
    lines = [(item_id, render(entry, item_id, language)) for item_id in ids[:MAX_LINES]]
    return tuple(
        CitedItem(
            text=text,
            entry_id=entry.id,
            item_id=item_id,
            citation=number,
            to_be_confirmed=entry.status != "verified",
        )
        for item_id, text in lines
        if text
    )


def section_of(items: Sequence[CitedItem], language: Language) -> Section:
    """The section that holds quotes."""
    return Section(name="documents", heading=say("documents", language), items=tuple(items))


def quotes_text(
    section: Section, entries: dict[str, KnowledgeEntry], language: Language, *, disputed: bool, stops: bool
) -> str:
    """The section for a terminal: per source its name and place, then its words, what it advises marked as unconfirmed.

    Args:
        section: of quotes.
        entries: by id.
        language: of the answer.
        disputed: the sources contradict each other.
        stops: what leads the answer says stop now: nothing that is quoted takes that back.
    """
    lines = [f"\n## {section.heading}"]
    if disputed:
        lines.append(f"!! {say('sources_differ', language)}")
    if stops:
        lines.append(f"!! {say('stop_holds', language)}")
    shown = ""
    for cited in section.items:
        entry = entries[cited.entry_id]
        if cited.entry_id != shown:
            shown = cited.entry_id
            source = entry.sources[0]
            lines.append(f"{source.title}, {source.place}:")
        item = entry.item(cited.item_id)
        label = f"{say(f'item_{item.kind}', language)}: " if item else ""
        confirm = f" ({say('to_be_confirmed', language)})" if item and entry.status != "verified" else ""
        lines.append(f"- {label}{cited.text}{confirm} [{cited.citation}]")
    return "\n".join(lines)
