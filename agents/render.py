"""From entry items to lines of text. The only place where an entry's facts become words of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.wording import say
from retrieval.families import family_title
from retrieval.records import (
    Bilingual,
    Citation,
    CitedItem,
    FaultCode,
    Item,
    KnowledgeEntry,
    Language,
    Record,
    Section,
)

# Which items make which section, by kind of entry, in the order to show them.
_FAULT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("stop_or_run", ("@stop",)),
    ("safety", ("safety",)),
    ("symptom", ("@meaning",)),
    ("diagnosis", ("cause", "check")),
    ("action", ("action", "@reset")),
    ("prevention", ("prevention",)),
)
LAYOUT: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "alarm": _FAULT,
    "guide": _FAULT,
    "procedure": (
        ("meaning", ("@meaning",)),
        ("conditions", ("condition",)),
        ("safety", ("safety",)),
        ("steps", ("step",)),
        ("confirm", ("confirm",)),
        ("prevention", ("prevention",)),
    ),
    "parameter": (
        ("meaning", ("@meaning",)),
        ("range", ("range",)),
        ("effect", ("effect",)),
        ("safety", ("safety",)),
        ("backup", ("backup",)),
    ),
    "passage": (("documents", ("@meaning",)),),
}
FIELDS = ("@stop", "@meaning", "@reset", "@title")
# Sections that an answer must not lose, whatever the writer left out.
PINNED = ("stop_or_run", "safety", "symptom", "meaning", "conditions", "steps", "backup", "documents")


# How an answer names a line that is a note of the shop: it stands beside the entry and is none of its items.
NOTE = "@note:"
# And one that says what fixed this machine before.
REPAIR = "@repair:"


class DraftLine(Record):
    """One line that a writer puts down: its section, the item it cites, its text."""

    section: str
    entry_id: str
    item_id: str
    text: str


def is_note(item_id: str) -> bool:
    """True for a note of the shop, or a repair of this machine: its own words, and none of the entry."""
    return item_id.startswith((NOTE, REPAIR))


def code_label(code: FaultCode, language: Language) -> str:
    """A code with its vendor and family, for a person."""
    return f"{family_title(code.vendor, code.family, language)} {code.code}"


def range_label(entry: KnowledgeEntry, asked: FaultCode | None, language: Language) -> str:
    """A range of codes with its vendor and families, and the asked code that lies in it; empty for single codes."""
    ranges = [key for key in entry.keys if key.last]
    if asked is not None and any(key.code == asked.code for key in entry.keys if not key.last):
        return ""
    if not ranges:
        return ""
    families = " / ".join(dict.fromkeys(family_title(entry.vendor, key.family, language) for key in ranges))
    spans = ", ".join(dict.fromkeys(f"{key.code}-{key.last}" for key in ranges))
    if asked is None or any(asked.code == key.code for key in ranges):
        return f"{families} {spans}"
    return f"{families} {asked.code} ({spans})"


def codes_label(codes: Sequence[FaultCode], language: Language) -> str:
    """Codes of one vendor that share a meaning, for a person: families side by side, each spelling once."""
    families = " / ".join(dict.fromkeys(family_title(c.vendor, c.family, language) for c in codes))
    return f"{families} {' / '.join(dict.fromkeys(c.code for c in codes))}"


def entry_label(entry: KnowledgeEntry, asked: FaultCode | None = None) -> str:
    """Short name of an entry: its code as asked for, else its main code, else nothing."""
    if asked is not None:
        return asked.code
    return entry.keys[0].code if entry.keys else ""


def render(entry: KnowledgeEntry, item_id: str, language: Language) -> str | None:
    """Canonical text of an item, or of a field (`@stop`, `@meaning`, `@reset`, `@title`); None if there is none.

    A line of an answer that cites the item and reads like this is grounded by construction.
    """
    if item_id == "@stop":
        reason = f" {entry.stop_reason.get(language)}" if entry.stop_reason else ""
        return say(entry.stop_or_run, language) + (reason if language == "en" else reason.strip())
    if item_id == "@meaning":
        return entry.meaning.get(language)
    if item_id == "@title":
        return entry.title.get(language)
    if item_id == "@reset":
        return None if entry.reset == "unknown" or entry.kind != "alarm" else say(entry.reset, language)
    item = entry.item(item_id)
    return None if item is None else _item_text(item, language)


def _item_text(item: Item, language: Language) -> str:
    text = item.text.get(language)
    if item.expect is None:
        return text
    stop, open_, close = ("", "（", "）") if language == "zh" else (" ", "(", ")")
    return f"{text}{stop}{open_}{say('expect', language)}: {_bare(item.expect, language)}{close}"


def _bare(text: Bilingual, language: Language) -> str:
    return text.get(language).rstrip(".。 ")


def section_ids(entry: KnowledgeEntry) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Sections of an entry with the ids of their items, in the entry's own order; empty sections left out."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for name, kinds in LAYOUT[entry.kind]:
        ids: list[str] = []
        for kind in kinds:
            if kind in FIELDS:
                ids += [kind] if render(entry, kind, "en") else []
            else:
                ids += [item.id for item in entry.items if item.kind == kind]
        if ids:
            found.append((name, tuple(ids)))
    return tuple(found)


def to_be_confirmed(entry: KnowledgeEntry, item_id: str) -> bool:
    """True if what the line says must be confirmed before acting: entry not checked, or no source says the item.

    Safety items stand: a lock-out needs no confirming. So do the entry's own fields: where the entry is not checked,
    its heading says so.
    """
    item = entry.item(item_id)
    if item is None or item.kind == "safety":
        return False
    return entry.status in ("unverified", "disputed") or not item.sources


def first_words(entry: KnowledgeEntry, asked: FaultCode | None, language: Language) -> str:
    """What can be said at once from the row: code and title, stop or run, safety, meaning.

    `answer_text` of an answer about this entry alone begins with exactly this text.
    """
    sections = [
        as_section(entry, name, ids, language, citation=1)
        for name, ids in section_ids(entry)
        if name in ("stop_or_run", "safety", "symptom", "meaning", "conditions")
    ]
    # only the unbroken beginning: a section that comes later in the layout must not jump the queue
    layout = [name for name, _ in section_ids(entry)]
    head = [section for section, name in zip(sections, layout, strict=False) if section.name == name]
    return "\n".join([heading(entry, asked, language), *(section_text(entry, section, language) for section in head)])


def heading(entry: KnowledgeEntry, asked: FaultCode | None, language: Language) -> str:
    """First line about an entry: code as asked with every family where it means this, title, a warning if unchecked."""
    same = [code for code in entry.fault_codes if asked is not None and code.code == asked.code]
    label = range_label(entry, asked, language) or (codes_label(same, language) if same else entry_label(entry))
    line = f"{label} — {entry.title.get(language)}" if label else entry.title.get(language)
    if entry.status in ("unverified", "disputed"):
        line += f"\n!! {say(entry.status, language)}"
    return line


def as_section(entry: KnowledgeEntry, name: str, ids: tuple[str, ...], language: Language, citation: int) -> Section:
    """A section with canonical texts for `ids`."""
    lines = [(i, render(entry, i, language)) for i in ids]
    return Section(
        name=name,
        heading=say(name, language),
        items=tuple(
            CitedItem(
                text=text, entry_id=entry.id, item_id=i, citation=citation, to_be_confirmed=to_be_confirmed(entry, i)
            )
            for i, text in lines
            if text is not None
        ),
    )


def cause_numbers(entry: KnowledgeEntry, sections: Sequence[Section]) -> dict[str, int]:
    """Number of each cause as an answer shows them, by item id."""
    own = [i for s in sections for i in s.items if i.entry_id == entry.id]  # another source has causes of its own
    causes = [i.item_id for i in own if _kind(entry, i) == "cause"]
    return {item_id: number for number, item_id in enumerate(causes, start=1)}


def section_text(
    entry: KnowledgeEntry, section: Section, language: Language, numbers: Mapping[str, int] | None = None
) -> str:
    """A section for a terminal: heading, then lines; causes and steps numbered, checks under their own heading.

    `numbers` are those of `cause_numbers`: checks and actions say which cause they serve.
    """
    lines = [f"\n## {section.heading}"]
    numbers = cause_numbers(entry, [section]) if numbers is None else numbers
    kind_before = ""
    count = 0
    for cited in section.items:
        if is_note(cited.item_id):
            lines.append(f"> {cited.text}")
            continue
        kind = _kind(entry, cited)
        if kind != kind_before:
            count = 0
            if kind in ("cause", "check"):
                lines.append(f"{say('causes' if kind == 'cause' else 'checks', language)}:")
        kind_before = kind
        count += 1
        mark = f"{count}." if kind in ("cause", "check", "action", "step", "confirm", "condition") else "-"
        item = entry.item(cited.item_id)
        serves = (
            [str(numbers[c]) for c in item.for_causes if c in numbers] if item and kind in ("check", "action") else []
        )
        note = f" [{say('for_cause', language)} {', '.join(serves)}]" if serves else ""
        confirm = f" ({say('to_be_confirmed', language)})" if cited.to_be_confirmed and kind != "safety" else ""
        lines.append(f"{mark} {cited.text}{note}{confirm} [{cited.citation}]")
    return "\n".join(lines)


def _kind(entry: KnowledgeEntry, cited: CitedItem) -> str:
    item = entry.item(cited.item_id)
    return item.kind if item else cited.item_id


def sources_text(citations: tuple[Citation, ...], entries: dict[str, KnowledgeEntry], language: Language) -> str:
    """The list behind the numbered marks: entry, how far it is checked, and where it was read."""
    lines = [f"\n## {say('sources', language)}"]
    for citation in citations:
        entry = entries[citation.entry_id]
        status = say(f"status_{citation.status}", language, name=entry.verified_by)
        lines.append(f"[{citation.number}] {citation.title} — {status}")
        lines += [f"    {s.title}, {s.place} — {s.publisher}: {s.address}" for s in citation.sources]
    return "\n".join(lines)
