"""One file, read whole into what is stored of it: its rows as entries, its passages, and what was wrong.

Runs in a worker process: everything that goes in and comes out is plain data.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval.documents import Chunk
from retrieval.families import Maker, catalogue, makers, use_makers, vendor_title
from retrieval.ingest.document import Block
from retrieval.records import Bilingual, Item, KnowledgeEntry

if TYPE_CHECKING:
    from retrieval.ingest.rows import AlarmRow

# Grows when the same file would be read differently: documents read by an older one are read again.
FORMAT = 2
# Blocks that are looked at to see whose controller a document speaks of: about its first twenty pages.
FIRST_BLOCKS = 300
MAX_PROBLEMS = 40
Screen = Callable[[str], str]
_GENERAL_SAFETY = Item(
    id="s99",
    kind="safety",
    text=Bilingual(
        en="Before opening a cabinet or touching anything that can move or be live:"
        " main switch off, lock and tag it, prove that it is dead, and secure what can fall.",
        zh="打开电柜或接触可能运动或带电的部件之前：断开总开关，上锁挂牌，验明无电，并固定可能坠落的部件。",
    ),
)


@dataclass
class Prepared:
    """What is stored of a document.

    `unclear`: it has codes, and does not say whose; `candidates` may be meant. `misfits` are rows whose code is none of
    the maker's. `withheld_rows` are the withheld ones that have a code, see `retrieval.withheld`.
    """

    format: str
    title: str = ""
    version: str = ""
    vendor: str = ""
    family: str = ""
    pages: int | None = None
    entries: list[KnowledgeEntry] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    withheld_rows: list[tuple[str, ...]] = field(default_factory=list)
    unclear: bool = False
    misfits: int = 0
    candidates: tuple[str, ...] = ()

    def withhold(self, entry: KnowledgeEntry, row: AlarmRow, reason: str) -> None:
        """Note a row that is kept out, by its codes too."""
        self.withheld.append(f"{row.place}: code {row.code}: {reason}")
        said = (str(row.place), reason)
        self.withheld_rows += [(entry.vendor, key.family, key.code, key.last, *said) for key in entry.keys]


def prepare(
    path: str,
    name: str,
    document_id: str,
    vendor: str | None,
    family: str | None,
    makers: Sequence[Maker],
    screen: Screen | None,
) -> Prepared:
    """Read one file.

    Args:
        path: where it lies.
        name: what people see.
        document_id: its id in the base.
        vendor: id of the controller's vendor where a person gave it.
        family: id of its family where a person gave it.
        makers: beyond the catalogue's, see `retrieval.families.use_makers`.
        screen: see `retrieval.ingest.run.ingest`.

    Raises:
        DocumentUnreadable: names the file, the reason and the next step.
    """
    use_makers(maker._replace(spoken=True) for maker in makers)  # whose document it is, its name does say
    made = _read(path, name, document_id, (vendor, family), screen)
    if vendor is None and made.misfits > len(made.entries):
        # it only speaks of that maker: a code under the wrong one would be an answer for another machine
        made = _read(path, name, document_id, None, screen, made.candidates or (made.vendor,))
    return made


def _read(
    path: str,
    name: str,
    document_id: str,
    maker: tuple[str | None, str | None] | None,
    screen: Screen | None,
    candidates: tuple[str, ...] = (),
) -> Prepared:
    """Read one file as of a maker: (vendor, family), either None where the document is to say; None for no maker."""
    from retrieval.ingest.entries import Problem, entry_of  # noqa: PLC0415 - the process that waits needs none of it
    from retrieval.ingest.passages import passages  # noqa: PLC0415
    from retrieval.ingest.rows import AlarmRow, split  # noqa: PLC0415
    from retrieval.ingest.sniff import open_document  # noqa: PLC0415

    document = open_document(Path(path), name)
    blocks = iter(document.blocks)
    first = list(itertools.islice(blocks, FIRST_BLOCKS))
    title = _title(document.title, screen)
    made = Prepared(format=document.format, title=title, pages=document.pages, candidates=candidates)
    vendor, family = _whose(made, first, name, *maker) if maker else (None, None)
    made.vendor, made.family = vendor or "", family or ""
    left_out = 0
    problems: dict[str, None] = {}
    dropped: list[str] = []

    def rest() -> Iterator[Block]:
        nonlocal left_out
        for item in split(itertools.chain(first, blocks), vendor, family, dropped):
            if not isinstance(item, AlarmRow):
                yield item
                continue
            if vendor is None:
                left_out += 1
                yield _as_text(item)  # found by its words, as long as nobody says whose code it is
                continue
            entry = entry_of(
                item,
                vendor=vendor,
                family=family,
                document_id=document_id,
                document_name=name,
                version="",
                publisher="the shop's own document",
                read_on=date.today().isoformat(),
            )
            if isinstance(entry, Problem):
                left_out += entry.unsettled
                if not entry.unsettled:
                    problems[str(entry)] = None
                    made.misfits += 1
                yield _as_text(item)
            elif reason := _withheld(entry, screen):
                made.withhold(entry, item, reason)
            else:
                made.entries.append(_with_safety(entry))

    for passage in passages(rest()):
        reason = screen("\n".join((*passage.heading, passage.text))) if screen else ""
        if reason:
            made.withheld.append(f"{passage.place}: {reason}")
            continue
        place = passage.place
        made.chunks.append(Chunk(passage.heading, passage.text, passage.language, place.page, place.sheet, place.row))
    made.entries = _merged(made.entries)
    made.problems += document.warnings
    if left_out:
        made.unclear = True
        missing = "whose controller they are of" if vendor is None else f"which controller of {vendor} it speaks of"
        named = f"; it names {', '.join(made.candidates)}" if made.candidates else ""
        made.problems.append(
            f"{left_out} alarm rows are found by their words, not by their codes: {name} does not say {missing}{named}."
            f" Next: run again with --vendor {vendor or 'NAME'} --family NAME."
        )
    made.problems += _shortened([*problems, *dropped])
    return made


# What programs write where nobody gave a title.
_DEFAULT_TITLE = re.compile(
    r"\(?(?:anonymous|untitled|unknown|unspecified|no\s+title)\)?|无标题|未命名"
    r"|(?:untitled|document|presentation|sheet|book|slide|文档|演示文稿|工作簿)[\s_-]?\d*"
    r"|.*\.(?:docx?|xlsx?|pptx?|rtf|odt|txt|dvi|ps|tex|indd|pdf|htm|html|fm|book|p65|qxd)",
    re.IGNORECASE,
)


def _title(stated: str, screen: Screen | None) -> str:
    """The title that a file states, or nothing where a program made it up or it must not be taken over."""
    title = re.sub(r"^microsoft\s+\w+\s*-\s*", "", stated.strip(), flags=re.IGNORECASE)
    return "" if _DEFAULT_TITLE.fullmatch(title) or (screen and screen(title)) else title


def _whose(
    made: Prepared, first: Sequence[Block], name: str, vendor: str | None, family: str | None
) -> tuple[str | None, str | None]:
    """(vendor, family) that a person gave, else those that the document states."""
    from retrieval.ingest.identify import identify, only_family  # noqa: PLC0415

    if vendor is not None and family is not None:
        return vendor, (_model_in(made, first, name, vendor) or family) if family == vendor else family
    identity = identify(made.title, first, name)
    made.candidates = tuple(identity.candidates)
    if vendor is None:
        family = identity.family
        if identity.vendor and family in (None, identity.vendor):
            family = _model_in(made, first, name, identity.vendor) or family
        return identity.vendor, family
    if identity.vendor not in (None, vendor):
        made.problems.append(f"{name} names {identity.vendor}; its rows are taken as {vendor}'s, as you said.")
    family = identity.family if identity.vendor == vendor else only_family(vendor)
    if family in (None, vendor):
        family = _model_in(made, first, name, vendor) or family
    return vendor, family


def _model_in(made: Prepared, first: Sequence[Block], name: str, vendor: str) -> str | None:
    """The family that a document states of a maker whose families the catalogue does not list.

    Each numbers its alarms in its own way: a row of a GSK 25i is no answer for a 980TDi.
    """
    from retrieval.ingest.identify import model_of  # noqa: PLC0415

    known = catalogue()[vendor]
    if not known.get("shop") and vendor not in known["families"]:
        return None
    family = model_of(vendor, made.title, first, name)
    if family and family not in known["families"]:
        use_makers((*makers(), Maker(vendor, family, vendor_title(vendor, "en"))))
    return family


def _shortened(problems: Sequence[str]) -> list[str]:
    if len(problems) <= MAX_PROBLEMS:
        return list(problems)
    return [*problems[:MAX_PROBLEMS], f"and {len(problems) - MAX_PROBLEMS} more rows like these"]


def _as_text(row: AlarmRow) -> Block:
    """A row as a text of its own."""
    parts = [row.code, row.heading, row.heading_other, row.meaning, row.reaction]
    listed = [*row.causes, *row.checks, *row.actions, row.reset, row.setting]
    head = " ".join(part for part in parts if part)
    return Block("text", row.place, "\n".join([head, *(part for part in listed if part)]), confidence=row.confidence)


def _withheld(entry: KnowledgeEntry, screen: Screen | None) -> str:
    """Why an entry must not be taken over, or nothing."""
    if screen is None:
        return ""
    texts = [entry.title, entry.meaning, *(item.text for item in entry.items)]
    return next((reason for text in texts for side in (text.en, text.zh) if side and (reason := screen(side))), "")


def _with_safety(entry: KnowledgeEntry) -> KnowledgeEntry:
    """A row that advises work gets the warning that holds for every machine, before what the document says itself."""
    if not any(item.kind in ("check", "action", "cause") for item in entry.items):
        return entry
    return entry.model_copy(update={"items": (_GENERAL_SAFETY, *entry.items)})


def _merged(entries: Sequence[KnowledgeEntry]) -> list[KnowledgeEntry]:
    """Entries with ids of their own: a document may list one code twice, and both rows are kept."""
    seen: dict[str, int] = {}
    found = []
    for entry in entries:
        seen[entry.id] = seen.get(entry.id, 0) + 1
        again = seen[entry.id]
        found.append(entry if again == 1 else entry.model_copy(update={"id": f"{entry.id}.{again}"}))
    return found
