"""Invented alarms with the wording of real manuals: the truth that generated documents are scored against.

Nothing here is any maker's text. Parts, faults, causes and remedies are combined at random from a seed, in English or
Chinese, from three words to several lines long, with the numbers, units, hyphens and other codes that make real cells
hard to read.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from retrieval.records import Language

VendorStyle = Literal["fanuc", "sinumerik", "drive", "mitsubishi", "bare", "free"]
VENDOR_STYLES: tuple[VendorStyle, ...] = get_args(VendorStyle)
RANGE_SHARE = 0.06


@dataclass(frozen=True)
class TrueAlarm:
    """One alarm as a document should state it. `last` is the end of a range of codes, else empty."""

    code: str
    last: str = ""
    heading: str = ""
    causes: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    language: Language = "en"

    @property
    def code_text(self) -> str:
        """The code as a manual prints it: `4500-4509` for a range, `E-104～E-106` where the code holds a hyphen."""
        sign = "～" if "-" in self.code else "-"
        return f"{self.code}{sign}{self.last}" if self.last else self.code


@dataclass(frozen=True)
class _Words:
    parts: tuple[str, ...]
    faults: tuple[str, ...]
    asides: tuple[str, ...]
    causes: tuple[str, ...]
    cause_tails: tuple[str, ...]
    remedies: tuple[str, ...]
    remedy_tails: tuple[str, ...]


_EN = _Words(
    parts=(
        "spindle motor", "X-axis servo drive", "tool changer arm", "coolant pump", "linear scale", "DC link",
        "regenerative resistor", "hydraulic unit", "rotary table clamp", "absolute encoder battery", "way lube unit",
        "chip conveyor", "safety door switch", "pulse coder", "spindle orientation", "I/O unit no. 2", "brake circuit",
        "control cabinet fan", "turret", "tailstock", "axis 4 feedback", "probe receiver", "24 V supply",
        "pneumatic pressure switch", "hand wheel", "power module", "field bus coupler", "memory card",
    ),
    faults=(
        "overheat", "excess error at stop", "communication lost", "undervoltage", "not ready", "overcurrent",
        "position deviation too large", "time-out", "ground fault", "low pressure", "data error", "phase missing",
        "limit switch reached", "ID mismatch", "abnormal load", "reference position not established",
        "check-sum error", "did not reach its end position within 8 s", "signal lost (hardware)",
    ),
    asides=(
        "see also {code}", "axis %1", "n = {n}", "channel %1, block %2", "not {code}", "> {n} %", "group {n}",
        "after alarm {code}", "2nd spindle",
    ),
    causes=(
        "The {part} cable is damaged or loose",
        "Connector CX{n} of the {part} has a bad contact",
        "Load on the {part} above {n} % for more than {n} s",
        "The {part} is defective",
        "Ambient temperature above {n} °C",
        "Parameter {code} does not match the {part}",
        "Cooling fins of the {part} are clogged with dust and oil mist",
        "Input voltage below {n} V AC at terminals L1, L2, L3",
        "The coil of the {part} has less than {n} MΩ to ground",
        "The time set in parameter {code} for the {part} is too short",
        "Chips or coolant got into the {part}",
        "Wrong tool data: length, radius or weight not entered",
        "Noise on the signal line, e.g. shield not grounded on both ends",
        "Fuse F{n} blown",
        "Mechanical binding",
        "Backlash of more than 0.{n} mm between motor and ball screw",
    ),
    cause_tails=(
        ", in particular after a long stop", ", or its supply dropped to {n} V", " (seen mostly at low speed)",
        ", so that the feedback does not follow the command within {n} ms",
        ", which the drive reports together with alarm {code}; the alarm that came first in the history counts",
        ", because the machine was moved by hand while the power was off, or because the brake slipped by more than"
        " 0.{n} mm under the weight of the vertical axis",
    ),
    remedies=(
        "Replace the {part}",
        "Check the wiring of the {part} for breaks and short circuits",
        "Measure the insulation of the {part}: it must be above {n} MΩ",
        "Set parameter {code} to {n} and switch the power off and on",
        "Clean the filter and the fan of the {part}",
        "Tighten the terminal screws to {n} N·m",
        "Reduce the feed rate or the depth of cut",
        "Let the {part} cool down for {n} min, then press RESET",
        "Replace fuse F{n} by one of the same rating",
        "Return the axis to its reference position",
        "Turn the {part} by hand and feel for binding",
        "Refill to the upper mark with oil of ISO VG {n}",
        "Call the service department",
        "Compare the ID number on the {part} with the one in diagnosis {code}",
        "Check that the pressure is between 0.4 and 0.{n} MPa",
    ),
    remedy_tails=(
        " before the next start", "; if the alarm returns, replace the control board", " (power must be off)",
        ", then run the axis over its whole travel at a feed rate of {n} mm/min",
        ", and look whether alarm {code} is still listed in the history",
        ", and if that does not help exchange the cable with that of another axis: when the alarm moves to the other"
        " axis the cable is at fault, otherwise the amplifier",
    ),
)  # fmt: skip
_ZH = _Words(
    parts=(
        "主轴电机", "X轴伺服驱动器", "换刀机械手", "冷却泵", "光栅尺", "直流母线", "再生电阻", "液压站", "转台夹紧装置",
        "绝对编码器电池", "导轨润滑装置", "排屑器", "安全门开关", "脉冲编码器", "主轴定向", "2号I/O单元", "抱闸回路",
        "电柜风扇", "刀塔", "尾座", "第4轴反馈", "测头接收器", "24V电源", "气压开关", "手轮", "功率模块", "总线耦合器",
        "存储卡",
    ),
    faults=(
        "过热", "停止时误差过大", "通信中断", "欠电压", "未就绪", "过电流", "位置偏差过大", "超时", "接地故障",
        "压力低", "数据错误", "缺相", "到达限位", "识别号不一致", "负载异常", "参考点未建立", "校验和错误",
        "在8秒内未到位", "信号丢失（硬件）",
    ),
    asides=(
        "参见{code}", "轴%1", "n＝{n}", "通道%1，程序段%2", "不是{code}", "超过{n}%", "第{n}组", "在{code}号报警之后",
        "第2主轴",
    ),
    causes=(
        "{part}电缆损坏或松动",
        "{part}的插头CX{n}接触不良",
        "{part}负载超过{n}%，时间超过{n}秒",
        "{part}损坏",
        "环境温度高于{n}℃",
        "参数{code}与{part}不匹配",
        "{part}散热片被灰尘和油雾堵塞",
        "端子L1、L2、L3的输入电压低于AC{n}V",
        "{part}线圈对地绝缘低于{n}MΩ",
        "参数{code}中为{part}设定的时间过短",
        "铁屑或冷却液进入{part}",
        "刀具数据有误：未输入长度、半径或重量",
        "信号线受到干扰（例如屏蔽层未两端接地）",
        "保险丝F{n}熔断",
        "机械卡死",
        "电机与滚珠丝杠之间的间隙大于0.{n}mm",
    ),
    cause_tails=(
        "，特别是长时间停机以后", "，或其电源降到{n}V", "（多见于低速时）", "，反馈在{n}毫秒内跟不上指令",
        "，驱动器同时报{code}号报警；以履历中最先出现的报警为准",
        "，因为断电期间有人用手移动过机床，或者抱闸在垂直轴的重量作用下打滑超过0.{n}毫米，使得上电后的实际位置与断电前"
        "记录的位置不一致",
    ),
    remedies=(
        "更换{part}",
        "检查{part}的接线有无断线和短路",
        "测量{part}的绝缘，应高于{n}MΩ",
        "把参数{code}设为{n}，然后断电再上电",
        "清洁{part}的过滤网和风扇",
        "用{n}N·m的力矩拧紧端子螺钉",
        "降低进给速度或切削深度",
        "让{part}冷却{n}分钟，然后按复位键",
        "更换同规格的保险丝F{n}",
        "使该轴返回参考点",
        "用手转动{part}，检查有无卡滞",
        "加ISO VG{n}的油至上刻线",
        "与服务部门联系",
        "核对{part}上的识别号与诊断号{code}是否一致",
        "检查压力是否在0.4～0.{n}MPa之间",
    ),
    remedy_tails=(
        "，再重新启动", "；如报警仍出现，更换控制板", "（必须断电）", "，然后以{n}mm/min的进给速度走完全行程",
        "，并查看履历中是否还有{code}号报警",
        "，如果无效，与另一轴的电缆互换：报警转移到另一轴则为电缆故障，否则为放大器故障，需要更换放大器并重新设定其参数",
    ),
)  # fmt: skip


def _fanuc(rng: random.Random) -> tuple[str, int]:
    return rng.choice(("SV", "SP", "PS", "OT", "OH", "DS", "EX")) + "{:04d}", rng.randint(1, 2999)


def _mitsubishi(rng: random.Random) -> tuple[str, int]:
    return f"{rng.choice('SMPZY')}{rng.choice(('01', '02', '03', '51'))} {{:04d}}", rng.randint(1, 299)


def _free(rng: random.Random) -> tuple[str, int]:
    return rng.choice(("E-{:03d}", "AL.{:02d}", "ERR {:d}")), rng.randint(10, 99)


_CODES: dict[VendorStyle, Callable[[random.Random], tuple[str, int]]] = {
    "fanuc": _fanuc,
    "sinumerik": lambda rng: ("{:d}", rng.choice((rng.randint(1000, 29999), rng.randint(700000, 700999)))),
    "drive": lambda rng: (rng.choice("FA") + "{:05d}", rng.randint(1000, 39999)),
    "mitsubishi": _mitsubishi,
    "bare": lambda rng: ("{:04d}", rng.randint(1, 5999)),
    "free": _free,
}


def alarms(
    count: int, seed: int, vendor_style: VendorStyle = "fanuc", language: Language | None = None
) -> tuple[TrueAlarm, ...]:
    """Invented alarms, sorted by code as a manual has them; every code is there once, and no range covers another.

    Args:
        count: how many; the `free` style has about 200 codes, `mitsubishi` about 5,900.
        seed: the same seed gives the same alarms.
        vendor_style: how codes look: `SV0401` (fanuc), `25050` (sinumerik), `F30001` (drive), `S01 0018` (mitsubishi),
            `0042` (bare), `E-104`, `AL.16`, `ERR 21` (free).
        language: of all texts; None draws one per alarm.

    Raises:
        ValueError: the style has not that many codes.
    """
    rng = random.Random(seed)  # noqa: S311 - made-up text, no secrets
    taken: set[tuple[str, int]] = set()
    drawn: list[tuple[str, int, int]] = []
    for _ in range(50 * count + 50):
        if len(drawn) == count:
            break
        form, number = _CODES[vendor_style](rng)
        last = number + rng.randint(1, 9) if rng.random() < RANGE_SHARE else number
        numbers = {(form, n) for n in range(number, last + 1)}
        if not numbers & taken:
            taken |= numbers
            drawn.append((form, number, last))
    if len(drawn) < count:
        raise ValueError(f"{count} codes of style {vendor_style!r} asked for; only {len(drawn)} could be drawn")
    found = []
    languages: tuple[Language, ...] = (language,) if language else ("en", "zh")
    for form, number, last in sorted(drawn):
        spoken = rng.choice(languages)
        end = form.format(last) if last > number else ""
        found.append(_alarm(rng, form.format(number), end, spoken, vendor_style))
    return tuple(found)


def _alarm(rng: random.Random, code: str, last: str, language: Language, style: VendorStyle) -> TrueAlarm:
    words = _EN if language == "en" else _ZH

    def filled(text: str) -> str:
        form, number = _CODES[style](rng)
        other = form.format(number)
        text = text.replace("{part}", rng.choice(words.parts)).replace("{code}", other)
        while "{n}" in text:
            text = text.replace("{n}", str(rng.choice((2, 3, 5, 10, 12, 15, 20, 24, 45, 60, 75, 80))), 1)
        return text

    part = rng.choice(words.parts)
    fault = rng.choice(words.faults)
    heading = f"{part} {fault}" if language == "en" else part + fault
    if rng.random() < 0.3:
        aside = filled(rng.choice(words.asides))
        heading = f"{heading} ({aside})" if language == "en" else f"{heading}（{aside}）"
    if language == "en":
        # some makers print headings in capitals
        heading = heading.upper() if style in ("fanuc", "mitsubishi") else heading[0].upper() + heading[1:]

    def texts(heads: tuple[str, ...], tails: tuple[str, ...], stop: str) -> tuple[str, ...]:
        found = []
        for head in rng.sample(heads, rng.choice((1, 1, 1, 2, 2, 3, 4))):
            tail = rng.choice(tails) if rng.random() < 0.45 else ""
            found.append(filled(head + tail) + stop)
        return tuple(found)

    stop = rng.choice(("", "."[: language == "en"] or "。"))
    causes = texts(words.causes, words.cause_tails, stop)
    return TrueAlarm(code, last, heading, causes, texts(words.remedies, words.remedy_tails, stop), language)
