"""Reading a question: language, machine, codes, the safety screen; and what can be said of it at once.

No LangGraph here: the first words of an exact code must not wait for it to import.
"""

from __future__ import annotations

import re
from typing import Literal, cast

from agents.detect import detect
from agents.evidence import bring
from agents.fixed import asks_for_report, says_fixed
from agents.intents import classify
from agents.judge import judge_part
from agents.machines import machine_in
from agents.plan import RulePlanner
from agents.render import first_words
from agents.safety import Screen, screen
from agents.state import Conversation, State
from retrieval.codes import find_codes, fold, vendors_in
from retrieval.families import vendor_title
from retrieval.notes import same_machine
from retrieval.records import Language, Record
from retrieval.search import Searcher
from retrieval.tokens import has_chinese

_BARE = re.compile(
    r"\s*(?:what\s+about|how\s+about|and|now|then|now\s+it\s+is|那|那么|现在|现在是|又是|还有)?\s*#?(\d{1,6})\s*(?:呢|了)?\s*[?？.。!！]*\s*",
    re.IGNORECASE,
)
# A longer reply to "which controller?" is a new question that happens to name one.
LONGEST_REPLY = 60


Act = Literal["", "fixed", "report"]


class Reading(Record):
    """What a question says before anything is looked up. `chosen` is the entry picked among candidates asked about.

    `act` is what is done without looking anything up: keep a repair, or write the handover.
    """

    question: str
    language: Language
    vendor: str | None
    family: str | None
    machine: str
    chosen: str | None
    screen: Screen
    codes: tuple[str, ...]
    act: Act = ""


def read_question(state: State) -> Reading:
    """Read the question of a run, taking up an open question back where the reply answers one."""
    question = state["question"]
    verdict = screen(question)
    talk = Conversation.model_validate(state.get("conversation") or {})
    language = cast(Language, state.get("language") or ("zh" if has_chinese(question) else talk.language or "en"))
    machine = state.get("machine") or machine_in(question) or talk.machine
    talk = _on_machine(talk, machine)
    vendor, family = state.get("vendor") or talk.vendor, state.get("family") or talk.family
    chosen = None
    act = "" if verdict.verdict == "danger" else _act(question, talk)
    if verdict.verdict != "danger":
        question, vendor, family, chosen = _take_up(talk, question, vendor, family)
    vendor, family = _machine_named(question, vendor, family)
    question = _number_as_code(question, language)
    codes = tuple(mention.raw for mention in find_codes(question, vendor=vendor, family=family))
    return Reading(
        question=question,
        language=language,
        vendor=vendor,
        family=family,
        machine=machine,
        chosen=chosen,
        screen=verdict,
        codes=codes,
        act=act,
    )


def _on_machine(talk: Conversation, machine: str) -> Conversation:
    """The conversation on the machine that is spoken of now: another one has a control of its own."""
    if not talk.machine or not machine or same_machine(talk.machine, machine):
        return talk
    before = next((t for t in reversed(talk.topics) if same_machine(t.machine, machine)), None)
    known = {"vendor": before.vendor if before else None, "family": before.family if before else None}
    return talk.model_copy(update={**known, "machine": machine, "pending_question": "", "pending_candidates": ()})


def _act(question: str, talk: Conversation) -> Act:
    if talk.topic is None:
        return ""
    if asks_for_report(question):
        return "report"
    answers = talk.pending_repair and not find_codes(question) and not question.rstrip().endswith(("?", "？"))
    return "fixed" if says_fixed(question) or answers else ""


def _take_up(
    talk: Conversation, reply: str, vendor: str | None, family: str | None
) -> tuple[str, str | None, str | None, str | None]:
    """A short reply to "which controller?" takes up the open question: by number, or by the controller's name."""
    if not talk.pending_candidates or find_codes(reply):
        return reply, vendor, family, None
    text = reply.strip().rstrip(".。)）")
    named = vendors_in(reply) or _called(talk, text)
    if text.isdigit():
        if not 1 <= int(text) <= len(talk.pending_candidates):
            return talk.pending_question, vendor, family, None  # no such choice: ask again
        code, entry_id = talk.pending_candidates[int(text) - 1]
    elif named and len(reply) <= LONGEST_REPLY:
        fits = [
            (code, entry_id)
            for code, entry_id in talk.pending_candidates
            if code.vendor == named[0][0] and named[0][1] in (None, code.family)
        ]
        if len({entry_id for _, entry_id in fits}) != 1:
            return talk.pending_question, named[0][0], named[0][1], None
        code, entry_id = fits[0]
    else:
        return reply, vendor, family, None
    return talk.pending_question, code.vendor, code.family, entry_id


def _called(talk: Conversation, reply: str) -> tuple[tuple[str, str | None], ...]:
    """The vendor among the candidates that the reply is the very name of: alone, "Delta" means that maker."""
    said = reply.casefold()
    titles: dict[str, str] = {}
    for code, _ in talk.pending_candidates:
        titles |= {vendor_title(code.vendor, language).casefold(): code.vendor for language in ("en", "zh")}
        titles[code.vendor] = code.vendor
    return ((titles[said], None),) if said in titles else ()


def _machine_named(question: str, vendor: str | None, family: str | None) -> tuple[str | None, str | None]:
    """The machine as the question names it, else as known before. Two makers in one question settle nothing."""
    named = vendors_in(question)
    if len({v for v, _ in named}) != 1:
        return vendor, family
    families = [f for _, f in named if f]
    if len(families) == 1:
        return named[0][0], families[0]
    return named[0][0], family if named[0][0] == vendor else None


def _number_as_code(question: str, language: Language) -> str:
    """A question that is only a number, or "what about 411", asks for an alarm: nothing else goes by a number here."""
    bare = _BARE.fullmatch(fold(question)[0])
    if bare is None:
        return question
    return f"报警 {bare.group(1)}" if language == "zh" else f"alarm {bare.group(1)}"


def certain_words(reading: Reading, searcher: Searcher) -> str:
    """The row's own facts where the whole question is one code that is certain; empty otherwise."""
    if reading.screen.verdict == "danger" or len(reading.codes) != 1:
        return ""
    parts = RulePlanner().plan(reading.question, reading.vendor, reading.family).parts
    if len(parts) != 1 or parts[0].mention is None or classify(reading.question, has_code=True) != "alarm":
        return ""
    instruction = detect(parts[0], "alarm", reading.question, reading.vendor, reading.family)
    brought = bring(instruction, searcher, Conversation(), relaxed=False, quotes=False)
    finding = judge_part(instruction, brought, (), relaxed=False, chosen=reading.chosen)
    entry = searcher.store.entry(finding.evidence[0].entry_id) if finding.status == "enough" else None
    return first_words(entry, finding.evidence[0].fault_code, reading.language) if entry is not None else ""
