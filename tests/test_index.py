"""The vector index on disk, with real FAISS: kills, damage, a full disk, two builders, no embedder."""

from __future__ import annotations

import fcntl
import json
import pickle
import pickletools
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from retrieval import index as index_module
from retrieval import starter_vectors
from retrieval.ann import IndexKind, made_of
from retrieval.embed import HashingEmbedder, Vectors
from retrieval.errors import EmbedderUnavailable, IndexDamaged, IndexMismatch, StoreUnusable
from retrieval.index import EMBED_BATCH, Busy, VectorIndex, build, in_use, load
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore
from retrieval.units import Embedded, texts_of, unit_of_passage, vector_id, words_of

FILES = ("manifest.json", "vectors.faiss")


def guide(number: int, **change: Any) -> dict[str, Any]:
    return {
        "id": f"guide/{number}",
        "kind": "guide",
        "vendor": "generic",
        "title": {"en": f"Guide {number}", "zh": f"指南 {number}"},
        "meaning": {"en": f"Axis {number} shakes at {number * 7} rpm", "zh": f"{number} 轴抖动，转速 {number * 7}"},
        "items": [],
        "phrases": {"en": [f"shaking {number}"], "zh": [f"抖动 {number}"]},
        "sources": [],
    } | change


def write(folder: Path, *entries: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.yaml").write_text(yaml.safe_dump({"entries": list(entries)}, allow_unicode=True), encoding="utf-8")
    return folder


def stored(home: Path, kb: Path, *entries: dict[str, Any]) -> KnowledgeStore:
    store = KnowledgeStore(home)
    store.sync(write(kb, *(entries or tuple(guide(n) for n in range(20)))))
    return store


@pytest.fixture
def small(home: Path, tmp_path: Path) -> KnowledgeStore:
    return stored(home, tmp_path / "kb")


class Counting(HashingEmbedder):
    """Keeps what it was asked; breaks after `works` batches."""

    def __init__(self, works: int = 10**9) -> None:
        self.texts: list[str] = []
        self.works = works

    def passages(self, texts: Sequence[str]) -> Vectors:
        if self.works <= 0:
            raise EmbedderUnavailable("The fake embedder is gone.", "mend the test.")
        made = super().passages(texts)
        self.works -= 1
        self.texts += texts
        return made

    def query(self, text: str) -> Vectors:
        if self.works <= 0:
            raise EmbedderUnavailable("The fake embedder is gone.", "mend the test.")
        return super().query(text)


class Renamed(HashingEmbedder):
    id = "hashing/2"


class Wider(HashingEmbedder):
    dimension = 128


def artefact(home: Path) -> Path:
    return home / "index" / (home / "index" / "current").read_text().strip()


def names(home: Path) -> set[str]:
    return {path.name for path in (home / "index").iterdir()}


def texts_in(store: KnowledgeStore) -> dict[int, str]:
    """Vector ids of all texts in use."""
    return {vector_id(text.hash): text.text for entry in store.entries() for text in texts_of(entry)}


def one_valid(home: Path) -> VectorIndex:
    """The index, with nothing left lying beside it."""
    index = load(home, HashingEmbedder())
    assert names(home) == {"current", ".lock", artefact(home).name}
    return index


def spawn(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


class TestUnits:
    def test_title_with_meaning_and_each_phrase_are_embedded_in_both_languages(self, small: KnowledgeStore) -> None:
        texts = [(text.language, text.text) for text in texts_of(small.entries()[0])]
        assert texts == [
            ("en", "Guide 0. Axis 0 shakes at 0 rpm"), ("en", "shaking 0"),
            ("zh", "指南 0. 0 轴抖动，转速 0"), ("zh", "抖动 0"),
        ]  # fmt: skip

    def test_words_hold_codes_in_both_forms_and_weigh_phrases(self, home: Path, tmp_path: Path) -> None:
        alarm = guide(1, id="fanuc/a", kind="alarm", vendor="fanuc", keys=[{"family": "30i", "code": "SV0401"}])
        tokens = words_of(stored(home, tmp_path / "kb", alarm).entries()[0])
        assert {"sv0401", "#401", "抖动"} <= set(tokens)
        assert tokens.count("shaking") == 2

    def test_a_passage_is_embedded_with_its_heading(self) -> None:
        unit = unit_of_passage("d/p0", "fanuc", ("Spindle", "Belt"), "Check its tension.", "en")
        assert unit.texts == (Embedded("en", "Spindle / Belt. Check its tension."),)
        assert unit.tokens.count("belt") == 2
        assert "spindle" in unit.title_components
        bare = unit_of_passage("d/p1", "fanuc", (), "Check its tension.", "en")
        assert bare.texts == (Embedded("en", "Check its tension."),)
        assert bare.title_components == frozenset()


class TestBuild:
    def test_it_holds_every_text_under_the_number_of_its_hash(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        index = one_valid(home)
        texts = texts_in(small)
        assert index.ids.tolist() == sorted(texts)
        assert index.vectors.ntotal == index.manifest["vectors"] == 80
        for number in list(texts)[::17]:
            vector = HashingEmbedder().query(texts[number])
            np.testing.assert_allclose(index.vectors.reconstruct(number), vector, rtol=1e-6)
            ((found, cosine),) = index.nearest(vector, 1)
            assert (found, round(cosine, 5)) == (number, 1.0)
            assert index.cosines(vector, np.array([number, 5])) == [pytest.approx(1.0)]
        assert (index.manifest["kind"], index.manifest["generation"]) == ("flat", small.generation)

    def test_equal_texts_are_embedded_once(self, home: Path, tmp_path: Path) -> None:
        same = {"phrases": {"en": ["it shakes", "it shakes"], "zh": ["抖动"]}, "title": {"zh": "抖动指南"}}
        store = stored(home, tmp_path / "kb", *[guide(n, **same, meaning={"zh": "主轴抖动"}) for n in range(30)])
        embedder = Counting()
        build(home, store, embedder)
        assert sorted(embedder.texts) == sorted({"抖动指南. 主轴抖动", "it shakes", "抖动"})
        assert one_valid(home).vectors.ntotal == 3
        assert len(Searcher(home, store, HashingEmbedder()).search("抖动", count=40)) == 30

    def test_a_second_build_embeds_only_what_is_new(self, home: Path, tmp_path: Path) -> None:
        store = stored(home, tmp_path / "kb")
        build(home, store, HashingEmbedder())
        store.sync(write(tmp_path / "kb", *[guide(n) for n in range(20)], guide(99)))
        embedder = Counting()
        build(home, store, embedder)
        assert len(embedder.texts) == 4
        assert all("99" in text for text in embedder.texts)

    def test_what_left_the_base_leaves_the_index_and_comes_back_without_an_embedder(
        self, home: Path, tmp_path: Path
    ) -> None:
        store = stored(home, tmp_path / "kb")
        build(home, store, HashingEmbedder())
        store.sync(write(tmp_path / "kb", guide(1), guide(2)))
        build(home, store, Counting(works=0))
        assert one_valid(home).ids.tolist() == sorted(texts_in(store))
        store.sync(write(tmp_path / "kb", *[guide(n) for n in range(20)]))
        build(home, store, Counting(works=0))
        assert one_valid(home).vectors.ntotal == 80
        store.sync(write(tmp_path / "kb", guide(1), guide(2)))
        store.fill()
        assert store.prune_embeddings() == 72
        build(home, store, Counting(works=0))
        store.sync(write(tmp_path / "kb", *[guide(n) for n in range(20)]))
        embedder = Counting()
        build(home, store, embedder)
        assert len(embedder.texts) == 72

    @pytest.mark.parametrize(
        "blob",
        [
            b"", b"\0" * 12, np.zeros(64, "f4").tobytes(), np.full(64, np.nan, "f4").tobytes(),
            np.full(64, np.inf, "f4").tobytes(), np.ones(64, "f4").tobytes(), np.ones(65, "f4").tobytes(), b"\1" * 255,
        ],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
    def test_a_stored_vector_that_is_none_is_made_again(self, home: Path, small: KnowledgeStore, blob: bytes) -> None:
        text = texts_of(small.entries()[3])[1]
        small.put_embeddings(HashingEmbedder.id, {text.hash: blob})
        embedder = Counting()
        build(home, small, embedder)
        assert text.text in embedder.texts
        assert len(embedder.texts) == 80
        assert one_valid(home).nearest(HashingEmbedder().query(text.text), 1)[0][0] == vector_id(text.hash)

    def test_progress_counts_to_the_end(self, home: Path, small: KnowledgeStore) -> None:
        seen: list[tuple[int, int]] = []
        build(home, small, HashingEmbedder(), lambda done, of: seen.append((done, of)))
        assert seen[0] == (0, 80)
        assert seen[-1] == (80, 80)
        assert seen == sorted(seen)

    def test_a_run_that_is_stopped_leaves_an_index_of_what_there_is(self, home: Path, small: KnowledgeStore) -> None:
        embedder = Counting()
        build(home, small, embedder, stop=lambda: len(embedder.texts) >= 2 * EMBED_BATCH)
        assert one_valid(home).vectors.ntotal == len(embedder.texts) == 2 * EMBED_BATCH
        asked = Counting()
        build(home, small, asked, stop=lambda: True)
        assert asked.texts == []
        build(home, small, asked)
        assert len(asked.texts) == 80 - 2 * EMBED_BATCH
        assert one_valid(home).vectors.ntotal == 80

    def test_a_long_run_puts_what_it_has_in_use_now_and_then(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = stored(home, tmp_path / "kb", *[guide(n) for n in range(200)])
        monkeypatch.setattr(index_module, "WRITE_EVERY_S", 0.0)
        sizes: list[int] = []

        class Looking(HashingEmbedder):
            def passages(self, texts: Sequence[str]) -> Vectors:
                if (home / "index" / "current").exists():
                    sizes.append(load(home, HashingEmbedder()).vectors.ntotal)
                return super().passages(texts)

        build(home, store, Looking())
        assert len(set(sizes)) == 3
        assert sizes == sorted(sizes)
        assert one_valid(home).vectors.ntotal == 800

    def test_texts_that_come_while_vectors_are_made_get_theirs(self, home: Path, tmp_path: Path) -> None:
        store = stored(home, tmp_path / "kb")

        class Late(HashingEmbedder):
            done = False

            def passages(self, texts: Sequence[str]) -> Vectors:
                if not self.done:
                    self.done = True
                    store.sync(write(tmp_path / "kb", *[guide(n) for n in range(25)]))
                    store.fill()
                return super().passages(texts)

        build(home, store, Late())
        assert one_valid(home).vectors.ntotal == 100

    def test_an_empty_store_is_refused(self, home: Path) -> None:
        with pytest.raises(StoreUnusable, match="no entries to index") as caught:
            build(home, KnowledgeStore(home), HashingEmbedder())
        assert "faultwright knowledge check" in caught.value.next_step
        assert names(home) == {".lock"}

    def test_who_does_not_wait_is_told_that_another_one_works(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        with (home / "index" / ".lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(Busy):
                build(home, small, HashingEmbedder(), wait=False)
            waiting = threading.Thread(target=build, args=(home, small, HashingEmbedder()))
            waiting.start()
            waiting.join(0.1)
            assert waiting.is_alive()
            fcntl.flock(held, fcntl.LOCK_UN)
            waiting.join(30)
        one_valid(home)

    def test_nothing_is_pickled(self, home: Path, small: KnowledgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise AssertionError("pickle was used")

        for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
            monkeypatch.setattr(pickle, name, refuse)
        build(home, small, HashingEmbedder())
        assert Searcher(home, small, HashingEmbedder()).search("主轴抖动 shaking")
        files = [path for path in artefact(home).rglob("*") if path.is_file()]
        assert {str(path.relative_to(artefact(home))) for path in files} == set(FILES)
        for path in files:
            body = path.read_bytes()
            assert not body.startswith(b"\x80"), path
            with pytest.raises(ValueError, match=r"opcode|pickle|expected|no newline|invalid|not enough data|literal"):
                list(pickletools.genops(body))
            if path.suffix == ".json":
                json.loads(body)
            else:
                assert path.name == "vectors.faiss"


class TestKill:
    CODE = """
import sys, time
from pathlib import Path
from retrieval import index
from retrieval.embed import HashingEmbedder
from retrieval.store import KnowledgeStore
home, marker, stage = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
def wait(*_):
    marker.touch()
    time.sleep(60)
class Slow(HashingEmbedder):
    calls = 0
    def passages(self, texts):
        Slow.calls += 1
        if Slow.calls == 3 and stage == "embedding":
            wait()
        return super().passages(texts)
if stage == "writing":
    index._sha256 = wait
if stage == "before the swap":
    index._swap = wait
index.build(home, KnowledgeStore(home), Slow())
"""

    @pytest.mark.parametrize("stage", ["embedding", "writing", "before the swap"])
    def test_a_kill_leaves_the_last_index_and_the_work_done(self, home: Path, tmp_path: Path, stage: str) -> None:
        store = stored(home, tmp_path / "kb", *[guide(n) for n in range(1000, 1010)])
        build(home, store, HashingEmbedder())
        before = artefact(home)
        store.sync(write(tmp_path / "kb", *[guide(n) for n in range(20)]))
        marker = tmp_path / "marker"
        process = spawn(self.CODE, home, marker, stage)
        deadline = time.monotonic() + 60
        while not marker.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL, process.communicate()
        process.communicate()

        assert load(home, HashingEmbedder()).vectors.ntotal == 40  # the last good one
        left = names(home) - {"current", ".lock", before.name}  # what the killed one left
        assert bool(left) == (stage != "embedding")
        embedder = Counting()
        build(home, store, embedder)
        done = 2 * EMBED_BATCH if stage == "embedding" else 80
        assert len(embedder.texts) == 80 - done
        one_valid(home)
        assert not before.exists()

    def test_an_error_in_the_middle_leaves_nothing(self, home: Path, small: KnowledgeStore) -> None:
        class Broken(HashingEmbedder):
            def passages(self, texts: Sequence[str]) -> Vectors:
                raise KeyboardInterrupt

        build(home, small, HashingEmbedder())
        with pytest.raises(KeyboardInterrupt):
            build(home, stored(home, home / "kb", guide(1000)), Broken())
        assert names(home) == {"current", ".lock", artefact(home).name}


class TestDamage:
    @pytest.mark.parametrize("how", ["flip", "truncate", "empty", "delete"])
    @pytest.mark.parametrize("file", FILES)
    def test_a_damaged_file_is_named_and_the_index_made_anew(
        self, home: Path, small: KnowledgeStore, file: str, how: str
    ) -> None:
        build(home, small, HashingEmbedder())
        path = artefact(home) / file
        body = bytearray(path.read_bytes())
        if how == "flip":
            body[0 if file == "manifest.json" else len(body) // 2] ^= 0x20
        path.write_bytes(body if how == "flip" else body[: len(body) // 2] if how == "truncate" else b"")
        if how == "delete":
            path.unlink()
        with pytest.raises(IndexDamaged) as caught:
            load(home, HashingEmbedder())
        assert str(path) in caught.value.what
        assert "faultwright index build" in caught.value.next_step
        notices: list[str] = []
        embedder = Counting()
        searcher = Searcher(home, small, embedder, notice=notices.append)
        assert len(searcher.search("shaking")) == 5
        assert len(notices) == 1
        assert str(path) in notices[0]
        assert notices[0].endswith("It is being made anew from the knowledge base.")
        assert embedder.texts == []
        one_valid(home)

    @pytest.mark.parametrize("pointer", [b"", b"v1-nowhere", b"\xff\xfe", b"../..", None])
    def test_a_pointer_that_leads_nowhere(self, home: Path, small: KnowledgeStore, pointer: bytes | None) -> None:
        build(home, small, HashingEmbedder())
        if pointer is None:
            (home / "index" / "current").unlink()
        else:
            (home / "index" / "current").write_bytes(pointer)
        with pytest.raises(IndexDamaged) as caught:
            load(home, HashingEmbedder())
        assert str(home / "index") in caught.value.what
        assert Searcher(home, small, HashingEmbedder()).search("shaking")
        one_valid(home)

    def test_no_flip_in_the_manifest_gets_through_unnamed(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        path = artefact(home) / "manifest.json"
        sound, wanted = path.read_bytes(), load(home, HashingEmbedder())
        query = HashingEmbedder().query("shaking 7")
        chance = random.Random(3)
        named = 0
        for place in range(0, len(sound), 2):
            body = bytearray(sound)
            body[place] ^= 1 << chance.randrange(8)
            path.write_bytes(body)
            try:
                index = load(home, HashingEmbedder())
            except (IndexDamaged, IndexMismatch):
                named += 1
                continue
            assert index.nearest(query, 20) == wanted.nearest(query, 20)
        assert named > len(sound) // 5

    @pytest.mark.parametrize("body", [b"[1, 2]", b"", b"IxFI", b"IxMp" + b"\xff" * 400])
    def test_files_whole_but_of_no_use_are_named(self, home: Path, small: KnowledgeStore, body: bytes) -> None:
        """A library of another version wrote them: the hash agrees, the reader does not."""
        build(home, small, HashingEmbedder())
        self.replaced(artefact(home), body)
        with pytest.raises(IndexDamaged, match="cannot be read"):
            load(home, HashingEmbedder())

    @staticmethod
    def replaced(folder: Path, body: bytes, **change: Any) -> None:
        """Another vectors.faiss, its hash in the manifest."""
        (folder / "vectors.faiss").write_bytes(body)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest |= {"sha256": index_module._sha256(folder / "vectors.faiss"), **change}
        (folder / "manifest.json").write_text(json.dumps(manifest))

    def test_too_few_vectors_are_named(self, home: Path, small: KnowledgeStore) -> None:
        import faiss

        build(home, small, HashingEmbedder())
        short = made_of(IndexKind("flat", 0, ""), np.zeros((3, 64), dtype=np.float32), np.arange(3, dtype=np.int64))
        self.replaced(artefact(home), faiss.serialize_index(short).tobytes())
        with pytest.raises(IndexDamaged, match="holds 3 vectors of 64; 80 of 64 are listed"):
            load(home, HashingEmbedder())

    @pytest.mark.parametrize(
        "change", [{"kind": "tree"}, {"kind": None}, {"effort": -1}, {"effort": "much"}, {"vectors": "80"}]
    )
    def test_a_manifest_that_says_what_cannot_be_is_named(
        self, home: Path, small: KnowledgeStore, change: dict[str, Any]
    ) -> None:
        build(home, small, HashingEmbedder())
        folder = artefact(home)
        self.replaced(folder, (folder / "vectors.faiss").read_bytes(), **change)
        with pytest.raises(IndexDamaged, match=r"vectors.faiss|cannot be read"):
            load(home, HashingEmbedder())


class TestMismatch:
    @pytest.mark.parametrize(
        ("embedder", "reason"),
        [(Renamed(), "embedder 'hashing/1'; wanted is 'hashing/2'"), (Wider(), "dimension 64; wanted is 128")],
    )
    def test_another_embedder_is_refused_and_the_index_made_for_it(
        self, home: Path, small: KnowledgeStore, embedder: HashingEmbedder, reason: str
    ) -> None:
        build(home, small, HashingEmbedder())
        with pytest.raises(IndexMismatch, match=reason) as caught:
            load(home, embedder)
        assert str(artefact(home)) in caught.value.what
        notices: list[str] = []
        _, index = Searcher(home, small, embedder, notice=notices.append).ready()
        assert index is not None
        assert reason in notices[0]
        assert index.vectors.d == embedder.dimension

    def test_another_format_is_refused(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        path = artefact(home) / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))
        with pytest.raises(IndexMismatch, match="format 1; wanted is 2"):
            load(home, HashingEmbedder())

    def test_changed_knowledge_is_noticed_by_a_running_searcher(self, home: Path, tmp_path: Path) -> None:
        store = stored(home, tmp_path / "kb")
        notices: list[str] = []
        searcher = Searcher(home, store, HashingEmbedder(), notice=notices.append)
        searcher.search("shaking")
        assert notices == []  # a first build is no event
        store.sync(write(tmp_path / "kb", guide(1), guide(2, title={"en": "Coolant smells"})))
        assert searcher.search("coolant smells")[0].entry_id == "guide/2"
        table, index = searcher.ready()
        assert len(table.units) == 2
        assert index is not None
        assert index.ids.tolist() == sorted(texts_in(store))
        assert notices == []

    def test_an_index_that_another_process_put_in_use_is_taken(self, home: Path, tmp_path: Path) -> None:
        store = stored(home, tmp_path / "kb")
        searcher = Searcher(home, store, HashingEmbedder())
        _, first = searcher.ready()
        assert searcher.ready()[1] is first
        other = build(home, KnowledgeStore(home), HashingEmbedder())
        _, second = searcher.ready()
        assert second is not None
        assert second.manifest["name"] == other == in_use(home / "index")


class TestAtOnce:
    READY = """
import sys, time
from pathlib import Path
from retrieval.embed import HashingEmbedder
from retrieval.index import build
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore
home, go, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
store = KnowledgeStore(home)
class Slow(HashingEmbedder):
    made = 0
    def passages(self, texts):
        time.sleep(0.05)
        Slow.made += len(texts)
        return super().passages(texts)
print("here", flush=True)
while not go.exists(): time.sleep(0.001)
name = build(home, store, Slow()) if how == "build" else Searcher(home, store, Slow()).ready()[1].manifest["name"]
print(name, Slow.made)
"""

    @pytest.mark.parametrize("how", ["build", "ready"])
    def test_processes_that_build_at_once_end_with_one_index(
        self, home: Path, small: KnowledgeStore, tmp_path: Path, how: str
    ) -> None:
        processes = [spawn(self.READY, home, tmp_path / "go", how) for _ in range(3)]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        (tmp_path / "go").touch()
        made = [finish(process).split() for process in processes]
        assert one_valid(home).vectors.ntotal == 80
        assert artefact(home).name in {name for name, _ in made}
        assert sum(int(count) for _, count in made) == 80  # who waited made no vector again

    def test_a_reader_is_not_disturbed_by_builders(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        code = (
            "import sys\nfrom pathlib import Path\nfrom retrieval.embed import HashingEmbedder\n"
            "from retrieval.index import build\nfrom retrieval.store import KnowledgeStore\n"
            "home = Path(sys.argv[1])\nfor _ in range(25): build(home, KnowledgeStore(home), HashingEmbedder())\n"
        )
        builder = spawn(code, home)
        seen = set()
        while builder.poll() is None:
            seen.add(load(home, HashingEmbedder()).manifest["name"])
        finish(builder)
        assert len(seen) > 2


class TestFullDisk:
    def test_a_file_cut_short_anywhere_is_named_and_the_index_in_use_stays(self, home: Path, tmp_path: Path) -> None:
        """FAISS does not report a write that fails at the last flush: what was written is read back."""
        store = stored(home, tmp_path / "kb", *[guide(n) for n in range(300)])
        build(home, store, HashingEmbedder())
        before = artefact(home)
        size = (before / "vectors.faiss").stat().st_size
        assert size > 100_000  # else the manifest and SQLite's own files feel the limit too
        code = (
            "import resource, sys\nfrom pathlib import Path\nfrom retrieval.embed import HashingEmbedder\n"
            "from retrieval.errors import StoreUnusable\nfrom retrieval.index import build\n"
            "from retrieval.store import KnowledgeStore\n"
            "home = Path(sys.argv[1])\nstore = KnowledgeStore(home)\n"
            "for limit in map(int, sys.argv[2:]):\n"
            "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))\n"
            "    try: print('written', limit, build(home, store, HashingEmbedder()))\n"
            "    except StoreUnusable as error: print(error.what, error.next_step, sep='|')\n"
        )
        limits = [size - cut for cut in (1, 60, 3000, 4096, 50_000)]
        lines = finish(spawn(code, home, *limits)).splitlines()
        assert len(lines) == len(limits)
        for line in lines:
            what, next_step = line.split("|")
            assert str(home / "index") in what
            assert "None" not in what
            assert "free disk space" in next_step
        assert artefact(home) == before
        one_valid(home)

    def test_vectors_that_do_not_fit_the_store_leave_the_index_in_use(self, home: Path, tmp_path: Path) -> None:
        store = stored(home, tmp_path / "kb")
        build(home, store, HashingEmbedder())
        before = artefact(home)
        store.sync(write(tmp_path / "kb", *[guide(n) for n in range(1000, 1200)]))
        store.fill()
        code = (
            "import resource, sys\nfrom pathlib import Path\nfrom retrieval.embed import HashingEmbedder\n"
            "from retrieval.errors import StoreUnusable\nfrom retrieval.index import build\n"
            "from retrieval.store import KnowledgeStore\nhome = Path(sys.argv[1])\nstore = KnowledgeStore(home)\n"
            "limit = store.path.stat().st_size\nresource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
            "try: print('written', build(home, store, HashingEmbedder()))\n"
            "except StoreUnusable as error: print(error.next_step)\n"
        )
        assert "free disk space" in finish(spawn(code, home))
        assert artefact(home) == before
        build(home, store, HashingEmbedder())
        assert one_valid(home).vectors.ntotal == 800

    def test_a_home_that_cannot_hold_an_index(self, home: Path, small: KnowledgeStore) -> None:
        (home / "index").touch()
        with pytest.raises(StoreUnusable, match="Cannot write the index") as caught:
            build(home, small, HashingEmbedder())
        assert "FAULTWRIGHT_HOME" in caught.value.next_step


class TestWithoutEmbedder:
    def test_a_build_says_what_is_missing_and_writes_nothing(self, home: Path, small: KnowledgeStore) -> None:
        with pytest.raises(EmbedderUnavailable, match="fake embedder is gone"):
            build(home, small, Counting(works=0))
        assert names(home) == {".lock"}

    def test_a_search_says_what_is_missing(self, home: Path, small: KnowledgeStore) -> None:
        searcher = Searcher(home, small, Counting(works=0))
        found = searcher.search("shaking 7")
        assert found[0].entry_id == "guide/7"
        assert found[0].similarity == 1.0
        assert {evidence.matched_by for evidence in found} == {("keyword",)}
        assert searcher.degraded == ("no vectors, keywords only: The fake embedder is gone.",)

    def test_the_next_run_with_an_embedder_makes_the_vectors(self, home: Path, small: KnowledgeStore) -> None:
        assert Searcher(home, small, Counting(works=0)).ready()[1] is None
        notices: list[str] = []
        searcher = Searcher(home, small, HashingEmbedder(), notice=notices.append)
        assert searcher.search("shaking 7")[0].matched_by == ("keyword", "vector")
        assert searcher.degraded == ()
        assert notices == []
        assert one_valid(home).vectors.ntotal == 80

    def test_an_embedder_lost_in_the_middle_keeps_what_it_made(self, home: Path, small: KnowledgeStore) -> None:
        with pytest.raises(EmbedderUnavailable):
            build(home, small, Counting(works=2))
        assert small.coverage(HashingEmbedder.id) == (2 * EMBED_BATCH, 80)
        embedder = Counting()
        Searcher(home, small, embedder).ready()
        assert len(embedder.texts) == 80 - 2 * EMBED_BATCH

    def test_a_sound_index_is_not_given_up(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        before = artefact(home)
        with small.database.writing() as connection:
            connection.execute("DELETE FROM embedding")
        with pytest.raises(EmbedderUnavailable):
            build(home, small, Counting(works=0))
        assert artefact(home) == before
        assert one_valid(home).vectors.ntotal == 80


class TestStarterVectors:
    @pytest.mark.parametrize("body", [b"", b"junk"])
    def test_a_damaged_file_of_the_package_costs_time_only(
        self, home: Path, small: KnowledgeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
    ) -> None:
        """It is a cache: what it does not give is embedded."""
        (tmp_path / starter_vectors.FILE).write_bytes(body)
        monkeypatch.setattr(starter_vectors, "starter_folder", lambda: tmp_path)
        assert "vector" in Searcher(home, small, HashingEmbedder()).search("shaking 7")[0].matched_by


class TestNearest:
    @pytest.mark.parametrize("seed", range(8))
    def test_the_selector_agrees_with_brute_force(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        matrix = chance.normal(size=(500, 48)).astype(np.float32)
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        ids = chance.choice(2**63 - 1, size=500, replace=False)
        index = VectorIndex(made_of(IndexKind("flat", 0, ""), matrix, ids), {"kind": "flat", "effort": 0})
        assert index.ids.tolist() == sorted(ids.tolist())
        query = matrix[seed] + 0.3 * chance.normal(size=48).astype(np.float32)
        for size in (1, 7, 250, 500):
            rows = sorted(chance.choice(500, size=size, replace=False).tolist())
            for count in (1, 10, size, size + 50):
                order = sorted(rows, key=lambda row: -float(matrix[row] @ query))[:count]
                found = index.nearest(query, count, ids[rows])
                assert [number for number, _ in found] == ids[order].tolist()
                np.testing.assert_allclose([s for _, s in found], matrix[order] @ query, atol=1e-5)
            np.testing.assert_allclose(sorted(index.cosines(query, ids[rows])), sorted(matrix[rows] @ query), atol=1e-5)

    def test_ids_that_are_gone_are_ignored(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        index, query = one_valid(home), HashingEmbedder().query("shaking")
        known = index.ids[:2]
        assert {i for i, _ in index.nearest(query, 9, np.append(known, [3, 2**62]))} == set(known.tolist())
        assert len(index.cosines(query, np.append(known, [3, 2**62]))) == 2
        assert index.nearest(query, 5, np.array([3], dtype=np.int64)) == []

    def test_nothing_asked_for_finds_nothing(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        index, query = one_valid(home), HashingEmbedder().query("x")
        assert index.nearest(query, 5, np.zeros(0, dtype=np.int64)) == []
        assert index.nearest(query, 0) == []
        assert index.cosines(query, np.zeros(0, dtype=np.int64)) == []
        assert len(index.nearest(query, 1000)) == 80

    def test_a_search_leaves_the_number_of_threads_as_it_was(self, home: Path, small: KnowledgeStore) -> None:
        import faiss

        build(home, small, HashingEmbedder())
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(3)
        try:
            one_valid(home).nearest(HashingEmbedder().query("x"), 5)
            assert faiss.omp_get_max_threads() == 3
        finally:
            faiss.omp_set_num_threads(before)
