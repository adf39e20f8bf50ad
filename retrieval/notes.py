"""Notes of a shop on entries: its own words, for one machine or all, shown beside what the entry says.

A note may put a cause, check or action before another one. What is said for safety, and the order of steps, stays as
the entry has it whatever a note says.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from retrieval.documents import now
from retrieval.records import UNPRINTABLE, Item, ItemKind, KnowledgeEntry
from retrieval.store import KnowledgeStore
from retrieval.versions import ROW_OF_DOCUMENT, CurationError, Versions, versions_in

LONGEST_NOTE = 1000
LONGEST_MACHINE = 80
# Beside these a note may stand; among the first four it may also move one.
MOVABLE: tuple[ItemKind, ...] = ("cause", "check", "action", "prevention")
_NOTE = "SELECT id, entry_id, machine, body, by, at FROM note"
BESIDE: tuple[ItemKind, ...] = (*MOVABLE, "step", "confirm", "range", "effect")


@dataclass(frozen=True)
class Place:
    """Where a note stands: before or after an item, and which item it moves there. Empty: after what is for safety."""

    before: str = ""
    after: str = ""
    move: str = ""

    @property
    def beside(self) -> str:
        """The item that the note stands beside, or nothing."""
        return self.move or self.before or self.after


@dataclass(frozen=True)
class Note:
    """A note. `machine` is empty where it is for all. `series` and `row` find a row again in a newer document."""

    id: int
    entry_id: str
    machine: str
    text: str
    place: Place
    by: str
    at: str
    series: str = ""
    row: str = ""


def add_note(
    store: KnowledgeStore,
    entry_id: str,
    text: str,
    *,
    by: str,
    machine: str = "",
    place: Place | None = None,
    hostile: Callable[[str], str] | None = None,
) -> Note:
    """Store a note; answers show it at once.

    Args:
        store: the rows.
        entry_id: id of a current entry.
        text: in the shop's own words, in one language or both.
        by: a person, see `retrieval.curation.person`.
        machine: as people name it when they ask ("lathe 3"); empty for all machines.
        place: where it stands; see `Place`.
        hostile: gives the reason why a text must not be taken over, or "".

    Raises:
        CurationError: empty or too long, a place that is none, or a text that must not be taken over.
    """
    text, machine = " ".join(text.split()), " ".join(machine.split())
    _readable("note", text, LONGEST_NOTE)
    if not text:
        raise CurationError("The note is empty.", f'faultwright knowledge note {entry_id} "text" --by NAME')
    _readable("machine", machine, LONGEST_MACHINE)
    if hostile is not None and (reason := hostile(text)):
        raise CurationError(f"The note is not taken: {reason}.", "word it as what must not be done, or leave it out.")
    chosen = place or Place()
    with store.database.writing() as connection:
        of = versions_in(connection, entry_id)
        _fits(of.current, chosen)
        series, row = series_row(connection, of)
        note = Note(0, entry_id, machine, text, chosen, by, now(), series, row)
        return put_note(connection, note)


def put_note(connection: sqlite3.Connection, note: Note) -> Note:
    """Write a note inside the caller's transaction; the same with its number."""
    body = {"text": note.text, **asdict(note.place), "series": note.series, "row": note.row}
    said = json.dumps({name: value for name, value in body.items() if value}, ensure_ascii=False)
    cursor = connection.execute(
        "INSERT INTO note (entry_id, machine, body, by, at) VALUES (?, ?, ?, ?, ?)",
        (note.entry_id, note.machine, said, note.by, note.at),
    )
    return Note(int(cursor.lastrowid or 0), *list(note.__dict__.values())[1:])


def series_row(connection: sqlite3.Connection, of: Versions) -> tuple[str, str]:
    """(series of the document, name of the row in it) of an entry from a document; empty for others."""
    row = ROW_OF_DOCUMENT.fullmatch(of.source.id)
    if row is None or of.document is None:
        return "", ""
    found = connection.execute("SELECT series FROM document WHERE id = ?", (of.document,)).fetchone()
    return (str(found[0]), row[2]) if found else ("", "")


def _readable(name: str, text: str, longest: int) -> None:
    if UNPRINTABLE.search(text):
        raise CurationError(f"The {name} holds control characters.", "type it as plain text.")
    if len(text) > longest:
        raise CurationError(f"The {name} has {len(text)} characters.", f"write at most {longest}.")


def _fits(entry: KnowledgeEntry, place: Place) -> None:
    """Pass a place beside items of the entry that are not for safety."""
    if place.before and place.after:
        raise CurationError("A note stands before an item or after one, not both.", "leave one of them out.")
    if place.move and not (place.before or place.after):
        raise CurationError(f"Where is {place.move} to go?", "give --before ITEM or --after ITEM with --move.")
    named = {name: _item(entry, name) for name in (place.before, place.after, place.move) if name}
    for item in named.values():
        if item.kind == "safety":
            what = f"{item.id} of {entry.id} is a safety item: safety comes first, whatever a note says."
            raise CurationError(what, "leave the place out: the note stands right after what is for safety.")
        if item.kind not in BESIDE:
            what = f"{item.id} of {entry.id} is a {item.kind}: no note stands before it or after it."
            raise CurationError(what, "leave the place out: the note stands before what is to be done.")
    if place.move:
        moved, anchor = named[place.move], named[place.before or place.after]
        if moved.kind != anchor.kind or moved.kind not in MOVABLE or moved.id == anchor.id:
            what = f"{moved.id} ({moved.kind}) cannot go beside {anchor.id} ({anchor.kind})."
            raise CurationError(what, f"move an item among those of its kind: {', '.join(MOVABLE)}.")


def _item(entry: KnowledgeEntry, item_id: str) -> Item:
    item = entry.item(item_id)
    if item is None:
        known = ", ".join(f"{i.id} ({i.kind})" for i in entry.items) or "none"
        raise CurationError(f"{entry.id} has no item {item_id!r}.", f"its items: {known}.")
    return item


def notes(store: KnowledgeStore, entry_ids: Iterable[str] | None = None) -> tuple[Note, ...]:
    """Notes on these entries, or all, oldest first. A note on a row follows it into a newer document."""
    with store.database.reading() as connection:
        if entry_ids is None:
            return all_notes(connection)
        rows = []
        for entry_id in dict.fromkeys(entry_ids):
            row = ROW_OF_DOCUMENT.fullmatch(entry_id)
            rows += connection.execute(f"{_NOTE} WHERE entry_id = ? ORDER BY id", (entry_id,)).fetchall()
            rows += _of_older_rows(connection, entry_id, row[1], row[2]) if row else []
    return tuple(_note(row) for row in rows)


def all_notes(connection: sqlite3.Connection) -> tuple[Note, ...]:
    """All notes, oldest first, inside the caller's transaction."""
    return tuple(_note(row) for row in connection.execute(f"{_NOTE} ORDER BY id"))


def _of_older_rows(connection: sqlite3.Connection, entry_id: str, document: str, row: str) -> list[tuple[object, ...]]:
    return connection.execute(
        f"{_NOTE} WHERE entry_id <> ? AND json_extract(body, '$.row') = ?"  # noqa: S608
        " AND json_extract(body, '$.series') = (SELECT series FROM document WHERE id = ?) ORDER BY id",
        (entry_id, row, document),
    ).fetchall()


def _note(row: Sequence[object]) -> Note:
    number, entry_id, machine, body, by, at = row
    said = json.loads(str(body))
    place = Place(said.get("before", ""), said.get("after", ""), said.get("move", ""))
    return Note(
        int(str(number)), str(entry_id), str(machine), said["text"], place, str(by), str(at),
        said.get("series", ""), said.get("row", ""),
    )  # fmt: skip


def remove_note(store: KnowledgeStore, number: int) -> Note:
    """Take a note out; the note as it was.

    Raises:
        CurationError: no note of that number.
    """
    with store.database.writing() as connection:
        row = connection.execute(f"{_NOTE} WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise CurationError(f"No note {number}.", "see: faultwright knowledge notes")
        connection.execute("DELETE FROM note WHERE id = ?", (number,))
    return _note(row)


def for_machine(found: Iterable[Note], machine: str) -> tuple[Note, ...]:
    """Notes that hold for a machine as a person names it: those for all, and those whose machine the name holds.

    "lathe 3" is meant by "Lathe 3, FANUC 0i-MF" and not by "lathe 30".
    """
    asked = _folded(machine)
    return tuple(note for note in found if not note.machine or _named(_folded(note.machine), asked))


def same_machine(one: str, other: str) -> bool:
    """Whether two names mean one machine: equal, or one inside the other, "lathe 3" and "Lathe 3, FANUC 0i-MF"."""
    left, right = _folded(one), _folded(other)
    return bool(left and right) and (_named(left, right) or _named(right, left))


def _named(machine: str, asked: str) -> bool:
    # a Chinese name stands between other characters: only letters and digits of the same word may not touch it
    left = "(?<![0-9a-z])" if machine[0].isascii() else ""
    right = "(?![0-9a-z])" if machine[-1].isascii() else ""
    return re.search(f"{left}{re.escape(machine)}{right}", asked) is not None


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def in_order(ids: Sequence[str], found: Iterable[Note]) -> list[str]:
    """Ids of items in the order that the notes ask for; later notes go last and so decide."""
    order = list(ids)
    for note in found:
        move, anchor = note.place.move, note.place.before or note.place.after
        if move in order and anchor in order and move != anchor:
            order.remove(move)
            order.insert(order.index(anchor) + (not note.place.before), move)
    return order
