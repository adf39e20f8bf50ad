"""The command line: every door that needs no browser. Rooms' own commands are mounted here.

Heavy imports happen inside the commands: `faultwright --help` and an exact code must not wait for LangGraph or FAISS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from serve.ingest_cli import ingest
from serve.knowledge_cli import knowledge_app
from serve.terminal import NOTHING, IndexProgress, fail, known_errors, notice, use_utf8

if TYPE_CHECKING:
    from agents.state import Conversation
    from retrieval.records import EntryKind
    from serve.runtime import Runtime

EXIT_CODES = "Exit codes: 0 done, 2 wrong usage or data that cannot be used."
KINDS: tuple[EntryKind, ...] = ("alarm", "guide", "procedure", "parameter")


def _epilog(*examples: str, exits: str = EXIT_CODES) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples) + f"\n\n{exits}"


app = typer.Typer(
    name="faultwright",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A maintenance assistant for CNC machine tools: grounded answers on fault codes, in Chinese and English.",
    epilog=_epilog(
        'faultwright ask "FANUC 0i-MF shows SV0401 after releasing the e-stop"',
        'faultwright ask "主轴转速波动大，有异响"',
        "faultwright chat                   one question after the other",
        "faultwright lookup 401             every controller that has the code",
        "faultwright COMMAND --help         options, examples and exit codes",
        exits="Exit codes: 0 done: answered, asked back or refused. 1 nothing found (lookup), a bad row (ask --file)."
        " 2 wrong usage or data that cannot be used.",
    ),
)
index_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The search index: build it, see its state.",
    epilog=_epilog("faultwright index status", "faultwright index build"),
)
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
    """Entry point of the `faultwright` script."""
    use_utf8()
    own = {name.split()[0] for name, _ in command_tree()}
    # importing a room's commands takes a tenth of a second, which a question must not wait for
    (app if sys.argv[1:2] and sys.argv[1] in own else mounted())()


def mounted() -> typer.Typer:
    """The application with the commands of every room."""
    from models.cli import models_app
    from models.engine_cli import engine_app
    from serve.words_cli import words_app

    for name, room in (("models", models_app), ("engine", engine_app), ("words", words_app)):
        if all(group.name != name for group in app.registered_groups):
            app.add_typer(room, name=name)
    return app


def _runtime(home: Path | None = None, **overrides: object) -> Runtime:
    from serve.runtime import Runtime
    from serve.settings import load_settings

    return Runtime(load_settings(home=home, **overrides), progress=IndexProgress(), notice=notice)


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


@app.command(
    epilog=_epilog(
        'faultwright ask "FANUC 0i-MF shows SV0401 after releasing the e-stop"',
        "faultwright ask 401号报警 --vendor fanuc",
        'faultwright ask --json "主轴转速波动大，有异响" | jq -r .text',
        'echo \'{"id": 7, "question": "Haas alarm 103"}\' | faultwright ask --file -',
        "faultwright ask --photo screen.jpg --vendor fanuc",
        exits="Exit codes: 0 answered, asked back or refused. 1 a row of --file had no answer, or no code was read on"
        " the photo. 2 wrong usage or data that cannot be used.",
    )
)
def ask(
    question: Annotated[list[str] | None, typer.Argument(help="The question, in Chinese or English.")] = None,
    vendor: VendorOption = None,
    machine: MachineOption = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help='JSONL, a question a line: {"id", "question", "vendor"?, "machine"?}; - = stdin.'),
    ] = None,
    photo: Annotated[
        Path | None, typer.Option("--photo", help="A photo of the alarm screen (extra `ocr`); what was read is shown.")
    ] = None,
    as_json: JsonOption = False,
    show_trace: Annotated[bool, typer.Option("--trace", help="Print the steps of the run after the answer.")] = False,
    home: HomeOption = None,
) -> None:
    """Answer one question.

    The certain part comes at once, then diagnosis, action, prevention and sources. The answer goes to stdout; notes on
    what fell back, and the id for `faultwright explain`, go to stderr. With --file every row gives one JSON answer with
    the row's own id, and a bad row is named on stderr and stops nothing.
    """
    with known_errors():
        text = " ".join(question or []).strip()
        if file is not None:
            if text or show_trace or photo:
                fail("--file brings its own questions: leave out the question, --photo and --trace")
            raise typer.Exit(_ask_file(_runtime(home), file, vendor, machine))
        if not text and photo is None:
            fail('no question. Type: faultwright ask "FANUC SV0401"')
        runtime = _runtime(home)
        read: dict[str, Any] = {}
        if photo is not None:
            text, read = _on_photo(runtime, photo, text, vendor, machine, as_json=as_json)
        try:
            if as_json:
                event = runtime.answer(text, vendor=vendor, machine=machine)
                _print_json({**event["answer"], "photo": read} if read else event["answer"])
            else:
                event = _stream(runtime, text, vendor, machine)
            if show_trace:
                from agents.trace import as_text

                typer.echo("\n" + as_text({"question": text, **event}), err=as_json)
        finally:
            runtime.close()


def _on_photo(
    runtime: Runtime, photo: Path, text: str, vendor: str | None, machine: str | None, *, as_json: bool
) -> tuple[str, dict[str, Any]]:
    """The question that a photo asks; what was read is shown first. Without a code and a question nothing is asked."""
    from serve.photo import photo_question, show

    asked, read = photo_question(runtime, photo, text, vendor, machine)
    if not as_json:
        show(read)
    if asked:
        return asked, read
    if as_json:
        _print_json({"photo": read, "text": "", "status": "nothing_read"})
    fail("type the code, or take the photo again: closer, straight on, without glare", NOTHING)


def _stream(
    runtime: Runtime, text: str, vendor: str | None, machine: str | None, talk: Conversation | None = None
) -> dict[str, Any]:
    """First words as soon as they are certain, then the rest of the answer; together exactly the answer's text."""
    spoken = ""
    event: dict[str, Any] = {}
    for event in runtime.ask(text, vendor=vendor, machine=machine, conversation=talk):
        if event["type"] == "first_words":
            spoken = event["text"]
            typer.echo(spoken)
    answer = event["answer"]
    whole: str = answer["text"]
    if spoken and whole.startswith(spoken + "\n"):
        typer.echo(whole[len(spoken) + 1 :])
    elif whole != spoken:
        typer.echo(whole)
    for note in answer["degraded"]:
        notice(f"note: {note}")
    typer.secho(f"trace: {answer['trace_id']}", dim=True, err=True)
    return event


def _ask_file(runtime: Runtime, path: Path, vendor: str | None, machine: str | None) -> int:
    from serve.rows import RowError, answered, opened

    bad = 0
    try:
        runtime.machine(vendor, machine)
        with opened(path) as source:
            for number, result in answered(runtime, source, vendor, machine):
                if isinstance(result, RowError):
                    bad += 1
                    typer.secho(f"faultwright: {path}, line {number}: {result}", fg=typer.colors.RED, err=True)
                else:
                    _print_json(result)
    except BrokenPipeError:
        raise
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")
    finally:
        runtime.close()
    return NOTHING if bad else 0


@app.command(
    epilog=_epilog(
        "faultwright chat --vendor fanuc",
        "printf 'alarm 103\\nhaas\\nchecked, still there\\n' | faultwright chat",
    )
)
def chat(vendor: VendorOption = None, machine: MachineOption = None, home: HomeOption = None) -> None:
    """Ask in turns.

    The machine and the alarm are remembered; /new starts over, /quit ends. Say what you checked ("checked, still
    there") to get the next check.
    """
    with known_errors():
        from agents.state import Conversation

        runtime = _runtime(home)
        talk = Conversation()
        try:
            runtime.machine(vendor, machine)
            typer.secho("Ask about an alarm or a symptom. /new = new machine, /quit = end.", dim=True, err=True)
            for text in _lines():
                if text in ("/quit", "/exit", "/q"):
                    break
                if text == "/new":
                    talk = Conversation()
                    typer.secho("New machine: what was said before is forgotten.", dim=True, err=True)
                elif text.startswith("/"):
                    notice(f"unknown command {text}; known: /new, /quit")
                else:
                    talk = _turn(runtime, text, vendor, machine, talk)
        finally:
            runtime.close()


def _lines() -> Iterator[str]:
    """What the person types, line by line, without empty lines; ends with the input or Ctrl-C."""
    while True:
        try:
            text = input("> " if sys.stdin.isatty() else "").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if text:
            yield text


def _turn(runtime: Runtime, text: str, vendor: str | None, machine: str | None, talk: Conversation) -> Conversation:
    from agents.state import Conversation
    from serve.runtime import QuestionError

    if talk.vendor:
        vendor = machine = None  # the options speak of the first machine; the conversation may have moved on
    try:
        event = _stream(runtime, text, vendor, machine, talk)
    except QuestionError as error:
        notice(str(error))
        return talk
    typer.echo("")
    return Conversation.model_validate(event["conversation"])


@app.command(
    epilog=_epilog(
        "faultwright lookup SV0401",
        'faultwright lookup "SV 401" --language zh',
        "faultwright lookup 103 --vendor haas",
        exits="Exit codes: 0 found. 1 nothing found. 2 wrong usage or data that cannot be used.",
    )
)
def lookup(
    code: Annotated[list[str], typer.Argument(help="A fault code in any spelling: SV0401, 'SV 401', 401.")],
    vendor: VendorOption = None,
    language: Annotated[
        Literal["en", "zh"] | None, typer.Option("--language", help="Language of the entries; else that of the code.")
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show the entries of a code.

    No model and no search: what the base holds, for every controller that has the code.
    """
    with known_errors():
        from agents.lookup import entries_for_code, entry_text, withheld_for_code
        from agents.wording import say
        from retrieval.tokens import has_chinese

        text = " ".join(code).strip()
        runtime = _runtime(home)
        runtime.check(text, vendor, None)
        vendor_id, family = runtime.machine(vendor, text)
        found = entries_for_code(runtime.searcher, text, vendor_id, family)
        if as_json:
            _print_json([entry.model_dump(mode="json") for _, entry in found])
            raise typer.Exit(0 if found else NOTHING)
        if not found:
            counts = runtime.store.counts()
            for row in withheld_for_code(runtime.searcher, text, vendor_id, family):
                told = "zh" if language == "zh" or (language is None and has_chinese(text)) else "en"
                notice(say("withheld_row", cast(Any, told), document=row.document, place=row.place, label=row.code))
            fail(f"no entry for {text!r} among {counts['codes']} codes. See: faultwright knowledge list", NOTHING)
        shown = language or ("zh" if has_chinese(text) else "en")
        typer.echo("\n\n".join(entry_text(entry, key, shown) for key, entry in found))


@app.command(
    epilog=_epilog(
        'faultwright search "spindle noise"', "faultwright search 主轴异响 --kind guide --vendor fanuc --count 3"
    )
)
def search(
    text: Annotated[list[str], typer.Argument(help="Words to search for.")],
    vendor: VendorOption = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="alarm, guide, procedure or parameter; may be given again.")
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, max=50, help="How many entries at most.")] = 8,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show what retrieval sees for a text.

    Similarity, fused rank, what matched, and whether it passes.
    """
    with known_errors():
        from retrieval.search import MIN_SIMILARITY

        runtime = _runtime(home)
        words = " ".join(text)
        vendor_id, _ = runtime.check(words, vendor, None)
        kinds = tuple(name for name in KINDS if not kind or name in kind)
        if unknown := set(kind or ()) - set(KINDS):
            fail(f"unknown kind {', '.join(sorted(unknown))}; known: {', '.join(KINDS)}")
        hits = runtime.searcher.search(words, kinds=kinds, vendor=vendor_id, count=count)
        expansion = runtime.searcher.expansion(words).shown()
        if as_json:
            _print_json([hit.model_dump(mode="json") | {"words": expansion} for hit in hits])
            return
        for line in expansion:
            typer.secho(f"looked for too: {line}", dim=True, err=True)
        titles = {entry.id: entry.title.en for entry in runtime.store.entries(hit.entry_id for hit in hits)}
        for hit in hits:
            mark = "pass" if hit.similarity >= MIN_SIMILARITY else "  - "
            matched = "+".join(hit.matched_by)
            title = titles.get(hit.entry_id, "")
            typer.echo(
                f"{mark} {hit.similarity:.3f}  rank {hit.rank_score:.4f}  {matched:<15} {hit.entry_id:<36} {title}"
            )
        for note in runtime.searcher.degraded:
            notice(note)
        typer.secho(f"pass = similarity of at least {MIN_SIMILARITY}", dim=True, err=True)


app.command(
    epilog=_epilog(
        "faultwright ingest manuals/ workorders.zip",
        'faultwright ingest alarms.xlsx --vendor "Syntec" --family "22MA"',
        "faultwright ingest manuals/ --dry-run --json",
        exits="Exit codes: 0 done. 1 a file could not be read; the others are stored. 2 wrong usage or data that"
        " cannot be used.",
    )
)(ingest)


@app.command(epilog=_epilog("faultwright explain 7d74b50fd232", "faultwright explain 7d74b50fd232 --json"))
def explain(
    trace_id: Annotated[str, typer.Argument(help="The trace id that an answer names.")],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show the steps behind an answer.

    What was read, searched, judged, written and removed, from the trace that every answer names.
    """
    with known_errors():
        from agents import trace
        from serve.settings import load_settings

        found = trace.load(load_settings(home=home).home, trace_id)
        typer.echo(json.dumps(found, ensure_ascii=False) if as_json else trace.as_text(found))


@app.command(
    epilog=_epilog(
        "faultwright serve --port 8000",
        "curl -s localhost:8000/v1/codes/fanuc/SV0401",
        'curl -sN localhost:8000/v1/ask --json \'{"question": "Haas alarm 103", "stream": true}\'',
        "FAULTWRIGHT_API_KEY=... faultwright serve --host 0.0.0.0",
    )
)
def serve(
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port; 0 = any free one.")] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Address; beyond localhost FAULTWRIGHT_API_KEY is needed.")
    ] = None,
    home: HomeOption = None,
) -> None:
    """Serve the HTTP API.

    POST /v1/ask, GET /v1/codes/{vendor}/{code}, /healthz, /readyz; the schema at /openapi.json.
    """
    with known_errors():
        from serve.api import listen

        listen(_runtime(home, port=port, host=host))


def _counts(counter: Mapping[Any, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(counter.items()))


@index_app.command("build", epilog=_epilog("faultwright index build"))
def index_build(home: HomeOption = None) -> None:
    """Make the vectors that are missing and put the index in use.

    Vectors of unchanged texts are kept, those of texts that are gone are removed. Ctrl-C keeps what was made.
    """
    with known_errors():
        from retrieval.disputes import find_disputes
        from retrieval.index import build

        runtime = _runtime(home)
        runtime.store.prune_embeddings()
        name = build(runtime.settings.home, runtime.store, runtime.searcher.embedder, IndexProgress())
        typer.echo(f"index {name}: {_counts(runtime.store.counts())}")
        if found := find_disputes(runtime.store, runtime.searcher.embedder).new:
            notice(f"{len(found)} pairs of entries differ on a code. See: faultwright knowledge list --disputed")


@index_app.command("status", epilog=_epilog("faultwright index status --json"))
def index_status(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show the index in use.

    Exit code 2 where there is none, or where another embedder made it. What is covered: `with_vectors` of `texts`.
    """
    with known_errors():
        from retrieval.index import load

        runtime = _runtime(home)
        embedder = runtime.searcher.embedder
        manifest = load(runtime.settings.home, embedder).manifest
        done, total = runtime.store.coverage(embedder.id)
        shown = {key: value for key, value in manifest.items() if key != "sha256"}
        shown |= {"texts": total, "with_vectors": done, **runtime.store.counts()}
        if as_json:
            _print_json(shown)
        else:
            typer.echo("\n".join(f"{key}: {value}" for key, value in shown.items()))


def command_tree() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command of this file with its function; a room's own commands are in its `cli.py`."""
    for group, prefix in ((app, ""), (knowledge_app, "knowledge "), (index_app, "index ")):
        for command in group.registered_commands:
            if command.callback is not None:
                yield prefix + (command.name or command.callback.__name__), command.callback
