"""The HTTP API: in process over ASGI with a scripted engine; a real server with the real base at the end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from models.engine import Engine, GenerationRequest
from models.engines.scripted import ScriptedEngine
from retrieval.embed import HashingEmbedder
from retrieval.errors import StoreUnusable
from retrieval.records import Answer, KnowledgeEntry
from retrieval.store import KnowledgeStore
from serve.api import create_app, is_local
from serve.runtime import MAX_QUESTION, Runtime
from serve.settings import Settings

EXACT = "FANUC 0i-MF shows SV0401: contactor or cable?"  # two causes equally named: the writer is asked
SCRIPT = Path(sys.executable).parent / "faultwright"
Body = dict[str, Any]
Make = Callable[[Settings], Engine]


def _order(request: GenerationRequest) -> str:
    assert request.json_schema is not None
    return json.dumps({"order": request.json_schema["properties"]["order"]["items"]["enum"]}, separators=(",", ":"))


def _runtime(home: Path, make: Make | None = None, **settings: Any) -> Runtime:
    engine = make or (lambda _settings: ScriptedEngine(_order))
    return Runtime(Settings(home=home, **settings), embedder=HashingEmbedder(), make_engine=engine)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """For the tests that leave nothing behind but traces: the rows are read in once."""
    return create_app(_runtime(tmp_path_factory.mktemp("shared")))


def _ask(app: FastAPI, method: str, path: str, host: str = "localhost:8000", **options: Any) -> httpx.Response:
    """One request against the application, without its lifespan: nothing is warmed up."""

    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.request(method, path, **options)

    return asyncio.run(go())


def _post(app: FastAPI, body: object, **options: Any) -> httpx.Response:
    return _ask(app, "POST", "/v1/ask", json=body, **options)


def _events(text: str) -> list[tuple[str, Body]]:
    """Server-sent events as (name, data)."""
    found: list[tuple[str, Body]] = []
    for block in text.split("\n\n"):
        if block.strip():
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            assert set(fields) == {"event", "data"}
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def _alike(answer: Body) -> Body:
    return {name: value for name, value in answer.items() if name not in ("id", "trace_id")}


# asking


@pytest.mark.parametrize("question", [EXACT, "发那科 SV0401 报警", "alarm 103", "SV9987 fanuc", "怎么短接安全门开关"])
def test_blocking_and_stream_give_the_same_answer(app: FastAPI, question: str) -> None:
    blocking = _post(app, {"question": question})
    assert blocking.status_code == 200
    assert set(blocking.json()) == set(Answer.model_fields)
    Answer.model_validate(blocking.json())
    stream = _post(app, {"question": question, "stream": True})
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-store"
    events = _events(stream.text)
    assert [name for name, _ in events].count("answer") == 1
    name, last = events[-1]
    assert name == "answer" and set(last) == {"answer"}
    assert _alike(last["answer"]) == _alike(blocking.json())
    assert last["answer"]["id"] != blocking.json()["id"]


def test_stream_order_and_content(app: FastAPI) -> None:
    events = _events(_post(app, {"question": EXACT, "stream": True}).text)
    names = [name for name, _ in events]
    assert names[0] == "first_words" and names[-1] == "answer" and set(names[1:-1]) == {"step"}
    assert events[-1][1]["answer"]["text"].startswith(events[0][1]["text"] + "\n")
    steps = [data["step"] for name, data in events if name == "step"]
    assert steps == ["read", "plan", "intent", "detect", "retrieve", "judge", "write", "verify", "safety", "answer"]


def test_a_client_may_ask_for_events_by_its_accept_header(app: FastAPI) -> None:
    response = _post(app, {"question": EXACT}, headers={"Accept": "text/event-stream"})
    assert next(name for name, _ in _events(response.text)) == "first_words"


def test_vendor_and_machine(app: FastAPI) -> None:
    for options in ({"vendor": "fanuc"}, {"machine": "FANUC 0i-MF"}, {"vendor": "发那科/30i", "machine": None}):
        response = _post(app, {"question": "401号报警", **options})
        if "发那科/30i" in str(options):
            assert response.status_code == 422  # a name and a family do not mix; ids do
        else:
            assert response.json()["codes"][0]["code"] == "SV0401"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": "  \n"},
        {"question": 3},
        {"question": None},
        {"question": EXACT, "vender": "fanuc"},
        {"question": EXACT, "vendor": "okuna"},
        {"question": EXACT, "vendor": "okuna", "stream": True},
        {"question": EXACT, "machine": "x" * 201},
        {"question": EXACT, "stream": "perhaps"},
        {"question": "x" * (MAX_QUESTION + 1)},
        [EXACT],
        EXACT,
        None,
    ],
)
def test_a_bad_body_is_422_and_says_where(app: FastAPI, body: object) -> None:
    response = _post(app, body)
    assert response.status_code == 422
    assert response.json()["detail"]
    if isinstance(body, dict) and body.get("vendor") == "okuna":
        assert "known: fanuc" in response.json()["detail"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"{", "application/json"),
        (b"", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"question": "SV0401 \\udcff"}', "application/json"),
        (b'{"question": "SV0401"}', "text/plain"),
    ],
)
def test_a_body_that_is_no_json_text(app: FastAPI, content: bytes, kind: str) -> None:
    response = _ask(app, "POST", "/v1/ask", content=content, headers={"Content-Type": kind})
    assert response.status_code in (400, 422), "text/plain is what a web page elsewhere could send without asking"


def test_the_longest_question_is_answered(app: FastAPI) -> None:
    text = EXACT.ljust(MAX_QUESTION - 1) + "."
    assert _post(app, {"question": text}).json()["kind"] == "answer"


# who may ask


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"])
def test_names_of_this_machine_are_served(app: FastAPI, host: str) -> None:
    assert _ask(app, "GET", "/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "www.localhost", "192.168.1.4", "", "[::2]"]
)
@pytest.mark.parametrize("path", ["/v1/codes/fanuc/SV0401", "/healthz", "/readyz", "/openapi.json"])
def test_a_rebound_name_is_refused_where_there_is_no_key(app: FastAPI, host: str, path: str) -> None:
    assert _ask(app, "GET", path, headers={"Host": host}).status_code == 400


def test_the_address_that_was_asked_for_is_served(home: Path) -> None:
    app = create_app(_runtime(home, host="127.0.0.7"))
    assert _ask(app, "GET", "/healthz", host="127.0.0.7:8000").status_code == 200


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Bearer kex", "Basic key", "Bearer 钥匙"]
)
def test_a_wrong_key_is_401(home: Path, given: str | None) -> None:
    app = create_app(_runtime(home, api_key="key"))
    headers = {} if given is None else {b"Authorization": given.encode()}
    for method, path in (("POST", "/v1/ask"), ("GET", "/v1/codes/fanuc/SV0401")):
        response = _ask(app, method, path, headers=headers, json={"question": EXACT})
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert "key" not in response.text.replace("the key of this server", "").replace("KEY", "")


def test_the_right_key_opens_under_any_name(home: Path) -> None:
    app = create_app(_runtime(home, api_key="schlüssel", host="0.0.0.0"))
    headers = {b"Authorization": "Bearer schlüssel".encode()}
    response = _ask(app, "POST", "/v1/ask", host="shop.example", headers=headers, json={"question": EXACT})
    assert response.json()["kind"] == "answer"
    assert _ask(app, "GET", "/healthz", host="shop.example").status_code == 200


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.4", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_what_is_local(host: str, local: bool) -> None:
    assert is_local(host) is local


# codes


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("fanuc/SV0401", "fanuc/sv0401"),
        ("fanuc/sv401", "fanuc/sv0401"),
        ("fanuc/SV%20401", "fanuc/sv0401"),
        ("fanuc/401", "fanuc/sv0401"),
        ("FANUC/SV-0401", "fanuc/sv0401"),
        ("%E5%8F%91%E9%82%A3%E7%A7%91/401%E5%8F%B7%E6%8A%A5%E8%AD%A6", "fanuc/sv0401"),
        ("30i/SV0401", "fanuc/sv0401"),
        ("haas/103", "haas/103"),
        ("haas/alarm%20103", "haas/103"),
        ("grbl/ALARM:1", "grbl/alarm-1"),
        ("sinamics/F30005", "siemens/sinamics-f30005"),
    ],
)
def test_codes_in_several_spellings(app: FastAPI, path: str, entry: str) -> None:
    response = _ask(app, "GET", f"/v1/codes/{path}")
    assert response.status_code == 200
    (match,) = response.json()
    assert KnowledgeEntry.model_validate(match["entry"]).id == entry
    assert set(match["key"]) == {"vendor", "family", "code"}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("fanuc/SV9987", "No entry for 'SV9987' on fanuc among"),
        ("haas/SV0401", "No entry"),
        ("okuna/1", "unknown vendor 'okuna'; known: fanuc"),
        ("fanuc/%20", "empty"),
        ("fanuc/..%2F..%2Fetc%2Fpasswd", "No entry"),
        ("fanuc/" + "9" * 5000, "at most"),
    ],
)
def test_codes_that_are_not_there(app: FastAPI, path: str, said: str) -> None:
    response = _ask(app, "GET", f"/v1/codes/{path}")
    assert response.status_code == 404
    assert said in response.json()["detail"]


# health


def test_health_at_once_and_ready_when_loaded(home: Path) -> None:
    release = threading.Event()

    class Slow(HashingEmbedder):
        def passages(self, texts: Any) -> Any:
            assert release.wait(20)
            return super().passages(texts)

    runtime = Runtime(Settings(home=home), embedder=Slow(), make_engine=lambda _settings: ScriptedEngine(_order))
    app = create_app(runtime)

    async def go() -> None:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            waiting = await client.get("/readyz")
            assert waiting.status_code == 503
            assert waiting.json()["index"] == "not loaded"
            exact = await client.post("/v1/ask", json={"question": EXACT})
            assert exact.json()["kind"] == "answer", "an exact code does not wait for the index"
            release.set()
            for _ in range(200):
                ready = await client.get("/readyz")
                if ready.status_code == 200:
                    break
                await asyncio.sleep(0.05)
            assert ready.json() == {"knowledge": waiting.json()["knowledge"], "index": "ready", "model": "ready"}

    asyncio.run(go())


def test_ready_names_what_is_wrong_with_the_model(home: Path) -> None:
    runtime = Runtime(Settings(home=home), embedder=HashingEmbedder())
    app = create_app(runtime)
    assert _post(app, {"question": EXACT}).json()["degraded"]
    assert "faultwright models pull" in _ask(app, "GET", "/readyz").json()["model"]


# what goes wrong


def _broken(*_args: object, **_options: object) -> Any:
    raise StoreUnusable("knowledge.sqlite: disk I/O error.", "check the disk, then ask again.")


def test_an_error_of_the_store_is_503_with_a_next_step(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("entry", "entries", "lookup", "lookup_number", "counts"):
        monkeypatch.setattr(KnowledgeStore, name, _broken)
    expected = {"detail": "knowledge.sqlite: disk I/O error.", "next_step": "check the disk, then ask again."}
    for response in (
        _post(app, {"question": EXACT}),
        _ask(app, "GET", "/v1/codes/fanuc/SV0401"),
        _ask(app, "GET", "/readyz"),
    ):
        assert (response.status_code, response.json()) == (503, expected)
    stream = _events(_post(app, {"question": EXACT, "stream": True}).text)
    assert stream == [("error", expected)]


def test_a_fault_of_ours_is_500_and_an_error_event(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_args: object, **_options: object) -> Any:
        raise RuntimeError("secret path /root")

    monkeypatch.setattr(KnowledgeStore, "lookup", fault)
    blocking = _post(app, {"question": EXACT})
    assert blocking.status_code == 500 and "secret" not in blocking.text
    stream = _post(app, {"question": EXACT, "stream": True}).text
    assert "secret" not in stream
    assert _events(stream)[-1][0] == "error"


def test_eight_questions_at_once_each_get_their_own_answer(home: Path) -> None:
    app = create_app(_runtime(home, lambda _settings: ScriptedEngine(_order, delay_s=0.002)))
    questions = [
        EXACT,
        "FANUC SV0410",
        "Haas alarm 103",
        "grbl ALARM:1",
        "发那科 SV0401",
        "哈斯 103号报警",
        "SV9987 fanuc",
    ]
    questions.append("alarm 103")
    alone = [_post(app, {"question": question}).json() for question in questions]
    assert len({answer["text"] for answer in alone}) == len(questions)

    async def go() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            calls = [
                client.post("/v1/ask", json={"question": q, "stream": n % 2 == 0}) for n, q in enumerate(questions)
            ]
            return await asyncio.gather(*calls)

    for number, response in enumerate(asyncio.run(go())):
        streamed = number % 2 == 0
        answer = _events(response.text)[-1][1]["answer"] if streamed else response.json()
        assert _alike(answer) == _alike(alone[number])


async def _leaves_when(app: FastAPI, body: Body, leaving: threading.Event) -> list[Body]:
    """Run a request whose client goes away once `leaving` is set; what was sent to it by then."""
    sent: list[Body] = []
    content = json.dumps(body).encode()
    parts: Iterator[Body] = iter([{"type": "http.request", "body": content, "more_body": False}])

    async def receive() -> Body:
        for part in parts:
            return part
        while not leaving.is_set():
            await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/ask",
        "raw_path": b"/v1/ask",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    await app(scope, receive, send)
    return sent


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_stops_the_run(home: Path, stream: bool) -> None:
    writing = threading.Event()
    engines: list[ScriptedEngine] = []

    def order(request: GenerationRequest) -> str:
        writing.set()
        return _order(request)

    def make(_settings: Settings) -> Engine:
        engines.append(ScriptedEngine(order, delay_s=0.3))
        return engines[0]

    runtime = _runtime(home, make, writer_timeout_s=60)
    started = time.monotonic()
    sent = asyncio.run(_leaves_when(create_app(runtime), {"question": EXACT, "stream": stream}, writing))
    assert time.monotonic() - started < 3.0, "the whole text would take longer"
    texts = b"".join(message.get("body", b"") for message in sent).decode()
    assert "event: answer" not in texts and '"kind"' not in texts
    assert not (home / "traces").exists(), "the run did not go on to its end"


def test_a_client_that_goes_away_does_not_disturb_the_next(home: Path) -> None:
    leaving = threading.Event()
    leaving.set()
    app = create_app(_runtime(home))
    for stream in (True, False):
        asyncio.run(_leaves_when(app, {"question": EXACT, "stream": stream}, leaving))
    assert _post(app, {"question": EXACT}).json()["kind"] == "answer"


# the schema


def test_openapi_has_every_route_and_both_forms_of_an_answer(app: FastAPI) -> None:
    schema = _ask(app, "GET", "/openapi.json").json()
    assert set(schema["paths"]) == {"/v1/ask", "/v1/codes/{vendor}/{code}", "/healthz", "/readyz"}
    content = schema["paths"]["/v1/ask"]["post"]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream"}
    assert content["application/json"]["schema"]["$ref"].endswith("/Answer")
    assert set(schema["components"]["schemas"]["Answer"]["properties"]) == set(Answer.model_fields)
    assert {"401", "422", "503"} <= set(schema["paths"]["/v1/ask"]["post"]["responses"])
    assert "404" in schema["paths"]["/v1/codes/{vendor}/{code}"]["get"]["responses"]
    assert _ask(app, "GET", "/docs").status_code == 404, "it would load scripts from a public server"


# a real server


@contextmanager
def _served(home: Path, **env: str) -> Iterator[str]:
    """`faultwright serve` on a free port; its address."""
    with subprocess.Popen(
        [str(SCRIPT), "serve", "--port", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "FAULTWRIGHT_HOME": str(home), **env},
    ) as process:
        assert process.stderr is not None
        log: list[str] = []
        try:
            for line in process.stderr:
                log.append(line)
                if found := re.search(r"running on (http://127\.0\.0\.1:\d+)", line):
                    break
            else:
                pytest.fail("".join(log))
            drain = threading.Thread(target=log.extend, args=(process.stderr,), daemon=True)
            drain.start()
            yield found.group(1)
        finally:
            process.terminate()
            process.wait(timeout=30)
        drain.join(timeout=5)
    assert "Traceback" not in "".join(log), "".join(log)


@pytest.fixture
def full_home(home_with_base: Path, real_index_home: Path) -> Path:
    shutil.copytree(real_index_home, home_with_base, dirs_exist_ok=True)
    return home_with_base


def _get(address: str, **options: Any) -> httpx.Response:
    """Patient: with all cores taken by other work, a second can become many."""
    return httpx.get(address, timeout=120, **options)


def _wait_ready(address: str) -> httpx.Response:
    for _ in range(600):
        ready = _get(f"{address}/readyz")
        if ready.status_code == 200 and ready.json()["model"] not in ("loading", "not loaded"):
            break
        time.sleep(0.1)
    return ready


@pytest.mark.integration
def test_server_answers_in_both_forms_and_in_parallel(full_home: Path) -> None:
    questions = [EXACT, "发那科 SV0401 报警", "Haas alarm 103", "alarm 103", "SV9987 fanuc", "主轴转速波动大，有异响"]
    questions += ["grbl ALARM:1", "怎么短接安全门开关"]
    with _served(full_home, FAULTWRIGHT_WRITER_TIMEOUT_S="120") as address:
        assert _get(f"{address}/healthz").json() == {"status": "ok"}
        assert _wait_ready(address).json()["model"] == "ready"

        def post(question: str, stream: bool = False) -> httpx.Response:
            body = {"question": question, "stream": stream}
            return httpx.post(f"{address}/v1/ask", json=body, timeout=120)

        alone = [post(question).json() for question in questions]
        assert [answer["degraded"] for answer in alone] == [[]] * len(questions)
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(post, questions))
        assert [_alike(response.json()) for response in together] == [_alike(answer) for answer in alone]
        streamed = _events(post(EXACT, stream=True).text)
        assert streamed[0][0] == "first_words"
        assert _alike(streamed[-1][1]["answer"]) == _alike(alone[0])
        assert _get(f"{address}/v1/codes/fanuc/sv401").json()[0]["key"]["code"] == "SV0401"
        assert _get(f"{address}/healthz", headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.integration
def test_server_sends_first_words_before_the_rest(full_home: Path) -> None:
    with _served(full_home) as address:
        times: dict[str, float] = {}
        body = {"question": EXACT, "stream": True}
        with httpx.stream("POST", f"{address}/v1/ask", json=body, timeout=120) as response:
            for line in response.iter_lines():
                if line.startswith("event: "):
                    times.setdefault(line.removeprefix("event: "), time.monotonic())
        assert times["first_words"] < times["answer"]


@pytest.mark.integration
def test_server_goes_on_after_clients_that_hang_up(full_home: Path) -> None:
    with _served(full_home) as address:
        _wait_ready(address)
        for _ in range(3):
            body = {"question": EXACT, "stream": True}
            with httpx.stream("POST", f"{address}/v1/ask", json=body, timeout=120) as response:
                next(response.iter_lines())
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{address}/v1/ask", json={"question": EXACT}, timeout=httpx.Timeout(60, read=0.02))
        last = httpx.post(f"{address}/v1/ask", json={"question": EXACT}, timeout=120)
        assert last.json()["kind"] == "answer"


@pytest.mark.integration
def test_questions_while_a_fresh_home_is_still_being_indexed(home: Path) -> None:
    """The first minutes of a new server: rows answer at once, several searches wait for one build."""
    app = create_app(_runtime(home, writer="rules"))

    async def go() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=120) as client,
        ):
            calls = [client.post("/v1/ask", json={"question": f"spindle noise {n}"}) for n in range(8)]
            return await asyncio.gather(*calls)

    assert [response.status_code for response in asyncio.run(go())] == [200] * 8


@pytest.mark.integration
def test_server_with_a_key(home: Path) -> None:
    with _served(home, FAULTWRIGHT_API_KEY="k", FAULTWRIGHT_WRITER="rules") as address:
        assert httpx.post(f"{address}/v1/ask", json={"question": EXACT}, timeout=60).status_code == 401
        headers = {"Authorization": "Bearer k", "Host": "shop.example"}
        assert httpx.post(f"{address}/v1/ask", json={"question": EXACT}, headers=headers, timeout=60).status_code == 200
