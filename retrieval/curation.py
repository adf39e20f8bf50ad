"""What a shop makes of an entry: its own version of the text, a verification by a named person, further codes.

Each write is one transaction and leaves codes as they are to be found; words and vectors follow in
`KnowledgeStore.fill`.
"""

from __future__ import annotations

import getpass
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from retrieval.base import checked_entry
from retrieval.codes import canonical
from retrieval.documents import now
from retrieval.errors import KnowledgeUnreadable
from retrieval.families import catalogue
from retrieval.records import UNPRINTABLE, FamilyCode, KnowledgeEntry, Language, StopOrRun
from retrieval.store import KnowledgeStore, put_codes, said_hash
from retrieval.tokens import has_chinese
from retrieval.versions import STATUS_FIELDS, CurationError, Versions, from_fields, successor, versions_in, with_fields

LONGEST_NAME = 80
LONGEST_REASON = 500
MAX_PHRASES = 40
FIXED_FIELDS = ("id", "kind", "vendor")
_STRICTNESS = {state: n for n, state in enumerate(get_args(StopOrRun))}  # stop_now first
Screen = Callable[[Sequence[KnowledgeEntry]], None]
"""Raises where an entry must not be taken over."""


def person(name: str | None) -> str:
    """A person's name as it is stored; the login name where None.

    Raises:
        CurationError: empty, too long, without a letter, or with control characters.
    """
    if name is None:
        try:
            name = getpass.getuser()
        except (KeyError, OSError) as error:
            raise CurationError("This account has no name.", "give --by NAME.") from error
    name = " ".join(name.split())
    if not any(letter.isalpha() for letter in name) or len(name) > LONGEST_NAME or UNPRINTABLE.search(name):
        raise CurationError(f"{name!r} is no person's name.", f"give --by NAME, at most {LONGEST_NAME} characters.")
    return name


def revise(
    store: KnowledgeStore,
    entry_id: str,
    change: Callable[[Versions], KnowledgeEntry | None],
    *,
    by: str,
    reason: str = "",
    seen: int | None = None,
    screen: Screen | None = None,
    looked: bool = True,
) -> Versions:
    """Store what `change` makes of an entry as its next revision; the entry's versions afterwards.

    Args:
        store: the rows; codes are replaced in the same transaction.
        entry_id: id of a current entry.
        change: given the versions as they are inside the transaction; None goes back to the source.
        by: a person, see `person`.
        reason: why, in a sentence.
        seen: number of the latest revision that the person saw, where time has passed since.
        screen: called with the new version before it is stored.
        looked: the person looked at the text: a version that was stale is so no longer.

    Raises:
        CurationError: nothing changed, a rule is broken, or another one changed the entry since `seen`.
    """
    if len(reason) > LONGEST_REASON or UNPRINTABLE.search(reason):
        raise CurationError("The reason is too long or holds control characters.", f"at most {LONGEST_REASON}.")
    with store.database.writing(searched=True) as connection:
        before = versions_in(connection, entry_id)
        _open_to_change(connection, before, seen)
        entry = change(before)
        if entry is not None:
            entry = _checked(connection, before, entry, screen)
        same = entry is None or _text(entry) == _text(before.source)
        if entry is not None and same and entry.status == before.source.status:
            entry = None
        if (entry is None and not before.revised) or (entry == before.current and not (before.stale and looked)):
            raise CurationError(f"{entry_id}: nothing would change.", f"see: faultwright knowledge show {entry_id}")
        original = before.history[-1].original if before.stale and not looked else None
        put_revision(connection, before, entry, by=by, at=now(), reason=reason, original=original)
        return versions_in(connection, entry_id)


def put_revision(
    connection: sqlite3.Connection,
    of: Versions,
    entry: KnowledgeEntry | None,
    *,
    by: str,
    at: str,
    reason: str,
    original: str | None = None,
) -> None:
    """Write the next revision of an entry and its codes, inside the caller's transaction.

    `original` is the `said_hash` of the source that it was made from, by default the source as it is.
    """
    body = entry.model_dump_json() if entry else ""
    values = (of.source.id, of.seq + 1, body, original or said_hash(of.source), by, at, reason)
    connection.execute("INSERT INTO revision VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    if not of.superseded:
        put_codes(connection, entry or of.source)


def _open_to_change(connection: sqlite3.Connection, of: Versions, seen: int | None) -> None:
    if of.superseded:
        follows = successor(connection, of.source.id)
        what = f"{of.source.id} is a row of an older version of its document."
        raise CurationError(what, f"change {follows}." if follows else "see: faultwright knowledge documents")
    if seen is not None and seen != of.seq:
        last = of.history[-1]
        what = f"{of.source.id} was changed by {last.by} at {last.at}, while you worked on it."
        raise CurationError(what, f"look at `faultwright knowledge diff {of.source.id}`, then edit it again.")


def _text(entry: KnowledgeEntry) -> dict[str, Any]:
    return entry.model_dump(exclude=set(STATUS_FIELDS))


def _checked(
    connection: sqlite3.Connection, of: Versions, entry: KnowledgeEntry, screen: Screen | None
) -> KnowledgeEntry:
    """The new version, held against the schema, the source's safety and the rest of the base."""
    name = of.source.id
    try:
        entry = checked_entry(Path(name), 1, entry.model_dump())
    except KnowledgeUnreadable as error:
        raise CurationError(error.what, "correct it and run the command again.") from error
    for field in FIXED_FIELDS:
        if getattr(entry, field) != getattr(of.source, field):
            what = f"{name}, field {field}: it is {getattr(of.source, field)!r} and stays so."
            raise CurationError(what, "leave it as it is; another entry needs a file of its own.")
    keep_safety(of.source, entry)
    if unknown := [other for other in entry.related if not _exists(connection, other)]:
        raise CurationError(f"{name}, field related: no such entry: {', '.join(unknown)}.", "take it out.")
    for key in entry.keys if of.document is None else ():
        owner = connection.execute(
            "SELECT code.entry_id FROM code JOIN entry ON entry.id = code.entry_id WHERE code.vendor = ? AND family = ?"
            " AND code = ? AND last = ? AND code.kind = ? AND code.entry_id <> ? AND document_id IS NULL",
            (entry.vendor, key.family, key.code, key.last, entry.kind, name),
        ).fetchone()
        if owner:
            what = f"{name}, field keys: {entry.vendor}/{key.family}/{key.code} already belongs to {owner[0]}."
            raise CurationError(what, f"see: faultwright knowledge show {owner[0]}")
    if screen is not None:
        try:
            screen([entry])
        except KnowledgeUnreadable as error:
            raise CurationError(error.what, "take it out, or word it as what must not be done.") from error
    return entry


def _exists(connection: sqlite3.Connection, entry_id: str) -> bool:
    return connection.execute("SELECT 1 FROM entry WHERE id = ?", (entry_id,)).fetchone() is not None


def keep_safety(source: KnowledgeEntry, entry: KnowledgeEntry) -> None:
    """Pass a version that says all that its source says for safety: word for word, more may be added.

    Raises:
        CurationError: names the safety items that are gone or changed, or the weaker stop.
    """
    lost = []
    for item in source.of_kind("safety"):
        languages: tuple[Language, Language] = ("en", "zh")
        for language in languages:
            text = _plain(getattr(item.text, language))
            kept = (_plain(getattr(other.text, language)) for other in entry.of_kind("safety"))
            if text and not any(text in other for other in kept):
                lost.append(f"{item.id} ({language}): {text!r}")
    if lost:
        what = (
            f"{source.id}: a shop's version keeps the safety items of its source; gone or changed: {'; '.join(lost)}."
        )
        raise CurationError(what, "put them back word for word; further ones may be added.")
    if source.stop_or_run == "stop_now" and _STRICTNESS[entry.stop_or_run] > 0:
        what = f"{source.id}, field stop_or_run: its source says stop_now."
        raise CurationError(what, "leave it; a shop's version may be stricter than its source, not weaker.")


def _plain(text: str) -> str:
    return " ".join(text.split())


def edited(new: KnowledgeEntry, by: str) -> KnowledgeEntry:
    """A new text with the status that it has until somebody verifies it."""
    note = f"the shop's version by {by}, {now()[:10]}"
    fresh = {"status": "unverified", "verified_by": "", "reread": None, "status_note": note}
    return new.model_copy(update=fresh)


def edit(
    store: KnowledgeStore,
    entry_id: str,
    make: Callable[[Versions], KnowledgeEntry],
    *,
    by: str,
    reason: str = "",
    seen: int | None = None,
    screen: Screen | None = None,
) -> Versions:
    """Store a new text of an entry; it is unverified, whatever the one before was. See `revise`."""

    def change(of: Versions) -> KnowledgeEntry | None:
        new = make(of)
        if _text(new) == _text(of.source):
            return None
        return of.current if _text(new) == _text(of.current) and not of.stale else edited(new, by)

    return revise(store, entry_id, change, by=by, reason=reason, seen=seen, screen=screen)


def assign(
    store: KnowledgeStore,
    entry_id: str,
    assignments: Sequence[str],
    *,
    by: str,
    reason: str = "",
    screen: Screen | None = None,
) -> Versions:
    """`edit` with `path=value` assignments, see `with_fields`."""

    def make(of: Versions) -> KnowledgeEntry:
        try:
            return from_fields(with_fields(of.current, assignments), of, Path(entry_id))
        except KnowledgeUnreadable as error:
            raise CurationError(error.what, "correct the value and run the command again.") from error

    return edit(store, entry_id, make, by=by, reason=reason, screen=screen)


def verify(store: KnowledgeStore, entry_id: str, *, by: str, reason: str = "") -> Versions:
    """A named person vouches for what the entry says now.

    Raises:
        CurationError: the entry names no source, or that person verified it already.
    """

    def change(of: Versions) -> KnowledgeEntry:
        if not of.current.sources:
            what = f"{entry_id} names no source: there is nothing to hold it against."
            raise CurationError(what, f"add the manual's page first: faultwright knowledge edit {entry_id}")
        if of.current.status == "verified" and of.current.verified_by == by:
            what = f"{entry_id} was verified by {by} already."
            raise CurationError(what, f"see: faultwright knowledge show {entry_id}")
        note = f"verified {now()[:10]} by {by}"
        return of.current.model_copy(update={"status": "verified", "verified_by": by, "status_note": note})

    return revise(store, entry_id, change, by=by, reason=reason or "verified")


def unverify(store: KnowledgeStore, entry_id: str, *, by: str, reason: str = "") -> Versions:
    """Take a verification back.

    Raises:
        CurationError: the entry is not verified.
    """

    def change(of: Versions) -> KnowledgeEntry | None:
        if of.current.status != "verified":
            what = f"{entry_id} is not verified."
            raise CurationError(what, f"see: faultwright knowledge show {entry_id}")
        if _text(of.current) == _text(of.source) and of.source.status != "verified":
            return None
        note = f"verification by {of.current.verified_by} taken back by {by}, {now()[:10]}"
        return of.current.model_copy(update={"status": "unverified", "verified_by": "", "status_note": note})

    return revise(store, entry_id, change, by=by, reason=reason or "verification taken back", looked=False)


def revert(
    store: KnowledgeStore, entry_id: str, *, by: str, reason: str = "", to: int = 0, screen: Screen | None = None
) -> Versions:
    """Go back to the source (`to` = 0), or to an earlier revision by its number. The history stays.

    Raises:
        CurationError: no such revision, or it is what counts already.
    """

    def change(of: Versions) -> KnowledgeEntry | None:
        if to == 0:
            return None
        found = next((r for r in of.history if r.seq == to), None)
        if found is None:
            known = ", ".join(str(r.seq) for r in of.history) or "none"
            raise CurationError(f"{entry_id} has no revision {to}; it has: {known}.", "give one of these.")
        entry = found.entry
        if entry is not None and entry.status == "verified" and found.original != said_hash(of.source):
            return edited(entry, found.by)  # verified against another source
        return entry

    return revise(store, entry_id, change, by=by, reason=reason or f"back to {to or 'the source'}", screen=screen)


def alias(
    store: KnowledgeStore,
    entry_id: str,
    spelling: str,
    *,
    family: str | None = None,
    by: str,
    reason: str = "",
    screen: Screen | None = None,
) -> tuple[Versions, str]:
    """Let another code, or other words, lead to an entry; (its versions, the code or words as stored).

    A code becomes a key. That it means the same is the shop's claim, so that the entry is to be verified again. Words
    become a phrase that search finds the entry by.

    Raises:
        CurationError: a code that the vendor does not have, a family that is missing or unknown, or one that leads
            to another entry already.
    """
    stored: list[str] = []

    def change(of: Versions) -> KnowledgeEntry:
        words = " ".join(spelling.split())
        if not any(letter.isdigit() for letter in words) and of.source.vendor != "linuxcnc":
            language: Language = "zh" if has_chinese(words) else "en"
            phrases = dict(of.current.phrases)
            if not words or len(phrases.get(language, ())) >= MAX_PHRASES:
                raise CurationError(f"{entry_id}: no room for {spelling!r}.", f"at most {MAX_PHRASES} phrases.")
            phrases[language] = tuple(dict.fromkeys((*phrases.get(language, ()), words)))
            stored.append(words)
            return of.current.model_copy(update={"phrases": phrases})  # nothing that it says is changed
        key = _alias_key(of.current, words, family)
        stored.append(key.code)
        if key in of.current.keys:
            return of.current
        new = of.current.model_copy(update={"keys": (*of.current.keys, key)})
        return edited(new, by).model_copy(update={"status_note": f"{key.code} added by {by}, {now()[:10]}"})

    after = revise(store, entry_id, change, by=by, reason=reason or f"also {spelling}", screen=screen, looked=False)
    return after, stored[0]


def _alias_key(entry: KnowledgeEntry, code: str, family: str | None) -> FamilyCode:
    families = list(catalogue().get(entry.vendor, {}).get("families", {}))
    if family is None:
        own = list(dict.fromkeys(key.family for key in entry.keys)) or families
        if len(own) != 1:
            what = f"{entry.id}: {code} needs a family, its codes differ between them."
            raise CurationError(what, f"give --family, one of: {', '.join(families)}.")
        family = own[0]
    if family not in families:
        raise CurationError(f"{entry.vendor} has no family {family!r}.", f"valid: {', '.join(families)}.")
    if entry.kind != "alarm":
        return FamilyCode(family=family, code=code)
    try:
        return FamilyCode(family=family, code=canonical(code, entry.vendor, family))
    except (ValueError, ValidationError) as error:
        raise CurationError(f"{entry.id}: {error}.", "give a code as the control shows it, or words.") from error
