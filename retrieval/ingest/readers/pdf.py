"""Reads PDF: text in reading order, tables with and without drawn lines, headings, scanned pages by OCR.

Pages are read one after the other with a few ahead, which is how running headers and footers show. A page that fails
is a warning; the others go on. pdfium is not safe for threads: one document is read by one thread at a time.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

from retrieval.errors import RetrievalError
from retrieval.ingest.document import Block, Document, DocumentUnreadable, Place, Row
from retrieval.ingest.readers.pdf_layout import EdgeLines, Text, arrange, edge_lines, running
from retrieval.ingest.readers.pdf_lines import joined, text_size
from retrieval.ingest.readers.pdf_page import Page, load_page
from retrieval.ingest.readers.pdf_ruled import Table
from retrieval.records import UNPRINTABLE

PAGES_AHEAD = 4  # and as many behind: where running headers are looked for
REOPEN_AFTER = 500  # pages: pdfium keeps every object it has read until the file is closed
FEWEST_LETTERS = 15  # on a page that a picture covers: fewer are a stamp, and the text is in the picture
MOST_UNMAPPED = 0.3
SCAN_DPI = 200
MOST_PIXELS = 16_000_000
MOST_FAILURES = 200  # pages one after the other
LONGEST_HEADING = 160
NO_OCR = "Next: install OCR with pip install 'faultwright[ocr]' and read the document in again."
# Without an outline: heading level by size against that of the text around.
_LEVELS = ((1.8, 1), (1.45, 2), (1.25, 3), (1.13, 4))
_OUTLINE_LIMIT = 20_000
_WORD = re.compile(r"[^\W_]")
Outline = dict[int, list[tuple[str, int]]]


def read(path: Path, name: str) -> Document:
    """Open a PDF file. Blocks come page by page; memory does not grow with the number of pages.

    Args:
        path: the file on disk.
        name: what people see.

    Raises:
        DocumentUnreadable: not a PDF, damaged, protected by a password, without pages; or, while blocks are walked,
            without one page that can be read.
    """
    file = _open(path, name)
    try:
        count = len(file)
        if count == 0:
            raise DocumentUnreadable(f"{name} has no pages.", "export the document to PDF again.")
        title = _clean(file.get_metadata_value("Title"))
        document = Document(name, "pdf", iter(()), title=title, pages=count)
        if not _ends(path):
            document.warnings.append(f"{name} is cut short or was not closed properly: later pages may be missing.")
    finally:
        file.close()
    document.blocks = _Walk(path, name, document.warnings, count).blocks()
    return document


def _open(path: Path, name: str) -> Any:
    import pypdfium2 as pdfium  # noqa: PLC0415 - loads a library of 8 MB
    import pypdfium2.raw as pdfium_c  # noqa: PLC0415

    try:
        with path.open("rb") as handle:
            start = handle.read(1024)
    except OSError as error:
        raise DocumentUnreadable(
            f"{name} cannot be opened: {error.strerror or error}.", "check the path and its rights."
        ) from error
    if not start:
        raise DocumentUnreadable(f"{name} is empty (0 bytes).", "copy or download the file again.")
    if b"%PDF-" not in start:
        raise DocumentUnreadable(
            f"{name} is not a PDF file: it does not begin with %PDF.", "check which program made it; export it as PDF."
        )
    try:
        return pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        # pdfium may report the error of an earlier file: only an encrypted one can want a password
        encrypted = b"/Encrypt" in path.read_bytes()
        if encrypted and error.err_code == pdfium_c.FPDF_ERR_PASSWORD:
            raise DocumentUnreadable(
                f"{name} is protected by a password.",
                "open it in a PDF viewer, save a copy without a password, and read that copy in.",
            ) from error
        if encrypted and error.err_code == pdfium_c.FPDF_ERR_SECURITY:
            raise DocumentUnreadable(
                f"{name} is encrypted in a way that cannot be read.", "save a copy of it without encryption."
            ) from error
        raise DocumentUnreadable(
            f"{name} is damaged or has no pages.",
            "copy or download it again; if that does not help open it in a PDF viewer and save a new copy.",
        ) from error


def _ends(path: Path) -> bool:
    """Whether the mark of the end of a PDF file stands near its end."""
    with path.open("rb") as handle:
        size = handle.seek(0, 2)
        handle.seek(max(0, size - 2048))
        return b"%%EOF" in handle.read()


def _clean(text: str) -> str:
    return " ".join(UNPRINTABLE.sub("", text).replace("\ufffd", " ").split())


class _Walk:
    """One pass over the pages of a file."""

    def __init__(self, path: Path, name: str, warnings: list[str], count: int) -> None:
        self.path, self.name, self.warnings, self.count = path, name, warnings, count
        self.outline: Outline = {}
        self.unread: dict[str, list[int]] = {}  # pages by the reason why their pictures are not read
        self.no_ocr = ""
        self.sizes: Counter[float] = Counter()
        self.header: tuple[str, ...] = ()  # of the table before
        self.scale = float(SCAN_DPI) / 72

    def blocks(self) -> Iterator[Block]:
        """Blocks of all pages; raises `DocumentUnreadable` after the last page if none could be read."""
        window: deque[tuple[Page, EdgeLines, list[Block] | None]] = deque()
        at = 0  # place in the window of the next page to hand over
        read = 0
        for page, scanned in self._pages():
            read += 1
            window.append((page, edge_lines(page) if scanned is None else ([], []), scanned))
            if len(window) - at > PAGES_AHEAD:
                yield from self._page_blocks(window, at)
                at += 1
            if at > PAGES_AHEAD:
                window.popleft()
                at -= 1
        while at < len(window):
            yield from self._page_blocks(window, at)
            at += 1
        for reason, pages in self.unread.items():
            self.warnings.append(f"{self.name}, page {_listed(pages)}: pictures of text, not read. {reason}")
        if not read:
            raise DocumentUnreadable(
                f"{self.name}: none of its {self.count} pages can be read.",
                "open it in a PDF viewer and save a new copy; if it cannot be opened there, get it again.",
            )

    def _pages(self) -> Iterator[tuple[Page, list[Block] | None]]:
        """Pages that can be read, with blocks where the page is a picture."""
        file = _open(self.path, self.name)
        try:
            self.outline = _outline(file)
            failures = 0
            for index in range(self.count):
                if index and index % REOPEN_AFTER == 0:
                    file.close()
                    file = _open(self.path, self.name)
                result = self._load(file, index)
                failures = 0 if result else failures + 1
                if result:
                    yield result
                elif failures >= MOST_FAILURES:
                    self.warnings.append(f"{self.name}: gave up at page {index + 1}, {failures} pages in a row failed.")
                    return
        finally:
            file.close()

    def _load(self, file: Any, index: int) -> tuple[Page, list[Block] | None] | None:
        import pypdfium2 as pdfium  # noqa: PLC0415

        number = index + 1
        try:
            page = file[index]
        except (pdfium.PdfiumError, ValueError, OSError) as error:
            self.warnings.append(f"{self.name}, page {number} cannot be read: {error}.")
            return None
        try:
            content = load_page(page, number)
            few = content.letters < FEWEST_LETTERS and content.image_share > 0.3
            if few or content.unmapped > MOST_UNMAPPED:
                return content, self._scanned(page, content)
            return content, None
        except (pdfium.PdfiumError, ValueError, OSError, MemoryError, ArithmeticError) as error:
            self.warnings.append(f"{self.name}, page {number} cannot be read: {error or type(error).__name__}.")
            return None
        finally:
            page.close()

    def _scanned(self, page: Any, content: Page) -> list[Block]:
        """Blocks of a page that is a picture, or whose letters the file does not tell, by OCR."""
        reason = self.no_ocr
        if not reason:
            pixels = content.width * content.height * self.scale**2
            scale = self.scale * min(1.0, (MOST_PIXELS / max(1.0, pixels)) ** 0.5)
            try:
                from retrieval.ingest.readers.image import page_blocks  # noqa: PLC0415 - OCR is an extra

                return list(page_blocks(page.render(scale=scale).to_pil(), content.number))
            except ImportError:
                reason = self.no_ocr = NO_OCR
            except RetrievalError as error:
                reason = str(error)
                if "[ocr]" in error.next_step:
                    self.no_ocr = reason
        self.unread.setdefault(reason, []).append(content.number)
        return []

    def _page_blocks(self, window: Sequence[tuple[Page, EdgeLines, list[Block] | None]], at: int) -> list[Block]:
        page, edges, scanned = window[at]
        if scanned is not None:
            return scanned
        others = [entry[1] for k, entry in enumerate(window) if k != at and entry[2] is None]
        dropped = {id(span) for line in running(edges, others) for span in line.spans}
        spans = [span for span in page.spans if id(span) not in dropped]
        for span in spans:
            self.sizes[span.size] += len(span.marks)
        usual = self.sizes.most_common(1)[0][0] if self.sizes else 0.0
        usual = usual or 10.0
        blocks: list[Block] = []
        titles = list(self.outline.get(page.number, ()))
        rows = 0
        for item in arrange(page, spans):
            if isinstance(item, Table):
                texts = self._headed(item.rows)
                placed = [Row(cells, Place(page.number, row=rows + k)) for k, cells in enumerate(texts, start=1)]
                rows += len(placed)
                blocks.append(Block("table", Place(page.number, row=placed[0].place.row), rows=tuple(placed)))
            else:
                blocks += self._text_blocks(item, page.number, titles, usual)
        return blocks

    def _headed(self, rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        """Rows with what goes on from the page before parted from the header repeated above it."""
        first, known = rows[0], self.header
        if len(first) == len(known) and first != known and all(map(str.startswith, first, known)):
            rest = tuple(cell[len(head) :].strip() for cell, head in zip(first, known, strict=True))
            return (known, rest, *rows[1:])
        if all(first) and not re.search(r"[0-9]", first[0]):
            self.header = first
        return rows

    def _text_blocks(self, text: Text, page: int, titles: list[tuple[str, int]], usual: float) -> list[Block]:
        """A text as blocks: lines that an outline title names, or that are set larger, become headings."""
        blocks: list[Block] = []
        kept: list[str] = []

        def flush() -> None:
            if any(line.strip() for line in kept):
                blocks.append(Block("text", Place(page), text=joined(kept)))
            kept.clear()

        lines = [line.text for line in text.lines]
        at = 0
        while at < len(lines):
            level, taken = _titled(lines[at : at + 3], titles)
            if not level:
                size = text_size(text.lines[at].spans) / usual
                level, taken = _by_size(lines, at, size) if not self.outline or size > _LEVELS[2][0] else (0, 1)
            if level:
                flush()
                heading = " ".join(line.replace("\t", " ") for line in lines[at : at + taken])
                blocks.append(Block("heading", Place(page), text=heading, level=level))
            else:
                kept.append(lines[at])
            at += max(1, taken)
        flush()
        return blocks


def _outline(file: Any) -> Outline:
    """Titles by page (from 1): (title without white space, level 1 to 6)."""
    import pypdfium2 as pdfium  # noqa: PLC0415

    found: Outline = {}
    try:
        for k, item in enumerate(file.get_toc(max_depth=8)):
            if k >= _OUTLINE_LIMIT:
                break
            place = item.get_dest()
            index = place.get_index() if place else None
            if index is not None:
                found.setdefault(index + 1, []).append((_bare(item.get_title()), min(6, item.level + 1)))
    except (pdfium.PdfiumError, ValueError, RecursionError):
        return found  # a damaged outline costs headings, not text
    return found


def _bare(text: str) -> str:
    return "".join(_WORD.findall(normalize("NFKC", text))).casefold()


def _titled(lines: Sequence[str], titles: list[tuple[str, int]]) -> tuple[int, int]:
    """(level, number of lines) if the first lines are a title of the page's outline, else (0, 1); uses the title up.

    A number before the title may stand on one side only.
    """
    bare = ""
    for taken, line in enumerate(lines, start=1):
        bare += _bare(line)
        for k, (title, level) in enumerate(titles):
            short, long = sorted((bare, title), key=len)
            if short and long.endswith(short) and (long == short or _is_number(long[: -len(short)])):
                titles.pop(k)
                return level, taken
    return 0, 1


def _is_number(prefix: str) -> bool:
    return bool(
        re.fullmatch(r"(?:chapter|appendix|section|第)?[0-9]{1,8}[章节]?|(?:appendix|附录)?[a-z][0-9]{0,6}", prefix)
    )


def _by_size(lines: Sequence[str], at: int, size: float) -> tuple[int, int]:
    """(level, number of lines) of a heading by its size against the text; the lines of a text have one size."""
    level = next((level for least, level in _LEVELS if size >= least), 0)
    heading = "".join(lines[at:])
    if (
        not level
        or len(heading) > LONGEST_HEADING
        or not _WORD.search(heading)
        or heading.endswith(("。", ";", "；", ","))
    ):
        return 0, 1
    return level, len(lines) - at


def _listed(pages: Sequence[int]) -> str:
    """Pages as a person writes them: 3, 7-9."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][1] + 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:20]]
    return ", ".join(shown) + (" ..." if len(runs) > 20 else "")
