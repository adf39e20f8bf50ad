"""What the grammar of fault codes finds in a technician's sentences, what it leaves alone, and how it spells codes."""

import pytest

from retrieval.codes import LINUXCNC_MESSAGES, canonical, find_codes, fold, number_of, spellings, vendors_in

# Text, then the first reading of each mention: vendor/family/code, "-" for what is open, "*" for a bare number.
SPELLED = """
SV0401 | fanuc/30i/SV0401
SV 401 | fanuc/30i/SV0401
sv-401 | fanuc/30i/SV0401
SV.401 | fanuc/30i/SV0401
SV#401 | fanuc/30i/SV0401
sv401 | fanuc/30i/SV0401
SV—0401 | fanuc/30i/SV0401
sv0401alarm | fanuc/30i/SV0401
SV0401X轴 | fanuc/30i/SV0401
SV报警401 | fanuc/30i/SV0401
ＳＶ０４０１ | fanuc/30i/SV0401
SV０４０１ | fanuc/30i/SV0401
SVO4O1 | fanuc/30i/SV0401
SV04OI | fanuc/30i/SV0401
SV O401 | fanuc/30i/SV0401
fanuc sv-o4o1 after power on | fanuc/30i/SV0401
0T0500 软超程 | fanuc/30i/OT0500
机床SV0401报警了 | fanuc/30i/SV0401
出现SV0401和SV0436 | fanuc/30i/SV0401; fanuc/30i/SV0436
SV0401/SV0404 | fanuc/30i/SV0401; fanuc/30i/SV0404
SV401、436 | fanuc/30i/SV0401; fanuc/30i/SV0436
SV401/SP9031 | fanuc/30i/SV0401; fanuc/30i/SP9031
SP1241/1242 | fanuc/30i/SP1241; fanuc/30i/SP1242
SV0401~SV0405 | fanuc/30i/SV0401; fanuc/30i/SV0405
alarm SV0436 SV0438 SV0449 | fanuc/30i/SV0436; fanuc/30i/SV0438; fanuc/30i/SV0449
SV0401，1，2轴都报 | fanuc/30i/SV0401
SV9987 fanuc | fanuc/30i/SV9987
sp 1241 d/a converter error | fanuc/30i/SP1241
PS 10报警 | fanuc/30i/PS0010
P/S 报警 101 | fanuc/30i/PS0101
报警 PS 011 | fanuc/30i/PS0011
DS300 零点丢了 | fanuc/30i/DS0300
EX 1001 报警 气压低 | fanuc/30i/EX1001
FANUC 0i-C SV401 | fanuc/16i/401
FANUC PC104 | fanuc/30i/PC0104
发那科 IO32 报警 | fanuc/30i/IO0032
PC0104 | fanuc/30i/PC0104
SP02报警 | fanuc/30i/SP0002
SP741 | fanuc/30i/SP0741
SW100报警 | fanuc/30i/SW0100
IO1001 | fanuc/30i/IO1001
BG85报警 | fanuc/30i/BG0085
SR85报警 | fanuc/30i/SR0085
#3000=1 (TOOL LIFE) 报 MC3001 | fanuc/30i/MC3001
程序O1234跑到G01 X50 F12500报警PS0010 | fanuc/30i/PS0010
parameter 1815 and 1850, then SV0407 alarm | fanuc/30i/SV0407
报警记录 2026/11/30 08:12 SV0401; 2026/11/30 08:15 SV0436 | fanuc/30i/SV0401; fanuc/30i/SV0436
开机后FANUC 0i-MF系统出现SV0401伺服准备好信号断开，怎么办？ | fanuc/30i/SV0401
F30002 | siemens/sinamics/F30002
f3OOO2 | siemens/sinamics/F30002
A7012 | siemens/sinamics/A07012
F 07011 | siemens/sinamics/F07011
fault F07900 | siemens/sinamics/F07900
报警 F2000 | siemens/sinamics/F02000
西门子 F7011 和 A7012 | siemens/sinamics/F07011; siemens/sinamics/A07012
S120报F31130（0x2）轴回不了零 | siemens/sinamics/F31130
parameter p2175 = 50, fault F07900 (N, A) | siemens/sinamics/F07900
ALARM:1 | grbl/-/ALARM:1
error:9 error:22 | grbl/-/error:9; grbl/-/error:22
grbl alarm 1 | grbl/-/ALARM:1
grbl Error 9 when I send G0 X10 | grbl/-/error:9
grbl 错误代码 33 | grbl/-/error:33
雕刻机 grblhal 报警 11 | grbl/grblhal/ALARM:11
grblHAL ALARM:1 | grbl/grblhal/ALARM:1
S01 0018 | mitsubishi/m700/S01 0018
Z70 0101 | mitsubishi/m700/Z70 0101
M01 0006 X轴硬限位 | mitsubishi/m700/M01 0006
三菱M70 报 S01 0018 还有 Z70 0101 | mitsubishi/m700/S01 0018; mitsubishi/m700/Z70 0101
三菱 M80 报警 Y03 MCP 未连接 | mitsubishi/m700/Y03
三菱 程序错误 P33 | mitsubishi/m700/P33
P234报警 | mitsubishi/m700/P234
海德汉 TNC 620 报 230-0019 和 错误号 231-8B00 | heidenhain/tnc/230-0019; heidenhain/tnc/231-8B00
joint 2 following error | linuxcnc/linuxcnc/JOINT-FOLLOWING-ERROR
关节 2 跟随错误 | linuxcnc/linuxcnc/JOINT-FOLLOWING-ERROR
linuxcnc 一直跟随误差 | linuxcnc/linuxcnc/JOINT-FOLLOWING-ERROR
Unexpected realtime delay on task 0 | linuxcnc/linuxcnc/UNEXPECTED-REALTIME-DELAY
joint 1 on limit switch error | linuxcnc/linuxcnc/JOINT-ON-LIMIT-SWITCH
关节1 限位开关错误 | linuxcnc/linuxcnc/JOINT-ON-LIMIT-SWITCH
joint 0 amplifier fault | linuxcnc/linuxcnc/AMPLIFIER-FAULT
move on line 5 would exceed joint 0's positive limit | linuxcnc/linuxcnc/SOFT-LIMIT-EXCEEDED
Exceeded NEGATIVE soft limit (-5.0) on joint 1 | linuxcnc/linuxcnc/SOFT-LIMIT-EXCEEDED
j0: end of home search without finding home switch | linuxcnc/linuxcnc/HOMING-SWITCH-FAULT
Home switch inactive before start of latch move | linuxcnc/linuxcnc/HOMING-SWITCH-FAULT
"""

BARE = """
Alarm 401 | -/-/401*
alarm no. 401 | -/-/401*
ALM401 | -/-/401*
AL-401 | -/-/401*
401alarm | -/-/401*
error 401 | -/-/401*
fault 401 | -/-/401*
code 401 | -/-/401*
is 103 an alarm? | -/-/103*
Alarm:103 | -/-/103*
alarm 1 | -/-/1*
401号报警 | -/-/401*
报警401 | -/-/401*
报警号：401 | -/-/401*
【报警】401 | -/-/401*
报警："401 伺服" | -/-/401*
401报警 | -/-/401*
第401号 | -/-/401*
报 401 | -/-/401*
又报401了 | -/-/401*
跳401 | -/-/401*
显示401报警 | -/-/401*
伺服报警401 | -/-/401*
主轴AL-31 | -/-/31*
100号P/S报警 | -/-/100*
屏幕上出现一个1001，报警灯红了 | -/-/1001*
25O5O报警 | -/-/25050*
报警25 050 轴1 | -/-/25050*
alarms 103 and 105 | -/-/103*; -/-/105*
103、105号报警 | -/-/103*; -/-/105*
4500-4509号报警 | -/-/4500*; -/-/4509*
报警 700013 700014 | -/-/700013*; -/-/700014*
机床有401,411,436三个报警 | -/-/401*; -/-/411*; -/-/436*
2、401号报警 | -/-/401*
报警230002 | siemens/sinamics/F30002*
alarm 201611 | siemens/sinamics/F01611*
op 20 alarm 401 | -/-/401*
2 alarms: 401, 403 | -/-/401*; -/-/403*
报警记录：401 2次，又来 | -/-/401*
今天换了3把刀，加工了200件，机床报警2次，每次都是103号报警 | -/-/103*
请问1320参数设多少？参数1320、1321改了以后报500号报警 | -/-/500*
电压380V，频率50Hz，温度35℃，压力0.6MPa，报警120 | -/-/120*
SV0401 V-READY OFF | fanuc/30i/SV0401
SP740 A over | fanuc/30i/SP0740
motor 400 W, 24 V supply, F30005 A phase | siemens/sinamics/F30005
Machine ran 8000 rpm at F2000, then alarm 401 popped up at 14:05 | -/-/401*
刀具T0101换刀时报1001号报警，电话13800138000找王工 | -/-/1001*
通道1 程序段 N120 报警 14011 程序不存在 | -/-/14011*
fanuc 401 | fanuc/-/401*
fanuc401 | fanuc/-/401*
发那科401怎么办 | fanuc/-/401*
fanuc 老是401 | fanuc/-/401*
FANUC 0i-MF 报警401 | fanuc/30i/401*
Oi-MF 报警 401 | fanuc/30i/401*
My Fanuc 18i shows 401 VRDY OFF | fanuc/16i/401*
Haas 103 | haas/-/103*
Haas 103/104 | haas/-/103*; haas/-/104*
哈斯VF-2 103 | haas/-/103*
哈斯UMC-750 A轴 993 | haas/-/993*
what's code 103 mean on haas | haas/-/103*
Haas alarm 9.917, control version 100.20.000.1110 | haas/-/9.917*
z轴 2.993 报警 haas | haas/-/2.993*
Haas VF-3SS (2015) alarm 161 | haas/-/161*
西门子 230002 | siemens/sinamics/F30002*
840D sl报警230002 | siemens/sinamics/F30002*
S120 报警 7011 | siemens/sinamics/F07011*
828D 开机报 2001，PLC没起来 | siemens/sinumerik/2001*
西门子840D sl，X轴25050轮廓监控，换了电机6SN1123-1AA00还是报 | siemens/sinumerik/25050*
2019年买的西门子机床，报3000急停 | siemens/-/3000*
西门子报警 027000 | siemens/-/27000*
海德汉 iTNC530 报错 1020 | heidenhain/tnc/1020*
grbl 报错9 | grbl/-/ALARM:9*
FANUC的401和Haas的103 | fanuc/-/401*; haas/-/103*
alarm 401 on the FANUC and alarm 103 on the Haas | fanuc/-/401*; haas/-/103*
发那科报警401。另外西门子那台，报警25050 | fanuc/-/401*; siemens/-/25050*
"""

NOTHING = """
SOLO; SPOIL; oil; POOL; spool1; a pool of oil 1
SP 8000 rpm; SP8000rpm; IO 32 points; PS 5; EX 1000; MC 500 加工中心报警; 出现401; 8000 rpm; 0.02 mm; 100%; 35℃
主轴转速 8000; 转速8000; 速度 8000 报警; 进给 F2000 主轴 S8000 没问题; 报警3次; 报警 2 小时; 报警 5 分钟; 100 alarms in 2 days
parameter 1320; 参数1320; 参数1320、1321; No.1320参数; 参数P1320; 1320号参数; r0945 p1460
M03; M30; G54; G54.1P2; T0101; S8000; F200; F0.15; F2000; N0010; O1234; X100.5; H01 D01; M30报警; 程序O1234报警
加工到N0010 G54 G0 X100.5 Z-5 F30000时停机; F2000 S3000 M3; code G54; G code 54 error; M代码30; cycle 800 alarm
2026-11-30; 11/30; 2026年11月30日; 14:30; 13800138000; 021-5555 6666; +86 138 0013 8000; 400-820-9595 报修; 192.168.1.10
A06B-6114-H105; 6SN1123-1AA00; A02B-0323; 0i-MF; 31i-B5; VF-2; ST-10; 840D; S120; 828D; DMU 50; DMU 50报警; M70; DS-30
¥3000; 3000元; X8.4; G8.5; R0401.2; DB19.DBX0.0; 订单 12345; 第12把刀; 5号轴报警; 1号机报警; 2号轴不动; 第401号程序
AL 6061 工件; 45号钢; 6061铝; HRC60; 有5个报警灯亮; 错误 230-02AC; X轴跟随误差过大报警; grbl 1.1; 故障 F0001; 报价401
PC104; PC104 board; PC104主板报警; 报警PC104; Haas PC104; IO32; IO32模块报警; IO16 fault; SP2; Windows XP SP2 error; SP3报警
EX600 阀岛报警; EX600; MC500; MC4 接头故障; NB7 触摸屏报警; SW1 拨码开关; 报警灯旁边的SW2; SR25滑块; IE3电机过热报警; PS2键盘故障
DS402; DS301 CANopen error; BG85; pc104alarm; PC-104主板报警; PC/104 board error; ＰＣ１０４报警; IO128报警
"""


def _rows(table: str) -> list[tuple[str, str]]:
    rows = [line.rsplit(" | ", 1) for line in table.strip().splitlines()]
    return [(text, expected) for text, expected in rows]


def _seen(text: str, vendor: str | None = None, family: str | None = None) -> str:
    shown = []
    for mention in find_codes(text, vendor, family):
        assert text[mention.start : mention.end] == mention.raw
        first = mention.readings[0]
        star = "*" if mention.bare else ""
        shown.append(f"{first.vendor or '-'}/{first.family or '-'}/{first.code}{star}")
    return "; ".join(shown)


@pytest.mark.parametrize(("text", "expected"), [pytest.param(*row, id=row[0]) for row in _rows(SPELLED) + _rows(BARE)])
def test_finds(text: str, expected: str) -> None:
    assert _seen(text) == expected


@pytest.mark.parametrize("text", [part for line in NOTHING.strip().splitlines() for part in line.split("; ")])
def test_leaves_alone(text: str) -> None:
    assert _seen(text) == ""


@pytest.mark.parametrize(
    ("text", "vendor", "family", "expected"),
    [
        ("401", "fanuc", None, "fanuc/-/401*"),
        ("401", "fanuc", "16i", "fanuc/16i/401*"),
        ("401", None, None, ""),
        ("报警401", "fanuc", "30i", "fanuc/30i/401*"),
        ("103 on my lathe", "haas", None, "haas/-/103*"),
        ("3000", "siemens", None, "siemens/-/3000*"),
        ("25050 轴1", "siemens", None, "siemens/-/25050*"),
        ("我家的机床25050又出来了", "siemens", "sinumerik", "siemens/sinumerik/25050*"),
        ("F2000", "siemens", None, "siemens/sinamics/F02000"),
        ("F2000", "fanuc", None, ""),
        ("S01 18", "mitsubishi", None, "mitsubishi/m700/S01 0018"),
        ("Y03", "mitsubishi", None, "mitsubishi/m700/Y03"),
        ("快移到Z50", "mitsubishi", None, ""),
        ("错误230-02AC", "heidenhain", None, "heidenhain/tnc/230-02AC"),
        ("alarm 1 and 2", "grbl", None, "grbl/-/ALARM:1; grbl/-/ALARM:2"),
        ("ALARM:9", "haas", None, "haas/-/9*"),
        ("ps10 怎么回事", "fanuc", None, "fanuc/30i/PS0010"),
        ("SV401", "fanuc", "16i", "fanuc/16i/401"),
        ("PC104", "fanuc", None, "fanuc/30i/PC0104"),
        ("SP2 报警", "fanuc", None, "fanuc/30i/SP0002"),
        ("PC104 报警", "siemens", None, ""),
        ("IO401 报警", "mitsubishi", None, ""),
        ("Haas PC104 alarm", "fanuc", None, ""),
        ("跟随误差", "linuxcnc", None, "linuxcnc/linuxcnc/JOINT-FOLLOWING-ERROR"),
        ("joint 2 following error", "fanuc", None, ""),
        ("alarm 103", "mazak", None, "mazak/-/103*"),
        ("哈斯那台报103", "fanuc", "30i", "haas/-/103*"),
        ("M70 程序 报警401", "fanuc", "30i", "fanuc/30i/401*"),
        ("发那科 报警401", "fanuc", "30i", "fanuc/30i/401*"),
    ],
)
def test_given_vendor(text: str, vendor: str | None, family: str | None, expected: str) -> None:
    assert _seen(text, vendor, family) == expected


def test_display_number_reads_fault_then_alarm() -> None:
    for text, codes in (("报警230002", ["F30002", "A30002", "230002"]), ("西门子 230002", ["F30002", "A30002"])):
        (mention,) = find_codes(text)
        assert [reading.code for reading in mention.readings] == codes
    assert [r.code for m in find_codes("报警230002", "haas") for r in m.readings] == ["230002"]


def test_raw_is_the_original_text() -> None:
    (mention,) = find_codes("㎜表ＳＶ　０４０１报警")
    assert (mention.raw, mention.start) == ("ＳＶ　０４０１", 2)


@pytest.mark.parametrize(
    ("code", "vendor", "family", "expected"),
    [
        ("sv-401", "fanuc", None, "SV0401"),
        ("ps 10", "fanuc", None, "PS0010"),
        ("OT500", "fanuc", "30i", "OT0500"),
        ("SP9031", "fanuc", None, "SP9031"),
        ("P/S 101", "fanuc", None, "PS0101"),
        ("SV0401", "fanuc", "16i", "401"),
        ("报警 401", "fanuc", None, "401"),
        ("SVO4O1", "fanuc", None, "SV0401"),
        ("ＳＶ４０１", "fanuc", None, "SV0401"),
        ("25 050", "siemens", "sinumerik", "25050"),
        ("027000", "siemens", None, "27000"),
        ("f 7011", "siemens", "sinamics", "F07011"),
        ("F30002", "siemens", None, "F30002"),
        ("230002", "siemens", None, "F30002"),
        ("230002", "siemens", "sinumerik", "230002"),
        ("30002", "siemens", "sinamics", "F30002"),
        ("A07012", "siemens", None, "A07012"),
        ("ALARM 103", "haas", None, "103"),
        ("9.917", "haas", "ngc", "9.917"),
        ("alarm 1", "grbl", None, "ALARM:1"),
        ("error9", "grbl", "grbl", "error:9"),
        ("Error: 9", "grbl", None, "error:9"),
        ("S01 0018", "mitsubishi", None, "S01 0018"),
        ("s010018", "mitsubishi", "m700", "S01 0018"),
        ("M01 0006", "mitsubishi", None, "M01 0006"),
        ("Y03", "mitsubishi", None, "Y03"),
        ("Z70-0101", "mitsubishi", None, "Z70 0101"),
        ("P234", "mitsubishi", None, "P234"),
        ("230-02ac", "heidenhain", None, "230-02AC"),
        ("错误 1020", "heidenhain", None, "1020"),
        ("Joint 2 following error", "linuxcnc", None, "JOINT-FOLLOWING-ERROR"),
        ("关节 0 放大器故障", "linuxcnc", "linuxcnc", "AMPLIFIER-FAULT"),
        ("EXCEED-POSITIVE-LIMIT", "linuxcnc", None, "EXCEED-POSITIVE-LIMIT"),
    ],
)
def test_canonical(code: str, vendor: str, family: str | None, expected: str) -> None:
    assert canonical(code, vendor, family) == expected


@pytest.mark.parametrize(
    ("code", "vendor", "family", "says"),
    [
        ("SV0401", "fanuc", "31i", "30i, 16i"),
        ("401", "fanuc", "30i", "SV0401"),
        ("QQ0401", "fanuc", None, "PS BG SR SV"),
        ("F7", "siemens", None, "F07011"),
        ("12", "siemens", None, "4 to 6"),
        ("F07011", "siemens", "sinumerik", "25050"),
        ("SV0401", "haas", None, "103"),
        ("1", "grbl", None, "ALARM:n"),
        ("18", "mitsubishi", "m700", "S01 0018"),
        ("x", "heidenhain", None, "230-02AC"),
        ("boom", "linuxcnc", None, "AMPLIFIER"),
        ("", "fanuc", None, "SV0401"),
        ("x", "generic", None, "fanuc"),
    ],
)
def test_canonical_says_what_is_valid(code: str, vendor: str, family: str | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        canonical(code, vendor, family)


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("SV0401", "401"),
        ("ALARM:1", "1"),
        ("F07011", "7011"),
        ("S01 0018", "18"),
        ("S01 003B", "3B"),
        ("P234", "234"),
        ("9.917", "9.917"),
        ("000", "0"),
        ("25050", "25050"),
        ("230-02AC", "230-02AC"),
        ("AMPLIFIER-FAULT", "AMPLIFIER-FAULT"),
    ],
)
def test_number_of(code: str, number: str) -> None:
    assert number_of(code) == number


def test_spellings_begin_with_the_canonical_form() -> None:
    assert spellings("sv401", "fanuc")[0] == "SV0401"
    assert {"SV401", "sv-0401".upper(), "SV 401", "SV#401", "sv401"} <= set(spellings("SV0401", "fanuc"))
    assert {"报警25050", "25050号报警", "025050"} <= set(spellings("25050", "siemens", "sinumerik"))
    assert {"F7011", "f07011", "207011"} <= set(spellings("F07011", "siemens"))
    assert {"alarm 1", "报警1"} <= set(spellings("ALARM:1", "grbl"))


def test_linuxcnc_table_matches_its_own_examples() -> None:
    for slug, _, _, english, chinese in LINUXCNC_MESSAGES:
        for example in (english, chinese, slug):
            assert slug in {r.code for m in find_codes(example) for r in m.readings}, example


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FANUC 0i-MF", [("fanuc", "30i")]),
        ("840D sl", [("siemens", "sinumerik")]),
        ("哈斯", [("haas", None)]),
        ("grblHAL", [("grbl", "grblhal")]),
        ("grbl", [("grbl", None)]),
        ("Grbl 1.1h", [("grbl", "grbl")]),
        ("三菱M80报警", [("mitsubishi", "m700")]),
        ("用FANUC0i-TD的车床", [("fanuc", "30i")]),
        ("fanucs and unhaastened", []),
        ("S120 M03", []),
        ("M3 S120", []),
        ("西门子840Dsl 和 FANUC 16i 还有0i-MD", [("siemens", "sinumerik"), ("fanuc", "16i"), ("fanuc", "30i")]),
        ("Siemens, later a FANUC 31i-B5", [("siemens", None), ("fanuc", "30i")]),
        ("nothing", []),
    ],
)
def test_vendors_in(text: str, expected: list[tuple[str, str | None]]) -> None:
    assert list(vendors_in(text)) == expected


def test_fold_maps_every_character_back() -> None:
    text = "Ａ㎜—①ﬁ\u200b：x"
    folded, index = fold(text)
    assert folded == "Amm-①ﬁ:x"
    assert index == [0, 1, 1, 2, 3, 4, 6, 7]


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("spindle 0 amplifier fault", "SPINDLE-AMPLIFIER-FAULT"),
        ("主轴 1 放大器故障", "SPINDLE-AMPLIFIER-FAULT"),
        ("正向软限位 (5.00000) 在关节 0 上已超程", "EXCEED-POSITIVE-LIMIT"),
        ("负向软限位 (-12.50000) 在关节 1 上已超程", "EXCEED-NEGATIVE-LIMIT"),
        ("j0 end of move in home state 5", "HOMING-MOVE-ENDED"),
        ("j2 在回零状态 11 中结束移动", "HOMING-MOVE-ENDED"),
        ("Can't jog joint 0 further past max hard limit", "JOG-PAST-HARD-LIMIT"),
        ("不能点动关节 1 超出负向硬极限。", "JOG-PAST-HARD-LIMIT"),
        ("Can't jog joint 0 further past max soft limit", "SOFT-LIMIT-EXCEEDED"),
        ("can't run a program when not homed", "NOT-HOMED"),
        ("all joints must be homed before going into coordinated mode", "TELEOP-NEEDS-HOMING"),
        ("must be in joint mode or disabled to unhome", "HOME-NEEDS-JOINT-MODE"),
        ("在机床解除紧急停止并重新启动之前，无法执行命令 (EMC_JOG_CONT)", "MACHINE-NOT-ON"),
        ("Cannot probe with zero feed rate", "ZERO-FEED-RATE"),
        ("Unknown m code used: M150", "UNKNOWN-CODE-USED"),
        ("Spindle not turning in g86", "SPINDLE-NOT-TURNING"),
        ("Length of cutter compensation entry move is not greater than the tool radius", "CUTTER-COMP-GOUGING"),
        ("hm2/hm2_7i96.0: error finishing read! iter=77", "HM2-READ-ERROR"),
    ],
)
def test_linuxcnc_messages_as_they_are_shown(text: str, slug: str) -> None:
    (mention,) = find_codes(f"machine stopped with {text} today")
    assert slug in {reading.code for reading in mention.readings}


@pytest.mark.parametrize("text", ["发那科 主轴放大器故障", "主轴放大器故障", "PLC 看门狗触发", "西门子 未知的 G 代码"])
def test_common_words_are_no_linuxcnc_message(text: str) -> None:
    assert not [m for m in find_codes(text) if any(r.vendor == "linuxcnc" for r in m.readings)]


def test_linuxcnc_spindle_and_joint_faults_stay_apart() -> None:
    for text, slug in (("spindle amplifier fault", "SPINDLE-AMPLIFIER-FAULT"), ("amplifier fault", "AMPLIFIER-FAULT")):
        assert [r.code for m in find_codes(text, "linuxcnc") for r in m.readings] == [slug]
