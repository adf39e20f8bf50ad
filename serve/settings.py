"""All settings in one object, built once at the entry point and passed down as plain parameters."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from platformdirs import user_data_dir
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "FAULTWRIGHT_"


class SettingsError(ValueError):
    """A setting is unknown or has a bad value; the message lists what is valid."""


class Settings(BaseSettings):
    """Settings from the environment (`FAULTWRIGHT_HOME` and so on) or from the constructor."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    home: Path = Field(
        default_factory=lambda: Path(user_data_dir("faultwright")),
        description="data home: base models, rows, index, traces; copying it is the backup",
    )
    knowledge: Path | None = Field(default=None, description="folder of knowledge YAML; the starter base where unset")
    base: str = Field(default="smollm2-135m-instruct-q4", description="base model, an id of `faultwright models list`")
    writer: Literal["model", "rules"] = Field(
        default="model", description="writer submodel: the language model, or rules alone"
    )
    writer_timeout_s: float = Field(
        default=8.0, gt=0, description="longest wait for the writer before its rule form answers"
    )
    engine: Literal["llama_cpp", "openai"] = Field(
        default="llama_cpp", description="where models run: in this process, or on an OpenAI-compatible server"
    )
    engine_url: str = Field(
        default="", description="that server; where unset, the one that `faultwright engine up` started"
    )
    engine_key: str = Field(default="", description="key that the server asks for")
    engine_model: str = Field(default="", description="name of the base on that server; its first model where unset")
    engine_python: Path | None = Field(default=None, description="Python of an environment that has vLLM")
    threads: int = Field(default=0, ge=0, description="CPU threads of the engine; 0 = all usable cores")
    vendor: str = Field(default="", description="default controller of this shop, e.g. fanuc or fanuc/30i")
    keep_traces: int = Field(default=500, ge=0, description="how many traces are kept")
    host: str = Field(default="127.0.0.1", description="address the API listens on")
    port: int = Field(default=8000, ge=0, le=65535, description="port the API listens on; 0 = any free one")
    api_key: str = Field(default="", description="key that clients must send; needed beyond localhost")

    @field_validator("home", mode="before")
    @classmethod
    def _a_real_folder(cls, value: object) -> object:
        """An empty value means the default, never the current folder; `~` is the user's home."""
        if isinstance(value, str) and not value.strip():
            return Path(user_data_dir("faultwright"))
        return Path(value).expanduser() if isinstance(value, str | Path) else value


def load_settings(**overrides: object) -> Settings:
    """Settings from environment and overrides (None = not given).

    Raises:
        SettingsError: a `FAULTWRIGHT_*` variable that does not exist, or a bad value.
    """
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    unknown = [n for n in os.environ if n.upper().startswith(PREFIX) and n.upper() not in known]
    if unknown:
        raise SettingsError(f"Unknown setting {', '.join(sorted(unknown))}. Known: {', '.join(sorted(known))}.")
    try:
        return Settings(**{k: v for k, v in overrides.items() if v is not None})  # type: ignore[arg-type]  # validated here
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{PREFIX}{'_'.join(str(p) for p in first['loc']).upper()}"
        raise SettingsError(f"{name} = {first['input']!r}: {first['msg']}.") from error
