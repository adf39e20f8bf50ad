"""What the columns of a table are, and which tables list alarms or parameters at all.

A wrong alarm row could hurt somebody, a missed one is still found as a passage: so a table counts only where its header
says so, or where it carries on one that did. Work orders, pin-outs, contents, tool and cutting data do not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

from retrieval.code_patterns import FANUC_PREFIXES, FLAGS, SLIP, UNSLIP
from retrieval.codes import canonical, fold
from retrieval.ingest.document import Row
from retrieval.records import Language

Role = Literal[
    "code",
    "index",
    "heading",
    "meaning",
    "cause",
    "remedy",
    "cause_remedy",
    "check",
    "reset",
    "reaction",
    "severity",
    "axis",
    "note",
    "unit",
    "range",
    "default",
    "other",
]
MOST_COLUMNS = 30  # wider tables are data, not lists that a person reads
_HEADER_SEARCH = 12  # rows in which a header may stand below a title
_SAMPLE = 200  # rows that tell what a column holds
_LONGEST_HEADER = 48
_LONGEST_CODE = 400

_SUBJECT = r"(?:alarms?|alm|errors?|err|faults?|messages?|events?|warnings?|troubles?|malfunctions?)"
_KIND = r"(?:(?:servo|spindle|drive|system|nc|cnc|plc|pmc|display|amplifier|inverter|axis|main|machine)\s)?"
_ZH_SUBJECT = r"(?:报警|警报|故障|错误|告警|异常|报错|警告|信息|消息|事件)"
_ZH_KIND = r"(?:伺服|主轴|系统|驱动器?|plc|pmc|nc|数控|显示|变频器|机床|刀库)?"
_NO = r"(?:no|nos|nr|number|numbers|num|code|codes|id|ids|#)"
# role → pattern of a whole header cell, folded and in lower case; the first that fits counts
_HEADERS: dict[str, str] = {
    "code": rf"{_KIND}{_SUBJECT}(?:\s?/\s?{_SUBJECT})?(?:\s|-|_)?{_NO}|{_ZH_KIND}{_ZH_SUBJECT}(?:号码?|编号"
    rf"|代[码号]|编?码|序号|id|no)",
    "weak_code": rf"{_NO}|代[码号]|编[号码]|号码?|码",
    "parameter_code": rf"(?:parameters?|params?|par|prm?)(?:\s|-)?{_NO}|参数(?:号码?|编号|代[码号]|序号|no)",
    "parameter": r"(?:nc |machine )?(?:parameters?|params?|machine data)|(?:系统|机床)?参数",
    "alarm": rf"{_KIND}(?:alarms?|errors?|faults?|warnings?)|{_ZH_KIND}(?:报警|警报|故障|错误|告警|异常)"
    rf"|{_KIND}(?:alarm|error|fault) {_NO}\s?(?:and|/|&|,)\s?(?:message|text|name)"
    r"|(?:报警|警报|故障|错误)(?:号码?|编号|代码)?(?:及|和|与|/|、)(?:报警)?(?:信息|内容|名称)",
    "heading": rf"{_KIND}(?:{_SUBJECT}\s)?(?:messages?|texts?|names?|titles?|designation|display(?:ed)?(?: message)?)"
    rf"|{_ZH_KIND}(?:参数)?{_ZH_SUBJECT}?(?:信息|文本|名称|标题|消息|提示信息|显示(?:信息|内容)?|屏幕显示)"
    rf"|parameter name",
    "meaning": rf"{_KIND}(?:(?:{_SUBJECT}|parameter)\s)?(?:descriptions?|contents?|details?|meanings?"
    rf"|explanations?|definitions?"
    r"|significance|symptoms?|phenomen(?:on|a)|state of error)"
    rf"|{_ZH_KIND}(?:参数)?{_ZH_SUBJECT}?(?:详细)?(?:内容|含义|意义|说明|描述|解释|现象|定义|详情|详细)",
    "cause_remedy": r"(?:possible )?causes?\s?(?:and|/|&|,)\s?(?:remed(?:y|ies)|solutions?"
    r"|(?:corrective )?actions?|countermeasures?)"
    r"|(?:可能|故障|报警)?原因(?:及|和|与|/|、)?(?:其)?(?:处理|对策|措施|排除|解决)(?:方法|办法|措施)?",
    "cause": r"(?:possible|probable|likely|main|root|potential|alarm|fault|error|trouble)?\s?(?:causes?"
    r"|cause\(s\)|reasons?)"
    r"(?: of (?:the )?(?:alarm|error|fault|failure|trouble|occurrence))?"
    r"|(?:可能的?|故障|报警|产生|发生|主要|引起|出错|错误|异常|的){0,3}(?:原因|起因|成因)(?:分析)?",
    "remedy": r"(?:remed(?:y|ies)|(?:corrective |recommended |required |suggested |remedial "
    r"|operator )?(?:actions?|measures?)"
    r"(?: to (?:be )?taken?)?|counter-?\s?measures?|solutions?|what to do|rectification|elimination"
    r"|troubleshooting|fix"
    r"|treatment|handling|corrections?|repairs?)(?: of (?:the )?(?:alarm|error|fault))?"
    r"|(?:故障|报警|异常|检查[及与和、/])?(?:处理|对策|排除|解决|处置|补救|纠正|消除|应对|检修|修复|维修|措施"
    r"|处理对策)"
    r"(?:故障|报警)?(?:的)?(?:方法|办法|措施|对策|方案|步骤|方式|建议)?",
    "check": r"checks?|check(?:ing)? (?:items?|points?|methods?)|inspections?|what to check|检查(?:项目|内容"
    r"|方法|要点|点|部位)?|确认事项",
    "reset": r"resets?|resetting|acknowledge?(?:ment)?|acknowledging|(?:alarm )?(?:clear(?:ing)?|cancel"
    r"|reset)(?:lation)?(?: (?:method|condition|criterion))?"
    r"|how to (?:reset|clear)|program(?:me)? continuation|程序继续(?:运行)?|(?:复位|清除|解除|消除|删除"
    r"|应答)(?:方法|方式|条件|报警)?",
    "reaction": r"(?:fault |alarm |drive |nc |system |machine )?(?:reactions?|responses?|behaviou?r"
    r"|stop (?:mode|type|method))"
    r"|(?:故障|报警|系统|机床)?(?:反应|响应)|机床状态|停止方式",
    "severity": r"(?:alarm |message |fault )?(?:severity|class|level|type|category|priority)|(?:报警"
    r"|故障)?(?:级别|等级|类别|类型|分类)|严重(?:程度|性)",
    "axis": r"axis|axes|channel|components?|modules?|drive object|轴号?|通道|部位|部件|单元|模块",
    "note": r"notes?|remarks?|comments?|cautions?|safety(?: notes?)?|备注|注意(?:事项)?|注释|备考|安全提示|提示",
    "index": r"items?|s/?n|seq(?:uence)?(?: no)?|serial(?: no)?|序号?|项次|项目|行号",
    "unit": r"units?|单位",
    "range": r"(?:setting|value|valid|permissible|input|data|allowed)?\s?(?:ranges?|limits)(?: of values)?"
    r"|min(?:imum)?\s?/\s?max(?:imum)?"
    r"|(?:设定|取值|数值|有效|数据|参数|输入)?(?:值)?范围",
    "default": r"(?:default|factory|initial|standard|preset)(?: (?:value|setting|data))?|(?:出厂|默认|缺省|初始"
    r"|标准|推荐)(?:设定)?(?:值|设定|设置)?",
    # columns of a record of work: such a table tells what once happened, not what an alarm means
    "record": r"(?:\w+ )?(?:dates?|shift|operator|technician|mechanic|result|work order|order(?: no)?|ticket"
    r"|downtime|duration|customer|machine(?: no| id)?"
    r"|done by|reported by|repaired by|start(?: time)?|end(?: time)?|time)|action taken|work done"
    r"|(?:报修|发生|维修|完成|开始|结束|停机)?(?:日期|时间|时长)|班次|机床(?:编号|号|名称)?|机台号?|设备(?:编号"
    r"|名称|号)?|操作(?:者|工|员)|维修(?:人员?|工|员)"
    r"|负责人|(?:处理|维修)?结果|工单号?|工单编号|客户|完成情况|报修人|用时|耗时|验收\w?",
    # columns of other lists that also have a "No." or "Code"
    "list": r"pages?|chapter|section|pins?(?: no)?|terminals?|signals?|wires?|colou?rs?|connectors?"
    r"|tools?(?: no)?|pocket|holder|part (?:no|number)"
    r"|qty|quantity|price|materials?|feed(?: ?rate)?|speed|rpm|diameter|length|radius|offset|voltage|current"
    r"|torque|size|functions?|format|address|model"
    r"|页码?|章节?|针脚?号?|引脚|端子|信号(?:名)?|线号|颜色|插头|刀号|刀具\w{0,2}|刀补|规格|型号|数量|单价|材料"
    r"|转速|进给\w?|切深|直径|长度|半径|电压|电流|功能"
    r"|格式|地址|扭矩|指令",
}
_PATTERNS = {role: re.compile(pattern) for role, pattern in _HEADERS.items()}
_PLAIN_ROLES = frozenset(
    "index heading meaning cause remedy cause_remedy check reset reaction severity axis note unit range default".split()
)
_CODE_ROLES = frozenset("code weak_code parameter_code parameter alarm".split())
_ALARM_CONTEXT = re.compile(
    r"\b(?:alarm|error|fault)s?\b.{0,30}\b(?:lists?|codes?|messages?|tables?|numbers?|overview|reference)\b"
    r"|\b(?:list|table|overview) of (?:\w+ )?(?:alarm|error|fault)|\balarms\b"
    r"|^\W*(?:\d+[\d.]*\s*)?(?:\w+ )?(?:errors|faults)\W*$"
    r"|(?:报警|警报|故障|错误)\w{0,4}(?:一览|列表|清单|表|代码|信息|说明|手册|解释)|报警",
    re.IGNORECASE,
)
_PARAMETER_CONTEXT = re.compile(r"\bparameters?\b|\bmachine data\b|参数", re.IGNORECASE)
_OTHER_CONTEXT = re.compile(
    r"\b[gmt]-?\s?codes?\b|\bspare parts?\b|\bpart list|\bpin\b|\bcontents\b|[GMT]\s?代码|备件|目录|接线|引脚",
    re.IGNORECASE,
)

# ---- codes as they stand in cells ----
_LETTERED = rf"(?:P/S|[A-Z]{{1,6}})[\s.:#_/-]{{0,2}}(?=[OoIl]{{0,3}}\d){SLIP}{{1,6}}(?:\.\d{{1,4}})?[A-Z]?"
_DIGIT = re.compile(r"\d")
_ONE = re.compile(
    rf"[A-Z]{SLIP}{{2}}[\s-]?(?:(?=[0-9A-F]{{0,3}}\d)[0-9A-F]{{4}}|\d{{2,4}})"  # S01 0018
    r"|(?=[0-9A-F]{0,2}\d)[0-9A-F]{3}-(?=[0-9A-F]{0,3}[A-F0-9])[0-9A-F]{4}"  # 230-02AC
    rf"|{_LETTERED}|[A-Z]{{1,3}}[.-][A-Z]{{1,3}}\d{{1,3}}"  # E-104, AL.16, E.OC1
    rf"|\d{SLIP}{{0,5}}(?:\.\d{{1,4}})?[A-Z]?|\d{{1,3}}\s\d{{3}}|0x[0-9A-F]{{1,8}}",
    FLAGS,
)
_RANGE_SIGN = r"(?:~|\.{2,3}|-{1,2}|\bto\b|\bthrough\b|至|到)"
_RANGE = re.compile(rf"\s?{_RANGE_SIGN}\s?", FLAGS)
_DRESS = re.compile(
    r"^(?:alarm|error|fault|报警|警报|故障|错误)?\s?(?:no\.?|nr\.?|#|号|代码)?\s?[:#]?\s?(?=[a-z]{0,4}[\s.-]?\d)", FLAGS
)
_LIST_SIGN = re.compile(r"\n|[,;、]|\s(?:and|or|&)\s|和|及|与|或", FLAGS)
_BROKEN_RANGE = re.compile(rf"({_RANGE_SIGN})\s*\n\s*|\s*\n\s*(?={_RANGE_SIGN}\s?[A-Z0-9])", FLAGS)
_G_CODE = re.compile(r"[GMT]\s?\d{1,3}(?:\.\d)?", FLAGS)
_DATE = re.compile(
    r"\s*(?:19|20)\d\d[-/.年]\s?\d{1,2}[-/.月]|\s*\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)?\d\d\b|\s*\d{1,2}:\d\d"
)


@dataclass(frozen=True)
class Span:
    """A code or a range of codes as a cell names it: `raw` as written, `last` empty for a single code."""

    raw: str
    first: str
    last: str = ""


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are. `data_from` is the first row below the header; `code` the column of the codes.

    `combined` is True where the code and its text share a cell.
    """

    kind: Literal["alarm", "parameter"]
    roles: tuple[Role, ...]
    names: tuple[str, ...]
    code: int
    combined: bool
    data_from: int

    def of(self, *roles: Role) -> tuple[int, ...]:
        """Numbers of the columns of these roles, from left to right."""
        return tuple(k for k, role in enumerate(self.roles) if role in roles)


def language_of(text: str) -> Language:
    """Chinese where a fifth of the letters are Chinese: names of parts stay English in Chinese manuals."""
    chinese = len(re.findall(r"[\u3400-\u9fff]", text))
    return "zh" if chinese and chinese * 4 >= len(re.findall(r"[A-Za-z]", text)) else "en"


@lru_cache(maxsize=4096)
def codes_in(cell: str) -> tuple[Span, ...]:
    """Codes of a cell that holds nothing else: one, a list over commas or lines, ranges. Else nothing."""
    if len(cell) > _LONGEST_CODE or not _DIGIT.search(cell):
        return ()
    text = _BROKEN_RANGE.sub(lambda match: match[1] or "", fold(cell)[0].strip())
    # a column too narrow for "S51 0078-S51 0085" breaks it inside a code
    return _spans(text) or (_spans(text.replace("\n", " ")) if "\n" in text else ())


def _spans(text: str) -> tuple[Span, ...]:
    found: list[Span] = []
    for part in _LIST_SIGN.split(text):
        raw = " ".join(part.split()).strip("()[]")
        if not raw:
            continue
        span = _span(raw)
        spans = (span,) if span else _beside(raw)
        if not spans:
            return ()
        found += spans
    return tuple(found)


def _beside(raw: str) -> tuple[Span, ...]:
    """Codes over slashes, each higher than the one before and about as long: 21/22, SV0401/0402, OT 500/501."""
    parts = [_plain(part) for part in re.split(r"\s?/\s?(?!S)", raw)]
    if len(parts) < 2 or not all(parts):
        return ()
    head, _ = _split_number(parts[0])
    codes = [parts[0], *(f"{head}{part}" if part.isdigit() else part for part in parts[1:])]
    numbers = [_split_number(code)[1] for code in codes]
    for before, after in itertools.pairwise(numbers):
        if not before or not after or int(after) <= int(before) or len(after) - len(before) > 1:
            return ()
    return tuple(Span(raw, code) for code in codes)


def _span(raw: str) -> Span | None:
    bare = _DRESS.sub("", raw) if not re.match(r"(?:alarm|error):\d", raw, FLAGS) else raw
    whole = _ONE.fullmatch(bare)
    for sign in _RANGE.finditer(bare[:40]):
        first, last = _plain(bare[: sign.start()]), _plain(bare[sign.end() :])
        if first and last and (span := _range(raw, first, last)):
            return span
    return Span(raw, _unslipped(bare)) if whole else None


def _range(raw: str, first: str, last: str) -> Span | None:
    head, start = _split_number(first)
    other, end = _split_number(last)
    if not start or not end:
        return None
    other = other or head  # SV0401-0409
    same_form = re.sub(r"\W", "", head) == re.sub(r"\W", "", other)
    if not same_form or int(end) <= int(start) or len(end) < len(start):
        return None  # E104-106 with fewer digits than 2104-6 is no range that can be trusted
    return Span(raw, first, f"{head if _split_number(last)[0] == '' else other}{end}")


def _plain(text: str) -> str:
    text = text.strip()
    return _unslipped(text) if _ONE.fullmatch(text) else ""


def _split_number(code: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?)(\d+)", code)
    return (match[1], match[2]) if match else (code, "")


def _unslipped(code: str) -> str:
    """A code with the letters O, I and l among its digits put right; SVO4O1 is SV0401, for SVO is no prefix."""
    match = re.fullmatch(rf"((?:P/S|[A-Z]+?)?[\s.:#_/-]{{0,2}})((?=\S*\d){SLIP}+)([A-Z]?)", code, FLAGS)
    if match is None:
        return code
    head, digits = match[1], match[2]
    slips = len(digits) - len(digits.lstrip("OoIl"))
    if head and slips and head.upper() not in FANUC_PREFIXES:
        head, digits = head + digits[:slips], digits[slips:]  # the letters of another maker's code may end in O
    return f"{head}{digits.translate(UNSLIP)}{match[3]}"


def head_of(text: str) -> tuple[tuple[Span, ...], str]:
    """Codes at the start of a text, and the text behind them; nothing where it does not begin with a code."""
    plain = text.strip()
    folded = plain[:200]
    for match in re.finditer(r"[\t\n]|\s{2,}|\s?[:：]\s?|\s?[-–—]\s|\s|(?<=[0-9])(?=[\u3400-\u9fff])", folded):
        if match.start() > 40:
            break
        spans = codes_in(plain[: match.start()])
        if spans and (rest := _after_code(plain[match.end() :])):
            return _longer_head(plain, match.end()) or (spans, rest)
    return (), ""


def _longer_head(text: str, start: int) -> tuple[tuple[Span, ...], str] | None:
    """`S01 0018 text`, `401, 403 text`, `4500 - 4509 text`: a code that goes on behind the first space."""
    best = None
    for match in re.finditer(r"\s|[:：]", text[start : start + 40]):
        end = start + match.start()
        if not (rest := _after_code(text[end + 1 :])):
            break
        if spans := codes_in(text[:end]):
            best = (spans, rest)
    return best


def _after_code(text: str) -> str:
    return re.sub(r"^[\s:：–—-]*(?:号(?:报警|警报)?[\s:：–—-]*)?", "", text).strip()


def is_code(cell: str) -> bool:
    """Whether a cell holds codes and nothing else."""
    return bool(codes_in(cell))


# ---- header rows ----
@lru_cache(maxsize=4096)
def role_of(cell: str) -> str:
    """Role of a header cell or of a label in a text, or nothing; where it is in both languages both must have one."""
    text = " ".join(fold(cell)[0].lower().split())
    if not text or len(text) > _LONGEST_HEADER:
        return ""
    for form in dict.fromkeys((text, re.sub(r"\([^)]*\)", "", text))):
        plain = form.strip(" .:*()[]/-")
        squeezed = re.sub(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])", "", plain)
        if role := _matching(re.sub(r"\bno\.", "no", squeezed)):
            return role
    chinese = "".join(re.findall(r"[\u3400-\u9fff]+", text))
    english = " ".join(re.findall(r"[a-z./#-]+", re.sub(r"[\u3400-\u9fff]+", " ", text))).strip(" ./-")
    if not chinese or len(english) < 2:
        return ""
    both = [_matching(chinese), _matching(re.sub(r"\bno\.?$", "no", english))]
    if not all(both):
        return ""
    for strong in ("code", "parameter_code", "heading"):
        if strong in both:
            return strong
    return both[0]


def _matching(text: str) -> str:
    return next((role for role, pattern in _PATTERNS.items() if pattern.fullmatch(text)), "")


def columns_of(rows: Sequence[Row], context: str = "", vendor: str | None = None) -> Columns | None:
    """The columns of a table of alarms or parameters; None for every other table.

    Args:
        rows: of one table.
        context: the headings above it and the text before it.
        vendor: whose controller the document speaks of, where that is known.
    """
    if not rows or not 2 <= len(rows[0].cells) <= MOST_COLUMNS:
        return None
    for at in range(min(len(rows), _HEADER_SEARCH)):
        found, length = _header_at(rows, at)
        if found:
            title = " ".join(text for row in rows[:at] for text in dict.fromkeys(row.cells) if len(text) < 200)
            names = rows[at + length - 1].cells
            return _judged(found, names, rows, at + length, f"{context}\n{title}")
    return _without_header(rows, context, vendor)


def is_header(row: Row) -> bool:
    """Whether a row is a header as tables of alarms or parameters have it."""
    return bool(_header_at((row,), 0)[0])


def _header_at(rows: Sequence[Row], at: int) -> tuple[list[str], int]:
    """Roles of the header that begins at row `at`, and its number of rows; nothing where none does."""
    if len({cell for cell in rows[at].cells if cell.strip()}) < 2:
        return [], 0  # empty, or a title over all columns
    one = [role_of(cell) for cell in rows[at].cells]
    if at + 1 < len(rows):
        below = rows[at + 1].cells
        two = []
        for cell, lower, role in zip(rows[at].cells, below, one, strict=True):
            joined = lower if lower == cell else f"{cell} {lower}"
            two.append(role_of(joined) or role_of(lower) or (role if not lower.strip() else ""))
        merged = len(set(rows[at].cells)) < len(rows[at].cells) or not all(cell.strip() for cell in below)
        # a data row below a header has long texts or codes, a second header row has neither
        if merged and _is_header(rows[at + 1].cells, [role_of(cell) for cell in below]) and _is_header(below, two):
            return two, 2
    return (one, 1) if _is_header(rows[at].cells, one) else ([], 0)


def _is_header(cells: Sequence[str], roles: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    known = [role for role in roles if role]
    return (
        len(set(filled)) >= 2
        and len(known) * 2 >= len(filled)
        and any(role in _CODE_ROLES for role in known)
        and len(set(known)) >= 2
        and not any(is_code(cell) for cell in filled)
    )


def _share(cells: Sequence[str]) -> float:
    filled = [cell for cell in cells if cell.strip()]
    return sum(map(is_code, filled)) / len(filled) if filled else 0.0


def _column(rows: Sequence[Row], column: int) -> list[str]:
    return [row.cells[column] for row in rows[:_SAMPLE] if not is_header(row)]


def _dated(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and sum(bool(_DATE.match(cell)) for cell in filled) * 2 > len(filled)


def _comes_back(cells: Sequence[str]) -> bool:
    """Whether codes stand again and again in other places: a record of what happened, not a list of what they mean."""
    filled = [" ".join(cell.split()) for cell in cells if cell.strip()]
    runs = [cell for k, cell in enumerate(filled) if k == 0 or cell != filled[k - 1]]
    return len(set(runs)) < 0.7 * len(runs)


def _counts_up(cells: Sequence[str]) -> bool:
    """Whether the cells are 1, 2, 3: the numbers of the rows, not codes."""
    filled = [fold(cell)[0].strip(" .") for cell in dict.fromkeys(cells) if cell.strip()]
    return filled[:50] == [str(k) for k in range(1, len(filled[:50]) + 1)]


def _judged(
    found: list[str], names: Sequence[str], rows: Sequence[Row], data_from: int, context: str
) -> Columns | None:
    data = rows[data_from:]
    if "record" in found or any(_dated(_column(data, k)) for k in range(len(found))):
        return None
    roles = list(found)
    plain: set[str] = {role for role in found if role in _PLAIN_ROLES}
    cells_of = {k: _column(data, k) for k, role in enumerate(found) if role in _CODE_ROLES}
    code, strength = _code_column(found, cells_of)
    if code is None:
        return None
    cells = cells_of[code]
    for k, role in enumerate(found):
        if role == "alarm" and k != code:
            roles[k] = "heading"
            plain.add("heading")
    combined = False
    if _share(cells) < (0.5 if strength == "code" else 0.8):
        filled = [cell for cell in cells if cell.strip()]
        starting = sum(bool(head_of(cell)[0]) for cell in filled)
        if strength == "alarm" and filled and starting >= 0.8 * len(filled):
            combined = True
        elif filled or strength == "weak_code":
            return None
    kind = _kind(strength, plain, found, cells, context, combined=combined)
    if kind is None or _comes_back(cells):
        return None
    final: list[Role] = []
    for k, role in enumerate(roles):
        final.append("code" if k == code else cast(Role, role) if role in _PLAIN_ROLES else "other")
    return Columns(kind, tuple(final), tuple(" ".join(name.split()) for name in names), code, combined, data_from)


def _code_column(found: Sequence[str], cells_of: dict[int, list[str]]) -> tuple[int | None, str]:
    for strength in ("code", "parameter_code", "alarm", "parameter", "weak_code"):
        columns = [k for k, role in enumerate(found) if role == strength]
        if strength == "alarm" and "weak_code" in found and all(_share(cells_of[k]) < 0.5 for k in columns):
            continue  # "No. | Fault | Cause": the fault is the text
        if columns:
            return max(columns, key=lambda k: (_share(cells_of[k]), -k)), strength
    return None, ""


def _kind(
    strength: str, plain: set[str], found: Sequence[str], cells: Sequence[str], context: str, *, combined: bool
) -> Literal["alarm", "parameter"] | None:
    facts = len(plain & {"unit", "range", "default"})
    told = bool(plain & {"heading", "meaning"})
    advises = bool(plain & {"cause", "remedy", "cause_remedy"})
    if strength in ("parameter_code", "parameter"):
        return "parameter" if told and not advises and (facts or strength == "parameter_code") else None
    if strength == "code":
        return "alarm" if told or "cause_remedy" in plain else None
    g_codes = sum(bool(_G_CODE.fullmatch(fold(cell)[0].strip())) for cell in cells)
    if _counts_up(cells) or g_codes * 2 > len(cells):
        return None
    if strength == "alarm":
        return "alarm" if told or (combined and advises) else None
    if facts and not advises:
        speaks = bool(_PARAMETER_CONTEXT.search(context))
        return "parameter" if told and "list" not in found and (speaks or facts >= 2) else None
    if not told or "list" in found or _OTHER_CONTEXT.search(context):
        return None
    about_alarms = bool(_ALARM_CONTEXT.search(context)) and not _PARAMETER_CONTEXT.search(context)
    return "alarm" if about_alarms or (advises and {"cause", "remedy"} <= plain | {"cause"}) else None


def _without_header(rows: Sequence[Row], context: str, vendor: str | None) -> Columns | None:
    """A list under a heading that speaks of alarms, its first column all codes and the second all text."""
    cells = [row.cells for row in rows[:_SAMPLE]]
    codes = [row[0] for row in cells]
    if len(rows) < 3 or _share(codes) < 0.9 or _counts_up(codes) or len(set(codes)) < 0.8 * len(codes):
        return None
    if not _ALARM_CONTEXT.search(context) or _OTHER_CONTEXT.search(context) or _PARAMETER_CONTEXT.search(context):
        return None
    lettered = [code for code in codes if re.search("[A-Za-z]", code)]
    if vendor and lettered and not any(fits(code, vendor) for code in lettered):
        return None
    texts = [row[1] for row in cells]
    if sum(
        len(re.findall(r"[A-Za-z]", t)) >= 6 or len(re.findall(r"[\u3400-\u9fff]", t)) >= 2 for t in texts
    ) < 0.9 * len(texts):
        return None
    if sum(map(len, texts)) > 100 * len(texts):
        return None  # no headings but paragraphs
    if all(row[-1].strip().isdigit() for row in cells):
        return None  # page numbers, or another column of figures
    # Which of several further columns are causes and which remedies nothing tells: they stay one text.
    roles: tuple[Role, ...] = ("code", "heading", *cast(tuple[Role, ...], ("meaning",) * (len(rows[0].cells) - 2)))
    return Columns("alarm", roles, ("",) * len(roles), 0, False, 0)


def fits(code: str, vendor: str) -> bool:
    """Whether a code is written as a vendor's codes are."""
    try:
        return bool(canonical(code, vendor))
    except ValueError:
        return False


def speaks_of_alarms(context: str) -> bool:
    """Whether headings and captions say that a list of alarms follows."""
    return bool(_ALARM_CONTEXT.search(context)) and not (
        _OTHER_CONTEXT.search(context) or _PARAMETER_CONTEXT.search(context)
    )
