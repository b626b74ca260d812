"""The product without the laboratory: what makers need may be missing."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from redraft.server.commands import more
from redraft.server.commands.main import app
from support.command import without_laboratory
from typer.testing import CliRunner

COMMANDS = (
    "complete", "context", "serve", "lsp", "stop", "doctor", "chat", "stats", "record",
    "model", "gate",
)  # fmt: skip


@pytest.mark.usefixtures("spawn")
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_product_helps(command: str, tmp_path: Path) -> None:
    done = without_laboratory(tmp_path, command, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: redraft" in done.stdout


@pytest.mark.usefixtures("spawn")
def test_a_laboratory_command_says_what_is_missing(tmp_path: Path) -> None:
    done = without_laboratory(tmp_path, "eval", "--help")
    assert done.returncode == 2
    assert "the command 'eval' cannot be loaded: No module named 'redraft.evals" in done.stderr


def test_a_broken_foreign_command_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [
        EntryPoint("gone", "json:no_such_name", more.ENTRY_POINTS),
        EntryPoint("odd", "json:dumps", more.ENTRY_POINTS),
        EntryPoint("serve", "json:dumps", more.ENTRY_POINTS),
    ]
    monkeypatch.setattr(more, "entry_points", lambda group: points)
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0 and result.output.count(" serve ") == 1
    assert CliRunner().invoke(app, ["gone"]).exit_code == 2
    assert "'gone' cannot be loaded" in result.output + capsys.readouterr().err
