"""Search: exact codes first, then keywords and vectors fused by rank.

RRF (Cormack, Clarke and Büttcher, SIGIR 2009) over a fixed pool: score = sum of 1 / (RRF_K + rank). Filters apply
before ranking, so a filtered search is never starved by what it filters out.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval import index as index_files
from retrieval.components import components_in, off_part
from retrieval.dictionary import Expansion, LiveDictionary
from retrieval.embed import Embedder, Vectors, similarity
from retrieval.errors import EmbedderUnavailable, IndexDamaged, IndexMismatch, StoreUnusable
from retrieval.index import Progress, VectorIndex
from retrieval.records import EntryKind, Evidence, FaultCode, Language, Match
from retrieval.store import KnowledgeStore
from retrieval.tokens import code_tokens, has_chinese, tokenize

POOL = 50
RRF_K = 5
# Texts looked at per search: an entry has several, so a pool of entries needs more texts than that.
NEAREST = 8 * POOL
# Below this an entry does not speak about the question; measured in tests/test_search_threshold.py, docs/decisions.md.
MIN_SIMILARITY = 0.45
# Share of the words in the similarity; words count in full from this coverage on (a question is never all covered).
WORD_SHARE = 0.25
# An entry whose title names the part asked about counts as if a third ranking, of that weight, had it first.
TITLE_SHARE = 0.5
FULL_COVERAGE = 0.4
# Weight of the ranking by the standard terms of shop words, beside the one by the words that were asked.
EXPANSION_SHARE = 0.5
# A word that more than this share of all texts hold chooses none, where the question has rarer ones.
COMMON = 0.2
GENERIC = "generic"
# Texts without a vector that a question waits for: about three seconds. More are left to `faultwright index build`.
INLINE = 128
FIRST_INLINE = 4000
# In a base of more texts than that, writing the index anew would keep a question waiting.
INLINE_UP_TO = 50_000


@dataclass(frozen=True)
class View:
    """What a filter lets through: units with their owners, and their texts sorted by vector id."""

    owners: dict[int, str]
    vector_ids: NDArray[np.int64]
    unit_ids: NDArray[np.int64]
    distinct: NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """What is searched, in memory: rows of texts beside each other, and the unit that each belongs to."""

    generation: int
    units: dict[int, tuple[str, str, str]]  # unit id → owner, kind, vendor
    vector_ids: NDArray[np.int64]
    unit_ids: NDArray[np.int64]
    views: dict[tuple[frozenset[str], str | None], View] = field(default_factory=dict, compare=False)

    def view(self, kinds: Collection[str], vendor: str | None) -> View:
        """What a filter lets through; worked out once, for it grows with the base."""
        key = (frozenset(kinds), vendor)
        if key not in self.views:
            owners = {
                unit: owner
                for unit, (owner, kind, of) in self.units.items()
                if kind in kinds and (vendor is None or of in (vendor, GENERIC))
            }
            mask = np.isin(self.unit_ids, np.fromiter(owners, dtype=np.int64, count=len(owners)))
            ids, units = self.vector_ids[mask], self.unit_ids[mask]
            order = np.argsort(ids, kind="stable")
            self.views[key] = View(owners, ids[order], units[order], np.unique(ids))
        return self.views[key]


class Searcher:
    """Search over one data home. Units and vectors are loaded, or made, when a search first needs them.

    Args:
        home: data home with `knowledge.sqlite` and `index/`.
        store: the rows; already synced.
        embedder: for vectors; an index made with another one is not used.
        progress: called with (done, all) texts while vectors are made.
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
        self._dictionary = LiveDictionary(home)
        self._progress = progress
        self._notice = notice
        self._table: Table | None = None
        self._index: VectorIndex | None = None
        self._index_name = ""
        self._told = ""
        self._lock = threading.Lock()
        self._left_at = -1
        self._compared = (-1, "")
        self._missing = ""
        self.coverage = 1.0
        self.degraded: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """True once a search has what it needs in memory."""
        return self._table is not None

    def expansion(self, text: str) -> Expansion:
        """The shop words of a text and the standard terms that a search for it looks for too."""
        return self._dictionary.current().expand(text)

    def ready(self) -> tuple[Table, VectorIndex | None]:
        """Units and vectors as they are now, loaded or made; None where no vectors can be had."""
        with self._lock:
            if self._table is None or self._table.generation != self.store.generation:
                self.store.fill()
                self._table = _table(self.store)
            self._refresh(self._table)
            return self._table, self._index

    def _refresh(self, table: Table) -> None:
        """Load another index where one was put in use; make what vectors a question can wait for."""
        self._load()
        if self._compared == (table.generation, self._index_name):
            return
        wanted = np.unique(table.vector_ids)
        missing = self._without_vector(wanted)
        if missing and self._left_at != table.generation:
            self._left_at = table.generation  # what could not be made now is not tried at every question
            most = FIRST_INLINE if self._index is None else INLINE if len(wanted) <= INLINE_UP_TO else 0
            if missing <= most:
                self._make()
                missing = self._without_vector(wanted)
        self.coverage = 1.0 - missing / max(len(wanted), 1)
        self._compared = (table.generation, self._index_name)

    def _without_vector(self, wanted: NDArray[np.int64]) -> int:
        return len(wanted) if self._index is None else int(np.count_nonzero(~np.isin(wanted, self._index.ids)))

    def _load(self) -> None:
        root = self.home / "index"
        try:
            name = index_files.in_use(root)
            if self._index is None or name != self._index_name:
                self._index = index_files.load(self.home, self.embedder)
                self._index_name = str(self._index.manifest["name"])
        except (IndexDamaged, IndexMismatch) as reason:
            if self._notice and (root / "current").exists() and self._told != reason.what:
                self._notice(f"{reason.what} It is being made anew from the knowledge base.")
            self._index, self._index_name, self._told = None, "", reason.what

    def _make(self) -> None:
        self._missing = ""
        try:
            index_files.build(self.home, self.store, self.embedder, self._progress, wait=self._index is None)
            self._load()
        except index_files.Busy:
            self._missing = "another process is making them"
        except (EmbedderUnavailable, StoreUnusable) as error:
            self._missing = error.what

    def exact(self, vendor: str, code: str, family: str | None = None) -> tuple[Evidence, ...]:
        """Rows of an exact canonical code: similarity 1.0, one per (vendor, family, code) and source."""
        return tuple(_exact(key, entry_id) for key, entry_id in self.store.lookup(vendor, code, family))

    def by_number(
        self, number: str, vendor: str | None = None, family: str | None = None, kind: str = "alarm"
    ) -> tuple[Evidence, ...]:
        """Rows whose code has that bare number: candidates, not an answer, unless vendor and family are known."""
        return tuple(_exact(key, entry_id) for key, entry_id in self.store.lookup_number(number, vendor, family, kind))

    def holding(
        self, code: str, *, kinds: Collection[EntryKind], vendor: str | None, count: int
    ) -> tuple[Evidence, ...]:
        """Entries or passages in whose text the very code stands: similarity 1.0, the ones most about it first.

        A plain number counts where it stands as an alarm's. Passages have their words from the ingest on: they need
        neither vectors nor the table of units.
        """
        if set(kinds) != {"passage"}:
            self.ready()
        with self.store.database.reading() as connection:
            owners = Words(connection, 0).holding_whole(code_tokens(code)[code.isdigit()], kinds, vendor, count)
        return tuple(
            Evidence(entry_id=owner, similarity=1.0, matched_by=("keyword",), rank_score=1.0) for owner in owners
        )

    def search(
        self,
        text: str,
        *,
        kinds: Collection[EntryKind] = ("alarm", "guide", "procedure", "parameter"),
        vendor: str | None = None,
        count: int = 5,
    ) -> tuple[Evidence, ...]:
        """Entries or passages about a text, best first: at most `count`, of `kinds`, of `vendor` (generic ones pass).

        Each carries one similarity in [0, 1]: three parts meaning (the best of its texts under the embedder), one
        part words (the share of the question's that it holds). Without vectors it is words alone, and `degraded` says
        so; it says too where vectors cover only a part.

        Words of the shop floor move what their standard terms find further up (`expansion`), by keyword and by meaning;
        the similarity, on which it hangs whether an entry is answered from, stays that of the text as it was asked.
        """
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair from a broken client
        table, index = self.ready()
        view = table.view(kinds, vendor)
        allowed = view.owners
        tokens = tokenize(text)
        asked_about = components_in(text)
        expansion = self.expansion(text)
        with self.store.database.reading() as connection:
            words = Words(connection, len(table.units))
            by_keyword = words.ranking(tokens, allowed, kinds, vendor)
            by_vector, query, lost = self._vector_ranking(view, index, text)
            nearest, by_term = list(by_vector), []
            if expansion:
                by_term = words.ranking(_added(expansion, tokens), allowed, kinds, vendor)
                in_terms, _, _ = self._vector_ranking(view, index, expansion.standard(_language(text)))
                nearest = _nearer_of(by_vector, in_terms)
            fused: dict[int, float] = {}
            foreign = words.without(_language(text), nearest[:POOL])
            pools = ((by_keyword, 1.0), (nearest[:POOL], 1.0), (foreign, 1.0), (by_term, EXPANSION_SHARE))
            for pool, weight in pools:
                for rank, unit in enumerate(pool, start=1):
                    fused[unit] = fused.get(unit, 0.0) + weight / (RRF_K + rank)
            matched: dict[Match, set[int]] = {"keyword": {*by_keyword, *by_term}, "vector": set(nearest[:POOL])}
            parts = words.components(fused)
            for unit in fused:
                if asked_about & parts[unit][1]:
                    fused[unit] += TITLE_SHARE / (RRF_K + 1)
            best = sorted(fused, key=lambda u: -fused[u])[:count]
            if query is not None and index is not None:
                self._complete(by_vector, [u for u in best if u not in by_vector], table, index, query, text)
            covered = words.coverage(tokens, best)
        self.degraded = self._gaps(lost)
        return tuple(
            Evidence(
                entry_id=allowed[unit],
                similarity=round(self._similarity(covered[unit], by_vector.get(unit), bool(lost)), 4),
                matched_by=tuple(name for name, units in matched.items() if unit in units),
                rank_score=round(fused[unit], 6),
                off_part=off_part(asked_about, parts[unit][0]),
                entry_kind=table.units[unit][1],
            )
            for unit in best
        )

    def _similarity(self, covered: float, meaning: float | None, no_vectors: bool) -> float:
        words = min(1.0, covered / FULL_COVERAGE)
        return words if no_vectors or meaning is None else (1 - WORD_SHARE) * meaning + WORD_SHARE * words

    def _gaps(self, lost: str) -> tuple[str, ...]:
        gaps = [f"the shop's words cannot be read: {self._dictionary.problem}"] if self._dictionary.problem else []
        if lost:
            gaps.insert(0, f"no vectors, keywords only: {lost}")
        elif self.coverage < 1.0:
            note = f"vectors cover {self.coverage:.0%} of the texts, the rest is found by its words"
            gaps.insert(0, f"{note}; {self._missing or 'run `faultwright index build`'}")
        return tuple(gaps)

    def _vector_ranking(
        self, view: View, index: VectorIndex | None, text: str
    ) -> tuple[dict[int, float], Vectors | None, str]:
        """Best similarity per unit, best first; the question's vector; why there is none where there is none."""
        best: dict[int, float] = {}
        if index is None:
            return best, None, self._missing or "there is no index; run `faultwright index build`"
        try:
            query = self.embedder.query(text)
        except EmbedderUnavailable as error:
            return best, None, error.what
        language = _language(text)
        among = view.distinct if len(view.distinct) < index.vectors.ntotal else None
        for found, cosine in index.nearest(query, NEAREST, among):
            left, right = (np.searchsorted(view.vector_ids, found, side) for side in ("left", "right"))
            for unit in view.unit_ids[left:right]:
                best.setdefault(int(unit), similarity(self.embedder, cosine, language))
        return best, query, ""

    def _complete(
        self,
        by_vector: dict[int, float],
        units: Sequence[int],
        table: Table,
        index: VectorIndex,
        query: Vectors,
        text: str,
    ) -> None:
        """Similarity of units that only their words brought: exact, from their own vectors where they have some."""
        language = _language(text)
        for unit in units:
            if cosines := index.cosines(query, table.vector_ids[table.unit_ids == unit]):
                by_vector[unit] = similarity(self.embedder, max(cosines), language)


class Words:
    """BM25 and word counts over one connection. `total` is the number of units."""

    def __init__(self, connection: sqlite3.Connection, total: int) -> None:
        self._connection = connection
        self._total = total

    def holding(self, token: str) -> int:
        """Number of units that hold a token."""
        row = self._connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (token,)).fetchone()
        return int(row[0]) if row else 0

    def holding_whole(self, token: str, kinds: Collection[str], vendor: str | None, count: int) -> list[str]:
        """Owners of the units that hold one token, the shortest that say it most often first."""
        marks = ",".join("?" * len(kinds))
        of_vendor = "" if vendor is None else "AND unit.vendor IN (?, ?)"
        quoted = token.replace('"', '""')
        rows = self._connection.execute(
            "SELECT unit.owner FROM words JOIN unit ON unit.id = words.rowid WHERE words MATCH ?"  # noqa: S608
            f" AND unit.kind IN ({marks}) {of_vendor} ORDER BY bm25(words), unit.id LIMIT ?",
            (f'"{quoted}"', *kinds, *(() if vendor is None else (vendor, GENERIC)), count),
        )
        return [row[0] for row in rows]

    def ranking(
        self, tokens: Sequence[str], allowed: Collection[int], kinds: Collection[str], vendor: str | None
    ) -> list[int]:
        """Units by BM25, best first, of those that a filter lets through."""
        counts = {token: self.holding(token) for token in dict.fromkeys(tokens)}
        known = {token: n for token, n in counts.items() if n}
        rare = [token for token, n in known.items() if n <= max(COMMON * self._total, POOL)]
        wanted = rare or list(known)
        if not wanted or not allowed:
            return []
        query = " OR ".join('"' + token.replace('"', '""') + '"' for token in wanted)
        marks = ",".join("?" * len(kinds))
        of_vendor = "" if vendor is None else "AND unit.vendor IN (?, ?)"
        rows = self._connection.execute(
            "SELECT unit.id FROM words JOIN unit ON unit.id = words.rowid WHERE words MATCH ?"  # noqa: S608
            f" AND unit.kind IN ({marks}) {of_vendor} ORDER BY bm25(words), unit.id LIMIT ?",
            (query, *kinds, *(() if vendor is None else (vendor, GENERIC)), POOL),
        ).fetchall()
        return [row[0] for row in rows if row[0] in allowed]

    def components(self, units: Collection[int]) -> dict[int, tuple[frozenset[str], frozenset[str]]]:
        """Parts of a machine that each unit speaks of: (anywhere, in its title)."""
        marks = ",".join("?" * len(units))
        rows = self._connection.execute(
            f"SELECT id, components, title_components FROM unit WHERE id IN ({marks})",  # noqa: S608
            list(units),
        ).fetchall()
        found = {row[0]: (frozenset(row[1].split()), frozenset(row[2].split())) for row in rows}
        nothing: frozenset[str] = frozenset()
        return {unit: found.get(unit, (nothing, nothing)) for unit in units}

    def without(self, language: Language, units: Sequence[int]) -> list[int]:
        """Units that have no text in a language, in the same order: no word of the question can meet them."""
        marks = ",".join("?" * len(units))
        query = f"SELECT DISTINCT unit_id FROM passage WHERE language = ? AND unit_id IN ({marks})"  # noqa: S608
        held = {row[0] for row in self._connection.execute(query, (language, *units))}
        return [unit for unit in units if unit not in held]

    def coverage(self, tokens: Sequence[str], units: Sequence[int]) -> dict[int, float]:
        """Share in [0, 1] of the question's distinct tokens that each unit holds, rare ones counting more."""
        weights = {t: math.log((self._total + 1) / (self.holding(t) + 0.5)) for t in set(tokens)}
        total = sum(weights.values())
        found: dict[int, float] = {}
        for unit in units:
            row = self._connection.execute("SELECT tokens FROM words WHERE rowid = ?", (unit,)).fetchone()
            held = set(row[0].split()) if row else set()
            found[unit] = sum(w for t, w in weights.items() if t in held) / total if total > 0 else 0.0
        return found


def _table(store: KnowledgeStore) -> Table:
    with store.database.reading() as connection:
        connection.execute("BEGIN")  # both lists of one moment
        generation = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
        listed = connection.execute("SELECT id, owner, kind, vendor FROM unit")
        units = {row[0]: (row[1], row[2], row[3]) for row in listed}
        rows = connection.execute("SELECT vector_id, unit_id FROM passage ORDER BY rowid").fetchall()
    flat = np.asarray(rows, dtype=np.int64).reshape(-1, 2)
    return Table(int(generation[0]), units, flat[:, 0].copy(), flat[:, 1].copy())


def _language(text: str) -> Language:
    return "zh" if has_chinese(text) else "en"


def _added(expansion: Expansion, asked: Sequence[str]) -> list[str]:
    """Tokens of the standard terms that the question does not hold itself."""
    known = set(asked)
    return [token for term in expansion.terms for token in tokenize(term) if token not in known]


def _nearer_of(asked: dict[int, float], in_terms: dict[int, float]) -> list[int]:
    """Units by the better of two similarities, best first; the order of those asked for settles a tie."""
    units = dict.fromkeys((*asked, *in_terms))
    return sorted(units, key=lambda unit: -max(asked.get(unit, 0.0), in_terms.get(unit, 0.0)))


def _exact(key: FaultCode, entry_id: str) -> Evidence:
    return Evidence(entry_id=entry_id, similarity=1.0, matched_by=("exact",), rank_score=1.0, fault_code=key)
