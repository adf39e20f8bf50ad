"""Lists for a person: entries with what the shop did to them, documents with what they brought."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from retrieval.documents import Documents, StoredDocument
from retrieval.records import EntryKind, KnowledgeEntry
from retrieval.store import KnowledgeStore, said_hash
from retrieval.versions import ROW_OF_DOCUMENT, revisions, successor


@dataclass(frozen=True)
class Listed:
    """A line of the list of entries. `follows` is the row of the newer document, for a revision left behind."""

    entry: KnowledgeEntry
    document: str | None
    revised: bool
    stale: bool
    disputed_with: tuple[str, ...]
    notes: int
    follows: str | None = None


@dataclass(frozen=True)
class Filter:
    """Which entries to list; what is None or empty lets all through. `search`: words that must all stand in one."""

    vendor: str | None = None
    family: str | None = None
    kind: EntryKind | None = None
    status: str | None = None
    document: str | None = None
    disputed: bool = False
    stale: bool = False
    search: str = ""


def listed(store: KnowledgeStore, chosen: Filter) -> tuple[Listed, ...]:
    """Current entries that a filter lets through, in the base's own order.

    Stale ones include the shop's versions of rows whose document has a newer version: they count no longer.
    """
    with store.database.reading() as connection:
        last = connection.execute(
            "SELECT entry_id, body <> '', original FROM revision AS r WHERE seq ="
            " (SELECT max(seq) FROM revision AS later WHERE later.entry_id = r.entry_id)"
        ).fetchall()
        revised = {entry_id: original for entry_id, has_body, original in last if has_body}
        notes = dict(connection.execute("SELECT entry_id, count(*) FROM note GROUP BY entry_id").fetchall())
        disputed: dict[str, tuple[str, ...]] = {}
        for one, other in connection.execute("SELECT entry_id, other_id FROM dispute WHERE verdict = 'different'"):
            disputed[one] = (*disputed.get(one, ()), other)
            disputed[other] = (*disputed.get(other, ()), one)
        rows = connection.execute(*_chosen(chosen)).fetchall()
        sources = _sources(connection, revised)
    documents = dict(rows)
    stale = {i for i, source in sources.items() if said_hash(source) != revised[i]}
    wanted = [i for i in documents if (not chosen.disputed or i in disputed) and (not chosen.stale or i in stale)]
    found = [
        Listed(e, documents[e.id], e.id in revised, e.id in stale, disputed.get(e.id, ()), notes.get(e.id, 0))
        for start in range(0, len(wanted), 10_000)
        for e in store.entries(wanted[start : start + 10_000])
    ]
    found += _left_behind(store, revised, documents) if chosen.stale else []
    return tuple(row for row in found if _passes(row.entry, chosen))


def _chosen(chosen: Filter) -> tuple[str, list[str]]:
    query = (
        "SELECT entry.id, document_id FROM entry WHERE (document_id IS NULL"
        " OR document_id IN (SELECT id FROM document WHERE current))"
    )
    values: list[str] = []
    for column, value in (("vendor", chosen.vendor), ("kind", chosen.kind), ("document_id", chosen.document)):
        if value is not None:
            query, values = f"{query} AND {column} = ?", [*values, value]
    if chosen.family is not None:
        query = f"{query} AND entry.id IN (SELECT entry_id FROM code WHERE family = ?)"  # noqa: S608
        values.append(chosen.family)
    return f"{query} ORDER BY position, entry.id", values


def _sources(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, KnowledgeEntry]:
    found = {}
    for entry_id in ids:
        row = connection.execute("SELECT body FROM entry WHERE id = ?", (entry_id,)).fetchone()
        if row:
            found[entry_id] = KnowledgeEntry.model_validate_json(row[0])
    return found


def _left_behind(store: KnowledgeStore, revised: dict[str, str], current: dict[str, str | None]) -> list[Listed]:
    """The shop's versions of rows that are not current any more."""
    found = []
    with store.database.reading() as connection:
        for entry_id in revised:
            row = connection.execute(
                "SELECT current FROM entry LEFT JOIN document ON document.id = document_id WHERE entry.id = ?",
                (entry_id,),
            ).fetchone()
            if entry_id in current or (row and row[0] in (None, 1)):
                continue
            entry = revisions(connection, entry_id)[-1].entry
            document = ROW_OF_DOCUMENT.fullmatch(entry_id)
            follows = successor(connection, entry_id)
            if entry is not None:
                found.append(Listed(entry, document[1] if document else None, True, True, (), 0, follows))
    return found


def _passes(entry: KnowledgeEntry, chosen: Filter) -> bool:
    if chosen.status is not None and entry.status != chosen.status:
        return False
    if any(wanted not in (None, has) for wanted, has in ((chosen.vendor, entry.vendor), (chosen.kind, entry.kind))):
        return False
    words = chosen.search.casefold().split()
    if not words:
        return True
    texts = [entry.id, entry.component, *(key.code for key in entry.keys), entry.title.en, entry.title.zh]
    texts += [entry.meaning.en, entry.meaning.zh, *(p for phrases in entry.phrases.values() for p in phrases)]
    texts += [text for item in entry.items for text in (item.text.en, item.text.zh)]
    whole = "\n".join(texts).casefold()
    return all(word in whole for word in words)


def documents(store: KnowledgeStore, *, old: bool = False) -> tuple[tuple[StoredDocument, int, int], ...]:
    """(document, its rows, its passages) of current documents by name, with `old` of earlier versions too."""
    with store.database.reading() as connection:
        rows = dict(connection.execute("SELECT document_id, count(*) FROM entry GROUP BY document_id").fetchall())
        passages = dict(connection.execute("SELECT document_id, count(*) FROM chunk GROUP BY document_id").fetchall())
    found = Documents(store.database).all(old=old)
    return tuple((document, rows.get(document.id, 0), passages.get(document.id, 0)) for document in found)


def written_on(store: KnowledgeStore, document: StoredDocument) -> tuple[int, int]:
    """(rows with a version of the shop, notes on rows) of a document, all its versions together."""
    within = (
        "IN (SELECT entry.id FROM entry JOIN document ON document.id = document_id WHERE series = ? OR document.id = ?)"
    )
    values = (document.series, document.id)
    with store.database.reading() as connection:
        revised = connection.execute(f"SELECT count(DISTINCT entry_id) FROM revision WHERE entry_id {within}", values)  # noqa: S608
        noted = connection.execute(f"SELECT count(*) FROM note WHERE entry_id {within}", values)  # noqa: S608
        return int(revised.fetchone()[0]), int(noted.fetchone()[0])
