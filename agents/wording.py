"""Fixed sentences of an answer in both languages. Facts never stand here: they come from entries."""

from __future__ import annotations

from retrieval.records import Language

_TEXT: dict[str, tuple[str, str]] = {
    # headings
    "stop_or_run": ("Stop or run", "停机还是继续"),
    "safety": ("Safety first", "安全第一"),
    "symptom": ("Symptom (what the control saw)", "故障现象（系统检测到什么）"),
    "meaning": ("What it is", "说明"),
    "diagnosis": ("Diagnosis", "诊断"),
    "action": ("Action", "处理"),
    "prevention": ("Prevention", "预防"),
    "conditions": ("Before you start", "开始前的条件"),
    "steps": ("Steps", "步骤"),
    "confirm": ("How to see that it worked", "如何确认有效"),
    "range": ("Unit and range", "单位与范围"),
    "effect": ("What it changes", "影响"),
    "backup": ("Save this first", "先备份"),
    "next_check": ("Next check", "下一项检查"),
    "related": ("Also possible", "也可能是"),
    "documents": ("From your documents", "来自贵厂资料"),
    "stop_holds": (
        "The stop above holds, whatever these say about running on.",
        "上面的停机要求始终有效，以下资料中关于继续运行的说法不能取代它。",
    ),
    "sources_differ": (
        "These sources say different things about this code. Compare them with the machine before you act.",
        "这些来源对该代码的说法不同。请先与机床实际情况对照再处理。",
    ),
    "last_time": ("Last time on this machine", "本机上次的处理"),
    "repair_line": (
        "{on}, {by}: {action}. It was said to have fixed this then; now that it is back, see first whether that has held.",
        "{on}，{by}：{action}。当时报告已解决；现在再次出现，请先确认该处理是否仍然有效。",
    ),
    "repair_kept": (
        "Kept for {machine}: {label} was fixed by: {action}. It comes first when this shows there again.",
        "已为 {machine} 记录：{label} 的处理：{action}。该机再次出现时会首先提示。",
    ),
    "repair_ask_action": (
        'Good. What was it, and what did you do? (for example "contactor KM2 replaced") It is kept for this machine.',
        "好的。是什么原因、怎么处理的？（例如“更换接触器 KM2”）会为本机记录下来。",
    ),
    "repair_ask_machine": (
        'On which machine? (for example "lathe 3") It is kept under that name.',
        "是哪台机床？（例如“3号车床”）将以该名称记录。",
    ),
    "repair_refused": (
        "This is not kept: {reason}. Put the safeguard back and have somebody qualified look at the machine before it runs.",
        "不予记录：{reason}。请恢复安全保护，运行前由有资质的人员检查机床。",
    ),
    "repair_not_kept": ("This could not be kept: {reason}", "未能记录：{reason}"),
    "somebody": ("somebody of the shop", "本厂人员"),
    "report": ("Handover", "交接记录"),
    "report_head": ("# Handover, {on}, by {by}", "# 交接记录，{on}，{by}"),
    "report_no_machine": ("machine not named", "未说明机床"),
    "report_asked": ("As reported", "报告内容"),
    "report_stop": ("Not cleared", "尚未排除"),
    "report_check": ("Check given", "已给出的检查"),
    "report_said": ("Found", "现场反馈"),
    "report_fixed": ("Fixed by", "处理方法"),
    "report_open": ("Open; next", "未完成，下一步"),
    "report_nothing_left": ("all checks were given: the actions of the entry remain", "检查项已全部给出，剩余为处理措施"),
    "shop_notes": ("Notes of your shop", "本厂备注"),
    "shop_note": ("note of your shop ({by}, {on}): {text}", "本厂备注（{by}，{on}）：{text}"),
    "shop_note_machine": (
        "note of your shop for {machine} ({by}, {on}): {text}",
        "本厂备注（{machine}；{by}，{on}）：{text}",
    ),
    "item_cause": ("cause", "原因"),
    "item_check": ("check", "检查"),
    "item_action": ("action", "处理"),
    "item_prevention": ("prevention", "预防"),
    "item_range": ("range", "范围"),
    "item_effect": ("effect", "影响"),
    "item_safety": ("safety", "安全"),
    "sources": ("Sources", "来源"),
    "causes": ("Likely causes", "可能原因"),
    "checks": ("Checks, in this order", "检查（按此顺序）"),
    # stop or run
    "stop_now": ("STOP NOW. Do not run the machine until the cause is cleared.", "立即停机。原因排除前不要运行机床。"),
    "stop_at_safe_point": ("STOP at the next safe point, then find the cause.", "在下一个安全点停机，然后查明原因。"),
    "may_continue": ("May continue for now; plan the work.", "可暂时继续运行；请安排处理。"),
    # reset
    "reset_key": ("Clear with the RESET key once the cause is gone.", "原因排除后按复位键清除。"),
    "clear_cause_first": (
        "Reset works only after the cause is removed; do not keep resetting.",
        "排除原因后才能复位；不要反复复位。",
    ),
    "power_cycle": ("Needs a power cycle after the cause is removed.", "排除原因后需要断电再上电。"),
    "homing": ("Reference (home) the axes again afterwards.", "之后需要重新回参考点。"),
    # marks
    "expect": ("expect", "应为"),
    "for_cause": ("for cause", "对应原因"),
    "to_be_confirmed": ("to be confirmed", "待确认"),
    "unverified": (
        "This entry is UNVERIFIED: everything it advises is to be confirmed before you act on it.",
        "本条目未经核实：其中的建议均待确认，确认后再执行。",
    ),
    "disputed": (
        "Sources DISAGREE about this entry: confirm it with the machine's own manual before you act on it.",
        "来源对本条目说法不一：请先对照本机手册确认再执行。",
    ),
    "status_verified": ("verified by {name}", "由 {name} 核实"),
    "status_machine_checked": ("two independent sources agree", "两个独立来源一致"),
    "status_unverified": ("unverified", "未核实"),
    "status_disputed": ("disputed", "有争议"),
    "also_look": ("if the display shows {label}: {title}", "若显示 {label}：{title}"),
    "also_entry": ("{title}", "{title}"),
    # asking back
    "ask_controller": (
        "Which controller is it? {label} means different things on different controls. I know:",
        "是哪种控制系统？{label} 在不同系统上含义不同。我知道的有：",
    ),
    "tell_more": (
        "That is too little to go by. Tell me what the display shows (the whole code and text), the control, which axis or"
        " part, and when it happens.",
        "信息太少，无法判断。请告诉我屏幕上的完整代码和文字、控制系统、哪个轴或部件、何时发生。",
    ),
    "noted_machine": ("Noted: {machine}.", "已记下：{machine}。"),
    "ask_one": (
        "Which controller is it? On other controls {label} means something else. I know only:",
        "是哪种控制系统？{label} 在其他系统上含义不同。我只知道：",
    ),
    "ask_family": ("Which control model is it? {label} is listed for:", "是哪个系列的系统？{label} 的条目有："),
    "ask_reply": (
        'Reply with the number or the controller (for example "{example}"). If yours is not listed, I have no entry'
        " for it: give the control's make and model and the full text on the display.",
        "请回复序号或系统名称（例如“{example}”）。如果没有列出，说明我没有它的条目：请告诉我系统品牌、型号和屏幕上的完整文字。",
    ),
    # refusing
    "unknown_code": (
        "I have no entry for {label}{on}, so I will not guess what it means.",
        "我没有{on}{label} 的条目，因此不会猜测它的含义。",
    ),
    "on_vendor": (" on {vendor}", " {vendor} 上 "),
    "unknown_parameter": (
        "I have no entry for parameter {label}{on}, so I will not say what it does.",
        "我没有{on}参数 {label} 的条目，因此不会说明它的作用。",
    ),
    "no_evidence": (
        "Nothing in the knowledge base speaks about this closely enough to advise on it.",
        "知识库中没有足够贴近的内容，不能给出建议。",
    ),
    "out_of_scope": (
        "I only help with CNC machine tools: alarm codes, symptoms, procedures and parameters.",
        "我只处理数控机床的问题：报警代码、故障现象、操作步骤和参数。",
    ),
    "report_later": (
        "Writing handover or work-order text is not part of this version.",
        "本版本还不能撰写交接或工单文字。",
    ),
    "next_unknown_code": (
        "Compare the code with the display (letters, zeros), name the controller, or look it up in the machine's own"
        " manual. Until you know it, treat the machine as stopped for a reason: do not keep resetting.",
        "请与屏幕核对代码（字母、数字 0），说明控制系统，或查阅本机手册。未查明之前，请视为有原因的停机，不要反复复位。",
    ),
    "next_unknown_parameter": (
        "Look it up in the machine's own parameter manual, and save all parameters before you change one.",
        "请查阅本机参数手册；更改前先备份全部参数。",
    ),
    "next_no_evidence": (
        "Give the code on the display, the controller, the axis or part, and when it happens.",
        "请提供屏幕上的代码、控制系统、涉及的轴或部件，以及何时发生。",
    ),
    "next_out_of_scope": (
        'Ask about an alarm ("FANUC SV0401") or a symptom ("spindle speed fluctuates, noise").',
        "可以询问报警（“发那科 SV0401”）或现象（“主轴转速波动，有异响”）。",
    ),
    "searched": ("Searched", "已查找"),
    "withheld_row": (
        "{document}, {place}, has a row on {label}. It is not answered from: it tells how to defeat a safeguard, waves a"
        " precaution aside, or gives an assistant orders. Have somebody qualified read it there.",
        "{document}（{place}）中有关于 {label} 的一行。该行涉及使安全保护失效、忽视防护措施或向助手下指令，因此不作为回答依据。"
        "请由有资质的人员查阅原文。",
    ),
    "photo_orders": (
        "The picture holds a text that gives orders to an assistant or waves a precaution aside. Only codes are taken"
        " from a picture; that text changes nothing.",
        "图片中含有向助手下指令或忽视防护措施的文字。系统只从图片中读取代码，该文字不起作用。",
    ),
    "look_for": ("Perhaps", "可能"),
    "searched_code": ("exact code {label} in {scope}", "在{scope}中精确查找代码 {label}"),
    "searched_number": ("number {label} in {scope}", "在{scope}中查找号码 {label}"),
    "searched_words": ("words and meaning over {kinds}", "在{kinds}中按词和语义查找"),
    "searched_parameter": ("parameter {label} in {scope}", "在{scope}中查找参数 {label}"),
    "scope_all": ("all controllers ({codes} codes)", "全部系统（{codes} 个代码）"),
    "scope_vendor": ("{vendor} (of {codes} codes in all)", "{vendor}（共 {codes} 个代码）"),
    "kind_alarm": ("alarms", "报警"),
    "kind_guide": ("guides", "指南"),
    "kind_procedure": ("procedures", "规程"),
    "kind_parameter": ("parameters", "参数"),
    "not_answered": ("Not answered", "未回答"),
    "closest": (
        "The closest guide I have; check that it is about your case. It is for this:",
        "这是我能找到的最接近的指南，请确认是否符合您的情况。它针对的是：",
    ),
    "no_more_checks": (
        "All checks of this entry have been given. What remains are the actions below; say which readings you got.",
        "本条目的检查项已全部给出。剩下的是以下处理措施；请告诉我测得的结果。",
    ),
    # danger
    "danger": (
        "I will not help to defeat a safeguard ({safeguard}). It is there because the machine can kill or maim when it"
        " is not.",
        "我不会协助使安全保护（{safeguard}）失效。没有它，机床会致人伤亡。",
    ),
    "danger_person": (
        "No. Do not do this: a turning or powered machine kills and maims, also slowly and also experienced people.",
        "不可以。请不要这样做：转动或带电的机床会致人伤亡，转得慢、有经验也一样。",
    ),
    "danger_person_2": (
        "Wait until everything stands still and is without power, and prove it; then do the work.",
        "等一切静止并断电、验电之后再动手。",
    ),
    "danger_1": (
        "Stop the machine, lock it out, and tell the person responsible for it.",
        "停机、上锁挂牌，并告知设备负责人。",
    ),
    "danger_2": (
        'If the safeguard itself seems faulty, tell me what it does: "e-stop will not release", "limit alarm after'
        ' homing", "how do I test the door switch".',
        "如果保护装置本身像是有故障，请告诉我现象：“急停松不开”“回零后限位报警”“怎么检测门开关”。",
    ),
    "danger_3": (
        "A machine whose safeguard does not work stays out of use until it is repaired.",
        "保护装置失效的机床，修复之前不得使用。",
    ),
    # degraded
    "deg_writer": (
        "language model not used ({reason}); items are in the entry's own order",
        "未使用语言模型（{reason}）；条目按原有顺序排列",
    ),
    "deg_cut": ("it was cut off after {seconds} s", "{seconds} 秒后被中断"),
    "deg_planner": ("planner fell back to rules ({reason})", "规划器退回规则（{reason}）"),
}


def say(key: str, language: Language, **values: object) -> str:
    """The fixed sentence `key` in `language`, filled in."""
    english, chinese = _TEXT[key]
    return (chinese if language == "zh" else english).format(**values)


def both(key: str) -> tuple[str, str]:
    """English and Chinese of a sentence, for tests that hold the two side by side."""
    return _TEXT[key]
