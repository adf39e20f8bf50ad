"""The submodel `writer` in point mode: it puts evidence items in order, and never writes a fact.

A small base copies badly and points well: it answers with item ids, and the caller renders the text from the items, so
nothing can be invented or mixed. What comes back is a proposal; the caller checks ids against the evidence, adds what
safety asks for, and verifies a lead before showing it.
"""

from __future__ import annotations

import json
import re
import time
from threading import Event
from typing import Annotated, Protocol

from pydantic import Field, model_validator

from models.engine import Engine, EngineError, Finish, GenerationRequest
from models.prompts import writer_messages, writer_schema
from retrieval.records import Language, Record

_LEAD_WORDS = 30
_LEAD_TOKENS = 90
_TOKENS_PER_ID = 8  # quote, letters, digits, quote, comma, in the worst vocabulary of our bases


class WriterItem(Record):
    """One evidence item: `id` is what the model points with, `kind` and `text` are what it reads."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,24}$")]
    kind: str
    text: str


class WriterTask(Record):
    """What the writer is given. `items` come in the order of retrieval, the best first; their ids differ."""

    question: str
    language: Language
    machine: str = ""
    tried: tuple[str, ...] = ()
    items: Annotated[tuple[WriterItem, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ids_differ(self) -> WriterTask:
        ids = [item.id for item in self.items]
        if len(set(ids)) != len(ids):
            raise ValueError(
                f"item ids repeat: {sorted({i for i in ids if ids.count(i) > 1})}; number them over all entries"
            )
        return self


class WriterOutput(Record):
    """Item ids in the proposed order, each once, perhaps not all; `lead` is empty unless asked for.

    `finish` other than `stop` means that the answer was cut: the ids that were complete are here. `seconds` is wall
    time.
    """

    order: tuple[str, ...]
    lead: str
    tokens_in: int
    tokens_out: int
    seconds: float
    finish: Finish = "stop"


class Writer(Protocol):
    """Puts the items of a task in order."""

    def point(self, task: WriterTask, cancel: Event | None = None) -> WriterOutput:
        """The proposed order.

        Raises:
            EngineError: the model could not answer at all; fall back to `RuleWriter` and say so.
        """


class RuleWriter:
    """`Writer` without a model: the order of retrieval."""

    def point(self, task: WriterTask, cancel: Event | None = None) -> WriterOutput:  # noqa: ARG002 - the Protocol's
        """See `Writer.point`."""
        order = tuple(item.id for item in task.items)
        return WriterOutput(order=order, lead="", tokens_in=0, tokens_out=0, seconds=0.0)


class PointWriter:
    """`Writer` on an engine.

    Args:
        engine: where it runs.
        max_items: how many items, from the first on, the model gets to see; prefill is what costs time.
        timeout_s: limit for one answer, in seconds.
        adapter: the writer's adapter, None for the bare base.
        lead: also ask for one sentence of at most 30 words (60 characters in Chinese).
    """

    def __init__(
        self,
        engine: Engine,
        max_items: int = 6,
        timeout_s: float = 8.0,
        adapter: str | None = None,
        lead: bool = False,
    ) -> None:
        if max_items < 1:
            raise ValueError(f"max_items is {max_items}; at least 1 is valid")
        self._engine = engine
        self._max_items = max_items
        self._timeout_s = timeout_s
        self._adapter = adapter
        self._lead = lead

    def point(self, task: WriterTask, cancel: Event | None = None) -> WriterOutput:
        """See `Writer.point`. A single item is returned at once: there is nothing to order."""
        started = time.monotonic()
        shown = task.items[: self._max_items]
        if len(shown) == 1 and not self._lead:
            return WriterOutput(order=(shown[0].id,), lead="", tokens_in=0, tokens_out=0, seconds=0.0)
        ids = [item.id for item in shown]
        request = GenerationRequest(
            messages=writer_messages(
                question=task.question,
                language=task.language,
                machine=task.machine,
                tried=task.tried,
                items=[(item.id, item.kind, item.text) for item in shown],
                lead=self._lead,
            ),
            adapter=self._adapter,
            max_tokens=10 + sum(_TOKENS_PER_ID + len(item_id) for item_id in ids) + (_LEAD_TOKENS if self._lead else 0),
            json_schema=writer_schema(ids, task.language, self._lead),
            timeout_s=self._timeout_s,
        )
        answer = self._engine.generate(request, cancel=cancel)
        named, lead = _read(answer.text)
        order = tuple(dict.fromkeys(item_id for item_id in named if item_id in ids))
        if not order and answer.finish != "cancelled":
            raise EngineError(
                f"the writer gave no item id ({answer.finish} after {answer.tokens_out} tokens): {answer.text[:80]!r}."
                " Next: raise timeout_s, or use the rule writer"
            )
        return WriterOutput(
            order=order,
            lead=_short("" if lead in request.messages[0].content else lead),  # an untrained base repeats its order
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            seconds=time.monotonic() - started,
            finish=answer.finish,
        )


def _read(text: str) -> tuple[list[str], str]:
    """Ids and lead of an answer; of a cut one, the ids that were complete."""
    try:
        value = json.loads(text)
        return [str(one) for one in value["order"]], str(value.get("lead", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        inside = text.partition("[")[2].partition("]")[0]
        return re.findall(r'"([^"]+)"', inside), ""


def _short(lead: str) -> str:
    return " ".join(lead.split()[:_LEAD_WORDS])
