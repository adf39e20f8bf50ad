"""What an engine is: a prompt goes in, text or label scores come out.

The seam of this folder. `models.engines.llama_cpp` runs a base on the CPU of this process, `models.engines.scripted`
serves tests; one contract, `tests/test_engine_contract.py`, runs on every implementation. Times are wall seconds on a
monotonic clock, counted from the call, so that waiting for a busy engine counts too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Annotated, Any, Literal, Protocol

from pydantic import ConfigDict, Field, model_validator

from retrieval.records import Record

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "cancelled", "timeout"]
OnText = Callable[[str], None]


class EngineError(RuntimeError):
    """Anything that an engine could not do. The message says what, and what to try next."""


class EngineUnavailable(EngineError):
    """The engine cannot run at all: no library, no base file, a damaged file, or it was closed."""


class AdapterUnknown(EngineError):
    """An adapter name that this engine did not load, or an adapter file that does not fit the base."""


class PromptTooLong(EngineError):
    """The prompt alone fills the context. `tokens` is its length, `limit` the context, both in tokens."""

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens = tokens
        self.limit = limit
        super().__init__(
            f"the prompt has {tokens} tokens, but must stay under {limit} (the context of this engine): send fewer or"
            " shorter items, or start the engine with a larger context_tokens"
        )


class EngineTimeout(EngineError):
    """The time limit passed before a single token came. `timeout_s` is that limit in seconds."""

    def __init__(self, timeout_s: float, waiting_for: str) -> None:
        self.timeout_s = timeout_s
        super().__init__(
            f"no token within {timeout_s:g} s (was {waiting_for}): raise timeout_s, shorten the prompt, or use a"
            " smaller base"
        )


class Message(Record):
    """One message of a chat, before any template is applied."""

    role: Role
    content: str


class GenerationRequest(Record):
    """One generation.

    `adapter` names a loaded adapter, None runs the bare base. `max_tokens` caps the output. `temperature` 0.0 is
    greedy. `stop` strings end the text and are not part of it. At most one of `json_schema` (a subset, see
    `models.schema`) and `choice` (the text is exactly one of these) constrains the output; cut by `max_tokens`, a
    time limit or a cancel, such a text is incomplete, which `Generation.finish` tells.
    """

    messages: Annotated[tuple[Message, ...], Field(min_length=1)]
    adapter: str | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 256
    temperature: Annotated[float, Field(ge=0.0)] = 0.0
    stop: tuple[str, ...] = ()
    json_schema: dict[str, Any] | None = None
    choice: tuple[str, ...] | None = None
    timeout_s: Annotated[float, Field(gt=0.0)] = 30.0

    @model_validator(mode="after")
    def _one_constraint(self) -> GenerationRequest:
        if self.json_schema is not None and self.choice is not None:
            raise ValueError("json_schema and choice were both given; give one of them")
        if self.choice is not None and (not self.choice or not all(self.choice)):
            raise ValueError(f"choice is {self.choice!r}; it needs at least one text, none of them empty")
        if not all(self.stop):
            raise ValueError(f"stop is {self.stop!r}; an empty stop string would end every text at once")
        return self


class Generation(Record):
    """What came out.

    `finish` is `stop` (the model ended, or a stop string came), `length` (max_tokens or the context is full),
    `cancelled` or `timeout` (the text so far). `seconds` is the whole call, `first_token_s` the time to the first
    token, None where none came.
    """

    text: str
    finish: Finish
    tokens_in: int
    tokens_out: int
    seconds: float
    first_token_s: float | None


class LabelScores(Record):
    """Natural log-probabilities of labels as the next token, renormalised over the labels (they sum to 1 as exp).

    `mass` in [0, 1] is the total probability that the labels had among all tokens: little mass means that the model
    wanted to say something else, so abstain. A label too unlikely to be reported has -inf.
    """

    model_config = ConfigDict(ser_json_inf_nan="strings")  # plain JSON has no -inf; null would not read back

    logprobs: dict[str, float]
    mass: Annotated[float, Field(ge=0.0, le=1.0)]

    @property
    def best(self) -> str:
        """The likeliest label."""
        return max(self.logprobs, key=lambda label: self.logprobs[label])


class Engine(Protocol):
    """One base with any number of adapters. Methods may be called from several threads at once."""

    @property
    def engine_id(self) -> str:
        """The kind of engine, such as `llama_cpp`."""

    @property
    def base_id(self) -> str:
        """The base that runs, as in `models/bases.yaml`."""

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names that `GenerationRequest.adapter` may take."""

    def generate(
        self, request: GenerationRequest, *, cancel: Event | None = None, on_text: OnText | None = None
    ) -> Generation:
        """Text for a request. `on_text` gets each piece as it comes; the pieces joined are `Generation.text`.

        Setting `cancel` from any thread ends the text within a few tokens. An exception of `on_text` ends it too and
        is raised from here.

        Raises:
            AdapterUnknown: `request.adapter` is not loaded.
            PromptTooLong: the prompt alone fills the context.
            EngineTimeout: the time limit passed before anything came; later, the text so far is returned.
            EngineUnavailable: the engine is closed.
            ValueError: `request.json_schema` uses what `models.schema` does not know.
        """

    def label_logprobs(
        self,
        messages: Sequence[Message],
        labels: Sequence[str],
        *,
        adapter: str | None = None,
        timeout_s: float = 30.0,
    ) -> LabelScores:
        """How likely each label is as the next token, read from one unconstrained token at temperature 0.

        Raises:
            ValueError: no labels, repeated labels, or a label that is not a single token of this base.
            AdapterUnknown, PromptTooLong, EngineTimeout, EngineUnavailable: as in `generate`.
        """

    def count_tokens(self, text: str) -> int:
        """Tokens of a text in this base's own vocabulary, without any that a template or the base adds."""

    def close(self) -> None:
        """Free the memory. A running generation ends as cancelled. Closing twice is fine."""


def next_step_for_adapter(name: str, known: Sequence[str]) -> AdapterUnknown:
    """The error for an adapter that is not loaded: every engine says it the same way."""
    listed = ", ".join(known) if known else "none is loaded"
    return AdapterUnknown(
        f"adapter {name!r} is not loaded; known: {listed}. Start the engine with it, or send adapter=None for the"
        " bare base"
    )
