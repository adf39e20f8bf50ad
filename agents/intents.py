"""The intent submodel's form without a language model: rules over both languages.

Rules abstain (None) where nothing speaks; retrieval then decides whether the question is about a machine at all.
"""

from __future__ import annotations

import re

from agents.safety import plain, screen
from retrieval.records import Intent

_REPORT = re.compile(
    r"(?:write|draft|make|create|prepare|give\s+me|generate)\s.{0,30}(?:hand-?over|report|work\s?order|service\s?note|log\s?entry)"
    r"|hand-?over\s+(?:note|text|report)|(?:写|生成|出|做|填|整理).{0,8}(?:交接|工单|报告|维修记录|交班|记录)",
    re.IGNORECASE,
)
_FOLLOW_UP = re.compile(
    r"\b(?:still\s+(?:there|the\s+same|faulting|alarming|not|no|comes?|happens?|shows?)|same\s+(?:alarm|fault|thing)\s+again|what\s+(?:next|else|now)"
    r"|next\s+(?:step|check)|didn'?t\s+(?:help|work|fix)|did\s+not\s+(?:help|work)|no\s+change|that\s+(?:was\s+)?(?:ok|fine|good)"
    r"|(?:i|we)(?:'ve|\s+have)?\s+(?:already\s+)?(?:checked|tried|replaced|swapped|measured|cleaned|reset))\b"
    r"|还是不行|还是一样|依然|仍然(?:报警|不行|有)|没用|不管用|下一步|接下来|然后呢|还有(?:什么|别的)|检查过了|查过了|(?:已经?|都)(?:检查|查|换|测|试|清洁)(?:过|了)|换了.{0,8}还",
    re.IGNORECASE,
)
_PARAMETER = re.compile(
    r"\bparameters?\b|\bparam\b|\bsetting\s+\$?\d+|\$\d{1,3}\b|machine\s+data|\bMD\s?\d{4,5}\b|\bp\d{4}\b|参数|机床数据|设定值",
    re.IGNORECASE,
)
_PROCEDURE = re.compile(
    r"\bhow\s+(?:do|can|should|would|to)\b|\bhow\s+is\b|\bsteps?\s+(?:to|for)\b|\bprocedure\b|\binstructions?\b|\bguide\s+(?:to|for|me)\b|\bwalk\s+me\b|\bway\s+to\b"
    r"|怎么(?!回事|了|办)|怎样|如何|步骤|流程|方法|规程|教我",
    re.IGNORECASE,
)
_SYMPTOM = re.compile(
    r"\b(?:noise|noisy|nois\w+|growl\w*|squeal\w*|grind(?:s|ing)\s+(?:noise|sound)|hum(?:s|ming)?|chatter\w*|vibrat\w*|shak\w+|jitter\w*|hot|overheat\w*|smok\w+|smell\w*"
    r"|leak\w*|drop\w*|drift\w*|fluctuat\w*|unstable|wander\w*|hunt\w*|stall\w*|stop(?:s|ped)|stuck|jam\w*|won'?t|will\s+not|doesn'?t|does\s+not|does\s+nothing|cannot|can'?t|not\s+(?:ready|moving|working|turning|starting|homing|release)"
    r"|trip\w*|fail\w*|fault\w*|broken|dead|lost|loses|slow\w*|jerk\w*|stick\W?slip|backlash|inaccurat\w*|off\s+by|out\s+of\s+(?:tolerance|position)|crash\w*|no\s+(?:power|air|oil|signal|response))\b"
    r"|异响|噪音|噪声|响声|异音|振动|抖动|抖|发热|过热|很烫|冒烟|焦味|漏油|漏气|漏水|波动|不稳|漂移|爬行|卡死|卡住|卡滞|不动|不转|不走|走不动|不动作|不工作|不启动|起不来|上不去"
    r"|上不了电|没反应|无反应|断电|掉电|跳闸|失灵|坏了|故障|不准|超差|撞机|撞刀|飞车|扎刀|闷车|丢步|失步|停机|停了|松不开|无法|不能|不了|报警|压不住|没压力",
    re.IGNORECASE,
)
_MACHINE = re.compile(
    r"\b(?:cnc|machine|mill|lathe|router|spindle|axis|axes|servo|drive|amplifier|encoder|controller?|controls|tool\s?changer|turret|chuck|coolant|lube|way\s?oil|ball\s?screw|bearing|e-?stop|limit|home|homing|probe"
    r"|alarm|error|fault|plc|light\s+curtain|interlock|enabling\s+switch|brake|guard|door\s+switch|table|tool|hydraulic|pneumatic|relay|contactor|motor|gantry|tailstock|pallet|machining\s+cent)\w*\b"
    r"|机床|数控|加工中心|车床|铣床|主轴|伺服|驱动|放大器|编码器|刀库|刀塔|卡盘|冷却|润滑|丝杠|导轨|轴承|急停|限位|回零|对刀|报警|电机|马达|光幕|光栅|抱闸|使能|联锁|护罩|刀具|工作台|液压|气压|继电器|接触器|控制器|系统|电柜|变频器|尾座|安全门|参数|电池|[XYZABC]轴",
    re.IGNORECASE,
)


def classify(text: str, has_code: bool) -> Intent | None:
    """Intent of one question part, or None to abstain.

    `has_code` is whether a fault code was found in it. Danger comes first and a found code outweighs all but danger,
    a report and a follow-up.
    """
    folded = plain(text)
    ordered: tuple[tuple[bool, Intent], ...] = (
        (screen(text).verdict == "danger", "danger"),
        (bool(_REPORT.search(folded)), "report"),
        (bool(_FOLLOW_UP.search(folded)) and not has_code, "follow_up"),
        (has_code, "alarm"),
        (bool(_PARAMETER.search(folded)) and not _backup(folded), "parameter"),
        (bool(_PROCEDURE.search(folded)) and bool(_MACHINE.search(folded)), "procedure"),
        (bool(_SYMPTOM.search(folded)) and bool(_MACHINE.search(folded)), "symptom"),
    )
    return next((intent for speaks, intent in ordered if speaks), None)


def goes_on(text: str) -> bool:
    """True if a text says how a check went, or asks for the next one."""
    return _FOLLOW_UP.search(plain(text)) is not None


def about_a_machine(text: str) -> bool:
    """True if a word of the trade stands in the text."""
    return _MACHINE.search(plain(text)) is not None


def has_symptom(text: str) -> bool:
    """True if the text says that something behaves badly."""
    return _SYMPTOM.search(plain(text)) is not None


def _backup(text: str) -> bool:
    """Saving parameters is a procedure, not a question about one."""
    return bool(re.search(r"back\s?up|restor|sav(?:e|ing)|备份|恢复|保存|导出", text, re.IGNORECASE))
