"""The detector's form without a language model: what the question says, as a retrieval instruction.

It never yields a code, vendor or number that is not in the text or in what is known of the machine.
"""

from __future__ import annotations

import re

from agents.plan import SubQuestion
from agents.safety import plain
from retrieval.codes import vendors_in
from retrieval.records import CodeMention, EntryKind, Intent, Record

_PARAMETER_NUMBER = re.compile(
    r"(?:parameters?|param|参数|参数号|setting|machine\s+data|机床数据|\bMD)\s*(?:no\.?|number|号|#|：|:)?\s*\$?(\d{1,6})"
    r"|\bNo\.?\s?(\d{1,6})\s*(?:号)?\s*(?:parameter|参数)|(\d{2,6})\s*号?\s*参数|\$(\d{1,3})\b",
    re.IGNORECASE,
)
_KINDS: dict[Intent, tuple[EntryKind, ...]] = {
    "alarm": ("alarm",),
    "symptom": ("guide",),
    "procedure": ("procedure", "guide"),
    "parameter": ("parameter",),
    "follow_up": ("guide", "procedure"),
    "report": (),
    "other": ("guide", "procedure"),
    "danger": (),
}


class Instruction(Record):
    """What to look up for one part of a question."""

    part_id: str
    intent: Intent
    text: str
    mention: CodeMention | None = None
    vendor: str | None = None
    family: str | None = None
    parameters: tuple[str, ...] = ()
    kinds: tuple[EntryKind, ...] = ()


def detect(part: SubQuestion, intent: Intent, question: str, vendor: str | None, family: str | None) -> Instruction:
    """The retrieval instruction for one part.

    `vendor` and `family` are what is known of the machine; a vendor named in the part, else in the whole question,
    wins over them, since the person is standing in front of it.
    """
    named = vendors_in(part.text) or vendors_in(question)
    own = part.mention.readings[0] if part.mention is not None else None
    if len({v for v, _ in named}) > 1 and own is not None and own.vendor is not None:
        # two machines in one question: each code goes with the vendor that its spelling or its clause gives it
        models = [f for v, f in named if v == own.vendor and f]
        vendor, family = own.vendor, models[0] if len(models) == 1 else None
    elif len({v for v, _ in named}) == 1:
        named_vendor = named[0][0]
        families = {f for _, f in named if f}
        if named_vendor != vendor:
            family = None
        vendor = named_vendor
        if len(families) == 1:
            family = families.pop()
    return Instruction(
        part_id=part.id,
        intent=intent,
        text=part.text,
        mention=part.mention,
        vendor=vendor,
        family=family,
        parameters=parameters_in(part.text),
        kinds=_KINDS[intent],
    )


def parameters_in(text: str) -> tuple[str, ...]:
    """Numbers of parameters named as such in the text, in order."""
    folded = plain(text)
    found = (next(group for group in match.groups() if group) for match in _PARAMETER_NUMBER.finditer(folded))
    return tuple(dict.fromkeys(found))
