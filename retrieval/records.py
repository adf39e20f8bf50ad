"""Records that every room shares: what a code, a piece of evidence, a plan step and an answer are.

Plain, frozen, JSON-able. One definition each; nothing here reads a file or talks to a model.
Languages are "zh" and "en" throughout. Offsets count characters of the original text.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Language = Literal["zh", "en"]
Intent = Literal["alarm", "symptom", "procedure", "parameter", "follow_up", "report", "other", "danger"]
EntryKind = Literal["alarm", "guide", "procedure", "parameter", "passage"]
ItemKind = Literal[
    "safety",
    "cause",
    "check",
    "action",
    "prevention",  # alarms and guides
    "condition",
    "step",
    "confirm",  # procedures: what must hold first, what to do, how to see that it worked
    "range",
    "effect",
    "backup",  # parameters: unit and range, what it changes, what to save first
]
Status = Literal["verified", "machine_checked", "unverified", "disputed"]
StopOrRun = Literal["stop_now", "stop_at_safe_point", "may_continue"]
Reset = Literal["reset_key", "clear_cause_first", "power_cycle", "homing", "unknown"]
Severity = Literal["fault", "warning", "message"]
Match = Literal["exact", "keyword", "vector"]


# Control characters, and those that turn the direction of text or hide in it: no text that is shown may hold one.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


class Record(BaseModel):
    """Base of all records: frozen, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Bilingual(Record):
    """The same statement in English and Chinese; one side may be missing in ingested material."""

    en: str = Field(default="", max_length=4000)
    zh: str = Field(default="", max_length=4000)

    @model_validator(mode="after")
    def _one_side_present(self) -> Bilingual:
        if not (self.en.strip() or self.zh.strip()):
            raise ValueError("needs text in 'en' or 'zh'")
        if hit := UNPRINTABLE.search(self.en + self.zh):
            raise ValueError(
                f"holds the control character U+{ord(hit.group()):04X}, which a terminal could obey"
            )
        return self

    def get(self, language: Language) -> str:
        """Text in `language`, or in the other one where it is missing."""
        return (self.zh or self.en) if language == "zh" else (self.en or self.zh)


class FaultCode(Record):
    """The key of a code: a number alone means different things on different controllers."""

    vendor: str
    family: str
    code: str

    def __str__(self) -> str:
        return f"{self.vendor}/{self.family}/{self.code}"


class CodeReading(Record):
    """One way to read a mention. `vendor` or `family` is None where the spelling does not settle it."""

    vendor: str | None
    family: str | None
    code: str


class CodeMention(Record):
    """A code as it stands in a text.

    `start`/`end` are offsets in the original text and `raw` is text[start:end]. `readings` go from the likeliest
    on. `bare` is True for a number that only a word such as "alarm" or "号报警" marks as a code: it has no vendor
    of its own.
    """

    raw: str
    start: int
    end: int
    readings: tuple[CodeReading, ...]
    bare: bool


class Source(Record):
    """Where a statement was read. `place` is the page, section, row or heading inside `address`."""

    id: str
    title: str
    address: str
    place: str
    publisher: str
    licence: str = "unknown"
    read_on: str
    supports: str = ""


class Item(Record):
    """One numbered statement of an entry: the smallest thing an answer may cite.

    `expect` is the reading that a check should give; `for_causes` names the cause items that a check or an action
    serves; `sources` names the sources that say so: empty means trade practice, shown as to be confirmed.
    """

    id: str = Field(pattern=r"^[a-z]{1,2}[0-9]{1,2}$")
    kind: ItemKind
    text: Bilingual
    expect: Bilingual | None = None
    for_causes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class FamilyCode(Record):
    """A code within one family of the entry's vendor; `last` is the end of a range such as 4500-4509, else empty."""

    family: str
    code: str
    last: str = ""


class Reread(Record):
    """Who read the sources again, and what came of it."""

    by: str
    on: str
    sources: tuple[str, ...]
    result: str


class KnowledgeEntry(Record):
    """A code, guide, procedure or parameter, in both languages, with its sources and how far it can be trusted."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9./:_-]*$")
    kind: EntryKind
    vendor: str
    keys: tuple[FamilyCode, ...] = ()
    component: str = ""
    title: Bilingual
    meaning: Bilingual
    severity: Severity = "fault"
    stop_or_run: StopOrRun = "stop_at_safe_point"
    stop_reason: Bilingual | None = None
    reset: Reset = "unknown"
    items: tuple[Item, ...]
    phrases: dict[Language, tuple[str, ...]] = Field(default_factory=dict)
    related: tuple[str, ...] = ()
    sources: tuple[Source, ...]
    status: Status = "unverified"
    status_note: str = ""
    written_by: str = ""
    verified_by: str = ""
    reread: Reread | None = None

    @model_validator(mode="after")
    def _hangs_together(self) -> KnowledgeEntry:
        ids = [item.id for item in self.items]
        if len(set(ids)) != len(ids):
            raise ValueError(f"{self.id}: item ids repeat: {sorted({i for i in ids if ids.count(i) > 1})}")
        source_ids = {source.id for source in self.sources}
        causes = {item.id for item in self.items if item.kind == "cause"}
        for item in self.items:
            if unknown := set(item.sources) - source_ids:
                raise ValueError(
                    f"{self.id} item {item.id}: unknown sources {sorted(unknown)}; known: {sorted(source_ids)}"
                )
            if unknown := set(item.for_causes) - causes:
                raise ValueError(
                    f"{self.id} item {item.id}: for_causes {sorted(unknown)} are not causes here: {sorted(causes)}"
                )
        if self.kind == "alarm" and not self.keys:
            raise ValueError(f"{self.id}: an alarm needs at least one key (family and code)")
        if self.status == "machine_checked":
            publishers = {source.publisher for source in self.sources}
            if len(publishers) < 2 or self.reread is None:
                raise ValueError(
                    f"{self.id}: machine_checked needs two sources of different publishers and a reread by another"
                    f" reader; it has {len(publishers)} publisher(s) and reread={'yes' if self.reread else 'no'}"
                )
            if self.reread.by == self.written_by:
                raise ValueError(f"{self.id}: reread.by must not be the writer ({self.written_by!r})")
        if (self.status == "verified") != bool(self.verified_by):
            raise ValueError(f"{self.id}: status 'verified' and a named verified_by go together")
        return self

    @property
    def fault_codes(self) -> tuple[FaultCode, ...]:
        """Every (vendor, family, code) that this entry answers to."""
        return tuple(FaultCode(vendor=self.vendor, family=key.family, code=key.code) for key in self.keys)

    def item(self, item_id: str) -> Item | None:
        """The item of that id, or None."""
        return next((item for item in self.items if item.id == item_id), None)

    def of_kind(self, kind: ItemKind) -> tuple[Item, ...]:
        """Items of one kind, in the entry's own order."""
        return tuple(item for item in self.items if item.kind == kind)


class Evidence(Record):
    """An entry that retrieval brought, with one similarity in [0, 1] and why it matched.

    `similarity` is 1.0 for an exact code, else how near the question is in meaning and words (`retrieval.search`).
    `rank_score` is the fused rank score, comparable only within one search. `off_part` is True where the question names
    a part of the machine that the entry never speaks of: it must not be answered from. `entry_kind` is that of the
    entry, where a search brought it.
    """

    entry_id: str
    kind: Literal["manual", "note", "repair"] = "manual"
    similarity: Annotated[float, Field(ge=0.0, le=1.0)]
    matched_by: tuple[Match, ...]
    rank_score: float = 0.0
    off_part: bool = False
    entry_kind: EntryKind | None = None
    fault_code: FaultCode | None = None


class Machine(Record):
    """What is known of the machine in front of the technician."""

    id: str = ""
    name: str = ""
    vendor: str | None = None
    family: str | None = None


class Repair(Record):
    """What was done on which machine for which code or symptom, and whether it held."""

    machine_id: str
    fault_code: FaultCode | None = None
    symptom: str = ""
    action: str
    held: bool | None = None
    at: str


class Turn(Record):
    """One exchange of a conversation."""

    question: str
    answer_id: str
    fault_codes: tuple[FaultCode, ...] = ()
    tried: tuple[str, ...] = ()


class StepRecord(Record):
    """One step of a run: serves log, trace, replay and tests alike. `seconds` is wall time."""

    step: str
    input: dict[str, Any] = Field(default_factory=dict)
    output: dict[str, Any] = Field(default_factory=dict)
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    error: str = ""


class Citation(Record):
    """What a numbered mark in an answer points to."""

    number: int
    entry_id: str
    item_ids: tuple[str, ...]
    title: str
    status: Status
    sources: tuple[Source, ...]


class CitedItem(Record):
    """One line of an answer: the text as shown, and the one entry item that it renders."""

    text: str
    entry_id: str
    item_id: str
    citation: int
    to_be_confirmed: bool = False


class Section(Record):
    """A part of an answer, in the order to show it."""

    name: Literal[
        "stop_or_run",
        "safety",
        "meaning",
        "symptom",
        "diagnosis",
        "action",
        "prevention",
        "conditions",
        "steps",
        "confirm",
        "range",
        "effect",
        "backup",
        "next_check",
        "documents",
        "shop_notes",
        "last_time",
        "report",
        "related",
    ]
    heading: str
    items: tuple[CitedItem, ...]


class Candidate(Record):
    """One possible reading of an ambiguous code, with its meaning, so that a person can choose."""

    fault_code: FaultCode
    entry_id: str
    label: str
    meaning: str


class Clarify(Record):
    """A question back. `candidates` may be short of what exists: only the knowledge base is listed."""

    question: str
    candidates: tuple[Candidate, ...]


class Refusal(Record):
    """Why there is no answer, what was searched, alarms that may stand on the display, and what would help.

    `withheld` names rows on the code that the shop's documents have and that are not answered from.
    """

    reason: Literal["unknown_code", "no_evidence", "out_of_scope", "unreadable"]
    searched: tuple[str, ...]
    look_for: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    next_step: str


class Answer(Record):
    """The one result object of every path: stream, blocking call, history and export."""

    id: str
    kind: Literal["answer", "clarify", "refuse", "safety"]
    language: Language
    intent: Intent
    text: str
    sections: tuple[Section, ...] = ()
    codes: tuple[FaultCode, ...] = ()
    citations: tuple[Citation, ...] = ()
    safety: tuple[str, ...] = ()
    clarify: Clarify | None = None
    refusal: Refusal | None = None
    grounded: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    degraded: tuple[str, ...] = ()
    trace_id: str
