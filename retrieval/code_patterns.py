"""How fault codes are written, the words that mark a number as one, and what looks like a code and is none.

All repeats are bounded and none is nested in an unbounded one: the work grows with the text's length, also for a
text made to slow it down. The patterns match folded text (`retrieval.code_text.fold`).
"""

from __future__ import annotations

import re

FLAGS = re.ASCII | re.IGNORECASE  # ASCII: a Chinese neighbour is a word boundary, and only 0-9 are digits
BLANK = "\ue000"  # stands where something that is no code was blanked out
SLIP = r"(?-i:[0-9OoIl])"  # a digit as it is typed or scanned: O for 0, I and l for 1
UNSLIP = str.maketrans("OoIl", "0011")

# ---- Words that mark a number as a code ----
_ERRORS = r"(?<![a-z])err(?:ors?)?(?![a-z])|错误|錯誤"
_ALARMS = r"(?<![a-z])al(?:ar)?ms?(?![a-z])|报警|報警|警报|警報|告警"
_EITHER = r"(?<![a-z])(?:fault|warning)s?(?![a-z])|故障|报错|報錯|警告"
ANY_ALARM = re.compile(f"{_ALARMS}|{_ERRORS}|{_EITHER}", FLAGS)
_FILL = (
    r"(?:[\s:=#()\[\]<>'\"“”‘’「」『』【】《》-]|no\.?|nr\.?|num(?:ber)?|codes?|ids?|is|was|号码?|號|代[号码]|编[号码]|码|信息|内容|记录"
    r"|提示|显示|出现|[了是为叫有个]|[xyzabcuvw]\d?轴){0,8}$"
)
BEFORE = re.compile(
    rf"(?:(?P<error>{_ERRORS})|(?P<alarm>{_ALARMS})|{_EITHER}|(?<![a-z])al(?=[-. ]?$)"
    rf"|(?<![a-z])codes?|代码)\.?{_FILL}",
    FLAGS,
)
AFTER = re.compile(
    r"\s?[)\]】\"”’」》>]?\s?(?P<ordinal>号|號|#)?\s?(?:[是这]?(?:[两二三四五六几]?个|的|什么|啥|哪个)?){0,2}\s?(?:an?\s)?"
    r"(?:(?:伺服|主轴|驱动|轴|程序|servo|spindle|drive|plc|nc|p/?s)\s?){0,2}"
    rf"(?:(?P<error>{_ERRORS})|(?P<alarm>{_ALARMS})|{_EITHER}|故障码|(?:都|一起|同时){{1,2}}[报出])",
    FLAGS,
)
NAMES_ANOTHER = re.compile(r"(?:[\s:#]|no\.?|number|code){0,4}\d", FLAGS)
LISTED = re.compile(r"(?:and|or|to|[,/、&~-])\s?$", FLAGS)
ORDINAL = re.compile(r"第\s?$")
REPORTS = re.compile(r"(?<![预通汇日填申海情])[报跳]\s?(?:了|过|出|个|着|的是){0,2}\s?$")
SHOWS = re.compile(
    r"(?:出现|显示|提示|弹出|冒出|[来出又就变成]|老是|总是|一直|还是|经常|(?<![a-z])(?:shows?|showing|displays?|says|got|gets?|getting|gives?|throws|threw"
    r"|throwing|see|have|has))\s?(?:了|一?个|的是|an?|the){0,2}\s?$",
    FLAGS,
)
# "411 on the FANUC", "417 on lathe 2", "it's 411 now": what a machine shows, where its maker is known
ON_MACHINE = re.compile(
    r"\s(?:on|at)\s(?:(?:the|our|my|that|this)\s)?(?:(?:\w{1,12}\s)?(?:lathe|mill|machine|router|vmc|hmc|grinder|borer)(?![a-z])"
    rf"|{BLANK})",
    FLAGS,
)
BEGINS = re.compile(r"(?:^|[,;:!?。，；：]\s?|(?<![a-z])(?:and|now|also|then|but)\s)$", FLAGS)
SO_IT_IS = re.compile(
    r"(?<![a-z])(?:it'?s|its|now|now\sit'?s|still|again)\s$|(?<![a-z])(?:lathe|mill|machine)\s?#?\d{1,2}\s?:\s?$|(?:现在|又|还)是?\s?$",
    FLAGS,
)
CLAUSE_ENDS = re.compile(r"\s?(?:now|again|today|了|呢|吧|[.,;!?。，；！？]|$)", FLAGS)
LINK = re.compile(
    r"(?:号|號|#)?\s?(?:(?:[、,/&~+-]|和|与|及|或|跟|到|至|还有|以及|and|or|to)\s?){1,2}(?:第|no\.?|#)?\s?|,?\s(?:and|or)\s",
    FLAGS,
)
YEAR = re.compile(r"(?:19[89]|20[0-3])\d")
GLUE = re.compile(
    rf"(?:[\s:,#{BLANK}-]|[xyzabcuvw]\d?轴|的|那台|系统|机床|数控|加工中心|车床|铣床|controls?|controller|machine|cnc|lathe|mill){{0,12}}$",
    FLAGS,
)
# A TNC 640 or an M700 is a model, also where its letters are left out.
MODEL_NUMBERS = {"heidenhain": {"407", "426", "430", "530", "620", "640"}, "mitsubishi": {"700", "750", "800", "830"}}

# ---- What is no code ----
_N = r"\d{1,9}(?:\.\d{1,6})?"
_UNIT = (  # single letters are case-sensitive and no axis or code word
    r"(?:r/min|rpm|mm|cm|[uμn]m|m/min|m/s|inch(?:es)?|ipm|psi|bar|[km]?pa|n[·.]?m|kg|[km]?hz|kw|kva|[mk]v|ma|ms"
    r"|sec(?:ond)?s?|min(?:ute)?s?|hrs?|hours?|days?|weeks?|months?|years?|volts?|amps?|watts?|ohms?|deg(?:rees?)?|points?"
    r"|pcs|pieces|parts|times|[kmg]b|bits?|bytes?|microns?|percent|lit(?:re|er)s?|l/min|usd|rmb|yuan|dollars)(?![a-z0-9])"
    # "SV0401 V-READY OFF", "SP740 A" and "F30005 A" are a code and the first word of its message
    r"|(?<![a-z]{2}\d{4}\s)(?<![a-z]{2}\d{3}\s)(?<![a-z]\d{5}\s)(?-i:[AVWLmshg])(?![A-Za-z0-9])(?!-[A-Z]{3})"
    r"(?!\s?-?(?:轴|axis|代码|code))"
    r"|[%‰°Ω℃]|kΩ|转(?![速矩台动到为向子接盘换])|度(?!数)|分钟|小时|秒|次(?![数日])|台(?![面湾])|元(?![件器素])|[件吨伏]"
    r"|丝(?![杠杆])|毫米|微米|公斤|千克|千瓦|赫兹|兆帕|毫?安培|欧姆|米"
)
_LOOSE_UNIT = (  # signs that also begin other words: only directly after a number that no letter precedes
    r"[天年月周个块万千百班遍趟齿牙孔段页](?![气初底期别规分])|日(?![志常])|分(?![析别辨布为])|位(?![置移])"
    r"|点(?![检击动位了开一])|行(?![程吗不么])|步(?!骤)|升(?![级降])|安(?![全装川])|倍(?!率)|瓦|欧(?!洲)|多[次个台天件]"
)
_WORD = r"[a-z]-?\d{1,6}(?:\.\d{0,4})?\s?"
_NOISE_KINDS = (
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
    # r0949=200: what a parameter of a drive holds
    r"(?<![a-z0-9])[rp]\d{3,5}(?:\[\d{1,3}\])?\s?[=:]\s?-?\d{1,9}",
    # 231 - C670: a message of a TNC, whatever the machine; "401 - FEED" is a number and a word
    r"(?<![\w-])[0-9a-f]{3}\s-\s(?=[0-9]{0,3}[a-f])(?=[a-f]{0,3}[0-9])[0-9a-f]{4}(?![\w-])",
    # O1000 N20-0: a program and its block
    r"(?<![a-z0-9])[o0]\d{4,8}\s?n\d{1,6}(?:\s?-\s?\d{1,4})?",
    r"no\.?\s?\d{1,6}\s?(?:号?参数|parameter)|(?<![\da-z])(?<![a-z]\d\d\s)\d{1,6}(?:号?参数|号?变量|号程序|钢|铝)",
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
)
NOISE = re.compile("|".join(_NOISE_KINDS), FLAGS)

# ---- How codes are written ----
_END = r"(?:(?![0-9A-Za-z_])(?!\.\d)|(?=al(?:ar)?m|err|fault|[xyzabcuvw]轴))"
NUMBER = re.compile(  # first a real digit, so that program O1234 stays one; an alarm word may be glued on either side
    r"(?:(?<![A-Za-z0-9_$])|(?<=alarm)|(?<=alarms)|(?<=alm)|(?<=err)|(?<=error)|(?<=fault)|(?<=code)|(?<=\bal)|(?<=\bno))"
    rf"(?<!\d\.)(?P<n>\d{{2,3}}\s0\d\d|\d{SLIP}{{0,5}})(?P<decimal>\.\d{{1,4}})?{_END}",
    FLAGS,
)
FANUC_PREFIXES = ("PS", "BG", "SR", "SV", "OT", "IO", "SP", "SW", "EX", "DS", "PW", "IE", "OH", "PC", "MC", "NB")
PREFIX = r"(?P<prefix>P/?S|BG|SR|SV|[O0]T|IO|SP|SW|EX|DS|PW|IE|[O0]H|PC|MC|NB)"
# Names of parts that look like a FANUC code typed without its zeros: boards (PC104), terminal blocks (IO32), valve
# islands (EX600), machines (MC500), panels (NB7), service packs (SP2), DIP switches (SW1), guides (SR25), motor classes
# (IE3), a keyboard's plug (PS2), CANopen profiles (DS402). Other short numbers of these prefixes (SP740, SW100, DS300)
# are alarms that people do type so. No part begins with a zero: SP02 is not one of these, nor is what the screen shows.
FANUC_LIKE_PART = re.compile(
    r"(?<![A-Za-z0-9_])(?:PC[-/]?104|(?:PC|IO|MC|NB|EX)[1-9]\d{0,2}|(?:SP|SW)[1-9]\d?|SR[1-5][05]|IE[1-9]|PS2"
    rf"|DS(?:301|40[12])){_END}",
    FLAGS,
)
FANUC = re.compile(
    rf"(?<![A-Za-z0-9_]){PREFIX}(?P<sep>\s?(?:报警|警报|alarm)\s?(?:号码?|no\.?)?[:\s]?\s?|\s?[-.#:_]?\s?)"
    rf"(?=[OoIl]{{0,3}}\d)(?P<n>{SLIP}{{1,4}}){_END}",
    FLAGS,
)
DRIVE = re.compile(
    rf"(?<![A-Za-z0-9_])(?P<prefix>[FANC])(?P<sep>[ -]?)(?=[OoIl]{{0,3}}\d)(?P<n>{SLIP}{{4,5}}){_END}", FLAGS
)
HEX = r"(?-i:[0-9A-Fa-fOoIl])"
MELDAS = re.compile(
    rf"(?<![A-Za-z0-9_])(?:[A-OQ-Z]{SLIP}{{2}}(?:(?P<sep>[ -]?)(?:{HEX}{{4}}|\d\d))?|P\s?\d{SLIP}{{1,2}}){_END}", FLAGS
)
TNC = re.compile(r"(?<![A-Za-z0-9_-])[0-9A-F]{3}(?:-?|\s-\s?|-\s)[0-9A-F]{4}(?![A-Za-z0-9_-])", FLAGS)
GRBL = re.compile(r"(?<![A-Za-z])(?P<kind>alarm|error):(?P<n>\d{1,2})(?![0-9A-Za-z_.])", FLAGS)
