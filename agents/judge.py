"""The judge: is the evidence enough, nothing, or of several minds? Decided in code, before anything is written.

A bare or ambiguous code leads to a question back, an unknown code to a refusal by name: an answer about a neighbour
would look right and be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agents.detect import Instruction
from retrieval.codes import number_of
from retrieval.records import Evidence, Intent, Record
from retrieval.search import MIN_SIMILARITY, Searcher

Status = Literal["enough", "nothing", "unknown_code", "unknown_parameter", "ambiguous", "out_of_scope"]
# An entry this close behind the best one may be what was meant: it is named, not merged in.
NEAR_MARGIN = 0.12
MAX_RELATED = 3


class Finding(Record):
    """What one part came to. `evidence` is what to write from; `near` what to name beside it; `label` the code as asked."""

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
    relaxed: bool = False


def retrieve_code(instruction: Instruction, searcher: Searcher) -> tuple[Evidence, ...]:
    """All rows that the mention may mean, narrowed by what is known of the machine; order of the readings kept."""
    mention = instruction.mention
    if mention is None:
        return ()
    found: dict[tuple[str, str], Evidence] = {}
    for reading in mention.readings:
        vendor = reading.vendor or instruction.vendor
        family = reading.family if not mention.bare else (reading.family or instruction.family)
        if mention.bare:
            rows = searcher.by_number(number_of(reading.code), vendor, family)
        else:
            rows = searcher.exact(vendor or "", reading.code, family) if vendor else ()
        for row in rows:
            if row.fault_code is not None:
                found.setdefault((row.entry_id, str(row.fault_code)), row)
    return tuple(found.values())


def judge_code(instruction: Instruction, rows: Sequence[Evidence], searched: tuple[str, ...]) -> Finding:
    """Judge an exact look-up."""
    mention = instruction.mention
    if mention is None:
        raise ValueError("judge_code needs an instruction with a mention")
    label = mention.readings[0].code if not mention.bare else mention.raw.strip()

    def finding(status: Status, evidence: Sequence[Evidence] = (), candidates: Sequence[Evidence] = ()) -> Finding:
        return Finding(
            part_id=instruction.part_id, intent="alarm", text=instruction.text, status=status, label=label,
            vendor=instruction.vendor or mention.readings[0].vendor, family=instruction.family,
            evidence=tuple(evidence), candidates=tuple(candidates), searched=searched,
        )

    if not rows:
        return finding("unknown_code")
    known_vendor = instruction.vendor
    fits = [row for row in rows if _fits(row, known_vendor, instruction.family)]
    if mention.bare and known_vendor is None:
        return finding("ambiguous", candidates=rows)
    if not fits:
        # the code exists, but for another vendor or family than the machine's
        return finding("ambiguous", candidates=rows)
    if len({row.entry_id for row in fits}) > 1:
        return finding("ambiguous", candidates=fits)
    return finding("enough", evidence=fits[:1])


def _fits(row: Evidence, vendor: str | None, family: str | None) -> bool:
    code = row.fault_code
    return code is not None and vendor in (None, code.vendor) and family in (None, code.family)


def judge_search(
    instruction: Instruction, hits: Sequence[Evidence], alarms: Sequence[Evidence], searched: tuple[str, ...],
    relaxed: bool, on_topic: bool,
) -> Finding:
    """Judge a search by words: the best entry over the threshold, what stands close behind it, alarms to look for.

    Args:
        hits: entries of the kinds asked for, best rank first.
        alarms: alarm entries about the same words; named as codes to look for, never answered from.
        on_topic: a word of the trade stands in the question.
    """
    passing = sorted((h for h in hits if h.similarity >= MIN_SIMILARITY), key=lambda h: -h.similarity)
    best = next((h for h in hits if h.similarity >= MIN_SIMILARITY), None)
    status: Status = "enough" if best else ("nothing" if on_topic else "out_of_scope")
    near: list[Evidence] = []
    if best:
        near = [h for h in passing if h.entry_id != best.entry_id and h.similarity >= best.similarity - NEAR_MARGIN]
        near += [a for a in alarms if a.similarity >= max(MIN_SIMILARITY, best.similarity - NEAR_MARGIN)]
    return Finding(
        part_id=instruction.part_id, intent=instruction.intent, text=instruction.text, status=status,
        vendor=instruction.vendor, family=instruction.family, evidence=(best,) if best else (),
        near=tuple(near[:MAX_RELATED]), searched=searched, relaxed=relaxed,
    )
