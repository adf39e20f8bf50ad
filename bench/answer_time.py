"""How long an answer takes beyond the engine: the whole run against the engine's own time inside it, warm.

    python bench/answer_time.py [--quick] [--json]

Uses the data home of the environment (base pulled; the index is built first where there is none). Each kind of
question cycles through several, so that the engine's prompt cache does not flatter it. Times are medians, in
milliseconds of wall time; `beyond` is whole minus engine, in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from threading import Event
from typing import Any

from models.engine import Engine, Generation, GenerationRequest, LabelScores, Message, OnText
from serve.runtime import Runtime, default_engine
from serve.settings import Settings, load_settings

KINDS: dict[str, tuple[str, ...]] = {
    "exact code, en": ("FANUC SV0401", "FANUC SV0410", "Haas alarm 103", "grbl ALARM:1", "Siemens 25050"),
    "exact code, zh": ("发那科 SV0401 报警", "发那科 SV0410 报警", "哈斯 103号报警", "西门子 25050 报警"),
    "symptom, en": ("spindle speed fluctuates and it makes a noise", "the X axis jerks when it moves slowly"),
    "symptom, zh": ("主轴转速波动大，有异响", "X轴低速移动时爬行抖动"),
    "asks back": ("alarm 103", "alarm 2"),
    "refuses": ("FANUC SV9987", "write a poem about the sea"),
}


class Timed:
    """An engine that adds up the time spent in it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.engine_id, self.base_id, self.adapters = engine.engine_id, engine.base_id, engine.adapters
        self.seconds = 0.0

    def generate(
        self, request: GenerationRequest, *, cancel: Event | None = None, on_text: OnText | None = None
    ) -> Generation:
        started = time.perf_counter()
        try:
            return self._engine.generate(request, cancel=cancel, on_text=on_text)
        finally:
            self.seconds += time.perf_counter() - started

    def label_logprobs(
        self,
        messages: Sequence[Message],
        labels: Sequence[str],
        *,
        adapter: str | None = None,
        timeout_s: float = 30.0,
    ) -> LabelScores:
        started = time.perf_counter()
        try:
            return self._engine.label_logprobs(messages, labels, adapter=adapter, timeout_s=timeout_s)
        finally:
            self.seconds += time.perf_counter() - started

    def count_tokens(self, text: str) -> int:
        return self._engine.count_tokens(text)

    def close(self) -> None:
        self._engine.close()


def measure(runtime: Runtime, engine: Timed, questions: Sequence[str], rounds: int) -> dict[str, Any]:
    """Medians over `rounds` answers, in milliseconds, after one of each question that is not counted."""
    for question in questions:
        runtime.answer(question)
    rows = [_one(runtime, engine, questions[n % len(questions)]) for n in range(rounds)]
    steps = {name: [row["steps"].get(name, 0.0) for row in rows] for name in rows[0]["steps"]}
    found: dict[str, Any] = {
        name: round(statistics.median(row[name] for row in rows), 2) for name in ("whole", "engine", "beyond")
    }
    first = [row["first_words"] for row in rows if row["first_words"] is not None]
    found["first_words"] = round(statistics.median(first), 2) if first else None
    found["worst_beyond"] = round(max(row["beyond"] for row in rows), 2)
    found["beyond_to_engine"] = round(found["beyond"] / found["engine"], 3) if found["engine"] else None
    found["steps"] = {name: round(statistics.median(values), 2) for name, values in steps.items()}
    return found


def _one(runtime: Runtime, engine: Timed, question: str) -> dict[str, Any]:
    engine.seconds = 0.0
    first: float | None = None
    steps: dict[str, float] = {}
    started = time.perf_counter()
    for event in runtime.ask(question):
        if event["type"] == "first_words":
            first = (time.perf_counter() - started) * 1000
        elif event["type"] == "step":
            steps[event["step"]] = steps.get(event["step"], 0.0) + event["seconds"] * 1000
    whole = (time.perf_counter() - started) * 1000
    inside = engine.seconds * 1000
    if "write" in steps:
        steps["write"] -= inside
    return {"whole": whole, "engine": inside, "beyond": whole - inside, "first_words": first, "steps": steps}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 answers of each kind instead of 30")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    engines: list[Timed] = []

    def make(settings: Settings) -> Engine:
        engines.append(Timed(default_engine(settings)))
        return engines[-1]

    settings = load_settings(writer_timeout_s=120.0)
    runtime = Runtime(settings, make_engine=make, notice=lambda line: print(line, file=sys.stderr))
    writer, reason = runtime.writer()
    if writer is None:
        print(f"no engine: {reason}", file=sys.stderr)
        return 2
    runtime.searcher.ready()
    rounds = 5 if options.quick else 30
    load = os.getloadavg()[0]
    results = {name: measure(runtime, engines[0], questions, rounds) for name, questions in KINDS.items()}
    runtime.close()
    if options.json:
        report = {"rounds": rounds, "cores": os.cpu_count(), "load": load, "base": engines[0].base_id, "kinds": results}
        print(json.dumps(report, ensure_ascii=False))
        return 0
    print(f"median of {rounds} warm answers, ms; {os.cpu_count()} cores, load {load:.1f}, base {engines[0].base_id}")
    print(f"{'':<16}{'first words':>12}{'whole':>9}{'engine':>9}{'beyond':>9}{'worst':>9}  slowest steps")
    for name, row in results.items():
        first = "-" if row["first_words"] is None else f"{row['first_words']:.1f}"
        slowest = sorted(row["steps"].items(), key=lambda item: -item[1])[:3]
        shown = ", ".join(f"{step} {ms:.1f}" for step, ms in slowest)
        print(
            f"{name:<16}{first:>12}{row['whole']:>9.1f}{row['engine']:>9.1f}{row['beyond']:>9.1f}"
            f"{row['worst_beyond']:>9.1f}  {shown}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
