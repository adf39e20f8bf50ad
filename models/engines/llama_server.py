"""The llama.cpp server of this process, behind a private socket: what `llama_cpp` needs and nothing else.

xllamacpp always starts an HTTP listener; by default a TCP port on loopback, without a key and open to every web page
(CORS `*`). A host name that ends in `.sock` makes it a Unix socket instead: here it lies in a directory that only
this user may enter, and asks for a random key. Nothing listens on TCP (tests/test_engine_contract.py looks).
"""

from __future__ import annotations

import http.client
import importlib
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

from models.engine import EngineError, EngineUnavailable

_SOCKET_PATH_LIMIT = 100  # sun_path holds 104 bytes on macOS, 108 on Linux
_EXIT_WAIT_S = 5.0
_TOKENIZE_TIMEOUT_S = 60.0


class LlamaServer:
    """One llama.cpp server with one slot. `lock` is held by whoever uses the slot; `closing` asks it to let go.

    Args:
        base: GGUF file of the base.
        adapters: GGUF files of LoRA adapters; the place in this order is their id in a request.
        context_tokens: size of the context, prompt and output together.
        batch_tokens: prompt tokens computed between two chances to cancel.
        threads: CPU threads for prompt and output.

    Raises:
        EngineUnavailable: xllamacpp is missing, or it refused the files.
    """

    def __init__(
        self, base: Path, adapters: Sequence[Path], *, context_tokens: int, batch_tokens: int, threads: int
    ) -> None:
        self.lock = Lock()
        self.closing = Event()
        self._key = secrets.token_hex(32)
        self._directory = _private_directory()
        self._socket_path = self._directory / "llama.sock"
        self._holder: dict[str, Any] = {}
        try:
            self._holder["server"] = self._start(base, adapters, context_tokens, batch_tokens, threads)
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise
        # also runs at interpreter exit, so a process that never closes still ends cleanly and leaves no directory
        self._finalizer = weakref.finalize(self, _shut_down, self._holder, self.closing, self.lock, self._directory)

    def _start(
        self, base: Path, adapters: Sequence[Path], context_tokens: int, batch_tokens: int, threads: int
    ) -> Any:
        # Threads of its OpenMP spin at every barrier. As soon as another process wants a core, a spinning thread holds
        # up the one that works: decode fell from 85 to 11 tokens/s on two cores. OpenMP reads this when it is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            xllamacpp: Any = importlib.import_module("xllamacpp")
        except ImportError as error:
            if "libgomp" in str(error):  # not in the wheel, and slim container images lack it
                raise EngineUnavailable(
                    f"xllamacpp needs the system library libgomp ({error}). Next: apt-get install libgomp1"
                ) from error
            raise EngineUnavailable(
                f"the llama_cpp engine needs xllamacpp, which cannot be imported ({error}). Next: {sys.executable} -m"
                " pip install xllamacpp"
            ) from error
        params = xllamacpp.CommonParams()
        params.model.path = str(base)
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(path), 1.0) for path in adapters]
        params.lora_init_without_apply = True
        params.n_ctx = context_tokens
        params.n_batch = batch_tokens
        params.n_ubatch = batch_tokens
        params.n_parallel = 1
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.cpuparams.poll = params.cpuparams_batch.poll = 0
        params.hostnames = [str(self._socket_path)]
        params.api_keys = [self._key]
        params.n_threads_http = 2
        params.ui = False
        params.endpoint_slots = False
        params.verbosity = -1
        params.warmup = False
        params.fit_params = False  # it may shrink the context to fit the memory; ours is what was asked for
        params.cache_ram_mib = 0  # by default up to 8 GiB of old prompts are kept
        try:
            server = xllamacpp.Server(params)
            # Its loop starts in a thread; freeing the server before it has begun waits forever. One token proves that
            # it runs, and warms it up.
            scales = [{"id": index, "scale": 0.0} for index in range(len(adapters))]
            server.handle_completions({"prompt": "a", "n_predict": 1, "cache_prompt": False, "lora": scales})
            return server
        except Exception as error:
            raise EngineUnavailable(
                f"llama.cpp refused {base}: {error}. Next: faultwright models verify, or a smaller context_tokens if"
                " memory is short"
            ) from error

    def start(self, body: dict[str, Any]) -> Completion:
        """Begin one streamed completion. The caller holds `lock`; the completion gives it back when it has ended.

        Raises:
            EngineUnavailable: the server is closed; `lock` is given back.
        """
        server = self._holder.get("server")
        if server is None:
            self.lock.release()
            raise EngineUnavailable("this engine is closed. Next: build a new one")
        return Completion(server, body, self.closing, self.lock)

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text; control tokens are recognised, none is added. Does not wait for the slot.

        Raises:
            EngineUnavailable: the server is closed.
            EngineError: it did not answer.
        """
        if self.closing.is_set():
            raise EngineUnavailable("this engine is closed. Next: build a new one")
        body = json.dumps({"content": text, "add_special": False, "parse_special": True})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}", "Connection": "close"}
        connection = _SocketConnection(self._socket_path)
        try:
            connection.request("POST", "/tokenize", body.encode(), headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status != http.client.OK:
                raise EngineError(f"llama.cpp could not tokenize: {answer[:200]!r}")
            return [int(token) for token in json.loads(answer)["tokens"]]
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"llama.cpp did not answer on its socket: {error!r}") from error
        finally:
            connection.close()

    def close(self) -> None:
        """Stop a running completion, free the memory, remove the socket. Again is fine."""
        self._finalizer()


class Completion:
    """One completion, running in a thread of its own; whoever started it reads its chunks.

    A thread, because xllamacpp swallows every exception of a callback: Python raises KeyboardInterrupt at the first
    line of whatever runs next in the main thread, and called from there that is the callback, so Ctrl-C had no effect.
    It also lets a reader leave at once while llama.cpp still computes its batch.
    """

    def __init__(self, server: Any, body: dict[str, Any], closing: Event, lock: Lock) -> None:
        self._chunks: SimpleQueue[dict[str, Any] | Exception | None] = SimpleQueue()
        self._stop = Event()
        self._closing = closing
        self._lock = lock
        # daemon: a process that ends does not wait for the text; `_shut_down` stops it before memory is freed
        Thread(target=self._work, args=([server], body), daemon=True, name="llama-completion").start()

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next chunk; an empty one if none came in time; None at the end.

        Raises:
            EngineError: llama.cpp failed.
        """
        try:
            chunk = self._chunks.get(timeout=timeout_s)
        except Empty:
            return {}
        if isinstance(chunk, Exception):
            raise EngineError(f"llama.cpp failed: {chunk}. Next: build the engine anew") from chunk
        return chunk

    def stop(self) -> None:
        """Ask it to end at its next token or prompt batch; does not wait."""
        self._stop.set()

    def _work(self, held: list[Any], body: dict[str, Any]) -> None:
        try:
            held[0].handle_completions({**body, "stream": True}, self._take)
        except Exception as error:
            self._chunks.put(error)
        finally:
            held.clear()  # before the lock goes: whoever closes wants to hold the last reference
            self._chunks.put(None)
            self._lock.release()

    def _take(self, chunk: Any) -> bool:
        self._chunks.put(chunk if isinstance(chunk, dict) else json.loads(chunk))
        return self._stop.is_set() or self._closing.is_set()


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket; the standard library leaves exactly this method to subclasses."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_TOKENIZE_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def usable_cores() -> int:
    """CPU cores that this process may use: affinity and, on Linux, the container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, round(int(quota) / int(period))))


def _private_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="faultwright-"))  # mkdtemp gives 0700
    if len(os.fsencode(directory / "llama.sock")) <= _SOCKET_PATH_LIMIT:
        return directory
    directory.rmdir()
    try:  # a long TMPDIR: a socket path has a hard limit, a file path has not
        return Path(tempfile.mkdtemp(prefix="faultwright-", dir="/tmp"))  # still a fresh 0700 directory
    except OSError as error:
        raise EngineUnavailable(
            f"the temporary directory {directory.parent} is too long for a socket path ({_SOCKET_PATH_LIMIT} bytes) and"
            f" /tmp cannot be used ({error}). Next: set TMPDIR to a short, writable path"
        ) from error


def _shut_down(holder: dict[str, Any], closing: Event, lock: Lock, directory: Path) -> None:
    closing.set()
    # a running completion ends at its next token; freeing the server under it would crash the process
    taken = lock.acquire(timeout=_EXIT_WAIT_S)
    try:
        holder.pop("server", None)
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        if taken:
            lock.release()
