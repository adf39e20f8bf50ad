"""From a row of a shop's document to an entry of the base: only what the document says, unverified, with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from retrieval.code_context import families_of
from retrieval.codes import canonical
from retrieval.families import catalogue, family_title, vendor_title
from retrieval.ingest.rows import AlarmRow
from retrieval.records import (
    UNPRINTABLE,
    Bilingual,
    FamilyCode,
    Item,
    ItemKind,
    KnowledgeEntry,
    Language,
    Reset,
    Source,
    StopOrRun,
)

LONGEST_TEXT = 4000
LONGEST_TITLE = 200
MOST_ITEMS = 99  # of one kind: their ids have two digits
MOST_SAFETY = 20
SOURCE_ID = "doc"  # of the one source of such an entry
_SENTENCE = re.compile(r"(?<=[。！？；\n])|(?<=[.!?])\s+(?=[A-Z\"(\u3400-\u9fff])")
_SAFETY = re.compile(
    r"^\W*(?:warning|caution|danger|attention)\b|^\W*(?:警告|注意|危险|当心|小心)"
    r"|\bbefore (?:opening|touching|working on|removing|entering)\b|\block(?:ed)?[ -]?out\b|\btag[ -]?out\b"
    r"|\b(?:disconnect|isolate|turn off|switch off|shut off|cut off)\s(?:\w+\s){0,3}(?:power|supply|voltage"
    r"|main switch|breaker)\b"
    r"(?!.{0,12}\band\s(?:then\s)?(?:back\s)?on\b)|\bpower must be off\b|\bwith (?:the )?power off\b"
    r"|\bde-?energi[sz]e"
    r"|\bhigh voltage\b|\belectric(?:al)? shock\b|\bresidual (?:voltage|charge|pressure)\b|\bwait (?:at least "
    r"|for )?\d+ ?(?:min|s)"
    r".{0,40}\b(?:discharg|capacitor|voltage)|\b(?:injury|death|fatal)\b|\bsecure (?:\w+ ){0,3}(?:against"
    r"|from) (?:falling|dropping)"
    r"|切断(?:\w{0,4})电源|断开(?:\w{0,4})电源|必须断电|断电后|断电状态|上锁挂牌|高压|触电|放电|残余电压|残压"
    r"|防止\w{0,4}(?:坠落|掉落|下落)|人身|伤害",
    re.IGNORECASE,
)
# From what the document says of the machine's reaction. That it may run on is taken only where it says nothing else.
_STOPS_NOW = re.compile(
    r"emergency stop|\bimmediate(?:ly)?\b|\bat once\b|\bpower[ -]?off\b|\boff ?[23]\b|急停|紧急停止|立即"
    r"|切断电源|断电",
    re.IGNORECASE,
)
_RUNS_ON = re.compile(
    r"(?:none|no (?:reaction|response|stop)|(?:machining|operation) (?:is )?continue[sd]?|(?:alarm"
    r"|message) display only|display only"
    r"|无(?:反应)?|不停机|继续(?:运行|加工)|仅显示(?:报警)?)[.。]?",
    re.IGNORECASE,
)
_RESETS: tuple[tuple[Reset, re.Pattern[str]], ...] = (
    (
        "power_cycle",
        re.compile(
            r"\bpower[ -]?(?:off|on|cycle|down)\b|\boff\b.{0,12}\bon\b|\brestart the (?:control|machine|drive)"
            r"|断电|上电|重启|关机|电源",
            re.IGNORECASE,
        ),
    ),
    ("homing", re.compile(r"\breference\b|\bhom(?:e|ing)\b|回零|回参考点|返回参考点|回原点", re.IGNORECASE)),
    (
        "clear_cause_first",
        re.compile(
            r"\b(?:after|once|eliminat\w*|remov\w*|rectif\w*|correct\w*)\b.{0,40}\b(?:cause|fault|alarm)"
            r"|(?:排除|消除|解除|处理).{0,8}(?:后|原因|故障)",
            re.IGNORECASE,
        ),
    ),
    ("reset_key", re.compile(r"\breset\b|复位", re.IGNORECASE)),
)
_LABELS: dict[Language, tuple[str, str]] = {"en": ("Reaction: ", "Reset: "), "zh": ("反应：", "复位：")}


@dataclass(frozen=True)
class Problem:
    """A row that does not become an entry: `what` names the cell, its place and the reason.

    `unsettled`: the reason is that the family of the controller is not known.
    """

    what: str
    next_step: str
    unsettled: bool = False

    def __str__(self) -> str:
        return f"{self.what} Next: {self.next_step}"


class _Unreadable(ValueError):
    """A code cell that the vendor's grammar does not know."""


class _Unsettled(_Unreadable):
    """The document does not say which family of controllers it speaks of."""


def entry_of(
    row: AlarmRow,
    *,
    vendor: str,
    family: str | None,
    document_id: str,
    document_name: str,
    version: str,
    publisher: str,
    read_on: str,
) -> KnowledgeEntry | Problem:
    """Make an entry of a row; a `Problem` where its code is not one of the vendor's, or the family is not settled.

    Args:
        row: from `retrieval.ingest.rows.split`.
        vendor: id of the controller's vendor.
        family: id of its family; None is enough for a vendor that has a single one.
        document_id: 8 to 12 hex digits.
        document_name: as people see it; it becomes the title and address of the source.
        version: of the document, may be empty.
        publisher: who made the document.
        read_on: ISO date.
    """
    where = f"{document_name}, {row.place}" if str(row.place) else document_name
    try:
        keys = (_key(row, vendor, family),)
    except _Unreadable as error:
        return Problem(
            f"{where}: code cell {row.code!r}: {error}.",
            "compare the cell with the document; if it is of another controller, run again with --vendor and --family.",
            unsettled=isinstance(error, _Unsettled),
        )
    notes = [f"from the shop's document {document_name}; nobody has checked it"]
    if row.confidence < 1:
        notes.append(f"read from a picture (confidence {row.confidence:.2f}): compare it with the page")
    cut = _Cut(row.language, notes)
    try:
        return _entry(row, document_id, vendor, keys, cut, _source(row, document_name, version, publisher, read_on))
    except ValidationError as error:
        reason = "; ".join(str(detail["msg"]) for detail in error.errors()[:3])
        return Problem(f"{where}: {row.code!r} {row.heading[:60]!r}: {reason}.", "check the row in the document.")


def _entry(
    row: AlarmRow, document_id: str, vendor: str, keys: tuple[FamilyCode, ...], cut: _Cut, source: Source
) -> KnowledgeEntry:
    reaction, reset = _LABELS[row.language]
    said = [row.meaning or row.heading]
    said += [f"{reaction}{row.reaction}"] if row.reaction else []
    said += [f"{reset}{row.reset}"] if row.reset else []
    stop = _stop_or_run(row.reaction)
    title = cut.text(row.heading, LONGEST_TITLE, "heading")
    if row.heading_other:
        title = Bilingual(
            **{row.language: title.get(row.language), _other(row.language): row.heading_other[:LONGEST_TITLE]}
        )
    prefix = "p-" if row.kind == "parameter" else ""
    meaning = cut.text("\n".join(said), LONGEST_TEXT, "meaning")
    items = tuple(_items(row, cut))
    return KnowledgeEntry(
        id=f"doc-{document_id}/{prefix}{_slug(row)}",
        kind=row.kind,
        vendor=vendor,
        keys=keys,
        title=title,
        meaning=meaning,
        severity=row.severity or "fault",
        stop_or_run=stop or "stop_at_safe_point",
        stop_reason=cut.text(row.reaction, LONGEST_TEXT, "reaction") if stop else None,
        reset=_reset(row.reset),
        items=items,
        sources=(source,),
        status="unverified",
        status_note="; ".join(dict.fromkeys(cut.notes)),
    )


def _source(row: AlarmRow, name: str, version: str, publisher: str, read_on: str) -> Source:
    return Source(
        id=SOURCE_ID,
        title=f"{name} {version}".strip(),
        address=name,
        place=str(row.place),
        publisher=publisher,
        read_on=read_on,
    )


# ---- keys ----
def _key(row: AlarmRow, vendor: str, family: str | None) -> FamilyCode:
    known = families_of(vendor)
    if family is None:
        family = known[0] if len(known) == 1 else vendor if vendor in known else None
    if family is None:
        named = ", ".join(f"{known_as} ({family_title(vendor, known_as, 'en')})" for known_as in known)
        raise _Unsettled(
            f"{vendor_title(vendor, 'en')} numbers its alarms differently by family, and the document does not say"
            f" which: {named}"
            if known
            else f"no controller family is known for vendor {vendor!r}"
        )
    if row.kind == "parameter":
        return FamilyCode(family=family, code=_tight(row.first), last=_tight(row.last))
    drives = catalogue().get(vendor, {}).get("families", {}).get(family, {}).get("drives", ())
    reasons = []
    for candidate in (family, *(drives if row.first[:1].isalpha() else ())):
        try:
            last = canonical(row.last, vendor, candidate) if row.last else ""
            return FamilyCode(family=candidate, code=canonical(row.first, vendor, candidate), last=last)
        except ValueError as error:
            reasons.append(str(error))
    raise _Unreadable(reasons[0])


def _tight(code: str) -> str:
    return " ".join(code.upper().split())


def _slug(row: AlarmRow) -> str:
    whole = f"{row.first}-{row.last}" if row.last else row.first
    return re.sub(r"[^a-z0-9._-]+", "-", whole.lower()).strip("-.") or "row"


# ---- items ----
class _Cut:
    """Makes texts of a row fit for an entry, and notes what had to be left out."""

    def __init__(self, language: Language, notes: list[str]) -> None:
        self.language = language
        self.notes = notes

    def text(self, text: str, longest: int, what: str) -> Bilingual:
        """A text in the row's language, without control characters, cut at the end of a sentence if it is too long."""
        plain = UNPRINTABLE.sub("", text).strip()
        if len(plain) > longest:
            plain = _shortened(plain, longest)
            self.notes.append(f"{what} cut at {longest} characters: read on in the document")
        return Bilingual(**{self.language: plain})

    def most(self, texts: Sequence[str], most: int, what: str) -> Sequence[str]:
        """The first `most` of the texts that say something."""
        told = [text for text in texts if UNPRINTABLE.sub("", text).strip()]
        if len(told) > most:
            self.notes.append(f"{len(told)} {what}, the first {most} are kept: read on in the document")
        return told[:most]


def _items(row: AlarmRow, cut: _Cut) -> Iterator[Item]:
    safety = cut.most(list(_safety_in(row)), MOST_SAFETY, "safety notes")
    causes = cut.most(row.causes, MOST_ITEMS, "causes")
    checks = cut.most(row.checks, MOST_ITEMS, "checks")
    actions = cut.most(row.actions, MOST_ITEMS, "actions")
    settings = [row.setting] if row.setting else []
    paired = row.paired and len(causes) == len(actions)
    groups: tuple[tuple[str, ItemKind, Sequence[str]], ...] = (
        ("s", "safety", safety),
        ("c", "cause", causes),
        ("k", "check", checks),
        ("a", "action", actions),
        ("r", "range", settings),
    )
    for letter, kind, texts in groups:
        for number, text in enumerate(texts, start=1):
            yield Item(
                id=f"{letter}{number}",
                kind=kind,
                text=cut.text(text, LONGEST_TEXT, kind),
                sources=(SOURCE_ID,),
                for_causes=(f"c{number}",) if paired and kind == "action" else (),
            )


def _safety_in(row: AlarmRow) -> dict[str, None]:
    """Sentences of the row that warn, each once and in order; they stay in their places too."""
    found: dict[str, None] = {}
    for text in (row.meaning, row.reaction, *row.causes, *row.checks, *row.actions):
        for sentence in _SENTENCE.split(text):
            if _SAFETY.search(sentence):
                found[sentence.strip()] = None
    return found


def _shortened(text: str, longest: int) -> str:
    head = text[: longest - 2]
    ends = [match.start() for match in _SENTENCE.finditer(head) if match.start() > longest // 2]
    return f"{head[: ends[-1]].rstrip()} …" if ends else f"{head.rsplit(None, 1)[0] if ' ' in head[-80:] else head} …"


def _stop_or_run(reaction: str) -> StopOrRun | None:
    if not reaction:
        return None
    if _STOPS_NOW.search(reaction):
        return "stop_now"
    return "may_continue" if _RUNS_ON.fullmatch(reaction.strip()) else None


def _reset(text: str) -> Reset:
    return next((kind for kind, pattern in _RESETS if text and pattern.search(text)), "unknown")


def _other(language: Language) -> Language:
    return "en" if language == "zh" else "zh"
