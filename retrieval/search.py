"""Search: exact codes first, then keywords and vectors fused by rank.

RRF (Cormack, Clarke and Büttcher, SIGIR 2009) over a fixed pool: score = sum of 1 / (RRF_K + rank). Filters apply
before ranking, so a filtered search is never starved by what it filters out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal

from retrieval import index as index_files
from retrieval.embed import Embedder, similarity
from retrieval.errors import EmbedderUnavailable, IndexDamaged, IndexMismatch
from retrieval.index import Progress, SearchIndex
from retrieval.records import EntryKind, Evidence, FaultCode, Match
from retrieval.store import KnowledgeStore
from retrieval.tokens import tokenize

POOL = 50
RRF_K = 60
# Below this an entry does not speak about the question. Measured: tests/test_search_threshold.py and docs/decisions.md.
MIN_SIMILARITY = 0.45
GENERIC = "generic"
Coverage = Literal["full", "keywords"]


class Searcher:
    """Search over one data home. The index loads, or is built, when a search first needs it.

    Args:
        home: data home with `knowledge.sqlite` and `index/`.
        store: the rows; already synced.
        embedder: for vectors; an index made with another one is not used.
        progress: called with (done, all) passages while an index is built.
        notice: called with one line when an index had to be made anew, and why.
    """

    def __init__(
        self,
        home: Path,
        store: KnowledgeStore,
        embedder: Embedder,
        progress: Progress | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        self.home = home
        self.store = store
        self.embedder = embedder
        self._progress = progress
        self._notice = notice
        self._index: SearchIndex | None = None
        self.degraded: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """True once an index is in memory."""
        return self._index is not None

    def ready(self) -> SearchIndex:
        """The index, loaded; built first where there is none, or where it is damaged or of another make."""
        knowledge = self.store.fingerprint
        if self._index is not None and self._index.manifest["knowledge"] == knowledge:
            return self._index
        try:
            self._index = index_files.load(self.home, self.embedder, knowledge)
        except (IndexDamaged, IndexMismatch) as reason:
            if self._notice and (self.home / "index" / "current").exists():
                self._notice(f"{reason.what} It is being made anew from the knowledge base.")
            index_files.build(self.home, self.store, self.embedder, self._progress)
            self._index = index_files.load(self.home, self.embedder, knowledge)
        return self._index

    def exact(self, vendor: str, code: str, family: str | None = None) -> tuple[Evidence, ...]:
        """Rows of an exact canonical code: similarity 1.0, one per (vendor, family, code)."""
        return tuple(_exact(key, entry_id) for key, entry_id in self.store.lookup(vendor, code, family))

    def by_number(
        self, number: str, vendor: str | None = None, family: str | None = None, kind: str = "alarm"
    ) -> tuple[Evidence, ...]:
        """Rows whose code has that bare number: candidates, not an answer, unless vendor and family are known."""
        return tuple(_exact(key, entry_id) for key, entry_id in self.store.lookup_number(number, vendor, family, kind))

    def search(
        self,
        text: str,
        *,
        kinds: Collection[EntryKind] = ("alarm", "guide", "procedure", "parameter"),
        vendor: str | None = None,
        count: int = 5,
    ) -> tuple[Evidence, ...]:
        """Entries about a text, best first: at most `count`, of `kinds`, of `vendor` (generic ones always pass).

        Each carries one similarity in [0, 1]: the best of its passages under the embedder. Without the embedder it is
        the share of the question's words that the entry holds, and `degraded` says so.
        """
        index = self.ready()
        rows = [
            row
            for row, passage in enumerate(index.passages)
            if passage.entry_kind in kinds and (vendor is None or passage.vendor in (vendor, GENERIC))
        ]
        allowed = {index.passages[row].entry_id for row in rows}
        tokens = tokenize(text)
        by_keyword = self._keyword_ranking(index, tokens, allowed)
        try:
            by_vector = self._vector_ranking(index, text, rows)
            self.degraded = ()
        except EmbedderUnavailable as error:
            by_vector = {}
            self.degraded = (f"no vectors, keywords only: {error.what}",)
        fused: dict[str, float] = {}
        for ranking in (list(by_keyword), list(by_vector)):
            for rank, entry_id in enumerate(ranking[:POOL], start=1):
                fused[entry_id] = fused.get(entry_id, 0.0) + 1.0 / (RRF_K + rank)
        position = {entry_id: row for row, entry_id in enumerate(index.entry_ids)}
        found: list[Evidence] = []
        for entry_id in sorted(fused, key=lambda e: -fused[e])[:count]:
            matched: tuple[Match, ...] = tuple(
                name for name, ranking in _named(by_keyword, by_vector) if entry_id in ranking
            )
            value = (
                by_vector.get(entry_id, 0.0) if not self.degraded else index.coverage(tokens, position[entry_id])
            )
            found.append(
                Evidence(entry_id=entry_id, similarity=value, matched_by=matched, rank_score=round(fused[entry_id], 6))
            )
        return tuple(found)

    def _keyword_ranking(self, index: SearchIndex, tokens: Sequence[str], allowed: set[str]) -> dict[str, float]:
        scores = index.keyword_scores(tokens)
        pairs = [(e, s) for e, s in zip(index.entry_ids, scores, strict=True) if s > 0 and e in allowed]
        return dict(sorted(pairs, key=lambda pair: -pair[1])[:POOL])

    def _vector_ranking(self, index: SearchIndex, text: str, rows: Sequence[int]) -> dict[str, float]:
        """Best similarity per entry, best first. Every filtered passage is scored: an entry has several."""
        best: dict[str, float] = {}
        for row, cosine in index.nearest(self.embedder.query(text), rows, len(rows)):
            best.setdefault(index.passages[row].entry_id, similarity(self.embedder, cosine))
        return best


def _named(keyword: dict[str, float], vector: dict[str, float]) -> tuple[tuple[Match, dict[str, float]], ...]:
    return (("keyword", keyword), ("vector", vector))


def _exact(key: FaultCode, entry_id: str) -> Evidence:
    return Evidence(entry_id=entry_id, similarity=1.0, matched_by=("exact",), rank_score=1.0, fault_code=key)
