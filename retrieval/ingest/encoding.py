"""From bytes to text that may be shown: which encoding a file has, and what no reader lets through.

Chinese tables come out of spreadsheets as GB18030 without any mark of it, so the encoding is judged from the bytes:
byte order mark, valid UTF-8, the pattern of NUL bytes in UTF-16, then the ranges that real Chinese text falls in.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from retrieval.ingest.document import DocumentUnreadable
from retrieval.records import UNPRINTABLE

MAX_TEXT_BYTES = 100_000_000  # decoded whole, at up to four bytes a letter; a million work orders have less
SAMPLE_BYTES = 1_000_000  # what the encoding is judged from, beyond strict UTF-8
_LINE_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile(r"[\xa0\u2000-\u200a\u202f\u205f]")
_UNSEEN = re.compile(r"[\xad\u200b-\u200d\u2060\ud800-\udfff\ufffe\uffff]|" + UNPRINTABLE.pattern)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_USUAL = re.compile(r"[\t\n\r\x20-\x7e\u00a0-\u00ff\u2000-\u2fff\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]")
_REPLACED = "\ufffd"


def clean(text: str) -> str:
    r"""Text without what must not be shown or hides in it; line breaks as `\n`, all spaces as U+0020."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub("", _SPACES.sub(" ", _LINE_BREAKS.sub("\n", text)))


def decoded(path: Path, name: str) -> tuple[str, str, list[str]]:
    """(cleaned text, encoding, warnings) of a text file.

    Raises:
        DocumentUnreadable: the file cannot be opened, is empty, too large, or is no text.
    """
    data = read_bytes(path, name, MAX_TEXT_BYTES)
    encoding = encoding_of(data)
    if encoding is None:
        raise DocumentUnreadable(
            f"{name} is not text: its bytes fit no encoding (UTF-8, UTF-16, GB18030, Big5, Windows-1252).",
            "open it in the program that made it and save it as UTF-8 text, DOCX or PDF.",
        )
    text = data.decode(encoding, errors="replace")
    warnings = []
    mark = _REPLACED.encode(encoding, errors="ignore")  # the file itself may hold U+FFFD
    lost = text.count(_REPLACED) - (data.count(mark) if mark else 0)
    if lost > 0:
        line = text.count("\n", 0, text.index(_REPLACED)) + 1
        warnings.append(f"{name}: {lost} characters are damaged ({encoding}), the first in line {line}.")
    if "\x00" in text:
        warnings.append(f"{name}: {text.count(chr(0))} NUL characters left out.")
    return clean(text), "utf-8" if encoding == "utf-8-sig" else encoding, warnings


def read_bytes(path: Path, name: str, limit: int) -> bytes:
    """A file's bytes.

    Raises:
        DocumentUnreadable: it cannot be opened, is empty, or has more than `limit` bytes.
    """
    try:
        with path.open("rb") as handle:
            data = handle.read(limit + 1)
    except OSError as error:
        raise DocumentUnreadable(
            f"{name} cannot be opened: {error.strerror or error}.", "check the path and its rights."
        ) from error
    if not data.strip(b" \t\r\n\x00\xef\xbb\xbf\xff\xfe"):
        raise DocumentUnreadable(f"{name} is empty ({len(data)} bytes).", "copy or export the file again.")
    if len(data) > limit:
        raise DocumentUnreadable(f"{name} has more than {limit // 1_000_000} MB of text.", "split it into parts.")
    return data


def encoding_of(data: bytes) -> str | None:
    """Name of the codec that fits, None for what is no text. Text cut off inside a character still counts."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    sample = data[:SAMPLE_BYTES]
    nul = sample.count(0)
    if nul > max(2, len(sample) // 1000):
        return _utf16(sample)
    if _control_share(sample) > 0.01:
        return None
    if _is_utf8(data):
        return "utf-8"
    if nul and (wide := _utf16(sample)):
        return wide
    # Chinese in UTF-16 without a line break or a digit has no NUL at all, and is too rare to guess at
    return _double_byte(sample)


def _control_share(sample: bytes) -> float:
    plain = sample.translate(None, bytes(set(range(32)) - {9, 10, 12, 13, 26, 27}))
    return 1 - len(plain) / max(1, len(sample))


def _is_utf8(data: bytes) -> bool:
    """Valid, or so little of it damaged that no other encoding would give as many valid sequences."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
        lost = text.count(_REPLACED)
        return lost * 20 < sum(1 for letter in text if ord(letter) > 0x7F) - lost
    return True


def _utf16(sample: bytes) -> str | None:
    """UTF-16 without a mark: the byte order that gives letters in use."""
    best, share = None, 0.0
    for encoding in ("utf-16-le", "utf-16-be"):
        text = sample[: len(sample) // 2 * 2].decode(encoding, errors="replace")
        usual = len(_USUAL.findall(text)) / max(1, len(text))
        if usual > share:
            best, share = encoding, usual
    return best if share > 0.9 else None


def _double_byte(sample: bytes) -> str | None:
    """GB18030, Big5 or Windows-1252, by where the pairs of bytes fall.

    GB 2312, which nearly all simplified text keeps to, has both bytes from A1 up and its common characters from B0 to
    D7. Big5 has its common ones from A4 to C6, four in ten with a second byte below 7F. In Western text a high byte
    stands alone among letters.
    """
    high = sum(byte > 0x7F for byte in sample)
    pairs = re.findall(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]", re.sub(rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]", b"", sample))
    both = sum(pair[1] >= 0xA1 <= pair[0] for pair in pairs)
    common = sum(pair[1] >= 0xA1 and (0xB0 <= pair[0] <= 0xD7 or 0xA1 <= pair[0] <= 0xA3) for pair in pairs)
    alone = len(re.findall(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])", sample))
    if pairs and both >= 0.9 * len(pairs) and common >= 0.7 * len(pairs) and alone * 5 < high:
        return "gb18030"
    traditional = sum(0xA1 <= pair[0] <= 0xC6 and (pair[1] < 0x7F or pair[1] >= 0xA1) for pair in pairs)
    if pairs and traditional >= 0.95 * len(pairs) and alone * 5 < high * 3 and _decodes(sample, "big5"):
        return "big5"
    if pairs and alone * 5 < high and _decodes(sample, "gb18030"):
        return "gb18030"
    return "cp1252" if high < 0.3 * len(sample) else None


def _decodes(sample: bytes, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        decoder.decode(sample)
    except UnicodeDecodeError:
        return False
    return True
