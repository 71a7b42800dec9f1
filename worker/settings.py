"""The settings of a toolcrib process, from `TOOLCRIB_*` variables. Temporal's own are in `toolcrib.worker.target`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.validation import first_fault

LOCK_FOLDERS: Final = [Path("/run/lock"), Path("/var/lock")]
"""The first of them that is there has a folder for our locks."""

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "console", "keyvalue", "json"]


class Settings(BaseSettings):
    """Read once, where a process starts. An empty variable counts as unset."""

    model_config = SettingsConfigDict(env_prefix="TOOLCRIB_", env_ignore_empty=True, frozen=True, extra="ignore")

    home: Path = Field(
        default=Path("~/.local/share/toolcrib"),
        validate_default=True,
        description="Where keys, hosts' records and artifacts are kept.",
    )
    locks: Path = Field(
        default_factory=lambda: _lock_folder(),
        description="Where this machine's device locks are. For tests: hosts that differ in it do not see each other.",
    )
    log_level: LogLevel = Field(default="info", description="The least important messages that are logged.")
    log_format: LogFormat = Field(
        default="auto", description="How they look; auto: console on a terminal, key=value elsewhere."
    )

    @field_validator("home", "locks")
    @classmethod
    def _is_absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("log_level", "log_format", mode="before")
    @classmethod
    def _case_does_not_matter(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value


def prepared_home(settings: Settings) -> Path:
    """Return the home folder, after a look whether a host can keep its things there.

    Raises:
        InvalidRequest: it cannot be written to.
    """
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.home):
            return settings.home
    except OSError as error:
        raise InvalidRequest(
            f"TOOLCRIB_HOME: {settings.home} cannot be written to: {error.strerror}",
            hint="Name another folder: export TOOLCRIB_HOME=DIR",
        ) from None


def _lock_folder() -> Path:
    found = [folder for folder in LOCK_FOLDERS if folder.is_dir()]
    return (found or LOCK_FOLDERS)[0] / "toolcrib"


def load_settings() -> Settings:
    """Return the settings as the environment has them now.

    Raises:
        InvalidRequest: a variable's value is not allowed; the message names the variable.
    """
    try:
        return Settings()
    except ValidationError as error:
        field = str(error.errors(include_url=False)[0]["loc"][0])
        message = first_fault(Settings, error).removeprefix(field)
        variable = f"TOOLCRIB_{field.upper()}"
        raise InvalidRequest(f"{variable}{message}", hint=f"Correct or unset the variable {variable}") from None
