"""The SQLite file of the data home: opened, checked, brought to the schema of this version."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from retrieval.errors import StoreUnusable

SCHEMA_VERSION = 4
BUSY_TIMEOUT_S = 30.0
FILE = "knowledge.sqlite"
# What is rebuilt from the knowledge files goes when the schema changes; what only this file holds (documents, notes,
# revisions, embeddings) is never dropped: a later schema migrates it.
_SCHEMA = """
DROP TABLE IF EXISTS code;
DROP TABLE IF EXISTS entry;
DROP TABLE IF EXISTS meta;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('generation', '0');
CREATE TABLE document (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL, series TEXT NOT NULL, version TEXT NOT NULL,
  sha256 TEXT NOT NULL, format TEXT NOT NULL, vendor TEXT NOT NULL, family TEXT NOT NULL, title TEXT NOT NULL,
  pages INTEGER, added_at TEXT NOT NULL, current INTEGER NOT NULL, report TEXT NOT NULL
);
CREATE INDEX document_by_path ON document (path);
CREATE INDEX document_by_series ON document (series);
CREATE TABLE maker (
  vendor TEXT NOT NULL, family TEXT NOT NULL, title TEXT NOT NULL, PRIMARY KEY (vendor, family)
);
CREATE TABLE entry (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, vendor TEXT NOT NULL, position INTEGER NOT NULL, document_id TEXT,
  body TEXT NOT NULL
);
CREATE INDEX entry_by_document ON entry (document_id);
CREATE TABLE code (
  vendor TEXT NOT NULL, family TEXT NOT NULL, code TEXT NOT NULL, last TEXT NOT NULL, number TEXT NOT NULL,
  prefix TEXT NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL, kind TEXT NOT NULL, entry_id TEXT NOT NULL,
  PRIMARY KEY (vendor, family, code, last, kind, entry_id)
);
CREATE INDEX code_by_number ON code (number);
CREATE INDEX code_by_entry ON code (entry_id);
CREATE INDEX code_by_range ON code (low, high) WHERE last <> '';
CREATE TABLE chunk (
  id TEXT PRIMARY KEY, document_id TEXT NOT NULL, position INTEGER NOT NULL, heading TEXT NOT NULL,
  language TEXT NOT NULL, page INTEGER, sheet TEXT NOT NULL, row INTEGER, hash TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX chunk_by_document ON chunk (document_id);
CREATE TABLE unit (
  id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, vendor TEXT NOT NULL,
  components TEXT NOT NULL, title_components TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE TABLE passage (
  unit_id INTEGER NOT NULL, vector_id INTEGER NOT NULL, hash TEXT NOT NULL, language TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX passage_by_unit ON passage (unit_id);
CREATE INDEX passage_by_hash ON passage (hash);
CREATE VIRTUAL TABLE words USING fts5 (tokens, tokenize = "unicode61 remove_diacritics 0 tokenchars '#.-_:+/'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row');
CREATE TABLE dispute (
  entry_id TEXT NOT NULL, other_id TEXT NOT NULL, similarity REAL, verdict TEXT NOT NULL,
  PRIMARY KEY (entry_id, other_id)
);
CREATE TABLE revision (
  entry_id TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, original TEXT NOT NULL, by TEXT NOT NULL,
  at TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (entry_id, seq)
);
CREATE TABLE note (
  id INTEGER PRIMARY KEY, entry_id TEXT NOT NULL, machine TEXT NOT NULL, body TEXT NOT NULL, by TEXT NOT NULL,
  at TEXT NOT NULL
);
CREATE INDEX note_by_entry ON note (entry_id);
CREATE TABLE repair (
  id TEXT PRIMARY KEY, machine TEXT NOT NULL, vendor TEXT NOT NULL, family TEXT NOT NULL, code TEXT NOT NULL,
  entry_id TEXT NOT NULL, action TEXT NOT NULL, by TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX repair_by_entry ON repair (entry_id);
CREATE TABLE IF NOT EXISTS embedding (
  embedder TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, hash)
);
"""
# From the schema before, with all that a shop has in it: statements that add to it.
_STEPS = {3: _SCHEMA[_SCHEMA.index("CREATE TABLE repair") : _SCHEMA.index("CREATE TABLE IF NOT EXISTS embedding")]}


class Database:
    """One SQLite file in write-ahead mode. A connection per call: safe to share between threads and processes.

    Raises:
        StoreUnusable: the home cannot be made, or the file is damaged or of a later version.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / FILE
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnusable(
                f"Cannot make the data home {home}: {error.strerror}.",
                "set FAULTWRIGHT_HOME to a folder you can write.",
            ) from error
        with self.reading() as connection:
            version = self._version(connection)
        if version < SCHEMA_VERSION:
            with self.writing() as connection:  # two processes may meet here: the second looks again
                if (version := self._version(connection)) < SCHEMA_VERSION:
                    for statement in _STEPS.get(version, _SCHEMA).split(";\n"):
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
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for one call; what it writes outside a transaction is committed at the end.

        Raises:
            StoreUnusable: SQLite's own reason, with what to do.
        """
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
        except UnicodeDecodeError as error:  # a message of SQLite that quotes what is damaged
            raise StoreUnusable(f"{self.path}: the file is malformed ({error.reason}).", self.aside) from error

    @contextmanager
    def writing(self, *, searched: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection inside one transaction that holds the write lock from the start.

        Args:
            searched: what changes is searched: readers see another generation afterwards.
        """
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            if searched:
                connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'generation'")

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
            return self.aside
        return "check that the folder exists and can be written, then run the command again."

    @property
    def aside(self) -> str:
        """What to do about a damaged file."""
        return (
            f"move {self.path} aside and run the command again: the starter base is rebuilt; restore the file from your"
            " backup to keep ingested documents and notes, or ingest them again."
        )

    def meta(self, key: str) -> str:
        """A value of the table of facts about the file; empty where there is none."""
        with self.reading() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""
