"""Texts laid out as alarms: a line with a code, then labelled paragraphs; lists of one line each; items in a cell."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from retrieval.ingest.document import Block, Place
from retrieval.ingest.headers import Span, fits, head_of, role_of, speaks_of_alarms

FEWEST_LISTED = 5  # lines of "code message": fewer are prose or part of something else
_LONGEST_HEAD = 200
_LABEL_SEARCH = 6  # lines below a code in which its first label must stand
_WAITING_BLOCKS = 3  # texts between a code and its first label
_MOST_BLOCKS = 60  # of one alarm
_LABELS = frozenset("meaning cause remedy cause_remedy check reset reaction".split())
_ALONE = frozenset("meaning cause remedy cause_remedy reaction".split())
_LABEL = re.compile(
    r"[ \t]*(?:[【\[(](?P<boxed>[^\]】)\n]{1,40})[】\])][ \t]*[:：]?|(?P<label>[^:：\t\n]{1,40}?)[ \t]*(?:[:：]"
    r"|\t|[ ]{2,}))[ \t]*"
    r"(?P<rest>.*)",
    re.DOTALL,
)
_INLINE = re.compile(
    r"(?<=[。；;.!])[ \t]*(?=(?:(?:可能|故障)?原因|处理(?:方法|措施|办法)?|对策|排除方法|解决(?:办法|方法)|说明|反应"
    r"|(?:possible )?causes?|remed(?:y|ies)|(?:corrective )?actions?|countermeasures?|solutions?|explanation"
    r"|reaction)[ ]?[:：])",
    re.IGNORECASE,
)
# Marks of items: each kind counts from 1 (a, ①, 一) without a gap; bullets do not count.
_MARKS = {
    "dot": re.compile(r"(?P<n>\d{1,2})(?:[.．)）](?![\d.])|、)\s*"),
    "bracket": re.compile(r"[(（](?P<n>\d{1,2})[)）]\s*"),
    "circle": re.compile(r"(?P<n>[\u2460-\u2473])\s*"),
    "letter": re.compile(r"[(（]?(?P<n>[a-h])[.)）]\s*"),
    "chinese": re.compile(r"(?P<n>[一二三四五六七八九])、\s*"),
}
_BULLET = re.compile(r"(?m)^[ \t]*(?:[-–—*][ \t]+|[•·●■◆▪►▶○□][ \t]*)")
_NO_START = "%‰°℃)）,，.。;；:：、!！?？/=+·"
_GOES_ON = (",", "，", "、", "(", "（", "-", "/")
_ENDS = tuple("。.!?！？")
_WORD = re.compile(r"(?:[\u2e80-\uffef](?![，。）、；：！？％℃])|[^\s\u2e80-\uffef]+|.)[，。）、；：！？％℃)\],.;:]*")
_ABBREVIATED = re.compile(
    r"\b(?:no|nr|nos|fig|max|min|approx|e\.g|i\.e|sec|chap|par|ch|axis|step|item)\.?\s*$", re.IGNORECASE
)
_STOPS = "。；;.!?！？：:"
# Parts of compounds: the hyphen at the end of a line belongs to the word.
_COMPOUND = re.compile(
    r"\b(?:non|re|over|self|short|time|check|cross|half|low|high|end|multi|pre|two|three|one|co|on|off|built|set)-$"
)
_NARROW, _WIDE = "ijlftI.,:;'|!()[]/- ", "mwMW%@"
_CONTENTS = re.compile(r"(?:\.\s?){3,}\s*\d*$|…\s*\d+$|(?:\t|\s{2,})\d{1,4}$")


@dataclass(frozen=True)
class Listed:
    """An alarm found in running text: its codes, the words behind them, and the labelled texts below."""

    codes: tuple[Span, ...]
    heading: str
    sections: tuple[tuple[str, str], ...]
    place: Place
    confidence: float = 1.0


class Trail:
    """The headings above the place that a walk over blocks has come to, and the last short text."""

    def __init__(self) -> None:
        self.headings: list[tuple[int, str]] = []
        self.text = ""

    def follow(self, block: Block) -> None:
        """Go past a block."""
        if block.kind == "heading":
            self.headings = [*(h for h in self.headings if h[0] < block.level), (block.level, block.text[:200])][-6:]
            self.text = ""
        elif block.kind == "text":
            self.text = block.text if len(block.text) < 120 else ""

    def __str__(self) -> str:
        return "\n".join([*(text for _, text in self.headings), self.text])


# ---- lines and items ----
def width_of(line: str) -> float:
    """Width of a line in ems, roughly: Helvetica for Latin, a full em for Chinese, half of one for Latin among it."""
    if any(ord(c) > 0x2E7F for c in line):
        ascii_only = sum(map(str.isascii, line))  # such fonts have Ω and · as wide as a Chinese character
        return len(line) - 0.5 * ascii_only
    return sum(0.28 if c in _NARROW else 0.86 if c in _WIDE else 0.68 if c.isupper() else 0.54 for c in line)


def _is_wrap(line: str, following: str, width: float) -> bool:
    """Whether a line ended because the next word did not fit, not because its author ended it."""
    if (
        following[0].islower()
        or following[0] in _NO_START
        or line.endswith(_GOES_ON)
        or _open(line, "(（") > _open(line, ")）")
    ):
        return True
    # the next word, with the marks that may not begin a line
    match = _WORD.match(following)
    word = match[0] if match else following[0]
    gap = 0.0 if ord(line[-1]) > 0x2E7F or ord(word[0]) > 0x2E7F else 0.28
    return width_of(line) + gap + width_of(word) > 0.95 * width and not line.endswith(_ENDS)


def _open(line: str, marks: str) -> int:
    return sum(line.count(mark) for mark in marks)


def joined(lines: Sequence[str]) -> str:
    """Lines of one text put together: a space between words, none between Chinese characters or after a hyphen."""
    parts: list[str] = []
    for line in (line.strip() for line in lines):
        before = parts[-1] if parts else ""
        if not line:
            continue
        if not before:
            parts.append(line)
        elif re.search(r"[a-z]{2}-$", before[-3:]) and line[0].islower() and not _COMPOUND.search(before[-8:]):
            parts[-1] = before[:-1]
            parts.append(line)
        elif before[-1] == "-" or ord(before[-1]) > 0x2E7F or ord(line[0]) > 0x2E7F:
            parts.append(line)
        else:
            parts += [" ", line]
    return "".join(parts)


def items_of(text: str, width: float | None) -> tuple[tuple[str, ...], bool]:
    """Statements of a cell or paragraph, without their numbers, and whether they were numbered.

    Args:
        text: with the line breaks of the source.
        width: of the column in ems where lines break because they are full; None where every break was meant.
    """
    text = text.strip()
    if not text:
        return (), False
    for kind, mark in _MARKS.items():
        # a mark inside a line is one only where those at the start of lines leave a gap: "see unit no. 2. The time"
        starts = _sequence(text, kind, mark, inside=False)
        if len(starts) < 2:
            starts = _sequence(text, kind, mark, inside=True)
        if starts:
            lead = [] if starts[0][0] == 0 else [text[: starts[0][0]]]
            ends = [*(start for start, _ in starts[1:]), len(text)]
            parts = [*lead, *(text[begin:end] for (_, begin), end in zip(starts, ends, strict=True))]
            found = [joined(part.split("\n")) for part in parts]
            return tuple(part.rstrip(" ") for part in found if part), not lead
    if _BULLET.match(text):
        return tuple(joined(part.split("\n")) for part in _BULLET.split(text) if part.strip()), False
    return tuple(_by_lines(text, width)), False


def _sequence(text: str, kind: str, mark: re.Pattern[str], *, inside: bool) -> list[tuple[int, int]]:
    """(start, end) of each mark 1, 2, 3 of a kind; nothing unless the text begins with 1 or counts on in its lines."""
    found: list[tuple[int, int]] = []
    for match in mark.finditer(text):
        if _number(match["n"]) != len(found) + 1:
            continue
        before = text[max(0, match.start() - 3) : match.start()]
        at_line = match.start() == 0 or before.rstrip(" \t").endswith("\n")
        behind = before.rstrip()[-1:]
        if not at_line and (not inside or _ABBREVIATED.search(text[max(0, match.start() - 8) : match.start()])):
            continue
        if kind == "dot" and not at_line and not (behind and behind in _STOPS + ",，" and before[-1:] != "."):
            continue
        if kind in ("letter", "chinese") and not at_line:
            continue
        if kind == "dot" and match[0].endswith(".") and match.end() < len(text) and text[match.end()].isascii():
            continue  # "1.Turn" is fine in Chinese, in English "3.5" and "1.mm" are figures
        if not found and match.start() and not (at_line or behind in "：:"):
            return []
        found.append((match.start(), match.end()))
    starts_with_one = bool(found) and found[0][0] == 0
    return found if len(found) > 1 or (starts_with_one and kind != "letter") else []


def first_number(text: str) -> int:
    """The number of the first item that begins a line of a text; 0 where none does."""
    for line in text.split("\n"):
        for mark in _MARKS.values():
            if match := mark.match(line.strip()):
                return _number(match["n"])
    return 0


def _number(mark: str) -> int:
    if mark.isdigit() and mark.isascii():
        return int(mark)
    if mark in "一二三四五六七八九":
        return "一二三四五六七八九".index(mark) + 1
    return ord(mark) - (0x245F if ord(mark) > 0x2000 else ord("a") - 1)


def _by_lines(text: str, width: float | None) -> Iterator[str]:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    held: list[str] = []
    for line in lines:
        if held:
            goes_on = line[0].islower() if width is None else _is_wrap(held[-1], line, width)
            if not goes_on:
                yield joined(held)
                held = []
        held.append(line)
    if held:
        yield joined(held)


def parts_of(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the first label of a text, and (role, text) for each label such as "Cause:" or 【处理】."""
    lead: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    for line in _INLINE.sub("\n", text).split("\n"):
        role, rest = label_of(line)
        if role:
            sections.append((role, [rest] if rest else []))
        elif sections:
            sections[-1][1].append(line)
        else:
            lead.append(line)
    return "\n".join(lead).strip(), [(role, "\n".join(lines).strip()) for role, lines in sections]


def label_of(line: str) -> tuple[str, str]:
    """(role, text behind it) of a line that begins with a label; ("", "") for another."""
    short = line[:60]
    if match := _LABEL.match(short):
        label = match["boxed"] or match["label"].strip()
        role = "" if label[:1].islower() else role_of(label)  # "power\nmodule: above 20 V" is a line in a sentence
        if role in _LABELS:
            return role, line[match.start("rest") :].strip()
    alone = role_of(short) if len(line) <= 30 and not short.strip()[:1].islower() else ""
    return (alone, "") if alone in _ALONE else ("", "")


# ---- alarms in running text ----
@dataclass
class _Pending:
    codes: tuple[Span, ...]
    lines: list[str]
    place: Place
    confidence: float
    held: list[Block]
    under: str
    waited: int = 0
    # the text above it and the two together, where they came as one block: it goes on whole if this is no alarm
    above: Block | None = None
    whole: Block | None = None
    sections: list[tuple[str, list[str]]] = field(default_factory=list)

    def is_alarm(self) -> bool:
        """Whether causes, remedies or the like stand below; a description alone counts under a heading of alarms."""
        roles = {role for role, _ in self.sections}
        return bool(roles - {"meaning"}) or (bool(roles) and speaks_of_alarms(self.under))

    def listed(self) -> Listed:
        heading, rest = _heading(self.lines)
        found = [("meaning", "\n".join(rest))] if rest else []
        found += [(role, "\n".join(lines)) for role, lines in self.sections]
        return Listed(self.codes, heading, tuple((r, t) for r, t in found if t.strip()), self.place, self.confidence)


def _heading(lines: Sequence[str]) -> tuple[str, list[str]]:
    """The heading, over several lines only where each line before was full, and the lines behind it."""
    taken = 1
    while taken < min(len(lines), 3) and (len(lines[taken - 1]) > 60 or width_of(lines[taken - 1]) > 32):
        taken += 1
    return joined(lines[:taken]), list(lines[taken:])


def _convincing(line: str) -> tuple[tuple[Span, ...], str]:
    """Codes and words of a line that can head an alarm: not a chapter's number, not a figure in a sentence."""
    if len(line) > _LONGEST_HEAD or not line.strip():
        return (), ""
    codes, words = head_of(line)
    if not codes or not re.search(r"[A-Za-z]{2}|[\u3400-\u9fff]{2}", words):
        return (), ""
    first = codes[0].first
    digits = len(re.findall(r"\d", first))
    named = re.match(r"\s*(?:alarm|error|fault|报警|警报|故障|错误)", line, re.IGNORECASE) is not None
    spelled = re.match(r"[A-Z]+(?![a-z])", first) is not None and digits >= 2  # rs274 and max31855 are names
    if not (named or spelled or (first[0].isdigit() and digits >= 3)):
        return (), ""
    if re.match(
        r"(?:is|are|was|were|has|have|may|can|will|and|or|to|of|in|on|at|for|with|from|by|not|mm|rpm|the|if"
        r"|when|shows?|appears?)\b|[，。、的是在]",
        words,
    ):
        return (), ""
    return codes, words


def text_layouts(blocks: Iterable[Block], vendor: str | None) -> Iterator[Block | Listed]:
    """Alarms of running text as `Listed`; everything else as it came, in order."""
    walk = _Walk(vendor)
    for block in blocks:
        yield from walk.take(block)
        walk.trail.follow(block)
    yield from walk.end()


class _Walk:
    """One pass over blocks; holds back at most the alarm that is being read and the list that is being gathered."""

    def __init__(self, vendor: str | None) -> None:
        self.vendor = vendor
        self.trail = Trail()
        self.pending: _Pending | None = None
        self.listing: list[Block] = []
        self.listing_under = ""

    def take(self, block: Block) -> Iterator[Block | Listed]:
        """Go over one block; yields what is settled."""
        if block.kind == "text" and self.pending is None and _all_heads(block):
            if not self.listing:
                self.listing_under = str(self.trail)
            self.listing.append(block)
            return
        if block.kind == "text" and (title := _title_lines(block)):
            yield from self.take(title)
            self.trail.follow(title)
            below = block.text.split("\n")[title.text.count("\n") + 1 :]
            yield from self.take(replace(block, text="\n".join(below)))
            return
        if self.listing:
            if block.kind == "text" and label_of(block.text.split("\n", 1)[0])[0]:
                # the last line of the "list" heads an alarm with paragraphs
                yield from self._reread(self.listing)
            else:
                yield from self._end_listing()
            self.listing = []
        if block.kind == "table":
            yield from self._flush()
            yield block
        elif block.kind == "heading":
            yield from self._take_heading(block)
        else:
            yield from self._take_text(block)

    def end(self) -> Iterator[Block | Listed]:
        """What is still held when the blocks are over."""
        if self.listing:
            yield from self._end_listing()
        yield from self._flush()

    def _flush(self) -> Iterator[Block | Listed]:
        pending, self.pending = self.pending, None
        if pending is None:
            return
        if pending.is_alarm():
            if pending.above is not None:
                yield pending.above
            yield pending.listed()
        elif pending.whole is not None:
            yield pending.whole
            yield from pending.held[1:]
        else:
            yield from pending.held

    def _reread(self, blocks: Sequence[Block]) -> Iterator[Block | Listed]:
        for block in blocks:
            yield from self._take_text(block)

    def _take_heading(self, block: Block) -> Iterator[Block | Listed]:
        codes, words = _convincing(" ".join(block.text.split("\n")))
        role, rest = label_of(block.text)
        if codes:
            yield from self._flush()
            self.pending = _Pending(codes, [words], block.place, block.confidence, [block], str(self.trail))
        elif self.pending and role:
            self.pending.sections.append((role, [rest] if rest else []))
            self.pending.held.append(block)
        else:
            yield from self._flush()
            yield block

    def _take_text(self, block: Block) -> Iterator[Block | Listed]:
        lines = block.text.split("\n")
        heads = _heads(lines)
        first = heads[0] if heads else len(lines)
        if self.pending and first and not self._goes_on(block, lines):
            yield from self._flush()
        above = replace(block, text="\n".join(lines[:first])) if heads and first else None
        if first and self.pending:
            self._add(lines[:first])
            self.pending.held.append(above or block)
            above = None
        elif not heads:
            yield block
        for start, end in itertools.pairwise([*heads, len(lines)]):
            yield from self._flush()
            codes, words = _convincing(lines[start])
            part = block if end - start == len(lines) else replace(block, text="\n".join(lines[start:end]))
            place = replace(block.place, row=block.place.row + start) if block.place.row is not None else block.place
            self.pending = _Pending(codes, [words], place, block.confidence, [part], str(self.trail))
            self._add(lines[start + 1 : end])
            if above is not None:
                self.pending.above = above
                self.pending.whole = block if end == len(lines) else None
                if self.pending.whole is None and not self.pending.sections:
                    yield above
                    self.pending.above = None
                above = None

    def _add(self, lines: Sequence[str]) -> None:
        assert self.pending is not None
        for line in _INLINE.sub("\n", "\n".join(lines)).split("\n") if lines else ():
            role, rest = label_of(line)
            if role:
                self.pending.sections.append((role, [rest] if rest else []))
            elif self.pending.sections:
                self.pending.sections[-1][1].append(line)
            elif line.strip():
                self.pending.lines.append(line)

    def _goes_on(self, block: Block, lines: Sequence[str]) -> bool:
        """Whether a text carries on the alarm before it: by a label, an item, or in the middle of a sentence."""
        assert self.pending is not None
        if len(self.pending.held) >= _MOST_BLOCKS:
            return False
        if label_of(lines[0])[0]:
            return True
        if not self.pending.sections:
            self.pending.waited += 1
            return self.pending.waited <= _WAITING_BLOCKS
        held = self.pending.sections[-1][1]
        if not any(line.strip() for line in held):
            return True  # the label stood alone
        first, last = lines[0].strip(), held[-1].strip()
        if any((match := mark.match(first)) and _number(match["n"]) > 1 for mark in _MARKS.values()) or _BULLET.match(
            first
        ):
            return True
        if first[:1].islower():
            return True
        if self.pending.held[-1].place.page == block.place.page or last.endswith(_ENDS):
            return False
        widest = max(width_of(line) for line in self.pending.held[-1].text.split("\n"))
        return width_of(last) > max(25.0, 0.85 * widest)

    def _end_listing(self) -> Iterator[Block | Listed]:
        """A list of one line each, where that is what it is; its blocks as they came where it is not."""
        rows = [(block, at, line) for block in self.listing for at, line in enumerate(block.text.split("\n"))]
        self_named = [_convincing(line) for _, _, line in rows]
        if not self._is_list([line for _, _, line in rows], self_named):
            yield from self.listing
            return
        for (block, at, _), (codes, words) in zip(rows, self_named, strict=True):
            place = replace(block.place, row=block.place.row + at) if block.place.row is not None else block.place
            heading, _, rest = words.partition("\t")
            sections = (("meaning", rest.replace("\t", " ")),) if rest.strip() else ()
            yield Listed(codes, heading.strip(), sections, place, block.confidence)

    def _is_list(self, lines: Sequence[str], found: Sequence[tuple[tuple[Span, ...], str]]) -> bool:
        firsts = [codes[0].first for codes, _ in found]
        pictured = any(block.confidence < 1 for block in self.listing)  # two columns may have been read as one
        if pictured or len(lines) < FEWEST_LISTED or len(set(firsts)) < 0.9 * len(firsts):
            return False
        if sum(bool(_CONTENTS.search(line)) for line in lines) * 2 > len(lines):
            return False
        if speaks_of_alarms(self.listing_under):
            return True
        lettered = [code for code in firsts if re.match("[A-Z]", code)]
        return len(lettered) == len(firsts) and self.vendor is not None and all(fits(c, self.vendor) for c in lettered)


def _all_heads(block: Block) -> bool:
    lines = block.text.split("\n")
    return all(_convincing(line)[0] for line in lines)


def _title_lines(block: Block) -> Block | None:
    """The one or two lines above a list of one line each that stand in the same text."""
    lines = block.text.split("\n")
    if len(lines) <= FEWEST_LISTED:
        return None
    above = next((k for k in range(3) if _convincing(lines[k])[0]), 0)
    if not above or not all(_convincing(line)[0] for line in lines[above:]):
        return None
    return replace(block, text="\n".join(lines[:above]))


def _heads(lines: Sequence[str]) -> list[int]:
    """Lines that head an alarm: a label follows soon, or the text ends there and the next one may begin with it."""
    widest = max(map(width_of, lines))
    codes = [
        k for k, line in enumerate(lines) if _convincing(line)[0] and not (k and _runs_on(lines[k - 1], line, widest))
    ]
    found = []
    for at, k in enumerate(codes):
        end = codes[at + 1] if at + 1 < len(codes) else len(lines)
        below = range(k + 1, min(end, k + 1 + _LABEL_SEARCH))
        ends_here = end == len(lines) and end - k <= 3
        if any(label_of(lines[j])[0] for j in below) or ends_here:
            found.append(k)
    return found


def _runs_on(before: str, line: str, widest: float) -> bool:
    """Whether a line that begins with a code is the middle of a sentence: the line before is full and has no end."""
    return width_of(before) > 20 and _is_wrap(before, line, widest)
