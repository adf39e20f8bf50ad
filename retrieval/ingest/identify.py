"""Whose controller a document speaks of: from its name, its title and its first pages, never from codes alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from retrieval.code_context import Named, families_of, names_in
from retrieval.codes import fold
from retrieval.families import catalogue, slug, vendor_title
from retrieval.ingest.document import Block
from retrieval.ingest.headers import fits

# How much a mention counts by where it stands; of one block each controller counts once.
_WEIGHTS = {"name": 16, "title": 16, "heading": 6, "text": 2, "table": 1}
_LEAST = 4  # one mention in a text is too little
_AHEAD = 2.0  # times the weight of the next controller
_LONGEST_TEXT = 2000  # characters of a block that are looked at
_MOST_TEXT = 200_000
_SHORT_MODEL = 4  # characters: M80, S120 or NGC alone may be something else
_CODES = 200


@dataclass(frozen=True)
class Identity:
    """What a document is about. `vendor` and `family` are ids of the catalogue, None where that is not clear.

    `confidence` in [0, 1] is the share of the mentions that speak for the vendor. `evidence` says where they stand.
    `candidates` are the controllers that are named, the likeliest first, as `vendor` or `vendor/family`.
    """

    vendor: str | None
    family: str | None
    confidence: float
    evidence: str
    candidates: tuple[str, ...] = ()


def identify(title: str, first_blocks: Sequence[Block], name: str) -> Identity:
    """Find out whose controller a document speaks of.

    Args:
        title: the title that the file states, may be empty.
        first_blocks: the blocks of its first pages.
        name: of the file; title and name count more than the text.
    """
    vendors: Counter[str] = Counter()
    families: Counter[tuple[str, str]] = Counter()
    places: dict[str, Counter[str]] = {}
    short: Counter[tuple[str, str]] = Counter()
    for kind, text in _texts(title, first_blocks, name):
        named = names_in(fold(text)[0])
        weight = _WEIGHTS[kind]
        sure = [n for n in named if _is_sure(n)]
        unsure = {(n.vendor, n.family) for n in named if n.family and not _is_sure(n)}
        for vendor in {n.vendor for n in sure}:
            vendors[vendor] += weight
            places.setdefault(vendor, Counter())[kind] += 1
        for vendor, family in {(n.vendor, n.family) for n in sure if n.family}:
            families[vendor, family or ""] += weight
        for vendor, family in unsure:
            short[vendor, family or ""] += weight
    for (vendor, family), weight in short.items():
        if vendor in vendors:  # M80 is a Mitsubishi where Mitsubishi is named
            families[vendor, family] += weight
    vendors.pop("generic", None)
    if not vendors:
        return Identity(None, None, 0.0, "no controller is named")
    ranked = vendors.most_common()
    candidates = tuple(name for vendor, _ in ranked for name in _with_families(vendor, families))
    vendor, weight = ranked[0]
    second = ranked[1][1] if len(ranked) > 1 else 0.0
    if (
        second
        and weight < _AHEAD * second
        and _confirmed(first_blocks, vendor)
        and not _confirmed(first_blocks, ranked[1][0])
    ):
        second /= 2  # its codes are written as this vendor writes them
    evidence = _evidence(vendor, places[vendor])
    confidence = round(weight / sum(vendors.values()), 3)
    if weight < _LEAST or weight < _AHEAD * second:
        return Identity(None, None, confidence, f"not clear: {evidence}", candidates)
    return Identity(vendor, _family(vendor, families), confidence, evidence, candidates)


# 980TDi, 25i, HNC-848, 22MA; a number alone counts in a title or a file's name only, and no year and no version does
_MODEL = r"(?:[a-z]{1,4}-?)?\d{1,4}[a-z]{0,4}(?:-[a-z0-9]{1,4})?(?![a-z0-9.])"
_NO_MODEL = re.compile(r"(?:v|ver|rev|r|p|page|ch|chapter|al|alm|no)-?\d+|(?:19|20)\d\d|\d{1,2}", re.IGNORECASE)
_OPENING = 20  # blocks of the first page or two


def model_of(vendor: str, title: str, first_blocks: Sequence[Block], name: str) -> str | None:
    """Family id of the one model that a document of a maker outside the catalogue states behind the maker's name.

    In its title, else the file's name, else its opening; None where the first of them that states any states several.
    """
    called = catalogue()[vendor]["names"] or [re.escape(vendor_title(vendor, "en").lower())]
    pattern = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(called)})[\s_-]{{0,2}}(?:cnc[\s_-])?({_MODEL})", re.IGNORECASE)
    opening = "\n".join(block.text[:200] for block in first_blocks[:_OPENING] if block.text)
    for place, lettered in ((title, False), (re.sub(r"[_/\\]+", " ", PurePath(name).stem), False), (opening, True)):
        found = {slug(match[1]) for match in pattern.finditer(fold(place)[0]) if not _NO_MODEL.fullmatch(match[1])}
        if lettered:
            found = {model for model in found if re.search("[a-z]", model)}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def _texts(title: str, blocks: Sequence[Block], name: str) -> Iterator[tuple[str, str]]:
    yield "name", re.sub(r"[_/\\]+", " ", name)
    yield "title", title
    budget = _MOST_TEXT
    for block in blocks:
        text = block.text or " ".join(cell for row in block.rows[:20] for cell in row.cells[:12] if len(cell) < 200)
        text = text[: min(_LONGEST_TEXT, budget)]
        budget -= len(text)
        if text:
            yield block.kind, text
        if budget <= 0:
            return


def _is_sure(named: Named) -> bool:
    return named.family is None or named.end - named.start > _SHORT_MODEL


def _with_families(vendor: str, families: Counter[tuple[str, str]]) -> list[str]:
    own = [family for (v, family), _ in families.most_common() if v == vendor]
    return [f"{vendor}/{family}" for family in own] or [vendor]


def _family(vendor: str, families: Counter[tuple[str, str]]) -> str | None:
    own = [(family, weight) for (v, family), weight in families.most_common() if v == vendor]
    if not own or (len(own) > 1 and own[0][1] < _AHEAD * own[1][1]):
        return only_family(vendor)
    return own[0][0]


def only_family(vendor: str) -> str | None:
    """The family of a vendor that has one, or the one that stands for any of its controllers; else None."""
    known = families_of(vendor)
    return known[0] if len(known) == 1 else vendor if vendor in known else None


def _confirmed(blocks: Sequence[Block], vendor: str) -> bool:
    """Whether most codes with letters at the start of rows and lines are codes of the vendor."""
    cells = [row.cells[0] for block in blocks for row in block.rows[:_CODES] if row.cells]
    cells += [block.text.split(None, 1)[0] for block in blocks if block.text.strip()]
    codes = [cell for cell in cells if re.fullmatch(r"[A-Za-z]{1,3}\s?-?\d{2,5}(?: [0-9A-F]{4})?", cell.strip())][
        :_CODES
    ]
    return len(codes) >= 3 and sum(fits(code, vendor) for code in codes) > 0.7 * len(codes)


def _evidence(vendor: str, places: Counter[str]) -> str:
    words = {"name": "the file's name", "title": "the title", "heading": "headings", "text": "texts", "table": "tables"}
    return f"{vendor_title(vendor, 'en')} is named in " + ", ".join(
        words[kind] if kind in ("name", "title") else f"{count} {words[kind]}" for kind, count in places.most_common()
    )
