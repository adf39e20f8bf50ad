"""What search sees of the knowledge: a unit per entry or passage, with its words and what is embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.components import components_in
from retrieval.records import EntryKind, KnowledgeEntry, Language
from retrieval.tokens import code_tokens, tokenize

_LANGUAGES: tuple[Language, Language] = ("en", "zh")


@dataclass(frozen=True)
class Embedded:
    """A text that has a vector of its own."""

    language: Language
    text: str

    @property
    def hash(self) -> str:
        """sha256 of the text (hex): equal texts are embedded once, whatever holds them."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def vector_id(text_hash: str) -> int:
    """Number of a text in a vector index: the first 63 bits of its hash (FAISS ids are signed)."""
    return int(text_hash[:16], 16) >> 1


@dataclass(frozen=True)
class Unit:
    """One thing that a search may find.

    `owner` is the id of an entry or a passage. `tokens` are its words for BM25; `components` the parts of a machine
    that its titles, meaning and phrases name, `title_components` those of its titles alone.
    """

    owner: str
    kind: EntryKind
    vendor: str
    tokens: tuple[str, ...]
    texts: tuple[Embedded, ...]
    components: frozenset[str]
    title_components: frozenset[str]


def texts_of(entry: KnowledgeEntry) -> tuple[Embedded, ...]:
    """What is embedded of an entry: title with meaning, and each phrase by itself, per language that it has.

    A phrase is the way a person would say it; a vector of its own lets a short question meet it, where one vector for
    the whole entry would average it away.
    """
    found: list[Embedded] = []
    for language in _LANGUAGES:
        title, meaning = getattr(entry.title, language), getattr(entry.meaning, language)
        head = ". ".join(text for text in dict.fromkeys((title, meaning)) if text)
        texts = [head, *entry.phrases.get(language, ())] if head else list(entry.phrases.get(language, ()))
        found += [Embedded(language, text) for text in dict.fromkeys(texts)]
    return tuple(found)


def words_of(entry: KnowledgeEntry) -> list[str]:
    """BM25 tokens of one entry, both languages; titles and phrases count twice, codes in all spellings."""
    weighty = [entry.title.en, entry.title.zh, *entry.phrases.get("en", ()), *entry.phrases.get("zh", ())]
    texts = [entry.meaning.en, entry.meaning.zh]
    for item in entry.items:
        texts += [item.text.en, item.text.zh]
    tokens = [token for text in weighty if text for token in tokenize(text)] * 2
    tokens += [token for text in texts if text for token in tokenize(text)]
    for key in entry.keys:
        tokens += code_tokens(key.code)
    return tokens


def unit_of_entry(entry: KnowledgeEntry) -> Unit:
    """The unit of an entry."""
    texts = texts_of(entry)
    titles = f"{entry.title.en}\n{entry.title.zh}"
    return Unit(
        owner=entry.id,
        kind=entry.kind,
        vendor=entry.vendor,
        tokens=tuple(words_of(entry)),
        texts=texts,
        components=components_in("\n".join(text.text for text in texts)),
        title_components=components_in(titles),
    )


def embedded_passage(heading: Sequence[str], text: str, language: Language) -> Embedded:
    """What is embedded of a passage: its heading path and its text."""
    title = " / ".join(heading)
    return Embedded(language, f"{title}. {text}" if title else text)


def unit_of_passage(owner: str, vendor: str, heading: Sequence[str], text: str, language: Language) -> Unit:
    """The unit of a passage of a document. Its heading is embedded with it: a passage alone often lacks its subject."""
    title = " / ".join(heading)
    embedded = embedded_passage(heading, text, language)
    return Unit(
        owner=owner,
        kind="passage",
        vendor=vendor,
        tokens=(*tokenize(title), *tokenize(title), *tokenize(text)) if title else tokenize(text),
        texts=(embedded,),
        components=components_in(embedded.text),
        title_components=components_in(title),
    )
