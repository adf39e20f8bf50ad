"""Screening of knowledge before it is taken over: nothing that defeats a safeguard or gives the assistant orders."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.render import render, section_ids
from agents.safety import screen
from retrieval.errors import KnowledgeUnreadable
from retrieval.records import KnowledgeEntry, Language

_LANGUAGES: tuple[Language, Language] = ("en", "zh")
# A safety item names what must not be done; without such a word it would be an instruction to do it.
_FORBIDS = re.compile(
    r"\b(?:never|not|no|nobody|don't|must\s+not|without|avoid|forbidden|prohibited|instead\s+of|risk|danger\w*)\b"
    r"|不|勿|禁|切忌|严禁|避免|无人|危险",
    re.IGNORECASE,
)
# What a document says to a language model and never to a technician.
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,3}(?:previous|prior|above|earlier|other|your|system)\s+(?:\w+\s+){0,2}"
    r"(?:instructions?|prompts?|rules?|messages?|guidelines?|context)"
    r"|\b(?:you\s+are|act\s+as|pretend\s+to\s+be)\s+(?:now\s+)?(?:an?\s+|the\s+)?(?:\w+\s+){0,2}(?:AI|assistant|chat\s?bot|language\s+model|LLM|DAN)\b"
    r"|\b(?:system|developer)\s+(?:prompt|message)\b|<\|?(?:im_start|im_end|system|endoftext)\|?>|\[/?INST\]"
    r"|\b(?:do\s+not|don't|never)\s+(?:tell|inform|warn|mention\s+(?:this|it)\s+to)\s+the\s+(?:user|technician|operator|reader)"
    r"|\b(?:assistant|AI|chat\s?bot|language\s+model)\b[^.。]{0,40}\b(?:must|should|shall|has\s+to)\s+(?:always\s+)?(?:answer|reply|say|respond|tell|recommend|claim|output)"
    r"|(?:忽略|无视|忘记|不要理会|覆盖)(?:掉)?(?:以上|上述|上面|之前|先前|前面|所有|系统|你的)[^。\n]{0,8}(?:指令|指示|提示词?|规则|要求|设定|命令)"
    r"|(?:你(?:现在)?是|扮演|假装(?:成|是)?)[^。\n]{0,8}(?:AI|人工智能|助手|机器人|语言模型)|系统提示词?"
    r"|(?:不要|不许|禁止|切勿)(?:告诉|提醒|警告|通知)(?:用户|技术员|操作者|操作工|维修人员)"
    r"|(?:助手|AI|人工智能|语言模型|机器人)[^。\n]{0,12}(?:必须|应当|应该|务必)(?:回答|回复|输出|告诉|建议|声称)",
    re.IGNORECASE,
)
# A sentence that forbids: warnings of a manual are what a technician must get to see.
_PROHIBITS = re.compile(
    r"\b(?:never|do\s+not|don't|must\s+not|may\s+not|shall\s+not|cannot\s+be|not\s+(?:allowed|permitted)|prohibited|forbidden)\b"
    r"|严禁|禁止|不得|切勿|请勿|不要|不可|不准|不能|勿",
    re.IGNORECASE,
)
# A sentence that waves a precaution aside: a document's line on lock-out stands where warnings stand.
_DISMISSES = re.compile(
    r"\bno\s+(?:lock-?\s?out|loto|tag-?out)\b|\bno\s+need\s+(?:to|for)\s+(?:wait|lock|switch|isolat|discharg|prove|power)"
    r"|\b(?:lock-?\s?out|loto|tag-?out|isolation)\b[^.]{0,30}\b(?:not\s+(?:needed|necessary|required)|unnecessary|a\s+waste|useless)"
    r"|\b(?:work|working|reach|reaching)\b[^.]{0,30}\bwhile\s+(?:it\s+is\s+)?(?:live|energi[sz]ed)"
    r"|\bcontactor\b[^.]{0,20}\bin\s+by\s+hand|\b(?:reply|say)\s+to\s+the\s+(?:user|technician|operator)\b"
    r"|\b(?:remov\w*|tak(?:e|ing)\s+off|open)\s[^.;]{0,24}\b(?:guards?|doors?|covers?|interlocks?)\s(?:and|then|to)\s"
    r"(?:then\s+)?(?:run|keep|continue|cut|operate|go\s+on|work\s+on)\b"
    r"|(?:拆|打开|取下|卸)[^。\n]{0,6}(?:护罩|防护门|安全门|防护罩)[^。\n]{0,6}(?:运行|继续|开机|加工|照跑)"
    r"|(?:无需|不需要|不必|不用|没必要)[^。\n]{0,4}(?:断电|上锁|挂牌|放电|验电|停机)|带电(?:作业|操作|工作|更换)",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


def hostile(text: str) -> str:
    """Why a text of a document must not be taken over; empty where nothing speaks against it.

    Worker processes import it by name. Sentences are looked at one by one, so that a warning does not cost its page.
    """
    plain_text = " ".join(text.split())
    if found := _ORDERS.search(plain_text):
        return f"it gives orders to an assistant ({found.group()[:60]!r})"
    for sentence in _SENTENCES.split(text):
        if (found := _DISMISSES.search(sentence)) and not _PROHIBITS.search(sentence[: found.start()]):
            return f"it waves a precaution aside ({sentence.strip()[:60]!r})"
    if screen(text).verdict != "danger":
        return ""
    for sentence in _SENTENCES.split(text):
        if sentence.strip() and not _PROHIBITS.search(sentence) and screen(sentence).verdict == "danger":
            return f"it tells how to defeat a safeguard or puts a person at risk ({sentence.strip()[:60]!r})"
    return ""


def refuse_hostile(entries: Sequence[KnowledgeEntry]) -> None:
    """Pass entries none of whose lines tells how to defeat a safeguard.

    Raises:
        KnowledgeUnreadable: names the first entry, item and language that does; nothing is taken over.
    """
    for entry in entries:
        for item_id in ("@title", *(i for _, ids in section_ids(entry) for i in ids)):
            item = entry.item(item_id)
            for language in _LANGUAGES:
                text = render(entry, item_id, language) or ""
                if screen(text).verdict != "danger":
                    continue
                if item is not None and item.kind == "safety" and _FORBIDS.search(text):
                    continue
                raise KnowledgeUnreadable(
                    f"Entry {entry.id}, {item_id.lstrip('@')} ({language}), tells how to defeat a safeguard"
                    f" or to put a person at risk: {text[:120]!r}.",
                    "take it out, or word it as what must not be done, then run `faultwright knowledge check`.",
                )
