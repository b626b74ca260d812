"""Files that a project wants in every prompt, such as the sheet of an interface.

They are read in the background and stand in front of all excerpts, so the prefix cache keeps them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..policy.secret_files import secret_in
from .files import UnreadableFile, lies_below, read_file
from .scored_excerpts import ScoredExcerpt

logger = logging.getLogger(__name__)

_MOST_FILES = 20
_MOST_BYTES = 256 * 1024  # of a file
_WHY = "pinned (setting pinnedFiles)"


def read_pinned(
    folders: Sequence[Path], patterns: Sequence[str], tokens: int, refuse: Callable[[str], str]
) -> tuple[ScoredExcerpt, ...]:
    """Return the pinned files as excerpts in the order of their patterns; the last may be cut.

    Args:
        patterns: paths below a folder of the workspace, or globs of such.
        tokens: of all files together, estimated; the rest is left out.
        refuse: why a path must not be read, "" if it may be.
    """
    found: list[ScoredExcerpt] = []
    left = float(tokens)
    for path, text in _texts(folders, patterns, refuse):
        lines = text.rstrip("\n").split("\n")
        whole = ScoredExcerpt("pinned", path, 0, len(lines), "\n".join(lines), _WHY, 1.0)
        fitting = whole.cut(left)
        if fitting is None:
            logger.info("%s is not pinned: %d tokens are left (pinnedTokens)", path, left)
            break
        found.append(fitting)
        left -= fitting.tokens
        if fitting is not whole:
            logger.info("only %d lines of %s are pinned (pinnedTokens)", fitting.last, path)
            break
    return tuple(found)


def _texts(
    folders: Sequence[Path], patterns: Iterable[str], refuse: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file once."""
    seen: set[str] = set()
    for pattern in patterns:
        for folder in folders:
            for path in _matching(folder, pattern):
                if path in seen or len(seen) >= _MOST_FILES:
                    continue
                seen.add(path)
                text = _text(folder, path, refuse)
                if text is not None:
                    yield path, text


def _matching(folder: Path, pattern: str) -> list[str]:
    if not lies_below(pattern):
        logger.warning("pinnedFiles: %s lies outside the workspace and is left out", pattern)
        return []
    if not set(pattern) & set("*?["):
        return [pattern] if (folder / pattern).is_file() else []
    try:
        found = sorted(folder.glob(pattern))[:_MOST_FILES]
        return [each.relative_to(folder).as_posix() for each in found if each.is_file()]
    except (OSError, ValueError, NotImplementedError) as error:
        logger.warning("pinnedFiles: %s cannot be looked for: %s", pattern, error)
        return []


def _text(folder: Path, path: str, refuse: Callable[[str], str]) -> str | None:
    if why := refuse(path):
        logger.warning("%s is not pinned: %s", path, why)
        return None
    try:
        text = read_file(folder, path, _MOST_BYTES).decode("utf-8-sig")
    except (UnreadableFile, UnicodeDecodeError) as error:
        logger.warning("%s is not pinned: %s", path, error)
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text or secret_in(text, path) or not text.strip():
        logger.warning("%s is not pinned: it is empty, binary or secret", path)
        return None
    return text
