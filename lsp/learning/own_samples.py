"""Samples for the user's own gate: candidates of their recordings, labelled by what they kept.

Kept text decides: a suggestion that was accepted and is gone at rest was a mistake. Hidden
candidates count too, as the recording shows what was written next. Text that did not come from the
user's keyboard labels nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redraft.lsp.documents.positions import index_at
from redraft.lsp.learning.kept_text import measure_kept
from redraft.lsp.learning.matching import UNSEEN_S, match, until_rest
from redraft.lsp.learning.recorded_moments import DocumentChange, Script, script_of
from redraft.lsp.learning.recording_file import RecordedUser, Recording, read_recording
from redraft.lsp.learning.shown import Shown, find_shown_text
from redraft.lsp.recording.recording_events import (
    AnswerEvent,
    Changed,
    FetchStarted,
    LineAndColumn,
    RecordedCandidate,
    RestoreContent,
    SetContent,
)
from redraft.model.edits.edit import Edit, LineChange
from redraft.model.errors import RedraftError
from redraft.model.gate.decide import verdict
from redraft.model.gate.features import FEATURES, features_of
from redraft.model.gate.filters import Situation
from redraft.model.gate.fit_own import Sample
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Task

SEEN_S = 0.75  # on the screen: ignoring it counts
GLIMPSED_S = 0.3  # on the screen: turning it down counts
AWAY_S = 600.0  # on the screen: the user was away, or a clock jumped
KEPT_SHARE = 0.5  # of an accepted suggestion that has to be there at rest
_GONE = 0.1  # under which it was undone
#: Weights of labels, compared with an acceptance by a key.
_TYPED, _IGNORED, _HIDDEN_RIGHT, _HIDDEN_WRONG = 0.7, 0.4, 0.3, 0.1

Label = tuple[bool, float]  # whether showing it is right, and the weight


def label_shown(
    outcome: str, seconds: float | None, kept_share: float | None, typed: bool
) -> Label | None:
    """Return the label of a suggestion that was on the screen; None if it has none.

    Args:
        seconds: from the screen to the outcome; None: unknown.
        kept_share: of what it wrote and deleted, at rest; None: unknown.
        typed: accepted by typing it.
    """
    if outcome == "accepted" and kept_share is not None:
        if kept_share >= KEPT_SHARE:
            return True, _TYPED if typed else 1.0
        return (False, 1.0) if kept_share < _GONE else (True, kept_share)
    if seconds is None or not GLIMPSED_S <= seconds <= AWAY_S:  # a clock may go back, too
        return None
    if outcome == "rejected":
        return False, 1.0
    return (False, _IGNORED) if outcome == "ignored" and seconds >= SEEN_S else None


def label_hidden(exact: bool | None, prefix: bool | None) -> Label | None:
    """Return the label of a hidden candidate, by whether the user wrote it all the same."""
    if exact is None and prefix is None:
        return None
    return (True, _HIDDEN_RIGHT) if exact or prefix else (False, _HIDDEN_WRONG)


@dataclass(slots=True)
class OwnSamples:
    """Samples of recordings, oldest first, and what was left out."""

    samples: dict[Task, list[Sample]] = field(
        default_factory=lambda: {task: [] for task in FEATURES}
    )
    weights: str = ""  # whose answers count
    shown: int = 0
    hidden: int = 0
    unlabelled: int = 0  # candidates whose outcome is unknown
    other_model: int = 0  # answers of other weights
    unreadable: list[str] = field(default_factory=list)  # recordings that cannot be used, and why

    @property
    def count(self) -> int:
        """Number of samples."""
        return sum(map(len, self.samples.values()))


def own_samples(paths: Sequence[Path], weights: str = "") -> OwnSamples:
    """Return the samples of recordings.

    Args:
        weights: outcomes of others are left out; "": those of the newest answer.
    """
    found = OwnSamples()
    recordings: list[Recording] = []
    for path in paths:
        try:
            recordings.append(read_recording(path))
        except (RedraftError, OSError) as error:
            found.unreadable.append(f"{path.name}: {error}")
    recordings.sort(key=lambda each: each.header.time_ms)
    newest = (each for one in reversed(recordings) for each in reversed(one.events))
    answers = (each for each in newest if isinstance(each, AnswerEvent))
    found.weights = weights or next((each.weights for each in answers), "")
    for recording in recordings:
        try:
            _add(recording, found)
        except (RedraftError, KeyError, TypeError, ValueError, IndexError) as error:
            found.unreadable.append(f"{Path(recording.path).name}: {type(error).__name__} {error}")
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """The document when a question was asked."""

    path: str
    text: str
    done: int  # changes of the document before it
    changes: list[LineChange]  # the user's last ones
    last_edit: int | None  # 0-based line


def _add(recording: Recording, found: OwnSamples) -> None:
    script = script_of(recording, recording.header.uuid or recording.path)
    shown = find_shown_text(recording)
    user, done, asked = RecordedUser(), Counter[int](), dict[int, _Asked]()
    for event in recording.events:
        if isinstance(event, FetchStarted):
            text, path = user.texts.plain(event.document), user.texts.path(event.document)
            changes = user.last_changes(event.document)
            asked[event.request] = _Asked(path, text, done[event.document], *changes)
        if isinstance(event, AnswerEvent):
            if event.weights != found.weights:
                found.other_model += 1
            elif (where := asked.get(event.request)) is not None and not event.after:
                answer = _Answer(event, where, script, shown.get(event.shown or ""))
                found.samples[answer.task] += answer.samples(found, recording.header.uuid)
        if isinstance(event, Changed | SetContent | RestoreContent):
            done[event.document] += isinstance(event, Changed) or event.document in user.known
        user.apply(event)


class _Answer:
    """An answer of the model, and what the user did after it."""

    def __init__(self, event: AnswerEvent, where: _Asked, script: Script, shown: Shown | None):
        self.task: Task = "infill" if event.task == "infill" else "next_edit"
        self._event, self._where = event, where
        self._shown = shown if shown is not None and shown.answer is event else None
        self._steps = script.steps_after(event.document, where.done)
        self._at_s = script.seconds(event)
        self._is_told = script.ends_s - self._at_s >= UNSEEN_S
        moment = event.moment
        self._situation = Situation(
            self.task,
            where.path,
            str(moment.get("language", "")),
            where.text,
            _index(where.text, event.cursor),
            threshold=0.0,
            changes=where.changes,
            last_edit=where.last_edit,
        )

    def samples(self, found: OwnSamples, session: str) -> Iterator[Sample]:
        """Yield a sample of each candidate that has a label, and count the others."""
        for at, recorded in enumerate(self._event.candidates):
            candidate = _candidate(recorded, self._where.text)
            if isinstance(verdict(candidate, self._situation), Abstain):
                continue  # a filter keeps it from being shown, whatever its score
            label = None
            if self._event.shown is None or (self._shown and at != self._shown.place):
                label = self._label_hidden(candidate)
                found.hidden += 1
            elif self._shown:  # else the recording does not say which of them was shown
                label = self._label_shown(candidate, self._shown)
                found.shown += 1
            if label is None:
                found.unlabelled += 1
            else:
                features = features_of(candidate, self._event.pace)
                yield Sample(features, *label, group=session)

    def _label_shown(self, candidate: Candidate, shown: Shown) -> Label | None:
        edit = self._edit(candidate)
        rest = until_rest(self._steps, self._at_s + (shown.seconds or 0.0))
        sources = {step.source for step in rest}
        share = None
        if sources <= {"user", "suggestion", "undo"}:
            share = share_kept(edit.text, edit.result, _applied(edit.text, rest))
        typed = share is not None and "suggestion" not in sources
        return label_shown(shown.outcome, shown.seconds, share, typed)

    def _label_hidden(self, candidate: Candidate) -> Label | None:
        least = self._edit(candidate).least()
        written = match(least, self._steps, self._is_told)
        return label_hidden(written.exact, written.prefix)

    def _edit(self, candidate: Candidate) -> Edit:
        return Edit(self._where.text, candidate.start, candidate.end, candidate.text)


def _applied(text: str, steps: Sequence[DocumentChange]) -> str:
    for step in steps:
        text = step.apply(text)
    return text


def share_kept(base: str, candidate: str, final: str) -> float | None:
    """Return how much of what a suggestion writes and deletes is in ``final``, 0 … 1.

    None: too much differs. Indentation does not count: every line has some, so a wrong suggestion
    of several lines would share a third of its characters with the right one.

    Args:
        base: the document before the suggestion.
        candidate: the document with the suggestion accepted.
    """
    found = measure_kept(
        *("\n".join(map(str.lstrip, each.split("\n"))) for each in (base, candidate, final))
    )
    return None if found is None else found.kept_rate


def _candidate(recorded: RecordedCandidate, text: str) -> Candidate:
    edit = recorded.edit
    return Candidate(
        start=_index(text, edit.start),
        end=_index(text, edit.end),
        text=edit.text,
        confidence=recorded.confidence,
        tokens=recorded.tokens,
        steps=recorded.steps,
        finish=recorded.finish,
        source=recorded.source,
        features=dict(recorded.features),
    )


def _index(text: str, place: LineAndColumn) -> int:
    line, character = place
    lines = text.split("\n")
    start = sum(len(each) + 1 for each in lines[:line])
    return start + index_at(lines[line], character)
