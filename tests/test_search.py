"""Search over real SQLite, FAISS and BM25: what comes first, what a filter lets through, what degrades."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from retrieval import index as index_files
from retrieval.base import starter_folder
from retrieval.embed import HashingEmbedder, Vectors, similarity
from retrieval.errors import EmbedderUnavailable
from retrieval.records import EntryKind
from retrieval.search import FULL_COVERAGE, MIN_SIMILARITY, POOL, RRF_K, TITLE_SHARE, WORD_SHARE, Searcher
from retrieval.store import KnowledgeStore
from retrieval.tokens import tokenize


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


GUIDES: tuple[EntryKind, ...] = ("guide",)
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
        haas = [alarm(str(n), "spindle shakes spindle shakes", "haas", ("ngc", str(n))) for n in range(100, 100 + 2 * POOL)]
        fanuc = [alarm(f"f{n}", "the spindle of this FANUC may shake", "fanuc", ("30i", f"SV0{n}")) for n in (401, 402, 403)]
        return [*haas, *fanuc, *[guide(str(n), f"how a spindle may shake in case {n}") for n in range(4)]]

    def test_a_filter_is_not_starved_by_what_it_filters_out(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *self.many())
        assert {e.entry_id[:5] for e in made.search("spindle shakes", count=10)} == {"haas/"}
        found = made.search("spindle shakes", vendor="fanuc", count=7)
        assert len(found) == 7
        assert {e.entry_id for e in found} == {
            "fanuc/f401", "fanuc/f402", "fanuc/f403", "guide/0", "guide/1", "guide/2", "guide/3",
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
        "spindle bearing noise at high speed", "spindle drive overheats", "coolant pump noise", "axis bearing worn",
        "noise", "tool changer stuck", "spindle spindle noise noise", "belt squeals when the spindle starts",
    )

    def test_the_order_is_the_hand_computed_rank_fusion(self, home: Path, tmp_path: Path) -> None:
        made = searcher(home, tmp_path / "kb", *[guide(str(n), text) for n, text in enumerate(self.TEXTS)])
        question = "spindle bearing noise"
        index, embedder = made.ready(), HashingEmbedder()
        scores = index.keyword_scores(tokenize(question))
        keyword = sorted((i for i in range(8) if scores[i] > 0), key=lambda i: -scores[i])
        best = [
            max(float(embedder.query(p.text) @ embedder.query(question)) for p in index.passages if p.entry_id == e)
            for e in index.entry_ids
        ]
        vector = sorted(range(8), key=lambda i: -best[i])
        fused: dict[int, float] = {}
        for ranking in (keyword, vector):
            for rank, i in enumerate(ranking, start=1):
                fused[i] = fused.get(i, 0.0) + 1 / (RRF_K + rank)
        named = {i for i, e in enumerate(index.entry_ids) if "spindle" in index.title_components(e)}
        assert 0 < len(named) < 8, "the bonus of a title must tell entries apart"
        for i in named & set(fused):
            fused[i] += TITLE_SHARE / (RRF_K + 1)
        found = made.search(question, count=8)
        assert [e.rank_score for e in found] == sorted((round(s, 6) for s in fused.values()), reverse=True)
        for evidence in found:
            i = index.entry_ids.index(evidence.entry_id)
            assert evidence.rank_score == round(fused[i], 6)
            meaning = similarity(embedder, best[i], "en")
            words = min(1.0, index.coverage(tokenize(question), i) / FULL_COVERAGE)
            assert evidence.similarity == pytest.approx((1 - WORD_SHARE) * meaning + WORD_SHARE * words, abs=1e-4)
            assert evidence.matched_by == (("keyword", "vector") if i in keyword else ("vector",))

    @pytest.mark.parametrize(
        "text", ["", " ", "的", "?!", "a" * 5000, "主轴" * 800, "\x00", "\ud800主轴", "spindle\udfff", "🔧", "1" * 400]
    )
    def test_similarity_stays_in_bounds_whatever_is_asked(self, home: Path, tmp_path: Path, text: str) -> None:
        made = searcher(home, tmp_path / "kb", *[guide(str(n), text) for n, text in enumerate(self.TEXTS)])
        for evidence in made.search(text, count=8):
            assert 0.0 <= evidence.similarity <= 1.0
            assert evidence.rank_score > 0

    def test_the_same_question_twice_gives_the_same_answer(self, fake_searcher: Searcher) -> None:
        assert fake_searcher.search("主轴过热") == fake_searcher.search("主轴过热")


class TestDegraded:
    def test_without_the_embedder_keywords_answer_and_say_so(self, home: Path, tmp_path: Path) -> None:
        entries = [guide(str(n), text) for n, text in enumerate(TestFusion.TEXTS)]
        searcher(home, tmp_path / "kb", *entries).ready()
        made = searcher(home, tmp_path / "kb", *entries, embedder=Gone())
        found = made.search("coolant pump leaks")
        assert made.degraded == ("no vectors, keywords only: The model is gone.",)
        assert found[0].entry_id == "guide/2"
        assert found[0].matched_by == ("keyword",)
        share = made.ready().coverage(tokenize("coolant pump leaks"), 2)
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
            return id(made.ready())

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

    def test_knowledge_that_changes_during_the_build_is_indexed(
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
        assert made.ready().entry_ids == ("guide/2",)
        assert len(calls) == 2


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
        index = real_searcher.ready()
        assert starter_folder().is_dir()
        assert index.vectors.ntotal == len(index.passages) > 500
        assert index.vectors.d == 384
        assert {p.language for p in index.passages} == {"en", "zh"}
