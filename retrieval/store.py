"""Rows of the knowledge base in SQLite: found by exact code at once, before any index exists.

Entries are stored as JSON, their keys as rows of (vendor, family, code, bare number, kind). What search sees of them
(`retrieval.units`) follows in `fill`: words in an FTS5 table, texts to embed, and embeddings by the hash of their text,
so that equal texts are embedded once and a killed run goes on where it stopped. Passages of documents stand beside the
entries and are handed out in the same form.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from retrieval.base import fingerprint, knowledge_files, load_entries
from retrieval.codes import number_of
from retrieval.database import Database
from retrieval.errors import StoreUnusable
from retrieval.records import Bilingual, FamilyCode, FaultCode, KnowledgeEntry, Source
from retrieval.units import Unit, unit_of_entry, vector_id

FILL_BATCH = 200
# An entry as its source has it and the shop's latest revision of it; see `effective_body` for which counts.
_EFFECTIVE = """
SELECT entry.id, entry.body, revision.body, revision.original FROM entry
LEFT JOIN revision ON revision.entry_id = entry.id
AND revision.seq = (SELECT max(seq) FROM revision AS later WHERE later.entry_id = entry.id)
"""
# What is said about an entry rather than by it, and what only search reads: no change of these makes a revision stale.
_ASIDE: dict[str, Any] = {
    **dict.fromkeys(("status", "status_note", "written_by", "verified_by", "reread", "phrases", "related"), True),
    "sources": {"__all__": {"read_on"}},
}
# Formats whose passages are placed by lines of the file.
_BY_LINES = ("html", "jsonl", "markdown", "text")
Progress = Callable[[int, int], None]


class KnowledgeStore:
    """Reads and writes the rows of one data home.

    Raises:
        StoreUnusable: see `retrieval.database.Database`.
    """

    def __init__(self, home: Path) -> None:
        self.database = Database(home)
        self.path = self.database.path

    # ---- entries of the knowledge files ----
    def sync(self, folder: Path, check: Callable[[Sequence[KnowledgeEntry]], None] | None = None) -> bool:
        """Take over the YAML files of `folder` if they changed since the last time; True if rows were written.

        Rows that a version with another form of entry wrote count as changed. Documents, revisions and notes stay.
        The rows change in one transaction: a reader sees the old base or the new one.

        Args:
            folder: the knowledge files.
            check: called with the entries before any row changes; what it raises leaves the rows as they were.

        Raises:
            KnowledgeUnreadable: a file is at fault; the rows stored before stay as they were.
        """
        files = knowledge_files(folder)
        mark = fingerprint(files)
        if self.fingerprint == mark and self.database.meta("records") == _records():
            return False
        entries = load_entries(files)
        if check is not None:
            check(entries)
        with self.database.writing(searched=True) as connection:
            connection.execute("DELETE FROM code WHERE entry_id IN (SELECT id FROM entry WHERE document_id IS NULL)")
            connection.execute("DELETE FROM entry WHERE document_id IS NULL")
            put_entries(connection, entries, None)
            drop_orphans(connection)
            connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", [("fingerprint", mark), ("records", _records())]
            )
        return True

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the files that the starter rows come from; empty before the first sync."""
        return self.database.meta("fingerprint")

    @property
    def generation(self) -> int:
        """Grows whenever what is searched changes."""
        return int(self.database.meta("generation") or 0)

    def entry(self, entry_id: str) -> KnowledgeEntry | None:
        """The entry or passage of that id, or None."""
        found = self.entries([entry_id])
        return found[0] if found else None

    def entries(self, entry_ids: Iterable[str] | None = None) -> tuple[KnowledgeEntry, ...]:
        """Entries and passages in the order asked for (unknown ids left out), or all entries in the base's own order.

        Of several versions of a document only the newest is among all; any can be asked for by id. An entry that
        another source contradicts has the status `disputed`, unless a named person verified it.
        """
        with self.database.reading() as connection:
            if entry_ids is None:
                where = "WHERE document_id IS NULL OR document_id IN (SELECT id FROM document WHERE current)"
                rows = _effective(connection, f"{where} ORDER BY position, entry.id")
                return self._parsed(rows, _disputed(connection))
            wanted = list(dict.fromkeys(entry_ids))
            marks = ",".join("?" * len(wanted))
            rows = _effective(connection, f"WHERE entry.id IN ({marks})", wanted)
            found = {e.id: e for e in self._parsed(rows, _disputed(connection) if rows else frozenset())}
            if len(found) < len(wanted):
                found |= {e.id: e for e in _passages(connection, [i for i in wanted if i not in found])}
        return tuple(found[i] for i in wanted if i in found)

    def _parsed(self, rows: Sequence[tuple[str, str]], disputed: Collection[str]) -> tuple[KnowledgeEntry, ...]:
        entries = []
        for entry_id, body in rows:
            try:
                entry = KnowledgeEntry.model_validate_json(body)
            except ValidationError as error:
                first = error.errors()[0]
                field = ".".join(str(part) for part in first["loc"]) or "body"
                what = f"{self.path}, entry {entry_id}, field {field}: {first['msg']}."
                raise StoreUnusable(what, self.database.aside) from error
            if entry_id in disputed and entry.status != "verified":
                entry = entry.model_copy(update={"status": "disputed"})
            entries.append(entry)
        return tuple(entries)

    # ---- exact codes ----
    def lookup(
        self, vendor: str, code: str, family: str | None = None, kind: str = "alarm"
    ) -> tuple[tuple[FaultCode, str], ...]:
        """Rows of an exact canonical code of one vendor, in one family or all: (key, entry id).

        The key of a range has the code as asked for. Where no row has the code so, zeros before its number do not
        count: E7 is E07. A row of that very code goes before one of a range that holds it.
        """
        prefix, number = split_code(code)
        within = "" if number is None else " OR (prefix = ? AND ? BETWEEN low AND high)"
        query = (
            "SELECT vendor, family, CASE last WHEN '' THEN code ELSE ? END, entry_id FROM code"  # noqa: S608
            f" WHERE vendor = ? AND kind = ? AND (code = ?{within})"
        )
        values: list[object] = [code, vendor, kind, code] + ([] if number is None else [prefix, number])
        if family is not None:
            query, values = query + " AND family = ?", [*values, family]
        rows = self._keys(query, values)
        return tuple(row for row in rows if row[0].code == code) or rows

    def lookup_number(
        self, number: str, vendor: str | None = None, family: str | None = None, kind: str = "alarm"
    ) -> tuple[tuple[FaultCode, str], ...]:
        """Rows whose code has that bare number (no prefix, no leading zeros), narrowed by vendor and family."""
        if not number:
            return ()
        query = "SELECT vendor, family, CASE last WHEN '' THEN code ELSE ? END, entry_id FROM code WHERE kind = ?"
        values: list[object] = [number, kind]
        if number.isascii() and number.isdigit() and len(number) <= 12:
            query += " AND (number = ? OR (last <> '' AND ? BETWEEN low AND high))"
            values += [number, int(number)]
        else:
            query, values = query + " AND number = ?", [*values, number]
        if vendor is not None:
            query, values = query + " AND vendor = ?", [*values, vendor]
        if family is not None:
            query, values = query + " AND family = ?", [*values, family]
        return self._keys(query, values)

    def _keys(self, query: str, values: Sequence[object]) -> tuple[tuple[FaultCode, str], ...]:
        with self.database.reading() as connection:
            order = " ORDER BY vendor, last <> '', entry_id LIKE 'doc-%', code.rowid"
            rows = connection.execute(query + order, values).fetchall()
        return tuple((FaultCode(vendor=v, family=f, code=c), entry_id) for v, f, c, entry_id in rows)

    def known_codes(self, vendor: str, family: str | None = None) -> frozenset[str]:
        """Canonical codes of a vendor's alarms in one family or all; ranges are left out."""
        query, values = "SELECT code FROM code WHERE vendor = ? AND kind = 'alarm' AND last = ''", [vendor]
        if family is not None:
            query, values = query + " AND family = ?", [*values, family]
        with self.database.reading() as connection:
            return frozenset(str(row[0]) for row in connection.execute(query, values))

    def counts(self) -> dict[str, int]:
        """Number of entries by kind, of passages of documents, and of codes."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT kind, count(*) FROM entry WHERE document_id IS NULL OR document_id IN"
                " (SELECT id FROM document WHERE current) GROUP BY kind ORDER BY kind"
            ).fetchall()
            codes = connection.execute("SELECT count(*) FROM code").fetchone()[0]
            passages = connection.execute("SELECT count(*) FROM unit WHERE kind = 'passage'").fetchone()[0]
        found = {**{str(kind): int(n) for kind, n in rows}, "codes": int(codes)}
        return {**found, "passages": int(passages)} if passages else found

    # ---- what search sees ----
    def fill(self, progress: Progress | None = None) -> int:
        """Make the units of entries that have none yet, or an old one; number of units made.

        Each batch is committed: a killed run goes on where it stopped. Passages of documents get theirs when they are
        stored.
        """
        where = "WHERE (document_id IS NULL OR document_id IN (SELECT id FROM document WHERE current))"
        with self.database.reading() as connection:
            made = dict(connection.execute("SELECT owner, hash FROM unit WHERE kind <> 'passage'").fetchall())
            rows = _effective(connection, f"{where} ORDER BY position, entry.id")
        stale = [(i, body) for i, body in rows if made.get(i) != _digest(body)]
        for start in range(0, len(stale), FILL_BATCH):
            batch = stale[start : start + FILL_BATCH]
            units = [unit_of_entry(entry) for entry in self._parsed(batch, frozenset())]
            with self.database.writing(searched=True) as connection:
                marks = ",".join("?" * len(batch))  # another process may have changed rows since they were read
                now = dict(_effective(connection, f"{where} AND entry.id IN ({marks})", [i for i, _ in batch]))
                for unit, (entry_id, body) in zip(units, batch, strict=True):
                    if now.get(entry_id) == body:
                        put_unit(connection, unit, _digest(body))
            if progress:
                progress(min(start + FILL_BATCH, len(stale)), len(stale))
        return len(stale)

    # ---- embeddings ----
    def to_embed(self, embedder: str, limit: int) -> dict[str, str]:
        """Texts in use without a vector of this embedder, at most `limit`: hash → text, entries before passages."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT passage.hash, passage.text FROM passage JOIN unit ON unit.id = passage.unit_id WHERE NOT EXISTS"
                " (SELECT 1 FROM embedding WHERE embedder = ? AND embedding.hash = passage.hash)"
                " GROUP BY passage.hash ORDER BY min(unit.kind = 'passage'), min(passage.rowid) LIMIT ?",
                (embedder, limit),
            ).fetchall()
        return dict(rows)

    def coverage(self, embedder: str) -> tuple[int, int]:
        """(texts in use that have a vector of this embedder, texts in use)."""
        with self.database.reading() as connection:
            row = connection.execute(
                "SELECT count(embedding.hash), count(*) FROM (SELECT DISTINCT hash FROM passage) AS used"
                " LEFT JOIN embedding ON embedding.hash = used.hash AND embedding.embedder = ?",
                (embedder,),
            ).fetchone()
        return int(row[0]), int(row[1])

    def embeddings(self, embedder: str, hashes: Iterable[str] | None = None) -> Iterator[tuple[str, bytes]]:
        """(hash, float32 bytes) of the texts in use that have a vector, or of those of `hashes` that have one."""
        with self.database.reading() as connection:
            if hashes is None:
                yield from connection.execute(
                    "SELECT hash, vector FROM embedding WHERE embedder = ? AND hash IN (SELECT hash FROM passage)",
                    (embedder,),
                )
                return
            for wanted in hashes:
                yield from connection.execute(
                    "SELECT hash, vector FROM embedding WHERE embedder = ? AND hash = ?", (embedder, wanted)
                )

    def put_embeddings(self, embedder: str, vectors: dict[str, bytes]) -> None:
        """Store vectors (float32 bytes) by text hash; committed at once."""
        with self.database.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO embedding VALUES (?, ?, ?)", [(embedder, h, v) for h, v in vectors.items()]
            )

    def drop_embeddings(self, embedder: str, hashes: Sequence[str]) -> None:
        """Remove vectors of these texts."""
        if hashes:
            with self.database.writing() as connection:
                connection.executemany(
                    "DELETE FROM embedding WHERE embedder = ? AND hash = ?", [(embedder, h) for h in hashes]
                )

    def prune_embeddings(self) -> int:
        """Remove vectors of texts that nothing holds any more; how many went."""
        with self.database.writing() as connection:
            return connection.execute("DELETE FROM embedding WHERE hash NOT IN (SELECT hash FROM passage)").rowcount


def split_code(code: str) -> tuple[str, int | None]:
    """(what stands before the last digits, those digits as a number): SV0401 → (SV, 401); None where there are none."""
    match = re.fullmatch(r"(.*?)(\d{1,15})", code)
    return (match[1], int(match[2])) if match else (code, None)


def put_entries(connection: sqlite3.Connection, entries: Sequence[KnowledgeEntry], document_id: str | None) -> None:
    """Write entries with their codes inside the caller's transaction. Where the shop revised one, its codes count."""
    connection.executemany(
        "INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?, ?)",  # an imported entry gives way to its source
        [(e.id, e.kind, e.vendor, i, document_id, e.model_dump_json()) for i, e in enumerate(entries)],
    )
    revised = {row[0] for row in connection.execute("SELECT DISTINCT entry_id FROM revision")}
    for entry in entries:
        if entry.id in revised:
            ((_, body),) = _effective(connection, "WHERE entry.id = ?", (entry.id,))
            put_codes(connection, KnowledgeEntry.model_validate_json(body))
        else:
            put_codes(connection, entry)


def put_codes(connection: sqlite3.Connection, entry: KnowledgeEntry) -> None:
    """Write the codes of one entry, those it had before replaced."""
    connection.execute("DELETE FROM code WHERE entry_id = ?", (entry.id,))
    connection.executemany(
        "INSERT OR IGNORE INTO code VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_code_row(entry, key) for key in entry.keys],
    )


def _code_row(entry: KnowledgeEntry, key: FamilyCode) -> tuple[object, ...]:
    prefix, low = split_code(key.code)
    high = split_code(key.last)[1] if key.last else low
    number = number_of(key.code) if not key.last else ""
    span = (-1, -1) if low is None or high is None else (low, high)
    return (entry.vendor, key.family, key.code, key.last, number, prefix, *span, entry.kind, entry.id)


def put_unit(connection: sqlite3.Connection, unit: Unit, body_hash: str) -> None:
    """Write a unit inside the caller's transaction, the one of the same owner replaced."""
    row = connection.execute("SELECT id FROM unit WHERE owner = ?", (unit.owner,)).fetchone()
    if row:
        drop_units(connection, [row[0]])
    cursor = connection.execute(
        "INSERT INTO unit (owner, kind, vendor, components, title_components, hash) VALUES (?, ?, ?, ?, ?, ?)",
        (
            unit.owner,
            unit.kind,
            unit.vendor,
            " ".join(sorted(unit.components)),
            " ".join(sorted(unit.title_components)),
            body_hash,
        ),
    )
    unit_id = cursor.lastrowid
    connection.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", (unit_id, " ".join(unit.tokens)))
    connection.executemany(
        "INSERT INTO passage VALUES (?, ?, ?, ?, ?)",
        [(unit_id, vector_id(text.hash), text.hash, text.language, text.text) for text in unit.texts],
    )


def drop_units(connection: sqlite3.Connection, unit_ids: Iterable[int]) -> None:
    """Take units out of search, inside the caller's transaction."""
    for unit_id in unit_ids:
        connection.execute("DELETE FROM words WHERE rowid = ?", (unit_id,))
        connection.execute("DELETE FROM passage WHERE unit_id = ?", (unit_id,))
        connection.execute("DELETE FROM unit WHERE id = ?", (unit_id,))


def drop_orphans(connection: sqlite3.Connection) -> None:
    """Take out what speaks of entries that are gone: units and disputes. Revisions and notes wait for them."""
    rows = connection.execute("SELECT id FROM unit WHERE kind <> 'passage' AND owner NOT IN (SELECT id FROM entry)")
    drop_units(connection, [row[0] for row in rows.fetchall()])
    connection.execute(
        "DELETE FROM dispute WHERE entry_id NOT IN (SELECT id FROM entry) OR other_id NOT IN (SELECT id FROM entry)"
    )


def said_hash(entry: KnowledgeEntry) -> str:
    """Hash (hex) over what an entry says: a revision whose source no longer has the one it was made from is stale."""
    said = entry.model_dump(mode="json", exclude=_ASIDE, exclude_defaults=True)
    return _digest(json.dumps(said, ensure_ascii=False, sort_keys=True))


def effective_body(source: str, revision: str | None, original: str | None) -> str:
    """The body (JSON) that counts.

    The shop's latest revision goes before the source; one with an empty body took the earlier ones back. Where the
    source changed since, nobody has verified the two against each other: a verification falls, and a revision that
    changed nothing else gives way to the source.

    Args:
        source: body of the entry.
        revision: body of its latest revision.
        original: `said_hash` of the source that the revision was made from.
    """
    if not revision:
        return source
    try:
        now, shop = KnowledgeEntry.model_validate_json(source), KnowledgeEntry.model_validate_json(revision)
    except ValidationError:
        return revision  # a damaged row is named where it is read
    if said_hash(now) == original:
        return revision
    if said_hash(shop) == original:
        phrases = {
            name: (*now.phrases.get(name, ()), *shop.phrases.get(name, ())) for name in {**now.phrases, **shop.phrases}
        }
        kept = {name: tuple(dict.fromkeys(texts)) for name, texts in phrases.items()}
        return now.model_copy(update={"phrases": kept}).model_dump_json()
    if shop.status != "verified":
        return revision
    note = f"its source changed after {shop.verified_by} had verified it"
    return shop.model_copy(update={"status": "unverified", "verified_by": "", "status_note": note}).model_dump_json()


def _effective(connection: sqlite3.Connection, where: str, values: Sequence[object] = ()) -> list[tuple[str, str]]:
    """(id, body that counts) of the entries that a WHERE clause takes."""
    rows = connection.execute(f"{_EFFECTIVE} {where}", values)
    return [(entry_id, effective_body(source, *revision)) for entry_id, source, *revision in rows]


def _disputed(connection: sqlite3.Connection) -> frozenset[str]:
    rows = connection.execute("SELECT entry_id, other_id FROM dispute WHERE verdict = 'different'")
    return frozenset(entry_id for row in rows for entry_id in row)


def _passages(connection: sqlite3.Connection, ids: Sequence[str]) -> list[KnowledgeEntry]:
    marks = ",".join("?" * len(ids))
    rows = connection.execute(
        "SELECT chunk.id, heading, language, page, sheet, row, text, name, title, version, vendor, added_at,"  # noqa: S608
        f" document.id, format FROM chunk JOIN document ON document.id = chunk.document_id WHERE chunk.id IN ({marks})",
        list(ids),
    ).fetchall()
    return [_as_entry(*row) for row in rows]


def _as_entry(  # noqa: PLR0913, PLR0917 - the columns of one query
    chunk_id: str,
    heading: str,
    language: str,
    page: int | None,
    sheet: str,
    row: int | None,
    text: str,
    name: str,
    title: str,
    version: str,
    vendor: str,
    added_at: str,
    document_id: str,
    form: str,
) -> KnowledgeEntry:
    path = json.loads(heading)
    counted = "line" if form in _BY_LINES else "row"
    places = [f"page {page}" if page else "", f"sheet {sheet}" if sheet else "", f"{counted} {row}" if row else ""]
    shown = path[-1] if path else title or name
    source = Source(
        id="a",
        title=f"{title or name}{f' ({version})' if version else ''}",
        address=name,
        place=", ".join(p for p in (*places, " / ".join(path)) if p) or "whole document",
        publisher="the shop's own document",
        read_on=added_at[:10],
        supports="meaning",
    )
    return KnowledgeEntry(
        id=chunk_id,
        kind="passage",
        vendor=vendor or "generic",
        title=Bilingual(**{language: shown}),
        meaning=Bilingual(**{language: text}),
        items=(),
        sources=(source,),
        status="unverified",
        status_note=f"passage of document {document_id}, not checked by a person",
        written_by="ingest",
    )


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


@cache
def _records() -> str:
    """Hash over the form of an entry: rows that another version wrote may not fit this one."""
    return hashlib.sha256(json.dumps(KnowledgeEntry.model_json_schema()).encode()).hexdigest()
