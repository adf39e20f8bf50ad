"""Alarm lists in the formats of offices, made of invented alarms: what a reader must find in them is known.

They have what real lists have: title rows and merged cells, two sheets, numbers stored as numbers, causes on lines of
one cell, GB18030 without any mark of it. Word files are written part by part, so that nothing but this module decides
what stands in them.
"""

from __future__ import annotations

import csv
import html
import io
import json
import random
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape

from evaluation.documents.truth import TrueAlarm
from retrieval.records import Language

Layout = Literal["table", "blocks"]
COLUMNS: dict[Language, tuple[str, ...]] = {
    "en": ("Alarm No.", "Message", "Cause", "Remedy"),
    "zh": ("报警号", "信息", "原因", "处理"),
}
LABELS: dict[Language, tuple[str, str]] = {"en": ("Cause", "Remedy"), "zh": ("原因", "处理")}
TITLES: dict[Language, str] = {"en": "Alarm list", "zh": "报警一览"}
ORDER_COLUMNS = ("日期", "机床", "报警号", "故障现象", "处理措施", "结果")
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def cells_of(alarm: TrueAlarm) -> tuple[str, str, str, str]:
    """Code, heading, causes and remedies as cells; several of them numbered, one a line."""
    return alarm.code_text, alarm.heading, _numbered(alarm.causes), _numbered(alarm.remedies)


def _numbered(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else "\n".join(f"{n}. {text}" for n, text in enumerate(texts, start=1))


def _by_language(known: Sequence[TrueAlarm]) -> list[tuple[Language, list[TrueAlarm]]]:
    groups = [(language, [alarm for alarm in known if alarm.language == language]) for language in _LANGUAGES]
    return [(language, group) for language, group in groups if group]


def write_xlsx(path: Path, known: Sequence[TrueAlarm], seed: int) -> None:
    """Write a workbook with a sheet for each language, and one that is no alarm list.

    Args:
        path: the file to write.
        known: the alarms, in the order of the rows.
        seed: decides where the table begins and which codes are stored as numbers with a format.
    """
    import openpyxl  # noqa: PLC0415 - a fifth of a second
    from openpyxl.styles import Alignment  # noqa: PLC0415

    rng = random.Random(seed)  # noqa: S311 - made-up layout, no secrets
    book = openpyxl.Workbook()
    book.remove(book.active)
    for language, group in _by_language(known):
        sheet = book.create_sheet(TITLES[language])
        left, top = rng.randint(1, 3), rng.randint(2, 4)
        sheet.cell(top, left, f"{TITLES[language]} CNC-500")
        sheet.merge_cells(start_row=top, start_column=left, end_row=top, end_column=left + 3)
        sheet.cell(top + 1, left, "Rev. C" if language == "en" else "版本 C")
        for column, title in enumerate(COLUMNS[language], start=left):
            sheet.cell(top + 3, column, title)
        row = top + 4
        for alarm in group:
            for column, text in enumerate(cells_of(alarm), start=left):
                cell = sheet.cell(row, column, text)
                cell.alignment = Alignment(wrap_text=True)
            _store_number(sheet.cell(row, left), alarm, rng)
            row += 1
    notes = book.create_sheet("Contacts")
    for line in (("Name", "Phone", "Shift"), ("Service", 5512, "day"), ("Electrician", 5519, "night")):
        notes.append(line)
    book.save(path)


def _store_number(cell: Any, alarm: TrueAlarm, rng: random.Random) -> None:
    """Store a code of digits as a number, its zeros and letters by format, as people do who fill columns down."""
    prefix = alarm.code.rstrip("0123456789")
    digits = alarm.code[len(prefix) :]
    if alarm.last or not digits or (prefix and not (prefix.isalpha() and rng.random() < 0.3)):
        return
    cell.value = int(digits)
    cell.number_format = (f'"{prefix}"' if prefix else "") + ("0" * len(digits) if digits[0] == "0" or prefix else "0")


def write_csv(path: Path, known: Sequence[TrueAlarm], encoding: str, delimiter: str = ",") -> None:
    """Write the alarms of each language one after the other, each with its header, in any codec of Python."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter=delimiter)
    for language, group in _by_language(known):
        rows.writerow(COLUMNS[language])
        rows.writerows(cells_of(alarm) for alarm in group)
    path.write_bytes(text.getvalue().encode(encoding, errors="replace"))


def write_orders_csv(path: Path, seed: int, count: int = 60) -> tuple[tuple[str, ...], ...]:
    """Write work orders in GB18030: no alarm list, though a column holds codes. Returns the rows below the header."""
    rng = random.Random(seed)  # noqa: S311
    symptoms = ("主轴有异响", "X轴爬行", "换刀卡住", "冷却液不出", "开机报警", "加工尺寸超差")
    actions = (
        "更换轴承",
        "清洁光栅尺，重新紧固接头",
        "调整机械手间隙",
        "更换冷却泵",
        "更换编码器电池",
        "补偿反向间隙0.02mm",
    )
    results = ("已解决", "观察", "待备件，停机2天", "已解决，试切合格")
    rows = tuple(
        (
            f"2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
            f"M{rng.randint(1, 40):02d}",
            rng.choice(("SV0401", "SP9001", "25050", "", "DS0300")),
            rng.choice(symptoms),
            "\n".join(rng.sample(actions, rng.choice((1, 1, 2)))),
            rng.choice(results),
        )
        for _ in range(count)
    )
    text = io.StringIO(newline="")
    csv.writer(text).writerows((ORDER_COLUMNS, *rows))
    path.write_bytes(text.getvalue().encode("gb18030"))
    return rows


def write_html(path: Path, known: Sequence[TrueAlarm], encoding: str = "utf-8") -> None:
    """Write a page with a menu, scripts, a table that only places things, and a table of alarms for each language."""
    parts = [
        f'<!DOCTYPE html><html><head><meta charset="{encoding}"><title>CNC-500 {TITLES["en"]}</title>',
        "<style>td { color: red }</style><script>var alarm = 401;</script></head><body>",
        '<nav><ul><li><a href="#a">Home</a></li><li>Alarms</li></ul></nav><table><tr><td>',
    ]
    for language, group in _by_language(known):
        parts.append(f"<h2>{TITLES[language]}</h2><table border=1><thead><tr>")
        parts += [f"<th>{title}</th>" for title in COLUMNS[language]]
        parts.append("</tr></thead><tbody>")
        for alarm in group:
            cells = (html.escape(text).replace("\n", "<br>") for text in cells_of(alarm))
            parts.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n")
        parts.append("</tbody></table>")
    parts.append("</td></tr></table></body></html>")
    path.write_bytes("".join(parts).encode(encoding, errors="xmlcharrefreplace"))


def write_markdown(path: Path, known: Sequence[TrueAlarm]) -> None:
    """Write a heading and a pipe table for each language."""
    lines = ["# CNC-500", ""]
    for language, group in _by_language(known):
        lines += [f"## {TITLES[language]}", "", "| " + " | ".join(COLUMNS[language]) + " |", "|---|---|---|---|"]
        for alarm in group:
            cells = (_markdown(text) for text in cells_of(alarm))
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


def _markdown(text: str) -> str:
    """Text with the signs of Markdown escaped."""
    return re.sub(r"([\\|*_<>\[\]`&#])", r"\\\1", text).replace("\n", "<br>")


def write_text(path: Path, known: Sequence[TrueAlarm], encoding: str = "utf-8") -> None:
    """Write each alarm as a line with code and heading, then its causes and remedies below their labels."""
    lines: list[str] = []
    for language, group in _by_language(known):
        lines += [TITLES[language], "=" * 12, ""]
        for alarm in group:
            lines += [*_parts(alarm), ""]
    path.write_bytes("\n".join(lines).encode(encoding, errors="replace"))


def _parts(alarm: TrueAlarm) -> list[str]:
    """Lines of the layout "code heading / Cause / Remedy"."""
    cause, remedy = LABELS[alarm.language]
    colon = ":" if alarm.language == "en" else "："
    lines = [f"{alarm.code_text} {alarm.heading}"]
    for label, texts in ((cause, alarm.causes), (remedy, alarm.remedies)):
        lines += [f"{label}{colon}", *_numbered(texts).split("\n")]
    return lines


def write_jsonl(path: Path, known: Sequence[TrueAlarm]) -> None:
    """Write one record a line, with the names of programs for keys."""
    lines = [
        json.dumps(
            {
                "code": alarm.code_text,
                "message": alarm.heading,
                "cause": _numbered(alarm.causes),
                "remedy": _numbered(alarm.remedies),
            },
            ensure_ascii=False,
        )
        for alarm in known
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_docx(path: Path, known: Sequence[TrueAlarm], layout: Layout = "table") -> None:
    """Write a Word file: a heading and a table for each language, or each alarm as a heading with paragraphs.

    In the `table` layout the title of the table is a merged cell; in `blocks` causes and remedies are Word's own
    numbered lists, so their numbers are not in the text.
    """
    body: list[str] = [_paragraph("CNC-500", style="Title")]
    lists = 0
    for language, group in _by_language(known):
        body.append(_paragraph(TITLES[language], style="Heading1"))
        if layout == "table":
            body.append(_word_table(TITLES[language], (COLUMNS[language], *map(cells_of, group))))
            continue
        for alarm in group:
            body.append(_paragraph(f"{alarm.code_text} {alarm.heading}", style="Heading2"))
            for label, texts in zip(LABELS[language], (alarm.causes, alarm.remedies), strict=True):
                body.append(_paragraph(f"{label}{':' if language == 'en' else '：'}"))
                if len(texts) == 1:
                    body.append(_paragraph(texts[0]))
                    continue
                lists += 1
                body += [_paragraph(text, numbering=lists) for text in texts]
    write_package(path, "".join(body), lists=lists)


def _paragraph(text: str, style: str = "", numbering: int = 0) -> str:
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if numbering:
        properties += f'<w:numPr><w:ilvl w:val="0"/><w:numId w:val="{numbering}"/></w:numPr>'
    runs = "<w:br/>".join(f'<w:t xml:space="preserve">{escape(line)}</w:t>' for line in text.split("\n"))
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r>{runs}</w:r></w:p>"


def _word_table(title: str, rows: Sequence[Sequence[str]]) -> str:
    parts = ['<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="4"/></w:tcPr>', _paragraph(title), "</w:tc></w:tr>"]
    for row in rows:
        cells = ("".join(map(_paragraph, text.split("\n"))) for text in row)
        parts.append("<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in cells) + "</w:tr>")
    return "".join(parts) + "</w:tbl>"


def write_package(path: Path, body: str, lists: int = 0, extra: Sequence[tuple[str, str]] = ()) -> None:
    """Write a DOCX around the XML of its body.

    Args:
        path: the file to write.
        body: paragraphs and tables, with `w:` for their namespace.
        lists: numbered lists 1 to `lists` that paragraphs refer to; each begins at 1.
        extra: (path in the package, content) of further parts, or others in place of these.
    """
    headings = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/></w:style>'
        for n in range(1, 7)
    )
    level = '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    numbers = "".join(
        f'<w:num w:numId="{n}"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/>'
        "</w:lvlOverride></w:num>"
        for n in range(1, lists + 1)
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml"'
        ' ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1"'
        f' Type="{_RELATIONS}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}"><w:style w:type="paragraph" w:styleId="Title">'
        f'<w:name w:val="Title"/></w:style>{headings}</w:styles>',
        "word/numbering.xml": f'<w:numbering xmlns:w="{_WORD}"><w:abstractNum w:abstractNumId="0">{level}'
        f"</w:abstractNum>{numbers}</w:numbering>",
        **dict(extra),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(name, content)
