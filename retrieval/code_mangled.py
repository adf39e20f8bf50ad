"""Codes as people mangle them: letters and digits apart, a 5 for an S, digits in Chinese.

Each form is taken only where nothing else is written so: numbers pulled apart are short, of the vendor's own length, or
stand at a word for alarm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from retrieval.code_context import Context
from retrieval.code_patterns import FANUC_PREFIXES, FLAGS, SLIP
from retrieval.code_text import Token, alarm_touches, digits_of, readings_of

_END = r"(?![0-9A-Za-z_.])"
_LETTERS = "|".join(rf"{prefix[0]}\s?{prefix[1]}" for prefix in FANUC_PREFIXES)
# SV0 436, SV04 01, S V 0 4 4 9: four digits, the first a zero
_APART = re.compile(
    rf"(?<![A-Za-z0-9_])(?P<letters>{_LETTERS})\s?(?P<n>[0O](?:\s?{SLIP}){{3}}){_END}"
    rf"|(?<![A-Za-z0-9_])(?P<spaced>{_LETTERS.replace('?', '')})\s?(?P<rest>\d(?:\s?\d){{2,3}}){_END}(?!\s\d)",
    FLAGS,
)
_FIVE = re.compile(rf"(?<![A-Za-z0-9_.])5(?P<letter>[VPRW])(?P<n>0\d{{3}}){_END}", FLAGS)
_CHINESE = re.compile(r"[零〇一二三四五六七八九幺]{3,6}(?!轴)")
_DIGITS = dict(zip("零〇一幺二三四五六七八九", "001123456789", strict=True))
_PULLED = re.compile(r"(?<![\w.])\d(?:\s\d){2,5}(?![\w.])(?!\s\d)", FLAGS)


def mangled_tokens(text: str, context: Context) -> Iterator[Token]:
    """Mangled codes in folded text whose noise is blanked out."""
    for match in _APART.finditer(text):
        prefix = re.sub(r"\s", "", match["letters"] or match["spaced"]).upper()
        digits = digits_of(match["n"] or match["rest"])
        here, free = context.speaks_of("fanuc", *match.span())
        # behind two single letters, "S V 401": on a FANUC, or at a word for alarm
        if digits and (here or (free and (match["n"] or alarm_touches(text, *match.span())))):
            yield _fanuc(match, prefix, digits)
    for match in _FIVE.finditer(text):
        if context.speaks_of("fanuc", *match.span())[1]:
            yield _fanuc(match, f"S{match['letter'].upper()}", match["n"])
    for pattern in (_CHINESE, _PULLED):
        for match in pattern.finditer(text):
            if alarm_touches(text, *match.span()):
                vendor, family = context.at(*match.span())
                digits = "".join(_DIGITS.get(sign, sign) for sign in match[0] if not sign.isspace())
                yield Token(*match.span(), readings_of(vendor, family, digits.lstrip("0") or "0"), bare=True)


def _fanuc(match: re.Match[str], prefix: str, digits: str) -> Token:
    return Token(
        *match.span(),
        readings_of("fanuc", "30i", f"{prefix}{int(digits):04d}"),
        stem=("fanuc", "30i", prefix),
        digits=digits,
    )
