"""Verification against a writer that lies, in both languages: every lie is caught or removed."""

from __future__ import annotations

import pytest

from agents.render import DraftLine, render, section_ids
from agents.verify import carried_by, open_to_order, order_kept, verify_lead, verify_lines
from agents.write import draft_entry
from retrieval.records import KnowledgeEntry, Language

_ENTRY = {
    "id": "fanuc/sv0401",
    "kind": "alarm",
    "vendor": "fanuc",
    "keys": [{"family": "30i", "code": "SV0401"}],
    "title": {"en": "Servo ready signal off", "zh": "伺服就绪信号断开"},
    "meaning": {
        "en": "The amplifier withdrew its ready signal while the control asked for it.",
        "zh": "系统要求就绪时，放大器撤回了就绪信号。",
    },
    "stop_or_run": "stop_now",
    "reset": "clear_cause_first",
    "items": [
        {
            "id": "s1",
            "kind": "safety",
            "text": {
                "en": "Lock out the main switch before opening the cabinet.",
                "zh": "打开电柜前断开总开关并上锁。",
            },
        },
        {
            "id": "c1",
            "kind": "cause",
            "sources": ["a"],
            "text": {"en": "The emergency stop chain is open.", "zh": "急停回路断开。"},
        },
        {
            "id": "c2",
            "kind": "cause",
            "sources": ["a"],
            "text": {"en": "The main contactor does not pull in.", "zh": "主接触器不吸合。"},
        },
        {
            "id": "c3",
            "kind": "cause",
            "sources": ["a"],
            "text": {"en": "The amplifier fan stopped and it overheated.", "zh": "放大器风扇停转导致过热。"},
        },
        {
            "id": "k1",
            "kind": "check",
            "sources": ["a"],
            "for_causes": ["c1"],
            "text": {"en": "Measure the 24 V supply at connector CX3.", "zh": "测量 CX3 插头处的 24 V 电源。"},
            "expect": {"en": "22 to 26 V", "zh": "22 至 26 V"},
        },
        {
            "id": "a1",
            "kind": "action",
            "sources": ["a"],
            "text": {
                "en": "Do not bridge the chain; restore the open contact.",
                "zh": "不要短接回路；恢复断开的触点。",
            },
        },
        {
            "id": "p1",
            "kind": "prevention",
            "text": {"en": "Clean the cabinet filter every month.", "zh": "每月清洁电柜过滤网。"},
        },
    ],
    "sources": [{"id": "a", "title": "t", "address": "x", "place": "p", "publisher": "q", "read_on": "2026-11-30"}],
}
_OTHER = {
    **_ENTRY,
    "id": "fanuc/sv0436",
    "keys": [{"family": "30i", "code": "SV0436"}],
    "title": {"en": "Soft thermal overload", "zh": "软件过热"},
    "items": [
        {
            "id": "c1",
            "kind": "cause",
            "sources": ["a"],
            "text": {"en": "The axis is mechanically stiff or blocked.", "zh": "轴机械卡滞或堵转。"},
        },
        {
            "id": "s9",
            "kind": "safety",
            "text": {"en": "Keep hands away from the ball screw.", "zh": "手不要靠近丝杠。"},
        },
    ],
}
ENTRY, OTHER = KnowledgeEntry.model_validate(_ENTRY), KnowledgeEntry.model_validate(_OTHER)
ENTRIES = {ENTRY.id: ENTRY}
LANGUAGES: tuple[Language, Language] = ("en", "zh")


def honest(language: Language) -> tuple[DraftLine, ...]:
    """All lines of the entry as a truthful writer puts them."""
    return tuple(
        DraftLine(section=name, entry_id=ENTRY.id, item_id=i, text=render(ENTRY, i, language) or "")
        for name, ids in section_ids(ENTRY)
        for i in ids
    )


def line(section: str, item_id: str, text: str, entry_id: str = ENTRY.id) -> DraftLine:
    """One line of a draft."""
    return DraftLine(section=section, entry_id=entry_id, item_id=item_id, text=text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_honest_draft_passes_whole(language: Language) -> None:
    checked = verify_lines(honest(language), ENTRIES, language)
    assert checked.lines == honest(language)
    assert not checked.removed and not checked.restored


LIES: dict[str, tuple[str, str, str, str, str]] = {
    # name: section, item, English lie, Chinese lie, part of the reason
    "swapped number": (
        "diagnosis",
        "k1",
        "Measure the 48 V supply at connector CX3. (expect: 22 to 26 V)",
        "测量 CX3 插头处的 48 V 电源。（应为: 22 至 26 V）",
        "number",
    ),
    "shifted range": (
        "diagnosis",
        "k1",
        "Measure the 24 V supply at connector CX3. (expect: 12 to 26 V)",
        "测量 CX3 插头处的 24 V 电源。（应为: 12 至 26 V）",
        "number",
    ),
    "negation added": ("diagnosis", "c1", "The emergency stop chain is not open.", "急停回路没有断开。", "denies"),
    "negation dropped": (
        "action",
        "a1",
        "Bridge the chain; restore the open contact.",
        "短接回路；恢复断开的触点。",
        "denies",
    ),
    "double negation": (
        "diagnosis",
        "c2",
        "The main contactor does not never pull in.",
        "主接触器不是不吸合。",
        "denies",
    ),
    "another entry's cause": (
        "diagnosis",
        "c1",
        "The axis is mechanically stiff or blocked.",
        "轴机械卡滞或堵转。",
        "words",
    ),
    "two items mixed": (
        "diagnosis",
        "c1",
        "The emergency stop chain is open and the amplifier fan stopped.",
        "急停回路断开，放大器风扇停转导致过热。",
        "words",
    ),
    "foreign code": (
        "diagnosis",
        "c1",
        "The emergency stop chain is open, see SV0436.",
        "急停回路断开，见 SV0436。",
        "code",
    ),
    "invented part": (
        "diagnosis",
        "c2",
        "The main contactor does not pull in because relay KA7 burnt out.",
        "主接触器不吸合，因为继电器 KA7 烧毁。",
        "",
    ),
    "softened safety": (
        "safety",
        "s1",
        "Lock out the main switch before opening the cabinet if convenient.",
        "方便时打开电柜前断开总开关并上锁。",
        "own words",
    ),
    "empty text": ("diagnosis", "c1", "  ", "  ", ""),
    "wrong section": (
        "prevention",
        "a1",
        "Do not bridge the chain; restore the open contact.",
        "不要短接回路；恢复断开的触点。",
        "section",
    ),
    "item that is not there": (
        "diagnosis",
        "c9",
        "The emergency stop chain is open.",
        "急停回路断开。",
        "does not have",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_removed(name: str, language: Language) -> None:
    section, item_id, english, chinese, reason = LIES[name]
    lie = line(section, item_id, english if language == "en" else chinese)
    others = tuple(x for x in honest(language) if x.item_id != item_id)
    checked = verify_lines((*others, lie), ENTRIES, language)
    assert lie not in checked.lines
    assert [r.line for r in checked.removed] == [lie]
    assert reason in checked.removed[0].reason
    # what is shown in its place, if anything, is the item's own text
    assert all(x.text == render(ENTRY, x.item_id, language) for x in checked.lines)


@pytest.mark.parametrize("language", LANGUAGES)
def test_lines_of_another_entry_are_removed(language: Language) -> None:
    foreign = line("diagnosis", "c1", render(OTHER, "c1", language) or "", OTHER.id)
    checked = verify_lines((*honest(language), foreign), ENTRIES, language)
    assert [r.line for r in checked.removed] == [foreign]
    assert "not evidence" in checked.removed[0].reason


@pytest.mark.parametrize("language", LANGUAGES)
def test_left_out_safety_and_stop_are_put_back_first(language: Language) -> None:
    draft = tuple(x for x in honest(language) if x.section in ("diagnosis", "action"))
    checked = verify_lines(draft, ENTRIES, language)
    assert set(checked.restored) == {"@stop", "s1", "@meaning"}
    assert [x.section for x in checked.lines[:3]] == ["stop_or_run", "safety", "symptom"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_repeated_item_is_said_once(language: Language) -> None:
    checked = verify_lines((*honest(language), honest(language)[3]), ENTRIES, language)
    assert len(checked.removed) == 1 and "second time" in checked.removed[0].reason


def test_a_free_line_that_its_item_carries_passes() -> None:
    free = line("diagnosis", "c3", "The fan of the amplifier stopped and the amplifier overheated.")
    checked = verify_lines((free,), ENTRIES, "en", must_have=False)
    assert checked.lines == (free,)


@pytest.mark.parametrize(
    ("lead", "stands"),
    [
        ("The emergency stop chain is open.", True),
        ("急停回路断开。", True),
        ("The emergency stop chain is not open.", False),
        ("The emergency stop chain is open because the fan stopped.", False),
        ("Measure the 48 V supply at connector CX3.", False),
        ("There is no need to lock out the main switch before opening the cabinet.", False),
        ("打开电柜前不必断开总开关并上锁。", False),
        ("The axis is mechanically stiff or blocked.", False),
        ("轴机械卡滞或堵转。", False),
        ("Bridge the chain.", False),
        ("短接回路。", False),
        ("Replace the amplifier.", False),
        ("更换放大器。", False),
    ],
)
def test_a_lead_stands_only_if_one_item_carries_it(lead: str, stands: bool) -> None:
    language: Language = "zh" if any("\u4e00" <= c <= "\u9fff" for c in lead) else "en"
    assert (verify_lead(lead, ENTRY, language) == "") is stands


def test_order_is_kept_unless_the_question_supports_the_change() -> None:
    own = ["c1", "c2", "c3"]
    assert order_kept(ENTRY, own, ["c3", "c2", "c1"], "SV0401 on my lathe")[0] == own
    for proposed in (["c3", "c1", "c2"], ["c1", "c2", "c3"], []):
        order, note = order_kept(ENTRY, own, proposed, "SV0401 and the amplifier fan stopped")
        assert order == ["c3", "c1", "c2"] and "the question speaks of" in note
    order, note = order_kept(ENTRY, own, ["c9", "c2", "x1"], "the contactor does not pull in")
    assert order == ["c2", "c1", "c3"] and "unknown ids dropped: c9, x1" in note
    order, note = order_kept(ENTRY, own, ["c2", "c1", "c3"], "chain or contactor?")
    assert order == ["c2", "c1", "c3"] and "from the writer" in note


def test_a_writer_is_only_asked_where_it_could_change_something() -> None:
    own = ["c1", "c2", "c3"]
    assert not open_to_order(ENTRY, own, "SV0401")
    assert not open_to_order(ENTRY, own, "SV0401 and the amplifier fan stopped")
    assert open_to_order(ENTRY, own, "SV0401: chain or contactor?")
    assert open_to_order(ENTRY, own, "SV0401：急停回路断开，还是接触器？")
    assert order_kept(ENTRY, own, [], "anything")[0] == own


def test_carried_by_reads_full_width_numbers() -> None:
    assert carried_by("测量 CX3 插头处的 ２４ V 电源。", ["测量 CX3 插头处的 24 V 电源。"]) == ""
    assert "number" in carried_by("测量 CX3 插头处的 ４８ V 电源。", ["测量 CX3 插头处的 24 V 电源。"])


def test_a_draft_without_a_writer_is_the_entry_itself() -> None:
    draft = draft_entry("q1", "SV0401", ENTRY, "en", lambda: (None, ""))
    assert draft.lines == honest("en")
