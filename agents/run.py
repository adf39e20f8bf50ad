"""One run of the graph as a stream of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.plan import RulePlanner
from agents.reading import certain_words, read_question
from agents.state import Context, State

# Steps of one run; a part that relaxes takes ten.
RECURSION_LIMIT = 25


def run(state: State, context: Context) -> Iterator[dict[str, Any]]:
    """Run the graph; yields events as they happen.

    Events: `{"type": "first_words", "text"}`, `{"type": "step", "step", "seconds"}`, and last
    `{"type": "answer", "answer", "conversation", "steps"}`. First words come before LangGraph is imported (half a
    second in a cold process), and only under the rule planner, which is sure to see one part where they see one.

    Raises:
        Cancelled: `context.cancel` was set.
    """
    if isinstance(context.planner, RulePlanner) and (words := certain_words(read_question(state), context.searcher)):
        yield {"type": "first_words", "text": words}
    from agents.graph import graph  # noqa: PLC0415 - see above

    final: dict[str, Any] = {}
    seen = 0
    for final in graph().stream(
        state, context=context, stream_mode="values", config={"recursion_limit": RECURSION_LIMIT}
    ):
        for record in final.get("steps", [])[seen:]:
            yield {"type": "step", "step": record["step"], "seconds": record["seconds"]}
        seen = len(final.get("steps", []))
    yield {
        "type": "answer",
        "answer": final["answer"],
        "conversation": final["next_conversation"],
        "steps": final["steps"],
    }
