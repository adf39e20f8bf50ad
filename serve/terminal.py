"""What every command of the terminal shares: one clear line for a known error, notices, a progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

NOTHING, USAGE, PIPE_CLOSED = 1, 2, 141  # exit codes; 141 is what a shell shows for a closed pipe


def fail(error: object, code: int = USAGE) -> NoReturn:
    """One line on stderr, then exit.

    Raises:
        typer.Exit: always, with `code`.
    """
    typer.secho(f"faultwright: {error}", fg=typer.colors.RED, err=True)
    raise typer.Exit(code)


def notice(line: str) -> None:
    """One line on stderr that stops nothing."""
    typer.secho(f"faultwright: {line}", fg=typer.colors.YELLOW, err=True)


@contextmanager
def known_errors() -> Iterator[None]:
    """Known errors become one line on stderr and exit code 2; faults of ours keep their traceback."""
    from agents.trace import TraceMissing  # noqa: PLC0415 - `faultwright --help` does without
    from models.engine import EngineError  # noqa: PLC0415
    from retrieval.errors import RetrievalError  # noqa: PLC0415
    from serve.runtime import QuestionError  # noqa: PLC0415
    from serve.settings import SettingsError  # noqa: PLC0415

    try:
        yield
    except (RetrievalError, EngineError, SettingsError, QuestionError, TraceMissing) as error:
        fail(error)
    except BrokenPipeError:
        _to_nowhere()
        raise typer.Exit(PIPE_CLOSED) from None


def _to_nowhere() -> None:
    """Point stdout at /dev/null: what is still buffered must not raise again when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def use_utf8() -> None:
    """Read and write UTF-8, arguments too, whatever the locale says: Chinese must work under LANG=C."""
    sys.argv[1:] = [_as_utf8(argument) for argument in sys.argv[1:]]
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


def _as_utf8(argument: str) -> str:
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeDecodeError:
        return argument  # bytes of another encoding: the question is refused with the place


class IndexProgress:
    """A progress bar on stderr while an index is built; plain lines where stderr is no terminal."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: Any = None
        self._last = -1

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` passages have their vector."""
        if done >= total and self._bar is None and self._last < 0:
            return
        if sys.stderr.isatty():
            self._draw(done, total)
        elif done * 4 // max(total, 1) != self._last * 4 // max(total, 1) or self._last < 0:
            typer.echo(f"faultwright: building the search index, {done} of {total} passages", err=True)
        self._last = done

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            from rich.console import Console  # noqa: PLC0415 - only where a person looks
            from rich.progress import Progress  # noqa: PLC0415

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("building the search index (once)", total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done)
        if done >= total:
            self._bar.stop()
