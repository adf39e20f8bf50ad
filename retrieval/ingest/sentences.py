"""Sentences of English and Chinese technical text: where they end, how long they are, where a huge one may be cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from retrieval.records import Language

# Of a passage, in either measure; a text in both languages adds up its shares.
MOST_WORDS, FEWEST_WORDS = 220, 60
MOST_CHARACTERS, FEWEST_CHARACTERS = 450, 120
WINDOW = 12_000  # characters; a passage has fewer
LONGEST_WORD = 2_000  # characters; longer ones are data, and the only ones that are cut inside
# Chinese characters and signs; full-width letters and digits make words and codes, as others do
_CJK = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uffef"
_CHARACTERS = re.compile(f"[{_CJK}]")
_WORDS = re.compile(rf"[^\s{_CJK}]+")
_TOKENS = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
# The number or sign that a step or an item of a list begins with; "1.5 mm" begins with none.
MARKER = re.compile(
    r"\s*(?:\d{1,2}[.．](?!\d)|\d{1,2}[)）、](?!\d)|[(（](?:\d{1,2}|[a-z])[)）]|[①-⑳❶-❿]|[a-z][.)](?=\s)"
    r"|[-–—•●○◦■□▪◆·*](?=\s)|[•●○◦■□▪◆]|(?:step|schritt)\s*\d|第[0-9一二三四五六七八九十]{1,3}步|步骤\s*[0-9一二三四五六七八九十])",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[^:：。.]{1,30}(?:[:：]|\t)\s*\S")
_CLOSERS = "”’」』）)]\"'》】"
_STOP = re.compile(rf"(?:[。！？!?…]+|\.+)[{re.escape(_CLOSERS)}]*")
_FINISHED = re.compile(rf"[。！？!?….:：;；][{re.escape(_CLOSERS)}]*$")
_CLAUSE = re.compile(r"[；，、：](?=\S)|[;,:](?=\s)|[)）](?=\s)|\s[–—-](?=\s)")
_ABBREVIATIONS = frozenset(
    "e.g i.e cf vs viz no nos nr fig figs tab eq sec sect ch chap vol p pp art ref approx ca max min resp incl excl"
    " dr mr mrs ms st inc ltd co corp dept ext int temp tel para app ed alt std nom dia rev ver".split()
)
# These may end a sentence: a capital after them begins the next one.
_ENDING = frozenset(("etc", "inc", "ltd", "co", "corp"))
NARROW = 36  # columns: lines of a text that is nowhere wider stand by themselves


def measure(text: str) -> tuple[float, float]:
    """(share of the most, share of the least) that a passage holds."""
    characters = len(_CHARACTERS.findall(text))
    words = sum(1 + len(word) // 24 for word in _WORDS.findall(text))
    return (
        characters / MOST_CHARACTERS + words / MOST_WORDS,
        characters / FEWEST_CHARACTERS + words / FEWEST_WORDS,
    )


def language_of(text: str) -> Language:
    """The language of most letters; a Chinese character stands for about two letters of an English word."""
    return "zh" if 2 * len(_HAN.findall(text)) >= max(1, len(_LATIN.findall(text))) else "en"


def glue(before: str, after: str) -> str:
    """What belongs between two texts that follow each other in a line: nothing in Chinese, else a space."""
    if not before or not after:
        return ""
    if _CHARACTERS.match(before[-1]) and _CHARACTERS.match(after[0]):
        return ""
    if before[-1] == "-" and len(before) > 1 and before[-2].isalpha() and after[0].islower():
        return ""
    return " "


def is_finished(text: str) -> bool:
    """Whether a text ends as a sentence or a lead-in does."""
    return _FINISHED.search(text.rstrip()) is not None


def lines_of(text: str) -> list[str]:
    """Lines as they are meant: those that were only wrapped are joined, items and labels stay lines of their own."""
    raw = [" ".join(line.split()) for line in text.split("\n")]
    raw = [line for line in raw if line]
    widest = max(map(_width, raw), default=0)
    found: list[str] = []
    last = ""
    for line in raw:
        if found and _is_wrapped(last, line, widest):
            found[-1] += glue(found[-1], line) + line
        else:
            found.append(line)
        last = line
    return found


def _width(line: str) -> int:
    return len(line) + len(_CHARACTERS.findall(line))


def _is_wrapped(last: str, line: str, widest: int) -> bool:
    """Whether a line goes on in the next one."""
    if MARKER.match(line) or last.endswith((":", "：")) or _LABEL.match(line):
        return False
    if line[0].islower() or last[-1] in ",，、-(（":
        return True
    if widest < NARROW or is_finished(last):
        return widest >= NARROW and _width(last) >= 0.75 * widest
    return _width(last) >= 0.6 * widest


def sentences(line: str) -> list[str]:
    """Sentences of a line, in order; joined with `glue` they are the line again."""
    found = []
    start = 0
    for stop in _STOP.finditer(line):
        if stop.end() > start and _ends_sentence(line, start, stop):
            found.append(line[start : stop.end()].strip())
            start = stop.end()
    found.append(line[start:].strip())
    return [sentence for sentence in found if sentence]


def _ends_sentence(line: str, start: int, stop: re.Match[str]) -> bool:
    rest = line[stop.end() :]
    after = rest.lstrip()
    if not after:
        return True
    if stop.group()[0] in "。！？":
        return True
    spaced = rest[0].isspace()
    before = line[start : stop.start()]
    if not spaced:
        # Chinese typed with the Latin full stop
        return bool(before and _HAN.match(before[-1]) and _HAN.match(after[0]))
    if after[0].islower():
        return False
    if stop.group()[0] != ".":
        return True
    return not _is_abbreviated(before, after)


def _is_abbreviated(before: str, after: str) -> bool:
    """Whether the full stop between two texts belongs to an abbreviation or to the number of an item."""
    words = before.split()
    word = words[-1].lstrip("([{\"'“‘（").lower() if words else ""
    if word in ("no", "nos", "nr", "art", "p", "st", "min", "max", "int", "ext", "temp", "std", "alt"):
        # "No. 5", "max. 24 V" and "at least 5 min. Then"
        return not after[0].isupper() if word not in ("art", "st") else True
    if word in _ENDING:
        return not after[0].isupper()
    if re.fullmatch(r"(?:[a-z]\.)*[a-z]", word):
        return not (len(words) > 1 and words[-2][-1].isdigit())  # "24 V. Then": a unit
    if word in _ABBREVIATIONS:
        return True
    return len(words) == 1 and re.fullmatch(r"\(?\d{1,3}(?:\.\d{1,3})*|[ivx]{1,4}", word) is not None


def pieces(sentence: str) -> Iterator[str]:
    """A sentence that is longer than a passage, cut at clause marks, else between words; never inside a word."""
    start = 0
    while measure(sentence[start : start + WINDOW])[0] > 1:
        end = start + _fitting(sentence[start : start + WINDOW])
        marks = [hit.end() for hit in _CLAUSE.finditer(sentence, start, end + 1) if hit.end() <= end]
        if marks and marks[-1] - start > (end - start) // 3:
            end = marks[-1]
        yield sentence[start:end].strip()
        start = end + (len(sentence[end : end + 1]) - len(sentence[end : end + 1].lstrip()))
    if rest := sentence[start:].strip():
        yield rest


def _fitting(text: str) -> int:
    """Length of the longest beginning that fits a passage and ends between two words."""
    total = 0.0
    for token in _TOKENS.finditer(text):
        character = _CHARACTERS.match(token.group()) is not None
        total += 1 / MOST_CHARACTERS if character else (1 + len(token.group()) // 24) / MOST_WORDS
        if total > 1:
            return token.start() if token.start() > 0 else min(token.end(), LONGEST_WORD)
    return len(text)


def joined(parts: Sequence[str]) -> str:
    """Texts in one line."""
    whole = ""
    for part in parts:
        whole += glue(whole, part) + part
    return whole
