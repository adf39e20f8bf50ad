"""The catalogue of vendors and controller families: who shares one numbering of alarms.

`families.yaml` holds those the product knows; `use_makers` adds those that a shop's own documents brought.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from retrieval.records import Language

_makers: tuple[tuple[str, str, str], ...] = ()


def use_makers(makers: Sequence[tuple[str, str, str]]) -> None:
    """Know these (vendor id, family id, title as people write it) beside those of `families.yaml`, in this process.

    They come from documents of the data home in use. A vendor may come with several families; a family id equal to the
    vendor's stands for "any of its controllers".
    """
    global _makers  # noqa: PLW0603 - the catalogue is one per process, like the file it comes from
    if tuple(makers) != _makers:
        _makers = tuple(makers)
        catalogue.cache_clear()
        for forget in _forgetters:
            forget()


def makers() -> tuple[tuple[str, str, str], ...]:
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
    for vendor, family, title in _makers:
        entry = known.get(vendor)
        if entry is None:
            entry = {"title": {"en": title, "zh": title}, "names": [re.escape(title.lower())], "families": {}}
        families = dict(entry["families"])
        if family not in families:
            shown = title if family == vendor else f"{entry['title']['en']} {family}"
            models = [] if family == vendor else [re.escape(family).replace("\\-", r"[\s-]?")]
            families[family] = {"title": {"en": shown, "zh": shown}, "models": models}
        known[vendor] = {**entry, "families": families}
    return known


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
        if wanted in {str(n).lower() for n in entry["names"]} or wanted in entry["families"]:
            return vendor_id, wanted if wanted in entry["families"] else None
    families = ", ".join(f"{v} ({'/'.join(e['families'])})" for v, e in known.items() if v != "generic")
    raise ValueError(f"unknown vendor {name!r}; known: {families}")
