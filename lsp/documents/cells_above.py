"""The cells above a cell as one text that the cell continues.

It is the percent format of Jupytext, which models know from scripts: a comment ``# %%`` opens each
cell. Cells in the language of the cell below are code, all others are short comments with the name
of their language. For a Markdown cell, code stands in fences instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from redraft.model.text.definitions import definitions, definitions_by_keyword
from redraft.model.text.syntax import parse_cached

#: Characters of all cells together. Cells that are further up and do not fit are left out.
MOST_CHARACTERS = 64_000
_COMMENT_LINES = 12  # of a cell in another language
_COMMENT_WIDTH = 160  # characters of each of these lines; attached images have very long ones

_SLASHES = frozenset(
    (
        *("c", "cpp", "csharp", "dart", "fsharp", "go", "groovy", "java", "javascript"),
        *("javascriptreact", "kotlin", "php", "rust", "scala", "swift", "typescript"),
        *("typescriptreact", "zig"),
    )
)
_DASHES = frozenset(("haskell", "lua", "sql"))
#: A line of IPython that is no Python: a magic or a command of the shell.
_MAGIC = re.compile(r"^(?=%\w|%%\w|!\S)", re.MULTILINE)
_CELL_MAGIC = re.compile(r"\s*%%(\w+).*\n?")
#: Cell magics whose cells are Python.
_OF_PYTHON = frozenset(("capture", "memit", "mprun", "prun", "python", "python3", "time", "timeit"))


@dataclass(frozen=True, slots=True)
class CellText:
    """Text of a cell, with its language."""

    text: str  # "\n" line ends
    language: str
    is_prose: bool


@dataclass(frozen=True)
class CellsAbove:
    """The cells above a cell, as one text that the cell continues."""

    text: str
    language: str
    cells: int  # number of cells in the text
    lines: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", self.text.count("\n"))

    @property
    def stop(self) -> tuple[str, ...]:
        """The line that opens the next cell: a suggestion ends there. Markdown has none."""
        return () if self.language == "markdown" else (f"\n{_comment(self.language)} %%",)

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names that the cells define, without imported ones."""
        syntax = parse_cached(self.text, self.language)
        found = definitions(syntax) if syntax else definitions_by_keyword(self.text)
        return frozenset(each.name for each in found)


def join_cells(cells: Sequence[CellText], language: str) -> CellsAbove | None:
    """Return the nearest cells in their order, as many as fit; None if no cell has a text.

    Args:
        cells: from top to bottom.
        language: of the cell below them.
    """
    parts: list[str] = []
    left = MOST_CHARACTERS
    for cell in reversed(cells):
        part = _part(cell, language) if cell.text.strip() else ""
        left -= len(part)
        if left < 0:
            break
        if part:
            parts.append(part)
    if not parts:
        return None
    own = "" if language == "markdown" else f"{_comment(language)} %%\n"
    return CellsAbove("".join((*reversed(parts), own)), language, len(parts))


def _part(cell: CellText, language: str) -> str:
    text = cell.text.strip("\n")
    if language == "markdown":
        return f"{text}\n\n" if cell.is_prose else f"```{cell.language}\n{text}\n```\n\n"
    mark, name = _comment(language), "markdown" if cell.is_prose else cell.language
    magic = _CELL_MAGIC.match(text) if name == "python" else None
    if magic is not None and magic[1] not in _OF_PYTHON:
        name, text = magic[1], text[magic.end() :]
    if name == language:
        code = _MAGIC.sub("# ", text) if language == "python" else text
        return f"{mark} %%\n{code}\n"
    lines = [f"{mark} {line[:_COMMENT_WIDTH]}".rstrip() for line in _filled(text)]
    return "\n".join((f"{mark} %% [{name}]", *lines[:_COMMENT_LINES], ""))


def _filled(text: str) -> Iterable[str]:
    return (line for line in text.split("\n") if line.strip())


def _comment(language: str) -> str:
    """Return the marker that opens a comment."""
    return "//" if language in _SLASHES else "--" if language in _DASHES else "#"
