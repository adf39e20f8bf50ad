"""Passages: no text lost or doubled, sentences whole, stable from one edition to the next."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ingest.document import Block, Place, Row
from retrieval.ingest.passages import Passage, passages
from retrieval.ingest.sentences import (
    FEWEST_CHARACTERS,
    FEWEST_WORDS,
    MOST_CHARACTERS,
    MOST_WORDS,
    lines_of,
    measure,
    sentences,
)

EN = "The axis stops when the limit switch is reached and the drive reports it to the control."
ZH = "轴到达限位开关后停止，驱动器把信号报告给数控系统。"


def text(words: str, page: int | None = None) -> Block:
    return Block("text", Place(page), text=words)


def heading(words: str, level: int = 1, page: int | None = None) -> Block:
    return Block("heading", Place(page), text=words, level=level)


def table(*rows: tuple[str, ...], page: int | None = None, sheet: str = "") -> Block:
    placed = tuple(Row(cells, Place(page, sheet, n)) for n, cells in enumerate(rows, start=1))
    return Block("table", placed[0].place, rows=placed)


def bare(words: str) -> str:
    return "".join(words.split())


def made(*blocks: Block) -> list[Passage]:
    return list(passages(blocks))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Check it. Replace it.", ["Check it.", "Replace it."]),
        ("See No. 5 and Fig. 3, e.g. the drive. It stops.", ["See No. 5 and Fig. 3, e.g. the drive.", "It stops."]),
        ("The gap is 3.5 mm. Set it.", ["The gap is 3.5 mm.", "Set it."]),
        ("Supply 24 V. Then start.", ["Supply 24 V.", "Then start."]),
        ("Use max. 24 V here. Stop.", ["Use max. 24 V here.", "Stop."]),
        ("Wait 5 min. Then open it.", ["Wait 5 min.", "Then open it."]),
        ("Parts of Fa. Müller, Bosch etc. are listed.", ["Parts of Fa.", "Müller, Bosch etc. are listed."]),
        ('He said "stop." Then it stopped.', ['He said "stop."', "Then it stopped."]),
        ("见第3.2节。更换电缆！", ["见第3.2节。", "更换电缆！"]),
        ("他说：“请断电。”然后离开。", ["他说：“请断电。”", "然后离开。"]),
        ("更换电缆.检查插头.", ["更换电缆.", "检查插头."]),
        ("电压为DC24.5V.检查P.5参数。", ["电压为DC24.5V.检查P.5参数。"]),
        ("1. Switch off. Wait.", ["1. Switch off.", "Wait."]),
        ("Alarm 9.993 is shown... Reset it.", ["Alarm 9.993 is shown...", "Reset it."]),
        ("no end", ["no end"]),
    ],
)
def test_where_sentences_end(line: str, expected: list[str]) -> None:
    assert sentences(line) == expected


def test_wrapped_lines_are_joined_and_items_are_not() -> None:
    assert lines_of("The drive reports a fault when the supply\nis low for a second or longer and then it\nstops.") == [
        "The drive reports a fault when the supply is low for a second or longer and then it stops."
    ]
    assert lines_of("检查驱动器的电源电压是否正常并且检查所有插头\n是否插好。") == [
        "检查驱动器的电源电压是否正常并且检查所有插头是否插好。"
    ]
    assert lines_of("Do this:\n1. Stop.\n2. Open the\ndoor.\n① 甲\n- b") == [
        "Do this:", "1. Stop.", "2. Open the door.", "① 甲", "- b",
    ]  # fmt: skip
    assert lines_of("Voltage: 24 V\nCurrent: 3 A") == ["Voltage: 24 V", "Current: 3 A"]


def test_passages_have_the_length_of_a_few_sentences_in_both_languages() -> None:
    english = made(text("\n".join([EN] * 40), page=1))
    chinese = made(text(ZH * 60, page=1))
    assert all(FEWEST_WORDS <= len(p.text.split()) <= MOST_WORDS for p in english)
    assert all(FEWEST_CHARACTERS <= len(p.text) <= MOST_CHARACTERS for p in chinese)
    assert {p.language for p in english} == {"en"} and {p.language for p in chinese} == {"zh"}
    lengths = [len(p.text.split()) for p in english]
    assert max(lengths) - min(lengths) <= 2 * len(EN.split())  # even, no short rest


def test_never_across_a_heading_and_the_path_is_kept() -> None:
    found = made(
        heading("Manual"), text(EN), heading("Drives", 2), text(EN), heading("Faults", 3), text(ZH), heading("End", 2), text(ZH)
    )  # fmt: skip
    assert [p.heading for p in found] == [
        ("Manual",), ("Manual", "Drives"), ("Manual", "Drives", "Faults"), ("Manual", "End"),
    ]  # fmt: skip


def test_a_warning_printed_as_a_heading_is_found() -> None:
    warning = "WARNING: switch the main power off and wait ten minutes before you open the cabinet door"
    assert [p.text for p in made(heading("Safety"), heading(warning, 2), heading("Next", 2), text(EN))] == [warning, EN]


def test_short_neighbours_under_one_heading_are_merged() -> None:
    assert len(made(heading("A"), text("Check it."), text("Replace it."), text("Tell the service."))) == 1


def test_steps_stay_together_with_what_leads_to_them() -> None:
    steps = "\n".join(f"{n}. Loosen screw {n} by half a turn and look at the gap." for n in range(1, 11))
    found = made(text(" ".join([EN] * 8) + "\nProceed as follows:", page=1), text(steps, page=1))
    together = next(p for p in found if "1. Loosen" in p.text)
    assert together.text.startswith("Proceed as follows:\n1. ") and "10. Loosen" in together.text
    long = "\n".join(f"{n}. " + EN for n in range(1, 40))
    whole = "\n".join(p.text for p in made(text(long, page=1)))
    assert bare(whole) == bare(long)
    assert all(p.text.split(".")[0].isdecimal() for p in made(text(long, page=1)))  # none begins inside a step


def test_a_sentence_over_the_page_break_belongs_to_the_page_where_it_began() -> None:
    found = made(text("First. The drive stops when the", 3), text("supply is low. Next one.", 4))
    assert [(p.place.page, p.text) for p in found] == [
        (3, "First. The drive stops when the supply is low."),
        (4, "Next one."),
    ]
    found = made(text("驱动器在电源电压低于规定值的时候将会停", 3), text("止运行。然后报警。", 4))
    assert [p.text for p in found] == ["驱动器在电源电压低于规定值的时候将会停止运行。", "然后报警。"]
    # a list item without a full stop ends with the page
    assert len(made(text("- Replace the cable", 3), text("Check the fuse.", 4))) == 2


def test_a_change_on_one_page_changes_that_page_only() -> None:
    pages = [text("\n".join(f"Page {n}, sentence {k}. {EN}" for k in range(15)), n) for n in range(1, 8)]
    before = {p.hash for p in made(*pages)}
    pages[3] = text("Something new. " + pages[3].text, 4)
    after = made(*pages)
    assert {p.place.page for p in after if p.hash not in before} == {4}


def test_without_pages_a_change_stays_near() -> None:
    blocks = [text(f"Paragraph {n} of the log. {EN}") for n in range(600)]
    before = made(*blocks)
    blocks[300] = text("Something new. " * 30 + blocks[300].text)
    known = {p.hash for p in before}
    assert sum(p.hash not in known for p in made(*blocks)) <= 12
    assert len(before) > 60


def test_rows_of_a_table_are_lines_with_their_headers() -> None:
    found = made(table(("Orders of May", "Orders of May", "Orders of May"), ("Date", "Machine", "Result"),
                       ("2026-05-01", "M3", "1. done\n2. tested"), ("2026-05-02", "", "open")))  # fmt: skip
    assert found[0].text.split("\n") == [
        "Orders of May",
        "Date: 2026-05-01; Machine: M3; Result: 1. done 2. tested",
        "Date: 2026-05-02; Result: open",
    ]
    assert made(table(("Voltage", "24 V"), ("Current", "3 A")))[0].text == "Voltage: 24 V\nCurrent: 3 A"


def test_rows_are_not_cut_and_a_table_goes_on_with_its_header() -> None:
    rows = [(f"M{n}", "The spindle stops and the drive reports a fault", f"done by shift {n}") for n in range(200)]
    found = made(table(("Machine", "Symptom", "Result"), *rows[:100], page=1), table(*rows[100:], page=2))
    lines = [line for p in found for line in p.text.split("\n")]
    assert lines == [f"Machine: {m}; Symptom: {s}; Result: {r}" for m, s, r in rows]
    assert found[0].place == Place(1, row=2)
    assert all(measure(p.text)[0] <= 1 for p in found)


def test_one_huge_sentence_is_cut_at_clauses_and_never_inside_a_word() -> None:
    clause = "the drive SV0401-X1/24.5V reports fault number 25050 to the control"
    found = made(text(", ".join([clause] * 120)))
    assert len(found) > 4 and all(measure(p.text)[0] <= 1 for p in found)
    assert all(p.text.rstrip(",").endswith("control") for p in found)
    chinese = made(text("驱动器SV0401报告２５０５０号故障" * 200))
    assert bare("".join(p.text for p in chinese)) == "驱动器SV0401报告２５０５０号故障" * 200
    assert "".join(p.text for p in chinese).count("SV0401") == 200
    assert not any(p.text[0] in "5０0" for p in chinese)


def test_linear_time() -> None:
    started = time.monotonic()
    made(
        text("x" * 500_000 + " " + "报警" * 200_000),
        text("1. " * 50_000),
        table(*(("a", "b" * 9) for _ in range(20_000))),
    )
    assert time.monotonic() - started < 20


LETTERS = st.sampled_from([*"abcXYZ019 报警轴，、;:-/\n", "e.g. ", "No. ", "3.5", "SV0401", "1) ", "“", "）"])
WORDS = st.lists(LETTERS, min_size=1, max_size=60).map("".join)
SENTENCES = st.builds(lambda words, stop: words + stop, WORDS, st.sampled_from([". ", "。", "! ", "？", "\n", "…", ""]))
PARAGRAPHS = st.lists(SENTENCES, max_size=40).map("".join)
BLOCKS = st.lists(st.tuples(PARAGRAPHS, st.booleans()), max_size=12)


@given(BLOCKS, st.booleans())
def test_no_text_is_lost_or_doubled_and_order_is_kept(parts: list[tuple[str, bool]], paged: bool) -> None:
    blocks, page = [], 1
    for words, turned in parts:
        page += turned
        blocks.append(text(words, page if paged else None))
    found = made(*blocks)
    assert bare("".join(p.text for p in found)) == bare("".join(words for words, _ in parts))
    assert found == made(*blocks)
    assert all(p.text.strip() == p.text and p.text for p in found)
    assert all(measure(p.text)[0] <= 1.01 for p in found)
    places = [p.place.page or 0 for p in found]
    assert places == sorted(places)


WHOLE = st.builds(
    lambda n, tail: f"Sentence {n} says that {tail} of axis X1 is at 3.5 mm, e.g. after alarm SV0401.",
    st.integers(0, 9999),
    st.lists(st.sampled_from(["the drive", "the belt", "No. 5 valve"]), min_size=1, max_size=9).map(" and ".join),
)
WHOLE_ZH = st.builds(
    lambda n, k: f"第{n}句说明驱动器{'和电缆' * k}在3.5毫米处停止。", st.integers(0, 999), st.integers(0, 9)
)


@given(st.lists(WHOLE | WHOLE_ZH, min_size=1, max_size=60), st.integers(1, 9))
def test_sentences_are_not_cut(parts: list[str], page: int) -> None:
    found = made(text(" ".join(parts), page))
    texts = [p.text for p in found]
    at = 0
    for part in parts:
        while part not in texts[at]:
            at += 1
            assert at < len(texts), f"cut: {part}"
    assert all(p.place == Place(page) for p in found)
