"""The files of an ingest: folders walked, archives unpacked, each file once."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval.errors import RetrievalError
from retrieval.ingest.document import DocumentUnreadable
from retrieval.ingest.report import FileReport, failed

# Names that are never documents: hidden files, locks and thumbnails of office programs and systems.
_SKIPPED = ("~$", ".", "__MACOSX", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True)
class SourceFile:
    """A file to read: where it lies now, what people see, and the path that it is stored under.

    A member of an archive lies in a scratch folder and is stored as `/path/of.zip!inner/name.pdf`.
    """

    path: Path
    name: str
    stored_as: str


def source_files(paths: Sequence[Path], scratch: Path, troubles: list[FileReport]) -> Iterator[SourceFile]:
    """Every file of `paths` in their order, hidden ones left out.

    Args:
        paths: files, folders and archives.
        scratch: a folder to unpack archives into.
        troubles: gets a report for what is no regular file, and for an archive that is not taken whole.

    Raises:
        DocumentUnreadable: a path does not exist.
    """
    seen: set[Path] = set()
    for given in paths:
        if not given.exists():
            raise DocumentUnreadable(f"{given} does not exist.", "check the path; names with spaces need quotes.")
        for path in _walked(given):
            real = path.resolve()
            if real in seen:
                continue
            seen.add(real)
            name = str(path.relative_to(given)) if given.is_dir() else path.name
            yield from _unpacked(SourceFile(path, name, str(real)), scratch, troubles)


def _walked(given: Path) -> Iterator[Path]:
    if not given.is_dir():
        yield given
        return
    for folder, folders, names in os.walk(given):
        folders[:] = sorted(f for f in folders if not f.startswith(_SKIPPED))
        for name in sorted(names):
            if not name.startswith(_SKIPPED):
                yield Path(folder) / name


def _unpacked(file: SourceFile, scratch: Path, troubles: list[FileReport]) -> Iterator[SourceFile]:
    from retrieval.ingest.archive import is_archive, members  # noqa: PLC0415 - beside the readers

    try:
        if not stat.S_ISREG(file.path.stat().st_mode):  # a pipe or a device would be waited for without end
            raise DocumentUnreadable(f"{file.name} is not a regular file.", "copy its content into a file.")
        if not is_archive(file.path):
            yield file
            return
        into = Path(tempfile.mkdtemp(dir=scratch))
        problems: list[str] = []
        count = 0
        for member, name in members(file.path, file.name, into, problems.append):
            count += 1
            yield SourceFile(member, name, f"{file.stored_as}!{name[len(file.name) :].lstrip('/')}")
        if problems or not count:
            what = tuple(problems) or (f"{file.name} holds no file.",)
            step = "unpack it by hand and ingest the folder."
            troubles.append(FileReport(file.name, "failed", problems=what, next_step=step))
    except (RetrievalError, OSError) as error:
        troubles.append(failed(file.name, error))
