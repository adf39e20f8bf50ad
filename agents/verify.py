"""Verification: every line against the one item it cites, before a person sees it.

A line that reads exactly as its item renders is grounded by construction (point mode). Any other text (prose, a lead
sentence) must be carried by the cited item: no code or number that the item lacks, the same polarity, and nearly all
of its words. What fails is removed; what an answer must not lose (stop or run, safety, steps) is put back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from agents.render import PINNED, DraftLine, render, section_ids
from agents.safety import screen
from retrieval.codes import find_codes, fold, number_of
from retrieval.records import KnowledgeEntry, Language, Record
from retrieval.tokens import has_chinese, tokenize

# Share of a free line's words that its cited item must hold. Stop words do not count.
MIN_COVERED = 0.85
# Share of the most words that speak for one cause from which on another is spoken of about equally.
MUCH = 0.75
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# What the asker found in order; which words it covers is beyond rules, so no cause is moved then.
_FOUND_GOOD = re.compile(
    r"\b(?:fine|ok|okay|good|normal|in\s+order|no\s+(?:fault|problem|damage|voltage\s+drop)|works|replaced)\b"
    r"|正常|没问题|没有问题|良好|没坏|换过|换了新|已排除|排除了",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|neither|nor|without|cannot|can't|don't|doesn't|isn't|aren't|won't|needn't|unnecessary|avoid|skip|ignore)\b"
    r"|不|没|无|未|勿|别(?!的)|莫|免|非(?!常)|禁|否则|忽略|跳过",
    re.IGNORECASE,
)


class Removed(Record):
    """A line that verification took out, and why."""

    line: DraftLine
    reason: str


class Verified(Record):
    """What is left of a draft. `restored` lists item ids that were missing and put back."""

    lines: tuple[DraftLine, ...]
    removed: tuple[Removed, ...] = ()
    restored: tuple[str, ...] = ()
    lead: str = ""
    lead_rejected: str = ""


def verify_lines(
    lines: Sequence[DraftLine], entries: Mapping[str, KnowledgeEntry], language: Language, must_have: bool = True
) -> Verified:
    """Check a draft against the entries that it may speak from.

    Args:
        lines: the draft.
        entries: entry id → entry: the evidence of this part, nothing else.
        language: of the answer.
        must_have: put back pinned sections of the first entry that the draft lacks.
    """
    kept: list[DraftLine] = []
    removed: list[Removed] = []
    for line in lines:
        if reason := _fault(line, entries, language):
            removed.append(Removed(line=line, reason=reason))
        elif any(line.item_id == k.item_id and line.entry_id == k.entry_id for k in kept):
            removed.append(Removed(line=line, reason="says an item a second time"))
        else:
            kept.append(line)
    restored: list[str] = []
    if must_have and entries:
        kept, restored = _with_pinned(kept, next(iter(entries.values())), language)
    return Verified(lines=tuple(kept), removed=tuple(removed), restored=tuple(restored))


def _fault(line: DraftLine, entries: Mapping[str, KnowledgeEntry], language: Language) -> str:
    entry = entries.get(line.entry_id)
    if entry is None:
        return f"cites {line.entry_id}, which is not evidence for this part"
    canonical = render(entry, line.item_id, language)
    if canonical is None:
        return f"cites item {line.item_id}, which {line.entry_id} does not have"
    if line.section not in _sections_of(entry, line.item_id):
        return f"item {line.item_id} does not belong in section {line.section}"
    if line.text == canonical:
        return ""
    item = entry.item(line.item_id)
    if item is None or item.kind in ("safety", "step", "condition"):
        return f"item {line.item_id} must be shown in its own words"
    if reason := carried_by(line.text, [canonical], allowed_codes=[key.code for key in entry.keys]):
        return reason
    if screen(line.text).verdict == "danger":
        return "tells how to defeat a safeguard"
    return ""


def _sections_of(entry: KnowledgeEntry, item_id: str) -> set[str]:
    found = {name for name, ids in section_ids(entry) if item_id in ids}
    item = entry.item(item_id)
    if item is not None and item.kind in ("check", "step"):
        found.add("next_check")
    return found


def carried_by(text: str, items: Sequence[str], allowed_codes: Iterable[str] = ()) -> str:
    """Why `text` is not carried by `items` (canonical texts of what it cites); empty if it is.

    Checks codes, numbers, polarity and words, in that order.
    """
    together = " ".join(items)
    allowed = {number_of(code) for code in allowed_codes}
    known_codes = {r.code for m in find_codes(together) for r in m.readings}
    for mention in find_codes(text):
        if not any(r.code in known_codes or number_of(r.code) in allowed for r in mention.readings):
            return f"names code {mention.raw!r}, which the cited item lacks"
    numbers = set(_NUMBER.findall(fold(together)[0]))
    for number in _NUMBER.findall(fold(text)[0]):
        if number not in numbers and number.lstrip("0") not in allowed:
            return f"has the number {number}, which the cited item lacks"
    if (len(_NEGATION.findall(text)) > 0) != (len(_NEGATION.findall(together)) > 0) or (
        len(_NEGATION.findall(text)) != len(_NEGATION.findall(together)) and len(items) == 1
    ):
        return "denies what the cited item says, or the reverse"
    words = tokenize(text)
    if not words:
        return "says nothing"
    held = set(tokenize(together))
    share = sum(1 for word in words if word in held) / len(words)
    if share < MIN_COVERED:
        missing = [word for word in dict.fromkeys(words) if word not in held]
        return f"only {share:.0%} of its words stand in the cited item (missing: {', '.join(missing[:5])})"
    return ""


def verify_lead(lead: str, entry: KnowledgeEntry, language: Language) -> str:
    """Why a lead sentence may not stand; empty if it may.

    It must be carried, sentence by sentence, by one single item of the entry, so that it cannot join two facts into a
    third. Words of the question do not count as evidence.
    """
    if screen(lead).verdict != "clear":
        return "speaks of defeating a safeguard"
    candidates = [render(entry, i, language) or "" for _, ids in section_ids(entry) for i in ids]
    codes = [key.code for key in entry.keys]
    for sentence in re.split(r"(?<=[.!?。！？])\s*", lead):
        if sentence.strip():
            reasons = [carried_by(sentence, [text], codes) for text in candidates]
            if all(reasons):
                return f"no single item carries {sentence.strip()!r}: {min(reasons, key=len)}"
    return ""


def order_kept(
    entry: KnowledgeEntry, own: Sequence[str], proposed: Sequence[str], question: str
) -> tuple[list[str], str]:
    """The order of causes that may stand, and a note on what became of the proposal.

    Causes that the question says more of come first; the proposal decides between those it says about equally much
    of, and only if that is something. All others keep the entry's order (likeliest first). Ids that the entry lacks
    are dropped.
    """
    foreign = [i for i in proposed if i not in own]
    wish = [i for i in dict.fromkeys(proposed) if i in own]
    support = support_of(entry, own, question)
    tiers = _tiers(support)
    by_words = sorted(own, key=lambda i: -support[i])
    order = by_words
    if wish:
        wish += [i for i in by_words if i not in wish]
        order = sorted(by_words, key=lambda i: (-tiers[i], wish.index(i) if tiers[i] else own.index(i)))
    notes = [f"unknown ids dropped: {', '.join(foreign)}"] if foreign else []
    if by_words != list(own):
        notes.append("causes that the question speaks of come first")
    if order != by_words:
        notes.append("order among equals from the writer")
    return order, "; ".join(notes)


def open_to_order(entry: KnowledgeEntry, own: Sequence[str], question: str) -> bool:
    """True if a writer could change anything: of two causes the question says about equally much, and something."""
    spoken_of = [tier for tier in _tiers(support_of(entry, own, question)).values() if tier]
    return len(spoken_of) != len(set(spoken_of))


def _tiers(support: Mapping[str, int]) -> dict[str, int]:
    """2 for what the question says most of, 1 for what it says less of, 0 for what it is silent about."""
    most = max(support.values(), default=0)
    return {i: 2 if count and count >= MUCH * most else 1 if count else 0 for i, count in support.items()}


def support_of(entry: KnowledgeEntry, own: Sequence[str], question: str) -> dict[str, int]:
    """How many words of the question speak for each item: those that are not in every question about the entry."""
    if _FOUND_GOOD.search(question):
        return dict.fromkeys(own, 0)  # "the contactor pulls in fine" speaks against that cause, not for it
    language: Language = "zh" if has_chinese(question) else "en"
    asked = set(tokenize(question)) - _common(entry, language)
    return {i: len(asked & set(tokenize(_text(entry, i, language)))) for i in own}


def _text(entry: KnowledgeEntry, item_id: str, language: Language) -> str:
    item = entry.item(item_id)
    return item.text.get(language) if item else ""


def _common(entry: KnowledgeEntry, language: Language) -> set[str]:
    """Words of the title and codes: in every question about the entry, so they speak for no cause.

    Only in the question's language: an English question must not load the Chinese dictionary (half a second).
    """
    words = set(tokenize(entry.title.get(language)))
    return words | {t for key in entry.keys for t in tokenize(key.code)}


def _with_pinned(kept: list[DraftLine], entry: KnowledgeEntry, language: Language) -> tuple[list[DraftLine], list[str]]:
    """Put back what must not be lost, at its place in the layout."""
    layout = section_ids(entry)
    present = {(line.entry_id, line.item_id) for line in kept}
    if any(line.section == "next_check" for line in kept):
        layout = tuple((name, ids) for name, ids in layout if name == "safety")
    restored: list[str] = []
    for name, ids in layout:
        if name not in PINNED:
            continue
        for item_id in ids:
            text = render(entry, item_id, language)
            if (entry.id, item_id) not in present and text is not None:
                kept.append(DraftLine(section=name, entry_id=entry.id, item_id=item_id, text=text))
                restored.append(item_id)
    if restored:
        rank = {item_id: n for n, (_, item_id) in enumerate((s, i) for s, ids in section_ids(entry) for i in ids)}
        sections = {name: n for n, (name, _) in enumerate(section_ids(entry))}
        kept.sort(
            key=lambda line: (
                line.entry_id != entry.id,
                sections.get(line.section, 99),
                rank.get(line.item_id, 99) if line.section in PINNED else 0,
            )
        )
    return kept, restored
