"""What a person says of how it ended: that it is fixed, and by what."""

from __future__ import annotations

import re

from agents.safety import plain

_FIXED = re.compile(
    r"\b(?:that|it|this|which|and)\s+(?:has\s+)?(?:fixed|solved|cured|did)\s+(?:it|the\s+(?:problem|alarm|fault))\b"
    r"|\b(?:it'?s|is|got\s+it|now|all|got)\s+(?:now\s+)?(?:fixed|solved|repaired)\b|^\W*(?:fixed|solved|repaired)\b"
    r"|\b(?:runs?|works?|running|working)\s+(?:again|now|fine|normally|ok)\b"
    r"|\b(?:alarm|fault|problem|noise)\s+(?:is\s+|has\s+)?(?:now\s+)?(?:gone|cleared|solved|away)\b"
    r"|修好了?|(?<![没换查弄装拆收准])好了|解决了|搞定|恢复(?:正常|了)|不(?:再)?报(?:警)?了|可以(?:开|跑|用|干活)了|(?:故障|报警)(?:已经?)?(?:排除|消失|没了)",
    re.IGNORECASE,
)
_NOT_YET = re.compile(
    r"\b(?:not|isn'?t|never|still|if|unless|until|when|once|before|should|would|will|can|could)\b"
    r"|\bnot\s+yet\b|n't\b|没|还是|还在|仍|依然|又报|如果|要是|怎么|能否|能不能|可以吗|吗|什么时候",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:replac|chang|swapp|clean|tighten|adjust|repair|reconnect|re-?seat|fill|topp|greas|lubricat|wash|dried|solder|rewir|plugg|set|align|flush"
    r"|bled|tension|renew|install|fitt|exchang|freed|remov|releas|loosen|straighten|wip(?:e|ing)|blew|reload|restor)\w*\b|\b(?:it|the\s+\w+|cause)\s+was\b|\bwas\s+(?:loose|broken|dirty|worn|blocked|wet|dead|open)\b"
    r"|换|清|紧|调|修(?!好)|接|加了|拧|插|焊|垫|润滑|吹|擦|设|对中|松了|断了|坏了|堵|是.{1,20}(?:的问题|坏|松|断|脏)",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"(?:write|draft|make|create|prepare|give\s+me|generate|print|need)\s.{0,30}(?:hand-?\s?over|report|work\s?order|service\s?note|log\s?entry|summary)"
    r"|^\W*(?:hand-?\s?over|report|work\s?order)\W*(?:please)?\W*$|hand-?\s?over\s+(?:note|text|report)"
    r"|(?:写|生成|出|做|填|整理|要).{0,8}(?:交接|工单|报告|维修记录|交班|记录|小结|总结)|^\W*(?:交接|工单|报告|交班)\W*$",
    re.IGNORECASE,
)


_ONLY_NEXT = re.compile(
    r"\W*(?:ok\W+)?(?:and\s+)?(?:what(?:'?s|\s+is)?\s+(?:next|now|else)|next(?:\s+(?:one|check|step))?|go\s+on|continue)\W*"
    r"|\W*(?:好\W*)?(?:下一步|接下来|然后)(?:呢|是什么|怎么办|查什么)?\W*|\W*继续\W*",
    re.IGNORECASE,
)


def only_next(text: str) -> bool:
    """True where a person asks for the next check and says nothing of the one before."""
    return _ONLY_NEXT.fullmatch(plain(text)) is not None


def without_verdict(text: str) -> str:
    """What was done, without the words that say that it helped; the text itself where nothing else is in it."""
    rest = _FIXED.sub("", text)
    rest = re.sub(r"^[\s,;:，。；、-]+|(?:[\s,;:，；、-]|\band\b|\bnow\b)+$", "", rest, flags=re.IGNORECASE)
    rest = " ".join(rest.split())
    return rest if says_what(rest) else text


def says_fixed(text: str) -> bool:
    """True where a person says that the machine is well again; a question, a wish or a denial is not that."""
    folded = plain(text)
    return bool(_FIXED.search(folded)) and not _NOT_YET.search(folded) and not folded.rstrip().endswith(("?", "？"))


def says_what(text: str) -> bool:
    """True where a text says what was done or found."""
    return _DONE.search(plain(text)) is not None


def asks_for_report(text: str) -> bool:
    """True where a handover or work-order text is asked for."""
    return _REPORT.search(plain(text)) is not None
