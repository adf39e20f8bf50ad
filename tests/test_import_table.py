"""The import table of docs/architecture.md, held against the imports that the code really has."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("retrieval", "models", "agents", "evaluation", "training", "serve")
ALLOWED: dict[str, tuple[str, ...]] = {
    "retrieval": (),
    "models": ("retrieval.codes", "retrieval.records"),
    "agents": ("retrieval", "models"),
    "evaluation": ("agents", "models", "retrieval"),
    "training": ("models", "retrieval", "evaluation.metrics"),
    "serve": ("agents", "models", "retrieval", "evaluation", "training"),
}
METRICS = ("retrieval.codes", "retrieval.records")
HEAVY = ("torch", "transformers", "peft", "trl", "accelerate", "vllm")
# hf_folder is run by the Python of the vLLM environment, never imported here
HEAVY_PLACES = ("training/", "models/engines/transformers.py", "models/engines/hf_folder.py")


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; folders are imported by their own names"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def _covers(allowed: str, name: str) -> bool:
    return name == allowed or name.startswith(allowed + ".") or allowed.startswith(name + ".")


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_table(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    allowed = METRICS if path == ROOT / "evaluation" / "metrics.py" else ALLOWED[room]
    for name in _imports(path):
        target = name.split(".")[0]
        if target in ROOMS and target != room:
            assert any(_covers(entry, name) for entry in allowed), f"{path.relative_to(ROOT)} must not import {name}"
        if target in HEAVY:
            place = str(path.relative_to(ROOT))
            assert place.startswith(HEAVY_PLACES), f"{place} must not import {name}: a question on a CPU never loads it"


def test_a_forbidden_arrow_would_be_seen(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("from serve.settings import Settings\nimport torch\n", encoding="utf-8")
    names = list(_imports(bad))
    assert "serve.settings" in names and "torch" in names
    assert not any(_covers(entry, "serve.settings") for entry in ALLOWED["agents"])


def test_every_module_imports_without_heavy_libraries() -> None:
    modules = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in _files()
    )
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print([n for n in {HEAVY!r} if n in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_tests_hold_no_package() -> None:
    assert not (ROOT / "tests" / "__init__.py").exists()
    assert not [p for p in (ROOT / "tests").iterdir() if p.is_dir() and p.name in ROOMS]
