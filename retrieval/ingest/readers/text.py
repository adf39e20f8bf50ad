"""Reads plain text: paragraphs between blank lines with their lines kept, headings underlined or numbered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from retrieval.ingest.document import Block, Document, Place
from retrieval.ingest.encoding import decoded

LONGEST_HEADING = 100
_UNDERLINES = {"=": 1, "*": 1, "#": 1, "-": 2, "~": 3, "^": 3}
# "3.2 Drives", "Chapter 4", "第3章 伺服", "附录A". One number alone is as often a step or an alarm as a heading.
_NUMBERED = re.compile(
    r"(?P<dots>\d{1,2}(?:\.\d{1,2}){1,4})\.?[ \t\u3000]+(?=[^\W\d_])"
    r"|(?P<chapter>(?:chapter|part|appendix)\s+(?:\d{1,3}|[A-Z])\b|第[0-9一二三四五六七八九十百]{1,4}[章篇部]|附录\s*[0-9A-Z一二三四五六])"
    r"|(?P<section>section\s+\d{1,3}\b|第[0-9一二三四五六七八九十百]{1,4}节)",
    re.IGNORECASE,
)


def read(path: Path, name: str) -> Document:
    """Open a text file of any encoding in `retrieval.ingest.encoding`.

    Raises:
        DocumentUnreadable: the file cannot be opened, is empty or too large, or is no text.
    """
    text, encoding, warnings = decoded(path, name)
    return Document(name, "text", _blocks(text.split("\n")), encoding=encoding, warnings=warnings)


def _blocks(lines: list[str]) -> Iterator[Block]:
    start = 0
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            continue
        end = start
        while end < len(lines) and lines[end].strip():
            end += 1
        yield from _paragraph(lines[start:end], start + 1)
        start = end


def _paragraph(lines: list[str], first: int) -> Iterator[Block]:
    """Blocks of lines that stand together; `first` is the number of the first line."""
    begun = at = 0

    def kept(end: int) -> Iterator[Block]:
        body = [line.rstrip() for line in lines[begun:end] if not _is_rule(line)]
        if body:
            yield Block("text", Place(row=first + begun, line=True), text="\n".join(body))

    while at < len(lines):
        line = lines[at].strip()
        if at + 1 < len(lines) and (level := _underlined(line, lines[at + 1].strip())):
            yield from kept(at)
            yield Block("heading", Place(row=first + at, line=True), text=line, level=level)
            at += 2
            begun = at
        elif len(lines) == 1 and (level := _numbered(line)):
            yield Block("heading", Place(row=first, line=True), text=line, level=level)
            return
        else:
            at += 1
    yield from kept(at)


def _is_rule(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and len(set(bare)) == 1 and bare[0] in "=-_*~#^+"


def _underlined(line: str, below: str) -> int:
    """Level of a heading with a row of one sign below it, about as long; else 0."""
    if not _is_rule(below) or _is_rule(line) or len(line) > LONGEST_HEADING or re.search(r"\t|  |[.。;；]$", line):
        return 0  # gaps: the head of a table
    width = sum(2 if ord(letter) > 0x2E7F else 1 for letter in line)
    return _UNDERLINES.get(below[0], 0) if min(len(line), width) - 2 <= len(below) <= width + 12 else 0


def _numbered(line: str) -> int:
    """Level of a numbered heading; else 0."""
    hit = _NUMBERED.match(line)
    if hit is None or len(line) > LONGEST_HEADING or line[-1] in ".。;；:：,，!！?？":
        return 0
    if hit["dots"]:
        return min(6, hit["dots"].count(".") + 1)
    return 1 if hit["chapter"] else 2
