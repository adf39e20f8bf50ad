"""Whose controller a document speaks of, and entries made of its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from retrieval.ingest.document import Block, Place, Row
from retrieval.ingest.entries import Problem, entry_of
from retrieval.ingest.identify import identify
from retrieval.ingest.rows import AlarmRow
from retrieval.records import KnowledgeEntry

ROW = AlarmRow(
    "alarm",
    "SV0401",
    "SV0401",
    heading="SERVO V-READY OFF",
    meaning="The ready signal went off.",
    causes=("Cable", "Motor"),
    checks=("Measure 24 V",),
    actions=("Replace the cable", "Replace the motor"),
    place=Place(12, "", 3),
    paired=True,
)


def text(words: str) -> Block:
    return Block("text", text=words)


def made(row: AlarmRow, **change: Any) -> KnowledgeEntry | Problem:
    settings = {"vendor": "fanuc", "family": "30i", "document_id": "0123456789", "document_name": "alarms.pdf"}
    settings |= {"version": "v2", "publisher": "the shop", "read_on": "2026-12-01"} | change
    return entry_of(row, **settings)


def entry(row: AlarmRow, **change: Any) -> KnowledgeEntry:
    found = made(row, **change)
    assert isinstance(found, KnowledgeEntry), str(found)
    return found


# ---- identify ----
@pytest.mark.parametrize(
    ("title", "blocks", "name", "wanted"),
    [
        ("FANUC Series 30i-B Maintenance Manual", (), "B-64485.pdf", ("fanuc", "30i")),
        ("", (), "fanuc_0i-mf_alarms.pdf", ("fanuc", "30i")),
        ("", (text("西门子 SINUMERIK 828D 诊断手册"), text("SINUMERIK 828D")), "手册.pdf", ("siemens", "sinumerik")),
        ("", (text("三菱数控 M80 报警"), text("三菱")), "a.pdf", ("mitsubishi", "m700")),
        ("Haas mill manual", (), "a.pdf", ("haas", None)),
        ("Okuma alarm list", (), "a.pdf", ("okuma", "okuma")),
        ("Lathe manual", (text("Turn on M80 and S120 before G0 X10."),), "a.pdf", (None, None)),
        ("", (text("It works like a FANUC."),), "a.pdf", (None, None)),
        ("Alarm list", (), "alarms.pdf", (None, None)),
        ("Replacing FANUC by Siemens", (), "a.pdf", (None, None)),
    ],
)
def test_whose_controller(
    title: str, blocks: tuple[Block, ...], name: str, wanted: tuple[str | None, str | None]
) -> None:
    found = identify(title, blocks, name)
    assert (found.vendor, found.family) == wanted
    assert found.evidence


def test_unclear_names_the_candidates() -> None:
    found = identify("Replacing FANUC 30i by Siemens", (), "a.pdf")
    assert found.vendor is None
    assert set(found.candidates) == {"fanuc/30i", "siemens"}


def test_a_family_that_is_named_as_often_as_another_stays_open() -> None:
    found = identify("FANUC 30i and 16i alarms", (), "a.pdf")
    assert (found.vendor, found.family) == ("fanuc", None)


def test_codes_confirm_but_never_name_a_vendor() -> None:
    codes = Block("table", rows=tuple(Row((f"SV04{k:02d}", "Servo"), Place(row=k)) for k in range(9)))
    assert identify("", (codes,), "a.pdf").vendor is None
    both = (codes, text("FANUC"), text("FANUC"), text("Haas"), text("FANUC"), text("Haas"))
    assert identify("", both, "a.pdf").vendor == "fanuc"
    assert identify("", both[1:], "a.pdf").vendor is None


# ---- entries ----
def test_an_entry_says_what_the_row_says() -> None:
    found = entry(ROW)
    assert found.id == "doc-0123456789/sv0401"
    assert (found.kind, found.vendor, found.status) == ("alarm", "fanuc", "unverified")
    assert [(key.family, key.code, key.last) for key in found.keys] == [("30i", "SV0401", "")]
    assert (found.title.en, found.title.zh) == ("SERVO V-READY OFF", "")
    assert [(i.id, i.kind, i.text.en, i.for_causes) for i in found.items] == [
        ("c1", "cause", "Cable", ()),
        ("c2", "cause", "Motor", ()),
        ("k1", "check", "Measure 24 V", ()),
        ("a1", "action", "Replace the cable", ("c1",)),
        ("a2", "action", "Replace the motor", ("c2",)),
    ]
    (source,) = found.sources
    assert (source.title, source.place, source.read_on) == ("alarms.pdf v2", "page 12, row 3", "2026-12-01")
    assert all(item.sources == (source.id,) for item in found.items)
    assert "alarms.pdf" in found.status_note
    assert (found.stop_or_run, found.reset) == ("stop_at_safe_point", "unknown")


def test_the_language_of_the_row() -> None:
    found = entry(replace(ROW, language="zh", heading="伺服未就绪", heading_other="NOT READY", meaning=""))
    assert (found.title.zh, found.title.en) == ("伺服未就绪", "NOT READY")
    assert (found.meaning.zh, found.meaning.en) == ("伺服未就绪", "")


def test_ranges_and_codes_as_typed() -> None:
    assert entry(replace(ROW, first="E-104", last="E-106"), vendor="okuma", family=None).keys[0].last == "E106"
    assert entry(replace(ROW, first="sv-401")).keys[0].code == "SV0401"
    assert entry(replace(ROW, first="E-104", last="E-106"), vendor="okuma", family=None).id.endswith("/e-104-e-106")


def test_a_drive_code_in_a_manual_of_the_control() -> None:
    found = entry(replace(ROW, code="F07011", first="F07011"), vendor="siemens", family="sinumerik")
    assert found.keys[0].family == "sinamics"


def test_what_is_no_code_of_the_vendor_is_a_problem_with_its_place() -> None:
    found = made(replace(ROW, code="ZZ99999", first="ZZ99999"))
    assert isinstance(found, Problem)
    assert "ZZ99999" in found.what and "page 12, row 3" in found.what and "alarms.pdf" in found.what
    assert "--vendor" in found.next_step


def test_an_open_family_is_a_problem_that_names_the_families() -> None:
    found = made(ROW, family=None)
    assert isinstance(found, Problem)
    assert "30i" in found.what and "16i" in found.what
    assert isinstance(made(ROW, vendor="nobody", family=None), Problem)
    assert isinstance(made(ROW, document_id="!"), KnowledgeEntry | Problem)


@pytest.mark.parametrize(
    "warning",
    [
        "WARNING: parts may be live.",
        "Disconnect the main power before opening the cabinet.",
        "Measure the insulation (power must be off).",
        "切断电源后再打开电柜。",
        "断电后等待5分钟。",
        "注意：高压。",
    ],
)
def test_warnings_stand_first_and_stay_in_their_place(warning: str) -> None:
    zh = any(ord(c) > 0x2E7F for c in warning)
    found = entry(
        replace(ROW, language="zh" if zh else "en", actions=(warning, "Replace it" if not zh else "更换"), paired=False)
    )
    assert found.items[0].kind == "safety"
    assert found.items[0].text.get("zh" if zh else "en") == warning
    assert found.of_kind("action")[0].text.get("zh" if zh else "en") == warning


def test_what_is_no_warning() -> None:
    for advice in ("Set it to 5 and switch the power off and on.", "断电再上电", "Check the supply."):
        assert not entry(replace(ROW, actions=(advice,), paired=False)).of_kind("safety")


@pytest.mark.parametrize(
    ("reaction", "reset", "wanted"),
    [
        ("OFF2", "POWER ON", ("stop_now", "power_cycle")),
        ("NC Stop", "Clear the alarm with the RESET key", ("stop_at_safe_point", "reset_key")),
        ("急停", "断电再上电", ("stop_now", "power_cycle")),
        ("无反应", "复位键", ("may_continue", "reset_key")),
        ("None, then NC stop", "", ("stop_at_safe_point", "unknown")),
        ("", "Remove the cause of the alarm", ("stop_at_safe_point", "clear_cause_first")),
        ("", "Home the axis", ("stop_at_safe_point", "homing")),
    ],
)
def test_reaction_and_reset_come_from_the_document_only(reaction: str, reset: str, wanted: tuple[str, str]) -> None:
    found = entry(replace(ROW, reaction=reaction, reset=reset))
    assert (found.stop_or_run, found.reset) == wanted
    assert not reaction or reaction in found.meaning.en
    assert entry(replace(ROW, actions=("Press RESET",), paired=False)).reset == "unknown"


def test_long_texts_and_long_lists_are_cut_and_it_is_said() -> None:
    long = "The cable is bad. " * 400
    found = entry(
        replace(
            ROW, heading="Servo " * 60, causes=(long,), actions=tuple(f"Step {k}" for k in range(150)), paired=False
        )
    )
    assert len(found.title.en) <= 200 and len(found.of_kind("cause")[0].text.en) <= 4000
    assert found.of_kind("cause")[0].text.en.endswith("bad. …")
    assert [item.text.en for item in found.of_kind("action")] == [f"Step {k}" for k in range(99)]
    assert "150 actions, the first 99 are kept" in found.status_note and "cause cut" in found.status_note


def test_pictures_and_control_characters() -> None:
    found = entry(replace(ROW, confidence=0.8, heading="SER\x1b[31mVO\u202e", actions=("\x00",), paired=True))
    assert "\x1b" not in found.title.en and "0.80" in found.status_note
    assert not found.of_kind("action")


def test_parameters() -> None:
    row = AlarmRow("parameter", "1320", "1320", heading="Stroke limit", setting="Unit: mm; Range: 0-9999")
    found = entry(row)
    assert (found.kind, found.id) == ("parameter", "doc-0123456789/p-1320")
    assert [(item.id, item.kind) for item in found.items] == [("r1", "range")]
    assert found.keys[0].code == "1320"
