"""Helix: Redraft as a further language server, in a block of ``languages.toml``."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from typing import Any

from redraft.model.errors import EditorSetupError
from redraft.model.text.syntax import LANGUAGES

from .changes import Record, SetupPlan, run
from .clients import config_folder, find_program
from .marked_block import with_block, without_block

#: Helix's names of languages, where they differ from those of the protocol.
_NAMES = {
    "typescriptreact": "tsx",
    "javascriptreact": "jsx",
    "csharp": "c-sharp",
    "shellscript": "bash",
}


def find() -> str:
    """Return where Helix is, "" if it is not on the PATH."""
    return find_program("hx", "helix")


def plan(record: Record, program: str) -> SetupPlan:
    file = config_folder() / "helix" / "languages.toml"
    text = record.text_before(file, without_block)
    try:
        given = tomllib.loads(text.removeprefix("\ufeff"))
        changed = with_block(text, "helix", _lines(given, program), "#")
        tomllib.loads(changed.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise EditorSetupError(
            f"{file} cannot be added to ({error}); correct it, or add Redraft by hand as "
            "editor-clients/helix.md says"
        ) from error
    return SetupPlan(edits={file: changed.encode()})


def _lines(given: dict[str, Any], program: str) -> str:
    """Return the server, and for each language its servers with ours behind them.

    Helix joins the entries of a language by its name, and the last list of servers wins.
    """
    lists = {
        each.get("name"): each["language-servers"]
        for each in given.get("language", ())
        if "language-servers" in each
    }
    parts = [
        "[language-server.redraft]\n"
        f"command = {_toml(program)}\n"
        'args = ["lsp"]\n'
        "config = { completionItems = true }\n"
    ]
    for name in (_NAMES.get(each, each) for each in LANGUAGES):
        servers = lists.get(name)
        if servers is None:
            servers = _usual_servers(name)
        if servers is not None and "redraft" not in servers:
            shown = _toml([*servers, "redraft"])
            parts.append(f'[[language]]\nname = "{name}"\nlanguage-servers = {shown}\n')
    if len(parts) == 1:
        raise EditorSetupError(f"'{find()} --health' names no language; Helix 23.10 is needed")
    return "\n".join(parts)


def _usual_servers(language: str) -> list[str] | None:
    """Return the servers of a language without the user's settings, None if Helix lacks it."""
    with tempfile.TemporaryDirectory() as folder:
        aside = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"), folder)
        out = run(find(), "--health", language, environment=aside)
    out = re.sub(r"\x1b\[[\d;]*m", "", out)
    found = re.search(r"^Configured language servers:(.*\n(?: .*\n)*)", out, re.MULTILINE)
    return re.findall(r"^ +\S+ ([^\s:]+):", found[1], re.MULTILINE) if found else None


def _toml(value: Any) -> str:
    """Return a value of ``language-servers`` as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)  # JSON's strings are strings of TOML, too
