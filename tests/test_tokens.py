"""Tokens: codes stay whole, Chinese is cut with the words of the trade, nothing lands in the shared temp folder."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from retrieval.search import Words
from retrieval.store import KnowledgeStore
from retrieval.tokens import TRADE_WORDS, code_tokens, has_chinese, tokenize


class TestCodes:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("SV0401", ("sv0401", "#401")),
            ("sv-401 报警", ("sv0401", "#401")),
            ("ＳＶ０４０１", ("sv0401", "#401")),
            ("SINAMICS F30021", ("f30021", "#30021")),
            ("Grbl ALARM:1", ("alarm1", "#1")),
            ("grbl error:9", ("error9", "#9")),
        ],
    )
    def test_a_code_is_one_token_and_its_number(self, text: str, wanted: tuple[str, ...]) -> None:
        tokens = tokenize(text)
        assert set(wanted) <= set(tokens)
        assert not {"sv", "0401", "401", "f", "30021", "alarm:1", "1", "9"} & set(tokens)

    @pytest.mark.parametrize("code", ["SV0401", "F30021", "ALARM:1", "S01 0018", "230-02AC", "9.917"])
    def test_base_and_question_spell_a_code_alike(self, code: str) -> None:
        whole, number = code_tokens(code)
        assert whole.isalnum()
        assert number.startswith("#")

    def test_question_tokens_meet_those_of_the_base(self) -> None:
        for text, code in (("报警SV-0401", "SV0401"), ("西门子 F30021", "F30021"), ("Grbl ALARM:1 hit", "ALARM:1")):
            assert set(code_tokens(code)) <= set(tokenize(text))

    def test_words_beside_a_code_stay(self) -> None:
        assert tokenize("SV0401 spindle 主轴") == ("sv0401", "#401", "spindle", "主轴")


class TestWords:
    def test_stop_words_go(self) -> None:
        assert tokenize("what is the reason why my spindle is hot") == ("reason", "spindle", "hot")
        assert tokenize("请问我的主轴为什么会过热呢") == ("主轴", "过热")
        assert tokenize("的 了 吗") == ()
        assert tokenize("") == ()

    def test_a_plural_finds_its_singular(self) -> None:
        assert tokenize("drives batteries axis bus glass") == ("drive", "battery", "axis", "bus", "glass")

    def test_full_width_text_is_folded(self) -> None:
        assert tokenize("Ｓｐｉｎｄｌｅ　ＨＯＴ") == ("spindle", "hot")

    @pytest.mark.parametrize("word", TRADE_WORDS)
    def test_a_word_of_the_trade_stays_whole(self, word: str) -> None:
        assert word in tokenize(f"机床{word}了")

    def test_chinese_is_cut_into_words(self) -> None:
        assert tokenize("主轴转速波动大,有异响")[:2] == ("主轴", "转速")
        assert {"跟随误差", "过大"} <= set(tokenize("X轴跟随误差过大"))

    def test_has_chinese(self) -> None:
        assert has_chinese("alarm 报警")
        assert not has_chinese("alarm ！")

    @pytest.mark.parametrize("text", ["\ud800", "\x00", "🔧🔧", "ﷺ", "а" * 3000, "主" * 5000])
    def test_odd_text_never_raises(self, text: str) -> None:
        tokenize(text)


class TestCache:
    CODE = (
        "import sys, tempfile\nfrom pathlib import Path\nfrom retrieval.tokens import tokenize, use_cache_folder\n"
        "if sys.argv[1]: use_cache_folder(Path(sys.argv[1]))\n"
        "assert tokenize('主轴跟随误差') == ('主轴', '跟随', '误差', '跟随误差'), tokenize('主轴跟随误差')\n"
    )

    def run(self, folder: Path | str, temp: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", self.CODE, str(folder)],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            env={"TMPDIR": str(temp)},
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    @pytest.fixture
    def temp(self, tmp_path: Path) -> Path:
        (tmp_path / "temp").mkdir()
        return tmp_path / "temp"

    def test_the_dictionary_is_cached_in_the_folder_and_nowhere_else(self, home: Path, temp: Path) -> None:
        assert self.run(home, temp) == ""
        cache = home / "jieba.cache"
        assert cache.stat().st_size > 1_000_000
        assert list(temp.iterdir()) == []
        made = cache.stat().st_mtime_ns
        self.run(home, temp)
        assert cache.stat().st_mtime_ns == made

    def test_without_a_folder_nothing_is_read_from_or_left_in_the_shared_one(self, temp: Path) -> None:
        (temp / "jieba.cache").write_bytes(b"planted")
        self.run("", temp)
        assert [path.name for path in temp.iterdir()] == ["jieba.cache"]
        assert (temp / "jieba.cache").read_bytes() == b"planted"

    def test_a_damaged_cache_is_made_anew(self, home: Path, temp: Path) -> None:
        (home / "jieba.cache").write_bytes(b"cut short")
        assert self.run(home, temp) == ""
        assert (home / "jieba.cache").stat().st_size > 1_000_000

    def test_a_folder_that_cannot_be_written_costs_time_only(self, home: Path, temp: Path) -> None:
        assert self.run(home / "missing", temp) == ""


class TestKeywords:
    TEXTS = ("主轴过热报警", "液压压力低", "换刀卡住", "X轴跟随误差过大", "主轴转速波动", "编码器电池电量低")

    @pytest.fixture
    def connection(self, home: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
        entries = [
            {
                "id": f"guide/{n}", "kind": "guide", "vendor": "generic", "title": {"zh": text},
                "meaning": {"zh": text}, "items": [], "sources": [],
            }
            for n, text in enumerate(self.TEXTS)
        ]  # fmt: skip
        (tmp_path / "kb").mkdir()
        (tmp_path / "kb" / "a.yaml").write_text(yaml.safe_dump({"entries": entries}, allow_unicode=True))
        store = KnowledgeStore(home)
        store.sync(tmp_path / "kb")
        store.fill()
        with store.database.reading() as connection:
            yield connection

    def ranked(self, connection: sqlite3.Connection, question: str) -> list[int]:
        """Numbers of the texts that a question finds by its words, best first."""
        owners = dict(connection.execute("SELECT id, owner FROM unit").fetchall())
        found = Words(connection, len(owners)).ranking(tokenize(question), owners, ("guide",), None)
        return [int(owners[unit].removeprefix("guide/")) for unit in found]

    def covered(self, connection: sqlite3.Connection, tokens: tuple[str, ...]) -> float:
        """Share of the tokens that the first text holds."""
        (unit,) = connection.execute("SELECT id FROM unit WHERE owner = 'guide/0'").fetchone()
        return Words(connection, len(self.TEXTS)).coverage(tokens, [unit])[unit]

    @pytest.mark.parametrize(
        ("question", "best"), [("主轴为什么过热", 0), ("液压压力不够", 1), ("换刀的时候卡住了", 2), ("电池没电", 5)]
    )
    def test_chinese_words_tell_entries_apart(self, connection: sqlite3.Connection, question: str, best: int) -> None:
        found = self.ranked(connection, question)
        assert found[0] == best
        assert len(found) < len(self.TEXTS)

    @pytest.mark.parametrize("question", ["", "的", "今天天气很好", "completely unrelated words", "SV0401"])
    def test_what_no_entry_says_finds_nothing(self, connection: sqlite3.Connection, question: str) -> None:
        assert self.ranked(connection, question) == []

    @pytest.mark.parametrize(
        "code",
        [
            *("SV0401", "F30021", "ALARM:1", "S01 0018", "9.917", "EX1005", "error:9", "#3006", "1.2/3", "A_7"),
            "230-02AC",
        ],
    )
    def test_sqlite_keeps_a_token_whole(self, home: Path, code: str) -> None:
        """Else a part of a code would find it, and the code itself would not."""
        tokens = [*code_tokens(code), *tokenize(code), *tokenize(f"alarm {code} 报警")]
        store = KnowledgeStore(home)
        with store.database.writing() as connection:
            connection.execute("INSERT INTO words (rowid, tokens) VALUES (1, ?)", (" ".join(tokens),))
        with store.database.reading() as connection:
            held = {row[0] for row in connection.execute("SELECT term FROM vocabulary")}
            assert held == set(tokens)
            for token in tokens:
                assert Words(connection, 1).holding(token) == 1

    def test_coverage_is_the_share_of_words_held(self, connection: sqlite3.Connection) -> None:
        assert self.covered(connection, tokenize("主轴 过热")) == 1.0
        part = self.covered(connection, tokenize("主轴 液压"))
        assert 0.0 < part < 0.5  # the word that fewer entries hold counts more
        assert self.covered(connection, tokenize("主轴 主轴 液压")) == pytest.approx(part)
        assert self.covered(connection, tokenize("主轴 液压 banana")) < part
        assert self.covered(connection, ()) == 0.0
        assert self.covered(connection, tokenize("banana")) == 0.0
