"""From findings to a draft: which lines, in which order. The writer proposes an order; the entry decides the rest.

The writer submodel sees the question and the numbered causes and returns ids in the order that fits the question.
Checks, steps and actions keep the entry's order (cheap and harmless first): no model may change it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence

from agents.render import DraftLine, render, section_ids
from agents.verify import open_to_order, order_kept
from agents.wording import say
from models.engine import EngineError
from models.writer import Writer, WriterItem, WriterOutput, WriterTask
from retrieval.components import components_in
from retrieval.records import KnowledgeEntry, Language, Record
from retrieval.tokens import has_chinese, tokenize

# gives the writer, or None and why there is none; may take the time to load an engine
WriterSource = Callable[[], tuple[Writer | None, str]]


_CHECKED = re.compile(
    r"\b(?:check|test|measur|look|inspect|swap|clean|replac|verif|tri)\w*\b|检查|查|测|看|换|清|试", re.IGNORECASE
)
# letters, signs: contactor, connector, 接触器; a short word is in too many sentences
LONG_WORD = 8
LONG_SIGNS = 3


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
    writer: WriterSource,
    cancel: threading.Event | None = None,
) -> Draft:
    """All sections of an entry, the causes in the order that fits the question.

    The writer is only called where it could change something; asking for it may load the engine.
    """
    causes = [item.id for item in entry.items if item.kind == "cause"]
    output, degraded = None, ""
    if open_to_order(entry, causes, question):
        output, degraded = _proposal(question, entry, causes, language, writer, cancel)
    order, note = order_kept(entry, causes, output.order if output else (), question)
    return Draft(
        part_id=part_id,
        entry_id=entry.id,
        lines=_lines(entry, section_ids(entry), {"cause": order}, language),
        lead=output.lead if output else "",
        note=note,
        degraded=degraded,
        tokens_in=output.tokens_in if output else 0,
        tokens_out=output.tokens_out if output else 0,
    )


def _proposal(
    question: str,
    entry: KnowledgeEntry,
    causes: Sequence[str],
    language: Language,
    source: WriterSource,
    cancel: threading.Event | None,
) -> tuple[WriterOutput | None, str]:
    """What the writer proposes, and why it did not or not in full."""
    writer, reason = source()
    if writer is None:
        return None, reason
    items = tuple(WriterItem(id=i, kind="cause", text=render(entry, i, language) or "") for i in causes)
    try:
        output = writer.point(WriterTask(question=question, language=language, items=items), cancel=cancel)
    except EngineError as error:
        return None, str(error)
    if output.finish in ("stop", "cancelled"):
        return output, ""
    return output, say("deg_cut", language, seconds=f"{output.seconds:.0f}")


def named_checks(entry: KnowledgeEntry, text: str) -> tuple[str, ...]:
    """Checks that a person says were done: named by a part that no other check of the entry speaks of."""
    if not _CHECKED.search(text):
        return ()
    said = set(tokenize(text))
    words = {
        item.id: set(tokenize(f"{item.text.get('en')} {item.text.get('zh')}")) & said
        for item in entry.items
        if item.kind in ("check", "step")
    }
    parts = {i: {w for w in held if components_in(w) or _long(w)} for i, held in words.items()}
    return tuple(
        i for i, held in parts.items() if any(sum(w in other for other in parts.values()) == 1 for w in held)
    )


def _long(word: str) -> bool:
    return len(word) >= (LONG_SIGNS if has_chinese(word) else LONG_WORD)


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
