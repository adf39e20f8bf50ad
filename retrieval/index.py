"""The search index as an artefact on disk: FAISS vectors and BM25, a manifest, an atomic swap.

    index/
      current            name of the artefact in use (replaced atomically)
      <name>/            vectors.faiss, bm25/, passages.json, manifest.json; never changed once named
      .building-*        a build under way, or what a killed one left; removed by the next build
      .lock              held while building, so that two processes do not build at once

A reader checks the manifest (format, embedder, dimension, knowledge) and every file's sha256 before it believes them.
Nothing is pickled.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retrieval.embed import Embedder, Vectors
from retrieval.errors import IndexDamaged, IndexMismatch, StoreUnusable
from retrieval.records import EntryKind, KnowledgeEntry, Language
from retrieval.store import KnowledgeStore
from retrieval.tokens import code_tokens, tokenize

FORMAT = 1
EMBED_BATCH = 16
REBUILD = "run `faultwright index build`; it is made anew from the knowledge base."
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Passage:
    """A text that has a vector: which entry it speaks for, and what it is."""

    entry_id: str
    entry_kind: EntryKind
    vendor: str
    language: Language
    text: str

    @property
    def hash(self) -> str:
        """sha256 of the text (hex): equal texts are embedded once."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def passages_of(entries: Sequence[KnowledgeEntry]) -> tuple[Passage, ...]:
    """What is embedded: title with meaning, and each phrase by itself, per language.

    A phrase is the way a person would say it; a vector of its own lets a short question meet it, where one vector for
    the whole entry would average it away.
    """
    found: list[Passage] = []
    for entry in entries:
        languages: tuple[Language, Language] = ("en", "zh")
        for language in languages:
            texts = [f"{entry.title.get(language)}. {entry.meaning.get(language)}", *entry.phrases.get(language, ())]
            found += [Passage(entry.id, entry.kind, entry.vendor, language, text) for text in dict.fromkeys(texts)]
    return tuple(found)


def keyword_document(entry: KnowledgeEntry) -> list[str]:
    """BM25 tokens of one entry, both languages; titles and phrases count twice, codes in all spellings."""
    weighty = [entry.title.en, entry.title.zh, *entry.phrases.get("en", ()), *entry.phrases.get("zh", ())]
    texts = [entry.meaning.en, entry.meaning.zh]
    for item in entry.items:
        texts += [item.text.en, item.text.zh]
    tokens = [token for text in weighty for token in tokenize(text)] * 2
    tokens += [token for text in texts if text for token in tokenize(text)]
    for key in entry.keys:
        tokens += code_tokens(key.code)
    return tokens


class SearchIndex:
    """An index loaded and checked. Rows of `vectors` line up with `passages`, rows of BM25 with `entry_ids`."""

    def __init__(
        self, vectors: Any, bm25: Any, passages: tuple[Passage, ...], entry_ids: tuple[str, ...], manifest: dict[str, Any]
    ) -> None:
        self.vectors = vectors
        self.bm25 = bm25
        self.passages = passages
        self.entry_ids = entry_ids
        self.manifest = manifest

    def nearest(self, query: Vectors, rows: Sequence[int], count: int) -> list[tuple[int, float]]:
        """The `count` nearest passages among `rows`: (passage row, cosine), best first."""
        import faiss  # noqa: PLC0415 - an exact code needs no vectors

        if not len(rows):
            return []
        selector = faiss.IDSelectorBatch(np.asarray(rows, dtype=np.int64))
        scores, found = self.vectors.search(
            query.reshape(1, -1), min(count, len(rows)), params=faiss.SearchParameters(sel=selector)
        )
        return [(int(row), float(score)) for row, score in zip(found[0], scores[0], strict=True) if row >= 0]

    def keyword_scores(self, tokens: Sequence[str]) -> list[float]:
        """BM25 score of every entry, in the order of `entry_ids`."""
        known = [token for token in tokens if token in self.bm25.vocab_dict]
        if not known:
            return [0.0] * len(self.entry_ids)
        return [float(score) for score in self.bm25.get_scores(known)]

    def coverage(self, tokens: Sequence[str], entry_row: int) -> float:
        """Share in [0, 1] of the question's distinct tokens that entry row `entry_row` contains."""
        wanted = set(tokens)
        if not wanted:
            return 0.0
        hits = sum(1 for t in wanted if t in self.bm25.vocab_dict and self.bm25.get_scores([t])[entry_row] > 0)
        return hits / len(wanted)


def build(home: Path, store: KnowledgeStore, embedder: Embedder, progress: Progress | None = None) -> str:
    """Make the index of what is in the store and put it in use; returns its name.

    Safe to kill at any point: the index in use stays, and vectors already made are kept by text hash.

    Raises:
        StoreUnusable: the folder cannot be written or the disk is full.
    """
    root = home / "index"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root / ".lock"):
            for left in root.glob(".building-*"):
                shutil.rmtree(left, ignore_errors=True)
            folder = root / f".building-{uuid.uuid4().hex[:12]}"
            folder.mkdir()
            _write(folder, store, embedder, progress)
            name = f"v{FORMAT}-{uuid.uuid4().hex[:12]}"
            folder.rename(root / name)
            _swap(root, name)
            for old in root.glob(f"v{FORMAT}-*"):
                if old.name != name:
                    shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise StoreUnusable(
            f"Cannot write the index in {root}: {error.strerror}.",
            "free disk space or set FAULTWRIGHT_HOME to a folder you can write; the index in use is untouched.",
        ) from error
    return name


def _write(folder: Path, store: KnowledgeStore, embedder: Embedder, progress: Progress | None) -> None:
    import bm25s  # noqa: PLC0415
    import faiss  # noqa: PLC0415

    knowledge = store.fingerprint
    entries = store.entries()
    passages = passages_of(entries)
    matrix = _embed(store, embedder, passages, progress)
    vectors = faiss.IndexFlatIP(embedder.dimension)
    vectors.add(matrix)
    faiss.write_index(vectors, str(folder / "vectors.faiss"))
    bm25 = bm25s.BM25()
    bm25.index([keyword_document(entry) for entry in entries], show_progress=False)
    bm25.save(str(folder / "bm25"), show_progress=False)
    (folder / "passages.json").write_text(
        json.dumps(
            {"entries": [entry.id for entry in entries], "passages": [vars(passage) for passage in passages]},
            ensure_ascii=False,
        ),
        encoding="utf-8",
    )
    files = {str(p.relative_to(folder)): _sha256(p) for p in sorted(folder.rglob("*")) if p.is_file()}
    manifest = {
        "format": FORMAT, "embedder": embedder.id, "dimension": embedder.dimension, "knowledge": knowledge,
        "entries": len(entries), "passages": len(passages), "files": files,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as handle:
                os.fsync(handle.fileno())


def _embed(
    store: KnowledgeStore, embedder: Embedder, passages: Sequence[Passage], progress: Progress | None
) -> Vectors:
    texts = {passage.hash: passage.text for passage in passages}
    known = store.embeddings(embedder.id, texts)
    todo = [h for h in texts if h not in known]
    if progress:
        progress(len(known), len(texts))
    for start in range(0, len(todo), EMBED_BATCH):
        batch = todo[start : start + EMBED_BATCH]
        made = embedder.passages([texts[h] for h in batch])
        rows = {h: np.asarray(row, dtype=np.float32).tobytes() for h, row in zip(batch, made, strict=True)}
        store.put_embeddings(embedder.id, rows)
        known |= rows
        if progress:
            progress(len(known), len(texts))
    matrix = np.stack([np.frombuffer(known[p.hash], dtype=np.float32) for p in passages])
    return np.ascontiguousarray(matrix)


def load(home: Path, embedder: Embedder, knowledge: str) -> SearchIndex:
    """The index in use, after every check.

    Raises:
        IndexDamaged: no index, or files missing, cut short or changed.
        IndexMismatch: made with another format, embedder or state of the knowledge base.
    """
    root = home / "index"
    try:
        name = (root / "current").read_text(encoding="utf-8").strip()
        folder = root / name
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        files = dict(manifest["files"])
    except FileNotFoundError as error:
        raise IndexDamaged(f"No index in {root} ({Path(str(error.filename)).name} is missing).", REBUILD) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(f"The index manifest in {root} cannot be read ({error}).", REBUILD) from error
    for field, wanted in (
        ("format", FORMAT), ("embedder", embedder.id), ("dimension", embedder.dimension), ("knowledge", knowledge),
    ):
        if manifest.get(field) != wanted:
            raise IndexMismatch(
                f"The index in {folder} was made with {field} {manifest.get(field)!r}; asked for is {wanted!r}.", REBUILD
            )
    for file, digest in files.items():
        if not (folder / file).is_file() or _sha256(folder / file) != digest:
            raise IndexDamaged(f"{folder / file} is missing or differs from the manifest.", REBUILD)
    return _read(folder, manifest)


def _read(folder: Path, manifest: dict[str, Any]) -> SearchIndex:
    import bm25s  # noqa: PLC0415
    import faiss  # noqa: PLC0415

    listing = json.loads((folder / "passages.json").read_text(encoding="utf-8"))
    vectors = faiss.read_index(str(folder / "vectors.faiss"))
    bm25 = bm25s.BM25.load(str(folder / "bm25"))
    passages = tuple(Passage(**raw) for raw in listing["passages"])
    if vectors.ntotal != len(passages) or vectors.d != manifest["dimension"]:
        raise IndexDamaged(
            f"{folder / 'vectors.faiss'} holds {vectors.ntotal} vectors of {vectors.d}; {len(passages)} of"
            f" {manifest['dimension']} are listed.", REBUILD,
        )
    return SearchIndex(vectors, bm25, passages, tuple(listing["entries"]), manifest)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _swap(root: Path, name: str) -> None:
    pointer = root / f".current-{uuid.uuid4().hex[:8]}"
    with pointer.open("w", encoding="utf-8") as handle:
        handle.write(name + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    pointer.replace(root / "current")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
