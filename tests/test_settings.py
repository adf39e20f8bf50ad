"""Settings: what the environment may say, and how it is told that it said something wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from serve.runtime import Runtime
from serve.settings import Settings, SettingsError, load_settings


def test_environment_and_defaults(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTWRIGHT_WRITER", "rules")
    monkeypatch.setenv("FAULTWRIGHT_THREADS", "3")
    settings = load_settings()
    assert (settings.home, settings.writer, settings.threads) == (home, "rules", 3)
    assert (settings.host, settings.port, settings.api_key) == ("127.0.0.1", 8000, "")


def test_an_override_outweighs_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTWRIGHT_PORT", "9000")
    assert load_settings(port=0, home=tmp_path / "x").port == 0
    assert load_settings(port=None).port == 9000


def test_an_unknown_variable_is_named_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTWRIGHT_HOEM", "/data")
    with pytest.raises(SettingsError, match=r"Unknown setting FAULTWRIGHT_HOEM.*FAULTWRIGHT_HOME"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FAULTWRIGHT_PORT", "65536"),
        ("FAULTWRIGHT_PORT", "eighty"),
        ("FAULTWRIGHT_WRITER", "gpt"),
        ("FAULTWRIGHT_WRITER_TIMEOUT_S", "0"),
        ("FAULTWRIGHT_THREADS", "-1"),
        ("FAULTWRIGHT_KEEP_TRACES", "-1"),
    ],
)
def test_a_bad_value_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"{name} = '{value}'"):
        load_settings()


def test_an_unknown_default_vendor_names_its_variable_and_the_known_ones(home: Path) -> None:
    with pytest.raises(SettingsError, match=r"FAULTWRIGHT_VENDOR: unknown vendor 'okuna'; known: fanuc"):
        Runtime(Settings(home=home, vendor="okuna"))


def test_every_setting_says_what_it_is_for() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
