"""The runtime behind every door: one Answer shape on every path, and an answer whatever becomes of the model."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.state import Cancelled, Conversation
from models.bases import load_registry, local_path
from models.engine import Engine, EngineUnavailable, GenerationRequest
from models.engines.scripted import ScriptedEngine
from retrieval.base import starter_folder
from retrieval.embed import HashingEmbedder
from retrieval.records import Answer
from retrieval.store import KnowledgeStore
from serve.runtime import MAX_QUESTION, LazyWriter, QuestionError, Runtime
from serve.settings import Settings

EXACT = "FANUC 0i-MF shows SV0401: contactor or cable?"  # two causes equally named: the writer is asked
# one question for each way through the graph
PATHS = {
    EXACT: "answer",
    "发那科 SV0401 报警": "answer",
    "FANUC SV0401 and SV0410": "answer",
    "alarm 103": "clarify",
    "FANUC SV9987": "refuse",
    "write the handover report": "refuse",
    "how do I bypass the door switch": "safety",
    "怎么短接安全门开关": "safety",
}


def _order(request: GenerationRequest) -> str:
    """A writer that keeps the order it was given."""
    assert request.json_schema is not None
    return json.dumps({"order": request.json_schema["properties"]["order"]["items"]["enum"]}, separators=(",", ":"))


def _runtime(home: Path, engine: Callable[[Settings], Engine] | None = None, **settings: Any) -> Runtime:
    make = engine or (lambda _settings: ScriptedEngine(_order))
    return Runtime(Settings(home=home, **settings), embedder=HashingEmbedder(), make_engine=make)


def _answer(runtime: Runtime, question: str, **options: Any) -> Answer:
    return Answer.model_validate(runtime.answer(question, **options)["answer"])


def _fails(error: Exception) -> Callable[[Settings], Engine]:
    def make(_settings: Settings) -> Engine:
        raise error

    return make


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows of the starter base, read in once."""
    folder = tmp_path_factory.mktemp("synced")
    KnowledgeStore(folder).sync(starter_folder())
    return folder


@pytest.fixture(autouse=True)
def _stocked(home: Path, synced: Path) -> None:
    shutil.copy(synced / "knowledge.sqlite", home)


@pytest.mark.parametrize(("question", "kind"), PATHS.items())
def test_every_path_gives_one_answer_of_one_shape(home: Path, question: str, kind: str) -> None:
    runtime = _runtime(home)
    events = list(runtime.ask(question))
    assert [event["type"] for event in events].count("answer") == 1
    last = events[-1]
    assert set(last) == {"type", "answer", "conversation", "steps"}
    assert set(last["answer"]) == set(Answer.model_fields), "every field stands in the JSON, also where it is empty"
    answer = Answer.model_validate(last["answer"])
    assert answer.kind == kind
    assert answer.text.strip()
    assert (answer.clarify is not None) == (kind == "clarify")
    assert (answer.refusal is not None) == (kind == "refuse")
    assert answer.degraded == ()
    Conversation.model_validate(last["conversation"])
    runtime.close()


def test_first_words_come_first_and_begin_the_text(home: Path) -> None:
    events = list(_runtime(home).ask(EXACT))
    assert [event["type"] for event in events if event["type"] != "step"] == ["first_words", "answer"]
    assert events[0]["type"] == "first_words"
    assert events[-1]["answer"]["text"].startswith(events[0]["text"] + "\n")
    assert "STOP" in events[0]["text"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_first_words_begin_the_answer_for_every_code_of_the_base(home: Path, language: str) -> None:
    runtime = _runtime(home, writer="rules")
    alarm = "alarm" if language == "en" else "报警"
    asked = spoken = 0
    for entry in runtime.store.entries():
        for key in entry.keys if entry.kind == "alarm" else ():
            asked += 1
            events = list(runtime.ask(f"{key.code} {alarm}", vendor=f"{entry.vendor}/{key.family}"))
            first = [event["text"] for event in events if event["type"] == "first_words"]
            answer = events[-1]["answer"]
            assert len(first) <= 1
            if first:
                spoken += 1
                assert answer["text"].startswith(first[0] + "\n"), f"{key.code}: what was said first was taken back"
                assert answer["citations"][0]["entry_id"] == entry.id
    assert spoken >= 0.9 * asked > 0


def test_first_words_do_not_wait_for_the_engine(home: Path) -> None:
    loaded = threading.Event()

    def slow(_settings: Settings) -> Engine:
        assert loaded.wait(10)
        return ScriptedEngine(_order)

    runtime = _runtime(home, slow)
    events = runtime.ask(EXACT)
    assert next(events)["type"] == "first_words"
    assert not loaded.is_set()
    loaded.set()
    assert list(events)[-1]["answer"]["degraded"] == []


def test_the_engine_loads_once(home: Path) -> None:
    loads: list[int] = []

    def make(_settings: Settings) -> Engine:
        loads.append(1)
        return ScriptedEngine(_order)

    runtime = _runtime(home, make)
    threads = [threading.Thread(target=_answer, args=(runtime, EXACT)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]
    assert runtime.writer.state == "ready"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (EngineUnavailable("no base. Next: faultwright models pull"), "faultwright models pull"),
        (PermissionError(13, "Permission denied"), "PermissionError"),
        (RuntimeError("a fault of ours"), "a fault of ours"),
    ],
)
def test_an_engine_that_cannot_load_costs_the_order_not_the_answer(home: Path, error: Exception, said: str) -> None:
    runtime = _runtime(home, _fails(error))
    answer = _answer(runtime, EXACT)
    assert answer.kind == "answer"
    assert len(answer.degraded) == 1 and said in answer.degraded[0]
    assert said in runtime.writer.state
    whole = _answer(_runtime(home), EXACT)
    assert [section.name for section in answer.sections] == [section.name for section in whole.sections]


def test_rules_by_choice_are_no_fallback(home: Path) -> None:
    runtime = _runtime(home, _fails(AssertionError("no engine was asked for")), writer="rules")
    assert _answer(runtime, EXACT).degraded == ()
    assert runtime.writer.state == "rules"


def test_a_base_that_was_not_pulled_says_what_to_type(home: Path) -> None:
    runtime = Runtime(Settings(home=home), embedder=HashingEmbedder())
    answer = _answer(runtime, EXACT)
    assert answer.kind == "answer"
    assert "faultwright models pull" in answer.degraded[0]


def test_a_truncated_base_is_called_damaged(home: Path) -> None:
    path = local_path(home, load_registry().get())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF" + b"\0" * 1000)
    answer = _answer(Runtime(Settings(home=home), embedder=HashingEmbedder()), EXACT)
    assert answer.kind == "answer"
    assert "damaged" in answer.degraded[0]
    assert "faultwright models pull" in answer.degraded[0]


def test_an_unknown_base_names_the_setting_and_the_known_ones(home: Path) -> None:
    answer = _answer(Runtime(Settings(home=home, base="gpt-9"), embedder=HashingEmbedder()), EXACT)
    assert answer.kind == "answer"
    assert "FAULTWRIGHT_BASE" in answer.degraded[0] and "known: " in answer.degraded[0]


def test_a_writer_slower_than_its_limit_gives_way_to_the_rules_and_says_so(home: Path) -> None:
    runtime = _runtime(home, lambda _settings: ScriptedEngine(_order, delay_s=0.2), writer_timeout_s=0.1)
    answer = _answer(runtime, EXACT)
    assert answer.kind == "answer"
    assert len(answer.degraded) == 1 and "0.1 s" in answer.degraded[0]


def test_waiting_for_the_engine_counts_in_the_limit(home: Path) -> None:
    def slow(_settings: Settings) -> Engine:
        time.sleep(1.0)
        return ScriptedEngine(_order)

    runtime = _runtime(home, slow, writer_timeout_s=0.2)
    started = time.monotonic()
    answer = _answer(runtime, EXACT)
    assert time.monotonic() - started < 0.9
    assert "still loading after 0.2 s" in answer.degraded[0]
    runtime.close()
    assert _answer(runtime, EXACT).kind == "answer"


def test_a_run_can_be_cancelled_while_the_engine_writes(home: Path) -> None:
    cancel = threading.Event()
    writing = threading.Event()

    def order(request: GenerationRequest) -> str:
        writing.set()
        return _order(request)

    runtime = _runtime(home, lambda _settings: ScriptedEngine(order, delay_s=0.05))
    outcome: list[object] = []

    def work() -> None:
        try:
            outcome.append(runtime.answer(EXACT, cancel=cancel))
        except Cancelled as stopped:
            outcome.append(stopped)

    thread = threading.Thread(target=work)
    thread.start()
    assert writing.wait(5)
    cancel.set()
    thread.join(timeout=2)
    assert not thread.is_alive()
    assert isinstance(outcome[0], Cancelled)


@pytest.mark.parametrize(
    ("question", "options", "said"),
    [
        ("  \n", {}, "empty"),
        ("x" * (MAX_QUESTION + 1), {}, f"{MAX_QUESTION + 1} characters; at most {MAX_QUESTION}"),
        ("SV0401 \udcff", {}, "character 8 is broken UTF-8"),
        (EXACT, {"vendor": "okuna"}, "unknown vendor 'okuna'; known: fanuc"),
        (EXACT, {"machine": "x" * 500}, "the machine has 500 characters"),
    ],
)
def test_a_question_that_cannot_be_taken(home: Path, question: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(QuestionError, match=said):
        next(_runtime(home).ask(question, **options))  # type: ignore[arg-type]


def test_the_longest_question_is_taken(home: Path) -> None:
    text = EXACT + " x" * ((MAX_QUESTION - len(EXACT)) // 2)
    assert _answer(_runtime(home), text).codes[0].code == "SV0401"


@pytest.mark.parametrize(
    ("vendor", "machine", "expected"),
    [
        ("fanuc", None, ("fanuc", None)),
        ("fanuc/30i", None, ("fanuc", "30i")),
        ("发那科", "0i-MF", ("fanuc", "30i")),
        (None, "FANUC 0i-MF", ("fanuc", "30i")),
        (None, "a green lathe", ("haas", None)),
        (None, None, ("haas", None)),
        ("SIEMENS", None, ("siemens", None)),
    ],
)
def test_the_machine_of_a_question(
    home: Path, vendor: str | None, machine: str | None, expected: tuple[str, str | None]
) -> None:
    assert _runtime(home, vendor="haas").machine(vendor, machine) == expected


def test_the_conversation_outweighs_the_default_machine_of_the_shop(home: Path) -> None:
    runtime = _runtime(home, vendor="fanuc")
    talk = Conversation(vendor="haas")
    assert _answer(runtime, "alarm 103", conversation=talk).codes[0].vendor == "haas"
    assert _answer(runtime, "alarm 401").codes[0].vendor == "fanuc"


def test_the_trace_is_there_when_the_answer_is(home: Path) -> None:
    answer = _answer(_runtime(home), EXACT)
    stored = json.loads((home / "traces" / f"{answer.trace_id}.json").read_text(encoding="utf-8"))
    assert stored["answer"]["text"] == answer.text
    assert [step["step"] for step in stored["steps"]][:2] == ["read", "plan"]


def test_a_trace_that_cannot_be_stored_costs_a_notice_not_the_answer(home: Path) -> None:
    notices: list[str] = []
    (home / "traces").write_text("a file where the folder should be")
    runtime = Runtime(Settings(home=home, writer="rules"), embedder=HashingEmbedder(), notice=notices.append)
    assert _answer(runtime, EXACT).kind == "answer"
    assert len(notices) == 1 and "trace was not stored" in notices[0]


def test_parallel_questions_are_not_mixed(home: Path) -> None:
    runtime = _runtime(home, lambda _settings: ScriptedEngine(_order, delay_s=0.001))
    codes = ["FANUC SV0401", "FANUC SV0410", "Haas alarm 103", "ALARM:1 grbl", "发那科 SV0401", "哈斯 103号报警"] * 2
    alone = {code: _answer(runtime, code).text for code in codes}
    together: dict[int, str] = {}

    def work(index: int) -> None:
        together[index] = _answer(runtime, codes[index]).text

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(codes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[index] for index in range(len(codes))] == [alone[code] for code in codes]


def test_a_writer_that_was_never_asked_closes_and_says_its_state(home: Path) -> None:
    writer = LazyWriter(Settings(home=home), lambda _settings: ScriptedEngine(_order))
    assert writer.state == "not loaded"
    writer.close()
    assert writer()[0] is not None
    writer.close()


def test_two_runtimes_share_one_home(home: Path) -> None:
    first, second = _runtime(home), _runtime(home)
    assert _answer(first, EXACT).text == _answer(second, EXACT).text
    assert KnowledgeStore(home).counts()["codes"] > 0


@pytest.mark.integration
def test_the_real_base_and_index(home_with_base: Path, real_index_home: Path) -> None:
    shutil.copytree(real_index_home, home_with_base, dirs_exist_ok=True)
    runtime = Runtime(Settings(home=home_with_base, writer_timeout_s=120.0))
    exact = _answer(runtime, EXACT)
    assert (exact.degraded, exact.codes[0].code) == ((), "SV0401")
    symptom = _answer(runtime, "主轴转速波动大，有异响")
    assert (symptom.kind, symptom.language, symptom.degraded) == ("answer", "zh", ())
    assert _answer(runtime, "write a poem about the sea").kind == "refuse"
    assert runtime.writer.state == "ready"
    runtime.close()


@pytest.mark.integration
def test_a_real_base_with_one_flipped_byte_is_called_damaged(home: Path, base_file: Path) -> None:
    path = local_path(home, load_registry().get())
    path.parent.mkdir(parents=True)
    body = bytearray(base_file.read_bytes())
    body[len(body) // 2] ^= 0xFF
    path.write_bytes(body)
    answer = _answer(Runtime(Settings(home=home), embedder=HashingEmbedder()), EXACT)
    assert answer.kind == "answer"
    assert "damaged" in answer.degraded[0] and "faultwright models pull" in answer.degraded[0]
