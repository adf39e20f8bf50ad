"""Search over real SQLite and FAISS: what comes first, what a filter lets through, what degrades, what a question waits for."""

from __future__ import annotations

import fcntl
import math
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from retrieval import index as index_files
from retrieval import search as search_module
from retrieval.base import starter_folder
from retrieval.documents import Chunk, Documents, StoredDocument
from retrieval.embed import HashingEmbedder, Vectors, similarity
from retrieval.errors import EmbedderUnavailable
from retrieval.index import VectorIndex, build
from retrieval.records import EntryKind
from retrieval.search import (
    FULL_COVERAGE,
    INLINE,
    MIN_SIMILARITY,
    POOL,
    RRF_K,
    TITLE_SHARE,
    WORD_SHARE,
    Searcher,
    Words,
)
from retrieval.store import KnowledgeStore
from retrieval.tokens import tokenize
from retrieval.units import texts_of


def guide(name: str, en: str, zh: str = "指南", **change: Any) -> dict[str, Any]:
    return {
        "id": f"guide/{name}",
        "kind": "guide",
        "vendor": "generic",
        "title": {"en": en, "zh": zh},
        "meaning": {"en": en, "zh": zh},
        "items": [],
        "sources": [],
    } | change


def alarm(name: str, en: str, vendor: str, *keys: tuple[str, str]) -> dict[str, Any]:
    listed = [{"family": family, "code": code} for family, code in keys]
    return guide(name, en, id=f"{vendor}/{name}", kind="alarm", vendor=vendor, keys=listed)


def searcher(home: Path, kb: Path, *entries: dict[str, Any], embedder: HashingEmbedder | None = None) -> Searcher:
    kb.mkdir(exist_ok=True)
    (kb / "a.yaml").write_text(yaml.safe_dump({"entries": list(entries)}, allow_unicode=True), encoding="utf-8")
    store = KnowledgeStore(home)
    store.sync(kb)
    return Searcher(home, store, embedder or HashingEmbedder())


def with_document(made: Searcher, *texts: str, name: str = "shop") -> None:
    """Passages of a shop's document, in the base of a searcher."""
    document = StoredDocument(
        id=name, name=name, path=f"/{name}", series=name, version="", sha256=name, format="txt", vendor="", family="",
        title="", pages=None, added_at="2026-01-01T00:00:00Z", current=True,
    )  # fmt: skip
    Documents(made.store.database).put(document, [], [Chunk((), text, "en") for text in texts])


def index_of(made: Searcher) -> VectorIndex:
    _, index = made.ready()
    assert index is not None
    return index


def plain_bm25(documents: Sequence[Sequence[str]], question: Sequence[str]) -> list[float]:
    """BM25 as SQLite's documentation writes it down: k1 1.2, b 0.75, the inverse frequency never below 1e-6."""
    mean = sum(map(len, documents)) / len(documents)
    scores = [0.0] * len(documents)
    for token in dict.fromkeys(question):
        n = sum(token in document for document in documents)
        idf = max(math.log((len(documents) - n + 0.5) / (n + 0.5)), 1e-6)
        for i, document in enumerate(documents):
            count = document.count(token)
            scores[i] += idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(document) / mean))
    return scores


GUIDES: tuple[EntryKind, ...] = ("guide",)
PASSAGES: tuple[EntryKind, ...] = ("passage",)
TEXTS: tuple[EntryKind, ...] = ("passage", "guide")
PROCEDURES: tuple[EntryKind, ...] = ("procedure",)
HOW_TO: tuple[EntryKind, ...] = ("guide", "procedure")


class Gone(HashingEmbedder):
    """Made the index once; no longer loads."""

    def query(self, text: str) -> Vectors:
        raise EmbedderUnavailable("The model is gone.", "reinstall.")


class TestExact:
    ENTRIES = (
        alarm("401", "VRDY off", "fanuc", ("30i", "SV0401"), ("16i", "401")),
        alarm("near", "SV0401 SV0401 VRDY off, almost the same", "fanuc", ("30i", "SV0404")),
        alarm("103", "X servo error too large", "haas", ("ngc", "103")),
        guide("sv0401", "SV0401 SV0401 SV0401 VRDY off"),
    )

    def test_an_exact_code_comes_first_and_alone(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.ENTRIES)
        (only,) = made.exact("fanuc", "SV0401")
        assert only.entry_id == "fanuc/401"
        assert only.similarity == 1.0
        assert only.matched_by == ("exact",)
        assert str(only.fault_code) == "fanuc/30i/SV0401"
        assert made.exact("fanuc", "SV0401", "16i") == ()
        assert made.exact("haas", "SV0401") == ()
        assert made.exact("fanuc", "SV0499") == ()

    def test_a_bare_number_brings_every_family_that_has_it(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.ENTRIES)
        assert [str(e.fault_code) for e in made.by_number("401")] == ["fanuc/30i/SV0401", "fanuc/16i/401"]
        assert [str(e.fault_code) for e in made.by_number("401", "fanuc", "16i")] == ["fanuc/16i/401"]
        assert made.by_number("103")[0].entry_id == "haas/103"
        assert made.by_number("103", "fanuc") == ()

    def test_an_exact_code_needs_no_index(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.ENTRIES, embedder=Gone())
        assert made.exact("fanuc", "SV0401")
        assert made.by_number("401")
        assert not made.loaded
        assert not (home / "index").exists()

    def test_every_code_of_the_starter_base_finds_its_own_row(self, store: KnowledgeStore, home: Path) -> None:
        made = Searcher(home, store, HashingEmbedder())
        for entry in store.entries():
            for key in entry.fault_codes if entry.kind == "alarm" else ():
                (only,) = made.exact(key.vendor, key.code, key.family)
                assert (only.entry_id, only.fault_code) == (entry.id, key)


class TestFilters:
    def many(self) -> list[dict[str, Any]]:
        """The Haas entries say the words best; four guides and three FANUC alarms say them once."""
        haas = [
            alarm(str(n), "spindle shakes spindle shakes", "haas", ("ngc", str(n))) for n in range(100, 100 + 2 * POOL)
        ]
        fanuc = [
            alarm(f"f{n}", "the spindle of this FANUC may shake", "fanuc", ("30i", f"SV0{n}")) for n in (401, 402, 403)
        ]
        return [*haas, *fanuc, *[guide(str(n), f"how a spindle may shake in case {n}") for n in range(4)]]

    def test_a_filter_is_not_starved_by_what_it_filters_out(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.many())
        assert {e.entry_id[:5] for e in made.search("spindle shakes", count=10)} == {"haas/"}
        found = made.search("spindle shakes", vendor="fanuc", count=7)
        assert len(found) == 7
        assert {e.entry_id for e in found} == {
            "fanuc/f401",
            "fanuc/f402",
            "fanuc/f403",
            "guide/0",
            "guide/1",
            "guide/2",
            "guide/3",
        }
        assert all(e.matched_by == ("keyword", "vector") for e in found)

    def test_generic_entries_pass_every_vendor_filter(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.many())
        for vendor in ("fanuc", "siemens"):
            assert made.search("how a spindle may shake in case 3", vendor=vendor)[0].entry_id == "guide/3"

    def test_kinds_are_filtered_before_ranking(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.many())
        assert {e.entry_id for e in made.search("spindle shakes", kinds=GUIDES, count=10)} == {
            f"guide/{n}" for n in range(4)
        }
        assert made.search("spindle shakes", kinds=PROCEDURES) == ()

    def test_count_is_an_upper_bound(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.many())
        assert [len(made.search("spindle", count=n)) for n in (0, 1, 5)] == [0, 1, 5]

    def test_only_the_pool_counts_as_a_match(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.many())
        found = made.search("qqq shake", count=1000)
        by_vector = [e for e in found if "vector" in e.matched_by]
        assert len(by_vector) == POOL
        assert all(e.matched_by for e in found)


class TestFusion:
    TEXTS = (
        "spindle bearing noise at high speed",
        "spindle drive overheats",
        "coolant pump noise",
        "axis bearing worn",
        "noise",
        "tool changer stuck",
        "spindle spindle noise noise",
        "belt squeals when the spindle starts",
    )

    def test_the_order_is_the_hand_computed_rank_fusion(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *[guide(str(n), text) for n, text in enumerate(self.TEXTS)])
        question = "spindle bearing noise"
        (table, index), embedder = made.ready(), HashingEmbedder()
        assert index is not None
        entries = made.store.entries()
        with made.store.database.reading() as connection:
            words = Words(connection, len(table.units))
            ranked = words.ranking(tokenize(question), table.units, GUIDES, None)
            keyword = [int(table.units[unit][0].removeprefix("guide/")) for unit in ranked]
            held = words.coverage(tokenize(question), list(table.units))
            parts = words.components(table.units)
        covered = {int(table.units[unit][0].removeprefix("guide/")): share for unit, share in held.items()}
        titles = {int(table.units[unit][0].removeprefix("guide/")): part[1] for unit, part in parts.items()}
        best = [
            max(float(embedder.query(t.text) @ embedder.query(question)) for t in texts_of(entry)) for entry in entries
        ]
        vector = sorted(range(8), key=lambda i: -best[i])
        fused: dict[int, float] = {}
        for ranking in (keyword, vector):
            for rank, i in enumerate(ranking, start=1):
                fused[i] = fused.get(i, 0.0) + 1 / (RRF_K + rank)
        named = {i for i in range(8) if "spindle" in titles[i]}
        assert 0 < len(named) < 8, "the bonus of a title must tell entries apart"
        for i in named & set(fused):
            fused[i] += TITLE_SHARE / (RRF_K + 1)
        found = made.search(question, count=8)
        assert [e.rank_score for e in found] == sorted((round(s, 6) for s in fused.values()), reverse=True)
        for evidence in found:
            i = int(evidence.entry_id.removeprefix("guide/"))
            assert evidence.rank_score == round(fused[i], 6)
            meaning = similarity(embedder, best[i], "en")
            share = min(1.0, covered[i] / FULL_COVERAGE)
            assert evidence.similarity == pytest.approx((1 - WORD_SHARE) * meaning + WORD_SHARE * share, abs=1e-4)
            assert evidence.matched_by == (("keyword", "vector") if i in keyword else ("vector",))

    def test_keywords_rank_as_bm25_is_written_down(self, home: Path, tmp_path: Path) -> None:
        chance = random.Random(5)
        vocabulary = [f"w{n}x" for n in range(40)]
        texts = [" ".join(chance.choices(vocabulary, k=chance.randrange(3, 30))) for _ in range(60)]
        made = searcher(home, tmp_path / "kb", guide("only", "starter"))
        with_document(made, *texts)
        table, _ = made.ready()
        documents = [tokenize(text) for text in texts]
        with made.store.database.reading() as connection:
            words = Words(connection, len(table.units))
            for _ in range(20):
                question = chance.sample(vocabulary, 4)
                counts = {token: sum(token in document for document in documents) for token in question}
                assert {token: words.holding(token) for token in question} == counts
                ranked = words.ranking(question, table.units, ("passage",), None)
                scores = plain_bm25([*documents, tokenize("starter 指南") * 3], question)
                found = [scores[int(table.units[unit][0].removeprefix("doc-shop/p"))] for unit in ranked]
                assert found == sorted(found, reverse=True)
                assert len(found) == min(POOL, sum(score > 0 for score in scores))

    @pytest.mark.parametrize(
        "text", ['"', "NEAR(a b)", "spindle AND", "-", "tokens:spindle", "spindle*", "^a", "'", 'a"b']
    )
    def test_the_syntax_of_the_word_index_is_text(self, home: Path, tmp_path: Path, text: str) -> None:
        made = searcher(home, tmp_path / "kb", *[guide(str(n), text) for n, text in enumerate(self.TEXTS)])
        made.search(text)
        table, _ = made.ready()
        with made.store.database.reading() as connection:
            words = Words(connection, len(table.units))
            assert words.ranking([text], table.units, GUIDES, None) == []
            assert words.coverage([text], list(table.units)[:1]) == {min(table.units): 0.0}

    def test_a_word_that_most_texts_hold_chooses_none_where_there_are_rarer_ones(
        self, home: Path, tmp_path: Path
    ) -> None:
        made = searcher(home, tmp_path / "kb", guide("only", "starter"))
        with_document(made, *[f"machine text {n}" for n in range(4 * POOL)], "machine zebra")
        table, _ = made.ready()
        with made.store.database.reading() as connection:
            words = Words(connection, len(table.units))
            rare = words.ranking(["machine", "zebra"], table.units, ("passage",), None)
            assert [table.units[unit][0] for unit in rare] == [f"doc-shop/p{4 * POOL}"]
            assert len(words.ranking(["machine"], table.units, ("passage",), None)) == POOL

    @pytest.mark.parametrize(
        "text", ["", " ", "的", "?!", "a" * 5000, "主轴" * 800, "\x00", "\ud800主轴", "spindle\udfff", "🔧", "1" * 400]
    )
    def test_similarity_stays_in_bounds_whatever_is_asked(self, home: Path, tmp_path: Path, text: str) -> None:
        made = searcher(home, tmp_path / "kb", *[guide(str(n), text) for n, text in enumerate(self.TEXTS)])
        for evidence in made.search(text, count=8):
            assert 0.0 <= evidence.similarity <= 1.0
            assert evidence.rank_score > 0

    def test_the_same_question_twice_gives_the_same_answer(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *[guide(str(n), text, "主轴过热") for n, text in enumerate(self.TEXTS)])
        for question in ("主轴过热", "spindle noise", "qqq"):
            assert made.search(question) == made.search(question)


class TestDegraded:
    def test_without_the_embedder_keywords_answer_and_say_so(self, home: Path, tmp_path: Path) -> None:
        entries = [guide(str(n), text) for n, text in enumerate(TestFusion.TEXTS)]
        searcher(home, tmp_path / "kb", *entries).ready()
        made = searcher(home, tmp_path / "kb", *entries, embedder=Gone())
        found = made.search("coolant pump leaks")
        assert made.degraded == ("no vectors, keywords only: The model is gone.",)
        assert found[0].entry_id == "guide/2"
        assert found[0].matched_by == ("keyword",)
        table, _ = made.ready()
        unit = next(unit for unit, (owner, _, _) in table.units.items() if owner == "guide/2")
        with made.store.database.reading() as connection:
            share = Words(connection, len(table.units)).coverage(tokenize("coolant pump leaks"), [unit])[unit]
        assert 0 < share < 1
        assert found[0].similarity == pytest.approx(min(1.0, share / FULL_COVERAGE), abs=1e-4)
        assert made.search("nothing of that kind", count=3) == ()
        assert made.search("") == ()

    def test_the_next_search_that_works_takes_it_back(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", guide("1", "coolant pump"))
        made.ready()
        made.embedder = Gone()
        made.search("pump")
        assert made.degraded
        made.embedder = HashingEmbedder()
        made.search("pump")
        assert made.degraded == ()


class Counting(HashingEmbedder):
    """Keeps what it was asked to embed."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def passages(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return super().passages(texts)


class TestWaiting:
    """What a question waits for, and what is left to `faultwright index build`."""

    def test_a_few_new_texts_are_embedded_at_once(self, home: Path, tmp_path: Path) -> None:
        embedder = Counting()
        made = searcher(home, tmp_path / "kb", guide("1", "coolant pump"), embedder=embedder)
        made.search("pump")
        with_document(made, *[f"text {n}" for n in range(INLINE)])
        found = made.search("text 7", kinds=PASSAGES)
        assert len(embedder.texts) == 2 + INLINE
        assert "vector" in found[0].matched_by
        assert (made.degraded, made.coverage) == ((), 1.0)

    def test_many_new_texts_are_found_by_their_words_and_the_share_is_told(self, home: Path, tmp_path: Path) -> None:
        embedder = Counting()
        made = searcher(home, tmp_path / "kb", *[guide(str(n), f"coolant {n}") for n in range(99)], embedder=embedder)
        made.search("pump")
        asked = len(embedder.texts)
        with_document(made, *[f"zebra number {n}" for n in range(INLINE + 1)])
        for _ in range(3):
            found = made.search("zebra number 128", kinds=PASSAGES)
            assert found[0].entry_id == "doc-shop/p128"
            assert found[0].matched_by == ("keyword",)
            assert made.degraded == (
                "vectors cover 44% of the texts, the rest is found by its words; run `faultwright index build`",
            )
        assert "vector" in made.search("coolant 7")[0].matched_by
        assert len(embedder.texts) == asked == 100
        build(home, made.store, embedder)
        assert "vector" in made.search("zebra number 128", kinds=PASSAGES)[0].matched_by
        assert made.degraded == ()

    def test_a_base_too_large_for_a_first_question_is_searched_by_words_at_once(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(search_module, "FIRST_INLINE", 10)
        embedder = Counting()
        made = searcher(home, tmp_path / "kb", *[guide(str(n), f"coolant {n}") for n in range(10)], embedder=embedder)
        assert made.search("coolant 7")[0].entry_id == "guide/7"
        assert made.degraded == ("no vectors, keywords only: there is no index; run `faultwright index build`",)
        assert embedder.texts == []
        assert not list((home / "index").glob("v*"))

    def test_an_embedder_that_is_gone_is_not_asked_at_every_question(self, home: Path, tmp_path: Path) -> None:
        tried: list[int] = []

        class Broken(Gone):
            def passages(self, texts: Sequence[str]) -> Vectors:
                tried.append(len(texts))
                raise EmbedderUnavailable("The model is gone.", "reinstall.")

        made = searcher(home, tmp_path / "kb", guide("1", "coolant pump"), embedder=Broken())
        for _ in range(4):
            assert made.search("pump")[0].entry_id == "guide/1"
            assert made.degraded == ("no vectors, keywords only: The model is gone.",)
        assert len(tried) == 1
        with_document(made, "another text")
        made.search("pump")
        assert len(tried) == 2

    def test_a_question_does_not_wait_for_another_process_where_it_has_an_index(
        self, home: Path, tmp_path: Path
    ) -> None:
        made = searcher(home, tmp_path / "kb", guide("1", "coolant pump"))
        made.search("pump")
        with_document(made, "belt of the spindle")
        with (home / "index" / ".lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            found = made.search("belt", kinds=PASSAGES)
            assert found[0].matched_by == ("keyword",)
            note = "vectors cover 67% of the texts, the rest is found by its words; another process is making them"
            assert list(made.degraded) == [note]
        build(home, KnowledgeStore(home), HashingEmbedder())  # that process is done
        assert made.search("belt", kinds=PASSAGES)[0].matched_by == ("keyword", "vector")
        assert made.degraded == ()

    def test_a_document_that_is_gone_is_not_found_although_its_vectors_are_there(
        self, home: Path, tmp_path: Path
    ) -> None:
        made = searcher(home, tmp_path / "kb", guide("1", "coolant pump"))
        with_document(made, "belt of the spindle")
        assert made.search("belt of the spindle", kinds=TEXTS)[0].entry_id == "doc-shop/p0"
        documents = Documents(made.store.database)
        documents.remove(documents.find("shop"))
        assert [e.entry_id for e in made.search("belt of the spindle", kinds=TEXTS)] == ["guide/1"]
        assert index_of(made).vectors.ntotal == 3
        assert (made.coverage, made.degraded) == (1.0, ())


class TestHolding:
    def test_entries_that_name_the_very_code_come_first_and_others_not_at_all(self, home: Path, tmp_path: Path) -> None:
        made = searcher(
            home,
            tmp_path / "kb",
            alarm("401", "VRDY off", "fanuc", ("30i", "SV0401")),
            guide("1", "after SV0401 home it"),
        )
        with_document(made, "SV0401 SV0401 comes back", "SV0404 is another", "unit 401 of the plant")
        found = made.holding("SV0401", kinds=TEXTS, vendor=None, count=5)
        assert {e.entry_id for e in found} == {"doc-shop/p0", "guide/1"}
        assert {(e.similarity, e.matched_by) for e in found} == {(1.0, ("keyword",))}
        assert len(made.holding("SV0401", kinds=TEXTS, vendor=None, count=1)) == 1
        assert made.holding("SV0499", kinds=PASSAGES, vendor=None, count=5) == ()


class TestAtOnce:
    def test_threads_that_need_the_index_build_it_once(self, home: Path, tmp_path: Path) -> None:
        class Slow(HashingEmbedder):
            texts: ClassVar[list[str]] = []

            def passages(self, texts: Sequence[str]) -> Vectors:
                self.texts.extend(texts)
                time.sleep(0.1)
                return super().passages(texts)

        made = searcher(home, tmp_path / "kb", *[guide(str(n), f"guide {n}") for n in range(20)], embedder=Slow())
        start = threading.Barrier(8)

        def ready() -> int:
            start.wait()
            return id(made.ready()[1])

        with ThreadPoolExecutor(8) as pool:
            assert len({future.result() for future in [pool.submit(ready) for _ in range(8)]}) == 1
        assert len(Slow.texts) == len(set(Slow.texts))
        assert len(list((home / "index").glob("v*"))) == 1

    def test_threads_search_as_one_would(self, home: Path, tmp_path: Path) -> None:
        entries = [guide(str(n), text) for n, text in enumerate(TestFusion.TEXTS)]
        made = searcher(home, tmp_path / "kb", *entries)
        questions = [f"{word} {n}" for n in range(20) for word in ("spindle noise", "主轴 报警", "coolant", "belt")]
        alone = [made.search(question) for question in questions]
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(made.search, questions)) == alone

    def test_knowledge_that_changes_during_the_build_is_searched_by_the_next_question(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = searcher(home, tmp_path / "kb", guide("1", "coolant"))
        real, calls = index_files.build, []

        def build_then_sync(*arguments: Any, **options: Any) -> str:
            name = real(*arguments, **options)
            calls.append(name)
            if len(calls) == 1:
                searcher(home, tmp_path / "kb", guide("2", "spindle"))
            return name

        monkeypatch.setattr(index_files, "build", build_then_sync)
        made.search("spindle")
        assert [e.entry_id for e in made.search("spindle")] == ["guide/2"]
        assert (len(calls), made.coverage) == (2, 1.0)

    def test_questions_while_documents_come_and_go_name_only_what_fits(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", guide("1", "coolant pump"))
        with_document(made, "zebra crossing", name="zebra")
        stop = threading.Event()

        def write() -> None:
            documents = Documents(KnowledgeStore(home).database)
            while not stop.is_set():
                with_document(made, "belt tension", "belt wear", name="belt")
                documents.remove(documents.find("belt"))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(60):
                found = made.search("zebra crossing", kinds=TEXTS)
                assert found[0].entry_id == "doc-zebra/p0"
        finally:
            stop.set()
            writer.join()


@pytest.mark.integration
class TestReal:
    @pytest.mark.parametrize(
        ("question", "wanted"),
        [
            ("主轴转速波动大,有异响", "guide/spindle-speed-fluctuation"),
            ("how do I replace the encoder battery", "procedure/battery-replacement"),
            ("电池怎么更换", "procedure/battery-replacement"),
        ],
    )
    def test_a_question_meets_its_guide(self, real_searcher: Searcher, question: str, wanted: str) -> None:
        found = real_searcher.search(question, kinds=HOW_TO, count=2)
        assert wanted in {evidence.entry_id for evidence in found}
        assert found[0].similarity >= MIN_SIMILARITY
        assert real_searcher.degraded == ()

    def test_threads_share_the_model(self, real_searcher: Searcher) -> None:
        questions = ["主轴过热", "axis does not home", "报警 SV0401", "coolant"] * 6
        alone = [real_searcher.search(question) for question in questions]
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(real_searcher.search, questions)) == alone

    def test_the_index_covers_the_starter_base(self, real_searcher: Searcher) -> None:
        table, index = real_searcher.ready()
        assert starter_folder().is_dir()
        assert index is not None
        texts = [text for entry in real_searcher.store.entries() for text in texts_of(entry)]
        assert index.vectors.ntotal == len({text.hash for text in texts}) > 500
        assert len(table.vector_ids) == len(texts)
        assert index.vectors.d == 384
        assert {text.language for text in texts} == {"en", "zh"}
