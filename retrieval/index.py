"""The vector index as an artefact on disk: FAISS with a manifest, an atomic swap.

    index/
      current            name of the artefact in use (replaced atomically)
      <name>/            vectors.faiss, manifest.json; never changed once named
      .building-*        a write under way, or what a killed one left; removed by the next one
      .lock              held while vectors are made, so that two processes do not make the same ones

SQLite is the truth and the artefact a copy of the embeddings in it, under ids that come from the hash of the text: what
has no vector yet is missing from it, what is gone is ignored, and neither makes it wrong. So a search works while
vectors are being made, with the share that is covered. A reader checks the manifest (format, embedder, dimension) and
the file's sha256 before it believes them. Nothing is pickled.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.ann import IndexKind, choose, made_of
from retrieval.embed import Embedder, Vectors
from retrieval.errors import IndexDamaged, IndexMismatch, StoreUnusable
from retrieval.starter_vectors import starter_vectors
from retrieval.store import KnowledgeStore
from retrieval.units import vector_id

FORMAT = 2
EMBED_BATCH = 16
# Texts that are looked up among those of the starter base; entries come before passages.
STARTER_MOST = 20_000
# A killed run loses at most the artefact, never a vector; writing it more often lets other processes search more.
WRITE_EVERY_S = 60.0
UNIT_TOLERANCE = 0.01
REBUILD = "run `faultwright index build`; it is made anew from the knowledge base."
Progress = Callable[[int, int], None]


class Busy(Exception):
    """Another process is making vectors."""


class VectorIndex:
    """An index loaded and checked: nearest texts by their vector ids."""

    def __init__(self, vectors: Any, manifest: dict[str, Any]) -> None:
        self.vectors = vectors
        self.manifest = manifest

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """Vector ids that it holds, sorted."""
        import faiss  # noqa: PLC0415 - an exact code needs no vectors

        return np.sort(np.asarray(faiss.vector_to_array(self.vectors.id_map), dtype=np.int64))

    def nearest(self, query: Vectors, count: int, among: NDArray[np.int64] | None = None) -> list[tuple[int, float]]:
        """The `count` nearest texts, of those with an id in `among` where given: (vector id, cosine), best first."""
        if count < 1 or (among is not None and not len(among)):
            return []
        parameters = self._parameters(among)
        with _one_thread():
            scores, found = self.vectors.search(query.reshape(1, -1), count, params=parameters)
        return [(int(i), float(score)) for i, score in zip(found[0], scores[0], strict=True) if i >= 0]

    def _parameters(self, among: NDArray[np.int64] | None) -> Any:
        """How FAISS searches. The fewer texts a filter lets through, the more lists: else next to none is found."""
        import faiss  # noqa: PLC0415

        stub: Any = faiss  # its stubs lack the keywords
        selector = None if among is None else stub.IDSelectorBatch(among)
        if self.manifest["kind"] == "flat":
            return None if selector is None else stub.SearchParameters(sel=selector)
        share = 1.0 if among is None else min(1.0, len(among) / self.vectors.ntotal)
        return stub.SearchParametersIVF(sel=selector, nprobe=math.ceil(int(self.manifest["effort"]) / share))

    def cosines(self, query: Vectors, ids: NDArray[np.int64]) -> list[float]:
        """Cosine of a query with each of `ids` that the index holds, exact."""
        held = ids[np.isin(ids, self.ids)]
        return [float(self.vectors.reconstruct(int(i)) @ query) for i in held]


@contextmanager
def _one_thread() -> Iterator[None]:
    """FAISS in one thread.

    The search for one question is over before another thread is awake: on cores that others use it waits 16 ms for
    one, for 0.1 ms of work (4,000 vectors, 2 cores, bench/search_scale.py). The number is the calling thread's own.
    """
    import faiss  # noqa: PLC0415

    stub: Any = faiss
    threads = stub.omp_get_max_threads()
    stub.omp_set_num_threads(1)
    try:
        yield
    finally:
        stub.omp_set_num_threads(threads)


def build(
    home: Path,
    store: KnowledgeStore,
    embedder: Embedder,
    progress: Progress | None = None,
    *,
    wait: bool = True,
    stop: Callable[[], bool] | None = None,
) -> str:
    """Embed what has no vector yet and put an index of all of them in use; returns its name.

    Safe to kill at any point: the index in use stays, and vectors already made are kept by the hash of their text.

    Args:
        home: the data home.
        store: the rows; units that are missing are made first.
        embedder: makes the vectors.
        progress: called with (texts that have a vector, all texts).
        wait: wait for another process that is making vectors, rather than raise `Busy`.
        stop: asked between batches; True ends the run with an index of what there is.

    Raises:
        StoreUnusable: the store is empty, the folder cannot be written, or the disk is full.
        EmbedderUnavailable: there is something to embed and no embedder; the index in use stays.
        Busy: see `wait`.
    """
    root = home / "index"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root / ".lock", wait):
            for left in (*root.glob(".building-*"), *root.glob(".current-*")):
                _remove(left)
            store.fill()
            _drop_damaged(store, embedder)
            if not store.coverage(embedder.id)[1]:
                raise StoreUnusable(
                    f"{store.path} holds no entries to index.", "run `faultwright knowledge check` to see why."
                )
            return _embed_and_write(root, store, embedder, progress, stop)
    except OSError as error:
        raise StoreUnusable(
            f"Cannot write the index in {root}: {error.strerror or error}.",
            "free disk space or set FAULTWRIGHT_HOME to a folder you can write; the index in use is untouched.",
        ) from error


def _embed_and_write(
    root: Path,
    store: KnowledgeStore,
    embedder: Embedder,
    progress: Progress | None,
    stop: Callable[[], bool] | None,
) -> str:
    done, total = store.coverage(embedder.id)
    if done < total and (known := starter_vectors(embedder, store.to_embed(embedder.id, STARTER_MOST))):
        store.put_embeddings(embedder.id, known)
        done += len(known)
    if progress:
        progress(done, total)
    written = time.monotonic()
    while not (stop is not None and stop()) and (texts := store.to_embed(embedder.id, EMBED_BATCH * 16)):
        todo = sorted(texts, key=lambda h: len(texts[h]))  # texts of one length in a batch: less padding
        for start in range(0, len(todo), EMBED_BATCH):
            batch = todo[start : start + EMBED_BATCH]
            made = embedder.passages([texts[h] for h in batch])
            rows = {h: np.asarray(row, dtype=np.float32).tobytes() for h, row in zip(batch, made, strict=True)}
            store.put_embeddings(embedder.id, rows)
            done += len(batch)
            if progress:
                progress(min(done, total), total)
            if stop is not None and stop():
                break
        if time.monotonic() - written > WRITE_EVERY_S:
            _write(root, store, embedder)
            written = time.monotonic()
            done, total = store.coverage(embedder.id)
    return _write(root, store, embedder)


def _write(root: Path, store: KnowledgeStore, embedder: Embedder) -> str:
    """Write an artefact of the vectors in the store and put it in use."""
    import faiss  # noqa: PLC0415

    generation = store.generation
    ids, matrix = _vectors(store, embedder)
    kind = choose(len(ids))
    folder = root / f".building-{uuid.uuid4().hex[:12]}"
    name = f"v{FORMAT}-{uuid.uuid4().hex[:12]}"
    try:
        folder.mkdir()
        try:
            faiss.write_index(made_of(kind, matrix, ids), str(folder / "vectors.faiss"))
        except RuntimeError as error:  # how faiss says that it cannot write
            raise OSError(errno.EIO, f"vectors.faiss: {error}") from error
        manifest = _manifest(kind, len(ids), generation, embedder, _sha256(folder / "vectors.faiss"))
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for path in (*folder.rglob("*"), folder):
            _fsync(path)
        try:
            _read(folder, manifest)  # on a full disk faiss cuts a small file short without an error
        except IndexDamaged as error:
            raise OSError(errno.EIO, f"what was written cannot be read back: {error.what}") from error
        folder.rename(root / name)
        _swap(root, name)
    finally:
        _remove(folder)
    for old in root.glob("v*-*"):
        if old.name != name:
            _remove(old)
    return name


def _manifest(kind: IndexKind, count: int, generation: int, embedder: Embedder, digest: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "embedder": embedder.id,
        "dimension": embedder.dimension,
        "vectors": count,
        "kind": kind.name,
        "effort": kind.effort,
        "reason": kind.reason,
        "generation": generation,
        "sha256": digest,
    }


def _vectors(store: KnowledgeStore, embedder: Embedder) -> tuple[NDArray[np.int64], Vectors]:
    """Ids and vectors of all texts in use that have one."""
    held, _ = store.coverage(embedder.id)
    ids = np.zeros(held, dtype=np.int64)
    matrix = np.zeros((held, embedder.dimension), dtype=np.float32)
    count = 0
    for text_hash, blob in store.embeddings(embedder.id):
        if count == held:
            break  # another process goes on adding; the next artefact has them
        ids[count], matrix[count] = vector_id(text_hash), np.frombuffer(blob, dtype=np.float32)
        count += 1
    return ids[:count], matrix[:count]


def _drop_damaged(store: KnowledgeStore, embedder: Embedder) -> None:
    """Remove stored vectors of the wrong size, or that are no unit vectors: they are made again."""
    size = embedder.dimension * np.dtype(np.float32).itemsize
    bad = []
    for text_hash, blob in store.embeddings(embedder.id):
        row = np.frombuffer(blob, dtype=np.float32) if len(blob) == size else np.zeros(1, dtype=np.float32)
        if not abs(float(row @ row) - 1.0) < UNIT_TOLERANCE:  # NaN is not below anything
            bad.append(text_hash)
    store.drop_embeddings(embedder.id, bad)


def load(home: Path, embedder: Embedder) -> VectorIndex:
    """The index in use, after every check.

    Raises:
        IndexDamaged: no index, or files missing, cut short or changed.
        IndexMismatch: made with another format or embedder.
    """
    root = home / "index"
    name = in_use(root)
    while True:
        try:
            return _checked(root / name, embedder)
        except IndexDamaged:
            newer = in_use(root)
            if newer == name:
                raise
            name = newer  # another process put a new index in use and removed this one under our eyes


def in_use(root: Path) -> str:
    """Name of the artefact in use.

    Raises:
        IndexDamaged: there is none, or its name cannot be read.
    """
    try:
        return (root / "current").read_text(encoding="utf-8").strip()
    except FileNotFoundError as error:
        raise IndexDamaged(f"No index in {root} (current is missing).", REBUILD) from error
    except (OSError, ValueError) as error:
        raise IndexDamaged(f"{root / 'current'} cannot be read ({error}).", REBUILD) from error


def _checked(folder: Path, embedder: Embedder) -> VectorIndex:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        made = {field: manifest[field] for field in ("format", "embedder", "dimension")}
    except FileNotFoundError as error:
        raise IndexDamaged(f"{folder / 'manifest.json'} is missing.", REBUILD) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise IndexDamaged(f"{folder / 'manifest.json'} cannot be read ({reason}).", REBUILD) from error
    for field, wanted in (("format", FORMAT), ("embedder", embedder.id), ("dimension", embedder.dimension)):
        if made[field] != wanted:
            raise IndexMismatch(
                f"The index in {folder} was made with {field} {made[field]!r}; wanted is {wanted!r}.", REBUILD
            )
    try:
        sound = _sha256(folder / "vectors.faiss") == manifest["sha256"]
    except (OSError, KeyError):
        sound = False
    if not sound:
        raise IndexDamaged(f"{folder / 'vectors.faiss'} is missing or differs from the manifest.", REBUILD)
    return _read(folder, manifest)


def _read(folder: Path, manifest: dict[str, Any]) -> VectorIndex:
    import faiss  # noqa: PLC0415

    try:
        vectors: Any = faiss.read_index(str(folder / "vectors.faiss"))
        held, listed = (vectors.ntotal, vectors.d), (manifest["vectors"], manifest["dimension"])
        kind, effort = manifest["kind"], int(manifest["effort"])
    except Exception as error:  # whatever faiss of another version says of a file that it cannot read
        reason = f"{type(error).__name__}: {error}"
        raise IndexDamaged(f"The index in {folder} cannot be read ({reason}).", REBUILD) from error
    if held != listed or kind not in ("flat", "ivf") or effort < 0:
        raise IndexDamaged(
            f"{folder / 'vectors.faiss'} holds {held[0]} vectors of {held[1]}; {listed[0]} of {listed[1]} are listed.",
            REBUILD,
        )
    return VectorIndex(vectors, {**manifest, "name": folder.name})


@contextmanager
def _locked(path: Path, wait: bool) -> Iterator[None]:
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise Busy from error
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
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
