"""Zed: entries of its settings, which make it ask ``redraft serve`` for edits."""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path
from typing import Any

from redraft.model.errors import EditorSetupError

from ...settings import load_settings
from ..doctor import Finding
from . import jsonc
from .changes import Record, SetupPlan
from .clients import client_file, config_folder, find_program

SECTION = "edit_predictions"


def find() -> str:
    """Return where Zed is, "" if it is not on this machine."""
    folder = settings_file().parent
    return find_program("zed", "zeditor", "zedit") or (str(folder) if folder.is_dir() else "")


def settings_file() -> Path:
    folder = Path.home() / ".config" if sys.platform == "darwin" else config_folder()
    return folder / "zed" / "settings.json"  # on Windows, letter case does not count


def plan(record: Record, _program: str) -> SetupPlan:
    file = settings_file()
    text = record.text_before(file, take_out)
    try:
        for name, value in reversed(_entries().items()):
            text = jsonc.with_value(text, (SECTION, name), value)
    except EditorSetupError as error:
        raise EditorSetupError(f"{file}: {error}") from error
    return SetupPlan(edits={file: text.encode()})


def take_out(now: str, before: str) -> str:
    """Return settings without our entries, with the values that these replaced."""
    old = jsonc.parse(before).get(SECTION)
    for name, ours in _entries().items():
        section = jsonc.parse(now).get(SECTION)
        if not isinstance(section, dict) or name not in section:
            continue
        if name == "provider" and section[name] != ours:
            continue  # the user chose another one
        if isinstance(old, dict) and name in old:
            now = jsonc.with_value(now, (SECTION, name), old[name])
        else:
            now = jsonc.without(now, (SECTION, name))
    if jsonc.parse(now).get(SECTION) == {} and old is None:
        now = jsonc.without(now, (SECTION,))
    return now if before or jsonc.parse(now) else ""


def check(_program: str) -> Finding:
    """Ask ``redraft serve`` where Zed will ask it."""
    try:  # without the proxy that urllib would use
        connection = http.client.HTTPConnection("127.0.0.1", load_settings().port, timeout=5)
        connection.request("GET", "/health")
        connection.getresponse().read()
        return Finding("ok", "server", f"'redraft serve' answers on {_url()}")
    except (OSError, http.client.HTTPException) as error:
        advice = "Run 'redraft serve', and keep it running while you use Zed."
        return Finding("note", "server", f"nothing answers on {_url()} yet ({error})", advice)


def _entries() -> dict[str, Any]:
    shipped = client_file("zed/settings.json").read_text("utf-8")
    entries: dict[str, Any] = json.loads(shipped)[SECTION]
    entries["open_ai_compatible_api"]["api_url"] = f"{_url()}/v1/completions"
    return entries


def _url() -> str:
    return f"http://127.0.0.1:{load_settings().port}"
