"""Questions from a file, one JSON object a line, answered one by one: `faultwright ask --file`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from serve.runtime import QuestionError, Runtime

STDIN = "-"


class RowError(ValueError):
    """A row that cannot be answered; the message names the field and what would be valid."""


class Row(BaseModel):
    """One question of a file. `id` comes back unchanged."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, Field(min_length=1)] | int
    question: str
    vendor: str | None = None
    machine: str | None = None


def parse(line: bytes) -> Row:
    """The row in one line of UTF-8.

    Raises:
        RowError: not UTF-8, not JSON, or not the fields of a `Row`.
    """
    try:
        item = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RowError(f"not UTF-8 (byte {error.start + 1})") from error
    except json.JSONDecodeError as error:
        raise RowError(f"not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise RowError(f"not JSON that can be read: {error}") from error
    if not isinstance(item, dict):
        raise RowError(f'needs an object {{"id", "question", "vendor"?, "machine"?}}, not {type(item).__name__}')
    if unknown := set(item) - set(Row.model_fields):
        raise RowError(f"unknown fields {sorted(unknown)}; known: {', '.join(Row.model_fields)}")
    try:
        return Row.model_validate(item)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        needs = "a string or an integer" if name == "id" else "a string"
        state = "missing" if first["type"] == "missing" else f"{item.get(name)!r}"
        raise RowError(f"field {name!r} is {state}; it must be {needs}") from error


def answered(
    runtime: Runtime, source: BinaryIO, vendor: str | None, machine: str | None
) -> Iterator[tuple[int, dict[str, Any] | RowError]]:
    """(line number, Answer as JSON types with the row's own id, or what is wrong with the row), as each is ready.

    `vendor` and `machine` hold where a row names none.
    """
    for number, line in enumerate(source, start=1):
        if not line.strip():
            continue
        try:
            row = parse(line)
            event = runtime.answer(
                row.question,
                vendor=row.vendor or vendor,
                machine=row.machine or machine,
                answer_id=str(row.id),
            )
        except RowError as error:
            yield number, error
        except QuestionError as error:
            yield number, RowError(str(error))
        else:
            yield number, {**event["answer"], "id": row.id}


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, or standard input for `-`.

    Raises:
        OSError: it cannot be opened.
    """
    if str(path) == STDIN:
        yield sys.stdin.buffer
        return
    with path.open("rb") as handle:
        yield handle
