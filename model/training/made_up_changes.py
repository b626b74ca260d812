"""Edits that call for the same edit elsewhere, made up from a file: a name or a string changed
where it occurs first, an argument added to or taken from a function and its calls.

Commits hold such moments too, but few of them near each other and most mixed with other changes.
Made-up ones say exactly what is left to do, so that they also teach when to stop. Pure given a
``random.Random``. Knows nothing of tokens or prompts.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import PurePosixPath

from ..edits.hunks import Hunk
from ..text.names import whole_name
from .commits import FileChange

_REACH = 18  # lines on either side of a place drawn at random that are looked at
_MOST = 8  # places of one change; names on more lines are rarely renamed one by one
_LONGEST = 200  # characters of a line that may change
_ARGUMENTS = 0.3  # share of changes to a function's arguments, where a function has calls

_NAME = re.compile(r"[^\W\d]\w{2,}")
_QUOTED = re.compile(r"([\"'])(?P<said>[\w .:/-]{3,24})\1")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HEAD = re.compile(r"\b(?:def|func|function|fn|fun)\s+(?P<name>[^\W\d]\w{2,})\(")

#: Words that a language reserves or that everyone shares: nobody renames these.
FIXED = frozenset(
    re.findall(
        r"\w+",
        """
        abstract and any assert async await base begin bool boolean break byte case catch char
        class const constructor continue def default defer del delete dict double elif else end
        enum except export extends extern false False final finally float fmt fn for from fun func
        function global goto impl implements import include instanceof int interface is lambda let
        list long loop match mod module mut namespace new nil None nonlocal not null object or
        package pass print private protected pub public raise range readonly require return self
        set short static str string struct super switch template this throw throws trait true True
        try tuple type typedef typeof undefined union unsafe use using val var virtual void
        volatile when where while with yield
        """,
    )
)
_ADDED = ("new", "old", "raw", "base", "max", "min", "next", "last", "is", "all", "default")
_PARAMETERS = ("timeout", "strict", "options", "encoding", "limit", "verbose", "context", "depth")


def repeated_change(path: str, lines: list[str], rng: random.Random) -> FileChange | None:
    """A change of the same kind at two to eight places near each other, as hunks in the order a
    person makes them: mostly from the definition downwards. None where nothing suits."""
    at = rng.randrange(len(lines))
    near = range(max(0, at - _REACH), min(len(lines), at + _REACH))
    changed: dict[int, str] = {}
    if rng.random() < _ARGUMENTS:
        changed = _arguments_changed(path, lines, near, rng)
    changed = changed or _name_changed(lines, near, rng)
    if len(changed) < 2:
        return None
    places = sorted(changed)
    if rng.random() < 0.2:  # not at the first place: on from there, then around
        begin = rng.randrange(len(places))
        places = places[begin:] + places[:begin]
    joined = rng.random() < 0.5
    hunks: list[Hunk] = []
    for i, place in enumerate(places):
        if joined and i and places[i - 1] == place - 1:
            hunks[-1] = Hunk(hunks[-1].first, place + 1, (*hunks[-1].new, changed[place]))
        else:
            hunks.append(Hunk(place, place + 1, (changed[place],)))
    if len(hunks) < 2:
        return None
    new = [changed.get(i, line) for i, line in enumerate(lines)]
    return FileChange(path, lines, new, hunks)


# --- a name or a string -----------------------------------------------------------------------


def _name_changed(lines: list[str], near: range, rng: random.Random) -> dict[int, str]:
    """New lines by place."""
    found: dict[str, list[int]] = defaultdict(list)
    for i in near:
        if len(lines[i]) > _LONGEST:
            continue
        for word in {m[0] for m in _NAME.finditer(lines[i])} - FIXED:
            found[word].append(i)
        for quoted in {m["said"] for m in _QUOTED.finditer(lines[i])}:
            if not _NAME.fullmatch(quoted):
                found[quoted].append(i)
    usable = [word for word, places in found.items() if 2 <= len(places) <= _MOST]
    if not usable:
        return {}
    word = rng.choice(sorted(usable))
    new = new_name(word, sorted(found), rng)
    if new == word or new in found:
        return {}
    return {i: whole_name(word).sub(lambda _: new, lines[i]) for i in found[word]}


def new_name(word: str, others: list[str], rng: random.Random) -> str:
    """Another name in the same style: a part of it replaced, added or left out.

    Args:
        others: names that lend their parts.
    """
    parts = _PART.findall(word)
    lent = _PART.findall(rng.choice(others)) if others else []
    part = rng.choice([p for p in lent if len(p) > 1] or list(_ADDED))
    if not parts:
        return f"{word}_{part.lower()}"
    draw = rng.random()
    at = rng.randrange(len(parts))
    changed = list(parts)
    if draw < 0.45:
        changed[at] = _like(part, parts[at])
    elif draw < 0.60 and len(parts) > 1:
        del changed[at]
    elif draw < 0.80:
        changed = [_like(rng.choice((part, *_ADDED)), parts[0]), *_lowered(parts, word)]
    else:
        changed.append(_like(part, parts[-1] if len(parts) > 1 or word.isupper() else part.lower()))
    return _joined(changed, word)


def _lowered(parts: list[str], word: str) -> list[str]:
    """Parts that no longer begin the name."""
    return parts if "_" in word or word.islower() else [_capital(parts[0]), *parts[1:]]


def _like(part: str, model: str) -> str:
    """``part`` in the case of ``model``."""
    if model.isupper() and len(model) > 1:
        return part.upper()
    return _capital(part) if model[:1].isupper() else part.lower()


def _capital(part: str) -> str:
    return part[:1].upper() + part[1:].lower()


def _joined(parts: list[str], word: str) -> str:
    lead = "_" * (len(word) - len(word.lstrip("_")))
    for between in ("_", "-", " ", ".", "/", ":"):
        if between in word.strip("_"):
            return lead + between.join(parts)
    if word.strip("_").islower():
        return lead + "_".join(parts) if len(parts) > 1 else lead + parts[0]
    if word.isupper():
        return lead + "_".join(parts)
    return lead + "".join([_like(parts[0], word.strip("_")[:1]), *map(_capital, parts[1:])])


def indent_of(line: str) -> int:
    """Characters of white space that it begins with."""
    return len(line) - len(line.lstrip())


# --- a function and its calls -----------------------------------------------------------------


def _arguments_changed(
    path: str, lines: list[str], near: range, rng: random.Random
) -> dict[int, str]:
    """New lines by place: the head of a function and the calls near it, on one line each."""
    heads = [(i, m) for i in near for m in [_HEAD.search(lines[i])] if m]
    if not heads:
        return {}
    at, head = rng.choice(heads)
    calls = re.compile(rf"(?<!\w){re.escape(head['name'])}\(")
    reach = range(max(0, at - 2 * _REACH), min(len(lines), at + 2 * _REACH))
    spans = {i: span for i in reach if i != at for span in [_arguments(lines[i], calls)] if span}
    own = _arguments(lines[at], calls)
    if own is None or not 1 <= len(spans) <= _MOST:
        return {}
    if rng.random() < 0.3:
        return _last_taken(lines, {at: own, **spans})
    declared, given = _parameter(path, rng)
    changed = {i: _with_last(lines[i], span, given) for i, span in spans.items()}
    return {at: _with_last(lines[at], own, declared), **changed}


def _arguments(line: str, call: re.Pattern[str]) -> tuple[int, int] | None:
    """Where the arguments of the only call in the line begin and end; None where it has another
    number of calls or no end."""
    found = list(call.finditer(line))
    if len(found) != 1 or len(line) > _LONGEST:
        return None
    depth = 1
    for i in range(found[0].end(), len(line)):
        depth += (line[i] in "([{") - (line[i] in ")]}")
        if depth == 0:
            return found[0].end(), i
    return None


def _with_last(line: str, span: tuple[int, int], argument: str) -> str:
    begin, end = span
    comma = ", " if line[begin:end].strip() else ""
    return f"{line[:end]}{comma}{argument}{line[end:]}"


def _last_taken(lines: list[str], spans: dict[int, tuple[int, int]]) -> dict[int, str]:
    """The last argument left out everywhere; nothing where one has none, or not as many."""
    found = {i: _commas(lines[i], *span) for i, span in spans.items()}
    if any(len(commas) < 1 for commas in found.values()):
        return {}
    counts = sorted({len(commas) for commas in found.values()})
    if len(counts) > 2 or any(b - a > 1 for a, b in pairwise(counts)):  # a method's self counts
        return {}
    return {i: lines[i][: found[i][-1]] + lines[i][spans[i][1] :] for i in spans}


def _commas(line: str, begin: int, end: int) -> list[int]:
    """Commas between arguments."""
    depth, found = 0, []
    for i in range(begin, end):
        depth += (line[i] in "([{") - (line[i] in ")]}")
        if depth == 0 and line[i] == "," and line[i + 1 : end].strip():
            found.append(i)
    return found


def _parameter(path: str, rng: random.Random) -> tuple[str, str]:
    """A new parameter as declared and as given, by the language."""
    name = rng.choice(_PARAMETERS)
    suffix = PurePosixPath(path).suffix
    if suffix in (".py", ".pyi"):
        declared = rng.choice((name, f"{name}=None", f"{name}: int = 0", f"{name}: bool"))
        return declared, f"{name}={name}" if "=" in declared else name
    if suffix in (".ts", ".tsx", ".kt", ".rs"):
        types = {".rs": ("u32", "bool", "&str"), ".kt": ("Int", "Boolean", "String")}
        kind = rng.choice(types.get(suffix, ("number", "boolean", "string")))
        return f"{name}: {kind}", name
    if suffix == ".go":
        return f"{name} {rng.choice(('int', 'bool', 'string'))}", name
    return name, name
