"""Notes of the shop in an answer: marked as its own, with name and date, never before what is said for safety."""

from __future__ import annotations

from collections.abc import Sequence

from agents.render import NOTE, is_note
from agents.screening import hostile
from agents.wording import say
from retrieval.notes import Note, for_machine, in_order, notes
from retrieval.records import CitedItem, Language, Section
from retrieval.store import KnowledgeStore

# Notes stand after the last of these: nothing of the shop's comes before them.
_FIRST = ("stop_or_run", "safety", "symptom", "meaning", "conditions")


def notes_on(store: KnowledgeStore, entry_ids: Sequence[str], machine: str) -> tuple[Note, ...]:
    """Notes on these entries for a machine as the person names it.

    They were screened when they were written; a base that came from elsewhere is not taken at its word.
    """
    return tuple(note for note in for_machine(notes(store, entry_ids), machine) if not hostile(note.text))


def with_notes(
    sections: Sequence[Section], found: Sequence[Note], entry_id: str, number: int, language: Language, *, all_of: bool
) -> list[Section]:
    """Sections of one entry with the notes at their places; the others in a section of their own.

    Args:
        sections: of the entry, in order.
        found: the notes that hold.
        entry_id: the entry that leads; notes with a place are about its items.
        number: its mark in the answer.
        language: of the answer.
        all_of: show notes that stand beside no item of these sections, too.
    """
    made: list[Section] = []
    left = list(found)
    for section in sections:
        if section.name in _FIRST:
            made.append(section)
            continue
        items = {item.item_id: item for item in section.items}
        lines = [items[item_id] for item_id in in_order(list(items), found)]
        for note in found:
            at = next((n for n, line in enumerate(lines) if line.item_id == note.place.beside), None)
            if at is not None and note in left:
                left.remove(note)
                at += bool(note.place.move or note.place.after)
                while at < len(lines) and is_note(lines[at].item_id):
                    at += 1
                lines.insert(at, _line(note, entry_id, number, language))
        made.append(section.model_copy(update={"items": tuple(lines)}))
    if left and all_of:
        lines = [_line(note, entry_id, number, language) for note in left]
        place = max((n for n, section in enumerate(made, start=1) if section.name in _FIRST), default=0)
        made.insert(place, Section(name="shop_notes", heading=say("shop_notes", language), items=tuple(lines)))
    return made


def _line(note: Note, entry_id: str, number: int, language: Language) -> CitedItem:
    key = "shop_note_machine" if note.machine else "shop_note"
    text = say(key, language, machine=note.machine, by=note.by, on=note.at[:10], text=note.text)
    return CitedItem(text=text, entry_id=entry_id, item_id=f"{NOTE}{note.id}", citation=number, to_be_confirmed=False)
