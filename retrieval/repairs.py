"""What fixed a machine: said in a conversation, kept for the next time the same comes up on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.documents import now
from retrieval.errors import RetrievalError
from retrieval.notes import same_machine
from retrieval.records import UNPRINTABLE, FaultCode
from retrieval.store import KnowledgeStore

LONGEST_ACTION = 500
LONGEST_MACHINE = 80
_COLUMNS = "id, machine, vendor, family, code, entry_id, action, by, at"


class RepairError(RetrievalError):
    """A repair that cannot be kept, or that does not exist."""


@dataclass(frozen=True)
class StoredRepair:
    """One repair. `machine` is the name that people use; `code` is empty for a symptom."""

    id: str
    machine: str
    vendor: str
    family: str
    code: str
    entry_id: str
    action: str
    by: str
    at: str


def put_repair(
    store: KnowledgeStore,
    *,
    key: str,
    machine: str,
    code: FaultCode | None,
    entry_id: str,
    action: str,
    by: str,
) -> StoredRepair:
    """Keep a repair; a second time under the same `key` changes nothing.

    Raises:
        RepairError: no machine or action, too long, or control characters in them.
        StoreUnusable: it cannot be written.
    """
    machine, action = " ".join(machine.split()), " ".join(action.split())
    for name, text, longest in (("machine", machine, LONGEST_MACHINE), ("repair", action, LONGEST_ACTION)):
        if not text or UNPRINTABLE.search(text) or len(text) > longest:
            raise RepairError(f"The {name} is empty, too long or no plain text.", f"at most {longest} characters.")
    made = StoredRepair(
        key, machine, code.vendor if code else "", code.family if code else "", code.code if code else "",
        entry_id, action, by, now(),
    )  # fmt: skip
    with store.database.writing() as connection:
        connection.execute(
            "INSERT OR IGNORE INTO repair VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [getattr(made, name.strip()) for name in _COLUMNS.split(",")],
        )
    return made


def repairs(store: KnowledgeStore, machine: str = "") -> tuple[StoredRepair, ...]:
    """Repairs, the newest first; of one machine where it is named."""
    with store.database.reading() as connection:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM repair ORDER BY at DESC, rowid DESC").fetchall()  # noqa: S608
    found = map(_repair, rows)
    return tuple(repair for repair in found if not machine or same_machine(repair.machine, machine))


def repairs_of(store: KnowledgeStore, machine: str, entry_id: str, code: FaultCode | None) -> tuple[StoredRepair, ...]:
    """Repairs of one machine on the same code or the same entry, the newest first."""
    if not machine:
        return ()
    with store.database.reading() as connection:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM repair WHERE entry_id = ? OR (code <> '' AND vendor = ? AND code = ?)"  # noqa: S608
            " ORDER BY at DESC, rowid DESC",
            (entry_id, code.vendor if code else "", code.code if code else ""),
        ).fetchall()
    return tuple(found for found in map(_repair, rows) if same_machine(found.machine, machine))


def remove_repair(store: KnowledgeStore, key: str) -> StoredRepair:
    """Take a repair out; it as it was.

    Raises:
        RepairError: none, or several that begin so.
    """
    with store.database.writing() as connection:
        query = f"SELECT {_COLUMNS} FROM repair WHERE substr(id, 1, length(?)) = ?"  # noqa: S608
        rows = connection.execute(query, (key, key)).fetchall() if key else []
        if len(rows) != 1:
            raise RepairError(f"{len(rows)} repairs begin with {key!r}.", "see: faultwright knowledge repairs")
        connection.execute("DELETE FROM repair WHERE id = ?", (rows[0][0],))
    return _repair(rows[0])


def _repair(row: Sequence[str]) -> StoredRepair:
    return StoredRepair(*row)
