"""Fault codes: how each controller family writes them, where they stand in a text, and one spelling for each.

`find_codes` works in three passes over folded text (full-width forms, dashes): everything that is a quantity, a date,
a G-code word, a serial number or a model is blanked out; spelled codes (SV0401, F07011, ALARM:1, S01 0018, LinuxCNC
messages) are taken; plain numbers become codes only by an alarm word, a vendor's name or a list that holds one.
All repeats in the patterns are bounded and none is nested in an unbounded one: the work grows with the text's length.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from retrieval.records import CodeMention, CodeReading

_FLAGS = re.ASCII | re.IGNORECASE  # ASCII: a Chinese neighbour is a word boundary, and only 0-9 are digits
_BLANK = "\ue000"  # stands where something that is no code was blanked out

# ---- LinuxCNC: messages, not numbers ----
# To add one: slug, pattern for any text, pattern only for text known to be about LinuxCNC ("" for none), one English
# and one Chinese example that the first pattern matches. A message may have a general and a narrower slug: it gets
# both readings in the order of this table.
_J = r"(?:joint|关节)\s?\d{0,2}\s?的?\s?"
_WAYS = (("POSITIVE", "正", "max"), ("NEGATIVE", "负", "min"))
_LIMIT = (
    r"would exceed (?:joint |axis )?\w{{1,2}}'s {en} limit|exceeded {en} soft limit|past {end} soft limit"
    r"|(?:超出|超过)了?\s?(?:关节|轴|[xyzabcuvw])?\s?\d{{0,2}}\s?的?\s?{zh}向?(?:软限位|限位|软?极限)|{zh}向软限位.{{0,8}}超程"
)
LINUXCNC_MESSAGES: tuple[tuple[str, str, str, str, str], ...] = (
    ("JOINT-FOLLOWING-ERROR", _J + "(?:following error|跟随(?:错误|误差))", "following error|跟随(?:错误|误差)",
     "joint 2 following error", "关节 2 跟随错误"),
    ("UNEXPECTED-REALTIME-DELAY", r"unexpected real[- ]?time delay(?: on task \d{1,3})?"
     r"|(?:意外|意料之外|非预期|异常|未预期)的?实时(?:延迟|延时)", "real[- ]?time delay|实时(?:延迟|延时)",
     "Unexpected realtime delay on task 0", "任务 0 意外的实时延迟"),
    ("JOINT-ON-LIMIT-SWITCH",
     _J + "(?:on limit switch(?: error)?|(?:在|碰到|压[到在]|触发了?|处于)限位开关|限位开关错误)",
     "on limit switch(?: error)?|限位开关错误", "joint 1 on limit switch error", "关节 1 碰到限位开关"),
    ("AMPLIFIER-FAULT", _J + "(?:amplifier fault|放大器故障|驱动器?故障)", "amplifier fault|放大器(?:故障|报错)",
     "joint 0 amplifier fault", "关节 0 放大器故障"),
    ("SOFT-LIMIT-EXCEEDED", _LIMIT.format(en="(?:positive|negative)", zh="[正负]", end="(?:max|min)"),
     "", "would exceed joint 0's positive limit", "超出关节 0 的正限位"),
    *((f"EXCEED-{way}-LIMIT", _LIMIT.format(en=way, zh=zh, end=end), "", f"Exceeded {way} soft limit",
       f"超出关节 0 的{zh}向软限位") for way, zh, end in _WAYS),
    ("HOMING-SWITCH-FAULT", r"home switch (?:in)?active before start of \w{1,10} move|without finding home switch"
     r"|hit limit in home state|(?:没有?|未|找不到|没能)(?:找到)?(?:回零|原点|零点|回原点)开关"
     r"|移动之?前,?\s?原点开关[有无]效", "",
     "end of home search without finding home switch", "回零结束仍未找到原点开关"),
    ("HOME-SWITCH-INACTIVE-BEFORE-BACKOFF", "home switch inactive before start of backoff move"
     r"|(?:退避|回退)移动之?前,?\s?原点开关无效", "",
     "home switch inactive before start of backoff move", "开始退避移动之前，原点开关无效"),
    ("HOME-SWITCH-INACTIVE-BEFORE-LATCH", "home switch inactive before start of latch move"
     r"|(?:闩锁|锁存)移动之?前,?\s?原点开关无效", "",
     "home switch inactive before start of latch move", "开始闩锁移动之前，原点开关无效"),
)


def _message_patterns() -> Iterator[tuple[str, re.Pattern[str], re.Pattern[str]]]:
    for slug, strict, loose, _, _ in LINUXCNC_MESSAGES:
        anywhere = f"{slug.replace('-', '[-_]')}|{strict}"
        yield slug, re.compile(anywhere, _FLAGS), re.compile(f"{anywhere}|{loose}" if loose else anywhere, _FLAGS)


_MESSAGES = tuple(_message_patterns())

# ---- Words that mark a number as a code ----
_SLIP = r"(?-i:[0-9OoIl])"  # a digit as it is typed or scanned: O for 0, I and l for 1
_UNSLIP = str.maketrans("OoIl", "0011")
_ERRORS = r"(?<![a-z])err(?:ors?)?(?![a-z])|错误|錯誤"
_ALARMS = r"(?<![a-z])al(?:ar)?ms?(?![a-z])|报警|報警|警报|警報|告警"
_EITHER = r"(?<![a-z])(?:fault|warning)s?(?![a-z])|故障|报错|報錯|警告"
_ANY_ALARM = re.compile(f"{_ALARMS}|{_ERRORS}|{_EITHER}", _FLAGS)
_FILL = (
    r"(?:[\s:=#()\[\]<>'\"“”‘’「」『』【】《》-]|no\.?|nr\.?|num(?:ber)?|codes?|ids?|is|was|号码?|號|代[号码]|编[号码]|码|信息|内容|记录"
    r"|提示|显示|出现|[了是为叫有个]|[xyzabcuvw]\d?轴){0,8}$"
)
_BEFORE = re.compile(
    rf"(?:(?P<error>{_ERRORS})|(?P<alarm>{_ALARMS})|{_EITHER}|(?<![a-z])al(?=[-. ]?$)"
    rf"|(?<![a-z])codes?|代码)\.?{_FILL}", _FLAGS)
_AFTER = re.compile(
    r"\s?[)\]】\"”’」》>]?\s?(?P<ordinal>号|號|#)?\s?(?:[是这]?(?:[两二三四五六几]?个|的|什么|啥|哪个)?){0,2}\s?(?:an?\s)?"
    r"(?:(?:伺服|主轴|驱动|轴|程序|servo|spindle|drive|plc|nc|p/?s)\s?){0,2}"
    rf"(?:(?P<error>{_ERRORS})|(?P<alarm>{_ALARMS})|{_EITHER}|故障码|(?:都|一起|同时){{1,2}}[报出])", _FLAGS)
_NAMES_ANOTHER = re.compile(r"(?:[\s:#]|no\.?|number|code){0,4}\d", _FLAGS)
_LISTED = re.compile(r"(?:and|or|to|[,/、&~-])\s?$", _FLAGS)
_ORDINAL = re.compile(r"第\s?$")
_REPORTS = re.compile(r"(?<![预通汇日填申海情])[报跳]\s?(?:了|过|出|个|着|的是){0,2}\s?$")
_SHOWS = re.compile(
    r"(?:出现|显示|提示|弹出|冒出|[来出又就变成]|老是|总是|一直|还是|经常|(?<![a-z])(?:shows?|showing|displays?|says|got|gets?|getting|gives?|throws|threw"
    r"|throwing|see|have|has))\s?(?:了|一?个|的是|an?|the){0,2}\s?$", _FLAGS)
_LINK = re.compile(
    r"(?:号|號|#)?\s?(?:(?:[、,/&~+-]|和|与|及|或|跟|到|至|还有|以及|and|or|to)\s?){1,2}(?:第|no\.?|#)?\s?|,?\s(?:and|or)\s",
    _FLAGS)
_YEAR = re.compile(r"(?:19[89]|20[0-3])\d")
_GLUE = re.compile(
    rf"(?:[\s:,#{_BLANK}-]|[xyzabcuvw]\d?轴|的|那台|系统|机床|数控|加工中心|车床|铣床|controls?|controller|machine|cnc|lathe|mill){{0,12}}$",
    _FLAGS)
_MODEL_NUMBERS = {"heidenhain": {"407", "426", "430", "530", "620", "640"}, "mitsubishi": {"700", "750", "800", "830"}}
_BREAK = re.compile(r"[。;!?\n]|\.\s")
_ON = re.compile(r"\s?(?:alarm|error|fault)?\s?(?:on|of|from|in|for|at)\s(?:(?:the|an?|our|my)\s)?$", _FLAGS)

# ---- What is no code ----
_N = r"\d{1,9}(?:\.\d{1,6})?"
_UNIT = (  # single letters are case-sensitive and no axis or code word
    r"(?:r/min|rpm|mm|cm|[uμn]m|m/min|m/s|inch(?:es)?|ipm|psi|bar|[km]?pa|n[·.]?m|kg|[km]?hz|kw|kva|[mk]v|ma|ms"
    r"|sec(?:ond)?s?|min(?:ute)?s?|hrs?|hours?|days?|weeks?|months?|years?|volts?|amps?|watts?|ohms?|deg(?:rees?)?|points?"
    r"|pcs|pieces|parts|times|[kmg]b|bits?|bytes?|microns?|percent|lit(?:re|er)s?|l/min|usd|rmb|yuan|dollars)(?![a-z0-9])"
    r"|(?-i:[AVWLmshg])(?![A-Za-z0-9])(?!\s?-?(?:轴|axis|代码|code))"
    r"|[%‰°Ω℃]|kΩ|转(?![速矩台动到为向子接盘换])|度(?!数)|分钟|小时|秒|次(?![数日])|台(?![面湾])|元(?![件器素])|[件吨伏]"
    r"|丝(?![杠杆])|毫米|微米|公斤|千克|千瓦|赫兹|兆帕|毫?安培|欧姆|米"
)
_LOOSE_UNIT = (  # signs that also begin other words: only directly after a number that no letter precedes
    r"[天年月周个块万千百班遍趟齿牙孔段页](?![气初底期别规分])|日(?![志常])|分(?![析别辨布为])|位(?![置移])"
    r"|点(?![检击动位了开一])|行(?![程吗不么])|步(?!骤)|升(?![级降])|安(?![全装川])|倍(?!率)|瓦|欧(?!洲)|多[次个台天件]"
)
_WORD = r"[a-z]-?\d{1,6}(?:\.\d{0,4})?\s?"
_NOISE = re.compile("|".join((
    # dates and years
    r"(?<!\d)(?:19|20)\d\d[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|(?:19|20)\d\d\s?[年款](?:\d{1,2}月)?(?:\d{1,2}[日号])?",
    r"(?<!\d)\d{1,2}月(?:份|\d{1,2}[日号]?)?|(?<![\w/])\d{1,2}/\d{1,2}(?:/\d{2,4})?(?![\w/])",
    r"(?<![a-z])(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?\s\d{1,2}(?!\d)(?:,?\s(?:19|20)\d\d)?",
    r"(?<!\d)\d{1,2}(?:st|nd|rd|th)(?![a-z])|(?<![a-z])(?:in|since|from)\s(?:19|20)\d\d(?!\d)",
    # times, phone numbers, addresses of the net
    r"(?<![\w.])\d{1,2}:\d\d(?::\d\d)?(?!\d)|(?<![\da-z])\d{1,2}点(?:半|\d{1,2}分?)?(?![检击动位了开一])",
    r"(?<!\d)1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?!\d)|(?<![\da-z])0\d{2,3}[ -]\d{3,4}[ -]?\d{4}(?!\d)",
    r"(?<![\da-z])[48]00[ -]?\d{3,4}[ -]\d{3,4}(?!\d)|\+\d{1,3}[ -]?\(?\d[\d ()-]{5,16}\d",
    r"(?<![a-z])(?:tel|phone|ext|qq|wechat)[.:]?\s?\d[\d -]{2,18}",
    r"(?:电话|手机|分机|微信|传真)号?码?[:是]?\s?\d[\d -]{2,18}",
    r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){2,3}(?::\d{1,5})?(?![\d.])",
    # parameters, with lists of them
    r"(?:(?<![a-z])(?:param(?:eter)?s?|prm|diagnos(?:is|tics?)|dgn|md|sd|machine data|(?:macro )?variables?)(?![a-z])"
    r"|参数|诊断|机床数据|变量)\s?(?:号|no\.?|number|nr\.?|#|:|是|为){0,2}\s?[prnk#$]?\d{1,6}(?:\.\d)?"
    r"(?:\s?(?:[、,/~和与及-]|and|or|to)\s?[pr]?\d{1,6}){0,8}",
    r"no\.?\s?\d{1,6}\s?(?:号?参数|parameter)|(?<![\da-z])\d{1,6}(?:号?参数|号?变量|号程序|钢|铝)",
    r"(?<![\da-z])\d{4,5}#\d(?!\d)",  # a bit of a parameter
    # G code 54 and a QR code are no fault codes
    r"(?:(?<![a-z'])[gmtshd]|(?<![a-z])(?:qr|bar|zip|postal)|程序|源)[ -]?(?:codes?|代码)\s?\d{1,9}",
    # a number after the name of a quantity
    r"(?:转速|(?<![过超失])速度|进给|倍率|(?<![a-z])(?:feed(?:rate)?|speed|override)(?![a-z]))\s?(?:显示|设|设定|调)?"
    rf"(?:为|是|到|在|成|of|at|is|to|=|:){{0,2}}\s?[sf]?{_N}",
    r"(?:温度|压力|电压|电流|扭矩|转矩|负载|行程|长度|直径|尺寸|间隙|坐标|频率|temperature|pressure|voltage|current|torque"
    rf"|load|position)\s?(?:为|是|到|在|of|at|is|to|=|:)\s?-?{_N}",
    # orders, serial numbers, places in a program or a machine, money
    r"(?<![a-z])(?:order|serial|part|drawing|version|ver|sn|s/n|p/n|invoice|ticket|job)(?![a-z])\s?(?:no\.?|number|#)?"
    r"[.:]?\s?[a-z]{0,3}\d{1,9}",
    r"(?:订单|工单|图号|序列号|批号|合同|工号|邮编|版本|(?<![警障误])编号)号?[:是]?\s?[a-z]{0,3}\d{1,9}",
    r"(?:(?<![a-z])(?:program|line|block|cycle|op|page|tool|pocket|pallet)(?![a-z])|程序段?|行号|段号|刀号|刀具|刀位|工位)\s?"
    r"(?:no\.?|number|号|#)?:?\s?[ont]?\d{1,6}",
    r"(?:(?<![a-z])(?:axis|joint|channel|task|station)|(?<!主)轴|通道|关节|机床|(?<!换)刀)\s?#?\d(?![\da-z.号])",
    r"[¥$€£]\s?\d[\d,.]{0,12}",
    # machines (DS-30 is a lathe, DS-0131 an alarm), materials, PLC addresses, blocks of G-code, part numbers
    r"(?<![a-z])(?:dm[ucf]|vmc|hmc|vtc|n[lht]x|c[tml]x|vf|st|umc|ec|t[lm]|ds(?=-\d\d(?!\d))|dt|dm|vm|mcv|v[cs]n?|hcn|qtn?"
    r"|cak?|htc|dvf|puma|lynx|hrc|integrex|robodrill|speedio)\s?-?\d{1,4}[a-z]{0,3}(?![a-z0-9])",
    r"db\d{1,4}\.db\w{1,6}(?:\.\d)?|(?<![a-z0-9])%?[a-z]{1,2}-?\d{1,5}\.\d{1,4}(?:p\d{1,3})?",
    rf"(?<![a-z0-9])(?=(?:{_WORD}){{0,5}}(?:[gx]-?\d|m9[89]))(?:{_WORD}){{2,12}}",
    r"(?<![a-z0-9-])(?![smzy]\d\d-)(?=[a-z0-9-]{0,24}\d[a-hjkmnp-z])[a-z0-9]{1,12}(?:-[a-z0-9]{1,12}){1,5}(?![a-z0-9])",
    # quantities, and numbers of things
    rf"(?<!\d){_N}\s?(?:{_UNIT})|(?<![\da-z])(?<![a-z]\d\d\s){_N}(?:{_LOOSE_UNIT})|(?<![\da-z])\d{{1,2}}\s?(?:[把根条轴]|axis|axes)",
    r"(?<![\da-z])\d{1,6}号(?:刀(?![库塔])|轴|机|电机|线|阀|端子|模块|继电器|油|工件|孔|钢)",
    r"(?<![\da-z])\d{1,2}\s?号(?!码|[、和,]|\s?的?(?:伺服|主轴)?\s?(?:报警|报错|警|故障|错误|告警))",
)), _FLAGS)

# ---- How codes are written ----
_END = r"(?:(?![0-9A-Za-z_])(?!\.\d)|(?=al(?:ar)?m|err|fault|[xyzabcuvw]轴))"
_NUMBER = re.compile(  # first a real digit, so that program O1234 stays one; an alarm word may be glued on either side
    r"(?:(?<![A-Za-z0-9_$])|(?<=alarm)|(?<=alarms)|(?<=alm)|(?<=err)|(?<=error)|(?<=fault)|(?<=code)|(?<=\bal)|(?<=\bno))"
    rf"(?<!\d\.)(?P<n>\d{{2,3}}\s0\d\d|\d{_SLIP}{{0,5}})(?P<decimal>\.\d{{1,4}})?{_END}", _FLAGS)
FANUC_PREFIXES = ("PS", "BG", "SR", "SV", "OT", "IO", "SP", "SW", "EX", "DS", "PW", "IE", "OH", "PC", "MC", "NB")
_PREFIX = r"(?P<prefix>P/?S|BG|SR|SV|[O0]T|IO|SP|SW|EX|DS|PW|IE|[O0]H|PC|MC|NB)"
_FANUC = re.compile(
    rf"(?<![A-Za-z0-9_]){_PREFIX}(?P<sep>\s?(?:报警|警报|alarm)\s?(?:号码?|no\.?)?[:\s]?\s?|\s?[-.#:]?\s?)"
    rf"(?=[OoIl]{{0,3}}\d)(?P<n>{_SLIP}{{1,4}}){_END}", _FLAGS)
_DRIVE = re.compile(
    rf"(?<![A-Za-z0-9_])(?P<prefix>[FANC])(?P<sep>[ -]?)(?=[OoIl]{{0,3}}\d)(?P<n>{_SLIP}{{4,5}}){_END}", _FLAGS)
_HEX = r"(?-i:[0-9A-Fa-fOoIl])"
_MELDAS = re.compile(
    rf"(?<![A-Za-z0-9_])(?:[A-OQ-Z]{_SLIP}{{2}}(?:(?P<sep>[ -]?)(?:{_HEX}{{4}}|\d\d))?|P\s?\d{_SLIP}{{1,2}}){_END}",
    _FLAGS)
_TNC = re.compile(r"(?<![A-Za-z0-9_-])[0-9A-F]{3}-?[0-9A-F]{4}(?![A-Za-z0-9_-])", _FLAGS)
_GRBL = re.compile(r"(?<![A-Za-z])(?P<kind>alarm|error):(?P<n>\d{1,2})(?![0-9A-Za-z_.])", _FLAGS)
_GCODE_LEFT = re.compile(r"(?<![a-z0-9])[gmtxyzn]-?\d{1,5}(?:\.\d{0,4})?\s?$", _FLAGS)
_GCODE_RIGHT = re.compile(r"\s?(?:g\d|m0?[3-9](?!\d)|x-?\d|f\d|rpm|转)", _FLAGS)


# ---- Folding ----
def fold(text: str) -> tuple[str, list[int]]:
    """Fold full-width forms, dashes and odd spaces; letters keep their case.

    Returns the folded text and, for each of its characters, the offset of the original character that it came from.
    Zero-width characters vanish; a sign such as ㎜ becomes two characters of the same origin.
    """
    out: list[str] = []
    index: list[int] = []
    for position, char in enumerate(text):
        folded = char if char.isascii() else _fold_char(char)
        out.append(folded)
        index.extend([position] * len(folded))
    return "".join(out), index


@lru_cache(maxsize=4096)
def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cf":
        return ""
    if category == "Pd" or char in "−ｰ﹣":
        return "-"
    if char in "〜∼～":
        return "~"
    plain = unicodedata.normalize("NFKC", char)
    # ① would put a digit in front of a code; a ligature would move the letters after it
    return char if category == "No" or (category.startswith("L") and len(plain) != 1) else plain


# ---- Vendors and models ----
@dataclass(frozen=True)
class _Named:
    """A vendor or a model as it stands in the folded text."""

    start: int
    end: int
    vendor: str
    family: str | None


@cache
def _families() -> dict[str, tuple[str, ...]]:
    from retrieval.families import catalogue  # noqa: PLC0415 - yaml would slow the import of this module

    return {vendor: tuple(entry["families"]) for vendor, entry in catalogue().items()}


@cache
def _name_patterns() -> tuple[tuple[re.Pattern[str], str, str | None], ...]:
    """Patterns of all names and models of families.yaml, with vendor and family."""
    from retrieval.families import catalogue  # noqa: PLC0415 - see above

    patterns: list[tuple[re.Pattern[str], str, str | None]] = []
    for vendor, entry in catalogue().items():
        named: list[tuple[str | None, list[str]]] = [(None, entry["names"])]
        named += [(family, facts["models"]) for family, facts in entry["families"].items()]
        for family, forms in named:
            # A model that starts with a digit may be glued to a vendor's name: FANUC0i-MF. A number may be glued to a
            # name, fanuc401, not to a model. Chinese names need no boundary.
            head = r"(?:(?<![a-z0-9])|(?=[^\x00-\x7f])|(?<=[a-z][a-z])(?=\d))"
            tail = r"(?:(?<=[^\x00-\x7f])|(?![a-z]))" if family is None else "(?![a-z0-9])"
            if forms:
                patterns.append((re.compile(f"{head}(?:{'|'.join(forms)}){tail}", _FLAGS), vendor, family))
    return tuple(patterns)


_TYPED_OI = re.compile(r"(?<![a-z])o(?=i-?\s?[mtp]?[a-f](?![a-z]))", _FLAGS)  # Oi-MF is typed for 0i-MF


def _named(folded: str) -> list[_Named]:
    """Every vendor and model in the text, in order; a bare name inside a longer name of the same vendor is left out."""
    text = _TYPED_OI.sub("0", folded)
    found: list[_Named] = []
    for pattern, vendor, family in _name_patterns():
        for match in pattern.finditer(text):
            start, end = match.span()
            if re.fullmatch(r"[a-z]\d+", match[0], _FLAGS) and (
                _GCODE_LEFT.search(text[max(0, start - 10):start]) or _GCODE_RIGHT.match(text, end)
            ):
                continue  # S120 and M80 between G-code words are a speed and a function
            found.append(_Named(start, end, vendor, family))
    found.sort(key=lambda name: (name.start, name.family is None, -name.end))
    kept: list[_Named] = []
    for name in found:
        inside = kept and name.start < kept[-1].end and name.vendor == kept[-1].vendor
        if not (inside and name.family is None):
            kept.append(name)
    return kept


def vendors_in(text: str) -> tuple[tuple[str, str | None], ...]:
    """Vendors named in the text, in order of appearance, each with its family where a model of it is named.

    One item per vendor, or one per family where several families of a vendor are named.
    """
    named = _named(fold(text)[0])
    with_family = {name.vendor for name in named if name.family}
    first: dict[str, int] = {}
    order: dict[tuple[str, str | None], int] = {}
    for name in named:
        earliest = first.setdefault(name.vendor, name.start)
        if name.family or name.vendor not in with_family:
            begun = any(vendor == name.vendor for vendor, _ in order)
            order.setdefault((name.vendor, name.family), name.start if begun else earliest)
    return tuple(sorted(order, key=lambda item: order[item]))


class _Context:
    """Which vendor and family a place in the folded text speaks of."""

    def __init__(self, folded: str, vendor: str | None, family: str | None) -> None:
        self.text = folded
        self.vendor = vendor.lower() if vendor else None
        self.family = family if vendor else None
        self.spans = _named(folded)
        # Where the machine is known, M70 or S120 alone does not make it another one.
        self.named = [
            name for name in self.spans
            if not self.vendor or name.vendor == self.vendor or name.family is None or name.end - name.start > 4
        ]
        self.starts = [name.start for name in self.named]
        self.ends = sorted((name.end, i) for i, name in enumerate(self.named))
        self.breaks = [match.start() for match in _BREAK.finditer(folded)]
        self.families: dict[str, set[str]] = {}
        for name in self.named:
            self.families.setdefault(name.vendor, set()).update({name.family} if name.family else ())
        self.vendors = set(self.families) | ({self.vendor} if self.vendor else set())

    def at(self, start: int, end: int) -> tuple[str | None, str | None]:
        """Vendor and family for a code at [start, end): named before it in its sentence, else after it, else given."""
        after = bisect_left(self.starts, end)
        before = bisect_left(self.starts, start) - 1
        ahead = self.named[after] if after < len(self.named) else None
        behind = self.named[before] if before >= 0 else None
        if ahead and ahead.start - end < 20 and _ON.match(self.text[end:ahead.start]):  # "401 on the FANUC"
            return self._settled(ahead)
        for name in (behind, ahead):
            if name and self._sentence(name.start) == self._sentence(start):
                return self._settled(name)
        if name := behind or (ahead if len(self.families) == 1 else None):
            return self._settled(name)
        return self.vendor, self.family

    def speaks_of(self, vendor: str, start: int, end: int) -> tuple[bool, bool]:
        """Whether the place speaks of that vendor, and whether it at least speaks of no other one."""
        here = self.at(start, end)[0]
        return here == vendor, here in (None, vendor)

    def ending_near(self, position: int) -> Iterator[_Named]:
        """Names that end at most 24 characters before `position`, the nearest first."""
        last = bisect_left(self.ends, (position + 1, 0))
        for end, which in reversed(self.ends[max(0, last - 6):last]):
            if position - end <= 24:
                yield self.named[which]

    def without_names(self) -> str:
        """The text with every vendor and model blanked out."""
        out: list[str] = []
        at = 0
        for name in self.spans:
            if name.end > at:
                out += [self.text[at:name.start], _BLANK * (name.end - max(at, name.start))]
                at = name.end
        return "".join([*out, self.text[at:]])

    def _sentence(self, position: int) -> int:
        return bisect_right(self.breaks, position)

    def _settled(self, name: _Named) -> tuple[str, str | None]:
        known = self.families[name.vendor]
        only = next(iter(known)) if len(known) == 1 else None
        given = self.family if name.vendor == self.vendor and not known else None
        return name.vendor, name.family or only or given


# ---- One spelling ----
_DRESS = re.compile(
    r"(?<![a-z])(?:alarms?|alm|al(?=[-. ]?\d)|error|fault|no\.?|number|code)(?![a-z])"
    r"|报警|警报|错误|故障|第|号|代码|[:#]", _FLAGS)
_VALID = {
    "fanuc": f"a prefix of {' '.join(FANUC_PREFIXES)} and up to 4 digits (SV0401); family 16i: up to 4 digits (401)",
    "siemens": "sinumerik: 4 to 6 digits (25050); sinamics: F, A, N or C and 4 or 5 digits (F07011), or 2 and 5 digits"
               " (207011)",
    "haas": "up to 5 digits (103), or a number with a point (9.917)",
    "mitsubishi": "a letter with 2 digits (Y03), those and 4 hex digits (S01 0018), or P and 1 to 4 digits (P234)",
    "heidenhain": "3 and 4 hex digits (230-02AC), or up to 6 digits",
    "grbl": "ALARM:n or error:n",
    "linuxcnc": f"one of {' '.join(row[0] for row in LINUXCNC_MESSAGES)}, or the message itself",
}


def _digits(raw: str) -> str | None:
    """Digits of a number with its O/0 and I/1 slips put right; None for a word such as "oil1"."""
    raw = raw.replace(" ", "")  # 25 050 on some displays
    real = sum(char.isdigit() for char in raw)
    if not real or (real == 1 and not raw[0].isdigit() and re.search("[Il]", raw)):
        return None
    return raw.translate(_UNSLIP)


def _fanuc(code: str, family: str | None) -> str | None:
    match = re.fullmatch(rf"(?:{_PREFIX})?[\s.#:-]{{0,3}}(?P<n>{_SLIP}{{1,4}})", code, _FLAGS)
    digits = _digits(match["n"]) if match else None
    if not match or digits is None:
        return None
    if family == "16i" or not match["prefix"]:  # these controls show a number only
        return None if family == "30i" else str(int(digits))
    return f"{_prefix(match)}{int(digits):04d}"


def _prefix(match: re.Match[str]) -> str:
    return match["prefix"].upper().replace("/", "").replace("0", "O")


def _siemens(code: str, family: str | None) -> str | None:
    match = re.fullmatch(rf"(?P<letter>[FANC]?)(?P<n>{_SLIP}{{1,6}})", re.sub(r"[\s-]", "", code), _FLAGS)
    digits = _digits(match["n"]) if match else None
    if not match or digits is None:
        return None
    number = int(digits)
    if match["letter"]:
        return f"{match['letter'].upper()}{number:05d}" if len(digits) in (4, 5) and family != "sinumerik" else None
    if family != "sinumerik" and 200_000 <= number < 300_000:  # F or A: the display does not tell
        return f"F{number - 200_000:05d}"
    if family == "sinamics":
        return f"F{number:05d}" if 1_000 <= number < 100_000 else None
    return str(number) if number >= 1_000 else None


def _haas(code: str, _family: str | None) -> str | None:
    match = re.fullmatch(rf"(?P<n>{_SLIP}{{1,5}})(?P<decimal>\.\d{{1,4}})?", code, _FLAGS)
    digits = _digits(match["n"]) if match else None
    return f"{int(digits)}{match['decimal'] or ''}" if match and digits else None


def _mitsubishi(code: str, family: str | None) -> str | None:
    if match := re.fullmatch(rf"P\s?(\d{_SLIP}{{0,3}})", code, _FLAGS):
        return f"P{int(match[1].translate(_UNSLIP))}"
    match = re.fullmatch(rf"([A-OQ-Z])({_SLIP}{{2}})(?:[\s-]?({_HEX}{{1,4}}))?", code, _FLAGS)
    if match and _digits(match[2]) and (not match[3] or any(char.isdigit() for char in match[3])):
        number = f" {match[3].translate(_UNSLIP).upper():0>4}" if match[3] else ""
        return f"{match[1].upper()}{match[2].translate(_UNSLIP)}{number}"
    return str(int(code)) if family is None and re.fullmatch(r"\d{1,4}", code, _FLAGS) else None


def _heidenhain(code: str, _family: str | None) -> str | None:
    if match := re.fullmatch(r"([0-9A-F]{3})-?([0-9A-F]{4})", code, _FLAGS):
        return f"{match[1]}-{match[2]}".upper() if re.search(r"\d", code) else None
    return str(int(code)) if re.fullmatch(r"\d{1,6}", code, _FLAGS) else None


def _grbl(code: str, _family: str | None) -> str | None:
    match = re.fullmatch(
        rf"(?:(?P<alarm>alarm|报警|警报)|error|err|错误)[\s:#-]{{0,3}}(?P<n>\d{_SLIP}{{0,2}})", code, _FLAGS)
    return f"{'ALARM' if match['alarm'] else 'error'}:{int(match['n'].translate(_UNSLIP))}" if match else None


def _linuxcnc(code: str, _family: str | None) -> str | None:
    slug = re.sub(r"[\s_]", "-", code.upper())
    if any(slug == row[0] for row in LINUXCNC_MESSAGES):
        return slug
    return next((slug for slug, _, known in _MESSAGES if known.search(code)), None)


_FORMS: dict[str, Callable[[str, str | None], str | None]] = {
    "fanuc": _fanuc, "siemens": _siemens, "haas": _haas, "mitsubishi": _mitsubishi, "heidenhain": _heidenhain,
    "grbl": _grbl, "linuxcnc": _linuxcnc,
}


def _form(code: str, vendor: str, family: str | None = None) -> str | None:
    """Like `canonical`, but None for a spelling that the vendor does not have."""
    plain = fold(code)[0].strip()
    if vendor not in ("grbl", "linuxcnc"):
        plain = _DRESS.sub(" ", plain).strip(" -")
    return _FORMS[vendor](plain, family)


def canonical(code: str, vendor: str, family: str | None = None) -> str:
    """The one spelling of a code: fanuc 'sv-401' is 'SV0401', siemens '230002' 'F30002', grbl 'alarm 1' 'ALARM:1'.

    Without a family, fanuc and mitsubishi numbers stay numbers; within 30i and m700 a number alone is no code.

    Raises:
        ValueError: an unknown vendor or family, or a spelling that it does not have; says what would be valid.
    """
    if vendor not in _FORMS:
        raise ValueError(f"no codes known for vendor {vendor!r}; valid: {', '.join(_FORMS)}")
    if family is not None and family not in _families().get(vendor, ()):
        raise ValueError(f"{vendor} has no family {family!r}; valid: {', '.join(_families().get(vendor, ()))}")
    form = _form(code, vendor, family)
    if form is None:
        where = f"{vendor}/{family}" if family else vendor
        raise ValueError(f"{code!r} is no code of {where}; valid: {_VALID[vendor]}")
    return form


def number_of(code: str) -> str:
    """The number of a code without prefix and leading zeros: 'SV0401' is '401', 'S01 0018' '18', '9.917' itself.

    A code without a decimal number of its own ('230-02AC', 'AMPLIFIER-FAULT') is returned whole.
    """
    plain = fold(code)[0].strip()
    if re.fullmatch(r"[0-9A-F]{3}-[0-9A-F]{4}", plain, _FLAGS):
        return plain.upper()
    match = re.search(r"^[A-Z]\d\d\s([0-9A-F]{4})$|(\d{1,12}(?:\.\d{1,6})?)$", plain, _FLAGS)
    return (match[1] or match[2]).lstrip("0") or "0" if match else plain


def spellings(code: str, vendor: str, family: str | None = None) -> tuple[str, ...]:
    """The usual ways to write a code, its canonical form first.

    Raises:
        ValueError: as `canonical` does.
    """
    form = canonical(code, vendor, family)
    if vendor == "linuxcnc":
        out = [example for slug, _, _, *examples in LINUXCNC_MESSAGES if slug == form for example in examples]
    elif vendor == "grbl":
        kind, number = form.split(":")
        word, chinese = ("alarm", "报警") if kind == "ALARM" else ("error", "错误")
        out = [f"{word}{tie}{number}" for tie in (":", " ", ": ")]
        out += [f"{word.title()} {number}", f"{word.upper()}:{number}", f"{chinese}{number}", f"{chinese} {number}"]
    elif " " in form:
        out = [form.lower(), form.replace(" ", "-"), form.replace(" ", "")]
    elif "-" in form:
        out = [form.lower(), *([form.replace("-", "")] if re.search("[A-F]", form) else [])]
    elif form[0].isalpha():
        out = list(_lettered_spellings(form, vendor))
    else:
        words = ("alarm ", "Alarm ", "alarm no. ", "ALM", "error ", "报警", "报警 ", "报警号：")
        out = [f"{word}{form}" for word in words]
        out += [f"{form}号报警", *([f"{form}报警"] if len(form) > 1 else [])]
        if vendor == "siemens":
            out.append(form.zfill(6))
    return tuple(dict.fromkeys([form, *out]))


def _lettered_spellings(form: str, vendor: str) -> Iterator[str]:
    letters = form[:2] if vendor == "fanuc" else form[0]
    full = form[len(letters):]
    if vendor == "mitsubishi":
        yield form.lower()
        return
    ties = ("", " ", "-", ".", "#") if vendor == "fanuc" else ("", " ", "-")
    for digits in (full, full.lstrip("0").zfill(3 if vendor == "fanuc" else 4)):
        yield from (f"{letters}{tie}{digits}" for tie in ties)
        yield f"{letters}{digits}".lower()
    if vendor == "siemens" and letters in "FA":
        yield f"2{full}"


# ---- Codes in a text ----
@dataclass(frozen=True)
class _Token:
    """A found code before its offsets are mapped back. `stem` says how a number in the same list continues it."""

    start: int
    end: int
    readings: tuple[CodeReading, ...] = ()
    bare: bool = False
    stem: tuple[str, str | None, str] | None = None
    digits: str = ""


@dataclass(frozen=True)
class _Number:
    """A plain number in the text. `mark` is why it is a code ("" for none), `begins` where that word begins."""

    start: int
    end: int
    digits: str
    decimal: str
    mark: str
    begins: int


def _read(vendor: str | None, family: str | None, *codes: str) -> tuple[CodeReading, ...]:
    return tuple(CodeReading(vendor=vendor, family=family, code=code) for code in codes)


def _alarm_near(text: str, start: int, end: int, reach: int = 12, stop: str = r"[,。;!?\n]") -> bool:
    """Whether a word for alarm stands within `reach` characters, with no mark of `stop` between."""
    left = re.split(stop, text[max(0, start - reach):start])[-1]
    right = re.split(stop, text[end:end + reach])[0]
    return bool(_ANY_ALARM.search(left) or _ANY_ALARM.search(right))


def _alarm_touches(text: str, start: int, end: int) -> bool:
    return bool(_BEFORE.search(text[max(0, start - 24):start]) or _AFTER.match(text, end))


def _message_tokens(text: str, context: _Context) -> Iterator[_Token]:
    if context.vendors and "linuxcnc" not in context.vendors:
        return
    known = "linuxcnc" in context.vendors
    found = sorted(
        (match.start(), match.end(), order, slug)
        for order, (slug, anywhere, about) in enumerate(_MESSAGES)
        for match in (about if known else anywhere).finditer(text))
    at = 0
    while at < len(found):  # a message that fits several slugs is one mention with several readings
        last, end = at, found[at][1]
        while last + 1 < len(found) and found[last + 1][0] < end:
            last += 1
            end = max(end, found[last][1])
        slugs = dict.fromkeys(slug for _, slug in sorted(row[2:] for row in found[at:last + 1]))
        yield _Token(found[at][0], end, _read("linuxcnc", "linuxcnc", *slugs))
        at = last + 1


def _display_tokens(text: str, context: _Context) -> Iterator[_Token]:
    """Codes that would be blanked out as a serial number or an address: Heidenhain's and Grbl's."""
    for match in _TNC.finditer(text) if "heidenhain" in context.vendors else ():
        form = _form(match[0], "heidenhain")
        hexadecimal = "-" in match[0] or re.search("[a-f]", match[0], _FLAGS)
        if form and hexadecimal and context.speaks_of("heidenhain", *match.span())[0]:
            yield _Token(*match.span(), _read("heidenhain", "tnc", form))
    for match in _GRBL.finditer(text):
        named, family = context.at(*match.span())
        if named in (None, "grbl"):
            kind = "ALARM:" if match["kind"].lower() == "alarm" else "error:"
            yield _Token(*match.span(), _read("grbl", family, f"{kind}{int(match['n'])}"), stem=("grbl", family, kind),
                         digits=match["n"])


def _fanuc_tokens(text: str, context: _Context) -> Iterator[_Token]:
    for match in _FANUC.finditer(text):
        digits, sep, start, end = _digits(match["n"]), match["sep"], match.start(), match.end()
        if digits is None:
            continue
        prefix = _prefix(match)
        here, free = context.speaks_of("fanuc", start, end)
        # An abbreviation, a space and a round number (EX 1000, SP 8000) is more often a quantity or a product.
        glued = sep in ("", "#")
        likely = glued or digits[0] == "0" or "/" in match["prefix"] or prefix in ("SV", "OT", "OH", "SW") or (
            prefix in ("PS", "SP", "SR", "DS", "BG") and not digits.endswith("00"))
        sure = (len(digits) >= 3 and likely) or (len(digits) >= 2 and here) or len(sep.strip()) > 1
        if not sure and not (free and (_alarm_near(text, start, end) if glued else _alarm_touches(text, start, end))):
            continue
        readings = _read("fanuc", "30i", f"{prefix}{int(digits):04d}")
        if here and context.at(start, end)[1] == "16i":
            readings = _read("fanuc", "16i", str(int(digits))) + readings
        yield _Token(start, end, readings, stem=("fanuc", "30i", prefix), digits=digits)


def _drive_tokens(text: str, context: _Context) -> Iterator[_Token]:
    for match in _DRIVE.finditer(text):
        digits, letter, start, end = _digits(match["n"]), match["prefix"].upper(), match.start(), match.end()
        if digits is None or int(digits) < 1_000:  # F0001 is some other make of drive
            continue
        here, free = context.speaks_of("siemens", start, end)
        if letter in "NC":  # program blocks and axis words look the same
            sure = here and len(digits) == 5
        elif len(digits) == 5:  # F10000 and F30000 are feeds
            known = re.match(r"0[1-9]|13|[345]\d", digits) and not digits.endswith("000")
            sure = bool(known) or here
        else:  # F2000 is a feed
            known = letter == "A" and not match["sep"] and re.match("[1-35-8]", digits) and not digits.endswith("00")
            sure = bool(known and free) or here
        if sure or (letter not in "NC" and free and _alarm_near(text, start, end)):
            yield _Token(start, end, _read("siemens", "sinamics", f"{letter}{int(digits):05d}"),
                         stem=("siemens", "sinamics", letter), digits=digits)


def _meldas_tokens(text: str, context: _Context) -> Iterator[_Token]:
    for match in _MELDAS.finditer(text):
        start, end = match.span()
        here, free = context.speaks_of("mitsubishi", start, end)
        form = _form(match[0], "mitsubishi", "m700") if free else None
        if form is None:
            continue
        touches = _alarm_touches(text, start, end)
        head, _, number = form.partition(" ")
        if number:  # S01 0018: servo, Z70 0101: absolute position, M01 0006: operation; others need the vendor
            usual = len(match[0]) == 8 and (touches or re.match(r"S0[1-9]|S5\d|[ZY]\d|M(?:00|01|50|90)", form))
            fine = bool(here or (match["sep"] == " " and usual))
        else:  # S and Z are also G-code words
            fine = (here or touches) if form[0] in "PY" else (here and form[0] in "SZEL" and touches)
        if fine:
            yield _Token(start, end, _read("mitsubishi", "m700", form),
                         stem=("mitsubishi", "m700", f"{head} " if number else form[0]), digits=number or form[1:])


def _mark_by_word(text: str, match: re.Match[str], vendor: str | None) -> tuple[str, int]:
    """The alarm word that marks a number, as "alarm", "error" or "either", and where code and word begin."""
    start, size = match.start("n"), len(match["n"] + (match["decimal"] or ""))
    window = text[max(0, start - 24):start]
    found = _BEFORE.search(window)
    if found and not (size > 3 and not found["alarm"] and found[0].lower().startswith("al")):  # AL 6061 is an alloy
        return _kind(found), start - len(window) + found.start()
    if found := _AFTER.match(text, match.end()):
        word = found[0].rstrip().lower()
        # "100 alarms" counts, "103 and 105 alarms" names
        counts = word.endswith("s") and not _LISTED.search(window)
        # "op 20 alarm 401": the word belongs to the number after it
        counts = counts or (word.isascii() and bool(_NAMES_ANOTHER.match(text, found.end())))
        if found["ordinal"] or (not counts and (size >= 2 or vendor == "grbl")):
            return _kind(found), start
    return "", start


def _kind(found: re.Match[str]) -> str:
    return "error" if found["error"] else "alarm" if found["alarm"] else "either"


def _mark(text: str, match: re.Match[str], context: _Context) -> tuple[str, int]:
    """Why a number is a code: alarm, error, either, vendor or "" for not at all; and where the code begins."""
    start, end, size = match.start("n"), match.end(), len(match["n"])
    vendor = context.at(start, end)[0]
    if match["decimal"] and vendor != "haas":
        return "", start
    mark = _mark_by_word(text, match, vendor)
    if mark[0]:
        return mark
    window = text[max(0, start - 24):start]
    year = _YEAR.fullmatch(match["n"]) and not (vendor == "siemens" and match["n"] in ("2000", "2001"))
    numbered = vendor not in (None, "grbl", "linuxcnc", "generic")  # of a vendor whose codes are numbers
    ordered = size >= 3 and _ORDINAL.search(window) and re.match(r"\s?[号號]", text[end:end + 2])
    shown = size >= 3 and not year and _SHOWS.search(window) and (
        numbered or _alarm_near(text, start, end, 16, r"[。;!?\n]"))
    if ordered or shown or (size >= 2 and _REPORTS.search(window)):
        return "either", start
    if not numbered or match["n"] in _MODEL_NUMBERS.get(vendor or "", ()):
        return "", start
    leads = start <= 40 and not re.search(r"\w", text[:start])
    alone = leads and not re.search(r"\w", text[end:end + 40]) and len(text) - end <= 40
    # A number glued to its vendor, one that opens the text, or five and more digits on a SINUMERIK need no other word.
    if size >= (4 if vendor == "siemens" else 3) and not year:
        glued = any(_GLUE.match(text[name.end:start]) for name in context.ending_near(start))
        return ("vendor" if leads or glued or (vendor == "siemens" and size >= 5) else ""), start
    return ("vendor" if alone else ""), start


def _chains(text: str, context: _Context, spelled: Iterable[_Token]) -> Iterator[list[_Token | _Number]]:
    """Codes and plain numbers, those of one list or range together: SV401、436; 4500-4509."""
    members: list[_Token | _Number] = [token for token in spelled if token.stem]
    taken = {position for token in spelled for position in range(token.start, token.end)}
    for match in _NUMBER.finditer(text):
        digits = _digits(match["n"])
        if digits and match.start("n") not in taken:
            mark, begins = _mark(text, match, context)
            members.append(_Number(match.start("n"), match.end(), digits, match["decimal"] or "", mark, begins))
    members.sort(key=lambda member: member.start)
    chain: list[_Token | _Number] = []
    for member in members:
        gap = member.start - chain[-1].end if chain else 0
        if chain and not (0 < gap <= 10 and _linked(text, chain[-1], member)):
            yield chain
            chain = []
        chain.append(member)
    if chain:
        yield chain


def _linked(text: str, left: _Token | _Number, right: _Token | _Number) -> bool:
    if _LINK.fullmatch(text, left.end, right.start):
        return True
    # "报警 700013 700014": a space alone links numbers of one length
    return text[left.end:right.start] == " " and len(left.digits) == len(right.digits) >= 3


def _number_tokens(text: str, context: _Context, spelled: Iterable[_Token]) -> Iterator[_Token]:
    """Plain numbers that are codes; what marks one member of a list marks the list."""
    for chain in _chains(text, context, spelled):
        marks = [member for member in chain if isinstance(member, _Number) and member.mark]
        marked = min(marks, key=lambda member: member.mark == "vendor", default=None)
        head: _Token | None = None
        for member in chain:
            if isinstance(member, _Token):
                head = member
            elif head and not member.mark:
                yield from _continued(head, member)
            elif member.mark:
                yield _number_token(member, member.mark, context)
            elif marked and _alike(member, marked):
                yield _number_token(member, marked.mark, context)


def _alike(number: _Number, marked: _Number) -> bool:
    """Whether an unmarked number of a list is as long as the marked one says: 2、401号报警 is one code."""
    short = len(marked.digits) - (marked.mark != "vendor")
    return len(number.digits + number.decimal) >= short and not _YEAR.fullmatch(number.digits)


def _continued(head: _Token, number: _Number) -> Iterator[_Token]:
    """A number that carries on a list begun by a spelled code: SV401、436."""
    if head.stem is None:
        return
    vendor, family, letters = head.stem
    if number.decimal or len(number.digits) < max(1 if vendor == "grbl" else 2, len(head.digits.lstrip("0")) - 1):
        return
    if code := _form(f"{letters}{number.digits}", vendor, family):
        yield _Token(number.start, number.end, _read(vendor, family, code))


def _number_token(number: _Number, mark: str, context: _Context) -> _Token:
    vendor, family = context.at(number.start, number.end)
    digits = number.digits.lstrip("0") or "0"
    if vendor == "grbl" and len(digits) <= 3:
        kinds = {"alarm": ("ALARM",), "error": ("error",)}.get(mark, ("ALARM", "error"))
        readings = _read(vendor, family, *(f"{kind}:{digits}" for kind in kinds))
        return _Token(number.begins, number.end, readings, bare=len(kinds) > 1)
    if vendor in (None, "siemens") and len(digits) == 6 and digits[0] == "2":
        readings = _read("siemens", "sinamics", f"F{digits[1:]}", f"A{digits[1:]}")  # F or A: see _siemens
    elif vendor == "siemens" and family == "sinamics" and 4 <= len(digits) <= 5:
        readings = _read("siemens", "sinamics", f"F{digits:0>5}", f"A{digits:0>5}")
    else:
        readings = ()
    if vendor is None or not readings:
        readings += _read(vendor, family, digits + number.decimal)
    return _Token(number.start, number.end, readings, bare=True)


def find_codes(text: str, vendor: str | None = None, family: str | None = None) -> tuple[CodeMention, ...]:
    """Fault codes in a Chinese or English text, in order of appearance, not overlapping. Never raises.

    `vendor` and `family` are ids of families.yaml and say which machine is in front of the technician; a vendor that
    the text names goes before them. Readings of a spelled code are canonical; a bare number's code is its digits
    without leading zeros, to be matched with `number_of`. Offsets count characters of `text`.
    """
    folded, index = fold(text)
    context = _Context(folded, vendor, family)
    taken = bytearray(len(folded))
    found: list[_Token] = []

    def take(tokens: Iterator[_Token]) -> None:
        for token in tokens:
            if not any(taken[token.start:token.end]):
                taken[token.start:token.end] = b"\1" * (token.end - token.start)
                found.append(token)

    take(_message_tokens(folded, context))
    take(_display_tokens(folded, context))
    blanked = _NOISE.sub(lambda match: _BLANK * len(match[0]), context.without_names())
    for find in (_fanuc_tokens, _meldas_tokens, _drive_tokens):
        take(find(blanked, context))
    take(_number_tokens(blanked, context, tuple(found)))
    mentions = []
    for token in sorted(found, key=lambda token: token.start):
        start, end = index[token.start], index[token.end - 1] + 1
        mentions.append(
            CodeMention(raw=text[start:end], start=start, end=end, readings=token.readings, bare=token.bare))
    return tuple(mentions)
