"""What a file is, by its content and not by its name, and the reader for it."""

from __future__ import annotations

import json
import re
import stat
import zipfile
from importlib import import_module
from pathlib import Path

from retrieval.ingest.archive import ZIP_ERRORS, damaged
from retrieval.ingest.document import Document, DocumentUnreadable, Format, Reader
from retrieval.ingest.encoding import encoding_of
from retrieval.ingest.readers.delimited import delimiter_of

START_BYTES = 65_536
# Reading takes memory or time in proportion to these; PDF is read page by page, a picture is checked by its pixels.
MAX_BYTES: dict[Format, int] = {
    "pdf": 4_000_000_000,
    "docx": 1_000_000_000,  # mostly pictures, which are not read
    "xlsx": 1_000_000_000,
    "xls": 200_000_000,  # held in memory; the format ends at 65,536 rows
    "csv": 100_000_000,
    "html": 50_000_000,
    "markdown": 40_000_000,
    "text": 100_000_000,
    "jsonl": 100_000_000,
    "image": 200_000_000,
}
_READERS: dict[Format, str] = {
    "pdf": "pdf",
    "docx": "docx",
    "xlsx": "sheet",
    "xls": "sheet",
    "csv": "delimited",
    "html": "html",
    "markdown": "markdown",
    "text": "text",
    "jsonl": "jsonl",
    "image": "image",
}
_SUFFIXES: dict[str, Format] = {
    ".pdf": "pdf", ".docx": "docx", ".docm": "docx", ".dotx": "docx", ".xlsx": "xlsx", ".xlsm": "xlsx",
    ".xltx": "xlsx", ".xls": "xls", ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".htm": "html", ".html": "html",
    ".xhtml": "html", ".md": "markdown", ".markdown": "markdown", ".txt": "text", ".text": "text", ".log": "text",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".png": "image", ".jpg": "image", ".jpeg": "image", ".tif": "image",
    ".tiff": "image", ".bmp": "image", ".webp": "image", ".gif": "image",
}  # fmt: skip
_IMAGES = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*", b"GIF87a", b"GIF89a")
_SAVE_AS_DOCX = "open it in a word processor and save it as DOCX or PDF."
_SAVE_AS_XLSX = "open it in a spreadsheet program and save it as XLSX or CSV."
_SAVE_AS_PDF = "open it in the program that made it and export it as PDF."
_UNPACK = "unpack it and read in the folder, or pack it as a zip archive."
_NO_DOCUMENT = "read in the documents themselves: PDF, DOCX, XLSX, CSV, HTML, Markdown, text or pictures."
# (first bytes, what it is, next step)
_OTHERS: tuple[tuple[bytes, str, str], ...] = (
    (b"MZ", "a Windows program", _NO_DOCUMENT),
    (b"\x7fELF", "a Linux program", _NO_DOCUMENT),
    (b"\xca\xfe\xba\xbe", "a program", _NO_DOCUMENT),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"\x1f\x8b", "a gzip archive", _UNPACK),
    (b"BZh", "a bzip2 archive", _UNPACK),
    (b"\xfd7zXZ\x00", "an xz archive", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", _UNPACK),
    (b"{\\rtf", "an RTF document", _SAVE_AS_DOCX),
    (b"%!PS", "a PostScript file", "convert it to PDF."),
    (b"SQLite format 3\x00", "a database", "export its tables as CSV."),
    (b"ITSF", "a compiled help file (.chm)", "open it in its viewer and print it to PDF, or save its pages as HTML."),
    (b"AT&TFORM", "a DjVu document", "convert it to PDF."),
    (b"OggS", "a recording", _NO_DOCUMENT),
    (b"ID3", "a recording", _NO_DOCUMENT),
    (b"AC10", "a DWG drawing", _SAVE_AS_PDF),
)
# Names of streams in the container of old Office files, the more telling ones first.
_STREAMS: tuple[tuple[str, str, str], ...] = (
    ("EncryptedPackage", "protected by a password", "open it in its program, save a copy without a password."),
    ("WordDocument", "an old Word document (.doc)", _SAVE_AS_DOCX),
    ("PowerPoint Document", "an old PowerPoint file (.ppt)", _SAVE_AS_PDF),
    ("VisioDocument", "a Visio drawing", _SAVE_AS_PDF),
    ("__properties_version1.0", "a message of Outlook (.msg)", "save its attachments and read in those."),
)
_MARKDOWN = re.compile(r"^(?:#{1,6} \S|\|[ :|-]+\|[ ]*$|```|- \[[ x]\] |\[[^\]]+\]: \S)", re.MULTILINE)
_HTML = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|table|div)\b",
                   re.IGNORECASE | re.DOTALL)  # fmt: skip


def format_of(path: Path) -> Format:
    """The format that the content shows; the name decides only between kinds of text.

    Raises:
        DocumentUnreadable: not a file, empty, or of a kind that is not read; the text says which kind it is.
    """
    return _format(path, path.name)


def open_document(path: Path, name: str) -> Document:
    """Open a file with the reader for what it is.

    Args:
        path: the file on disk.
        name: what people see.

    Raises:
        DocumentUnreadable: see `format_of`; too large; or the reader's reasons.
    """
    found = _format(path, name)
    size = path.stat().st_size
    if size > MAX_BYTES[found]:
        raise DocumentUnreadable(
            f"{name} has {size // 1_000_000} MB; at most {MAX_BYTES[found] // 1_000_000} MB of {found} are read.",
            "split it into parts.",
        )
    reader: Reader = import_module(f"retrieval.ingest.readers.{_READERS[found]}").read
    document = reader(path, name)
    suffix = Path(name).suffix.lower()
    said = _SUFFIXES.get(suffix)
    if said is not None and said != found:
        document.warnings.insert(0, f"{name} is named {suffix} but is {found}; it was read as {found}.")
    return document


def _format(path: Path, name: str) -> Format:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "not a file but a pipe, socket or device"
            raise DocumentUnreadable(f"{name} is {kind}.", "give the path of a document.")
        with path.open("rb") as handle:
            start = handle.read(START_BYTES)
    except OSError as error:
        raise DocumentUnreadable(
            f"{name} cannot be opened: {error.strerror or error}.", "check the path and its rights."
        ) from error
    if not start.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        blank = "is empty (0 bytes)" if not start else "holds nothing but blanks"
        raise DocumentUnreadable(f"{name} {blank}.", "copy or export the file again.")
    return _binary(path, name, start) or _text(path, name, start)


def _binary(path: Path, name: str, start: bytes) -> Format | None:
    if start.startswith(_IMAGES) or (start.startswith(b"RIFF") and start[8:12] == b"WEBP"):
        return "image"
    if start.startswith(b"BM") and start[6:10] == b"\x00\x00\x00\x00":
        return "image"
    if start.startswith(b"PK\x03\x04") or start.startswith(b"PK\x05\x06"):
        return _package(path, name)
    if start.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return _container(path, name)
    if b"%PDF-" in start[:1024]:  # some programs write a line before it; a zip may hold one uncompressed
        return "pdf"
    if start[4:8] == b"ftyp":
        picture = start[8:12] in (b"heic", b"heix", b"mif1", b"avif")
        raise _unsupported(
            name, "a HEIC picture" if picture else "a video", "save it as JPEG." if picture else _NO_DOCUMENT
        )
    if start[257:262] == b"ustar":
        raise _unsupported(name, "a tar archive", _UNPACK)
    for magic, kind, next_step in _OTHERS:
        # "MZ" and "BZh" may begin a text: a program has NUL bytes as well
        if start.startswith(magic) and (len(magic) > 3 or not start.isascii() or b"\x00" in start):
            raise _unsupported(name, kind, next_step)
    return None


def _unsupported(name: str, kind: str, next_step: str) -> DocumentUnreadable:
    return DocumentUnreadable(f"{name} is {kind}, which is not read.", next_step)


def _package(path: Path, name: str) -> Format:
    """What a zip file is: a document in the form of one, or an archive."""
    try:
        with zipfile.ZipFile(path) as package:
            names = set(package.namelist())
            kind = package.read("mimetype")[:100] if "mimetype" in names else b""
    except ZIP_ERRORS as error:
        raise damaged(name, error) from error
    if any(n.startswith("word/document") for n in names):
        return "docx"
    if "xl/workbook.xml" in names:
        return "xlsx"
    if "xl/workbook.bin" in names:
        raise _unsupported(name, "a binary Excel workbook (.xlsb)", _SAVE_AS_XLSX)
    if any(n.startswith("ppt/") for n in names):
        raise _unsupported(name, "a PowerPoint file", _SAVE_AS_PDF)
    if b"opendocument.text" in kind:
        raise _unsupported(name, "an OpenDocument text (.odt)", _SAVE_AS_DOCX)
    if b"opendocument.spreadsheet" in kind:
        raise _unsupported(name, "an OpenDocument spreadsheet (.ods)", _SAVE_AS_XLSX)
    if kind or "[Content_Types].xml" in names or "META-INF/MANIFEST.MF" in names:
        what = "an e-book" if b"epub" in kind else "a package of a kind that is not known here"
        raise _unsupported(name, what, _SAVE_AS_PDF)
    raise _unsupported(name, "a zip archive inside another file", "unpack it and read in what it holds.")


def _container(path: Path, name: str) -> Format:
    """What an old Office file is, by the names in its directory: 128 bytes an entry, the name first, in UTF-16."""
    if path.stat().st_size > MAX_BYTES["xls"]:
        raise DocumentUnreadable(f"{name} is an old Office file of more than 200 MB.", _SAVE_AS_PDF)
    data = path.read_bytes()

    def holds(stream: str) -> bool:
        entry = (stream + "\x00").encode("utf-16-le")
        at = data.find(entry)
        while at >= 0 and at % 128:
            at = data.find(entry, at + 1)
        return at >= 0

    for stream, kind, next_step in _STREAMS:
        if holds(stream):
            raise DocumentUnreadable(f"{name} is {kind}.", next_step)
    if holds("Workbook") or holds("Book"):
        return "xls"
    raise _unsupported(name, "an old Office file of a kind that is not known here", _SAVE_AS_PDF)


def _text(path: Path, name: str, start: bytes) -> Format:
    encoding = encoding_of(start)
    if encoding is None:
        raise _unsupported(name, "a binary file of a kind that is not known here", _SAVE_AS_PDF)
    text = start.decode(encoding, errors="ignore").lstrip("\ufeff")
    hint = _SUFFIXES.get(Path(name).suffix.lower())
    if re.match(r"\s*(?:<\?xml[^>]*>\s*)?<\?mso-application|\s*(?:<\?xml[^>]*>\s*)?<(?:\w+:)?Workbook\b", text):
        raise _unsupported(name, "a spreadsheet in the XML of Excel 2003", _SAVE_AS_XLSX)
    if re.match(r"(?:From|Date|Subject|MIME-Version|X-[\w-]+): [^\n]*\n(?:[\w-]+: |[ \t])", text):
        raise _unsupported(name, "a web archive or an e-mail (.mht, .eml)", "open it and save it as HTML or PDF.")
    if _HTML.match(text) or (hint == "html" and re.search(r"<[a-zA-Z][^>]*>", text)):
        return "html"
    if re.match(r"\s*<\?xml\b|\s*<!DOCTYPE\b", text):
        raise _unsupported(name, "an XML file", "export it as HTML, CSV or PDF.")
    if _is_jsonl(text, whole=len(start) < START_BYTES, hint=hint == "jsonl"):
        return "jsonl"
    if re.match(r"\s*[\[{]", text) and hint is None and _is_json(path, encoding):
        raise _unsupported(name, "a JSON file", "write one record a line and name it .jsonl, or export it as CSV.")
    return _plain(text, hint)


def _plain(text: str, hint: Format | None) -> Format:
    """Markdown, delimited or plain text: the name decides unless the content speaks against it."""
    delimiter, share = delimiter_of(text)
    if hint == "markdown":
        return "markdown"
    if hint == "csv":
        return "csv"
    if hint == "text" and len(_MARKDOWN.findall(text)) < 3:
        return "csv" if delimiter == "\t" and share >= 0.9 and text.count("\n") >= 3 else "text"
    if len(_MARKDOWN.findall(text)) >= 3:
        return "markdown"
    # prose has commas too, but not as many in each line
    lines = [line for line in text.split("\n") if line.strip()]
    return "csv" if share >= 0.9 and len(lines) >= 3 and delimiter != "|" else "text"


def _is_jsonl(text: str, *, whole: bool, hint: bool) -> bool:
    """Whether lines are JSON records; named so, one such line is enough."""
    lines = [line for line in text.split("\n")[: None if whole else -1] if line.strip()][:50]
    records = 0
    for line in lines:
        if line.lstrip().startswith("{"):
            try:
                records += isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                continue
    if not lines and hint:
        return True  # a first record longer than what was looked at
    return records > 0 and (hint or records >= 0.5 * len(lines))


def _is_json(path: Path, encoding: str) -> bool:
    if path.stat().st_size > MAX_BYTES["jsonl"]:
        return False
    try:
        return isinstance(json.loads(path.read_bytes().decode(encoding)), dict | list)
    except (ValueError, RecursionError):
        return False
