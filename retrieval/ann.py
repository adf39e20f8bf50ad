"""Which FAISS index for how many vectors: exact while that is fast, inverted lists beyond."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# Measured in bench/search_scale.py, 384 dimensions, one core. Exact search costs 16 to 29 ms for 300,000 vectors and
# 75 ms for a million, beside some 20 ms for embedding the question, and its index is made in a second; lists take 17 to
# 52 s and 130 s, whenever vectors are added. A graph (HNSW) finds less than lists from 300,000 on (0.96 and 0.91 of the
# first ten, lists 0.98), takes half as long again to three times as long to make, and under a filter that lets one text
# in a thousand through it finds a quarter of them, where lists find all.
FLAT_UP_TO = 400_000
IVF_SAMPLE_PER_LIST = 64
# One list in so many is looked through: recall@10 of 0.98 at 100,000, 300,000 and a million.
IVF_SHARE = 8


@dataclass(frozen=True)
class IndexKind:
    """A kind of index, why it was chosen, and how hard a search tries (lists looked through, of IVF)."""

    name: Literal["flat", "ivf"]
    effort: int
    reason: str


def choose(count: int) -> IndexKind:
    """The kind of index for `count` vectors."""
    if count <= FLAT_UP_TO:
        return IndexKind("flat", 0, f"{count} vectors: exact search is fast up to {FLAT_UP_TO}")
    lists = lists_for(count)
    reason = f"{count} vectors: comparing with all takes too long; {lists} lists, an eighth of them looked through"
    return IndexKind("ivf", lists // IVF_SHARE, reason)


def lists_for(count: int) -> int:
    """Number of inverted lists for `count` vectors: the power of two nearest to 4 √count."""
    return 1 << round(math.log2(4 * math.sqrt(max(count, 1))))


def made_of(kind: IndexKind, matrix: NDArray[np.float32], ids: NDArray[np.int64]) -> Any:
    """A FAISS index (inner product; vectors are unit length) of `matrix` [n, dimension] under `ids` [n]."""
    import faiss  # noqa: PLC0415 - an exact code needs no vectors

    dimension = matrix.shape[1]
    inner: Any = faiss.IndexFlatIP(dimension)
    if kind.name == "ivf":
        lists = lists_for(len(matrix))
        inner = faiss.IndexIVFFlat(inner, dimension, lists, faiss.METRIC_INNER_PRODUCT)
        size = min(lists * IVF_SAMPLE_PER_LIST, len(matrix))
        sample = np.random.default_rng(0).choice(len(matrix), size, replace=False)
        inner.train(matrix[np.sort(sample)])
        inner.make_direct_map()
    index: Any = faiss.IndexIDMap2(inner)
    if len(matrix):
        index.add_with_ids(matrix, ids)
    return index
