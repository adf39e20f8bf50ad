"""How many alarms of a document came out right: a row counts only if its codes, heading, causes and remedies all do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from evaluation.documents.truth import TrueAlarm
from retrieval.codes import fold
from retrieval.ingest.rows import AlarmRow


@dataclass(frozen=True)
class Score:
    """Precision and recall in [0, 1] over whole rows; `wrong` says of each wrong, missing or extra row what differs.

    Both are 1.0 where there is nothing to find and nothing was found.
    """

    precision: float
    recall: float
    wrong: tuple[str, ...]


def score(truth: Sequence[TrueAlarm], found: Sequence[AlarmRow]) -> Score:
    """Compare rows with the truth; white space, full-width forms and dashes do not count.

    Args:
        truth: what the document states; each alarm counts once.
        found: rows of kind "alarm" are compared, others are left out.
    """
    left: dict[tuple[str, str], list[TrueAlarm]] = {}
    for alarm in truth:
        left.setdefault((_plain(alarm.code), _plain(alarm.last)), []).append(alarm)
    rows = [row for row in found if row.kind == "alarm"]
    right = 0
    wrong: list[str] = []
    for row in rows:
        open_ones = left.get((_plain(row.first), _plain(row.last)), [])
        if not open_ones:
            wrong.append(f"{row.place}: {row.code} {row.heading!r} is not in the document, or stands twice")
            continue
        nearest = min(open_ones, key=lambda alarm: len(_differences(alarm, row)))
        open_ones.remove(nearest)
        if differences := _differences(nearest, row):
            wrong.append(f"{row.place}: {row.code}: {'; '.join(differences)}")
        else:
            right += 1
    wrong += [f"{alarm.code_text} {alarm.heading!r} was not found" for some in left.values() for alarm in some]
    return Score(
        precision=right / len(rows) if rows else float(not truth),
        recall=right / len(truth) if truth else 1.0,
        wrong=tuple(wrong),
    )


def _differences(alarm: TrueAlarm, row: AlarmRow) -> list[str]:
    wanted = (("heading", (alarm.heading,)), ("causes", alarm.causes), ("remedies", alarm.remedies))
    got = ((row.heading,), row.causes, row.actions)
    return [
        f"{name} {texts} wanted, {was} read"
        for (name, texts), was in zip(wanted, got, strict=True)
        if tuple(map(_plain, texts)) != tuple(map(_plain, was))
    ]


def _plain(text: str) -> str:
    return re.sub(r"\s", "", normalize("NFKC", fold(text)[0]))
