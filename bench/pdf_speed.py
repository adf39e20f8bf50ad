"""Pages per second of the PDF reader against pypdf (text only) and pdfplumber (tables), on one manual in the same run.

    python bench/pdf_speed.py [--quick] [--json] [FILE.pdf ...]

Without files it makes the 40-page manual of `evaluation.documents.pdf`: prose, contents, ruled and unruled tables in
both languages. Its scanned page goes through no OCR, for all alike. Peers that are not installed are named and left
out. Times are medians of wall time in one process on one core.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from evaluation.documents.pdf import manual
from retrieval.ingest.readers import pdf


def ours(path: Path) -> int:
    return sum(block.place.page is not None for block in pdf.read(path, path.name).blocks)


def pypdf_text(path: Path) -> int:
    import pypdf

    return sum(bool(page.extract_text()) for page in pypdf.PdfReader(path).pages)


def pdfplumber_tables(path: Path) -> int:
    import pdfplumber

    found = 0
    with pdfplumber.open(path) as document:
        for page in document.pages:
            found += len(page.extract_tables()) + bool(page.extract_text())
            page.close()
    return found


READERS: dict[str, tuple[str, Callable[[Path], int]]] = {
    "ours: text, headings, tables": ("pypdfium2", ours),
    "pypdf: text only": ("pypdf", pypdf_text),
    "pdfplumber: text, ruled tables": ("pdfplumber", pdfplumber_tables),
}


def measure(path: Path, runs: int) -> dict[str, float]:
    """Pages per second by reader; the first run of each is not counted."""
    pages = pdf.read(path, path.name).pages or 0
    found: dict[str, float] = {}
    for name, (package, reader) in READERS.items():
        if find_spec(package) is None:
            print(f"{name}: left out, {package} is not installed", file=sys.stderr)
            continue
        times = []
        for _ in range(runs + 1):
            started = time.perf_counter()
            reader(path)
            times.append(time.perf_counter() - started)
        found[name] = pages / statistics.median(times[1:])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true", help="one run instead of five")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    # a page that OCR reads takes seconds; this is about pages that have text
    sys.modules["retrieval.ingest.readers.image"] = None  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        files = options.files
        if not files:
            files = [Path(folder) / "manual.pdf"]
            manual(files[0], seed=1)
        results = {path.name: measure(path, 1 if options.quick else 5) for path in files}
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for file, speeds in results.items():
        print(file)
        first = next(iter(speeds.values()))
        for name, speed in speeds.items():
            print(f"  {name:32} {speed:8.1f} pages/s   {first / speed:5.1f} x")


if __name__ == "__main__":
    main()
