"""All settings of the server and of the engine process, with units and reasons.

Later sources win: the defaults below, ``config.toml`` in the platform's configuration folder,
environment variables ``REDRAFT_<NAME>``, options of the command line.
"""

from __future__ import annotations

import difflib
import ipaddress
import logging
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import Eagerness
from redraft.model.runtime.machine import default_threads

log = logging.getLogger(__name__)

ENV_PREFIX = "REDRAFT_"

#: Variables that other parts of Redraft read.
OTHER_VARIABLES = (
    *("REDRAFT_CACHE_DIR", "REDRAFT_MODELS", "REDRAFT_RECORDINGS_DIR"),
    *("REDRAFT_LOG_LEVEL", "REDRAFT_STATISTICS_DIR"),
    # Of the tests alone:
    *("REDRAFT_CLIENTS_DIR", "REDRAFT_DATA_DIR", "REDRAFT_VSCODE_DIR"),
    "REDRAFT_TEST_PULL",
)


class Settings(BaseModel):
    """Immutable; derive a changed one with :meth:`with_options`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # --- where to listen (redraft serve) ---
    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description=(
            "address to listen on; loopback, so that nothing leaves the machine unless told to"
        ),
    )
    port: int = Field(
        7331,
        ge=0,
        le=65_535,
        description="TCP port; 0 lets the system choose",
    )
    api_key: SecretStr | None = Field(
        None,
        description=(
            "what clients send as 'Authorization: Bearer KEY'; demanded on any address but loopback"
        ),
    )

    # --- what to accept ---
    max_body_bytes: int = Field(
        16 * 2**20,
        ge=1_024,
        description="largest request body, bytes; a file with one 5 MB line fits when escaped",
    )
    body_timeout_s: float = Field(
        30.0,
        gt=0,
        description="seconds a client may take to send its body; a stalled one holds nothing",
    )
    max_connections: int = Field(
        512,
        ge=8,
        description="connections at once; of more, those that ask nothing are closed",
    )
    queue_length: int = Field(
        16,
        ge=1,
        description=(
            "requests computed or waiting at once; more are answered 429, because a "
            "suggestion that comes that late helps nobody"
        ),
    )
    max_tokens: int = Field(
        1_024,
        ge=1,
        description="longest answer, tokens; clients that ask for more get this many",
    )
    max_candidates: int = Field(
        8,
        ge=1,
        description="most answers to one request; each costs its own denoising",
    )
    eagerness: Eagerness = Field(
        "medium",
        description=(
            "how readily next edits are given to clients that do not say so themselves: low, "
            "medium or high"
        ),
    )
    shutdown_s: float = Field(
        3.0,
        ge=0,
        description="seconds that running requests get to finish at shutdown",
    )

    # --- the engine ---
    model: str = Field(
        "auto",
        min_length=1,
        description=(
            "weights to run; 'redraft model list' shows the names; auto: the best that this "
            "machine can run in time"
        ),
    )
    variant: str | None = Field(
        None,
        description="precision of the weights; none: the best one for the provider",
    )
    provider: str | None = Field(
        None,
        min_length=1,
        description="where to run, cpu or cuda; none: CUDA where it works, else the CPU",
    )
    cpu_share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="share of the usual number of threads to take, where threads is not set",
    )
    threads: int | None = Field(
        None,
        validate_default=True,
        ge=1,
        le=1_024,
        description=(
            "CPU threads of the engine; none: as many as are fastest here, at most one per "
            "physical core, less one from four cores on"
        ),
    )

    # --- the engine process that editors share ---
    idle_exit_s: float = Field(
        600.0,
        gt=0,
        description=(
            "seconds without requests and without joined clients until the engine process "
            "leaves and gives its memory back"
        ),
    )
    idle_unload_s: float = Field(
        900.0,
        gt=0,
        description=(
            "seconds without requests until the engine process frees its model's memory although "
            "clients are joined; the next request loads the model again"
        ),
    )
    start_timeout_s: float = Field(
        30.0,
        gt=0,
        description=(
            "seconds a new engine process may take until it answers; importing onnxruntime "
            "from a cold disk is slow, loading weights is not counted"
        ),
    )
    backoff_s: float = Field(
        0.25,
        ge=0,
        description=(
            "seconds before a crashed engine is started again; doubles with each crash up to 30 s"
        ),
    )
    runtime_dir: Path | None = Field(
        None,
        description="folder of the engine's socket and token; none: the platform's runtime folder",
    )
    log_dir: Path | None = Field(
        None,
        description="folder of the engine's log; none: the platform's log folder",
    )

    @field_validator("provider", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("threads")
    @classmethod
    def _of_share(cls, threads: int | None, given: ValidationInfo) -> int | None:
        share: float | None = given.data.get("cpu_share")
        if threads is not None or share is None:
            return threads
        return max(1, round(share * default_threads()))

    def with_options(self, **options: Any) -> Settings:
        """Return these settings with the options that are not None.

        Raises:
            SettingsError: names the option, its value and what it must be.
        """
        given = {name: value for name, value in options.items() if value is not None}
        return _checked({**self.model_dump(), **given}, "option")

    def key(self) -> str | None:
        return self.api_key.get_secret_value() if self.api_key else None

    def check_exposure(self) -> None:
        """Refuse to listen where others can reach us without a key.

        Raises:
            SettingsError: says how to set a key.
        """
        key = self.key()
        if key is not None and not re.fullmatch("[!-~]+", key):
            raise SettingsError(
                "The API key must be non-empty printable ASCII without spaces: it travels in an "
                "HTTP header. Choose another one."
            )
        if key is None and not is_loopback(self.host):
            raise SettingsError(
                f"{self.host} can be reached from other machines, so an API key is demanded. "
                "Set the environment variable REDRAFT_API_KEY to a long random text (for instance "
                "the output of 'python -c \"import secrets; print(secrets.token_urlsafe())\"'), or "
                "listen on 127.0.0.1."
            )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach ``host``. Of names only localhost counts."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def config_file() -> Path:
    """Return the path of the configuration file, which need not exist."""
    return platformdirs.user_config_path("redraft", appauthor=False) / "config.toml"


def load_settings(
    file: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Load the settings from the file, if it exists, and the environment.

    Raises:
        SettingsError: names the file or variable, the value and what it must be.
    """
    file = file or config_file()
    values = _read_file(file)
    if values:
        _checked(values, f"{file}:")
    environment = os.environ if environment is None else environment
    _warn_of_unknown(environment)
    return _checked({**values, **_from_environment(environment)}, ENV_PREFIX)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not valid TOML: {error}. Fix or delete it.") from None
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}. Fix or delete it.") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Variables that name a setting; others with our prefix belong to other parts of Redraft."""
    names = {ENV_PREFIX + name.upper(): name for name in Settings.model_fields}
    return {names[key]: value for key, value in environment.items() if key in names and value}


def _warn_of_unknown(environment: Mapping[str, str]) -> None:
    """Log each variable with our prefix that Redraft does not read. Most are misspelt."""
    known = [*(ENV_PREFIX + name.upper() for name in Settings.model_fields), *OTHER_VARIABLES]
    for name in sorted(environment):
        if name.startswith(ENV_PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f" Did you mean {close[0]}?" if close else ""
            log.warning("%s is not a variable of Redraft and has no effect.%s", name, meant)


def log_to_stderr() -> None:
    """Log to standard error, as much as ``REDRAFT_LOG_LEVEL`` says.

    Raises:
        SettingsError: the variable names no level.
    """
    level = os.environ.get("REDRAFT_LOG_LEVEL", "WARNING").upper()
    if level not in logging.getLevelNamesMapping():
        raise SettingsError(f"REDRAFT_LOG_LEVEL is {level!r}. Set it to DEBUG, INFO or WARNING.")
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def _checked(values: Mapping[str, Any], origin: str) -> Settings:
    """Return valid settings.

    Args:
        origin: start of an error message; :data:`ENV_PREFIX` for variables.
    """
    try:
        return Settings.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise SettingsError(
                f"{origin} '{name}' is not a setting. The settings are "
                f"{', '.join(Settings.model_fields)}."
            ) from None
        value = "(hidden)" if name == "api_key" else repr(first["input"])
        wanted = Settings.model_fields[name].description if name in Settings.model_fields else ""
        what = f"{ENV_PREFIX}{name.upper()}" if origin == ENV_PREFIX else f"{origin} '{name}'"
        raise SettingsError(
            f"{what} is {value}: {first['msg'].lower()}. It means: {wanted}."
        ) from None
