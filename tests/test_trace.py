"""Traces: what was done for an answer can be read again, and a broken or missing one is said so."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agents import trace
from retrieval.records import Answer, StepRecord


def _answer(trace_id: str) -> dict[str, Any]:
    return Answer(
        id="a", kind="refuse", language="zh", intent="other", text="不知道", degraded=("no model",), trace_id=trace_id
    ).model_dump(mode="json")


STEPS = [
    StepRecord(step="read", input={"question": "主轴"}, output={"vendor": None, "codes": []}, seconds=0.001),
    StepRecord(step="write", output={"drafts": "x" * 500}, seconds=0.2, tokens_in=12, tokens_out=3, error="cut"),
]


def _save(home: Path, trace_id: str | None = None, keep: int = 5) -> str:
    made = trace_id or trace.new_id()
    trace.save(home, "主轴", _answer(made), [step.model_dump(mode="json") for step in STEPS], keep)
    return made


def _stored(home: Path) -> set[str]:
    return {path.name for path in (home / "traces").iterdir()}


def test_comes_back_as_it_was_stored(home: Path) -> None:
    found = trace.load(home, _save(home))
    assert found["question"] == "主轴"
    assert found["answer"]["text"] == "不知道"
    assert [StepRecord.model_validate(step) for step in found["steps"]] == STEPS


def test_as_text_shows_what_matters_and_no_more(home: Path) -> None:
    shown = trace.as_text(trace.load(home, _save(home)))
    assert "question: 主轴" in shown
    assert "degraded: no model" in shown
    assert "12+3 tokens" in shown
    assert "error: cut" in shown
    assert "codes" not in shown, "empty fields only make a trace longer"
    assert "x" * 400 + " …" in shown and "x" * 401 not in shown
    assert "201.0 ms" in shown.splitlines()[-1]


def test_ids_differ_and_are_file_names() -> None:
    ids = {trace.new_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(one.isalnum() and len(one) == 12 for one in ids)


def test_only_the_newest_are_kept(home: Path) -> None:
    ids = []
    for age in range(6, 0, -1):
        ids.append(_save(home, keep=3))
        os.utime(home / "traces" / f"{ids[-1]}.json", (time.time() - age, time.time() - age))
    newest = _save(home, keep=3)
    assert _stored(home) == {f"{one}.json" for one in (*ids[-2:], newest)}


def test_keep_none_writes_none(home: Path) -> None:
    _save(home, keep=0)
    assert not (home / "traces").exists()


def test_what_a_killed_process_left_goes_what_another_writes_stays(home: Path) -> None:
    _save(home, keep=1)
    for name, age in (("dead.part", 7200), ("alive.part", 0)):
        (home / "traces" / name).write_text("{")
        os.utime(home / "traces" / name, (time.time() - age, time.time() - age))
    _save(home, keep=1)
    assert {name for name in _stored(home) if name.endswith(".part")} == {"alive.part"}


def test_many_threads_save_and_prune_at_once(home: Path) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(15):
                _save(home, keep=4)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(_stored(home)) <= 4 + 8


@pytest.mark.parametrize(
    "bad", ["../../etc/passwd", "", "ffffffffffff", "FFFFFFFFFFFF", "a" * 5000, "\x00", "0123456789ab\n", "..", "主轴"]
)
def test_an_unknown_id_names_the_latest_and_leaves_the_folder_alone(home: Path, bad: str) -> None:
    known = _save(home)
    with pytest.raises(trace.TraceMissing, match=f"Latest: {known}") as caught:
        trace.load(home, bad)
    assert len(str(caught.value)) < 400


def test_no_trace_at_all(home: Path) -> None:
    with pytest.raises(trace.TraceMissing, match="none yet"):
        trace.load(home, "0123456789ab")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"question": "x", "answer": {}, "steps": []}',
        json.dumps({"question": "x", "answer": _answer("0123456789ab"), "steps": [{"stap": 1}]}),
        json.dumps({"question": "x", "answer": _answer("0123456789ab"), "steps": None}),
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_named_with_what_to_do(home: Path, body: str) -> None:
    path = home / "traces" / "0123456789ab.json"
    path.parent.mkdir()
    path.write_text(body, encoding="utf-8")
    with pytest.raises(trace.TraceMissing, match=rf"cannot be read .* Next: rm .*{path.name}"):
        trace.load(home, "0123456789ab")


def test_a_folder_that_cannot_be_written_leaves_nothing_half(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        _save(home)
    assert _stored(home) == set()
