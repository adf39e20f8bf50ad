"""The base that the set is asked of: the starter base, and four manuals made and ingested on the spot.

The manuals are in one language each, so that a question in the other has to cross: a machine builder's own alarms on a
FANUC (English) and on a SINUMERIK (Chinese), and two makers that no catalogue has (Kestrel, English; 北辰, Chinese).
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluation.documents.pdf import Layout, write_manual
from evaluation.documents.truth import TrueAlarm, alarms
from retrieval.base import starter_folder
from retrieval.database import FILE
from retrieval.documents import Documents
from retrieval.embed import Embedder
from retrieval.errors import RetrievalError, StoreUnusable
from retrieval.families import makers, use_makers
from retrieval.index import Progress, build
from retrieval.ingest.run import Options, ingest
from retrieval.store import KnowledgeStore

ROWS = 26
# More texts than a first search would wait for are never missing here; this many are looked up in another home.
MOST_TEXTS = 100_000


class ManualNotRead(RetrievalError):
    """A generated manual did not come out of the ingest as it was written."""


@dataclass(frozen=True)
class Manual:
    """A manual to make: the file's name, whose it is, how it looks, what it says."""

    name: str
    vendor: str
    family: str | None
    layout: Layout
    rows: tuple[TrueAlarm, ...]


def manuals() -> tuple[Manual, ...]:
    """The four manuals; the same on every run."""
    fanuc = [row for row in alarms(1500, 71, "fanuc", "en") if row.code.startswith("EX1")]
    siemens = [row for row in alarms(400, 72, "sinumerik", "zh") if int(row.code) >= 700_000]
    return (
        Manual("builder-fanuc.pdf", "fanuc", "30i", "blocks", tuple(fanuc[:ROWS])),
        Manual("builder-siemens.pdf", "siemens", "sinumerik", "ruled_horizontal", tuple(siemens[:ROWS])),
        Manual("kestrel.pdf", "Kestrel", None, "unruled", alarms(ROWS + 2, 73, "free", "en")),
        Manual("beichen.pdf", "北辰", None, "ruled", alarms(ROWS + 2, 74, "bare", "zh")),
    )


@contextmanager
def evaluation_base(
    embedder: Embedder | None, embeddings_of: Path | None = None, progress: Progress | None = None
) -> Iterator[tuple[Path, KnowledgeStore]]:
    """A data home of its own that holds the base; it is removed in the end.

    Args:
        embedder: makes the vectors; None leaves them out.
        embeddings_of: data home whose vectors are taken over where it has the same texts; it is only read.
        progress: called with (texts that have a vector, all texts).

    Raises:
        ManualNotRead: rows of a manual were lost.
        RetrievalError: knowledge files or the vectors cannot be made.
    """
    known = makers()
    with tempfile.TemporaryDirectory(prefix="faultwright-search-") as folder:
        home = Path(folder) / "home"
        store = KnowledgeStore(home)
        store.sync(starter_folder())
        try:
            _ingest(manuals(), Path(folder), store)
            Documents(store.database).use_makers()
            if embedder is not None:
                if embeddings_of is not None:
                    _take_over(embeddings_of, store, embedder)
                build(home, store, embedder, progress)
            yield home, store
        finally:
            use_makers(known)


def _ingest(made: Sequence[Manual], folder: Path, store: KnowledgeStore) -> None:
    for manual in made:
        path = folder / manual.name
        write_manual(path, manual.rows, manual.layout, seed=5)
        report = ingest([path], store, Options(manual.vendor, manual.family, workers=1))
        read = sum(file.alarms for file in report.files)
        if read != len(manual.rows):
            problems = "; ".join(problem for file in report.files for problem in file.problems)
            raise ManualNotRead(
                f"{manual.name} has {len(manual.rows)} rows; {read} were read. {problems}".strip(),
                "run the tests of the ingest first: the figures of search would blame the wrong part.",
            )


def _take_over(home: Path, store: KnowledgeStore, embedder: Embedder) -> None:
    path = home / FILE
    store.fill()
    wanted = store.to_embed(embedder.id, MOST_TEXTS)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT hash, vector FROM embedding WHERE embedder = ?", (embedder.id,))
            found = {name: bytes(vector) for name, vector in rows if name in wanted}
    except sqlite3.Error as error:
        raise StoreUnusable(
            f"{path} cannot be read ({error}).", "leave --home out: the vectors are made anew in half a minute."
        ) from error
    if found:
        store.put_embeddings(embedder.id, found)
