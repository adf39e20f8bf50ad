"""The index on disk, with real FAISS and BM25: kills, damage, a full disk, two builders, no embedder."""

from __future__ import annotations

import json
import pickle
import pickletools
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from retrieval.embed import HashingEmbedder, Vectors
from retrieval.errors import EmbedderUnavailable, IndexDamaged, IndexMismatch, StoreUnusable
from retrieval.index import EMBED_BATCH, Passage, SearchIndex, build, keyword_document, load, passages_of
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore

FILES = (
    "manifest.json",
    "passages.json",
    "vectors.faiss",
    "bm25/data.csc.index.npy",
    "bm25/indices.csc.index.npy",
    "bm25/indptr.csc.index.npy",
    "bm25/params.index.json",
    "bm25/vocab.index.json",
)


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


def one_valid(home: Path, store: KnowledgeStore) -> SearchIndex:
    """The index, with nothing left lying beside it."""
    index = load(home, HashingEmbedder(), store.fingerprint)
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


class TestBuild:
    def test_rows_line_up(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        index = one_valid(home, small)
        entries = small.entries()
        assert index.entry_ids == tuple(entry.id for entry in entries)
        assert index.passages == passages_of(entries)
        assert index.vectors.ntotal == len(index.passages) == 80
        assert index.manifest["vectors"] is True
        for row in (0, 33, 79):
            vector = HashingEmbedder().query(index.passages[row].text)
            np.testing.assert_allclose(index.vectors.reconstruct(row), vector, rtol=1e-6)

    def test_passages_name_title_and_phrases_in_both_languages(self, small: KnowledgeStore) -> None:
        texts = [(p.language, p.text) for p in passages_of(small.entries()[:1])]
        assert texts == [
            ("en", "Guide 0. Axis 0 shakes at 0 rpm"), ("en", "shaking 0"),
            ("zh", "指南 0. 0 轴抖动，转速 0"), ("zh", "抖动 0"),
        ]

    def test_keyword_documents_hold_codes_in_both_forms(self, home: Path, tmp_path: Path) -> None:
        store = stored(
            home, tmp_path / "kb",
            guide(1, id="fanuc/a", kind="alarm", vendor="fanuc", keys=[{"family": "30i", "code": "SV0401"}]),
        )
        tokens = keyword_document(store.entries()[0])
        assert {"sv0401", "#401", "抖动"} <= set(tokens)
        assert tokens.count("shaking") == 2

    def test_equal_passages_are_embedded_once(self, home: Path, tmp_path: Path) -> None:
        same = {"phrases": {"en": ["it shakes", "it shakes"], "zh": ["抖动"]}, "title": {"zh": "抖动指南"}}
        store = stored(home, tmp_path / "kb", *[guide(n, **same, meaning={"zh": "主轴抖动"}) for n in range(30)])
        embedder = Counting()
        build(home, store, embedder)
        assert sorted(embedder.texts) == sorted({"抖动指南. 主轴抖动", "it shakes", "抖动"})
        assert one_valid(home, store).vectors.ntotal == 30 * 4

    def test_a_second_build_embeds_only_what_is_new(self, home: Path, tmp_path: Path) -> None:
        store = stored(home, tmp_path / "kb")
        build(home, store, HashingEmbedder())
        store.sync(write(tmp_path / "kb", *[guide(n) for n in range(20)], guide(99)))
        embedder = Counting()
        build(home, store, embedder)
        assert len(embedder.texts) == 4
        assert all("99" in text for text in embedder.texts)

    def test_a_stored_vector_of_the_wrong_size_is_made_again(self, home: Path, small: KnowledgeStore) -> None:
        text = passages_of(small.entries())[5]
        small.put_embeddings(HashingEmbedder.id, {text.hash: b"\0" * 12})
        embedder = Counting()
        build(home, small, embedder)
        assert text.text in embedder.texts
        one_valid(home, small)

    def test_progress_counts_to_the_end(self, home: Path, small: KnowledgeStore) -> None:
        seen: list[tuple[int, int]] = []
        build(home, small, HashingEmbedder(), lambda done, of: seen.append((done, of)))
        assert seen[0] == (0, 80)
        assert seen[-1] == (80, 80)
        assert seen == sorted(seen)

    def test_an_empty_store_is_refused(self, home: Path) -> None:
        with pytest.raises(StoreUnusable, match="no entries to index") as caught:
            build(home, KnowledgeStore(home), HashingEmbedder())
        assert "faultwright knowledge check" in caught.value.next_step
        assert names(home) == {".lock"}

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
            if path.suffix == ".npy":
                assert np.load(path, allow_pickle=False).dtype.kind in "iuf"
            elif path.suffix == ".json":
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
        knowledge, before = store.fingerprint, artefact(home)
        store.sync(write(tmp_path / "kb", *[guide(n) for n in range(20)]))
        marker = tmp_path / "marker"
        process = spawn(self.CODE, home, marker, stage)
        deadline = time.monotonic() + 60
        while not marker.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL, process.communicate()
        process.communicate()

        assert len(load(home, HashingEmbedder(), knowledge).passages) == 40  # the last good one
        assert names(home) > {"current", ".lock", before.name}  # and what the killed one left
        embedder = Counting()
        build(home, store, embedder)
        done = 2 * EMBED_BATCH if stage == "embedding" else 80
        assert len(embedder.texts) == 80 - done
        one_valid(home, store)
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
            load(home, HashingEmbedder(), small.fingerprint)
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
        one_valid(home, small)

    @pytest.mark.parametrize("pointer", [b"", b"v1-nowhere", b"\xff\xfe", b"../..", None])
    def test_a_pointer_that_leads_nowhere(self, home: Path, small: KnowledgeStore, pointer: bytes | None) -> None:
        build(home, small, HashingEmbedder())
        if pointer is None:
            (home / "index" / "current").unlink()
        else:
            (home / "index" / "current").write_bytes(pointer)
        with pytest.raises(IndexDamaged) as caught:
            load(home, HashingEmbedder(), small.fingerprint)
        assert str(home / "index") in caught.value.what
        assert Searcher(home, small, HashingEmbedder()).search("shaking")
        one_valid(home, small)

    def test_no_flip_in_the_manifest_gets_through_unnamed(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        path = artefact(home) / "manifest.json"
        sound, wanted = path.read_bytes(), load(home, HashingEmbedder(), small.fingerprint)
        chance = random.Random(3)
        for place in range(0, len(sound), 5):
            body = bytearray(sound)
            body[place] ^= 1 << chance.randrange(8)
            path.write_bytes(body)
            try:
                index = load(home, HashingEmbedder(), small.fingerprint)
            except (IndexDamaged, IndexMismatch):
                continue
            assert index.passages == wanted.passages
            assert index.vectors is not None

    def test_files_whole_but_of_no_use_are_named(self, home: Path, small: KnowledgeStore) -> None:
        """A library of another version wrote them: the hashes agree, the reader does not."""
        from retrieval.index import _sha256

        build(home, small, HashingEmbedder())
        folder = artefact(home)
        manifest = json.loads((folder / "manifest.json").read_text())
        for file in FILES[1:]:
            keep = (folder / file).read_bytes()
            (folder / file).write_bytes(b"[1, 2]")
            changed = {**manifest, "files": {**manifest["files"], file: _sha256(folder / file)}}
            (folder / "manifest.json").write_text(json.dumps(changed))
            with pytest.raises(IndexDamaged, match="cannot be read"):
                load(home, HashingEmbedder(), small.fingerprint)
            (folder / file).write_bytes(keep)

    def test_too_few_vectors_are_named(self, home: Path, small: KnowledgeStore) -> None:
        import faiss

        from retrieval.index import _sha256

        build(home, small, HashingEmbedder())
        folder = artefact(home)
        short = faiss.IndexFlatIP(64)
        short.add(np.zeros((3, 64), dtype=np.float32))
        faiss.write_index(short, str(folder / "vectors.faiss"))
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"]["vectors.faiss"] = _sha256(folder / "vectors.faiss")
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(IndexDamaged, match="holds 3 vectors of 64; 80 of 64 are listed"):
            load(home, HashingEmbedder(), small.fingerprint)


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
            load(home, embedder, small.fingerprint)
        assert str(artefact(home)) in caught.value.what
        notices: list[str] = []
        index = Searcher(home, small, embedder, notice=notices.append).ready()
        assert reason in notices[0]
        assert index.vectors.d == embedder.dimension

    def test_another_format_is_refused(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        path = artefact(home) / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
        with pytest.raises(IndexMismatch, match="format 2; wanted is 1"):
            load(home, HashingEmbedder(), small.fingerprint)

    def test_changed_knowledge_is_noticed_by_a_running_searcher(self, home: Path, tmp_path: Path) -> None:
        store = stored(home, tmp_path / "kb")
        notices: list[str] = []
        searcher = Searcher(home, store, HashingEmbedder(), notice=notices.append)
        searcher.search("shaking")
        assert notices == []  # a first build is no event
        store.sync(write(tmp_path / "kb", guide(1), guide(2, title={"en": "Coolant smells"})))
        assert searcher.search("coolant smells")[0].entry_id == "guide/2"
        assert "was made with knowledge" in notices[0]
        assert len(searcher.ready().entry_ids) == 2


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
    def passages(self, texts):
        time.sleep(0.05)
        return super().passages(texts)
print("here", flush=True)
while not go.exists(): time.sleep(0.001)
print(build(home, store, Slow()) if how == "build" else Searcher(home, store, Slow()).ready().manifest["name"])
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
        made = [finish(process).strip() for process in processes]
        one_valid(home, small)
        assert artefact(home).name in made
        if how == "ready":  # who waited takes what the first one made
            assert set(made) == {artefact(home).name}

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
            seen.add(load(home, HashingEmbedder(), small.fingerprint).manifest["name"])
        finish(builder)
        assert len(seen) > 2


class TestFullDisk:
    @pytest.mark.parametrize("works", [10**9, 0])
    def test_a_file_cut_short_anywhere_is_named_and_the_index_in_use_stays(
        self, home: Path, tmp_path: Path, works: int
    ) -> None:
        """numpy and faiss do not report a write that fails at the last flush: what was written is read back."""
        entries = [guide(n) for n in range(300)]  # vectors.faiss is the largest file
        if not works:  # the files of BM25 are large
            words = [{"en": " ".join(f"word{n}x{k}" for k in range(30))} for n in range(300)]
            entries = [guide(n, meaning=meaning) for n, meaning in enumerate(words)]
        store = stored(home, tmp_path / "kb", *entries)
        build(home, store, Counting(works))
        before = artefact(home)
        sizes = sorted({p.stat().st_size for p in before.rglob("*") if p.stat().st_size > 33_000 and p.is_file()})
        assert len(sizes) >= (2 if works else 4)
        code = (
            "import resource, sys\nfrom pathlib import Path\nfrom retrieval.embed import HashingEmbedder\n"
            "from retrieval.errors import EmbedderUnavailable, StoreUnusable\nfrom retrieval.index import build\n"
            "from retrieval.store import KnowledgeStore\n"
            "def gone(*_): raise EmbedderUnavailable('gone', '')\n"
            "home = Path(sys.argv[1])\nstore = KnowledgeStore(home)\n"
            "if sys.argv[2] == '0':\n"
            "    HashingEmbedder.passages = gone\n"
            "    store.put_embeddings = store.embeddings = lambda *_: {}\n"
            "for limit in map(int, sys.argv[3:]):\n"
            "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))\n"
            "    try: print('written', limit, build(home, store, HashingEmbedder()))\n"
            "    except StoreUnusable as error: print(error.what, error.next_step, sep='|')\n"
        )
        limits = [size - cut for size in sizes for cut in (1, 60, 3000)]
        lines = finish(spawn(code, home, works, *limits)).splitlines()
        assert len(lines) == len(limits)
        for line in lines:
            what, next_step = line.split("|")
            assert str(home / "index") in what
            assert "None" not in what
            assert "free disk space" in next_step
        assert artefact(home) == before
        one_valid(home, store)

    def test_a_home_that_cannot_hold_an_index(self, home: Path, small: KnowledgeStore) -> None:
        (home / "index").touch()
        with pytest.raises(StoreUnusable, match="Cannot write the index") as caught:
            build(home, small, HashingEmbedder())
        assert "FAULTWRIGHT_HOME" in caught.value.next_step


class TestWithoutEmbedder:
    def test_the_index_holds_keywords_only_and_says_so(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, Counting(works=0))
        index = load(home, HashingEmbedder(), small.fingerprint)
        assert index.vectors is None
        assert index.manifest["vectors"] is False
        assert index.manifest["vectors_missing"] == "The fake embedder is gone."
        assert not (artefact(home) / "vectors.faiss").exists()
        assert index.nearest(HashingEmbedder().query("x"), [0, 1], 2) == []
        assert max(index.keyword_scores(["shaking"])) > 0

    def test_a_search_says_what_is_missing(self, home: Path, small: KnowledgeStore) -> None:
        searcher = Searcher(home, small, Counting(works=0))
        found = searcher.search("shaking 7")
        assert found[0].entry_id == "guide/7"
        assert found[0].similarity == 1.0
        assert {evidence.matched_by for evidence in found} == {("keyword",)}
        assert searcher.degraded == ("no vectors, keywords only: The fake embedder is gone.",)

    def test_the_next_run_with_an_embedder_adds_the_vectors(self, home: Path, small: KnowledgeStore) -> None:
        Searcher(home, small, Counting(works=0)).ready()
        name = artefact(home).name
        still_gone = Searcher(home, small, Counting(works=0))
        assert still_gone.ready().vectors is None
        assert artefact(home).name == name  # not made again for nothing
        notices: list[str] = []
        searcher = Searcher(home, small, HashingEmbedder(), notice=notices.append)
        assert searcher.ready().vectors.ntotal == 80
        assert searcher.search("shaking 7")[0].matched_by == ("keyword", "vector")
        assert searcher.degraded == ()
        assert len(notices) == 1
        assert "its vectors are being made" in notices[0]
        one_valid(home, small)

    def test_an_embedder_lost_in_the_middle_keeps_what_it_made(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, Counting(works=2))
        assert load(home, HashingEmbedder(), small.fingerprint).vectors is None
        embedder = Counting()
        Searcher(home, small, embedder).ready()
        assert len(embedder.texts) == 80 - 2 * EMBED_BATCH

    def test_a_sound_index_with_vectors_is_not_given_up(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        before = artefact(home)
        with small._connection() as connection:
            connection.execute("DELETE FROM embedding")
        with pytest.raises(EmbedderUnavailable):
            build(home, small, Counting(works=0))
        assert artefact(home) == before
        assert one_valid(home, small).vectors is not None


class TestNearest:
    @pytest.mark.parametrize("seed", range(8))
    def test_the_selector_agrees_with_brute_force(self, seed: int) -> None:
        import faiss

        chance = np.random.default_rng(seed)
        matrix = chance.normal(size=(500, 48)).astype(np.float32)
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        vectors = faiss.IndexFlatIP(48)
        vectors.add(matrix)
        passages = tuple(Passage(f"e{n}", "guide", "generic", "en", f"text {n}") for n in range(500))
        index = SearchIndex(vectors, None, passages, (), {})
        query = matrix[seed] + 0.3 * chance.normal(size=48).astype(np.float32)
        for size in (1, 7, 250, 500):
            rows = sorted(chance.choice(500, size=size, replace=False).tolist())
            for count in (1, 10, size, size + 50):
                found = index.nearest(query, rows, count)
                order = sorted(rows, key=lambda row: -float(matrix[row] @ query))[:count]
                assert [row for row, _ in found] == order
                np.testing.assert_allclose([s for _, s in found], matrix[order] @ query, atol=1e-5)

    def test_no_rows_find_nothing(self, home: Path, small: KnowledgeStore) -> None:
        build(home, small, HashingEmbedder())
        assert one_valid(home, small).nearest(HashingEmbedder().query("x"), [], 5) == []
