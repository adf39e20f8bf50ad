"""From verified lines and findings to the one Answer, its text, and what the next turn should know."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, cast

from agents import ending
from agents.fixed import only_next
from agents.judge import Finding
from agents.quotes import quoted, quotes_text, section_of
from agents.render import (
    DraftLine,
    cause_numbers,
    code_label,
    codes_label,
    entry_label,
    heading,
    is_note,
    section_text,
    sources_text,
    to_be_confirmed,
)
from agents.safety import Screen
from agents.shop_notes import notes_on, with_notes
from agents.state import LONGEST_TRIED, MAX_TRIED, Conversation, State, Topic
from agents.wording import say
from agents.write import named_checks
from retrieval.documents import now
from retrieval.families import family_title, vendor_title
from retrieval.records import (
    Answer,
    Candidate,
    Citation,
    CitedItem,
    Clarify,
    FaultCode,
    Intent,
    KnowledgeEntry,
    Language,
    Refusal,
    Section,
)
from retrieval.store import KnowledgeStore

# Below this similarity an answer says that its guide is only the closest one there is.
SURE = 0.65
_REASONS = {
    "unknown_code": "unknown_code",
    "unknown_parameter": "unknown_code",
    "nothing": "no_evidence",
    "out_of_scope": "out_of_scope",
}


def in_plan_order(state: State) -> list[Finding]:
    """Findings in the order of the plan's parts: branches may finish in any order."""
    order = {part["id"]: n for n, part in enumerate(state.get("plan", {}).get("parts", []))}
    findings = [Finding.model_validate(raw) for raw in state.get("findings", [])]
    return sorted(findings, key=lambda f: order.get(f.part_id, 99))


def compose(state: State, store: KnowledgeStore) -> tuple[Answer, Conversation]:
    """The Answer of a run, and the conversation state after it."""
    language = cast(Language, state["language"])
    talk = Conversation.model_validate(state.get("conversation") or {})
    pending = {"pending_repair": talk.pending_repair, "pending_action": talk.pending_action}
    talk = talk.model_copy(
        update={
            "language": language,
            "vendor": state.get("vendor"),
            "family": state.get("family"),
            "machine": state.get("machine") or "",
            "pending_question": "",
            "pending_candidates": (),
            "pending_repair": "",
            "pending_action": "",
        }
    )
    verdict = Screen.model_validate(state["screen"])
    shared: dict[str, Any] = {
        "id": uuid.uuid4().hex[:16],
        "language": language,
        "trace_id": state["trace_id"],
        "degraded": tuple(dict.fromkeys(state.get("degraded", []))),
    }
    if verdict.verdict == "danger":
        return _danger(shared, verdict, language), talk
    person = state.get("person") or ""
    if state.get("act") == "fixed":
        return ending.fixed(store, shared, talk.model_copy(update=pending), state["question"], person, language)
    if state.get("act") == "report":
        return ending.report(store, shared, talk, person, now()[:10], language), talk
    findings = in_plan_order(state)
    enough = [f for f in findings if f.status == "enough"]
    if enough:
        return _answer(state, store, shared, findings, language, talk)
    asking = next((f for f in findings if f.status in ("ambiguous", "too_little")), None)
    if asking is not None:
        clarify, text = _clarify(asking, store, language)
        candidates = tuple((c.fault_code, c.entry_id) for c in clarify.candidates)
        if candidates:
            talk = talk.model_copy(update={"pending_question": state["question"], "pending_candidates": candidates})
        return Answer(**shared, kind="clarify", intent=asking.intent, text=text, clarify=clarify), talk
    refused = findings[0]
    refusal, text = _refusal(refused, store, language)
    intent: Intent = "other" if refused.status == "out_of_scope" else refused.intent
    return Answer(**shared, kind="refuse", intent=intent, text=text, refusal=refusal), talk


def _danger(shared: dict[str, Any], verdict: Screen, language: Language) -> Answer:
    keys = ("danger_person_2", "danger_1") if verdict.person else ("danger_1", "danger_2", "danger_3")
    advice = tuple(say(key, language) for key in keys)
    first = say("danger_person" if verdict.person else "danger", language, safeguard=verdict.safeguard)
    text = "\n".join([first, *(f"- {line}" for line in advice)])
    return Answer(**shared, kind="safety", intent="danger", text=text, safety=advice)


def _answer(
    state: State,
    store: KnowledgeStore,
    shared: dict[str, Any],
    findings: Sequence[Finding],
    language: Language,
    talk: Conversation,
) -> tuple[Answer, Conversation]:
    verified = {raw["part_id"]: raw for raw in state["verified"]}
    entries: dict[str, KnowledgeEntry] = {}
    numbers: dict[str, int] = {}
    sections: list[Section] = []
    blocks: list[str] = []
    codes: list[FaultCode] = []
    refusal: Refusal | None = None
    clarify: Clarify | None = None
    for finding in findings:
        raw = verified.get(finding.part_id)
        if finding.status == "enough" and raw is not None:
            entry = store.entry(finding.evidence[0].entry_id)
            if entry is None or entry.id in entries:
                continue  # two parts of the question led to the same entry: say it once
            entries[entry.id] = entry
            numbers[entry.id] = len(numbers) + 1
            asked = finding.evidence[0].fault_code
            if asked is not None:
                codes.append(asked)
            made = _sections(entry, raw["lines"], numbers[entry.id], language)
            found = notes_on(store, [evidence.entry_id for evidence in finding.evidence], talk.machine)
            whole = finding.intent != "follow_up"
            made = with_notes(made, found, entry.id, numbers[entry.id], language, all_of=whole)
            if whole:
                code = finding.evidence[0].fault_code
                before = ending.last_time(store, entry, code, talk.machine, numbers[entry.id], language)
                made = ending.with_last_time(made, before)
            made += _quoted(finding, store, entries, numbers, language)
            made += _related(finding, store, entries, numbers, language)
            sections += made
            blocks.append(_block(entry, asked, made, raw["lead"], finding, language, entries))
        elif finding.status == "too_little":
            continue  # beside a part that was answered it is only context
        elif finding.status == "ambiguous":
            clarify, text = _clarify(finding, store, language)
            blocks.append(f"## {say('not_answered', language)}: {text}")
        else:
            refusal, text = _refusal(finding, store, language)
            blocks.append(f"## {say('not_answered', language)}: {text}")
    citations = tuple(_citation(entries[e], n, sections, language) for e, n in numbers.items())
    text = "\n\n".join(blocks) + "\n" + sources_text(citations, entries, language)
    said = [(s.name, item) for s in sections for item in s.items if not is_note(item.item_id)]
    shown = [item for name, item in said if name not in ("related", "documents")] or [item for _, item in said]
    result = Answer(
        **shared,
        kind="answer",
        intent=next(f.intent for f in findings if f.status == "enough"),
        text=text,
        sections=tuple(sections),
        codes=tuple(codes),
        citations=citations,
        safety=tuple(dict.fromkeys(i.text for s in sections if s.name in ("safety", "stop_or_run") for i in s.items)),
        clarify=clarify,
        refusal=refusal,
        grounded=_grounded(shown, entries),
    )
    if codes:
        family = talk.family if talk.vendor == codes[0].vendor else None
        talk = talk.model_copy(update={"vendor": codes[0].vendor, "family": family})
    answered = [finding for finding in findings if finding.status == "enough"]
    for finding in reversed(answered):  # the first part is what is spoken of next
        talk = talk.turned_to(_topic(finding, talk, store, sections))
    return result, talk


def _topic(finding: Finding, talk: Conversation, store: KnowledgeStore, sections: Sequence[Section]) -> Topic:
    """What this turn adds to the topic of its entry: the check that was given, and what the person said of one."""
    entry_id = finding.evidence[0].entry_id
    topic = talk.about(entry_id) or Topic(entry_id=entry_id)
    said = " ".join(finding.text.split())[:LONGEST_TRIED]
    if finding.intent != "follow_up":
        if topic.fixed:
            topic = Topic(entry_id=entry_id)  # it came back: a new incident
        asked = {"asked": said, "fault_code": finding.evidence[0].fault_code}
        return topic.model_copy(
            update={**asked, "vendor": talk.vendor, "family": talk.family, "machine": talk.machine}
        )
    entry = store.entry(entry_id)
    checks = (i for s in sections if s.name == "next_check" for i in s.items if not is_note(i.item_id))
    named = named_checks(entry, finding.text) if entry else ()
    new = (*named, *(i.item_id for i in checks if i.entry_id == entry_id))
    return topic.model_copy(
        update={
            "given": tuple(dict.fromkeys((*topic.given, *new))),
            "tried": (topic.tried if only_next(said) else (*topic.tried, said))[-MAX_TRIED:],
            "machine": topic.machine or talk.machine,
        }
    )


def _sections(entry: KnowledgeEntry, lines: Sequence[dict[str, Any]], number: int, language: Language) -> list[Section]:
    grouped: dict[str, list[CitedItem]] = {}
    for raw in lines:
        line = DraftLine.model_validate(raw)
        grouped.setdefault(line.section, []).append(
            CitedItem(
                text=line.text,
                entry_id=line.entry_id,
                item_id=line.item_id,
                citation=number,
                to_be_confirmed=to_be_confirmed(entry, line.item_id),
            )
        )
    return [Section(name=name, heading=say(name, language), items=tuple(items)) for name, items in grouped.items()]


def _quoted(
    finding: Finding,
    store: KnowledgeStore,
    entries: dict[str, KnowledgeEntry],
    numbers: dict[str, int],
    language: Language,
) -> list[Section]:
    """Further sources of the same code, and passages of the shop's documents: in their own words."""
    items: list[CitedItem] = []
    for entry in store.entries(evidence.entry_id for evidence in finding.evidence[1:]):
        if entry.id not in entries:
            entries[entry.id] = entry
            numbers[entry.id] = len(numbers) + 1
            items += quoted(entry, numbers[entry.id], language)
    return [section_of(items, language)] if items else []


def _related(
    finding: Finding,
    store: KnowledgeStore,
    entries: dict[str, KnowledgeEntry],
    numbers: dict[str, int],
    language: Language,
) -> list[Section]:
    """Entries close behind the best one: named with their titles, not advised from."""
    items: list[CitedItem] = []
    for evidence in finding.near:
        entry = store.entry(evidence.entry_id)
        if entry is None or entry.id in entries:
            continue
        entries[entry.id] = entry
        numbers[entry.id] = len(numbers) + 1
        title = entry.title.get(language)
        key = "also_look" if entry.keys else "also_entry"
        label = code_label(entry.fault_codes[0], language) if entry.keys else ""
        items.append(
            CitedItem(
                text=say(key, language, label=label, title=title),
                entry_id=entry.id,
                item_id="@title",
                citation=numbers[entry.id],
                to_be_confirmed=entry.status in ("unverified", "disputed"),
            )
        )
    return [Section(name="related", heading=say("related", language), items=tuple(items))] if items else []


def _block(
    entry: KnowledgeEntry,
    asked: FaultCode | None,
    sections: Sequence[Section],
    lead: str,
    finding: Finding,
    language: Language,
    entries: dict[str, KnowledgeEntry],
) -> str:
    lines = [heading(entry, asked, language)]
    if finding.evidence[0].similarity < SURE:
        lines.insert(0, say("closest", language))
    if lead:
        lines.append(lead)
    numbers = cause_numbers(entry, sections)
    for section in sections:
        if section.name == "documents":
            sources = (entry, *(entries[item.entry_id] for item in section.items))
            disputed = any(source.status == "disputed" for source in sources)
            stops = entry.stop_or_run == "stop_now" and entry.kind in ("alarm", "guide")
            lines.append(quotes_text(section, entries, language, disputed=disputed, stops=stops))
        else:
            lines.append(section_text(entry, section, language, numbers))
    if finding.intent == "follow_up" and not any(s.name == "next_check" for s in sections):
        lines.insert(1, say("no_more_checks", language))
    return "\n".join(lines)


def _citation(entry: KnowledgeEntry, number: int, sections: Sequence[Section], language: Language) -> Citation:
    lines = (i for s in sections for i in s.items if not is_note(i.item_id))
    ids = tuple(dict.fromkeys(i.item_id for i in lines if i.entry_id == entry.id))
    label = entry_label(entry)
    title = f"{label}: {entry.title.get(language)}" if label else entry.title.get(language)
    return Citation(
        number=number, entry_id=entry.id, item_ids=ids, title=title, status=entry.status, sources=entry.sources
    )


def _grounded(items: Sequence[CitedItem], entries: dict[str, KnowledgeEntry]) -> float:
    """Share of the shown lines that rest on a named source: fields on any source of the entry, items on their own."""
    if not items:
        return 0.0
    held = 0
    for cited in items:
        entry = entries[cited.entry_id]
        item = entry.item(cited.item_id)
        held += bool(item.sources if item else entry.sources)
    return round(held / len(items), 3)


def _clarify(finding: Finding, store: KnowledgeStore, language: Language) -> tuple[Clarify, str]:
    """The question back. Families of one vendor that share an entry are one candidate: the meaning is the same."""
    if finding.status == "too_little":
        machine = _machine_label(finding, language)
        noted = [say("noted_machine", language, machine=machine)] if machine else []
        text = " ".join([*noted, say("tell_more", language)])
        return Clarify(question=text, candidates=()), text
    grouped: dict[tuple[str, str], list[FaultCode]] = {}
    for evidence in finding.candidates:
        if evidence.fault_code is not None:
            grouped.setdefault((evidence.fault_code.vendor, evidence.entry_id), []).append(evidence.fault_code)
    entries = {e.id: e for e in store.entries(entry_id for _, entry_id in grouped)}
    candidates: list[Candidate] = []
    for (_, entry_id), fault_codes in grouped.items():
        if (entry := entries.get(entry_id)) is None:
            continue
        stop = "。" if language == "zh" else ". "
        title, meaning = entry.title.get(language).rstrip(". 。"), entry.meaning.get(language)
        candidates.append(
            Candidate(
                fault_code=fault_codes[0],
                entry_id=entry_id,
                label=codes_label(fault_codes, language),
                meaning=f"{title}{stop}{meaning}",
            )
        )
    one_vendor = len({c.fault_code.vendor for c in candidates}) == 1
    if one_vendor and candidates[0].fault_code.vendor == finding.vendor:
        key = "ask_family"
    else:
        key = "ask_one" if len(candidates) == 1 else "ask_controller"
    question = say(key, language, label=finding.label)
    lines = [f"{n}. {c.label}: {c.meaning}" for n, c in enumerate(candidates, start=1)]
    example = vendor_title(candidates[0].fault_code.vendor, language) if candidates else "FANUC"
    reply = say("ask_reply", language, example=example)
    return Clarify(question=question, candidates=tuple(candidates)), "\n".join([question, *lines, reply])


def _machine_label(finding: Finding, language: Language) -> str:
    if finding.vendor and finding.family:
        return family_title(finding.vendor, finding.family, language)
    return vendor_title(finding.vendor, language) if finding.vendor else ""


def _refusal(finding: Finding, store: KnowledgeStore, language: Language) -> tuple[Refusal, str]:
    on = say("on_vendor", language, vendor=vendor_title(finding.vendor, language)) if finding.vendor else ""
    status = finding.status
    if finding.intent == "report":
        first, next_step = say("report_later", language), say("next_no_evidence", language)
    elif status in ("unknown_code", "unknown_parameter"):
        first = say(status, language, label=finding.label, on=on)
        next_step = say(f"next_{status}", language)
    else:
        key = _REASONS[status]
        first, next_step = say(key, language), say(f"next_{key}", language)
    searched = finding.searched if status != "out_of_scope" else ()
    codes = tuple(_to_look_for(entry, language) for entry in store.entries(hit.entry_id for hit in finding.near))
    lines = [first, *(f"{say('searched', language)}: {line}" for line in searched)]
    lines += [f"{say('look_for', language)}: {line}" for line in codes]
    withheld = tuple(
        say("withheld_row", language, document=row.document, place=row.place, label=row.code)
        for row in finding.withheld
    )
    lines += withheld
    reason = cast(Any, _REASONS[status])
    refusal = Refusal(reason=reason, searched=searched, look_for=codes, withheld=withheld, next_step=next_step)
    return refusal, "\n".join([*lines, next_step])


def _to_look_for(entry: KnowledgeEntry, language: Language) -> str:
    """An alarm that may stand on the display, for a symptom that no guide answers; never advised from."""
    title = entry.title.get(language)
    if not entry.keys:
        return title
    return say("also_look", language, label=code_label(entry.fault_codes[0], language), title=title)


def first_line(answer: dict[str, Any]) -> str:
    """First line of an answer's text, for a table or a list."""
    return str(answer["text"]).splitlines()[0]
