"""Rows of the knowledge base in SQLite: found by exact code at once, before any index exists.

One file, `knowledge.sqlite`, in the data home. Entries are stored as JSON, their keys as rows of (vendor, family,
code, bare number, kind); embeddings by the hash of their text, so that equal passages are embedded once and a killed
index build goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from retrieval.base import fingerprint, knowledge_files, load_entries
from retrieval.codes import number_of
from retrieval.errors import StoreUnusable
from retrieval.records import FaultCode, KnowledgeEntry

SCHEMA_VERSION = 2
BUSY_TIMEOUT_S = 30.0
# Rows of an older schema go: the next sync writes them anew from the files. Embeddings stay.
_SCHEMA = """
DROP TABLE IF EXISTS code;
DROP TABLE IF EXISTS entry;
DROP TABLE IF EXISTS meta;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entry (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, vendor TEXT NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE TABLE code (
  vendor TEXT NOT NULL, family TEXT NOT NULL, code TEXT NOT NULL, number TEXT NOT NULL, kind TEXT NOT NULL,
  entry_id TEXT NOT NULL REFERENCES entry (id), PRIMARY KEY (vendor, family, code, kind)
);
CREATE INDEX code_by_number ON code (number);
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
                f"Cannot make the data home {home}: {error.strerror}.",
                "set FAULTWRIGHT_HOME to a folder you can write.",
            ) from error
        with self._connection() as connection:
            if self._version(connection) < SCHEMA_VERSION:
                connection.execute("BEGIN IMMEDIATE")  # two processes may meet here: the second looks again
                if self._version(connection) < SCHEMA_VERSION:
                    for statement in _SCHEMA.split(";"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _version(self, connection: sqlite3.Connection) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            raise StoreUnusable(
                f"{self.path} has schema {version}; this version reads {SCHEMA_VERSION}.",
                "use the version of Faultwright that wrote it, or another FAULTWRIGHT_HOME.",
            )
        return version

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S)
            try:
                self._write_ahead(connection)
                connection.execute("PRAGMA synchronous = NORMAL")
                with connection:
                    yield connection
            finally:
                connection.close()
        except sqlite3.DatabaseError as error:
            raise StoreUnusable(f"{self.path}: {error}.", self._mend(error)) from error

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        # SQLite does not wait for another process here, whatever the timeout says
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _mend(self, error: sqlite3.DatabaseError) -> str:
        reason = str(error)
        if "full" in reason or "disk I/O" in reason:  # a quota or a file size limit shows as the second
            return "free disk space and run the command again; what was stored before is intact."
        if "locked" in reason:
            return "another process is writing it; wait until that one is done and run the command again."
        if "malformed" in reason or "not a database" in reason or "no such" in reason:
            return self._aside
        return "check that the folder exists and can be written, then run the command again."

    @property
    def _aside(self) -> str:
        return f"move {self.path} aside and run the command again: the rows are rebuilt from the knowledge files."

    def sync(self, folder: Path, check: Callable[[Sequence[KnowledgeEntry]], None] | None = None) -> bool:
        """Take over the YAML files of `folder` if they changed since the last time; True if rows were written.

        Rows that a version with another form of entry wrote count as changed.

        The rows change in one transaction: a reader sees the old base or the new one.

        Args:
            folder: the knowledge files.
            check: called with the entries before any row changes; what it raises leaves the rows as they were.

        Raises:
            KnowledgeUnreadable: a file is at fault; the rows stored before stay as they were.
        """
        files = knowledge_files(folder)
        mark = fingerprint(files)
        if self.fingerprint == mark and self._meta("records") == _records():
            return False
        entries = load_entries(files)
        if check is not None:
            check(entries)
        with self._connection() as connection:
            connection.execute("DELETE FROM code")
            connection.execute("DELETE FROM entry")
            connection.executemany(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?)",
                [(e.id, e.kind, e.vendor, i, e.model_dump_json()) for i, e in enumerate(entries)],
            )
            connection.executemany(
                "INSERT INTO code VALUES (?, ?, ?, ?, ?, ?)",
                [(c.vendor, c.family, c.code, number_of(c.code), e.kind, e.id) for e in entries for c in e.fault_codes],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", [("fingerprint", mark), ("records", _records())]
            )
        return True

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the files that the rows come from; empty before the first sync."""
        return self._meta("fingerprint")

    def _meta(self, key: str) -> str:
        with self._connection() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
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
                return tuple(self._parsed(*row) for row in rows)
            wanted = list(dict.fromkeys(entry_ids))
            marks = ",".join("?" * len(wanted))
            rows = connection.execute(f"SELECT id, body FROM entry WHERE id IN ({marks})", wanted).fetchall()  # noqa: S608
        bodies = dict(rows)
        return tuple(self._parsed(i, bodies[i]) for i in wanted if i in bodies)

    def _parsed(self, entry_id: str, body: str) -> KnowledgeEntry:
        try:
            return KnowledgeEntry.model_validate_json(body)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"]) or "body"
            what = f"{self.path}, entry {entry_id}, field {field}: {first['msg']}."
            raise StoreUnusable(what, self._aside) from error

    def lookup(
        self, vendor: str, code: str, family: str | None = None, kind: str = "alarm"
    ) -> tuple[tuple[FaultCode, str], ...]:
        """Rows of an exact canonical code of one vendor, in one family or all: (key, entry id)."""
        query = "SELECT vendor, family, code, entry_id FROM code WHERE vendor = ? AND code = ? AND kind = ?"
        values = [vendor, code, kind]
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


@cache
def _records() -> str:
    """Hash over the form of an entry: rows that another version wrote may not fit this one."""
    return hashlib.sha256(json.dumps(KnowledgeEntry.model_json_schema()).encode()).hexdigest()
