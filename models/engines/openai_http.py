"""An engine on an OpenAI-compatible server: vLLM on a GPU or a CPU, or any other.

Prompts are rendered here (`models.prompts`) and sent to `/v1/completions`, so that a model sees the very tokens that it
was trained on and that the embedded engine gives it; a server's own chat template is never in between. An adapter is a
model name of the server.

What vLLM does that this file is built around (0.32):

- A text that its context cannot hold together with `max_tokens` is refused with 400, so `max_tokens` is clamped.
- Whether a constraint is kept depends on the server's backend: what comes back is checked (`models.schema`).
- Top log-probabilities are limited by `--max-logprobs`, 20 by default: `faultwright engine up` asks for more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from threading import Event
from typing import Any

import httpx

from models.engine import (
    AdapterUnknown,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    Generation,
    GenerationRequest,
    LabelScores,
    Message,
    OnText,
    PromptTooLong,
    next_step_for_adapter,
)
from models.engines.http_run import HttpRun, Refused
from models.prompts import TEMPLATE_IDS, render_chat
from models.schema import check_schema, closed, text_violation

_TOP_TOKENS = 512
_FEW_TOKENS = 20  # what every server gives
_CONNECT_S = 5.0
_RETRIES = (0.2, 0.6)  # seconds before each further try; only what may succeed is tried again


class OpenAIEngine:
    """`Engine` on a server. Requests run side by side; the server schedules them.

    Args:
        url: where it listens, without `/v1`.
        model: name of the base on the server; its first model where None.
        base_id: its id in `models/bases.yaml`; the model's name where empty.
        template: chat template of the base, one of `models.prompts.TEMPLATE_IDS`.
        api_key: sent as a bearer token.
        startup_s: how long the server may take to answer for the first time, in seconds.

    Raises:
        EngineUnavailable: nothing answers at `url`, or it is no such server.
        ValueError: an unknown template.
    """

    engine_id = "openai"

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        base_id: str = "",
        template: str = "chatml",
        api_key: str = "",
        startup_s: float = _CONNECT_S,
    ) -> None:
        if template not in TEMPLATE_IDS:
            raise ValueError(f"template {template!r} does not exist; known: {', '.join(TEMPLATE_IDS)}")
        self.url = url.rstrip("/").removesuffix("/v1")
        self._template = template
        self._closing = Event()
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        limits = httpx.Limits(max_connections=256, max_keepalive_connections=32)
        self._client = httpx.Client(base_url=self.url, headers=headers, limits=limits, timeout=_CONNECT_S)
        try:
            listed = self._models(startup_s)
        except EngineUnavailable:
            self._client.close()
            raise
        bases = [one["id"] for one in listed if not one.get("parent")]
        self._model = model or (bases or [one["id"] for one in listed])[0]
        self.base_id = base_id or self._model
        self.adapters = tuple(one["id"] for one in listed if one["id"] != self._model and one.get("parent"))
        limit = next((one.get("max_model_len") for one in listed if one["id"] == self._model), None)
        self.context_tokens = int(limit) if limit else 0  # 0: the server does not say

    def _models(self, within_s: float) -> list[dict[str, Any]]:
        deadline = time.monotonic() + within_s
        while True:
            reason = ""
            try:
                answer = self._client.get("/v1/models")
                if answer.status_code == 200:
                    listed = answer.json().get("data") or []
                    if not listed:
                        raise EngineUnavailable(f"{self.url} serves no model. Next: faultwright engine status")
                    return list(listed)
                if answer.status_code in (401, 403):
                    raise EngineUnavailable(f"{self.url} refuses the key. Next: set FAULTWRIGHT_ENGINE_KEY")
                reason = f"answers {answer.status_code} to /v1/models"
            except httpx.HTTPError as error:
                reason = f"does not answer ({type(error).__name__}: {error})"
            except ValueError as error:
                reason = f"is no OpenAI-compatible server ({error})"
            if time.monotonic() > deadline:
                raise EngineUnavailable(f"{self.url} {reason}. Next: faultwright engine status, or engine up")
            time.sleep(0.2)

    def generate(
        self, request: GenerationRequest, *, cancel: Event | None = None, on_text: OnText | None = None
    ) -> Generation:
        """See `Engine.generate`."""
        body = {
            "prompt": render_chat(request.messages, self._template),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            **({"stop": list(request.stop)} if request.stop else {}),
            **_constraint(request),
        }
        run = self._run(body, request.adapter, request.timeout_s, cancel, on_text)
        generation = run.result()
        if generation.finish == "stop":
            _check_constraint(generation.text, request)
        return generation

    def label_logprobs(
        self,
        messages: Sequence[Message],
        labels: Sequence[str],
        *,
        adapter: str | None = None,
        timeout_s: float = 30.0,
    ) -> LabelScores:
        """See `Engine.label_logprobs`."""
        if not labels or len(set(labels)) != len(labels):
            raise ValueError(f"labels are {list(labels)!r}; they must be one or more, each once")
        self._open()
        ids = {label: self._label_id(label) for label in labels}
        body = {
            "prompt": render_chat(messages, self._template),
            "max_tokens": 1,
            "temperature": 0.0,
            "return_tokens_as_token_ids": True,
        }
        try:
            run = self._run({**body, "logprobs": _TOP_TOKENS}, adapter, timeout_s, None, None)
        except EngineError as error:
            if not isinstance(error.__cause__, Refused) or "logprobs" not in str(error):
                raise
            run = self._run({**body, "logprobs": _FEW_TOKENS}, adapter, timeout_s, None, None)
        run.result()
        return _scores({label: run.top_logprobs.get(f"token_id:{token}", -math.inf) for label, token in ids.items()})

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`."""
        return len(self._tokens(text)) if text else 0

    def close(self) -> None:
        """See `Engine.close`. The server runs on."""
        self._closing.set()
        self._client.close()

    def _label_id(self, label: str) -> int:
        tokens = self._tokens(label)
        if len(tokens) != 1:
            raise ValueError(f"label {label!r} is {len(tokens)} tokens here; use labels of one token")
        return tokens[0]

    def _tokens(self, text: str) -> list[int]:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        answer = self._asked("/tokenize", body)
        return [int(token) for token in answer["tokens"]]

    def _asked(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._open()
        try:
            answer = self._client.post(path, json=body)
        except httpx.HTTPError as error:
            raise _gone(self.url, error) from error
        if answer.status_code != 200:
            raise EngineUnavailable(f"{self.url}{path} answers {answer.status_code}: this engine needs a vLLM server")
        found: dict[str, Any] = answer.json()
        return found

    def _open(self) -> None:
        if self._closing.is_set():
            raise EngineUnavailable("this engine is closed. Next: build a new one")

    def _run(
        self,
        body: dict[str, Any],
        adapter: str | None,
        timeout_s: float,
        cancel: Event | None,
        on_text: OnText | None,
    ) -> HttpRun:
        """A finished run. Tried again where no byte of an answer came and the reason may pass."""
        self._open()
        started = time.monotonic()
        if adapter is not None and adapter not in self.adapters:
            self._look_for(adapter)
        sent = {
            **body,
            "model": adapter or self._model,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        clamped = False
        for wait in (*_RETRIES, None):
            left = timeout_s - (time.monotonic() - started)
            if left <= 0:
                raise EngineTimeout(timeout_s, "waiting for the server")
            run = HttpRun(self._client, sent, left, timeout_s, cancel, self._closing, on_text)
            try:
                run.read()
            except Refused as refused:
                if refused.status == 400 and refused.about_context and not clamped:
                    sent["max_tokens"], clamped = self._room(str(body["prompt"]), refused), True
                    continue
                if refused.status == 404 and adapter is not None:
                    raise next_step_for_adapter(adapter, self.adapters) from refused
                if wait is None or not refused.may_pass:
                    raise EngineError(f"{self.url} refused the request: {refused}") from refused
            except httpx.HTTPError as error:
                if wait is None or run.begun or left < wait:
                    raise _gone(self.url, error) from error
            else:
                return run
            if wait is not None:
                time.sleep(min(wait, max(left, 0.0)))
        raise EngineUnavailable(f"{self.url} gave no answer. Next: faultwright engine status")

    def _room(self, prompt: str, refused: Refused) -> int:
        """Tokens that may come out.

        Raises:
            PromptTooLong: the prompt alone fills the context.
        """
        tokens, limit = len(self._tokens(prompt)), self.context_tokens or refused.limit
        if not limit or tokens >= limit:
            raise PromptTooLong(tokens, limit or tokens)
        return limit - tokens

    def _look_for(self, adapter: str) -> None:
        """An adapter may have been loaded since: asked once more before it is refused."""
        listed = self._models(0.0)
        self.adapters = tuple(one["id"] for one in listed if one["id"] != self._model and one.get("parent"))
        if adapter not in self.adapters:
            raise next_step_for_adapter(adapter, self.adapters)


def _gone(url: str, error: Exception) -> EngineUnavailable:
    return EngineUnavailable(
        f"{url} broke off or does not answer ({type(error).__name__}: {error}). Next: faultwright engine status"
    )


def _constraint(request: GenerationRequest) -> dict[str, Any]:
    if request.choice is not None:
        return {"structured_outputs": {"choice": list(request.choice)}}
    if request.json_schema is not None:
        check_schema(request.json_schema)
        return {"structured_outputs": {"json": closed(request.json_schema), "disable_any_whitespace": True}}
    return {}


def _check_constraint(text: str, request: GenerationRequest) -> None:
    problem: str | None = None
    if request.choice is not None and text not in request.choice:
        problem = f"none of {list(request.choice)!r}"
    elif request.json_schema is not None:
        problem = text_violation(text, closed(request.json_schema))
    if problem:
        raise EngineError(f"the server did not keep to what was asked ({problem}): {text[:120]!r}")


def _scores(logprobs: dict[str, float]) -> LabelScores:
    mass = math.fsum(math.exp(value) for value in logprobs.values())
    if mass <= 0.0:
        raise EngineError(
            f"none of the labels {list(logprobs)!r} is among the likeliest tokens. Next: start the server with a larger"
            " --max-logprobs (faultwright engine up does), or train the adapter"
        )
    total = math.log(mass)
    return LabelScores(logprobs={label: value - total for label, value in logprobs.items()}, mass=min(1.0, mass))


__all__ = ["AdapterUnknown", "OpenAIEngine"]
