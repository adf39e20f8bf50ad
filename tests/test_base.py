"""Knowledge files: what is at fault is named with file, entry, field, reason and next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from retrieval.base import fingerprint, knowledge_files, load_entries, starter_folder
from retrieval.errors import KnowledgeUnreadable
from retrieval.store import KnowledgeStore

ALARM: dict[str, Any] = {
    "id": "fanuc/sv0401",
    "kind": "alarm",
    "vendor": "fanuc",
    "keys": [{"family": "30i", "code": "SV0401"}, {"family": "16i", "code": "401"}],
    "title": {"en": "Servo ready signal dropped", "zh": "伺服就绪信号断开"},
    "meaning": {"en": "The amplifier is not ready.", "zh": "放大器未就绪。"},
    "items": [{"id": "s1", "kind": "safety", "text": {"en": "Lock out first.", "zh": "先上锁。"}}],
    "sources": [],
}


def write(folder: Path, *entries: dict[str, Any], name: str = "a.yaml") -> Path:
    folder.mkdir(exist_ok=True)
    text = yaml.safe_dump({"entries": list(entries)}, allow_unicode=True, sort_keys=False)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def fault(folder: Path) -> KnowledgeUnreadable:
    with pytest.raises(KnowledgeUnreadable) as caught:
        load_entries(knowledge_files(folder))
    assert caught.value.next_step.endswith((".", "README.md for the form."))
    assert str(folder) in caught.value.what
    return caught.value


def test_a_sound_base_loads_in_file_order(tmp_path: Path) -> None:
    write(tmp_path, {**ALARM, "id": "fanuc/b", "keys": [{"family": "30i", "code": "SV0402"}]}, name="b.yaml")
    write(tmp_path, ALARM, name="a.yaml")
    assert [entry.id for entry in load_entries(knowledge_files(tmp_path))] == ["fanuc/sv0401", "fanuc/b"]


def test_the_starter_folder_ships_files() -> None:
    assert len(knowledge_files(starter_folder())) >= 6


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_a_folder_without_files_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(KnowledgeUnreadable) as caught:
        knowledge_files(tmp_path / name)
    assert str(tmp_path / name) in caught.value.what
    assert "FAULTWRIGHT_KNOWLEDGE" in caught.value.next_step


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
def test_another_encoding_is_named_with_its_line(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.yaml").write_bytes("# notes\nentries:\n- id: 主轴\n".encode(encoding))
    error = fault(tmp_path)
    assert "not UTF-8" in error.what
    assert f"a.yaml, line {3 if encoding == 'gb18030' else 1}" in error.what
    assert "save the file as UTF-8" in error.next_step


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    write(tmp_path, ALARM)
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "a.yaml").read_bytes())
    assert len(load_entries(knowledge_files(tmp_path))) == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("entries:\n- id: a\n  title: {en: x\n- id: b\n", "line 4, column 5"),
        ("entries:\n- id: a\n   kind: alarm\n", "line 3, column 8"),
        ("entries:\n- id: a\n\tkind: alarm\n", "line 3, column 1"),
        ("entries:\n- id: !!python/object/apply:os.system ['true']\n", "line 2, column 7"),
        ("entries:\n- id: *nowhere\n", "line 2, column 7"),
    ],
)
def test_broken_yaml_is_named_with_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    error = fault(tmp_path)
    assert f"a.yaml, {place}: not valid YAML (" in error.what


def test_a_key_written_twice_is_refused(tmp_path: Path) -> None:
    """YAML would keep the second `items:` and drop the safety items of the first."""
    text = "entries:\n- id: a\n  items: [{id: s1}]\n  kind: guide\n  items: []\n"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    assert "line 5, column 3: not valid YAML (the key 'items' is here twice)" in fault(tmp_path).what


def test_a_control_character_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"entries:\n- id: a\x07\n")
    assert "not valid YAML" in fault(tmp_path).what


@pytest.mark.parametrize("text", ["", "[]", "entires: []", "entries: {}", "entries:", "just words"])
def test_no_list_of_entries(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    error = fault(tmp_path)
    assert "a.yaml: needs a list under the key 'entries'" in error.what
    assert "README.md" in error.next_step


def test_a_base_of_empty_lists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("entries: []", encoding="utf-8")
    assert "no entries" in fault(tmp_path).what
    write(tmp_path, ALARM, name="b.yaml")
    assert len(load_entries(knowledge_files(tmp_path))) == 1


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"severty": "fault"}, "severty", "Extra inputs are not permitted"),
        ({"title": {"en": "x", "fr": "y"}}, "title.fr", "Extra inputs are not permitted"),
        ({"title": {}}, "title", "needs text in 'en' or 'zh'"),
        ({"meaning": {"en": " ", "zh": ""}}, "meaning", "needs text in 'en' or 'zh'"),
        ({"title": None}, "title", "valid dictionary"),
        ({"kind": "alarms"}, "kind", "Input should be 'alarm'"),
        ({"stop_or_run": "run"}, "stop_or_run", "Input should be"),
        ({"keys": [{"family": "30i", "code": 401}]}, "keys.0.code", "valid string"),
        ({"keys": []}, "entry", "an alarm needs at least one key"),
        ({"keys": [{"family": "30i", "code": "sv-401"}]}, "keys", "'sv-401' must be written 'SV0401'"),
        ({"keys": [{"family": "30i", "code": "QX12345"}]}, "keys", "no code of fanuc/30i"),
        ({"keys": [{"family": "99x", "code": "SV0401"}]}, "keys", "fanuc has no family '99x'; valid: 30i, 16i"),
        ({"vendor": "fanuk"}, "vendor", "'fanuk' is not in families.yaml; known: fanuc"),
        ({"items": [ALARM["items"][0]] * 2}, "entry", "item ids repeat"),
        ({"related": ["guide/nowhere"]}, "related", "no such entry: guide/nowhere"),
        ({"keys": ALARM["keys"][:1] * 2}, "keys", "fanuc/30i/SV0401 already belongs to fanuc/sv0401"),
    ],
)
def test_a_fault_names_file_entry_field_and_reason(
    tmp_path: Path, change: dict[str, Any], field: str, reason: str
) -> None:
    write(tmp_path, {**ALARM, **change})
    error = fault(tmp_path)
    assert f"{tmp_path / 'a.yaml'}, entry fanuc/sv0401, field {field}: " in error.what
    assert reason in error.what
    assert "faultwright knowledge check" in error.next_step


def test_a_guide_of_an_unknown_vendor_is_refused(tmp_path: Path) -> None:
    """No vendor filter would ever let it through."""
    write(tmp_path, {**ALARM, "id": "guide/a", "kind": "guide", "vendor": "fanuk", "keys": []})
    assert "entry guide/a, field vendor" in fault(tmp_path).what


def test_an_entry_without_id_is_named_by_its_place(tmp_path: Path) -> None:
    write(tmp_path, ALARM, {k: v for k, v in ALARM.items() if k != "id"})
    assert "entry number 2, field id: Field required" in fault(tmp_path).what


def test_an_entry_that_is_no_mapping_is_named_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("entries: [words]", encoding="utf-8")
    assert "entry number 1, field entry" in fault(tmp_path).what


def test_one_key_in_two_entries_of_two_files(tmp_path: Path) -> None:
    write(tmp_path, ALARM)
    write(tmp_path, {**ALARM, "id": "fanuc/other", "keys": [{"family": "16i", "code": "401"}]}, name="b.yaml")
    what = fault(tmp_path).what
    assert "b.yaml, entry fanuc/other, field keys: fanuc/16i/401 already belongs to fanuc/sv0401" in what


def test_one_id_in_two_files(tmp_path: Path) -> None:
    write(tmp_path, ALARM)
    write(tmp_path, ALARM, name="b.yaml")
    assert "b.yaml, entry fanuc/sv0401, field id: already used in a.yaml" in fault(tmp_path).what


def test_an_alarm_and_a_parameter_may_bear_one_number(tmp_path: Path) -> None:
    parameter = {**ALARM, "id": "fanuc/p401", "kind": "parameter", "keys": [{"family": "16i", "code": "401"}]}
    write(tmp_path, ALARM, parameter)
    assert len(load_entries(knowledge_files(tmp_path))) == 2


def test_a_language_may_be_missing(tmp_path: Path) -> None:
    write(tmp_path, {**ALARM, "title": {"zh": "伺服就绪信号断开"}})
    (entry,) = load_entries(knowledge_files(tmp_path))
    assert entry.title.get("en") == "伺服就绪信号断开"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    assert "Cannot read" in fault(tmp_path).what
    with pytest.raises(KnowledgeUnreadable, match="permissions"):
        fingerprint(knowledge_files(tmp_path))


def test_the_fingerprint_follows_name_and_bytes(tmp_path: Path) -> None:
    write(tmp_path, ALARM)
    first = fingerprint(knowledge_files(tmp_path))
    assert first == fingerprint(knowledge_files(tmp_path))
    (tmp_path / "a.yaml").rename(tmp_path / "b.yaml")
    renamed = fingerprint(knowledge_files(tmp_path))
    (tmp_path / "b.yaml").write_bytes((tmp_path / "b.yaml").read_bytes() + b"#")
    assert len({first, renamed, fingerprint(knowledge_files(tmp_path))}) == 3


def test_a_fault_leaves_the_rows_stored_before(tmp_path: Path, home: Path) -> None:
    store = KnowledgeStore(home)
    assert store.sync(write(tmp_path / "kb", ALARM))
    mark = store.fingerprint
    changes: list[dict[str, Any]] = [{"severty": "x"}, {"vendor": "fanuk"}, {"related": ["x"]}, {"title": {}}]
    for change in changes:
        write(tmp_path / "kb", {**ALARM, **change})
        with pytest.raises(KnowledgeUnreadable):
            store.sync(tmp_path / "kb")
    (tmp_path / "kb" / "a.yaml").write_bytes("entries: 主轴".encode("gb18030"))
    with pytest.raises(KnowledgeUnreadable):
        store.sync(tmp_path / "kb")
    assert store.fingerprint == mark
    assert store.lookup("fanuc", "SV0401")[0][1] == "fanuc/sv0401"
