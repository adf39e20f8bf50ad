"""Bringing evidence for one part: exact code or parameter rows, else keywords and vectors."""

from __future__ import annotations

from collections.abc import Sequence

from agents.detect import Instruction
from agents.state import Conversation, Topic
from agents.wording import say
from retrieval.codes import number_of
from retrieval.families import vendor_title
from retrieval.records import CodeMention, EntryKind, Evidence, Language, Record
from retrieval.search import GENERIC, Searcher
from retrieval.withheld import WithheldRow, withheld_rows

RELAXED: tuple[EntryKind, ...] = ("guide", "procedure")
PASSAGES: tuple[EntryKind, ...] = ("passage",)
# An alarm this near to a question without a code has its own message in it, as pasted from a display.
PASTED = 0.9


class Brought(Record):
    """What a retrieval brought.

    `alarms` are entries to name as codes to look for, never to answer from; `pasted` those of any maker whose own words
    the question holds. `passages` are quoted from the shop's own documents, beside an entry or where there is none.
    `withheld` are rows on a code that has no other. `words` are the shop words that were looked for by their standard
    terms too, a line each.
    """

    hits: tuple[Evidence, ...] = ()
    alarms: tuple[Evidence, ...] = ()
    pasted: tuple[Evidence, ...] = ()
    passages: tuple[Evidence, ...] = ()
    withheld: tuple[WithheldRow, ...] = ()
    words: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


def bring(
    instruction: Instruction, searcher: Searcher, talk: Conversation, relaxed: bool, *, quotes: bool = True
) -> Brought:
    """Candidates for one part. A code or a named parameter is looked up exactly and nothing else is searched.

    `relaxed` widens the kinds: used once, when the first search found nothing. What is made for one maker is never
    handed out for another, nor where the maker is not known. Without `quotes` a code brings its rows alone.
    """
    if instruction.intent == "follow_up" and (topic := topic_of(instruction.mention, talk)) is not None:
        hit = Evidence(entry_id=topic.entry_id, similarity=1.0, matched_by=("exact",), fault_code=topic.fault_code)
        return Brought(hits=(hit,))
    if instruction.mention is not None:
        rows = rows_of_code(instruction, searcher)
        passages = passages_on_code(instruction, searcher, rows) if quotes else ()
        withheld = () if rows or passages else _withheld(instruction, searcher)
        return Brought(hits=rows, passages=passages, withheld=withheld)
    if instruction.parameters and instruction.intent == "parameter":
        found = (
            searcher.by_number(number_of(number), instruction.vendor, instruction.family, kind="parameter")
            for number in instruction.parameters
        )
        return Brought(hits=tuple(row for rows in found for row in rows))
    if not instruction.kinds:
        return Brought()
    kinds: tuple[EntryKind, ...] = instruction.kinds
    if relaxed:
        kinds = tuple(dict.fromkeys((*RELAXED, *instruction.kinds)))
    alarm: tuple[EntryKind, ...] = ("alarm",)
    whose = instruction.vendor or (None if "alarm" in kinds else GENERIC)
    hits = searcher.search(instruction.text, kinds=kinds, vendor=whose)
    alarms: tuple[Evidence, ...] = ()
    pasted: tuple[Evidence, ...] = ()
    if instruction.intent in ("symptom", "other"):
        likely = searcher.search(instruction.text, kinds=alarm, vendor=instruction.vendor, count=3)
        alarms = likely if instruction.vendor else ()
        pasted = tuple(hit for hit in likely if hit.similarity >= PASTED and not hit.off_part)
    passages = searcher.search(instruction.text, kinds=PASSAGES, vendor=instruction.vendor, count=3)
    words = tuple(searcher.expansion(instruction.text).shown())
    return Brought(
        hits=hits, alarms=alarms, pasted=pasted, passages=passages, words=words, degraded=searcher.degraded
    )


def topic_of(mention: CodeMention | None, talk: Conversation) -> Topic | None:
    """The topic that a follow-up goes on with: that of the code it names, else the current one."""
    if mention is None:
        return talk.topic
    numbers = {number_of(reading.code) for reading in mention.readings}
    fits = (t for t in reversed(talk.topics) if t.fault_code is not None and number_of(t.fault_code.code) in numbers)
    return next(fits, None)


def rows_of_code(instruction: Instruction, searcher: Searcher) -> tuple[Evidence, ...]:
    """All rows that the mention may mean, in the order of its readings; a bare number is narrowed by the machine."""
    mention = instruction.mention
    if mention is None:
        return ()
    found: dict[tuple[str, str], Evidence] = {}
    for reading in mention.readings:
        vendor = reading.vendor or instruction.vendor
        if mention.bare:
            family = reading.family or instruction.family
            rows = searcher.by_number(number_of(reading.code), vendor, family)
        else:
            rows = searcher.exact(vendor, reading.code, reading.family) if vendor else ()
        for row in rows:
            found.setdefault((row.entry_id, str(row.fault_code)), row)
    return tuple(found.values())


def _withheld(instruction: Instruction, searcher: Searcher) -> tuple[WithheldRow, ...]:
    mention = instruction.mention
    if mention is None:
        return ()
    return withheld_rows(searcher.store, mention.readings, instruction.vendor, bare=mention.bare)


def passages_on_code(
    instruction: Instruction, searcher: Searcher, rows: Sequence[Evidence] = ()
) -> tuple[Evidence, ...]:
    """Passages of the shop's documents that hold the very code: work orders beside its entry, or all there is on it."""
    mention = instruction.mention
    if mention is None:
        return ()
    key = next((row.fault_code for row in rows if row.fault_code is not None), None)
    code = key.code if key else mention.readings[0].code
    vendor = instruction.vendor or (key.vendor if key else mention.readings[0].vendor)
    if vendor is None:
        return ()
    return searcher.holding(code, kinds=PASSAGES, vendor=vendor, count=2)


def code_label(instruction: Instruction) -> str:
    """The code as an answer names it: canonical where the spelling settles it, else the number as written."""
    mention = instruction.mention
    if mention is None:
        return ", ".join(instruction.parameters)
    return mention.raw.strip() if mention.bare else mention.readings[0].code


def searched(instruction: Instruction, searcher: Searcher, language: Language) -> str:
    """One line for a person: what was looked for, and where."""
    vendor = instruction.vendor or (instruction.mention.readings[0].vendor if instruction.mention else None)
    codes = searcher.store.counts()["codes"]
    if vendor:
        scope = say("scope_vendor", language, vendor=vendor_title(vendor, language), codes=codes)
    else:
        scope = say("scope_all", language, codes=codes)
    label = code_label(instruction)
    if instruction.mention is not None:
        key = "searched_number" if instruction.mention.bare else "searched_code"
        return say(key, language, label=label, scope=scope)
    if instruction.parameters and instruction.intent == "parameter":
        return say("searched_parameter", language, label=label, scope=scope)
    kinds = ("、" if language == "zh" else ", ").join(say(f"kind_{kind}", language) for kind in instruction.kinds)
    return say("searched_words", language, kinds=kinds or "-")
