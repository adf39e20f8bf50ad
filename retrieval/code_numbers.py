"""Plain numbers in a text: which are codes, by an alarm word, a vendor's name or a list that holds one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from retrieval.code_context import Context
from retrieval.code_forms import form_of
from retrieval.code_patterns import (
    AFTER,
    BEFORE,
    BEGINS,
    CLAUSE_ENDS,
    GLUE,
    LINK,
    LISTED,
    MODEL_NUMBERS,
    NAMES_ANOTHER,
    NUMBER,
    ON_MACHINE,
    ORDINAL,
    REPORTS,
    SHOWS,
    SO_IT_IS,
    YEAR,
)
from retrieval.code_text import Token, alarm_near, digits_of, readings_of


@dataclass(frozen=True)
class _Number:
    """A plain number in the text. `mark` is why it is a code ("" for none), `begins` where that word begins."""

    start: int
    end: int
    digits: str
    decimal: str
    mark: str
    begins: int


def _mark_by_word(text: str, match: re.Match[str], vendor: str | None) -> tuple[str, int]:
    """The alarm word that marks a number, as "alarm", "error" or "either", and where code and word begin."""
    start, size = match.start("n"), len(match["n"] + (match["decimal"] or ""))
    window = text[max(0, start - 24) : start]
    found = BEFORE.search(window)
    if found and not (size > 3 and not found["alarm"] and found[0].lower().startswith("al")):  # AL 6061 is an alloy
        return _kind(found), start - len(window) + found.start()
    if found := AFTER.match(text, match.end()):
        word = found[0].rstrip().lower()
        # "100 alarms" counts, "103 and 105 alarms" names
        counts = word.endswith("s") and not LISTED.search(window)
        # "op 20 alarm 401": the word belongs to the number after it
        counts = counts or (word.isascii() and bool(NAMES_ANOTHER.match(text, found.end())))
        if found["ordinal"] or (not counts and (size >= 2 or vendor == "grbl")):
            return _kind(found), start
    return "", start


def _kind(found: re.Match[str]) -> str:
    return "error" if found["error"] else "alarm" if found["alarm"] else "either"


def _mark(text: str, match: re.Match[str], context: Context) -> tuple[str, int]:
    """Why a number is a code: alarm, error, either, vendor or "" for not at all; and where the code begins."""
    start, end, size = match.start("n"), match.end(), len(match["n"])
    vendor = context.at(start, end)[0]
    if match["decimal"] and vendor != "haas":
        return "", start
    mark = _mark_by_word(text, match, vendor)
    if mark[0]:
        return mark
    window = text[max(0, start - 24) : start]
    year = YEAR.fullmatch(match["n"]) and not (vendor == "siemens" and match["n"] in ("2000", "2001"))
    numbered = vendor not in (None, "grbl", "linuxcnc", "generic")  # of a vendor whose codes are numbers
    ordered = size >= 3 and ORDINAL.search(window) and re.match(r"\s?[号號]", text[end : end + 2])
    shown = (
        size >= 3 and not year and SHOWS.search(window) and (numbered or alarm_near(text, start, end, 16, r"[。;!?\n]"))
    )
    told = bool(ON_MACHINE.match(text, end) and BEGINS.search(window)) or bool(
        SO_IT_IS.search(window) and CLAUSE_ENDS.match(text, end)
    )
    # 930 now may be a time, 500 now a count: only what is neither round nor could stand on a clock
    loose = size == 3 and int(digits_of(match["n"]) or 0) % 50 != 0
    placed = loose and numbered and told
    if ordered or shown or placed or (size >= 2 and REPORTS.search(window)):
        return "either", start
    if not numbered or match["n"] in MODEL_NUMBERS.get(vendor or "", ()):
        return "", start
    leads = start <= 40 and not re.search(r"\w", text[:start])
    alone = leads and not re.search(r"\w", text[end : end + 40]) and len(text) - end <= 40
    if leads and len(match["decimal"] or "") == len(".254"):  # Haas: the axis, and the alarm in three digits
        return "vendor", start
    # A number glued to its vendor, one that opens the text, or five and more digits on a SINUMERIK need no other word.
    if size >= (4 if vendor == "siemens" else 3) and not year:
        glued = any(GLUE.match(text[name.end : start]) for name in context.ending_near(start))
        return ("vendor" if leads or glued or (vendor == "siemens" and size >= 5) else ""), start
    return ("vendor" if alone else ""), start


def _chains(text: str, context: Context, spelled: Iterable[Token]) -> Iterator[list[Token | _Number]]:
    """Codes and plain numbers, those of one list or range together: SV401、436; 4500-4509."""
    members: list[Token | _Number] = [token for token in spelled if token.stem]
    taken = {position for token in spelled for position in range(token.start, token.end)}
    for match in NUMBER.finditer(text):
        digits = digits_of(match["n"])
        if digits and match.start("n") not in taken:
            mark, begins = _mark(text, match, context)
            members.append(_Number(match.start("n"), match.end(), digits, match["decimal"] or "", mark, begins))
    members.sort(key=lambda member: member.start)
    chain: list[Token | _Number] = []
    for member in members:
        gap = member.start - chain[-1].end if chain else 0
        if chain and not (0 < gap <= 10 and _linked(text, chain[-1], member)):
            yield chain
            chain = []
        chain.append(member)
    if chain:
        yield chain


def _linked(text: str, left: Token | _Number, right: Token | _Number) -> bool:
    if LINK.fullmatch(text, left.end, right.start):
        return True
    between = text[left.end : right.start]
    if between.strip(" \r") == "\n" and len(right.digits) >= 3:  # one code a line
        return re.match(r"[ \r]*(?:\n|$)", text[right.end : right.end + 8]) is not None
    # "报警 700013 700014": a space alone links numbers of one length
    return between == " " and len(left.digits) == len(right.digits) >= 3


def number_tokens(text: str, context: Context, spelled: Iterable[Token]) -> Iterator[Token]:
    """Plain numbers that are codes; what marks one member of a list marks the list."""
    for chain in _chains(text, context, spelled):
        marks = [member for member in chain if isinstance(member, _Number) and member.mark]
        marked = min(marks, key=lambda member: member.mark == "vendor", default=None)
        head: Token | None = None
        for member in chain:
            if isinstance(member, Token):
                head = member
            elif head and not member.mark:
                yield from _continued(head, member)
            elif member.mark:
                yield _number_token(member, member.mark, context)
            elif marked and _alike(member, marked):
                yield _number_token(member, marked.mark, context)


def _alike(number: _Number, marked: _Number) -> bool:
    """Whether an unmarked number of a list is as long as the marked one says: 2、401号报警 is one code."""
    short = len(marked.digits) - (marked.mark != "vendor")
    return len(number.digits + number.decimal) >= short and not YEAR.fullmatch(number.digits)


def _continued(head: Token, number: _Number) -> Iterator[Token]:
    """A number that carries on a list begun by a spelled code: SV401、436."""
    if head.stem is None:
        return
    vendor, family, letters = head.stem
    if number.decimal or len(number.digits) < max(1 if vendor == "grbl" else 2, len(head.digits.lstrip("0")) - 1):
        return
    if code := form_of(f"{letters}{number.digits}", vendor, family):
        yield Token(number.start, number.end, readings_of(vendor, family, code))


def _number_token(number: _Number, mark: str, context: Context) -> Token:
    vendor, family = context.at(number.start, number.end)
    digits = number.digits.lstrip("0") or "0"
    if vendor == "grbl" and len(digits) <= 3:
        kinds = {"alarm": ("ALARM",), "error": ("error",)}.get(mark, ("ALARM", "error"))
        readings = readings_of(vendor, family, *(f"{kind}:{digits}" for kind in kinds))
        return Token(number.begins, number.end, readings, bare=len(kinds) > 1)
    if vendor in (None, "siemens") and len(digits) == 6 and digits[0] == "2":
        readings = readings_of(
            "siemens", "sinamics", f"F{digits[1:]}", f"A{digits[1:]}"
        )  # F or A: the display does not tell
    elif vendor == "siemens" and family == "sinamics" and 4 <= len(digits) <= 5:
        readings = readings_of("siemens", "sinamics", f"F{digits:0>5}", f"A{digits:0>5}")
    else:
        readings = ()
    if vendor is None or not readings:
        readings += readings_of(vendor, family, digits + number.decimal)
    return Token(number.start, number.end, readings, bare=True)
