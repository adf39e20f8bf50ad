"""Screening of knowledge before it is taken over: no entry may tell how to defeat a safeguard, in any of its texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.render import render, section_ids
from agents.safety import screen
from retrieval.errors import KnowledgeUnreadable
from retrieval.records import KnowledgeEntry, Language

_LANGUAGES: tuple[Language, Language] = ("en", "zh")
# A safety item names what must not be done; without such a word it would be an instruction to do it.
_FORBIDS = re.compile(
    r"\b(?:never|not|no|nobody|don't|must\s+not|without|avoid|forbidden|prohibited|instead\s+of|risk|danger\w*)\b"
    r"|不|勿|禁|切忌|严禁|避免|无人|危险",
    re.IGNORECASE,
)


def refuse_hostile(entries: Sequence[KnowledgeEntry]) -> None:
    """Pass entries none of whose lines tells how to defeat a safeguard.

    Raises:
        KnowledgeUnreadable: names the first entry, item and language that does; nothing is taken over.
    """
    for entry in entries:
        for item_id in ("@title", *(i for _, ids in section_ids(entry) for i in ids)):
            item = entry.item(item_id)
            for language in _LANGUAGES:
                text = render(entry, item_id, language) or ""
                if screen(text).verdict != "danger":
                    continue
                if item is not None and item.kind == "safety" and _FORBIDS.search(text):
                    continue
                raise KnowledgeUnreadable(
                    f"Entry {entry.id}, {item_id.lstrip('@')} ({language}), tells how to defeat a safeguard"
                    f" or to put a person at risk: {text[:120]!r}.",
                    "take it out, or word it as what must not be done, then run `faultwright knowledge check`.",
                )
