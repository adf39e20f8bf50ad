"""The labelled questions: what each should find, or must not be given; the labels are checked against the base.

`queries.jsonl` was written as somebody beside the machine would type, before any result was seen. Its groups: `code`
(a code cleanly written), `mangled` (as people type and cameras read it), `pasted` (a line as a control prints it),
`symptom`, `slang`, `cross` (asked in one language, the text is in the other only) and `none` (nothing may be given).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from pydantic import ValidationError

from retrieval.errors import RetrievalError
from retrieval.records import FaultCode, KnowledgeEntry, Language, Record
from retrieval.store import KnowledgeStore

Group = Literal["code", "mangled", "pasted", "symptom", "slang", "cross", "none"]
GROUPS: tuple[Group, ...] = get_args(Group)
CODE_GROUPS: tuple[Group, ...] = ("code", "mangled", "pasted")
LANGUAGES: tuple[Language, ...] = ("zh", "en")
Half = Literal["tune", "report"]
HALVES: tuple[Half, ...] = ("tune", "report")
ANYTHING = "*"
QUERIES = Path(__file__).parent / "queries.jsonl"


class SetUnreadable(RetrievalError):
    """A line of the set is no query, or a label names what the base has not."""


class Query(Record):
    """One question.

    `vendor` and `family` are handed over beside it, as a shop's settings do; `about` is the vendor that the text itself
    names. `expected` are entry ids, or keys `vendor/family/code` of rows that a document brought; any of them is right,
    all of them are wanted where `every` is set. `forbidden` are entry ids that must not be given, or `*` for anything.
    """

    id: str
    language: Language
    group: Group
    text: str
    vendor: str | None = None
    family: str | None = None
    about: str | None = None
    expected: tuple[str, ...] = ()
    every: bool = False
    forbidden: tuple[str, ...] = ()

    @property
    def half(self) -> Half:
        """The half it belongs to for good: settings are chosen on `tune` only, figures come from `report`."""
        return HALVES[hashlib.sha256(self.id.encode()).digest()[0] % 2]


def read_queries(path: Path = QUERIES) -> tuple[Query, ...]:
    """Queries of a JSON Lines file, in its order.

    Raises:
        SetUnreadable: the file cannot be read, a line is no query, or an id stands twice.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SetUnreadable(f"{path} cannot be read ({error}).", "give a file of one JSON object a line.") from error
    found: dict[str, Query] = {}
    for number, line in enumerate(lines, start=1):
        try:
            query = Query.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"]) or "line"
            raise SetUnreadable(f"{path}, line {number}, {field}: {first['msg']}.", "correct that line.") from error
        if query.id in found:
            raise SetUnreadable(f"{path}, line {number}: the id {query.id} stands twice.", "give it another id.")
        if bool(query.expected) == (query.group == "none") or bool(query.forbidden) != (query.group == "none"):
            problem = "a query of group none has `forbidden`, any other has `expected`"
            raise SetUnreadable(f"{path}, line {number}, {query.id}: {problem}.", "correct that line.")
        found[query.id] = query
    return tuple(found.values())


class Labels:
    """What the labels of a set mean in one base: entry ids.

    Raises:
        SetUnreadable: a label names an entry or a code that the base has not.
    """

    def __init__(self, queries: Sequence[Query], store: KnowledgeStore) -> None:
        self.entries: dict[str, KnowledgeEntry] = {entry.id: entry for entry in store.entries()}
        # a row that starts a range counts by its first code; the range of another source that holds it does not
        self._rows = {
            str(FaultCode(vendor=entry.vendor, family=key.family, code=key.code)): entry.id
            for entry in self.entries.values()
            for key in entry.keys
        }
        self._meant = {query.id: self._resolved(query) for query in queries}

    def expected(self, query: Query) -> tuple[str, ...]:
        """Entry ids that are right for a query of the set."""
        return self._meant[query.id]

    def _resolved(self, query: Query) -> tuple[str, ...]:
        ids = []
        for label in (*query.expected, *(name for name in query.forbidden if name != ANYTHING)):
            entry_id = label if label in self.entries else self._rows.get(label)
            if entry_id is None:
                raise SetUnreadable(
                    f"Query {query.id}: the base has no entry and no code {label!r}.",
                    "correct the label, or take the query out if the entry is gone.",
                )
            ids.append(entry_id)
        return tuple(ids[: len(query.expected)])
