"""Rows of the knowledge base in SQLite: found by exact code at once, before any index exists.

One file, `knowledge.sqlite`, in the data home. Entries are stored as JSON, their keys as rows of (vendor, family,
code, bare number); embeddings by the hash of their text, so that equal passages are embedded once and a killed index
build goes on where it stopped.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from retrieval.base import fingerprint, knowledge_files, load_entries
from retrieval.codes import number_of
from retrieval.errors import StoreUnusable
from retrieval.records import FaultCode, KnowledgeEntry

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entry (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, vendor TEXT NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS code (
  vendor TEXT NOT NULL, family TEXT NOT NULL, code TEXT NOT NULL, number TEXT NOT NULL, kind TEXT NOT NULL,
  entry_id TEXT NOT NULL REFERENCES entry (id), PRIMARY KEY (vendor, family, code)
);
CREATE INDEX IF NOT EXISTS code_by_number ON code (number);
CREATE TABLE IF NOT EXISTS embedding (
  embedder TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, hash)
);
"""


class KnowledgeStore:
    """Reads and writes `knowledge.sqlite`. One connection per call: safe to share between threads."""

    def __init__(self, home: Path) -> None:
        self.path = home / "knowledge.sqlite"
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnusable(
                f"Cannot make the data home {home}: {error.strerror}.", "set FAULTWRIGHT_HOME to a folder you can write."
            ) from error
        with self._connection() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA_VERSION):
                raise StoreUnusable(
                    f"{self.path} has schema {version}; this version reads {SCHEMA_VERSION}.",
                    "use the version of Faultwright that wrote it, or another FAULTWRIGHT_HOME.",
                )
            if version == 0:
                connection.executescript(_SCHEMA + f"PRAGMA user_version = {SCHEMA_VERSION};")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, timeout=30.0)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                with connection:
                    yield connection
            finally:
                connection.close()
        except sqlite3.DatabaseError as error:
            raise StoreUnusable(f"{self.path}: {error}.", self._mend(error)) from error

    def _mend(self, error: sqlite3.DatabaseError) -> str:
        reason = str(error)
        if "full" in reason:
            return "free disk space and run the command again; what was stored before is intact."
        if "malformed" in reason or "not a database" in reason:
            return f"move {self.path} aside and run the command again: the rows are rebuilt from the knowledge files."
        return "check that the folder exists and can be written, then run the command again."

    def sync(self, folder: Path) -> bool:
        """Take over the YAML files of `folder` if they changed since the last time; True if rows were written.

        The rows change in one transaction: a reader sees the old base or the new one.

        Raises:
            KnowledgeUnreadable: a file is at fault; the rows stored before stay as they were.
        """
        files = knowledge_files(folder)
        mark = fingerprint(files)
        if self.fingerprint == mark:
            return False
        entries = load_entries(files)
        with self._connection() as connection:
            connection.execute("DELETE FROM code")
            connection.execute("DELETE FROM entry")
            connection.executemany(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?)",
                [(e.id, e.kind, e.vendor, i, e.model_dump_json()) for i, e in enumerate(entries)],
            )
            connection.executemany(
                "INSERT INTO code VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (c.vendor, c.family, c.code, number_of(c.code), e.kind, e.id)
                    for e in entries
                    for c in e.fault_codes
                ],
            )
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('fingerprint', ?)", (mark,))
        return True

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the files that the rows come from; empty before the first sync."""
        with self._connection() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
        return str(row[0]) if row else ""

    def entry(self, entry_id: str) -> KnowledgeEntry | None:
        """The entry of that id, or None."""
        found = self.entries([entry_id])
        return found[0] if found else None

    def entries(self, entry_ids: Iterable[str] | None = None) -> tuple[KnowledgeEntry, ...]:
        """Entries in the order asked for (unknown ids left out), or all in the base's own order."""
        with self._connection() as connection:
            if entry_ids is None:
                rows = connection.execute("SELECT id, body FROM entry ORDER BY position").fetchall()
                return tuple(KnowledgeEntry.model_validate_json(body) for _, body in rows)
            wanted = list(dict.fromkeys(entry_ids))
            marks = ",".join("?" * len(wanted))
            rows = connection.execute(f"SELECT id, body FROM entry WHERE id IN ({marks})", wanted).fetchall()  # noqa: S608
        bodies = dict(rows)
        return tuple(KnowledgeEntry.model_validate_json(bodies[i]) for i in wanted if i in bodies)

    def lookup(self, vendor: str, code: str, family: str | None = None) -> tuple[tuple[FaultCode, str], ...]:
        """Rows of an exact canonical code of one vendor, in one family or all: (key, entry id)."""
        query, values = "SELECT vendor, family, code, entry_id FROM code WHERE vendor = ? AND code = ?", [vendor, code]
        if family is not None:
            query, values = query + " AND family = ?", [*values, family]
        return self._keys(query, values)

    def lookup_number(
        self, number: str, vendor: str | None = None, family: str | None = None, kind: str = "alarm"
    ) -> tuple[tuple[FaultCode, str], ...]:
        """Rows whose code has that bare number (no prefix, no leading zeros), narrowed by vendor and family."""
        query, values = "SELECT vendor, family, code, entry_id FROM code WHERE number = ? AND kind = ?", [number, kind]
        if vendor is not None:
            query, values = query + " AND vendor = ?", [*values, vendor]
        if family is not None:
            query, values = query + " AND family = ?", [*values, family]
        return self._keys(query, values)

    def _keys(self, query: str, values: Sequence[str]) -> tuple[tuple[FaultCode, str], ...]:
        with self._connection() as connection:
            rows = connection.execute(query + " ORDER BY vendor, rowid", values).fetchall()
        return tuple((FaultCode(vendor=v, family=f, code=c), entry_id) for v, f, c, entry_id in rows)

    def counts(self) -> dict[str, int]:
        """Number of entries by kind, and of codes."""
        with self._connection() as connection:
            rows = connection.execute("SELECT kind, count(*) FROM entry GROUP BY kind ORDER BY kind").fetchall()
            codes = connection.execute("SELECT count(*) FROM code").fetchone()[0]
        return {**{str(kind): int(n) for kind, n in rows}, "codes": int(codes)}

    def embeddings(self, embedder: str, hashes: Iterable[str]) -> dict[str, bytes]:
        """Stored vectors (float32 bytes) by text hash, those of `hashes` that exist."""
        with self._connection() as connection:
            rows = connection.execute("SELECT hash, vector FROM embedding WHERE embedder = ?", (embedder,)).fetchall()
        wanted = set(hashes)
        return {h: v for h, v in rows if h in wanted}

    def put_embeddings(self, embedder: str, vectors: dict[str, bytes]) -> None:
        """Store vectors (float32 bytes) by text hash; committed at once."""
        with self._connection() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO embedding VALUES (?, ?, ?)", [(embedder, h, v) for h, v in vectors.items()]
            )
