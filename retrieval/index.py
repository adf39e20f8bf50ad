"""The search index as an artefact on disk: FAISS vectors and BM25, a manifest, an atomic swap.

    index/
      current            name of the artefact in use (replaced atomically)
      <name>/            vectors.faiss, bm25/, passages.json, manifest.json; never changed once named
      .building-*        a build under way, or what a killed one left; removed by the next build
      .lock              held while building, so that two processes do not build at once

A reader checks the manifest (format, embedder, dimension, knowledge) and every file's sha256 before it believes them.
Without an embedder the artefact holds keywords only: its manifest says `"vectors": false`. Nothing is pickled.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from retrieval.components import components_in
from retrieval.embed import Embedder, Vectors
from retrieval.errors import EmbedderUnavailable, IndexDamaged, IndexMismatch, StoreUnusable
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
    """An index loaded and checked. Rows of `vectors` line up with `passages`, rows of BM25 with `entry_ids`.

    `vectors` is None where the embedder could not be loaded when the index was made.
    """

    def __init__(
        self,
        vectors: Any,
        bm25: Any,
        passages: tuple[Passage, ...],
        entry_ids: tuple[str, ...],
        manifest: dict[str, Any],
    ) -> None:
        self.vectors = vectors
        self.bm25 = bm25
        self.passages = passages
        self.entry_ids = entry_ids
        self.manifest = manifest

    def nearest(self, query: Vectors, rows: Sequence[int], count: int) -> list[tuple[int, float]]:
        """The `count` nearest passages among `rows`: (passage row, cosine), best first."""
        import faiss  # noqa: PLC0415 - an exact code needs no vectors

        if self.vectors is None or not len(rows):
            return []
        selector = faiss.IDSelectorBatch(np.asarray(rows, dtype=np.int64))
        parameters: Any = faiss.SearchParameters  # its stub lacks the keyword
        scores, found = self.vectors.search(
            query.reshape(1, -1), min(count, len(rows)), params=parameters(sel=selector)
        )
        return [(int(row), float(score)) for row, score in zip(found[0], scores[0], strict=True) if row >= 0]

    def keyword_scores(self, tokens: Sequence[str]) -> list[float]:
        """BM25 score of every entry, in the order of `entry_ids`."""
        known = [token for token in tokens if token in self.bm25.vocab_dict]
        if not known:
            return [0.0] * len(self.entry_ids)
        return [float(score) for score in self.bm25.get_scores(known)]

    def coverage(self, tokens: Sequence[str], entry_row: int) -> float:
        """Share in [0, 1] of the question's distinct tokens that entry `entry_row` holds, rare ones counting more."""
        weights: dict[str, float] = {}
        held = 0.0
        for token in set(tokens):
            scores = self.bm25.get_scores([token]) if token in self.bm25.vocab_dict else np.zeros(1)
            weights[token] = math.log((len(self.entry_ids) + 1) / (float(np.count_nonzero(scores > 0)) + 0.5))
            held += weights[token] if len(scores) > entry_row and scores[entry_row] > 0 else 0.0
        total = sum(weights.values())
        return held / total if total > 0 else 0.0

    @cached_property
    def _texts(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for passage in self.passages:
            found[passage.entry_id] = f"{found.get(passage.entry_id, '')}\n{passage.text}"
        return found

    @cached_property
    def _titles(self) -> dict[str, str]:
        # the first passage of an entry in a language is its title with its meaning
        found: dict[str, str] = {}
        seen: set[tuple[str, str]] = set()
        for passage in self.passages:
            if (passage.entry_id, passage.language) not in seen:
                seen.add((passage.entry_id, passage.language))
                title = passage.text.split(". ")[0]
                found[passage.entry_id] = f"{found.get(passage.entry_id, '')}\n{title}"
        return found

    def title_components(self, entry_id: str) -> frozenset[str]:
        """Parts of a machine that an entry's titles name."""
        return components_in(self._titles.get(entry_id, ""))

    def components(self, entry_id: str) -> frozenset[str]:
        """Parts of a machine that an entry speaks of, in its title, meaning and phrases."""
        return components_in(self._texts.get(entry_id, ""))


def build(
    home: Path, store: KnowledgeStore, embedder: Embedder, progress: Progress | None = None, *, force: bool = True
) -> str:
    """Make the index of what is in the store and put it in use; returns its name.

    Safe to kill at any point: the index in use stays, and vectors already made are kept by text hash. Without an
    embedder the index holds keywords only. Unless `force`, an index with vectors that another process finished in the
    meantime is kept.

    Raises:
        StoreUnusable: the store is empty, the folder cannot be written, or the disk is full.
        EmbedderUnavailable: the index in use has vectors that could not be made again; it stays.
    """
    root = home / "index"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root / ".lock"):
            in_use = _complete(home, store, embedder)
            if in_use and not force:
                return in_use
            for left in (*root.glob(".building-*"), *root.glob(".current-*")):
                _remove(left)
            folder = root / f".building-{uuid.uuid4().hex[:12]}"
            name = f"v{FORMAT}-{uuid.uuid4().hex[:12]}"
            try:
                _write(folder, store, embedder, progress, keywords_will_do=in_use is None)
                folder.rename(root / name)
                _swap(root, name)
            finally:
                _remove(folder)
            for old in root.glob("v*-*"):
                if old.name != name:
                    _remove(old)
    except OSError as error:
        raise StoreUnusable(
            f"Cannot write the index in {root}: {error.strerror or error}.",
            "free disk space or set FAULTWRIGHT_HOME to a folder you can write; the index in use is untouched.",
        ) from error
    return name


def _complete(home: Path, store: KnowledgeStore, embedder: Embedder) -> str | None:
    """Name of the index in use if it is sound, of this knowledge and embedder, and has vectors."""
    try:
        index = load(home, embedder, store.fingerprint)
    except (IndexDamaged, IndexMismatch):
        return None
    return None if index.vectors is None else str(index.manifest["name"])


def _write(
    folder: Path, store: KnowledgeStore, embedder: Embedder, progress: Progress | None, keywords_will_do: bool
) -> None:
    import bm25s  # noqa: PLC0415
    import faiss  # noqa: PLC0415

    folder.mkdir()
    knowledge = store.fingerprint
    entries = store.entries()
    if not entries:
        raise StoreUnusable(f"{store.path} holds no entries to index.", "run `faultwright knowledge check` to see why.")
    passages = passages_of(entries)
    missing = ""
    try:
        vectors = faiss.IndexFlatIP(embedder.dimension)
        vectors.add(_embed(store, embedder, passages, progress))
        faiss.write_index(vectors, str(folder / "vectors.faiss"))
    except EmbedderUnavailable as error:
        if not keywords_will_do:
            raise
        missing = error.what
    except RuntimeError as error:  # how faiss says that it cannot write
        raise OSError(errno.EIO, f"vectors.faiss: {error}") from error
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
        "format": FORMAT,
        "embedder": embedder.id,
        "dimension": embedder.dimension,
        "knowledge": knowledge,
        "entries": len(entries),
        "passages": len(passages),
        "vectors": not missing,
        "files": files,
    }
    if missing:
        manifest["vectors_missing"] = missing
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    for path in (*folder.rglob("*"), folder):
        _fsync(path)
    try:
        _read(folder, manifest)  # on a full disk faiss and numpy cut a small file short without an error
    except IndexDamaged as error:
        raise OSError(errno.EIO, f"what was written cannot be read back: {error.what}") from error


def _embed(
    store: KnowledgeStore, embedder: Embedder, passages: Sequence[Passage], progress: Progress | None
) -> Vectors:
    texts = {passage.hash: passage.text for passage in passages}
    size = embedder.dimension * np.dtype(np.float32).itemsize
    known = {h: v for h, v in store.embeddings(embedder.id, texts).items() if len(v) == size}
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
    name = _in_use(root)
    while True:
        try:
            return _checked(root / name, embedder, knowledge)
        except IndexDamaged:
            newer = _in_use(root)
            if newer == name:
                raise
            name = newer  # another process put a new index in use and removed this one under our eyes


def _in_use(root: Path) -> str:
    try:
        return (root / "current").read_text(encoding="utf-8").strip()
    except FileNotFoundError as error:
        raise IndexDamaged(f"No index in {root} (current is missing).", REBUILD) from error
    except (OSError, ValueError) as error:
        raise IndexDamaged(f"{root / 'current'} cannot be read ({error}).", REBUILD) from error


def _checked(folder: Path, embedder: Embedder, knowledge: str) -> SearchIndex:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        files = dict(manifest["files"])
    except FileNotFoundError as error:
        raise IndexDamaged(f"{folder / 'manifest.json'} is missing.", REBUILD) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise IndexDamaged(f"{folder / 'manifest.json'} cannot be read ({reason}).", REBUILD) from error
    for field, wanted in (
        ("format", FORMAT),
        ("embedder", embedder.id),
        ("dimension", embedder.dimension),
        ("knowledge", knowledge),
    ):
        if (made := manifest.get(field)) != wanted:
            raise IndexMismatch(f"The index in {folder} was made with {field} {made!r}; wanted is {wanted!r}.", REBUILD)
    for file, digest in files.items():
        try:
            sound = _sha256(folder / file) == digest
        except (OSError, ValueError):
            sound = False
        if not sound:
            raise IndexDamaged(f"{folder / file} is missing or differs from the manifest.", REBUILD)
    return _read(folder, manifest)


def _read(folder: Path, manifest: dict[str, Any]) -> SearchIndex:
    import bm25s  # noqa: PLC0415
    import faiss  # noqa: PLC0415

    try:
        listing = json.loads((folder / "passages.json").read_text(encoding="utf-8"))
        passages = tuple(Passage(**raw) for raw in listing["passages"])
        entry_ids = tuple(listing["entries"])
        bm25 = bm25s.BM25.load(str(folder / "bm25"))
        vectors = faiss.read_index(str(folder / "vectors.faiss")) if manifest["vectors"] else None
        listed = (manifest["entries"], manifest["passages"])
        documents = int(bm25.scores["num_docs"])
    except Exception as error:  # whatever numpy, bm25s or faiss of another version says of files they cannot read
        reason = f"{type(error).__name__}: {error}"
        raise IndexDamaged(f"The index in {folder} cannot be read ({reason}).", REBUILD) from error
    if not listed == (documents, len(passages)) == (len(entry_ids), len(passages)):
        held = f"{documents} documents and {len(passages)} passages"
        raise IndexDamaged(f"{folder} holds {held}; {listed[0]} and {listed[1]} are listed.", REBUILD)
    if vectors is not None and (vectors.ntotal, vectors.d) != (len(passages), manifest["dimension"]):
        raise IndexDamaged(
            f"{folder / 'vectors.faiss'} holds {vectors.ntotal} vectors of {vectors.d}; {len(passages)} of"
            f" {manifest['dimension']} are listed.",
            REBUILD,
        )
    return SearchIndex(vectors, bm25, passages, entry_ids, {**manifest, "name": folder.name})


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
    _fsync(root)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
