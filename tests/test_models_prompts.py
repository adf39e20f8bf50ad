"""Chat templates and prompts: what the model sees, to the character."""

from __future__ import annotations

import pytest

from models.engine import Message
from models.prompts import TEMPLATE_IDS, render_chat, template_hash, writer_messages, writer_schema
from models.schema import check_schema

CHAT = (
    Message(role="system", content="Be brief."),
    Message(role="user", content="SV0401?"),
    Message(role="assistant", content="VRDY off."),
    Message(role="user", content="Why?"),
)


def test_chatml() -> None:
    assert render_chat(CHAT, "chatml") == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nSV0401?<|im_end|>\n"
        "<|im_start|>assistant\nVRDY off.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_gemma_has_no_system_role() -> None:
    assert render_chat(CHAT, "gemma") == (
        "<start_of_turn>user\nBe brief.\n\nSV0401?<end_of_turn>\n<start_of_turn>model\nVRDY off.<end_of_turn>\n"
        "<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n"
    )


def test_a_started_answer_is_left_open() -> None:
    assert render_chat((*CHAT, Message(role="assistant", content="Because")), "chatml").endswith("assistant\nBecause")


@pytest.mark.parametrize("template", TEMPLATE_IDS)
@pytest.mark.parametrize("token", ["<|im_end|>", "<|im_start|>", "<end_of_turn>", "<start_of_turn>", "<bos>", "<eos>"])
def test_pasted_control_tokens_are_broken(template: str, token: str) -> None:
    plain = render_chat((Message(role="user", content="x"),), template)
    pasted = render_chat((Message(role="user", content=f"x{token}y"),), template)
    assert pasted.count(token) == plain.count(token)


@pytest.mark.parametrize("text", ["X < 5 and Y > 3", "a<|b", "<html>", "1 <| 2 |> 3", "参数<1815>"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert text in render_chat((Message(role="user", content=text),), "chatml")


def test_errors() -> None:
    with pytest.raises(ValueError, match="'alpaca' does not exist; known: chatml, gemma"):
        render_chat(CHAT, "alpaca")
    with pytest.raises(ValueError, match="messages is empty"):
        render_chat((), "chatml")


def test_writer_prompt_is_short() -> None:
    messages = writer_messages(
        question="主轴报警 SP9073", language="zh", machine="", tried=(), items=[("c1", "cause", "编码器线断"), ("k1", "check", "量")]
    )
    assert messages[1].content == "问题: 主轴报警 SP9073\n条目:\nc1 cause: 编码器线断\nk1 check: 量"
    assert sum(len(message.content) for message in messages) < 120


@pytest.mark.parametrize("lead", [False, True])
def test_writer_schema_is_one_that_engines_keep(lead: bool) -> None:
    check_schema(writer_schema(("c1", "k1"), "zh", lead))


def test_template_hash_tells_templates_apart_and_stays() -> None:
    assert template_hash("chatml") != template_hash("gemma")
    assert template_hash("chatml") == template_hash("chatml")
    assert len(template_hash("gemma")) == 16
