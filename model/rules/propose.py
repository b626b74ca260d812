"""Edits by rule: those that could follow from recent edits, each with its chance.

The model scores them beside the edits that it writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ..edits.origins import find_swap
from ..edits.syntax_errors import count_added_errors
from ..records import EditRequest
from ..text.code_queries import prose_rows
from ..text.common import find_changed_part
from ..text.lines import defines, defines_function
from ..text.scopes import LANGUAGES, Bindings
from ..text.syntax import language_of, parse_cached
from .alike.restyle import find_restyles
from .diagnostics import find_fixes
from .imports import find_imports
from .renames import RenameScopes, namesake
from .repeats import MOST_LINES, find_repeats
from .rule_edits import NAME, Pair, RuleEdit, lines_written, pairs_of
from .series import new_arguments
from .touched_names import call_changes
from .unused_imports import find_unused

#: Edits less likely than this are not worth the model's time.
LEAST_CHANCE = 0.03
#: So many proposals, the likeliest, must add no syntax errors: at 4,000 moments of training commits
#: 174 proposals added some, of which 1 was right. Later ones are hardly ever used.
MOST_CHECKED = 16
#: Functions that are never asynchronous, and a function that is named as a keyword.
_NEVER_ASYNC = re.compile(r"\b__init__\b|\bconstructor\s*\(|\b[gs]et\s+\w+\s*\(")
_ITSELF = re.compile(r"\s*(?:(?:export|const|let|var|static|final) )*([\w.]+) :?= \1;?\s*$")
_AWAIT_DEFINED = re.compile(r"\b(?:def|function|fn)\s+await\b")


def propose(
    request: EditRequest, region: tuple[int, int], most: int | None = None
) -> list[RuleEdit]:
    """Return the edits that could follow in a region, the likeliest first.

    Args:
        request: of a document. Without its path the scopes of renames are not known.
        region: the 0-based lines [first, last) that may change.
        most: the number of edits wanted; None: all. The syntax of later ones is not checked.
    """
    return list(islice(without_errors(request, rank_edits(request, region)), most))


def rank_edits(request: EditRequest, region: tuple[int, int]) -> list[RuleEdit]:
    """Return the edits of :func:`propose` before their syntax is checked."""
    text, lines, edits = request.text, request.text.split("\n"), request.edits
    language = request.language or language_of(request.path) or ""
    first, last = region[0], min(region[1], region[0] + MOST_LINES)
    cursor = text.count("\n", 0, request.cursor)
    scopes = RenameScopes(edits, text, request.path, language) if request.path else None
    pairs = pairs_of(edits)
    found: list[RuleEdit] = [
        *find_repeats(edits, lines, first, last, cursor, scopes),
        *find_imports(
            text,
            language,
            lines_written(edits),
            request.importable,
            [each.text for each in request.related if not each.is_above],
            request.text_above,
        ),
        *find_unused(text, language, request.path, edits),
        *find_fixes(request.diagnostics, pairs, lines),
        *(find_restyles(edits, request.path, text) if request.path else ()),
        *(new_arguments(edits, request.path, text, language) if request.path else ()),
    ]
    likeliest = dict[tuple[int, int, tuple[str, ...]], RuleEdit]()
    for one in found:
        inside = first <= one.first and one.last <= last
        known = likeliest.get(one.key)
        if inside and (known is None or known.chance < one.chance):
            likeliest[one.key] = one
    kept = [one for one in likeliest.values() if not _is_misplaced(one, pairs, lines)]
    if scopes is not None:
        kept = [
            one
            for one in kept
            if not scopes.find_leaked(one.in_text(text))
            and not namesake(one.in_text(text), edits, request.path)
        ]
    steps = _in_order_of_chains(kept, lines, cursor, prose_rows(text, language) if kept else set())
    steps = [one for one in steps if one.chance >= LEAST_CHANCE]
    steps.sort(key=lambda one: (-one.chance, one.first))
    return steps


def without_errors(request: EditRequest, ranked: Iterable[RuleEdit]) -> Iterator[RuleEdit]:
    """Yield the edits that add no syntax errors and nothing that the place cannot have.

    That is a variable of another function, or an ``await`` of a function that is not asynchronous.
    Each is checked when it is asked for.
    """
    language = request.language or language_of(request.path) or ""
    given = {name for each in call_changes(request.edits) if each.is_defined for name in each.added}
    for at, one in enumerate(ranked):
        if at >= MOST_CHECKED or not (
            count_added_errors(one.in_text(request.text), "", language)
            or _uses_foreign_local(one, request.text, language, given)
            or _awaits_sync(one, request.text)
        ):
            yield one


_AWAITED = re.compile(r"\bawait\s+([^\W\d]\w*)\s*\(")


def _awaits_sync(one: RuleEdit, text: str) -> bool:
    """Return whether an edit awaits a function that the text defines as one that is not async."""
    for name in _AWAITED.findall("\n".join(one.lines)):
        head = re.search(rf"(\basync\s+)?\b(?:def|function)\s+{name}\s*[(<]", text)
        if head is not None and not head[1]:
            return True
    return False


def place_key(line: str, name: str, at: int, cursor: int) -> tuple[bool, bool, int]:
    """Return the sort key of a place to which a change of ``name`` is to be carried.

    The definition comes first, then the places from the cursor downwards, then those above.

    Args:
        line: as it stands there, in line ``at``.
        cursor: the line from which the user goes on; all 0-based.
    """
    return not (name and defines(line, name)), at < cursor, abs(at - cursor)


def _in_order_of_chains(
    found: Sequence[RuleEdit], lines: Sequence[str], cursor: int, prose: set[int]
) -> list[RuleEdit]:
    """Return the edits with the highest chance of each chain given to its first step.

    A chain replaces the same words in several lines. Lines of code come before those of ``prose``.
    """
    ordered = list(found)
    chains: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for at, one in enumerate(found):
        if one.last - one.first == len(one.lines):
            changed = zip(lines[one.first : one.last], one.lines, strict=True)
            words = dict.fromkeys(pair for line in changed for pair in find_swap(*line))
            chains.setdefault(tuple(words), []).append(at)
    for pairs, chain in chains.items():
        if not pairs or not all(old and new for old, new in pairs):
            continue  # insertions and deletions depend on the text around them
        keys = {
            at: min(
                (row in prose, *place_key(lines[row], pairs[0][0], row, cursor))
                for row in range(found[at].first, found[at].last)
            )
            for at in chain
        }
        chances = sorted((found[at].chance for at in chain), reverse=True)
        in_order = sorted(chain, key=lambda at: (keys[at], -found[at].chance))
        for at, chance in zip(in_order, chances, strict=True):
            ordered[at] = replace(found[at], chance=chance)
    return ordered


# --- edits that cannot stand where they are -----------------------------------------------------


def _is_misplaced(one: RuleEdit, pairs: Sequence[Pair], lines: Sequence[str]) -> bool:
    """Return whether an edit puts something into a line that cannot stand there.

    That is a declared parameter in a call, ``async`` before a function that cannot be
    asynchronous, ``await`` in place of a function's name, or a name that is set to itself: the
    value of a constant became its name elsewhere.
    """
    changed = zip(lines[one.first : one.last], one.lines, strict=False)
    return one.last - one.first == len(one.lines) and any(
        _declares_in_call(pairs, old, new) or _breaks_async(old, new) or _ITSELF.match(new)
        for old, new in changed
        if old != new
    )


def _uses_foreign_local(one: RuleEdit, text: str, language: str, given: set[str]) -> bool:
    """Return whether an edit brings the variable of a function to a place where nothing binds it.

    Args:
        given: names that became parameters lately.
    """
    was, new = "\n".join(text.split("\n")[one.first : one.last]), "\n".join(one.lines)
    names = {*NAME.findall(new)} - {*NAME.findall(was)}
    syntax = (
        parse_cached(one.in_text(text).result, language)
        if names and language in LANGUAGES
        else None
    )
    if syntax is None:
        return False
    rows = range(one.first, one.first + len(one.lines))
    for name in names:
        places = Bindings(syntax, name).occurrences
        is_local = name in given or any(each.role == "binding" for each in places)
        free = (each for each in places if each.scope is None and each.role == "use")
        if is_local and any(each.line in rows for each in free):
            return True
    return False


def _declares_in_call(pairs: Sequence[Pair], old: str, new: str) -> bool:
    if defines_function(old):
        return False
    for before, after in pairs:
        argument = _inserted(before, after).strip().strip(",").strip()
        if not defines_function(after) or not re.search(r"\W", argument):
            continue
        if new.count(argument) > old.count(argument) and "(" not in argument:
            return True
    return False


def _inserted(old: str, new: str) -> str:
    """Return what a line got more; "" if something else went.

    Text put into a list begins behind a bracket, a comma or a bar if it may: of ``f(int a)`` and
    ``f(int b, int a)`` it is ``int b, `` and not ``b, int ``.
    """
    head, removed, text = find_changed_part(old, new)
    if removed.strip():
        return ""
    before = new[:head]
    for by in range(len(text)):
        end = text[len(text) - by :]
        is_shifted = before.endswith(end)
        if is_shifted and before[: head - by].rstrip()[-1:] in ("(", ",", "[", "{", "|"):
            return end + text[: len(text) - by]
    return text


def _breaks_async(old: str, new: str) -> bool:
    if "await" in new and _AWAIT_DEFINED.search(new):
        return True
    return "async" in new and "async" not in old and _NEVER_ASYNC.search(new) is not None
