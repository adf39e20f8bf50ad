"""Which FAISS index for how many vectors: what each kind finds, that a filter holds, that it comes back from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.ann import FLAT_UP_TO, IVF_SHARE, IndexKind, choose, lists_for, made_of
from retrieval.index import VectorIndex

DIMENSION = 24
COUNT = 20_000
KINDS: tuple[Literal["flat", "ivf"], ...] = ("flat", "ivf")
Matrix = NDArray[np.float32]


def unit(matrix: Matrix) -> Matrix:
    lengths: Matrix = np.linalg.norm(matrix, axis=-1, keepdims=True)
    return matrix / lengths


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    """Clustered, as texts are."""
    chance = np.random.default_rng(0)
    centres = chance.standard_normal((COUNT // 50, DIMENSION), dtype=np.float32)
    around = 0.4 * chance.standard_normal((COUNT, DIMENSION), dtype=np.float32)
    return unit(centres[chance.integers(len(centres), size=COUNT)] + around)


@pytest.fixture(scope="module")
def ids() -> NDArray[np.int64]:
    """As hashes give them: 63 bits, in no order."""
    return np.random.default_rng(1).choice(2**63 - 1, size=COUNT, replace=False)


@pytest.fixture(scope="module")
def queries(matrix: Matrix) -> Matrix:
    noise = 0.1 * np.random.default_rng(2).standard_normal((50, DIMENSION), dtype=np.float32)
    return unit(matrix[::400] + noise)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> IndexKind:
    return IndexKind(request.param, lists_for(COUNT) // IVF_SHARE if request.param == "ivf" else 0, "")


@pytest.fixture(scope="module")
def index(kind: IndexKind, matrix: Matrix, ids: NDArray[np.int64]) -> VectorIndex:
    return opened(made_of(kind, matrix, ids), kind)


def opened(vectors: Any, kind: IndexKind) -> VectorIndex:
    return VectorIndex(vectors, {"kind": kind.name, "effort": kind.effort})


def exact(matrix: Matrix, query: Matrix, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return rows[np.argsort(-(matrix[rows] @ query), kind="stable")[:count]]


class TestChoose:
    def test_exact_as_long_as_it_is_fast_and_the_reason_names_the_number(self) -> None:
        edges = (0, 1, FLAT_UP_TO, FLAT_UP_TO + 1, 10**6, 10**7)
        chosen = [choose(count) for count in edges]
        assert [kind.name for kind in chosen] == ["flat", "flat", "flat", "ivf", "ivf", "ivf"]
        assert [kind.effort for kind in chosen] == [0, 0, 0, 256, 512, 2048]
        for count, kind in zip(edges, chosen, strict=True):
            assert str(count) in kind.reason


class TestKinds:
    def test_all_vectors_are_held_under_their_ids(self, index: VectorIndex, matrix: Matrix, ids: Any) -> None:
        assert index.vectors.ntotal == COUNT
        assert index.ids.tolist() == sorted(ids.tolist())
        for row in (0, 777, COUNT - 1):
            np.testing.assert_allclose(index.vectors.reconstruct(int(ids[row])), matrix[row], rtol=1e-6)
            assert index.cosines(matrix[row], ids[row : row + 1]) == [pytest.approx(1.0, abs=1e-5)]

    @pytest.mark.parametrize("share", [1, 2, 20, 1000])
    def test_the_nearest_are_found_under_any_filter(
        self, index: VectorIndex, kind: IndexKind, matrix: Matrix, ids: Any, queries: Matrix, share: int
    ) -> None:
        rows = np.arange(0, COUNT, share)
        hits = 0
        for query in queries:
            found = index.nearest(query, 10, None if share == 1 else ids[rows])
            wanted = exact(matrix, query, rows, 10)
            hits += len({number for number, _ in found} & set(ids[wanted].tolist()))
            assert {number for number, _ in found} <= set(ids[rows].tolist())
            assert [cosine for _, cosine in found] == sorted((c for _, c in found), reverse=True)
            assert len(found) == 10
        assert hits / (10 * len(queries)) >= (1.0 if kind.name == "flat" else 0.95)

    def test_all_that_a_narrow_filter_lets_through_is_found(
        self, index: VectorIndex, ids: Any, queries: Matrix
    ) -> None:
        """A shop's hundred thousand passages must not hide the two hundred guides that a symptom is asked of."""
        for few in (ids[[3]], ids[[3, 1000, 15_000]], ids[::100]):
            found = [number for number, _ in index.nearest(queries[0], 400, few)]
            assert sorted(found) == sorted(few.tolist())

    def test_the_cosine_is_the_real_one(self, index: VectorIndex, matrix: Matrix, ids: Any, queries: Matrix) -> None:
        row = {int(number): n for n, number in enumerate(ids)}
        for number, cosine in index.nearest(queries[0], 20):
            assert cosine == pytest.approx(float(matrix[row[number]] @ queries[0]), abs=1e-5)

    def test_it_comes_back_from_disk_as_it_was(
        self, index: VectorIndex, kind: IndexKind, queries: Matrix, tmp_path: Path
    ) -> None:
        faiss.write_index(index.vectors, str(tmp_path / "vectors.faiss"))
        again = opened(faiss.read_index(str(tmp_path / "vectors.faiss")), kind)
        for query in queries[:10]:
            assert again.nearest(query, 30) == index.nearest(query, 30)
        assert again.ids.tolist() == index.ids.tolist()
        assert again.vectors.reconstruct(int(again.ids[5])).shape == (DIMENSION,)

    def test_the_same_vectors_give_the_same_index(
        self, index: VectorIndex, kind: IndexKind, matrix: Matrix, ids: Any, queries: Matrix
    ) -> None:
        again = opened(made_of(kind, matrix, ids), kind)
        for query in queries[:10]:
            ours, theirs = (dict(made.nearest(query, 30)).keys() for made in (index, again))
            assert ours == theirs


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_vectors_or_none(count: int) -> None:
    made = np.random.default_rng(0).standard_normal((count, DIMENSION), dtype=np.float32)
    kind = choose(count)
    index = opened(made_of(kind, unit(made) if count else made, np.arange(count, dtype=np.int64)), kind)
    assert len(index.nearest(np.ones(DIMENSION, dtype=np.float32), 10)) == count
    assert index.ids.tolist() == list(range(count))
