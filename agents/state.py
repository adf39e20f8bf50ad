"""What travels through the graph (plain JSON types) and what stands beside it (the run's context)."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

from agents.plan import Planner, RulePlanner
from models.writer import Writer
from retrieval.records import FaultCode, Language, Record
from retrieval.search import Searcher

MAX_TOPICS = 8
MAX_TRIED = 12
LONGEST_TRIED = 200  # characters


class Topic(Record):
    """One thing that a conversation is about: an entry that was answered from, and what became of it.

    `given` are ids of checks that were given, `tried` what the person said of them, `fixed` what ended it.
    """

    entry_id: str
    fault_code: FaultCode | None = None
    asked: str = ""
    vendor: str | None = None
    family: str | None = None
    machine: str = ""
    given: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    fixed: str = ""


class Conversation(Record):
    """What earlier turns left; bounded, so that a long one stays as small as a short one.

    The control, the machine as people call it, the topics with the current one last, a question still open.
    `pending_repair` is what is asked of a repair: what was done ("action"), or on which machine, with `pending_action`
    as said.
    """

    vendor: str | None = None
    family: str | None = None
    language: Language | None = None
    machine: str = ""
    topics: tuple[Topic, ...] = ()
    pending_question: str = ""
    pending_candidates: tuple[tuple[FaultCode, str], ...] = ()
    pending_repair: Literal["", "action", "machine"] = ""
    pending_action: str = ""

    @property
    def topic(self) -> Topic | None:
        """What is spoken of now."""
        return self.topics[-1] if self.topics else None

    def about(self, entry_id: str) -> Topic | None:
        """The topic of an entry on the machine that is spoken of."""
        found = (topic for topic in reversed(self.topics) if topic.entry_id == entry_id)
        return next((topic for topic in found if topic.machine in ("", self.machine)), None)

    def turned_to(self, topic: Topic) -> Conversation:
        """The conversation with this topic as the current one; the oldest is dropped where there are too many."""
        others = (t for t in self.topics if (t.entry_id, t.machine) != (topic.entry_id, topic.machine))
        return self.model_copy(update={"topics": (*others, topic)[-MAX_TOPICS:]})


class State(TypedDict, total=False):
    """State of one run. Values are what `Record.model_dump(mode="json")` gives, so that a checkpoint holds no class."""

    question: str
    language: str
    vendor: str | None
    family: str | None
    machine: str
    person: str
    act: str
    conversation: dict[str, Any]
    chosen: str | None
    screen: dict[str, Any]
    plan: dict[str, Any]
    findings: Annotated[list[dict[str, Any]], operator.add]
    drafts: list[dict[str, Any]]
    verified: list[dict[str, Any]]
    degraded: Annotated[list[str], operator.add]
    steps: Annotated[list[dict[str, Any]], operator.add]
    answer: dict[str, Any]
    next_conversation: dict[str, Any]
    trace_id: str


@dataclass
class Context:
    """What the nodes work with; never part of the state.

    Args:
        searcher: retrieval over one data home.
        planner: makes plans; an invalid or failing one falls back to rules.
        writer: called when a writer is first needed, so that the engine can load meanwhile; returns None and a reason
            where there is no model.
        cancel: set to stop the run between nodes and inside the engine.
    """

    searcher: Searcher
    planner: Planner = field(default_factory=RulePlanner)
    writer: Callable[[], tuple[Writer | None, str]] = lambda: (None, "no model configured")
    cancel: threading.Event | None = None


class Cancelled(Exception):
    """The run was stopped by its caller."""
