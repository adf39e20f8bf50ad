"""The product on a real vLLM server: questions, label scores alike on both engines, a server that goes away."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from models.engine import Message
from models.engines.llama_cpp import LlamaCppEngine
from models.engines.openai_http import OpenAIEngine
from models.serving import ServerRecord
from retrieval.embed import HashingEmbedder
from serve.runtime import Runtime
from serve.settings import load_settings

pytestmark = pytest.mark.engine
QUESTIONS = (
    "FANUC 0i-MF shows SV0401 after releasing the e-stop, the drive power may be missing",
    "发那科 0i-MF 松开急停后出现 SV0401 报警，可能是电源或接触器",
    "Haas alarm 103, axis is stiff and the servo is overloaded",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_with_the_writer_on_the_server(vllm: ServerRecord, home: Path, question: str) -> None:
    settings = load_settings(home=home, engine="openai", engine_url=vllm.url, engine_key=vllm.key)
    runtime = Runtime(settings, embedder=HashingEmbedder())
    event = runtime.answer(question)
    assert event["answer"]["kind"] == "answer" and not event["answer"]["degraded"]
    runtime.close()


def test_a_server_that_is_gone_costs_the_order_and_not_the_answer(vllm: ServerRecord, home: Path) -> None:
    settings = load_settings(home=home, engine="openai", engine_url="http://127.0.0.1:9", engine_key=vllm.key)
    runtime = Runtime(settings, embedder=HashingEmbedder())
    event = runtime.answer("Haas alarm 103, the way is dry or the motor is weak or the tool is dull")
    assert event["answer"]["kind"] == "answer"
    runtime.close()


def test_both_engines_weigh_labels_alike(vllm: ServerRecord, base_file: Path) -> None:
    """The server has the weights in float32, unpacked from the same four bits: near, not equal."""
    messages = (Message(role="user", content="Answer with one letter, A to H: which comes first?"),)
    labels = ("A", "B", "C", "D", "E", "F", "G", "H")
    server = OpenAIEngine(vllm.url, api_key=vllm.key)
    embedded = LlamaCppEngine(base_file, context_tokens=1024)
    try:
        there, here = server.label_logprobs(messages, labels), embedded.label_logprobs(messages, labels)
        assert there.best == here.best
        for label in labels:
            assert math.isclose(math.exp(there.logprobs[label]), math.exp(here.logprobs[label]), abs_tol=0.08)
    finally:
        server.close()
        embedded.close()
