"""Traces: every step of a run, kept as one JSON file in the data home, so that an answer can be explained later."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

from retrieval.records import Answer, StepRecord

_ID = re.compile(r"^[0-9a-f]{12}$")


class TraceMissing(LookupError):
    """No such trace; the message says which ones there are."""


def new_id() -> str:
    """A fresh trace id: 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]


def save(home: Path, question: str, answer: dict[str, Any], steps: list[dict[str, Any]], keep: int) -> None:
    """Write a trace and remove the oldest beyond `keep`. A disk that is full must not cost the answer.

    Raises:
        OSError: it could not be written; nothing half is left behind.
    """
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
    files = sorted(folder.glob("*.json"), key=lambda p: p.stat().st_mtime)
    for old in files[: max(0, len(files) - keep)]:
        old.unlink(missing_ok=True)


def load(home: Path, trace_id: str) -> dict[str, Any]:
    """A stored trace: question, answer, steps.

    Raises:
        TraceMissing: no such trace, or its file cannot be read.
    """
    folder = home / "traces"
    path = folder / f"{trace_id}.json"
    if not _ID.match(trace_id) or not path.is_file():
        latest = sorted(folder.glob("*.json"), key=lambda p: -p.stat().st_mtime)[:3] if folder.is_dir() else []
        known = ", ".join(p.stem for p in latest) or "none yet"
        raise TraceMissing(f"No trace {trace_id!r} in {folder}. Latest: {known}. Every answer names its trace_id.")
    try:
        loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        Answer.model_validate(loaded["answer"])
    except (OSError, ValueError, KeyError) as error:
        raise TraceMissing(f"{path} cannot be read: {error}. Remove it: `rm {path}`.") from error
    return loaded


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
