"""What one llama.cpp completion has brought so far: chunks in, a `Generation` or the right error out."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

from models.engine import EngineError, EngineTimeout, EngineUnavailable, Finish, Generation, OnText, PromptTooLong


class Run:
    """One streamed completion: its text so far, and whether it has to end.

    Args:
        timeout_s: time limit in seconds, counted from here.
        cancel: set by the caller to end it.
        closing: set by the engine that is being closed.
        on_text: gets each piece of text.
        context_tokens: for the error of a prompt that is too long.
    """

    def __init__(
        self, timeout_s: float, cancel: Event | None, closing: Event, on_text: OnText | None, context_tokens: int
    ) -> None:
        self._started = time.monotonic()
        self._timeout_s = timeout_s
        self._events = [event for event in (cancel, closing) if event is not None]
        self._closing = closing
        self._on_text = on_text
        self._context_tokens = context_tokens
        self._pieces: list[str] = []
        self._finish: Finish | None = None
        self._error: dict[str, Any] | None = None
        self._tokens_in = 0
        self._tokens_out = 0
        self._first_token_s: float | None = None
        self._in_prompt = False
        self.top_logprobs: dict[int, float] = {}

    def must_stop(self) -> bool:
        """Whether it was cancelled or is out of time; the first reason seen stays."""
        if self._finish is None:
            if any(event.is_set() for event in self._events):
                self._finish = "cancelled"
            elif time.monotonic() - self._started > self._timeout_s:
                self._finish = "timeout"
        return self._finish is not None

    def take(self, chunk: dict[str, Any]) -> bool:
        """Read one chunk, or an empty one where none came; True ends the completion."""
        if not chunk:
            return self.must_stop()
        if "error" in chunk:
            self._error = chunk["error"]
            return True
        if progress := chunk.get("prompt_progress"):
            self._in_prompt = True
            self._tokens_in = int(progress["total"])
        if timings := chunk.get("timings"):
            self._tokens_out = int(timings["predicted_n"])
        choice = chunk["choices"][0]
        if self._first_token_s is None and self._tokens_out:
            self._first_token_s = time.monotonic() - self._started
        if logprobs := choice.get("logprobs"):
            top = logprobs["content"][0]["top_logprobs"]
            self.top_logprobs = {int(one["id"]): float(one["logprob"]) for one in top if one["logprob"] is not None}
        if choice["text"]:
            self._pieces.append(choice["text"])
            if self._on_text is not None:
                self._on_text(choice["text"])
        if choice["finish_reason"]:
            self._finish = "length" if choice["finish_reason"] == "length" else "stop"
            usage = chunk.get("usage", {})
            self._tokens_in = int(usage.get("prompt_tokens", self._tokens_in))
            self._tokens_out = int(usage.get("completion_tokens", self._tokens_out))
            return False
        return self.must_stop()

    def result(self) -> Generation:
        """The generation, or the error that stands for it.

        Raises:
            PromptTooLong, EngineTimeout, EngineUnavailable, EngineError: as in `models.engine.Engine.generate`.
        """
        if self._error is not None:
            if self._error.get("type") == "exceed_context_size_error":
                raise PromptTooLong(int(self._error.get("n_prompt_tokens", 0)), self._context_tokens)
            raise EngineError(f"llama.cpp refused the request: {self._error.get('message', self._error)}")
        if self._finish is None:
            raise EngineError("llama.cpp ended without a result. Next: run it again, or build the engine anew")
        if self._tokens_out == 0 and self._closing.is_set():
            raise EngineUnavailable("this engine is closed. Next: build a new one")
        if self._tokens_out == 0 and self._finish == "timeout":
            where = "reading the prompt" if self._in_prompt else "waiting for its turn"
            raise EngineTimeout(self._timeout_s, where)
        return Generation(
            text="".join(self._pieces),
            finish=self._finish,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            seconds=time.monotonic() - self._started,
            first_token_s=self._first_token_s,
        )
