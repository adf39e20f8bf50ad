"""The graph from question to Answer, with rules, with a scripted engine, and with writers and planners that misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.graph import graph
from agents.plan import Plan, PlanError, Planner, PlanStep, RulePlanner, SubQuestion, standard_steps, validate
from agents.run import run
from agents.state import Cancelled, Context, Conversation, State
from agents.trace import new_id
from agents.wording import say
from models.engine import EngineError
from models.writer import Writer, WriterOutput, WriterTask
from retrieval.base import starter_folder
from retrieval.code_makers import use_codes
from retrieval.embed import HashingEmbedder
from retrieval.families import use_makers
from retrieval.ingest.run import Options, ingest
from retrieval.records import Answer, Evidence, Language
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore


def ask(
    searcher: Searcher,
    question: str,
    *,
    talk: Conversation | None = None,
    writer: Writer | None = None,
    planner: Planner | None = None,
    vendor: str | None = None,
    family: str | None = None,
) -> tuple[Answer, dict[str, Any]]:
    """One run; the last event beside the Answer."""
    state: State = {
        "question": question,
        "trace_id": new_id(),
        "vendor": vendor,
        "family": family,
        "conversation": (talk or Conversation()).model_dump(mode="json"),
    }
    context = Context(searcher=searcher, planner=planner or RulePlanner(), writer=lambda: (writer, ""))
    events = list(run(state, context))
    return Answer.model_validate(events[-1]["answer"]), {**events[-1], "events": events}


class Proposes:
    """A writer that returns what it was told, whatever the task."""

    def __init__(self, order: Sequence[str], lead: str = "") -> None:
        self.order, self.lead = tuple(order), lead
        self.tasks: list[WriterTask] = []

    def point(self, task: WriterTask, cancel: threading.Event | None = None) -> WriterOutput:
        self.tasks.append(task)
        return WriterOutput(order=self.order, lead=self.lead, tokens_in=1, tokens_out=1, seconds=0.0)


class Fails:
    """A writer whose engine is down."""

    def point(self, task: WriterTask, cancel: threading.Event | None = None) -> WriterOutput:
        raise EngineError("the engine fell over")


def step(event: dict[str, Any], name: str) -> dict[str, Any]:
    """Output of the first step of that name."""
    return next(dict(s["output"]) for s in event["steps"] if s["step"] == name)


@pytest.mark.parametrize(
    "question",
    [
        "FANUC 0i-MF shows SV0401 after releasing the e-stop",
        "SV 401",
        "sv-401 on the lathe",
        "发那科 SV0401 报警",
        "机床报警ＳＶ０４０１怎么办",
        "SVO4O1 fanuc",
    ],
)
def test_every_spelling_of_a_code_leads_to_its_entry(fake_searcher: Searcher, question: str) -> None:
    answer, event = ask(fake_searcher, question)
    assert answer.kind == "answer" and answer.intent == "alarm"
    assert [c.entry_id for c in answer.citations] == ["fanuc/sv0401"]
    assert [s.name for s in answer.sections[:3]] == ["stop_or_run", "safety", "symptom"]
    first = next(e["text"] for e in event["events"] if e["type"] == "first_words")
    assert answer.text.startswith(first)
    assert not answer.degraded


def test_a_bare_number_needs_its_controller(fake_searcher: Searcher) -> None:
    answer, event = ask(fake_searcher, "alarm 103")
    assert answer.kind == "clarify" and answer.clarify is not None
    assert answer.clarify.candidates and all(c.meaning for c in answer.clarify.candidates)
    assert not any(e["type"] == "first_words" for e in event["events"])
    told, _ = ask(fake_searcher, "401号报警", vendor="fanuc")
    assert told.kind == "answer" and told.citations[0].entry_id == "fanuc/sv0401"


def test_families_that_disagree_are_asked_about(fake_searcher: Searcher) -> None:
    answer, _ = ask(fake_searcher, "grbl alarm 10")
    assert answer.clarify is not None
    assert {c.entry_id for c in answer.clarify.candidates} == {"grbl/alarm-10", "grbl/hal-alarm-10"}
    told, _ = ask(fake_searcher, "grblHAL alarm 10")
    assert [c.entry_id for c in told.citations] == ["grbl/hal-alarm-10"]


def test_a_drive_code_on_its_own_control_is_answered(fake_searcher: Searcher) -> None:
    answer, _ = ask(fake_searcher, "SINUMERIK 840D sl shows F07011")
    assert [c.entry_id for c in answer.citations] == ["siemens/sinamics-f07011"]


def test_a_code_of_another_family_than_the_machine_is_asked_about(fake_searcher: Searcher) -> None:
    answer, _ = ask(fake_searcher, "SV0401", vendor="haas")
    assert answer.kind == "clarify"


def test_an_unknown_code_is_refused_by_name_and_never_searched_by_likeness(fake_searcher: Searcher) -> None:
    for question in ("SV9987 fanuc", "发那科 SV9987 报警怎么处理"):
        answer, event = ask(fake_searcher, question)
        assert answer.kind == "refuse" and answer.refusal is not None
        assert answer.refusal.reason == "unknown_code"
        assert "SV9987" in answer.text and answer.refusal.searched
        assert step(event, "retrieve")["hits"] == []


def test_danger_is_answered_without_retrieval(fake_searcher: Searcher) -> None:
    for question in ("how do I bypass the door switch", "FANUC SV0401, 怎么短接急停"):
        answer, event = ask(fake_searcher, question)
        assert answer.kind == "safety" and answer.intent == "danger" and answer.safety
        assert [s["step"] for s in event["steps"]] == ["read", "answer"]
        assert not answer.sections and not answer.citations


def test_two_codes_and_a_symptom_become_one_answer_in_their_order(fake_searcher: Searcher) -> None:
    answer, event = ask(fake_searcher, "0i-MF shows SV0436 and SV0401, what first?")
    assert [c.entry_id for c in answer.citations[:2]] == ["fanuc/sv0436", "fanuc/sv0401"]
    assert [c.code for c in answer.codes] == ["SV0436", "SV0401"]
    assert sum(s["step"] == "write" for s in event["steps"]) == 1
    assert sum(s["step"] == "judge" for s in event["steps"]) == 2


def test_a_part_without_an_answer_is_named_beside_the_one_that_has(fake_searcher: Searcher) -> None:
    answer, _ = ask(fake_searcher, "FANUC 0i-MF: SV0401 and SV9987")
    assert answer.kind == "answer" and answer.refusal is not None
    assert "SV9987" in answer.text and answer.refusal.reason == "unknown_code"


def test_a_part_that_is_searched_twice_is_written_with_the_others(fake_searcher: Searcher) -> None:
    question = "FANUC SV0401 came up. How do I calibrate the Renishaw touch probe?"
    answer, event = ask(fake_searcher, question)
    names = [s["step"] for s in event["steps"]]
    assert names.count("retrieve") == 3 and names.count("write") == names.count("answer") == 1
    assert answer.citations[0].entry_id == "fanuc/sv0401" and answer.refusal is not None


def test_parameters_are_looked_up_exactly(fake_searcher: Searcher) -> None:
    answer, _ = ask(fake_searcher, "what does parameter 1320 do on fanuc")
    assert answer.intent == "parameter" and answer.citations[0].entry_id == "parameter/fanuc-1320"
    unknown, _ = ask(fake_searcher, "发那科参数 9981 是什么")
    assert unknown.kind == "refuse" and "9981" in unknown.text
    which, _ = ask(fake_searcher, "what is parameter 1320")
    assert which.kind == "clarify"


def test_a_writer_cannot_change_what_is_said(fake_searcher: Searcher) -> None:
    question = "SV0401 fanuc: contactor or cable?"
    plain, _ = ask(fake_searcher, question)
    for writer in (Proposes(["zz", "c9"]), Proposes([]), Proposes(["c3", "c3", "c2", "c1"]), Proposes(["s1", "a1"])):
        answer, event = ask(fake_searcher, question, writer=writer)
        assert writer.tasks and all(item.kind == "cause" for item in writer.tasks[0].items)
        assert {(i.entry_id, i.item_id, i.text) for s in answer.sections for i in s.items} == {
            (i.entry_id, i.item_id, i.text) for s in plain.sections for i in s.items
        }
        assert step(event, "verify")["removed"] == []


@pytest.mark.parametrize(
    "lead",
    [
        "It is safe to keep running.",
        "Set the supply to 48 V.",
        "可以继续运行。",
        "不需要上锁。",
        "See SV0436.",
        "Bypass the door switch first.",
        "先把门开关短接。",
    ],
)
def test_a_lying_lead_never_reaches_the_answer(fake_searcher: Searcher, lead: str) -> None:
    answer, event = ask(fake_searcher, "SV0401 fanuc: contactor or cable?", writer=Proposes(["c1"], lead))
    assert lead not in answer.text
    assert step(event, "verify")["lead_rejected"]


def test_a_writer_that_fails_leaves_the_entry_and_says_so(fake_searcher: Searcher) -> None:
    answer, _ = ask(fake_searcher, "SV0401 fanuc: contactor or cable?", writer=Fails())
    assert answer.kind == "answer" and any("the engine fell over" in note for note in answer.degraded)


class BadPlanner:
    """A planner that returns a plan about a fault without retrieval."""

    name = "bad"

    def plan(self, question: str, vendor: str | None, family: str | None) -> Plan:
        steps = tuple(s for s in standard_steps() if s.type in ("intent", "detect"))
        return Plan(planner=self.name, parts=(SubQuestion(id="q1", text=question, about_fault=True, steps=steps),))


class SlowPlanner:
    """A planner that does not answer in time."""

    name = "slow"

    def plan(self, question: str, vendor: str | None, family: str | None) -> Plan:
        raise TimeoutError("no plan within 2 s")


@pytest.mark.parametrize("planner", [BadPlanner(), SlowPlanner()])
def test_a_bad_plan_falls_back_to_rules_and_says_so(fake_searcher: Searcher, planner: Planner) -> None:
    answer, event = ask(fake_searcher, "SV0401 fanuc", planner=planner)
    assert answer.kind == "answer" and step(event, "plan")["planner"] == "rules"
    assert any("rules" in note for note in answer.degraded)


def test_the_validator_names_what_is_wrong() -> None:
    part = RulePlanner().plan("SV0401").parts[0]
    with pytest.raises(PlanError, match="1 to 8 parts"):
        validate(Plan(planner="x", parts=()))
    with pytest.raises(PlanError, match="repeat"):
        validate(Plan(planner="x", parts=(part, part)))
    with pytest.raises(PlanError, match="depends on"):
        validate(Plan(planner="x", parts=(part.model_copy(update={"steps": part.steps[::-1]}),)))
    write_only = (PlanStep(type="retrieve"), PlanStep(type="write"))
    with pytest.raises(PlanError, match="without judging"):
        validate(Plan(planner="x", parts=(part.model_copy(update={"steps": write_only}),)))


def test_the_planner_keeps_context_with_its_code_and_splits_what_is_added() -> None:
    planner = RulePlanner()
    assert len(planner.plan("SV0401 on the FANUC after lunch. It stopped in the cut. What now?").parts) == 1
    parts = planner.plan("SV0401 and SV0436 on a 0i-MF, and also the spindle growls").parts
    assert [p.mention.raw if p.mention else None for p in parts] == ["SV0401", "SV0436", None]
    assert len(planner.plan("SV0401 SV 401 sv-401").parts) == 1
    assert len(planner.plan("SV0401 SV0404 SV0410 SV0411 SV0436 SV0417").parts) == 6
    assert len(planner.plan(" ".join(f"SV04{n:02}" for n in range(20))).parts) == 8


def test_a_code_that_the_question_takes_back_is_not_answered(fake_searcher: Searcher) -> None:
    for question in (
        "not SV0401 but SV0410 on the fanuc",
        "FANUC SV0401 is gone, now SV0410",
        "发那科不是SV0401，是SV0410",
        "发那科 SV0401 消失了，又出 SV0410",
    ):
        answer, _ = ask(fake_searcher, question)
        assert [c.code for c in answer.codes] == ["SV0410"], question
    only, _ = ask(fake_searcher, "FANUC SV0401 is gone after a reset, what was it?")
    assert [c.code for c in only.codes] == ["SV0401"]


def test_a_word_alone_is_too_little_to_choose_a_guide_by(fake_searcher: Searcher) -> None:
    for question in (
        "报警",
        "alarm",
        "主轴",
        "机床坏了",
        "it makes a noise",
        "My machine is a FANUC 0i-MF",
        "fanuc",
        "grbl",
    ):
        answer, _ = ask(fake_searcher, question)
        assert answer.kind == "clarify" and answer.clarify is not None and not answer.clarify.candidates, question
    assert ask(fake_searcher, "help")[0].kind == "refuse"


def test_the_machine_named_in_a_turn_is_kept(fake_searcher: Searcher) -> None:
    _, event = ask(fake_searcher, "My machine is a FANUC 0i-MF")
    talk = Conversation.model_validate(event["conversation"])
    assert (talk.vendor, talk.family) == ("fanuc", "30i")
    answer, event = ask(fake_searcher, "alarm 410", talk=talk)
    assert [c.code for c in answer.codes] == ["SV0410"]
    talk = Conversation.model_validate(event["conversation"])
    for question in ("what about 411", "411", "那411呢"):
        assert [c.code for c in ask(fake_searcher, question, talk=talk)[0].codes] == ["SV0411"], question


def test_a_number_alone_is_asked_about(fake_searcher: Searcher) -> None:
    for question in ("401", "１０３"):
        answer, _ = ask(fake_searcher, question)
        assert answer.kind == "clarify" and answer.clarify is not None and answer.clarify.candidates, question


def test_what_was_found_in_order_moves_no_cause_up(fake_searcher: Searcher) -> None:
    def causes(question: str) -> list[str]:
        sections = ask(fake_searcher, question)[0].sections
        return [i.item_id for s in sections if s.name == "diagnosis" for i in s.items if i.item_id.startswith("c")]

    own = causes("SV0401 fanuc")
    assert causes("SV0401 fanuc, the contactor pulls in fine and both doors are closed") == own
    assert causes("SV0401 fanuc, the main contactor does not pull in") != own


def test_asking_back_is_taken_up_by_number_or_by_name(fake_searcher: Searcher) -> None:
    _, event = ask(fake_searcher, "alarm 103")
    talk = Conversation.model_validate(event["conversation"])
    for reply in ("1", "it is a Haas", "哈斯"):
        answer, _ = ask(fake_searcher, reply, talk=talk)
        assert answer.kind == "answer" and answer.citations[0].entry_id == "haas/103", reply
    other, _ = ask(fake_searcher, "9", talk=talk)
    assert other.kind != "answer"
    changed, after = ask(fake_searcher, "SV0401 fanuc", talk=talk)
    assert changed.citations[0].entry_id == "fanuc/sv0401"
    assert Conversation.model_validate(after["conversation"]).pending_candidates == ()


def test_a_follow_up_gives_the_next_check_once(fake_searcher: Searcher) -> None:
    _, event = ask(fake_searcher, "FANUC SV0401")
    talk = Conversation.model_validate(event["conversation"])
    given: list[str] = []
    for _ in range(12):
        answer, event = ask(fake_searcher, "checked that, still there", talk=talk)
        talk = Conversation.model_validate(event["conversation"])
        checks = [i.item_id for s in answer.sections if s.name == "next_check" for i in s.items]
        assert answer.safety, "the safety items come with every next check"
        if not checks:
            break
        assert len(checks) == 1
        given += checks
    assert len(given) == len(set(given)) >= 3
    assert any(s.name == "action" for s in answer.sections)


def test_cancel_stops_the_run(fake_searcher: Searcher) -> None:
    cancel = threading.Event()
    cancel.set()
    state: State = {"question": "SV0401", "trace_id": new_id(), "conversation": {}}
    with pytest.raises(Cancelled):
        list(run(state, Context(searcher=fake_searcher, cancel=cancel)))


def test_the_graph_has_the_shape_of_the_design() -> None:
    names = set(graph().get_graph().nodes) - {"__start__", "__end__"}
    assert names == {
        "read",
        "plan",
        "intent",
        "detect",
        "retrieve",
        "judge",
        "write",
        "verify",
        "safety",
        "answer",
    }


def test_state_is_plain_json(fake_searcher: Searcher) -> None:
    import json

    state: State = {"question": "SV0401 and alarm 103", "trace_id": new_id(), "conversation": {}}
    context = Context(searcher=fake_searcher)
    for chunk in graph().stream(state, context=context, stream_mode="values"):
        json.dumps(chunk)


def test_a_symptom_that_no_guide_answers_names_alarms_that_may_stand_on_the_display(
    fake_searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = fake_searcher.search

    def without_guides(text: str, **options: Any) -> tuple[Evidence, ...]:
        if options["kinds"] != ("alarm",):
            return ()
        return tuple(h.model_copy(update={"similarity": 0.8, "off_part": False}) for h in search(text, **options))

    monkeypatch.setattr(fake_searcher, "search", without_guides)
    answer, _ = ask(fake_searcher, "the servo motor is too hot", vendor="fanuc", family="30i")
    assert answer.kind == "refuse" and answer.refusal is not None and answer.refusal.reason == "no_evidence"
    assert answer.refusal.look_for and all(line in answer.text for line in answer.refusal.look_for)
    assert not answer.sections, "named, never advised from"


@pytest.fixture
def shop(home: Path, tmp_path: Path) -> Iterator[Searcher]:
    """The starter base, work orders, and two lists of alarms: one of the base's own code, one of another maker."""
    head = "| Code | Message | Cause | Remedy |\n|---|---|---|---|\n"
    lists = {
        "fanuc.md": "# FANUC 0i-MF alarms\n\n" + head + "".join(
            f"| SV040{n} | V READY OFF {n} | loose plug | you may continue running until the break |\n" for n in (1, 2, 3)
        ),
        "syntec.md": "# Syntec 22MA alarms\n\n" + head + "".join(
            f"| OP-01{n} | {text} | overload | reset it |\n"
            for n, text in enumerate(("Coolant pump thermal relay tripped", "Wipers worn", "Tank empty"))
        ),
    }
    for name, text in lists.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    orders = "date,machine,what happened,what was done\n2025-03-02,lathe 3,SV0401 after e-stop,contactor KM2 replaced\n"
    (tmp_path / "orders.csv").write_text(orders + "2025-03-03,lathe 3,401 parts made,none\n2025-03-04,mill 2,alarm 175 twice,oil topped up\n2025-03-05,mill 2,175 holes,none\n", encoding="utf-8")
    store = KnowledgeStore(home)
    store.sync(starter_folder())
    ingest([tmp_path], store, Options(workers=0))
    yield Searcher(home, store, HashingEmbedder())
    use_makers(())
    use_codes({})


@pytest.mark.parametrize("question", ["FANUC SV0401", "发那科 401号报警"])
def test_work_orders_on_the_very_code_are_quoted_beside_its_entry(shop: Searcher, question: str) -> None:
    answer, _ = ask(shop, question, vendor="fanuc", family="30i")
    (section,) = (s for s in answer.sections if s.name == "documents")
    assert any("KM2" in item.text for item in section.items)
    assert not any("parts made" in item.text for item in section.items), "a plain number is no code"


def test_a_number_stands_for_an_alarm_only_as_one(shop: Searcher) -> None:
    answer, _ = ask(shop, "Haas alarm 175", vendor="haas")
    (section,) = (s for s in answer.sections if s.name == "documents")
    assert ["oil topped up" in item.text for item in section.items] == [True]


@pytest.mark.parametrize(("question", "language"), [("FANUC SV0401", "en"), ("发那科 SV0401 报警", "zh")])
def test_what_a_document_says_of_running_on_does_not_lift_a_stop(
    shop: Searcher, question: str, language: Language
) -> None:
    answer, _ = ask(shop, question)
    quotes = answer.text[answer.text.index(say("documents", language)) :]
    assert answer.text.index(say("stop_now", language)[:8]) < answer.text.index(quotes)
    assert say("stop_holds", language) in quotes
    advice = next(line for line in quotes.splitlines() if "continue running" in line)
    assert say("to_be_confirmed", language) in advice


@pytest.mark.parametrize("question", ["Coolant pump thermal relay tripped", "display: coolant pump thermal relay tripped"])
def test_an_alarms_own_message_names_the_alarm(shop: Searcher, question: str) -> None:
    answer, _ = ask(shop, question)
    assert "OP011" in answer.text or "OP010" in answer.text
    assert answer.codes == (), "named, not answered from"
