"""Does the writer put the cause first that the question hints at? Mean reciprocal rank over generated questions.

A question names a code and some words of one cause, shuffled. Four orders are compared on the same questions: the
entry's own, the model's proposal, what verification lets stand of it, and a sort by words shared with the question. It
measures the base as it comes: an adapter has to beat the last two to be worth its time.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence

from agents.render import render
from agents.verify import order_kept, support_of
from models.writer import PointWriter, WriterItem, WriterTask
from retrieval.base import knowledge_files, load_entries, starter_folder
from retrieval.records import Language
from retrieval.tokens import tokenize
from serve.runtime import default_engine
from serve.settings import load_settings


def reciprocal_rank(order: Sequence[str], wanted: str) -> float:
    """1 for the first place, 1/2 for the second; 0 if it is not there."""
    return 1.0 / (order.index(wanted) + 1) if wanted in order else 0.0


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="questions")
    parser.add_argument("--quick", action="store_true", help="20 questions")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    count = 20 if options.quick else options.count
    rng = random.Random(7)
    entries = [e for e in load_entries(knowledge_files(starter_folder())) if len(e.of_kind("cause")) >= 3]
    engine = default_engine(load_settings())
    writer = PointWriter(engine, timeout_s=60)
    ranks: dict[str, list[float]] = {"entry": [], "model": [], "kept": [], "words": []}
    seconds: list[float] = []
    for n in range(count):
        entry = entries[n % len(entries)]
        language: Language = "zh" if n % 2 else "en"
        causes = entry.of_kind("cause")
        own = [c.id for c in causes]
        hinted = rng.choice(causes)
        words = list(dict.fromkeys(tokenize(hinted.text.get(language))))
        rng.shuffle(words)
        label = entry.keys[0].code if entry.keys else entry.title.get(language)
        question = f"{label} {(' ' if language == 'en' else '').join(words[:4])}"
        task = WriterTask(
            question=question,
            language=language,
            items=tuple(WriterItem(id=i, kind="cause", text=render(entry, i, language) or "") for i in own),
        )
        started = time.perf_counter()
        proposed = writer.point(task).order
        seconds.append(time.perf_counter() - started)
        support = support_of(entry, own, question)
        ranks["entry"].append(reciprocal_rank(own, hinted.id))
        ranks["model"].append(reciprocal_rank([*proposed, *(i for i in own if i not in proposed)], hinted.id))
        ranks["kept"].append(reciprocal_rank(order_kept(entry, own, proposed, question)[0], hinted.id))
        ranks["words"].append(reciprocal_rank(sorted(own, key=lambda i: -support[i]), hinted.id))
    engine.close()
    found = {name: round(statistics.mean(values), 3) for name, values in ranks.items()}
    result = {"questions": count, "mrr": found, "seconds_median": round(statistics.median(seconds), 2)}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{count} questions; mean reciprocal rank of the hinted cause")
        for name, value in found.items():
            print(f"  {name:<6} {value:.3f}")
        print(f"writer: {result['seconds_median']} s median")


if __name__ == "__main__":
    main()
