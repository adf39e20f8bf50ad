"""LinuxCNC's faults: it shows messages, not numbers, so each message has a slug for its code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from retrieval.code_patterns import FLAGS

_J = r"(?:joint|关节)\s?\d{0,2}\s?的?\s?"
_WAYS = (("POSITIVE", "正", "max"), ("NEGATIVE", "负", "min"))
_LIMIT = (
    r"would exceed (?:joint |axis )?\w{{1,2}}'s {en} limit|exceeded {en} soft limit|past {end} soft limit"
    r"|(?:超出|超过)了?\s?(?:关节|轴|[xyzabcuvw])?\s?\d{{0,2}}\s?的?\s?{zh}向?(?:软限位|限位|软?极限)|{zh}向软限位.{{0,8}}超程"
)
# To add one: slug, pattern for any text, pattern only for text known to be about LinuxCNC ("" for none), one English
# and one Chinese example that the first pattern matches. A message may have a general and a narrower slug: it gets
# both readings in the order of this table.
LINUXCNC_MESSAGES: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "JOINT-FOLLOWING-ERROR",
        _J + "(?:following error|跟随(?:错误|误差))",
        "following error|跟随(?:错误|误差)",
        "joint 2 following error",
        "关节 2 跟随错误",
    ),
    (
        "UNEXPECTED-REALTIME-DELAY",
        r"unexpected real[- ]?time delay(?: on task \d{1,3})?"
        r"|(?:意外|意料之外|非预期|异常|未预期)的?实时(?:延迟|延时)",
        "real[- ]?time delay|实时(?:延迟|延时)",
        "Unexpected realtime delay on task 0",
        "任务 0 意外的实时延迟",
    ),
    (
        "JOINT-ON-LIMIT-SWITCH",
        _J + "(?:on limit switch(?: error)?|(?:在|碰到|压[到在]|触发了?|处于)限位开关|限位开关错误)",
        "on limit switch(?: error)?|限位开关错误",
        "joint 1 on limit switch error",
        "关节 1 碰到限位开关",
    ),
    (
        "AMPLIFIER-FAULT",
        _J + "(?:amplifier fault|放大器故障|驱动器?故障)",
        "amplifier fault|放大器(?:故障|报错)",
        "joint 0 amplifier fault",
        "关节 0 放大器故障",
    ),
    (
        "SOFT-LIMIT-EXCEEDED",
        _LIMIT.format(en="(?:positive|negative)", zh="[正负]", end="(?:max|min)"),
        "",
        "would exceed joint 0's positive limit",
        "超出关节 0 的正限位",
    ),
    *(
        (
            f"EXCEED-{way}-LIMIT",
            _LIMIT.format(en=way, zh=zh, end=end),
            "",
            f"Exceeded {way} soft limit",
            f"超出关节 0 的{zh}向软限位",
        )
        for way, zh, end in _WAYS
    ),
    (
        "HOMING-SWITCH-FAULT",
        r"home switch (?:in)?active before start of \w{1,10} move|without finding home switch"
        r"|hit limit in home state|(?:没有?|未|找不到|没能)(?:找到)?(?:回零|原点|零点|回原点)开关"
        r"|移动之?前,?\s?原点开关[有无]效",
        "",
        "end of home search without finding home switch",
        "回零结束仍未找到原点开关",
    ),
    (
        "HOME-SWITCH-INACTIVE-BEFORE-BACKOFF",
        "home switch inactive before start of backoff move"
        r"|(?:退避|回退)移动之?前,?\s?原点开关无效",
        "",
        "home switch inactive before start of backoff move",
        "开始退避移动之前，原点开关无效",
    ),
    (
        "HOME-SWITCH-INACTIVE-BEFORE-LATCH",
        "home switch inactive before start of latch move"
        r"|(?:闩锁|锁存)移动之?前,?\s?原点开关无效",
        "",
        "home switch inactive before start of latch move",
        "开始闩锁移动之前，原点开关无效",
    ),
)


@cache
def message_patterns() -> tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...]:
    """Slug, pattern for any text and pattern for text about LinuxCNC, of every message.

    Compiled when first asked for: a question about another vendor's machine never needs them.
    """
    return tuple(_patterns())


def _patterns() -> Iterator[tuple[str, re.Pattern[str], re.Pattern[str]]]:
    for slug, strict, loose, _, _ in LINUXCNC_MESSAGES:
        anywhere = f"{slug.replace('-', '[-_]')}|{strict}"
        yield slug, re.compile(anywhere, FLAGS), re.compile(f"{anywhere}|{loose}" if loose else anywhere, FLAGS)
