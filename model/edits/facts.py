"""What can be told of a candidate without a model: what the gate weighs besides the confidence.

Computed once, where the answer is made, so that the language server, HTTP, replays and training
have the same. Pure; knows nothing of weights.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..records import Candidate, EditRequest, Facts
from ..text.lines import WITHIN
from ..text.names import places_of
from ..text.syntax import Syntax, count_errors, language_of, parse
from .begun import begins_body, lines_around
from .ghost_rules import line_after
from .replacement import Replacement
from .rules import at_margin, parsed

#: Characters on either side of the cursor that may be parsed, and of the place where no definition
#: begins within these: a part that is cut anywhere has errors, and recovering from them takes 1 ms
#: for 1,000 characters.
_FAR, _NEAR = 4_000, 500
_NAME = re.compile(r"[^\W\d]\w{2,}")
#: What is quoted or remarked, roughly: there, words are not names.
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


def with_facts(request: EditRequest, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates of one answer, each with what can be told of it."""
    if not candidates:
        return ()
    known = "\n".join(
        (request.text, *(one.text for one in request.related), *(one.diff for one in request.edits))
    )
    around = _around(request.text, *_touched(request, candidates))
    begun, (above, below) = None, (None, None)
    if request.task == "infill":
        begun = begins_body(request.text, request.cursor)
        above, below = lines_around(request.text, request.cursor)
    tree, undone = _tree(request, around), _undone(request)
    made = (_facts(request, each, candidates, known, around, tree) for each in candidates)
    return tuple(
        replace(
            each,
            facts=replace(
                facts,
                undone=_brings_back(each.text, undone),
                begun=begun,
                above=above,
                below=below,
            ),
        )
        for each, facts in zip(candidates, made, strict=True)
    )


def _facts(
    request: EditRequest,
    candidate: Candidate,
    all_: Sequence[Candidate],
    known: str,
    around: tuple[int, int],
    tree: Syntax | None,
) -> Facts:
    text, cursor = request.text, request.cursor
    edit = Replacement(text, candidate.start, candidate.end, candidate.text).least()
    quoted = tree is not None and _is_quoted(tree, cursor - around[0])
    prose = quoted and request.task == "infill"
    names = [] if prose else list(dict.fromkeys(_names(edit.new)))
    first, last = edit.lines
    line = text.count("\n", 0, cursor)
    others = [one.confidence.total for one in all_ if one is not candidate]
    return Facts(
        lines=edit.new.count("\n") + bool(edit.new.rpartition("\n")[2]),
        written=len(edit.new),
        removed=len(edit.old),
        away=max(0, first - line, line - last + 1),
        after=len(line_after(text, cursor).strip()),
        errors=_errors_added(edit, tree, around),
        names=len(names),
        unknown=sum(not any(True for _ in places_of(name, known)) for name in names),
        quoted=quoted,
        again=_is_there(edit),
        ahead=candidate.confidence.total - max(others) if others else None,
    )


# --- syntax ------------------------------------------------------------------------------------


def _touched(request: EditRequest, candidates: Sequence[Candidate]) -> tuple[int, int]:
    """From where to where the cursor and the candidates near it are."""
    low, high = request.cursor - _FAR, request.cursor + _FAR
    near = [each for each in candidates if low <= each.start and each.end <= high]
    starts, ends = (each.start for each in near), (each.end for each in near)
    return min((request.cursor, *starts)), max((request.cursor, *ends))


def _around(text: str, first: int, last: int) -> tuple[int, int]:
    """The lines of a text that are parsed, as indices [start, end): whole definitions around what
    is touched, or a few lines where these are long."""
    low = text.rfind("\n", 0, first) + 1
    while low > max(0, first - _FAR) and not at_margin(text, low):
        low = text.rfind("\n", 0, low - 1) + 1
    if low and not at_margin(text, low):
        low = text.rfind("\n", 0, max(0, first - _NEAR)) + 1
    high = _line_end(text, last)
    while high < min(len(text), last + _FAR) and not at_margin(text, high + 1):
        high = _line_end(text, high + 1)
    if high < len(text) and not at_margin(text, high + 1):
        high = _line_end(text, min(len(text), last + _NEAR))
    return low, high


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def _tree(request: EditRequest, around: tuple[int, int]) -> Syntax | None:
    part = request.text[slice(*around)]
    if len(part) > 8 * _FAR:  # one line of a megabyte
        return None
    by_path = language_of(request.path) or ""
    return parsed(part, request.language) or parsed(part, by_path)


def _errors_added(edit: Replacement, tree: Syntax | None, around: tuple[int, int]) -> int | None:
    """Negative where it mends some; None where that cannot be told."""
    low, high = around
    if tree is None or edit.start < low or edit.end > high:
        return None
    after = edit.text[low : edit.start] + edit.new + edit.text[edit.end : high]
    changed = parse(after, tree.language, tree)
    return None if changed is None else count_errors(changed) - count_errors(tree)


def _is_quoted(tree: Syntax, at: int) -> bool:
    """Is a place within a string or a comment?"""
    byte = tree.byte_of(at)
    node = tree.tree.root_node.descendant_for_byte_range(max(0, byte - 1), byte)
    for _ in range(3):
        if node is None:
            return False
        if ("comment" in node.type or "string" in node.type) and node.start_byte < byte:
            return node.end_byte > byte or "comment" in node.type
        node = node.parent
    return False


# --- names -------------------------------------------------------------------------------------


def _names(written: str) -> Iterator[str]:
    for found in _NAME.finditer(_PROSE.sub(" ", written)):
        if found[0] not in _WORDS:
            yield found[0]


def _undone(request: EditRequest) -> set[str]:
    """Names, in lower case, that an edit put in and a later one took out again, as it had been, and
    that are nowhere in the text."""
    gone, made = set[str](), list[tuple[set[str], set[str]]]()
    for edit in request.edits:
        old, new = _lines_of(edit.diff, "-"), _lines_of(edit.diff, "+")
        for before, after in made:
            taken, back = after & old, before & new
            if taken and (back or not (before or new)):
                gone |= _names_in(taken) - _names_in(back)
        gone -= _names_in(new - old)
        made.append((old, new))
    text = request.text.lower()
    return {name for name in gone if not any(True for _ in places_of(name, text))}


def _names_in(lines: Iterable[str]) -> set[str]:
    return _words(_PROSE.sub(" ", "\n".join(lines)))


def _brings_back(written: str, undone: set[str]) -> bool:
    """Does it write one of the names that were taken back, in whatever case?"""
    return bool(undone) and not undone.isdisjoint(_words(written))


def _words(written: str) -> set[str]:
    """All that may be a name, in lower case; what languages have, and words in strings, too."""
    return {found[0].lower() for found in _NAME.finditer(written) if found[0] not in _KEYWORDS}


def _lines_of(diff: str, sign: str) -> set[str]:
    return {line[1:].strip() for line in diff.split("\n") if line.startswith(sign)} - {""}


def _is_there(edit: Replacement) -> bool:
    """Does the file say somewhere already what would be written?"""
    written = edit.new.strip()
    return len(written) >= 8 and written in edit.text
