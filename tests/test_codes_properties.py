"""Properties of the code grammar: whatever the code and the sentence around it, it is found, once, and spelled one way."""

import re
import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from retrieval import code_context, code_forms, code_messages, code_numbers, code_patterns, code_text, codes
from retrieval.codes import FANUC_PREFIXES, LINUXCNC_MESSAGES, canonical, find_codes, fold, number_of, spellings

Key = tuple[str, str | None, str]
VENDORS = (None, "fanuc", "siemens", "haas", "mitsubishi", "heidenhain", "grbl", "linuxcnc", "generic", "mazak")


def _numbers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


FANUC: st.SearchStrategy[str] = st.builds(
    lambda prefix, number: f"{prefix}{number:04d}", st.sampled_from(FANUC_PREFIXES), _numbers(1, 9999)
)
DRIVE: st.SearchStrategy[str] = st.builds(
    lambda letter, number: f"{letter}{number:05d}",
    st.sampled_from("FA"),
    _numbers(1_001, 9_999) | _numbers(30_001, 35_999),
).filter(lambda code: not code.endswith("000"))
MELDAS: st.SearchStrategy[str] = st.builds(
    lambda group, number: f"{group} {number:04d}",
    st.sampled_from(["S01", "S02", "S52", "Z70", "Z71", "Y02", "M01"]),
    _numbers(0, 9999),
)
KEYS: st.SearchStrategy[Key] = st.one_of(
    FANUC.map(lambda code: ("fanuc", "30i", code)),
    _numbers(1, 9999).map(lambda number: ("fanuc", "16i", str(number))),
    _numbers(1_000, 199_999).map(lambda number: ("siemens", "sinumerik", str(number))),
    DRIVE.map(lambda code: ("siemens", "sinamics", code)),
    _numbers(100, 9_999).map(lambda number: ("haas", "ngc", str(number))),
    st.builds(lambda axis, number: ("haas", "ngc", f"{axis}.{number}"), _numbers(1, 12), _numbers(100, 999)),
    MELDAS.map(lambda code: ("mitsubishi", "m700", code)),
    _numbers(10, 999).map(lambda number: ("mitsubishi", "m700", f"P{number}")),
    st.from_regex(r"\A[1-4][0-9]{2}-[0-9A-F]{3}[0-9]\Z").map(lambda code: ("heidenhain", "tnc", code)),
    st.builds(
        lambda kind, number: ("grbl", "grbl", f"{kind}:{number}"), st.sampled_from(["ALARM", "error"]), _numbers(1, 79)
    ),
    st.sampled_from(LINUXCNC_MESSAGES).map(lambda row: ("linuxcnc", "linuxcnc", row[0])),
)
# Codes that need no vendor and no alarm word, in a spelling that is theirs alone.
PLAIN = st.one_of(FANUC, DRIVE, MELDAS)
UNIT_SIGNS = "转度秒次台元件吨伏丝米分小毫微公千赫兆安欧年款钢铝"  # after a number: a quantity, a year, a material
HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5, exclude_characters=UNIT_SIGNS), max_size=8)
# fmt: off
QUIET = st.sampled_from([
    "8000 rpm", "0.02 mm", "转速1200", "F200", "F0.15", "S8000", "M03", "M30", "G54", "G54.1P2", "T0101", "N0010", "O1234",
    "X100.5", "2026-11-30", "2026年11月30日", "14:30", "13800138000", "021-5555 6666", "+86 138 0013 8000", "192.168.1.10",
    "A06B-6114-H105", "6SN1123-1AA00", "参数1320", "parameter 1815", "VF-2", "DMU 50", "35℃", "50%", "380V", "24 V", "3次",
    "¥3000", "2500元", "X8.4", "R0401.2", "DB19.DBX0.0", "订单12345", "第3把刀", "5号轴", "2号机", "45 minutes", "0.6MPa",
    "PC104", "IO32", "SP2", "EX600", "SW1", "IE3",
])
WORDS = st.sampled_from([
    "主轴", "今天早上", "换刀以后", "机床停了", "怎么回事", "the spindle", "stopped", "after that", "coolant", "oil pool",
])
PIECES = st.sampled_from([
    "SV", "sv-", "O", "0", "I1l", "401", "25050", "报警", "号", "alarm ", "error:", "ALARM:", "、", "和", " and ", "-", "/", ".",
    " ", "\n", "fanuc", "西门子", "Haas ", "grbl", "三菱", "海德汉", "linuxcnc", "F07011", "S01 0018", "230-02AC", "Ｓ", "４", "㎜",
    "\u200b", "①", "joint 2 following error", "参数", "mm", "次", "(", "】", "#", "%", "$", "M70", "0i-MF", "İ", "ſ",
])
# fmt: on
MESSY = st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join)


def _codes(text: str, vendor: str | None = None, family: str | None = None) -> list[tuple[str, ...]]:
    return [tuple(reading.code for reading in mention.readings) for mention in find_codes(text, vendor, family)]


def _full_width(text: str) -> str:
    return "".join(
        "\u3000" if char == " " else chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text
    )


@given(KEYS)
@settings(deadline=None)
@example(("fanuc", "30i", "PS0010"))
def test_every_spelling_is_found(key: Key) -> None:
    vendor, family, code = key
    for spelling in spellings(code, vendor, family):
        assert [code in found for found in _codes(spelling, vendor, family)] == [True], spelling


@given(KEYS)
@settings(deadline=None)
def test_every_spelling_has_one_canonical_form(key: Key) -> None:
    vendor, family, code = key
    assert canonical(code, vendor, family) == code
    for spelling in spellings(code, vendor, family):
        if vendor == "linuxcnc" and spelling != code:  # a message may have a narrower slug besides
            continue
        expected = f"F{code[1:]}" if family == "sinamics" and spelling == f"2{code[1:]}" else code
        assert canonical(spelling, vendor, family) == expected, spelling


@given(st.sampled_from([vendor for vendor in VENDORS if vendor]), st.text(max_size=12) | MESSY)
@settings(deadline=None)
def test_canonical_is_idempotent_or_says_why(vendor: str, text: str) -> None:
    try:
        form = canonical(text, vendor)
    except ValueError as error:
        assert "valid" in str(error)
        return
    assert canonical(form, vendor) == form


@given(KEYS)
@settings(deadline=None)
def test_number_is_the_same_for_every_reading(key: Key) -> None:
    vendor, family, code = key
    for found in find_codes(spellings(code, vendor, family)[0], vendor, family):
        assert number_of(found.readings[0].code) == number_of(code)


@given(MESSY | st.text(), st.sampled_from(VENDORS))
@settings(max_examples=400, deadline=None)
def test_any_text_gives_ordered_slices(text: str, vendor: str | None) -> None:
    end = 0
    for mention in find_codes(text, vendor):
        assert end <= mention.start < mention.end <= len(text)
        assert mention.raw == text[mention.start : mention.end]
        assert mention.readings
        end = mention.end
        for reading in mention.readings:
            if not mention.bare:
                assert reading.vendor
                assert canonical(reading.code, reading.vendor, reading.family) == reading.code


@given(MESSY | st.text())
@settings(deadline=None)
def test_fold_keeps_a_map(text: str) -> None:
    folded, index = fold(text)
    assert len(folded) == len(index)
    assert index == sorted(index)
    assert all(0 <= position < len(text) for position in index)
    assert fold(folded)[0] == folded


@given(HAN, PLAIN, HAN)
@settings(max_examples=300, deadline=None)
def test_found_between_chinese_characters(before: str, code: str, after: str) -> None:
    assert (code,) in _codes(f"{before}{code}{after}")


@given(st.lists(WORDS, max_size=4), PLAIN, st.lists(WORDS, max_size=4))
@settings(deadline=None)
def test_found_in_prose(before: list[str], code: str, after: list[str]) -> None:
    text = " ".join([*before, code, *after])
    assert _codes(text) == [(code,)]


@given(st.lists(QUIET | WORDS, max_size=8), st.sampled_from(["，", ", ", "。", " ； "]))
@settings(max_examples=300, deadline=None)
def test_quantities_dates_and_program_words_are_no_codes(parts: list[str], tie: str) -> None:
    assert _codes(tie.join(parts)) == []


@given(st.lists(QUIET, max_size=3), PLAIN, st.lists(QUIET, max_size=3))
@settings(deadline=None)
def test_a_code_among_quantities_is_the_only_one(before: list[str], code: str, after: list[str]) -> None:
    assert _codes("，".join([*before, code, *after])) == [(code,)]


@given(PLAIN | _numbers(100, 9999).map(lambda number: f"报警{number}"), HAN)
@settings(deadline=None)
def test_full_width_changes_nothing(code: str, before: str) -> None:
    text = f"{before} {code}"
    assert _codes(_full_width(text)) == _codes(text)
    assert [(m.start, m.end) for m in find_codes(_full_width(text))] == [(m.start, m.end) for m in find_codes(text)]


@given(FANUC | DRIVE, st.data())
@settings(deadline=None)
def test_slips_of_o_and_i_change_nothing(code: str, data: st.DataObject) -> None:
    letters = 2 if code[1].isalpha() else 1
    likes = {"0": "0Oo", "1": "1Il"}
    tail = "".join(data.draw(st.sampled_from(likes.get(digit, digit))) for digit in code[letters:])
    assume(sum(char.isdigit() for char in tail) >= 2)  # a code without real digits is a word
    assert _codes(code[:letters] + tail) == [(code,)]


@given(st.integers(100, 9999), st.lists(st.integers(1000, 9999), min_size=1, max_size=4), st.sampled_from("、/~-和"))
@settings(deadline=None)
def test_a_list_takes_over_the_prefix(first: int, rest: list[int], tie: str) -> None:
    assume(not any(1980 <= number <= 2039 for number in [first, *rest]))
    text = tie.join([f"SV{first:04d}", *map(str, rest)])
    assert _codes(text) == [(f"SV{number:04d}",) for number in [first, *rest]]


@given(st.lists(st.integers(100, 999), min_size=1, max_size=5), st.sampled_from(["、", "和", "/", " and "]))
@settings(deadline=None)
def test_an_alarm_word_marks_the_whole_list(numbers: list[int], tie: str) -> None:
    listed = tie.join(map(str, numbers))
    expected = [(str(number),) for number in numbers]
    for text in (f"报警{listed}", f"{listed}号报警", f"alarms {listed}"):
        assert _codes(text) == expected, text


@given(st.sampled_from(["发那科", "FANUC ", "哈斯", "Haas "]), st.integers(100, 999))
@settings(deadline=None)
def test_a_vendor_marks_the_number_after_it(name: str, number: int) -> None:
    (mention,) = find_codes(f"{name}{number}")
    assert mention.bare
    assert [(r.vendor, r.code) for r in mention.readings] == [
        ("fanuc" if name in ("发那科", "FANUC ") else "haas", str(number))
    ]


def test_no_pattern_repeats_without_bound() -> None:
    """Time grows with the length of the text by construction; wall time decides nothing here."""
    modules = (code_context, code_forms, code_messages, code_numbers, code_patterns, code_text, codes)
    values = [value for module in modules for value in vars(module).values()]
    values += [pattern for _, *both in code_messages.message_patterns() for pattern in both]
    patterns = {value.pattern for value in values if isinstance(value, re.Pattern)}
    assert len(patterns) > 35
    for pattern in patterns:
        outside = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]", "", re.sub(r"\\[^\[\]]", "", pattern))
        assert not re.search(r"[*+]|\{\d*,\}", outside), pattern


@pytest.mark.parametrize(
    "piece", ["1", "O", "SV ", "alarm ", "401、", "fanuc 401 ", "A1-", "1.", "G01X1", "参数1、", "+1 (", " "]
)
def test_a_long_hostile_text_is_read(piece: str) -> None:
    for length in (25_000, 100_000):
        text = (piece * length)[:length]
        started = time.perf_counter()
        found = len(find_codes(text))
        print(f"{piece!r} x {length}: {found} found in {time.perf_counter() - started:.2f} s")
