"""`faultwright knowledge` from the command line, and the examples of docs/knowledge.md."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import serve.curation_cli
from retrieval.embed import HashingEmbedder
from retrieval.index import build
from serve.cli import app
from serve.knowledge_cli import fit
from serve.runtime import Runtime
from serve.settings import load_settings
from serve.terminal import notice

ENTRY = "fanuc/sv0401"
LI = ("--by", "Li Wei")
DOCS = Path(__file__).parents[1] / "docs" / "knowledge.md"


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(home: Path | None) -> Runtime:
        return Runtime(load_settings(home=home), embedder=HashingEmbedder(), notice=notice)

    monkeypatch.setattr(serve.curation_cli, "opened", opened)
    monkeypatch.setattr("serve.knowledge_cli.opened", opened)


def run(*arguments: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(app, ["knowledge", *arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def done(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*arguments: str, code: int = 2) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert "Traceback" not in result.stderr
    return result.stderr.strip()


def script(*arguments: str) -> Any:
    return json.loads(done(*arguments, "--json"))


@pytest.fixture
def document(tmp_path: Path) -> str:
    """Id of an ingested document with a row that contradicts the starter base."""
    from retrieval.ingest.run import Options, ingest

    file = tmp_path / "alarms.csv"
    file.write_text(
        "Code,Message,Cause,Remedy\nSV0410,Coolant tank empty,No coolant in the tank,Fill up the tank\n"
        "SV0401,Servo ready signal off,Cable,Check the cable\n"
    )
    runtime = Runtime(load_settings(), embedder=HashingEmbedder())
    report = ingest([file], runtime.store, Options("fanuc", "30i"))
    assert report.total("alarms") == 2
    return runtime.documents.all()[0].id


def test_a_round_of_curation() -> None:
    assert "revision 1, unverified" in done("edit", ENTRY, "--set", "component=ours", *LI, "--reason", "why")
    assert "+component: ours" in done("diff", ENTRY)
    assert "\x1b" not in done("diff", ENTRY), "colours are for a terminal"
    assert "verified by Li Wei (revision 2, verified)" in done("verify", ENTRY, *LI)
    shown = done("show", ENTRY)
    assert "revision 1:" in shown and "Li Wei: the shop's version. why" in shown
    (line,) = (line for line in done("list", "--status", "verified").splitlines() if ENTRY in line)
    assert line.startswith("verified        R")
    assert script("unverify", ENTRY, *LI) == {"entry": ENTRY, "status": "unverified", "revision": 3, "stale": False}
    assert "414 leads to it" in done("alias", ENTRY, "414", "--family", "16i", *LI)
    assert "revision 5, machine_checked" in done("revert", ENTRY)
    assert script("show", ENTRY)["revisions"][-1]["back_to_source"]


def test_the_yaml_of_show_is_what_edit_takes(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(done("show", ENTRY, "--yaml").replace("servo amplifier", "amplifier"), encoding="utf-8")
    done("edit", ENTRY, "--file", str(path), *LI)
    assert script("show", ENTRY)["entry"]["component"] == "amplifier"
    assert "component: servo amplifier" in done("show", ENTRY, "--yaml", "--source")
    path.write_text("title: 1")
    assert "field" in refused("edit", ENTRY, "--file", str(path), *LI)
    assert "Cannot read" in refused("edit", ENTRY, "--file", str(tmp_path / "nowhere"), *LI)


def test_in_an_editor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "component: servo amplifier", "items:"]

    class Terminal:
        def isatty(self) -> bool:
            return True

    def edit(filename: str) -> None:
        path = Path(filename)
        wish = texts.pop(0)
        text = path.read_text(encoding="utf-8")
        assert "# Safety items" in text
        path.write_text(text.replace(wish, f"{wish}x" if ":" in wish else wish), encoding="utf-8")

    monkeypatch.setattr("click.edit", edit)
    assert "no terminal to edit in" in refused("edit", ENTRY)
    fake = type("Sys", (), {"stdin": Terminal(), "stdout": Terminal()})
    monkeypatch.setattr(serve.curation_cli, "sys", fake)
    assert "closed unchanged" in refused("edit", ENTRY)
    assert "the shop's version is in use" in done("edit", ENTRY, *LI)
    assert not list((home / "edits").iterdir())
    message = refused("edit", ENTRY, *LI)
    (kept,) = (home / "edits").iterdir()
    assert f"Your text is kept: faultwright knowledge edit {ENTRY} --file {kept}" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "fanuc/nobody"), "No entry 'fanuc/nobody'"),
        (("edit", ENTRY, "--set", "items=[]", *LI), "Before opening the cabinet"),
        (("edit", ENTRY, "--set", "items.c1.text.en=Jumper the door switch", *LI), "defeat a safeguard"),
        (("edit", ENTRY, "--set", "a=b", "--file", "x"), "not both"),
        (("verify", ENTRY, "--by", "7"), "no person's name"),
        (("alias", ENTRY, "SV0410", "--family", "30i"), "already belongs to fanuc/sv0410"),
        (("note", ENTRY), "needs an entry and a text"),
        (("note", ENTRY, "x"), "give --by NAME"),
        (("note", ENTRY, "x", *LI, "--before", "s1"), "safety comes first"),
        (("note", ENTRY, "--remove", "1"), "nothing else"),
        (("note", "--remove", "1"), "No note 1"),
        (("settle", ENTRY, "fanuc/sv0410", *LI), "--same or --different"),
        (("remove", "nobody"), "No document"),
        (("list", "--document", "nobody"), "No document"),
        (("diff", "nobody"), "No entry 'nobody'"),
        (("import", "nowhere.yaml"), "Cannot read nowhere.yaml"),
        (("import", "x", "--ours", "--theirs"), "one of --ours and --theirs"),
    ],
)
def test_errors_say_what_to_do(arguments: tuple[str, ...], message: str) -> None:
    line = refused(*arguments)
    assert message in line and len(line.splitlines()) == 1


def test_verify_needs_a_name() -> None:
    result = run("verify", ENTRY)
    assert result.exit_code == 2 and "--by" in result.stderr


def test_notes() -> None:
    made = script("note", ENTRY, "cable first", "--machine", "lathe 3", "--move", "c3", "--before", "c1", *LI)
    assert (made["entry"], made["machine"], made["move"], made["before"]) == (ENTRY, "lathe 3", "c3", "c1")
    assert "(lathe 3) [move c3 before c1]: cable first - Li Wei" in done("notes")
    assert script("notes", "--machine", "lathe 4") == []
    assert len(script("notes", ENTRY)) == 1
    assert done("note", "--remove", "1").startswith("Removed: note 1")
    assert script("notes") == []


def test_disputes_and_settling(document: str) -> None:
    runtime = Runtime(load_settings(), embedder=HashingEmbedder())
    build(runtime.settings.home, runtime.store, runtime.searcher.embedder)
    row = f"doc-{document}/sv0410"
    assert "SV0410 is a code of several entries" in refused("show", "SV0410")
    assert done("settle", "fanuc/sv0410", row, "--different", *LI).endswith("different, says Li Wei.\n")
    assert {r["id"] for r in script("list", "--disputed")} == {"fanuc/sv0410", row}
    assert f"different: {row} (Li Wei)" in done("show", "fanuc/sv0410")
    assert "another source says otherwise" in run("verify", "fanuc/sv0410", *LI).stderr
    done("settle", row, "fanuc/sv0410", "--same", *LI)
    assert script("list", "--disputed") == []


def test_documents_and_remove(document: str) -> None:
    (shown,) = script("documents")
    assert (shown["id"], shown["rows"], shown["vendor"], shown["current"]) == (document, 2, "fanuc", True)
    done("note", f"doc-{document}/sv0410", "ours", *LI)
    assert "needs --yes" in refused("remove", "alarms.csv")
    assert script("remove", "alarms.csv", "--yes") == {
        "removed": document, "name": "alarms.csv", "revisions": 0, "notes": 1,
    }  # fmt: skip
    assert script("documents", "--all") == []


def test_lists_fit_a_terminal(document: str) -> None:
    from rich.cells import cell_len

    for line in (*done("list").splitlines(), *done("documents").splitlines()):
        assert cell_len(line) <= 100, line
    assert len(script("list", "--document", document)) == 2
    assert {r["kind"] for r in script("list", "--kind", "guide")} == {"guide"}
    found = script("list", "--search", "主轴 异响", "--kind", "guide")
    assert found and len(found) < len(script("list", "--kind", "guide"))


@pytest.mark.parametrize(
    ("text", "shown"), [("abc", "abc  "), ("abcdef", "abcd…"), ("主轴", "主轴 "), ("主轴异响", "主轴…"), ("", "     ")]
)
def test_fit(text: str, shown: str) -> None:
    assert fit(text, 5) == shown


def test_export_and_import(tmp_path: Path, document: str) -> None:
    done("edit", ENTRY, "--set", "component=ours", *LI)
    file, other = str(tmp_path / "base.jsonl"), ("--home", str(tmp_path / "other"))
    assert script("export", file)["revision"] == 1
    assert "is there already" in refused("export", file)
    done("export", file, "--force")
    assert "1 documents, 2 entries, 1 revisions would be taken over." in done("import", file, "--dry-run", *other)
    assert script("import", file, *other)["entries"] == [f"doc-{document}/sv0410", f"doc-{document}/sv0401"]
    assert "Nothing new taken over." in done("import", file, *other)
    assert script("show", ENTRY, *other)["entry"]["component"] == "ours"
    done("edit", ENTRY, "--set", "component=theirs", "--by", "Bob", *other)
    done("edit", ENTRY, "--set", "component=again", *LI)
    done("export", file, "--force")
    assert run("import", file, "--dry-run", *other).exit_code == 1
    assert "both sides changed it" in refused("import", file, *other)
    done("import", file, "--theirs", *other)
    assert script("show", ENTRY, *other)["entry"]["component"] == "again"


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_the_examples_of_the_guide(tmp_path: Path, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(commands()) > 15
    for line in commands():
        program, group, *arguments = shlex.split(line.replace("doc-DOCUMENT", f"doc-{document}"))
        assert (program, group) == ("faultwright", "knowledge")
        result = run(*arguments)
        assert result.exit_code == 0, f"{line}: {result.stderr}"


def test_the_guide_names_every_command() -> None:
    from serve.cli import command_tree

    text = DOCS.read_text(encoding="utf-8")
    names = [name.split()[1] for name, _ in command_tree() if name.startswith("knowledge ")]
    assert len(names) == 17
    assert [name for name in names if not re.search(rf"(?:faultwright |`)knowledge {name}\b", text)] == []
