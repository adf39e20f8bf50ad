"""Makers that a shop's documents bring: whose code a text holds, which of their controllers, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.detect import Instruction
from agents.evidence import bring
from agents.judge import judge_part
from agents.plan import RulePlanner
from agents.state import Conversation
from retrieval.code_makers import use_codes
from retrieval.codes import find_codes, vendors_in
from retrieval.documents import Documents
from retrieval.embed import HashingEmbedder
from retrieval.families import catalogue, makers, resolve_vendor, use_makers
from retrieval.ingest.document import Block, Place
from retrieval.ingest.identify import model_of
from retrieval.ingest.report import FileReport
from retrieval.ingest.run import Options, ingest
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore

HEAD = "| Code | Message | Cause | Remedy |\n|---|---|---|---|\n"
DRIVES = ("| E07 | BEARING HOT | grease | let it cool |\n", "| MOT-008 | MOTOR HOT | load | let it cool |\n")


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    use_makers(())
    use_codes({})
    yield
    use_makers(())
    use_codes({})


@pytest.fixture
def store(home: Path) -> KnowledgeStore:
    return KnowledgeStore(home)


def page(folder: Path, name: str, title: str, rows: Sequence[str]) -> Path:
    path = folder / name
    path.write_text(f"# {title}\n\n{HEAD}{''.join(rows)}", encoding="utf-8")
    return path


def numbers(text: str, *more: str) -> list[str]:
    return [f"| {n} | {text} {n} | cause | remedy |\n" for n in ("401", "402", "403", *more)]


def read(store: KnowledgeStore, *paths: Path, **options: Any) -> list[FileReport]:
    return ingest(paths, store, Options(**{"workers": 0, **options})).files


def readings(text: str, vendor: str | None = None) -> list[tuple[str | None, str | None, str]]:
    return [(r.vendor, r.family, r.code) for mention in find_codes(text, vendor) for r in mention.readings]


class TestNames:
    def test_a_spindles_maker_is_no_controls(self, store: KnowledgeStore, tmp_path: Path) -> None:
        read(store, page(tmp_path, "k.md", "Spindle unit", DRIVES), vendor="Kessler", family="spindle")
        assert vendors_in("the spindle growls") == ()
        assert vendors_in("Kessler spindle growls") == (("kessler", "spindle"),)
        assert readings("alarm E07") == [("kessler", None, "E07")]

    @pytest.mark.parametrize("name", ["Spindle", "CNC lathe", "主轴", "Drive", "machine"])
    def test_a_word_of_the_trade_names_no_maker_in_a_question(
        self, store: KnowledgeStore, tmp_path: Path, name: str
    ) -> None:
        (file,) = read(store, page(tmp_path, "k.md", "Unit", DRIVES), vendor=name)
        assert file.alarms == 2 and resolve_vendor(name)[0] == file.vendor
        assert vendors_in(f"the {name} is hot") == ()

    def test_a_maker_without_codes_says_nothing_of_a_code(self, store: KnowledgeStore, tmp_path: Path) -> None:
        path = tmp_path / "k.md"
        path.write_text("# Care\n\nGrease the bearing of the unit every 2000 hours, no more than two strokes.\n")
        read(store, path, vendor="Kessler")
        assert "kessler" in catalogue()
        assert vendors_in("Kessler spindle, FANUC SV0401") == (("fanuc", None),)

    def test_a_maker_goes_with_its_last_document(self, store: KnowledgeStore, tmp_path: Path) -> None:
        read(store, page(tmp_path, "k.md", "Unit", DRIVES), vendor="Kessler")
        documents = Documents(store.database)
        documents.remove(documents.find("k.md"))
        documents.use_makers()
        assert makers() == () and vendors_in("Kessler") == () and readings("alarm E07") == []

    def test_a_name_with_a_blank_is_known_as_it_was_given(self, store: KnowledgeStore, tmp_path: Path) -> None:
        read(store, page(tmp_path, "k.md", "Unit", DRIVES), vendor="Acme & Sons")
        assert resolve_vendor("acme & sons") == resolve_vendor("acme-sons") == ("acme-sons", None)
        assert vendors_in("Acme & Sons alarm E07") == (("acme-sons", None),)


class TestModels:
    def test_controllers_of_one_maker_are_kept_apart(self, store: KnowledgeStore, tmp_path: Path) -> None:
        one = page(tmp_path, "a.md", "GSK 980TDi alarm list", numbers("Drive"))
        two = page(tmp_path, "gsk_25i_alarms.md", "Alarm list", numbers("Turret"))
        assert [file.family for file in read(store, one, two, vendor="GSK")] == ["980tdi", "25i"]
        assert readings("GSK 980TDi alarm 401") == [("gsk", "980tdi", "401")]
        assert readings("GSK 25i shows 401") == [("gsk", "25i", "401")]
        assert [str(key) for key, _ in store.lookup_number("401", "gsk", "25i")] == ["gsk/25i/401"]
        assert {file.status for file in read(store, one, two, vendor="GSK")} == {"unchanged"}
        assert {file.status for file in read(store, one, two)} == {"unchanged"}

    @pytest.mark.parametrize(
        ("title", "name", "text", "model"),
        [
            ("GSK 980TDi alarm list", "a.pdf", "", "980tdi"),
            ("", "gsk-25i alarms.pdf", "GSK 980TDi", "25i"),
            ("广州数控 980TDb 报警表", "a.pdf", "", "980tdb"),
            ("", "a.pdf", "Alarms of the GSK 928TEa", "928tea"),
            ("GSK 218 alarms", "a.pdf", "", "218"),
            ("GSK 980TDi and GSK 25i", "a.pdf", "", None),
            ("GSK 2024", "gsk v2.pdf", "GSK 401 is a drive alarm", None),
            ("GSK alarms", "a.pdf", "see GSK 10", None),
        ],
    )
    def test_the_model_behind_the_makers_name(self, title: str, name: str, text: str, model: str | None) -> None:
        assert model_of("gsk", title, [Block("text", Place(), text)], name) == model

    def test_a_model_alone_is_known_only_if_it_is_one(self, store: KnowledgeStore, tmp_path: Path) -> None:
        read(store, page(tmp_path, "a.md", "Alarms", numbers("Drive")), vendor="Syntec", family="22MA")
        read(store, page(tmp_path, "b.md", "Alarms", numbers("Turret")), vendor="Acme", family="100")
        assert vendors_in("22MA: 401") == (("syntec", "22ma"),)
        assert vendors_in("at 100 rpm") == () and vendors_in("Acme 100") == (("acme", "100"),)


class TestTold:
    def test_a_changed_file_keeps_the_maker_it_was_given(self, store: KnowledgeStore, tmp_path: Path) -> None:
        path = page(tmp_path, "list.md", "Alarms", numbers("Drive"))
        read(store, path, vendor="Syntec", family="22MA")
        page(tmp_path, "list.md", "Alarms", numbers("Drive", "404"))
        (file,) = read(store, path)
        assert (file.status, file.vendor, file.family, file.alarms) == ("updated", "syntec", "22ma", 4)
        assert store.lookup("syntec", "404", "22ma")

    def test_so_does_a_later_version_under_another_name(self, store: KnowledgeStore, tmp_path: Path) -> None:
        read(store, page(tmp_path, "list v1.md", "Alarms", numbers("Drive")), vendor="Syntec", family="22MA")
        (file,) = read(store, page(tmp_path, "list v2.md", "Alarms", numbers("Drive", "404")))
        assert (file.status, file.vendor, file.alarms) == ("updated", "syntec", 4)

    def test_what_is_said_now_goes_first(self, store: KnowledgeStore, tmp_path: Path) -> None:
        path = page(tmp_path, "list.md", "Alarms", numbers("Drive"))
        read(store, path, vendor="Syntec", family="22MA")
        assert read(store, path, vendor="KND")[0].vendor == "knd"
        page(tmp_path, "list.md", "Alarms", numbers("Drive", "404"))
        assert read(store, path)[0].vendor == "knd"

    def test_what_a_person_was_asked_is_kept_too(self, store: KnowledgeStore, tmp_path: Path) -> None:
        path = page(tmp_path, "list.md", "Alarms", numbers("Drive"))
        ingest([path], store, Options(workers=0), ask_maker=lambda *_: ("Syntec", "22MA"))
        page(tmp_path, "list.md", "Alarms", numbers("Drive", "404"))
        assert read(store, path)[0].family == "22ma"


class TestOneSpellingOfTwoMakers:
    @pytest.fixture
    def searcher(self, store: KnowledgeStore, tmp_path: Path) -> Searcher:
        rows = [f"| EX100{n} | AIR LOW {n} | leak | mend it |\n" for n in range(1, 5)]
        read(store, page(tmp_path, "s.md", "Syntec alarms", rows))
        return Searcher(store.path.parent, store, HashingEmbedder())

    @pytest.mark.parametrize("text", ["EX1001", "alarm EX1001", "EX１００１ after start"])
    def test_both_are_read(self, searcher: Searcher, text: str) -> None:
        assert set(readings(text)) == {("fanuc", "30i", "EX1001"), ("syntec", None, "EX1001")}
        part = RulePlanner().plan(text, None, None).parts[0]
        asked = Instruction(part_id="1", intent="alarm", text=text, mention=part.mention)
        finding = judge_part(asked, bring(asked, searcher, Conversation(), False), (), False, None)
        assert finding.status == "ambiguous"
        assert [str(row.fault_code) for row in finding.candidates] == ["syntec/syntec/EX1001"]

    @pytest.mark.parametrize(("text", "vendor"), [("Syntec EX1001", "syntec"), ("FANUC EX1001", "fanuc")])
    def test_a_named_maker_settles_it(self, searcher: Searcher, text: str, vendor: str) -> None:
        assert {vendor for vendor, _, _ in readings(text)} == {vendor}

    def test_a_code_that_only_this_maker_writes_so(self, searcher: Searcher) -> None:
        assert readings("EX-1001") == readings("ex 1001") == [("syntec", None, "EX1001")]
        assert readings("EX-1999") == []
