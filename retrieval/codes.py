"""Fault codes: where they stand in a text; the public face of the modules that know how they are written.

`find_codes` works in three passes over folded text (full-width forms, dashes): everything that is a quantity, a date,
a G-code word, a serial number or a model is blanked out; spelled codes (SV0401, F07011, ALARM:1, S01 0018, LinuxCNC
messages) are taken; plain numbers become codes only by an alarm word, a vendor's name or a list that holds one.
The other rooms import from here only: `code_patterns` and `code_messages` hold the tables, `code_context` the vendors
a text names, `code_forms` the spellings of a code, `code_numbers` the pass over plain numbers, `code_text` what they
all share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from retrieval.code_context import Context, vendors_in
from retrieval.code_forms import canonical, fanuc_prefix, form_of, number_of, spellings
from retrieval.code_makers import also_known, maker_tokens
from retrieval.code_mangled import mangled_tokens
from retrieval.code_messages import LINUXCNC_MESSAGES, message_patterns
from retrieval.code_numbers import number_tokens
from retrieval.code_patterns import (
    BLANK,
    DRIVE,
    FANUC,
    FANUC_LIKE_PART,
    FANUC_PREFIXES,
    FLAGS,
    GRBL,
    MELDAS,
    NOISE,
    TNC,
)
from retrieval.code_text import Token, alarm_near, alarm_touches, digits_of, fold, readings_of
from retrieval.records import CodeMention

__all__ = [
    "FANUC_PREFIXES",
    "LINUXCNC_MESSAGES",
    "canonical",
    "find_codes",
    "fold",
    "number_of",
    "spellings",
    "vendors_in",
]


def _message_tokens(text: str, context: Context) -> Iterator[Token]:
    if context.vendors and "linuxcnc" not in context.vendors:
        return
    known = "linuxcnc" in context.vendors
    found = sorted(
        (match.start(), match.end(), order, slug)
        for order, (slug, anywhere, about) in enumerate(message_patterns())
        for match in (about if known else anywhere).finditer(text)
    )
    at = 0
    while at < len(found):  # a message that fits several slugs is one mention with several readings
        last, end = at, found[at][1]
        while last + 1 < len(found) and found[last + 1][0] < end:
            last += 1
            end = max(end, found[last][1])
        slugs = dict.fromkeys(slug for _, slug in sorted(row[2:] for row in found[at : last + 1]))
        yield Token(found[at][0], end, readings_of("linuxcnc", "linuxcnc", *slugs))
        at = last + 1


def _display_tokens(text: str, context: Context) -> Iterator[Token]:
    """Codes that would be blanked out as a serial number or an address: Heidenhain's and Grbl's."""
    for match in TNC.finditer(text) if "heidenhain" in context.vendors else ():
        form = form_of(re.sub(r"\s", "", match[0]), "heidenhain")
        hexadecimal = "-" in match[0] or re.search("[a-f]", match[0], FLAGS)
        if form and hexadecimal and context.speaks_of("heidenhain", *match.span())[0]:
            yield Token(*match.span(), readings_of("heidenhain", "tnc", form))
    for match in GRBL.finditer(text):
        named, family = context.at(*match.span())
        if named in (None, "grbl"):
            kind = "ALARM:" if match["kind"].lower() == "alarm" else "error:"
            yield Token(
                *match.span(),
                readings_of("grbl", family, f"{kind}{int(match['n'])}"),
                stem=("grbl", family, kind),
                digits=match["n"],
            )


def _without_parts(text: str, context: Context) -> str:
    """The text with names of parts blanked out, except where it speaks of a FANUC: there PC104 may be an alarm.

    Elsewhere an alarm word changes nothing: "PC104 board alarm" is about a board.
    """
    return FANUC_LIKE_PART.sub(
        lambda match: match[0] if context.speaks_of("fanuc", *match.span())[0] else BLANK * len(match[0]), text
    )


def _fanuc_tokens(text: str, context: Context) -> Iterator[Token]:
    for match in FANUC.finditer(text):
        digits, sep, start, end = digits_of(match["n"]), match["sep"], match.start(), match.end()
        if digits is None:
            continue
        prefix = fanuc_prefix(match)
        here, free = context.speaks_of("fanuc", start, end)
        # An abbreviation, a space and a round number (EX 1000, SP 8000) is more often a quantity or a product.
        glued = sep in ("", "#")
        likely = (
            glued
            or digits[0] == "0"
            or "/" in match["prefix"]
            or prefix in ("SV", "OT", "OH", "SW")
            or (prefix in ("PS", "SP", "SR", "DS", "BG") and not digits.endswith("00"))
        )
        sure = (len(digits) >= 3 and likely) or (len(digits) >= 2 and here) or len(sep.strip()) > 1
        if not sure and not (free and (alarm_near(text, start, end) if glued else alarm_touches(text, start, end))):
            continue
        readings = readings_of("fanuc", "30i", f"{prefix}{int(digits):04d}")
        if here and context.at(start, end)[1] == "16i":
            readings = readings_of("fanuc", "16i", str(int(digits))) + readings
        yield Token(start, end, readings, stem=("fanuc", "30i", prefix), digits=digits)


def _drive_tokens(text: str, context: Context) -> Iterator[Token]:
    for match in DRIVE.finditer(text):
        digits, letter, start, end = digits_of(match["n"]), match["prefix"].upper(), match.start(), match.end()
        if digits is None or int(digits) < 1_000:  # F0001 is some other make of drive
            continue
        here, free = context.speaks_of("siemens", start, end)
        if letter in "NC":  # program blocks and axis words look the same
            sure = here and len(digits) == 5
        elif len(digits) == 5:  # F10000 and F30000 are feeds
            known = re.match(r"0[1-9]|13|[345]\d", digits) and not digits.endswith("000")
            sure = bool(known) or here
        else:  # F2000 is a feed
            known = letter == "A" and not match["sep"] and re.match("[1-35-8]", digits) and not digits.endswith("00")
            sure = bool(known and free) or here
        if sure or (letter not in "NC" and free and alarm_near(text, start, end)):
            yield Token(
                start,
                end,
                readings_of("siemens", "sinamics", f"{letter}{int(digits):05d}"),
                stem=("siemens", "sinamics", letter),
                digits=digits,
            )


def _meldas_tokens(text: str, context: Context) -> Iterator[Token]:
    for match in MELDAS.finditer(text):
        start, end = match.span()
        here, free = context.speaks_of("mitsubishi", start, end)
        form = form_of(match[0], "mitsubishi", "m700") if free else None
        if form is None:
            continue
        touches = alarm_touches(text, start, end)
        head, _, number = form.partition(" ")
        if number:  # S01 0018: servo, Z70 0101: absolute position, M01 0006: operation; others need the vendor
            usual = len(match[0]) == 8 and (touches or re.match(r"S0[1-9]|S5\d|[ZY]\d|M(?:00|01|50|90)", form))
            fine = bool(here or (match["sep"] == " " and usual))
        else:  # S and Z are also G-code words
            fine = (here or touches) if form[0] in "PY" else (here and form[0] in "SZEL" and touches)
        if fine:
            yield Token(
                start,
                end,
                readings_of("mitsubishi", "m700", form),
                stem=("mitsubishi", "m700", f"{head} " if number else form[0]),
                digits=number or form[1:],
            )


def find_codes(text: str, vendor: str | None = None, family: str | None = None) -> tuple[CodeMention, ...]:
    """Fault codes in a Chinese or English text, in order of appearance, not overlapping. Never raises.

    `vendor` and `family` are ids of families.yaml and say which machine is in front of the technician; a vendor that
    the text names goes before them. Readings of a spelled code are canonical; a bare number's code is its digits
    without leading zeros, to be matched with `number_of`. Offsets count characters of `text`.
    """
    folded, index = fold(text)
    context = Context(folded, vendor, family)
    taken = bytearray(len(folded))
    found: list[Token] = []

    def take(tokens: Iterator[Token]) -> None:
        for token in tokens:
            if not any(taken[token.start : token.end]):
                taken[token.start : token.end] = b"\1" * (token.end - token.start)
                found.append(token)

    take(_message_tokens(folded, context))
    take(_display_tokens(folded, context))
    take(maker_tokens(folded, context, named=True))
    blanked = NOISE.sub(lambda match: BLANK * len(match[0]), context.without_names())
    blanked = _without_parts(blanked, context)
    for find in (_fanuc_tokens, _meldas_tokens, _drive_tokens):
        take(find(blanked, context))
    take(maker_tokens(folded, context, named=False))
    take(mangled_tokens(blanked, context))
    take(number_tokens(blanked, context, tuple(found)))
    mentions = []
    for token in sorted(found, key=lambda token: token.start):
        start, end = index[token.start], index[token.end - 1] + 1
        readings = token.readings
        if not token.bare and context.at(token.start, token.end)[0] is None:
            readings = tuple(dict.fromkeys((*readings, *also_known(folded[token.start : token.end]))))
        mentions.append(CodeMention(raw=text[start:end], start=start, end=end, readings=readings, bare=token.bare))
    return tuple(mentions)
