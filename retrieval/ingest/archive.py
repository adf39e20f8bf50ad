"""Zip archives, unpacked member by member into a folder of our own.

Names in an archive are only shown, never used as paths: members lie on disk as numbered files, so no name can lead out
of the folder. What a name tries is refused all the same, for such an archive was made to harm. A member that cannot be
taken is a warning; the others go on.
"""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from retrieval.ingest.document import DocumentUnreadable
from retrieval.ingest.encoding import clean

MAX_MEMBERS = 20_000  # a maker's whole documentation has some thousand files
MAX_MEMBER_BYTES = 500_000_000  # the largest manuals, scanned, have about 300 MB
MAX_TOTAL_BYTES = 4_000_000_000  # of one archive with the archives in it; unpacked they lie on disk at once
MAX_RATIO = 200  # text shrinks to a tenth or twentieth, logs to a hundredth; bombs to a thousandth
RATIO_FROM_BYTES = 10_000_000  # a small file of one letter is no danger
MAX_DEPTH = 2  # an archive in an archive; deeper is a bomb or an accident
MAX_SHOWN_NAME = 400
_CHUNK = 1 << 20
_JUNK = re.compile(r"(^|/)(__MACOSX/|\.(?!\.?/)|~\$|Thumbs\.db$|desktop\.ini$)", re.IGNORECASE)
_UTF8_NAME = 0x800
_ENCRYPTED = 0x1
# What readers of packages (DOCX, XLSX) may be made to unpack: a sheet of a million rows has some hundred MB of XML.
MAX_PART_BYTES = 1_000_000_000
_DOCTYPE = tuple("<!DOCTYPE".encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))
# What zipfile and zlib raise for damaged archives and methods that they do not know.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError, RuntimeError)
Warn = Callable[[str], None]


@dataclass
class _Budget:
    """What is left for an archive and those in it."""

    members: int = MAX_MEMBERS
    total: int = MAX_TOTAL_BYTES


class _Refused(Exception):
    """Why a member is not taken."""


def is_archive(path: Path) -> bool:
    """Whether the file is a zip archive of files, not a document that is one inside (DOCX, XLSX, ODT, EPUB, JAR)."""
    try:
        with path.open("rb") as handle:
            if handle.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
                return False
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except ZIP_ERRORS:
        return False
    return not names & {"[Content_Types].xml", "mimetype", "META-INF/MANIFEST.MF", "AndroidManifest.xml"}


def members(path: Path, name: str, into: Path, warn: Warn) -> Iterator[tuple[Path, str]]:
    """Files of an archive and of the archives in it: (where it was unpacked, `archive.zip/folder/file.pdf`).

    Args:
        path: the archive.
        name: what people see.
        into: an empty folder of the caller's; files in it are named by us and may be deleted once read.
        warn: called with what was not taken and why.

    Raises:
        DocumentUnreadable: the archive itself cannot be read.
    """
    yield from _members(path, name, into, warn, _Budget(), 1)


def _members(path: Path, name: str, into: Path, warn: Warn, budget: _Budget, depth: int) -> Iterator[tuple[Path, str]]:
    try:
        archive = zipfile.ZipFile(path)
    except ZIP_ERRORS as error:
        raise DocumentUnreadable(
            f"{name} is a damaged zip archive: {error}.", "copy or download it again; if that fails, unpack it by hand."
        ) from error
    seen: set[str] = set()
    with archive:
        for number, info in enumerate(archive.infolist()):
            inner = _inner_name(info)
            if info.is_dir() or _JUNK.search(inner):
                continue
            shown = f"{name}/{_shown(inner).lstrip('/')}"
            if budget.members == 0:
                warn(f"{name}: more than {MAX_MEMBERS} files; those from {shown} on were not read.")
                return
            budget.members -= 1
            target = into / f"{depth}-{number:05d}{_suffix(inner)}"
            try:
                _check(info, inner, seen, budget)
                seen.add(inner.casefold())
                budget.total -= _unpack(archive, info, target, budget)
            except _Refused as refused:
                target.unlink(missing_ok=True)
                warn(f"{shown}: {refused}.")
                continue
            except ZIP_ERRORS as error:
                target.unlink(missing_ok=True)
                warn(f"{shown} cannot be unpacked: {str(error) or type(error).__name__}.")
                continue
            yield from _member(target, shown, warn, budget, depth)


def _member(target: Path, shown: str, warn: Warn, budget: _Budget, depth: int) -> Iterator[tuple[Path, str]]:
    if not is_archive(target):
        yield target, shown
        return
    if depth >= MAX_DEPTH:
        warn(f"{shown}: archives more than {MAX_DEPTH} deep are not read; unpack it and read in what it holds.")
    else:
        folder = target.with_suffix(".d")
        folder.mkdir()
        try:
            yield from _members(target, shown, folder, warn, budget, depth + 1)
        except DocumentUnreadable as error:
            warn(error.what)
    target.unlink(missing_ok=True)


def _inner_name(info: zipfile.ZipInfo) -> str:
    r"""The member's name with `/`; without the flag for UTF-8 it may be anything, in China GB18030."""
    name = info.orig_filename
    if not info.flag_bits & _UTF8_NAME and not name.isascii():
        raw = name.encode("cp437", errors="replace")
        for encoding in ("utf-8", "gb18030"):
            try:
                name = raw.decode(encoding)
                break
            except UnicodeDecodeError:
                continue
    return name.replace("\\", "/")


def _shown(inner: str) -> str:
    return clean(inner.replace("\n", " ").replace("\x00", "?"))[:MAX_SHOWN_NAME]


def _suffix(inner: str) -> str:
    suffix = PurePosixPath(inner).suffix.lower()
    return suffix if re.fullmatch(r"\.[a-z0-9]{1,8}", suffix) else ""


def _check(info: zipfile.ZipInfo, inner: str, seen: set[str], budget: _Budget) -> None:
    mode = info.external_attr >> 16
    if "\x00" in inner:
        raise _Refused("a NUL in its name; not read")
    if inner.startswith("/") or re.match(r"[A-Za-z]:", inner) or ".." in inner.split("/"):
        raise _Refused("its name leads out of the archive; not read")
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        raise _Refused("a link or a device, not a file; not read")
    if inner.casefold() in seen:
        raise _Refused("a second file of this name; only the first is read")
    if info.flag_bits & _ENCRYPTED:
        raise _Refused("protected by a password; unpack it and read in what it holds")
    _check_size(info.file_size, info.compress_size, budget)


def _check_size(size: int, packed: int, budget: _Budget) -> None:
    if size > MAX_MEMBER_BYTES:
        raise _Refused(f"larger than {MAX_MEMBER_BYTES // 1_000_000} MB; not read")
    if size > RATIO_FROM_BYTES and size > MAX_RATIO * max(1, packed):
        raise _Refused(f"would grow to more than {MAX_RATIO} times its size, as archives do that are made to harm")
    if size > budget.total:
        raise _Refused(f"the archive unpacks to more than {MAX_TOTAL_BYTES // 1_000_000_000} GB; not read")


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, budget: _Budget) -> int:
    """Bytes written; counted as they come, for the sizes that an archive states may be false."""
    written = 0
    with archive.open(info) as source, target.open("xb") as out:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            _check_size(written, info.compress_size, budget)
            out.write(chunk)
    return written


def open_package(path: Path, name: str) -> zipfile.ZipFile:
    """A DOCX or XLSX as the archive it is, after the checks that keep its XML harmless.

    Office programs never write a document type, which is what entities that grow without bound or name other files
    need; so a part with one is refused rather than parsed.

    Raises:
        DocumentUnreadable: damaged, encrypted, or made to harm.
    """
    try:
        archive = zipfile.ZipFile(path)
    except ZIP_ERRORS as error:
        raise damaged(name, error) from error
    try:
        total = 0
        for info in archive.infolist():
            xml = info.filename.endswith((".xml", ".rels", ".vml"))
            total += info.file_size if xml else 0
            if info.flag_bits & _ENCRYPTED:
                raise DocumentUnreadable(f"{name} is protected by a password.", "save a copy without a password.")
            if total > MAX_PART_BYTES:
                raise DocumentUnreadable(
                    f"{name} unpacks to more than {MAX_PART_BYTES // 1_000_000} MB of XML.",
                    "split it into several files, or save its sheets as CSV.",
                )
            if xml:
                _refuse_doctype(archive.open(info), name, info.filename)
    except ZIP_ERRORS as error:
        archive.close()
        raise damaged(name, error) from error
    except DocumentUnreadable:
        archive.close()
        raise
    return archive


def _refuse_doctype(part: IO[bytes], name: str, inner: str) -> None:
    with part:
        start = part.read(4096)
    if any(mark in start for mark in _DOCTYPE):
        raise DocumentUnreadable(
            f"{name}: its part {inner} declares a document type, which office programs never do.",
            "do not open the file; ask where it came from.",
        )


def damaged(name: str, error: Exception) -> DocumentUnreadable:
    """The error for a package that breaks off or holds nonsense."""
    reason = str(error) or type(error).__name__
    return DocumentUnreadable(
        f"{name} is damaged: {reason}.", "copy or download it again, or open it in an office program and save it anew."
    )
