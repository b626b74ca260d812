"""The README fits a screen, its commands exist, and documents name files that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from redraft.server.commands.complete import FilePlace, cursor_at, read_text
from redraft.server.commands.main import app
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PACKAGES = ("model", "lsp", "server", "evals")
PAGES = [f"{package}/**/*.md" for package in PACKAGES]
#: Pages about the present; the changelog and the log are about the past.
DOCUMENTS = sorted(
    path
    for top in ("*.md", "tests/*.md", "editor-clients/*.md", "editor-clients/*/README.md", *PAGES)
    for path in ROOT.glob(top)
    if path.name not in ("CHANGELOG.md", "LOG.md")
)
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
COMMANDS = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)


def test_there_are_two_commands_one_runs_and_one_tests() -> None:
    assert len(COMMANDS) == 2
    assert "redraft complete" in COMMANDS[0]
    assert COMMANDS[1].endswith("&& pytest")


def test_ci_runs_all_tests() -> None:
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    parts = {step.split(" -n ")[0] for step in steps if step.split()[:1] == ["pytest"]}
    assert parts in ({"pytest"}, {f"pytest -m {part}" for part in ("fast", "process", "editor")})


def test_the_extras_named_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extras in re.findall(r"\.\[([a-z,]+)\]", README):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def test_the_place_in_the_sample_is_a_gap() -> None:
    place = FilePlace.parse(re.findall(r"\S+:\d+:\d+", COMMANDS[0])[0])
    text = read_text(ROOT / place.file)
    cursor = cursor_at(text, place)
    assert text[:cursor].endswith("return ")
    assert text[cursor] == "\n"


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`redraft ([a-z]+)", README))))
def test_every_command_named_has_help(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_it_fits_one_screen_and_its_links_work() -> None:
    assert len(README.splitlines()) <= 70
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link


def test_every_promise_names_tests_that_exist() -> None:
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = [line for line in security.splitlines() if line.startswith("| ") and "::" in line]
    assert len(rows) > 20
    for file, name in re.findall(r"`(test_\w+\.py)::(test_\w+)`", security):
        [path] = (ROOT / "tests").rglob(file)
        source = path.read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{file} has no {name}"
    for link in re.findall(r"\]\(([^)#:]+)[)#]", security):
        assert (ROOT / link).exists(), link


def in_backticks(document: Path) -> Iterator[str]:
    """Yield the words that a document sets as code within a line."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    for span in re.findall(r"`([^`]+)`", text):
        yield from span.rstrip(",.;:").split()


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def defined(path: Path) -> set[str]:
    """Return the names at the top of a module, and methods as ``Class.method``."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, FUNCTION | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {each.id for each in targets if isinstance(each, ast.Name)}
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, FUNCTION))
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    ours = re.compile(rf"(?:{'|'.join(PACKAGES)}|tests|editor-clients)/[\w./*-]*")
    below = re.compile(r"[\w-]+/[\w./*-]*\.(?:py|md|toml|json|jsonl)")
    gone = []
    for word in in_backticks(document):
        path = word.partition("::")[0]
        if not (ours.fullmatch(path) or below.fullmatch(path)):
            continue
        if not any(any(place.glob(path)) for place in (ROOT, document.parent)):
            gone.append(path)
    assert not gone


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_function_that_a_document_names_exists(document: Path) -> None:
    gone = []
    for word in in_backticks(document):
        path, _, name = word.partition("::")
        if "/" in path and name and not ((ROOT / path).is_file() and name in defined(ROOT / path)):
            gone.append(word)
    assert not gone
