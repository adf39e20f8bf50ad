"""What only the llama.cpp engine must hold: its files, its socket, its adapters, a clean end of the process."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from models.engine import AdapterUnknown, EngineTimeout, EngineUnavailable, GenerationRequest, Message
from models.engines.llama_cpp import LlamaCppEngine
from models.engines.llama_server import usable_cores

ROOT = Path(__file__).resolve().parents[1]
HELLO = (Message(role="user", content="Say hello"),)


def lora_gguf(path: Path, architecture: str = "llama", hidden: int = 576, seed: int = 1, scale: float = 0.5) -> Path:
    """A LoRA adapter with random weights for the default base, loud enough to change every text."""
    rng = random.Random(seed)
    tensors = []
    for layer in (0, 5, 20):
        for side, dims in (("lora_a", (1536, 2)), ("lora_b", (2, hidden))):
            values = [rng.gauss(0, scale) for _ in range(dims[0] * dims[1])]
            tensors.append((f"blk.{layer}.ffn_down.weight.{side}", dims, values))
    return write_gguf(path, {"general.architecture": architecture, "general.type": "adapter"}, tensors)


def write_gguf(path: Path, texts: dict[str, str], tensors: Sequence[tuple[str, tuple[int, ...], list[float]]]) -> Path:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    texts = {**texts, "adapter.type": "lora"}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(texts) + 1)
    head += b"".join(text(key) + struct.pack("<I", 8) + text(value) for key, value in texts.items())
    head += text("adapter.lora.alpha") + struct.pack("<If", 6, 2.0)
    data = b""
    for name, dims, values in tensors:
        head += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        head += struct.pack("<IQ", 0, len(data))
        block = struct.pack(f"<{len(values)}f", *values)
        data += block + b"\0" * (-len(block) % 32)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


@pytest.fixture(scope="module")
def base(base_file: Path) -> Path:
    return base_file


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("adapters")
    return {f"loud-v{seed}": lora_gguf(folder / f"{seed}.gguf", seed=seed) for seed in (1, 2)}


@pytest.fixture(scope="module")
def engine(base: Path, adapters: dict[str, Path]) -> Iterator[LlamaCppEngine]:
    built = LlamaCppEngine(base, adapters=adapters, context_tokens=2048)
    yield built
    built.close()


@pytest.mark.integration
class TestAdapters:
    def test_each_request_runs_the_one_it_names(self, engine: LlamaCppEngine, base: Path) -> None:
        def say(adapter: str | None) -> str:
            return engine.generate(GenerationRequest(messages=HELLO, adapter=adapter, max_tokens=10)).text

        first = [say(None), say("loud-v1"), say("loud-v2")]
        again = [say("loud-v2"), say(None), say("loud-v1")]
        assert len(set(first)) == 3
        assert [again[1], again[2], again[0]] == first
        bare = LlamaCppEngine(base, context_tokens=2048)
        try:  # None really is the bare base: a request without scales would run all adapters at once
            assert bare.generate(GenerationRequest(messages=HELLO, max_tokens=10)).text == first[0]
        finally:
            bare.close()

    def test_label_scores_follow_the_adapter(self, engine: LlamaCppEngine) -> None:
        scores = [engine.label_logprobs(HELLO, ("A", "B"), adapter=name) for name in (None, "loud-v1", None)]
        assert abs(scores[0].logprobs["A"] - scores[1].logprobs["A"]) > 0.01
        assert abs(scores[0].logprobs["A"] - scores[2].logprobs["A"]) < 1e-3

    def test_unknown_name_lists_the_known(self, engine: LlamaCppEngine) -> None:
        with pytest.raises(AdapterUnknown, match="known: loud-v1, loud-v2"):
            engine.generate(GenerationRequest(messages=HELLO, adapter="quiet"))

    @pytest.mark.parametrize(
        ("made", "reason"),
        [
            (lambda path: lora_gguf(path, architecture="gemma3"), "'gemma3', the base is 'llama'"),
            (lambda path: lora_gguf(path, hidden=640), "size 640 where the base has 576"),
            (lambda path: path.write_bytes(b"not a gguf file at all, but long enough"), "begins with b'not '"),
            (lambda path: path.write_bytes(lora_gguf(path).read_bytes()[:3000]), "cut short"),
            (lambda path: None, "no such file"),
        ],
    )
    def test_a_file_that_does_not_fit(self, base: Path, tmp_path: Path, made: object, reason: str) -> None:
        path = tmp_path / "adapter.gguf"
        assert callable(made)
        made(path)
        with pytest.raises(AdapterUnknown, match="cannot run on base") as caught:
            LlamaCppEngine(base, adapters={"writer-v1": path})
        assert reason in str(caught.value)


@pytest.mark.integration
class TestLimits:
    def test_cancel_and_time_limit_act_inside_a_long_prompt(self, engine: LlamaCppEngine) -> None:
        # 1,900 tokens are many batches; between two of them there is a chance to stop
        long = (Message(role="user", content=" ".join(f"w{n}" for n in range(500))),)
        assert engine.count_tokens(long[0].content) > 1500
        started = time.monotonic()
        with pytest.raises(EngineTimeout, match="reading the prompt"):
            engine.generate(GenerationRequest(messages=long, timeout_s=0.2))
        in_time = time.monotonic() - started
        cancel = threading.Event()
        threading.Timer(0.2, cancel.set).start()
        got = engine.generate(GenerationRequest(messages=long), cancel=cancel)
        assert (got.finish, got.tokens_out) == ("cancelled", 0)
        started = time.monotonic()
        engine.generate(GenerationRequest(messages=(Message(role="user", content="z " + long[0].content),), max_tokens=1))
        assert max(in_time, got.seconds) < (time.monotonic() - started) 

    def test_waiting_for_another_request_counts_and_can_be_cancelled(self, engine: LlamaCppEngine) -> None:
        stop, begun = threading.Event(), threading.Event()

        def slow(_piece: str) -> None:
            begun.set()
            time.sleep(0.05)

        story = GenerationRequest(messages=(Message(role="user", content="Write a long story."),), max_tokens=400)
        busy = threading.Thread(target=lambda: engine.generate(story, cancel=stop, on_text=slow))
        busy.start()
        assert begun.wait(20)
        with pytest.raises(EngineTimeout, match="waiting for its turn"):
            engine.generate(GenerationRequest(messages=HELLO, timeout_s=0.2))
        cancel = threading.Event()
        cancel.set()
        assert engine.generate(GenerationRequest(messages=HELLO), cancel=cancel).finish == "cancelled"
        assert engine.count_tokens("counting does not wait") > 0
        stop.set()
        busy.join(20)

    def test_a_full_context_ends_as_length(self, base: Path) -> None:
        small = LlamaCppEngine(base, context_tokens=256)
        try:
            messages = (Message(role="user", content="count: " + "one two three four " * 50),)
            got = small.generate(GenerationRequest(messages=messages, max_tokens=500, json_schema={"type": "string"}))
            assert got.finish == "length"
            assert got.tokens_in + got.tokens_out <= 257
        finally:
            small.close()

    def test_labels_outside_the_likely_tokens_are_found(self, engine: LlamaCppEngine) -> None:
        got = engine.label_logprobs(HELLO, ("\t\t", "MetaInfo"))
        assert got.mass < 1e-3
        assert got.best in ("\t\t", "MetaInfo")

    def test_prefix_reuse_moves_scores_by_less_than_a_thousandth(self, engine: LlamaCppEngine, base: Path) -> None:
        fresh = LlamaCppEngine(base, context_tokens=2048, reuse_prefix=False)
        try:
            exact = [fresh.label_logprobs(HELLO, ("A", "B")) for _ in range(2)]
            assert exact[0] == exact[1]
            reused = [engine.label_logprobs(HELLO, ("A", "B")) for _ in range(2)][1]
            assert abs(exact[0].logprobs["A"] - reused.logprobs["A"]) < 1e-3
        finally:
            fresh.close()


@pytest.mark.integration
class TestPrivacy:
    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_nothing_listens_on_tcp(self, engine: LlamaCppEngine) -> None:
        engine.generate(GenerationRequest(messages=HELLO, max_tokens=1))
        ours = set()
        for name in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{name}")
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                ours.add(target[8:-1])
        rows = [
            line.split()
            for table in ("tcp", "tcp6", "udp", "udp6")
            for line in Path(f"/proc/self/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        ]
        assert ours  # the Unix socket is among them, so the test looks at the right place
        assert [row[1] for row in rows if row[9] in ours] == []

    def test_the_socket_asks_for_the_key(self, engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        assert engine.count_tokens("one") == 1
        monkeypatch.setattr(engine._server, "_key", "guessed")
        with pytest.raises(Exception, match=r"could not tokenize.*Invalid API Key"):
            engine.count_tokens("one")

    def test_the_directory_is_private_and_goes(self, base: Path) -> None:
        one = LlamaCppEngine(base, context_tokens=256)
        directory = one._server._directory
        assert directory.stat().st_mode & 0o777 == 0o700
        assert (directory / "llama.sock").exists()
        one.close()
        assert not directory.exists()

    def test_a_long_temporary_directory_is_avoided(
        self, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        long = tmp_path / ("x" * 120)
        long.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(long))
        one = LlamaCppEngine(base, context_tokens=256)
        assert one.generate(GenerationRequest(messages=HELLO, max_tokens=2)).tokens_out == 2
        one.close()
        assert list(long.iterdir()) == []

    def test_nothing_is_printed(self, base: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        one = LlamaCppEngine(base, context_tokens=256)
        one.generate(GenerationRequest(messages=HELLO, max_tokens=3))
        one.generate(GenerationRequest(messages=HELLO, choice=('a "quoted" \\ choice\n', "报警")))
        one.close()
        assert capfd.readouterr() == ("", "")


class TestFiles:
    """No base is needed: a bad file is refused before llama.cpp sees it."""

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "no such file"),
            (b"", "0 bytes"),
            (b"PK\x03\x04" + b"x" * 60, "not b'GGUF'"),
            (b"GGUF" + b"\xff" * 60, "version is 4294967295"),
            (b"GGUF" + struct.pack("<IQQ", 3, 2, 10**15), "1000000000000000 keys"),
            (b"GGUF" + struct.pack("<IQQ", 3, 2, 9) + b"\x05" + b"\0" * 7 + b"ab", "breaks off or is damaged|claims"),
        ],
    )
    def test_a_base_that_is_no_base(self, tmp_path: Path, content: bytes | None, reason: str) -> None:
        path = tmp_path / "base.gguf"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(EngineUnavailable, match=reason) as caught:
            LlamaCppEngine(path)
        assert "faultwright models pull" in str(caught.value)

    def test_a_wrong_hash(self, tmp_path: Path) -> None:
        path = lora_gguf(tmp_path / "base.gguf")
        with pytest.raises(EngineUnavailable, match="it is damaged"):
            LlamaCppEngine(path, sha256="0" * 64)

    def test_an_unknown_template(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="'llama3' does not exist; known: chatml, gemma"):
            LlamaCppEngine(tmp_path / "base.gguf", template="llama3")

    @pytest.mark.integration
    def test_llama_cpp_itself_refuses_without_taking_us_along(self, tmp_path: Path) -> None:
        whole = write_gguf(tmp_path / "base.gguf", {"general.architecture": "llama", "general.type": "model"}, [])
        with pytest.raises(EngineUnavailable, match="refused"):
            LlamaCppEngine(whole)

    @pytest.mark.integration
    def test_a_cut_base(self, base: Path, tmp_path: Path) -> None:
        path = tmp_path / "cut.gguf"
        with base.open("rb") as file:
            path.write_bytes(file.read(5_000_000))
        with pytest.raises(EngineUnavailable, match=r"cut short: 5000000 bytes of at least \d+"):
            LlamaCppEngine(path)

    def test_cores(self) -> None:
        assert 1 <= usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.integration
class TestEndOfProcess:
    """Each case is a process of its own; what it must leave: exit code, no output, no directory."""

    def run(self, base: Path, tmp_path: Path, body: str, expect: int = 0) -> None:  # long time limits: CI cores are shared
        code = textwrap.dedent(
            """
            import os, signal, sys, threading, time
            from pathlib import Path
            from models.engine import GenerationRequest, Message
            from models.engines.llama_cpp import LlamaCppEngine
            engine = LlamaCppEngine(Path(sys.argv[1]), context_tokens=512)
            def story():
                request = GenerationRequest(messages=(Message(role="user", content="Tell a long story."),), max_tokens=450)
                return engine.generate(request)
            """
        ) + textwrap.dedent(body)
        temporary = Path(os.path.realpath(tmp_path)) / "t"
        temporary.mkdir()
        env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
        got = subprocess.run(
            [sys.executable, "-c", code, str(base)], env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert (got.returncode, got.stdout) == (expect, "")
        assert expect != 0 or got.stderr == ""
        assert list(temporary.iterdir()) == []

    def test_without_close(self, base: Path, tmp_path: Path) -> None:
        self.run(base, tmp_path, "engine.generate(GenerationRequest(messages=(Message(role='user', content='hi'),)))")

    def test_with_close(self, base: Path, tmp_path: Path) -> None:
        self.run(base, tmp_path, "engine.close()")

    def test_dropped(self, base: Path, tmp_path: Path) -> None:
        self.run(base, tmp_path, "del engine")

    def test_while_a_daemon_thread_generates(self, base: Path, tmp_path: Path) -> None:
        self.run(base, tmp_path, "threading.Thread(target=story, daemon=True).start()\ntime.sleep(0.3)")

    def test_closed_while_another_thread_generates(self, base: Path, tmp_path: Path) -> None:
        body = """
        got = []
        thread = threading.Thread(target=lambda: got.append(story()))
        thread.start()
        time.sleep(0.3)
        engine.close()
        thread.join()
        assert got[0].finish == "cancelled" and got[0].text, got
        """
        self.run(base, tmp_path, body)

    def test_exception(self, base: Path, tmp_path: Path) -> None:
        self.run(base, tmp_path, "raise SystemExit(7)", expect=7)

    @pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
    def test_interrupt_key(self, base: Path, tmp_path: Path) -> None:
        body = """
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            story()
        except KeyboardInterrupt:
            raise SystemExit(9)
        """
        self.run(base, tmp_path, body, expect=9)
