"""Codes of makers without a grammar of their own: known from a shop's documents, found by how those are written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from retrieval.code_context import Context
from retrieval.code_forms import form_of
from retrieval.code_patterns import FLAGS
from retrieval.code_text import Token, alarm_near, readings_of
from retrieval.records import CodeReading

_known: dict[str, frozenset[str]] = {}
_TELLING = re.compile(r"[A-Z]{2,}\d{3,}", FLAGS)  # needs no alarm word beside it where the base knows it
_TIE = r"[\s._#-]{0,2}"


def use_codes(codes: Mapping[str, Collection[str]]) -> None:
    """Know these canonical codes by vendor id, in this process; plain numbers need no pattern and are left out."""
    lettered = {v: frozenset(c for c in known if not c.isdigit()) for v, known in codes.items()}
    if lettered != _known:
        _known.clear()
        _known.update(lettered)
        _shapes.cache_clear()


@lru_cache(maxsize=64)
def _shapes(vendor: str) -> re.Pattern[str] | None:
    """One pattern for all codes of a maker: their letters as they are, any digits of up to one more than they have."""
    shapes: dict[str, int] = {}
    for code in _known.get(vendor, ()):
        parts = re.split(r"(\d+)", code)
        shape = "".join(f"{part}\0" if not part.isdigit() else "\1" for part in parts if part)
        shapes[shape] = max([shapes.get(shape, 0), *(len(part) for part in parts if part.isdigit())])
    patterns = []
    for shape, longest in sorted(shapes.items(), key=lambda item: -len(item[0])):
        text = re.sub("^PS(?=\0)", "P/?S", re.escape(shape))  # some displays write P/S
        patterns.append(text.replace("\1", rf"\d{{1,{longest + 1}}}").replace("\0", _TIE))
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(patterns)})(?![a-z0-9])", FLAGS) if patterns else None


def maker_tokens(text: str, context: Context, *, named: bool) -> Iterator[Token]:
    """Codes of the makers that the text or the machine names; where not `named`, known codes of others.

    Those of others stand beside an alarm word, alone, or are long enough to be nothing else.
    """
    for vendor, known in _known.items():
        pattern = _shapes(vendor)
        for match in pattern.finditer(text) if pattern else ():
            start, end = match.span()
            here, free = context.speaks_of(vendor, start, end)
            code = form_of(match[0], vendor)
            if code is None or here is not named:
                continue
            alone = match[0] == text.strip() or _TELLING.fullmatch(code)
            if here or (free and code in known and (alone or alarm_near(text, start, end))):
                family = context.at(start, end)[1] if here else None
                yield Token(start, end, readings_of(vendor, family, code))


def also_known(raw: str) -> tuple[CodeReading, ...]:
    """What a code is at the makers that have it, for one whose spelling is another maker's too."""
    found = ((vendor, form_of(raw, vendor)) for vendor in _known)
    return tuple(
        reading for vendor, code in found if code in _known[vendor] for reading in readings_of(vendor, None, code)
    )
