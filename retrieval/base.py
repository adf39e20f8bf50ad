"""The knowledge base as files: read, check and fingerprint YAML entries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from retrieval.codes import canonical
from retrieval.errors import KnowledgeUnreadable
from retrieval.families import catalogue
from retrieval.records import EntryKind, FaultCode, KnowledgeEntry

# libyaml where it is compiled in: nine times faster on this base, same result
_Loader: Any = type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})


def _unique_mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    # YAML keeps the last of two equal keys: a second `items:` would silently drop the safety items of the first
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value!r} is here twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
    mapping: dict[Any, Any] = loader.construct_mapping(node, deep=True)
    return mapping


_Loader.add_constructor("tag:yaml.org,2002:map", _unique_mapping)


def starter_folder() -> Path:
    """Folder of the base that ships with the package."""
    return Path(str(resources.files("retrieval") / "knowledge"))


def knowledge_files(folder: Path) -> tuple[Path, ...]:
    """YAML files of a base, in name order.

    Raises:
        KnowledgeUnreadable: the folder does not exist or holds no YAML file.
    """
    files = tuple(sorted(folder.glob("*.yaml"))) if folder.is_dir() else ()
    if not files:
        raise KnowledgeUnreadable(
            f"No knowledge files (*.yaml) in {folder}.",
            "set FAULTWRIGHT_KNOWLEDGE to a folder that holds some, or unset it to use the starter base.",
        )
    return files


def fingerprint(files: Sequence[Path]) -> str:
    """Hash over names and bytes of `files` (hex, 64 characters): changes when any entry may have changed."""
    digest = hashlib.sha256()
    for path in files:
        try:
            body = path.read_bytes()
        except OSError as error:
            raise _unreadable(path, error) from error
        digest.update(f"{path.name}\0{len(body)}\0".encode())
        digest.update(body)
    return digest.hexdigest()


def load_entries(files: Sequence[Path]) -> tuple[KnowledgeEntry, ...]:
    """All entries of `files`, checked one by one and against each other.

    Raises:
        KnowledgeUnreadable: names file, entry, field and reason of the first fault.
    """
    entries: list[KnowledgeEntry] = []
    origin: dict[str, Path] = {}
    owner: dict[tuple[EntryKind, FaultCode], str] = {}  # an alarm and a parameter may bear one number
    for path in files:
        for position, raw in enumerate(_raw_entries(path), start=1):
            entry = checked_entry(path, position, raw)
            if entry.id in origin:
                raise _fault(path, entry.id, "id", f"already used in {origin[entry.id].name}")
            origin[entry.id] = path
            for fault_code in entry.fault_codes:
                key = (entry.kind, fault_code)
                if key in owner:
                    raise _fault(path, entry.id, "keys", f"{fault_code} already belongs to {owner[key]}")
                owner[key] = entry.id
            entries.append(entry)
    if not entries:
        raise KnowledgeUnreadable(
            f"{', '.join(str(path) for path in files)}: no entries.", "see retrieval/knowledge/README.md for the form."
        )
    for entry in entries:
        if unknown := [name for name in entry.related if name not in origin]:
            raise _fault(origin[entry.id], entry.id, "related", f"no such entry: {', '.join(unknown)}")
    return tuple(entries)


def read_yaml(path: Path) -> Any:
    """What a YAML file holds; a key that stands twice in one mapping is a fault.

    Raises:
        KnowledgeUnreadable: names file, line and reason.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - both loaders are safe ones
    except OSError as error:
        raise _unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise KnowledgeUnreadable(
            f"{path}, line {error.object.count(10, 0, error.start) + 1}: not UTF-8 (byte {error.start} of the file).",
            "save the file as UTF-8 and run the command again.",
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise KnowledgeUnreadable(
            f"{path}{place}: not valid YAML ({reason}).", "correct that line, then run `faultwright knowledge check`."
        ) from error


def _raw_entries(path: Path) -> list[Any]:
    document = read_yaml(path)
    if not isinstance(document, dict) or not isinstance(document.get("entries"), list):
        raise KnowledgeUnreadable(
            f"{path}: needs a list under the key 'entries'.", "see retrieval/knowledge/README.md for the form."
        )
    return list(document["entries"])


def checked_entry(path: Path, position: int, raw: Any) -> KnowledgeEntry:
    """One entry of a file, held against the schema, the catalogue and the grammar of its vendor's codes.

    Args:
        path: the file, to be named in an error.
        position: the entry's place in the file, from 1, for one without an id.
        raw: what YAML made of it.

    Raises:
        KnowledgeUnreadable: names file, entry, field and reason.
    """
    name = str(raw.get("id", f"number {position}")) if isinstance(raw, dict) else f"number {position}"
    try:
        entry = KnowledgeEntry.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise _fault(path, name, ".".join(str(part) for part in first["loc"]) or "entry", first["msg"]) from error
    if entry.vendor not in catalogue():
        raise _fault(path, name, "vendor", f"{entry.vendor!r} is not in families.yaml; known: {', '.join(catalogue())}")
    families = catalogue()[entry.vendor]["families"]
    for key in entry.keys:
        if key.family not in families:
            reason = f"{entry.vendor} has no family {key.family!r}; valid: {', '.join(families)}"
            raise _fault(path, name, "keys", reason)
        if entry.kind != "alarm":
            continue
        try:
            spelling = canonical(key.code, entry.vendor, key.family)
        except ValueError as error:
            raise _fault(path, name, "keys", str(error)) from error
        if spelling != key.code:
            raise _fault(path, name, "keys", f"{key.code!r} must be written {spelling!r}")
    return entry


def _unreadable(path: Path, error: OSError) -> KnowledgeUnreadable:
    return KnowledgeUnreadable(f"Cannot read {path}: {error.strerror}.", "check the file's permissions.")


def _fault(path: Path, entry: str, field: str, reason: str) -> KnowledgeUnreadable:
    return KnowledgeUnreadable(
        f"{path}, entry {entry}, field {field}: {reason}.",
        "correct the entry, then run `faultwright knowledge check`.",
    )
