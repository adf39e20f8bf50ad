"""`faultwright engine`: start, watch and stop a vLLM server of this data home.

Exit codes: 0 done, or the server is up. 1 it could not be started, or is not up. 2 wrong usage.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from models.bases import BaseMissing, BaseUnknown, default_home, load_registry
from models.engine import EngineError
from models.serving import How, Server, ServerState, device_here

FAILED, USAGE = 1, 2

engine_app = typer.Typer(no_args_is_help=True, help="A vLLM server for this data home: start, watch, stop it.")

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", envvar="FAULTWRIGHT_HOME", metavar="DIR", help="Data home; else the user's data folder."),
]
PythonOption = Annotated[
    Path | None,
    typer.Option("--python", envvar="FAULTWRIGHT_ENGINE_PYTHON", help="Python of an environment that has vLLM."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@engine_app.command("up")
def up(
    base_id: Annotated[
        str | None, typer.Option("--base", metavar="ID", help="Which base; else the default one.")
    ] = None,
    adapter: Annotated[
        list[str] | None, typer.Option("--adapter", metavar="NAME=FOLDER", help="A LoRA adapter; may be given again.")
    ] = None,
    device: Annotated[
        Literal["cpu", "gpu"] | None, typer.Option("--device", help="cpu or gpu; else what is found here.")
    ] = None,
    context: Annotated[int, typer.Option("--context", min=256, help="Tokens of prompt and output together.")] = 4096,
    dtype: Annotated[
        str, typer.Option("--dtype", help="Of weights and activations: auto, bfloat16, float32.")
    ] = "auto",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0 = any free one.")] = 0,
    argument: Annotated[
        list[str] | None, typer.Option("--vllm", metavar="ARG", help="One more argument for vLLM; may be given again.")
    ] = None,
    python: PythonOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start vLLM and wait until it answers.

    The first time it makes an environment with vLLM (3 to 8 GB) and converts the base; both stay. Then use it with
    FAULTWRIGHT_ENGINE=openai.
    """
    folder = home if home is not None else default_home()
    server = Server(folder, python)
    adapters: dict[str, Path] = {}
    for one in adapter or []:
        name, equals, path = one.partition("=")
        if not (name and equals and path):
            _fail(f"--adapter {one!r}: write NAME=FOLDER", USAGE, as_json)
        adapters[name] = Path(path).resolve()
    try:
        base = load_registry().get(base_id)
        record = server.start(
            base,
            How(
                device=device or device_here(),
                context_tokens=context,
                port=port,
                dtype=dtype,
                more=tuple(argument or ()),
            ),
            adapters=adapters,
            note=lambda line: None if as_json else typer.echo(line, err=True),
        )
    except BaseUnknown as error:
        _fail(str(error), USAGE, as_json)
    except (BaseMissing, EngineError) as error:
        _fail(str(error), FAILED, as_json)
    if as_json:
        typer.echo(record.model_dump_json())
    else:
        typer.echo(f"up: {record.base} at {record.url} ({record.device}). Use it with FAULTWRIGHT_ENGINE=openai")


@engine_app.command("status")
def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Say whether the server runs and what it serves."""
    found = Server(home if home is not None else default_home()).status()
    if as_json:
        typer.echo(_without_key(found))
    elif found.record is None:
        typer.echo("down. Start it with: faultwright engine up")
    else:
        served = f", serves {', '.join(found.models)}" if found.models else ""
        problem = f": {found.problem}" if found.problem else ""
        where = f"{found.record.url}, pid {found.record.pid}, since {found.record.started}"
        typer.echo(f"{found.state}: {where}{served}{problem}")
    raise typer.Exit(0 if found.state == "up" else FAILED)


@engine_app.command("down")
def down(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Stop the server; what it computes is cut off. Its environment and the converted base stay."""
    ran = Server(home if home is not None else default_home()).stop()
    if as_json:
        typer.echo(json.dumps({"stopped": ran}))
    else:
        typer.echo("stopped" if ran else "no server was running")


def _without_key(found: ServerState) -> str:
    said = found.model_dump(mode="json")
    if said["record"]:
        said["record"].pop("key")
    return json.dumps(said)


def _fail(message: str, code: int, as_json: bool) -> NoReturn:
    if as_json:
        typer.echo(json.dumps({"error": message, "code": code}, ensure_ascii=False))
    else:
        typer.echo(message, err=True)
    raise typer.Exit(code)
