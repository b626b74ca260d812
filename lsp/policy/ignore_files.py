"""Files that exclude others by their paths: ``.gitignore``, and ``.redraftignore`` of our own.

Both have the syntax of git. They may come from anyone, so their size and the cost of their patterns
are bounded.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..context.files import UnreadableFile, read_file

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

logger = logging.getLogger(__name__)

REDRAFT_IGNORE = ".redraftignore"
_BYTES = 64 * 1024
#: Most stars of one pattern, ``**`` as one. Patterns become regular expressions, and each star
#: multiplies their time for a hostile name by the length of that name.
_MOST_STARS = 3
_MOST_PATTERNS = 1_000
_STARS = re.compile(r"\*+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a path by the last pattern that fits it."""

    excludes: bool  # else it is taken back by "!"
    line: int  # of the file, from 1
    pattern: str


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """Patterns of one file."""

    lines: tuple[tuple[int, str], ...]  # number and text of each pattern
    spec: GitIgnoreSpec

    def verdict(self, path: str) -> Verdict | None:
        """Return what is said of a path below the file's folder, None if nothing is."""
        found = self.spec.check_file(path)
        if found.include is None or found.index is None:
            return None
        return Verdict(found.include, *self.lines[found.index])


def read_ignore_file(folder: Path, name: str) -> IgnoreFile | None:
    """Return the patterns of the file ``name`` below ``folder``, None if there is none."""
    if not os.path.lexists(folder / name):
        return None
    from pathspec import GitIgnoreSpec  # 40 ms that most servers never need

    try:
        text = read_file(folder, name, _BYTES).decode("utf-8", "replace")
    except UnreadableFile as error:
        logger.info("%s is not heeded: it %s", name, error)
        return None
    numbered = enumerate(text.splitlines(), 1)
    lines = [(number, line) for number, line in numbered if line.strip() and line[0] != "#"]
    heeded = [each for each in lines if len(_STARS.findall(each[1])) <= _MOST_STARS]
    if len(heeded) < len(lines) or len(heeded) > _MOST_PATTERNS:
        logger.info("%s: only %d simple patterns are heeded", name, _MOST_PATTERNS)
    kept = tuple(heeded[:_MOST_PATTERNS])
    try:
        return IgnoreFile(kept, GitIgnoreSpec.from_lines([line for _, line in kept]))
    except ValueError:
        return None


class IgnoreRules:
    """The ``.redraftignore`` files of workspace folders, as far as they were read."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], IgnoreFile | None] = {}

    def read(self, root: Path, folders: Iterable[str]) -> None:
        """Read the files in ``folders`` below a folder of the workspace.

        Args:
            folders: "" for ``root`` itself, others end with "/".
        """
        for folder in folders:
            if (str(root), folder) not in self._files:
                found = read_ignore_file(root, folder + REDRAFT_IGNORE)
                self._files[str(root), folder] = found

    def read_above(self, root: Path, path: str) -> None:
        """Read the files that a file at ``path`` below ``root`` obeys."""
        self.read(root, folders_above(path))

    def why(self, root: Path, path: str) -> str:
        """Return why a file is excluded, "" if it is not: the innermost verdict counts."""
        for folder in reversed(folders_above(path)):
            file = self._files.get((str(root), folder))
            verdict = None if file is None else file.verdict(path[len(folder) :])
            if verdict is not None:
                where = f"line {verdict.line} of {folder}{REDRAFT_IGNORE}"
                said = f"{path} is excluded by {where}: {verdict.pattern.strip()}"
                return said if verdict.excludes else ""
        return ""

    def is_same(self, other: IgnoreRules) -> bool:
        """Return whether both exclude the same files."""
        return self._lines() == other._lines()

    def _lines(self) -> dict[tuple[str, str], tuple[tuple[int, str], ...]]:
        return {where: file.lines for where, file in self._files.items() if file is not None}


def folders_above(path: str) -> list[str]:
    """Return the folders that hold a path, the outermost first: "", "a/", "a/b/"."""
    parts = path.split("/")[:-1]
    return ["".join(f"{part}/" for part in parts[:depth]) for depth in range(len(parts) + 1)]
