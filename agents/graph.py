"""The graph: read → plan → (per part) intent → detect → retrieve → judge → write → verify → safety → answer.

Deterministic edges; a model speaks only inside plan and write. Parts of a question run side by side (`Send`) and are
written once. Every step leaves a `StepRecord`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Literal, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from agents import compose
from agents.detect import Instruction, detect
from agents.evidence import Brought, bring, searched
from agents.intents import classify, has_symptom
from agents.judge import judge_part
from agents.plan import PlanError, RulePlanner, SubQuestion, validate
from agents.render import first_words
from agents.safety import checks_a_safeguard, screen
from agents.state import Cancelled, Context, Conversation, State
from agents.verify import Verified, verify_lead, verify_lines
from agents.wording import say
from agents.write import Draft, draft_entry, draft_next_check
from retrieval.codes import find_codes, vendors_in
from retrieval.records import Evidence, Intent, KnowledgeEntry, Language, StepRecord
from retrieval.search import Searcher
from retrieval.tokens import has_chinese

Part = dict[str, Any]
RunContext = Runtime[Context]
Fields = dict[str, Any]


def _step(name: str, started: float, inputs: Fields, outputs: Fields, **more: Any) -> list[Fields]:
    record = StepRecord(
        step=name, input=inputs, output=outputs, seconds=round(time.perf_counter() - started, 6), **more
    )
    return [record.model_dump(mode="json")]


def _emit(event: Fields) -> None:
    """Hand an event to whoever streams the run; nothing happens where nobody does."""
    from langgraph.config import get_stream_writer  # noqa: PLC0415

    get_stream_writer()(event)


def _check_cancel(context: Context) -> None:
    if context.cancel is not None and context.cancel.is_set():
        raise Cancelled


def read(state: State, runtime: RunContext) -> Command[Literal["plan", "answer"]]:
    """Codes, language, machine and the safety screen; first words at once where one code is certain."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    question = state["question"]
    verdict = screen(question)
    talk = Conversation.model_validate(state.get("conversation") or {})
    language = cast(Language, state.get("language") or ("zh" if has_chinese(question) else talk.language or "en"))
    vendor, family = state.get("vendor") or talk.vendor, state.get("family") or talk.family
    chosen = None
    if verdict.verdict != "danger":
        question, vendor, family, chosen = _take_up(talk, question, vendor, family)
    mentions = find_codes(question, vendor=vendor, family=family)
    update: State = {
        "question": question,
        "language": language,
        "vendor": vendor,
        "family": family,
        "chosen": chosen,
        "screen": verdict.model_dump(mode="json"),
        "steps": _step(
            "read",
            started,
            {"question": state["question"]},
            {
                "language": language,
                "vendor": vendor,
                "family": family,
                "screen": verdict.verdict,
                "codes": [m.raw for m in mentions],
                "taken_up": question != state["question"],
            },
        ),
    }
    if verdict.verdict == "danger":
        return Command(update=update, goto="answer")
    if len(mentions) == 1:
        _speak_first(runtime.context.searcher, question, language, vendor, family, chosen)
    return Command(update=update, goto="plan")


def _take_up(
    talk: Conversation, reply: str, vendor: str | None, family: str | None
) -> tuple[str, str | None, str | None, str | None]:
    """A short reply to "which controller?" takes up the open question: by number, or by the controller's name."""
    if not talk.pending_candidates or find_codes(reply):
        return reply, vendor, family, None
    named = vendors_in(reply)
    text = reply.strip().rstrip(".。)）")
    if text.isdigit():
        if not 1 <= int(text) <= len(talk.pending_candidates):
            return talk.pending_question, vendor, family, None  # no such choice: ask again
        code, entry_id = talk.pending_candidates[int(text) - 1]
    elif named and len(reply) <= 60:
        fits = [
            (code, entry_id)
            for code, entry_id in talk.pending_candidates
            if code.vendor == named[0][0] and named[0][1] in (None, code.family)
        ]
        if len({entry_id for _, entry_id in fits}) != 1:
            return talk.pending_question, named[0][0], named[0][1], None
        code, entry_id = fits[0]
    else:
        return reply, vendor, family, None
    return talk.pending_question, code.vendor, code.family, entry_id


def _speak_first(
    searcher: Searcher, question: str, language: Language, vendor: str | None, family: str | None, chosen: str | None
) -> None:
    """Emit the row's own facts where the whole question is one code that is certain."""
    parts = RulePlanner().plan(question, vendor, family).parts
    if len(parts) != 1 or parts[0].mention is None or classify(question, has_code=True) != "alarm":
        return
    instruction = detect(parts[0], "alarm", question, vendor, family)
    brought = bring(instruction, searcher, Conversation(), relaxed=False)
    finding = judge_part(instruction, brought, (), relaxed=False, chosen=chosen)
    entry = searcher.store.entry(finding.evidence[0].entry_id) if finding.status == "enough" else None
    if entry is not None:
        _emit({"type": "first_words", "text": first_words(entry, finding.evidence[0].fault_code, language)})


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
    if found == "follow_up" and talk.entry_id is None:
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
    return Command(update={"steps": steps}, goto=Send("retrieve", {**part, "instruction": dumped, "relaxed": False}))


def retrieve(part: Part, runtime: RunContext) -> Command[Literal["judge"]]:
    """Bring candidates. Never skipped for a fault."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    instruction = Instruction.model_validate(part["instruction"])
    talk = Conversation.model_validate(part["conversation"])
    brought = bring(instruction, runtime.context.searcher, talk, part["relaxed"])
    steps = _step(
        "retrieve",
        started,
        {"part": instruction.part_id, "relaxed": part["relaxed"]},
        {"hits": [_brief(h) for h in brought.hits], "alarms": [_brief(a) for a in brought.alarms]},
    )
    return Command(
        update={"steps": steps, "degraded": list(brought.degraded)},
        goto=Send("judge", {**part, "brought": brought.model_dump(mode="json")}),
    )


def _brief(evidence: Evidence) -> Fields:
    return {
        "entry": evidence.entry_id,
        "similarity": round(evidence.similarity, 3),
        "by": list(evidence.matched_by),
        "code": str(evidence.fault_code or ""),
    }


def judge(part: Part, runtime: RunContext) -> Command[Literal["retrieve", "write"]]:
    """Enough, nothing, or of several minds; nothing is relaxed once."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    instruction = Instruction.model_validate(part["instruction"])
    looked_for = (searched(instruction, runtime.context.searcher, part["language"]),)
    finding = judge_part(
        instruction, Brought.model_validate(part["brought"]), looked_for, part["relaxed"], part["chosen"]
    )
    outcome = {
        "status": finding.status,
        "label": finding.label,
        "evidence": [_brief(e) for e in finding.evidence],
        "candidates": [_brief(e) for e in finding.candidates],
        "near": [_brief(e) for e in finding.near],
    }
    relax = finding.status == "nothing" and bool(instruction.kinds) and not part["relaxed"]
    steps = _step("judge", started, {"part": instruction.part_id}, {**outcome, "relax": relax})
    if relax:
        return Command(update={"steps": steps}, goto=Send("retrieve", {**part, "relaxed": True}))
    return Command(update={"steps": steps, "findings": [finding.model_dump(mode="json")]}, goto="write")


def write(state: State, runtime: RunContext) -> Command[Literal["verify"]]:
    """One draft per part with enough evidence. The model orders; without it the entry's own order stands."""
    started = time.perf_counter()
    _check_cancel(runtime.context)
    context, language = runtime.context, cast(Language, state["language"])
    talk = Conversation.model_validate(state.get("conversation") or {})
    findings = compose.in_plan_order(state)
    drafts: list[Draft] = []
    degraded: list[str] = []
    for finding in findings:
        entry = context.searcher.store.entry(finding.evidence[0].entry_id) if finding.status == "enough" else None
        if entry is None:
            continue
        if finding.intent == "follow_up":
            drafts.append(draft_next_check(finding.part_id, entry, talk.given, language)[0])
            continue
        writer, reason = context.writer() if len(entry.of_kind("cause")) > 1 else (None, "")
        if writer is None and reason:
            degraded.append(say("deg_writer", language, reason=reason))
        draft = draft_entry(finding.part_id, state["question"], entry, language, writer, context.cancel)
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
        ("verify", verify),
        ("safety", safety),
        ("answer", answer),
    )
    for name, node in nodes:
        builder.add_node(name, node)
    # parts that relax take two steps more: write waits for all of them and runs once
    builder.add_node("write", write, defer=True)
    builder.add_edge(START, "read")
    builder.add_edge("answer", END)
    return builder.compile()


def run(state: State, context: Context) -> Iterator[Fields]:
    """Run the graph; yields events as they happen.

    Events: `{"type": "first_words", "text"}`, `{"type": "step", "step", "seconds"}`, and last
    `{"type": "answer", "answer", "conversation", "steps"}`.

    Raises:
        Cancelled: `context.cancel` was set.
    """
    final: Fields = {}
    seen = 0
    for mode, chunk in graph().stream(
        state, context=context, stream_mode=["custom", "values"], config={"recursion_limit": 25}
    ):
        if mode == "custom":
            yield chunk
            continue
        final = chunk
        for record in final.get("steps", [])[seen:]:
            yield {"type": "step", "step": record["step"], "seconds": record["seconds"]}
        seen = len(final.get("steps", []))
    yield {
        "type": "answer",
        "answer": final["answer"],
        "conversation": final["next_conversation"],
        "steps": final["steps"],
    }
