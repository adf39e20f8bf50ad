"""The embedded engine: llama.cpp in this process, on the CPU, one GGUF base with LoRA adapters chosen per request.

What llama.cpp does that this file is built around (xllamacpp 2026.10):

- A request without `lora`, or with an empty list, runs *all* loaded adapters at once. Every request here names the
  scale of every adapter.
- A schema or llguidance grammar that it cannot compile is dropped in silence and the text comes unconstrained:
  `models.schema` checks before and after. Plain schemas allow any whitespace, which the small bases love; the
  `x-guidance` field forbids it (9 tokens instead of 28 for three ids).
- Under a grammar the reported log-probabilities are those without it; labels are read from one free token.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

from models.engine import (
    AdapterUnknown,
    EngineError,
    EngineUnavailable,
    Generation,
    GenerationRequest,
    LabelScores,
    Message,
    OnText,
    next_step_for_adapter,
)
from models.engines.llama_run import Run
from models.engines.llama_server import LlamaServer, usable_cores
from models.gguf import why_adapter_does_not_fit, why_unusable
from models.prompts import TEMPLATE_IDS, render_chat
from models.schema import check_schema, closed, text_violation

_SLICE_S = 0.02  # how late a cancel or the time limit is seen while nothing comes
_TOP_TOKENS = 512  # beyond it a token has less than about 1e-4; asking for all of a vocabulary costs 0.4 s
_ALL_TOKENS = 1_000_000


class LlamaCppEngine:
    """`Engine` on llama.cpp. One request runs at a time; others wait, and their waiting counts in their time limit.

    A cancel or the time limit gives the caller its answer at once. llama.cpp itself stops at the next token or, inside
    a prompt, after the current batch of `batch_tokens` (128 take about 0.3 s on the 135M base with two cores, prefill
    is 6 % slower than with 512); until then the next request waits. With a large base on few cores lower it.

    With `reuse_prefix` the part of a prompt that equals the previous one (same adapter) is not computed again; log-
    probabilities then differ in the sixth digit from a fresh run. Turn it off where runs are compared bit by bit.

    Args:
        base: GGUF file of the base.
        base_id: its id in `models/bases.yaml`.
        template: its chat template, one of `models.prompts.TEMPLATE_IDS`.
        adapters: name to GGUF file of LoRA adapters for that base.
        context_tokens: prompt and output together.
        threads: CPU threads, None for all usable cores.
        batch_tokens: see above.
        reuse_prefix: see above.
        sha256: if given, the base is checked against it first (0.1 s per 100 MB): llama.cpp opens a file whose
            weights are damaged without complaint.

    Raises:
        EngineUnavailable: no xllamacpp, or the base is missing, damaged or refused.
        AdapterUnknown: an adapter file is missing, damaged or made for another base.
        ValueError: an unknown template.
    """

    engine_id = "llama_cpp"

    def __init__(  # noqa: PLR0913 - flat parameters, all but the first with defaults
        self,
        base: Path,
        *,
        base_id: str = "",
        template: str = "chatml",
        adapters: Mapping[str, Path] | None = None,
        context_tokens: int = 4096,
        threads: int | None = None,
        batch_tokens: int = 128,
        reuse_prefix: bool = True,
        sha256: str | None = None,
    ) -> None:
        if template not in TEMPLATE_IDS:
            raise ValueError(f"template {template!r} does not exist; known: {', '.join(TEMPLATE_IDS)}")
        files = dict(adapters or {})
        _check_files(base, files, sha256)
        self.base_id = base_id or base.stem
        self.adapters = tuple(files)
        self.context_tokens = context_tokens
        self._template = template
        self._reuse_prefix = reuse_prefix
        self._server = LlamaServer(
            base,
            list(files.values()),
            context_tokens=context_tokens,
            batch_tokens=batch_tokens,
            threads=threads or usable_cores(),
        )

    def generate(
        self, request: GenerationRequest, *, cancel: Event | None = None, on_text: OnText | None = None
    ) -> Generation:
        """See `Engine.generate`."""
        body = {
            "prompt": render_chat(request.messages, self._template),
            "n_predict": request.max_tokens,
            "temperature": request.temperature,
            "stop": list(request.stop),
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
        ids = self._label_ids(labels)
        body = {"prompt": render_chat(messages, self._template), "n_predict": 1, "temperature": 0.0}
        run = self._run({**body, "n_probs": _TOP_TOKENS}, adapter, timeout_s, None, None)
        seconds = run.result().seconds
        if not any(token in run.top_logprobs for token in ids.values()):
            left = max(timeout_s - seconds, _SLICE_S)
            run = self._run({**body, "n_probs": _ALL_TOKENS}, adapter, left, None, None)
            run.result()
        return _scores({label: run.top_logprobs.get(token, -math.inf) for label, token in ids.items()})

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`. Control tokens that the text spells out count as one each."""
        return len(self._server.tokenize(text))

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Token ids of a rendered prompt: what an adapter's golden fixture is compared with."""
        return tuple(self._server.tokenize(text))

    def close(self) -> None:
        """See `Engine.close`."""
        self._server.close()

    def _label_ids(self, labels: Sequence[str]) -> dict[str, int]:
        if not labels or len(set(labels)) != len(labels):
            raise ValueError(f"labels are {list(labels)!r}; they must be one or more, each once")
        ids: dict[str, int] = {}
        for label in labels:
            tokens = self._server.tokenize(label)
            if len(tokens) != 1:
                raise ValueError(
                    f"label {label!r} is {len(tokens)} tokens in base {self.base_id!r}; use labels of one token, such"
                    " as A to H"
                )
            ids[label] = tokens[0]
        return ids

    def _run(
        self,
        body: dict[str, Any],
        adapter: str | None,
        timeout_s: float,
        cancel: Event | None,
        on_text: OnText | None,
    ) -> Run:
        if adapter is not None and adapter not in self.adapters:
            raise next_step_for_adapter(adapter, self.adapters)
        run = Run(timeout_s, cancel, self._server.closing, on_text, self.context_tokens)
        scales = [{"id": i, "scale": float(name == adapter)} for i, name in enumerate(self.adapters)]
        full = {
            **body,
            "lora": scales,
            "cache_prompt": self._reuse_prefix,
            "return_progress": True,  # a chunk per prompt batch: the only chance to cancel before the first token
            "timings_per_token": True,
        }
        while not self._server.lock.acquire(timeout=_SLICE_S):
            if run.must_stop():
                return run
        if run.must_stop():
            self._server.lock.release()
            return run
        completion = self._server.start(full)
        try:
            while (chunk := completion.next(_SLICE_S)) is not None:
                if run.take(chunk):
                    break
        finally:
            completion.stop()
        return run


def _check_files(base: Path, adapters: Mapping[str, Path], sha256: str | None) -> None:
    if problem := why_unusable(base):
        raise EngineUnavailable(f"base file {base} cannot be used: {problem}. Next: faultwright models pull")
    if sha256 is not None:
        with base.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise EngineUnavailable(
                f"base file {base} has sha256 {found}, expected {sha256}: it is damaged. Next: faultwright models pull"
            )
    for name, path in adapters.items():
        if problem := why_adapter_does_not_fit(path, base):
            raise AdapterUnknown(
                f"adapter {name!r} ({path}) cannot run on base {base.name}: {problem}. Next: export it again for this"
                " base, or start without it"
            )


def _constraint(request: GenerationRequest) -> dict[str, Any]:
    if request.choice is not None:
        # GBNF: unlike the schema path, a broken grammar is refused aloud
        return {"grammar": "root ::= " + " | ".join(json.dumps(text, ensure_ascii=False) for text in request.choice)}
    if request.json_schema is not None:
        check_schema(request.json_schema)
        return {"json_schema": {**closed(request.json_schema), "x-guidance": {"whitespace_flexible": False}}}
    return {}


def _check_constraint(text: str, request: GenerationRequest) -> None:
    problem: str | None = None
    if request.choice is not None and text not in request.choice:
        problem = f"not one of the {len(request.choice)} choices"
    elif request.json_schema is not None:
        problem = text_violation(text, closed(request.json_schema))
    if problem:
        raise EngineError(
            f"llama.cpp did not keep to the constraint ({problem}): {text[:120]!r}. Next: simplify the schema, or"
            " drop the stop strings that may cut it"
        )


def _scores(logprobs: Mapping[str, float]) -> LabelScores:
    mass = sum(math.exp(value) for value in logprobs.values())
    if mass == 0.0:
        raise EngineError("llama.cpp reported no probability for any label. Next: run it again with reuse_prefix=False")
    total = math.log(mass)
    return LabelScores(logprobs={label: value - total for label, value in logprobs.items()}, mass=min(1.0, mass))
