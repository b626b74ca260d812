"""Arguments that the user added at a call or dropped from a definition, to be carried on.

They are read from the lines of the recent edits. Where the same change fits all other calls word
for word, no model is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..records import RecentEdit
from ..text.lines import defines, is_comment
from .example import MOST_EDITS, pairs_of

_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`")
_CALLED = re.compile(r"([^\W\d]\w*)\s*\(")
_KEYWORD = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
_NAME = re.compile(r"[^\W\d]\w*")
_VARIABLE = re.compile(r"(?<![\w.])[^\W\d]\w*|(?<=\.\.)[^\W\d]\w*")
_PREFIXED = re.compile(r"[\w$]\"")  # a string such as f"…"
_CONSTANTS = frozenset(("True", "False", "None", "true", "false", "null", "nil", "undefined"))
_SELF = re.compile(r"&?(?:mut\s+)?(?:self|cls)\b")
#: Languages that write the type of a parameter before its name.
_TYPE_FIRST = frozenset(("java", "c", "cpp", "csharp"))


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """Argument that was added at calls of a function, or parameter dropped from its definition."""

    function: str
    line: str  # of the newest of the edits, as it is now
    index: int  # among the arguments
    text: str = ""  # of the argument that was added; "": one was dropped
    name: str = ""  # of its keyword, or of the parameter; "" for an argument by place
    times: int = 1  # how many of the edits made it

    @property
    def variables(self) -> frozenset[str]:
        """The names by which the argument depends on its place; none if it is made of literals.

        Pieces of an interpolated string count as names that nothing binds.
        """
        value = self.text[self.text.index("=") + 1 :] if self.name else self.text
        bare = _STRING.sub('""', value)
        if "`" in value or _PREFIXED.search(bare):
            return frozenset(("{",))
        return frozenset(_VARIABLE.findall(bare)) - _CONSTANTS

    @property
    def label(self) -> str:
        """The sentence that the user sees, without the number of places."""
        what = f"add `{self.text}` to" if self.text else f"drop `{self.name}` of"
        return f"{what} `{self.function}`"


def argument_changes(edits: Sequence[RecentEdit], path: str, language: str) -> list[ArgumentChange]:
    """Return the changes that edits of a file made, the newest first.

    Args:
        edits: oldest first.
        language: LSP id.
    """
    found: dict[tuple[str, int, str, str], ArgumentChange] = {}
    rows = dict[tuple[str, int, str, str], int]()  # of the newest edit that made the change
    for edit in reversed([each for each in edits if each.path == path][-MOST_EDITS:]):
        for old, new in pairs_of([edit]):
            for change in _changes(old, new, language):
                key = change.function, change.index, change.text, change.name
                known = found.get(key)
                if known is None:
                    found[key], rows[key] = change, edit.line
                elif known.line != change.line or rows[key] != edit.line:
                    found[key] = replace(known, times=known.times + 1)
    return list(found.values())


def _changes(old: str, new: str, language: str) -> Iterator[ArgumentChange]:
    """Yield the changes of one line that became another.

    The calls of a name are compared in their order; if their number changed, none is.
    """
    if is_comment(new, language):
        return
    earlier, later = (
        {name: [one for one in found if one[1] == name] for name in {one[1] for one in found}}
        for found in ([*_CALLED.finditer(_blank(line))] for line in (old, new))
    )
    both = (
        pair
        for name, calls in later.items()
        if len(calls) == len(earlier.get(name, ()))
        for pair in zip(earlier[name], calls, strict=True)
    )
    for before, match in sorted(both, key=lambda pair: pair[1].start()):
        name = match[1]
        had, has = _arguments(old, before.end()), _arguments(new, match.end())
        if had is None or has is None or abs(len(had) - len(has)) != 1:
            continue
        longer, shorter = (has, had) if len(has) > len(had) else (had, has)
        index = next((i for i, each in enumerate(shorter) if each != longer[i]), len(shorter))
        if longer[:index] + longer[index + 1 :] != shorter:
            continue
        text, is_definition = longer[index], defines(new, name)
        if is_definition and longer is had and not _SELF.match(text):
            by = int(bool(had) and _SELF.match(had[0]) is not None)
            yield ArgumentChange(name, new, index - by, name=_parameter(text, language))
        elif not is_definition and longer is has:
            label = _KEYWORD.match(text)
            yield ArgumentChange(name, new, index, text, label[1] if label else "")


def _blank(line: str) -> str:
    """Return a line with its strings blanked, as long as before."""
    return _STRING.sub(lambda match: "_" * len(match[0]), line)


def _arguments(line: str, opens: int) -> list[str] | None:
    """Return what stands between a bracket and its partner, cut at commas; None without one."""
    blank, depth, begin = _blank(line), 0, opens
    found: list[str] = []
    for at in range(opens, len(line)):
        char = blank[at]
        if char in "([{":
            depth += 1
        elif char in ")]}" and depth:
            depth -= 1
        elif (char == "," or char == ")") and not depth:
            found.append(line[begin:at].strip())
            begin = at + 1
            if char == ")":
                return found[:-1] if not found[-1] else found
    return None


def _parameter(text: str, language: str) -> str:
    names: list[str] = _NAME.findall(re.split(r"[:=?]", text, maxsplit=1)[0])
    if not names:
        return ""
    return names[-1] if language in _TYPE_FIRST else names[0]
