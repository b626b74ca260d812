"""Files that a project wants in every prompt, such as the sheet of an interface.

They are read in the background and stand in front of all excerpts, so the prefix cache keeps them.
"""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..policy.git_patterns import Pattern
from ..policy.ignore_files import IgnoreRules, as_bytes, folders_above
from ..policy.secret_files import secret_in
from .safe_reading import UnreadableFile, lies_below, read_file
from .scored_excerpts import ScoredExcerpt

logger = logging.getLogger(__name__)

_MOST_FILES = 20
_MOST_BYTES = 256 * 1024  # of a file
_WHY = "pinned (setting pinnedFiles)"


def match_pinned(patterns: Iterable[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Return which of the listed files of a folder each pattern with wildcards names.

    The folders themselves are not searched: ``**`` would walk through ``node_modules``.
    """
    found: dict[str, list[str]] = {}
    for pattern in filter(_has_wildcards, patterns):
        glob = Pattern.of(0, b"/" + as_bytes(pattern.removeprefix("./")))
        if glob is None or glob.regex is None or not lies_below(pattern):
            logger.warning("pinnedFiles: %s names no file below the workspace", pattern)
            continue
        fits = glob.regex.fullmatch
        found[pattern] = sorted(name for name in names if fits(as_bytes(name)))[:_MOST_FILES]
    return found


def read_pinned(
    folders: Sequence[Path],
    patterns: Sequence[str],
    tokens: int,
    refuse: Callable[[str], str],
    listed: Mapping[Path, Mapping[str, Sequence[str]]],
    rules: IgnoreRules,
) -> tuple[ScoredExcerpt, ...]:
    """Return the pinned files as excerpts in the order of their patterns; the last may be cut.

    Args:
        patterns: paths below a folder of the workspace, or globs of such.
        tokens: of all files together, estimated; the rest is left out.
        refuse: why a path must not be read, "" if it may be.
        listed: of each folder, which files the globs name.
        rules: receives the ``.redraftignore`` files of the files' folders.
    """
    found: list[ScoredExcerpt] = []
    left = float(tokens)
    for path, text in _texts(folders, patterns, refuse, listed, rules):
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


def _has_wildcards(pattern: str) -> bool:
    return bool(set(pattern) & set("*?["))


def _texts(
    folders: Sequence[Path],
    patterns: Iterable[str],
    refuse: Callable[[str], str],
    listed: Mapping[Path, Mapping[str, Sequence[str]]],
    rules: IgnoreRules,
) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file once."""
    seen: set[str] = set()
    for pattern in patterns:
        for folder in folders:
            if _has_wildcards(pattern):
                paths = listed.get(folder, {}).get(pattern, ())
            else:
                paths = _named(folder, pattern)
            for path in paths:
                if path in seen or len(seen) >= _MOST_FILES:
                    continue
                seen.add(path)
                rules.read(folder, folders_above(path))
                why = refuse(path) or rules.why(folder, path)
                text = None if why else _text(folder, path)
                if why:
                    logger.warning("%s is not pinned: %s", path, why)
                if text is not None:
                    yield path, text


def _named(folder: Path, path: str) -> Sequence[str]:
    """Return the path of one file, nothing if there is none."""
    if not lies_below(path):
        logger.warning("pinnedFiles: %s lies outside the workspace and is left out", path)
        return ()
    plain = posixpath.normpath(path)  # as exclusions know it
    return (plain,) if os.path.lexists(folder / plain) else ()


def _text(folder: Path, path: str) -> str | None:
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
