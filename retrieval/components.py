"""Parts of a machine tool by name, in both languages: what a question is about, and what an entry speaks of.

A question that names a part is not answered from an entry that never mentions it, however alike the words around it
are: "hydraulic unit is noisy" must not be answered with spindle noise.
"""

from __future__ import annotations

import re
from functools import lru_cache

from retrieval.codes import fold

# concept → pattern; longer names first where one contains another
_TABLE: dict[str, str] = {
    "spindle": r"\bspindles?\b|主轴|电主轴",
    "servo_axis": r"\b(?:servos?|axis|axes|ball\s?screws?|lead\s?screws?|guideways?|slides?|gantry|joints?|tables?)\b|伺服|丝杠|导轨|工作台|[XYZABCUVW]\s?轴|进给轴|各轴|坐标",
    "drive": r"\b(?:drives?|amplifiers?|amps?|inverters?|vfd|power\s?modules?|heat\s?sinks?|cabinets?|enclosures?)\b|驱动|放大器|变频器|电柜|电箱|散热",
    "encoder": r"\b(?:encoders?|scales?|resolvers?|feedback|dro|position\s+(?:jumps|readout|display))\b|编码器|光栅尺|磁栅|反馈|坐标值",
    "estop": r"\be-?\s?stops?\b|emergency|mushroom|\bemg\b|急停|蘑菇头|拍停",
    "limit": r"\b(?:over-?\s?travel\w*|limits?|end\s?stops?|stroke|past\s+the\s+end|too\s+far)\b|限位|超程|行程|极限|撞块|挡块",
    "door": r"\b(?:doors?|guards?|gates?|interlocks?|hoods?)\b|(?<!西)门(?!子|卫|诊)|防护罩|护罩|罩子|联锁|互锁",
    "lockout": r"\b(?:lock-?\s?out|lock(?:ed|ing)?|loto|tag-?\s?out|padlocks?|isolat\w+|de-?energi[sz]\w+|main\s+(?:switch|breaker)|disconnect|capacitors?)\b|上锁|挂牌|挂锁|锁|断电|总闸|总开关|合闸|送电|电容|能量隔离",
    "parameter": r"\b(?:parameters?|backups?|back\s?up|programs?|offsets?|macros?|ladder|\$\d+|nc\s+data|sram|memory\s+card|usb|restore\w*)\b|参数|备份|程序|刀补|宏|梯图|梯形图|螺补|存储卡|U盘|数据",
    "battery": r"\bbatter(?:y|ies)\b|\bbat\b|电池|电瓶",
    "home": r"\b(?:homing|home\s+(?:position|switch|pos|the|all|axis|axes)|zero\s+return|reference\s+(?:point|return|mark|position))\b|回零|原点|参考点|零点",
    "coolant": r"\b(?:coolant|flood|mist|cutting\s+fluid|through-?\s?tool)\b|冷却液|切削液|乳化液|冷却水|中心出水|冷却泵|水泵",
    "hydraulic": r"\bhydraulics?\b|\boil\s+pressure\b|液压|油压|油泵站",
    "pneumatic": r"\b(?:pneumatic\w*|air\s+(?:pressure|leak\w*|supply|gun|line)|compress(?:or|ed)\w*)\b|气压|气动|气缸|气源|空压机|气枪|漏气",
    "lubrication": r"\b(?:lub(?:e|rication)\w*|way\s?oil|grease\w*)\b|润滑|导轨油|打油|黄油",
    "tool_changer": r"\b(?:tool\s?-?\s?chang\w+|atc|magazine|carousel|umbrella|tool\s+arm|gripper|draw\s?bar|tool\s+(?:release|clamp)\w*)\b|刀库|换刀|刀臂|机械手|松刀|拉刀|夹刀|刀盘",
    "turret": r"\bturrets?\b|刀塔|刀架|刀台",
    "chuck": r"\b(?:chucks?|collets?|jaws?|vises?|vices?|fixtures?|clamp\s+pressure)\b|卡盘|夹头|卡爪|虎钳|夹具",
    "tailstock": r"\b(?:tailstocks?|quills?|steady\s+rest)\b|尾座|尾架|顶尖|中心架",
    "conveyor": r"\b(?:conveyors?|augers?|chips?\s+(?:bin|tray))\b|排屑|拉屑|铁屑车",
    "probe": r"\b(?:prob(?:e|es|ing)|tool\s+setters?|renishaw|touch\s+probe)\b|探头|测头|对刀仪|对刀|雷尼绍",
    "pallet": r"\bpallets?\b|托盘|交换台|交换工作台",
    "gearbox": r"\b(?:gear\s?box\w*|gears?|gear\s+range)\b|齿轮|变速箱|换挡|减速机",
    "rotary": r"\b(?:rotary|4th\s+axis|fourth\s+axis|5th\s+axis|trunnion)\b|转台|分度头|四轴|第四轴|五轴|摇篮",
    "screen": r"\b(?:screen|monitor|display\s+(?:is\s+)?(?:black|dead|blank|white)|touch\s?screen|keyboard|keypad|keys?)\b|黑屏|花屏|白屏|屏幕(?:不亮|黑|没)|触摸屏|键盘|按键",
    "network": r"\b(?:network|ethernet|ftp|dnc|rs-?232|wi-?fi|transfer)\b|网络|网口|传输|传程序|联网|串口|以太网",
    "finish": r"\b(?:surface\s+finish|finish|chatter\w*|burrs?|taper(?:ed|ing)?|roundness|out\s+of\s+round|dimension\w*|tolerance|size|backlash|insert|edge)\b|光洁度|粗糙度|振纹|震纹|毛刺|锥度|圆度|椭圆|尺寸|公差|间隙|刀片|崩刃",
    "window": r"\bwindows?\b|\bglass\b|观察窗|玻璃|视窗",
    "light": r"\b(?:work\s?lights?|work\s?lamps?|tower\s+light|beacon)\b|照明|工作灯|三色灯|灯管",
    "filter_fan": r"\b(?:fans?|filters?|air\s?con\w*|heat\s+exchang\w+)\b|风扇|过滤网|空调|热交换",
    "bar_feeder": r"\b(?:bar\s?feed\w*|robots?|loader|part\s+catcher)\b|送料|料机|机器人|桁架|接料",
    "household": r"\b(?:phones?|smartphones?|laptops?|e-?bikes?|bicycles?|bikes?|cars?|trucks?|garage|hair\s?dryers?|washing\s+machines?|dishwashers?|fridges?|smoke\s+(?:alarm|detector)s?|toys?|rc\s+car|houses?|drones?)\b|手机|笔记本电脑|电动(?:自行)?车|自行车|汽车|轿车|车库|吹风机|洗衣机|洗碗机|冰箱|烟雾报警器|玩具|遥控车|家里|孩子|股票|无人机",
    "wire_laser": r"\b(?:laser|plasma|edm|wire\s+cut\w*|3d\s+print\w*)\b|激光|等离子|电火花|线切割|慢走丝",
}
# What an entry must speak of if the question does, whatever else the two share: a subject of its own, not a circumstance.
SUBJECTS = frozenset(
    "hydraulic tool_changer turret tailstock conveyor probe pallet gearbox rotary network"
    " window light bar_feeder wire_laser household".split()
)
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _TABLE.items()}


@lru_cache(maxsize=2048)
def components_in(text: str) -> frozenset[str]:
    """Concepts of machine parts that the text names."""
    folded = re.sub(r"\s+", " ", fold(text)[0])  # the patterns allow optional spaces: a long run would cost minutes
    return frozenset(name for name, pattern in _PATTERNS.items() if pattern.search(folded))


def is_part(word: str) -> bool:
    """True if a text is the name of a machine part and nothing else."""
    return any(pattern.fullmatch(word) for pattern in _PATTERNS.values())


def off_part(asked_about: frozenset[str], spoken_of: frozenset[str]) -> bool:
    """True if a question must not be answered from an entry: they share no part, or a subject of the question's is missing."""
    return bool(asked_about) and (not asked_about & spoken_of or bool(asked_about & SUBJECTS - spoken_of))
