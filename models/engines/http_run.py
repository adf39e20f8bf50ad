"""One streamed completion over HTTP: read in a thread, so that a cancel or the time limit is seen at once."""

from __future__ import annotations

import json
import re
import socket
import time
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import httpx

from models.engine import EngineTimeout, EngineUnavailable, Finish, Generation, OnText

_SLICE_S = 0.02  # how late a cancel or the time limit is seen while nothing comes
_LEAVE_S = 0.5  # for the thread to give its connection back
_MAY_PASS = (408, 425, 429, 500, 502, 503, 504)


class Refused(Exception):
    """The server answered, and not with a text. `may_pass` tells whether the same request can succeed later."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message[:400]}")
        self.status = status
        self.message = message

    @property
    def may_pass(self) -> bool:
        """False for what is wrong with the request itself."""
        return self.status in _MAY_PASS

    @property
    def about_context(self) -> bool:
        """True where prompt and output together are too long for the server."""
        said = re.search(r"context length|max_model_len|maximum.{0,20}length|too (?:long|large)", self.message)
        return said is not None

    @property
    def limit(self) -> int:
        """The context that the message names, in tokens; 0 where it names none."""
        found = re.search(r"(?:context length|max_model_len)\D{0,12}(\d+)", self.message)
        return int(found[1]) if found else 0


class HttpRun:
    """One completion.

    Args:
        client: of the server.
        body: the request; it must ask for a stream with usage in every piece.
        left_s: seconds that are left.
        timeout_s: the whole limit, for the error.
        cancel: set by the caller to end it.
        closing: set by the engine that is being closed.
        on_text: gets each piece of text.
    """

    def __init__(
        self,
        client: httpx.Client,
        body: dict[str, Any],
        left_s: float,
        timeout_s: float,
        cancel: Event | None,
        closing: Event,
        on_text: OnText | None,
    ) -> None:
        self._client = client
        self._body = body
        self._left_s = left_s
        self._timeout_s = timeout_s
        self._cancel = cancel
        self._closing = closing
        self._on_text = on_text
        self._started = time.monotonic() - (timeout_s - left_s)
        self._queue: SimpleQueue[dict[str, Any] | Exception | None] = SimpleQueue()
        self._socket: socket.socket | None = None
        self._pieces: list[str] = []
        self._finish: Finish | None = None
        self._tokens_in = 0
        self._tokens_out = 0
        self._first_token_s: float | None = None
        self.begun = False
        self.top_logprobs: dict[str, float] = {}

    def read(self) -> None:
        """Run it to its end, a cancel or the time limit.

        Raises:
            Refused: the server said no before anything came.
            httpx.HTTPError: the connection failed.
            Whatever `on_text` raises.
        """
        if self._must_stop():
            return
        thread = Thread(target=self._fetch, name="completion", daemon=True)
        thread.start()
        try:
            while not self._must_stop():
                try:
                    item = self._queue.get(timeout=_SLICE_S)
                except Empty:
                    continue
                if isinstance(item, Exception):
                    raise item
                if item is None or self._take(item):
                    return
        finally:
            self._hang_up()
            thread.join(_LEAVE_S)

    def _fetch(self) -> None:
        """In its own thread: what the server says, piece by piece; then None, or what went wrong."""
        try:
            limit_s = self._left_s + _SLICE_S
            with self._client.stream("POST", "/v1/completions", json=self._body, timeout=limit_s) as answer:
                stream = answer.extensions.get("network_stream")
                self._socket = stream.get_extra_info("socket") if stream else None
                if answer.status_code != 200:
                    answer.read()
                    raise Refused(answer.status_code, _message(answer))
                for line in answer.iter_lines():
                    if line.startswith("data:") and (data := line[5:].strip()) != "[DONE]":
                        self._queue.put(json.loads(data))
            self._queue.put(None)
        except Exception as error:
            self._queue.put(error if isinstance(error, Refused | httpx.HTTPError) else httpx.ReadError(str(error)))

    def _take(self, chunk: dict[str, Any]) -> bool:
        """Read one piece; True where the text has ended."""
        if "error" in chunk:
            raise Refused(int(chunk["error"].get("code") or 500), str(chunk["error"].get("message", chunk["error"])))
        if usage := chunk.get("usage"):
            self._tokens_in = int(usage.get("prompt_tokens") or self._tokens_in)
            self._tokens_out = int(usage.get("completion_tokens") or self._tokens_out)
        for choice in chunk.get("choices", ()):
            self.begun = True
            if self._first_token_s is None:
                self._first_token_s = time.monotonic() - self._started
            if logprobs := (choice.get("logprobs") or {}).get("top_logprobs"):
                self.top_logprobs = {str(token): float(value) for token, value in (logprobs[0] or {}).items()}
            if choice.get("text"):
                self._pieces.append(choice["text"])
                if not chunk.get("usage"):
                    self._tokens_out += 1
                if self._on_text is not None:
                    self._on_text(choice["text"])
            if choice.get("finish_reason"):
                self._finish = "length" if choice["finish_reason"] == "length" else "stop"
        return bool(self._finish and not chunk.get("choices"))  # the last piece carries the usage alone

    def _must_stop(self) -> bool:
        if self._finish is None:
            if self._closing.is_set() or (self._cancel is not None and self._cancel.is_set()):
                self._finish = "cancelled"
            elif time.monotonic() - self._started > self._timeout_s:
                self._finish = "timeout"
            return self._finish is not None
        return self._finish in ("cancelled", "timeout")

    def _hang_up(self) -> None:
        """End the connection where the server still speaks: it stops computing then."""
        if self._finish in ("cancelled", "timeout", None) and self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def result(self) -> Generation:
        """The generation.

        Raises:
            EngineTimeout, EngineUnavailable: as in `models.engine.Engine.generate`.
        """
        if not self._pieces and self._tokens_out == 0:
            if self._closing.is_set():
                raise EngineUnavailable("this engine is closed. Next: build a new one")
            if self._finish == "timeout":
                raise EngineTimeout(self._timeout_s, "waiting for the server")
        return Generation(
            text="".join(self._pieces),
            finish=self._finish or "stop",
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            seconds=time.monotonic() - self._started,
            first_token_s=self._first_token_s if self._tokens_out else None,
        )


def _message(answer: httpx.Response) -> str:
    try:
        said = answer.json()
    except ValueError:
        return answer.text
    error = said.get("error", said) if isinstance(said, dict) else said
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)
