"""What a file is, by its content; archives that were made to harm; what is no document is named and refused."""

from __future__ import annotations

import io
import os
import socket
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.documents.office import write_package
from retrieval.ingest import archive as archive_module
from retrieval.ingest import sniff
from retrieval.ingest.archive import is_archive, members
from retrieval.ingest.document import DocumentUnreadable
from retrieval.ingest.encoding import clean, decoded, encoding_of
from retrieval.ingest.sniff import format_of, open_document
from retrieval.records import UNPRINTABLE

CHINESE = "报警号,内容,原因\n401,伺服未就绪信号关断,电缆松动。温度高于60℃\n"
TRADITIONAL = "警報號,內容,原因\n401,伺服未就緒,電纜鬆動。溫度過高，請檢查連接器\n"
WESTERN = "Nr.;Störung;Abhilfe\n25050;Konturüberwachung über 60 °C;Gerät prüfen – Öl nachfüllen\n"


def put(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def container(*streams: str) -> bytes:
    """The directory of an old Office file, with these streams."""
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 504
    return data + b"".join(s.encode("utf-16-le").ljust(128, b"\x00") for s in ("Root Entry", *streams))


def refused(path: Path, *words: str) -> None:
    with pytest.raises(DocumentUnreadable) as caught:
        list(open_document(path, path.name).blocks)
    assert path.name in caught.value.what and caught.value.next_step
    for word in words:
        assert word in caught.value.what


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.pdf", b"%PDF-1.7\n...", "pdf"),
        ("junk-before.pdf", b"\r\n\x00junk %PDF-1.4\n", "pdf"),
        ("a.png", b"\x89PNG\r\n\x1a\n....", "image"),
        ("a.jpg", b"\xff\xd8\xff\xe0....", "image"),
        ("a.tif", b"II*\x00....", "image"),
        ("a.webp", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image"),
        ("a.csv", "a,b\n1,2\n", "csv"),
        ("a.tsv", "a\tb\n1\t2\n", "csv"),
        ("one-column.csv", "code\n401\n402\n", "csv"),
        ("export.txt", "code\ttext\n401\tx\n402\ty\n403\tz\n", "csv"),
        ("no-name", "code;text\n401;x\n402;y\n403;z\n", "csv"),
        ("notes.txt", "First, this. Second, that.\nThird, more, of it.\n", "text"),
        ("a.md", "plain words\n", "markdown"),
        ("readme", "# A\n\n## B\n\ntext\n\n## C\n", "markdown"),
        ("a.html", "<!DOCTYPE html><p>x", "html"),
        ("page", "  <html><body>x", "html"),
        ("a.jsonl", '{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("records.txt", '{"a": 1}\n{"a": 2}\n{"a": 3}\n', "jsonl"),
        ("list.csv", CHINESE.encode("gb18030"), "csv"),
        ("list", (CHINESE * 2).encode("utf-16-le"), "csv"),
        ("a.txt", "MZ is how a program begins\n", "text"),
    ],
)
def test_format_by_content(tmp_path: Path, name: str, content: bytes | str, expected: str) -> None:
    assert format_of(put(tmp_path, name, content)) == expected


def test_a_misnamed_file_is_read_as_what_it_is_and_said(tmp_path: Path) -> None:
    document = open_document(put(tmp_path, "export.xls", "<html><table><tr><td>a<td>b</table>"), "export.xls")
    assert document.format == "html"
    assert document.warnings == ["export.xls is named .xls but is html; it was read as html."]
    write_package(tmp_path / "letter.pdf", "<w:p><w:r><w:t>x</w:t></w:r></w:p>")
    assert open_document(tmp_path / "letter.pdf", "letter.pdf").format == "docx"
    assert open_document(put(tmp_path, "a.dat", "some words"), "a.dat").warnings == []


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.doc", container("WordDocument"), "old Word document"),
        ("a.ppt", container("PowerPoint Document"), "old PowerPoint"),
        ("a.msg", container("__properties_version1.0"), "Outlook"),
        ("secret.xlsx", container("EncryptionInfo", "EncryptedPackage"), "protected by a password"),
        ("other.ole", container("Something"), "not known"),
        ("setup.exe", b"MZ\x90\x00\x03\x00", "Windows program"),
        ("tool", b"\x7fELF\x02\x01", "Linux program"),
        ("a.rar", b"Rar!\x1a\x07\x00", "RAR"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\x00\x04", "7z"),
        ("a.tar.gz", b"\x1f\x8b\x08\x00", "gzip"),
        ("a.tar", b"x".ljust(257, b"\x00") + b"ustar\x00", "tar"),
        ("a.rtf", b"{\\rtf1 x}", "RTF"),
        ("a.chm", b"ITSF\x03", "help file"),
        ("a.db", b"SQLite format 3\x00", "database"),
        ("a.heic", b"\x00\x00\x00\x18ftypheic", "HEIC"),
        ("a.mp4", b"\x00\x00\x00\x18ftypmp42", "video"),
        ("a.json", b'[{"a": 1}]', "JSON"),
        ("a.xml", b"<?xml version='1.0'?><x/>", "XML"),
        ("old.xls", b"<?xml version='1.0'?><?mso-application progid='Excel.Sheet'?><Workbook/>", "Excel 2003"),
        ("a.mht", b"MIME-Version: 1.0\nContent-Type: multipart/related\n\nx", "web archive"),
        ("a.bin", bytes(range(256)) * 40, "binary"),
        ("empty.txt", b"", "empty (0 bytes)"),
        ("blank.csv", b"\xef\xbb\xbf \r\n\r\n", "nothing but blanks"),
    ],
)
def test_what_is_not_read_is_named(tmp_path: Path, name: str, content: bytes, kind: str) -> None:
    refused(put(tmp_path, name, content), kind)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"mimetype": "application/vnd.oasis.opendocument.text"}, "OpenDocument text"),
        ({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}, "OpenDocument spreadsheet"),
        ({"mimetype": "application/epub+zip"}, "e-book"),
        ({"ppt/presentation.xml": "", "[Content_Types].xml": ""}, "PowerPoint"),
        ({"xl/workbook.bin": "", "[Content_Types].xml": ""}, ".xlsb"),
        ({"a.pdf": "%PDF-"}, "zip archive"),
    ],
)
def test_packages_that_are_not_read_are_named(tmp_path: Path, parts: dict[str, str], kind: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as package:
        for name, content in parts.items():
            package.writestr(name, content)
    refused(tmp_path / "a.zip", kind)
    assert is_archive(tmp_path / "a.zip") == (kind == "zip archive")


def test_a_cut_package_is_named(tmp_path: Path) -> None:
    write_package(tmp_path / "whole.docx", "<w:p/>")
    put(tmp_path, "cut.docx", (tmp_path / "whole.docx").read_bytes()[:200])
    refused(tmp_path / "cut.docx", "damaged")


def test_pipes_sockets_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(tmp_path)  # the name of a socket has at most 108 letters
        listener.bind("socket.pdf")
        for name, words in (("pipe.pdf", "pipe"), ("socket.pdf", "pipe"), (".", "folder"), ("gone.pdf", "opened")):
            with pytest.raises(DocumentUnreadable, match=words):
                format_of(tmp_path / name)
    with pytest.raises(DocumentUnreadable, match="device"):
        format_of(Path("/dev/zero"))


def test_size_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sniff.MAX_BYTES, "csv", 10)
    refused(put(tmp_path, "a.csv", "a,b\n" * 20), "at most")


@pytest.mark.parametrize(
    ("text", "codec"),
    [(text, codec) for text in (CHINESE, CHINESE * 50, "报警") for codec in ("utf-8", "utf-8-sig", "gb18030", "utf-16")]
    + [(text, codec) for text in (CHINESE, WESTERN, "a,b\n1,报警\n") for codec in ("utf-16-le", "utf-16-be")]
    + [(TRADITIONAL, "big5"), (TRADITIONAL * 9, "gb18030"), (WESTERN, "cp1252"), (WESTERN, "utf-8"), ("plain", "utf-8")],
)  # fmt: skip
def test_encodings_are_found(tmp_path: Path, text: str, codec: str) -> None:
    found, encoding, warnings = decoded(put(tmp_path, "a", text.encode(codec)), "a")
    assert (found, warnings) == (text, [])
    assert encoding == codec.removesuffix("-sig")


def test_damaged_text_is_read_and_said(tmp_path: Path) -> None:
    text, encoding, warnings = decoded(put(tmp_path, "a", (CHINESE * 9).encode()[:-2] + b"\xff\n"), "a.csv")
    assert encoding == "utf-8" and text.startswith(CHINESE)
    assert len(warnings) == 1 and "a.csv" in warnings[0] and "line" in warnings[0]
    text, _, warnings = decoded(put(tmp_path, "b", b"one\x00two " * 1 + b"word " * 900), "b.txt")
    assert text.startswith("onetwo") and "NUL" in warnings[0]


@given(st.text())
def test_nothing_that_must_not_be_shown_comes_through(text: str) -> None:
    cleaned = clean(text)
    assert not UNPRINTABLE.search(cleaned)
    cleaned.encode()
    assert clean(cleaned) == cleaned


@given(st.binary(max_size=300))
def test_any_bytes_have_an_encoding_or_none(data: bytes) -> None:
    encoding = encoding_of(data)
    if encoding is not None:
        data.decode(encoding, errors="replace")


def unpacked(path: Path, folder: Path) -> tuple[dict[str, bytes], list[str]]:
    into = folder / "into"
    into.mkdir()
    warnings: list[str] = []
    found = {}
    for member, name in members(path, path.name, into, warnings.append):
        assert into in member.resolve().parents
        found[name] = member.read_bytes()
    return found, warnings


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, content in entries:
            made.writestr(name, content)
    return out.getvalue()


def test_members_are_unpacked_with_their_names(tmp_path: Path) -> None:
    inner = zipped(("deep/b.txt", b"two"))
    path = put(tmp_path, "a.zip", zipped(("folder/", b""), ("folder/a.txt", b"one"), ("in.zip", inner),
                                         ("__MACOSX/._a.txt", b"x"), ("folder/~$a.docx", b"x"), (".hidden", b"x")))  # fmt: skip
    found, warnings = unpacked(path, tmp_path)
    assert found == {"a.zip/folder/a.txt": b"one", "a.zip/in.zip/deep/b.txt": b"two"}
    assert warnings == []


def test_tricks_with_paths_are_refused_and_the_others_read(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    names = ("../up.txt", "a/../../up.txt", "/etc/passwd", "C:\\x.txt", "..\\up.txt", "good.txt")
    path = put(tmp_path, "a.zip", zipped(*((name, b"x") for name in names), (link, b"/etc/passwd"), ("GOOD.txt", b"y")))
    found, warnings = unpacked(path, tmp_path)
    assert found == {"a.zip/good.txt": b"x"}
    assert len(warnings) == 7
    assert sum("leads out" in w for w in warnings) == 5
    assert any("link" in w for w in warnings) and any("second file" in w for w in warnings)
    assert not (tmp_path / "up.txt").exists()


def test_a_nul_in_a_name(tmp_path: Path) -> None:
    path = put(tmp_path, "a.zip", zipped(("abXpdf", b"x")).replace(b"abXpdf", b"ab\x00pdf"))
    found, warnings = unpacked(path, tmp_path)
    assert found == {} and "NUL" in warnings[0]


def test_names_in_gb18030_without_a_flag(tmp_path: Path) -> None:
    raw = "报警表.txt".encode("gb18030")
    path = put(tmp_path, "a.zip", zipped(("x" * len(raw), b"1")).replace(b"x" * len(raw), raw))
    found, _ = unpacked(path, tmp_path)
    assert found == {"a.zip/报警表.txt": b"1"}


def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "RATIO_FROM_BYTES", 100_000)
    path = put(tmp_path, "a.zip", zipped(("bomb.txt", b"0" * 3_000_000), ("good.txt", b"x")))
    found, warnings = unpacked(path, tmp_path)
    assert list(found) == ["a.zip/good.txt"] and "200 times" in warnings[0]


def test_a_false_size_is_counted_as_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped(("liar.txt", os.urandom(50_000)), method=zipfile.ZIP_STORED)
    data = data.replace(struct.pack("<II", 50_000, 50_000), struct.pack("<II", 50_000, 10))
    found, warnings = unpacked(put(tmp_path, "a.zip", data), tmp_path)
    assert found == {} and "cannot be unpacked" in warnings[0]


def test_limits_of_count_total_and_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "MAX_MEMBERS", 3)
    monkeypatch.setattr(archive_module._Budget, "__init__", lambda self: self.__dict__.update(members=3, total=10**9))
    (tmp_path / "one").mkdir()
    found, warnings = unpacked(
        put(tmp_path, "many.zip", zipped(*((f"{n}.txt", b"x") for n in range(9)))), tmp_path / "one"
    )
    assert len(found) == 3 and "more than 3 files" in warnings[0] and len(warnings) == 1
    nested = zipped(("c.zip", zipped(("d.zip", zipped(("e.txt", b"x"))))))
    (tmp_path / "two").mkdir()
    found, warnings = unpacked(put(tmp_path, "deep.zip", nested), tmp_path / "two")
    assert found == {} and "more than 2 deep" in warnings[0]
    monkeypatch.setattr(archive_module._Budget, "__init__", lambda self: self.__dict__.update(members=30, total=5_000))
    (tmp_path / "three").mkdir()
    big = zipped(*((f"{n}.txt", os.urandom(2_000)) for n in range(5)))
    found, warnings = unpacked(put(tmp_path, "big.zip", big), tmp_path / "three")
    assert len(found) == 2 and len(warnings) == 3


def test_encrypted_damaged_and_unknown_members(tmp_path: Path) -> None:
    data = bytearray(zipped(("secret.txt", b"x" * 50), ("bad.txt", b"abcdef" * 9), ("odd.txt", b"y"), ("good.txt", b"z"),
                            method=zipfile.ZIP_STORED))  # fmt: skip
    at = data.rindex(b"secret.txt") - 46
    data[at + 8] |= 1
    data[data.index(b"abcdef")] = ord("X")  # its checksum is wrong now
    at = data.rindex(b"odd.txt") - 46
    data[at + 10] = 77  # a method that nobody knows
    found, warnings = unpacked(put(tmp_path, "a.zip", bytes(data)), tmp_path)
    assert found == {"a.zip/good.txt": b"z"}
    assert len(warnings) == 3 and "password" in warnings[0]


def test_an_archive_that_is_damaged_or_empty(tmp_path: Path) -> None:
    assert not is_archive(put(tmp_path, "cut.zip", zipped(("a.txt", b"x" * 999))[:60]))
    with pytest.raises(DocumentUnreadable, match="damaged"):
        unpacked(tmp_path / "cut.zip", tmp_path)
    empty = put(tmp_path, "empty.zip", zipped())
    assert is_archive(empty)
    assert list(members(empty, "empty.zip", tmp_path, print)) == []
    put(tmp_path, "holds.zip", zipped(("inner.zip", b"PK\x03\x04 no zip"), ("a.txt", b"x")))
    (tmp_path / "again").mkdir()
    found, _ = unpacked(tmp_path / "holds.zip", tmp_path / "again")
    assert set(found) == {"holds.zip/inner.zip", "holds.zip/a.txt"}  # the first is named when it is opened
