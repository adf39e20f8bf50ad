"""A shop's documents in the data home: their rows, passages and versions, each document in one transaction.

A document is a file at a path with a content. The same path with another content is a new version, and so is a file of
the same series (`series_of`) with a higher version in its name. Versions are kept apart; the newest is searched, the
ones before stay for comparison until there are more than `KEEP_VERSIONS`.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePath

from retrieval.carrying import Carried, carry
from retrieval.code_forms import without_grammar
from retrieval.code_makers import use_codes
from retrieval.database import Database
from retrieval.errors import RetrievalError
from retrieval.families import Maker, catalogue, use_makers
from retrieval.records import KnowledgeEntry, Language
from retrieval.store import drop_orphans, drop_units, put_entries, put_unit
from retrieval.units import Unit, embedded_passage, unit_of_passage

KEEP_VERSIONS = 3
_COLUMNS = "id, name, path, series, version, sha256, format, vendor, family, title, pages, added_at, current, report"
_VERSION = re.compile(
    r"(?:^|[\s_.(（-])(?:v|ver|version|rev|revision|版本?|第)[\s_.-]?(\d+(?:[._]\d+)*)(?:版)?(?=$|[\s_.)）-])"
    r"|(?:^|[\s_.(（-])((?:19|20)\d\d(?:[-_.]?(?:0[1-9]|1[0-2]))?(?:[-_.]?[0-3]\d)?)(?=$|[\s_.)）-])"
    r"|(?:^|[\s_-])rev[\s_.-]?([a-z])(?=$|[\s_.-])",
    re.IGNORECASE,
)


class DocumentMissing(RetrievalError):
    """No document of that id or name in the base."""


@dataclass(frozen=True)
class StoredDocument:
    """One version of a document. `report` is what its ingest said: rows, passages, problems (JSON)."""

    id: str
    name: str
    path: str
    series: str
    version: str
    sha256: str
    format: str
    vendor: str
    family: str
    title: str
    pages: int | None
    added_at: str
    current: bool
    report: str = "{}"


@dataclass(frozen=True)
class Chunk:
    """A passage of a document with its place."""

    heading: tuple[str, ...]
    text: str
    language: Language
    page: int | None = None
    sheet: str = ""
    row: int | None = None


@dataclass(frozen=True)
class Stored:
    """What storing a document came to.

    `made` passages had their words made now, `reused` ones were lent them by an older version. `superseded` is the
    version that it takes over from, `carried` what became of the shop's changes of that one's rows.
    """

    made: int
    reused: int
    superseded: str
    carried: Carried = field(default_factory=Carried)


def unit_of_chunk(chunk: Chunk) -> Unit:
    """The unit of a passage, without owner and vendor."""
    return unit_of_passage("", "", chunk.heading, chunk.text, chunk.language)


def document_id(path: str, sha256: str) -> str:
    """Id of a version: ten hex digits over where it lies and what it holds."""
    return hashlib.sha256(f"{path}\0{sha256}".encode()).hexdigest()[:10]


def version_in(name: str) -> str:
    """The version that a file's name states ("v2.1", "rev B", "2024-05"), or nothing."""
    found = _VERSION.search(PurePath(name).stem)
    return next((group for group in found.groups() if group), "") if found else ""


def series_of(path: str, vendor: str, family: str) -> str:
    """What all versions of one document share: vendor, family, folder, and the name without its version."""
    pure = PurePath(path)
    stem = _VERSION.sub(" ", pure.stem.lower())
    return "|".join((vendor, family, str(pure.parent), " ".join(re.findall(r"\w+", stem))))


def _order(version: str) -> tuple[tuple[int, int | str], ...]:
    parts = re.findall(r"\d+|[a-z]+", version.lower())
    return tuple((1, int(part)) if part.isdigit() else (0, part) for part in parts)


class Documents:
    """Documents of one data home. Writes beside `KnowledgeStore`, in the same file."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def at_path(self, path: str) -> StoredDocument | None:
        """The newest document that was read from a path."""
        return self._one("WHERE path = ? ORDER BY current DESC, added_at DESC", path)

    def told(self, path: str) -> tuple[str | None, str | None]:
        """(vendor, family) that a person gave for the version before.

        That is the one of the path, else of the folder and the name without its version.
        """
        of_series = "|" + series_of(path, "", "").split("|", 2)[2]
        before = self.at_path(path) or self._one(
            "WHERE current AND substr(series, -length(?1)) = ?1 ORDER BY added_at DESC", of_series
        )
        vendor, family = json.loads(before.report).get("told") or (None, None) if before else (None, None)
        return vendor, family

    def with_content(self, sha256: str) -> StoredDocument | None:
        """A current document of that content, wherever it lies."""
        return self._one("WHERE sha256 = ? AND current", sha256)

    def find(self, name: str) -> StoredDocument:
        """By id, its beginning, or name.

        Raises:
            DocumentMissing: none, or several that begin so.
        """
        with self.database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM document WHERE id = ? OR name = ? OR path = ?"  # noqa: S608
                " OR (length(?) > 3 AND substr(id, 1, length(?)) = ?) ORDER BY current DESC, added_at DESC",
                (name, name, name, name, name, name),
            ).fetchall()
        found = [_document(row) for row in rows]
        newest = [document for document in found if document.current] or found
        if not newest:
            raise DocumentMissing(f"No document {name!r} in the base.", "see: faultwright knowledge documents")
        if len({document.series for document in newest}) > 1:
            ids = ", ".join(f"{d.id} ({d.path})" for d in newest)
            raise DocumentMissing(f"{name!r} names several documents: {ids}.", "give the id of one.")
        return newest[0]

    def all(self, *, old: bool = False) -> tuple[StoredDocument, ...]:
        """Current documents by name, with `old` their earlier versions too."""
        where = "" if old else "WHERE current"
        with self.database.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM document {where} ORDER BY name, added_at").fetchall()  # noqa: S608
        return tuple(_document(row) for row in rows)

    def under(self, folder: str) -> tuple[StoredDocument, ...]:
        """Current documents whose path lies in a folder."""
        base = folder.rstrip("/") + "/"
        return tuple(d for d in self.all() if d.path.startswith(base))

    def _one(self, where: str, value: str) -> StoredDocument | None:
        with self.database.reading() as connection:
            row = connection.execute(f"SELECT {_COLUMNS} FROM document {where} LIMIT 1", (value,)).fetchone()  # noqa: S608
        return _document(row) if row else None

    def put(
        self,
        document: StoredDocument,
        entries: Sequence[KnowledgeEntry],
        chunks: Sequence[Chunk],
        each: Callable[[Callable[[Chunk], Unit], Sequence[Chunk]], Iterable[Unit]] = map,
    ) -> Stored:
        """Store a document whole, or nothing of it.

        The words of a passage that an earlier version, or any other document, holds too are taken over from there.

        Args:
            document: the version to store; one of the same id is replaced.
            entries: its rows.
            chunks: its passages in order.
            each: applies a function to many chunks, in order; a pool's `map` uses several cores.

        Raises:
            StoreUnusable: the disk is full or the file cannot be written; what was stored before stays.
        """
        known = self._known_words(chunks)
        new = [position for position in range(len(chunks)) if position not in known]
        known |= dict(zip(new, each(unit_of_chunk, [chunks[position] for position in new]), strict=True))
        vendor = document.vendor or "generic"
        units = [replace(known[n], owner=f"doc-{document.id}/p{n}", vendor=vendor) for n in range(len(chunks))]
        with self.database.writing(searched=True) as connection:
            connection.execute("DELETE FROM document WHERE id = ?", (document.id,))
            _empty(connection, document.id)
            values = _values(document)
            connection.execute("INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            put_entries(connection, entries, document.id)
            for position, (chunk, unit) in enumerate(zip(chunks, units, strict=True)):
                connection.execute(
                    "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(unit.owner, document.id, position, json.dumps(chunk.heading, ensure_ascii=False)),
                        *(chunk.language, chunk.page, chunk.sheet, chunk.row, unit.texts[0].hash, chunk.text),
                    ),
                )
                put_unit(connection, unit, unit.texts[0].hash)
            superseded, newest, others = self._settle(connection, document)
            carried = carry(connection, newest, others)
            for version in others[KEEP_VERSIONS - 1 :]:
                connection.execute("DELETE FROM document WHERE id = ?", (version,))
                _empty(connection, version)
            drop_orphans(connection)
        return Stored(len(new), len(chunks) - len(new), superseded, carried)

    def _known_words(self, chunks: Sequence[Chunk]) -> dict[int, Unit]:
        """Units of passages that are stored already, by the position of the new one."""
        found: dict[int, Unit] = {}
        with self.database.reading() as connection:
            for position, chunk in enumerate(chunks):
                text = embedded_passage(chunk.heading, chunk.text, chunk.language)
                row = connection.execute(
                    "SELECT tokens, components, title_components FROM passage JOIN unit ON unit.id = passage.unit_id"
                    " JOIN words ON words.rowid = unit.id WHERE passage.hash = ? AND unit.kind = 'passage' LIMIT 1",
                    (text.hash,),
                ).fetchone()
                if row:
                    words, anywhere, titles = (tuple(column.split()) for column in row)
                    found[position] = Unit("", "passage", "", words, (text,), frozenset(anywhere), frozenset(titles))
        return found

    def _settle(self, connection: sqlite3.Connection, document: StoredDocument) -> tuple[str, str, list[str]]:
        """Make the newest version of the series the current one.

        Returns the id of the version that the document takes over from, that of the current one, and those of the
        others, the newest first.
        """
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM document WHERE series = ? OR path = ?",  # noqa: S608
            (document.series, document.path),
        ).fetchall()
        versions = sorted(map(_document, rows), key=lambda d: (_order(d.version), d.added_at, d.id == document.id))
        newest, before = versions[-1], [d for d in versions[:-1] if d.current]
        for version in versions:
            connection.execute("UPDATE document SET current = ? WHERE id = ?", (version is newest, version.id))
        for version in versions[:-1]:
            _hide(connection, version.id)
        others = [version.id for version in reversed(versions[:-1])]
        return before[-1].id if before and newest.id == document.id else "", newest.id, others

    def remove(self, document: StoredDocument) -> None:
        """Take a document out with its rows and passages; its earlier versions go too."""
        with self.database.writing(searched=True) as connection:
            query = "SELECT id FROM document WHERE series = ? OR id = ?"
            for (version,) in connection.execute(query, (document.series, document.id)).fetchall():
                connection.execute("DELETE FROM document WHERE id = ?", (version,))
                _empty(connection, version)
            drop_orphans(connection)

    def entries_of(self, document: StoredDocument) -> tuple[str, ...]:
        """Ids of a document's entries, in its order."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT id FROM entry WHERE document_id = ? ORDER BY position", (document.id,))
            return tuple(row[0] for row in rows)

    def add_maker(self, vendor: str, family: str, title: str) -> None:
        """Remember a maker that the catalogue lacks."""
        with self.database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO maker VALUES (?, ?, ?)", (vendor, family, title))

    def use_makers(self) -> None:
        """Make this process know the makers and codes that the documents brought, as long as those are in the base."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT vendor, family, title, EXISTS (SELECT 1 FROM code WHERE code.vendor = maker.vendor) FROM maker"
                " WHERE EXISTS (SELECT 1 FROM document AS d WHERE d.vendor = maker.vendor AND d.family = maker.family"
                " AND d.current) OR EXISTS (SELECT 1 FROM code WHERE code.vendor = maker.vendor"
                " AND code.family = maker.family) ORDER BY vendor, family"
            ).fetchall()
            makers = [Maker(vendor, family, title, bool(coded)) for vendor, family, title, coded in rows]
            codes: dict[str, set[str]] = {}
            vendors = without_grammar({*catalogue(), *(maker.vendor for maker in makers)})
            marks = ",".join("?" * len(vendors))
            for vendor, code in connection.execute(
                f"SELECT DISTINCT vendor, code FROM code WHERE vendor IN ({marks})",  # noqa: S608
                vendors,
            ):
                codes.setdefault(vendor, set()).add(code)
        use_makers(makers)
        use_codes(codes)


def _hide(connection: sqlite3.Connection, document_id: str) -> None:
    """Take an older version out of search and look-up; its rows and passages stay to be compared with."""
    connection.execute(
        "DELETE FROM code WHERE entry_id IN (SELECT id FROM entry WHERE document_id = ?)", (document_id,)
    )
    rows = connection.execute(
        "SELECT unit.id FROM unit WHERE owner IN (SELECT id FROM chunk WHERE document_id = ?"
        " UNION SELECT id FROM entry WHERE document_id = ?)",
        (document_id, document_id),
    ).fetchall()
    drop_units(connection, [row[0] for row in rows])


def _empty(connection: sqlite3.Connection, document_id: str) -> None:
    _hide(connection, document_id)
    connection.execute("DELETE FROM chunk WHERE document_id = ?", (document_id,))
    connection.execute("DELETE FROM entry WHERE document_id = ?", (document_id,))


def _document(row: Sequence[object]) -> StoredDocument:
    values = list(row)
    values[12] = bool(values[12])
    return StoredDocument(*values)  # type: ignore[arg-type]


def _values(document: StoredDocument) -> tuple[object, ...]:
    return tuple(getattr(document, field.strip()) for field in _COLUMNS.split(","))


def now() -> str:
    """Time of day as it is stored: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
