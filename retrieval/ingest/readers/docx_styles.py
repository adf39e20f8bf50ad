"""What the styles and numberings of a DOCX say of a paragraph: its level as a heading, its number in a list."""

from __future__ import annotations

import re
from typing import Any

MAX_PARENTS = 20  # styles based on styles; a circle ends here
_HEADING_NAME = re.compile(r"(?:heading|标题)\s*([1-9])", re.IGNORECASE)
_CONTENTS_NAME = re.compile(r"(?:toc|目录)\s*[1-9]", re.IGNORECASE)
_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip
_CHINESE = "〇一二三四五六七八九"
_CHINESE_FORMATS = ("chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting",
                    "ideographDigital")  # fmt: skip


def local(node: Any) -> str:
    """Name of an element without its namespace: Word's two dialects differ in that alone."""
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def child(node: Any, name: str) -> Any:
    """First child of that name, or None."""
    return None if node is None else next((item for item in node if local(item) == name), None)


def value(node: Any) -> str:
    """The attribute `w:val`."""
    return attribute(node, "val")


def attribute(node: Any, name: str) -> str:
    """An attribute whatever its namespace, "" if there is none."""
    if node is None:
        return ""
    return next((str(text) for key, text in node.attrib.items() if key.rpartition("}")[2] == name), "")


class Styles:
    """Paragraph styles by id."""

    def __init__(self, root: Any) -> None:
        self._styles: dict[str, Any] = {}
        if root is not None:
            self._styles = {attribute(node, "styleId"): node for node in root if local(node) == "style"}

    def _chain(self, paragraph: Any) -> list[Any]:
        """The paragraph's own properties, then its style and those that it is based on."""
        properties = child(paragraph, "pPr")
        found = [properties] if properties is not None else []
        style = self._styles.get(value(child(properties, "pStyle")))
        for _ in range(MAX_PARENTS):
            if style is None:
                break
            found.append(style)
            style = self._styles.get(value(child(style, "basedOn")))
        return found

    def heading_level(self, paragraph: Any) -> int:
        """1 to 6, or 0 for a paragraph that is no heading."""
        for node in self._chain(paragraph):
            properties = node if local(node) == "pPr" else child(node, "pPr")
            outline = value(child(properties, "outlineLvl"))
            if outline.isdecimal():
                return min(6, int(outline) + 1) if int(outline) < 9 else 0
            name = value(child(node, "name"))
            if hit := _HEADING_NAME.fullmatch(name):
                return min(6, int(hit.group(1)))
            if name.lower() == "title":
                return 1
        return 0

    def is_contents(self, paragraph: Any) -> bool:
        """Whether it is a line of the table of contents, which repeats the headings."""
        return any(_CONTENTS_NAME.fullmatch(value(child(node, "name"))) for node in self._chain(paragraph))

    def numbering(self, paragraph: Any) -> tuple[str, int]:
        """(id of the list, level from 0) of the paragraph or its style; "" if it is in none."""
        number, level = "", ""
        for node in self._chain(paragraph):
            properties = node if local(node) == "pPr" else child(node, "pPr")
            listed = child(properties, "numPr")
            if listed is None:
                continue
            level = level or value(child(listed, "ilvl"))
            if number := value(child(listed, "numId")):
                break
        return ("" if number == "0" else number), int(level) if level.isdecimal() else 0


class Numbering:
    """Counters of all lists; asked once for each paragraph in order."""

    def __init__(self, root: Any) -> None:
        self._levels: dict[str, dict[int, Any]] = {}
        self._lists: dict[str, str] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._counters: dict[str, dict[int, int]] = {}
        for node in root if root is not None else ():
            if local(node) == "abstractNum":
                levels = {int(attribute(n, "ilvl") or 0): n for n in node if local(n) == "lvl"}
                self._levels[attribute(node, "abstractNumId")] = levels
            elif local(node) == "num":
                self._add_list(node)

    def _add_list(self, node: Any) -> None:
        number = attribute(node, "numId")
        self._lists[number] = value(child(node, "abstractNumId"))
        for override in (item for item in node if local(item) == "lvlOverride"):
            start = value(child(override, "startOverride"))
            level = attribute(override, "ilvl")
            if start.isdecimal() and level.isdecimal():
                self._starts[number, int(level)] = int(start)

    def label(self, paragraph: Any, styles: Styles) -> str:
        """What Word shows before the paragraph, such as "3. " or "- "; "" outside of lists."""
        number, level = styles.numbering(paragraph)
        abstract = self._lists.get(number, "")
        levels = self._levels.get(abstract, {})
        if not number or level not in levels:
            return ""
        restarted = any(key[0] == number for key in self._starts)
        # lists of one kind count on together unless one of them starts anew
        counters = self._counters.setdefault(number if restarted else f"kind {abstract}", {})
        counters[level] = counters.get(level, self._start(levels, number, level) - 1) + 1
        for deeper in [key for key in counters if key > level]:
            del counters[deeper]
        kind = value(child(levels[level], "numFmt"))
        if kind in ("bullet", "none", ""):
            return "- " if kind == "bullet" else ""

        def shown(hit: re.Match[str]) -> str:
            at = int(hit.group(1)) - 1
            count = counters.get(at, self._start(levels, number, at))
            return _counted(count, value(child(levels.get(at), "numFmt")))

        text = re.sub(r"%([1-9])", shown, value(child(levels[level], "lvlText")) or "%1.")
        return f"{text} " if text.strip() else ""

    def _start(self, levels: dict[int, Any], number: str, level: int) -> int:
        start = value(child(levels.get(level), "start"))
        return self._starts.get((number, level), int(start) if start.isdecimal() else 1)


def _counted(count: int, kind: str) -> str:
    if kind in ("lowerLetter", "upperLetter") and count > 0:
        letter = chr(ord("a") + (count - 1) % 26) * min(5, (count - 1) // 26 + 1)
        return letter.upper() if kind == "upperLetter" else letter
    if kind in ("lowerRoman", "upperRoman") and 0 < count < 4000:
        text = ""
        for size, sign in _ROMAN:
            text += sign * (count // size)
            count %= size
        return text if kind == "upperRoman" else text.lower()
    if kind in _CHINESE_FORMATS and 0 < count < 100:
        tens, ones = divmod(count, 10)
        if kind == "ideographDigital":
            return "".join(_CHINESE[int(digit)] for digit in str(count))
        return ("" if tens == 0 else "十" if tens == 1 else _CHINESE[tens] + "十") + (_CHINESE[ones] if ones else "")
    if kind == "decimalZero":
        return f"{count:02d}"
    if kind.startswith("decimalEnclosedCircle") and 0 < count <= 20:
        return chr(0x2460 + count - 1)
    return str(count)
