"""Where packages come from on this machine, read the way pip reads it: which indexes, folders,
certificates and proxy. Knows nothing of models and opens no connection.

Order, later wins: global, user and environment's files (``[global]`` before ``[install]`` before
``[download]``), ``PIP_*`` variables, and ``REDRAFT_INDEX_URL`` over everything.
https://pip.pypa.io/en/stable/topics/configuration/
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ..errors import SettingsError

PUBLIC_INDEX = "https://pypi.org/simple"

_TRUE = {"1", "true", "yes", "on", "y", "t"}
_KEYS = ("index-url", "extra-index-url", "find-links", "no-index", "cert", "proxy")


@dataclass(frozen=True, slots=True)
class PackageSources:
    """What to ask for a package, in this order: ``links``, then ``indexes``."""

    indexes: tuple[str, ...]  # PEP 503 roots, may hold credentials: never print them
    links: tuple[str, ...] = ()  # local folders or pages listing files
    cert: Path | None = None  # CA bundle instead of the system's
    proxy: str | None = None  # instead of the environment's; may hold credentials


def package_sources(
    env: Mapping[str, str], files: tuple[Path, ...] | None = None
) -> PackageSources:
    """Read the settings.

    Args:
        env: the environment variables.
        files: configuration files, weakest first; None looks where pip looks.

    Raises:
        SettingsError: a configuration file cannot be parsed.
    """
    settings: dict[str, str] = {}
    for path in pip_files(env) if files is None else files:
        settings |= _read(path)
    for key in _KEYS:
        if value := env.get("PIP_" + key.upper().replace("-", "_"), "").strip():
            settings[key] = value
    cert = settings.get("cert") or env.get("REQUESTS_CA_BUNDLE", "")
    common = {
        "cert": Path(cert).expanduser() if cert else None,
        "proxy": settings.get("proxy") or None,
    }
    if own := env.get("REDRAFT_INDEX_URL", "").strip():
        return PackageSources((own,), **common)  # type: ignore[arg-type]
    indexes = [
        settings.get("index-url", PUBLIC_INDEX),
        *settings.get("extra-index-url", "").split(),
    ]
    if settings.get("no-index", "").lower() in _TRUE:
        indexes = []
    links = tuple(settings.get("find-links", "").split())
    return PackageSources(tuple(dict.fromkeys(indexes)), links, **common)  # type: ignore[arg-type]


def _read(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"), source=str(path))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        return {}
    except (configparser.Error, UnicodeDecodeError, OSError) as error:
        raise SettingsError(
            f"cannot read pip's configuration file {path}: {str(error).splitlines()[0]} Correct it "
            "(see 'pip config debug'), or set REDRAFT_INDEX_URL and PIP_CONFIG_FILE."
        ) from error
    found: dict[str, str] = {}
    for section in ("global", "install", "download"):
        if parser.has_section(section):
            found |= {
                key.replace("_", "-").removeprefix("--"): value
                for key, value in parser.items(section)
            }
    return {key: value.strip() for key, value in found.items() if key in _KEYS and value.strip()}


def pip_files(env: Mapping[str, str]) -> Iterator[Path]:
    """pip's configuration files, weakest first, whether they exist or not."""
    named = env.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:  # pip's way to say: no files at all
        return
    name = "pip.ini" if sys.platform == "win32" else "pip.conf"
    yield from _global_files(name)
    if not (named and Path(named).exists()):
        home = Path.home()
        yield home / ("pip" if sys.platform == "win32" else ".pip") / name
        yield _user_folder(home) / name
    yield Path(sys.prefix) / name
    if named:
        yield Path(named)


def _global_files(name: str) -> Iterator[Path]:
    # With multipath, a list of folders on Unix and macOS, the strongest first.
    folders = platformdirs.site_config_dir("pip", appauthor=False, multipath=True)
    for folder in reversed(folders.split(os.pathsep)):
        yield Path(folder) / name
    if sys.platform not in ("win32", "darwin"):
        yield Path("/etc") / name


def _user_folder(home: Path) -> Path:
    folder = Path(platformdirs.user_config_dir("pip", appauthor=False, roaming=True))
    if sys.platform == "darwin" and not folder.is_dir():
        return home / ".config" / "pip"
    return folder
