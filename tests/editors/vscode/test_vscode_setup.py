"""``redraft setup code-server`` with the real command line of VS Code's installer."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from redraft.server.commands.setup.clients import server_program
from support.command import call
from support.editors.vscode_studio import CLIENT, CODE_SERVER, missing

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.usefixtures("pictures"),  # marks it "editor"
]


def test_the_extension_is_installed_and_uninstalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Path(os.environ["REDRAFT_VSCODE_DIR"]) / CODE_SERVER
    extensions = tmp_path / "my extensions"
    options = ["--extensions-dir", str(extensions), "--user-data-dir", str(tmp_path / "data")]
    command = tmp_path / "bin" / "code-server"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.join(["node", str(entry), *options])} "$@"\n')
    command.chmod(0o755)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    code, out, err = call("setup", "code-server", "--yes")
    assert code == 0, out + err
    [package] = extensions.glob("redraft.redraft-*")
    manifest = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    installed = json.loads((package / "package.json").read_text(encoding="utf-8"))
    assert installed["version"] == manifest["version"]
    assert (package / "dist" / "server-command").read_text("utf-8") == server_program()
    assert "code-server  set up, current" in call("setup")[1]
    code, out, err = call("setup", "code-server", "--remove", "--yes")
    assert code == 0, out + err
    listed = subprocess.run([command, "--list-extensions"], capture_output=True, timeout=60)
    assert b"redraft" not in listed.stdout
