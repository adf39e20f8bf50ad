"""The engine on a server that dies, hangs, says no, breaks its JSON or answers late; a small server of our own plays it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from models.engine import (
    AdapterUnknown,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    GenerationRequest,
    Message,
    PromptTooLong,
)
from models.engines.openai_http import OpenAIEngine

Handler = Callable[["Played"], None]


class Played(BaseHTTPRequestHandler):
    """One request; what it answers is `server.play`."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        listed = [{"id": "base", "parent": None, "max_model_len": 64}]
        listed += [{"id": name, "parent": "base"} for name in self.server.adapters]  # type: ignore[attr-defined]
        self.json(200, {"data": listed})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            self.json(200, {"tokens": list(range(len(body["prompt"].split())))})
            return
        self.server.bodies.append(body)  # type: ignore[attr-defined]
        self.server.play(self)  # type: ignore[attr-defined]

    def json(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def piece(self, text: str, count: int, finish: str | None = None) -> None:
        choice = {"index": 0, "text": text, "finish_reason": finish}
        usage = {"prompt_tokens": 3, "completion_tokens": count}
        self.wfile.write(f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\n".encode())
        self.wfile.flush()

    def end(self) -> None:
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


def speaks(*texts: str) -> Handler:
    def play(request: Played) -> None:
        request.begin()
        for count, text in enumerate(texts, start=1):
            request.piece(text, count, "stop" if count == len(texts) else None)
        request.end()

    return play


class Server(ThreadingHTTPServer):
    """Plays what it is told; `bodies` are the requests it got."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Played)
        self.bodies: list[dict[str, Any]] = []
        self.adapters: tuple[str, ...] = ()
        self.play: Handler = speaks("Hello", " there")

    def handle_error(self, *_: object) -> None:
        pass  # clients here hang up on purpose

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def engine(server: Server) -> Iterator[OpenAIEngine]:
    made = OpenAIEngine(server.url, base_id="test")
    yield made
    made.close()


def request(**more: Any) -> GenerationRequest:
    return GenerationRequest(messages=(Message(role="user", content="Say hello"),), **more)


def test_the_prompt_is_the_one_of_every_engine(server: Server, engine: OpenAIEngine) -> None:
    assert engine.generate(request()).text == "Hello there"
    (body,) = server.bodies
    assert body["prompt"] == "<|im_start|>user\nSay hello<|im_end|>\n<|im_start|>assistant\n"
    assert body["model"] == "base" and body["temperature"] == 0.0


def test_what_may_pass_is_tried_again(server: Server, engine: OpenAIEngine) -> None:
    def busy(play: Played) -> None:
        server.play = speaks("Hello")
        play.json(503, {"error": {"message": "loading"}})

    server.play = busy
    assert engine.generate(request()).text == "Hello"
    assert len(server.bodies) == 2


def test_what_cannot_pass_is_not(server: Server, engine: OpenAIEngine) -> None:
    server.play = lambda play: play.json(400, {"error": {"message": "temperature is bad"}})
    with pytest.raises(EngineError, match="temperature is bad"):
        engine.generate(request())
    assert len(server.bodies) == 1


def test_a_server_that_stays_busy_is_named(server: Server, engine: OpenAIEngine) -> None:
    server.play = lambda play: play.json(503, {"error": {"message": "still loading"}})
    with pytest.raises(EngineError, match="still loading"):
        engine.generate(request())
    assert len(server.bodies) == 3


def test_one_that_hangs_ends_at_the_time_limit(server: Server, engine: OpenAIEngine) -> None:
    server.play = lambda _play: time.sleep(3)
    started = time.monotonic()
    with pytest.raises(EngineTimeout):
        engine.generate(request(timeout_s=0.3))
    assert time.monotonic() - started < 1.5


def test_one_that_answers_late_keeps_the_text_so_far(server: Server, engine: OpenAIEngine) -> None:
    def late(play: Played) -> None:
        play.begin()
        play.piece("Hello", 1)
        time.sleep(3)

    server.play = late
    got = engine.generate(request(timeout_s=0.4))
    assert (got.text, got.finish, got.tokens_out) == ("Hello", "timeout", 1)


def test_one_that_dies_in_mid_text_is_named(server: Server, engine: OpenAIEngine) -> None:
    def dies(play: Played) -> None:
        play.begin()
        play.piece("Hel", 1)
        play.wfile.write(b"data: {broken")
        play.connection.close()

    server.play = dies
    with pytest.raises(EngineUnavailable, match="broke off"):
        engine.generate(request())
    assert len(server.bodies) == 1, "a text that has begun is not begun again"


def test_broken_json_is_no_text(server: Server, engine: OpenAIEngine) -> None:
    def broken(play: Played) -> None:
        play.begin()
        play.wfile.write(b"data: {broken}\n\n")
        play.end()

    server.play = broken
    with pytest.raises(EngineUnavailable):
        engine.generate(request())


def test_a_constraint_that_was_not_kept_is_an_error(server: Server, engine: OpenAIEngine) -> None:
    with pytest.raises(EngineError, match="did not keep"):
        engine.generate(request(choice=("yes", "no")))
    schema = {"type": "object", "properties": {"a": {"enum": ["b"]}}, "required": ["a"]}
    with pytest.raises(EngineError, match="did not keep"):
        engine.generate(request(json_schema=schema))


def test_a_cancel_ends_it_while_the_server_is_silent(server: Server, engine: OpenAIEngine) -> None:
    gone = threading.Event()

    def silent(play: Played) -> None:
        play.begin()
        play.piece("Hello", 1)
        for _ in range(100):
            time.sleep(0.05)
            try:
                play.piece(" on", 2)
            except OSError:
                gone.set()
                return

    server.play = silent
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    started = time.monotonic()
    got = engine.generate(request(), cancel=cancel)
    assert got.finish == "cancelled" and got.text.startswith("Hello")
    assert time.monotonic() - started < 1.0
    assert gone.wait(3), "the server is hung up on and can stop computing"


def test_room_is_made_for_the_prompt(server: Server, engine: OpenAIEngine) -> None:
    def full(play: Played) -> None:
        if server.bodies[-1]["max_tokens"] > 60:
            play.json(400, {"message": "This model's maximum context length is 64 tokens."})
        else:
            speaks("Hello")(play)

    server.play = full
    assert engine.generate(request(max_tokens=500)).text == "Hello"
    long = GenerationRequest(messages=(Message(role="user", content="word " * 80),), max_tokens=500)
    server.play = lambda play: play.json(400, {"message": "This model's maximum context length is 64 tokens."})
    with pytest.raises(PromptTooLong) as caught:
        engine.generate(long)
    assert caught.value.tokens > caught.value.limit == 64


def test_an_adapter_that_was_loaded_since_is_found(server: Server, engine: OpenAIEngine) -> None:
    with pytest.raises(AdapterUnknown):
        engine.generate(request(adapter="writer-v1"))
    server.adapters = ("writer-v1",)
    engine.generate(request(adapter="writer-v1"))
    assert server.bodies[-1]["model"] == "writer-v1" and engine.adapters == ("writer-v1",)


def test_nothing_there_says_what_to_do() -> None:
    with pytest.raises(EngineUnavailable, match="engine status"):
        OpenAIEngine("http://127.0.0.1:9", startup_s=0.0)


def test_a_web_page_is_no_engine(server: Server) -> None:
    Played_get = Played.do_GET
    try:
        Played.do_GET = lambda self: self.json(200, {"hello": 1})  # type: ignore[method-assign]
        with pytest.raises(EngineUnavailable, match="serves no model"):
            OpenAIEngine(server.url, startup_s=0.0)
    finally:
        Played.do_GET = Played_get  # type: ignore[method-assign]
