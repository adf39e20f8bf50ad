"""From a question to a plan: sub-questions, each with typed steps, under one validator.

The planner is a Protocol; this issue ships the rule form. Few-shot and remote planners will return the same `Plan`
and pass the same `validate`.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from agents.intents import classify, has_symptom
from retrieval.codes import find_codes
from retrieval.records import CodeMention, Record

StepType = Literal["intent", "detect", "retrieve", "judge", "write"]
MAX_PARTS = 8
_ORDER: tuple[StepType, ...] = ("intent", "detect", "retrieve", "judge", "write")
_SENTENCE = re.compile(r"[^.?!;。？！；\n]*(?:\.(?=\d)[^.?!;。？！；\n]*)*[.?!;。？！；\n]*")
# right before, or right after a code: it is not, or no longer, what the question is about
_DENIED = re.compile(
    r"(?:\bnot|\bno\s+longer|\binstead\s+of|\brather\s+than|不是|不再是|并非|而非)\s*(?:the\s+|an?\s+|alarm\s+|code\s+|报警\s*)?$",
    re.IGNORECASE,
)
_GONE = re.compile(
    r"\s*(?:报警|号报警)?\s*(?:(?:is|was|has)\s+(?:now\s+)?(?:gone|cleared|solved|fixed)|went\s+away|(?:已经?|都)?(?:消失|没有?了|解决|修好|消了|清掉|不报了))",
    re.IGNORECASE,
)
_ALSO = re.compile(
    r"\b(?:and\s+also|also|besides|in\s+addition|another\s+(?:thing|problem)|plus)\b|另外|还有|此外|同时|并且还",
    re.IGNORECASE,
)


class PlanError(ValueError):
    """A plan breaks a rule; the message says which."""


class PlanStep(Record):
    """One typed step of a sub-question; `depends_on` names steps of the same sub-question."""

    type: StepType
    depends_on: tuple[StepType, ...] = ()


class SubQuestion(Record):
    """One thing to find out. `mention` is the code it is about, if any; `about_fault` demands retrieval."""

    id: str
    text: str
    mention: CodeMention | None = None
    about_fault: bool
    steps: tuple[PlanStep, ...]


class Plan(Record):
    """What to do for one question; `planner` says who made it."""

    planner: str
    parts: tuple[SubQuestion, ...]


class Planner(Protocol):
    """Splits a question. May be slow or wrong: the caller validates and falls back to rules."""

    name: str

    def plan(self, question: str, vendor: str | None, family: str | None) -> Plan:
        """A plan for `question` on a machine of that vendor and family (None = not known)."""
        ...


def standard_steps() -> tuple[PlanStep, ...]:
    """Every step, each depending on the one before it."""
    return tuple(PlanStep(type=step, depends_on=(_ORDER[i - 1],) if i else ()) for i, step in enumerate(_ORDER))


def validate(plan: Plan) -> Plan:
    """The plan itself, if it may be run.

    Raises:
        PlanError: no part or too many, a repeated id, a step that depends on one that is missing or later, a part
            about a fault that does not retrieve, or one that writes without having judged.
    """
    if not 1 <= len(plan.parts) <= MAX_PARTS:
        raise PlanError(f"a plan has 1 to {MAX_PARTS} parts; this one has {len(plan.parts)}")
    if len({part.id for part in plan.parts}) != len(plan.parts):
        raise PlanError("part ids repeat")
    for part in plan.parts:
        seen: list[StepType] = []
        for step in part.steps:
            if missing := [d for d in step.depends_on if d not in seen]:
                raise PlanError(f"part {part.id}: step {step.type} depends on {missing}, which do not come before it")
            seen.append(step.type)
        if part.about_fault and "retrieve" not in seen:
            raise PlanError(f"part {part.id} is about a fault and must retrieve")
        if "write" in seen and "judge" not in seen:
            raise PlanError(f"part {part.id} writes without judging the evidence")
    return plan


class RulePlanner:
    """One part per code; further parts for sentences that ask something else. No model."""

    name = "rules"

    def plan(self, question: str, vendor: str | None = None, family: str | None = None) -> Plan:
        """See `Planner.plan`."""
        mentions = find_codes(question, vendor=vendor, family=family)
        meant = _without_denied(question, _distinct(mentions))
        parts: list[tuple[str, CodeMention | None]] = [(question, mention) for mention in meant]
        for sentence, start in _sentences(question):
            holds_code = any(start <= m.start < start + len(sentence) for m in mentions)
            if not holds_code and _asks_on_its_own(sentence, bool(parts)):
                parts.append((sentence, None))
        if not parts:
            parts = [(question, None)]
        return validate(
            Plan(
                planner=self.name,
                parts=tuple(
                    SubQuestion(
                        id=f"q{i}",
                        text=text.strip(),
                        mention=mention,
                        about_fault=mention is not None or has_symptom(text),
                        steps=standard_steps(),
                    )
                    for i, (text, mention) in enumerate(parts[:MAX_PARTS], start=1)
                ),
            )
        )


def _distinct(mentions: tuple[CodeMention, ...]) -> list[CodeMention]:
    """Mentions without those that repeat a code already there; a bare number repeats a prefixed one."""
    kept: dict[tuple[str | None, str], CodeMention] = {}
    for mention in mentions:
        first = mention.readings[0]
        kept.setdefault((first.vendor, first.code), mention)
    return list(kept.values())


def _without_denied(question: str, mentions: list[CodeMention]) -> list[CodeMention]:
    """Codes without those that the question takes back ("not SV0401 but SV0410"), as long as one is left."""
    kept = [m for m in mentions if not (_DENIED.search(question[: m.start]) or _GONE.match(question[m.end :]))]
    return kept or mentions


def _sentences(text: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for match in _SENTENCE.finditer(text):
        start = match.start()
        sentence = match.group()
        # "SV0401, and also the spindle growls": the second half asks on its own
        if cut := _ALSO.search(sentence):
            found.append((sentence[: cut.start()], start))
            sentence, start = sentence[cut.start() :], start + cut.start()
        if sentence.strip():
            found.append((sentence, start))
    return found


def _asks_on_its_own(sentence: str, others: bool) -> bool:
    """A sentence is a part if it has an intent of its own; beside a code, a loose symptom is context unless added."""
    intent = classify(sentence, has_code=False)
    if intent in ("procedure", "parameter", "report"):
        return True
    if intent == "symptom":
        return not others or _ALSO.search(sentence) is not None
    return False
