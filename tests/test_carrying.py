"""What a shop did to a row of a document, when the document comes in its next version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from retrieval.curation import alias, assign, revert, verify
from retrieval.exchange import export
from retrieval.ingest.report import FileReport
from retrieval.ingest.run import Options, ingest
from retrieval.listing import Filter, listed
from retrieval.merging import take_over
from retrieval.records import KnowledgeEntry
from retrieval.store import KnowledgeStore
from retrieval.versions import versions
from serve import cli

ROWS = (("SV0401", "VRDY OFF", "loose plug", "tighten it"), ("SV0410", "EXCESS ERROR", "tight axis", "grease it"))


@pytest.fixture
def store(home: Path) -> KnowledgeStore:
    return KnowledgeStore(home)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fanuc.md"


def read(store: KnowledgeStore, path: Path, rows: Sequence[Sequence[str]] = ROWS, text: str = "") -> FileReport:
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    path.write_text(
        f"# FANUC 0i-MF alarms\n\n{text}\n\n| Code | Message | Cause | Remedy |\n|---|---|---|---|\n{table}",
        encoding="utf-8",
    )
    (file,) = ingest([path], store, Options(workers=0)).files
    return file


def row(store: KnowledgeStore, code: str = "SV0401") -> str:
    ((_, entry_id),) = store.lookup("fanuc", code)
    return entry_id


def stale(store: KnowledgeStore) -> list[str]:
    return [found.entry.id for found in listed(store, Filter(stale=True))]


class TestSameRow:
    def test_text_verification_and_code_follow(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        old = row(store)
        assign(store, old, ["component=servo amplifier, X axis"], by="Li Wei", reason="our lathe")
        verify(store, old, by="Wang")
        alias(store, row(store, "SV0410"), "SV0999", family="30i", by="Li Wei")
        file = read(store, path, text="Lines that\n\nmove all rows down.")
        new = row(store)
        assert (file.carried, file.left_behind) == (2, ()) and new != old
        found = versions(store, new)
        assert found.current.component == "servo amplifier, X axis"
        assert (found.current.status, found.current.verified_by, found.stale) == ("verified", "Wang", False)
        assert [revision.by for revision in found.history] == ["Li Wei", "Wang"]
        assert found.history[0].reason == "our lathe" and old.partition("/")[0] in found.history[1].reason
        place = found.current.sources[0].place
        assert place == found.source.sources[0].place != versions(store, old).source.sources[0].place
        assert row(store, "SV0999") == row(store, "SV0410")
        assert stale(store) == []

    def test_the_content_of_before_has_it_too(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        verify(store, row(store), by="Wang")
        read(store, path, (*ROWS, ("SV0411", "EXCESS MOVE", "a", "b")))
        assign(store, row(store), ["component=X axis"], by="Li Wei")
        file = read(store, path)
        found = versions(store, row(store))
        assert file.carried == 1 and found.current.component == "X axis" and not found.stale
        assert [revision.seq for revision in found.history] == [1, 2]

    def test_a_row_that_is_listed_twice_keeps_its_own(self, store: KnowledgeStore, path: Path) -> None:
        one, two = ("SV0401", "VRDY OFF", "loose plug", "tighten it"), ("SV0401", "DRIVE NOT READY", "no power", "switch on")
        read(store, path, (one, two))
        ids = {e.of_kind("cause")[0].text.en: e.id for e in self.both(store)}
        assign(store, ids["no power"], ["component=supply"], by="Li Wei")
        assert read(store, path, (two, one)).carried == 1
        components = {e.of_kind("cause")[0].text.en: e.component for e in self.both(store)}
        assert components == {"no power": "supply", "loose plug": ""}

    def both(self, store: KnowledgeStore) -> tuple[KnowledgeEntry, ...]:
        return store.entries(entry_id for _, entry_id in store.lookup("fanuc", "SV0401"))

    def test_an_export_holds_it_and_comes_back(self, store: KnowledgeStore, path: Path, tmp_path: Path) -> None:
        read(store, path)
        verify(store, row(store), by="Wang")
        read(store, path, text="More.")
        export(store, tmp_path / "base.yaml")
        other = KnowledgeStore(tmp_path / "other")
        take_over(other, tmp_path / "base.yaml")
        assert versions(other, row(other)).current.verified_by == "Wang"


class TestChangedRow:
    CHANGED = (("SV0401", "VRDY OFF", "broken contactor", "replace it"), ROWS[1])

    def test_a_new_text_is_nobodys_and_the_report_says_so(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        old = row(store)
        verify(store, old, by="Wang")
        file = read(store, path, self.CHANGED)
        assert file.carried == 0 and file.left_behind == (f"{old} (by Wang): the row changed",)
        assert versions(store, row(store)).current.status == "unverified"
        assert stale(store) == [old]
        assert read(store, path, self.CHANGED, text="Later.").left_behind == (), "said once"

    def test_the_old_text_has_it_again(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        verify(store, row(store), by="Wang")
        read(store, path, self.CHANGED)
        read(store, path)
        assert versions(store, row(store)).current.verified_by == "Wang" and stale(store) == []

    def test_a_code_of_the_shop_does_not_lead_to_another_text(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        alias(store, row(store), "SV0999", family="30i", by="Li Wei")
        assert len(read(store, path, self.CHANGED).left_behind) == 1
        assert not store.lookup("fanuc", "SV0999")

    def test_words_for_search_do(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        alias(store, row(store), "drives will not come up", by="Li Wei")
        assert read(store, path, self.CHANGED).carried == 1
        entry = versions(store, row(store)).current
        assert entry.phrases["en"] == ("drives will not come up",)
        assert "broken contactor" in {item.text.en for item in entry.items}

    def test_a_row_that_is_gone(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        verify(store, row(store), by="Wang")
        (left,) = read(store, path, ROWS[1:]).left_behind
        assert "the row is gone" in left

    def test_what_went_back_to_the_source_is_no_change(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        assign(store, row(store), ["component=X axis"], by="Li Wei")
        revert(store, row(store), by="Li Wei")
        file = read(store, path, self.CHANGED)
        assert (file.carried, file.left_behind) == (0, ())


def test_the_command_says_what_follows_and_what_stays(store: KnowledgeStore, home: Path, path: Path) -> None:
    read(store, path)
    verify(store, row(store), by="Wang")
    verify(store, row(store, "SV0410"), by="Wang")
    path.write_text(path.read_text(encoding="utf-8").replace("loose plug", "broken plug"), encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["ingest", str(path), "--no-vectors", "--home", str(home)])
    assert "1 rows that your shop changed or verified" in result.output
    assert "the row changed" in result.output and "knowledge list --stale" in result.output


class TestNothingIsPutOnTop:
    def test_words_for_search_do_not_take_a_verified_text_away(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        assign(store, row(store), ["component=X axis"], by="Li Wei")
        verify(store, row(store), by="Wang")
        read(store, path, TestChangedRow.CHANGED)
        alias(store, row(store), "drives will not come up", by="Li Wei")
        read(store, path)
        current = versions(store, row(store)).current
        assert (current.status, current.verified_by, current.component) == ("verified", "Wang", "X axis")

    def test_words_do_not_go_to_another_row_of_the_code(self, store: KnowledgeStore, path: Path) -> None:
        one, two = ("SV0401", "VRDY OFF", "loose plug", "tighten"), ("SV0401", "NOT READY", "no power", "switch on")
        read(store, path, (one, two))
        first = next(e.id for e in TestSameRow().both(store) if e.title.en == "VRDY OFF")
        alias(store, first, "plug came off", by="Li Wei")
        read(store, path, (two, ("SV0401", "VRDY OFF", "plug is loose", "tighten")))
        assert not any(entry.phrases for entry in TestSameRow().both(store))

    def test_the_text_of_three_versions_ago_has_it_again(self, store: KnowledgeStore, path: Path) -> None:
        read(store, path)
        verify(store, row(store), by="Wang")
        for n in range(2):
            read(store, path, (("SV0401", f"OTHER {n}", "a", "b"), ROWS[1]))
        assert read(store, path, text="New words around it.").carried == 1
        assert versions(store, row(store)).current.verified_by == "Wang"
