"""Codes as people mangle them, and what only looks like one."""

from __future__ import annotations

import pytest

from retrieval.codes import find_codes, vendors_in


def codes(text: str, vendor: str | None = None) -> list[str]:
    return [mention.readings[0].code for mention in find_codes(text, vendor)]


@pytest.mark.parametrize(
    ("text", "vendor", "found"),
    [
        ("sv0 436", None, ["SV0436"]),
        ("SV04 01 again", None, ["SV0401"]),
        ("S V 0 4 4 9", None, ["SV0449"]),
        ("S V 401", "fanuc", ["SV0401"]),
        ("alarm S P 9 0 0 2 on the lathe", "fanuc", ["SP9002"]),
        ("5V0411", None, ["SV0411"]),
        ("5P0740 on FANUC", None, ["SP0740"]),
        ("四零一号报警", None, ["401"]),
        ("发那科报警四一七", None, ["417"]),
        ("报警幺零三", "haas", ["103"]),
        ("alarm 2 5 0 5 0", "siemens", ["25050"]),
        ("海德汉 231 - C670", None, ["231-C670"]),
        ("FANUC 0i-MF\n401\n417", None, ["401", "417"]),
        ("alarms:\r\n401\r\n417\r\n", "fanuc", ["401", "417"]),
        ("now 411 on the Fanuc", None, ["411"]),
        ("it's 411 now", "fanuc", ["411"]),
        ("现在是 411", "fanuc", ["411"]),
        ("shows 401 on lathe 1 and 417 on lathe 2", "fanuc", ["401", "417"]),
        ("lathe 1 shows 401, lathe 2 shows 417", "fanuc", ["401", "417"]),
        ("lathe 1: 401, lathe 2: 417", "fanuc", ["401", "417"]),
        ("401 - FEED hold", "fanuc", ["401"]),
    ],
)
def test_a_mangled_code_is_read(text: str, vendor: str | None, found: list[str]) -> None:
    assert codes(text, vendor) == found


@pytest.mark.parametrize(
    ("text", "vendor"),
    [
        ("5V 0411", None),  # five volts
        ("supply 5V1200", None),
        ("r0949=200 报警时间", "siemens"),
        ("p1082[0] = 3000 alarm time", "siemens"),
        ("O1000 N20-0", "mitsubishi"),
        ("program O1000N20 alarm", "fanuc"),
        ("一二三轴", "fanuc"),
        ("第三十二页", "fanuc"),
        ("我们做了四零一件", "fanuc"),
        ("it's 411 parts per shift now", "fanuc"),
        ("now 400 rpm", "fanuc"),
        ("turned 500 on the lathe", "fanuc"),
        ("now 300 on the lathe", "fanuc"),
        ("it's 1230 now", "fanuc"),
        ("现在500", "fanuc"),
        ("G01 X10 2 0 0 F100", "fanuc"),
        ("sv 0 4", "fanuc"),
        ("torque 401 Nm", "fanuc"),
        ("page 401 of the manual", "fanuc"),
        ("line 401", "fanuc"),
        ("phone 0411 223 344", "fanuc"),
        ("diameters 401\nand 417 mm", "fanuc"),
        ("25.401\n25.417", "fanuc"),
        ("231 - C670", "fanuc"),  # a message of another maker
        ("报警一二三轴", "fanuc"),  # axes
        ("lathe 1: 401 parts, lathe 2: 417 mm", "fanuc"),
        ("lathe 1: page 401, lathe 2: tool 417", "fanuc"),
    ],
)
def test_what_only_looks_like_one_is_not(text: str, vendor: str | None) -> None:
    assert codes(text, vendor) == []


@pytest.mark.parametrize(
    "text",
    [
        "not a Fanuc, alarm 401",
        "it isn't FANUC: alarm 401",
        "不是发那科 报警401",
        "this is no Fanuc, alarm 401",
        "non-Fanuc, alarm 401",
    ],
)
@pytest.mark.parametrize("known", [None, "fanuc"])
def test_a_maker_that_is_ruled_out_is_not_the_maker(text: str, known: str | None) -> None:
    assert vendors_in(text) == ()
    (mention,) = find_codes(text, known)
    assert mention.readings[0].vendor is None


def test_another_maker_than_the_one_ruled_out_is() -> None:
    assert vendors_in("not a Fanuc but a Haas, alarm 103") == (("haas", None),)
    assert codes("not a Fanuc but a Haas, alarm 103") == ["103"]
