"""What every pass over a text shares: folding, digits as they are typed, and a code as it is found."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from retrieval.code_patterns import AFTER, ANY_ALARM, BEFORE, UNSLIP
from retrieval.records import CodeReading


def fold(text: str) -> tuple[str, list[int]]:
    """Fold full-width forms, dashes and odd spaces; letters keep their case.

    Returns the folded text and, for each of its characters, the offset of the original character that it came from.
    Zero-width characters vanish; a sign such as ㎜ becomes two characters of the same origin.
    """
    if text.isascii():
        return text, list(range(len(text)))
    out: list[str] = []
    index: list[int] = []
    for position, char in enumerate(text):
        folded = char if char.isascii() else _fold_char(char)
        out.append(folded)
        index.extend([position] * len(folded))
    return "".join(out), index


@lru_cache(maxsize=4096)
def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cf":
        return ""
    if category == "Pd" or char in "−ｰ﹣":
        return "-"
    if char in "〜∼～":
        return "~"
    plain = unicodedata.normalize("NFKC", char)
    # ① would put a digit in front of a code; a ligature would move the letters after it
    return char if category == "No" or (category.startswith("L") and len(plain) != 1) else plain


def digits_of(raw: str) -> str | None:
    """Digits of a number with its O/0 and I/1 slips put right; None for a word such as "oil1"."""
    raw = raw.replace(" ", "")  # 25 050 on some displays
    real = sum(char.isdigit() for char in raw)
    if not real or (real == 1 and not raw[0].isdigit() and re.search("[Il]", raw)):
        return None
    return raw.translate(UNSLIP)


@dataclass(frozen=True)
class Token:
    """A found code before its offsets are mapped back. `stem` says how a number in the same list continues it."""

    start: int
    end: int
    readings: tuple[CodeReading, ...] = ()
    bare: bool = False
    stem: tuple[str, str | None, str] | None = None
    digits: str = ""


def readings_of(vendor: str | None, family: str | None, *codes: str) -> tuple[CodeReading, ...]:
    """One reading for each of `codes`, all of the same vendor and family."""
    return tuple(CodeReading(vendor=vendor, family=family, code=code) for code in codes)


def alarm_near(text: str, start: int, end: int, reach: int = 12, stop: str = r"[,。;!?\n]") -> bool:
    """Whether a word for alarm stands within `reach` characters, with no mark of `stop` between."""
    left = re.split(stop, text[max(0, start - reach) : start])[-1]
    right = re.split(stop, text[end : end + reach])[0]
    return bool(ANY_ALARM.search(left) or ANY_ALARM.search(right))


def alarm_touches(text: str, start: int, end: int) -> bool:
    """Whether a word for alarm stands at the code itself, with at most "no.", 号 or brackets between."""
    return bool(BEFORE.search(text[max(0, start - 24) : start]) or AFTER.match(text, end))
