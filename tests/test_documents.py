"""Documents in real SQLite: versions, what they share, removal, a kill at any point, a full disk."""

from __future__ import annotations

import dataclasses
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval.code_makers import use_codes
from retrieval.codes import find_codes
from retrieval.documents import (
    KEEP_VERSIONS,
    Chunk,
    DocumentMissing,
    Documents,
    StoredDocument,
    document_id,
    series_of,
    unit_of_chunk,
    version_in,
)
from retrieval.embed import HashingEmbedder
from retrieval.errors import StoreUnusable
from retrieval.families import catalogue, use_makers
from retrieval.index import build, load
from retrieval.records import KnowledgeEntry
from retrieval.store import FILL_BATCH, KnowledgeStore
from retrieval.units import Unit, vector_id


def document(name: str = "manual.pdf", body: str = "one", **change: Any) -> StoredDocument:
    path = f"/shop/{name}"
    made = StoredDocument(
        id=document_id(path, body),
        name=name,
        path=path,
        series=series_of(path, "fanuc", "30i"),
        version=version_in(name),
        sha256=body,
        format="pdf",
        vendor="fanuc",
        family="30i",
        title="A manual",
        pages=3,
        added_at="2026-01-01T00:00:00Z",
        current=True,
    )
    return dataclasses.replace(made, **change)


def chunks(*texts: str, heading: str = "Axis drives") -> list[Chunk]:
    return [Chunk((heading,), text, "en", page) for page, text in enumerate(texts, start=1)]


def row(of: StoredDocument, number: int = 401, **change: Any) -> KnowledgeEntry:
    raw = {
        "id": f"doc-{of.id}/sv{number:04d}",
        "kind": "alarm",
        "vendor": "fanuc",
        "keys": [{"family": "30i", "code": f"SV{number:04d}"}],
        "title": {"en": f"Row {number} of {of.name}"},
        "meaning": {"en": f"What {of.sha256} says of {number}."},
        "items": [],
        "sources": [],
    }
    return KnowledgeEntry.model_validate(raw | change)


@pytest.fixture
def store(home: Path) -> KnowledgeStore:
    return KnowledgeStore(home)


@pytest.fixture
def documents(store: KnowledgeStore) -> Documents:
    return Documents(store.database)


def ids(documents: Documents, *, old: bool = False) -> list[str]:
    return [d.id for d in documents.all(old=old)]


def values(store: KnowledgeStore, query: str, *arguments: object) -> set[Any]:
    with store.database.reading() as connection:
        return {found[0] for found in connection.execute(query, arguments)}


def check_whole(store: KnowledgeStore) -> None:
    """Every document is there with all its rows and passages, or not at all; what is searched belongs to current ones."""
    with store.database.reading() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        for found, current, report in connection.execute("SELECT id, current, report FROM document").fetchall():
            wanted = json.loads(report)
            for table, count in (("chunk", wanted["chunks"]), ("entry", wanted["entries"])):
                query = f"SELECT count(*) FROM {table} WHERE document_id = ?"
                assert connection.execute(query, (found,)).fetchone() == (count,)
            query = "SELECT count(*) FROM unit WHERE kind = 'passage' AND owner LIKE ?"
            assert connection.execute(query, (f"doc-{found}/%",)).fetchone() == (wanted["chunks"] if current else 0,)
            query = "SELECT count(*) FROM code WHERE entry_id LIKE ?"
            assert connection.execute(query, (f"doc-{found}/%",)).fetchone() == (wanted["entries"] if current else 0,)
        series = [r[0] for r in connection.execute("SELECT series FROM document WHERE current")]
        assert len(series) == len(set(series))
    documents = "SELECT id FROM document"
    for orphan in (
        f"SELECT id FROM chunk WHERE document_id NOT IN ({documents})",
        f"SELECT id FROM entry WHERE document_id NOT IN ({documents})",
        "SELECT owner FROM unit WHERE owner NOT IN (SELECT id FROM entry UNION SELECT id FROM chunk)",
        "SELECT entry_id FROM code WHERE entry_id NOT IN (SELECT id FROM entry)",
        "SELECT unit_id FROM passage WHERE unit_id NOT IN (SELECT id FROM unit)",
        "SELECT rowid FROM words WHERE rowid NOT IN (SELECT id FROM unit)",
        "SELECT id FROM unit WHERE id NOT IN (SELECT rowid FROM words)",
        "SELECT id FROM unit WHERE id NOT IN (SELECT unit_id FROM passage)",
    ):
        assert values(store, orphan) == set(), orphan


def counted(of: StoredDocument, entries: int, passages: int) -> StoredDocument:
    """With the numbers that `check_whole` holds it against."""
    return dataclasses.replace(of, report=json.dumps({"entries": entries, "chunks": passages}))


class TestNames:
    @pytest.mark.parametrize(
        ("name", "version"),
        [
            ("manual v2.1.pdf", "2.1"), ("manual_V3.pdf", "3"), ("manual-rev.4.pdf", "4"), ("manual (ver 1_2).pdf", "1_2"),
            ("manual Version 10.pdf", "10"), ("revision 7 manual.pdf", "7"), ("manual rev B.pdf", "B"),
            ("manual_revc.pdf", "c"), ("报警手册 版本2.pdf", "2"), ("报警手册_第3版.pdf", "3"), ("手册（v2.0）.pdf", "2.0"),
            ("manual 2024.pdf", "2024"), ("manual-2024-05.pdf", "2024-05"), ("manual_20240531.pdf", "20240531"),
            ("manual.2024.05.pdf", "2024.05"), ("2019 manual.pdf", "2019"),
            ("manual.pdf", ""), ("B-64485EN.pdf", ""), ("0i-MF.pdf", ""), ("drive.pdf", ""), ("v.pdf", ""),
            ("review2.pdf", ""), ("server 5.pdf", ""), ("manual 1850.pdf", ""), ("SV0401.pdf", ""), ("", ""),
        ],
    )  # fmt: skip
    def test_a_version_is_read_from_the_name(self, name: str, version: str) -> None:
        assert version_in(name) == version

    @pytest.mark.parametrize(
        "names",
        [
            ("manual v1.pdf", "manual v2.pdf", "manual_V2.1.pdf", "Manual (rev 7).PDF", "manual.pdf"),
            ("alarms 2023-01.xlsx", "alarms_2024.xlsx", "alarms.csv"),
            ("报警手册 版本2.pdf", "报警手册_第3版.pdf", "报警手册.docx"),
        ],
    )
    def test_versions_of_a_name_are_one_series(self, names: Sequence[str]) -> None:
        assert len({series_of(f"/shop/{name}", "fanuc", "30i") for name in names}) == 1

    def test_other_names_folders_and_makers_are_other_series(self) -> None:
        others = {
            series_of("/shop/alarms.pdf", "fanuc", "30i"), series_of("/shop/alarms drive.pdf", "fanuc", "30i"),
            series_of("/shop/b/alarms.pdf", "fanuc", "30i"), series_of("/shop/alarms.pdf", "fanuc", "0i"),
            series_of("/shop/alarms.pdf", "haas", "ngc"), series_of("/shop/alarms 2.pdf", "fanuc", "30i"),
        }  # fmt: skip
        assert len(others) == 6

    def test_an_id_is_of_place_and_content(self) -> None:
        assert document_id("/a", "x") == document_id("/a", "x")
        assert (
            len({document_id("/a", "x"), document_id("/a", "y"), document_id("/b", "x"), document_id("/ax", "")}) == 4
        )
        assert len(document_id("/a", "x")) == 10


class TestPut:
    def test_rows_and_passages_are_found_at_once(self, store: KnowledgeStore, documents: Documents) -> None:
        one = counted(document(), 1, 2)
        stored = documents.put(one, [row(one)], chunks("Grease the screw.", "Replace the encoder battery."))
        assert (stored.made, stored.reused, stored.superseded) == (2, 0, "")
        store.fill()
        check_whole(store)
        assert documents.at_path(one.path) == documents.with_content("one") == documents.find(one.id) == one
        assert documents.entries_of(one) == (f"doc-{one.id}/sv0401",)
        assert [i for _, i in store.lookup("fanuc", "SV0401", "30i")] == [f"doc-{one.id}/sv0401"]
        assert store.counts() == {"alarm": 1, "codes": 1, "passages": 2}
        passage = store.entry(f"doc-{one.id}/p1")
        assert passage is not None
        assert (passage.kind, passage.meaning.en, passage.title.en) == (
            "passage", "Replace the encoder battery.", "Axis drives",
        )  # fmt: skip
        assert (passage.sources[0].address, passage.sources[0].place) == ("manual.pdf", "page 2, Axis drives")
        assert passage.status == "unverified"

    def test_a_passage_tells_sheet_and_row_or_the_whole_document(
        self, store: KnowledgeStore, documents: Documents
    ) -> None:
        one = document(vendor="", title="")
        documents.put(one, [], [Chunk((), "旧表", "zh", None, "报警", 7), Chunk((), "A text", "en")])
        found = store.entries([f"doc-{one.id}/p0", f"doc-{one.id}/p1"])
        assert [e.sources[0].place for e in found] == ["sheet 报警, row 7", "whole document"]
        assert [e.title.get("en") for e in found] == ["manual.pdf"] * 2
        assert {e.vendor for e in found} == {"generic"}
        assert values(store, "SELECT DISTINCT vendor FROM unit") == {"generic"}

    def test_the_same_version_again_replaces_itself(self, store: KnowledgeStore, documents: Documents) -> None:
        one = document()
        documents.put(one, [row(one), row(one, 402)], chunks("a", "b", "c"))
        again = documents.put(counted(one, 1, 2), [row(one)], chunks("a", "d"))
        assert (again.made, again.reused, again.superseded) == (1, 1, "")
        store.fill()
        check_whole(store)
        assert ids(documents, old=True) == [one.id]
        assert store.lookup("fanuc", "SV0402") == ()

    def test_what_fails_in_the_middle_changes_nothing(self, store: KnowledgeStore, documents: Documents) -> None:
        one = counted(document(), 1, 1)
        documents.put(one, [row(one)], chunks("a"))
        before = store.generation
        two = document(body="two")
        with pytest.raises(
            StoreUnusable, match="UNIQUE"
        ):  # two rows of one code in one document without ids of their own
            with store.database.writing(searched=True) as connection:
                connection.execute("INSERT INTO chunk SELECT * FROM chunk")

        def broken(function: Callable[[Chunk], Unit], items: Iterable[Chunk]) -> Iterator[Unit]:
            yield function(next(iter(items)))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            documents.put(two, [row(two)], chunks("b", "c"), broken)
        with pytest.raises(ValueError, match="shorter"):  # a pool that lost one
            documents.put(two, [row(two)], chunks("b", "c"), lambda f, items: [f(items[0])])
        check_whole(store)
        assert (ids(documents), store.generation) == ([one.id], before)

    def test_the_generation_tells_readers(self, store: KnowledgeStore, documents: Documents) -> None:
        seen = [store.generation]
        for act in (
            lambda: documents.put(document(), [], chunks("a")),
            lambda: documents.put(document(body="two"), [], chunks("a")),
            lambda: documents.remove(documents.find("manual.pdf")),
        ):
            act()
            seen.append(store.generation)
        assert seen == sorted(set(seen))

    def test_odd_texts_are_stored_as_they_are(self, store: KnowledgeStore, documents: Documents) -> None:
        texts = [
            "",
            " ",
            "的",
            "' OR 1=1 --",
            '"; DROP TABLE chunk; --',
            "🔧" * 50,
            "主轴" * 400,
            "a\x00b",
            "x" * 20000,
        ]
        one = document()
        documents.put(one, [], chunks(*texts, heading='NEAR/2 AND (" * ^'))
        assert values(store, "SELECT count(*) FROM chunk") == {len(texts)}
        with store.database.reading() as connection:
            found = [r[0] for r in connection.execute("SELECT text FROM chunk ORDER BY position")]
        assert found == texts


class TestShared:
    """Equal passages are cut into words once and embedded once."""

    TEXTS = ("Grease the ball screw.", "Check the belt.", "电池更换步骤。")

    def test_a_new_version_takes_over_what_did_not_change(self, store: KnowledgeStore, documents: Documents) -> None:
        made: list[str] = []

        def each(function: Callable[[Chunk], Unit], items: Sequence[Chunk]) -> Iterator[Unit]:
            made.extend(chunk.text for chunk in items)
            return map(function, items)

        documents.put(document(), [], chunks(*self.TEXTS), each)
        stored = documents.put(
            document(body="two"), [], chunks(self.TEXTS[0], "Check both belts.", self.TEXTS[2]), each
        )
        assert (stored.made, stored.reused) == (1, 2)
        assert made == [*self.TEXTS, "Check both belts."]
        other = documents.put(document("other.pdf", vendor="haas"), [], chunks(*self.TEXTS[::2]), each)
        assert (other.made, other.reused) == (0, 2)
        # what was taken over is as if made
        with store.database.reading() as connection:
            rows = connection.execute(
                "SELECT unit.owner, unit.vendor, tokens, components, title_components FROM unit"
                " JOIN words ON words.rowid = unit.id"
            ).fetchall()
        fresh = {chunk.text: unit_of_chunk(chunk) for chunk in chunks(*self.TEXTS, "Check both belts.")}
        assert len(rows) == 5
        for owner, vendor, tokens, components, titles in rows:
            entry = store.entry(owner)
            assert entry is not None
            unit = fresh[entry.meaning.get("en")]
            assert (vendor, tuple(tokens.split())) == (entry.vendor, unit.tokens)
            assert set(components.split()) == unit.components
            assert set(titles.split()) == unit.title_components

    def test_equal_passages_are_embedded_once_and_found_in_each_document(
        self, home: Path, store: KnowledgeStore, documents: Documents
    ) -> None:
        for n in range(5):
            documents.put(
                document(f"copy {n}a.pdf", str(n)), [row(document(f"copy {n}a.pdf", str(n)))], chunks(*self.TEXTS)
            )
        asked: list[str] = []

        class Counting(HashingEmbedder):
            def passages(self, texts: Sequence[str]) -> Any:
                asked.extend(texts)
                return super().passages(texts)

        store.fill()
        build(home, store, Counting())
        assert len(asked) == len(set(asked)) == len(self.TEXTS) + 5
        index = load(home, HashingEmbedder())
        assert index.vectors.ntotal == len(asked)
        assert values(store, "SELECT count(*) FROM passage WHERE text LIKE '%Grease%'") == {5}

    def test_a_heading_of_its_own_is_another_text(self, documents: Documents) -> None:
        documents.put(document(), [], chunks("Check the belt."))
        stored = documents.put(document("other.pdf"), [], chunks("Check the belt.", heading="Spindle"))
        assert stored.made == 1

    def test_a_passage_twice_in_one_document_is_there_twice(self, store: KnowledgeStore, documents: Documents) -> None:
        one = counted(document(), 0, 3)
        documents.put(one, [], chunks("Check the belt.", "Check the belt.", "Check the belt."))
        check_whole(store)
        assert len(store.to_embed("e", 10)) == 1

    def test_vectors_of_what_left_can_be_pruned(self, store: KnowledgeStore, documents: Documents) -> None:
        documents.put(document(), [], chunks(*self.TEXTS))
        store.put_embeddings("e", dict.fromkeys(store.to_embed("e", 10), b"1"))
        documents.put(document(body="two"), [], chunks(*self.TEXTS[:2]))
        assert store.coverage("e") == (2, 2)
        assert store.prune_embeddings() == 1


class TestVersions:
    def test_the_same_path_with_other_content_takes_over(self, store: KnowledgeStore, documents: Documents) -> None:
        one, two = counted(document(), 1, 1), counted(document(body="two", added_at="2026-01-02T00:00:00Z"), 1, 2)
        documents.put(one, [row(one)], chunks("a"))
        stored = documents.put(two, [row(two)], chunks("a", "b"))
        assert stored.superseded == one.id
        store.fill()
        check_whole(store)
        assert documents.at_path(one.path) == two
        assert documents.with_content("one") is None
        assert ids(documents) == [two.id]
        assert [(d.id, d.current) for d in documents.all(old=True)] == [(one.id, False), (two.id, True)]
        assert [i for _, i in store.lookup("fanuc", "SV0401")] == [f"doc-{two.id}/sv0401"]
        # the old one is out of search, and can be asked for by its ids to compare
        assert [entry.id for entry in store.entries()] == [f"doc-{two.id}/sv0401"]
        assert [e.id for e in store.entries([f"doc-{one.id}/sv0401", f"doc-{one.id}/p0"])] == [
            f"doc-{one.id}/sv0401", f"doc-{one.id}/p0",
        ]  # fmt: skip

    def test_within_a_second_the_later_one_wins(self, store: KnowledgeStore, documents: Documents) -> None:
        for body in ("b", "a", "c", "0"):
            stored = documents.put(document(body=body), [], chunks(body))
            assert ids(documents) == [document(body=body).id]
            assert bool(stored.superseded) == (body != "b")

    @pytest.mark.parametrize(
        "names",
        [
            ("m v1.pdf", "m v2.pdf"), ("m v9.pdf", "m v10.pdf"), ("m v1.9.pdf", "m v1.10.pdf"), ("m v2.pdf", "m v2.1.pdf"),
            ("m rev A.pdf", "m rev B.pdf"), ("m rev Z.pdf", "m v1.pdf"), ("m 2023.pdf", "m 2024-01.pdf"), ("m.pdf", "m v1.pdf"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("newest_first", [True, False])
    def test_the_higher_version_counts_whenever_it_comes(
        self, store: KnowledgeStore, documents: Documents, names: tuple[str, str], newest_first: bool
    ) -> None:
        older, newer = (counted(document(name, name), 1, 1) for name in names)
        assert older.series == newer.series
        order = (newer, older) if newest_first else (older, newer)
        stored = [documents.put(d, [row(d)], chunks(d.name)) for d in order]
        assert [s.superseded for s in stored] == ["", "" if newest_first else older.id]
        store.fill()
        check_whole(store)
        assert ids(documents) == [newer.id]
        assert [i for _, i in store.lookup("fanuc", "SV0401")] == [f"doc-{newer.id}/sv0401"]
        assert documents.find(older.id) == dataclasses.replace(older, current=False)

    def test_only_so_many_versions_are_kept(self, store: KnowledgeStore, documents: Documents) -> None:
        made = [counted(document(f"m v{n}.pdf", str(n)), 1, 1) for n in range(1, KEEP_VERSIONS + 3)]
        for one in made:
            documents.put(one, [row(one)], chunks("same", str(one.version))[:1])
        store.fill()
        check_whole(store)
        assert ids(documents, old=True) == [d.id for d in made[-KEEP_VERSIONS:]]
        assert store.entry(f"doc-{made[0].id}/sv0401") is None
        # one that is too old to be kept is not kept, and changes nothing
        stored = documents.put(made[0], [row(made[0])], chunks("same"))
        assert stored.superseded == ""
        check_whole(store)
        assert ids(documents, old=True) == [d.id for d in made[-KEEP_VERSIONS:]]

    def test_documents_of_other_series_are_left_alone(self, store: KnowledgeStore, documents: Documents) -> None:
        one, other = counted(document("a v1.pdf"), 1, 1), counted(document("b v1.pdf"), 1, 1)
        for d in (one, other):
            documents.put(d, [row(d)], chunks("same"))
        two = counted(document("a v2.pdf"), 0, 1)
        documents.put(two, [], chunks("same"))
        store.fill()
        check_whole(store)
        assert ids(documents) == [two.id, other.id]
        assert [i for _, i in store.lookup("fanuc", "SV0401")] == [f"doc-{other.id}/sv0401"]

    def test_removing_takes_the_earlier_versions_too(self, store: KnowledgeStore, documents: Documents) -> None:
        other = counted(document("b.pdf"), 1, 1)
        documents.put(other, [row(other, 402)], chunks("same"))
        for n in (1, 2):
            documents.put(document(f"a v{n}.pdf"), [row(document(f"a v{n}.pdf"))], chunks("same"))
        store.fill()
        documents.remove(documents.find("a v2.pdf"))
        check_whole(store)
        assert ids(documents, old=True) == [other.id]
        assert store.lookup("fanuc", "SV0401") == ()
        assert [entry.id for entry in store.entries()] == [f"doc-{other.id}/sv0402"]
        documents.remove(other)
        documents.remove(other)
        check_whole(store)
        assert store.counts() == {"codes": 0}
        assert values(store, "SELECT count(*) FROM words") == {0}

    def test_a_revision_of_a_row_outlives_the_document_that_is_read_again(
        self, store: KnowledgeStore, documents: Documents
    ) -> None:
        one = document()
        documents.put(one, [row(one)], [])
        ours = row(one, keys=[{"family": "30i", "code": "SV0999"}], title={"en": "Ours"})
        with store.database.writing(searched=True) as connection:
            values_ = (ours.id, 1, ours.model_dump_json(), "of another text", "Li", "2026-01-01", "")
            connection.execute("INSERT INTO revision VALUES (?, ?, ?, ?, ?, ?, ?)", values_)
        documents.put(one, [row(one)], [])
        assert [i for _, i in store.lookup("fanuc", "SV0999")] == [ours.id]
        assert store.lookup("fanuc", "SV0401") == ()
        assert [entry.title.en for entry in store.entries()] == ["Ours"]


class TestFind:
    def test_by_id_its_beginning_name_or_path(self, documents: Documents) -> None:
        one = document("a v1.pdf")
        documents.put(one, [], [])
        for name in (one.id, one.id[:4], one.name, one.path):
            assert documents.find(name) == one
        for name in (one.id[:3], "a", "a v2.pdf", ""):
            with pytest.raises(DocumentMissing, match="No document") as caught:
                documents.find(name)
            assert "knowledge documents" in caught.value.next_step

    @pytest.mark.parametrize("name", ["%%%%", "____"])
    def test_a_wildcard_finds_nothing(self, documents: Documents, name: str) -> None:
        """`knowledge remove` takes away what is found."""
        documents.put(document(), [], [])
        with pytest.raises(DocumentMissing):
            documents.find(name)

    def test_several_of_one_name_are_listed(self, documents: Documents) -> None:
        here = document("a.pdf")
        there = dataclasses.replace(
            here, path="/other/a.pdf", id="0123456789", series=series_of("/other/a.pdf", "", "")
        )
        documents.put(here, [], [])
        documents.put(there, [], [])
        with pytest.raises(DocumentMissing, match="several documents") as caught:
            documents.find("a.pdf")
        assert here.id in caught.value.what
        assert "/other/a.pdf" in caught.value.what
        assert documents.find("0123456789") == there

    def test_the_newest_of_several_versions(self, documents: Documents) -> None:
        one, two = document(), document(body="two")
        documents.put(one, [], [])
        documents.put(two, [], [])
        assert documents.find("manual.pdf") == two
        assert documents.find(one.id).sha256 == "one"

    def test_under_a_folder(self, documents: Documents) -> None:
        for name in ("a.pdf", "sub/b.pdf"):
            documents.put(document(name), [], [])
        documents.put(dataclasses.replace(document("c.pdf"), path="/shop2/c.pdf"), [], [])
        assert [d.name for d in documents.under("/shop")] == ["a.pdf", "sub/b.pdf"]
        assert [d.name for d in documents.under("/shop/sub/")] == ["sub/b.pdf"]
        assert documents.under("/shop/s") == ()


class TestMakers:
    @pytest.fixture(autouse=True)
    def _forget(self) -> Iterator[None]:
        yield
        use_makers(())
        use_codes({})

    def test_a_maker_that_the_catalogue_lacks_is_known_by_its_codes(
        self, store: KnowledgeStore, documents: Documents
    ) -> None:
        assert "acmemill" not in catalogue()
        documents.add_maker("acmemill", "acmemill", "Acmemill")
        documents.add_maker("acmemill", "acmemill", "Acmemill WinMax")  # told again
        one = document(vendor="acmemill", family="acmemill")
        theirs = row(one, vendor="acmemill", keys=[{"family": "acmemill", "code": "EX4711"}])
        documents.put(one, [theirs], [])
        documents.use_makers()
        assert catalogue()["acmemill"]["families"].keys() == {"acmemill"}
        mentions = find_codes("Acmemill WinMax EX-4711 after start")
        assert any(reading.vendor == "acmemill" for mention in mentions for reading in mention.readings)


KILLED = """
import dataclasses, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_documents import chunks, counted, document, row
from retrieval.documents import Documents
from retrieval.embed import HashingEmbedder
from retrieval.index import build
from retrieval.store import KnowledgeStore
home, start = Path(sys.argv[1]), int(sys.argv[3])
store = KnowledgeStore(home)
documents = Documents(store.database)
print("here", flush=True)
for n in range(start, start + 1000):
    name = f"m{n % 3} v{n}.pdf"
    texts = [f"Passage {k} of {n // 2}, spindle {k * 7}" for k in range(60)]
    one = counted(document(name, str(n)), 20, len(texts))
    documents.put(one, [row(one, 100 + k) for k in range(20)], chunks(*texts))
    store.fill()
    if n % 2: build(home, store, HashingEmbedder())
    if n % 5 == 4: documents.remove(one)
    print(n, flush=True)
"""


class TestKill:
    def test_a_kill_at_any_point_leaves_a_whole_base(self, home: Path, store: KnowledgeStore) -> None:
        chance = random.Random(11)
        reached = 0
        for _ in range(6):
            command = [sys.executable, "-c", KILLED, str(home), str(Path(__file__).parent), str(reached)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n", process.communicate()
            time.sleep(chance.uniform(0.02, 0.7))
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate(timeout=30)
            assert process.returncode == -signal.SIGKILL, err
            reached = max([reached, *(int(line) + 1 for line in out.splitlines() if line.isdigit())])
            check_whole(store)
            if (home / "index" / "current").exists():
                index = load(home, HashingEmbedder())
                assert index.vectors.ntotal == index.manifest["vectors"]
        assert reached > 3
        documents = Documents(store.database)
        last = counted(document("m0 v9999.pdf"), 1, 1)
        documents.put(last, [row(last)], chunks("the last one"))
        store.fill()
        check_whole(store)
        build(home, store, HashingEmbedder())
        index = load(home, HashingEmbedder())
        assert store.coverage(HashingEmbedder.id)[0] == index.vectors.ntotal
        wanted = {vector_id(found) for found in values(store, "SELECT hash FROM passage")}
        np.testing.assert_array_equal(index.ids, sorted(wanted))
        assert not list((home / "index").glob(".building-*"))


class TestAtOnce:
    @pytest.mark.parametrize("how", ["removed", "superseded"])
    def test_rows_that_go_while_their_words_are_made_are_not_searched(
        self, store: KnowledgeStore, documents: Documents, how: str
    ) -> None:
        one = counted(document(), 2 * FILL_BATCH, 0)
        documents.put(one, [row(one, n) for n in range(1000, 1000 + 2 * FILL_BATCH)], [])

        def other(done: int, of: int) -> None:
            if done == FILL_BATCH:
                if how == "removed":
                    documents.remove(one)
                else:
                    documents.put(counted(document(body="two"), 0, 0), [], [])

        store.fill(other)
        assert values(store, "SELECT owner FROM unit") == set()
        check_whole(store)

    def test_two_processes_that_store_versions_end_with_one_current(self, home: Path, store: KnowledgeStore) -> None:
        code = KILLED.replace("start + 1000", "start + 5")
        folder = str(Path(__file__).parent)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(home), folder, str(start)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for start in (0, 2)
        ]  # fmt: skip
        for process in processes:
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
        check_whole(store)
        current = {d.name for d in Documents(store.database).all()}
        assert current == {"m0 v6.pdf", "m2 v5.pdf"} | ({"m1 v1.pdf"} & current)


class TestFullDisk:
    def test_a_document_that_does_not_fit_changes_nothing(self, home: Path, store: KnowledgeStore) -> None:
        """The limit on the size of a file stands in for the disk: the write fails in the same place."""
        documents = Documents(store.database)
        one = counted(document(), 1, 2)
        documents.put(one, [row(one)], chunks("a", "b"))
        store.fill()
        with sqlite3.connect(store.path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        code = (
            "import resource, sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\n"
            "from test_documents import chunks, document, row\nfrom retrieval.documents import Documents\n"
            "from retrieval.errors import StoreUnusable\nfrom retrieval.store import KnowledgeStore\n"
            "documents = Documents(KnowledgeStore(Path(sys.argv[1])).database)\n"
            "limit = documents.database.path.stat().st_size + 65536\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\ntwo = document(body='two')\n"
            "try: documents.put(two, [row(two)], chunks(*[f'text {n} ' * 50 for n in range(200)])); print('written')\n"
            "except StoreUnusable as error: print(error.next_step)\nprint(documents.all()[0].sha256)\n"
        )
        command = [sys.executable, "-c", code, str(home), str(Path(__file__).parent)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            "free disk space and run the command again; what was stored before is intact.", "one",
        ]  # fmt: skip
        check_whole(store)
        two = counted(document(body="two"), 1, 200)
        documents.put(two, [row(two)], chunks(*[f"text {n} " * 50 for n in range(200)]))
        store.fill()
        check_whole(store)
        assert ids(documents) == [two.id]
