"""Features of candidates: the named numbers that the gate weighs.

The features that depend on the request are computed once, where the answer is made, and travel with
the candidate. A feature that is unknown is left out; the gate takes the mean for it.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..edits.edit import Edit
from ..edits.hunks import lines_of
from ..edits.syntax_errors import at_margin, tree_of
from ..records import Candidate, EditRequest, Task
from ..text.cursor import line_after, line_end
from ..text.lines import WITHIN
from ..text.names import places_of
from ..text.syntax import Syntax, count_errors, parse
from .blocks import begins_body, lines_around

if TYPE_CHECKING:
    from ..places.ranker import RankedPlace

Features = dict[str, float]

#: Of how the user types and accepts; the language server adds them.
_PACE = ("rested", "speed", "previous", "acceptance")

#: The features of each task, in the order of a head's weights.
FEATURES: dict[Task, tuple[str, ...]] = {
    "infill": (
        *("mean", "minimum", "first", "text", "line", "doubts", "tokens", "ended"),
        *("lines", "after", "begun", "above", "below", "errors", "unknown", "quoted", "again"),
        *_PACE,
    ),
    "next_edit": (
        *("text", "not_nothing", "repeat", "both", "removes", "errors", "undone"),
        *("chance", "left", "certain"),
        *_PACE,
    ),
}

#: Features of which a larger value can only speak for a candidate.
POSITIVE = frozenset(
    (
        *("mean", "minimum", "first", "text", "line", "not_nothing", "repeat", "both"),
        *("chance", "left"),
    )
)

_DOUBT = math.log(0.5)  # a token less likely than one half is a doubt
_LEAST = 1e-4  # of a probability whose logit is taken
_LEAST_CHANCE = 1e-3  # of a place, whose logarithm is taken

#: Characters on either side of the cursor that may be parsed, and of the place where no definition
#: begins within these: a part that is cut anywhere has errors, and recovering from them takes 1 ms
#: for 1,000 characters.
_FAR, _NEAR = 4_000, 500
_NAME = re.compile(r"[^\W\d]\w{2,}")
#: Strings and comments, roughly: words in them are no names.
_PROSE = re.compile(rf"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|{WITHIN}")
#: Names of languages that need no definition.
_OF_LANGUAGES = """
abstract any async await bool boolean break byte case catch char class console const constructor
continue default defer delete double dyn else enum export extends false final finally float for func
function get goto impl implements import instanceof int interface let log long loop match mod module
move mut namespace new nil null number object override package private protected pub public range
readonly ref return select self set short static str string struct super switch then this throw
throws trait true try type typeof undefined union unsafe unsigned use usize var void volatile where
while with yield append args cls format kwargs len make panic print printf println
Array Boolean Box Error Integer List Map None Object Option Promise Result Set Some String Vec
"""
_KEYWORDS = frozenset((*keyword.kwlist, *_OF_LANGUAGES.split()))
_WORDS = frozenset((*dir(builtins), *keyword.softkwlist, *_KEYWORDS))


def features_of(candidate: Candidate, pace: Mapping[str, float] | None = None) -> Features:
    """Return all features of a candidate: of confidence, request and the user's pace."""
    sure = candidate.confidence
    text = max(sure.total - (sure.place or 0.0), -60.0)  # the place of a next edit aside
    found = {
        "mean": _logit(sure.mean),
        "minimum": _logit(sure.minimum),
        "first": _logit(sure.first),
        "text": -math.sqrt(-min(text, 0.0)),
        "repeat": sure.repeat or 0.0,
        "both": float(candidate.source == "both"),
        "tokens": math.log1p(candidate.tokens),
        "ended": float(candidate.finish == "end"),
    }
    if sure.lines:
        found["line"] = -math.sqrt(-_within(sure.lines[0], -60.0, 0.0))
    if sure.nothing is not None:
        found["not_nothing"] = -max(sure.nothing, -12.0)
    if sure.logs:
        found["doubts"] = math.log1p(sum(log < _DOUBT for log in sure.logs))
    return {**found, **candidate.features, **(pace or {})}


def place_features(
    inside: Sequence[RankedPlace], in_file: Sequence[RankedPlace], *, is_certain: bool
) -> Features:
    """Return the features of a place where an edit is looked for.

    Args:
        inside: ranked places in the region that is asked about, the likeliest first.
        in_file: those in the whole file.
        is_certain: a rule leads there, such as a call that fits no longer, and not the ranker.
    """
    return {
        "chance": math.log(max(inside[0].chance if inside else 0.0, _LEAST_CHANCE)),
        "left": in_file[0].left_in_file if in_file else 0.0,
        "certain": float(is_certain),
    }


def with_features(request: EditRequest, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates of one answer with the features that depend on the request."""
    if not candidates:
        return ()
    text, cursor = request.text, request.cursor
    around = _around(text, *_touched(request, candidates))
    tree, undone = _tree(request, around), _undone(request)
    quoted = tree is not None and _is_quoted(tree, cursor - around[0])
    shared = {"after": math.log1p(len(line_after(text, cursor).strip())), "quoted": float(quoted)}
    if request.task == "infill":
        above, below = lines_around(text, cursor)
        shared["begun"] = float(begins_body(text, cursor))
        shared |= {"above": math.log1p(above), "below": math.log1p(below)}
    known = "\n".join(
        (text, *(one.text for one in request.related), *(one.diff for one in request.edits))
    )

    def own(candidate: Candidate) -> Features:
        edit = Edit(text, candidate.start, candidate.end, candidate.text).least()
        is_prose = quoted and request.task == "infill"
        names = set() if is_prose else set(_names(edit.new))
        unknown = sum(not _is_in(name, known) for name in names)
        found = {
            "lines": math.log1p(edit.new.count("\n") + bool(edit.new.rpartition("\n")[2])),
            "removes": math.log1p(len(edit.old)),
            "unknown": float(min(unknown, 3)),
            "again": float(_is_there(edit)),
            "undone": float(not undone.isdisjoint(_words(candidate.text))),
        }
        errors = _errors_added(edit, tree, around)
        if errors is not None:
            found["errors"] = _within(errors, -2.0, 2.0)
        return found

    return tuple(replace(each, features=shared | own(each)) for each in candidates)


def _logit(probability: float) -> float:
    kept = _within(probability, _LEAST, 1 - _LEAST)
    return math.log(kept / (1 - kept))


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


# --- syntax --------------------------------------------------------------------------------------


def _touched(request: EditRequest, candidates: Sequence[Candidate]) -> tuple[int, int]:
    """Return the range that holds the cursor and the candidates near it."""
    low, high = request.cursor - _FAR, request.cursor + _FAR
    near = [each for each in candidates if low <= each.start and each.end <= high]
    starts, ends = (each.start for each in near), (each.end for each in near)
    return min((request.cursor, *starts)), max((request.cursor, *ends))


def _around(text: str, first: int, last: int) -> tuple[int, int]:
    """Return the lines of a text that are parsed, as indices [start, end).

    They are whole definitions around what is touched, or a few lines where these are long.
    """
    low = text.rfind("\n", 0, first) + 1
    while low > max(0, first - _FAR) and not at_margin(text, low):
        low = text.rfind("\n", 0, low - 1) + 1
    if low and not at_margin(text, low):
        low = text.rfind("\n", 0, max(0, first - _NEAR)) + 1
    high = line_end(text, last)
    while high < min(len(text), last + _FAR) and not at_margin(text, high + 1):
        high = line_end(text, high + 1)
    if high < len(text) and not at_margin(text, high + 1):
        high = line_end(text, min(len(text), last + _NEAR))
    return low, high


def _tree(request: EditRequest, around: tuple[int, int]) -> Syntax | None:
    part = request.text[slice(*around)]
    if len(part) > 8 * _FAR:  # one line of a megabyte
        return None
    return tree_of(part, request.language, request.path)


def _errors_added(edit: Edit, tree: Syntax | None, around: tuple[int, int]) -> int | None:
    """Return how many syntax errors an edit adds, negative if it mends some; None if unknown."""
    low, high = around
    if tree is None or edit.start < low or edit.end > high:
        return None
    after = edit.text[low : edit.start] + edit.new + edit.text[edit.end : high]
    changed = parse(after, tree.language, tree)
    return None if changed is None else count_errors(changed) - count_errors(tree)


def _is_quoted(tree: Syntax, at: int) -> bool:
    """Return whether a place is within a string or a comment."""
    byte = tree.byte_of(at)
    node = tree.tree.root_node.descendant_for_byte_range(max(0, byte - 1), byte)
    for _ in range(3):
        if node is None:
            return False
        if ("comment" in node.type or "string" in node.type) and node.start_byte < byte:
            return node.end_byte > byte or "comment" in node.type
        node = node.parent
    return False


# --- names ---------------------------------------------------------------------------------------


def _names(written: str) -> Iterator[str]:
    for found in _NAME.finditer(_PROSE.sub(" ", written)):
        if found[0] not in _WORDS:
            yield found[0]


def _is_in(name: str, text: str) -> bool:
    return any(True for _ in places_of(name, text))


def _undone(request: EditRequest) -> set[str]:
    """Return names, in lower case, that an edit wrote and a later one replaced by what was before.

    Names that the text still holds are left out.
    """
    gone, made = set[str](), list[tuple[set[str], set[str]]]()
    for edit in request.edits:
        lines = lines_of(edit.diff)
        old, new = (
            {text.strip() for sign, text in lines if sign == which} - {""} for which in "-+"
        )
        for before, after in made:
            taken, back = after & old, before & new
            if taken and (back or not (before or new)):
                gone |= _names_in(taken) - _names_in(back)
        gone -= _names_in(new - old)
        made.append((old, new))
    text = request.text.lower()
    return {name for name in gone if not _is_in(name, text)}


def _names_in(lines: Iterable[str]) -> set[str]:
    return _words(_PROSE.sub(" ", "\n".join(lines)))


def _words(written: str) -> set[str]:
    """Return all words that may be names, in lower case, those in strings and builtins included."""
    return {found[0].lower() for found in _NAME.finditer(written) if found[0] not in _KEYWORDS}


def _is_there(edit: Edit) -> bool:
    """Return whether the file already holds the new text."""
    written = edit.new.strip()
    return len(written) >= 8 and written in edit.text
