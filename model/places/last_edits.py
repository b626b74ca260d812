"""The last edits as the ranker of places reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TypeVar

from ..edits.edit import LineChange
from ..edits.hunks import line_changes, lines_of
from ..records import RecentEdit
from .line_facts import LineFacts, facts_of, names_defined, words_of

Token = TypeVar("Token", int, str)

MOST_CHANGES = 6
DECAY = 0.75  # what a change counts for each newer one
_COMPARED = 3  # newest changes whose lines are compared with all lines
_LINES_OF_NEWEST, _LINES_OF_OLDER = 4, 2  # of them, each side
_DEFINING = 3  # newest changes whose definitions count
_LINES_OF_FORM = 6  # of each side, compared by shape, first and last token and kind


@dataclass(frozen=True, slots=True)
class PlacedChange:
    """Change by a recent edit, at its place in the present text of its file."""

    path: str
    change: LineChange  # ``first`` is a line of the present text
    above: str  # the unchanged line right above, "" if there is none
    below: str


class LastEdits:
    """Words and lines that the last edits removed, added and kept.

    Args:
        edits: oldest first, as requests have them.
    """

    def __init__(self, edits: Sequence[RecentEdit]) -> None:
        self.changes = place_edits(edits)[:MOST_CHANGES]  # the newest first
        words = [_swap(each.change) for each in self.changes]
        self.newest: tuple[list[str], list[str], list[str]] = words[0] if words else ([], [], [])
        self.removed = _aged(removed for removed, _, _ in words)
        self.added = _aged(added for _, added, _ in words)

    @property
    def path(self) -> str:
        """The file of the newest change, "" without changes."""
        return self.changes[0].path if self.changes else ""

    def here(self, path: str) -> list[LineChange]:
        """Return the changes of a file, the newest first."""
        return [each.change for each in self.changes if each.path == path]

    def end(self, path: str) -> int | None:
        """Return the line where the newest change ended; None in another file than that."""
        if path != self.path or not self.changes:
            return None
        change = self.changes[0].change
        return change.first + max(0, len(change.new) - 1)

    @cached_property
    def defined(self) -> tuple[set[str], set[str]]:
        """The names that the newest changes defined, and those that they define no longer."""
        came, gone = set[str](), set[str]()
        for each in self.changes[:_DEFINING]:
            old, new = names_defined(each.change.old), names_defined(each.change.new)
            came |= new - old
            gone |= old - new
        return came, gone

    @cached_property
    def old_lines(self) -> list[list[LineFacts]]:
        """The first lines with words that each of the newest changes removed."""
        return [_telling(each.change.old, age) for age, each in self._compared]

    @cached_property
    def new_lines(self) -> list[list[LineFacts]]:
        """The first lines with words that each of the newest changes wrote."""
        return [_telling(each.change.new, age) for age, each in self._compared]

    @property
    def _compared(self) -> Iterator[tuple[int, PlacedChange]]:
        return islice(enumerate(self.changes), _COMPARED)

    @cached_property
    def uses(self) -> dict[int, float]:
        """Calls, keyword arguments and members in changed lines, with the weight of their age."""
        lines = (_lines_of_form(each.change, "old", "new") for each in self.changes)
        return _aged([use for each in facts for use in each.uses] for facts in lines)

    def tokens(self, column: str, *sides: str, most: int = _LINES_OF_FORM) -> dict[int, float]:
        """Return one column of the facts of changed lines, with the weight of their age."""
        lines = (_lines_of_form(each.change, *sides, most=most) for each in self.changes)
        return _aged([getattr(each, column) for each in facts] for facts in lines)

    @cached_property
    def brackets(self) -> int:
        """Brackets that the newest change opened, less those that it closed."""
        return self._grown(lambda lines: sum(facts_of(line).brackets for line in lines))

    @cached_property
    def indent(self) -> int:
        """Columns by which the newest change indented its last line."""
        if not self.changes or not (self.changes[0].change.old and self.changes[0].change.new):
            return 0
        return self._grown(lambda lines: facts_of(lines[-1]).indent)

    def _grown(self, measure: Callable[[tuple[str, ...]], int]) -> int:
        if not self.changes:
            return 0
        change = self.changes[0].change
        return measure(change.new) - measure(change.old)


def place_edits(edits: Sequence[RecentEdit]) -> list[PlacedChange]:
    """Return the changes of edits, oldest first, at their present places; the newest first."""
    found: list[PlacedChange] = []
    for edit in edits:
        lines = lines_of(edit.diff)
        text = [line for sign, line in lines if sign != "-"]
        for run in line_changes(lines):
            at = replace(run, first=edit.line + run.first)
            found = [_moved(each, edit.path, at) for each in found]
            above = text[run.first - 1] if run.first else ""
            below = text[run.end] if run.end < len(text) else ""
            found.append(PlacedChange(edit.path, at, above, below))
    return found[::-1]


def _moved(known: PlacedChange, path: str, later: LineChange) -> PlacedChange:
    """Return a change where a later one leaves it."""
    is_below = known.path == path and known.change.first >= later.first + len(later.old)
    if not is_below:
        return known
    first = known.change.first + len(later.new) - len(later.old)
    return replace(known, change=replace(known.change, first=first))


def _swap(change: LineChange) -> tuple[list[str], list[str], list[str]]:
    """Return the words that a change removes, adds and keeps."""
    old, new = words_of(change.old), words_of(change.new)
    removed, kept = [w for w in old if w not in new], [w for w in old if w in new]
    return removed, [w for w in new if w not in old], kept


def _aged(columns: Iterable[Iterable[Token]]) -> dict[Token, float]:
    """Return the items of changes, the newest first, with the weight of the newest that has it."""
    found: dict[Token, float] = {}
    for age, items in enumerate(columns):
        for item in items:
            found.setdefault(item, DECAY**age)
    return found


def _telling(lines: Sequence[str], age: int) -> list[LineFacts]:
    most = _LINES_OF_OLDER if age else _LINES_OF_NEWEST
    facts = map(facts_of, lines)
    return [*islice((each for each in facts if each.words), most)]


def _lines_of_form(change: LineChange, *sides: str, most: int = _LINES_OF_FORM) -> list[LineFacts]:
    """Return the facts of the first lines of a change, blank ones left out."""
    texts: Mapping[str, tuple[str, ...]] = {"old": change.old, "new": change.new}
    return [facts_of(line) for side in sides for line in texts[side][:most] if line.strip()]
