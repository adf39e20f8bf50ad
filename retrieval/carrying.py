"""What a shop did to a row of a document follows the row into the document's next version.

Its text, verifications and further codes move where the row says the same, word for word; words that only search reads
move with the row's code. What stays behind is named: nobody has looked at the new text yet.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retrieval.records import KnowledgeEntry
from retrieval.store import effective_body, put_codes, said_hash

# What tells one version of a document from the next and not what a row says.
_OF_VERSION: dict[str, Any] = {"id": True, "position": True, "sources": True, "status_note": True, "reread": True}
_OF_SEARCH = {**_OF_VERSION, "phrases": True, "status": True, "verified_by": True, "written_by": True}


@dataclass(frozen=True)
class LeftBehind:
    """A change of the shop that did not follow: on which row, by whom, and why not."""

    entry_id: str
    by: str
    why: str


@dataclass(frozen=True)
class Carried:
    """What became of the shop's changes: how many rows took theirs along, and what stayed at the version before."""

    rows: int = 0
    left: tuple[LeftBehind, ...] = ()


def carry(connection: sqlite3.Connection, current: str, before: Sequence[str]) -> Carried:
    """Move the revisions of rows of older versions to the same rows of the current one, in the caller's transaction.

    Args:
        connection: with the entries of all these versions written.
        current: id of the document that counts.
        before: ids of its other versions, the newest first.
    """
    changed = [old for document in before for old in _revised(connection, document)]
    if not changed:
        return Carried()
    rows = connection.execute("SELECT body FROM entry WHERE document_id = ? ORDER BY position", (current,))
    new = [KnowledgeEntry.model_validate_json(row[0]) for row in rows]
    by_text: dict[str, list[KnowledgeEntry]] = {}
    for entry in new:
        by_text.setdefault(_said(entry), []).append(entry)
    taken: set[str] = set()
    for old in changed:  # the newest first: what an older version had is not put on top of it
        same = by_text.get(_said(old), [])
        name = old.id.partition("/")[2]
        at = next((entry for entry in same if entry.id.partition("/")[2] == name), same[0] if len(same) == 1 else None)
        if at is not None and at.id not in taken:
            _move(connection, old, at)
            taken.add(at.id)
    moved = len(taken)
    left: list[LeftBehind] = []
    for old in (one for one in changed if _has_revision(connection, one.id)):
        name = old.id.partition("/")[2]
        at = _same_code(connection, old, new)
        if at is not None and not _has_revision(connection, at.id):
            _move(connection, old, at)
            moved += 1
        elif old.id.startswith(f"doc-{before[0]}/"):  # of those before it was said when they were left
            gone = not any(entry.id.partition("/")[2] == name for entry in new)
            by = connection.execute("SELECT by FROM revision WHERE entry_id = ? ORDER BY seq DESC", (old.id,))
            left.append(LeftBehind(old.id, str(by.fetchone()[0]), "the row is gone" if gone else "the row changed"))
    return Carried(moved, tuple(left))


def _revised(connection: sqlite3.Connection, document: str) -> list[KnowledgeEntry]:
    """Rows of a document, as the document has them, that have a version of the shop."""
    rows = connection.execute(
        "SELECT entry.body, revision.body FROM entry JOIN revision ON revision.entry_id = entry.id"
        " WHERE document_id = ? AND seq = (SELECT max(seq) FROM revision AS later WHERE later.entry_id = entry.id)"
        " ORDER BY position",
        (document,),
    ).fetchall()
    return [KnowledgeEntry.model_validate_json(body) for body, revised in rows if revised]


def _said(entry: KnowledgeEntry, leave: dict[str, Any] = _OF_VERSION) -> str:
    said = entry.model_dump(mode="json", exclude=leave, exclude_defaults=True)
    return json.dumps(said, ensure_ascii=False, sort_keys=True)


def _has_revision(connection: sqlite3.Connection, entry_id: str) -> bool:
    return connection.execute("SELECT 1 FROM revision WHERE entry_id = ?", (entry_id,)).fetchone() is not None


def _same_code(
    connection: sqlite3.Connection, old: KnowledgeEntry, new: Sequence[KnowledgeEntry]
) -> KnowledgeEntry | None:
    """The changed row that takes words for search along: they say nothing about what it says.

    Only where one row alone has the code, before and now: of two, nobody knows which one it was.
    """
    (body,) = connection.execute("SELECT body FROM revision WHERE entry_id = ? ORDER BY seq DESC", (old.id,)).fetchone()
    shop = KnowledgeEntry.model_validate_json(body)
    if _said(shop, _OF_SEARCH) != _said(old, _OF_SEARCH) or shop.status == "verified":
        return None
    rows = connection.execute("SELECT body FROM entry WHERE document_id = ?", (old.id.partition("/")[0][4:],))
    alone = sum(KnowledgeEntry.model_validate_json(row[0]).keys == old.keys for row in rows) == 1
    fits = [entry for entry in new if entry.keys == old.keys]
    return fits[0] if alone and len(fits) == 1 else None


def _move(connection: sqlite3.Connection, old: KnowledgeEntry, new: KnowledgeEntry) -> None:
    rows = connection.execute(
        "SELECT seq, body, original, reason FROM revision WHERE entry_id = ? ORDER BY seq", (old.id,)
    ).fetchall()
    (taken,) = connection.execute("SELECT coalesce(max(seq), 0) FROM revision WHERE entry_id = ?", (new.id,)).fetchone()
    was, now = said_hash(old), said_hash(new)
    text_is_same = _said(old) == _said(new)
    for number, (seq, body, original, reason) in enumerate(rows, start=1):
        shop = _placed(KnowledgeEntry.model_validate_json(body), old, new, text_is_same) if body else None
        told = f"{reason} (from {old.id.partition('/')[0]})".strip()[-500:] if number == len(rows) else reason
        connection.execute(
            "UPDATE revision SET entry_id = ?, seq = ?, body = ?, original = ?, reason = ?"
            " WHERE entry_id = ? AND seq = ?",
            (
                *(new.id, taken + number, shop.model_dump_json() if shop else ""),
                *(now if original == was else original, told, old.id, seq),
            ),
        )
    last = connection.execute(
        "SELECT body, original FROM revision WHERE entry_id = ? ORDER BY seq DESC", (new.id,)
    ).fetchone()
    put_codes(connection, KnowledgeEntry.model_validate_json(effective_body(new.model_dump_json(), *last)))


def _placed(shop: KnowledgeEntry, old: KnowledgeEntry, new: KnowledgeEntry, text_is_same: bool) -> KnowledgeEntry:
    """A version of the shop as one of the new row: its id, and the place where the document has it now."""
    if not text_is_same:  # words for search over a new text
        return new.model_copy(update={"phrases": shop.phrases})
    places = {source: now for source in old.sources for now in new.sources if now.id == source.id}
    sources = tuple(places.get(source, source) for source in shop.sources)
    return shop.model_copy(update={"id": new.id, "sources": sources})
