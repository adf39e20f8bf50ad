"""Prompts and chat templates, rendered by one function in training, evaluation and serving.

A base's template is named in `models/bases.yaml`. Neither template carries a begin-of-text token: llama.cpp adds it
where the base asks for one (Gemma does, SmolLM2 and Qwen do not), and training must do the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Literal

from models.engine import Message

TemplateId = Literal["chatml", "gemma"]
TEMPLATE_IDS: tuple[TemplateId, ...] = ("chatml", "gemma")

# Spellings that the vocabularies of our bases read as control tokens. In a message they are only text.
_CONTROL = re.compile(r"<(\|[^|<>\s]{1,40}\||/?(?:start_of_turn|end_of_turn|bos|eos|pad|unk|mask|s|unused\d+))>")

WRITER_SYSTEM = {
    "en": 'Order the items by what helps most with the question. Leave out what does not help. Answer {"order":[ids]}.',
    "zh": '按对问题最有用的顺序排列条目，无关的不要。回答 {"order":[编号]}。',
}
WRITER_SYSTEM_LEAD = {
    "en": "Order the items by what helps most with the question. Leave out what does not help. Answer "
    '{"order":[ids],"lead":"one sentence of at most 30 words, no numbers"}.',
    "zh": '按对问题最有用的顺序排列条目，无关的不要。回答 {"order":[编号],"lead":"一句话，不超过30字，不写数字"}。',
}
_WRITER_LABELS = {
    "en": {"machine": "Machine", "question": "Question", "tried": "Tried", "items": "Items"},
    "zh": {"machine": "机床", "question": "问题", "tried": "已试", "items": "条目"},
}
LEAD_CHARACTERS = {"en": 220, "zh": 60}  # what constrained output allows; about 30 words, with room for long ones


def render_chat(messages: Sequence[Message], template_id: str) -> str:
    """The prompt text of a chat, ending where the assistant is to speak.

    Control tokens spelt out inside a message are broken by a space, so that a pasted text cannot open a turn of its
    own. A trailing assistant message is left open: the model continues it.

    Raises:
        ValueError: no messages, or a template id that is not in `TEMPLATE_IDS`.
    """
    if not messages:
        raise ValueError("messages is empty; a prompt needs at least one message")
    if template_id == "chatml":
        return _turns(messages, opening="<|im_start|>{role}\n", closing="<|im_end|>\n", names={})
    if template_id == "gemma":
        merged = _system_into_user(messages)  # Gemma has no system role; its own template does the same
        names = {"assistant": "model"}
        return _turns(merged, opening="<start_of_turn>{role}\n", closing="<end_of_turn>\n", names=names)
    raise ValueError(f"template {template_id!r} does not exist; known: {', '.join(TEMPLATE_IDS)}")


def writer_messages(
    *,
    question: str,
    language: Literal["zh", "en"],
    machine: str,
    tried: Sequence[str],
    items: Sequence[tuple[str, str, str]],
    lead: bool = False,
) -> tuple[Message, ...]:
    """The point-mode prompt: question and numbered items, as (id, kind, text). Kept short: prefill is what costs."""
    label = _WRITER_LABELS[language]
    lines = [f"{label['machine']}: {_line(machine)}"] if machine else []
    lines.append(f"{label['question']}: {_line(question)}")
    if tried:
        lines.append(f"{label['tried']}: {'; '.join(_line(one) for one in tried)}")
    lines.append(f"{label['items']}:")
    lines += [f"{item_id} {kind}: {_line(text)}" for item_id, kind, text in items]
    system = (WRITER_SYSTEM_LEAD if lead else WRITER_SYSTEM)[language]
    return (Message(role="system", content=system), Message(role="user", content="\n".join(lines)))


def writer_schema(ids: Sequence[str], language: Literal["zh", "en"], lead: bool = False) -> dict[str, Any]:
    """What a point-mode answer must look like. That ids differ cannot be said here; whoever reads it drops repeats."""
    properties: dict[str, Any] = {
        "order": {"type": "array", "items": {"enum": list(ids)}, "minItems": 1, "maxItems": len(ids)}
    }
    if lead:  # after the order, so that a cut answer still has its ids
        properties["lead"] = {"type": "string", "maxLength": LEAD_CHARACTERS[language]}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def template_hash(template_id: str) -> str:
    """Sixteen hex digits over the template and every prompt here: an adapter trained under another hash does not fit.

    Rendered samples are hashed, not the source, so that a change of wording counts and a change of layout does not.

    Raises:
        ValueError: a template id that is not in `TEMPLATE_IDS`.
    """
    digest = hashlib.sha256()
    for language in ("en", "zh"):
        for lead in (False, True):
            messages = writer_messages(
                question="q", language=language, machine="m", tried=("t",), items=(("c1", "cause", "x"),), lead=lead
            )
            sample = (*messages, Message(role="assistant", content="a"), Message(role="user", content="<|im_end|>"))
            digest.update(render_chat(sample, template_id).encode())
            digest.update(repr(writer_schema(("c1",), language, lead)).encode())
    return digest.hexdigest()[:16]


def _turns(messages: Sequence[Message], *, opening: str, closing: str, names: dict[str, str]) -> str:
    parts = []
    for message in messages:
        parts.append(opening.format(role=names.get(message.role, message.role)) + _plain(message.content) + closing)
    if messages[-1].role == "assistant":
        return "".join(parts)[: -len(closing)]
    return "".join(parts) + opening.format(role=names.get("assistant", "assistant"))


def _system_into_user(messages: Sequence[Message]) -> tuple[Message, ...]:
    out: list[Message] = []
    pending = ""
    for message in messages:
        if message.role == "system":
            pending += message.content + "\n\n"
        elif message.role == "user" and pending:
            out.append(Message(role="user", content=pending + message.content))
            pending = ""
        else:
            out.append(message)
    return tuple(out) if not pending else (*out, Message(role="user", content=pending.rstrip()))


def _plain(text: str) -> str:
    return _CONTROL.sub(r"< \1>", text)


def _line(text: str) -> str:
    return " ".join(text.split())  # a line break inside an item would look like another item
