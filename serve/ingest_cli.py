"""`faultwright ingest`: a shop's documents into its base, with a line for each file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from serve.terminal import NOTHING, IndexProgress, fail, known_errors, notice

if TYPE_CHECKING:
    from retrieval.ingest.report import FileReport, IngestReport
    from serve.runtime import Runtime

MAX_SHOWN = 5


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files, folders and zip archives.", show_default=False)],
    vendor: Annotated[
        str | None,
        typer.Option("--vendor", help="Whose controller they speak of, any name; else as they say themselves."),
    ] = None,
    family: Annotated[str | None, typer.Option("--family", help='Its family or model: "0i-MF", "840D sl".')] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and report, store nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Take out documents whose file is gone from the folders given.")
    ] = False,
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="Make the vectors at once, or leave them for later.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    home: Annotated[
        Path | None, typer.Option("--home", help="Data home (default: FAULTWRIGHT_HOME or the user's data folder).")
    ] = None,
) -> None:
    """Take documents over.

    Alarm tables become entries with page and row, the rest passages that answers quote. PDF, Word, Excel, CSV, HTML,
    Markdown, text, JSONL, pictures of pages (with the extra `ocr`), and zip archives of them. Codes and words are found
    as soon as a file's line is printed; the vectors follow, and a search works meanwhile. A file that did not change is
    left alone; a changed one becomes a new version, and the newest answers.
    """
    with known_errors():
        from agents.screening import hostile
        from retrieval.ingest.run import Options
        from retrieval.ingest.run import ingest as read_in
        from serve.runtime import Runtime
        from serve.settings import load_settings

        runtime = Runtime(load_settings(home=home), progress=IndexProgress(), notice=notice)
        options = Options(vendor, family, hostile, dry_run, prune)
        ask = _ask_maker if sys.stdin.isatty() and sys.stderr.isatty() and not as_json else None
        with _watched(quiet=as_json) as (progress, pause):
            report = read_in(paths, runtime.store, options, progress, _paused(ask, pause) if ask else None)
        unmade = 0
        if not dry_run:
            done, total = runtime.store.coverage(runtime.searcher.embedder.id)
            unmade = total - done
        if as_json:
            typer.echo(json.dumps({**report.as_json(), "dry_run": dry_run}, ensure_ascii=False))
        else:
            _summary(report, dry_run=dry_run, unmade=unmade)
        if vectors and unmade:
            _make_vectors(runtime, as_json=as_json)
        raise typer.Exit(NOTHING if report.failed else 0)


def _paused(
    ask: Callable[[str, Sequence[str]], tuple[str, str] | None], pause: Callable[[], None]
) -> Callable[[str, Sequence[str]], tuple[str, str] | None]:
    def asked(name: str, candidates: Sequence[str]) -> tuple[str, str] | None:
        pause()
        return ask(name, candidates)

    return asked


def _ask_maker(name: str, candidates: Sequence[str]) -> tuple[str, str] | None:
    """Ask a person whose controller a document speaks of."""
    likely = f" (it names {', '.join(candidates)})" if candidates else ""
    typer.secho(f"{name} lists codes and does not say whose controller they are of{likely}.", err=True)
    first = candidates[0] if candidates else ""
    while True:
        said = typer.prompt("Maker, or maker/family; - leaves the codes out", default=first or "-", err=True).strip()
        if said == "-":
            return None
        maker, _, family = (part.strip() for part in said.partition("/"))
        if any(letter.isalnum() for letter in maker):
            return maker, family


@contextmanager
def _watched(*, quiet: bool) -> Iterator[tuple[Callable[[FileReport, int, int], None], Callable[[], None]]]:
    """A line per file on stdout as it is done; on a terminal a bar below while files are read."""
    if quiet or not sys.stderr.isatty():

        def line(file: FileReport, _done: int, _total: int) -> None:
            if not quiet:
                _line(file)

        yield line, lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def drawn(file: FileReport, done: int, total: int) -> None:
            bar.stop()
            _line(file)
            bar.start()
            bar.update(task, completed=done, total=total)

        yield drawn, bar.stop


def _line(file: FileReport) -> None:
    """What became of one file."""
    colors = {"failed": typer.colors.RED, "added": typer.colors.GREEN, "updated": typer.colors.GREEN}
    label = typer.style(f"{file.status.replace('_', ' '):<12}", fg=colors.get(file.status))
    if file.status == "failed":
        typer.echo(f"{label} {file.name}")
    else:
        whose = "/".join(part for part in (file.vendor, file.family) if part) or "no maker named"
        pages = f"{file.pages} pages, " if file.pages else ""
        parameters = f"{file.parameters} parameters, " if file.parameters else ""
        typer.echo(
            f"{label} {file.name}: {pages}{file.alarms} alarms, {parameters}{file.passages} passages; {whose};"
            f" {file.seconds:.1f} s"
        )
    if file.replaces:
        typer.echo(f"{'':<12}   replaces {file.replaces}: {file.new_passages} passages are new")
    if file.carried:
        typer.echo(f"{'':<12}   {file.carried} rows that your shop changed or verified say the same: they keep that")
    for left in file.left_behind:
        typer.secho(f"{'':<12}   the change of {left}, so that it stays behind", fg=typer.colors.YELLOW)
    if file.left_behind:
        typer.secho(f"{'':<12}   Next: faultwright knowledge list --stale", fg=typer.colors.YELLOW)
    for problem in file.problems[:MAX_SHOWN]:
        typer.secho(f"{'':<12}   {problem}", fg=typer.colors.YELLOW)
    if len(file.problems) > MAX_SHOWN:
        rest = len(file.problems) - MAX_SHOWN
        typer.secho(f"{'':<12}   and {rest} more: see --json", fg=typer.colors.YELLOW)
    if file.next_step:
        typer.secho(f"{'':<12}   Next: {file.next_step}", fg=typer.colors.YELLOW)


def _summary(report: IngestReport, *, dry_run: bool, unmade: int) -> None:
    for file in report.files:
        if file.status == "duplicate":
            _line(file)
    unchanged = sum(file.status == "unchanged" for file in report.files)
    counts = [f"{len(report.files)} files read" if dry_run else f"{report.changed} documents taken over"]
    counts += [f"{unchanged} unchanged"] if unchanged else []
    counts += [f"{report.failed} failed"] if report.failed else []
    counts += [f"{len(report.removed)} removed"] if report.removed else []
    found = f"{report.total('alarms')} alarms, {report.total('passages')} passages"
    withheld = report.total("withheld")
    stored = " Nothing was stored." if dry_run else ""
    typer.echo(f"\n{', '.join(counts)} in {report.seconds:.1f} s: {found}.{stored}")
    if withheld:
        notice(f"{withheld} rows or passages withheld: they defeat a safeguard or give the assistant orders")
    if report.gone:
        shown = ", ".join(report.gone[:MAX_SHOWN])
        notice(f"{len(report.gone)} documents of the base are no longer there ({shown}); --prune takes them out")
    _disputed(len(report.disputes))
    if not dry_run and report.changed:
        rest = f"; {unmade} texts wait for their vectors" if unmade else ""
        typer.echo(f"Their codes and words are found now{rest}.")


def _disputed(count: int) -> None:
    if count:
        see = "answers show both. See: faultwright knowledge list --disputed"
        notice(f"{count} pairs of entries differ on a code; {see}")


def _make_vectors(runtime: Runtime, *, as_json: bool) -> None:
    """The vectors in the foreground, with progress; Ctrl-C leaves the rest for later."""
    from retrieval.disputes import find_disputes
    from retrieval.errors import RetrievalError
    from retrieval.index import Busy, build

    try:
        build(runtime.settings.home, runtime.store, runtime.searcher.embedder, IndexProgress(), wait=False)
        _disputed(len(find_disputes(runtime.store, runtime.searcher.embedder).new))
    except Busy:
        notice("another process is making vectors; it makes these too")
    except KeyboardInterrupt:
        done, total = runtime.store.coverage(runtime.searcher.embedder.id)
        notice(f"stopped: {done} of {total} texts have their vector. Go on with: faultwright index build")
    except RetrievalError as error:
        fail(error)
    else:
        if not as_json:
            typer.echo("All texts have their vector: search by meaning covers them.")
