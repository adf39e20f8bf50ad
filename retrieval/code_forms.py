"""One spelling for each code: its canonical form, its number, and the ways people write it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from retrieval.code_context import families_of
from retrieval.code_messages import LINUXCNC_MESSAGES, message_patterns
from retrieval.code_patterns import FANUC_PREFIXES, FLAGS, HEX, PREFIX, SLIP, UNSLIP
from retrieval.code_text import digits_of, fold

_DRESS = re.compile(
    r"(?<![a-z])(?:alarms?|alm|al(?=[-. ]?\d)|error|fault|no\.?|number|code)(?![a-z])"
    r"|报警|警报|错误|故障|第|号|代码|[:#]",
    FLAGS,
)
_VALID = {
    "fanuc": f"a prefix of {' '.join(FANUC_PREFIXES)} and up to 4 digits (SV0401); family 16i: up to 4 digits (401)",
    "siemens": "sinumerik: 4 to 6 digits (25050); sinamics: F, A, N or C and 4 or 5 digits (F07011), or 2 and 5 digits"
    " (207011)",
    "haas": "up to 5 digits (103), or a number with a point (9.917)",
    "mitsubishi": "a letter with 2 digits (Y03), those and 4 hex digits (S01 0018), or P and 1 to 4 digits (P234)",
    "heidenhain": "3 and 4 hex digits (230-02AC), or up to 6 digits",
    "grbl": "ALARM:n or error:n",
    "linuxcnc": f"one of {' '.join(row[0] for row in LINUXCNC_MESSAGES)}, or the message itself",
}


def _fanuc(code: str, family: str | None) -> str | None:
    match = re.fullmatch(rf"(?:{PREFIX})?[\s.#:-]{{0,3}}(?P<n>{SLIP}{{1,4}})", code, FLAGS)
    digits = digits_of(match["n"]) if match else None
    if not match or digits is None:
        return None
    if family == "16i" or not match["prefix"]:  # these controls show a number only
        return None if family == "30i" else str(int(digits))
    return f"{fanuc_prefix(match)}{int(digits):04d}"


def fanuc_prefix(match: re.Match[str]) -> str:
    """The prefix that `PREFIX` matched, as the control shows it: P/S is PS, 0T is OT."""
    return match["prefix"].upper().replace("/", "").replace("0", "O")


def _siemens(code: str, family: str | None) -> str | None:
    match = re.fullmatch(rf"(?P<letter>[FANC]?)(?P<n>{SLIP}{{1,6}})", re.sub(r"[\s-]", "", code), FLAGS)
    digits = digits_of(match["n"]) if match else None
    if not match or digits is None:
        return None
    number = int(digits)
    if match["letter"]:
        return f"{match['letter'].upper()}{number:05d}" if len(digits) in (4, 5) and family != "sinumerik" else None
    if family != "sinumerik" and 200_000 <= number < 300_000:  # F or A: the display does not tell
        return f"F{number - 200_000:05d}"
    if family == "sinamics":
        return f"F{number:05d}" if 1_000 <= number < 100_000 else None
    return str(number) if number >= 1_000 else None


def _haas(code: str, _family: str | None) -> str | None:
    match = re.fullmatch(rf"(?P<n>{SLIP}{{1,5}})(?P<decimal>\.\d{{1,4}})?", code, FLAGS)
    digits = digits_of(match["n"]) if match else None
    return f"{int(digits)}{match['decimal'] or ''}" if match and digits else None


def _mitsubishi(code: str, family: str | None) -> str | None:
    if match := re.fullmatch(rf"P\s?(\d{SLIP}{{0,3}})", code, FLAGS):
        return f"P{int(match[1].translate(UNSLIP))}"
    match = re.fullmatch(rf"([A-OQ-Z])({SLIP}{{2}})(?:[\s-]?({HEX}{{1,4}}))?", code, FLAGS)
    if match and digits_of(match[2]) and (not match[3] or any(char.isdigit() for char in match[3])):
        number = f" {match[3].translate(UNSLIP).upper():0>4}" if match[3] else ""
        return f"{match[1].upper()}{match[2].translate(UNSLIP)}{number}"
    return str(int(code)) if family is None and re.fullmatch(r"\d{1,4}", code, FLAGS) else None


def _heidenhain(code: str, _family: str | None) -> str | None:
    if match := re.fullmatch(r"([0-9A-F]{3})-?([0-9A-F]{4})", code, FLAGS):
        return f"{match[1]}-{match[2]}".upper() if re.search(r"\d", code) else None
    return str(int(code)) if re.fullmatch(r"\d{1,6}", code, FLAGS) else None


def _grbl(code: str, _family: str | None) -> str | None:
    match = re.fullmatch(
        rf"(?:(?P<alarm>alarm|报警|警报)|error|err|错误)[\s:#-]{{0,3}}(?P<n>\d{SLIP}{{0,2}})", code, FLAGS
    )
    return f"{'ALARM' if match['alarm'] else 'error'}:{int(match['n'].translate(UNSLIP))}" if match else None


def _linuxcnc(code: str, _family: str | None) -> str | None:
    slug = re.sub(r"[\s_]", "-", code.upper())
    if any(slug == row[0] for row in LINUXCNC_MESSAGES):
        return slug
    return next((slug for slug, _, known in message_patterns() if known.search(code)), None)


_FORMS: dict[str, Callable[[str, str | None], str | None]] = {
    "fanuc": _fanuc,
    "siemens": _siemens,
    "haas": _haas,
    "mitsubishi": _mitsubishi,
    "heidenhain": _heidenhain,
    "grbl": _grbl,
    "linuxcnc": _linuxcnc,
}


def without_grammar(vendors: Iterable[str]) -> list[str]:
    """Those of the vendors whose codes are known from documents only."""
    return sorted(set(vendors) - _FORMS.keys())


def form_of(code: str, vendor: str, family: str | None = None) -> str | None:
    """Like `canonical`, but None for a spelling that the vendor does not have."""
    plain = fold(code)[0].strip()
    if vendor not in ("grbl", "linuxcnc"):
        plain = _DRESS.sub(" ", plain).strip(" -") if vendor in _FORMS else plain
    return _FORMS.get(vendor, _any_maker)(plain, family)


def _any_maker(code: str, _family: str | None) -> str | None:
    """Codes of makers without a grammar: upper case, nothing between a letter and its number, 'E-104' is 'E104'."""
    plain = re.sub(r"^(?:alarm|报警|号|no\.?|#)\s*[:#]?\s*(?=\d)", "", code, flags=FLAGS)
    plain = re.sub(r"(?<![A-Z0-9])P/S(?=[\s._#-]{0,2}\d)", "PS", plain, flags=FLAGS)
    tight = re.sub(r"(?<=[A-Z])[\s._#-]{1,2}(?=\d)", "", " ".join(plain.upper().split()), flags=FLAGS)
    if not re.fullmatch(r"[A-Z0-9][A-Z0-9 ._/:#-]{0,19}", tight, FLAGS) or not re.search(r"\d", tight):
        return None
    return str(int(tight)) if tight.isdigit() else tight


def canonical(code: str, vendor: str, family: str | None = None) -> str:
    """The one spelling of a code: fanuc 'sv-401' is 'SV0401', siemens '230002' 'F30002', grbl 'alarm 1' 'ALARM:1'.

    Without a family, fanuc and mitsubishi numbers stay numbers; within 30i and m700 a number alone is no code. A maker
    that the catalogue knows by name only has no grammar: any short code with a digit is taken, 'e-104' is 'E104'.

    Raises:
        ValueError: an unknown vendor or family, or a spelling that it does not have; says what would be valid.
    """
    if vendor not in _FORMS and (vendor == "generic" or not families_of(vendor)):
        raise ValueError(f"no codes known for vendor {vendor!r}; valid: {', '.join(_FORMS)}")
    if family is not None and family not in (known := families_of(vendor)):
        raise ValueError(f"{vendor} has no family {family!r}; valid: {', '.join(known)}")
    form = form_of(code, vendor, family)
    if form is None:
        where = f"{vendor}/{family}" if family else vendor
        valid = _VALID.get(vendor, "up to 20 letters and digits, with a digit")
        raise ValueError(f"{code!r} is no code of {where}; valid: {valid}")
    return form


def number_of(code: str) -> str:
    """The number of a code without prefix and leading zeros: 'SV0401' is '401', 'S01 0018' '18', '9.917' itself.

    A code without a decimal number of its own ('230-02AC', 'AMPLIFIER-FAULT') is returned whole.
    """
    plain = fold(code)[0].strip()
    if re.fullmatch(r"[0-9A-F]{3}-[0-9A-F]{4}", plain, FLAGS):
        return plain.upper()
    match = re.search(r"^[A-Z]\d\d\s([0-9A-F]{4})$|(\d{1,12}(?:\.\d{1,6})?)$", plain, FLAGS)
    return (match[1] or match[2]).lstrip("0") or "0" if match else plain


def spellings(code: str, vendor: str, family: str | None = None) -> tuple[str, ...]:
    """The usual ways to write a code, its canonical form first.

    Raises:
        ValueError: as `canonical` does.
    """
    form = canonical(code, vendor, family)
    if vendor == "linuxcnc":
        out = [example for slug, _, _, *examples in LINUXCNC_MESSAGES if slug == form for example in examples]
    elif vendor == "grbl":
        kind, number = form.split(":")
        word, chinese = ("alarm", "报警") if kind == "ALARM" else ("error", "错误")
        out = [f"{word}{tie}{number}" for tie in (":", " ", ": ")]
        out += [f"{word.title()} {number}", f"{word.upper()}:{number}", f"{chinese}{number}", f"{chinese} {number}"]
    elif " " in form:
        out = [form.lower(), form.replace(" ", "-"), form.replace(" ", "")]
    elif "-" in form:
        out = [form.lower(), *([form.replace("-", "")] if re.search("[A-F]", form) else [])]
    elif form[0].isalpha() and vendor not in _FORMS:
        out = [form.lower(), *(re.sub(r"(?<=[A-Z])(?=\d)", tie, form, count=1) for tie in ("-", " ", "."))]
    elif form[0].isalpha():
        out = list(_lettered_spellings(form, vendor))
    else:
        words = ("alarm ", "Alarm ", "alarm no. ", "ALM", "error ", "报警", "报警 ", "报警号：")
        out = [f"{word}{form}" for word in words]
        out += [f"{form}号报警", *([f"{form}报警"] if len(form) > 1 else [])]
        if vendor == "siemens":
            out.append(form.zfill(6))
    return tuple(dict.fromkeys([form, *out]))


def _lettered_spellings(form: str, vendor: str) -> Iterator[str]:
    letters = form[:2] if vendor == "fanuc" else form[0]
    full = form[len(letters) :]
    if vendor == "mitsubishi":
        yield form.lower()
        return
    ties = ("", " ", "-", ".", "#") if vendor == "fanuc" else ("", " ", "-")
    for digits in (full, full.lstrip("0").zfill(3 if vendor == "fanuc" else 4)):
        yield from (f"{letters}{tie}{digits}" for tie in ties)
        yield f"{letters}{digits}".lower()
    if vendor == "siemens" and letters in "FA":
        yield f"2{full}"
