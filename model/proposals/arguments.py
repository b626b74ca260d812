"""A call or a definition got an argument: other calls of the same name get it too.

From call to call the same text; from a definition to its calls, and into the calls its body makes,
the parameter's name, as a keyword where the definition gives it a default; from a call to the
definition the name that was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .example import NAME, Example, Found, Pair

_CALLEE = re.compile(r"([^\W\d]\w*)[!?]?\s*$")
_DEFINES = re.compile(r"\b(?:def|func|fn|fun|function)\b|^\s*(?:async\s+)?\w+\s*\([^()]*\)\s*\{")
_PARAMETER = re.compile(r"^\s*[*&]*(?:(?:const|final|mut)\s+)?([^\W\d]\w*)")


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    for pair in example.pairs:
        grown = _grown(pair)
        if grown is None:
            continue
        name, argument, is_last = grown
        for at in range(first, last):
            for made, evidence in _also(name, argument, is_last, pair, lines[at]):
                yield Found(at, at + 1, (made,), pair.age, evidence)


def _grown(pair: Pair) -> tuple[str, str, bool] | None:
    """Whose arguments grew, by what, and whether behind all others."""
    before, old, new, after = pair.parts
    if old.strip() or not NAME.search(new) or new.count("(") != new.count(")"):
        return None
    opened = open_bracket(before)
    callee = _CALLEE.search(before[:opened]) if opened is not None else None
    if callee is None or not (
        new.strip().startswith(",") or new.rstrip().endswith(",") or after.lstrip().startswith(")")
    ):
        return None
    return callee[1], new.strip().strip(",").strip(), after.lstrip()[:1] in (")", "")


def open_bracket(text: str) -> int | None:
    """Where the innermost bracket that ``text`` leaves open stands; None unless it is "("."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] in ")]}":
            depth += 1
        elif text[at] in "([{":
            if depth == 0:
                return at if text[at] == "(" else None
            depth -= 1
    return None


def closing_bracket(text: str, at: int) -> int | None:
    """Where the bracket at ``at`` is closed again; None: not in this line."""
    depth = 0
    for place in range(at, len(text)):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
            if depth == 0:
                return place
    return None


def _also(
    name: str, argument: str, is_last: bool, pair: Pair, line: str
) -> Iterator[tuple[str, int]]:
    for call in re.finditer(rf"(?<!\w){re.escape(name)}[!?]?\(", line):
        end = closing_bracket(line, call.end() - 1)
        if end is None or line == pair.new:
            continue
        inside = line[call.end() : end]
        for text in _forms(argument, bool(_DEFINES.search(pair.new)), bool(_DEFINES.search(line))):
            if text in inside or _first_name(text) in NAME.findall(inside):
                continue
            joined = f"{inside.rstrip().rstrip(',')}, {text}" if inside.strip() else text
            yield line[: call.end()] + joined + line[end:], 1 + is_last


def _forms(argument: str, from_definition: bool, to_definition: bool) -> tuple[str, ...]:
    """How an argument reads in another place."""
    if from_definition == to_definition:
        return (argument,)
    name = _first_name(argument)
    if to_definition:
        return (name,)
    return (f"{name}={name}", name) if "=" in argument else (name, f"{name}={name}")


def _first_name(argument: str) -> str:
    found = _PARAMETER.match(argument)
    return found[1] if found else argument
