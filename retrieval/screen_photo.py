"""Fault codes on a photo of a screen: what was read, slips of the reading forgiven, and every correction said.

`find_codes` reads the rows; around it stands what only a screen needs. Positions, feeds, program numbers and clocks
are blanked out first. A reading that is no code as it stands is held against the codes that the base knows, letters
and digits that look alike counted as one. One fitting code is taken and said to be taken; several are all offered and
none is taken. A code that stands there in full is never changed, known or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval.code_context import families_of, names_in
from retrieval.code_patterns import BLANK, FLAGS
from retrieval.codes import canonical, find_codes, fold, vendors_in
from retrieval.families import catalogue, on_one_machine, vendor_title
from retrieval.ocr import OcrLine, picture_pages, read_lines, read_turned, text_rows, to_rgb
from retrieval.records import Bilingual, CodeMention, CodeReading, FaultCode, Language

if TYPE_CHECKING:
    from PIL import Image

Known = Callable[[str, str | None], Collection[str]]
"""(vendor, family or None for all) → canonical codes that the base has."""

HARD_TO_READ = 0.8  # a code read with less confidence is shown with a warning
MAX_APART = 2  # characters by which two readings of one place may differ
MAX_SLIPS = 3  # characters of one code that may have been taken for look-alikes
LOOK_ALIKE = str.maketrans("OQDIl|!S$BZG", "000111155826")
_DIGIT_SLIP = re.compile(r"[A-Za-z|!$]")

# ---- What stands on a screen and is no code ----
_LEFT = r"(?<![A-Za-z0-9])"
_RIGHT = r"(?![A-Za-z0-9])"
_NUMBER = r"\d{1,7}(?:\.\d{0,5})?"
_NOISE = re.compile(
    "|".join(
        (
            rf"{_LEFT}[NG]\s?\d{{1,6}}(?:\.\d)?\s*(?:[GXYZABCUVWFSTMIJKR]-?\d{{1,6}}(?:\.\d{{0,4}})?\s*){{1,12}}",
            rf"{_LEFT}[O0QD]\s?\d{{4,5}}(?=\s*(?:N\s?\d|\(|\.\s?[NMEP]))(?:\.\s?[A-Z]{{2,3}})?|{_LEFT}[OQ]\d{{4,5}}{_RIGHT}",
            rf"{_LEFT}[NG]\s?\d{{1,6}}(?:\.\d)?{_RIGHT}",
            r"(?<!\d)\d{1,4}(?:\s?[-./:;]\s?\d{1,4}){2,6}(?!\d)|(?<!\d)\d{1,2}[:;]\d{2}(?!\d)",
            rf"{_LEFT}[XYZABCUVWIJKR][12]?\s*[=:]?\s*[-+]?\s?\d{{1,6}}\.\d{{1,5}}",
            rf"{_LEFT}F\s*(?:[=:]\s*{_NUMBER}|{_NUMBER}(?=\s?(?:mm|m/min|in|ipm|deg|%))|\d{{1,6}}\.\d{{0,5}}|\s\d{{1,4}}{_RIGHT})",
            rf"{_LEFT}S[12]?\s*(?:[=:]\s*{_NUMBER}|{_NUMBER}(?=\s?(?:rpm|r/min|rev|%))|\d{{3,5}}{_RIGHT})",
            rf"{_LEFT}(?:T\s?\d{{1,8}}|[HD]\s?\d{{1,3}}|M\s?\d{{1,3}}(?!\s?\d)){_RIGHT}",
            rf"{_LEFT}#\s?\d{{1,5}}(?:\s?[:=]\s?{_NUMBER})?|{_LEFT}{_NUMBER}\s?%|(?<![\w.])[-+]\s?{_NUMBER}",
            rf"(?<![a-z])(?:count(?:er)?|parts?|load|time|speed|rate|override|offset)\s?[:=]?\s?{_NUMBER}",
        )
    ),
    FLAGS,
)
_DECIMAL = re.compile(r"(?<![\w.])\d{1,6}\.\d{1,5}(?![\w.])", FLAGS)
_TOKEN = re.compile(r"[A-Za-z0-9|!$](?:[A-Za-z0-9|!$.-]{0,14}[A-Za-z0-9|!$])?")
_GRBL = re.compile(r"(?<![A-Za-z])(alarm|error)[;.](?=\d{1,2}(?!\d))", FLAGS)


@dataclass(frozen=True)
class ReadCode:
    """A code that was read.

    `raw` is how it was read. `code` is None where several are possible: then `alternatives` has them all, and a person
    has to look. `corrected` is True where `code` is not what was read. `vendor` and `family` are None where neither the
    screen nor the code nor the caller says. `confidence` in [0, 1] is that of the reading, not of the correction.
    """

    raw: str
    code: str | None
    vendor: str | None
    family: str | None
    corrected: bool
    alternatives: tuple[FaultCode, ...]
    confidence: float


@dataclass(frozen=True)
class ScreenReading:
    """What was read on a screen: its rows from the top down, its codes, and what a person should know or check."""

    lines: tuple[str, ...]
    codes: tuple[ReadCode, ...]
    problems: tuple[Bilingual, ...]


def read_screen(
    picture: Image.Image | Path, *, vendor: str | None = None, family: str | None = None, known: Known
) -> ScreenReading:
    """Codes on a photo of a screen.

    Args:
        picture: the photo, or its file.
        vendor: of the machine in front of the person, as an id of families.yaml; a name on the screen goes before it.
        family: of the controller.
        known: the codes of the base.

    Raises:
        OcrUnavailable: the extra `ocr` is not installed.
        OcrFailed: the library broke off on this picture.
        DocumentUnreadable: the file is no picture that can be read.
    """
    image = next(picture_pages(picture, picture.name)) if isinstance(picture, Path) else to_rgb(picture)
    from PIL import ImageOps  # noqa: PLC0415 - part of the extra; where it is missing, the line above says so

    turn, lines_read = read_turned(image)
    clearer = ImageOps.autocontrast(image.rotate(turn, expand=True), cutoff=1)
    first, second = (
        codes_on_screen(seen, vendor=vendor, family=family, known=known) for seen in (lines_read, read_lines(clearer))
    )
    lines = first.lines if first.codes or not second.codes else second.lines
    book = _Book(known, *_machine("\n".join(lines), vendor, family)[0])
    return _reported(lines, _agreed(first.codes, second.codes, book), book, vendor, family)


def _agreed(first: Sequence[ReadCode], second: Sequence[ReadCode], book: _Book) -> list[ReadCode]:
    """Codes of two readings of one picture.

    One that both have is sure. Where they differ in a digit or two, none is chosen. One that a single reading has is
    kept at half its confidence if the base knows it, and only offered if not.
    """
    agreed: list[ReadCode] = []
    left = list(second)
    for code in first:
        same = next((other for other in left if _key(other) == _key(code)), None)
        rival = same or next((other for other in left if _near(code, other) and not _in(other, first)), None)
        if rival:
            left.remove(rival)
        if same:
            agreed.append(max(code, same, key=lambda one: (not one.corrected, one.confidence)))
        elif rival:
            offered = tuple(dict.fromkeys(key for one in (code, rival) for key in _offered(one)))
            sure = min(code.confidence, rival.confidence)
            agreed.append(ReadCode(code.raw, None, None, None, False, offered, sure))
        else:
            agreed.append(_once(code, book))
    return agreed + [_once(code, book) for code in left]


def _key(code: ReadCode) -> tuple[str | None, str]:
    return code.vendor, code.code or code.raw


def _in(code: ReadCode, codes: Sequence[ReadCode]) -> bool:
    return any(_key(code) == _key(other) for other in codes)


def _near(one: ReadCode, other: ReadCode) -> bool:
    """Whether two codes may be readings of the same place: as long as each other, at most two characters apart."""
    left, right = one.code or one.raw, other.code or other.raw
    return len(left) == len(right) and sum(a != b for a, b in zip(left, right, strict=True)) <= MAX_APART


def _offered(code: ReadCode) -> tuple[FaultCode, ...]:
    if code.code is None:
        return code.alternatives
    return (FaultCode(vendor=code.vendor or "", family=code.family or "", code=code.code),)


def _once(code: ReadCode, book: _Book) -> ReadCode:
    if code.code is not None and not book.holds(code.vendor, code.family, code.code):
        return ReadCode(code.raw, None, code.vendor, code.family, False, _offered(code), code.confidence / 2)
    return replace(code, confidence=code.confidence / 2)


def codes_on_screen(
    lines: Sequence[OcrLine], *, vendor: str | None = None, family: str | None = None, known: Known
) -> ScreenReading:
    """Codes in lines that were read from a screen; arguments as for `read_screen`. Never raises."""
    rows = [_Row.of(row) for row in text_rows(lines)]
    book = _Book(known, *_machine("\n".join(row.text for row in rows), vendor, family)[0])
    found: list[ReadCode] = []
    above = ""
    for row in rows:
        found += _codes_of(row, above, book)
        above = row.plain
    first = {_key(code): code for code in reversed(found)}
    return _reported(
        tuple(row.text for row in rows), [code for code in found if first[_key(code)] is code], book, vendor, family
    )


def _reported(
    lines: tuple[str, ...], codes: Sequence[ReadCode], book: _Book, vendor: str | None, family: str | None
) -> ScreenReading:
    """A reading with what a person should know or check."""
    problems = _machine("\n".join(lines), vendor, family)[1]
    problems += [problem for code in codes for problem in _problems(code, book)]
    if not lines:
        problems.append(
            Bilingual(en=f"Nothing legible in the picture. {_AGAIN.en}", zh=f"图片中没有读到文字。{_AGAIN.zh}")
        )
    elif not codes:
        problems.append(
            Bilingual(en=f"Text was read, but no fault code. {_AGAIN.en}", zh=f"读到了文字，但没有报警号。{_AGAIN.zh}")
        )
    return ScreenReading(lines, tuple(codes), tuple(problems))


_AGAIN = Bilingual(
    en="Take the photo again, closer, from the front and without reflections, or type the code.",
    zh="请靠近、正对屏幕、避开反光重拍，或直接输入报警号。",
)


@dataclass(frozen=True)
class _Row:
    """A row of the screen: as read, with noise blanked out (same length), and the confidence of each stretch."""

    text: str
    plain: str
    stretches: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, lines: Sequence[OcrLine]) -> _Row:
        text, stretches = "", []
        for line in lines:
            text += (" " if text else "") + fold(line.text)[0]
            stretches.append((len(text), line.confidence))
        text = _GRBL.sub(r"\1:", text)
        plain = _NOISE.sub(lambda match: BLANK * len(match[0]), text)
        # a row that begins with a number with a point may be a Haas code; any other such number is a quantity
        plain = _DECIMAL.sub(
            lambda match: match[0] if not re.search(r"\S", text[: match.start()]) else BLANK * len(match[0]), plain
        )
        return cls(text, plain, tuple(stretches))

    def confidence(self, start: int, end: int) -> float:
        begins = 0
        worst = 1.0
        for ends, confidence in self.stretches:
            if begins < end and start < ends:
                worst = min(worst, confidence)
            begins = ends
        return worst


def _machine(
    screen: str, vendor: str | None, family: str | None
) -> tuple[tuple[str | None, str | None], list[Bilingual]]:
    """Vendor and family that the screen names, else those given; with a problem where they disagree."""
    named = vendors_in(_NOISE.sub(lambda match: BLANK * len(match[0]), screen))  # M80 is a function, S120 a speed
    vendors = {name for name, _ in named}
    if not vendors or (vendor in vendors and len(vendors) > 1):
        return (vendor, family), []
    if len(vendors) > 1:
        titles = [vendor_title(name, "en") for name in sorted(vendors)]
        listed = ", ".join(titles)
        return (None, None), [
            Bilingual(en=f"The screen names several makers: {listed}.", zh=f"屏幕上有多个厂家：{listed}。")
        ]
    (shown,) = vendors
    families = {name for _, name in named if name}
    only = next(iter(families)) if len(families) == 1 else None
    if vendor in (None, shown):
        return (shown, only or (family if vendor else None)), []
    problem = Bilingual(
        en=f"{vendor_title(vendor, 'en')} was given, but the screen says {vendor_title(shown, 'en')}, which is taken.",
        zh=f"指定的是{vendor_title(vendor, 'zh')}，但屏幕显示{vendor_title(shown, 'zh')}；以屏幕为准。",
    )
    return (shown, only), [problem]


class _Book:
    """The known codes of the machine in view, found by what they look like."""

    def __init__(self, known: Known, vendor: str | None, family: str | None) -> None:
        self.vendor = vendor
        self.family = family
        self._known = known
        self._by_look: dict[str, list[FaultCode]] = {}
        self._all: set[tuple[str, str, str]] = set()
        for name in [vendor] if vendor else [name for name in catalogue() if name != "generic"]:
            for part in families_of(name):
                if family and not on_one_machine(name, family, part):
                    continue
                for code in known(name, part):
                    self._all.add((name, part, code))
                    if name not in ("grbl", "linuxcnc"):  # words, not signs
                        key = FaultCode(vendor=name, family=part, code=code)
                        self._by_look.setdefault(look(code), []).append(key)

    def holds(self, vendor: str | None, family: str | None, code: str) -> bool:
        if vendor and self.vendor and vendor != self.vendor:  # its spelling is another maker's than the screen names
            return code in self._known(vendor, family)
        return any(self.families(vendor, code)) if family is None else (vendor or "", family, code) in self._all

    def families(self, vendor: str | None, code: str) -> list[str]:
        return sorted(part for name, part, known in self._all if vendor in (None, name) and known == code)

    def like(self, raw: str) -> list[FaultCode]:
        """Known codes that look like `raw`."""
        looks = dict.fromkeys((look(raw), look(raw.replace("G", "0"))))  # G is read for 6, and for 0 as well
        return [key for one in looks for key in self._by_look.get(one, ()) if _slips(raw, key.code)]

    def with_a_zero_more(self, raw: str) -> list[FaultCode]:
        """Known codes that look like `raw` with one zero lost."""
        plain = _compact(raw)
        letters = len(plain) - len(plain.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        longer = dict.fromkeys(f"{plain[:at]}0{plain[at:]}" for at in range(letters, len(plain) + 1))
        return list(dict.fromkeys(key for text in longer for key in self.like(text)))


def _compact(text: str) -> str:
    return re.sub(r"[\s-]", "", text.replace("l", "1")).upper()


def look(text: str) -> str:
    """What a code looks like: letters and digits that OCR takes for each other folded into one ("5V04O1", "SV0401")."""
    return re.sub(r"[\s-]", "", text.translate(LOOK_ALIKE)).upper().translate(LOOK_ALIKE)


def _slips(raw: str, code: str) -> bool:
    """Whether few enough characters differ: at most one in the letters before the number, at most three in all."""
    read, true = re.sub(r"[\s-]", "", raw), re.sub(r"[\s-]", "", code)
    differ = [one.upper() != other for one, other in zip(read, true, strict=True)]
    letters = len(true) - len(true.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    return sum(differ) <= MAX_SLIPS and sum(differ[:letters]) <= 1


def _codes_of(row: _Row, above: str, book: _Book) -> list[ReadCode]:
    found: list[tuple[int, int, ReadCode]] = []
    for mention in find_codes(row.plain, vendor=book.vendor, family=book.family):
        sure = row.confidence(mention.start, mention.end)
        code = _bare(mention, row, above, book, sure) if mention.bare else _spelled(mention, book, sure)
        if code:
            found.append((mention.start, mention.end, code))
    taken = [(start, end) for start, end, _ in found]
    for start, end, code in _slipped(row, book):
        if not any(start < other_end and other < end for other, other_end in taken):
            found.append((start, end, code))
            taken.append((start, end))
    return [code for _, _, code in sorted(found, key=lambda item: item[0])]


def _spelled(mention: CodeMention, book: _Book, confidence: float) -> ReadCode | None:
    """A code with letters or a message: its reading, or what it is a slip of."""
    reading = next((r for r in mention.readings if book.holds(r.vendor, r.family, r.code)), mention.readings[0])
    read, full = _compact(mention.raw), _compact(reading.code)
    if reading.vendor in ("grbl", "linuxcnc") or reading.code.isdigit() or mention.raw.upper().replace(" ", "") == full:
        return _read(mention.raw, reading, False, confidence)
    same_length = len(read) == len(full)
    fitting = book.like(mention.raw) if same_length else book.with_a_zero_more(mention.raw)
    if not same_length:
        if reading.vendor in ("siemens", "mitsubishi") and not fitting:
            return None  # F2200 is a feed; a drive shows five digits, an M700 four after its letter and two
        # what the grammar makes of it, leading zeros lost, stays possible
        by_grammar = FaultCode(vendor=reading.vendor or "", family=reading.family or "", code=reading.code)
        fitting = list(dict.fromkeys([by_grammar, *fitting]))
    return _read(mention.raw, reading, True, confidence) if not fitting else _chosen(mention.raw, fitting, confidence)


def _read(raw: str, reading: CodeReading, corrected: bool, confidence: float) -> ReadCode:
    return ReadCode(raw, reading.code, reading.vendor, reading.family, corrected, (), confidence)


def _chosen(raw: str, fitting: Sequence[FaultCode], confidence: float) -> ReadCode:
    """The one code that fits, or none with all that do."""
    if len({(key.vendor, key.code) for key in fitting}) > 1:
        return ReadCode(raw, None, None, None, False, tuple(fitting), confidence)
    key = fitting[0]
    family = key.family if len(fitting) == 1 else None
    changed = re.sub(r"[\s-]", "", raw).upper() != _compact(key.code)
    return ReadCode(raw, key.code, key.vendor, family, changed, (), confidence)


def _bare(mention: CodeMention, row: _Row, above: str, book: _Book, confidence: float) -> ReadCode | None:
    """A plain number, if an alarm word marks it or it opens a row with a message."""
    reading = mention.readings[0]
    vendor = reading.vendor or book.vendor
    if not (_marked(mention, row, above) or _opens_a_message(mention, row, book.holds(vendor, None, reading.code))):
        return None
    keys = [r for r in mention.readings if book.holds(r.vendor, r.family, r.code)]
    codes = {(r.vendor, r.code) for r in keys or mention.readings}
    if len(codes) > 1:  # F or A: the display does not tell
        offered = tuple(
            FaultCode(vendor=r.vendor or "", family=r.family or "", code=r.code)
            for r in keys or mention.readings
            if r.vendor and r.family
        )
        return ReadCode(mention.raw, None, vendor, None, False, offered, confidence)
    reading = keys[0] if keys else reading
    if "." in reading.code and not keys and not book.holds(vendor, None, reading.code):
        return None  # a quantity that lost its axis
    if vendor:
        try:
            canonical(reading.code, vendor)
        except ValueError:
            return None
    families = book.families(vendor, reading.code)
    family = reading.family or (families[0] if vendor and len(families) == 1 else None)
    digits = re.search(r"\d\S*$", mention.raw)
    corrected = bool(digits and _DIGIT_SLIP.search(digits[0]))
    return ReadCode(mention.raw, reading.code, vendor, family, corrected, (), confidence)


def _marked(mention: CodeMention, row: _Row, above: str) -> bool:
    """Whether a word for alarm marks the number, in its row or at the end of the row above."""
    shift = len(above) + 1
    places = ((row.plain, mention.start), (f"{above} {row.plain}", mention.start + shift))
    return any(found.start <= at < found.end for text, at in places for found in find_codes(_without_names(text)))


def _without_names(text: str) -> str:
    """The text with makers and models blanked out: a number beside them is a model too."""
    for name in names_in(text):
        text = text[: name.start] + BLANK * (name.end - name.start) + text[name.end :]
    return text


def _opens_a_message(mention: CodeMention, row: _Row, known: bool) -> bool:
    """Whether the row is a number and then a message; less of a message is asked for where the number is known."""
    after = row.plain[mention.end :]
    if re.search(r"[\w" + BLANK + "]", row.plain[: mention.start]) or re.match(r"[!-~]|\s*[\d+-]|\s*\S{0,4}/", after):
        return False
    letters, signs = len(re.findall("[A-Za-z]", after)), len(re.findall(r"[\u4e00-\u9fff]", after))
    return letters >= (4 if known else 8) or signs >= (2 if known else 3)


def _slipped(row: _Row, book: _Book) -> Iterator[tuple[int, int, ReadCode]]:
    """Readings that `find_codes` cannot take for codes, but that look like known ones."""
    if (lead := re.match(r"\s*(\d{1,3}\.\d{1,4})(?=\s)", row.plain)) and book.vendor:
        start, end = lead.span(1)
        mention = CodeMention(raw=lead[1], start=start, end=end, readings=(), bare=True)
        if (fitting := book.like(lead[1])) and _opens_a_message(mention, row, True):
            yield start, end, _chosen(lead[1], fitting, row.confidence(start, end))
    tokens = list(_TOKEN.finditer(row.plain))
    for at, token in enumerate(tokens):
        for count in (1, 2, 3):
            last = tokens[min(at + count, len(tokens)) - 1]
            raw = row.plain[token.start() : last.end()]
            if at + count > len(tokens) or (count > 1 and not re.fullmatch(r"\S{1,5}(?: \S{1,5}){1,2}", raw)):
                break
            for piece in (raw, raw[:6]):
                rest = row.plain[token.start() + len(piece) : token.start() + len(piece) + 2]
                if piece != raw and not re.fullmatch("[A-Za-z]{2}", rest):  # SV0401SERVO
                    continue
                fitting = [key for key in book.like(piece) if _credible(piece, key, row, token.start(), book)]
                if fitting:
                    end = token.start() + len(piece)
                    yield token.start(), end, _chosen(piece, fitting, row.confidence(token.start(), end))


def _credible(raw: str, key: FaultCode, row: _Row, start: int, book: _Book) -> bool:
    """Whether a reading that looks like a known code may be taken for it."""
    if key.code[0].isalpha():
        return sum(char.isdigit() for char in raw) >= 2
    # a plain number without an alarm word was judged before; one with letters in it counts only where a message opens
    if " " in raw or not _DIGIT_SLIP.search(raw) or len(raw) < 3 or book.vendor is None:
        return False
    mention = CodeMention(raw=raw, start=start, end=start + len(raw), readings=(), bare=True)
    return sum(char.isdigit() for char in raw) * 2 >= len(raw) and _opens_a_message(mention, row, True)


def _problems(code: ReadCode, book: _Book) -> Iterator[Bilingual]:
    """What a person should know or check about one code."""
    if code.code is None:
        listed = [key.code for key in code.alternatives]
        if len(listed) < 2:
            yield Bilingual(
                en=f"Read {code.raw} once in two tries. Look at the screen and type the code.",
                zh=f"两次识别中只有一次读到 {code.raw}。请对照屏幕输入报警号。",
            )
            return
        yield Bilingual(
            en=f"Read {code.raw}: may be {' or '.join(listed)}. Look at the screen and type the right one.",
            zh=f"读到 {code.raw}：可能是 {' 或 '.join(listed)}。请对照屏幕输入正确的报警号。",
        )
        return
    if code.corrected:
        yield Bilingual(
            en=f"Read {code.raw}, taken as {code.code}. Compare with the screen.",
            zh=f"读到 {code.raw}，按 {code.code} 理解。请与屏幕核对。",
        )
    if not book.holds(code.vendor, code.family, code.code):
        yield Bilingual(
            en=f"{code.code} is not in the knowledge base; it may have been misread. Compare with the screen.",
            zh=f"知识库中没有 {code.code}，也可能是误读。请与屏幕核对。",
        )
    if code.confidence < HARD_TO_READ:
        yield Bilingual(
            en=f"{code.raw} was hard to read. Compare with the screen.", zh=f"{code.raw} 不清晰。请与屏幕核对。"
        )


def screen_question(reading: ScreenReading, language: Language) -> str:
    """A question for the codes that were read, each with its maker; "" where none was settled."""
    by_vendor: dict[str | None, list[str]] = {}
    for code in reading.codes:
        if code.code is not None:
            by_vendor.setdefault(code.vendor, []).append(code.code)
    clauses = []
    for vendor, codes in by_vendor.items():
        maker = f"{vendor_title(vendor, language)} " if vendor else ""
        clauses.append(f"{maker}alarm {', '.join(codes)}" if language == "en" else f"{maker}报警 {'、'.join(codes)}")
    if not clauses:
        return ""
    if language == "en":
        return f"The screen shows {'; '.join(clauses)}. What does it mean and what should I check?"
    return f"屏幕显示{'；'.join(clauses)}。是什么意思，应该检查什么？"
