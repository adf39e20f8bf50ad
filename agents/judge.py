"""The judge: is the evidence enough, nothing, or of several minds? Decided in code, before anything is written.

A bare or ambiguous code leads to a question back, an unknown code to a refusal by name: an answer about a neighbour
would look right and be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from agents.detect import Instruction
from agents.evidence import Brought, code_label
from agents.intents import about_a_machine, has_symptom
from retrieval.code_context import names_in
from retrieval.codes import fold, vendors_in
from retrieval.components import components_in
from retrieval.families import on_one_machine
from retrieval.records import Evidence, Intent, Record
from retrieval.search import MIN_SIMILARITY
from retrieval.tokens import tokenize
from retrieval.withheld import WithheldRow

Status = Literal["enough", "nothing", "unknown_code", "unknown_parameter", "ambiguous", "too_little", "out_of_scope"]
# An entry this close behind the best one may be what was meant: it is named, not merged in.
NEAR_MARGIN = 0.2
# A passage is quoted only if it is about as near as what leads.
QUOTE_MARGIN = 0.08
# One word says too little to choose an entry by; these say nothing at all: "the machine is broken", "报警".
LEAST_WORDS = 2
_EMPTY_WORDS = frozenset(
    "machine cnc mill lathe alarm error fault problem trouble broken wrong work make help stop stopped show display now"
    " new happen something today yesterday morning thing noise check first hello thank ok yes"
    " 机床 机器 设备 报警 故障 坏 坏了 问题 一直 显示 不行 今天 昨天 先 查 检查 停 停机"
    " 我 帮 帮忙 处理 谢谢 好 好的 是 不 没 来 看".split()
)
# A question without a word of the trade has to be that much nearer: hair dryers overheat too.
OFF_TOPIC_MARGIN = 0.15
# A procedure that answers what asks for none has to be nearer by so much (tests/test_search_threshold.py).
PROCEDURE_MARGIN = 0.1
MAX_RELATED = 3
MAX_QUOTES = 2


class Finding(Record):
    """What one part came to.

    `evidence` is what to write from: the first leads, further ones are quoted beside it; `candidates` what to choose
    among, `near` what to name beside the answer; `label` is the code or parameter as asked for.
    """

    part_id: str
    intent: Intent
    text: str
    status: Status
    label: str = ""
    vendor: str | None = None
    family: str | None = None
    evidence: tuple[Evidence, ...] = ()
    candidates: tuple[Evidence, ...] = ()
    near: tuple[Evidence, ...] = ()
    searched: tuple[str, ...] = ()
    withheld: tuple[WithheldRow, ...] = ()
    relaxed: bool = False


def judge_part(
    instruction: Instruction, brought: Brought, searched: tuple[str, ...], relaxed: bool, chosen: str | None
) -> Finding:
    """Judge what was brought for one part. `chosen` is the entry id that a person picked when asked back."""
    if instruction.intent == "follow_up":
        status, found = ("enough", {"evidence": brought.hits[:1]}) if brought.hits else ("nothing", {})
    elif instruction.mention is not None:
        status, found = _judge_code(instruction, brought)
    elif instruction.parameters and instruction.intent == "parameter":
        status, found = _judge_parameter(instruction, brought.hits)
    elif instruction.intent in ("report", "danger"):
        status, found = "nothing", {}
    else:
        status, found = _judge_search(instruction, brought)
    if status == "ambiguous" and chosen is not None:
        picked = tuple(c for c in found["candidates"] if c.entry_id == chosen)
        status, found = ("enough", {"evidence": picked[:1]}) if picked else (status, found)
    return Finding(
        part_id=instruction.part_id,
        intent="alarm" if instruction.mention and instruction.intent != "follow_up" else instruction.intent,
        text=instruction.text,
        status=status,
        label=code_label(instruction),
        vendor=_vendor(instruction),
        family=instruction.family,
        searched=searched,
        withheld=brought.withheld,
        relaxed=relaxed,
        **found,
    )


def _vendor(instruction: Instruction) -> str | None:
    if instruction.vendor or instruction.mention is None:
        return instruction.vendor
    return instruction.mention.readings[0].vendor


def _judge_code(instruction: Instruction, brought: Brought) -> tuple[Status, dict[str, Any]]:
    """One code may have several sources: all are evidence, the base's own entry first."""
    rows = brought.hits
    if not rows:
        return ("enough", {"evidence": brought.passages}) if brought.passages else ("unknown_code", {})
    fits = [row for row in rows if _fits(row, instruction)]
    mention = instruction.mention
    whose = {reading.vendor for reading in mention.readings} if mention else set()
    unsettled = mention is not None and instruction.vendor is None and (mention.bare or len(whose) > 1)
    if unsettled or not fits:
        # a number without a controller, a spelling that several makers have, or a code of another machine than this one
        return "ambiguous", {"candidates": _one_per_code(rows)}
    if _meanings(fits) > 1:
        return "ambiguous", {"candidates": _one_per_code(fits)}
    one_each = tuple({row.entry_id: row for row in reversed(fits)}.values())[::-1]
    return "enough", {"evidence": (*one_each, *brought.passages)}


def _one_per_code(rows: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The first row of each code: further sources of the same code are no further choice."""
    first: dict[str, Evidence] = {}
    for row in rows:
        first.setdefault(str(row.fault_code), row)
    return tuple(first.values())


def _meanings(rows: Sequence[Evidence]) -> int:
    """How many things the rows may be about: rows of one code, and rows of one entry, are about the same."""
    groups: list[set[str]] = []
    for row in rows:
        mine = {str(row.fault_code), row.entry_id}
        for group in [group for group in groups if group & mine]:
            groups.remove(group)
            mine |= group
        groups.append(mine)
    return len(groups)


def _fits(row: Evidence, instruction: Instruction) -> bool:
    code = row.fault_code
    if code is None or instruction.vendor not in (None, code.vendor):
        return False
    return instruction.family is None or on_one_machine(code.vendor, instruction.family, code.family)


def _judge_parameter(instruction: Instruction, rows: Sequence[Evidence]) -> tuple[Status, dict[str, Any]]:
    if not rows:
        return "unknown_parameter", {}
    if instruction.vendor is not None and len({row.entry_id for row in rows}) == 1:
        return "enough", {"evidence": tuple(rows[:1])}
    return "ambiguous", {"candidates": tuple(rows)}


# An alarm is spoken of and something like its code stands beside it, but it cannot be read: never search by likeness.
_UNREAD_CODE = re.compile(
    r"\b(?:alarms?|error\s+code|fault\s+code|alarm\s+code)\W{0,3}(?:no\.?\s*|number\s*|id\s*)?\w*\d|报警(?:号|代码)?\W{0,2}[a-z]*[\d一二三四五六七八九零〇]"
    r"|\b[a-z]{2}-?\d{3,5}[a-z]?\b|\b[a-z]{1,2}\d{3,5}[a-z]\b",
    re.IGNORECASE,
)


def _says_too_little(text: str) -> bool:
    """True if, beside the machine's name and empty words, less than two words are left."""
    folded, _ = fold(text)
    for name in reversed(names_in(folded)):
        folded = f"{folded[: name.start]} {folded[name.end :]}"
    words = {word for word in tokenize(folded) if word not in _EMPTY_WORDS and not word.isdigit()}
    return len(words) < LEAST_WORDS


def _margin(instruction: Instruction, hit: Evidence) -> float:
    """How to do something is no answer to what is wrong, unless it is about the very thing."""
    return PROCEDURE_MARGIN if instruction.intent != "procedure" and hit.entry_kind == "procedure" else 0.0


def _judge_search(instruction: Instruction, brought: Brought) -> tuple[Status, dict[str, Any]]:
    """The best-ranked entry over the threshold that speaks of the parts asked about, and what is close behind it."""
    text = instruction.text
    on_topic = about_a_machine(text) or bool(components_in(text) or vendors_in(text) or brought.pasted)
    needed = MIN_SIMILARITY if on_topic else MIN_SIMILARITY + OFF_TOPIC_MARGIN
    if (_says_too_little(text) and not brought.pasted) or _UNREAD_CODE.search(fold(text)[0]):
        return ("too_little" if on_topic or has_symptom(text) else "out_of_scope"), {}
    passing = [hit for hit in brought.hits if hit.similarity >= needed + _margin(instruction, hit) and not hit.off_part]
    quotes = tuple(hit for hit in brought.passages if hit.similarity >= needed and not hit.off_part)
    if not passing and quotes:
        return "enough", {"evidence": quotes}
    if not passing:
        fitting = (hit for hit in brought.alarms if hit.similarity >= needed and not hit.off_part)
        alarms = tuple({hit.entry_id: hit for hit in (*brought.pasted, *fitting)}.values())
        return ("nothing", {"near": alarms[:MAX_RELATED]}) if on_topic else ("out_of_scope", {})
    best = passing[0]
    near = [
        hit
        for hit in sorted((*passing[1:], *brought.alarms), key=lambda h: -h.similarity)
        if hit.similarity >= max(needed, best.similarity - NEAR_MARGIN) and not hit.off_part
    ]
    quotes = tuple(quote for quote in quotes if quote.similarity >= best.similarity - QUOTE_MARGIN)
    named = {hit.entry_id: hit for hit in (*brought.pasted[:1], *near)}
    return "enough", {"evidence": (best, *quotes[:MAX_QUOTES]), "near": tuple(named.values())[:MAX_RELATED]}
