"""Chains: edits made out of a real file, of which each follows from those before it.

A name is chosen and everything that exists for it is cut out (:mod:`.cuts`): that is the file as it
was. Putting it back, the definition first, is a chain. Played backwards it removes the name. A
third kind renames: the real name is the new one, and a plausible old one is made up. The end of a
chain is a moment at which nothing is left to do.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from ..edits.edit import LineChange
from ..edits.hunks import apply_history, hunks_of, last_burst
from ..text.names import whole_name
from .commit_edits import FileChange, order_hunks
from .cuts import NAME, WORD, NamedFile, has_role, is_bound, spans_of, without
from .moments import TrainingMoment, begin_typing, cursor_in, cursor_near, end_of_edits

MOST_STEPS = 9
_NEAR = 12  # lines around a step in which the words that it writes have to stand
_OUT_OF_SIGHT = 30  # lines between the last edit and the next step: the cursor has moved there
_RENAMED, _REMOVED = 0.2, 0.06  # of all chains; of the others
_BY_PLACE = 0.25  # of chains go down from the definition, then up; the others as commits do
_TRIES = 12  # names of a file

_COMMON_NAMES = (
    "self cls this super args kwargs ctx err value values data result results name names key keys "
    "item items obj get set test tests len str int list dict string number main init Error "
    "Exception Ok Err Some None True False null true false void return import from export default "
    "class def function const let var public private static new"
)
_COMMON = frozenset(_COMMON_NAMES.split())
#: Words by which names are often replaced.
_ALIKE = (
    "get fetch load read|create make build new|remove delete drop clear|config cfg settings options"
    "|message msg text|error err failure|count num total size|index idx pos|current cur active"
    "|previous prev last|response resp reply|request req|parse decode|is has can should"
    "|path file filename|start begin first|end stop finish|max limit|min lower"
    "|user account owner|update change|send emit post|check validate verify|base initial"
    "|temp tmp|string str text|list items all|dir folder directory|handler callback hook"
    "|label title|token id|run execute process|params arguments|context scope|output out"
    "|input source src|type kind|line row|node elem element|url uri link|timeout delay wait"
    "|enabled active allowed"
)
_OTHERS = {
    word: [other for other in group.split() if other != word]
    for group in _ALIKE.split("|")
    for word in group.split()
}


@dataclass(frozen=True, slots=True)
class Chain:
    """Edits of one file for one name."""

    kind: Literal["added", "removed", "renamed"]
    name: str
    change: FileChange  # hunks in the order in which they are made
    foreseen: tuple[int, ...]  # hunks that follow from those before them


def chain_of(path: str, text: str, rng: random.Random) -> Chain | None:
    """Return a chain made out of a file; None where it has no name that suits."""
    file = NamedFile.of(path, text)
    if file is None:
        return None
    return (_renamed if rng.random() < _RENAMED else _added)(path, file, rng)


def moment_of(chain: Chain, step: int, typing: float, rng: random.Random) -> TrainingMoment:
    """Return the moment before a step, or the end of the chain for the step behind the last.

    Args:
        typing: share of steps whose first line is half typed already.
    """
    change = chain.change
    state, edits, hunk = apply_history(change.path, change.old, change.hunks, step)
    edits = tuple(map(last_burst, edits))
    here = end_of_edits(change.old, change.hunks[:step])
    assert here is not None, "a chain has steps before those it foresees"
    here = min(here[0], len(state) - 1), here[1]
    if step == len(change.hunks):
        return TrainingMoment("none", state, edits, None, here)
    if rng.random() < typing:
        begun = begin_typing(state, hunk, rng.randrange(1_000))
        if begun:
            return TrainingMoment("typing", begun[0], edits, *begun[1:])
    if abs(here[0] - hunk.first) > _OUT_OF_SIGHT or rng.random() < 0.15:
        here = cursor_in(state, cursor_near(hunk, None, len(state), rng), None, rng)
    return TrainingMoment("edit", state, edits, hunk, here)


# --- names that come or go --------------------------------------------------------------------


def _added(path: str, file: NamedFile, rng: random.Random) -> Chain | None:
    names = [n for n, leaves in sorted(file.leaves.items()) if _suits(n, leaves) and len(n) > 3]
    after = file.text.split("\n")
    for name in rng.sample(names, min(len(names), _TRIES)):
        leaves = file.leaves[name]
        spans = spans_of(file, name, rng) if any(map(has_role, leaves)) else None
        if not spans or not file.parses_without(spans):
            continue
        before = without(file.text, spans).split("\n")
        hunks = hunks_of(before, after)
        if not 2 <= len(hunks) <= MOST_STEPS or _is_left(name, before):
            continue
        if rng.random() < _BY_PLACE:
            row = _row(file, next((n for n in leaves if is_bound(n, 200)), leaves[0]))
            ordered = _from_row(hunks, row)
        else:
            ordered = order_hunks(hunks, before)
        change = FileChange(path, before, after, ordered)
        foreseen = _foreseen(change)
        if not foreseen:
            continue
        if rng.random() >= _REMOVED:
            return Chain("added", name, change, foreseen)
        gone = FileChange(path, after, before, _backwards(ordered))
        return Chain("removed", name, gone, tuple(range(1, len(hunks))))
    return None


def _suits(name: str, leaves: Sequence[object]) -> bool:
    return 2 <= len(leaves) <= 12 and name not in _COMMON


def _is_left(name: str, lines: list[str]) -> bool:
    """Return whether a name of several words is still in a comment or string."""
    has_words = "_" in name or re.search(r"[a-z][A-Z]", name) is not None
    return has_words and whole_name(name).search("\n".join(lines)) is not None


def _row(file: NamedFile, leaf: Node) -> int:
    return file.text.count("\n", 0, file.start(leaf))


def _from_row(hunks: list[LineChange], row: int) -> list[LineChange]:
    """Return the hunk that writes ``row`` of the new text, those below it, then those above it."""
    growth = 0
    for at, hunk in enumerate(hunks):
        growth += hunk.growth
        if hunk.last + growth > row:
            return [*hunks[at:], *reversed(hunks[:at])]
    return hunks


def _backwards(hunks: list[LineChange]) -> list[LineChange]:
    """Return the hunks that undo ``hunks``, in the same order."""
    growth = {hunk: sum(h.growth for h in hunks if h.first < hunk.first) for hunk in hunks}
    return [LineChange(hunk.first + growth[hunk], hunk.new, hunk.old) for hunk in hunks]


def _foreseen(change: FileChange) -> tuple[int, ...]:
    """Return the short hunks whose words stand in the hunks before them or in the lines around."""
    found, written = [], set[str]()
    for step, hunk in enumerate(change.hunks):
        new = [line.strip() for line in hunk.new if line.strip()]
        if step and len(new) <= 4 and len(hunk.old) <= 6 and sum(map(len, new)) <= 240:
            state, _, here = apply_history(change.path, change.old, change.hunks, step)
            around = state[max(0, here.first - _NEAR) : here.last + _NEAR]
            if _words_in(new) <= _words_in(around) | written:
                found.append(step)
        written |= _words_in([*hunk.new, *hunk.old])
    return tuple(found)


def _words_in(lines: Sequence[str]) -> set[str]:
    """Return the words of names, and numbers: deserialize and timeout of deserializeTimeout."""
    words = (word for line in lines for word in WORD.findall(line))
    return {word.lower() for word in words if len(word) > 2 or (len(word) > 1 and word.isdigit())}


# --- names that were others -------------------------------------------------------------------


def _renamed(path: str, file: NamedFile, rng: random.Random) -> Chain | None:
    names = [n for n, nodes in sorted(file.leaves.items()) if _suits(n, nodes) and n[:2] != "__"]
    for name in rng.sample(names, min(len(names), _TRIES)):
        leaves = file.leaves[name]
        bound = next((leaf for leaf in leaves if is_bound(leaf, 400)), None)
        if bound is None or any(map(_is_foreign, leaves)):
            continue
        old_name = _older_name(name, file, rng)
        if old_name is None:
            continue
        change = _renaming(path, file, name, old_name, rng)
        if not 2 <= len(change.hunks) <= MOST_STEPS:
            continue
        ordered = _from_row(change.hunks, _row(file, bound))
        change = FileChange(path, change.old, change.new, ordered)
        return Chain("renamed", name, change, tuple(range(1, len(ordered))))
    return None


def _is_foreign(leaf: Node) -> bool:
    """Return whether a name is imported or part of a string: its old name cannot be made up."""
    node: Node | None = leaf
    for _ in range(4):
        node = node.parent if node is not None else None
        if node is not None and re.search("import|use_|module_|string", node.type):
            return True
    return False


def _renaming(
    path: str, file: NamedFile, name: str, old_name: str, rng: random.Random
) -> FileChange:
    """Return the renaming line by line; in 4 of 10 files, lines that touch change together."""
    places = defaultdict(list)
    for leaf in file.leaves[name]:
        places[_row(file, leaf)].append(file.start(leaf))
    new = file.text.split("\n")
    old, hunks, is_joined = [*new], list[LineChange](), rng.random() < 0.4
    for row, starts in sorted(places.items()):
        begin = file.text.rfind("\n", 0, starts[0]) + 1
        for start in sorted(starts, reverse=True):
            line, at = old[row], start - begin
            old[row] = line[:at] + old_name + line[at + len(name) :]
        hunk = LineChange(row, (old[row],), (new[row],))
        if is_joined and hunks and hunks[-1].last == row:
            hunk = hunks.pop().then(hunk)
        hunks.append(hunk)
    return FileChange(path, old, new, hunks)


def _older_name(name: str, file: NamedFile, rng: random.Random) -> str | None:
    """Return what a name may have been before: a word replaced, left out, or in the plural."""
    words = WORD.findall(name)
    if "".join(words) != name.replace("_", ""):
        return None
    ways: list[list[str]] = []
    for i, word in enumerate(words):
        instead = [[_as(other, word)] for other in _OTHERS.get(word.lower(), ())]
        ways += [[*words[:i], *each, *words[i + 1 :]] for each in (*instead, [])]
    last = words[-1]
    if len(last) > 3:
        plural = last[:-1] if last.endswith("s") else last + ("S" if last.isupper() else "s")
        ways.append([*words[:-1], plural])
    rng.shuffle(ways)
    for way in ways:
        found = _joined(way, name)
        is_free = found not in file.leaves and found not in _COMMON
        if NAME.fullmatch(found) and is_free and not whole_name(found).search(file.text):
            return found
    return None


def _joined(words: list[str], like: str) -> str:
    """Return words as one name, in the style of the name ``like``."""
    if "_" in like:
        return "_" * like.startswith("_") + "_".join(words)
    found = "".join(words)
    first = found[:1].lower() if like[0].islower() else found[:1].upper()
    return first + found[1:]


def _as(word: str, like: str) -> str:
    """Return a word in the case of another."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word.capitalize() if like[0].isupper() else word
