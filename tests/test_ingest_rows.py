"""Rows of alarms and parameters out of tables and texts; what is none stays none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluation.documents.pdf import LAYOUTS, Layout, manual, write_manual
from evaluation.documents.truth import TrueAlarm, VendorStyle, alarms
from evaluation.extraction import score
from retrieval.ingest.document import Block, Place, Row
from retrieval.ingest.headers import codes_in, columns_of, head_of
from retrieval.ingest.layouts import items_of, parts_of
from retrieval.ingest.rows import AlarmRow, split
from retrieval.records import Language

HEAD = ("Alarm No.", "Message", "Cause", "Remedy")
KOPF = ("报警号", "信息", "原因", "处理")


def table(*rows: Sequence[str], page: int | None = None, sheet: str = "", confidence: float = 1.0) -> Block:
    width = max(map(len, rows))
    placed = tuple(
        Row((*row, *("" for _ in range(width - len(row)))), Place(page, sheet, number))
        for number, row in enumerate(rows, start=1)
    )
    return Block("table", Place(page, sheet, 1), rows=placed, confidence=confidence)


def heading(text: str, level: int = 1, page: int | None = None) -> Block:
    return Block("heading", Place(page), text=text, level=level)


def text(words: str, page: int | None = None) -> Block:
    return Block("text", Place(page), text=words)


def rows(*blocks: Block, vendor: str | None = None, dropped: list[str] | None = None) -> list[AlarmRow]:
    return [item for item in split(blocks, vendor, None, dropped) if isinstance(item, AlarmRow)]


def others(*blocks: Block, vendor: str | None = None) -> list[Block]:
    return [item for item in split(blocks, vendor, None) if isinstance(item, Block)]


# ---- codes ----
@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("SV0401", [("SV0401", "")]),
        ("ＳＶ０４０１", [("SV0401", "")]),
        ("SVO4O1", [("SV0401", "")]),
        ("S01 0018", [("S01 0018", "")]),
        ("230-02AC", [("230-02AC", "")]),
        ("E-104", [("E-104", "")]),
        ("AL.16", [("AL.16", "")]),
        ("ALARM:1", [("ALARM:1", "")]),
        ("9.917", [("9.917", "")]),
        ("No. 401", [("401", "")]),
        ("4500-4509", [("4500", "4509")]),
        ("4500～4509", [("4500", "4509")]),
        ("4500 to 4509", [("4500", "4509")]),
        ("70000…79999", [("70000", "79999")]),
        ("4500-\n4509", [("4500", "4509")]),
        ("S51 0078-S51\n0085", [("S51 0078", "S51 0085")]),
        ("E-104～E-106", [("E-104", "E-106")]),
        ("SV0401-0409", [("SV0401", "SV0409")]),
        ("401, 403", [("401", ""), ("403", "")]),
        ("401、403", [("401", ""), ("403", "")]),
        ("401\n402", [("401", ""), ("402", "")]),
        ("F07011 and F07012", [("F07011", ""), ("F07012", "")]),
        ("Servo", []),
        ("+24V", []),
        ("2024-05-01", []),
        ("120 °C", []),
        ("", []),
    ],
)
def test_codes_of_a_cell(cell: str, wanted: list[tuple[str, str]]) -> None:
    assert [(span.first, span.last) for span in codes_in(cell)] == wanted


def test_a_range_goes_up_and_within_one_kind_of_code() -> None:
    for cell in ("4509-4500", "SV0401-SP0409", "E-106～E-104"):
        assert all(not span.last for span in codes_in(cell))


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("SV0401 SERVO V-READY OFF", "SV0401", "SERVO V-READY OFF"),
        ("25050 %1: contour monitoring", "25050", "%1: contour monitoring"),
        ("401号报警：伺服未就绪", "401", "伺服未就绪"),
        ("401伺服报警", "401", "伺服报警"),
        ("S01 0018 Servo error", "S01 0018", "Servo error"),
        ("AL.16: overheat", "AL.16", "overheat"),
    ],
)
def test_a_code_and_its_words_on_one_line(line: str, code: str, words: str) -> None:
    spans, rest = head_of(line)
    assert [span.first for span in spans] == [code]
    assert rest == words


# ---- items ----
@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("1. Check CN1. 2. Replace it.", ("Check CN1.", "Replace it.")),
        ("1) Check\n2) Replace", ("Check", "Replace")),
        ("(1) Check (2) Replace", ("Check", "Replace")),
        ("①检查电缆②更换电机", ("检查电缆", "更换电机")),
        ("1、检查电缆\n2、更换电机", ("检查电缆", "更换电机")),
        ("一、检查电缆\n二、更换电机", ("检查电缆", "更换电机")),
        ("a) Check\nb) Replace", ("Check", "Replace")),
        ("- Check\n- Replace", ("Check", "Replace")),
        ("• Check • it", ("Check • it",)),
        ("Check\nReplace", ("Check", "Replace")),
        ("Check the\nwiring", ("Check the wiring",)),
        ("Set it to 1.5 mm. 2.5 mm is too much", ("Set it to 1.5 mm. 2.5 mm is too much",)),
        ("1. See unit no. 2. The time is short\n2. Then stop", ("See unit no. 2. The time is short", "Then stop")),
        ("The parameter does not match unit no. 2. Check it.", ("The parameter does not match unit no. 2. Check it.",)),
        ("", ()),
    ],
)
def test_items_of_a_cell(cell: str, wanted: tuple[str, ...]) -> None:
    assert items_of(cell, None)[0] == wanted


def test_lines_that_were_only_wrapped_are_joined() -> None:
    assert items_of("电缆损坏或者插头松动而且电机过\n热。\n更换", 16.0)[0] == (
        "电缆损坏或者插头松动而且电机过热。",
        "更换",
    )
    assert items_of("The cable between the motor and\nAmplifier is bad", 16.5)[0] == (
        "The cable between the motor and Amplifier is bad",
    )
    assert items_of("Cable bad\nAmplifier bad", 16.5)[0] == ("Cable bad", "Amplifier bad")
    assert items_of("the connec-\ntion of the X-\naxis", 10.0)[0] == ("the connection of the X-axis",)


def test_labels_inside_a_text() -> None:
    lead, sections = parts_of("The ready signal went off.\nCause: cable\nRemedy: replace\nit")
    assert lead == "The ready signal went off."
    assert sections == [("cause", "cable"), ("remedy", "replace\nit")]
    assert parts_of("原因：断线。处理：换线")[1] == [("cause", "断线。"), ("remedy", "换线")]
    assert parts_of("【原因】断线\n【处理方法】换线")[1] == [("cause", "断线"), ("remedy", "换线")]
    assert parts_of("Measure the power\nmodule: above 20 V")[1] == []


# ---- alarm tables ----
def test_a_table_with_a_header() -> None:
    (row,) = rows(table(HEAD, ("SV0401", "SERVO OFF", "1. Cable\n2. Motor", "1. Check it\n2. Replace it"), page=3))
    assert (row.kind, row.code, row.first, row.last, row.heading) == ("alarm", "SV0401", "SV0401", "", "SERVO OFF")
    assert row.causes == ("Cable", "Motor")
    assert row.actions == ("Check it", "Replace it")
    assert row.paired and row.language == "en"
    assert row.place == Place(3, "", 2)


def test_unequal_lists_are_not_paired() -> None:
    (row,) = rows(table(HEAD, ("SV0401", "SERVO OFF", "1. Cable\n2. Motor", "Replace it")))
    assert not row.paired


def test_a_spreadsheet_with_title_rows_and_merged_cells() -> None:
    dropped: list[str] = []
    sheet = table(
        ("报警一览表",) * 4,
        ("", "", "", ""),
        ("报警", "报警", "报警", "处理"),
        ("编号", "信息", "原因", "处理"),
        ("伺服报警",) * 4,
        ("401", "伺服未就绪", "电缆断", "换电缆"),
        ("401", "伺服未就绪", "插头松", "插紧"),
        ("402, 403", "主轴过热", "风扇坏", "换风扇"),
        ("404", "", "", "没有标题"),
        sheet="报警",
    )
    found = rows(sheet, dropped=dropped)
    assert [(row.first, row.heading) for row in found] == [
        ("401", "伺服未就绪"),
        ("402", "主轴过热"),
        ("403", "主轴过热"),
    ]
    assert found[0].causes == ("电缆断", "插头松")
    assert found[0].actions == ("换电缆", "插紧")
    assert found[0].paired and found[0].language == "zh"
    assert len(dropped) == 1 and "404" in dropped[0] and "row 9" in dropped[0]
    # what is no alarm row is handed on, so that it can still be found as a text
    left = [row.cells for block in others(sheet) for row in block.rows]
    assert ("伺服报警",) * 4 in left and ("404", "", "", "没有标题") in left


def test_rows_below_without_a_code_belong_to_the_row_above() -> None:
    found = rows(
        table(KOPF, ("401", "伺服", "电缆断", "换电缆"), ("", "", "插头松", "插紧"), ("402", "主轴", "无", "-"))
    )
    assert found[0].causes == ("电缆断", "插头松")
    assert found[1].causes == () and found[1].actions == ()


def test_same_as_above() -> None:
    found = rows(table(KOPF, ("401", "伺服", "电缆断", "换电缆"), ("402", "主轴", "同上", "同上")))
    assert found[1].causes == ("电缆断",) and found[1].actions == ("换电缆",)


def test_a_code_and_its_text_in_one_cell() -> None:
    found = rows(
        table(("Alarm", "Cause", "Remedy"), ("SV0401 SERVO OFF", "Cable", "Check"), ("SV0402: HOT", "Fan", "Clean"))
    )
    assert [(row.first, row.heading, row.causes) for row in found] == [
        ("SV0401", "SERVO OFF", ("Cable",)),
        ("SV0402", "HOT", ("Fan",)),
    ]


def test_labels_inside_a_description() -> None:
    (row,) = rows(table(("Error code", "Description"), ("E-104", "Door open\nCause: switch\nRemedy: adjust it")))
    assert (row.heading, row.causes, row.actions) == ("Door open", ("switch",), ("adjust it",))


def test_both_languages() -> None:
    (row,) = rows(
        table(
            ("报警号", "报警信息", "Alarm message", "原因", "处理"), ("401", "伺服未就绪", "NOT READY", "断线", "换线")
        )
    )
    assert (row.heading, row.heading_other, row.language) == ("伺服未就绪", "NOT READY", "zh")
    both = rows(
        table(
            ("Code", "信息", "Message", "原因", "Cause", "处理", "Remedy"),
            ("SV0401", "伺服未就绪", "NOT READY", "断线", "Cable", "换线", "Replace"),
        )
    )
    assert [(row.language, row.heading, row.causes, row.actions) for row in both] == [
        ("en", "NOT READY", ("Cable",), ("Replace",)),
        ("zh", "伺服未就绪", ("断线",), ("换线",)),
    ]


def test_reaction_reset_and_severity() -> None:
    (row,) = rows(
        table(
            ("Code", "Message", "Reaction", "Reset", "Class", "Remedy"),
            ("F07011", "Hot", "OFF2", "POWER ON", "Warning", "Wait"),
        )
    )
    assert (row.reaction, row.reset, row.severity) == ("OFF2", "POWER ON", "warning")


# ---- over pages ----
def test_a_row_over_a_page_break_with_a_repeated_header_and_a_footer() -> None:
    blocks = (
        table(HEAD, ("401", "SERVO", "Cable is", "1. Check a"), page=1),
        text("B-64305EN/03", page=1),
        text("12", page=1),
        table(HEAD, ("", "", "broken", "2. Check b"), ("402", "SPINDLE", "x", "y"), page=2),
        text("13", page=2),
        table(("403", "AXIS", "x", "y"), ("404", "AXIS B", "x", "y"), page=3),
    )
    found = rows(*blocks)
    assert [row.first for row in found] == ["401", "402", "403", "404"]
    assert found[0].causes == ("Cable is broken",)
    assert found[0].actions == ("Check a", "Check b")
    assert others(*blocks) == [blocks[1], blocks[2], blocks[4]]


def test_the_end_of_a_row_that_no_reader_sees_as_a_table() -> None:
    first = table(HEAD, ("401", "SERVO", "Cable broken.", "1. Check a.\n2. Replace the"), page=1)
    (row,) = rows(first, text("Alarm No.\tMessage\tCause\tRemedy\nmotor.\n3. Call us.", page=2))
    assert row.actions == ("Check a.", "Replace the motor.", "Call us.")


def test_a_row_whose_end_could_belong_to_two_columns_is_left_out() -> None:
    dropped: list[str] = []
    first = table(HEAD, ("401", "SERVO", "Cable of the", "Replace the"), page=1)
    rest = text("Alarm No.\tMessage\tCause\tRemedy\nmotor", page=2)
    assert rows(first, rest, dropped=dropped) == []
    assert "401" in dropped[0]
    assert others(first, rest)[-1] == rest


def test_a_new_heading_ends_the_columns() -> None:
    blocks = (
        table(HEAD, ("401", "SERVO", "x", "y"), page=1),
        heading("Parameters", page=2),
        table(("1320", "Limit", "0", "9"), page=2),
    )
    assert [row.first for row in rows(*blocks)] == ["401"]
    assert others(*blocks) == [blocks[1], blocks[2]]


# ---- tables that are none ----
NONE: dict[str, tuple[Block, ...]] = {
    "work orders": (table(("日期", "机床", "报警代码", "故障现象", "处理", "结果"), ("2024-05-01", "VMC-1", "401", "不转", "更换", "好")),),
    "work orders in English": (table(("Date", "Machine", "Alarm code", "Symptom", "Action", "Result"), ("2024-05-01", "VMC", "401", "stops", "new", "ok")),),
    "dates without a header": (table(("Alarm code", "When", "Message"), ("401", "2024-05-01", "stops"), ("402", "2024-05-02", "stops")),),
    "one code again and again": (
        table(("报警代码", "故障现象", "处理"), *[(("401", "410", "424")[k % 3], f"现象{k}", "更换") for k in range(12)]),
    ),
    "pin-out": (heading("Alarm output"), table(("No.", "Signal", "Description"), ("101", "+24V", "Supply voltage"), ("102", "0V", "Ground line"))),
    "contents": (heading("Contents"), table(("Chapter", "Title", "Page"), ("1", "Alarms", "3"), ("2", "Servo alarms", "9"))),
    "contents without a header": (heading("Alarm list"), table(("SV0401", "Servo alarm", "3"), ("SV0402", "Servo two", "9"), ("SV0403", "Three", "12"))),
    "feeds and speeds": (table(("Code", "Material", "Speed", "Feed"), ("101", "Steel", "200", "0.1"), ("102", "Brass", "900", "0.2")),),
    "tools": (table(("Tool No.", "Description", "Length"), ("101", "End mill", "100"), ("102", "Drill bit", "80")),),
    "G-codes": (heading("报警与代码一览"), table(("代码", "含义"), ("G00", "快速定位"), ("G01", "直线插补"), ("G02", "圆弧插补"))),
    "numbered faults": (heading("Alarms"), table(("No.", "Fault", "Cause", "Remedy"), ("1", "No turn", "Belt", "New"), ("2", "Noise", "Oil", "Fill"), ("3", "Hot", "Fan", "Clean"))),
    "spare parts": (heading("Spare parts"), table(("SV0401", "Servo motor"), ("SV0402", "Servo drive"), ("SV0403", "Servo cable"))),
    "a picture without a header": (heading("Alarm list"), table(("SV0401", "OFF Check it"), ("SV0402", "ON Check it"), ("SV0403", "Hot wait"), confidence=0.9)),
    "prose": (heading("Alarms"), text("In 2024 the shop had 401 alarms.\n300 rpm was used.\n1000 parts were made.")),
    "a contents list": (heading("Alarms"), text("\n".join(f"SV040{k} Servo alarm ..... {k + 7}" for k in range(8)))),
    "four lines": (heading("Alarm list"), text("1001\tDoor open\n1002\tAir low\n1003\tOil low\n1004\tFull")),
    "a number in a sentence above a label": (text("The alarms of the year\n401 parts were lost\nReaction of the shop was slow"),),
    "empty": (Block("table"), table(("", ""), ("", "")), table(("",)), text(""), heading("")),
}  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_list_of_alarms_passes_unchanged(name: str) -> None:
    assert list(split(NONE[name], None, None)) == list(NONE[name])


def test_parameters_are_no_alarms() -> None:
    head = ("No.", "Name", "Unit", "Range", "Default", "Meaning")
    found = rows(heading("Parameters"), table(head, ("1320", "Stroke limit", "mm", "0-9999", "999", "Soft limit")))
    assert [(row.kind, row.first, row.heading, row.meaning) for row in found] == [
        ("parameter", "1320", "Stroke limit", "Soft limit")
    ]
    assert found[0].setting == "Unit: mm; Range: 0-9999; Default: 999"
    (chinese,) = rows(table(("参数号", "名称", "设定范围", "出厂值"), ("P01", "最高转速", "0～8000", "6000")))
    assert (chinese.kind, chinese.language) == ("parameter", "zh")


# ---- without a header, and in running text ----
def test_a_list_without_a_header_under_a_heading_of_alarms() -> None:
    listed = table(("SV0401", "Servo ready off"), ("SV0402", "Servo ready on"), ("SV0403", "Servo overload"))
    assert [row.heading for row in rows(heading("Alarm list"), listed)] == [
        "Servo ready off",
        "Servo ready on",
        "Servo overload",
    ]
    assert rows(heading("Alarm list"), listed, vendor="siemens") == []


def test_a_code_line_and_labelled_paragraphs_in_one_block() -> None:
    (row,) = rows(text("SV0401 SERVO OFF\nThe signal went off.\nCause: cable\nRemedy:\n1. Check\n2. Replace", page=4))
    assert (row.heading, row.meaning, row.causes, row.actions) == (
        "SERVO OFF",
        "The signal went off.",
        ("cable",),
        ("Check", "Replace"),
    )
    assert row.place.page == 4


def test_a_code_line_and_labelled_paragraphs_in_several_blocks() -> None:
    blocks = (
        heading("25050 %1: contour monitoring", 3),
        text("Explanation: The contour is off."),
        text("Reaction: NC Stop."),
        text("Remedy: Check the drive."),
        text("More about drives follows here."),
        heading("25060 转速限制", 3),
        text("原因：电缆断。处理：换电缆"),
    )
    first, second = rows(*blocks)
    assert (first.meaning, first.reaction, first.actions) == ("The contour is off.", "NC Stop.", ("Check the drive.",))
    assert (second.heading, second.causes, second.actions) == ("转速限制", ("电缆断。",), ("换电缆",))
    assert others(*blocks) == [blocks[4]]


def test_labels_as_headings() -> None:
    (row,) = rows(
        heading("F07011 Motor hot", 2), heading("Cause", 3), text("Load too high"), heading("Remedy", 3), text("Wait")
    )
    assert (row.causes, row.actions) == (("Load too high",), ("Wait",))


def test_a_text_over_a_page_break() -> None:
    (row,) = rows(
        text(
            "SV0401 SERVO OFF\nCause: cable\nRemedy: 1. Check the whole of the wiring between the amplifier and", page=1
        ),
        text("its motor\n2. Replace", page=2),
    )
    assert row.actions == ("Check the whole of the wiring between the amplifier and its motor", "Replace")


def test_a_list_of_one_line_each() -> None:
    lines = "1001\tDoor open\n1002\tAir low\n1003\tOil low\n1004\tCoolant low\n1005\tChuck open"
    found = rows(heading("Alarm messages"), text(lines))
    assert (found[0].first, found[0].heading) == ("1001", "Door open")
    assert len(found) == 5
    assert len(rows(heading("PLC"), text(f"Alarm messages\n{lines}"))) == 5


def test_a_description_alone_needs_a_heading_of_alarms() -> None:
    blocks = (text("SV0401 SERVO OFF"), text("Description: it is off"))
    assert rows(*blocks) == []
    assert len(rows(heading("Alarm list"), *blocks)) == 1


# ---- hostile input ----
@pytest.mark.parametrize(
    "block",
    [
        table(("Alarm No.", *["Message"] * 9999), ("401", *["x"] * 9999)),
        table(HEAD, ("401", "Servo", "Cause: 1. a b c. " * 60_000, "1. " * 330_000)),
        table(HEAD, ("401 " * 250_000, "Servo", "x", "y"), ("402", "Hot", "(" * 500_000, "-" * 500_000)),
        text("401 x y\n" * 60_000),
        text("401" + " " * 1_000_000 + "x"),
        text("原因：断。" * 200_000),
        table(HEAD, *[("401" if k == 0 else "", "A" if k == 0 else "", f"b{k}", "c") for k in range(20_000)]),
    ],
    ids=["wide", "long cell", "long code", "lines", "spaces", "labels", "rows"],
)
def test_hostile_input_takes_linear_time(block: Block) -> None:
    begun = time.monotonic()
    list(split([block], None, None))
    assert time.monotonic() - begun < 20


def test_it_is_lazy() -> None:
    def endless() -> object:
        number = 1000
        while True:
            yield table(HEAD, (str(number), "SERVO", "x", "y"), page=number)
            number += 1

    found = split(endless(), None, None)  # type: ignore[arg-type]
    assert [next(found).place.page for _ in range(3)] == [1000, 1001, 1002]


# ---- the whole way ----
def test_columns_of_a_table_with_a_title() -> None:
    columns = columns_of(table(("Alarm list",) * 4, HEAD, ("401", "SERVO", "x", "y")).rows)
    assert columns is not None
    assert (columns.kind, columns.code, columns.data_from) == ("alarm", 0, 2)
    assert columns.roles == ("code", "heading", "cause", "remedy")


def test_score_says_what_is_wrong() -> None:
    truth = [TrueAlarm("401", "", "SERVO", ("a",), ("b",)), TrueAlarm("402", "", "HOT", (), ())]
    right = AlarmRow("alarm", "401", "４０１", heading="SERVO", causes=("a",), actions=("b ",))
    wrong = AlarmRow("alarm", "402", "402", heading="HOT", causes=("made up",))
    extra = AlarmRow("alarm", "403", "403", heading="NONE")
    found = score(truth, [right, wrong, extra])
    assert found.precision == pytest.approx(1 / 3)
    assert found.recall == 0.5
    assert len(found.wrong) == 2 and "made up" in found.wrong[0] and "403" in found.wrong[1]
    assert score([], []).precision == 1.0


@pytest.mark.integration
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_generated_manuals(layout: Layout, language: Language, tmp_path: Path) -> None:
    from retrieval.ingest.readers.pdf import read

    least = 0.93 if layout == "unruled" else 0.98
    styles: tuple[VendorStyle, ...] = ("fanuc", "mitsubishi", "free")
    for style in styles:
        known = alarms(40, 11, style, language)
        path = tmp_path / f"{style}.pdf"
        write_manual(path, known, layout, 11)
        found = score(known, rows(*read(path, path.name).blocks))
        assert found.precision >= least and found.recall >= least, found.wrong


@pytest.mark.integration
def test_rows_of_a_mixed_manual(tmp_path: Path) -> None:
    from retrieval.ingest.readers.pdf import read

    path = tmp_path / "manual.pdf"
    known = [placed.alarm for placed in manual(path, 21) if placed.layout != "scan"]
    found = score(known, [row for row in rows(*read(path, path.name).blocks) if row.confidence == 1.0])
    assert found.precision >= 0.98 and found.recall >= 0.95, found.wrong


@pytest.mark.integration
def test_rows_of_office_files_and_of_work_orders(tmp_path: Path) -> None:
    from evaluation.documents import office
    from retrieval.ingest.sniff import open_document

    known = alarms(40, 5, "mitsubishi")
    office.write_xlsx(tmp_path / "a.xlsx", known, 5)
    office.write_docx(tmp_path / "a.docx", known)
    office.write_html(tmp_path / "a.html", known)
    office.write_text(tmp_path / "a.txt", known)
    office.write_jsonl(tmp_path / "a.jsonl", known)
    for path in sorted(tmp_path.glob("a.*")):
        found = score(known, rows(*open_document(path, path.name).blocks))
        assert found.precision >= 0.98 and found.recall >= 0.98, (path.name, found.wrong)
    office.write_orders_csv(tmp_path / "orders.csv", 5)
    assert rows(*open_document(tmp_path / "orders.csv", "orders.csv").blocks) == []
