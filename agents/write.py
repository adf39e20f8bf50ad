"""From findings to a draft: which lines, in which order. The writer proposes an order; the entry decides the rest.

The writer submodel sees the question and the numbered causes and returns ids in the order that fits the question.
Checks, steps and actions keep the entry's order (cheap and harmless first): no model may change it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from agents.render import DraftLine, render, section_ids
from agents.verify import order_kept
from agents.wording import say
from models.engine import EngineError
from models.writer import Writer, WriterItem, WriterTask
from retrieval.records import KnowledgeEntry, Language, Record


class Draft(Record):
    """What the writer wants to say about one part, before verification. `note` says what the writer did."""

    part_id: str
    entry_id: str
    lines: tuple[DraftLine, ...]
    lead: str = ""
    note: str = ""
    degraded: str = ""
    tokens_in: int = 0
    tokens_out: int = 0


def draft_entry(
    part_id: str,
    question: str,
    entry: KnowledgeEntry,
    language: Language,
    writer: Writer | None,
    cancel: threading.Event | None = None,
) -> Draft:
    """All sections of an entry, causes in the order that the writer proposes where that order may stand."""
    causes = [item.id for item in entry.items if item.kind == "cause"]
    order, lead, note, degraded, tokens = causes, "", "", "", (0, 0)
    if writer is not None and len(causes) > 1:
        task = WriterTask(
            question=question,
            language=language,
            machine="",
            tried=(),
            items=tuple(WriterItem(id=i, kind="cause", text=render(entry, i, language) or "") for i in causes),
        )
        try:
            output = writer.point(task, cancel=cancel)
            order, note = order_kept(entry, causes, output.order, question)
            lead, tokens = output.lead, (output.tokens_in, output.tokens_out)
            if output.finish not in ("stop", "cancelled"):
                degraded = say("deg_cut", language, seconds=f"{output.seconds:.0f}")
        except EngineError as error:
            degraded = str(error)
    lines = _lines(entry, section_ids(entry), {"cause": order}, language)
    return Draft(
        part_id=part_id,
        entry_id=entry.id,
        lines=lines,
        lead=lead,
        note=note,
        degraded=degraded,
        tokens_in=tokens[0],
        tokens_out=tokens[1],
    )


def draft_next_check(
    part_id: str, entry: KnowledgeEntry, given: Sequence[str], language: Language
) -> tuple[Draft, str | None]:
    """The next check of an entry that was not given yet, with its safety items; None as id when all were given."""
    checks = [item.id for item in entry.items if item.kind in ("check", "step")]
    left = [i for i in checks if i not in given]
    sections: list[tuple[str, tuple[str, ...]]] = [("safety", tuple(i.id for i in entry.of_kind("safety")))]
    if left:
        sections.append(("next_check", (left[0],)))
    else:
        sections.append(("action", tuple(i.id for i in entry.items if i.kind == "action")))
    lines = _lines(entry, sections, {}, language)
    return Draft(part_id=part_id, entry_id=entry.id, lines=lines), left[0] if left else None


def _lines(
    entry: KnowledgeEntry,
    sections: Sequence[tuple[str, tuple[str, ...]]],
    orders: dict[str, list[str]],
    language: Language,
) -> tuple[DraftLine, ...]:
    lines: list[DraftLine] = []
    for name, ids in sections:
        reordered = list(ids)
        for kind, order in orders.items():
            slots = [k for k, i in enumerate(ids) if (item := entry.item(i)) is not None and item.kind == kind]
            for slot, item_id in zip(slots, order, strict=len(slots) == len(order)):
                reordered[slot] = item_id
        for item_id in reordered:
            if (text := render(entry, item_id, language)) is not None:
                lines.append(DraftLine(section=name, entry_id=entry.id, item_id=item_id, text=text))
    return tuple(lines)
