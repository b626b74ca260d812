"""What the README tells people to type exists, fits a screen, and is what CI runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from redraft.server.commands.complete import Place, cursor_at, read_text
from redraft.server.commands.main import app
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)


def test_there_are_two_commands_one_runs_and_one_tests() -> None:
    assert len(COMMANDS) == 2
    assert "redraft complete" in COMMANDS[0]
    assert COMMANDS[1].endswith("&& pytest")


def test_ci_runs_the_test_command() -> None:
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert COMMANDS[1].split("&&")[-1].strip() in steps


def test_the_extras_named_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extras in re.findall(r"\.\[([a-z,]+)\]", README):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def test_the_place_in_the_sample_is_a_gap() -> None:
    place = Place.parse(re.findall(r"\S+:\d+:\d+", COMMANDS[0])[0])
    text = read_text(ROOT / place.file)
    cursor = cursor_at(text, place)
    assert text[:cursor].endswith("return ")
    assert text[cursor] == "\n"


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`redraft ([a-z]+)", README))))
def test_every_command_named_has_help(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_it_fits_one_screen_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 70
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link


def test_every_promise_names_tests_that_exist() -> None:
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = [line for line in security.splitlines() if line.startswith("| ") and "::" in line]
    assert len(rows) > 20
    for file, name in re.findall(r"`(test_\w+\.py)::(test_\w+)`", security):
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {name}\(", source, re.MULTILINE), f"{file} has no {name}"
    for link in re.findall(r"\]\(([^)#:]+)[)#]", security):
        assert (ROOT / link).exists(), link
