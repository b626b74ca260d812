"""Commits typed as a recording, as if a person had made their edits one after the other.

Hunks come in the order a person would make them (``model/training/commits.py``): two to six as
history, then the one to foresee. It is typed up to a natural place in the middle of a line, left
there for a while, and finished. No person typed this, so such recordings say nothing about
acceptance, and their header says that they are simulated.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redraft.lsp.positions import units
from redraft.lsp.recording import events as ev
from redraft.lsp.recording.events import Event, TextEdit
from redraft.lsp.recording.format import encode, encode_all
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import shift_of
from redraft.model.errors import SettingsError
from redraft.model.text.common import common_ends
from redraft.model.text.names import is_word
from redraft.model.training.commits import FileChange, changes_of

from .git_history import Wanted, commits

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

OnStep = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True)
class Imported:
    """The recording made of a history."""

    path: Path
    commits: int  # typed
    looked_at: int  # those, and others that have too few edits or too many
    changes: int


def import_git(source: Path, out: Path, wanted: Wanted, made_by: str, show: OnStep) -> Imported:
    """Write the newest commits of a repository as one simulated recording, oldest first.

    Args:
        source: the repository's folder, or a file of commits as training has them.

    Raises:
        InstallError: git is not installed.
        SettingsError: it is no repository, it has nothing to type, or ``out`` cannot be written.
    """
    plans, looked_at = _plans(source, wanted, show)
    if not plans:
        raise SettingsError(
            f"None of the {looked_at} commits of {source} can be typed anew: each needs 3 to 40 "
            "edits of code. Look further back with --since, or name another --language."
        )
    name, typing, changes = source.resolve().name, Simulation(), 0
    uuid = f"git-{name}-{plans[-1].commit[:12]}"
    try:
        with out.open("wb") as file:
            header = ev.Header(1000 * plans[0].time_s, uuid, "", made_by, simulated=True)
            file.write(encode(header))
            for number, plan in enumerate(plans):
                show(f"typing commits of {name}", number / len(plans))
                events = typing.type(plan)
                file.write(encode_all(events))
                changes += sum(isinstance(event, ev.Changed) for event in events)
    except OSError as error:
        raise SettingsError(f"{out} cannot be written ({error}); name another --out") from error
    return Imported(out, len(plans), looked_at, changes)


# --- plans ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypingPlan:
    """A commit to be typed: hunks in order, the last of them the one to foresee."""

    repo: str
    commit: str
    time_s: int
    steps: tuple[tuple[FileChange, int], ...]  # a file's change, and the index of its hunk
    seed: str


def _plans(source: Path, wanted: Wanted, show: OnStep) -> tuple[list[TypingPlan], int]:
    """Return the commits that can be typed, oldest first, and how many were looked at."""
    total, records = commits(source, wanted)
    plans: list[TypingPlan] = []
    looked_at = 0
    for looked_at, record in enumerate(records, 1):
        done = looked_at / total if total else 0.0
        done = max(done, len(plans) / wanted.most if wanted.most else 0.0)
        show(f"reading {source.name}: {len(plans)} commits", min(1.0, done) if done else None)
        plan = plan_of(record, wanted.seed) if record is not None else None
        plans += [plan] if plan is not None else []
        if len(plans) == wanted.most:
            break
    return sorted(plans, key=lambda plan: plan.time_s), looked_at


def plan_of(record: dict[str, Any], seed: int) -> TypingPlan | None:
    """Return how to type a commit; None if it has too few edits for a history, or too many.

    Args:
        record: ``{repo, commit, time, files: [{path, before, after}]}``.
    """
    commit = str(record["commit"])
    rng = random.Random(f"{seed}:{commit}")
    steps = [(each, at) for each in changes_of(record, rng) for at in range(len(each.hunks))]
    if not LEAST_HISTORY < len(steps) <= MOST_HUNKS:
        return None
    history = min(rng.randint(LEAST_HISTORY, MOST_HISTORY), len(steps) - 1)
    change, at = steps[history]
    if len(change.hunks[at].new) > MOST_LINES:
        return None
    name, time_s = str(record.get("repo", "")), int(record.get("time") or 0)
    return TypingPlan(name, commit, time_s, tuple(steps[: history + 1]), f"{seed}:{commit}:typing")


# --- typing --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Page:
    """A document being typed."""

    id: int
    lines: list[str]
    version: int = 1
    _line: int = 0  # counted to last; nothing above it changes
    _start: int = 0  # its offset

    def offset(self, line: int, column: int = 0) -> int:
        """Return an offset in UTF-16 code units. The next change must not lie above ``line``."""
        while self._line < line:
            self._start += units(self.lines[self._line]) + 1
            self._line += 1
        while self._line > line:
            self._line -= 1
            self._start -= units(self.lines[self._line]) + 1
        return self._start + (units(self.lines[line][:column]) if column else 0)


class Simulation:
    """Types commits into one recording."""

    def __init__(self) -> None:
        self._time_ms = 0
        self._ids: dict[str, int] = {}  # of documents by path
        self._events: list[Event] = []  # of the commit being typed
        self._rng = random.Random()
        self._rests = False  # leaves the next line in the middle, and comes back to it

    def type(self, plan: TypingPlan) -> list[Event]:
        """Return the events of typing a commit."""
        self._events, self._rng, self._rests = [], random.Random(plan.seed), False
        self._time_ms = max(self._time_ms + _APART_MS, 1000 * plan.time_s)
        pages: dict[str, _Page] = {}
        for path, old in {change.path: change.old for change, _ in plan.steps}.items():
            id_ = self._ids.setdefault(path, len(self._ids))
            pages[path] = _Page(id_, list(old))
            self._events += [
                ev.Encountered(self._time_ms, id_, path),
                ev.SetContent(self._time_ms, id_, 1, "\n".join(old)),
                ev.Opened(self._time_ms, id_),
            ]
        about = {"sourceId": COMMIT, "repo": plan.repo, "commit": plan.commit}
        self._events.append(ev.Note(self._time_ms, "event", data=about))
        for number, (change, at) in enumerate(plan.steps, 1):
            hunk = change.hunks[at]
            moved = replace(hunk, first=hunk.first + shift_of(change.hunks[:at], hunk))
            self._rests = number == len(plan.steps)
            self._type_hunk(pages[change.path], moved)
            self._pause()
        self._events += [ev.Closed(self._time_ms, page.id) for page in pages.values()]
        return self._events

    def _pause(self) -> None:
        self._time_ms += self._rng.randint(*_PAUSE_MS)

    def _type_hunk(self, page: _Page, hunk: LineChange) -> None:
        """Change lines that give way to others in place; the rest come or go as a whole."""
        at = page.offset(min(hunk.first, len(page.lines) - 1))
        self._events += [
            ev.Focused(self._time_ms, page.id),
            ev.SelectionChanged(self._time_ms, page.id, ((at, at),)),
        ]
        gone = hunk.last - hunk.first
        both = min(gone, len(hunk.new))
        for line in range(both):
            self._change_line(page, hunk.first + line, hunk.new[line])
        if gone > both:
            self._delete(page, hunk.first + both, hunk.last)
        elif hunk.new[both:]:
            self._insert(page, hunk.first + both, hunk.new[both:])

    def _change_line(self, page: _Page, line: int, new: str) -> None:
        old = page.lines[line]
        head, tail = common_ends(old, new)
        if old == new:
            return
        if len(old) - head - tail:
            self._replace(page, line, head, len(old) - tail, "")
        self._write(page, line, head, new[head : len(new) - tail])

    def _delete(self, page: _Page, first: int, last: int) -> None:
        if last < len(page.lines):
            start, end = page.offset(first), page.offset(last)
        else:  # the last lines go with the line end before them
            start = page.offset(first) - (1 if first else 0)
            end = page.offset(last - 1, len(page.lines[last - 1]))
        page.offset(max(0, first - 1))
        del page.lines[first:last]
        page.lines = page.lines or [""]
        self._changed(page, start, end, "")

    def _insert(self, page: _Page, first: int, new: Sequence[str]) -> None:
        """Open each line, then type it."""
        for at, line in enumerate(new, first):
            indent = len(line) - len(line.lstrip())
            end = page.offset(at - 1, len(page.lines[at - 1])) if at else page.offset(0)
            page.lines.insert(at, line[:indent])
            self._changed(page, end, end, f"\n{line[:indent]}" if at else f"{line[:indent]}\n")
            self._write(page, at, indent, line[indent:])

    def _write(self, page: _Page, line: int, column: int, text: str) -> None:
        """Type a text within a line, a word at a time, with a rest where it is cut."""
        cut = self._place_to_rest(text)
        for word in _words(text, cut):
            self._replace(page, line, column, column, word)
            column += len(word)
            cut -= len(word)
            if cut == 0:
                self._pause()

    def _place_to_rest(self, text: str) -> int:
        """Return how much of the first line that is long enough is typed before a rest; or -1."""
        places, weights = natural_cuts(text)
        if not self._rests or len(text.strip()) < 3 or not places:
            return -1
        self._rests = False
        return self._rng.choices(places, weights)[0]

    def _replace(self, page: _Page, line: int, start: int, end: int, text: str) -> None:
        old = page.lines[line]
        begin, stop = page.offset(line, start), page.offset(line, end)
        page.lines[line] = old[:start] + text + old[end:]
        self._changed(page, begin, stop, text)

    def _changed(self, page: _Page, start: int, end: int, text: str) -> None:
        page.version += 1
        typed = max(1, len(text.strip()))
        self._time_ms += round(_CHARACTER_MS * typed * self._rng.uniform(0.6, 1.2))
        at = start + units(text)
        edits = (TextEdit(start, end, text),)
        self._events += [
            ev.Changed(self._time_ms, page.id, page.version, edits),
            ev.SelectionChanged(self._time_ms, page.id, ((at, at),)),
        ]


def natural_cuts(text: str) -> tuple[list[int], list[float]]:
    """Return where typing may rest within ``text``, and how likely each place is.

    That is mostly after ``, ; : ( [ {``, then after closing brackets and at the end of names, and
    rarely within a word. Something visible is before and behind each place.
    """
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
    """Yield the words of a text; none goes across the cut."""
    parts = (text,) if cut <= 0 else (text[:cut], text[cut:])
    for part in parts:
        yield from _WORD.findall(part)
