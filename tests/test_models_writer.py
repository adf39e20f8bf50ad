"""The writer in point mode: what it asks, and what it makes of good, odd and cut answers."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from models.engine import EngineError, EngineTimeout, GenerationRequest
from models.engines.llama_cpp import LlamaCppEngine
from models.engines.scripted import ScriptedEngine
from models.writer import PointWriter, RuleWriter, Writer, WriterItem, WriterTask

ITEMS = tuple(
    WriterItem(id=item_id, kind=kind, text=text)
    for item_id, kind, text in (
        ("c1", "cause", "Motor power cable is loose at the amplifier"),
        ("c2", "cause", "Servo amplifier is defective"),
        ("k1", "check", "Measure the DC link voltage\nwith the main breaker on"),
        ("a1", "action", "Tighten the terminals"),
    )
)
TASK = WriterTask(question="SV0401 after e-stop", language="en", machine="VMC 850", tried=("reset",), items=ITEMS)


def scripted(text: str, **settings: object) -> ScriptedEngine:
    return ScriptedEngine([text], strict=False, **settings)  # type: ignore[arg-type]


def test_rule_writer_keeps_the_order_of_retrieval() -> None:
    writer: Writer = RuleWriter()
    got = writer.point(TASK)
    assert (got.order, got.lead, got.tokens_in, got.finish) == (("c1", "c2", "k1", "a1"), "", 0, "stop")


def test_the_order_of_the_model_is_taken() -> None:
    engine = scripted('{"order":["k1","c1"]}')
    writer: Writer = PointWriter(engine)
    got = writer.point(TASK)
    assert got.order == ("k1", "c1")
    assert got.tokens_out > 0
    (request,) = engine.requests
    assert request.json_schema is not None
    assert request.json_schema["properties"]["order"]["items"]["enum"] == ["c1", "c2", "k1", "a1"]
    user = request.messages[-1].content
    assert "k1 check: Measure the DC link voltage with the main breaker on" in user.splitlines()
    assert "Machine: VMC 850" in user
    assert "Tried: reset" in user


def test_repeats_and_strangers_are_dropped() -> None:
    got = PointWriter(scripted('{"order":["k1","c1","k1","zz","c1"]}')).point(TASK)
    assert got.order == ("k1", "c1")


def test_only_the_first_items_are_shown() -> None:
    engine = scripted('{"order":["c2","k1"]}')
    got = PointWriter(engine, max_items=2).point(TASK)
    assert got.order == ("c2",)
    assert "k1" not in engine.requests[0].messages[-1].content


def test_a_cut_answer_keeps_its_complete_ids() -> None:
    def clocked(_request: GenerationRequest) -> str:
        return '{"order":["k1","c1","c2","a1"]}'

    now = [0.0]

    def sleep(_seconds: float) -> None:
        now[0] += 1.0

    # a token of the script is six characters: three of them come before the limit
    engine = ScriptedEngine(clocked, clock=lambda: now[0], sleep=sleep)
    got = PointWriter(engine, timeout_s=3.0).point(TASK)
    assert (got.order, got.finish) == (("k1",), "timeout")


def test_nothing_in_time_is_an_engine_error() -> None:
    now = [0.0]

    def sleep(_seconds: float) -> None:
        now[0] += 20.0

    with pytest.raises(EngineTimeout):
        PointWriter(ScriptedEngine(['{"order":["k1"]}'], clock=lambda: now[0], sleep=sleep)).point(TASK)


@pytest.mark.parametrize("text", ["no json", '{"order":[]}', '{"order":["zz"]}', "[]", '{"order":7}', '{"order":["k'])
def test_no_id_is_an_engine_error(text: str) -> None:
    with pytest.raises(EngineError, match=r"no item id.*rule writer"):
        PointWriter(scripted(text)).point(TASK)


def test_cancelled_gives_no_order_and_no_error() -> None:
    cancel = threading.Event()
    cancel.set()
    got = PointWriter(scripted('{"order":["k1"]}')).point(TASK, cancel)
    assert (got.order, got.finish) == ((), "cancelled")


def test_a_lead_has_at_most_thirty_words() -> None:
    lead = " ".join(["word"] * 40)
    engine = scripted(json.dumps({"order": ["k1"], "lead": lead}))
    got = PointWriter(engine, lead=True).point(TASK)
    assert got.lead == " ".join(["word"] * 30)
    assert engine.requests[0].json_schema is not None
    assert list(engine.requests[0].json_schema["properties"]) == ["order", "lead"]
    assert PointWriter(scripted('{"order":["k1"]}')).point(TASK).lead == ""


def test_a_lead_that_only_repeats_the_prompt_is_dropped() -> None:
    text = '{"order":["k1"],"lead":"one sentence of at most 30 words, no numbers"}'
    assert PointWriter(scripted(text), lead=True).point(TASK).lead == ""


def test_one_item_needs_no_model() -> None:
    task = TASK.model_copy(update={"items": ITEMS[:1]})
    assert PointWriter(ScriptedEngine([])).point(task).order == ("c1",)


def test_the_adapter_is_named() -> None:
    engine = scripted('{"order":["k1"]}', adapters=("writer-v3",))
    PointWriter(engine, adapter="writer-v3").point(TASK)
    assert engine.requests[0].adapter == "writer-v3"


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"item ids repeat: \['c1'\]"):
        WriterTask(question="q", language="en", items=(ITEMS[0], ITEMS[0]))
    with pytest.raises(ValueError, match="max_items is 0"):
        PointWriter(ScriptedEngine([]), max_items=0)


@pytest.mark.integration
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("lead", [False, True])
def test_with_the_real_base(base_file: Path, language: str, lead: bool) -> None:
    engine = LlamaCppEngine(base_file, context_tokens=1024)
    try:
        task = TASK.model_copy(update={"language": language})
        got = PointWriter(engine, timeout_s=60.0, lead=lead).point(task)
        assert got.order
        assert set(got.order) <= {"c1", "c2", "k1", "a1"}
        assert len(set(got.order)) == len(got.order)
        assert got.finish == "stop" or lead
        assert got.tokens_out < 160
    finally:
        engine.close()
