"""Readers of office formats and plain text: each format and encoding with what must come out, and every bad file."""

from __future__ import annotations

import base64
import json
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from datetime import time as clock
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from evaluation.documents import office
from evaluation.documents.truth import VENDOR_STYLES, TrueAlarm, alarms
from retrieval.ingest.document import Block, Document, DocumentUnreadable
from retrieval.ingest.readers import docx, html, jsonl, markdown, sheet
from retrieval.ingest.readers import text as plain
from retrieval.ingest.rows import AlarmRow, split
from retrieval.ingest.sniff import open_document
from retrieval.records import UNPRINTABLE

# An old workbook of two sheets, the second hidden: written once, for no library here writes the format.
XLS = zlib.decompress(base64.b85decode(
    "c-rk)O-NKx6#njgZ^oI)pV2hXU=krK)5s!dqf<e;N-Uuwg3@M^Fvl2bVGFg)MMNO9DuNI+Xk)eMheB%SBG76P1i?(<s#Q?bLVcZc-g~6e1P-L2"
    "yl=SYo_p>&@7#Cpxj*x!r;1Y}k1Nv1KqCyyTS532$P|^J+X#dDEsI&V4p6Z?tSSTpG?9KEUKG5^<2mH{PDA67`I;#3naW9AKub>|Ub%ueAY*7("
    "Jcb5kQtoNorBaA;8CQwWGeXx3eJHvwh3*r{O`#2>n^Gq*6>X{6>*VoqT_t^mL=~Qj%}0^cqYRUr$Nj^~*7ae3@?87*wbBtW^DzpV>*jbOp5%5A"
    "V=#f8gos&$`v?KOgu3qTx>ziQQc8+Z{IDv4@9ye<Rq4rBR<1zuUyJ2=|Bwf0MzhI-G`X4bTbky60M=>6OJNB4=rg%TtFex=H@H3R=kzhr-II*Z"
    "qFJ^GF0?3F1uc`;4V(ShM$fp{mO4t+Ong)4I;eW=AcuP{`TIlI<?zD^O3C&RpC+>Vgct2T1+pgdiN;VQe6g&|Fum67gKzH+b+krLiDW=d9Q$0_"
    "%&!3pSJ;A#3#G>=)Syx$7Tbkhm8WhLzCvgzX;NL?TIMiKgQ9aydaKFLZo&KLmIeG);)lK-eij+}65U4pcys!4>G+4}2&yR5F|z01AZk^ux^tWH"
    "JnGiU*}*;uE&ppb3+S*jcFQ?@i!jG4lTa*lLRuUhjt}drEc#0Hnc6Kkns!T5%W%Bu4C_7}a(3D#zpZc21;^R$(=^u5TiZ83MQ2zW;ydDaGsN2G"
    "cr!EfCn$cV^KL%PypnOxNSqAmbD`0wOYnpTM?3u=EO$mJ@ePUF>dYvWWtQxm=;S*eM-|zk>cN8t4<0;tSW9s4G=^O0?He=Snev?PI&)O!z0V|T"
    "7Dv!Szl-$0>>v_UC()Zz{%n9xxzAEdv~j-|GLDh=B)ZTc<LJscf9cMv7QWAt4a5I$3FYd4K9_MWv;W`3=p4T"
))  # fmt: skip


def put(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path) -> tuple[Document, list[Block]]:
    document = open_document(path, path.name)
    blocks = list(document.blocks)
    for block in blocks:
        for words in (block.text, *(cell for row in block.rows for cell in row.cells)):
            assert not UNPRINTABLE.search(words)
            words.encode()
        assert len({len(row.cells) for row in block.rows}) <= 1
    return document, blocks


def cells(block: Block) -> list[tuple[str, ...]]:
    return [row.cells for row in block.rows]


def texts(blocks: list[Block]) -> list[str]:
    return [block.text for block in blocks]


def refused(path: Path, *words: str) -> None:
    with pytest.raises(DocumentUnreadable) as caught:
        read(path)
    assert path.name in caught.value.what and caught.value.next_step
    for word in words:
        assert word in caught.value.what


def rewritten(path: Path, part: str, change: Any) -> Path:
    """The package with one of its parts changed."""
    with zipfile.ZipFile(path) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    parts[part] = change(parts[part])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return path


KNOWN = alarms(40, 3, "fanuc")
WRITERS: dict[str, Callable[[Path, Sequence[TrueAlarm]], None]] = {
    "list.xlsx": lambda path, known: office.write_xlsx(path, known, 1),
    "utf8.csv": lambda path, known: office.write_csv(path, known, "utf-8"),
    "bom.csv": lambda path, known: office.write_csv(path, known, "utf-8-sig", ";"),
    "gb.csv": lambda path, known: office.write_csv(path, known, "gb18030"),
    "gbk.tsv": lambda path, known: office.write_csv(path, known, "gbk", "\t"),
    "utf16.csv": lambda path, known: office.write_csv(path, known, "utf-16", "\t"),
    "le.csv": lambda path, known: office.write_csv(path, known, "utf-16-le"),
    "be.csv": lambda path, known: office.write_csv(path, known, "utf-16-be"),
    "list.html": office.write_html,
    "gb2312.html": lambda path, known: office.write_html(path, known, "gb2312"),
    "list.md": office.write_markdown,
    "list.jsonl": office.write_jsonl,
    "list.docx": office.write_docx,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_cell_of_an_alarm_list_comes_out(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name, KNOWN)
    document, blocks = read(tmp_path / name)
    assert document.warnings == []
    found = [row for block in blocks for row in cells(block)]
    for alarm in KNOWN:
        wanted = office.cells_of(alarm)
        # GBK and GB 2312 lack the Ω and such of some texts
        rows = [row[-4:] if len(row) > 4 else row for row in found if row[0] == wanted[0]]
        assert rows and (wanted in rows or name in ("gbk.tsv",)), wanted


@pytest.mark.parametrize("name", [*(name for name in WRITERS if name != "gbk.tsv"), "list.txt", "blocks.docx"])
@pytest.mark.parametrize("style", VENDOR_STYLES)
def test_from_the_file_to_the_rows(tmp_path: Path, name: str, style: Any) -> None:
    from evaluation.extraction import score

    known: tuple[TrueAlarm, ...] = alarms(30, 11, style)
    write: Any = WRITERS.get(name) or (
        office.write_text if name == "list.txt" else lambda p, k: office.write_docx(p, k, "blocks")
    )
    write(tmp_path / name, known)
    found = [row for row in split(open_document(tmp_path / name, name).blocks, None, None) if isinstance(row, AlarmRow)]
    result = score(known, found)
    assert result.precision >= 0.98 and result.recall >= 0.98, result.wrong


def test_work_orders_are_no_alarms(tmp_path: Path) -> None:
    rows = office.write_orders_csv(tmp_path / "orders.csv", 5)
    document, blocks = read(tmp_path / "orders.csv")
    assert document.encoding == "gb18030" and document.warnings == []
    assert cells(blocks[0]) == [office.ORDER_COLUMNS, *rows]
    assert not any(isinstance(item, AlarmRow) for item in split(iter(blocks), None, None))


def test_xlsx_shows_cells_as_people_see_them(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    page = book.active
    assert page is not None
    page.title = "FANUC 0i"
    page["B2"] = "Alarm list"
    page.merge_cells("B2:D2")
    page["B4"], page["C4"], page["D4"] = 401, "1. cable\n2. supply_x000D_", datetime(2026, 5, 6)
    page["B4"].number_format = "0000"
    page["B5"], page["C5"], page["D5"] = 7, 1.0, datetime(2026, 5, 6, 7, 8)
    page["B5"].number_format = '"SV"0000'
    page.merge_cells("B5:B6")
    page["C6"], page["D6"] = 0.1 + 0.2, True
    page["C8"], page["D8"] = 0.5, clock(7, 30)
    page["C8"].number_format = "0%"
    page["C9"], page["D9"] = "zero_x000B_width\u200b\u202e", "  "
    hidden = book.create_sheet("Sheet2")
    hidden.sheet_state = "hidden"
    hidden["A1"], hidden["B1"] = 12.5, date(2026, 1, 2)
    hidden["A1"].number_format = "0.00"
    book.create_sheet("empty")
    book.save(tmp_path / "a.xlsx")
    document, blocks = read(tmp_path / "a.xlsx")
    assert [(b.kind, b.text, b.place.sheet) for b in blocks] == [
        ("heading", "FANUC 0i", "FANUC 0i"), ("table", "", "FANUC 0i"), ("table", "", "Sheet2"),
    ]  # fmt: skip
    assert cells(blocks[1]) == [
        ("Alarm list", "Alarm list", "Alarm list"),
        ("0401", "1. cable\n2. supply", "2026-05-06"),
        ("SV0007", "1", "2026-05-06 07:08:00"),
        ("SV0007", "0.3", "TRUE"),
        ("", "50%", "07:30:00"),
        ("", "zero\nwidth", ""),
    ]
    assert [row.place.row for row in blocks[1].rows] == [2, 4, 5, 6, 8, 9]
    assert cells(blocks[2]) == [("12.50", "2026-01-02")]
    assert document.warnings == ["a.xlsx: sheet Sheet2 is hidden; it was read all the same."]


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        (25050, "General", "25050"), (25050.0, "#,##0", "25050"), (3.0, "0.0", "3.0"), (0.125, "0.0%", "12.5%"),
        (7, "000", "007"), (7, "General", "7"), (4, '"AL."00', "AL.04"), (4, r"\E\-000", "E-004"), (-5, "000", "-005"),
        (24, '0" V"', "24 V"), (1.5, "General", "1.5"), (0.1, "@", "0.1"), (1e20, "General", "1e+20"),
        (12, "[Red]000;[Blue]-000", "012"), (timedelta(hours=30), "[h]:mm", "30:00:00"), (False, "General", "FALSE"),
    ],
)  # fmt: skip
def test_numbers_as_their_format_shows_them(value: Any, form: str, expected: str) -> None:
    assert sheet.shown(value, form) == expected


def test_xls(tmp_path: Path) -> None:
    document, blocks = read(put(tmp_path, "a.xls", XLS))
    assert document.format == "xls"
    assert texts(blocks) == ["报警", "", "more", ""]
    assert cells(blocks[1]) == [
        ("报警一览", "报警一览", "报警一览"), ("报警号", "原因", "日期"), ("0401", "1. 电缆\n2. 电源", "2026-05-04"),
        ("7", "a", ""), ("7", "TRUE", ""),
    ]  # fmt: skip
    assert cells(blocks[3]) == [("0.25",)]
    assert document.warnings == ["a.xls: sheet more is hidden; it was read all the same."]
    for length in (600, 1500, 3000, 5000):
        try:
            read(put(tmp_path, "cut.xls", XLS[:length]))
        except DocumentUnreadable as error:
            assert "cut.xls" in error.what


def test_formulas_without_a_stored_value_are_said(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    page = book.active
    assert page is not None
    page["A1"], page["A2"] = "=1+1", "text"
    book.save(tmp_path / "a.xlsx")
    document, blocks = read(tmp_path / "a.xlsx")
    assert cells(blocks[0]) == [("text",)]
    assert "1 formulas have no stored value" in document.warnings[0]


def test_a_long_sheet_is_streamed_and_keeps_its_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet, "ROWS_PER_BLOCK", 50)
    book = openpyxl.Workbook(write_only=True)
    page = book.create_sheet("Sheet1")
    for n in range(1, 121):
        page.append(["", n if n < 60 else None, "x"])
    book.save(tmp_path / "a.xlsx")
    _, blocks = read(tmp_path / "a.xlsx")
    assert [len(block.rows) for block in blocks] == [50, 50, 20]
    assert blocks[2].rows[-1].cells == ("", "x") and blocks[2].rows[-1].place.row == 120


def test_shared_strings_as_excel_writes_them(tmp_path: Path) -> None:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType='
        f'"{kind}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/>'
        f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}.sharedStrings+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type='
        f'"{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type='
        f'"{relations}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="{relations}/sharedStrings"'
        ' Target="sharedStrings.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets><sheet name="S" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/sharedStrings.xml": f'<sst xmlns="{main}"><si><t>plain</t></si><si><r><t>rich </t></r><r><t>text</t></r></si></sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><dimension ref="A1"/><sheetData><row r="2"><c r="B2" t="s">'
        '<v>0</v></c><c r="C2" t="s"><v>1</v></c><c r="D2"><f>1+1</f><v>2</v></c></row></sheetData></worksheet>',
    }  # fmt: skip
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as made:
        for name, content in parts.items():
            made.writestr(name, content)
    document, blocks = read(tmp_path / "a.xlsx")
    assert cells(blocks[1]) == [("plain", "rich text", "2")] and document.warnings == []


def test_macros_are_ignored(tmp_path: Path) -> None:
    openpyxl_book = openpyxl.Workbook()
    assert openpyxl_book.active is not None
    openpyxl_book.active["A1"] = "x"
    openpyxl_book.save(tmp_path / "a.xlsm")
    with zipfile.ZipFile(tmp_path / "a.xlsm", "a") as package:
        package.writestr("xl/vbaProject.bin", b"macro")
    document, blocks = read(tmp_path / "a.xlsm")
    assert cells(blocks[0]) == [("x",)] and document.warnings == ["a.xlsm: its macros were ignored."]
    office.write_package(
        tmp_path / "a.docm", "<w:p><w:r><w:t>x</w:t></w:r></w:p>", extra=[("word/vbaProject.bin", "m")]
    )
    document, blocks = read(tmp_path / "a.docm")
    assert texts(blocks) == ["x"] and document.warnings == ["a.docm: its macros were ignored."]


BOMB = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("declared", [BOMB, OUTSIDE])
def test_entities_are_refused(tmp_path: Path, declared: str) -> None:
    office.write_docx(tmp_path / "a.docx", KNOWN[:2])
    rewritten(tmp_path / "a.docx", "word/document.xml", lambda part: declared.encode() + part)
    refused(tmp_path / "a.docx", "document type", "word/document.xml")
    office.write_xlsx(tmp_path / "a.xlsx", KNOWN[:2], 1)
    rewritten(tmp_path / "a.xlsx", "xl/worksheets/sheet1.xml", lambda part: declared.encode() + part)
    refused(tmp_path / "a.xlsx", "document type")


def test_damaged_packages_are_named(tmp_path: Path) -> None:
    office.write_xlsx(tmp_path / "a.xlsx", KNOWN[:2], 1)
    rewritten(tmp_path / "a.xlsx", "xl/workbook.xml", lambda part: part[: len(part) // 2])
    refused(tmp_path / "a.xlsx", "damaged")
    office.write_docx(tmp_path / "a.docx", KNOWN[:2])
    rewritten(tmp_path / "a.docx", "word/document.xml", lambda part: part[: len(part) // 2])
    refused(tmp_path / "a.docx", "damaged")
    office.write_xlsx(tmp_path / "b.xlsx", KNOWN, 1)
    rewritten(tmp_path / "b.xlsx", "xl/worksheets/sheet1.xml", lambda part: part[: len(part) // 2])
    document, blocks = read(tmp_path / "b.xlsx")
    assert "breaks off after row" in document.warnings[0]
    assert len(blocks[1].rows) > 5  # what came before stands, and the next sheet is read
    assert blocks[-1].place.sheet == "Contacts"


def test_a_package_of_too_much_xml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    office.write_docx(tmp_path / "a.docx", KNOWN)
    monkeypatch.setattr("retrieval.ingest.archive.MAX_PART_BYTES", 1000)
    refused(tmp_path / "a.docx", "unpacks to more")


def test_strict_workbooks_are_named(tmp_path: Path) -> None:
    office.write_xlsx(tmp_path / "a.xlsx", KNOWN[:1], 1)
    other = b"http://purl.oclc.org/ooxml/spreadsheetml/main"
    rewritten(tmp_path / "a.xlsx", "xl/workbook.xml",
              lambda part: part.replace(b"http://schemas.openxmlformats.org/spreadsheetml/2006/main", other))  # fmt: skip
    refused(tmp_path / "a.xlsx", "Strict")


def word(tmp_path: Path, body: str, **kwargs: Any) -> list[Block]:
    office.write_package(tmp_path / "a.docx", body, **kwargs)
    return read(tmp_path / "a.docx")[1]


def p(words: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{words}</w:t></w:r></w:p>"


def test_docx_headings_by_style_and_outline_and_order(tmp_path: Path) -> None:
    styles = (
        '<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        '<w:style w:styleId="1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="own"><w:name w:val="Kapitel"/><w:basedOn w:val="1"/></w:style>'
        '<w:style w:styleId="loop"><w:name w:val="x"/><w:basedOn w:val="loop"/></w:style>'
        '<w:style w:styleId="toc1"><w:name w:val="toc 1"/></w:style></w:styles>'
    )
    body = (
        p("Alarms 14", '<w:pStyle w:val="toc1"/>') + p("Alarms", '<w:pStyle w:val="1"/>') + p("one")
        + p("Own", '<w:pStyle w:val="own"/>') + p("third", '<w:outlineLvl w:val="2"/>') + p("two", '<w:pStyle w:val="loop"/>')
        + p("deep", '<w:outlineLvl w:val="8"/>') + p("body", '<w:outlineLvl w:val="9"/>')
    )  # fmt: skip
    blocks = word(tmp_path, body, extra=[("word/styles.xml", styles)])
    assert [(b.kind, b.level, b.text) for b in blocks] == [
        ("heading", 1, "Alarms"), ("text", 0, "one"), ("heading", 1, "Own"), ("heading", 3, "third"), ("text", 0, "two"),
        ("heading", 6, "deep"), ("text", 0, "body"),
    ]  # fmt: skip


def test_docx_keeps_the_numbers_of_lists(tmp_path: Path) -> None:
    one, two = (f'<w:numPr><w:ilvl w:val="0"/><w:numId w:val="{n}"/></w:numPr>' for n in (1, 2))
    blocks = word(tmp_path, p("Steps:") + p("stop", one) + p("open", one) + p("then") + p("close", one) + p("anew", two),
                  lists=2)  # fmt: skip
    assert texts(blocks) == ["Steps:", "1. stop\n2. open", "then", "3. close\n1. anew"]


def test_docx_numbers_of_levels_and_kinds(tmp_path: Path) -> None:
    def level(at: int, kind: str, shown: str) -> str:
        return (
            f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{shown}"/></w:lvl>'
        )

    numbering = (
        '<w:numbering xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:abstractNum w:abstractNumId="5">'
        + level(0, "decimal", "%1") + level(1, "lowerLetter", "%1.%2)") + level(2, "bullet", "x") + level(3, "chineseCounting", "（%4）")
        + level(4, "upperRoman", "%5.") + '</w:abstractNum><w:num w:numId="9"><w:abstractNumId w:val="5"/></w:num></w:numbering>'
    )  # fmt: skip
    order = (0, 1, 1, 2, 0, 1, 3, 4, 4)
    body = "".join(p(f"t{n}", f'<w:numPr><w:ilvl w:val="{n}"/><w:numId w:val="9"/></w:numPr>') for n in order)
    blocks = word(tmp_path, body, extra=[("word/numbering.xml", numbering)])
    assert blocks[0].text.split("\n") == [
        "1 t0", "1.a) t1", "1.b) t1", "- t2", "2 t0", "2.a) t1", "（一） t3", "I. t4", "II. t4",
    ]  # fmt: skip


def test_docx_reads_what_word_hides_in_other_elements(tmp_path: Path) -> None:
    body = (
        "<w:sdt><w:sdtPr/><w:sdtContent>" + p("in a control") + "</w:sdtContent></w:sdt>"
        '<w:p><w:r><w:t xml:space="preserve">a </w:t></w:r><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins>'
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:hyperlink><w:r><w:t> link</w:t></w:r></w:hyperlink>"
        '<w:r><w:tab/><w:sym w:font="Symbol" w:char="F0A3"/><w:t>50</w:t><w:br/><w:t>next</w:t><w:noBreakHyphen/></w:r></w:p>'
        "<w:p><w:r><w:drawing><w:txbxContent>"
        + p("in a box")
        + "</w:txbxContent></w:drawing><w:t>beside</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc>" + p("WARNING") + p("Switch off.") + "</w:tc></w:tr></w:tbl>"
    )
    assert texts(word(tmp_path, body)) == [
        "in a control", "a inserted link\t≤50\nnext-", "beside", "in a box", "WARNING", "Switch off.",
    ]  # fmt: skip


def test_docx_tables_with_merged_and_nested_cells(tmp_path: Path) -> None:
    def tc(content: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>"

    restart, on, two = '<w:vMerge w:val="restart"/>', "<w:vMerge/>", '<w:gridSpan w:val="2"/>'
    inner = "<w:tbl><w:tr>" + tc(p("n1")) + tc(p("n2")) + "</w:tr></w:tbl>"
    body = (
        "<w:tbl>"
        "<w:tr>" + tc(p("No."), restart) + tc(p("Texts"), two) + "</w:tr>"
        "<w:tr>" + tc(p(""), on) + tc(p("Cause")) + tc(p("Remedy")) + "</w:tr>"
        "<w:tr>" + tc(p("401"), restart) + tc(p("a") + p("b")) + tc(p("c") + inner) + "</w:tr>"
        "<w:tr>" + tc(p(""), on) + tc(p("d")) + tc(p("e")) + "</w:tr>"
        '<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>' + tc(p("f")) + tc(p("g")) + "</w:tr>"
        "</w:tbl>"
    )
    assert cells(word(tmp_path, body)[0]) == [
        ("No.", "Texts", "Texts"), ("No.", "Cause", "Remedy"), ("401", "a\nb", "c\nn1\tn2"), ("401", "d", "e"), ("", "f", "g"),
    ]  # fmt: skip


def test_docx_without_its_document(tmp_path: Path) -> None:
    office.write_package(tmp_path / "a.docx", "")
    with zipfile.ZipFile(tmp_path / "b.docx", "w") as package:
        package.writestr("word/other.xml", "<x/>")
    with pytest.raises(DocumentUnreadable, match="no Word document"):
        docx.read(tmp_path / "b.docx", "b.docx")
    assert read(tmp_path / "a.docx")[1] == []


def test_csv_quoting_ragged_rows_and_titles(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        "a.csv",
        '\ufeff报警清单\r\n编号;内容;原因\r\n401;"伺服; 未就绪";"1. 电缆\r\n2. 电源"\r\n402;b\r\n403;c;d;e\r\n',
    )
    document, blocks = read(path)
    assert document.encoding == "utf-8"
    assert cells(blocks[0]) == [
        ("报警清单", "", "", ""), ("编号", "内容", "原因", ""), ("401", "伺服; 未就绪", "1. 电缆\n2. 电源", ""),
        ("402", "b", "", ""), ("403", "c", "d", "e"),
    ]  # fmt: skip
    assert [row.place.row for row in blocks[0].rows] == [1, 2, 3, 4, 5]
    assert document.warnings == [
        "a.csv: 2 rows have more or fewer columns than the others, the first in row 4; they were filled up with empty cells."
    ]


def test_a_quotation_mark_that_is_never_closed_swallows_nothing(tmp_path: Path) -> None:
    document, blocks = read(put(tmp_path, "a.csv", 'code,size\n1,"5 inch\n2,6\n3,7\n'))
    assert cells(blocks[0]) == [("code", "size"), ("1", '"5 inch'), ("2", "6"), ("3", "7")]
    assert "never closed" in document.warnings[0]
    document, blocks = read(put(tmp_path, "b.csv", 'a,b\n1,"x\n' + "2,y\n" * 900 + '3,"z"\n'))
    assert len(blocks[0].rows) == 903


def test_csv_oddities(tmp_path: Path) -> None:
    assert cells(read(put(tmp_path, "a.csv", "sep=;\na;b\n1;2\n"))[1][0]) == [("a", "b"), ("1", "2")]
    assert cells(read(put(tmp_path, "b.csv", "code\n401\n"))[1][0]) == [("code",), ("401",)]
    document, blocks = read(put(tmp_path, "c.csv", "a,b\n1," + "x" * 1_000_000 + "\n"))
    assert len(blocks[0].rows[1].cells[1]) == 1_000_000 and document.warnings == []


def test_html_structure(tmp_path: Path) -> None:
    page = """<!DOCTYPE html><head><meta http-equiv=Content-Type content="text/html; charset=gb2312"><title> 报警 手册 </title>
<script>var x = "<p>no</p>"</script><style>p{}</style></head><body><nav>menu</nav><h1>报警<br>一览</h1>
<p>电压 &lt;5&nbsp;V&deg;<br>第二行</p>loose <b>bold</b> text<ul><li>甲<li>乙</ul><ol start=3><li>x<li>y</ol>
<p hidden>no</p><div style="display:none">no</div><noscript>no</noscript><div>A<div>B</div>C</div>
<pre>l1
  l2</pre><table><tr><th rowspan=2>No.<th colspan=2>T<tr><th>a<th>b<tr><td>401<td>x<br>y<td><p>1<p>2</table></body>"""
    document, blocks = read(put(tmp_path, "a.html", page.encode("gb18030")))
    assert (document.title, document.encoding) == ("报警 手册", "gb18030")
    assert [(b.kind, b.text) for b in blocks[:-1]] == [
        ("heading", "报警 一览"), ("text", "电压 <5 V°\n第二行"), ("text", "loose bold text"), ("text", "- 甲\n- 乙"),
        ("text", "3. x\n4. y"), ("text", "A"), ("text", "B"), ("text", "C"), ("text", "l1\nl2"),
    ]  # fmt: skip
    assert cells(blocks[-1]) == [("No.", "T", "T"), ("No.", "a", "b"), ("401", "x\ny", "1\n2")]


def test_html_tables_that_only_place_things(tmp_path: Path) -> None:
    page = "<table><tr><td><h2>Alarms</h2><table><tr><td>401<td>x<tr><td>402<td>y</table><td>side</table>"
    blocks = read(put(tmp_path, "a.html", page))[1]
    assert [(b.kind, b.text, cells(b)) for b in blocks] == [
        ("heading", "Alarms", []), ("table", "", [("401", "x"), ("402", "y")]), ("text", "side", []),
    ]  # fmt: skip


def test_hostile_html(tmp_path: Path) -> None:
    started = time.monotonic()
    document, blocks = read(put(tmp_path, "deep.html", "<p>first</p>" + "<div>" * 50_000 + "lost"))
    assert texts(blocks)[0] == "first" and "breaks off" in document.warnings[0]
    wide = "<table><tr>" + "<td colspan=99999999>x" * 3_000 + "<tr><td>y</table>"
    document, _ = read(put(tmp_path, "wide.html", wide))
    assert "2000000 cells" in document.warnings[0]
    tall = "<table>" + "<tr><td rowspan=65000>a<td>b" * 2_000 + "</table>"
    read(put(tmp_path, "tall.html", tall[: 2_000 * 20]))
    assert read(put(tmp_path, "none.html", "<!-- nothing --><html></html>"))[1] == []
    assert texts(read(put(tmp_path, "open.html", "<html><p>a<b>c<table><td>d"))[1])[0] == "ac"
    assert time.monotonic() - started < 20


def test_spans_that_reach_into_each_other() -> None:
    rows, whole = html.grid([[("a", 1, 0), ("b", 1, 2)], [("c", 2, 1)], [("d", 1, 1)], []])
    assert whole
    assert rows == [(1, ["a", "b", "", ""]), (2, ["a", "b", "c", "c"]), (3, ["a", "d", "", ""])]


def test_markdown_structure(tmp_path: Path) -> None:
    page = """---
title: "Alarm manual"
tags: [a]
---
# Alarms *of* the `drive`

Text of one
paragraph with ![a picture](x.png).

Second
------

1. stop
   - first
     line
2. open

| Code | Text |
|---|---|
| SV0401 | a<br>b \\| c |
| 402 |

> quoted

```
G0 X1
```

<table><tr><td>k</td><td>v</td></tr></table>
"""
    document, blocks = read(put(tmp_path, "a.md", page))
    assert document.title == "Alarm manual"
    assert [(b.kind, b.level, b.text, b.place.row) for b in blocks[:6]] == [
        ("heading", 1, "Alarms of the drive", 5), ("text", 0, "Text of one\nparagraph with a picture.", 7),
        ("heading", 2, "Second", 10), ("text", 0, "1. stop\n  - first\n  line\n2. open", 13), ("table", 0, "", 18),
        ("text", 0, "quoted", 23),
    ]  # fmt: skip
    assert cells(blocks[4]) == [("Code", "Text"), ("SV0401", "a\nb | c"), ("402", "")]
    assert blocks[6].text == "G0 X1" and cells(blocks[7]) == [("k", "v")]
    with pytest.raises(DocumentUnreadable, match="more than 10 characters"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown, "MAX_CHARACTERS", 10)
        read(tmp_path / "a.md")


def test_text_structure(tmp_path: Path) -> None:
    page = """Manual
======

3.2 Drive faults

SV0401 READY OFF
Cause:
  cable
Remedy: replace it

9.993 TOOL CHANGER

第3章 伺服

正文第一行
正文第二行
----------
第3.2节 说明如下。
"""
    _, blocks = read(put(tmp_path, "a.txt", page))
    assert [(b.kind, b.level, b.text) for b in blocks] == [
        ("heading", 1, "Manual"), ("heading", 2, "3.2 Drive faults"),
        ("text", 0, "SV0401 READY OFF\nCause:\n  cable\nRemedy: replace it"), ("text", 0, "9.993 TOOL CHANGER"),
        ("heading", 1, "第3章 伺服"), ("text", 0, "正文第一行"), ("heading", 2, "正文第二行"), ("text", 0, "第3.2节 说明如下。"),
    ]  # fmt: skip
    assert [b.place.row for b in blocks] == [1, 4, 6, 11, 13, 15, 16, 18]
    with pytest.raises(DocumentUnreadable, match="not text"):
        plain.read(put(tmp_path, "b.txt", bytes(range(256)) * 30), "b.txt")


def test_jsonl(tmp_path: Path) -> None:
    lines = ['{"code": "SV0401", "causes": ["a", "b"], "n": {"x": 1.0}}', "", "bad", "[1]", "[" * 100_000,
             '{"code": 2, "on": true, "s": "\\ud800\\u0000\\u202ex", "steps": [{"do": "z"}], "no": null}']  # fmt: skip
    document, blocks = read(put(tmp_path, "a.jsonl", "\n".join(lines)))
    assert cells(blocks[0]) == [
        ("code", "causes", "n.x", "on", "s", "steps.1.do"), ("SV0401", "a\nb", "1", "", "", ""), ("2", "", "", "true", "x", "z"),
    ]  # fmt: skip
    assert [row.place.row for row in blocks[0].rows] == [1, 1, 6]
    assert len(document.warnings) == 3 and "line 3" in document.warnings[0] and "line 5" in document.warnings[2]
    many = "\n".join(json.dumps({f"key{n}": n}) for n in range(300))
    document, blocks = read(put(tmp_path, "b.jsonl", many))
    assert texts(blocks)[7] == "key7: 7" and "300 different keys" in document.warnings[0]
    with pytest.raises(DocumentUnreadable, match=r"no line that is a JSON record .*line 1"):
        jsonl.read(put(tmp_path, "c.jsonl", "no\n"), "c.jsonl")
    document, _ = read(put(tmp_path, "d.jsonl", '{"a": 1}\n' + "x\n" * 90))
    assert len(document.warnings) == 21
