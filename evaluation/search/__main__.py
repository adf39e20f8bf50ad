"""Score search on the labelled set: `make search-eval`, or `python -m evaluation.search`.

Exit code 1 where a cleanly written code does not lead to its row or an entry of another machine is given; a mean that
fell by more than 0.05 since the stored figures is a warning. The vectors of the generated manuals take some seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from evaluation.search.base import evaluation_base
from evaluation.search.methods import Method, NoEmbedder, RememberingEmbedder, ask, searcher_of
from evaluation.search.report import BASELINE, Report, read_baseline, write_baseline
from evaluation.search.score import Outcome, drops, faults, outcome_of, scores
from evaluation.search.set import QUERIES, Labels, Query, read_queries
from retrieval.embed import Embedder
from retrieval.errors import RetrievalError


def measure(
    queries: Sequence[Query], embedder: Embedder | None, home: Path | None, before: dict[str, dict[str, float]]
) -> Report:
    """Ask every question with every method.

    Args:
        queries: the set.
        embedder: None for keywords only.
        home: data home whose vectors are taken over, see `evaluation_base`.
        before: stored figures; compared with where vectors are in use, as they were when those were made.

    Raises:
        RetrievalError: the base cannot be made, or a label names what it has not.
    """
    started = time.monotonic()
    methods: tuple[Method, ...] = ("bm25",) if embedder is None else ("bm25", "vectors", "hybrid")
    judged = methods[-1]
    found: dict[Method, tuple[Outcome, ...]] = {}
    with evaluation_base(embedder, home, lambda done, of: _progress("vectors", done, of)) as (folder, store):
        labels = Labels(queries, store)
        for method in methods:
            searcher = searcher_of(method, folder, store, embedder or NoEmbedder())
            outcomes = []
            for number, query in enumerate(queries, start=1):
                outcomes.append(outcome_of(query, ask(searcher, query), labels))
                _progress(method, number, len(queries))
            found[method] = tuple(outcomes)
        counts = store.counts()
    scored = {method: scores(outcomes) for method, outcomes in found.items()}
    return Report(
        base=counts,
        seconds=time.monotonic() - started,
        judged=judged,
        scores=scored,
        outcomes=found[judged],
        faults=tuple(faults(scored[judged])),
        drops=tuple(drops(scored[judged], before)) if embedder is not None else (),
    )


def _progress(what: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{what}: {done} of {total}\x1b[K" + ("\n" if done >= total else ""))
    elif done >= total:
        sys.stderr.write(f"{what}: {done} of {total}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, write the report; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.search", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object in place of Markdown")
    parser.add_argument("--out", type=Path, help="write the report to this file")
    parser.add_argument("--no-vectors", action="store_true", help="keywords only: no embedder, seconds")
    parser.add_argument("--home", type=Path, help="data home whose vectors are taken over; it is only read")
    parser.add_argument("--queries", type=Path, default=QUERIES, help="another set")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="stored figures to compare with")
    parser.add_argument("--set-baseline", action="store_true", help="store this run's figures there")
    options = parser.parse_args(arguments)
    if options.set_baseline and options.no_vectors:
        parser.error("stored figures are those of the whole search: leave --no-vectors out")
    try:
        queries, before = read_queries(options.queries), read_baseline(options.baseline)
        report = measure(queries, None if options.no_vectors else RememberingEmbedder(), options.home, before)
        text = (
            json.dumps(report.as_json(), ensure_ascii=False, indent=1) + "\n" if options.json else report.as_markdown()
        )
        if options.out:
            options.out.write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
        if options.set_baseline:
            write_baseline(options.baseline, report.scores[report.judged])
    except (RetrievalError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for line in report.drops:
        sys.stderr.write(f"warning: {line}\n")
    for line in report.faults:
        sys.stderr.write(f"fault: {line}\n")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
