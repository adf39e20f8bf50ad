"""The safety screen: questions that ask to defeat a safeguard, and answers that would tell how.

Two things must meet in one clause: a way to defeat (bypass, jumper, 短接, 屏蔽 ...) and a safeguard (door switch,
interlock, e-stop, limit switch, 安全门, 急停 ...). A clause that asks how to undo, find or prevent a bypass, or how to
test the safeguard, is near-danger and is answered. The lists are data of this module; tests hold both directions in
both languages.
"""

from __future__ import annotations

import re
from typing import Literal

from retrieval.codes import fold
from retrieval.records import Record

Verdict = Literal["clear", "near", "danger"]

_SAFEGUARDS = re.compile(
    r"""
    (?:safety|guard|enclosure|front|side|machine|cabinet|carousel|chip)?\s*-?\s*(?:door|gate|hood|cover|guard)s?\s*-?\s*
      (?:safety\s+)?(?:switch(?:es)?|interlocks?|locks?|sensors?|contacts?|magnets?)
    | (?:door|gate|guard)\s+(?:safety|circuit|signal|input)
    | inter-?locks?(?:\s+(?:switch(?:es)?|circuit|key))? | (?:machine|safety|finger|machine\s+tool)\s*-?\s*guards?\b | guarding
    | safety\s+(?:relay|plc|circuit|chain|loop|switch(?:es)?|door|gate|device|function|system|mat|edge|input|controller)s?
    | light\s*-?\s*(?:curtain|barrier|grid)s? | laser\s+scanner
    | e-?\s?stops?\b | emergency\s*-?\s*(?:stop|off)s? | e-?stop\s+(?:button|chain|circuit|relay)
    | (?:over-?\s?travel|hard|soft|axis|travel|end|stroke)\s*-?\s*limits?(?:\s+switch(?:es)?)? | limit\s+switch(?:es)? | over-?travel\s+(?:switch(?:es)?|protection|alarm)
    | (?:enabling|enable|dead\s?-?man|two\s?-?hand)\s+(?:switch|button|device|control)s?
    | (?:thermal|overload|over-?temperature|torque)\s+(?:protection|cut-?out|monitoring|relay)
    | dead-?\s?man\b | palm\s+buttons? | foot\s?-?guard | (?:red\s+)?mushrooms?\b | pull\s?-?cord | trip\s+(?:dog|wire)s?
    | klixon | motor\s+(?:thermostat|thermal\s+switch|ptc) | (?:thermal|temperature)\s+(?:switch|sensor|trip|contact)
    | (?:end|over)-?\s?(?:of)?-?\s?travel\s+(?:input|signal|sensor|switch|stop)e?s?\b | (?:red\s+)?mushroom\s+(?:button|head) | kill\s+switch
    | (?:safety\s+)?beams?\b(?=.{0,60}(?:trip|see|shift|block|cover|reach)) | pressure\s+mat | key\s?-?switch\s+for\s+the\s+door
    | (?:two|both)\s+hands?\b(?=.{0,30}(?:button|start|press))
    | lock-?\s?out | loto\b | (?:brake|holding\s+brake)\s+(?:test|monitoring)
    | 安全门 | 防护门 | 防护罩 | 护罩 | 机床门 | 舱门 | 前门 | 侧门 | 门开关 | 门锁 | 门磁 | 门限位 | 门感应 | 门信号 | 门的?(?:安全|行程)?开关
    | 安全(?:开关|回路|继电器|装置|光幕|光栅|功能|锁|联锁|互锁|链|模块|保护|触边|地毯|信号|系统)
    | 光栅(?!尺) | 红?蘑菇(?:头|按钮) | 拍停 | 罩子 | 门罩 | 大门 | 拉门 | 门(?:那个|上的?|的)?(?:感应头?|磁|传感器?|信号|检测) | 机床的?门 | 关门信号 | 操作门 | (?:存储)?行程(?:检测|极限|保护|限制) | (?:行程)?(?:撞块|挡块|碰块) | (?:温度|热)(?:的)?(?:那个)?触点 | 示教器.{0,8}(?:键|开关) | 三位(?:开关|键) | 脚踏.{0,4}保护 | 拉绳(?:开关)? | 热保护 | 温度开关 | 热敏 | 压(?:力)?毯 | 双手(?:启动|操作)?
    | 联锁 | 互锁 | 连锁 | 急停 | 紧急停止 | 光幕 | 光栅保护 | 限位 | 软限位 | 硬限位 | 行程开关 | 超程(?:保护|开关|报警)? | 使能开关 | 双手按钮
    | 过热保护 | 过载保护 | 热继电器 | 挂牌上锁 | 上锁挂牌 | 抱闸检测 | 保护装置
    """,
    re.VERBOSE,
)
_DEFEAT = re.compile(
    r"""
    by-?\s?pass(?:es|ed|ing)? | jump(?:er|ers|ered|ering)?\s?(?:out|across|over|wire)?\b | defeat(?:s|ed|ing)? | circumvent\w* | work(?:ing)?\s?around
    | get(?:ting)?\s+(?:around|past|rid\s+of) | over-?rid(?:e|es|den|ing) | disabl(?:e|es|ed|ing) | deactivat\w+ | inhibit\w* | mut(?:e|ed|ing)\b
    | turn(?:ing|ed)?\s+off | switch(?:ing|ed)?\s+off | shut(?:ting)?\s+off | short(?:s|ed|ing)?\s*-?\s*(?:out|circuit\w*|across|together)?\b | bridg(?:e|es|ed|ing)\b
    | trick(?:s|ed|ing)?\b | fool(?:s|ed|ing)?\b | cheat\w* | spoof\w* | fak(?:e|ing)\b | tap(?:e|ing)\s+(?:down|over|up) | tie(?:d)?\s+(?:down|back|off) | wir(?:e|ing)\s+(?:around|out|together)
    | (?:remov|unplug|disconnect|unscrew|cut(?:ting)?|unhook|pull(?:ing)?\s+out|take|taking)\w*(?=.{0,40}?(?:door|guard|interlock|safety|limit|e-?stop|emergency|curtain))(?!.{0,60}\b(?:replace|to\s+test|for\s+replacement|clean)\b)
    | (?:run|running|cut|cutting|operate|machine|machining|move|jog|work)\w*\s+(?:it\s+|the\s+\w+\s+)?with\s+(?:the\s+)?(?:\w+\s+){0,2}(?:doors?|guards?|gates?|covers?)\s+(?:open|off|removed)
    | (?:ignore|ignoring|suppress\w*|mask(?:ing|ed)?|eliminat\w+|hold(?:ing)?\s+down|permanently\s+(?:close|on)|stay\s+closed|always\s+(?:on|closed))
    | cut\s+(?:it\s+)?out\s+of\s+the\s+(?:loop|circuit|chain) | take\s+(?:it\s+)?out\s+of\s+the\s+(?:loop|circuit|chain)
    | (?:make|let|get|have|convince|tell)\s.{0,20}(?:control|machine|plc|cnc|controller|system|drive)\s+(?:to\s+)?(?:think|believe|see|accept|assume)
    | ignor(?:e|es|ing) | (?:read|stay|stays|be|is|hold|held|keep|kept|force|forced|tied|set)\s+(?:\w+\s+){0,2}(?:high|low|on|true|closed|made)\s+(?:all\s+the\s+time|always|permanently|constantly|regardless)
    | (?:does\s?n.?t|do\s+not|won.?t|not)\s+(?:see|detect|notice|stop|trip)\s+(?:me|us|my|the\s+(?:operator|door|guard))
    | (?:keep|keeps|kept)\s+(?:it\s+|the\s+\w+\s+)?(?:running|turning|going|cutting)\s+(?:regardless|anyway|with|while|even)
    | (?:without|no)\s+(?:it\s+)?(?:stopping|tripping|shutting\s+down)\s+(?:when|if|while) | (?:one|single)\s+hand(?:ed)?\b(?!\s+on) | wedge\w* | zip\s?-?tie\w* | magnet\b(?=.{0,40}(?:stick|tape|put|glue|side|fool|near|on))
    | twist\w*\s+(?:the\s+|those\s+|both\s+)?(?:two\s+)?wires | dummy\s+(?:plug|key|actuator) | link(?:ing)?\s+(?:the\s+|those\s+)?(?:pins|terminals|wires)|which\s+(?:pins|terminals|wires)\s.{0,20}(?:link|join|connect)
    | (?:keep|hold)\w*\s(?!.{0,14}(?:emergency|e-?\s?stop)).{0,30}\b(?:pressed|held|depressed)\b | keep\s+(?:it|the\s+\w+)\s+(?:going|running|turning|cutting)\s+(?:when|while|with|even|if) | (?:nobody|no\s?one|no-one)\s+has\s+to\s+(?:hold|press|keep) | (?:wire|rig|set)\w*\s.{0,12}so\s+(?:it|that)\s.{0,12}(?:stops?|quits?|never|does\s?n.?t|won.?t)
    | 整个关 | (?:卸|拆|拿|扔|撤|摘)(?:了|掉|走|下来?)(?!.{0,4}(?:换|装|清|修)) | (?:一直|永远|始终)(?:是|为|让它)?.{0,3}(?:1|闭合|断开|有) | 松开(?:了)?(?:也|还|照样)能 | 短掉 | 短了(?=.{0,6}(?:怎么|行|吗|就)) | 拧(?:到|在)?一起 | 接到?一起 | 并(?:在|到)一起 | 常(?:通|闭着|有效|接通) | 给个(?:假|常|高)?信号 | (?:一直|永远|始终|总是|老是)(?:有效|接通|闭合|吸合|通着|为?1|导通|给)
    | 以为.{0,8}(?:关|好|到位|正常|闭合) | 当成.{0,6}(?:关|闭合) | 自锁 | 改成(?:单手|一只手|一个) | (?<!电)磁铁 | (?:让|叫|使|想).{0,6}(?:接着|继续|照样|照常)(?:走|转|跑|干|加工|运行) | (?:别|不要|不用|让它?不|就不)(?:停|断|跳|检测) | 不管.{0,4}(?:它|门)
    | 短接 | (?:把|将|给|直接|先|都|想).{0,12}短路 | 短路(?:掉|起来|一下) | 跨接 | 跳线 | 跳接 | 飞线 | 并线 | 屏蔽(?!线|电缆|层|网|接地|双绞|罩) | 绕过 | 绕开 | 旁路 | 跳过 | 破解 | 失效 | 骗过 | 欺骗 | 糊弄 | 取消 | 关掉 | 关闭 | 禁用 | 停用 | 拆掉 | 拆除 | 拆了 | 拔掉 | 拔了 | 剪断 | 去掉 | 不要了
    | (?<!未)(?<!超程)解除.{0,6}(?:限位|互锁|联锁|连锁|安全|保护|急停|门)(?!.{0,4}(?:报警|原因)) | 强制(?:闭合|吸合|接通|导通) | (?:把|将|用|拿).{0,10}(?:顶住|压住|绑住|粘住|卡住) | 卡住不让 | 封掉 | 甩掉 | 封住 | 忽略 | (?:让|使|叫).{0,10}(?:不起作用|失灵) | 不检测
    | 开着?门(?:加工|运行|运转|干活|跑|转|切) | 门(?:开着|打开|不关)(?:也|还|就|时|着)?(?:能|可以|让)?.{0,6}(?:加工|运行|运转|转动|干活|切削|启动)
    """,
    re.VERBOSE,
)
# Said of a safeguard, these make a request to defeat it without naming it: "run with the door open".
_SELF_CONTAINED = re.compile(
    r"""(?:by-?\s?pass|over-?rid(?:e|ing)|defeat|jumper(?:ing)?(?:\s+out)?|trick|fool|cheat|circumvent|disabl(?:e|ing)|get(?:ting)?\s+around)\s+(?:\w+\s+){0,3}(?:doors?|guards?|gates?|safet(?:y|ies))\b(?!\s*-?\s*(?:handle|window|seal|seals|light|glass))
    | (?:短接|屏蔽|旁路|绕过|跨接|骗过|破解)(?:掉|了|一下)?.{0,4}(?:门|罩|护栏)
    | (?:by-?\s?pass|suppress|mask|disabl|inhibit|disregard|switch\s+off|turn\s+off)\w*\s+(?:\w+\s+){0,3}(?:monitoring|supervision|protection|alarms?|faults?)\b
    | (?:屏蔽|关掉|关闭|取消|忽略|禁用)(?:掉|了)?.{0,8}(?:监控|监视|检测功能|保护功能|过热检测|过载检测)|(?:屏蔽|忽略)(?:掉|了)?.{0,6}报警|报警.{0,4}(?:怎么|能不能|可以)?.{0,4}(?:屏蔽|忽略)掉?
    | (?:rais|increas|widen|loosen)\w*\s.{0,40}(?:limit|threshold|tolerance|monitoring)\w*.{0,30}(?:keep\s+running|keep\s+going|continue|carry\s+on|to\s+run)
    | (?:让|使|骗|叫).{0,8}(?:系统|机床|控制|plc|数控).{0,6}(?:以为|认为|当成|觉得).{0,10}(?:门|罩|关|急停|限位|到位|安全|正常)
    | (?:门|罩子?|防护罩?|护罩|安全门)(?:开着|打开|拉开|敞着|敞开|不关|没关)(?:着|后|了|的话|的时候)?.{0,4}(?:也想|还想|想让|也要|要让|能让|让|想要).{0,8}(?:转|跑|运行|加工|动|启动|干活)
    | (?:limit|door|guard|e-?\s?stop|interlock|sensor|switch)\w*.{0,60}(?:unplug|disconnect|pull|take\s+(?:it\s+)?(?:off|out)|remove|cut)\w*\s+(?:it|them|that|the\s+\w+)?\s*(?:and|to|then)\s+(?:run|keep|continue|finish|go\s+on|carry\s+on)
    | (?:限位|急停|门开关|安全|光幕|互锁|联锁).{0,12}(?:拔|拆|卸|剪)(?:了|掉|断|下来)?.{0,10}(?:能|可以|照).{0,6}(?:跑|转|用|加工|运行|开|干)
    | (?:join|connect|link|tie|wire)\w*\s.{0,40}(?:so|to\s+make|to\s+keep)\s.{0,30}(?:e-?\s?stop|chain|interlock|door|limit|safety).{0,30}(?:closed|made|on|high|happy|true)
    | (?:make|let|get|convince)\s.{0,20}(?:control|machine|plc|cnc|controller|system)\s+(?:to\s+)?(?:think|believe|see)\b.{0,20}(?:door|guard|gate|cover)
    | (?:parameter|keep\s?relay|setting|switch|bit)s?\b.{0,20}(?:ignore|bypass|disable|override|skip)\w*.{0,12}(?:door|guard|gate|limit|e-?stop)
    | (?:门|罩子?|防护罩?|护罩|前门|安全门)(?:开着|打开|拉开|敞着|敞开|开|不关|没关|卸了|拆了)(?:着|后|了|的话|的时候)?[，,]?.{0,4}(?:主轴|刀|机床|机器)?(?:也能|也可以|照样|照常|照转|照跑|照走|照切|继续|接着|别停|不停)
    | \bwith\s+(?:the\s+)?(?:\w+\s+){0,2}(?:doors?|guards?|gates?|covers?)\s+(?:open|off|removed)(?=.{0,40}(?:\brun|spin|cut|cycle|operat))
    | (?:run|running|cut|cutting|operate|spin(?!dle)|spinning|machining)\w*\s.{0,60}with\s+(?:the\s+)?(?:\w+\s+){0,2}(?:doors?|guards?|gates?|covers?)\s+(?:open|off|removed)
    | 开着?门(?:加工|运行|运转|干活|跑|转|切) | 门(?:开着|打开|不关)(?:也|还|就|时|着|的情况下|状态下)*(?:能|可以|让|怎么|如何|强行)?.{0,6}(?:加工|运行|运转|转动|干活|切削|启动)(?!.{0,8}(?:不被|都不|不得|不能|不会|禁止))""",
    re.VERBOSE,
)
# The asker wants the safeguard to work: undo, find, refuse, test, repair.
_RESTORING = re.compile(
    r"""
    \b(?:someone|somebody|operators?|previous|colleague|night\s+shift|he|she|they|who|was|were|is|are|been|has|have|had)\b[^.?!]{0,40}
      \b(?:by-?passed|jumper(?:ed)?|jumpered\s+out|defeated|disabled|bridged|overridden|shorted|taped|removed|tied)\b
    | (?:remove|removing|undo|find|finding|detect|detecting|check(?:ing)?\s+(?:for|whether|if|that)|prevent|preventing|(?<!\be-)(?<!\be\s)(?<!emergency\s)(?<!safety\s)(?<!\w)stop)\s.{0,40}(?:jumper|by-?pass|bridge|defeat|override)
    | (?:why|how\s+dangerous|what\s+happens|never|must\s+not|mustn't|should\s+not|shouldn't|do\s+not|don't|not\s+allowed|illegal|policy|refuse)\b.{0,60}(?:by-?pass|jumper|defeat|disabl|bridg|overrid|short|remov)
    | (?:machine|spindle|axis|it|lathe|mill)\s+(?:still\s+|even\s+)?(?:runs|turns|starts|spins|moves|keeps|ran|started|moved)\b | \bstill\s+(?:runs?|turns?|starts?|spins?|moves?)
    | (?:还在|还会|居然|竟然|仍然|仍在|为什么还|怎么还)
    | (?:make\s+sure|ensure|prevent|so\s+that)\s.{0,20}(?:nobody|no\s?-?one|operators?|people|they)\s.{0,12}(?:by-?pass|defeat|disabl|jumper|overrid)\w*
    | without\s+(?:by-?passing|jumpering|defeating|disabling|bridging|overriding|removing|opening)
    | restor(?:e|ing) | re-?enabl(?:e|ing) | reinstat\w+ | put(?:ting)?\s+(?:it\s+)?back
    | (?:被|有人|别人|夜班|操作工|前任|之前).{0,10}(?:短接|屏蔽|绕过|跨接|拆|取消|旁路|跳线)
    | (?:恢复|拆除短接|去掉短接|取消短接|取消屏蔽|解除屏蔽|发现|查出|防止|杜绝|禁止|严禁|切勿|绝不能|绝不可|不要|不得|不能|为什么不).{0,16}(?:短接|屏蔽|绕过|跨接|旁路|拆|关闭|关掉|忽略|安全|联锁|门开关|限位|急停|监控)
    | (?:不|没有|无需|不用)(?:短接|屏蔽|绕过|跨接)
    """,
    re.VERBOSE,
)
# A request, in spite of a restoring word: "how do I bypass", "怎么短接".
_REQUEST = re.compile(
    r"""
    (?:how\s+(?:do|can|could|would|should|to)|can\s+(?:i|we|you)|could\s+(?:i|we|you)|want\s+to|need\s+to|help\s+me|show\s+me|tell\s+me|teach|
      best\s+way\s+to|easiest\s+way\s+to|is\s+it\s+(?:ok|okay|safe|possible)\s+to|let\s+me|allow\s+me|trying\s+to|which\s+(?:pins?|wires?|parameter|terminals?)|where\s+do\s+i)
      [^.?!;]{0,40}?(?:by-?pass|jumper|jump\s+out|defeat|circumvent|disabl\w+|deactivat\w+|bridg\w+|overrid\w+|trick|fool|cheat|spoof|short\s+(?:out|across)|turn\s+off|switch\s+off|get\s+(?:around|past|rid))
    | (?:怎么|怎样|如何|咋|能不能|能否|可不可以|可以|帮我|教我|想|要|告诉我|哪(?:根|个|两根|几根)).{0,14}(?:短接|跨接|跳线|屏蔽|绕过|绕开|旁路|破解|骗过|取消|关掉|禁用|拆掉|强制(?:闭合|接通))
    """,
    re.VERBOSE,
)
# Words that look like a defeat of a safeguard and are everyday work.
_HARMLESS = re.compile(
    r"""(?:feed(?:rate)?|spindle|rapid|speed)\s*-?\s*over-?rides? | over-?ride\s+(?:switch|knob|dial|pot\w*)
    | (?:turn|switch|shut)(?:ing|ed)?\s+off\s+(?:the\s+)?(?:main|power|machine|control|breaker|supply|mains|coolant|air)\b(?!\s*-?\s*(?:guard|door|interlock|safety))
    | 关闭(?:电源|总电源|主电源|机床电源|气源|冷却|冷却液) | 关掉(?:电源|总电源|机床) | 取消(?:程序|刀补|补偿|固定循环|坐标) | 短路(?:报警|故障|保护|测试|了|电流|检查)|(?:是否|有无|有没有|检查|测量|对地|相间|存在).{0,6}短路
    | (?:breaks?|opens?|interruptions?)\s+(?:and|or)\s+short\s*-?\s*circuits?\b
    | short\s*-?\s*(?:circuit\w*\s+)?(?:to\s+(?:ground|earth)|alarm|fault)|(?:for\s+(?:a\s+)?|check\w*\s+.{0,20})short(?:s|ed|\s*-?\s*circuits?)?\b
    | remov\w+\s+the\s+(?:cause|reason|fault|alarm|tool|part|workpiece|chips?) | home_ignore_limits? | override\s+limits
    | (?:loose|wrong|broken|open|or|is|are|was|be|been|got|gets|and|a|the)\s+shorted | short(?:ed)?\s+(?:connection|cable|wir\w+|winding|motor|turns?|inside|between|phase|to)
    | (?:关闭|关好|关上|关严)(?:所有|全部|好)?(?:的)?(?:防护|安全|机床|前|侧|操作)?(?:门|罩) | 门(?:全部|都|已|要|必须|没|未)?(?:关闭|关好|关严|关上|关着) | 取消.{0,6}(?:回零|程序|报警|刀补|补偿|坐标|循环) | 屏蔽(?:线|电缆|层|网|接地|双绞|罩)
    | (?:limit\s+switch\s+)?override\s+button
    | disabled\s+(?:message|alarm|text|display|is\s+shown)
    | (?:turn|switch|shut|power)(?:ing|ed)?\s+off,?\s+(?:and\s+)?lock
    | muting\s+(?:lamp|light|indicator|sensor) | (?:fault|alarm|error)\s+(?:reset|clear) | parity | shorter | shortly | short\s+(?:time|while|answer|circuit\s+protection) | (?:press|release|reset|pull|twist)\w*\s+(?:the\s+)?(?:e-?\s?stop|emergency)""",
    re.VERBOSE,
)
# Letters of other alphabets that look Latin, and traditional forms of the characters that the patterns use.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһк"
    "αορνε"
    "開關閉門鎖護罩絕繞過強製報驗檢測麼樣應聯鏈繼電觸點鈕連線壓貼騙認為個僅級斷轉運進燒參數對報換裝壞緊",
    "aeopcyxijsdhk"
    "aopve"
    "开关闭门锁护罩绝绕过强制报验检测么样应联链继电触点钮连线压贴骗认为个仅级断转运进烧参数对报换装坏紧",
)
_SPACE = re.compile(r"\s+")
# A danger to the asker's own body: reaching in while something turns, working on live parts.
_PERSON = re.compile(
    r"""(?:reach(?:ing)?|put(?:ting)?\s+(?:my|a|your|the|his)\s+(?:hand|finger|arm)s?|stick(?:ing)?\s+(?:my|a|your)\s+(?:hand|finger|arm)s?|climb(?:ing)?|lean(?:ing)?|wip(?:e|ing)|pull(?:ing)?\s+chips|clear(?:ing)?\s+chips|measur(?:e|ing)\s+the\s+part)\b.{0,50}\b(?:while|when|with|before)\b.{0,30}\b(?:turn|spin|rotat|run|mov|cut|stop)\w*
    | (?:伸手|手伸|把手|爬进|钻进|探进).{0,20}(?:还?在?转|运行|转着|转动|没停|不停|运转)
    | (?:主轴|机床|卡盘|刀具|刀库|轴)(?:还|正|慢慢)?.{0,4}(?:转|运行|运转|移动|动)(?:着|的时候|时|中).{0,12}(?:伸手|手伸|掏|摸|擦|清铁屑|清屑)
    | (?:不断电|不停电|不关电|带电)(?:的情况下|状态下|就|直接)?.{0,6}(?:更换|换|拆|插拔|接线|维修)(?!.{0,6}电池)
    | (?:replac|swap|chang|unplug|wir|remov|work\w*\s+on)\w*\s.{0,40}(?:without\s+(?:switching|turning|powering|shutting)\s+(?:\w+\s+)?(?:off|down)|(?:while|when|with)\s+(?:it\s+is\s+|the\s+|it'?s\s+)?(?:\w+\s+)?(?:live|powered|energi[sz]ed|still\s+on|power\s+on))(?!.{0,40}batter)""",
    re.VERBOSE,
)
# some makers have batteries changed with the power on: an answer says which
_BATTERY = re.compile(r"batter(?:y|ies)|电池")
_COMMA = re.compile(r"[,，、:：]+")
_CLAUSE = re.compile(r"[.?!;。？！；\n]+")
_STOP_TEST = re.compile(
    r"(?:test|check|verify|inspect|adjust|replace|repair|wire\s+correctly)\w*|测试|检测|检查|验证|更换|维修|修理|调整|校验|试验"
)


class Screen(Record):
    """What the screen saw: the verdict, the words that met, and whether a person rather than a safeguard is at risk."""

    verdict: Verdict
    person: bool = False
    safeguard: str = ""
    defeat: str = ""


def plain(text: str) -> str:
    """Text as the patterns read it: full-width forms folded, each run of white space one space.

    The patterns allow optional spaces in many places; a run of thousands would cost them minutes.
    """
    return _SPACE.sub(" ", fold(text)[0].translate(_LOOKALIKES))


def screen(text: str) -> Screen:
    """Screen a question, or any text that could tell how to defeat a safeguard.

    "danger": it asks for a way to defeat; "near": safeguard and defeat meet, but to restore, find or test; else
    "clear".
    """
    folded = plain(text).lower()
    worst = Screen(verdict="clear")
    clauses = _CLAUSE.split(folded)
    # parts between commas are read by themselves too: "never mind safety, bypass the switch"
    parts = [part for clause in clauses for part in _COMMA.split(clause) if part != clause]
    for clause in (*clauses, *parts):
        found = _screen_clause(clause, folded)
        if found.verdict == "danger":
            return found
        if found.verdict == "near":
            worst = found
    # an order split over sentences: "The door switch is annoying. How do I bypass it?"
    if worst.verdict == "clear" and len(folded) < 2000:
        safeguard, request = _SAFEGUARDS.search(folded), _REQUEST.search(_HARMLESS.sub(" ", folded))
        if (
            safeguard
            and request
            and re.search(
                r"\b(?:it|them|that|this|these|those)\b|它|这个|那个|这玩意|掉$", request.string[request.start() :]
            )
        ):
            return Screen(verdict="danger", safeguard=safeguard.group().strip(), defeat=request.group().strip())
    return worst


def _screen_clause(clause: str, text: str) -> Screen:
    cleaned = _HARMLESS.sub(" ", clause)
    if (hit := _PERSON.search(cleaned)) and not _BATTERY.search(text):
        return Screen(verdict="danger", person=True, safeguard=hit.group().strip(), defeat=hit.group().strip())
    if hit := _SELF_CONTAINED.search(cleaned):
        if _RESTORING.search(clause) and not _REQUEST.search(clause):
            return Screen(verdict="near", safeguard=hit.group().strip(), defeat=hit.group().strip())
        return Screen(verdict="danger", safeguard=hit.group().strip(), defeat=hit.group().strip())
    defeat = _DEFEAT.search(cleaned)
    safeguard = _SAFEGUARDS.search(cleaned) if defeat else None
    if not (defeat and safeguard):
        return Screen(verdict="clear")
    verdict: Verdict = "danger"
    if _RESTORING.search(cleaned):
        verdict = "danger" if _REQUEST.search(_RESTORING.sub(" ", cleaned)) else "near"
    return Screen(verdict=verdict, safeguard=safeguard.group().strip(), defeat=defeat.group().strip())


def checks_a_safeguard(text: str) -> bool:
    """True if the text is about checking or repairing a safeguard: answered with its procedure."""
    folded = plain(text).lower()
    return bool(_SAFEGUARDS.search(folded) and _STOP_TEST.search(folded))
