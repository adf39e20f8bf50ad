"""Which vendor and controller family each place of a text speaks of."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from retrieval.code_patterns import BLANK, FLAGS
from retrieval.code_text import fold

# A vendor counts for the codes of its own sentence first; "401 on the FANUC" goes before that.
_BREAK = re.compile(r"[。;!?\n]|\.\s")
_ON = re.compile(r"\s?(?:alarm|error|fault)?\s?(?:on|of|from|in|for|at)\s(?:(?:the|an?|our|my)\s)?$", FLAGS)
_GCODE_LEFT = re.compile(r"(?<![a-z0-9])[gmtxyzn]-?\d{1,5}(?:\.\d{0,4})?\s?$", FLAGS)
_GCODE_RIGHT = re.compile(r"\s?(?:g\d|m0?[3-9](?!\d)|x-?\d|f\d|rpm|转)", FLAGS)
_TYPED_OI = re.compile(r"(?<![a-z])o(?=i-?\s?[mtp]?[a-f](?![a-z]))", FLAGS)  # Oi-MF is typed for 0i-MF


@dataclass(frozen=True)
class Named:
    """A vendor or a model as it stands in the folded text."""

    start: int
    end: int
    vendor: str
    family: str | None


def families_of(vendor: str) -> tuple[str, ...]:
    """Ids of a vendor's controller families; none for an unknown vendor."""
    return tuple(_catalogue().get(vendor, {}).get("families", ()))


def _catalogue() -> dict[str, Any]:
    from retrieval.families import catalogue, on_change  # noqa: PLC0415 - yaml would slow the import of this module

    if not _name_patterns.cache_info().currsize:
        on_change(_name_patterns.cache_clear)
    return catalogue()


@cache
def _name_patterns() -> tuple[tuple[re.Pattern[str], str, str | None], ...]:
    """Patterns of all names and models of families.yaml, with vendor and family."""
    patterns: list[tuple[re.Pattern[str], str, str | None]] = []
    for vendor, entry in _catalogue().items():
        named: list[tuple[str | None, list[str]]] = [(None, entry["names"])]
        named += [(family, facts["models"]) for family, facts in entry["families"].items()]
        for family, forms in named:
            # A model that starts with a digit may be glued to a vendor's name: FANUC0i-MF. A number may be glued to a
            # name, fanuc401, not to a model. Chinese names need no boundary.
            head = r"(?:(?<![a-z0-9])|(?=[^\x00-\x7f])|(?<=[a-z][a-z])(?=\d))"
            tail = r"(?:(?<=[^\x00-\x7f])|(?![a-z]))" if family is None else "(?![a-z0-9])"
            if forms:
                patterns.append((re.compile(f"{head}(?:{'|'.join(forms)}){tail}", FLAGS), vendor, family))
    return tuple(patterns)


def names_in(folded: str) -> list[Named]:
    """Every vendor and model in the text, in order.

    A bare name inside a longer name of the same vendor is left out, and so is whatever stands inside another's model.
    """
    text = _TYPED_OI.sub("0", folded)
    found: list[Named] = []
    for pattern, vendor, family in _name_patterns():
        for match in pattern.finditer(text):
            start, end = match.span()
            if re.fullmatch(r"[a-z]\d+", match[0], FLAGS) and (
                _GCODE_LEFT.search(text[max(0, start - 10) : start]) or _GCODE_RIGHT.match(text, end)
            ):
                continue  # S120 and M80 between G-code words are a speed and a function
            found.append(Named(start, end, vendor, family))
    found.sort(key=lambda name: (name.start, name.family is None, -name.end))
    kept: list[Named] = []
    for name in found:
        last = kept[-1] if kept else None
        bare = last and name.start < last.end and name.vendor == last.vendor and name.family is None
        inner = last and name.end <= last.end and (name.start, name.end) != (last.start, last.end)
        if not (bare or inner):
            kept.append(name)
    return kept


_NOT = re.compile(
    r"(?:(?<![a-z])(?:(?:not|no|isn'?t|ain'?t)\s(?:(?:an?|the|on|from)\s){0,2}|non[- ])|(?:不是|并非|非)\s?)$", FLAGS
)


def _denied(folded: str, name: Named) -> bool:
    """Whether the text says that it is not that one: "not a FANUC"."""
    return _NOT.search(folded[max(0, name.start - 16) : name.start]) is not None


def vendors_in(text: str) -> tuple[tuple[str, str | None], ...]:
    """Vendors named in the text, in order of appearance, each with its family where a model of it is named.

    One item per vendor, or one per family where several families of a vendor are named.
    """
    folded = fold(text)[0]
    named = [name for name in names_in(folded) if not _denied(folded, name)]
    with_family = {name.vendor for name in named if name.family}
    first: dict[str, int] = {}
    order: dict[tuple[str, str | None], int] = {}
    for name in named:
        earliest = first.setdefault(name.vendor, name.start)
        if name.family or name.vendor not in with_family:
            begun = any(vendor == name.vendor for vendor, _ in order)
            order.setdefault((name.vendor, name.family), name.start if begun else earliest)
    return tuple(sorted(order, key=lambda item: order[item]))


class Context:
    """Which vendor and family a place in the folded text speaks of."""

    def __init__(self, folded: str, vendor: str | None, family: str | None) -> None:
        self.text = folded
        self.vendor = vendor.lower() if vendor else None
        self.family = family if vendor else None
        self.spans = names_in(folded)
        # Where the machine is known, M70 or S120 alone does not make it another one.
        self.named = [
            name
            for name in self.spans
            if not _denied(folded, name)
            and (not self.vendor or name.vendor == self.vendor or name.family is None or name.end - name.start > 4)
        ]
        # A machine that the text says it is not cannot be the one in front of the technician either.
        if self.vendor in {name.vendor for name in self.spans if _denied(folded, name)} - {
            n.vendor for n in self.named
        }:
            self.vendor = self.family = None
        self.starts = [name.start for name in self.named]
        self.ends = sorted((name.end, i) for i, name in enumerate(self.named))
        self.breaks = [match.start() for match in _BREAK.finditer(folded)]
        self.families: dict[str, set[str]] = {}
        for name in self.named:
            self.families.setdefault(name.vendor, set()).update({name.family} if name.family else ())
        self.vendors = set(self.families) | ({self.vendor} if self.vendor else set())

    def at(self, start: int, end: int) -> tuple[str | None, str | None]:
        """Vendor and family for a code at [start, end): named before it in its sentence, else after it, else given."""
        after = bisect_left(self.starts, end)
        before = bisect_left(self.starts, start) - 1
        ahead = self.named[after] if after < len(self.named) else None
        behind = self.named[before] if before >= 0 else None
        if ahead and ahead.start - end < 20 and _ON.match(self.text[end : ahead.start]):  # "401 on the FANUC"
            return self._settled(ahead)
        for name in (behind, ahead):
            if name and self._sentence(name.start) == self._sentence(start):
                return self._settled(name)
        if name := behind or (ahead if len(self.families) == 1 else None):
            return self._settled(name)
        return self.vendor, self.family

    def speaks_of(self, vendor: str, start: int, end: int) -> tuple[bool, bool]:
        """Whether the place speaks of that vendor, and whether it at least speaks of no other one."""
        here = self.at(start, end)[0]
        return here == vendor, here in (None, vendor)

    def ending_near(self, position: int) -> Iterator[Named]:
        """Names that end at most 24 characters before `position`, the nearest first."""
        last = bisect_left(self.ends, (position + 1, 0))
        for end, which in reversed(self.ends[max(0, last - 6) : last]):
            if position - end <= 24:
                yield self.named[which]

    def without_names(self) -> str:
        """The text with every vendor and model blanked out."""
        out: list[str] = []
        at = 0
        for name in self.spans:
            if name.end > at:
                out += [self.text[at : name.start], BLANK * (name.end - max(at, name.start))]
                at = name.end
        return "".join([*out, self.text[at:]])

    def _sentence(self, position: int) -> int:
        return bisect_right(self.breaks, position)

    def _settled(self, name: Named) -> tuple[str, str | None]:
        known = self.families[name.vendor]
        only = next(iter(known)) if len(known) == 1 else None
        given = self.family if name.vendor == self.vendor and not known else None
        return name.vendor, name.family or only or given
