"""Moments of commits for the ranker of places: some changes are made, others are left.

Files of a commit are edited one after the other, hunks in a likely order. 35 % of the hunks are
made in two steps, because people write so: in recorded sessions 39 % of next edits lie within two
lines of the last one, in commits a line changes once. A ranker trained on whole hunks never looks
there.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...edits.edit import LineChange
from ...edits.hunks import last_burst, merge_edits, recent_edit
from ...places.line_facts import WORD
from ...records import RecentEdit
from ...text.common import common_ends
from ...text.syntax import language_of
from ..commit_edits import MAX_LINES, FileChange, changes_of, order_hunks

_LATE = 0.2  # share of second steps that come after another change
SHOWN_EDITS = 5  # that the language server keeps
Span = tuple[int, int]  # lines [first, last) of the present text; empty: an insertion


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open file, and what is left to change in it."""

    path: str
    language: str
    lines: list[str]
    left: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class PlaceMoment:
    """Moment after an edit."""

    repo: str
    group: str  # commit or pull request
    file: OpenFile  # of the last edit
    others: tuple[OpenFile, ...]
    edits: tuple[RecentEdit, ...]  # oldest first, as a request has them
    next: Span | None  # the very next change, in this file; None: it is elsewhere, or none is left


@dataclass(frozen=True, slots=True)
class MomentMix:
    """Shares of what moments show.

    Args:
        shuffled: share of files whose hunks come in random order.
        two_steps: share of hunks made in two steps.
        per_file, per_commit: moments at most.
        after_last: share of files that end with the moment after their last change.
    """

    shuffled: float = 0.25
    two_steps: float = 0.35
    per_file: int = 2
    per_commit: int = 3
    after_last: float = 0.35


#: Hunks whole and in their likely order, as held-out commits are measured.
WHOLE = MomentMix(shuffled=0.0, two_steps=0.0, per_file=3, per_commit=8, after_last=1.0)


@dataclass(frozen=True, slots=True)
class Step:
    """A change that is still to come, in lines of the present text."""

    change: LineChange
    rest: LineChange | None = None  # what follows, in lines of the text once the change is made
    is_late: bool = False  # the rest follows after one other change

    def shift(self, by: int) -> Step:
        """Return the step some lines further down."""
        first = self.change.first + by
        rest = None if self.rest is None else replace(self.rest, first=self.rest.first + by)
        return replace(self, change=replace(self.change, first=first), rest=rest)


class EditedFile:
    """A file with the changes that are still to come.

    Args:
        lines: before all changes.
        coming: in the order in which they are made.
    """

    def __init__(
        self, path: str, language: str, lines: Sequence[str], coming: Sequence[Step]
    ) -> None:
        self.path, self.language, self.lines = path, language, list(lines)
        self.coming = list(coming)

    def make_next(self) -> RecentEdit:
        """Make the next change and return it as an edit."""
        step = self.coming.pop(0)
        change = step.change
        edit = make(self.path, self.lines, change)
        growth = len(change.new) - len(change.old)
        self.coming = [
            each.shift(growth) if each.change.first >= change.last else each for each in self.coming
        ]
        if step.rest is not None:
            self.coming.insert(int(step.is_late), Step(step.rest))
        return edit

    def state(self) -> OpenFile:
        """Return the file as it is now."""
        left = tuple((each.change.first, each.change.last) for each in self.coming)
        return OpenFile(self.path, self.language, list(self.lines), left)


def make(path: str, lines: list[str], change: LineChange) -> RecentEdit:
    """Change the lines of a file, and return that as an edit."""
    edit = recent_edit(path, lines, change.first, change.last, change.new)
    lines[change.first : change.last] = change.new
    return edit


def moments_of(
    record: dict[str, Any],
    others: Sequence[OpenFile],
    mix: MomentMix,
    rng: random.Random,
) -> list[PlaceMoment]:
    """Return moments of a commit ``{repo, commit, files: [{path, before, after}]}``.

    Args:
        others: other open files, in which nothing is left to do.
    """
    waiting = files_of_commit(record, mix, rng)
    touched = {each.path for each in waiting}
    idle = [each for each in others if each.path not in touched]
    history, done, found = list[RecentEdit](), list[OpenFile](), list[PlaceMoment]()
    repo, group = record["repo"], f"{record['repo']}@{record['commit'][:10]}"
    while waiting:
        file = waiting.pop(0)
        steps = sum(1 + (each.rest is not None) for each in file.coming)
        wanted = _wanted(steps, mix, rng)
        rest = tuple(each.state() for each in waiting)
        for step in range(1, steps + 1):
            history = [*history[-SHOWN_EDITS:], file.make_next()]
            if step in wanted:
                now = file.state()
                following = now.left[0] if now.left else None
                edits = merge_history(history)
                open_files = (*rest, *done, *idle)
                found.append(PlaceMoment(repo, group, now, open_files, edits, following))
        done.append(file.state())
    return rng.sample(found, mix.per_commit) if len(found) > mix.per_commit else found


def files_of_commit(record: dict[str, Any], mix: MomentMix, rng: random.Random) -> list[EditedFile]:
    """Return the files that a commit changes, in the order in which they are edited."""
    return [_edited(each, mix, rng) for each in changes_of(record, rng)]


def merge_history(history: Sequence[RecentEdit]) -> tuple[RecentEdit, ...]:
    """Return edits, oldest first, as the language server shows them to a model."""
    return merge_edits(last_burst(each) for each in history[-SHOWN_EDITS:])


def with_open_files(
    records: Iterable[dict[str, Any]], choose: Callable[[dict[str, Any]], bool], most: int = 3
) -> Iterator[tuple[dict[str, Any], list[OpenFile]]]:
    """Yield chosen commits with the files that the commits before edited, as they left them.

    Args:
        records: of one repository after the other, in order.
        most: files, for one commit.
    """
    recent: dict[str, deque[tuple[str, str]]] = {}
    for record in records:
        known = recent.setdefault(record["repo"], deque(maxlen=8))
        if choose(record):
            texts: dict[str, str] = {}
            for path, text in reversed(known):
                texts.setdefault(path, text)
            newest = [*texts.items()][:most]
            yield (
                record,
                [
                    OpenFile(
                        path, language_of(path) or "", text.replace("\r\n", "\n").split("\n"), ()
                    )
                    for path, text in newest
                ],
            )
        for file in record["files"]:
            if file["after"] and file["after"].count("\n") < MAX_LINES:
                known.append((file["path"], file["after"]))


# --- the order and the steps of changes -------------------------------------------------------


def _wanted(steps: int, mix: MomentMix, rng: random.Random) -> set[int]:
    """Return after which of so many steps there is a moment."""
    before_last = range(1, steps)
    wanted = set(rng.sample(before_last, min(mix.per_file, len(before_last))))
    return wanted | {steps} if rng.random() < mix.after_last else wanted


def _edited(change: FileChange, mix: MomentMix, rng: random.Random) -> EditedFile:
    """Return a file before its changes."""
    hunks = order_hunks(change.hunks, change.old)
    if rng.random() < mix.shuffled:
        hunks = rng.sample(change.hunks, len(change.hunks))
    coming = [in_steps(hunk, rng) if rng.random() < mix.two_steps else Step(hunk) for hunk in hunks]
    return EditedFile(change.path, language_of(change.path) or "", change.old, coming)


def in_steps(hunk: LineChange, rng: random.Random) -> Step:
    """Return a hunk in two steps: its first lines, or a line of it in part; in one if too small."""
    old, new = hunk.old, hunk.new
    is_late = rng.random() < _LATE
    if len(new) > 1 and rng.random() < 0.6:
        at = rng.randrange(1, len(new))
        kept = old[at:] if len(old) == len(new) else ()  # lines changed in place
        made = replace(hunk, old=old[: len(old) - len(kept)], new=new[:at])
        return Step(made, LineChange(hunk.first + at, kept, new[at:]), is_late)
    if not new:
        return Step(hunk)
    at = len(new) - 1 if rng.random() < 0.7 else rng.randrange(len(new))
    written, was = new[at], old[at] if at < len(old) else ""
    head, tail = common_ends(written, was)
    stop = len(written) - tail
    words = [match.end() for match in WORD.finditer(written, head, stop) if match.end() < stop]
    if not words:
        return Step(hunk)
    line = written[: rng.choice(words)] + (written[stop:] if was else "")
    if line in (was, written):
        return Step(hunk)
    made = replace(hunk, new=(*new[:at], line, *new[at + 1 :]))
    return Step(made, LineChange(hunk.first + at, (line,), (written,)), is_late)
