"""What differs between two versions: of an entry, or of a document."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping

from retrieval.documents import DocumentMissing, Documents, StoredDocument
from retrieval.records import KnowledgeEntry
from retrieval.store import KnowledgeStore
from retrieval.versions import CurationError, as_yaml, versions


def compared(store: KnowledgeStore, name: str, other: str | None = None) -> list[str]:
    """Unified diff of two entries, or of two documents; empty where they say the same.

    With one entry: its source against the shop's version. With one document: the version before against the newest.

    Raises:
        CurationError: nothing of that name, or nothing to compare it with.
        DocumentMissing: the second name is no document.
    """
    try:
        first = versions(store, name)
    except CurationError as no_entry:
        try:
            document = Documents(store.database).find(name)
        except DocumentMissing:
            raise no_entry from None
        return _documents(store, document, other)
    if other is not None:
        second = versions(store, other)
        return _unified(as_yaml(first.current), as_yaml(second.current), first.source.id, second.source.id)
    if not first.revised:
        what = f"{first.source.id} has no version of the shop."
        raise CurationError(what, f"write one: faultwright knowledge edit {first.source.id}")
    shop = f"{first.source.id} (revision {first.seq}, {first.history[-1].by})"
    return _unified(as_yaml(first.source), as_yaml(first.current), f"{first.source.id} (source)", shop)


def _unified(before: str, after: str, name: str, other: str) -> list[str]:
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), name, other, lineterm=""))


def _documents(store: KnowledgeStore, newest: StoredDocument, other: str | None) -> list[str]:
    documents = Documents(store.database)
    if other is not None:
        before, after = newest, documents.find(other)
    else:
        series = [d for d in documents.all(old=True) if d.series == newest.series and d.id != newest.id]
        if not series:
            raise CurationError(
                f"{newest.name} ({newest.id}) has one version only.", "give a second document to compare it with."
            )
        before, after = max(series, key=lambda d: d.added_at), newest
    old, new = _rows(store, before), _rows(store, after)
    lines: list[str] = []
    for row in sorted(old.keys() | new.keys()):
        lines += _unified(old.get(row, ""), new.get(row, ""), f"{before.id}/{row}", f"{after.id}/{row}")
    return lines + _unified(
        _passages(store, before), _passages(store, after), f"{before.id} passages", f"{after.id} passages"
    )


def _rows(store: KnowledgeStore, document: StoredDocument) -> Mapping[str, str]:
    """Text of the rows of a document as it has them, without what every version has its own of."""
    with store.database.reading() as connection:
        query = "SELECT id, body FROM entry WHERE document_id = ?"
        found = connection.execute(query, (document.id,)).fetchall()
    texts = {}
    for entry_id, body in found:
        entry = KnowledgeEntry.model_validate_json(body)
        row = entry_id.partition("/")[2]
        texts[row] = as_yaml(entry.model_copy(update={"id": row, "sources": ()}))
    return texts


def _passages(store: KnowledgeStore, document: StoredDocument) -> str:
    with store.database.reading() as connection:
        query = "SELECT heading, text FROM chunk WHERE document_id = ? ORDER BY position"
        rows = connection.execute(query, (document.id,)).fetchall()
    return "\n".join(f"{' / '.join(json.loads(heading))}: {text}" for heading, text in rows)
