"""An engine that says what it was told to: for tests, demonstrations, and a plan dry-run without a base."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event, Lock

from models.engine import (
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    Finish,
    Generation,
    GenerationRequest,
    LabelScores,
    Message,
    OnText,
    PromptTooLong,
    next_step_for_adapter,
)
from models.schema import check_schema, closed, text_violation

Replies = Sequence[str] | Callable[[GenerationRequest], str]
LabelTable = Mapping[str, float] | Callable[[Sequence[Message]], Mapping[str, float]]


class ScriptedEngine:
    """`Engine` without a model. A token is a word, or six characters of a long one, with the space before it.

    Args:
        replies: one text per `generate` call, in order, or a function of the request.
        labels: probability of each label as the next token (what is left to 1 goes elsewhere), or a function of the
            messages that gives it. Labels not named have none.
        adapters: names that requests may use.
        base_id: what `base_id` says.
        context_tokens: prompt limit, in the tokens above.
        delay_s: pause before each token, in seconds of `clock`.
        strict: refuse a reply that breaks the request's schema or choice. Without it a reply that is no choice becomes
            the first one, and a broken schema passes through.
        clock: the monotonic clock to read.
        sleep: how to pause.
    """

    engine_id = "scripted"

    def __init__(  # noqa: PLR0913 - flat parameters, all with defaults
        self,
        replies: Replies = (),
        *,
        labels: LabelTable | None = None,
        adapters: Sequence[str] = (),
        base_id: str = "scripted",
        context_tokens: int = 4096,
        delay_s: float = 0.0,
        strict: bool = True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.base_id = base_id
        self.adapters = tuple(adapters)
        self.requests: list[GenerationRequest] = []
        self._replies = replies
        self._labels = labels
        self._context_tokens = context_tokens
        self._delay_s = delay_s
        self._strict = strict
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._closed = False

    def generate(
        self, request: GenerationRequest, *, cancel: Event | None = None, on_text: OnText | None = None
    ) -> Generation:
        """See `Engine.generate`."""
        started = self._clock()
        tokens_in = self._check(request.messages, request.adapter)
        if request.json_schema is not None:
            check_schema(request.json_schema)
        with self._lock:
            self.requests.append(request)
            reply = self._constrained(self._next_reply(request), request)
        text, ended = _cut_at_stop(reply, request.stop)
        pieces: list[str] = []
        finish: Finish = "stop"
        first_token_s: float | None = None
        for piece in _pieces(text):
            if len(pieces) == request.max_tokens:
                finish = "length"
                break
            self._sleep(self._delay_s)
            if cancel is not None and cancel.is_set():
                finish = "cancelled"
                break
            if self._clock() - started > request.timeout_s:
                finish = "timeout"
                break
            first_token_s = self._clock() - started if first_token_s is None else first_token_s
            pieces.append(piece)
            if on_text is not None:
                on_text(piece)
        if finish == "timeout" and not pieces:
            raise EngineTimeout(request.timeout_s, "following a script")
        return Generation(
            text=text if finish == "stop" and ended else "".join(pieces),
            finish=finish,
            tokens_in=tokens_in,
            tokens_out=len(pieces),
            seconds=self._clock() - started,
            first_token_s=first_token_s,
        )

    def label_logprobs(
        self,
        messages: Sequence[Message],
        labels: Sequence[str],
        *,
        adapter: str | None = None,
        timeout_s: float = 30.0,
    ) -> LabelScores:
        """See `Engine.label_logprobs`."""
        started = self._clock()
        if not labels or len(set(labels)) != len(labels):
            raise ValueError(f"labels are {list(labels)!r}; they must be one or more, each once")
        for label in labels:
            if self.count_tokens(label) != 1:
                raise ValueError(f"label {label!r} is {self.count_tokens(label)} tokens here; use labels of one token")
        self._check(messages, adapter)
        self._sleep(self._delay_s)
        if self._clock() - started > timeout_s:
            raise EngineTimeout(timeout_s, "following a script")
        if self._labels is None:
            raise EngineError("this ScriptedEngine has no label table. Next: build it with labels={'A': 0.9}")
        table = self._labels(messages) if callable(self._labels) else self._labels
        mass = math.fsum(table.get(label, 0.0) for label in labels)
        if not 0.0 < mass <= 1.0 + 1e-9:
            raise EngineError(f"the label table gives {mass:g} to {list(labels)!r}; more than 0 and at most 1 is valid")
        scores = {label: _log(table.get(label, 0.0) / mass) for label in labels}
        return LabelScores(logprobs=scores, mass=min(1.0, mass))

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`."""
        return sum(1 for _ in _pieces(text))

    def close(self) -> None:
        """See `Engine.close`."""
        self._closed = True

    def _check(self, messages: Sequence[Message], adapter: str | None) -> int:
        if self._closed:
            raise EngineUnavailable("this engine is closed. Next: build a new one")
        if not messages:
            raise ValueError("messages is empty; a prompt needs at least one message")
        if adapter is not None and adapter not in self.adapters:
            raise next_step_for_adapter(adapter, self.adapters)
        tokens = sum(self.count_tokens(message.content) for message in messages)
        if tokens >= self._context_tokens:
            raise PromptTooLong(tokens, self._context_tokens)
        return tokens

    def _next_reply(self, request: GenerationRequest) -> str:
        if callable(self._replies):
            return self._replies(request)
        index = len(self.requests) - 1
        if index >= len(self._replies):
            raise EngineError(
                f"this ScriptedEngine has {len(self._replies)} replies and was asked for number {index + 1}. Next: give"
                " it more, or a function of the request"
            )
        return self._replies[index]

    def _constrained(self, reply: str, request: GenerationRequest) -> str:
        problem: str | None = None
        if request.choice is not None and reply not in request.choice:
            if not self._strict:
                return request.choice[0]
            problem = f"not one of {list(request.choice)!r}"
        elif request.json_schema is not None and self._strict:
            problem = text_violation(reply, closed(request.json_schema))
        if problem:
            raise EngineError(f"the scripted reply {reply[:120]!r} breaks the request: {problem}")
        return reply


def _pieces(text: str) -> Iterator[str]:
    for match in re.finditer(r"\s*\S{1,6}|\s+$", text):
        yield match.group()


def _cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    cuts = [at for stop in stops if (at := text.find(stop)) >= 0]
    return (text[: min(cuts)], True) if cuts else (text, False)


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf
