"""The catalogue of vendors and controller families: who shares one numbering of alarms.

`families.yaml` holds those the product knows; `use_makers` adds those that a shop's own documents brought.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import yaml

from retrieval.records import Language


class Maker(NamedTuple):
    """A maker that the catalogue lacks: vendor id, family id, the vendor's name as people write it.

    `spoken`: its name in a text says whose code stands there. It does not where the base has no code of it: a "Kessler
    spindle" stands on a machine with some other control.
    """

    vendor: str
    family: str
    title: str
    spoken: bool = True


_makers: tuple[Maker, ...] = ()


def use_makers(makers: Iterable[Maker]) -> None:
    """Know these makers beside those of `families.yaml`, in this process.

    They come from documents of the data home in use. A vendor may come with several families; a family id equal to the
    vendor's stands for "any of its controllers".
    """
    global _makers  # noqa: PLW0603 - the catalogue is one per process, like the file it comes from
    if (wanted := tuple(makers)) != _makers:
        _makers = wanted
        catalogue.cache_clear()
        for forget in _forgetters:
            forget()


def makers() -> tuple[Maker, ...]:
    """What `use_makers` was last given, for a process that starts another."""
    return _makers


_forgetters: list[Any] = []


def on_change(forget: Any) -> None:
    """Call `forget` when the catalogue changes: for caches made from it."""
    _forgetters.append(forget)


def slug(name: str) -> str:
    """Id of a vendor or family from its name in free text: lower case, letters, digits and hyphens; Chinese stays."""
    return re.sub(r"[^0-9a-z\u3400-\u9fff]+", "-", name.strip().lower()).strip("-")


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Any]:
    """vendor id → {title, names, families → {title, models}}: the file's, then those of `use_makers`."""
    known = dict(_file())
    for maker in _makers:
        title = maker.title
        entry = known.get(maker.vendor)
        if entry is None:
            names = [re.escape(title.lower())] if maker.spoken and not _trade_word(title) else []
            entry = {"title": {"en": title, "zh": title}, "names": names, "families": {}, "shop": True}
        families = dict(entry["families"])
        if maker.family not in families:
            shown = title if maker.family == maker.vendor else f"{entry['title']['en']} {maker.family}"
            families[maker.family] = {"title": {"en": shown, "zh": shown}, "models": _models(maker, entry["names"])}
        known[maker.vendor] = {**entry, "families": families}
    return known


def _models(maker: Maker, names: list[str]) -> list[str]:
    """How people write a family that the catalogue lacks: behind the maker's name, and alone where that is a model.

    "25" and "spindle" alone are no model of anybody.
    """
    if maker.family == maker.vendor or not maker.spoken:
        return []
    written = re.escape(maker.family).replace("\\-", r"[\s-]?")
    behind = [f"(?:{'|'.join(names)})[\\s_-]{{0,2}}{written}"] if names else []
    return [*behind, *([written] if _MODEL.fullmatch(maker.family) else [])]


_MODEL = re.compile(r"(?=.*[a-z])(?=.*\d)[a-z0-9-]{4,}")


_COMMON = frozenset(
    "a the cnc machine machines lathe mill router tool control controller controls alarm alarms error fault motor plc"
    " manual maintenance shop system systems new old unknown other none"
    " 机床 数控 系统 车床 铣床 加工中心 报警 电机 手册".split()
)


def _trade_word(name: str) -> bool:
    """True for a maker's name that a question may hold without meaning a maker: "Spindle", "CNC lathe"."""
    from retrieval.components import is_part  # noqa: PLC0415 - its patterns are needed for a shop's makers only

    return all(word in _COMMON or is_part(word) for word in name.lower().split())


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    text = (resources.files("retrieval") / "families.yaml").read_text(encoding="utf-8")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe loaders
    return loaded


def vendor_title(vendor: str, language: Language) -> str:
    """Name of a vendor for a person; the id itself where the catalogue lacks it."""
    entry = catalogue().get(vendor)
    return str(entry["title"][language]) if entry else vendor


def family_title(vendor: str, family: str, language: Language) -> str:
    """Name of a controller family for a person; the ids where the catalogue lacks them."""
    entry = catalogue().get(vendor, {}).get("families", {}).get(family)
    return str(entry["title"][language]) if entry else f"{vendor} {family}"


def on_one_machine(vendor: str, family: str, other: str) -> bool:
    """True if a machine whose control is of `family` also shows codes of `other`: the same, or its drives."""
    entry = catalogue().get(vendor, {}).get("families", {}).get(family, {})
    return family == other or other in entry.get("drives", ())


def resolve_vendor(name: str) -> tuple[str, str | None]:
    """(vendor, family or None) from an id, `vendor/family`, or a name as people write it.

    Raises:
        ValueError: not in the catalogue; the message lists the vendors that are.
    """
    wanted = name.strip().lower()
    vendor, _, family = wanted.partition("/")
    known = catalogue()
    if vendor in known and (not family or family in known[vendor]["families"]):
        return vendor, family or None
    for vendor_id, entry in known.items():
        called = {str(entry["title"]["en"]).lower(), vendor_id} if entry.get("shop") else set()
        if wanted in called or slug(wanted) in called:
            return vendor_id, None
        if wanted in {str(n).lower() for n in entry["names"]} or wanted in entry["families"]:
            return vendor_id, wanted if wanted in entry["families"] else None
    families = ", ".join(f"{v} ({'/'.join(e['families'])})" for v, e in known.items() if v != "generic")
    raise ValueError(f"unknown vendor {name!r}; known: {families}")
