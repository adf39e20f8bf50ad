"""An exported knowledge base merged into this one: in one transaction, whole or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from retrieval.base import checked_entry
from retrieval.curation import Screen, keep_safety
from retrieval.disputes import tables
from retrieval.documents import document_id
from retrieval.errors import KnowledgeUnreadable
from retrieval.exchange import DOCUMENT_COLUMNS, Bundle, DocumentRecord, RevisionRecord, note_fields, read, short
from retrieval.families import Maker, makers, use_makers
from retrieval.notes import Note, Place, all_notes, put_note
from retrieval.records import KnowledgeEntry
from retrieval.store import KnowledgeStore, put_codes, put_entries, said_hash
from retrieval.versions import CurationError, revisions, versions_in

Prefer = Literal["ours", "theirs"]


@dataclass
class Report:
    """What an import does, or would do. `conflicts` name entries that both sides changed, and how."""

    entries: list[str] = field(default_factory=list)
    revisions: list[str] = field(default_factory=list)
    notes: int = 0
    settled: int = 0
    documents: list[str] = field(default_factory=list)
    makers: int = 0
    conflicts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """Number of records that are new here."""
        lists = (self.entries, self.revisions, self.documents)
        return sum(map(len, lists)) + self.notes + self.settled + self.makers


def take_over(
    store: KnowledgeStore,
    path: Path,
    *,
    prefer: Prefer | None = None,
    dry_run: bool = False,
    screen: Screen | None = None,
    hostile: Callable[[str], str] | None = None,
) -> Report:
    """Merge an exported file into the base, in one transaction; a second time it changes nothing.

    What is here stays. Where both sides changed an entry, or their sources differ, that is a conflict.

    Args:
        store: the rows; words and vectors follow in `fill`.
        path: see `export`.
        prefer: whose version counts in a conflict; None refuses.
        dry_run: say what would be done.
        screen: called with every entry that is new here; what it raises stops the import.
        hostile: gives the reason why a note must not be taken over, or "".

    Raises:
        CurationError: the file is at fault, a conflict without `prefer`, or something that must not be taken over.
    """
    bundle = read(path)
    brought = tuple(Maker(maker.vendor, maker.family, maker.title) for maker in bundle["maker"])
    before = makers()
    use_makers(tuple(dict.fromkeys((*before, *brought))))
    try:
        checked = _checked(path, bundle, screen, hostile)
        opened = store.database.reading() if dry_run else store.database.writing(searched=True)
        with opened as connection:
            merge = _Merge(connection, path, checked, prefer, dry_run=dry_run)
            merge.run()
            if merge.report.conflicts and prefer is None and not dry_run:
                raise _in_conflict(path, merge.report)
    except BaseException:
        use_makers(before)
        raise
    if dry_run:
        use_makers(before)
    return merge.report


def _in_conflict(path: Path, report: Report) -> CurationError:
    shown = "; ".join(f"{entry_id} ({how})" for entry_id, how in report.conflicts[:5])
    more = f" and {len(report.conflicts) - 5} more" if len(report.conflicts) > 5 else ""
    what = f"{path}: {len(report.conflicts)} entries are not the same here: {shown}{more}. Nothing was taken over."
    return CurationError(what, "run it again with --ours to keep what is here, or with --theirs to take the file's.")


@dataclass(frozen=True)
class _Checked:
    """A bundle whose entries are entries."""

    bundle: Bundle
    entries: list[tuple[KnowledgeEntry, str | None]]
    histories: dict[str, list[tuple[RevisionRecord, KnowledgeEntry | None]]]


def _checked(path: Path, bundle: Bundle, screen: Screen | None, hostile: Callable[[str], str] | None) -> _Checked:
    histories: dict[str, list[tuple[RevisionRecord, KnowledgeEntry | None]]] = {}
    try:
        entries = [(checked_entry(path, n, r.entry), r.document) for n, r in enumerate(bundle["entry"], start=1)]
        for n, revision in enumerate(bundle["revision"], start=1):
            entry = checked_entry(path, n, revision.entry) if revision.entry else None
            if entry is not None and entry.id != revision.of:
                what = f"{path}: revision {n} of {revision.of} bears the id {entry.id}."
                raise CurationError(what, "give a file that `faultwright knowledge export` wrote.")
            histories.setdefault(revision.of, []).append((revision, entry))
        if screen is not None:
            screen([*(e for e, _ in entries), *(e for made in histories.values() for _, e in made if e is not None)])
    except KnowledgeUnreadable as error:
        raise CurationError(error.what, "correct the file, then run the command again.") from error
    for note in bundle["note"]:
        if hostile is not None and (reason := hostile(note.text)):
            raise CurationError(f"{path}, note on {note.of}: {reason}.", "take it out of the file.")
    return _Checked(bundle, entries, histories)


class _Merge:
    """One import inside one transaction. With `dry_run` it only fills the report."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, checked: _Checked, prefer: Prefer | None, *, dry_run: bool
    ) -> None:
        self.connection = connection
        self.path = path
        self.checked = checked
        self.prefer = prefer
        self.dry_run = dry_run
        self.report = Report()
        self._changed: set[str] = set()

    def run(self) -> None:
        """Merge everything."""
        self._makers()
        self._documents()
        self._entries()
        for entry_id, history in self.checked.histories.items():
            self._history(entry_id, history)
        self._notes()
        self._settled()
        for entry_id in () if self.dry_run else sorted(self._changed):
            if self._one("SELECT 1 FROM entry WHERE id = ?", entry_id):
                of = versions_in(self.connection, entry_id)
                if not of.superseded:
                    put_codes(self.connection, of.current)

    def _one(self, query: str, *values: object) -> Any:
        return self.connection.execute(query, values).fetchone()

    def _write(self, query: str, values: Iterable[object]) -> None:
        if not self.dry_run:
            self.connection.execute(query, tuple(values))

    def _makers(self) -> None:
        for maker in self.checked.bundle["maker"]:
            if not self._one("SELECT 1 FROM maker WHERE vendor = ? AND family = ?", maker.vendor, maker.family):
                self.report.makers += 1
                self._write("INSERT INTO maker VALUES (?, ?, ?)", (maker.vendor, maker.family, maker.title))

    def _documents(self) -> None:
        for document in self.checked.bundle["document"]:
            if not self._one("SELECT 1 FROM document WHERE id = ?", document.id):
                newer = "SELECT 1 FROM document WHERE current AND (series = ? OR path = ?)"
                current = document.current and not self._one(newer, document.series, document.path)
                self._document(document.model_copy(update={"current": current}))

    def _document(self, document: DocumentRecord) -> None:
        self.report.documents.append(document.name)
        # a report without the reader's format: ingesting the file reads it again, for its passages
        said = json.dumps({"imported": self.path.name}, ensure_ascii=False)
        values = [getattr(document, name) for name in DOCUMENT_COLUMNS.split(", ")]
        self._write("INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [*values, said])

    def _entries(self) -> None:
        new: dict[str | None, list[KnowledgeEntry]] = {}
        for entry, document in self.checked.entries:
            row = self._one("SELECT body FROM entry WHERE id = ?", entry.id)
            if row is None:
                new.setdefault(document, []).append(entry)
            elif entry.id not in self.checked.histories:
                self._source(KnowledgeEntry.model_validate_json(row[0]), entry)
        for document, entries in new.items():
            self.report.entries += [entry.id for entry in entries]
            if not self.dry_run:
                put_entries(self.connection, entries, document or self._own_document())
                shown = self._one("SELECT current FROM document WHERE id = ?", document) if document else (1,)
                if not shown or not shown[0]:
                    ids = [(entry.id,) for entry in entries]
                    self.connection.executemany("DELETE FROM code WHERE entry_id = ?", ids)

    def _own_document(self) -> str:
        """A document that holds entries of another base's knowledge files: the files here rule their own."""
        name = document_id("import", self.path.name)
        if not self._one("SELECT 1 FROM document WHERE id = ?", name):
            shared = {"id": name, "name": self.path.name, "path": f"import:{self.path.name}", "sha256": ""}
            at = max((entry.reread.on for entry, _ in self.checked.entries if entry.reread), default="")
            series = f"import|{self.path.name}"
            self._document(DocumentRecord(**shared, series=series, format="import", added_at=at, current=True))
        return name

    def _source(self, ours: KnowledgeEntry, theirs: KnowledgeEntry) -> None:
        """An entry whose source differs, and that they did not change."""
        of = versions_in(self.connection, ours.id)
        if said_hash(theirs) in (said_hash(ours), said_hash(of.current)):
            return
        self.report.conflicts.append((ours.id, "its source differs"))
        if self.prefer == "theirs":
            keep_safety(ours, theirs)
            note = f"as in {self.path.name}"
            fresh = {"status": "unverified", "verified_by": "", "reread": None, "status_note": note}
            at = max([*(r.at for r in of.history), ""])
            shop = theirs.model_copy(update=fresh)
            record = RevisionRecord(of=ours.id, original=said_hash(ours), by="import", at=at, reason=note)
            self._append(record, shop)

    def _history(self, entry_id: str, theirs: list[tuple[RevisionRecord, KnowledgeEntry | None]]) -> None:
        ours = {_identity(r.entry, r.by, r.at, r.reason) for r in revisions(self.connection, entry_id)}
        said = [_identity(entry, r.by, r.at, r.reason) for r, entry in theirs]
        missing = [pair for pair, mark in zip(theirs, said, strict=True) if mark not in ours]
        if not missing:
            return
        if ours - set(said):
            self.report.conflicts.append((entry_id, "both sides changed it"))
            if self.prefer != "theirs":
                return
        row = self._one("SELECT body FROM entry WHERE id = ?", entry_id)
        last = missing[-1][1]
        if row is not None and last is not None:
            keep_safety(KnowledgeEntry.model_validate_json(row[0]), last)
        for record, entry in missing:
            self._append(record, entry)

    def _append(self, record: RevisionRecord, entry: KnowledgeEntry | None) -> None:
        self.report.revisions.append(record.of)
        self._changed.add(record.of)
        seq = self._one("SELECT COALESCE(max(seq), 0) + 1 FROM revision WHERE entry_id = ?", record.of)[0]
        body = entry.model_dump_json() if entry else ""
        values = (record.of, seq, body, record.original, record.by, record.at, record.reason)
        self._write("INSERT INTO revision VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def _notes(self) -> None:
        known = {json.dumps(note_fields(note), sort_keys=True) for note in all_notes(self.connection)}
        for record in self.checked.bundle["note"]:
            if json.dumps(short(record), sort_keys=True) not in known:
                self.report.notes += 1
                place = Place(record.before, record.after, record.move)
                note = Note(
                    0, record.of, record.machine, record.text, place, record.by, record.at, record.series, record.row
                )
                if not self.dry_run:
                    put_note(self.connection, note)

    def _settled(self) -> None:
        if not self.dry_run:
            tables(self.connection)
        elif not self._one("SELECT 1 FROM sqlite_master WHERE name = 'comparison'"):
            self.report.settled = len(self.checked.bundle["settled"])
            return
        for record in self.checked.bundle["settled"]:
            if not self._one("SELECT 1 FROM comparison WHERE texts = ? AND method = 'person'", record.texts):
                self.report.settled += 1
                # without the hashes of the entries here: the next comparison looks at the pair again, and finds this
                values = (record.of, record.other, "", "", record.texts, record.verdict, "person", record.by, record.at)
                self._write("INSERT OR REPLACE INTO comparison VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def _identity(entry: KnowledgeEntry | None, by: str, at: str, reason: str) -> tuple[str, str, str, str]:
    return entry.model_dump_json() if entry else "", by, at, reason
