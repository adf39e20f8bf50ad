"""Passages: whole sentences of 60 to 220 words or 120 to 450 characters under one heading, with their place.

A row of a sheet with names over its columns is a passage of its own.

The same text gives the same passages whatever stands before it: they start afresh at each heading and page, and where a
format has no pages at paragraphs that their own hash picks, so that a change in one place leaves the others alone.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from retrieval.ingest.document import Block, Place, Row
from retrieval.ingest.sentences import (
    MARKER,
    glue,
    is_finished,
    joined,
    language_of,
    lines_of,
    measure,
    pieces,
    sentences,
)
from retrieval.records import Language

AFRESH_TEXT = 16  # without pages one paragraph in so many, and one row in so many, ends what is packed together
AFRESH_ROW = 32
RECORD_COLUMNS = 4
RECORD_LENGTH = 40  # characters
HEADER_CELL = 60  # characters; longer cells are no names of columns
SHORT_CELL = 12  # "Alarm No." ends with a full stop and is no sentence
TELLING = 1 / 20  # share of the most: a heading with nothing below it that is longer says something by itself
_EPSILON = 1e-9


@dataclass(frozen=True)
class Passage:
    """A piece of text to search in. `heading` is the path of headings above it; `place` that of its first sentence.

    `hash` is the sha256 of the text with its white space collapsed.
    """

    text: str
    heading: tuple[str, ...]
    language: Language
    place: Place
    hash: str


@dataclass
class _Atom:
    """A sentence or a row of a table. `step` numbers the item of a list that it belongs to, `steps` the list."""

    text: str
    new_line: bool
    place: Place
    steps: int = 0
    step: int = 0
    share: float = 0.0
    least: float = 0.0

    def __post_init__(self) -> None:
        self.share, self.least = measure(self.text)


@dataclass
class _Section:
    """What is packed together: atoms under one heading, on one page where there are pages."""

    atoms: list[_Atom] = field(default_factory=list)
    step: int = 0

    def add_text(self, block: Block) -> None:
        """Add a paragraph's or list's sentences."""
        for line in lines_of(block.text):
            is_step = MARKER.match(line) is not None
            steps = 0
            if is_step:
                self.step += 1
                steps = self._steps()
            new_line = True
            for sentence in sentences(line):
                for piece in pieces(sentence):
                    self.atoms.append(_Atom(piece, new_line, block.place, steps, self.step if is_step else 0))
                    new_line = False

    def _steps(self) -> int:
        """The list that a new step belongs to: that of the step before it, or one that its lead-in begins."""
        if not self.atoms:
            return self.step
        last = self.atoms[-1]
        if not last.steps and last.text.endswith((":", "：")):
            last.steps, last.step = self.step, self.step - 1
        return last.steps or self.step

    def add_row(self, text: str, place: Place) -> None:
        """Add a row of a table; one longer than a passage is cut."""
        whole = measure(text)[0] <= 1
        for piece in [text] if whole else [p for sentence in sentences(text) for p in pieces(sentence)]:
            self.atoms.append(_Atom(piece, True, place))

    def go_on(self, sentence: str) -> None:
        """Add the end of a sentence that the page broke off."""
        last = self.atoms.pop()
        for n, piece in enumerate(pieces(last.text + glue(last.text, sentence) + sentence)):
            self.atoms.append(_Atom(piece, last.new_line and n == 0, last.place, last.steps, last.step))


@dataclass
class _Table:
    """The header of the table that was read last, for where it goes on."""

    header: tuple[str, ...] = ()
    place: Place = field(default_factory=Place)

    def lines(self, block: Block) -> Iterator[tuple[str, Row]]:
        """Rows as "header: value; ..." lines."""
        rows = list(block.rows)
        goes_on = len(self.header) == len(rows[0].cells) and _follows(self.place, rows[0].place)
        if not goes_on:
            self.header = ()
        for number, row in enumerate(rows):
            values = [_cell(cell, row.place) for cell in row.cells]
            texts = set(filter(None, values))
            self.place = row.place
            if not texts:
                continue
            if len(texts) == 1 and len(row.cells) > 1 and all(row.cells):
                yield texts.pop(), row  # a title over the whole width
            elif goes_on and row.cells == self.header:
                continue
            elif not self.header and number < len(rows) - 1 and _is_header(row.cells, rows[number + 1].cells):
                self.header = row.cells
            else:
                yield self._line(values), row

    def _line(self, values: Sequence[str]) -> str:
        if not self.header:
            parting = ": " if len(values) == 2 and values[0] and len(values[0]) <= HEADER_CELL else "; "
            return parting.join(value for value in values if value)
        named: list[str] = []
        for name, value in zip(self.header, values, strict=True):
            text = f"{joined(lines_of(name))}: {value}" if name else value
            if value and text not in named:  # a merged cell under a merged header says it once
                named.append(text)
        return "; ".join(named)


def _cell(text: str, place: Place) -> str:
    """A cell in one line. On pages its lines may only be wrapped; in a sheet somebody parted them."""
    return joined(lines_of(text)) if place.page is not None else " ".join(text.split())


def passages(blocks: Iterable[Block]) -> Iterator[Passage]:
    """Cut blocks into passages, in order; as many blocks are held as stand under one heading on one page."""
    path: list[tuple[int, str]] = []
    section, table = _Section(), _Table()
    bare: Block | None = None  # a heading that nothing stands under so far
    before: Block | None = None
    for block in blocks:
        titles = tuple(title for _, title in path)
        if block.kind == "heading":
            yield from _packed(section, titles)
            if bare is not None and block.level <= bare.level:
                yield from _bare(bare, titles)
            section, table = _Section(), _Table()
            path = [(level, title) for level, title in path if level < block.level]
            path.append((block.level, " ".join(block.text.split())))
            bare = before = block
            continue
        if before is not None and block.place.page != before.place.page and section.atoms:
            block = _after_break(section, before, block)  # noqa: PLW2901 - without what belongs to the page before
            yield from _packed(section, titles)
            section = _Section()
        if block.kind == "table":
            yield from _add_table(section, table, block, titles)
        else:
            section.add_text(block)
            if section.atoms and block.place.page is None and _starts_afresh(block.text, section):
                yield from _packed(section, titles)
                section = _Section()
        bare = None if section.atoms or block.text or block.rows else bare
        before = block
    titles = tuple(title for _, title in path)
    yield from _packed(section, titles)
    if bare is not None:
        yield from _bare(bare, titles)


def _bare(heading: Block, titles: tuple[str, ...]) -> Iterator[Passage]:
    """A heading without text that is a sentence by itself, as warnings are printed: it must be found."""
    text = " ".join(heading.text.split())
    if measure(text)[0] >= TELLING:
        yield _passage(text, titles[:-1], heading.place)


def _add_table(section: _Section, table: _Table, block: Block, titles: tuple[str, ...]) -> Iterator[Passage]:
    for line, row in table.lines(block) if block.rows else ():
        unpaged = row.place.page is None
        # a work order is a record of its own: found, quoted and changed without its neighbours
        record = unpaged and len(table.header) >= RECORD_COLUMNS and len(line) >= RECORD_LENGTH
        if record:
            yield from _packed(section, titles)
            section.atoms.clear()
        section.add_row(line, row.place)
        if record or (unpaged and _picked(line, AFRESH_ROW)):
            yield from _packed(section, titles)
            section.atoms.clear()


def _follows(before: Place, place: Place) -> bool:
    if place.page is not None:
        return before.page in (place.page, place.page - 1)
    return bool(before.row and place.row and before.sheet == place.sheet and place.row > before.row)


def _is_header(cells: Sequence[str], below: Sequence[str]) -> bool:
    """Whether cells name columns: short words without numbers of their own, over cells that differ from them."""
    filled = [cell for cell in cells if cell]
    if len(filled) < 2 or len(filled) < len(cells) / 2 or len(set(filled)) < 2:
        return False
    named = all(
        len(cell) <= HEADER_CELL and any(c.isalpha() for c in cell) and not _is_sentence(cell) for cell in filled
    )
    numbers = sum(any(c.isdigit() for c in cell) for cell in filled)
    # two columns may be names and values from the first row on
    numbers_below = sum(any(c.isdigit() for c in cell) for cell in below)
    return named and numbers == 0 and (len(cells) > 2 or numbers_below > 0)


def _is_sentence(cell: str) -> bool:
    return len(cell) > SHORT_CELL and is_finished(cell)


def _starts_afresh(text: str, section: _Section) -> bool:
    last = section.atoms[-1]
    return not last.steps and not last.text.endswith((":", "：")) and _picked(text, AFRESH_TEXT)


def _picked(text: str, share: int) -> bool:
    return hashlib.sha256(" ".join(text.split()).encode()).digest()[0] % share == 0


def _after_break(section: _Section, before: Block, block: Block) -> Block:
    """Move the end of a sentence that the page breaks off to where it began; what remains of the new page's block."""
    if before.kind != "text" or block.kind != "text" or not _runs_on(section.atoms[-1].text, block.text):
        return block
    lines = lines_of(block.text)
    head, *rest = sentences(lines[0])
    section.go_on(head)
    return Block("text", block.place, text="\n".join([line for line in (joined(rest), *lines[1:]) if line]))


def _runs_on(last: str, text: str) -> bool:
    after = text.strip()
    if not after or is_finished(last) or MARKER.match(after):
        return False
    if after[0].islower() or last[-1] in ",，、-(（":
        return True
    # Chinese has no small letters: a long text without a full stop that goes on with a character
    return glue(last, after) == "" and len(last) >= 15 and not MARKER.match(last)


def _packed(section: _Section, titles: tuple[str, ...]) -> Iterator[Passage]:
    """Atoms put together evenly: as few passages as they need, none longer than the most."""
    bundles = _bundles(section.atoms)
    if not bundles:
        return
    total = sum(_share(bundle) for bundle in bundles)
    even = total / max(1, math.ceil(total - _EPSILON))
    packs: list[list[list[_Atom]]] = [[]]
    held = 0.0
    for bundle in bundles:
        share = _share(bundle)
        if packs[-1] and (held + share > 1 + _EPSILON or _is_full(packs[-1], bundle, held, even)):
            packs.append([])
            held = 0.0
        packs[-1].append(bundle)
        held += share
    _lengthen_last(packs)
    for pack in packs:
        atoms = [atom for bundle in pack for atom in bundle]
        text = atoms[0].text
        for atom in atoms[1:]:
            text += ("\n" if atom.new_line else glue(text, atom.text)) + atom.text
        yield _passage(text, titles, atoms[0].place)


def _passage(text: str, titles: tuple[str, ...], place: Place) -> Passage:
    digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
    return Passage(text, titles, language_of(text), place, digest)


def _bundles(atoms: Sequence[_Atom]) -> list[list[_Atom]]:
    """Atoms that stay together: a list that fits one passage, else each of its steps, else single sentences."""
    found: list[list[_Atom]] = []
    for run in _runs(atoms, lambda atom: atom.steps):
        if not run[0].steps or _share(run) <= 1:
            found += [run] if run[0].steps else [[atom] for atom in run]
            continue
        for step in _runs(run, lambda atom: atom.step):
            found += [step] if _share(step) <= 1 else [[atom] for atom in step]
    return found


def _runs(atoms: Sequence[_Atom], key: Callable[[_Atom], int]) -> Iterator[list[_Atom]]:
    for _, run in itertools.groupby(atoms, key=key):
        yield list(run)


def _share(bundle: Sequence[_Atom]) -> float:
    return sum(atom.share for atom in bundle)


def _least(pack: Sequence[Sequence[_Atom]]) -> float:
    return sum(atom.least for bundle in pack for atom in bundle)


def _is_full(pack: Sequence[Sequence[_Atom]], bundle: Sequence[_Atom], held: float, even: float) -> bool:
    """Whether a pack that could hold more is long enough: near the even length, or the language changes."""
    if _least(pack) < 1:
        return False
    if held + _share(bundle) / 2 > even:
        return True
    own = " ".join(atom.text for atom in bundle)
    return _share(bundle) > TELLING and language_of(own) != language_of(pack[-1][-1].text)


def _lengthen_last(packs: list[list[list[_Atom]]]) -> None:
    """A short rest joins the passage before it, or takes over its end."""
    if len(packs) < 2 or _least(packs[-1]) >= 1:
        return
    shares = [sum(_share(bundle) for bundle in pack) for pack in packs[-2:]]
    if sum(shares) <= 1:
        packs[-2:] = [packs[-2] + packs[-1]]
        return
    while len(packs[-2]) > 1 and _least(packs[-1]) < 1:
        moved = packs[-2][-1]
        if _least(packs[-2][:-1]) < 1 or shares[1] + _share(moved) > 1:
            return
        shares[1] += _share(moved)
        packs[-1].insert(0, packs[-2].pop())
