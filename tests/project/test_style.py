"""Rules of style that ruff does not check."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import style
from support.link_packages import link_packages, packages

FOUND = style.violations()


@pytest.mark.parametrize("check", FOUND)
def test_every_file_keeps_the_rules_of_style(check: str) -> None:
    assert not FOUND[check]


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


def test_a_long_name_of_a_test_is_found(tmp_path: Path) -> None:
    file = tmp_path / "test_a.py"
    just, over = (f"test_{'a' * (length - 5)}" for length in (50, 51))
    file.write_text(f"def {just}(): ...\n\n\nasync def {over}(): ...\n", encoding="utf-8")
    assert style.long_test_names(file) == [over]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def shown(): ...\n", ["shown"]),
        ("class A:\n    async def rewritten_lines(self): ...\n", ["rewritten_lines"]),
        ("class A:\n    @property\n    def closed(self): ...\n", []),
        ("def _moved(): ...\ndef feed(): ...\ndef string_of(): ...\n", []),
    ],
)
def test_a_participle_is_no_name(tmp_path: Path, code: str, found: list[str]) -> None:
    file = tmp_path / "a.py"
    file.write_text(code, encoding="utf-8")
    assert style.participles(file) == found


def test_links_lead_a_type_checker_to_each_package(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes((style.ROOT / "pyproject.toml").read_bytes())
    for folder in packages(style.ROOT).values():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    link_packages(tmp_path)
    links = link_packages(tmp_path)
    for link, folder in zip(links, packages(style.ROOT).values(), strict=True):
        assert (link / "__init__.py").resolve() == tmp_path / folder / "__init__.py"
    assert (tmp_path / ".links" / "redraft" / "model").exists()
