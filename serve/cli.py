"""The command line: every door that needs no browser. Rooms' own commands are mounted here.

Heavy imports happen inside the commands: `faultwright --help` and an exact code must not wait for LangGraph or FAISS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from agents.state import Conversation
    from serve.runtime import Runtime

app = typer.Typer(
    name="faultwright", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="A maintenance assistant for CNC machine tools: grounded answers on fault codes, in Chinese and English.",
)
knowledge_app = typer.Typer(no_args_is_help=True, help="The knowledge base: check and list its entries.")
index_app = typer.Typer(no_args_is_help=True, help="The search index: build it, see its state.")
app.add_typer(knowledge_app, name="knowledge")
app.add_typer(index_app, name="index")

VendorOption = Annotated[
    str | None, typer.Option("--vendor", help="Controller: fanuc, siemens, haas, grbl, linuxcnc ... or fanuc/30i.")
]
MachineOption = Annotated[str | None, typer.Option("--machine", help='The machine in words: "FANUC 0i-MF".')]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Data home (default: FAULTWRIGHT_HOME or the user's data folder).")
]


def main() -> None:
    """Entry point of the `faultwright` script: mounts the rooms, turns known errors into one clear line."""
    from models.cli import models_app  # noqa: PLC0415 - a room's commands, mounted late

    app.add_typer(models_app, name="models")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def _fail(error: object, code: int = 2) -> NoReturn:
    typer.secho(f"faultwright: {error}", fg=typer.colors.RED, err=True)
    raise typer.Exit(code)


@contextmanager
def _errors() -> Iterator[None]:
    """Known errors become one line on stderr and exit code 2; faults of ours keep their traceback."""
    from agents.trace import TraceMissing
    from models.engine import EngineError
    from retrieval.errors import RetrievalError
    from serve.settings import SettingsError

    try:
        yield
    except (RetrievalError, EngineError, SettingsError, TraceMissing, ValueError) as error:
        if isinstance(error, ValueError) and not isinstance(error, SettingsError) and "known:" not in str(error):
            raise
        _fail(error)


def _notice(line: str) -> None:
    typer.secho(f"faultwright: {line}", fg=typer.colors.YELLOW, err=True)


class _IndexProgress:
    """A progress bar on stderr while an index is built; plain lines where stderr is no terminal."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: Any = None
        self._last = -1

    def __call__(self, done: int, total: int) -> None:
        if done >= total and self._bar is None and self._last < 0:
            return
        if sys.stderr.isatty():
            self._draw(done, total)
        elif done * 4 // max(total, 1) != self._last * 4 // max(total, 1) or self._last < 0:
            typer.echo(f"faultwright: building the search index, {done} of {total} passages", err=True)
        self._last = done

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("building the search index (once)", total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done)
        if done >= total:
            self._bar.stop()


def _runtime(home: Path | None = None, **overrides: object) -> Runtime:
    from serve.runtime import Runtime
    from serve.settings import load_settings

    return Runtime(load_settings(home=home, **overrides), progress=_IndexProgress(), notice=_notice)


@app.command()
def ask(
    question: Annotated[list[str] | None, typer.Argument(help="The question, in Chinese or English.")] = None,
    vendor: VendorOption = None,
    machine: MachineOption = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help='JSONL, a question a line: {"id", "question", "vendor"?, "machine"?}; - = stdin.'),
    ] = None,
    as_json: JsonOption = False,
    show_trace: Annotated[bool, typer.Option("--trace", help="Print the steps of the run after the answer.")] = False,
    home: HomeOption = None,
) -> None:
    """Answer a question: the certain part at once, then diagnosis, action, prevention and sources."""
    with _errors():
        if file is not None:
            raise typer.Exit(_ask_file(_runtime(home), file, vendor))
        text = " ".join(question or []).strip()
        if not text:
            _fail('no question. Type: faultwright ask "FANUC SV0401"')
        runtime = _runtime(home)
        try:
            event = _ask_json(runtime, text, vendor, machine) if as_json else _ask_stream(runtime, text, vendor, machine)
            if show_trace:
                from agents.trace import as_text

                typer.echo("\n" + as_text({"question": text, **event}), err=as_json)
        finally:
            runtime.close()


def _ask_json(runtime: Runtime, text: str, vendor: str | None, machine: str | None) -> dict[str, Any]:
    event = runtime.answer(text, vendor=vendor, machine=machine)
    typer.echo(json.dumps(event["answer"], ensure_ascii=False))
    return event


def _ask_stream(
    runtime: Runtime, text: str, vendor: str | None, machine: str | None, talk: Conversation | None = None
) -> dict[str, Any]:
    spoken = ""
    event: dict[str, Any] = {}
    for event in runtime.ask(text, vendor=vendor, machine=machine, conversation=talk):
        if event["type"] == "first_words":
            spoken = event["text"]
            typer.echo(spoken)
    answer = event["answer"]
    whole: str = answer["text"]
    if spoken and whole.startswith(spoken):
        typer.echo(whole[len(spoken) :].removeprefix("\n"))
    else:
        typer.echo(whole)
    for note in answer["degraded"]:
        typer.secho(f"note: {note}", fg=typer.colors.YELLOW)
    typer.secho(f"trace: {answer['trace_id']}", dim=True)
    return event


def _ask_file(runtime: Runtime, path: Path, vendor: str | None) -> int:
    """One Answer a line on stdout; a bad row is named on stderr and does not stop the rest. Exit code 1 if any was bad."""
    bad = 0
    try:
        lines = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        _fail(f"cannot read {path}: {error}")
    try:
        for row, line in enumerate(lines.splitlines(), start=1):
            if not line.strip():
                continue
            try:
                item = _question_row(json.loads(line))
                event = runtime.answer(
                    item["question"], vendor=item.get("vendor") or vendor, machine=item.get("machine"),
                    answer_id=str(item["id"]),
                )
            except ValueError as error:
                bad += 1
                typer.secho(f"faultwright: {path}, line {row}: {error}", fg=typer.colors.RED, err=True)
                continue
            typer.echo(json.dumps(event["answer"], ensure_ascii=False))
    finally:
        runtime.close()
    return 1 if bad else 0


def _question_row(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise ValueError('needs an object {"id", "question", "vendor"?, "machine"?}')
    if unknown := set(item) - {"id", "question", "vendor", "machine"}:
        raise ValueError(f"unknown fields {sorted(unknown)}; known: id, question, vendor, machine")
    if not isinstance(item.get("id"), str | int):
        raise ValueError("field 'id' must be a string or an integer")
    for name in ("question", "vendor", "machine"):
        if not isinstance(item.get(name, ""), str | None):
            raise ValueError(f"field {name!r} must be a string")
    if not (item.get("question") or "").strip():
        raise ValueError("field 'question' is missing or empty")
    return item


@app.command()
def chat(vendor: VendorOption = None, machine: MachineOption = None, home: HomeOption = None) -> None:
    """Ask in turns: the machine and the alarm are remembered; /new starts over, /quit ends."""
    with _errors():
        from agents.state import Conversation

        runtime = _runtime(home)
        talk = Conversation()
        typer.secho("Ask about an alarm or a symptom. /new = new machine, /quit = end.", dim=True, err=True)
        try:
            while True:
                try:
                    text = input("> " if sys.stdin.isatty() else "").strip()
                except (EOFError, KeyboardInterrupt):
                    break
                if text in ("/quit", "/exit", "/q"):
                    break
                if text == "/new":
                    talk = Conversation()
                elif text:
                    event = _ask_stream(runtime, text, vendor, machine, talk)
                    talk = Conversation.model_validate(event["conversation"])
                    typer.echo("")
        finally:
            runtime.close()


@app.command()
def lookup(
    code: Annotated[list[str], typer.Argument(help="A fault code in any spelling: SV0401, 'SV 401', 401.")],
    vendor: VendorOption = None,
    language: Annotated[str, typer.Option("--language", help="en or zh.")] = "en",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show what the base holds on a code: no model, no search, every controller that has it."""
    with _errors():
        from agents.lookup import entries_for_code, entry_text

        runtime = _runtime(home)
        vendor_id, family = runtime.machine(vendor, None)
        found = entries_for_code(runtime.searcher, " ".join(code), vendor_id, family)
        if as_json:
            typer.echo(json.dumps([e.model_dump(mode="json") for _, e in found], ensure_ascii=False))
        elif found:
            typer.echo("\n\n".join(entry_text(e, key, "zh" if language == "zh" else "en") for key, e in found))
        else:
            counts = runtime.store.counts()
            _fail(f"no entry for {' '.join(code)!r} among {counts['codes']} codes. See: faultwright knowledge list", 1)
        if not found:
            raise typer.Exit(1)


@app.command()
def search(
    text: Annotated[list[str], typer.Argument(help="Words to search for.")],
    vendor: VendorOption = None,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="alarm, guide, procedure, parameter.")] = None,
    count: Annotated[int, typer.Option("--count", min=1, max=50)] = 8,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show what retrieval sees for a text, and why: similarity, fused rank, what matched, whether it passes."""
    with _errors():
        from retrieval.search import MIN_SIMILARITY

        kinds = tuple(kind or ("alarm", "guide", "procedure", "parameter"))
        if unknown := set(kinds) - {"alarm", "guide", "procedure", "parameter"}:
            _fail(f"unknown kind {sorted(unknown)}; known: alarm, guide, procedure, parameter")
        runtime = _runtime(home)
        vendor_id, _ = runtime.machine(vendor, None)
        hits = runtime.searcher.search(" ".join(text), kinds=kinds, vendor=vendor_id, count=count)  # type: ignore[arg-type]
        if as_json:
            typer.echo(json.dumps([h.model_dump(mode="json") for h in hits], ensure_ascii=False))
            return
        for hit in hits:
            mark = "pass" if hit.similarity >= MIN_SIMILARITY else "  - "
            entry = runtime.store.entry(hit.entry_id)
            title = entry.title.en if entry else ""
            typer.echo(
                f"{mark} {hit.similarity:.3f}  rank {hit.rank_score:.4f}  {'+'.join(hit.matched_by):<15} {hit.entry_id:<36} {title}"
            )
        for note in runtime.searcher.degraded:
            _notice(note)
        typer.secho(f"pass = similarity of at least {MIN_SIMILARITY}", dim=True)


@app.command()
def explain(
    trace_id: Annotated[str, typer.Argument(help="The trace id that an answer names.")],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show the steps behind an answer: what was read, searched, judged, written and removed."""
    with _errors():
        from agents import trace
        from serve.settings import load_settings

        found = trace.load(load_settings(home=home).home, trace_id)
        typer.echo(json.dumps(found, ensure_ascii=False) if as_json else trace.as_text(found))


@app.command()
def serve(
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 = any free one.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address; beyond localhost FAULTWRIGHT_API_KEY is needed.")] = None,
    home: HomeOption = None,
) -> None:
    """Serve the HTTP API: POST /v1/ask, GET /v1/codes/{vendor}/{code}, /healthz, /readyz; docs at /docs."""
    with _errors():
        from serve.api import listen

        listen(_runtime(home, port=port, host=host))


@knowledge_app.command("check")
def knowledge_check(
    folder: Annotated[Path | None, typer.Argument(help="Folder of YAML files; the base in use where left out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check all entries against the schema and each other; count them by status."""
    with _errors():
        from collections import Counter

        from retrieval.base import knowledge_files, load_entries, starter_folder
        from serve.settings import load_settings

        entries = load_entries(knowledge_files(folder or load_settings().knowledge or starter_folder()))
        kinds = Counter(e.kind for e in entries)
        statuses = Counter(e.status for e in entries)
        if as_json:
            typer.echo(json.dumps({"entries": len(entries), "kinds": kinds, "statuses": statuses}))
        else:
            typer.echo(f"{len(entries)} entries: {_counts(kinds)}; {_counts(statuses)}")


def _counts(counter: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(counter.items()))


@knowledge_app.command("list")
def knowledge_list(vendor: VendorOption = None, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """List the entries: codes, title, how far each is checked."""
    with _errors():
        runtime = _runtime(home)
        vendor_id, _ = runtime.machine(vendor, None)
        entries = [e for e in runtime.store.entries() if vendor_id in (None, e.vendor)]
        if as_json:
            rows = [{"id": e.id, "kind": e.kind, "codes": [str(c) for c in e.fault_codes], "status": e.status} for e in entries]
            typer.echo(json.dumps(rows, ensure_ascii=False))
            return
        for e in entries:
            codes = " ".join(dict.fromkeys(k.code for k in e.keys))
            typer.echo(f"{e.status:<16} {e.vendor:<9} {codes:<28} {e.title.en} / {e.title.zh}")


@index_app.command("build")
def index_build(home: HomeOption = None) -> None:
    """Make the search index anew from the knowledge base and put it in use."""
    with _errors():
        from retrieval.index import build

        runtime = _runtime(home)
        name = build(runtime.settings.home, runtime.store, runtime.searcher.embedder, _IndexProgress())
        typer.echo(f"index {name}: {_counts(runtime.store.counts())}")


@index_app.command("status")
def index_status(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show the index in use; exit code 1 where there is none or it cannot be believed."""
    with _errors():
        from retrieval.index import load

        runtime = _runtime(home)
        manifest = load(runtime.settings.home, runtime.searcher.embedder, runtime.store.fingerprint).manifest
        shown = {k: v for k, v in manifest.items() if k != "files"}
        typer.echo(json.dumps(shown) if as_json else "\n".join(f"{k}: {v}" for k, v in shown.items()))


def command_tree() -> Iterator[tuple[str, Callable[..., Any] | None]]:
    """Every command with its function, for the generated reference."""
    for group, prefix in ((app, ""), (knowledge_app, "knowledge "), (index_app, "index ")):
        for command in group.registered_commands:
            if command.callback is not None:
                yield prefix + (command.name or command.callback.__name__), command.callback
