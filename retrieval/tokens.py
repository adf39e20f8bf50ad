"""From text to search tokens, Chinese and English, with fault codes kept whole.

Codes are found by the grammar first and become one token each (`sv0401`) plus their bare number (`#401`), so that
neither jieba nor a hyphen can cut them. The rest is lower-cased words, and Chinese cut by jieba for search.
"""

from __future__ import annotations

import logging
import re
import tempfile
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from retrieval.codes import find_codes, fold, number_of

# Words of the trade that jieba's general dictionary would cut apart.
TRADE_WORDS = (
    "伺服 主轴 急停 限位 软限位 硬限位 超程 报警 编码器 变频器 驱动器 放大器 接触器 继电器 电磁阀 气压 液压 润滑 "
    "跟随误差 位置偏差 回零 回参考点 对刀 刀库 换刀 刀塔 尾座 卡盘 丝杠 导轨 轴承 联轴器 皮带 抱闸 制动器 垂直轴 "
    "安全门 门开关 门锁 联锁 互锁 光栅 风扇 过热 过载 过流 过压 欠压 缺相 接地 电池 参数 备份 上电 断电 挂锁 "
    "异响 爬行 抖动 振动 撞机 飞车 扎刀 闷车 掉电 转速 波动 探针 工件坐标"
).split()
_STOP = frozenset(
    "a an and are as at be but by can do does for from has have how i if in is it its me my no not of on or our "
    "please should so that the their then there this to was we what when where which why will with you your "
    "的 了 是 在 和 与 或 我 我们 你 您 请 请问 吗 呢 吧 啊 怎么 怎样 如何 什么 为什么 一下 这个 那个 就 都 也 又 还 "
    "有 被 把 给 对 从 到 要 会 能 可以 现在 出现 一个".split()
)
_WORD = re.compile(r"[a-z][a-z0-9]*|[0-9]+(?:\.[0-9]+)?|[\u3400-\u9fff]+")
_HAN = re.compile(r"[\u3400-\u9fff]")


class _Cutter:
    """jieba, loaded on the first Chinese text only: its dictionary costs 0.7 s."""

    def __init__(self) -> None:
        self.cache_folder: Path | None = None
        self._tokenizer: Any = None
        self._lock = threading.Lock()

    def cut(self, text: str) -> list[str]:
        with self._lock:
            if self._tokenizer is None:
                # jieba caches its dictionary with marshal in the system's shared temp folder, where anyone could plant
                # one: the data home is the user's own, and without one a private folder serves once
                with tempfile.TemporaryDirectory() as private:
                    self._tokenizer = self._load(self.cache_folder or Path(private))
        return list(self._tokenizer.cut_for_search(text))

    def _load(self, folder: Path) -> Any:
        import jieba  # noqa: PLC0415 - see class

        jieba.setLogLevel(logging.CRITICAL)  # a cache that cannot be written costs time, not a traceback on the screen
        tokenizer = jieba.Tokenizer()
        tokenizer.tmp_dir = str(folder)
        tokenizer.initialize()
        for word in TRADE_WORDS:
            tokenizer.add_word(word)
        return tokenizer


_cutter = _Cutter()


def use_cache_folder(folder: Path) -> None:
    """Keep jieba's dictionary cache in `folder`; call before the first Chinese text."""
    _cutter.cache_folder = folder


def has_chinese(text: str) -> bool:
    """True if the text holds a Chinese character."""
    return _HAN.search(text) is not None


@lru_cache(maxsize=4096)
def tokenize(text: str) -> tuple[str, ...]:
    """Search tokens of a text, in order, repeats kept.

    English words lose a plural -s so that `drives` finds `drive`; stop words go; single Chinese characters stay only
    where jieba leaves them alone.
    """
    tokens: list[str] = []
    rest = list(text)
    for mention in find_codes(text):
        for reading in mention.readings:
            tokens += [_code_token(reading.code), f"#{number_of(reading.code)}"]
        rest[mention.start : mention.end] = " " * (mention.end - mention.start)
    folded, _ = fold("".join(rest))
    for match in _WORD.finditer(folded.lower()):
        word = match.group()
        if _HAN.match(word):
            tokens += [piece for piece in _cutter.cut(word) if piece not in _STOP]
        elif word not in _STOP:
            tokens.append(_stem(word))
    return tuple(tokens)


def code_tokens(code: str) -> tuple[str, str]:
    """The two tokens by which a code is found: whole, and its bare number."""
    return _code_token(code), f"#{number_of(code).lower()}"


def _code_token(code: str) -> str:
    return re.sub(r"[\s:._-]", "", code.lower())


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
