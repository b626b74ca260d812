"""A call or a definition got an argument: other calls of the same name get it too.

From call to call the same text; from a definition to its calls, and into the calls its body makes,
the parameter's name, as a keyword where the definition gives it a default; from a call to the
definition the name that was given. It comes at its place among the others where their number tells
it, else behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .example import NAME, Example, Found, Pair, readable, words
from .items import TYPE_FIRST, indent, parted

_CALLEE = re.compile(r"([^\W\d]\w*)[!?]?\s*$")
_DEFINES = re.compile(
    r"\b(?:def|func|fn|fun|function)\b|^\s*(?:[\w<>\[\],.?]+\s+)*\w+\s*\([^()]*\)[^(){};]*\{\s*$"
)
_NOT_DEFINING = re.compile(r"^\s*(?:\}\s*)?(?:else\s+)?(?:if|for|while|switch|match|catch)\b")
_PARAMETER = re.compile(r"^\s*[*&]*(?:(?:const|final|mut)\s+)?([^\W\d]\w*)")
_RECEIVER = re.compile(r"^(?:&?(?:mut\s+)?self|cls|this)\b(?!\s*\.)")
_SCOPE = 60  # lines above a call that its function may have


@dataclass(frozen=True, slots=True)
class _Grown:
    """A name that takes an argument more."""

    name: str
    argument: str
    place: int  # among the arguments, the receiver aside
    count: int  # of them all, as before
    defines: bool  # whether it is a definition that grew
    pair: Pair

    @property
    def is_last(self) -> bool:
        return self.place == self.count


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    for pair in example.pairs:
        grown = _grown(pair)
        if grown is None:
            continue
        for at in readable(lines, first, last):
            for made, evidence, told in _also(grown, lines, at, example.language):
                yield Found(at, at + 1, (made,), pair.age, evidence, grown.name, told)


def is_misplaced(example: Example, old: str, new: str) -> bool:
    """Whether a line that is no definition would get a parameter as a definition declares it."""
    if declares(old):
        return False
    for pair in example.pairs:
        _, gone, come, _ = pair.entry
        argument = come.strip().strip(",").strip()
        if gone.strip() or not declares(pair.new) or not re.search(r"\W", argument):
            continue
        if new.count(argument) > old.count(argument) and "(" not in argument:
            return True
    return False


def declares(line: str) -> bool:
    return bool(_DEFINES.search(line)) and not _NOT_DEFINING.match(line)


def _grown(pair: Pair) -> _Grown | None:
    """Whose arguments grew, and by what."""
    before, old, new, after = pair.entry
    if old.strip() or not NAME.search(new) or new.count("(") != new.count(")"):
        return None
    opened = open_bracket(before)
    callee = _CALLEE.search(before[:opened]) if opened is not None else None
    if opened is None or callee is None or not _parts_off(before, new, after):
        return None
    argument = new.strip().strip(",").strip()
    end = closing_bracket(pair.new, opened)
    parts = parted(pair.new, opened + 1, len(pair.new) if end is None else end, ",")
    given = without_receiver([pair.new[slice(*part)].strip() for part in parts])
    place = given.index(argument) if argument in given else len(given) - 1
    if end is None and not after.strip():  # it goes on in the next line
        place = len(given) - 1
    return _Grown(callee[1], argument, place, len(given) - 1, declares(pair.new), pair)


def _parts_off(before: str, new: str, after: str) -> bool:
    """Whether what is new is parted from what stands beside it."""
    return (
        new.strip().startswith(",")
        or new.rstrip().endswith(",")
        or (after.lstrip().startswith(")") and before.rstrip()[-1:] in "(,")
    )


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


def without_receiver(given: list[str]) -> list[str]:
    """Parameters but for the one that no call names."""
    return given[1:] if given and _RECEIVER.match(given[0]) else given


def _also(
    grown: _Grown, lines: Sequence[str], at: int, language: str
) -> Iterator[tuple[str, int, bool]]:
    line = lines[at]
    if grown.name not in line or line == grown.pair.new:
        return
    for call in re.finditer(rf"(?<!\w){re.escape(grown.name)}[!?]?\(", line):
        end = closing_bracket(line, call.end() - 1)
        if end is None:
            continue
        inside = line[call.end() : end]
        for text in _forms(grown, declares(line), language):
            name = _first_name(text)
            if text in inside or name in NAME.findall(inside):
                continue
            if grown.defines and "=" not in text and _count(line, call.end(), end) != grown.count:
                continue  # it is given already, or others were left out
            made = _with(text, grown, line, call.end(), end)
            quoted = grown.argument[:1] in "\"'`"  # says something of its own
            in_scope = is_known(name, lines, at)
            told = in_scope or not grown.defines or declares(line)
            yield made, 0 if quoted else 1 + grown.is_last + in_scope, told


def _count(line: str, start: int, end: int) -> int:
    """How many arguments are given in ``line[start:end]``, the receiver aside."""
    if not line[start:end].strip():
        return 0
    return len(without_receiver([line[slice(*p)].strip() for p in parted(line, start, end, ",")]))


def _with(text: str, grown: _Grown, line: str, start: int, end: int) -> str:
    """``line`` with one more of the arguments in ``line[start:end]``."""
    inside = line[start:end]
    if not inside.strip():
        return line[:start] + text + line[end:]
    parts = parted(line, start, end, ",")
    given = [line[slice(*part)].strip() for part in parts]
    receiver = len(given) - len(without_receiver(given))
    place = grown.place + receiver
    if grown.is_last or len(given) - receiver != grown.count or "=" in text:
        return line[:start] + f"{inside.rstrip().rstrip(',')}, {text}" + line[end:]
    at = parts[place][0] + len(line[parts[place][0] :]) - len(line[parts[place][0] :].lstrip())
    return f"{line[:at]}{text}, {line[at:]}"


def _forms(grown: _Grown, to_definition: bool, language: str) -> tuple[str, ...]:
    """How an argument reads in another place."""
    if grown.defines == to_definition:
        return (grown.argument,)
    name = _name_of(grown.argument, language)
    if to_definition:
        return (name,)
    if language not in ("", "python"):
        return (name,)
    return (f"{name}={name}", name) if "=" in grown.argument else (name, f"{name}={name}")


def _name_of(argument: str, language: str) -> str:
    """What a parameter is called, or an argument."""
    if language in TYPE_FIRST:
        declared = words(argument.partition("=")[0])
        return declared[-1] if declared else argument
    return _first_name(argument)


def _first_name(argument: str) -> str:
    found = _PARAMETER.match(argument)
    return found[1] if found else argument


def is_known(name: str, lines: Sequence[str], at: int) -> bool:
    """Whether the name stands in the function around line ``at``, above it."""
    depth = indent(lines[at])
    for row in range(at - 1, max(-1, at - _SCOPE), -1):
        line = lines[row]
        if not line.strip():
            continue
        if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", line):
            return True
        depth = min(depth, indent(line))
        if declares(line) and indent(line) <= depth and indent(line) < indent(lines[at]):
            return False
    return False
