"""How a conversation ends: what fixed it is kept for this machine, and the handover is written from what was said.

Nothing is looked up and no model speaks: the repair is the person's own words, the handover is the topics of the
conversation with the entries' own texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.fixed import says_what, without_verdict
from agents.render import REPAIR, code_label, render
from agents.screening import hostile
from agents.state import Conversation, Topic
from agents.wording import say
from retrieval.code_context import names_in
from retrieval.codes import fold
from retrieval.errors import RetrievalError
from retrieval.records import Answer, CitedItem, Clarify, FaultCode, KnowledgeEntry, Language, Section
from retrieval.repairs import StoredRepair, put_repair, repairs_of
from retrieval.store import KnowledgeStore

MOST_REPAIRS = 3
# A repair stands after the last of these: nothing of the shop's comes before them.
_FIRST = ("stop_or_run", "safety", "symptom", "meaning", "conditions")


def fixed(
    store: KnowledgeStore, shared: dict[str, Any], talk: Conversation, said: str, person: str, language: Language
) -> tuple[Answer, Conversation]:
    """Keep what fixed the current topic on its machine; asks for what was done, and on which machine, where unsaid."""
    topic = talk.topic
    assert topic is not None, "a repair is of something that was spoken of"
    action = without_verdict(" ".join(said.split()))
    machine = talk.machine if names_a_machine(talk.machine) else ""
    if talk.pending_repair == "machine":
        action, machine = talk.pending_action, machine or said
    elif not talk.pending_repair and not says_what(action):
        return _ask(shared, talk, "action", "", language)
    if reason := hostile(action):
        return _answered(shared, say("repair_refused", language, reason=reason)), _closed(talk)
    if not machine:
        return _ask(shared, talk, "machine", action, language)
    try:
        put_repair(
            store, key=shared["trace_id"], machine=machine, code=topic.fault_code, entry_id=topic.entry_id,
            action=action, by=person or say("somebody", language),
        )  # fmt: skip
    except RetrievalError as error:
        return _answered(shared, say("repair_not_kept", language, reason=error.what)), _closed(talk)
    label = code_label(topic.fault_code, language) if topic.fault_code else _title(store, topic, language)
    text = say("repair_kept", language, machine=machine, label=label, action=action)
    kept = _closed(talk).model_copy(update={"machine": machine})
    return _answered(shared, text), kept.turned_to(topic.model_copy(update={"fixed": action, "machine": machine}))


def _ask(
    shared: dict[str, Any], talk: Conversation, what: str, action: str, language: Language
) -> tuple[Answer, Conversation]:
    text = say(f"repair_ask_{what}", language)
    answer = Answer(
        **shared, kind="clarify", intent="report", text=text, clarify=Clarify(question=text, candidates=())
    )
    return answer, talk.model_copy(update={"pending_repair": what, "pending_action": action})


def _answered(shared: dict[str, Any], text: str) -> Answer:
    return Answer(**shared, kind="answer", intent="report", text=text, grounded=0.0)


def _closed(talk: Conversation) -> Conversation:
    return talk.model_copy(update={"pending_repair": "", "pending_action": ""})


def _title(store: KnowledgeStore, topic: Topic, language: Language) -> str:
    entry = store.entry(topic.entry_id)
    return entry.title.get(language) if entry else topic.entry_id


def names_a_machine(text: str) -> bool:
    """True if a machine's description says which one it is: "FANUC 0i-MF" is a control that stands on many."""
    folded = fold(text)[0]
    for name in reversed(names_in(folded)):
        folded = f"{folded[: name.start]} {folded[name.end :]}"
    return any(char.isalnum() for char in folded)


def last_time(
    store: KnowledgeStore, entry: KnowledgeEntry, code: FaultCode | None, machine: str, number: int, language: Language
) -> Section | None:
    """What fixed the same on this machine before: said as what was reported, not as advice."""
    known = repairs_of(store, machine, entry.id, code) if names_a_machine(machine) else ()
    found = [repair for repair in known if not hostile(repair.action)][:MOST_REPAIRS]
    if not found:
        return None
    lines = tuple(_line(repair, entry.id, number, language) for repair in found)
    return Section(name="last_time", heading=say("last_time", language), items=lines)


def _line(repair: StoredRepair, entry_id: str, number: int, language: Language) -> CitedItem:
    text = say("repair_line", language, on=repair.at[:10], action=repair.action, by=repair.by, machine=repair.machine)
    return CitedItem(
        text=text, entry_id=entry_id, item_id=f"{REPAIR}{repair.id}", citation=number, to_be_confirmed=False
    )


def with_last_time(sections: Sequence[Section], section: Section | None) -> list[Section]:
    """Sections with the repairs as the first evidence after what is said for safety."""
    made = list(sections)
    if section is not None:
        place = max((n for n, one in enumerate(made, start=1) if one.name in _FIRST), default=0)
        made.insert(place, section)
    return made


def report(
    store: KnowledgeStore, shared: dict[str, Any], talk: Conversation, person: str, on: str, language: Language
) -> Answer:
    """The handover or work-order text: per topic what came up, what was checked, what was found, what is open."""
    entries = {e.id: e for e in store.entries(topic.entry_id for topic in talk.topics)}
    lines = [say("report_head", language, on=on, by=person or say("somebody", language))]
    items: list[CitedItem] = []
    for topic in talk.topics:
        entry = entries.get(topic.entry_id)
        if entry is None:
            continue
        label = code_label(topic.fault_code, language) if topic.fault_code else ""
        title = entry.title.get(language)
        machine = topic.machine or talk.machine or say("report_no_machine", language)
        lines.append(f"\n## {machine}: {f'{label} - {title}' if label else title}")
        if topic.asked:
            lines.append(f"- {say('report_asked', language)}: {topic.asked}")
        lines += _of_topic(topic, entry, language)
        items.append(
            CitedItem(text=title, entry_id=entry.id, item_id="@title", citation=len(items) + 1, to_be_confirmed=False)
        )
    section = Section(name="report", heading=say("report", language), items=tuple(items))
    return Answer(**shared, kind="answer", intent="report", text="\n".join(lines), sections=(section,), grounded=0.0)


def _of_topic(topic: Topic, entry: KnowledgeEntry, language: Language) -> list[str]:
    lines = [f"- {say('report_stop', language)}: {say(entry.stop_or_run, language)}"] if not topic.fixed else []
    given = [text for item_id in topic.given if (text := render(entry, item_id, language))]
    lines += [f"- {say('report_check', language)}: {text}" for text in given]
    lines += [f"- {say('report_said', language)}: {text}" for text in topic.tried]
    if topic.fixed:
        return [*lines, f"- {say('report_fixed', language)}: {topic.fixed}"]
    left = [item.id for item in entry.items if item.kind in ("check", "step") and item.id not in topic.given]
    following = (render(entry, left[0], language) if left else None) or say("report_nothing_left", language)
    return [*lines, f"- {say('report_open', language)}: {following}"]
