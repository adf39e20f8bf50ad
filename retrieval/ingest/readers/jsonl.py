"""Reads JSONL, one record a line: a table with the keys of all records as its header."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from retrieval.ingest.document import Block, Document, DocumentUnreadable, Place, Row
from retrieval.ingest.encoding import clean, decoded

MAX_COLUMNS = 200  # keys of all records together; more is a log, not a list
ROWS_PER_BLOCK = 20_000
MAX_DEPTH = 6
WARNINGS_SHOWN = 20


def read(path: Path, name: str) -> Document:
    """Open a JSONL file; a line that is no record is a warning with its number.

    Raises:
        DocumentUnreadable: the file cannot be opened, is empty or too large, is no text, or no line is a record.
    """
    text, encoding, warnings = decoded(path, name)
    document = Document(name, "jsonl", iter(()), encoding=encoding, warnings=warnings)
    records: list[tuple[int, dict[str, str]]] = []
    bad: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        record = _record(line)
        if isinstance(record, str):
            bad.append(f"{name}, line {number}: {record}; left out.")
        elif record:
            records.append((number, record))
    if not records:
        raise DocumentUnreadable(
            f"{name} has no line that is a JSON record" + (f" ({bad[0]})" if bad else "") + ".",
            'write one record a line, such as {"code": "SV0401", "cause": "..."}.',
        )
    warnings += bad[:WARNINGS_SHOWN]
    if len(bad) > WARNINGS_SHOWN:
        warnings.append(f"{name}: and {len(bad) - WARNINGS_SHOWN} more lines that are no records.")
    document.blocks = _blocks(records, document)
    return document


def _record(line: str) -> dict[str, str] | str:
    """The record as texts by key, or why there is none."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        return f"not JSON ({error.msg} at character {error.pos + 1})"
    except (RecursionError, ValueError):
        return "nested too deep, or a number too long"
    if not isinstance(value, dict):
        return "not a record with keys"
    found: dict[str, str] = {}
    _flatten(value, "", found, 0)
    return found


def _flatten(value: Any, key: str, found: dict[str, str], depth: int) -> None:
    """Texts by dotted key; lists of texts become lines, other lists are numbered from 1."""
    if isinstance(value, dict) and depth < MAX_DEPTH:
        for inner, item in value.items():
            name = " ".join(clean(str(inner)).split())
            _flatten(item, f"{key}.{name}" if key else name, found, depth + 1)
    elif isinstance(value, list) and depth < MAX_DEPTH:
        if any(isinstance(item, dict | list) for item in value):
            for number, item in enumerate(value, start=1):
                _flatten(item, f"{key}.{number}", found, depth + 1)
        else:
            _put("\n".join(_shown(item) for item in value), key, found)
    else:
        _put(_shown(value), key, found)


def _put(text: str, key: str, found: dict[str, str]) -> None:
    if text:
        found[key] = text


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value).strip()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return clean(json.dumps(value, ensure_ascii=False))


def _blocks(records: list[tuple[int, dict[str, str]]], document: Document) -> Iterator[Block]:
    keys = list(dict.fromkeys(key for _, record in records for key in record))
    if len(keys) > MAX_COLUMNS:
        document.warnings.append(
            f"{document.name}: its records have {len(keys)} different keys; read as texts, not as a table."
        )
        for number, record in records:
            said = "\n".join(f"{key}: {text}" for key, text in record.items())
            yield Block("text", Place(row=number, line=True), text=said)
        return
    header = Row(tuple(keys), Place(row=records[0][0], line=True))
    rest = iter(records)
    while piece := list(islice(rest, ROWS_PER_BLOCK)):
        rows = tuple(
            Row(tuple(record.get(key, "") for key in keys), Place(row=number, line=True)) for number, record in piece
        )
        yield Block("table", rows[0].place, rows=(header, *rows))
