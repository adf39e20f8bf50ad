"""What only the scripted engine has: replies in order, strictness, a clock of its own."""

from __future__ import annotations

import math
import threading

import pytest

from models.engine import EngineError, EngineTimeout, GenerationRequest, Message
from models.engines.scripted import ScriptedEngine

ASK = (Message(role="user", content="x"),)


def test_replies_come_in_order_and_end_aloud() -> None:
    engine = ScriptedEngine(["one", "two"])
    assert [engine.generate(GenerationRequest(messages=ASK)).text for _ in range(2)] == ["one", "two"]
    with pytest.raises(EngineError, match="has 2 replies and was asked for number 3"):
        engine.generate(GenerationRequest(messages=ASK))
    assert len(engine.requests) == 3


def test_strict_refuses_a_reply_that_no_engine_could_give() -> None:
    choice = GenerationRequest(messages=ASK, choice=("a", "b"))
    schema = GenerationRequest(messages=ASK, json_schema={"type": "integer"})
    for request in (choice, schema):
        with pytest.raises(EngineError, match="'c' breaks the request"):
            ScriptedEngine(["c"]).generate(request)
    assert ScriptedEngine(["c"], strict=False).generate(choice).text == "a"
    assert ScriptedEngine(["c"], strict=False).generate(schema).text == "c"


def test_the_clock_is_the_test_s_own() -> None:
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    engine = ScriptedEngine(lambda _request: "a b c d e f", delay_s=2.0, clock=lambda: now[0], sleep=sleep)
    got = engine.generate(GenerationRequest(messages=ASK, timeout_s=7.0))
    assert (got.text, got.finish, got.tokens_out, got.first_token_s, got.seconds) == ("a b c", "timeout", 3, 2.0, 8.0)
    with pytest.raises(EngineTimeout, match="no token within 1 s"):
        engine.generate(GenerationRequest(messages=ASK, timeout_s=1.0))


def test_whitespace_at_the_ends_survives_streaming() -> None:
    pieces: list[str] = []
    got = ScriptedEngine([" a \n b \n"]).generate(GenerationRequest(messages=ASK), on_text=pieces.append)
    assert got.text == " a \n b \n" == "".join(pieces)
    assert ScriptedEngine([""]).generate(GenerationRequest(messages=ASK)).text == ""


def test_label_table() -> None:
    engine = ScriptedEngine(labels={"A": 0.6, "B": 0.2})
    got = engine.label_logprobs(ASK, ("A", "B", "C"))
    assert math.isclose(got.logprobs["A"], math.log(0.75))
    assert got.logprobs["C"] == -math.inf
    assert math.isclose(got.mass, 0.8)
    with pytest.raises(EngineError, match="gives 0 to"):
        engine.label_logprobs(ASK, ("C",))
    with pytest.raises(EngineError, match="no label table"):
        ScriptedEngine().label_logprobs(ASK, ("A",))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"messages": ()}, "at least 1 item"),
        ({"max_tokens": 0}, "greater than or equal to 1"),
        ({"timeout_s": 0.0}, "greater than 0"),
        ({"choice": ()}, "at least one text"),
        ({"choice": ("",)}, "none of them empty"),
        ({"stop": ("",)}, "empty stop string"),
        ({"choice": ("a",), "json_schema": {"type": "string"}}, "both given"),
    ],
)
def test_requests_that_make_no_sense(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        GenerationRequest.model_validate({"messages": ASK, **fields})


def test_cancel_from_another_thread() -> None:
    cancel = threading.Event()
    engine = ScriptedEngine(lambda _request: "word " * 10_000, delay_s=0.001)
    threading.Timer(0.05, cancel.set).start()
    assert engine.generate(GenerationRequest(messages=ASK, max_tokens=10_000), cancel=cancel).finish == "cancelled"
