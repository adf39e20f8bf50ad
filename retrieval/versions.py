"""An entry with all its versions: as its source has it, as the shop changed it, and as text to edit.

The source's text is never written over. A revision is a whole entry beside it, with who, when and why; the latest one
counts (`retrieval.store.effective_body`).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from retrieval.base import checked_entry, read_yaml
from retrieval.errors import KnowledgeUnreadable, RetrievalError
from retrieval.records import KnowledgeEntry
from retrieval.store import KnowledgeStore, effective_body, said_hash

# Set by verification and by the makers of the base, never by an edit.
STATUS_FIELDS = ("status", "status_note", "written_by", "verified_by", "reread")
ROW_OF_DOCUMENT = re.compile(r"doc-([0-9a-f]+)/(.+)")


class CurationError(RetrievalError):
    """A change that the base does not take, or an entry that it does not hold."""


@dataclass(frozen=True)
class Revision:
    """One change of an entry. An empty `body` took the shop's version back; `original` is `said_hash` of its source."""

    entry_id: str
    seq: int
    body: str
    original: str
    by: str
    at: str
    reason: str

    @property
    def entry(self) -> KnowledgeEntry | None:
        """The shop's version, or None where this one went back to the source."""
        return KnowledgeEntry.model_validate_json(self.body) if self.body else None


@dataclass(frozen=True)
class Versions:
    """An entry with all its versions.

    `source` is the text of its file or document, `current` what answers are made from, `document` the id of the
    document that it came from. `superseded`: it is a row of an older version of its document.
    """

    source: KnowledgeEntry
    current: KnowledgeEntry
    history: tuple[Revision, ...]
    document: str | None
    superseded: bool

    @property
    def seq(self) -> int:
        """Number of the latest revision, 0 where there is none."""
        return self.history[-1].seq if self.history else 0

    @property
    def revised(self) -> bool:
        """True where a version of the shop counts."""
        return bool(self.history and self.history[-1].body)

    @property
    def stale(self) -> bool:
        """True where the source changed after the shop's version was made."""
        return self.revised and (self.superseded or self.history[-1].original != said_hash(self.source))


# ---- reading ----
def versions(store: KnowledgeStore, name: str) -> Versions:
    """An entry by its id, or by a code that one single entry has.

    Raises:
        CurationError: no such entry, or several; the message names what there is.
    """
    with store.database.reading() as connection:
        return versions_in(connection, entry_id_of(connection, name))


def versions_in(connection: sqlite3.Connection, entry_id: str) -> Versions:
    """`versions` of an id, inside the caller's transaction."""
    row = connection.execute("SELECT body, document_id FROM entry WHERE id = ?", (entry_id,)).fetchone()
    if row is None:
        raise _missing(entry_id, ())
    body, document = row
    history = revisions(connection, entry_id)
    last = history[-1] if history else None
    current = effective_body(body, last.body if last else None, last.original if last else None)
    shown = connection.execute("SELECT current FROM document WHERE id = ?", (document,)).fetchone()
    superseded = document is not None and not (shown and shown[0])
    made = (KnowledgeEntry.model_validate_json(text) for text in (body, current))
    return Versions(next(made), next(made), history, document, superseded)


def revisions(connection: sqlite3.Connection, entry_id: str) -> tuple[Revision, ...]:
    """All revisions of an entry, oldest first."""
    rows = connection.execute(
        "SELECT entry_id, seq, body, original, by, at, reason FROM revision WHERE entry_id = ? ORDER BY seq",
        (entry_id,),
    )
    return tuple(Revision(*row) for row in rows)


def entry_id_of(connection: sqlite3.Connection, name: str) -> str:
    """Id of the entry that `name` is the id, or the only code, of; see `versions`."""
    name = name.strip()
    if connection.execute("SELECT 1 FROM entry WHERE id = ?", (name,)).fetchone():
        return name
    if connection.execute("SELECT 1 FROM chunk WHERE id = ?", (name,)).fetchone():
        what = f"{name} is a passage of a document: it stands as the document has it."
        raise CurationError(what, "change the document and ingest it again, or write a note on an entry.")
    spelled = "".join(name.upper().split())
    query = "SELECT DISTINCT entry_id FROM code WHERE code = ? OR upper(replace(code, ' ', '')) = ? LIMIT 9"
    found = [row[0] for row in connection.execute(query, (name, spelled))]
    if len(found) == 1:
        return str(found[0])
    if not found:
        near = connection.execute("SELECT id FROM entry WHERE instr(id, lower(?)) LIMIT 4", (name,)).fetchall()
        raise _missing(name, [row[0] for row in near])
    raise CurationError(f"{name} is a code of several entries: {', '.join(found)}.", "give the id of one.")


def _missing(name: str, near: Sequence[str]) -> CurationError:
    like = f" Near it: {', '.join(near)}." if near else ""
    return CurationError(f"No entry {name!r} in the base.{like}", "see: faultwright knowledge list --search WORDS")


def successor(connection: sqlite3.Connection, entry_id: str) -> str | None:
    """The same row in the current version of its document, where `entry_id` is one of an older version."""
    row = ROW_OF_DOCUMENT.fullmatch(entry_id)
    if row is None:
        return None
    found = connection.execute(
        "SELECT entry.id FROM document AS old JOIN document AS new ON new.series = old.series AND new.current"
        " JOIN entry ON entry.id = 'doc-' || new.id || '/' || ? WHERE old.id = ? AND new.id <> old.id",
        (row[2], row[1]),
    ).fetchone()
    return str(found[0]) if found else None


# ---- text to edit ----
def as_yaml(entry: KnowledgeEntry, *, whole: bool = False) -> str:
    """An entry as the knowledge files write it; without the fields that no edit sets, unless `whole`."""
    leave = {name for name in STATUS_FIELDS if not whole}
    fields = entry.model_dump(mode="json", exclude_defaults=True, exclude=leave)
    return str(yaml.safe_dump(fields, allow_unicode=True, sort_keys=False, width=110))


def read_version(path: Path, of: Versions) -> KnowledgeEntry:
    """The shop's version from a YAML file: one entry as such, or as the only one of a list under `entries`.

    Raises:
        CurationError: names file, field and reason.
    """
    try:
        raw = read_yaml(path)
        if isinstance(raw, dict) and isinstance(raw.get("entries"), list) and len(raw["entries"]) == 1:
            raw = raw["entries"][0]
        if not isinstance(raw, dict):
            raise CurationError(f"{path}: needs one entry.", "start from: faultwright knowledge show ENTRY --yaml")
        return from_fields(raw, of, path)
    except KnowledgeUnreadable as error:
        raise CurationError(error.what, "correct it and run the command again.") from error


def from_fields(raw: dict[str, Any], of: Versions, path: Path) -> KnowledgeEntry:
    """The shop's version from its fields; `path` is named in errors.

    Raises:
        CurationError: it sets a field that no edit sets.
        KnowledgeUnreadable: a field is at fault.
    """
    current = of.current.model_dump(mode="json")
    for name in STATUS_FIELDS:
        if name in raw and raw[name] not in (current[name], of.source.model_dump(mode="json")[name]):
            what = f"{path}, entry {of.source.id}, field {name}: an edit does not set it."
            raise CurationError(what, f"leave it out; then: faultwright knowledge verify {of.source.id} --by NAME")
    fields = {name: value for name, value in raw.items() if name not in STATUS_FIELDS}
    return checked_entry(path, 1, fields)


def with_fields(entry: KnowledgeEntry, assignments: Sequence[str]) -> dict[str, Any]:
    """Fields of an entry with `path=value` applied: `title.en=...`, `items.c1.text.zh=...`, `component=spindle`.

    A value that starts with [ or { is read as YAML, everything else is text. `path=` alone takes the field out.

    Raises:
        CurationError: no such field, with those that there are.
    """
    fields = entry.model_dump(mode="json", exclude=set(STATUS_FIELDS))
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals:
            raise CurationError(f"{assignment!r} is no assignment.", 'write --set "title.en=New title".')
        *parents, last = path.strip().split(".")
        place: Any = fields
        for step in parents:
            place = _inside(place, step, path)
        if isinstance(place, list):
            raise CurationError(f"{path}: {last} is an item, not a field.", f"set for example {path}.text.en.")
        if last not in place and place is fields:
            raise CurationError(f"No field {last!r}.", f"fields: {', '.join(fields)}.")
        if value:
            place[last] = _value(value, path)
        else:
            place.pop(last, None)
    return fields


def _inside(place: Any, step: str, path: str) -> Any:
    if isinstance(place, list):
        known = [item.get("id") or item.get("code", "") for item in place if isinstance(item, dict)]
        inner = next((item for item, name in zip(place, known, strict=False) if name == step), None)
    else:
        known = list(place) if isinstance(place, dict) else []
        inner = place.get(step) if isinstance(place, dict) else None
        if inner is None and step in known:  # an optional text that the entry lacks so far
            place[step] = inner = {}
    if not isinstance(inner, dict | list):
        raise CurationError(f"{path}: nothing called {step!r}.", f"there is: {', '.join(known) or 'nothing below it'}.")
    return inner


def _value(text: str, path: str) -> Any:
    if text[0] not in "[{":
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CurationError(f"{path}: {text!r} is not valid YAML.", "put quotes around texts in a list.") from error
