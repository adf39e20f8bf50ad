"""The server of a data home: its record, its status, its end; a small process plays vLLM. The real one: `test_engine_vllm`."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.bases import Base, load_registry
from models.engine import EngineError, EngineUnavailable
from models.engine_cli import engine_app
from models.serving import How, Server

PLAYS = textwrap.dedent(
    """
    import json, os, sys
    from http.server import BaseHTTPRequestHandler, HTTPServer
    if "--fail" in sys.argv:
        print("ValueError: no room on the device"); sys.exit(7)
    class H(BaseHTTPRequestHandler):
        def log_message(self, *a): pass
        def do_GET(self):
            ok = self.headers.get("Authorization") == "Bearer " + os.environ["VLLM_API_KEY"]
            data = json.dumps({"data": [{"id": "base"}]}).encode()
            self.send_response(200 if ok else 401); self.send_header("Content-Length", str(len(data)))
            self.end_headers(); self.wfile.write(data)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    HTTPServer(("127.0.0.1", port), H).serve_forever()
    """
)
CPU = How(device="cpu")


@pytest.fixture
def base(home_with_base: Path) -> Base:
    """The default base, as if it had been converted."""
    found, home = load_registry().get(), home_with_base
    folder = home / "engine" / "models" / found.id
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return found


@pytest.fixture
def server(home: Path, tmp_path: Path) -> Server:
    """A server whose Python runs a small program in vLLM's place."""
    program = tmp_path / "plays.py"
    program.write_text(PLAYS)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {program} \"$@\"\n")
    python.chmod(0o755)
    return Server(home, python)


def test_up_status_and_down(server: Server, base: Base, home: Path) -> None:
    assert server.status().state == "down"
    record = server.start(base, CPU)
    try:
        assert server.status().state == "up" and server.status().models == ("base",)
        assert stat.S_IMODE((home / "engine" / "server.json").stat().st_mode) == 0o600
        with pytest.raises(EngineError, match="runs already"):
            server.start(base, CPU)
        result = CliRunner().invoke(engine_app, ["status", "--json", "--home", str(home)])
        assert result.exit_code == 0 and record.key not in result.output
        assert json.loads(result.output)["record"]["base"] == base.id
    finally:
        assert server.stop()
    assert server.status().state == "down" and not server.stop()
    with pytest.raises(ProcessLookupError):
        os.killpg(record.pid, 0)


def test_one_that_cannot_start_shows_its_log(server: Server, base: Base) -> None:
    with pytest.raises(EngineUnavailable, match="no room on the device"):
        server.start(base, How(device="cpu", more=("--fail",)))
    assert server.status().state == "down"


def test_one_that_was_killed_is_dead_and_can_be_started_again(server: Server, base: Base) -> None:
    record = server.start(base, CPU)
    os.killpg(record.pid, 9)
    for _ in range(100):
        if server.status().state == "dead":
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert server.status().state == "dead"
    server.start(base, CPU)
    assert server.stop()


def test_an_adapter_folder_that_is_none(server: Server, base: Base, tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match=r"no LoRA adapter.*adapter_config\.json"):
        server.start(base, CPU, adapters={"writer-v1": tmp_path})
    (tmp_path / "adapter_config.json").write_text('{"r": 12}')
    record = server.start(base, CPU, adapters={"writer-v1": tmp_path})
    server.stop()
    assert record.adapters == ("writer-v1",)


def test_a_base_that_was_not_pulled(home: Path) -> None:
    result = CliRunner().invoke(engine_app, ["up", "--home", str(home), "--python", sys.executable])
    assert result.exit_code == 1 and "models pull" in result.output


def test_an_unknown_base(home: Path) -> None:
    result = CliRunner().invoke(engine_app, ["up", "--base", "gpt-9", "--home", str(home)])
    assert result.exit_code == 2 and "gpt-9" in result.output
