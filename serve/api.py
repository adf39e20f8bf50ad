"""The HTTP API: the same runs as the command line, blocking or as server-sent events.

No key is needed on localhost; there, requests must name localhost as their host, so that a web page elsewhere cannot
reach the machine through a rebound name. Beyond localhost a key is.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio.to_thread
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware

from agents.lookup import entries_for_code
from agents.state import Cancelled
from retrieval.errors import RetrievalError
from retrieval.records import Answer, FaultCode, KnowledgeEntry
from serve.runtime import MAX_MACHINE, MAX_QUESTION, QuestionError, Runtime
from serve.settings import SettingsError

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
CLIENT_GONE = 499  # nobody reads it; access logs know the number from nginx
_WATCH_S = 0.2
_log = logging.getLogger("faultwright")


class AskRequest(BaseModel):
    """A question to `POST /v1/ask`."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=MAX_QUESTION, description="The question, in Chinese or English.")
    vendor: str | None = Field(default=None, description="Controller: fanuc, siemens, haas ... or fanuc/30i.")
    machine: str | None = Field(
        default=None, max_length=MAX_MACHINE, description='The machine in words: "FANUC 0i-MF".'
    )
    stream: bool = Field(default=False, description="Answer as server-sent events.")


class Problem(BaseModel):
    """Why a request was not served, and what to do."""

    detail: str
    next_step: str = ""


class CodeMatch(BaseModel):
    """An entry found by its code, with the key that matched."""

    key: FaultCode
    entry: KnowledgeEntry


def create_app(runtime: Runtime) -> FastAPI:
    """The application over one runtime."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        # the first question should not wait for index and engine; a health check answers meanwhile
        threading.Thread(target=_warm, args=(runtime,), name="warm", daemon=True).start()
        yield
        await anyio.to_thread.run_sync(runtime.close)

    # no /docs page: it would load its scripts from a public server; /openapi.json is there
    app = FastAPI(title="Faultwright", version="0.1.0", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.runtime = runtime
    if not runtime.settings.api_key:
        hosts = [*LOCAL_HOSTS, runtime.settings.host]
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    app.add_exception_handler(RetrievalError, _cannot_answer)
    app.add_exception_handler(QuestionError, _bad_question)
    app.add_exception_handler(RequestValidationError, _bad_body)
    app.add_api_route(
        "/v1/ask",
        ask,
        methods=["POST"],
        response_model=Answer,
        responses={**_SSE, **_PROBLEMS},
        dependencies=[Key],
    )
    app.add_api_route(
        "/v1/codes/{vendor}/{code:path}",
        codes,
        methods=["GET"],
        response_model=list[CodeMatch],
        responses={404: {"model": Problem, "description": "No entry."}, **_PROBLEMS},
        dependencies=[Key],
    )
    app.add_api_route("/healthz", healthz, methods=["GET"])
    app.add_api_route("/readyz", readyz, methods=["GET"], responses={503: {"description": "Not ready yet."}})
    return app


_SSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "An Answer, or events."}
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "The key is missing or wrong."},
    503: {"model": Problem, "description": "Rows or index cannot be used."},
}


def _runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


RuntimeDep = Annotated[Runtime, Depends(_runtime)]


def _require_key(request: Request, runtime: RuntimeDep) -> None:
    wanted = runtime.settings.api_key
    if not wanted:
        return
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    # header bytes arrive as latin-1 characters, whatever they stand for
    if not hmac.compare_digest(given.encode("latin-1"), wanted.encode()):
        raise HTTPException(
            401, "Send the key of this server: 'Authorization: Bearer KEY'.", {"WWW-Authenticate": "Bearer"}
        )


Key = Depends(_require_key)


async def _cannot_answer(_request: Request, error: Exception) -> Response:
    return JSONResponse(_problem(error), status_code=503)


async def _bad_question(_request: Request, error: Exception) -> Response:
    return JSONResponse(_problem(error), status_code=422)


async def _bad_body(_request: Request, error: Exception) -> Response:
    """As FastAPI says it, without the input: broken text in it could not be sent back."""
    faults = error.errors() if isinstance(error, RequestValidationError) else ()
    return JSONResponse({"detail": [{name: e[name] for name in ("type", "loc", "msg")} for e in faults]}, 422)


def _problem(error: Exception) -> dict[str, str]:
    if isinstance(error, RetrievalError):
        return {"detail": error.what, "next_step": error.next_step}
    return {"detail": str(error), "next_step": "correct the request and send it again"}


async def ask(body: AskRequest, request: Request, runtime: RuntimeDep) -> Response:
    """Answer a question. With `stream` (or `Accept: text/event-stream`) as events: first_words, step, answer."""
    runtime.check(body.question, body.vendor, body.machine)
    cancel = threading.Event()
    if body.stream or "text/event-stream" in request.headers.get("accept", ""):
        return StreamingResponse(
            _events(runtime, body, cancel), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    def work() -> dict[str, Any]:
        return runtime.answer(body.question, vendor=body.vendor, machine=body.machine, cancel=cancel)

    try:
        result = await _while_connected(request, work, cancel)
    except Cancelled:
        return Response(status_code=CLIENT_GONE)
    return JSONResponse(result["answer"])


async def _while_connected(
    request: Request, work: Callable[[], dict[str, Any]], cancel: threading.Event
) -> dict[str, Any]:
    """Run blocking work in a thread; a client that goes away stops it: nobody's core works for no one."""
    running = asyncio.ensure_future(anyio.to_thread.run_sync(work))
    try:
        while not (await asyncio.wait({running}, timeout=_WATCH_S))[0]:
            if await request.is_disconnected():
                cancel.set()
        return running.result()
    finally:
        cancel.set()


async def _events(runtime: Runtime, body: AskRequest, cancel: threading.Event) -> AsyncIterator[str]:
    """The events of a run as text. The run has a thread of its own; when this generator is closed, it stops."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def hand(event: dict[str, Any] | None) -> None:
        if not cancel.is_set():
            loop.call_soon_threadsafe(queue.put_nowait, event)

    def work() -> None:
        try:
            for event in runtime.ask(body.question, vendor=body.vendor, machine=body.machine, cancel=cancel):
                hand(event)
        except Cancelled:
            pass
        except RetrievalError as error:
            hand({"type": "error", **_problem(error)})
        except Exception:
            _log.exception("a run failed")
            hand({"type": "error", "detail": "The run failed.", "next_step": "see the log of the server"})
        finally:
            hand(None)

    running = asyncio.ensure_future(anyio.to_thread.run_sync(work))
    try:
        while (event := await queue.get()) is not None:
            shown = {key: value for key, value in event.items() if key not in ("type", "steps", "conversation")}
            yield f"event: {event['type']}\ndata: {json.dumps(shown, ensure_ascii=False)}\n\n"
        await running
    finally:
        cancel.set()


def codes(vendor: str, code: str, runtime: RuntimeDep) -> list[CodeMatch]:
    """What the base holds on a code of one vendor, in any spelling."""
    try:
        vendor_id, family = runtime.check(code, vendor, None)
    except QuestionError as error:
        raise HTTPException(404, str(error)) from error
    found = entries_for_code(runtime.searcher, code, vendor_id, family)
    if not found:
        raise HTTPException(404, f"No entry for {code!r} on {vendor} among {runtime.store.counts()['codes']} codes.")
    return [CodeMatch(key=key, entry=entry) for key, entry in found]


async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


def readyz(response: Response, runtime: RuntimeDep) -> dict[str, str]:
    """Whether questions are answered in full: rows, index and model. 503 until the index is there."""
    ready = runtime.searcher.loaded
    response.status_code = 200 if ready else 503
    return {
        "knowledge": f"{runtime.store.counts()['codes']} codes",
        "index": "ready" if ready else "not loaded",
        "model": runtime.writer.state,
    }


def _warm(runtime: Runtime) -> None:
    runtime.writer.start()
    try:
        runtime.searcher.ready()
    except RetrievalError as error:
        runtime.notice(str(error))


def listen(runtime: Runtime) -> None:
    """Serve until stopped.

    Raises:
        SettingsError: an address beyond localhost without a key.
    """
    import uvicorn  # noqa: PLC0415

    settings = runtime.settings
    if not is_local(settings.host) and not settings.api_key:
        raise SettingsError(
            f"Listening on {settings.host} lets others in: set FAULTWRIGHT_API_KEY, or use --host 127.0.0.1."
        )
    _check_port(settings.host, settings.port)
    uvicorn.run(create_app(runtime), host=settings.host, port=settings.port, log_level="info")


def _check_port(host: str, port: int) -> None:
    """Find out before anything is loaded whether the port is free.

    Raises:
        SettingsError: it is not, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingsError(
                f"Cannot listen on {host} port {port}: {error.strerror or error}. Use another --port."
            ) from error


def is_local(host: str) -> bool:
    """True for localhost and loopback addresses."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
