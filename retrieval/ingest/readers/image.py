"""Reads pictures of text by OCR: scanned pages and photos, as headings, texts and tables with their confidence.

The stretches that OCR finds are laid on a page of A4's width; from there on a scan is arranged as any PDF page is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from retrieval.errors import RetrievalError
from retrieval.ingest.document import Block, Document, DocumentUnreadable, Place, Row
from retrieval.ingest.readers.pdf_layout import Text, arrange
from retrieval.ingest.readers.pdf_lines import joined, text_size
from retrieval.ingest.readers.pdf_page import Page, Span
from retrieval.ingest.readers.pdf_ruled import Table
from retrieval.ocr import OcrLine, picture_count, picture_pages, read_lines, text_rows

if TYPE_CHECKING:
    from PIL import Image

PAGE_WIDTH_PT = 595.0  # A4: what the distances of `arrange` are meant for
HEADING_SIZE = 1.35  # of the usual size of the text
LONGEST_HEADING = 160
_LINE_BOX = 1.25  # height of the box that OCR draws around a line, as a share of the font's size


def read(path: Path, name: str) -> Document:
    """Open a picture file; each page of a TIFF is a page, other kinds have one.

    Args:
        path: the file on disk.
        name: what people see.

    Raises:
        OcrUnavailable: the extra `ocr` is not installed.
        DocumentUnreadable: no picture, a kind that is not read, too big or damaged; while blocks are walked, where
            pages end that can be read.
    """
    pages, frames = picture_count(path, name)
    document = Document(name, "image", iter(()), pages=pages)
    if frames > pages:
        document.warnings.append(f"{name} is animated: only the first of {frames} pictures is read.")
    document.blocks = _blocks(path, document)
    return document


def _blocks(path: Path, document: Document) -> Iterator[Block]:
    for number, image in enumerate(picture_pages(path, document.name), start=1):
        try:
            blocks = page_blocks(image, number)
        except RetrievalError as error:
            if document.pages == 1:
                raise DocumentUnreadable(f"{document.name}: {error.what}", error.next_step) from error
            document.warnings.append(f"{document.name}, page {number}: {error}")
            continue
        if not blocks:
            document.warnings.append(f"{document.name}, page {number}: no text found in the picture.")
        yield from blocks


def page_blocks(image: Image.Image, page: int) -> list[Block]:
    """Headings, texts and tables of one picture, in reading order, each with the mean confidence of its letters.

    Args:
        image: a scanned page or a photo, in any mode and size.
        page: its number, counted from 1.

    Raises:
        OcrUnavailable: the extra `ocr` is not installed.
        OcrFailed: the library broke off on this picture.
    """
    lines = read_lines(image)
    if not lines:
        return []
    # boxes of a picture that was turned go beyond its width
    scale = PAGE_WIDTH_PT / max(image.width, *(line.box[2] for line in lines))
    spans = [span for row in text_rows(lines) for span in _spans(row, scale)]
    usual = text_size(spans)
    height = max(image.height, *(line.box[3] for line in lines)) * scale
    blocks: list[Block] = []
    row = 0
    for item in arrange(Page(page, PAGE_WIDTH_PT, height, spans), spans):
        if isinstance(item, Table):
            rows = tuple(Row(cells, Place(page=page, row=row + k)) for k, cells in enumerate(item.rows, start=1))
            row += len(rows)
            sure = _confidence(lines, scale, item.top, item.bottom)
            blocks.append(Block("table", Place(page=page), rows=rows, confidence=sure))
        else:
            blocks.append(_text(item, page, usual, _confidence(lines, scale, item.top, item.lines[-1].bottom)))
    return blocks


def _spans(row: Sequence[OcrLine], scale: float) -> Iterator[Span]:
    """The stretches of one row at one height: OCR draws boxes around letters, so that "one" stands lower than "All"."""
    top, bottom = (median(line.box[side] for line in row) * scale for side in (1, 3))
    for line in row:
        left, right = line.box[0] * scale, line.box[2] * scale
        size = (line.box[3] - line.box[1]) * scale / _LINE_BOX
        step = (right - left) / len(line.text)
        lefts = [left + step * at for at in range(len(line.text))]
        yield Span(
            x0=left,
            top=top,
            x1=right,
            bottom=bottom,
            marks=list(line.text),
            lefts=lefts,
            middles=[start + step / 2 for start in lefts],
            size=size,
        )


def _text(text: Text, page: int, usual: float, confidence: float) -> Block:
    content = joined(line.text for line in text.lines)
    size = text_size([span for line in text.lines for span in line.spans])
    if len(text.lines) == 1 and size >= HEADING_SIZE * usual and len(content) <= LONGEST_HEADING:
        return Block("heading", Place(page=page), content, level=2, confidence=confidence)
    return Block("text", Place(page=page), content, confidence=confidence)


def _confidence(lines: Sequence[OcrLine], scale: float, top: float, bottom: float) -> float:
    """Mean over the letters between two heights; below 1 also where OCR is wholly sure, for it is OCR."""
    inside = [
        (len(line.text), line.confidence) for line in lines if top <= (line.box[1] + line.box[3]) / 2 * scale <= bottom
    ]
    weights = [letters for letters, _ in inside]
    return min(0.999, fmean([sure for _, sure in inside], weights)) if inside else 0.5
