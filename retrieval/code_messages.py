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
    r"|(?:超出|超过)了?\s?(?:关节|轴|[xyzabcuvw])?\s?\d{{0,2}}\s?的?\s?{zh}向?(?:软限位|限位|软?极限)|{zh}向软限位[^。;,\n]{{0,30}}超程"
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
        "SPINDLE-AMPLIFIER-FAULT",
        r"spindle \d{1,2} amplifier fault|主轴\s?\d{1,2}\s?的?\s?放大器故障",
        r"spindle amplifier fault|主轴放大器(?:故障|报错)",
        "spindle 0 amplifier fault",
        "主轴 0 放大器故障",
    ),
    (
        "AMPLIFIER-FAULT",
        _J + "(?:amplifier fault|放大器故障|驱动器?故障)",
        r"(?<!spindle )(?<!spindle \d )amplifier fault|(?<!主轴)(?<!主轴\d)(?<!主轴\s\d\s)放大器(?:故障|报错)",
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
    (
        "JOG-PAST-HARD-LIMIT",
        r"can'?t jog joint \d{0,2}\s?further past (?:max|min) hard limit"
        r"|(?:不能|无法)点动关节\s?\d{0,2}\s?超出[正负]向硬(?:极限|限位)",
        "further past (?:max|min) hard limit|超出[正负]向硬(?:极限|限位)",
        "Can't jog joint 0 further past max hard limit.",
        "不能点动关节 0 超出正向硬极限。",
    ),
    (
        "HOMING-MOVE-ENDED",
        r"(?:j\s?\d{1,2}\s?:?\s?)?end of move in home state(?: \d{1,2})?"
        r"|(?:j\s?\d{1,2}\s?)?在回零状态\s?\d{0,2}\s?中结束移动",
        "",
        "j0 end of move in home state 5",
        "j0 在回零状态 5 中结束移动",
    ),
    (
        "NOT-HOMED",
        "can'?t (?:issue mdi command|run a program) when not homed"
        r"|未(?:返回|回)原?点时无法(?:发出\s?mdi\s?(?:指令|命令)|运行程序)",
        "",
        "Can't issue MDI command when not homed",
        "未返回原点时无法运行程序",
    ),
    (
        "TELEOP-NEEDS-HOMING",
        "(?:all )?joints must be homed before going into (?:teleop|coordinated) mode"
        r"|进入(?:\s?teleop\s?|坐标)模式之前,?\s?所有关节都?必须回零|所有关节必须在进入坐标模式之前回零",
        "",
        "all joints must be homed before going into teleop mode",
        "在进入teleop模式之前，所有关节都必须回零",
    ),
    (
        "HOME-NEEDS-JOINT-MODE",
        "must be in joint mode(?: or disabled)? to (?:un)?home|必须(?:以关节模式回零|处于关节模式或禁用才可以消零)",
        "",
        "must be in joint mode to home",
        "必须以关节模式回零",
    ),
    (
        "MACHINE-NOT-ON",
        "cannot be executed until the machine is out of e-?stop and turned on"
        r"|在机床解除(?:紧急停止|急停)并重新启动之前,?\s?无法执行命令",
        "",
        "command (EMC_AXIS_HOME) cannot be executed until the machine is out of E-stop and turned on",
        "在机床解除紧急停止并重新启动之前，无法执行命令 (EMC_AXIS_HOME)",
    ),
    (
        "ENABLE-INPUT-OFF",
        "motion stopped by enable input|can'?t enable motion, enable input is false|运动停止因为启用了输入",
        "",
        "motion stopped by enable input",
        "运动停止因为启用了输入",
    ),
    (
        "PROBE-NO-CONTACT",
        r"(?:g38\.[24]|probe) move finished without (?:making|breaking) contact"
        r"|g38\.[24]\s?移动完成后(?:不接触|未接触)",
        "",
        "G38.2 move finished without making contact.",
        "G38.2 移动完成后不接触.",
    ),
    (
        "PROBE-ALREADY-TRIPPED",
        r"probe is already (?:tripped|clear) when starting g38\.\d(?: or g38\.\d)?"
        r"|探(?:头|针)在?启动\s?g38\.\d\s?或\s?g38\.\d\s?时已经(?:跳闸|触发)",
        "",
        "Probe is already tripped when starting G38.2 or G38.3 move",
        "探头在启动G38.2或G38.3时已经跳闸",
    ),
    (
        "PROBE-TRIPPED-UNEXPECTED",
        "probe tripped during (?:an? |a )?(?:non-probe move|homing motion|joint jog|coordinate jog)"
        "|探(?:头|针)在(?:非探测运动中|回零运动期间|关节点动期间|坐标点动期间)(?:触发|跳闸)",
        "",
        "Probe tripped during non-probe move.",
        "探头在非探测运动中触发。",
    ),
    (
        "ZERO-FEED-RATE",
        r"cannot (?:do g\d|make arc|feed|probe) with zero feed ?rate"
        "|(?:不能|无法)以零进给速[率度](?:执行g1|进行电弧|进给|进行探测)",
        "",
        "Cannot do g1 with zero feed rate",
        "不能以零进给速率执行g1",
    ),
    (
        "ARC-RADIUS-MISMATCH",
        "radius to end of arc differs from radius to start|圆弧终点半径与起点半径不(?:同|一致|等)",
        "",
        "Radius to end of arc differs from radius to start: r1=10.0000 r2=10.5000",
        "圆弧终点半径与起点半径不一致",
    ),
    (
        "UNKNOWN-CODE-USED",
        r"unknown [gm] code used(?:: m\d{1,3})?|使用(?:未知的|的未知)\s?[gm]\s?代码",
        "",
        "Unknown g code used",
        "使用未知的g代码",
    ),
    (
        "SAME-MODAL-GROUP",
        r"two [gm] codes used from same modal group|同一个?模[式态](?:組|组)使用两个\s?[gm]\s?代码",
        "",
        "Two g codes used from same modal group",
        "在同一个模式組使用两个G代码",
    ),
    (
        "TOOL-NOT-IN-TABLE",
        r"(?:requested )?tool \d{1,5} not found in (?:the )?tool table|请求的刀具\s?\d{1,5}\s?在刀具表中找不到",
        "",
        "Requested tool 12 not found in the tool table",
        "请求的刀具12在刀具表中找不到",
    ),
    (
        "SPINDLE-NOT-TURNING",
        r"spindle not turning (?:clockwise )?in g\d{2}(?:\.1)?|在\s?g\d{2}(?:\.1)?\s?中主轴(?:未转动|不转|不顺转)",
        "",
        "Spindle not turning in G33",
        "在 G33 中主轴未转动",
    ),
    (
        "CUTTER-COMP-GOUGING",
        "cannot be reached by the tool without gouging|compensated tool can'?t fit in without gouging"
        "|cutter compensation entry (?:move|arc) is not greater than the tool radius"
        "|刀具补偿(?:进刀移动的长度|入口半径)不大于刀具半径|会做成刨削槽",
        "",
        "Straight feed in concave corner cannot be reached by the tool without gouging",
        "刀具补偿进刀移动的长度不大于刀具半径",
    ),
    (
        "WATCHDOG-HAS-BIT",
        "watchdog has bit",
        "看门狗(?:已经?)?(?:咬|触发)了?",
        "hm2/hm2_7i76e.0: Watchdog has bit! (set the .has-bit pin to False to resume)",
        "Mesa 板卡提示 Watchdog has bit",
    ),
    (
        "HM2-READ-ERROR",
        r"hm2\S{0,30}\s?error finishing read|error finishing read! iter",
        "error finishing read",
        "hm2/hm2_7i96.0: error finishing read! iter=1234",
        "Mesa 以太网板提示 error finishing read! iter=5",
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
