"""What an ingest says of each file and of all."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from retrieval.errors import RetrievalError

Status = Literal["added", "updated", "unchanged", "duplicate", "failed", "would_add", "would_update"]
_COUNTS = ("alarms", "parameters", "passages", "new_passages", "withheld")


@dataclass
class FileReport:
    """What became of one file.

    `problems` name place, reason and next step. `withheld` counts rows and passages not taken over because they defeat
    a safeguard or give orders to the assistant. `new_passages` were not in the base before, in any document. `carried`
    counts rows that took the shop's changes along from the version before, `left_behind` names those that did not.
    """

    name: str
    status: Status
    document: str = ""
    vendor: str = ""
    family: str = ""
    pages: int | None = None
    alarms: int = 0
    parameters: int = 0
    passages: int = 0
    new_passages: int = 0
    withheld: int = 0
    replaces: str = ""
    carried: int = 0
    left_behind: tuple[str, ...] = ()
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    next_step: str = ""


@dataclass
class IngestReport:
    """What an ingest came to.

    `gone` are documents in the base whose file is no longer where it was: they stay, unless `prune` took them out
    (`removed`). `disputes` are pairs of entries that share a code and mean different things, found just now.
    """

    files: list[FileReport] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    disputes: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """Number of files that could not be read."""
        return sum(file.status == "failed" for file in self.files)

    @property
    def changed(self) -> int:
        """Number of files that the base has now and had not before."""
        return sum(file.status in ("added", "updated") for file in self.files)

    def total(self, name: str) -> int:
        """Sum of a count over all files."""
        return sum(getattr(file, name) for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """The report for a script."""
        return {
            "files": [asdict(file) for file in self.files],
            "removed": self.removed,
            "gone": self.gone,
            "disputes": self.disputes,
            "seconds": round(self.seconds, 3),
            **{name: self.total(name) for name in _COUNTS},
            "failed": self.failed,
        }


def failed(name: str, error: Exception) -> FileReport:
    """The report of a file that could not be read."""
    if isinstance(error, RetrievalError):
        return FileReport(name, "failed", problems=(error.what,), next_step=error.next_step)
    reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    what = f"{name} cannot be read: {reason}."
    return FileReport(name, "failed", problems=(what,), next_step="check the file, then run again.")
