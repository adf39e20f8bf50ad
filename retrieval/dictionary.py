"""Words of the shop floor and the standard terms they stand for: what search adds to a question that holds one.

The built-in words are in `shop_words.yaml`; a shop's own are in `words.yaml` of its data home. They win over the
built-in ones, spelling by spelling, and can switch one off. Chinese words are found by their characters, whatever a
word cutter makes of them; English ones at word boundaries, in all regular inflections; the longest first. Nothing is
found inside a fault code: codes are looked up exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from retrieval.codes import find_codes, fold
from retrieval.errors import RetrievalError
from retrieval.records import UNPRINTABLE, Bilingual, Language, Record
from retrieval.tokens import has_chinese

FILE = "words.yaml"
# A file beyond this is no list of words; reading one costs a second.
MAX_BYTES = 1_000_000
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
# What may stand between the words of one expression: "stick-slip", "stick slip"; never a full stop or a comma.
_GAP = re.compile(r"[ \t/-]{0,3}")
_VOWELS = "aeiou"
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Spelling = Annotated[str, Field(min_length=2, max_length=60)]
_Term = Annotated[str, Field(min_length=1, max_length=100)]


class WordsUnreadable(RetrievalError):
    """A file of shop words cannot be read, or one of its words is not in order."""


class Word(Record):
    """One word of the shop floor. See the head of `shop_words.yaml` for what each field says."""

    word: _Spelling
    also: tuple[_Spelling, ...] = ()
    near: tuple[_Term, ...] = ()
    unless: tuple[_Spelling, ...] = ()
    zh: Annotated[tuple[_Term, ...], Field(max_length=8)] = ()
    en: Annotated[tuple[_Term, ...], Field(max_length=8)] = ()
    meaning: Bilingual

    @field_validator("word", "also", "near", "unless", "zh", "en")
    @classmethod
    def _plain_text(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for text in (value,) if isinstance(value, str) else value:
            if UNPRINTABLE.search(text):
                raise ValueError(f"{text!r} holds a control character")
            if any(map(str.isdigit, text)) and find_codes(text):  # looking costs a sixth of a second for all words
                raise ValueError(f"{text!r} is or holds a fault code; codes are looked up exactly")
            if not any(character.isalpha() for character in text):
                raise ValueError(f"{text!r} holds no letter")
        return value

    @model_validator(mode="after")
    def _some_term(self) -> Word:
        if not (self.zh or self.en):
            raise ValueError("needs a standard term under 'zh' or 'en'")
        return self

    @property
    def spellings(self) -> tuple[str, ...]:
        """The word and its other spellings."""
        return (self.word, *self.also)

    def terms(self, language: Language) -> tuple[str, ...]:
        """Standard terms in a language, or in the other one where it has none; the nearest first."""
        return (self.zh or self.en) if language == "zh" else (self.en or self.zh)


@dataclass(frozen=True)
class Found:
    """A word as it stands in a text: text[start:end]; `of_shop` is True where the shop's own file holds it."""

    start: int
    end: int
    word: Word
    of_shop: bool


@dataclass(frozen=True)
class Expansion:
    """The shop words of a text, in order, and what they stand for."""

    text: str
    found: tuple[Found, ...]

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def terms(self) -> tuple[str, ...]:
        """All standard terms, both languages: a document may have only one."""
        words = (found.word for found in self.found)
        return tuple(dict.fromkeys(term for word in words for term in (*word.zh, *word.en)))

    def standard(self, language: Language) -> str:
        """The text with each shop word put in standard terms of one language."""
        parts: list[str] = []
        at = 0
        for found in self.found:
            parts += [self.text[at : found.start], " ".join(found.word.terms(language)[:1])]
            at = found.end
        return "".join((*parts, self.text[at:]))

    def shown(self) -> list[str]:
        """One line a word for a person: what was said = what was looked for too."""
        return [f"{self.text[f.start : f.end]} = {', '.join((*f.word.zh, *f.word.en))}" for f in self.found]


@dataclass(frozen=True)
class Shop:
    """What a shop's file says: its words and the built-in spellings that it switches off."""

    words: tuple[Word, ...] = ()
    switched_off: tuple[str, ...] = ()


class Dictionary:
    """Built-in words under a shop's own.

    Args:
        built_in: words that ship with the package.
        shop: words and switched-off spellings of the shop; they win.
    """

    def __init__(self, built_in: Iterable[Word], shop: Shop | None = None) -> None:
        shop = shop or Shop()
        off = {spelling_key(spelling) for spelling in shop.switched_off}
        self.by_spelling: dict[str, tuple[Word, bool]] = {
            spelling_key(spelling): (word, False)
            for word in built_in
            for spelling in word.spellings
            if spelling_key(spelling) not in off
        }
        self.by_spelling |= {spelling_key(spelling): (word, True) for word in shop.words for spelling in word.spellings}
        words = {id(word): word for word, _ in self.by_spelling.values()}
        self.words = tuple(words.values())
        # a longer expression that means something else takes its letters before the word can
        self._matcher = _Matcher(
            (*self.by_spelling, *(u for word in self.words for u in map(spelling_key, word.unless)))
        )
        self._near = {id(word): _Matcher(map(spelling_key, word.near)) for word in self.words if word.near}

    def expand(self, text: str) -> Expansion:
        """The shop words of a text, longest first, not overlapping, without those that lack the company they need."""
        folded, index = fold(text)
        shown = [_lower(character) for character in folded]
        for mention in find_codes(text):
            for position, origin in enumerate(index):
                if mention.start <= origin < mention.end:
                    shown[position] = " "
        plain = "".join(shown).replace("’", "'")
        taken = bytearray(len(plain))
        found: list[Found] = []
        for start, end, key in sorted(self._matcher.find(plain), key=lambda hit: (hit[0] - hit[1], hit[0])):
            if any(taken[start:end]):
                continue
            if key not in self.by_spelling:
                taken[start:end] = b"\1" * (end - start)
                continue
            word, of_shop = self.by_spelling[key]
            if (near := self._near.get(id(word))) and not any(near.find(f"{plain[:start]} \n {plain[end:]}")):
                continue
            taken[start:end] = b"\1" * (end - start)
            found.append(Found(index[start], index[end - 1] + 1, word, of_shop))
        return Expansion(text, tuple(sorted(found, key=lambda hit: hit.start)))


class _Matcher:
    """Finds spellings in a folded, lower-case text: (start, end, spelling), overlaps included."""

    def __init__(self, spellings: Iterable[str]) -> None:
        self._chinese: dict[str, list[str]] = {}  # by first character
        self._english: dict[str, list[tuple[list[frozenset[str]], str]]] = {}  # by form of the first word
        for spelling in dict.fromkeys(spellings):
            if has_chinese(spelling):
                self._chinese.setdefault(spelling[0], []).append(spelling)
                continue
            parts = _WORD.findall(spelling)
            for written in (parts, ["".join(parts)]) if len(parts) > 1 else (parts,):  # "stick-slip", "stickslip"
                forms = [_forms(part) for part in written]
                for form in forms[0] if forms else ():
                    self._english.setdefault(form, []).append((forms, spelling))

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        for at, character in enumerate(text):
            for spelling in self._chinese.get(character, ()):
                if text.startswith(spelling, at) and not _inside_a_word(text, at, at + len(spelling)):
                    yield at, at + len(spelling), spelling
        words = list(_WORD.finditer(text))
        for number, match in enumerate(words):
            for forms, spelling in self._english.get(match.group(), ()):
                told = words[number : number + len(forms)]
                if len(told) == len(forms) and _in_a_row(text, told, forms):
                    yield match.start(), told[-1].end(), spelling


def _in_a_row(text: str, told: Sequence[re.Match[str]], forms: Sequence[frozenset[str]]) -> bool:
    fits = all(match.group() in form for match, form in zip(told, forms, strict=True))
    return fits and all(_GAP.fullmatch(text, left.end(), right.start()) for left, right in pairwise(told))


def _inside_a_word(text: str, start: int, end: int) -> bool:
    """Whether a spelling such as Z轴掉 begins or ends within a longer run of Latin letters."""
    return any(_latin(text[i : i + 1]) and _latin(text[i + 1 : i + 2]) for i in (start - 1, end - 1) if i >= 0)


def _lower(character: str) -> str:
    small = character.lower()
    return small if len(small) == 1 else character  # one for one: offsets must hold


def _latin(character: str) -> bool:
    return character.isascii() and character.isalpha()


@lru_cache(maxsize=4096)
def _forms(word: str) -> frozenset[str]:
    """A word in its regular inflections: plural, past, -ing, possessive."""
    if len(word) < 3 or not word.isalpha():
        return frozenset((word,))
    forms = {word, f"{word}s", f"{word}'s", f"{word}ed", f"{word}ing"}
    if word.endswith(("s", "x", "z", "ch", "sh")):
        forms.add(f"{word}es")
    if word.endswith("e"):
        forms |= {f"{word}d", f"{word[:-1]}ing"}
    if word.endswith("y") and word[-2] not in _VOWELS:
        forms |= {f"{word[:-1]}ies", f"{word[:-1]}ied"}
    if word[-1] not in "aeiouwxy" and word[-2] in _VOWELS and word[-3] not in _VOWELS:
        forms |= {f"{word}{word[-1]}ed", f"{word}{word[-1]}ing"}
    return frozenset(forms)


def spelling_key(spelling: str) -> str:
    """A spelling as it is compared: folded, lower case, single spaces."""
    return " ".join(fold(spelling)[0].lower().replace("’", "'").split())


def built_in_file() -> Path:
    """The words that ship with the package."""
    return Path(str(resources.files("retrieval") / "shop_words.yaml"))


@lru_cache(maxsize=1)
def built_in() -> tuple[Word, ...]:
    """Words that ship with the package."""
    return read_words(built_in_file()).words


def shop_file(home: Path) -> Path:
    """Where a data home keeps the shop's own words; it need not exist."""
    return home / FILE


def load_dictionary(home: Path) -> Dictionary:
    """The dictionary of a data home.

    Raises:
        WordsUnreadable: the shop's file; names file, line, word and reason.
    """
    path = shop_file(home)
    return Dictionary(built_in(), read_words(path) if path.exists() else None)


class LiveDictionary:
    """The dictionary of a data home, read again whenever the shop's file changed.

    A file that cannot be read costs no question: the words read before hold on, and `problem` says what is wrong.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._read_at: tuple[int, int] | None = None
        self._dictionary: Dictionary | None = None
        self.problem = ""

    def current(self) -> Dictionary:
        """The dictionary as the files say now."""
        try:
            state = shop_file(self._home).stat()
            seen = (state.st_mtime_ns, state.st_size)
        except OSError:
            seen = (0, 0)
        if self._dictionary is None or seen != self._read_at:
            try:
                self._dictionary, self.problem = load_dictionary(self._home), ""
            except WordsUnreadable as error:
                self._dictionary, self.problem = self._dictionary or Dictionary(built_in()), error.what
            self._read_at = seen
        return self._dictionary


def read_words(path: Path) -> Shop:
    """The words of a file, each checked by itself and against the others.

    Raises:
        WordsUnreadable: names file, line, word and reason of the first fault.
    """
    document = _document(path)
    words: list[Word] = []
    lines: dict[str, int] = {}
    for node in _list(path, document, "words"):
        word, line = _word(path, node), node.start_mark.line + 1
        for key in map(spelling_key, word.spellings):
            if key in lines:
                raise _fault(path, line, word.word, f"{key!r} is already in line {lines[key]}")
            lines[key] = line
        words.append(word)
    switched_off: list[str] = []
    for node in _list(path, document, "switched_off"):
        line, value = node.start_mark.line + 1, _value(path, node)
        if not isinstance(value, str) or not value.strip():
            raise _fault(path, line, str(value), "a word to switch off must be text; put it in quotes")
        switched_off.append(value)
    return Shop(tuple(words), tuple(switched_off))


def _document(path: Path) -> dict[str, yaml.Node]:
    """The top of a file as nodes, which know their lines."""
    try:
        body = path.read_bytes()
        if len(body) > MAX_BYTES:
            raise WordsUnreadable(f"{path}: {len(body)} bytes; at most {MAX_BYTES}.", "keep only words in this file.")
        root = yaml.compose(body.decode("utf-8-sig"), Loader=_Loader)
    except OSError as error:
        raise WordsUnreadable(f"Cannot read {path}: {error.strerror}.", "check the file's permissions.") from error
    except UnicodeDecodeError as error:
        line = error.object.count(10, 0, error.start) + 1
        raise WordsUnreadable(f"{path}, line {line}: not UTF-8.", "save the file as UTF-8.") from error
    except yaml.YAMLError as error:
        raise _not_yaml(path, error) from error
    except RecursionError as error:
        raise WordsUnreadable(f"{path}: nested too deeply.", f"{built_in_file()} shows the form.") from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise WordsUnreadable(f"{path}: needs a list under the key 'words'.", "begin the file with `words:`.")
    found: dict[str, yaml.Node] = {}
    for key, node in root.value:
        name = str(key.value)
        if name not in ("words", "switched_off") or name in found:
            reason = "here twice" if name in found else "not known"
            raise WordsUnreadable(
                f"{path}, line {key.start_mark.line + 1}: the key {name!r} is {reason}.", "known: words, switched_off."
            )
        found[name] = node
    return found


def _list(path: Path, document: Mapping[str, yaml.Node], name: str) -> list[yaml.Node]:
    node = document.get(name)
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return []
    if not isinstance(node, yaml.SequenceNode):
        line = node.start_mark.line + 1
        raise WordsUnreadable(f"{path}, line {line}: {name!r} must be a list.", "begin each entry with `- `.")
    return list(node.value)


def _word(path: Path, node: yaml.Node) -> Word:
    line, name = node.start_mark.line + 1, "?"
    if isinstance(node, yaml.MappingNode):
        keys = [str(key.value) for key, _ in node.value]
        name = next((str(value.value) for key, value in node.value if key.value == "word"), "?")
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise _fault(path, line, name, f"the key {twice!r} is here twice")
    try:
        return Word.model_validate(_value(path, node))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise _fault(
            path, line, name, f"{field + ': ' if field else ''}{first['msg'].removeprefix('Value error, ')}"
        ) from error


def _value(path: Path, node: yaml.Node) -> Any:
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _not_yaml(path, error, node.start_mark.line + 1) from error
    finally:
        loader.dispose()


def _not_yaml(path: Path, error: Exception, line: int | None = None) -> WordsUnreadable:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark else line
    reason = getattr(error, "problem", None) or str(error).splitlines()[0]
    place = f", line {line}" if line else ""
    return WordsUnreadable(
        f"{path}{place}: not valid YAML ({reason}).", "correct that line, then run `faultwright words check`."
    )


def _fault(path: Path, line: int, word: str, reason: str) -> WordsUnreadable:
    return WordsUnreadable(
        f"{path}, line {line}, word {word[:60]!r}: {reason}.", "correct it, then run `faultwright words check`."
    )
