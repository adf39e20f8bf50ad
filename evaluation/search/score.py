"""Scores of a run over the set: recall, rank, exact codes, wrong families, each with an interval.

A rank is that within one list as a search gave it (rows of a code; guides and the like; alarms): the lists are shown
apart in an answer, and the best of them counts. Intervals are 95 % by bootstrap over the questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from evaluation.search.methods import Found
from evaluation.search.set import ANYTHING, CODE_GROUPS, GROUPS, HALVES, LANGUAGES, Labels, Query
from retrieval.families import on_one_machine
from retrieval.records import KnowledgeEntry

Metric = Literal["recall@1", "recall@3", "recall@5", "mrr", "exact", "named", "kept", "wrong_family"]
METRICS: tuple[Metric, ...] = get_args(Metric)
_RECALL: tuple[tuple[Metric, int], ...] = (("recall@1", 1), ("recall@3", 3), ("recall@5", 5))
ALL = "all"
RESAMPLES = 2000
DROP = 0.05
_GENERIC = "generic"


@dataclass(frozen=True)
class Outcome:
    """One question and what it got; `values` holds the metrics that apply to it, `problem` why it is not right."""

    query: Query
    values: Mapping[Metric, float]
    problem: str


@dataclass(frozen=True)
class Value:
    """A mean over questions with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """Means over one cell: group, language and half, each of which may be `all`."""

    group: str
    language: str
    half: str
    count: int
    values: Mapping[Metric, Value]

    @property
    def name(self) -> str:
        """The cell as one word."""
        return f"{self.group}/{self.language}/{self.half}"


def outcome_of(query: Query, found: Sequence[Found], labels: Labels) -> Outcome:
    """Judge what a question got.

    `recall@k` and `mrr` need a right entry among the first k of a list; `exact` needs every code that was read in the
    question to lead to a right row first, and none to be read that is not there; `named` means that the answer gives
    or names a right entry; `kept` that nothing forbidden is given; `wrong_family` that an entry of another vendor or
    family than the one in question is.
    """
    expected = labels.expected(query)
    values: dict[Metric, float] = {}
    problem = ""
    if query.group == "none":
        given = [i for part in found for i in part.given if ANYTHING in query.forbidden or i in query.forbidden]
        values["kept"] = float(not given)
        problem = f"gives {given[0]}" if given else ""
    else:
        rank = _rank(query, found, expected)
        for metric, most in _RECALL:
            values[metric] = float(rank is not None and rank <= most)
        values["mrr"] = 1.0 / rank if rank else 0.0
        shown = {i for part in found for i in (*part.given, *part.named)}
        values["named"] = float(set(expected) <= shown if query.every else bool(shown & set(expected)))
        if query.group in CODE_GROUPS:
            problem = _code_problem(query, found, expected)
            values["exact"] = float(not problem)
        elif rank != 1:
            problem = _search_problem(rank, found)
    wrong = _wrong_family(query, found, expected, labels.entries)
    if wrong is not None:
        values["wrong_family"] = float(bool(wrong))
        problem = f"{problem}; wrong family: {wrong}".removeprefix("; ") if wrong else problem
    return Outcome(query, values, problem)


def _rank(query: Query, found: Sequence[Found], expected: Sequence[str]) -> int | None:
    ranks = {
        entry: min((ids.index(entry) + 1 for part in found for ids in part.lists if entry in ids), default=None)
        for entry in expected
    }
    known = [rank for rank in ranks.values() if rank is not None]
    if query.every:
        return max(known) if len(known) == len(ranks) else None
    return min(known, default=None)


def _code_problem(query: Query, found: Sequence[Found], expected: Sequence[str]) -> str:
    if not found:
        return "turned away before any search"
    coded = [part for part in found if part.code]
    if not coded:
        return f"not read as a code ({found[0].status})"
    firsts = []
    for part in coded:
        if not part.lists[0]:
            return f"read as {part.code}, which the base has not"
        if part.lists[0][0] not in expected:
            return f"{part.code} leads to {part.lists[0][0]}"
        firsts.append(part.lists[0][0])
    if query.every and (missing := [entry for entry in expected if entry not in firsts]):
        return f"{missing[0]} is left out"
    return ""


def _search_problem(rank: int | None, found: Sequence[Found]) -> str:
    if not found:
        return "turned away before any search"
    firsts = ", ".join(ids[0] for part in found for ids in part.lists if ids) or "nothing"
    if any(part.code for part in found):
        return f"read as a code: {', '.join(part.code for part in found if part.code)}"
    return f"rank {rank} behind {firsts}" if rank else f"not brought; first: {firsts}"


def _wrong_family(
    query: Query, found: Sequence[Found], expected: Sequence[str], entries: Mapping[str, KnowledgeEntry]
) -> str | None:
    """The first entry given that belongs to another machine, "" for none; None where no machine is in question."""
    vendor, family = query.vendor, query.family
    if query.about:
        vendor, _, named = query.about.partition("/")
        family = named or None
    vendors = {vendor} if vendor else {entries[i].vendor for i in expected if entries[i].vendor != _GENERIC}
    if not vendors:
        return None
    for part in found:
        entry = entries.get(part.given[0]) if part.given else None
        if entry is None or entry.vendor == _GENERIC:
            continue
        families = [key.family for key in entry.keys]
        here = family is None or not families or any(on_one_machine(entry.vendor, family, other) for other in families)
        if entry.vendor not in vendors or not here:
            return entry.id
    return ""


def scores(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """A score per group, language and half that has questions, then those over both halves and over both languages."""
    found = []
    for half in (*HALVES, ALL):
        for group in (*GROUPS, ALL):
            for language in (*LANGUAGES, ALL):
                cell = [
                    outcome
                    for outcome in outcomes
                    if half in (ALL, outcome.query.half)
                    and group in (ALL, outcome.query.group)
                    and language in (ALL, outcome.query.language)
                ]
                if cell:
                    found.append(Score(group, language, half, len(cell), _means(cell)))
    return tuple(found)


def _means(cell: Sequence[Outcome]) -> dict[Metric, Value]:
    held = {metric: [o.values[metric] for o in cell if metric in o.values] for metric in METRICS}
    return {metric: interval(values) for metric, values in held.items() if values}


def interval(values: Sequence[float]) -> Value:
    """Mean and 95 % percentile interval over `RESAMPLES` bootstrap samples; the same on every run."""
    sample = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.percentile(sample[drawn].mean(axis=1), (2.5, 97.5))
    return Value(float(sample.mean()), float(low), float(high))


def faults(found: Sequence[Score]) -> list[str]:
    """What may never be: a cleanly written code that does not lead to its row, an entry of another machine given."""
    problems = []
    for score in found:
        if ALL in (score.group, score.language, score.half):
            continue
        exact, wrong = score.values.get("exact"), score.values.get("wrong_family")
        if score.group == "code" and exact is not None and exact.mean < 1.0:
            problems.append(f"{score.name}: exact code first in {exact.mean:.1%}, not in all")
        if wrong is not None and wrong.mean > 0.0:
            problems.append(f"{score.name}: another vendor or family is given in {wrong.mean:.1%}")
    return problems


def drops(found: Sequence[Score], before: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Where a mean over one cell fell by more than `DROP` since the stored figures; `wrong_family` is a fault."""
    problems = []
    for score in found:
        for metric, value in score.values.items():
            was = before.get(score.name, {}).get(metric)
            if metric != "wrong_family" and was is not None and was - value.mean > DROP:
                problems.append(f"{score.name}: {metric} {value.mean:.3f}, was {was:.3f}")
    return problems
