"""A machine by the name that people call it: "lathe 3", "3号车床"."""

from __future__ import annotations

import re
import unicodedata

_KINDS = r"lathe|mill|machine|router|grinder|borer|vmc|hmc|cell|center|centre"
_ZH_KINDS = r"车床|铣床|磨床|镗床|加工中心|雕刻机|机床|数控机|机台|机"
_NAMED = re.compile(
    rf"\b(?:the\s+)?((?:{_KINDS})\s*(?:no\.?\s*|number\s*|#\s*)?\d{{1,3}})\b(?!\s*(?:rpm|mm|%|days?|hours?|years?))"
    rf"|(\d{{1,3}}\s*(?:号|#)\s*(?:{_ZH_KINDS}))|((?:车床|铣床|磨床|镗床|加工中心|雕刻机)\s*\d{{1,3}}(?:号)?)(?!\d)",
    re.IGNORECASE,
)


def machine_in(text: str) -> str:
    """The machine that a text names, as it stands there; empty for none, or for several."""
    folded = unicodedata.normalize("NFKC", text)
    found = {" ".join(next(g for g in match.groups() if g).split()) for match in _NAMED.finditer(folded)}
    return found.pop() if len({name.lower() for name in found}) == 1 else ""
