"""The real base over 200 generated questions: nothing stands in an answer that its evidence lacks."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.render import render, section_ids
from agents.wording import both
from models.bases import load_registry, local_path
from retrieval.base import starter_folder
from retrieval.codes import find_codes, spellings
from retrieval.embed import HashingEmbedder
from retrieval.records import Answer, KnowledgeEntry, Language
from retrieval.store import KnowledgeStore
from retrieval.tokens import has_chinese, tokenize
from serve.runtime import Runtime
from serve.settings import Settings

_FRAMES: dict[Language, tuple[str, ...]] = {
    "en": (
        "{vendor} shows {code}, {hint}",
        "{code} on our {vendor} after lunch. {hint}. What now?",
        "We get {code} on the {vendor}; {hint}",
        "{vendor} {code}: {hint}, what should I check first?",
    ),
    "zh": (
        "{vendor} 出现 {code}，{hint}",
        "{vendor}机床报警{code}，{hint}，怎么办？",
        "{code}，{vendor}，{hint}，先查什么？",
        "昨天换班后{vendor}报{code}。{hint}。",
    ),
}
_VENDOR = {
    **{"fanuc": "FANUC", "siemens": "SINUMERIK", "haas": "Haas", "grbl": "Grbl", "linuxcnc": "LinuxCNC"},
    **{"mitsubishi": "Mitsubishi M70", "heidenhain": "Heidenhain TNC"},
}


def generated_questions(entries: list[KnowledgeEntry], count: int) -> Iterator[tuple[str, KnowledgeEntry, Language]]:
    """Questions about alarms: a spelling of the code, and words of one of its causes, shuffled, or of another entry's.

    The hint from another entry is bait: a writer that copies from the question would carry it into the answer.
    """
    rng = random.Random(20261130)
    alarms = [e for e in entries if e.kind == "alarm" and e.vendor != "linuxcnc"]
    for n in range(count):
        entry = alarms[n % len(alarms)]
        language: Language = "zh" if n % 2 else "en"
        donor = entry if n % 3 else rng.choice(alarms)
        # words of two causes: what the question says of both is equal, so the writer has something to decide
        causes = donor.of_kind("cause")
        pair = rng.sample(causes, 2) if len(causes) > 1 else list(causes)
        words = [w for c in pair for w in list(dict.fromkeys(tokenize(c.text.get(language))))[:4]]
        rng.shuffle(words)
        hint = (" " if language == "en" else "，").join(words) or "it stopped"
        key = entry.keys[0]
        code = rng.choice(spellings(key.code, entry.vendor, key.family))
        frame = rng.choice(_FRAMES[language])
        yield frame.format(vendor=_VENDOR[entry.vendor], code=code, hint=hint), entry, language


def faults_of(answer: Answer, store: KnowledgeStore) -> list[str]:
    """Everything in an answer that its evidence lacks."""
    found: list[str] = []
    entries = {c.entry_id: store.entry(c.entry_id) for c in answer.citations}
    allowed: list[str] = []
    for section in answer.sections:
        for item in section.items:
            entry = entries.get(item.entry_id)
            if entry is None:
                found.append(f"cites {item.entry_id}, not among the citations")
                continue
            canonical = render(entry, item.item_id, answer.language)
            allowed.append(item.text)
            if section.name != "related" and item.text != canonical:
                found.append(f"{item.entry_id}#{item.item_id} reads {item.text!r}")
    known = {k.code for e in entries.values() if e for k in e.keys}
    known |= {r.code for text in allowed for m in find_codes(text) for r in m.readings}
    body = answer.text.split(f"## {both('sources')[answer.language == 'zh']}")[0]
    # a code that was asked for and is not in the base is named in its refusal, and only there
    refused = both("not_answered")[answer.language == "zh"]
    body = re.sub(rf"(?m)^## {refused}: .*(?:\n.+)*", "", body)
    for mention in find_codes(body):
        own = any(mention.raw in e.model_dump_json() for e in entries.values() if e)  # an entry may name another alarm
        if not mention.bare and not own and not any(r.code in known for r in mention.readings):
            found.append(f"names {mention.raw!r}")
    return found


@pytest.mark.slow
@pytest.mark.integration
def test_two_hundred_answers_of_the_real_base_hold_only_their_evidence(home: Path, base_file: Path) -> None:
    target = local_path(home, load_registry().get())
    target.parent.mkdir(parents=True)
    target.symlink_to(base_file)
    runtime = Runtime(Settings(home=home, writer_timeout_s=60), embedder=HashingEmbedder())
    asked = 0
    orders = 0
    try:
        for question, entry, _ in generated_questions(list(runtime.store.entries()), 200):
            event = runtime.answer(question)
            answer = Answer.model_validate(event["answer"])
            asked += 1
            assert answer.language == ("zh" if has_chinese(question) else "en"), question
            if answer.kind != "answer":
                # a spelling that is a bare number, or one that two families share, is asked back or refused by name
                assert answer.kind in ("clarify", "refuse"), question
                continue
            assert not answer.degraded, (question, answer.degraded)
            assert entry.id in {c.entry_id for c in answer.citations}, question
            assert faults_of(answer, runtime.store) == [], question
            write = next(step for step in event["steps"] if step["step"] == "write")
            orders += write["tokens_out"] > 0
            shown = {(i.entry_id, i.item_id) for s in answer.sections for i in s.items}
            assert {(entry.id, i) for _, ids in section_ids(entry) for i in ids} <= shown, question
    finally:
        runtime.close()
    assert asked == 200
    assert orders > 60, "the model must really have been asked"


def test_the_check_sees_a_foreign_line(store: KnowledgeStore, home: Path) -> None:
    runtime = Runtime(Settings(home=home, writer="rules"), embedder=HashingEmbedder())
    answer = Answer.model_validate(runtime.answer("FANUC SV0401")["answer"])
    assert faults_of(answer, store) == []
    section = answer.sections[3]
    lie = section.items[0].model_copy(update={"text": "Replace the spindle."})
    bad = section.model_copy(update={"items": (lie, *section.items[1:])})
    forged = answer.model_copy(update={"sections": (*answer.sections[:3], bad), "text": "see SV9999\n" + answer.text})
    assert len(faults_of(forged, store)) == 2
    assert starter_folder().is_dir()
