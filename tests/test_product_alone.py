"""The product without the laboratory: what makers need may be missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import without_laboratory

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
def test_a_command_of_the_laboratory_says_what_is_missing(tmp_path: Path) -> None:
    done = without_laboratory(tmp_path, "eval", "--help")
    assert done.returncode == 2
    assert "the command 'eval' cannot be loaded: No module named 'redraft.evals" in done.stderr
