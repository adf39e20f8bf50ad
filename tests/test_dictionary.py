"""Shop words: what is found and what is not, a shop's own file, and what search makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from retrieval.dictionary import (
    Dictionary,
    LiveDictionary,
    Shop,
    Word,
    WordsUnreadable,
    built_in,
    load_dictionary,
    read_words,
    shop_file,
)
from retrieval.embed import HashingEmbedder, Vectors
from retrieval.errors import EmbedderUnavailable
from retrieval.records import Bilingual, EntryKind
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore
from retrieval.tokens import has_chinese
from serve.cli import mounted

QUERIES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "slang_queries.jsonl").read_text(encoding="utf-8").splitlines()
]
KINDS: tuple[EntryKind, ...] = ("alarm", "guide", "procedure", "parameter")


def made(word: str, **change: Any) -> Word:
    return Word.model_validate({"word": word, "en": ["standard"], "meaning": {"en": "m"}} | change)


@pytest.fixture(scope="module")
def dictionary() -> Dictionary:
    return Dictionary(built_in())


def said(dictionary: Dictionary, text: str) -> list[str]:
    return [text[found.start : found.end] for found in dictionary.expand(text).found]


class TestBuiltIn:
    def test_every_word_has_terms_in_both_languages_and_a_meaning_to_check(self) -> None:
        words = built_in()
        assert sum(has_chinese(word.word) for word in words) >= 80
        assert sum(not has_chinese(word.word) for word in words) >= 60
        for word in words:
            assert word.meaning.zh and word.meaning.en, word.word
            assert word.zh and word.en, word.word
            assert all(has_chinese(term) for term in word.zh), word.word
            assert not any(has_chinese(term) for term in word.en), word.word

    def test_every_spelling_is_found_in_its_company_and_no_exception_is(self, dictionary: Dictionary) -> None:
        for word in built_in():
            near = word.near[:1]
            for spelling in word.spellings:
                (found, *_) = dictionary.expand(", ".join((spelling, *near))).found
                assert (found.word.word, found.start, found.end) == (word.word, 0, len(spelling))
            for exception in word.unless:
                found_words = {f.word.word for f in dictionary.expand(f"{exception}, {', '.join(near)}").found}
                assert word.word not in found_words, exception

    @pytest.mark.parametrize(
        "word",
        "撞机 爬行 扎刀 飞车 闷车 掉刀 丢步 啃刀 让刀 抱闸 报警灯 憋停 窜动 跑位 漏油 growl chatter crash runaway stick-slip"
        " lost_steps way_lube hard_limit drawbar E-stop".split(),
    )
    def test_the_common_ones_are_there(self, dictionary: Dictionary, word: str) -> None:
        assert dictionary.expand(word.replace("_", " "))


class TestFinding:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("X轴低速爬行", ["爬行"]),
            ("爬行动物会不会爬进电柜", []),
            ("极品飞车好玩吗", []),
            ("碰撞机会不大", []),
            ("先让刀具退出来", []),
            ("精车让刀严重", ["让刀"]),
            ("真空开关坏了，空开也跳", ["空开"]),
            ("天热机床就报警", []),
            ("主轴拉刀拉不紧", ["拉刀", "拉不紧"]),
            ("拉刀磨损了", []),  # a broach
            ("打刀缸漏油", ["打刀缸", "漏油"]),  # not 打刀: the longest first
            ("the spindle growls, growled and is growling", ["growls", "growled", "growling"]),
            ("a growler", []),
            ("it was gouging and stalling", ["gouging", "stalling"]),
            ("stick-slip, stick slip, stickslip, Stick–Slip", ["stick-slip", "stick slip", "stickslip", "Stick–Slip"]),
            ("E-STOP Ｅ－ｓｔｏｐ estops", ["E-STOP", "Ｅ－ｓｔｏｐ", "estops"]),
            ("bird’s nest", ["bird’s nest"]),
            ("lost. Steps follow", []),
            ("we lost, steps were taken", []),
            ("the homing dog is loose", ["dog"]),
            ("my dog sleeps by the axis", []),
            ("the dog barks", []),
            ("the spindle crawl speed of the axis", []),
            ("the axis crawls", ["crawls"]),
            ("the control crashed", ["control crashed"]),
            ("crashed into the vise", ["crashed"]),
            ("主轴growl响", ["growl"]),
            ("install the drive", []),
            ("SV0401", []),
            ("报警 401", []),
            ("", []),
        ],
    )
    def test_words_in_a_text(self, dictionary: Dictionary, text: str, found: list[str]) -> None:
        assert said(dictionary, text) == found

    def test_nothing_is_found_inside_a_code(self) -> None:
        own = Dictionary((), Shop((made("alarm"), made("sv"))))
        assert said(own, "SV 401") == []
        assert said(own, "the sv is hot") == ["sv"]

    def test_the_text_in_standard_terms(self, dictionary: Dictionary) -> None:
        expansion = dictionary.expand("X轴爬行，主轴嗡嗡响")
        assert expansion.standard("zh") == "X轴低速进给不均匀，主轴异响"
        assert "stick-slip" in expansion.terms
        assert "异响" in expansion.terms
        assert expansion.shown()[0].startswith("爬行 = 低速进给不均匀, ")
        assert dictionary.expand("plain words").standard("en") == "plain words"

    def test_a_term_that_one_language_lacks_comes_in_the_other(self) -> None:
        own = Dictionary((), Shop((made("whump", en=["knocking noise"]),)))
        assert own.expand("X轴 whump").standard("zh") == "X轴 knocking noise"

    @given(st.text(st.sampled_from("爬行动物让刀具啃growls stick-slip.dog\n×Ｅ－İß①\U0001f527 axis"), max_size=60))
    def test_whatever_is_asked_spans_are_of_the_text_and_do_not_overlap(self, text: str) -> None:
        expansion = Dictionary(built_in()).expand(text)
        ends = 0
        for found in expansion.found:
            assert ends <= found.start < found.end <= len(text)
            ends = found.end
        assert isinstance(expansion.standard("en"), str)

    def test_a_long_text_takes_no_time_to_speak_of(self, dictionary: Dictionary) -> None:
        assert len(dictionary.expand("爬行 growls the dog axis " * 160).found) == 480


class TestShop:
    def write(self, home: Path, body: object) -> None:
        shop_file(home).write_text(
            body if isinstance(body, str) else yaml.safe_dump(body, allow_unicode=True), encoding="utf-8"
        )

    def word(self, word: str, **change: Any) -> dict[str, Any]:
        return {"word": word, "zh": ["主轴异响"], "en": ["spindle noise"], "meaning": {"zh": "响"}} | change

    def test_without_a_file_the_built_in_words_are_in_use(self, home: Path) -> None:
        assert load_dictionary(home).words == built_in()

    def test_a_shops_word_wins_spelling_by_spelling_and_can_switch_one_off(self, home: Path) -> None:
        self.write(home, {"words": [self.word("爬行"), self.word("叫唤")], "switched_off": ["Growl", "飞车"]})
        own = load_dictionary(home)
        (found,) = own.expand("爬行").found
        assert found.of_shop and found.word.zh == ("主轴异响",)
        assert said(own, "叫唤 growls 飞车 rumbles") == ["叫唤", "rumbles"]
        assert [f.of_shop for f in own.expand("叫唤 rumbles").found] == [True, False]

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            ("words: [", "line 2: not valid YAML"),
            ("words: {}", "line 1: 'words' must be a list"),
            ("- a", "needs a list under the key 'words'"),
            ("wrods: []", "line 1: the key 'wrods' is not known"),
            ("words: []\nwords: []", "line 2: the key 'words' is here twice"),
            ("words:\n- a\n", "line 2, word '?': Input should be"),
            ("words:\n- word: on\n", "line 2, word 'on': word: Input should be a valid string"),
            ("words:\n\n- {word: ab, en: [x]}", "line 3, word 'ab': meaning: Field required"),
            ("words:\n- {word: ab, meaning: {en: x}}", "line 2, word 'ab': needs a standard term"),
            ("words:\n- {word: ab, word: cd}", "line 2, word 'ab': the key 'word' is here twice"),
            ("words:\n- {word: 响, en: [x], meaning: {en: x}}", "word '响': word: String should have at least 2"),
            ("words:\n- {word: '401', en: [x], meaning: {en: x}}", "'401' holds no letter"),
            ("words:\n- {word: SV0401, en: [x], meaning: {en: x}}", "codes are looked up exactly"),
            ("words:\n- {word: ab, en: [SV0401], meaning: {en: x}}", "codes are looked up exactly"),
            ('words:\n- {word: "a\\u202eb", en: [x], meaning: {en: x}}', "holds a control character"),
            (
                "words:\n- {word: ab, en: [x], meaning: {en: x}}\n- {word: A  B, also: [AB], en: [x], meaning: {en: x}}",
                "line 3, word 'A  B': 'ab' is already in line 2",
            ),
            ("words:\n- {word: ab, note: x, en: [x], meaning: {en: x}}", "note: Extra inputs"),
            ("words:\n- word: 2020-13-45", "line 2: not valid YAML"),
            ("words:\n- !!python/object:os.system x", "line 2: not valid YAML"),
            ("words: &a [*a]", "line 1, word '?'"),
            ("words: " + "[" * 5000, "not valid YAML"),
            ("switched_off: [on]", "line 1, word 'True': a word to switch off must be text"),
        ],
    )
    def test_a_fault_is_named_with_file_line_and_word(self, home: Path, body: str, told: str) -> None:
        self.write(home, body)
        with pytest.raises(WordsUnreadable) as error:
            read_words(shop_file(home))
        assert told in str(error.value)
        assert str(shop_file(home)) in str(error.value)

    def test_bytes_that_are_no_text_and_files_that_are_too_large(self, home: Path) -> None:
        shop_file(home).write_bytes(b"words:\n- word: \xff\n")
        with pytest.raises(WordsUnreadable, match="line 2: not UTF-8"):
            read_words(shop_file(home))
        shop_file(home).write_bytes(b"#" * 1_000_001)
        with pytest.raises(WordsUnreadable, match="at most"):
            read_words(shop_file(home))

    def test_an_edit_is_seen_at_once_and_a_broken_one_keeps_what_was_read(self, home: Path) -> None:
        live = LiveDictionary(home)
        assert said(live.current(), "叫唤") == []
        self.write(home, {"words": [self.word("叫唤")]})
        assert said(live.current(), "叫唤") == ["叫唤"]
        self.write(home, "words: [[[")
        assert said(live.current(), "叫唤") == ["叫唤"]
        assert "not valid YAML" in live.problem
        shop_file(home).unlink()
        assert said(live.current(), "叫唤 爬行") == ["爬行"]
        assert live.problem == ""


def guide(name: str, en: str, zh: str) -> dict[str, Any]:
    return {
        "id": f"guide/{name}",
        "kind": "guide",
        "vendor": "generic",
        "title": {"en": en, "zh": zh},
        "meaning": {"en": en, "zh": zh},
        "items": [],
        "sources": [],
    }


class Counting(HashingEmbedder):
    """Counts questions; from `fails_at` on it is gone."""

    def __init__(self, fails_at: int = 10**6) -> None:
        self.asked: list[str] = []
        self.fails_at = fails_at

    def passages(self, texts: Any) -> Vectors:
        return HashingEmbedder().passages(texts)

    def query(self, text: str) -> Vectors:
        self.asked.append(text)
        if len(self.asked) > self.fails_at:
            raise EmbedderUnavailable("gone", "reinstall")
        return super().query(text)


class TestInSearch:
    @pytest.fixture
    def kb(self, tmp_path: Path) -> Path:
        folder = tmp_path / "kb"
        folder.mkdir()
        entries = [
            guide("noise", "abnormal noise of a bearing", "轴承异响"),
            guide("home", "reference position lost", "参考点丢失"),
            guide("pump", "the coolant pump does not run at 2000 rpm", "冷却泵不转"),
            *(guide(str(n), f"nothing to do with it {n}", f"毫不相干{n}") for n in range(8)),
        ]
        (folder / "a.yaml").write_text(yaml.safe_dump({"entries": entries}, allow_unicode=True), encoding="utf-8")
        return folder

    def searcher(self, home: Path, kb: Path, embedder: Counting | None = None) -> Searcher:
        store = KnowledgeStore(home)
        store.sync(kb)
        return Searcher(home, store, embedder or Counting())

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("it growls when it is warm", "guide/noise"),
            ("零点跑了", "guide/home"),
            ("forgets where home is", "guide/home"),
        ],
    )
    def test_an_entry_in_standard_words_is_found_first(self, home: Path, kb: Path, text: str, wanted: str) -> None:
        found = self.searcher(home, kb).search(text)
        assert found[0].entry_id == wanted
        assert "keyword" in found[0].matched_by

    def test_a_second_embedding_only_where_a_word_was_found(self, home: Path, kb: Path) -> None:
        embedder = Counting()
        made = self.searcher(home, kb, embedder)
        made.search("the coolant pump does not run")
        assert embedder.asked == ["the coolant pump does not run"]
        made.search("it growls")
        assert embedder.asked[1:] == ["it growls", "it abnormal noise"]

    def test_the_similarity_stays_that_of_the_text_as_it_was_asked(
        self, home: Path, kb: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = self.searcher(home, kb)
        with_words = {e.entry_id: e for e in made.search("it growls at 2000 rpm", count=20)}
        monkeypatch.setattr(made._dictionary, "current", lambda: Dictionary(()))
        without = {e.entry_id: e for e in made.search("it growls at 2000 rpm", count=20)}
        assert with_words.keys() == without.keys()
        for name, evidence in without.items():
            assert with_words[name].similarity == evidence.similarity
            assert with_words[name].off_part == evidence.off_part
        assert with_words["guide/noise"].rank_score > without["guide/noise"].rank_score

    def test_a_question_without_a_shop_word_is_searched_as_ever(
        self, home: Path, kb: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = self.searcher(home, kb)
        found = made.search("bearing noise", count=20)
        monkeypatch.setattr(made._dictionary, "current", lambda: Dictionary(()))
        assert made.search("bearing noise", count=20) == found

    def test_without_vectors_the_terms_are_found_by_keyword(self, home: Path, kb: Path) -> None:
        made = self.searcher(home, kb)
        made.ready()
        for fails_at in (0, 1):  # at the question, or at its second reading
            made.embedder = Counting(fails_at)
            assert "guide/noise" in [hit.entry_id for hit in made.search("it growls")]
            assert bool(made.degraded) == (fails_at == 0)

    def test_a_broken_file_of_the_shop_is_told_and_costs_no_answer(self, home: Path, kb: Path) -> None:
        made = self.searcher(home, kb)
        shop_file(home).write_text("words: [", encoding="utf-8")
        assert made.search("it growls")[0].entry_id == "guide/noise"
        (note,) = made.degraded
        assert "words.yaml, line 2" in note
        shop_file(home).unlink()
        made.search("it growls")
        assert made.degraded == ()

    def test_the_expansion_can_be_asked_for(self, home: Path, kb: Path) -> None:
        (line,) = self.searcher(home, kb).expansion("it growls").shown()
        assert line == "growls = 异响, 低沉噪声, abnormal noise, bearing noise"


class TestCommands:
    def run(self, *arguments: str) -> Result:
        result = CliRunner().invoke(mounted(), ["words", *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)

    def add(self, word: str, *more: str) -> Result:
        return self.run("add", word, "--zh", "主轴异响", "--en", "spindle noise", "--meaning", "响", *more)

    @pytest.fixture(autouse=True)
    def _home(self, home: Path) -> Iterator[None]:
        self.file = shop_file(home)
        yield
        assert list(home.glob("*.part")) == []

    @pytest.mark.parametrize("command", ["", "list", "add", "remove", "check"])
    def test_help_teaches(self, command: str) -> None:
        shown = self.run(*command.split(), "--help").stdout
        assert f"faultwright words {command}".strip() in shown.split("Examples:\n")[1]
        assert "Exit codes:" in shown
        assert max(map(len, shown.splitlines())) <= 90

    def test_a_word_is_added_changed_listed_and_removed(self) -> None:
        assert self.add("叫唤", "--also", "乱叫", "--near", "主轴", "--unless", "叫唤狗").exit_code == 0
        (row,) = self.json("list", "--shop")
        assert row["of_shop"] and row["also"] == ["乱叫"] and row["near"] == ["主轴"] and row["zh"] == ["主轴异响"]
        assert self.json("check", "主轴乱叫")["found"][0]["said"] == "乱叫"
        assert self.json("check", "乱叫")["found"] == []
        assert self.run("add", "叫唤", "--en", "noise", "--meaning", "a noise").stdout.startswith(
            "changed: 叫唤 = noise"
        )
        assert [row["en"] for row in self.json("list", "--shop")] == [["noise"]]
        assert self.json("remove", "叫唤") == {"removed": ["叫唤"], "switched_off": []}
        assert self.json("list", "--shop") == []
        assert self.file.with_suffix(".yaml.bak").exists()

    def test_one_spelling_of_a_shops_word_goes_alone(self) -> None:
        self.add("叫唤", "--also", "乱叫")
        assert self.run("remove", "乱叫").exit_code == 0
        assert [row["also"] for row in self.json("list", "--shop")] == [[]]

    def test_a_built_in_word_is_switched_off_and_on_again(self) -> None:
        result = self.json("remove", "Growl")
        assert result["removed"] == ["growl", "rumble", "grumble"] == result["switched_off"]
        assert self.json("check", "it growls and rumbles")["found"] == []
        assert self.run("remove", "growl").exit_code == 1
        assert self.json("add", "growl") == {"switched_on": ["growl", "rumble", "grumble"]}
        assert self.json("check", "it growls")["found"][0]["word"] == "growl"
        assert self.json("remove", "rumble")["switched_off"] == ["rumble"]
        assert self.add("rumble").exit_code == 0
        assert self.json("check")["switched_off"] == 0

    def test_a_shops_word_over_a_built_in_one_gives_way_to_it_again(self) -> None:
        self.add("爬行")
        assert self.json("check", "爬行")["found"][0]["of_shop"]
        self.run("remove", "爬行")
        assert not self.json("check", "爬行")["found"][0]["of_shop"]

    @pytest.mark.parametrize(
        ("arguments", "code", "told"),
        [
            (("add", "叫唤"), 2, "is no built-in word that was switched off"),
            (("add", "叫唤", "--zh", "异响"), 2, "no --meaning"),
            (("add", "叫唤", "--meaning", "响"), 2, "needs a standard term"),
            (("add", "SV0401", "--en", "x", "--meaning", "x"), 2, "codes are looked up exactly"),
            (("add", "响", "--en", "x", "--meaning", "x"), 2, "word: String should have at least 2 characters"),
            (("remove", "growll"), 1, "no word 'growll' in use. Near it: growl"),
            (("remove", "鎏金"), 1, "no word '鎏金' in use. See: faultwright words list"),
        ],
    )
    def test_what_cannot_be_done_is_said_in_a_line(self, arguments: tuple[str, ...], code: int, told: str) -> None:
        result = self.run(*arguments)
        assert result.exit_code == code
        assert told in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert not self.file.exists()

    def test_a_spelling_belongs_to_one_word_of_the_shop(self) -> None:
        self.add("叫唤", "--also", "乱叫")
        result = self.add("瞎叫", "--also", "乱叫")
        assert result.exit_code == 2
        assert "already a spelling of the shop's word '叫唤'" in result.stderr

    def test_a_broken_file_is_named_and_not_written_over(self) -> None:
        self.file.write_text("words: [", encoding="utf-8")
        for arguments in (("check",), ("list",), ("add", "ab", "--en", "x", "--meaning", "x"), ("remove", "爬行")):
            result = self.run(*arguments)
            assert result.exit_code == 2
            assert f"{self.file}, line 2" in result.stderr
        assert self.file.read_text(encoding="utf-8") == "words: ["

    def test_a_file_that_another_changed_meanwhile_is_not_written_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from serve import words_cli

        self.add("叫唤")
        before = self.file.read_bytes()
        monkeypatch.setattr(words_cli, "_bytes", lambda path: path.read_bytes() + b"#")
        monkeypatch.setattr(words_cli, "_shop", lambda home: (self.file, before, read_words(self.file)))
        result = self.add("瞎叫")
        assert result.exit_code == 2
        assert "changed by somebody else" in result.stderr
        assert self.file.read_bytes() == before

    def test_a_home_that_cannot_be_written(self, home: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        result = self.add("叫唤", "--home", str(tmp_path / "file" / "home"))
        assert result.exit_code == 2
        assert "words.yaml" in result.stderr

    def test_search_shows_what_was_looked_for_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import serve.cli
        from serve.runtime import Runtime
        from serve.settings import load_settings

        monkeypatch.setattr(
            serve.cli, "_runtime", lambda home=None: Runtime(load_settings(home=home), embedder=HashingEmbedder())
        )
        runner = CliRunner()
        rows = json.loads(runner.invoke(mounted(), ["search", "spindle growls", "--json", "--kind", "guide"]).stdout)
        assert rows[0]["words"] == ["growls = 异响, 低沉噪声, abnormal noise, bearing noise"]
        shown = runner.invoke(mounted(), ["search", "spindle growls", "--kind", "guide"])
        assert "looked for too: growls = 异响" in shown.stderr


def test_the_steps_of_an_answer_name_the_words(fake_searcher: Searcher) -> None:
    from agents.plan import RulePlanner
    from agents.run import run
    from agents.state import Context

    context = Context(searcher=fake_searcher, planner=RulePlanner(), writer=lambda: (None, ""))
    *_, last = run({"question": "主轴嗡嗡响，转速不稳", "trace_id": "0" * 12, "conversation": {}}, context)
    (step, *_) = [step for step in last["steps"] if step["step"] == "retrieve"]
    assert step["output"]["words"] == ["嗡嗡响 = 异响, 异常声音, 噪音, abnormal noise"]


def _recall(searcher: Searcher, group: str, half: str) -> tuple[float, float, float]:
    """Recall at 1, 3 and 5 over all kinds of entries."""
    asked = [query for query in QUERIES if (query["group"], query["half"]) == (group, half)]
    ranks = []
    for query in asked:
        hits = [hit.entry_id for hit in searcher.search(query["text"], kinds=KINDS, count=5)]
        ranks.append(next((rank for rank, name in enumerate(hits, 1) if name in query["expected"]), 99))
    at = [sum(rank <= k for rank in ranks) / len(ranks) for k in (1, 3, 5)]
    return at[0], at[1], at[2]


@pytest.mark.integration
def test_slang_is_found_better_and_plain_words_no_worse(
    real_searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {entry.id for entry in real_searcher.store.entries()}
    assert all(set(query["expected"]) <= known for query in QUERIES)
    cells = [(group, half) for group in ("slang", "plain") for half in ("tune", "report")]
    after = {cell: _recall(real_searcher, *cell) for cell in cells}
    with monkeypatch.context() as patch:
        patch.setattr(real_searcher._dictionary, "current", lambda: Dictionary(()))
        before = {cell: _recall(real_searcher, *cell) for cell in cells}
    for cell in cells:
        figures = (f"{b:.3f} → {a:.3f}" for b, a in zip(before[cell], after[cell], strict=True))
        print(f"\n{' '.join(cell)}: recall@1/3/5 {', '.join(figures)}", end="")
    for half in ("tune", "report"):
        assert after["slang", half][0] >= before["slang", half][0] + 0.05
        assert all(a >= b for a, b in zip(after["slang", half], before["slang", half], strict=True))
        assert after["plain", half] == before["plain", half]


def test_the_meaning_may_be_in_one_language() -> None:
    assert made("whump").meaning == Bilingual(en="m")
