"""Traces: every step of a run, kept as one JSON file in the data home, so that an answer can be explained later."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from pathlib import Path
from typing import Any

from retrieval.records import Answer, StepRecord

_ID = re.compile(r"[0-9a-f]{12}")
_STALE_S = 3600.0


class TraceMissing(LookupError):
    """No such trace; the message says which ones there are."""


def new_id() -> str:
    """A fresh trace id: 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]


def save(home: Path, question: str, answer: dict[str, Any], steps: list[dict[str, Any]], keep: int) -> None:
    """Write a trace and remove the oldest beyond `keep`; with 0 nothing is written.

    Raises:
        OSError: it could not be written (a full disk); nothing half is left behind, and it must not cost the answer.
    """
    if keep == 0:
        return
    folder = home / "traces"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{answer['trace_id']}.json"
    partial = path.with_suffix(".part")
    try:
        partial.write_text(
            json.dumps({"question": question, "answer": answer, "steps": steps}, ensure_ascii=False), encoding="utf-8"
        )
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    _prune(folder, keep)


def _prune(folder: Path, keep: int) -> None:
    """Remove the oldest beyond `keep`, and what a killed process left half written. Others may prune meanwhile."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    surplus = sum(name.endswith(".json") for name in names) - keep
    if surplus <= 0:
        return
    ages = sorted((_written_at(folder / name), name) for name in names)
    traces = [name for _, name in ages if name.endswith(".json")][:surplus]
    stale = [name for at, name in ages if name.endswith(".part") and at < time.time() - _STALE_S]
    for name in (*traces, *stale):
        (folder / name).unlink(missing_ok=True)


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def load(home: Path, trace_id: str) -> dict[str, Any]:
    """A stored trace: question, answer, steps.

    Raises:
        TraceMissing: no such trace, or its file cannot be read.
    """
    folder = home / "traces"
    if not _ID.fullmatch(trace_id) or not (folder / f"{trace_id}.json").is_file():
        latest = sorted(folder.glob("*.json"), key=_written_at, reverse=True)[:3]
        known = ", ".join(path.stem for path in latest) or "none yet"
        raise TraceMissing(f"No trace {trace_id[:80]!r} in {folder}. Latest: {known}. Every answer names its trace_id.")
    path = folder / f"{trace_id}.json"
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
        found = {name: loaded[name] for name in ("question", "answer", "steps")}
        Answer.model_validate(found["answer"])
        for step in found["steps"]:
            StepRecord.model_validate(step)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise TraceMissing(f"{path} cannot be read ({type(error).__name__}: {reason}). Next: rm {path}") from error
    return found


def as_text(trace: dict[str, Any]) -> str:
    """A trace for a person: each step with its time, what went in and what came out."""
    lines = [f"question: {trace['question']}", f"answer:   {trace['answer']['kind']} ({trace['answer']['intent']})"]
    for note in trace["answer"].get("degraded", []):
        lines.append(f"degraded: {note}")
    lines.append("")
    for raw in trace["steps"]:
        step = StepRecord.model_validate(raw)
        tokens = f"  {step.tokens_in}+{step.tokens_out} tokens" if step.tokens_in or step.tokens_out else ""
        lines.append(f"{step.step:<9}{step.seconds * 1000:9.1f} ms{tokens}")
        for name, fields in (("in", step.input), ("out", step.output)):
            for key, value in fields.items():
                if value not in (None, [], "", False):
                    lines.append(f"    {name:<3} {key}: {_short(value)}")
        if step.error:
            lines.append(f"    error: {step.error}")
    total = sum(float(raw["seconds"]) for raw in trace["steps"])
    lines.append(f"{'total':<9}{total * 1000:9.1f} ms")
    return "\n".join(lines)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:400]} …"
