"""The README tells the truth about the tree, and its generated parts exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from docs.generate import CASES, PARTS, replace_part

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_tree_names_every_folder_that_git_tracks_and_no_other() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    folders = {path.split("/")[0] for path in tracked if "/" in path and not path.startswith(".")}
    named = set(re.findall(r"^([a-z]+)/ {2,}\S", README, re.MULTILINE))
    assert named == folders


def test_the_two_commands_are_make_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"^make ([a-z]+)", README, re.MULTILINE):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_the_generated_parts_are_filled() -> None:
    for file, parts in PARTS.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        for name in parts:
            assert replace_part(text, name, "") != text, f"{file}: part {name} is empty; run make docs"
    assert all(question in README for question, _, _ in CASES)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
