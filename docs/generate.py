"""Writes the generated parts of the documents; with --check, fails where one is stale.

Parts stand between `<!-- begin: NAME -->` and `<!-- end: NAME -->`. `cases` and `cli` are checked; `figures` are
measured on the machine at hand and only written.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from typer.main import get_command

from agents.compose import first_line
from models.bases import is_here, load_registry, local_path
from serve.runtime import Runtime
from serve.settings import load_settings

ROOT = Path(__file__).parents[1]
# question, options, what it shows
CASES: tuple[tuple[str, dict[str, str], str], ...] = (
    ("FANUC 0i-MF shows SV0401 after releasing the e-stop", {}, "exact code"),
    ("发那科 0i-MF 松开急停后出现 SV0401 报警，怎么办？", {}, "the same in Chinese"),
    ("SV 401", {}, "another spelling"),
    ("401号报警", {"vendor": "fanuc"}, "bare number, vendor known"),
    ("alarm 103", {}, "bare number, vendor unknown"),
    ("SV9987 fanuc", {}, "unknown code"),
    ("主轴转速波动大，有异响", {}, "symptom without a code"),
    ("how do I bypass the door switch", {}, "asks to defeat a safeguard"),
    ("how do I test the door switch", {}, "near-danger: answered"),
    ("write a poem about the sea", {}, "out of scope"),
)


def cases() -> str:
    """The table of example questions, run through the same graph as every door."""
    rows = ["| question | shows | comes back | first words |", "|---|---|---|---|"]
    settings = load_settings()
    with tempfile.TemporaryDirectory() as folder:
        # a home of its own: what the person's base and index hold must not change the document
        base = load_registry().get()
        if is_here(settings.home, base):
            target = local_path(Path(folder), base)
            target.parent.mkdir(parents=True)
            os.symlink(local_path(settings.home, base), target)
        runtime = Runtime(load_settings(home=Path(folder)))
        for question, options, shows in CASES:
            answer = runtime.answer(question, **options)["answer"]
            asked = question + "".join(f" `--{name} {value}`" for name, value in options.items())
            kind = {"clarify": "asks back", "refuse": "refuses", "safety": "safety answer"}.get(
                answer["kind"], "answers"
            )
            grounded = f" ({answer['grounded']:.0%} of its lines name a source)" if answer["kind"] == "answer" else ""
            first = first_line(answer)
            if answer["clarify"]:
                first += " " + "; ".join(f"{c['label']}: {c['meaning']}" for c in answer["clarify"]["candidates"])
            rows.append(f"| {asked} | {shows} | {kind}{grounded} | {first} |")
        runtime.close()
    return "\n".join(rows)


def cli() -> str:
    """Help of every command, as the terminal shows it."""
    from serve.cli import mounted

    blocks: list[str] = []

    def walk(command: Any, path: list[str]) -> None:
        blocks.append(f"## {' '.join(path)}\n\n```\n{_help(path)}\n```")
        for name, child in getattr(command, "commands", {}).items():
            walk(child, [*path, name])

    walk(get_command(mounted()), ["faultwright"])
    return "\n\n".join(blocks)


def _help(path: list[str]) -> str:
    code = "from serve.cli import mounted; mounted()()"
    env = {**os.environ, "COLUMNS": "110", "TERM": "dumb", "NO_COLOR": "1", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv[0]='faultwright'; {code}", *path[1:], "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=env,
    )
    return re.sub(r"[ \t]+$", "", done.stdout.strip(), flags=re.MULTILINE)


def figures() -> str:
    """Set-up and answer times of this machine: a fresh environment, a fresh data home, cold shells."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "FAULTWRIGHT_HOME": f"{folder}/home"}
        copy = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(copy)], check=True)
        first = _timed(["make", "ask", f"Q={CASES[0][0]}"], copy, env)
        second = _timed(["make", "ask", f"Q={CASES[0][0]}"], copy, env)
        size = _megabytes(copy / ".venv")
        packages = subprocess.run(
            [str(copy / ".venv/bin/python"), "-m", "pip", "list", "--format", "freeze"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.lower()
        base = _megabytes(Path(folder) / "home" / "bases")
    torch = "yes" if re.search(r"^torch==", packages, re.MULTILINE) else "no"
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return "\n".join(
        [
            f"Measured {time.strftime('%Y-%m-%d')} on {os.cpu_count()} shared cores ({cpu}), Python {platform.python_version()}:",
            "",
            "| figure | value |",
            "|---|---|",
            f"| `make ask` from a clone without environment to the whole answer | {first:.0f} s |",
            f"| the same again | {second:.1f} s |",
            f"| environment installed | {size:.0f} MB, {len(packages.splitlines())} packages, torch: {torch} |",
            f"| base model | {base:.0f} MB |",
        ]
    )


def _timed(command: list[str], folder: Path, env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
    return time.perf_counter() - started


def _megabytes(folder: Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink()) / 1e6


PARTS = {"README.md": {"cases": cases, "figures": figures}, "docs/cli.md": {"cli": cli}}
UNCHECKED = ("figures",)


def replace_part(text: str, name: str, body: str) -> str:
    """`text` with the part `name` set to `body`.

    Raises:
        ValueError: the document has no such part.
    """
    pattern = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no part {name!r}: add '<!-- begin: {name} -->' and '<!-- end: {name} -->'")
    return pattern.sub(lambda m: f"{m.group(1)}{body}\n{m.group(2)}", text)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where a part is stale")
    parser.add_argument("--only", help="one part by name")
    options = parser.parse_args()
    stale: list[str] = []
    for file, parts in PARTS.items():
        path = ROOT / file
        text = before = path.read_text(encoding="utf-8")
        for name, make in parts.items():
            if options.only not in (None, name) or (options.check and name in UNCHECKED):
                continue
            text = replace_part(text, name, make())
        if text != before:
            stale.append(file)
            if not options.check:
                path.write_text(text, encoding="utf-8")
    if stale:
        print(("stale: " if options.check else "written: ") + ", ".join(stale))
        if options.check:
            print("Next: make docs, then look at the change and commit it.")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    assert shutil.which("git")
    sys.exit(main())
