"""The graph: read → plan → (per part) intent → detect → retrieve → judge → write → verify → safety → answer.

Deterministic edges; a model speaks only inside plan and write. Parts of a question run side by side (`Send`) and are
written once. Every step leaves a `StepRecord`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from agents import compose
from agents.detect import Instruction, detect
from agents.evidence import Brought, bring, searched, topic_of
from agents.intents import classify, goes_on, has_symptom
from agents.judge import Finding, judge_part
from agents.plan import PlanError, RulePlanner, SubQuestion, validate
from agents.reading import read_question
from agents.safety import checks_a_safeguard, screen
from agents.state import Cancelled, Context, Conversation, State
from agents.verify import Verified, verify_lead, verify_lines
from agents.wording import say
from agents.write import Draft, draft_entry, draft_next_check, named_checks
from retrieval.records import Evidence, Intent, KnowledgeEntry, Language, StepRecord

Part = dict[str, Any]
RunContext = Runtime[Context]
Fields = dict[str, Any]


def _step(name: str, started: float, inputs: Fields, outputs: Fields, **more: Any) -> list[Fields]:
    record = StepRecord(
        step=name, input=inputs, output=outputs, seconds=round(time.perf_counter() - started, 6), **more
    )
    return [record.model_dump(mode="json")]


def _check_cancel(context: Context) -> None:
    if context.cancel is not None and context.cancel.is_set():
        raise Cancelled


def read(state: State, runtime: RunContext) -> Command[Literal["plan", "answer"]]:
    """Codes, language, machine, the safety screen; danger, a repair and a handover go straight to the answer."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    reading = read_question(state)
    seen = reading.model_dump(mode="json")
    steps = _step(
        "read", started, {"question": state["question"]}, {**seen, "taken_up": reading.question != state["question"]}
    )
    names = ("question", "language", "vendor", "family", "machine", "chosen", "screen", "act")
    update = {name: seen[name] for name in names}
    at_once = reading.screen.verdict == "danger" or reading.act  # nothing is looked up for these
    return Command(update={**update, "steps": steps}, goto="answer" if at_once else "plan")


def plan(state: State, runtime: RunContext) -> Command[Literal["intent"]]:
    """Split into parts; an invalid or failing plan falls back to rules and says so."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    question, vendor, family = state["question"], state.get("vendor"), state.get("family")
    planner = runtime.context.planner
    degraded: list[str] = []
    try:
        made = validate(planner.plan(question, vendor, family))
    except (PlanError, ValueError, TimeoutError, ConnectionError) as error:
        made = RulePlanner().plan(question, vendor, family)
        degraded = [say("deg_planner", cast(Language, state["language"]), reason=str(error))]
    dumped = made.model_dump(mode="json")
    shared = {
        "question": question,
        "language": state["language"],
        "vendor": vendor,
        "family": family,
        "chosen": state.get("chosen"),
        "conversation": state.get("conversation") or {},
    }
    return Command(
        update={
            "plan": dumped,
            "degraded": degraded,
            "steps": _step(
                "plan", started, {"question": question}, {"planner": made.planner, "parts": dumped["parts"]}
            ),
        },
        goto=[Send("intent", {**shared, "part": part}) for part in dumped["parts"]],
    )


def intent(part: Part, runtime: RunContext) -> Command[Literal["detect", "judge"]]:
    """What the person wants with this part. Rules; the model's form comes with its adapter."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    sub = SubQuestion.model_validate(part["part"])
    guess = classify(sub.text, has_code=sub.mention is not None)
    found: Intent = guess or ("symptom" if has_symptom(sub.text) else "other")
    if found != "danger" and checks_a_safeguard(sub.text) and sub.mention is None:
        found = "procedure"
    talk = Conversation.model_validate(part["conversation"])
    if found == "alarm" and goes_on(sub.text) and topic_of(sub.mention, talk):
        found = "follow_up"  # back to an alarm that was spoken of
    if found == "follow_up" and talk.topic is None:
        found = "symptom"
    steps = _step("intent", started, {"part": sub.id, "text": sub.text}, {"intent": found, "by": "rules"})
    return Command(update={"steps": steps}, goto=Send("detect", {**part, "intent": found}))


def detect_node(part: Part, runtime: RunContext) -> Command[Literal["retrieve"]]:
    """The retrieval instruction. Rules; the model's form comes with its adapter."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    sub = SubQuestion.model_validate(part["part"])
    instruction = detect(sub, part["intent"], part["question"], part["vendor"], part["family"])
    dumped = instruction.model_dump(mode="json")
    steps = _step(
        "detect", started, {"part": sub.id}, {k: dumped[k] for k in ("vendor", "family", "parameters", "kinds")}
    )
    return Command(update={"steps": steps}, goto=Send("retrieve", {**part, "instruction": dumped}))


def retrieve(part: Part, runtime: RunContext) -> Command[Literal["judge"]]:
    """Bring candidates. Never skipped for a fault."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    instruction = Instruction.model_validate(part["instruction"])
    brought, steps = _bring(instruction, part, runtime.context, started, relaxed=False)
    return Command(
        update={"steps": steps, "degraded": list(brought.degraded)},
        goto=Send("judge", {**part, "brought": brought.model_dump(mode="json")}),
    )


def _bring(
    instruction: Instruction, part: Part, context: Context, started: float, relaxed: bool
) -> tuple[Brought, list[Fields]]:
    brought = bring(instruction, context.searcher, Conversation.model_validate(part["conversation"]), relaxed)
    found: Fields = {"hits": [_brief(h) for h in brought.hits], "alarms": [_brief(a) for a in brought.alarms]}
    found["words"] = list(brought.words)
    return brought, _step("retrieve", started, {"part": instruction.part_id, "relaxed": relaxed}, found)


def _brief(evidence: Evidence) -> Fields:
    return {
        "entry": evidence.entry_id,
        "similarity": round(evidence.similarity, 3),
        "by": list(evidence.matched_by),
        "code": str(evidence.fault_code or ""),
    }


def judge(part: Part, runtime: RunContext) -> Command[Literal["write"]]:
    """Enough, nothing, or of several minds; where nothing was found the filters are relaxed once.

    That happens inside this node: a branch that went back to `retrieve` would reach `write` later than the others, and
    a deferred `write` did not wait for it (LangGraph 1.2.24).
    """
    started = time.perf_counter()
    _check_cancel(runtime.context)
    instruction = Instruction.model_validate(part["instruction"])
    looked_for = (searched(instruction, runtime.context.searcher, part["language"]),)
    brought = Brought.model_validate(part["brought"])
    finding = judge_part(instruction, brought, looked_for, relaxed=False, chosen=part["chosen"])
    steps = _judged(finding, started)
    degraded: list[str] = []
    if finding.status == "nothing" and instruction.kinds:
        started = time.perf_counter()
        brought, more = _bring(instruction, part, runtime.context, started, relaxed=True)
        finding = judge_part(instruction, brought, looked_for, relaxed=True, chosen=part["chosen"])
        steps += more + _judged(finding, started)
        degraded = list(brought.degraded)
    return Command(
        update={"steps": steps, "degraded": degraded, "findings": [finding.model_dump(mode="json")]}, goto="write"
    )


def _judged(finding: Finding, started: float) -> list[Fields]:
    outcome = {
        "status": finding.status,
        "label": finding.label,
        "evidence": [_brief(e) for e in finding.evidence],
        "candidates": [_brief(e) for e in finding.candidates],
        "near": [_brief(e) for e in finding.near],
    }
    return _step("judge", started, {"part": finding.part_id, "relaxed": finding.relaxed}, outcome)


def write(state: State, runtime: RunContext) -> Command[Literal["verify"]]:
    """One draft per part with enough evidence. The model orders; without it the entry's own order stands."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    context, language = runtime.context, cast(Language, state["language"])
    talk = Conversation.model_validate(state.get("conversation") or {})
    talk = talk.model_copy(update={"machine": state.get("machine") or ""})
    findings = compose.in_plan_order(state)
    drafts: list[Draft] = []
    degraded: list[str] = []
    for finding in findings:
        entry = context.searcher.store.entry(finding.evidence[0].entry_id) if finding.status == "enough" else None
        if entry is None:
            continue
        if finding.intent == "follow_up":
            topic = talk.about(entry.id)
            done = (*(topic.given if topic else ()), *named_checks(entry, finding.text))
            drafts.append(draft_next_check(finding.part_id, entry, done, language)[0])
            continue
        draft = draft_entry(finding.part_id, state["question"], entry, language, context.writer, context.cancel)
        if draft.degraded:
            degraded.append(say("deg_writer", language, reason=draft.degraded))
        drafts.append(draft)
    steps = _step(
        "write",
        started,
        {"parts": [f.part_id for f in findings]},
        {
            "drafts": [
                {"part": d.part_id, "entry": d.entry_id, "lines": len(d.lines), "note": d.note, "lead": d.lead}
                for d in drafts
            ]
        },
        tokens_in=sum(d.tokens_in for d in drafts),
        tokens_out=sum(d.tokens_out for d in drafts),
    )
    return Command(
        update={
            "drafts": [d.model_dump(mode="json") for d in drafts],
            "degraded": list(dict.fromkeys(degraded)),
            "steps": steps,
        },
        goto="verify",
    )


def verify(state: State, runtime: RunContext) -> Command[Literal["safety"]]:
    """Every line against the item it cites."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    store, language = runtime.context.searcher.store, cast(Language, state["language"])
    results: list[Fields] = []
    for raw in state["drafts"]:
        draft = Draft.model_validate(raw)
        entry = store.entry(draft.entry_id)
        entries: dict[str, KnowledgeEntry] = {entry.id: entry} if entry else {}
        checked = verify_lines(draft.lines, entries, language)
        rejected = verify_lead(draft.lead, entry, language) if draft.lead and entry else ""
        checked = checked.model_copy(update={"lead": "" if rejected else draft.lead, "lead_rejected": rejected})
        results.append({"part_id": draft.part_id, "entry_id": draft.entry_id, **checked.model_dump(mode="json")})
    steps = _step(
        "verify",
        started,
        {"drafts": len(results)},
        {
            "removed": [{"item": r["line"]["item_id"], "reason": r["reason"]} for v in results for r in v["removed"]],
            "restored": [i for v in results for i in v["restored"]],
            "lead_rejected": [v["lead_rejected"] for v in results if v["lead_rejected"]],
        },
    )
    return Command(update={"verified": results, "steps": steps}, goto="safety")


def safety(state: State, runtime: RunContext) -> Command[Literal["answer"]]:
    """Screen what is about to be said: a line that tells how to defeat a safeguard goes, whoever wrote it."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    blocked: list[str] = []
    results: list[Fields] = []
    for raw in state["verified"]:
        checked = Verified.model_validate({k: raw[k] for k in Verified.model_fields})
        kept = []
        for line in checked.lines:
            if line.section != "safety" and screen(line.text).verdict == "danger":
                blocked.append(f"{line.entry_id}#{line.item_id}")
            else:
                kept.append(line)
        results.append({**raw, "lines": [line.model_dump(mode="json") for line in kept]})
    return Command(
        update={"verified": results, "steps": _step("safety", started, {}, {"blocked": blocked})}, goto="answer"
    )


def answer(state: State, runtime: RunContext) -> State:
    """Put the one Answer together, and what the next turn should know."""
    started = time.perf_counter()
    result, talk = compose.compose(state, runtime.context.searcher.store)
    steps = _step("answer", started, {}, {"kind": result.kind, "grounded": result.grounded, "chars": len(result.text)})
    return {
        "answer": result.model_dump(mode="json"),
        "next_conversation": talk.model_dump(mode="json"),
        "steps": steps,
    }


@lru_cache(maxsize=1)
def graph() -> Any:
    """The compiled graph; one for all runs, since everything a run needs is in its state and context."""
    builder: Any = StateGraph(State, context_schema=Context)
    nodes: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("read", read),
        ("plan", plan),
        ("intent", intent),
        ("detect", detect_node),
        ("retrieve", retrieve),
        ("judge", judge),
        ("write", write),
        ("verify", verify),
        ("safety", safety),
        ("answer", answer),
    )
    for name, node in nodes:
        builder.add_node(name, node)
    builder.add_edge(START, "read")
    builder.add_edge("answer", END)
    return builder.compile()
