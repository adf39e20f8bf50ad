"""The labelled set of search: what its file holds, what its labels mean, how a run is scored and compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.documents.pdf import write_manual
from evaluation.search import base as base_module
from evaluation.search.__main__ import main, measure
from evaluation.search.base import Manual, ManualNotRead, evaluation_base, manuals
from evaluation.search.methods import Found, NoEmbedder, RememberingEmbedder, ask, searcher_of
from evaluation.search.report import Report, read_baseline, write_baseline
from evaluation.search.score import Outcome, drops, faults, interval, outcome_of, scores
from evaluation.search.set import CODE_GROUPS, GROUPS, HALVES, QUERIES, Labels, Query, SetUnreadable, read_queries
from retrieval.embed import HashingEmbedder
from retrieval.errors import StoreUnusable
from retrieval.families import makers
from retrieval.records import EntryKind
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore

SET = read_queries()
FIRST = {
    "id": "code-en-01",
    "language": "en",
    "group": "code",
    "text": "FANUC SV0401",
    "about": "fanuc",
    "expected": ["fanuc/sv0401"],
}


@pytest.fixture(scope="module")
def known() -> Iterator[tuple[Path, KnowledgeStore]]:
    """The base of the set, without vectors."""
    with evaluation_base(None) as made:
        yield made


@pytest.fixture(scope="module")
def labels(known: tuple[Path, KnowledgeStore]) -> Labels:
    return Labels(SET, known[1])


def query(group: str = "code", expected: tuple[str, ...] = ("fanuc/sv0401",), **change: Any) -> Query:
    fields: dict[str, Any] = {"id": "q", "language": "en", "group": group, "text": "t", "expected": expected}
    return Query.model_validate(fields | change)


def found(*first: str, code: str = "SV0401", alarms: tuple[str, ...] = (), **change: Any) -> Found:
    given = first[:1]
    return replace(Found("enough", code, (first, alarms), given, ()), **change)


def judged(asked: Query, *parts: Found, store: KnowledgeStore) -> Outcome:
    return outcome_of(asked, parts, Labels([asked], store))


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


class TestSet:
    def test_both_languages_and_every_group_are_there(self) -> None:
        counts = Counter((q.group, q.language) for q in SET)
        assert len(SET) >= 220 and abs(sum(q.language == "zh" for q in SET) / len(SET) - 0.5) < 0.02
        assert set(counts) == {(group, language) for group in GROUPS for language in ("zh", "en")}
        assert min(counts.values()) >= 15

    def test_the_half_of_a_question_never_changes(self) -> None:
        halves = {"code-zh-01": "report", "code-en-02": "tune", "symptom-zh-02": "report", "none-en-01": "report"}
        assert {name: query(id=name).half for name in halves} == halves
        shares = Counter(q.half for q in SET)
        assert all(0.4 < shares[half] / len(SET) < 0.6 for half in HALVES)

    def test_every_text_stands_once(self) -> None:
        asked = Counter((q.text, q.vendor, q.family) for q in SET)
        assert [text for text, n in asked.items() if n > 1] == []

    @pytest.mark.parametrize(
        ("lines", "problem"),
        [
            ([FIRST, FIRST], "line 2: the id code-en-01 stands twice"),
            ([FIRST | {"group": "other"}], "line 1, group"),
            ([FIRST | {"expected": []}], "has `expected`"),
            ([FIRST | {"group": "none"}], "has `forbidden`"),
            ([FIRST | {"forbidden": ["*"]}], "has `expected`"),
            ([FIRST | {"colour": "red"}], "line 1, colour"),
        ],
    )
    def test_a_line_at_fault_is_named(self, tmp_path: Path, lines: list[dict[str, Any]], problem: str) -> None:
        with pytest.raises(SetUnreadable) as raised:
            read_queries(written(tmp_path / "q.jsonl", *lines))
        assert problem in str(raised.value)

    @pytest.mark.parametrize("content", [None, b"{not json\n", b"\xff\xfe\n"])
    def test_a_file_that_cannot_be_read_is_named(self, tmp_path: Path, content: bytes | None) -> None:
        path = tmp_path / "q.jsonl"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(SetUnreadable, match=r"q\.jsonl"):
            read_queries(path)


class TestBase:
    def test_the_rows_that_labels_count_on_say_what_they_said(self, known: tuple[Path, KnowledgeStore]) -> None:
        """Another generator of manuals would leave the labels pointing at other rows."""
        headings = {
            "kestrel/kestrel/AL20": "Axis 4 feedback position deviation too large",
            "kestrel/kestrel/AL25": "Hand wheel not ready",
            "kestrel/kestrel/AL45": "Memory card overheat",
            "kestrel/kestrel/AL47": "Hydraulic unit undervoltage",
            "kestrel/kestrel/AL60": "Field bus coupler ID mismatch",
            "kestrel/kestrel/AL73": "Safety door switch time-out (not E-037)",
            "kestrel/kestrel/AL82": "Way lube unit limit switch reached",
            "kestrel/kestrel/E074": "Hydraulic unit phase missing",
            "kestrel/kestrel/ERR19": "Turret data error (> 3 %)",
            "kestrel/kestrel/ERR43": "Chip conveyor did not reach its end position within 8 s",
            "kestrel/kestrel/ERR65": "Regenerative resistor not ready",
            "kestrel/kestrel/ERR74": "Safety door switch signal lost (hardware)",
            "fanuc/30i/EX1022": "HYDRAULIC UNIT COMMUNICATION LOST (> 5 %)",
            "fanuc/30i/EX1091": "TURRET ID MISMATCH",
            "fanuc/30i/EX1092": "LINEAR SCALE GROUND FAULT",
            "fanuc/30i/EX1121": "REGENERATIVE RESISTOR UNDERVOLTAGE (GROUP 3)",
            "fanuc/30i/EX1216": "AXIS 4 FEEDBACK REFERENCE POSITION NOT ESTABLISHED",
            "fanuc/30i/EX1254": "HYDRAULIC UNIT COMMUNICATION LOST",
            "fanuc/30i/EX1259": "COOLANT PUMP NOT READY",
            "fanuc/30i/EX1314": "PNEUMATIC PRESSURE SWITCH LOW PRESSURE",
            "fanuc/30i/EX1319": "HAND WHEEL GROUND FAULT",
            "北辰/北辰/1": "光栅尺参考点未建立（不是5410）",
            "北辰/北辰/364": "液压站压力低",
            "北辰/北辰/451": "换刀机械手负载异常（n＝10）",
            "北辰/北辰/1659": "刀塔在8秒内未到位",
            "北辰/北辰/1779": "X轴伺服驱动器位置偏差过大",
            "北辰/北辰/1871": "再生电阻欠电压（第2主轴）",
            "北辰/北辰/2287": "抱闸回路压力低",
            "北辰/北辰/2733": "直流母线识别号不一致",
            "北辰/北辰/3110": "24V电源过热",
            "北辰/北辰/3244": "换刀机械手超时",
            "北辰/北辰/3522": "测头接收器识别号不一致",
            "北辰/北辰/4293": "电柜风扇未就绪",
            "北辰/北辰/5003": "转台夹紧装置到达限位",
            "siemens/sinumerik/700003": "转台夹紧装置过热",
            "siemens/sinumerik/700005": "导轨润滑装置负载异常",
            "siemens/sinumerik/700012": "尾座压力低",
            "siemens/sinumerik/700041": "电柜风扇信号丢失（硬件）",
            "siemens/sinumerik/700042": "手轮超时",
            "siemens/sinumerik/700061": "24V电源接地故障",
            "siemens/sinumerik/700070": "刀塔负载异常",
        }
        labelled = {label for q in SET if q.group == "cross" for label in q.expected if label.count("/") == 2}
        assert labelled == set(headings)
        asked = {label: query("cross", (label,), id=label) for label in headings}
        labels = Labels(list(asked.values()), known[1])
        for label, heading in headings.items():
            title = labels.entries[labels.expected(asked[label])[0]].title
            assert title.zh or title.en == heading
            assert heading in (title.zh, title.en)

    def test_a_row_of_a_document_is_in_one_language(self, labels: Labels) -> None:
        for asked in (q for q in SET if q.group == "cross"):
            rows = [labels.entries[i] for i in labels.expected(asked) if i.startswith("doc-")]
            assert rows and not any(getattr(row.title, asked.language) for row in rows)

    def test_a_range_that_another_source_has_is_not_the_row(self, labels: Labels) -> None:
        asked = next(q for q in SET if "siemens/sinumerik/700042" in q.expected)
        assert labels.expected(asked)[0].startswith("doc-")

    def test_a_label_that_the_base_has_not_is_named(self, known: tuple[Path, KnowledgeStore]) -> None:
        for asked in (query(expected=("fanuc/sv9999",)), query("none", (), forbidden=("fanuc/sv9999",))):
            with pytest.raises(SetUnreadable, match=r"no code 'fanuc/sv9999'"):
                Labels([asked], known[1])

    def test_makers_of_the_manuals_are_forgotten(self) -> None:
        before = makers()
        with evaluation_base(None):
            assert {"kestrel", "北辰"} <= {maker.vendor for maker in makers()}
        assert makers() == before

    def test_a_manual_that_loses_rows_is_no_base(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = manuals()[0]

        def cut(path: Path, rows: Any, layout: Any, seed: int) -> None:
            write_manual(path, rows[1:], layout, seed)

        monkeypatch.setattr(base_module, "manuals", lambda: (whole,))
        monkeypatch.setattr(base_module, "write_manual", cut)
        with pytest.raises(ManualNotRead, match=r"26 rows; 25 were read"), evaluation_base(None):
            pass

    def test_vectors_of_another_home_are_taken_over_and_it_stays_as_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(base_module, "manuals", tuple[Manual, ...])
        embedder = HashingEmbedder()
        with evaluation_base(None) as (_, store):
            store.fill()
            texts = store.to_embed(embedder.id, 10)
        other = KnowledgeStore(tmp_path / "other")
        mark = embedder.passages(["mark"])[0].tobytes()
        other.put_embeddings(embedder.id, dict.fromkeys([*texts, "of another text"], mark))
        before = other.path.read_bytes()
        with evaluation_base(embedder, other.path.parent) as (_, store):
            held = dict(store.embeddings(embedder.id))
        assert all(held[name] == mark for name in texts)
        assert "of another text" not in held
        assert other.path.read_bytes() == before

    def test_a_home_without_a_base_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(base_module, "manuals", tuple[Manual, ...])
        with (
            pytest.raises(StoreUnusable, match="leave --home out"),
            evaluation_base(HashingEmbedder(), tmp_path / "no"),
        ):
            pass
        assert not (tmp_path / "no").exists()


class TestMethods:
    def test_a_code_is_looked_up_alike(self, known: tuple[Path, KnowledgeStore], labels: Labels) -> None:
        asked = next(q for q in SET if q.id == "code-zh-01")
        for method in ("bm25", "vectors", "hybrid"):
            (part,) = ask(searcher_of(method, *known, NoEmbedder()), asked)
            assert part.code == "SV0401" and part.status == "enough"
            assert part.lists[0] == part.given == labels.expected(asked)

    def test_filters_hold_in_every_method(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(base_module, "manuals", tuple[Manual, ...])
        embedder = HashingEmbedder()
        kinds: tuple[EntryKind, ...] = ("alarm",)
        with evaluation_base(embedder) as (home, store):
            for method in ("bm25", "vectors"):
                searcher = searcher_of(method, home, store, embedder)
                hits = searcher.search("spindle overheat", kinds=kinds, vendor="haas", count=3)
                assert len(hits) == 3 and all(0.0 <= hit.similarity <= 1.0 for hit in hits)
                found = store.entries(hit.entry_id for hit in hits)
                assert {(entry.kind, entry.vendor) for entry in found} == {("alarm", "haas")}

    def test_without_vectors_there_is_nothing_near(self, known: tuple[Path, KnowledgeStore]) -> None:
        assert searcher_of("vectors", *known, NoEmbedder()).search("spindle overheat") == ()
        assert searcher_of("bm25", *known, NoEmbedder()).search("spindle overheat")

    def test_what_is_turned_away_has_no_part(self, known: tuple[Path, KnowledgeStore]) -> None:
        asked = query("none", (), forbidden=("*",), text="how do I bridge the door switch")
        assert ask(searcher_of("bm25", *known, NoEmbedder()), asked) == ()


class TestOutcome:
    def test_the_best_of_the_lists_counts(self, known: tuple[Path, KnowledgeStore]) -> None:
        asked = query("symptom", ("fanuc/sv0411",), vendor="fanuc")
        part = found("guide/axis-following-error", code="", alarms=("fanuc/sv0410", "fanuc/sv0411"))
        outcome = judged(asked, part, store=known[1])
        assert outcome.values["recall@1"] == 0.0 and outcome.values["recall@3"] == 1.0
        assert outcome.values["mrr"] == 0.5 and "exact" not in outcome.values
        assert outcome.problem == "rank 2 behind guide/axis-following-error, fanuc/sv0410"

    def test_named_is_what_an_answer_shows(self, known: tuple[Path, KnowledgeStore]) -> None:
        asked = query("symptom", ("fanuc/sv0411",), vendor="fanuc")
        part = found("guide/axis-following-error", code="")
        assert judged(asked, part, store=known[1]).values["named"] == 0.0
        assert judged(asked, replace(part, named=("fanuc/sv0411",)), store=known[1]).values["named"] == 1.0

    @pytest.mark.parametrize(
        ("parts", "problem"),
        [
            ((), "turned away before any search"),
            ((found("guide/drive-overheating", code="", given=()),), "not read as a code (enough)"),
            ((found(code="SV0999", given=()),), "read as SV0999, which the base has not"),
            ((found("fanuc/sv0410"),), "SV0401 leads to fanuc/sv0410"),
            ((found("fanuc/sv0401"), found(code="2026", given=())), "read as 2026, which the base has not"),
        ],
    )
    def test_why_a_code_is_not_right(
        self, known: tuple[Path, KnowledgeStore], parts: tuple[Found, ...], problem: str
    ) -> None:
        outcome = judged(query(), *parts, store=known[1])
        assert outcome.values["exact"] == 0.0 and outcome.problem == problem

    def test_every_code_is_wanted_where_the_label_says_so(self, known: tuple[Path, KnowledgeStore]) -> None:
        asked = query("pasted", ("fanuc/sv0401", "fanuc/sv0436"), every=True)
        half = judged(asked, found("fanuc/sv0401"), store=known[1])
        assert half.values["exact"] == half.values["recall@5"] == half.values["named"] == 0.0
        assert half.problem == "fanuc/sv0436 is left out"
        both = judged(asked, found("fanuc/sv0401"), found("fanuc/sv0436", code="SV0436"), store=known[1])
        assert both.values["exact"] == both.values["recall@1"] == 1.0 and not both.problem

    @pytest.mark.parametrize(
        ("given", "change", "wrong"),
        [
            ("siemens/sinumerik-25050", {}, 1.0),
            ("fanuc/sv0410", {}, 0.0),
            ("guide/drive-overheating", {}, 0.0),
            ("fanuc/sv0410", {"vendor": "siemens", "expected": ("siemens/sinumerik-25050",)}, 1.0),
            ("siemens/sinamics-f07900", {"about": "siemens/sinumerik"}, 0.0),  # its drives show theirs on one screen
            ("siemens/sinumerik-25050", {"about": "siemens/sinamics"}, 1.0),
            ("grbl/hal-alarm-17", {"vendor": "grbl", "family": "grbl"}, 1.0),
            ("grbl/alarm-1", {"vendor": "grbl", "family": "grbl"}, 0.0),
        ],
    )
    def test_another_machine(
        self, known: tuple[Path, KnowledgeStore], given: str, change: dict[str, Any], wrong: float
    ) -> None:
        outcome = judged(query("symptom", **({"expected": ("fanuc/sv0401",)} | change)), found(given), store=known[1])
        assert outcome.values["wrong_family"] == wrong
        assert (f"wrong family: {given}" in outcome.problem) == bool(wrong)

    def test_no_machine_in_question_no_wrong_family(self, known: tuple[Path, KnowledgeStore]) -> None:
        asked = query("symptom", ("guide/drive-overheating",))
        assert "wrong_family" not in judged(asked, found("fanuc/sv0430", code=""), store=known[1]).values

    def test_none_is_kept_unless_something_forbidden_is_given(self, known: tuple[Path, KnowledgeStore]) -> None:
        one = query("none", (), forbidden=("fanuc/sv0401",), vendor="siemens")
        anything = query("none", (), forbidden=("*",))
        guide = found("guide/drive-overheating", code="")
        asked_back = found("fanuc/sv0401", given=(), named=("fanuc/sv0401",), status="ambiguous")
        assert judged(one, guide, store=known[1]).values["kept"] == 1.0
        assert judged(one, asked_back, store=known[1]).values["kept"] == 1.0
        assert judged(anything, asked_back, store=known[1]).values["kept"] == 1.0
        assert judged(anything, guide, store=known[1]).problem == "gives guide/drive-overheating"
        assert judged(one, found("fanuc/sv0401"), store=known[1]).values == {"kept": 0.0, "wrong_family": 1.0}


class TestScores:
    def outcomes(self, group: str, *values: dict[str, float]) -> list[Outcome]:
        asked = [query(group, id=f"{group}-{n}") for n in range(len(values))]
        return [Outcome(q, v, "") for q, v in zip(asked, values, strict=True)]  # type: ignore[arg-type]

    def test_an_interval_holds_its_mean_and_is_the_same_again(self) -> None:
        value = interval([1.0] * 15 + [0.0] * 5)
        assert value.mean == 0.75 and 0.5 <= value.low < 0.75 < value.high <= 0.95
        assert interval([1.0] * 15 + [0.0] * 5) == value
        assert interval([1.0]).low == interval([1.0]).high == 1.0

    def test_cells_add_up(self) -> None:
        made = scores(self.outcomes("code", *({"exact": 1.0, "recall@1": float(n % 2)} for n in range(8))))
        counts = {score.name: score.count for score in made}
        assert counts["code/en/all"] == counts["all/all/all"] == 8
        assert counts["code/en/tune"] + counts["code/en/report"] == 8
        whole = next(score for score in made if score.name == "code/all/all")
        assert whole.values["recall@1"].mean == 0.5 and "mrr" not in whole.values

    def test_faults(self) -> None:
        assert faults(scores(self.outcomes("code", {"exact": 1.0, "wrong_family": 0.0}))) == []
        assert faults(scores(self.outcomes("mangled", {"exact": 0.0}))) == []
        (code,) = faults(scores(self.outcomes("code", {"exact": 0.0})))
        assert "exact code first in 0.0%" in code
        (wrong,) = faults(scores(self.outcomes("symptom", {"wrong_family": 1.0})))
        assert "another vendor or family is given in 100.0%" in wrong

    def test_drops_and_the_stored_figures(self, tmp_path: Path) -> None:
        path = tmp_path / "baseline.json"
        assert read_baseline(path) == {}
        good = scores(self.outcomes("symptom", *({"mrr": 1.0} for _ in range(4))))
        write_baseline(path, good)
        assert drops(good, read_baseline(path)) == []
        worse = scores(self.outcomes("symptom", *({"mrr": 0.94} for _ in range(4))))
        assert any(line == "symptom/en/all: mrr 0.940, was 1.000" for line in drops(worse, read_baseline(path)))
        little = scores(self.outcomes("symptom", *({"mrr": 0.96} for _ in range(4))))
        assert drops(little, read_baseline(path)) == []

    @pytest.mark.parametrize("content", ["[]", "{", '{"a": 1}', '{"a": {"mrr": "x"}}'])
    def test_stored_figures_that_are_none_are_named(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "baseline.json"
        path.write_text(content)
        with pytest.raises(SetUnreadable, match=r"baseline\.json holds no stored figures"):
            read_baseline(path)

    def test_the_stored_figures_are_of_this_set(self) -> None:
        stored = read_baseline(QUERIES.parent / "baseline.json")
        assert {f"{q.group}/{q.language}/{q.half}" for q in SET} <= set(stored)


class TestCommand:
    def small(self, folder: Path, **change: Any) -> Path:
        none = {"id": "none-en-01", "language": "en", "group": "none", "text": "write a poem", "forbidden": ["*"]}
        return written(folder / "q.jsonl", FIRST | change, none)

    def test_words_only(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = self.small(tmp_path)
        assert main(["--no-vectors", "--queries", str(path)]) == 0
        shown = capsys.readouterr()
        assert "## bm25" in shown.out and "| code | en | 1 | 1.00 [1.00, 1.00] |" in shown.out
        assert "bm25: 2 of 2" in shown.err and "warning" not in shown.err

    def test_a_code_that_fails_is_exit_code_1(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = self.small(tmp_path, expected=["fanuc/sv0410"])
        out = tmp_path / "report.json"
        assert main(["--no-vectors", "--queries", str(path), "--json", "--out", str(out)]) == 1
        report = json.loads(out.read_text(encoding="utf-8"))
        (wrong,) = report["not_right"]
        assert wrong["id"] == "code-en-01" and wrong["problem"] == "SV0401 leads to fanuc/sv0401"
        assert report["faults"] and report["scores"]["bm25"]["none/en/all"]["kept"]["mean"] == 1.0
        shown = capsys.readouterr()
        assert shown.out == "" and "fault: code/en/" in shown.err

    def test_a_set_that_cannot_be_read_is_exit_code_2(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--queries", str(tmp_path / "no.jsonl")]) == 2
        assert "no.jsonl cannot be read" in capsys.readouterr().err

    def test_figures_without_vectors_are_not_stored(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["--no-vectors", "--set-baseline"])
        assert "leave --no-vectors out" in capsys.readouterr().err


@pytest.fixture(scope="module")
def report() -> Report:
    """A run with vectors over the groups that search decides."""
    picked = [q for q in SET if q.group in ("symptom", "cross", "none") or q.id.endswith("-01")]
    return measure(picked, RememberingEmbedder(), None, {"symptom/zh/tune": {"mrr": 2.0}})


@pytest.mark.integration
class TestWholeSearch:
    def test_both_halves_of_the_search_are_beside_it(self, report: Report) -> None:
        assert list(report.scores) == ["bm25", "vectors", "hybrid"]
        assert report.drops[0].startswith("symptom/zh/tune: mrr")
        assert "| tune | symptom |" in report.as_markdown()

    def test_nothing_of_another_machine_is_given(self, report: Report) -> None:
        assert [line for line in report.faults if "vendor or family" in line] == []

    def test_figures_stay_where_they_were(self, report: Report) -> None:
        whole = {s.group: s.values for s in report.scores["hybrid"] if s.language == s.half == "all"}
        assert whole["symptom"]["recall@5"].mean >= 0.85
        assert whole["cross"]["recall@5"].mean >= 0.55
        assert whole["none"]["kept"].mean >= 0.94
        assert all(whole[group]["recall@1"].mean >= 0.5 for group in CODE_GROUPS)

    def test_the_product_searches_with_what_is_measured(self, known: tuple[Path, KnowledgeStore]) -> None:
        assert type(searcher_of("hybrid", *known, NoEmbedder())) is Searcher
