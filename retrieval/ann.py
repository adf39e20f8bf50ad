"""Which FAISS index for how many vectors: exact while that is fast, approximate beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# Exact search of 384 dimensions costs about 16 ms for 100,000 vectors on one core, and grows with their number.
FLAT_UP_TO = 100_000
HNSW_UP_TO = 400_000
HNSW_LINKS = 32
IVF_SAMPLE_PER_LIST = 64


@dataclass(frozen=True)
class IndexKind:
    """A kind of index, why it was chosen, and how hard a search tries (`efSearch` of HNSW, `nprobe` of IVF)."""

    name: Literal["flat", "hnsw", "ivf"]
    effort: int
    reason: str


def choose(count: int) -> IndexKind:
    """The kind of index for `count` vectors."""
    if count <= FLAT_UP_TO:
        return IndexKind("flat", 0, f"{count} vectors: exact search is fast up to {FLAT_UP_TO}")
    if count <= HNSW_UP_TO:
        return IndexKind("hnsw", 128, f"{count} vectors: a graph is walked faster than all are compared")
    return IndexKind("ivf", 48, f"{count} vectors: a graph of more than {HNSW_UP_TO} takes too long to build")


def made_of(kind: IndexKind, matrix: NDArray[np.float32], ids: NDArray[np.int64]) -> Any:
    """A FAISS index (inner product; vectors are unit length) of `matrix` [n, dimension] under `ids` [n]."""
    import faiss  # noqa: PLC0415 - an exact code needs no vectors

    dimension = matrix.shape[1]
    inner: Any
    if kind.name == "flat":
        inner = faiss.IndexFlatIP(dimension)
    elif kind.name == "hnsw":
        inner = faiss.IndexHNSWFlat(dimension, HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
    else:
        lists = 1 << round(np.log2(4 * np.sqrt(len(matrix))))
        quantizer = faiss.IndexFlatIP(dimension)
        inner = faiss.IndexIVFFlat(quantizer, dimension, lists, faiss.METRIC_INNER_PRODUCT)
        sample = np.random.default_rng(0).choice(len(matrix), lists * IVF_SAMPLE_PER_LIST, replace=False)
        inner.train(matrix[np.sort(sample)])
        inner.make_direct_map()
    index: Any = faiss.IndexIDMap2(inner)
    if len(matrix):
        index.add_with_ids(matrix, ids)
    return index
