"""Reads Markdown: headings, paragraphs, lists, code and pipe tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval.ingest.document import Block, Document, DocumentUnreadable, Place, Row
from retrieval.ingest.encoding import decoded
from retrieval.ingest.readers.html import fragment_blocks

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_CHARACTERS = 20_000_000  # the parser holds every line as an object
_FRONT_MATTER = re.compile(r"---\n((?:[^\n]*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|$)")
_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^>]*>|<!--.*?-->", re.DOTALL)


def read(path: Path, name: str) -> Document:
    """Open a Markdown file.

    Raises:
        DocumentUnreadable: the file cannot be opened, is empty or too large, or is no text.
    """
    from markdown_it import MarkdownIt  # noqa: PLC0415 - a tenth of a second

    text, encoding, warnings = decoded(path, name)
    if len(text) > MAX_CHARACTERS:
        raise DocumentUnreadable(f"{name} has more than {MAX_CHARACTERS} characters.", "split it into parts.")
    title, skipped = "", 0
    if matter := _FRONT_MATTER.match(text):
        named = _TITLE.search(matter.group(1))
        title = named.group(1) if named else ""
        skipped = matter.group().count("\n")
        text = text[matter.end() :]
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return Document(name, "markdown", _blocks(tokens, skipped + 1), title=title, encoding=encoding, warnings=warnings)


def _blocks(tokens: Sequence[Token], first: int) -> Iterator[Block]:
    at = 0
    while at < len(tokens):
        token = tokens[at]
        place = Place(row=first + token.map[0], line=True) if token.map else Place()
        if token.type in ("bullet_list_open", "ordered_list_open", "table_open", "heading_open"):
            end = _close(tokens, at)
            yield from _group(tokens[at : end + 1], place, first)
            at = end
        elif token.type == "inline":
            yield from _text(_inline(token), place)
        elif token.type in ("fence", "code_block"):
            yield from _text(token.content, place)
        elif token.type == "html_block":
            yield from (Block(b.kind, place, b.text, b.level, b.rows) for b in fragment_blocks(token.content))
        at += 1


def _close(tokens: Sequence[Token], at: int) -> int:
    """Place of the token that closes the one at `at`."""
    kind, level = tokens[at].type.replace("_open", "_close"), tokens[at].level
    return next(k for k in range(at + 1, len(tokens)) if tokens[k].type == kind and tokens[k].level == level)


def _group(tokens: Sequence[Token], place: Place, first: int) -> Iterator[Block]:
    kind = tokens[0].type
    if kind == "table_open":
        rows = _rows(tokens, first)
        if rows:
            yield Block("table", rows[0].place, rows=rows)
    elif kind == "heading_open":
        text = " ".join(_inline(tokens[1]).split())
        if text:
            yield Block("heading", place, text=text, level=int(tokens[0].tag[1]))
    elif any(token.type == "table_open" for token in tokens):  # a table in a list: its items one by one
        yield from _blocks(tokens[1:-1], first)
    else:
        yield from _text("\n".join(_items(tokens)), place)


def _text(text: str, place: Place) -> Iterator[Block]:
    body = "\n".join(line.rstrip() for line in text.split("\n") if line.strip())
    if body:
        yield Block("text", place, text=body)


def _rows(tokens: Sequence[Token], first: int) -> tuple[Row, ...]:
    rows: list[Row] = []
    cells: list[str] = []
    place = Place()
    for token in tokens:
        if token.type == "tr_open":
            cells = []
            place = Place(row=first + token.map[0], line=True) if token.map else place
        elif token.type == "inline":
            cells.append(_inline(token).strip())
        elif token.type == "tr_close":
            rows.append(Row(tuple(cells), place))
    return tuple(rows)


def _items(tokens: Sequence[Token]) -> Iterator[str]:
    """Lines of a list, its inner lists indented by two spaces each."""
    counters: list[int | None] = []
    marker = ""
    for token in tokens:
        if token.type == "bullet_list_open":
            counters.append(None)
        elif token.type == "ordered_list_open":
            counters.append(int(token.attrGet("start") or 1))
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            counters.pop()
        elif token.type == "list_item_open":
            number = counters[-1]
            marker = "- " if number is None else f"{number}. "
            counters[-1] = None if number is None else number + 1
        elif token.type in ("inline", "fence", "code_block", "html_block"):
            text = _inline(token) if token.type == "inline" else _TAG.sub("", token.content)
            for line in text.split("\n"):
                if line.strip():
                    yield f"{'  ' * (len(counters) - 1)}{marker}{line.strip()}"
                    marker = ""


def _inline(token: Token) -> str:
    return "".join(_shown(child) for child in token.children or ())


def _shown(child: Any) -> str:
    if child.type in ("softbreak", "hardbreak"):
        return "\n"
    if child.type == "html_inline":
        return "\n" if _BREAK.fullmatch(child.content) else ""
    return str(child.content)  # of a picture: its description
