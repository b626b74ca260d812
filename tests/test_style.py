"""Rules of style that ruff does not check, and lists of files not yet clean that only shrink."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import style
from support.link_packages import link_packages, packages
from support.not_yet_clean import grown, listed, ruff_listed

FOUND = style.violations()


@pytest.mark.parametrize("check", FOUND)
def test_a_file_that_is_not_listed_is_clean(check: str) -> None:
    new = {name: FOUND[check][name] for name in set(FOUND[check]) - set(listed()[check])}
    assert not new


@pytest.mark.parametrize("check", FOUND)
def test_a_listed_file_is_not_clean_yet(check: str) -> None:
    clean = sorted(set(listed()[check]) - set(FOUND[check]))
    assert not clean, "run: python tests/support/not_yet_clean.py"


def test_ruff_ignores_only_files_that_exist() -> None:
    gone = [name for name in ruff_listed() if not (style.ROOT / name).exists()]
    assert not gone, "run: python tests/support/not_yet_clean.py"


def test_the_lists_are_sorted() -> None:
    for names in (*listed().values(), list(ruff_listed())):
        assert names == sorted(names)


def test_a_list_does_not_grow_but_an_entry_moves_with_its_file() -> None:
    assert grown(["lsp/gone.py"], ["lsp/session/gone.py"]) == []
    assert grown(["lsp/gone.py"], ["lsp/session/gone.py", "model/gone.py"]) == ["model/gone.py"]
    assert grown(["tests/test_style.py"], ["lsp/test_style.py"]) == ["lsp/test_style.py"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Whether it is open."""\n', (["Whether"], [])),
        ('"""Return the text that the user is told."""\n', ([], ["told"])),
        ('"""Return the file.\n\nIt stands\nfor a folder."""\n', ([], ["stands for"])),
        ("x = 1  # somebody waits\n", ([], ["somebody"])),
        ('option(help="Whoever asks")\n', ([], ["Whoever"])),
        ('"""Return the text."""\nx = "whoever"\n', ([], [])),
    ],
)
def test_refused_words(tmp_path: Path, text: str, found: tuple[list[str], list[str]]) -> None:
    file = tmp_path / "a.py"
    file.write_text(text, encoding="utf-8")
    assert (style.first_words(file), style.refused_words(file)) == found


def test_code_on_a_page_may_use_any_word(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("A `told` field.\n```\nsomebody\n```\nNobody asks.\n", encoding="utf-8")
    assert style.refused_words(page) == ["Nobody"]


def test_links_lead_a_type_checker_to_each_package(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes((style.ROOT / "pyproject.toml").read_bytes())
    for folder in packages(style.ROOT).values():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    link_packages(tmp_path)
    for link in link_packages(tmp_path):
        assert (link / "__init__.py").resolve() == tmp_path / link.name / "__init__.py"
    assert (tmp_path / ".links" / "redraft" / "model").exists()
