"""The rows in real SQLite: two processes, damage, a full disk, other versions."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

import retrieval.store as store_module
from retrieval import database
from retrieval.database import SCHEMA_VERSION
from retrieval.errors import KnowledgeUnreadable, StoreUnusable
from retrieval.records import FaultCode, KnowledgeEntry
from retrieval.search import Words
from retrieval.store import FILL_BATCH, KnowledgeStore, said_hash, split_code
from retrieval.units import unit_of_entry, vector_id


def alarm(number: int, family: str = "30i", **change: Any) -> dict[str, Any]:
    code = f"SV{number:04d}" if family == "30i" else str(number)
    return {
        "id": f"fanuc/{family}-{number}",
        "kind": "alarm",
        "vendor": "fanuc",
        "keys": [{"family": family, "code": code}],
        "title": {"en": f"Servo alarm {number}", "zh": f"伺服报警 {number}"},
        "meaning": {"en": "What the control saw.", "zh": "系统检测到的情况。"},
        "items": [{"id": "s1", "kind": "safety", "text": {"en": "Lock out first.", "zh": "先上锁。"}}],
        "sources": [],
    } | change


def write(folder: Path, *entries: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    text = yaml.safe_dump({"entries": list(entries)}, allow_unicode=True)
    (folder / "a.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path / "kb", alarm(401), alarm(402), alarm(401, "16i"))


def everything(home: Path) -> None:
    """Every read that a question may need."""
    store = KnowledgeStore(home)
    store.entries()
    store.counts()
    store.lookup("fanuc", "SV0401")
    store.lookup_number("401")
    store.fill()
    store.coverage("e")
    store.to_embed("e", 100)
    list(store.embeddings("e"))
    assert store.generation >= 0
    with store.database.reading() as connection:
        found = Words(connection, 3).ranking(["servo", "#401", "伺服"], range(1000), ("alarm",), None)
        Words(connection, 3).coverage(["servo"], found)


def broken_into(store: KnowledgeStore, *statements: str) -> None:
    """Change rows behind the store's back."""
    with store.database.reading() as connection:
        for statement in statements:
            connection.execute(statement)


def spawn(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str], timeout_s: float = 60) -> str:
    out, err = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, err
    return out


class TestRows:
    def test_rows_are_found_by_code_number_and_id(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        assert store.fingerprint == ""
        assert store.sync(base)
        assert store.lookup("fanuc", "SV0401") == (
            (FaultCode(vendor="fanuc", family="30i", code="SV0401"), "fanuc/30i-401"),
        )
        assert store.lookup("fanuc", "SV0401", "16i") == ()
        assert store.lookup("haas", "SV0401") == ()
        assert [entry_id for _, entry_id in store.lookup_number("401")] == ["fanuc/30i-401", "fanuc/16i-401"]
        assert [entry_id for _, entry_id in store.lookup_number("401", "fanuc", "16i")] == ["fanuc/16i-401"]
        assert store.lookup_number("401", "siemens") == ()
        assert store.counts() == {"alarm": 3, "codes": 3}
        asked = ["fanuc/30i-402", "nobody", "fanuc/30i-401", "fanuc/30i-402"]
        assert [entry.id for entry in store.entries(asked)] == ["fanuc/30i-402", "fanuc/30i-401"]
        assert store.entry("nobody") is None
        assert store.entries([]) == ()

    def test_a_second_sync_writes_nothing(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        assert store.sync(base)
        assert not store.sync(base)
        assert not KnowledgeStore(home).sync(base)

    def test_what_left_the_files_leaves_the_rows(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        assert store.sync(write(base, alarm(402)))
        assert store.lookup("fanuc", "SV0401") == ()
        assert store.counts() == {"alarm": 1, "codes": 1}

    def test_a_parameter_does_not_stand_in_for_the_alarm_of_its_number(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(write(base, alarm(401, "16i"), alarm(401, "16i", id="fanuc/p401", kind="parameter")))
        assert [entry_id for _, entry_id in store.lookup("fanuc", "401")] == ["fanuc/16i-401"]
        assert [entry_id for _, entry_id in store.lookup("fanuc", "401", kind="parameter")] == ["fanuc/p401"]
        assert [entry_id for _, entry_id in store.lookup_number("401", kind="parameter")] == ["fanuc/p401"]

    def test_text_that_looks_like_sql_is_text(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        assert store.lookup("fanuc", "' OR 1=1 --") == ()
        assert store.entry("'; DROP TABLE entry; --") is None
        assert store.counts()["alarm"] == 3

    def test_knowledge_at_fault_leaves_the_rows_as_they_were(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        before = store.entries(), store.fingerprint, store.generation
        write(base, alarm(403), alarm(403, id="fanuc/again"))
        with pytest.raises(KnowledgeUnreadable, match="already belongs to"):
            store.sync(base)

        def refuse(entries: object) -> None:
            raise KnowledgeUnreadable("hostile", "take it out")

        with pytest.raises(KnowledgeUnreadable, match="hostile"):
            store.sync(write(base, alarm(404)), refuse)
        assert (store.entries(), store.fingerprint, store.generation) == before


class TestCodes:
    def test_a_range_is_found_by_what_lies_in_it_and_the_very_code_goes_first(self, home: Path, base: Path) -> None:
        spindle = alarm(1, keys=[{"family": "30i", "code": "SP9000", "last": "SP9099"}], id="fanuc/range")
        one = alarm(2, keys=[{"family": "30i", "code": "SP9012"}], id="fanuc/one")
        store = KnowledgeStore(home)
        store.sync(write(base, spindle, one))
        assert [i for _, i in store.lookup("fanuc", "SP9012")] == ["fanuc/one", "fanuc/range"]
        key, owner = store.lookup("fanuc", "SP9050", "30i")[0]
        assert (str(key), owner) == ("fanuc/30i/SP9050", "fanuc/range")
        assert [i for _, i in store.lookup("fanuc", "SP9000")] == ["fanuc/range"]
        assert [i for _, i in store.lookup("fanuc", "SP9099")] == ["fanuc/range"]
        for outside in ("SP8999", "SP9100", "SV9050", "9050", "SP"):
            assert store.lookup("fanuc", outside) == (), outside
        assert store.lookup("haas", "SP9050") == ()
        assert [(k.code, i) for k, i in store.lookup_number("9050")] == [("9050", "fanuc/range")]
        assert [i for _, i in store.lookup_number("9012", "fanuc", "30i")] == ["fanuc/one", "fanuc/range"]
        for outside in ("9100", "1" * 400, "9o50", "-9050", "９０５０"):
            assert store.lookup_number(outside) == (), outside
        assert store.known_codes("fanuc") == {"SP9012"}

    def test_no_number_finds_nothing(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(write(base, alarm(1, keys=[{"family": "30i", "code": "SP9000", "last": "SP9099"}])))
        assert store.lookup_number("") == ()
        assert store.lookup_number("", "fanuc", "30i") == ()

    def test_the_starter_base_goes_before_a_document(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        row = KnowledgeEntry.model_validate(alarm(401) | {"id": "doc-0/sv0401"})
        with store.database.writing() as connection:
            connection.execute("DELETE FROM code")
            store_module.put_codes(connection, row)  # first in the table, second in what is found
            for entry in store.entries():
                store_module.put_codes(connection, entry)
        assert [i for _, i in store.lookup("fanuc", "SV0401")] == ["fanuc/30i-401", "doc-0/sv0401"]
        assert [i for _, i in store.lookup_number("401", "fanuc", "30i")] == ["fanuc/30i-401", "doc-0/sv0401"]

    @pytest.mark.parametrize(
        ("code", "parts"),
        [
            ("SV0401", ("SV", 401)),
            ("401", ("", 401)),
            ("ALARM:1", ("ALARM:", 1)),
            ("230-02AC", ("230-02AC", None)),
            ("9.917", ("9.", 917)),
            ("", ("", None)),
            ("A" * 5000, ("A" * 5000, None)),
            ("9" * 16, ("9", 10**15 - 1)),
        ],
    )
    def test_what_stands_before_the_number(self, code: str, parts: tuple[str, int | None]) -> None:
        assert split_code(code) == parts


class TestSearched:
    """What search sees: units, their words, the texts that want a vector."""

    def test_units_follow_the_entries_and_only_changed_ones_are_made_again(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        assert store.fill() == 3
        assert store.fill() == 0
        ids = self.units(store)
        store.sync(write(base, alarm(401), alarm(402, title={"en": "Other", "zh": "别的"}), alarm(403)))
        assert store.fill() == 2
        after = self.units(store)
        assert after["fanuc/30i-401"] == ids["fanuc/30i-401"]
        assert set(after) == {"fanuc/30i-401", "fanuc/30i-402", "fanuc/30i-403"}
        with store.database.reading() as connection:
            rows = connection.execute("SELECT rowid FROM words ORDER BY rowid").fetchall()
            assert {row[0] for row in rows} == set(after.values())
            assert connection.execute("SELECT count(*) FROM words WHERE words MATCH '伺服'").fetchone() == (2,)
            owned = connection.execute("SELECT DISTINCT unit_id FROM passage").fetchall()
            assert {row[0] for row in owned} == set(after.values())

    def test_the_number_of_a_unit_is_never_given_to_another_owner(self, home: Path, base: Path) -> None:
        """A search that runs while another process writes would name the old owner for the words of the new one."""
        store = KnowledgeStore(home)
        store.sync(base)
        store.fill()
        before = self.units(store)
        store.sync(write(base, alarm(501), alarm(502), alarm(503)))
        store.fill()
        assert not set(before.values()) & set(self.units(store).values())

    @staticmethod
    def units(store: KnowledgeStore) -> dict[str, int]:
        with store.database.reading() as connection:
            return dict(connection.execute("SELECT owner, id FROM unit").fetchall())

    def test_a_run_that_ends_early_is_taken_up_where_it_stopped(self, home: Path, tmp_path: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(write(tmp_path / "kb", *[alarm(n) for n in range(2 * FILL_BATCH + 5)]))
        told: list[tuple[int, int]] = []

        def stop(done: int, of: int) -> None:
            told.append((done, of))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.fill(stop)
        assert store.fill(lambda done, of: told.append((done, of))) == FILL_BATCH + 5
        assert told == [
            (FILL_BATCH, 2 * FILL_BATCH + 5),
            (FILL_BATCH, FILL_BATCH + 5),
            (FILL_BATCH + 5, FILL_BATCH + 5),
        ]

    def test_the_generation_grows_with_what_is_searched_and_with_nothing_else(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        seen = [store.generation]
        for act in (lambda: store.sync(base), store.fill, lambda: store.sync(write(base, alarm(402)))):
            act()
            seen.append(store.generation)
        assert seen == sorted(set(seen))
        store.fill()
        store.put_embeddings("e", {"h": b"1"})
        store.drop_embeddings("e", ["h"])
        store.prune_embeddings()
        store.sync(base)
        assert store.generation == seen[-1]

    def test_texts_without_a_vector_are_named_once_and_entries_come_before_passages(
        self, home: Path, base: Path
    ) -> None:
        store = KnowledgeStore(home)
        same: dict[str, Any] = {
            "title": {"en": "Same"},
            "meaning": {"en": "Same"},
            "phrases": {"en": ["it shakes", "own"]},
        }
        store.sync(write(base, alarm(401, **same), alarm(402, **same), alarm(403, title={"en": "Last"})))
        store.fill()
        wanted = store.to_embed("e", 100)
        assert list(wanted.values())[:3] == ["Same", "it shakes", "own"]
        assert len(wanted) == 5
        assert list(store.to_embed("e", 2)) == list(wanted)[:2]
        assert store.coverage("e") == (0, 5)
        store.put_embeddings("e", dict.fromkeys(list(wanted)[:3], b"1"))
        store.put_embeddings("e", {"of nothing": b"1"})
        assert store.coverage("e") == (3, 5)
        assert store.coverage("other") == (0, 5)
        assert list(store.to_embed("e", 100)) == list(wanted)[3:]

    def test_embeddings_are_kept_per_embedder(self, home: Path) -> None:
        store = KnowledgeStore(home)
        store.put_embeddings("one", {"h": b"\0" * 8})
        store.put_embeddings("one", {"h": b"\1" * 8, "g": b"\2" * 8})
        assert list(store.embeddings("one", ["h", "x"])) == [("h", b"\1" * 8)]
        assert list(store.embeddings("two", ["h"])) == []
        assert list(store.embeddings("one")) == []  # no text in use has these
        store.drop_embeddings("two", ["h"])
        store.drop_embeddings("one", ["h", "nobody"])
        store.drop_embeddings("one", [])
        assert list(store.embeddings("one", ["h", "g"])) == [("g", b"\2" * 8)]

    def test_only_vectors_of_texts_that_nothing_holds_are_pruned(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        store.fill()
        before = store.to_embed("e", 100)
        for embedder in ("e", "f"):
            store.put_embeddings(embedder, dict.fromkeys(before, b"1"))
        assert store.prune_embeddings() == 0
        store.sync(write(base, alarm(402)))
        left = store.coverage("e")
        assert left[0] == left[1] < len(before)
        assert store.prune_embeddings() == 2 * (len(before) - left[0])
        assert store.coverage("e") == left
        assert store.to_embed("f", 100) == {}

    def test_a_vector_id_is_a_signed_number_of_the_text(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        text = unit_of_entry(store.entries()[0]).texts[0]
        assert vector_id(text.hash) == int(text.hash, 16) >> 193
        assert vector_id("f" * 64) == 2**63 - 1
        assert vector_id("0" * 64) == 0


class TestEffective:
    """What the shop made of an entry goes before its source; see also the tests of curation."""

    def revised(self, store: KnowledgeStore, seq: int, **change: Any) -> None:
        source = KnowledgeEntry.model_validate(alarm(401))
        body = KnowledgeEntry.model_validate(alarm(401) | change).model_dump_json() if change else ""
        with store.database.writing(searched=True) as connection:
            values = ("fanuc/30i-401", seq, body, said_hash(source), "Li", "2026-01-01", "")
            connection.execute("INSERT INTO revision VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def test_the_latest_revision_counts_everywhere(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        store.fill()
        self.revised(store, 1, title={"en": "First"})
        self.revised(store, 2, title={"en": "Belt torn"}, keys=[{"family": "30i", "code": "SV0499"}])
        titles = {entry.title.en for entry in (*store.entries(), *store.entries(["fanuc/30i-401"]))}
        assert "Belt torn" in titles
        assert not {"First", "Servo alarm 401 "} & titles
        assert store.fill() == 1
        assert "Belt torn. What the control saw." in store.to_embed("e", 100).values()
        with store.database.reading() as connection:
            assert connection.execute("SELECT count(*) FROM words WHERE words MATCH 'belt'").fetchone() == (1,)
        # its codes stay those of the revision whatever the files bring
        assert store.sync(write(base, alarm(401), alarm(405)))
        assert [i for _, i in store.lookup("fanuc", "SV0499")] == ["fanuc/30i-401"]
        assert store.lookup("fanuc", "SV0401") == ()
        # an empty one takes the earlier ones back
        self.revised(store, 3)
        assert store.entry("fanuc/30i-401") == KnowledgeEntry.model_validate(alarm(401))
        assert store.fill() == 2  # that one, and the new one of the files

    def test_a_verification_falls_where_the_source_changed(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        self.revised(store, 1, title={"en": "Ours"}, status="verified", verified_by="Li")
        entry = store.entry("fanuc/30i-401")
        assert entry is not None
        assert (entry.status, entry.title.en) == ("verified", "Ours")
        store.sync(write(base, alarm(401, meaning={"en": "The maker changed its mind."})))
        entry = store.entry("fanuc/30i-401")
        assert entry is not None
        assert (entry.status, entry.verified_by, entry.title.en) == ("unverified", "", "Ours")
        assert "Li" in entry.status_note

    def test_a_revision_waits_for_an_entry_that_is_gone(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        self.revised(store, 1, title={"en": "Ours"})
        store.sync(write(base, alarm(402)))
        assert store.entry("fanuc/30i-401") is None
        store.sync(write(base, alarm(402), alarm(401)))
        entry = store.entry("fanuc/30i-401")
        assert entry is not None
        assert entry.title.en == "Ours"

    def test_a_contradicted_entry_is_disputed_unless_a_person_verified_it(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        verified = alarm(402, status="verified", verified_by="Li")
        store.sync(write(base, alarm(401), verified, alarm(403)))
        broken_into(
            store,
            "INSERT INTO dispute VALUES ('fanuc/30i-401', 'fanuc/30i-402', 0.9, 'different')",
            "INSERT INTO dispute VALUES ('fanuc/30i-401', 'fanuc/30i-403', 0.9, 'same')",
        )
        statuses = {"fanuc/30i-401": "disputed", "fanuc/30i-402": "verified", "fanuc/30i-403": "unverified"}
        assert {entry.id: entry.status for entry in store.entries()} == statuses
        assert {entry.id: entry.status for entry in store.entries(list(statuses))} == statuses
        store.sync(write(base, alarm(401), alarm(403)))  # the other one is gone, and the dispute with it
        assert {entry.status for entry in store.entries()} == {"unverified"}


class TestAtOnce:
    def test_processes_that_sync_at_once_end_with_one_base(self, home: Path, tmp_path: Path) -> None:
        base = write(tmp_path / "kb", *[alarm(number) for number in range(400, 600)])
        code = (
            "import sys, time\nfrom pathlib import Path\nfrom retrieval.store import KnowledgeStore\n"
            "home, base, go = map(Path, sys.argv[1:])\nprint('here', flush=True)\n"
            "while not go.exists(): time.sleep(0.001)\n"
            "store = KnowledgeStore(home)\nstore.sync(base)\nprint(store.counts()['codes'], len(store.entries()))\n"
        )
        go = tmp_path / "go"
        processes = [spawn(code, home, base, go) for _ in range(6)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
        go.touch()
        assert [finish(process) for process in processes] == ["200 200\n"] * 6
        assert not KnowledgeStore(home).sync(base)

    def test_processes_that_open_new_homes_at_once_wait_for_each_other(self, tmp_path: Path) -> None:
        """SQLite gives up at once, not after its timeout, where two turn a new file to write-ahead logging."""
        code = (
            "import sys\nfrom pathlib import Path\nfrom retrieval.store import KnowledgeStore\n"
            "print('here', flush=True)\nroot, go = map(Path, sys.argv[1:])\nwhile not go.exists(): pass\n"
            "for n in range(60):\n"
            "    store = KnowledgeStore(root / str(n))\n"
            "    store.put_embeddings('e', {'h': b'1'})\n    assert store.counts() == {'codes': 0}\n"
        )
        processes = [spawn(code, tmp_path, tmp_path / "go") for _ in range(5)]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        (tmp_path / "go").touch()
        for process in processes:
            finish(process)

    def test_a_reader_sees_the_old_base_or_the_new_one(self, home: Path, tmp_path: Path) -> None:
        small, large = write(tmp_path / "s", alarm(1)), write(tmp_path / "l", *[alarm(n) for n in range(1, 200)])
        store = KnowledgeStore(home)
        store.sync(small)
        seen: set[int] = set()
        stop = threading.Event()

        def read() -> None:
            mine = KnowledgeStore(home)
            while not stop.is_set():
                seen.add(len(mine.entries()))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for _ in range(5):
            store.sync(large)
            store.sync(small)
        stop.set()
        for reader in readers:
            reader.join()
        assert seen <= {1, 199}
        assert seen

    def test_a_writer_that_never_ends_is_named(self, home: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store = KnowledgeStore(home)
        monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.1)
        other = sqlite3.connect(store.path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnusable, match="locked") as caught:
            store.sync(base)
        assert "another process is writing it" in caught.value.next_step
        other.close()
        assert store.sync(base)


class TestDamage:
    @pytest.mark.parametrize("kind", ["words", "torn pages", "cut short"])
    def test_a_damaged_file_is_named_and_moved_aside(self, home: Path, base: Path, kind: str) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        body = bytearray(store.path.read_bytes())
        if kind == "words":
            body[:] = b"this is no database\n" * 500
        elif kind == "torn pages":
            body[4096:] = b"\xa5" * (len(body) - 4096)
        else:
            del body[len(body) // 2 :]
        store.path.write_bytes(body)
        with pytest.raises(StoreUnusable) as caught:
            everything(home)
        assert str(store.path) in caught.value.what
        assert f"move {store.path} aside and run the command again" in caught.value.next_step
        store.path.rename(home / "aside.sqlite")
        fresh = KnowledgeStore(home)
        assert fresh.sync(base)
        everything(home)
        assert len(fresh.entries()) == 3

    def test_a_log_left_by_the_damaged_file_does_no_harm(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        held = sqlite3.connect(store.path)
        held.execute("INSERT OR REPLACE INTO meta VALUES ('x', 'y')")
        held.commit()
        wal = (home / "knowledge.sqlite-wal").read_bytes()
        held.close()
        store.path.rename(home / "aside.sqlite")
        (home / "knowledge.sqlite-wal").write_bytes(wal)
        fresh = KnowledgeStore(home)
        assert fresh.sync(base)
        assert len(fresh.entries()) == 3

    def test_a_row_that_is_no_entry_is_named(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        for body, field in (('{"id": "cut', "body"), (store.entries()[0].model_dump_json()[:-1] + ',"x":1}', "x")):
            with sqlite3.connect(store.path) as connection:
                connection.execute("UPDATE entry SET body = ? WHERE id = 'fanuc/30i-401'", (body,))
            connection.close()
            for read in (store.entries, lambda: store.entry("fanuc/30i-401")):
                with pytest.raises(StoreUnusable) as caught:
                    read()
                assert f"{store.path}, entry fanuc/30i-401, field {field}: " in caught.value.what
                assert "aside" in caught.value.next_step

    def test_a_damaged_schema_is_named(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        body = store.path.read_bytes()
        assert b"entryentry" in body
        store.path.write_bytes(body.replace(b"entryentry", b"ent\x9eyentry"))
        with pytest.raises(StoreUnusable, match="malformed") as caught:
            everything(home)
        assert "aside" in caught.value.next_step

    def test_a_flipped_byte_anywhere_is_harmless_or_named(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        sound = store.path.read_bytes()
        chance = random.Random(7)
        named = 0
        for place in [*range(0, 100, 3), *(chance.randrange(len(sound)) for _ in range(150))]:
            body = bytearray(sound)
            body[place] ^= chance.randrange(1, 256)
            for left in home.glob("knowledge.sqlite*"):
                left.unlink()
            store.path.write_bytes(body)
            try:
                everything(home)
            except StoreUnusable as error:
                assert error.next_step
                named += 1
        assert named


class TestFolder:
    def test_a_file_where_the_home_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StoreUnusable, match="set FAULTWRIGHT_HOME") as caught:
            KnowledgeStore(tmp_path / "file" / "home")
        assert str(tmp_path / "file" / "home") in caught.value.what

    def test_a_folder_where_the_file_should_be(self, home: Path) -> None:
        (home / "knowledge.sqlite").mkdir()
        with pytest.raises(StoreUnusable, match="check that the folder exists and can be written"):
            KnowledgeStore(home)

    @pytest.mark.parametrize("made", [True, False])
    def test_a_home_that_cannot_be_written(self, tmp_path: Path, base: Path, made: bool) -> None:
        outer = tmp_path / "outer"
        home = outer / "home"
        (home if made else outer).mkdir(parents=True)
        (home if made else outer).chmod(0o555)
        code = (
            "import os, sys\nfrom pathlib import Path\nfrom retrieval.errors import StoreUnusable\n"
            "from retrieval.store import KnowledgeStore\n"
            "if os.getuid() == 0: os.setuid(65534)\n"
            "try: KnowledgeStore(Path(sys.argv[1]))\n"
            "except StoreUnusable as error: print(error.what, error.next_step, sep='|')\n"
        )
        # another user must be able to walk down to the folder
        walked = [folder for folder in home.parents if folder.stat().st_uid == os.getuid() and folder.parent != folder]
        modes = {folder: folder.stat().st_mode for folder in walked if not folder.stat().st_mode & 0o001}
        try:
            for folder, mode in modes.items():
                folder.chmod(mode | 0o011)
            what, next_step = finish(spawn(code, home)).strip().split("|")
        finally:
            for folder, mode in modes.items():
                folder.chmod(mode)
        assert str(home) in what
        assert "write" in next_step or "written" in next_step

    def test_a_full_disk_loses_nothing(self, home: Path, base: Path, tmp_path: Path) -> None:
        """The limit on the size of a file stands in for the disk: the write fails in the same place."""
        store = KnowledgeStore(home)
        store.sync(base)
        before, mark = store.entries(), store.fingerprint
        large = write(tmp_path / "large", *[alarm(number) for number in range(1, 700)])
        code = (
            "import resource, sys\nfrom pathlib import Path\nfrom retrieval.errors import StoreUnusable\n"
            "from retrieval.store import KnowledgeStore\n"
            "home, base = map(Path, sys.argv[1:])\nstore = KnowledgeStore(home)\n"
            "limit = store.path.stat().st_size + 65536\nresource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
            "for act in (lambda: store.sync(base), lambda: store.put_embeddings('e', {'h': bytes(300_000)})):\n"
            "    try: act(); print('written')\n"
            "    except StoreUnusable as error: print(error.next_step)\n"
            "print(len(store.entries()))\n"
        )
        lines = finish(spawn(code, home, large)).splitlines()
        assert lines == ["free disk space and run the command again; what was stored before is intact."] * 2 + ["3"]
        assert (store.entries(), store.fingerprint) == (before, mark)
        assert store.sync(large)
        assert len(store.entries()) == 699


class TestVersions:
    def test_a_newer_schema_is_refused(self, home: Path, base: Path) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        with sqlite3.connect(store.path) as connection:
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        connection.close()
        sound = store.path.read_bytes()
        with pytest.raises(StoreUnusable) as caught:
            KnowledgeStore(home)
        assert f"schema {SCHEMA_VERSION + 1}; this version reads {SCHEMA_VERSION}" in caught.value.what
        assert "another FAULTWRIGHT_HOME" in caught.value.next_step
        assert store.path.read_bytes() == sound

    def test_rows_of_an_older_schema_are_made_anew_and_embeddings_stay(self, home: Path, base: Path) -> None:
        with sqlite3.connect(home / "knowledge.sqlite") as connection:
            connection.executescript(
                "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);"
                "INSERT INTO meta VALUES ('fingerprint', 'old');"
                "CREATE TABLE entry (id TEXT PRIMARY KEY); CREATE TABLE code (vendor TEXT);"
                "CREATE TABLE embedding (embedder TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL,"
                " PRIMARY KEY (embedder, hash)); INSERT INTO embedding VALUES ('e', 'h', x'01');"
                "PRAGMA user_version = 1;"
            )
        connection.close()
        store = KnowledgeStore(home)
        assert store.fingerprint == ""
        assert store.sync(base)
        assert store.counts()["codes"] == 3
        assert list(store.embeddings("e", ["h"])) == [("h", b"\1")]
        everything(home)

    def test_rows_of_another_form_of_entry_are_written_anew(
        self, home: Path, base: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = KnowledgeStore(home)
        store.sync(base)
        monkeypatch.setattr(store_module, "_records", lambda: "of another version")
        assert store.sync(base)
        assert not store.sync(base)


def test_a_home_of_the_schema_before_keeps_all_and_gets_what_is_new(home: Path) -> None:
    from retrieval.repairs import put_repair, repairs

    store = KnowledgeStore(home)
    with store.database.writing() as connection:
        connection.execute("DROP TABLE repair")
        connection.execute("INSERT INTO note VALUES (1, 'fanuc/sv0401', '', '{}', 'Li Wei', '2026-11-30')")
        connection.execute("PRAGMA user_version = 3")
    again = KnowledgeStore(home)
    put_repair(again, key="k", machine="lathe 3", code=None, entry_id="guide/x", action="greased", by="Li Wei")
    put_repair(again, key="k", machine="lathe 3", code=None, entry_id="guide/x", action="told twice", by="Li Wei")
    assert [repair.action for repair in repairs(again)] == ["greased"]
    with again.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM note").fetchone()[0] == 1
