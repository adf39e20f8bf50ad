"""What travels through the graph (plain JSON types) and what stands beside it (the run's context)."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from agents.plan import Planner, RulePlanner
from models.writer import Writer
from retrieval.records import FaultCode, Language, Record
from retrieval.search import Searcher


class Conversation(Record):
    """What earlier turns left.

    The control, the machine as people call it, the entry last spoken of, checks already given, a question still open.
    """

    vendor: str | None = None
    family: str | None = None
    language: Language | None = None
    entry_id: str | None = None
    fault_code: FaultCode | None = None
    given: tuple[str, ...] = ()
    machine: str = ""
    pending_question: str = ""
    pending_candidates: tuple[tuple[FaultCode, str], ...] = ()


class State(TypedDict, total=False):
    """State of one run. Values are what `Record.model_dump(mode="json")` gives, so that a checkpoint holds no class."""

    question: str
    language: str
    vendor: str | None
    family: str | None
    machine: str
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
