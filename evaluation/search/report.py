"""The report of a run as Markdown and as JSON, and the stored figures that a later run is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.search.methods import Method
from evaluation.search.score import ALL, Metric, Outcome, Score
from evaluation.search.set import SetUnreadable

BASELINE = Path(__file__).parent / "baseline.json"
_COLUMNS: tuple[tuple[Metric, str], ...] = (
    ("recall@1", "R@1"),
    ("recall@3", "R@3"),
    ("recall@5", "R@5"),
    ("mrr", "MRR"),
    ("exact", "exact"),
    ("named", "named"),
    ("kept", "kept"),
    ("wrong_family", "wrong family"),
)
# a cell of the comparison holds the means of these
_BESIDE: tuple[Metric, ...] = ("recall@1", "recall@5", "mrr", "kept")


@dataclass(frozen=True)
class Report:
    """What a run came to: of each method its scores, of the method that is judged its outcomes, faults and drops."""

    base: Mapping[str, int]
    seconds: float
    judged: Method
    scores: Mapping[Method, tuple[Score, ...]]
    outcomes: tuple[Outcome, ...]
    faults: tuple[str, ...]
    drops: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain types."""
        return {
            "base": dict(self.base),
            "seconds": round(self.seconds, 1),
            "judged": self.judged,
            "scores": {method: {s.name: _plain(s) for s in found} for method, found in self.scores.items()},
            "not_right": [
                {"id": o.query.id, "half": o.query.half, "text": o.query.text, "problem": o.problem}
                for o in self.outcomes
                if o.problem
            ],
            "faults": list(self.faults),
            "drops": list(self.drops),
        }

    def as_markdown(self) -> str:
        """Tables for a person: the judged method cell by cell, the methods beside each other, what is not right."""
        judged = self.scores[self.judged]
        cells = [s for s in judged if s.half != ALL and (s.language != ALL or s.group == ALL)]
        lines = [
            f"# Search on {len(self.outcomes)} questions",
            "",
            f"Base: {', '.join(f'{n} {kind}' for kind, n in self.base.items())}. {self.seconds:.0f} s.",
            "",
            f"## {self.judged}",
            "",
            f"| half | class | language | n | {' | '.join(title for _, title in _COLUMNS)} |",
            f"|---|---|---|--:|{'---|' * len(_COLUMNS)}",
            *(_row(score) for score in cells),
            "",
            "Means with 95 % intervals. exact: codes lead to their rows; named: a right entry is given or named in the"
            " answer; kept: nothing forbidden is given; wrong family: an entry of another machine is given.",
            "",
            *self._methods(),
            *_listed("May never be", self.faults),
            *_listed("Fell since the stored figures", self.drops),
            *_listed(
                "Not right",
                [f"`{o.query.id}` ({o.query.half}) {o.query.text!r}: {o.problem}" for o in self.outcomes if o.problem],
            ),
        ]
        return "\n".join(lines).rstrip() + "\n"

    def _methods(self) -> list[str]:
        names = list(self.scores)
        rows = {
            (s.half, s.group): "".join(f" {_beside(found, s)} |" for found in self.scores.values())
            for s in self.scores[self.judged]
            if s.language == ALL and s.half != ALL
        }
        return [
            "## Methods beside each other",
            "",
            f"| half | class | {' | '.join(names)} |",
            f"|---|---|{'---|' * len(names)}",
            *(f"| {half} | {group} |{cells}" for (half, group), cells in rows.items()),
            "",
            "R@1 / R@5 / MRR; for `none` the share kept. Codes are looked up alike in all.",
            "",
        ]


def _row(score: Score) -> str:
    cells = []
    for metric, _ in _COLUMNS:
        value = score.values.get(metric)
        cells.append(f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]" if value else "")
    return f"| {score.half} | {score.group} | {score.language} | {score.count} | {' | '.join(cells)} |"


def _beside(found: Sequence[Score], like: Score) -> str:
    score = next(s for s in found if s.name == like.name)
    wanted = _BESIDE[:3] if score.group != "none" else _BESIDE[3:]
    return " / ".join(f"{score.values[metric].mean:.2f}" for metric in wanted)


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *(f"- {line}" for line in lines), ""] if lines else []


def _plain(score: Score) -> dict[str, Any]:
    return {"count": score.count} | {metric: asdict(value) for metric, value in score.values.items()}


def read_baseline(path: Path) -> dict[str, dict[str, float]]:
    """Stored means: cell → metric → mean; empty where there is no file.

    Raises:
        SetUnreadable: the file is none that `write_baseline` wrote.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {name: {metric: float(mean) for metric, mean in cell.items()} for name, cell in stored.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SetUnreadable(
            f"{path} holds no stored figures ({error}).", "write it anew with --set-baseline."
        ) from error


def write_baseline(path: Path, found: Sequence[Score]) -> None:
    """Store the means for later runs; small cells are kept too, so that a fall is named where it happened."""
    cells = {s.name: {metric: round(value.mean, 4) for metric, value in s.values.items()} for s in found}
    path.write_text(json.dumps(cells, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
