"""The catalogue of vendors and controller families (`families.yaml`): who shares one numbering of alarms."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from retrieval.records import Language


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Any]:
    """vendor id → {title, names, families → {title, models}}, as the file has it."""
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
