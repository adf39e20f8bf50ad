"""The HTTP API: the same runs as the command line, blocking or as server-sent events.

No key is needed on localhost; there, requests must name localhost as their host, so that a web page elsewhere cannot
reach the machine through a rebound name. Beyond localhost a key is.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware

from agents.lookup import entries_for_code
from agents.state import Cancelled
from retrieval.errors import RetrievalError
from retrieval.families import resolve_vendor
from retrieval.records import Answer, FaultCode, KnowledgeEntry
from serve.runtime import Runtime
from serve.settings import SettingsError

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]", "testserver.localhost")
MAX_QUESTION = 4000


class AskRequest(BaseModel):
    """A question to `POST /v1/ask`."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=MAX_QUESTION, description="The question, in Chinese or English.")
    vendor: str | None = Field(default=None, description="Controller: fanuc, siemens, haas ... or fanuc/30i.")
    machine: str | None = Field(default=None, max_length=200, description='The machine in words: "FANUC 0i-MF".')
    stream: bool = Field(default=False, description="Answer as server-sent events.")


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

    app = FastAPI(title="Faultwright", version="0.1.0", lifespan=lifespan)
    app.state.runtime = runtime
    if not runtime.settings.api_key:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(LOCAL_HOSTS))
    app.add_exception_handler(RetrievalError, _domain_error)
    app.add_api_route("/v1/ask", ask, methods=["POST"], response_model=Answer, responses=_SSE, dependencies=[Key])
    app.add_api_route(
        "/v1/codes/{vendor}/{code}", codes, methods=["GET"], response_model=list[CodeMatch], dependencies=[Key]
    )
    app.add_api_route("/healthz", healthz, methods=["GET"])
    app.add_api_route("/readyz", readyz, methods=["GET"])
    return app


_SSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "An Answer, or events."}
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
    if not hmac.compare_digest(given.encode(), wanted.encode()):
        raise HTTPException(401, "Send the key of this server: 'Authorization: Bearer KEY'.")


Key = Depends(_require_key)


async def _domain_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, RetrievalError):
        raise error
    return JSONResponse({"detail": error.what, "next_step": error.next_step}, status_code=503)


async def ask(body: AskRequest, request: Request, runtime: RuntimeDep) -> Response:
    """Answer a question. With `stream` (or `Accept: text/event-stream`) as events: first_words, step, answer."""
    try:
        if body.vendor:
            resolve_vendor(body.vendor)
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    cancel = threading.Event()
    if body.stream or "text/event-stream" in request.headers.get("accept", ""):
        return StreamingResponse(
            _events(runtime, body, cancel), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    def work() -> dict[str, Any]:
        return runtime.answer(body.question, vendor=body.vendor, machine=body.machine, cancel=cancel)

    result = await _while_connected(request, work, cancel)
    return JSONResponse(result["answer"])


async def _while_connected(
    request: Request, work: Callable[[], dict[str, Any]], cancel: threading.Event
) -> dict[str, Any]:
    """Run blocking work in a thread; a client that goes away stops it, so that nobody's GPU or core works for no one."""
    results: list[dict[str, Any]] = []

    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while not await request.is_disconnected():  # noqa: ASYNC110 - the only way that ASGI offers
                await anyio.sleep(0.2)
            cancel.set()

        group.start_soon(watch)
        try:
            results.append(await anyio.to_thread.run_sync(work))
        except Cancelled as gone:
            raise HTTPException(499, "The client went away.") from gone
        finally:
            group.cancel_scope.cancel()
    return results[0]


async def _events(runtime: Runtime, body: AskRequest, cancel: threading.Event) -> AsyncIterator[str]:
    send, receive = anyio.create_memory_object_stream[dict[str, Any]](64)

    def work() -> None:
        try:
            for event in runtime.ask(body.question, vendor=body.vendor, machine=body.machine, cancel=cancel):
                anyio.from_thread.run(send.send, event)
        except Cancelled:
            pass
        except RetrievalError as error:
            anyio.from_thread.run(send.send, {"type": "error", "detail": error.what, "next_step": error.next_step})
        finally:
            anyio.from_thread.run_sync(send.close)

    try:
        async with anyio.create_task_group() as group, receive:
            group.start_soon(anyio.to_thread.run_sync, work)
            async for event in receive:
                shown = {k: v for k, v in event.items() if k not in ("type", "steps", "conversation")}
                yield f"event: {event['type']}\ndata: {json.dumps(shown, ensure_ascii=False)}\n\n"
    finally:
        cancel.set()


async def codes(vendor: str, code: str, runtime: RuntimeDep) -> list[CodeMatch]:
    """What the base holds on a code of one vendor, in any spelling."""
    try:
        vendor_id, family = resolve_vendor(vendor)
    except ValueError as error:
        raise HTTPException(404, str(error)) from error
    found = await anyio.to_thread.run_sync(entries_for_code, runtime.searcher, code, vendor_id, family)
    if not found:
        raise HTTPException(404, f"No entry for {code!r} on {vendor_id} among {runtime.store.counts()['codes']} codes.")
    return [CodeMatch(key=key, entry=entry) for key, entry in found]


async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


async def readyz(response: Response, runtime: RuntimeDep) -> dict[str, str]:
    """Whether questions are answered in full: rows, index and model. 503 until the index is there."""
    index = "ready" if runtime.searcher.loaded else "not loaded"
    response.status_code = 200 if runtime.searcher.loaded else 503
    return {"knowledge": f"{runtime.store.counts()['codes']} codes", "index": index, "model": runtime.writer.state}


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
    uvicorn.run(create_app(runtime), host=settings.host, port=settings.port, log_level="info")


def is_local(host: str) -> bool:
    """True for localhost and loopback addresses."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
