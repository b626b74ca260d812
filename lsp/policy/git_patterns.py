"""Patterns of ``.gitignore`` files, matched as ``wildmatch.c`` and ``dir.c`` of git match them.

pathspec 1.1 drops lines that git heeds, such as ``[[:alpha:]]x``, and each star multiplies the time
of its expressions by the length of a name: 2 s with four stars and 250 characters. Here every star
is atomic: 16 µs.
Patterns and paths are bytes, as in git.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SPECIAL = re.compile(rb"[*?\[\\]")
#: Git compares names without their case where the file system does.
_IGNORES_CASE = sys.platform in ("win32", "darwin")
_FLAGS = re.DOTALL | (re.IGNORECASE if _IGNORES_CASE else re.NOFLAG)
_CLASSES = {
    b"alnum": rb"[A-Za-z0-9]",
    b"alpha": rb"[A-Za-z]",
    b"blank": rb"[ \t]",
    b"cntrl": rb"[\x00-\x1f\x7f]",
    b"digit": rb"[0-9]",
    b"graph": rb"[!-~]",
    b"lower": rb"[a-z]",
    b"print": rb"[ -~]",
    b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t\n\v\f\r]",
    b"upper": rb"[A-Z]",
    b"xdigit": rb"[0-9A-Fa-f]",
}
_BYTES = [bytes((number,)) for number in range(256)]
_SLASH, _STAR = b"/", b"*"
_ANY_FOLDERS, _SOME_FOLDERS, _REST = b"(?:[^/]*/)*?", b"(?:[^/]*/)+?", b".*"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pattern of one line."""

    line: int  # of the file, from 1
    text: bytes  # of the line
    excludes: bool  # else it takes back what an earlier line excludes
    folders_only: bool
    is_anchored: bool  # it is matched with the path below its file's folder, else with the name
    literal: bytes | None  # the only path or name that it matches, None if it has wildcards
    regex: re.Pattern[bytes] | None  # None if it is literal

    @classmethod
    def of(cls, number: int, line: bytes) -> Pattern | None:
        """Return the pattern of a line without its ``\\n``, None if the line matches nothing."""
        text = _without_spaces(line.removesuffix(b"\r"))
        excludes = not text.startswith(b"!")
        glob = text if excludes else text[1:]
        folders_only = glob.endswith(_SLASH)
        glob = glob[:-1] if folders_only else glob
        is_anchored = _SLASH in glob
        glob = glob.removeprefix(_SLASH)
        if not glob or text.startswith(b"#"):
            return None
        literal = None if _SPECIAL.search(glob) else _folded(glob)
        regex = _compiled(glob, is_anchored) if literal is None else None
        if literal is None and regex is None:
            return None
        return cls(number, text, excludes, folders_only, is_anchored, literal, regex)


class Patterns:
    """Patterns of one file; the last one that matches a path decides."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._all = tuple(patterns)
        self._literals: dict[tuple[bool, bool, bytes], int] = {}
        self._wild: list[int] = []  # the last first
        for at, pattern in enumerate(self._all):
            if pattern.literal is None:
                self._wild.append(at)
            else:
                self._literals[pattern.is_anchored, pattern.folders_only, pattern.literal] = at
        self._wild.reverse()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Patterns) and self._all == other._all

    __hash__ = None  # type: ignore[assignment]

    def last(self, path: bytes, *, is_folder: bool) -> Pattern | None:
        """Return the last pattern that matches a path below the file's folder, or None."""
        whole, name = _folded(path), _folded(path.rpartition(_SLASH)[2])
        kinds = (False, True) if is_folder else (False,)
        keys = ((anchored, kind) for anchored in (False, True) for kind in kinds)
        best = max(
            self._literals.get((anchored, kind, whole if anchored else name), -1)
            for anchored, kind in keys
        )
        for at in self._wild:
            if at < best:
                break
            pattern = self._all[at]
            if pattern.folders_only and not is_folder:
                continue
            assert pattern.regex is not None
            if pattern.regex.fullmatch(whole if pattern.is_anchored else name):
                return pattern
        return None if best < 0 else self._all[best]


def _folded(path: bytes) -> bytes:
    return path.lower() if _IGNORES_CASE else path


def _without_spaces(text: bytes) -> bytes:
    """Return a line without the spaces at its end; an escaped one stays."""
    bare = text.rstrip(b" ")
    is_escaped = (len(bare) - len(bare.rstrip(b"\\"))) % 2
    return text[: len(bare) + 1] if is_escaped else bare


class _MalformedGlob(Exception):
    """Glob that matches nothing, such as one with a bracket that does not end."""


def _compiled(glob: bytes, is_anchored: bool) -> re.Pattern[bytes] | None:
    """Return the expression of a glob with wildcards, None if it is malformed."""
    try:
        return re.compile(_expression(glob, is_anchored), _FLAGS)
    except _MalformedGlob:
        return None


def _expression(glob: bytes, is_anchored: bool) -> bytes:
    """Return the expression of a glob.

    Of what stands between two ``**``, and between two stars of one name, the first match leaves
    most of the path to what follows. Atomic groups keep that choice, so nothing is tried twice.
    """
    special = _SPECIAL.search(glob)
    # git compares the text before the first wildcard by itself, so "a**/b" begins with "**/".
    start = special.start() if is_anchored and special else 0
    blocks: list[tuple[bytes, list[bytes]]] = [(re.escape(glob[:start]), [])]
    for token in _tokens(glob, start, is_anchored):
        if token in (_ANY_FOLDERS, _SOME_FOLDERS, _REST):
            blocks.append((token, []))
        else:
            blocks[-1][1].append(token)
    first, *others = (lead + _names(tokens) for lead, tokens in blocks)
    return first + b"".join(b"(?>%b)" % each for each in others[:-1]) + b"".join(others[-1:])


def _names(tokens: list[bytes]) -> bytes:
    """Return the expression of names and their slashes, none of them ``**``."""
    names = []
    for name in _split(tokens, _SLASH):
        head, *runs = (b"".join(run) for run in _split(name, _STAR))
        stars = [b"(?>[^/]*?%b)" % run for run in runs[:-1]]
        stars += [b"[^/]*" + run for run in runs[-1:]]  # to the end of the name
        names.append(head + b"".join(stars))
    return _SLASH.join(names)


def _split(tokens: list[bytes], mark: bytes) -> list[list[bytes]]:
    parts: list[list[bytes]] = [[]]
    for token in tokens:
        if token == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _tokens(glob: bytes, at: int, is_anchored: bool) -> Iterator[bytes]:
    """Yield stars, slashes, and an expression for each other character.

    Raises:
        _MalformedGlob: a bracket or an escape does not end.
    """
    start = at
    while at < len(glob):
        mark = glob[at : at + 1]
        if mark == _STAR:
            end = at + len(glob[at:]) - len(glob[at:].lstrip(_STAR))
            begins = at == start or glob[at - 1 : at] == _SLASH
            is_double = is_anchored and begins and end - at > 1
            at = end
            if is_double and end == len(glob):
                yield _REST
            elif is_double and glob.startswith(_SLASH, end):
                yield _ANY_FOLDERS
                at += 1
            elif is_double and glob.startswith(b"\\/", end):  # git tries no less than one then
                yield _SOME_FOLDERS
                at += 2
            else:
                yield _STAR
        elif mark == b"?":
            yield b"[^/]"
            at += 1
        elif mark == b"[":
            members, at = _members(glob, at + 1)
            yield b"[%b]" % b"".join(b"\\x%02x" % each for each in sorted(members - {0x2F}))
        else:
            at += mark == b"\\"
            if at == len(glob):
                raise _MalformedGlob
            one = glob[at : at + 1]
            yield _SLASH if one == _SLASH else re.escape(one)
            at += 1


def _members(glob: bytes, at: int) -> tuple[frozenset[int], int]:
    """Return the bytes that a bracket matches, and the index behind the bracket.

    Args:
        at: index behind "[".

    Raises:
        _MalformedGlob: it does not end, or matches nothing.
    """
    negates = glob[at : at + 1] in (b"!", b"^")
    at += negates
    found: set[int] = set()
    before = -1  # the character that may begin a range
    first = at
    while at == first or glob[at : at + 1] != b"]":
        one = glob[at : at + 1]
        if one == b"-" and before >= 0 and glob[at + 1 : at + 2] not in (b"", b"]"):
            last, at = _literal(glob, at + 1)
            found.update(range(before, last + 1))
            before = -1
        elif glob.startswith(b"[:", at):
            end = glob.find(b"]", at + 2)
            if end < 0:
                raise _MalformedGlob
            if end > at + 2 and glob[end - 1 : end] == b":":
                name = glob[at + 2 : end - 1]
                if name not in _CLASSES:
                    raise _MalformedGlob
                found.update(each[0] for each in _BYTES if re.fullmatch(_CLASSES[name], each))
                before, at = -1, end + 1
            else:
                found.add(0x5B)
                before, at = 0x5B, at + 1
        else:
            before, at = _literal(glob, at)
            found.add(before)
    chosen = frozenset(range(256)) - found if negates else frozenset(found)
    if not chosen - {0x2F}:
        raise _MalformedGlob
    return chosen, at + 1


def _literal(glob: bytes, at: int) -> tuple[int, int]:
    """Return a character of a bracket, which may be escaped, and the index behind it."""
    at += glob[at : at + 1] == b"\\"
    if at >= len(glob):
        raise _MalformedGlob
    return glob[at], at + 1
