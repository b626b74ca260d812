"""A commit typed anew: a stream as if somebody had made its edits by hand, one after the other.

Hunks come in the order a person would make them (``model/training/commits.py``): two to six as
history, then the one to foresee, which is typed up to a natural place in the middle of a line, left
there for a while, and finished. Nobody did this, so such streams say nothing about acceptance, and
their header says that they are simulated. Pure: commits in, entries out, seeded.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redraft.lsp.positions import units
from redraft.lsp.recording import format as entries
from redraft.lsp.recording.format import Entry
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import shift_of
from redraft.model.text.common import common_ends
from redraft.model.text.names import is_word
from redraft.model.training.commits import FileChange, changes_of

LEAST_HISTORY, MOST_HISTORY = 2, 6  # hunks before the one to foresee
#: A commit of more hunks is a rename or a formatter's, not an afternoon's editing.
MOST_HUNKS = 40
MOST_LINES = 12  # of the hunk to foresee

COMMIT = "Redraft.commit"  # the event that names the commit whose edits follow

_CHARACTER_MS = 90  # about 130 words per minute: bursts of a quick typist
_PAUSE_MS = (1_500, 5_000)  # between two hunks, and where a line is left: longer than an edit event
_APART_MS = 2 * 3_600_000  # between commits, so that none is in the history of another

#: What one change writes. A longer one would take more than a second, and end an edit event.
_WORD = re.compile(r"\w{1,8}|\s{1,20}|[^\w\s]")

# Where a line is left in the middle, and how often compared with each other.
_AFTER_OPENER, _AFTER_CLOSER, _AFTER_WORD, _WITHIN_WORD = 8.0, 3.0, 3.0, 0.2
_OPENERS, _CLOSERS = frozenset(",;:([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class TypingPlan:
    """A commit to be typed: hunks in order, the last of them the one to foresee."""

    repo: str
    commit: str
    time_s: int
    steps: tuple[tuple[FileChange, int], ...]  # a file's change, and which of its hunks
    seed: str


def plan_of(record: dict[str, Any], seed: int) -> TypingPlan | None:
    """How to type a commit ``{repo, commit, time, files: [{path, before, after}]}``; None where it
    has too few edits to make a history of, or too many."""
    commit = str(record["commit"])
    rng = random.Random(f"{seed}:{commit}")
    changes = changes_of(record, rng)
    steps = [(change, at) for change in changes for at in range(len(change.hunks))]
    if not LEAST_HISTORY < len(steps) <= MOST_HUNKS:
        return None
    history = min(rng.randint(LEAST_HISTORY, MOST_HISTORY), len(steps) - 1)
    change, at = steps[history]
    if len(change.hunks[at].new) > MOST_LINES:
        return None
    time_s = int(record.get("time") or 0)
    chosen = tuple(steps[: history + 1])
    return TypingPlan(
        str(record.get("repo", "")), commit, time_s, chosen, f"{seed}:{commit}:typing"
    )


@dataclass(slots=True)
class _Page:
    """A document being typed."""

    id: int
    lines: list[str]
    version: int = 1
    _line: int = 0  # counted to last; nothing above it changes
    _start: int = 0  # its offset

    def offset(self, line: int, column: int = 0) -> int:
        """In UTF-16 code units. What changes next must not lie above ``line``."""
        while self._line < line:
            self._start += units(self.lines[self._line]) + 1
            self._line += 1
        while self._line > line:
            self._line -= 1
            self._start -= units(self.lines[self._line]) + 1
        return self._start + (units(self.lines[line][:column]) if column else 0)


@dataclass(slots=True)
class Simulation:
    """Types commits into one stream."""

    time_ms: int = 0
    _pages: dict[str, int] = field(default_factory=dict)  # ids by path
    _written: list[Entry] = field(default_factory=list)

    def type(self, plan: TypingPlan) -> list[Entry]:
        """The entries for a commit."""
        self._written = []
        self.time_ms = max(self.time_ms + _APART_MS, 1000 * plan.time_s)
        rng = random.Random(plan.seed)
        pages = self._open(plan.steps)
        told = {"sourceId": COMMIT, "repo": plan.repo, "commit": plan.commit}
        self.note(entries.event(told, self.time_ms))
        for number, (change, at) in enumerate(plan.steps, 1):
            hunk = change.hunks[at]
            moved = replace(hunk, first=hunk.first + shift_of(change.hunks[:at], hunk))
            typist = _Typist(self, pages[change.path], rng, rests=number == len(plan.steps))
            typist.type(moved)
            self.pause(rng)
        self.note(*(entries.closed(page.id, self.time_ms) for page in pages.values()))
        return self._written

    def _open(self, steps: Sequence[tuple[FileChange, int]]) -> dict[str, _Page]:
        pages: dict[str, _Page] = {}
        for path, old in {change.path: change.old for change, _ in steps}.items():
            id_ = self._pages.setdefault(path, len(self._pages))
            pages[path] = _Page(id_, list(old))
            self.note(
                entries.encountered(id_, path, self.time_ms),
                entries.set_content(id_, 1, "\n".join(old), self.time_ms),
                entries.opened(id_, self.time_ms),
            )
        return pages

    def pause(self, rng: random.Random) -> None:
        self.time_ms += rng.randint(*_PAUSE_MS)

    def note(self, *lines: Entry) -> None:
        self._written += lines


@dataclass(slots=True)
class _Typist:
    """Makes one hunk, word by word."""

    simulation: Simulation
    page: _Page
    rng: random.Random
    rests: bool  # leaves a line in the middle, and comes back to it

    def type(self, hunk: LineChange) -> None:
        """Lines that give way to others are changed in place, the rest come or go as a whole."""
        self._go_to(min(hunk.first, len(self.page.lines) - 1))
        gone = hunk.last - hunk.first
        both = min(gone, len(hunk.new))
        for at in range(both):
            self._change_line(hunk.first + at, hunk.new[at])
        if gone > both:
            self._delete(hunk.first + both, hunk.last)
        elif hunk.new[both:]:
            self._insert(hunk.first + both, hunk.new[both:])

    def _go_to(self, line: int) -> None:
        at = self.page.offset(line)
        self.simulation.note(
            entries.focused(self.page.id, self.simulation.time_ms),
            entries.selection_changed(self.page.id, [(at, at)], self.simulation.time_ms),
        )

    def _change_line(self, line: int, new: str) -> None:
        old = self.page.lines[line]
        head, tail = common_ends(old, new)
        if old == new:
            return
        if len(old) - head - tail:
            self._replace(line, head, len(old) - tail, "")
        self._write(line, head, new[head : len(new) - tail])

    def _delete(self, first: int, last: int) -> None:
        page = self.page
        if last < len(page.lines):
            start, end = page.offset(first), page.offset(last)
        else:  # the last lines go with the line end before them
            start = page.offset(first) - (1 if first else 0)
            end = page.offset(last - 1, len(page.lines[last - 1]))
        page.offset(max(0, first - 1))
        del page.lines[first:last]
        page.lines = page.lines or [""]
        self._changed(start, end, "")

    def _insert(self, first: int, new: Sequence[str]) -> None:
        """Each line is opened, then typed."""
        for at, line in enumerate(new, first):
            indent = len(line) - len(line.lstrip())
            if at:
                end = self.page.offset(at - 1, len(self.page.lines[at - 1]))
                self.page.lines.insert(at, line[:indent])
                self._changed(end, end, "\n" + line[:indent])
            else:
                self.page.offset(0)
                self.page.lines.insert(0, line[:indent])
                self._changed(0, 0, line[:indent] + "\n")
            self._write(at, indent, line[indent:])

    def _write(self, line: int, column: int, text: str) -> None:
        """Type a text within a line, a word at a time, with a rest where it is cut."""
        cut = self._place_to_rest(text)
        for word in _words(text, cut):
            self._replace(line, column, column, word)
            column += len(word)
            cut -= len(word)
            if cut == 0:
                self.simulation.pause(self.rng)

    def _place_to_rest(self, text: str) -> int:
        """How much of the first line that is long enough is typed before a rest; -1: no rest."""
        places, weights = natural_cuts(text)
        if not self.rests or len(text.strip()) < 3 or not places:
            return -1
        self.rests = False
        return self.rng.choices(places, weights)[0]

    def _replace(self, line: int, start: int, end: int, text: str) -> None:
        old = self.page.lines[line]
        begin, stop = self.page.offset(line, start), self.page.offset(line, end)
        self.page.lines[line] = old[:start] + text + old[end:]
        self._changed(begin, stop, text)

    def _changed(self, start: int, end: int, text: str) -> None:
        page, simulation = self.page, self.simulation
        page.version += 1
        typed = max(1, len(text.strip()))
        simulation.time_ms += round(_CHARACTER_MS * typed * self.rng.uniform(0.6, 1.2))
        at = start + units(text)
        edit = (start, end, text)
        simulation.note(
            entries.changed(page.id, page.version, [edit], "user", simulation.time_ms),
            entries.selection_changed(page.id, [(at, at)], simulation.time_ms),
        )


def natural_cuts(text: str) -> tuple[list[int], list[float]]:
    """Where typing may come to rest within ``text``, something visible before and behind, and how
    likely each place is: mostly after ``, ; : ( [ {``, then after closing brackets and at the end
    of names, rarely within a word."""
    places, weights = [], []
    for at in range(1, len(text)):
        if not text[:at].strip() or not text[at:].strip():
            continue
        weight = _weight(text[at - 1], text[at])
        if weight:
            places.append(at)
            weights.append(weight)
    return places, weights


def _weight(before: str, after: str) -> float:
    if before in _OPENERS:
        return _AFTER_OPENER
    if before in _CLOSERS:
        return _AFTER_CLOSER
    if is_word(before):
        return _WITHIN_WORD if is_word(after) else _AFTER_WORD
    return 0.0


def _words(text: str, cut: int) -> Iterator[str]:
    """The words of a text; none goes across the cut."""
    parts = (text,) if cut <= 0 else (text[:cut], text[cut:])
    for part in parts:
        yield from _WORD.findall(part)
