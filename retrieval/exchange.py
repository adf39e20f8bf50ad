"""A knowledge base as one file, to be kept or merged into another one (`retrieval.merging`).

The file holds what sources say, what the shop made of it (versions, verifications, further codes, notes, settled
disputes), and which documents it came from. Passages are not in it: they come back when the documents are ingested.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from retrieval.base import read_yaml
from retrieval.disputes import tables
from retrieval.errors import KnowledgeUnreadable
from retrieval.notes import Note, all_notes
from retrieval.records import KnowledgeEntry, Record
from retrieval.store import KnowledgeStore
from retrieval.versions import CurationError, Revision, revisions

FORMAT = "faultwright-knowledge"
VERSION = 1
JSON_LINES = ".jsonl"
DOCUMENT_COLUMNS = "id, name, path, series, version, sha256, format, vendor, family, title, pages, added_at, current"


class DocumentRecord(Record):
    """A version of a document."""

    id: str
    name: str
    path: str
    series: str
    version: str = ""
    sha256: str
    format: str
    vendor: str = ""
    family: str = ""
    title: str = ""
    pages: int | None = None
    added_at: str
    current: bool


class EntryRecord(Record):
    """An entry as its source has it; `document` is the id of the document, None for the knowledge files."""

    entry: dict[str, Any]
    document: str | None = None


class RevisionRecord(Record):
    """A revision; without `entry` it went back to the source. Those of one entry stand in their order."""

    of: str
    entry: dict[str, Any] | None = None
    original: str
    by: str
    at: str
    reason: str = ""


class NoteRecord(Record):
    """A note of the shop."""

    of: str
    text: str
    machine: str = ""
    before: str = ""
    after: str = ""
    move: str = ""
    by: str
    at: str
    series: str = ""
    row: str = ""


class SettledRecord(Record):
    """What a person said of two sources; `texts` is a hash of what both say."""

    of: str
    other: str
    texts: str
    verdict: Literal["same", "different"]
    by: str
    at: str


class MakerRecord(Record):
    """A maker that the catalogue lacks."""

    vendor: str
    family: str
    title: str


_KINDS: dict[str, type[Record]] = {
    "maker": MakerRecord,
    "document": DocumentRecord,
    "entry": EntryRecord,
    "revision": RevisionRecord,
    "note": NoteRecord,
    "settled": SettledRecord,
}
Bundle = dict[str, list[Any]]
"""Records by kind, in the order of the file."""


# ---- out ----
def export(store: KnowledgeStore, path: Path) -> dict[str, int]:
    """Write the base to a file: JSON lines where its name ends so, else YAML; number of records by kind.

    Raises:
        CurationError: the file cannot be written; one that was there stays.
    """
    with store.database.writing() as connection:  # one state, while others write
        tables(connection)
        records = {kind: list(made) for kind, made in _records_of(connection)}
    scratch = path.with_name(f".{path.name}.part")
    try:
        with scratch.open("w", encoding="utf-8") as file:
            if path.suffix == JSON_LINES:
                for line in _lines(records):
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
            else:
                dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
                whole = {"format": FORMAT, "version": VERSION, **records}
                yaml.dump(whole, file, Dumper=dumper, allow_unicode=True, sort_keys=False, width=110)
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise CurationError(
            f"Cannot write {path}: {error.strerror}.", "give a file in a folder you can write."
        ) from error
    return {kind: len(made) for kind, made in records.items()}


def _lines(records: dict[str, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    yield {"record": FORMAT, "version": VERSION}
    for kind, made in records.items():
        for values in made:
            yield {"record": kind, **values}


def _records_of(connection: sqlite3.Connection) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    rows = connection.execute("SELECT vendor, family, title FROM maker ORDER BY vendor, family").fetchall()
    yield "maker", (short(MakerRecord(vendor=v, family=f, title=t)) for v, f, t in rows)
    names = DOCUMENT_COLUMNS.split(", ")
    rows = connection.execute(f"SELECT {DOCUMENT_COLUMNS} FROM document ORDER BY id").fetchall()  # noqa: S608
    yield "document", (short(DocumentRecord.model_validate(dict(zip(names, row, strict=True)))) for row in rows)
    rows = connection.execute("SELECT body, document_id FROM entry ORDER BY document_id, position, id").fetchall()
    yield "entry", (short(EntryRecord(entry=_fields(body), document=document)) for body, document in rows)
    ids = [row[0] for row in connection.execute("SELECT DISTINCT entry_id FROM revision ORDER BY entry_id")]
    history = (revision for entry_id in ids for revision in revisions(connection, entry_id))
    yield "revision", (_revision_fields(revision) for revision in history)
    yield "note", (note_fields(note) for note in all_notes(connection))
    rows = connection.execute(
        "SELECT entry_id, other_id, texts, verdict, by, at FROM comparison WHERE method = 'person'"
        " ORDER BY entry_id, other_id"
    ).fetchall()
    settled = ("of", "other", "texts", "verdict", "by", "at")
    yield "settled", (dict(zip(settled, row, strict=True)) for row in rows)


def short(record: Record) -> dict[str, Any]:
    """A record as the file has it: what is not said is left out."""
    return record.model_dump(mode="json", exclude_defaults=True)


def _fields(body: str) -> dict[str, Any]:
    return KnowledgeEntry.model_validate_json(body).model_dump(mode="json", exclude_defaults=True)


def _revision_fields(revision: Revision) -> dict[str, Any]:
    entry = _fields(revision.body) if revision.body else None
    return short(
        RevisionRecord(
            of=revision.entry_id,
            entry=entry,
            original=revision.original,
            by=revision.by,
            at=revision.at,
            reason=revision.reason,
        )
    )


def note_fields(note: Note) -> dict[str, Any]:
    """A note as the file has it."""
    place = {"before": note.place.before, "after": note.place.after, "move": note.place.move}
    shown = {name: getattr(note, name) for name in ("text", "machine", "by", "at", "series", "row")}
    return short(NoteRecord(of=note.entry_id, **shown, **place))


# ---- in ----
def read(path: Path) -> Bundle:
    """Records of an exported file, each held against its form.

    Raises:
        CurationError: names file, record and reason of the first fault.
    """
    bundle: Bundle = {kind: [] for kind in _KINDS}
    for kind, place, values in _raw(path):
        try:
            bundle[kind].append(_KINDS[kind].model_validate(values))
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or "record"
            raise _fault(path, f"{place}, field {name}: {first['msg']}") from error
    return bundle


def _fault(path: Path, reason: str) -> CurationError:
    return CurationError(f"{path}: {reason}.", "give a file that `faultwright knowledge export` wrote.")


def _raw(path: Path) -> Iterator[tuple[str, str, Any]]:
    """(kind, place for a person, values) of each record."""
    if path.suffix == JSON_LINES:
        yield from _raw_lines(path)
        return
    try:
        whole = read_yaml(path)
    except KnowledgeUnreadable as error:
        raise CurationError(error.what, "give a file that `faultwright knowledge export` wrote.") from error
    if not isinstance(whole, dict):
        raise _fault(path, f"no {FORMAT} file")
    _supported(path, whole.get("format"), whole.get("version"))
    for kind, records in whole.items():
        if kind in ("format", "version"):
            continue
        if kind not in _KINDS or not isinstance(records, list):
            raise _fault(path, f"unknown list {kind!r}; known: {', '.join(_KINDS)}")
        for number, values in enumerate(records, start=1):
            yield kind, f"{kind} {number}", values


def _raw_lines(path: Path) -> Iterator[tuple[str, str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").strip("\n").split("\n")
        for number, line in enumerate(lines, start=1):
            values = json.loads(line)
            if not isinstance(values, dict):
                raise _fault(path, f"line {number}: no record")
            kind = values.pop("record", None)
            if number == 1:
                _supported(path, kind, values.get("version"))
            elif kind in _KINDS:
                yield kind, f"line {number}", values
            else:
                raise _fault(path, f"line {number}: unknown record {kind!r}; known: {', '.join(_KINDS)}")
    except OSError as error:
        raise CurationError(f"Cannot read {path}: {error.strerror}.", "give a file that is there.") from error
    except (ValueError, RecursionError) as error:
        raise _fault(path, f"not JSON lines ({error})") from error


def _supported(path: Path, name: object, version: object) -> None:
    if name != FORMAT or version != VERSION:
        raise _fault(path, f"it says {name!r} version {version!r}, this reads {FORMAT!r} version {VERSION}")
