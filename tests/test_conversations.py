"""Conversations from `data/conversations.yaml`, turn by turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.run import run
from agents.state import MAX_TOPICS, Context, Conversation, State
from agents.trace import new_id
from retrieval.records import Answer
from retrieval.search import Searcher

CONVERSATIONS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "conversations.yaml").read_text(encoding="utf-8")
)


def turn(searcher: Searcher, question: str, talk: Conversation) -> tuple[Answer, Conversation]:
    state: State = {
        "question": question,
        "trace_id": new_id(),
        "person": "Li Wei",
        "conversation": talk.model_dump(mode="json"),
    }
    last = list(run(state, Context(searcher=searcher)))[-1]
    return Answer.model_validate(last["answer"]), Conversation.model_validate(last["conversation"])


def came_back(answer: Answer) -> str:
    """What a turn came to, in the words of the table."""
    names = [section.name for section in answer.sections]
    if answer.intent == "report":
        kept = "report" if "report" in names else "fixed"
        return {"answer": kept, "clarify": "asks"}.get(answer.kind, answer.kind)
    if answer.kind != "answer":
        return answer.kind
    return f"{'next' if 'next_check' in names else 'answer'} {answer.citations[0].entry_id}"


@pytest.mark.integration
@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda c: str(c["name"]))
def test_a_conversation(real_searcher: Searcher, conversation: dict[str, Any]) -> None:
    talk = Conversation()
    for said, wanted, *marks in conversation["turns"]:
        answer, talk = turn(real_searcher, said, talk)
        assert not wanted or came_back(answer) == wanted, f"{said}: {came_back(answer)}\n{answer.text[:300]}"
        for mark in marks:
            held = mark[1:].lower() in answer.text.lower()
            assert held is (mark[0] == "+"), f"{said}: {mark}\n{answer.text[:1200]}"
        if answer.kind == "answer" and answer.intent != "report":
            assert answer.safety, f"{said}: what is for safety comes with every turn"


def test_there_are_forty_in_both_languages() -> None:
    chinese = sum(any("\u4e00" <= c <= "\u9fff" for c in str(one["name"])) for one in CONVERSATIONS)
    assert len(CONVERSATIONS) >= 40 and chinese >= 12


def test_a_long_conversation_stays_small(fake_searcher: Searcher) -> None:
    talk = Conversation()
    sizes = []
    codes = ("FANUC SV0401", "Haas alarm 103", "FANUC SV0411", "grbl ALARM:1", "Haas alarm 102", "FANUC SV0436")
    for n in range(120):
        said = f"lathe {n % 13} {codes[n % 6]}" if n % 3 == 0 else "checked that for a long while, still there " * 9
        _, talk = turn(fake_searcher, said, talk)
        sizes.append(len(json.dumps(talk.model_dump(mode="json"))))
    assert len(talk.topics) <= MAX_TOPICS
    assert max(sizes[60:]) <= 1.2 * max(sizes[:60]) < 40_000
