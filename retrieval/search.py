"""Search: exact codes first, then keywords and vectors fused by rank.

RRF (Cormack, Clarke and Büttcher, SIGIR 2009) over a fixed pool: score = sum of 1 / (RRF_K + rank). Filters apply
before ranking, so a filtered search is never starved by what it filters out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from retrieval import index as index_files
from retrieval.components import components_in, off_part
from retrieval.embed import Embedder, similarity
from retrieval.errors import EmbedderUnavailable, IndexDamaged, IndexMismatch
from retrieval.index import Progress, SearchIndex
from retrieval.records import EntryKind, Evidence, FaultCode, Language, Match
from retrieval.store import KnowledgeStore
from retrieval.tokens import has_chinese, tokenize

POOL = 50
RRF_K = 60
# Below this an entry does not speak about the question; measured in tests/test_search_threshold.py, docs/decisions.md.
MIN_SIMILARITY = 0.45
# Share of the words in the similarity; words count in full from this coverage on (a question is never all covered).
WORD_SHARE = 0.25
# An entry whose title names the part asked about counts as if a third ranking, of that weight, had it first.
TITLE_SHARE = 0.5
FULL_COVERAGE = 0.4
GENERIC = "generic"
BUILD_TRIES = 3


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
        self._lock = threading.Lock()
        self._tried_vectors = False
        self.degraded: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """True once an index is in memory."""
        return self._index is not None

    def ready(self) -> SearchIndex:
        """The index, loaded; built first where there is none, or where it is damaged or of another make."""
        with self._lock:
            if self._index is None or self._index.manifest["knowledge"] != self.store.fingerprint:
                self._index = self._loaded_or_built()
            if self._index.vectors is None and not self._tried_vectors:
                self._index = self._with_vectors(self._index)
            return self._index

    def _loaded_or_built(self) -> SearchIndex:
        try:
            return index_files.load(self.home, self.embedder, self.store.fingerprint)
        except (IndexDamaged, IndexMismatch) as reason:
            if self._notice and (self.home / "index" / "current").exists():
                self._notice(f"{reason.what} It is being made anew from the knowledge base.")
        return self._built()

    def _built(self) -> SearchIndex:
        self._tried_vectors = True
        for left in reversed(range(BUILD_TRIES)):
            index_files.build(self.home, self.store, self.embedder, self._progress, force=False)
            try:
                return index_files.load(self.home, self.embedder, self.store.fingerprint)
            except IndexMismatch:  # another process changed the rows while the index was made
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _with_vectors(self, index: SearchIndex) -> SearchIndex:
        """The index with its vectors, where an embedder that failed when it was made works now; tried once a run."""
        self._tried_vectors = True
        try:
            self.embedder.query("")
        except EmbedderUnavailable:
            return index
        if self._notice:
            self._notice("The index holds keywords only; the embedder works again and its vectors are being made.")
        return self._built()

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

        Each carries one similarity in [0, 1]: three parts meaning (the best of its passages under the embedder), one
        part words (the share of the question's that the entry holds). Without the embedder it is words alone, and
        `degraded` says so.
        """
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair from a broken client
        index = self.ready()
        rows = [
            row
            for row, passage in enumerate(index.passages)
            if passage.entry_kind in kinds and (vendor is None or passage.vendor in (vendor, GENERIC))
        ]
        allowed = {index.passages[row].entry_id for row in rows}
        tokens = tokenize(text)
        asked_about = components_in(text)
        by_keyword = self._keyword_ranking(index, tokens, allowed)
        by_vector, lost = self._vector_ranking(index, text, rows)
        self.degraded = (f"no vectors, keywords only: {lost}",) if lost else ()
        fused: dict[str, float] = {}
        pools: dict[Match, list[str]] = {"keyword": list(by_keyword)[:POOL], "vector": list(by_vector)[:POOL]}
        for pool in pools.values():
            for rank, entry_id in enumerate(pool, start=1):
                fused[entry_id] = fused.get(entry_id, 0.0) + 1.0 / (RRF_K + rank)
        for entry_id in fused:
            if asked_about & index.title_components(entry_id):
                fused[entry_id] += TITLE_SHARE / (RRF_K + 1)
        position = {entry_id: row for row, entry_id in enumerate(index.entry_ids)}
        found: list[Evidence] = []
        for entry_id in sorted(fused, key=lambda e: -fused[e])[:count]:
            matched = tuple(name for name, pool in pools.items() if entry_id in pool)
            words = min(1.0, index.coverage(tokens, position[entry_id]) / FULL_COVERAGE)
            value = words if lost else (1 - WORD_SHARE) * by_vector.get(entry_id, 0.0) + WORD_SHARE * words
            found.append(
                Evidence(
                    entry_id=entry_id,
                    similarity=round(value, 4),
                    matched_by=matched,
                    rank_score=round(fused[entry_id], 6),
                    off_part=off_part(asked_about, index.components(entry_id)),
                )
            )
        return tuple(found)

    def _keyword_ranking(self, index: SearchIndex, tokens: Sequence[str], allowed: set[str]) -> dict[str, float]:
        scores = index.keyword_scores(tokens)
        pairs = [(e, s) for e, s in zip(index.entry_ids, scores, strict=True) if s > 0 and e in allowed]
        return dict(sorted(pairs, key=lambda pair: -pair[1])[:POOL])

    def _vector_ranking(self, index: SearchIndex, text: str, rows: Sequence[int]) -> tuple[dict[str, float], str]:
        """Best similarity per entry, best first, and why there is none where vectors cannot be had.

        Every filtered passage is scored: an entry has several.
        """
        best: dict[str, float] = {}
        language: Language = "zh" if has_chinese(text) else "en"
        if index.vectors is None:
            return best, str(index.manifest.get("vectors_missing") or "the index has none")
        try:
            query = self.embedder.query(text)
        except EmbedderUnavailable as error:
            return best, error.what
        for row, cosine in index.nearest(query, rows, len(rows)):
            best.setdefault(index.passages[row].entry_id, similarity(self.embedder, cosine, language))
        return best, ""


def _exact(key: FaultCode, entry_id: str) -> Evidence:
    return Evidence(entry_id=entry_id, similarity=1.0, matched_by=("exact",), rank_score=1.0, fault_code=key)
