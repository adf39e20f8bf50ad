"""The threshold of the search, measured with the bundled embedder on questions written without sight of the phrases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.detect import Instruction
from agents.evidence import RELAXED, bring
from agents.intents import classify
from agents.judge import Finding, judge_part
from agents.state import Conversation
from retrieval.search import Searcher

QUESTIONS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "search_questions.jsonl").read_text(encoding="utf-8").splitlines()
]


def found(searcher: Searcher, text: str) -> Finding:
    """What the judge makes of a question without a code."""
    intent = classify(text, has_code=False) or "other"
    intent = intent if intent in ("symptom", "procedure", "other") else "other"
    instruction = Instruction(part_id="q1", intent=intent, text=text, kinds=RELAXED)
    brought = bring(instruction, searcher, Conversation(), relaxed=True)
    return judge_part(instruction, brought, (), relaxed=True, chosen=None)


@pytest.mark.integration
def test_covered_questions_find_their_guide_and_others_are_turned_away(real_searcher: Searcher) -> None:
    counts: dict[str, list[int]] = {}

    def count(name: str, hit: bool) -> None:
        counts.setdefault(name, [0, 0])
        counts[name][0] += hit
        counts[name][1] += 1

    for question in QUESTIONS:
        group, language = question["group"], question["language"]
        if group not in ("guide", "uncovered", "off_topic"):
            continue
        finding = found(real_searcher, question["text"])
        answered = finding.status == "enough"
        if group == "guide":
            first = finding.evidence[0].entry_id if answered else ""
            named = [first, *(e.entry_id for e in finding.near)]
            count(f"guide answered {language}", answered)
            right = {question["gold"], *question.get("also", ())}
            count(f"guide right {language}", first in right)
            count(f"guide named {language}", bool(right & {*named}))
            count(f"guide wrong and not named {language}", answered and not right & {*named})
        else:
            count(f"{group} turned away {language}", not answered)
            if answered:
                print(f"answered though {group}: {question['text']} → {finding.evidence[0].entry_id}")
    print("\n" + "\n".join(f"{name}: {hits} of {total}" for name, (hits, total) in sorted(counts.items())))
    for language in ("en", "zh"):
        assert counts[f"guide right {language}"][0] >= 31, "of 56 and 62"
        assert counts[f"guide named {language}"][0] >= 37, "of 56 and 62"
        assert counts[f"guide wrong and not named {language}"][0] <= 8, "of 56 and 62"
        assert counts[f"uncovered turned away {language}"][0] >= 14, "of 22 and 16"
        assert counts[f"off_topic turned away {language}"][0] >= 17, "of 20"
