"""Recorder of a session; ``lsp/README.md`` says what is recorded, and what never is.

A running server sees at its next message that the user turned it on. A recording that cannot be
written ends, with one line in the log. A keystroke costs 25 µs more while recording, and 3 µs while
not, in any file (medians on a busy x86 server).
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from redraft.model.gate.reasons import Abstain

from .. import journal
from ..documents.history import ChangeKind
from ..documents.open_documents import Document, Splice
from ..documents.positions import Range
from ..documents.uris import file_of
from ..journal import Entry
from ..policy.secret_files import secret_in
from ..question import Answer, Question
from ..suggestions.memory import Memory
from ..suggestions.outcomes import SuggestionEnded
from ..suggestions.suggestion import Offer
from ..workspace import Workspace
from . import recording_events as events
from .answer_events import answer_event, decision_event
from .change_sources import has_moved, source_of
from .offsets import DocumentEdits
from .recording_events import (
    ACCEPTED_REASON,
    CHANGE_REASON,
    Changed,
    Encountered,
    Event,
    FetchStarted,
    Header,
    Note,
    SetContent,
)
from .recordings_folder import RecordingFile, Recordings, name_recording

logger = logging.getLogger(__name__)

_ENDED = 50  # suggestions; a later report can correct the outcome of as many

#: Decision on an answer that was asked for ahead of time.
PREFETCHED = Abstain("prefetched", "computed ahead of time")


@dataclass(slots=True)
class _Tracked:
    """A document that is recorded."""

    id: int
    document: Document
    edits: DocumentEdits
    revision: int  # of the text that the recording has
    selection: tuple[int, int] | None = None


class Recorder:
    """Recorder of one client's session.

    Args:
        recordings: where to record; None: never.
    """

    def __init__(
        self,
        recordings: Recordings | None,
        workspace: Workspace,
        memory: Memory,
        made_by: str,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._recordings = recordings
        self._workspace, self._memory = workspace, memory
        self._made_by = made_by
        self._clock_ms = clock_ms
        self._file: RecordingFile | None = None
        self.room = Thread()  # makes room for the file
        self._most_bytes = 0  # of the file; 0: no other file begins
        self._problem = ""  # why nothing can be recorded, if the folder cannot hold it
        self._session = uuid.uuid4().hex
        self._parts = 0
        self._ids: dict[str, int] = {}  # by URI, the same for all parts
        self._tracked: dict[str, _Tracked] = {}
        self._focused = ""
        self._is_away = False  # the user has left the editor
        self._ended: deque[str] = deque(maxlen=_ENDED)  # ids of suggestions with an outcome

    def hear(self, entry: Entry) -> None:
        """Take an entry of the journal."""
        match entry:
            case journal.DocumentOpened():
                self.on_open(entry.document)
            case journal.ChangeComing():
                self.look()
            case journal.DocumentChanged():
                self.on_change(entry.document, entry.splices, entry.kind)
            case journal.DocumentClosed():
                self.on_close(entry.uri)
            case journal.ExclusionsChanged():
                self.exclusions_changed()
            case journal.CursorMoved():
                self.cursor(entry.document, entry.selection)
            case journal.FocusMoved():
                self.on_focus(entry.uri)
            case journal.QuestionAsked():
                self.on_question(entry.question)
            case journal.AnswerDecided():
                self.on_answer(entry.answer, entry.decision)
            case journal.DecisionMade():
                self.on_decision(entry.uri, entry.decision)
            case journal.SuggestionDisplayed():
                self.on_display(entry.id)
            case SuggestionEnded():
                self.on_end(entry)

    # --- the switch ----------------------------------------------------------------------------

    def look(self) -> bool:
        """Return whether recording is on; begin or end it where the user turned the switch."""
        if self._recordings is None:
            return False
        if not self._recordings.is_on():
            self._problem = ""
            self.stop()
            return False
        if self._problem:
            return False
        return (self._file is not None and self._file.path.exists()) or self._begin()

    def turn(self, on: bool) -> None:
        """Turn recording on or off for every editor.

        Raises:
            SettingsError: the folder cannot be used.
        """
        if self._recordings is not None:
            (self._recordings.turn_on if on else self._recordings.turn_off)()
        self.look()

    def status(self) -> dict[str, Any]:
        """Return the state for people and clients."""
        on, recordings = self.look(), self._recordings
        return {
            "on": on,
            "folder": str(recordings.folder) if recordings else "",
            "file": str(self._file.path) if self._file else "",
            "bytes": self._file.size if self._file else 0,
            "problem": self._problem or (recordings.problem() if recordings else ""),
            "otherFiles": len(recordings.others()) if recordings else 0,
        }

    def stop(self) -> None:
        """Close the file and forget the documents."""
        for uri in list(self._tracked):
            self._untrack(uri)
        self._focused = ""
        if self._file is not None:
            logger.info("recording to %s ended", self._file.path)
            self._file.close()
            self._file = None

    def close(self) -> None:
        """End the recording for good, as the client has left; late answers begin no other."""
        self.stop()
        self._recordings = None

    def _begin(self) -> bool:
        """Begin a file with the text of every open document; return whether it can be written."""
        recordings = self._recordings
        assert recordings is not None
        self.stop()
        self._most_bytes = 0
        self._parts += 1
        now_ms = self._clock_ms()
        header = Header(
            now_ms, self._session, next(iter(self._workspace.folders), ""), self._made_by
        )
        name = name_recording(now_ms / 1000, self._session, self._parts)
        try:
            first = header, Note(now_ms, "applicationStart")
            file = self._file = RecordingFile(recordings.folder / name, first)
        except OSError as error:
            self._fail(error)
            return False
        logger.info("recording to %s; 'redraft record off' ends it", file.path)
        self.room = Thread(target=recordings.make_room, args=(file.path,), daemon=True)
        self.room.start()
        for document in self._workspace.documents.all():
            self._track(document)
        if self._file is not file:
            return False
        # The texts at its beginning do not count: else a lot of text would begin file after file.
        self._most_bytes = recordings.limits().file_bytes + self._file.size
        return True

    # --- documents -----------------------------------------------------------------------------

    def on_open(self, document: Document) -> None:
        """Record a document that is new, or can be trusted again."""
        if self.look():
            tracked = self._tracked.get(document.uri)
            if tracked is None or tracked.revision != document.revision:
                self._track(document)

    def on_close(self, uri: str) -> None:
        """Record that a document is closed."""
        if (tracked := self._untrack(uri)) is not None:
            self._write(events.Closed(self._clock_ms(), tracked.id))

    def exclusions_changed(self) -> None:
        """Record no longer what the settings now exclude."""
        for uri, tracked in list(self._tracked.items()):
            if self._is_excluded(tracked.document):
                self.on_close(uri)

    def on_focus(self, uri: str) -> None:
        """Record that the user looks at a document; "": they have left the editor."""
        self._is_away = not uri
        if uri != self._focused and self.look():
            self._focus(uri)

    def on_change(self, document: Document, splices: Iterable[Splice], kind: ChangeKind) -> None:
        """Record a change of a document.

        Args:
            kind: the history's class of the change.
        """
        tracked = self._tracked.get(document.uri)
        if tracked is None:
            return
        if document.out_of_step:
            self.on_close(document.uri)
            return
        groups, tracked.revision = tracked.edits.take(), document.revision
        if not groups:
            return
        now_ms = self._clock_ms()
        is_git = partial(_is_checked_out, document.uri, now_ms)
        source = source_of(kind, tuple(splices), not self._is_away, is_git)
        self._focus(document.uri)
        changes = [Changed(now_ms, tracked.id, document.version, edits, source) for edits in groups]
        accepted = [self._accepted(tracked)] if source == "suggestion" else []
        self._write(*changes, *accepted)

    def cursor(self, document: Document, selected: Range) -> None:
        """Record the user's cursor or selection."""
        tracked = self._recorded(document.uri)
        if tracked is None:
            return
        self._focus(document.uri)
        selection = tracked.edits.at(selected.start), tracked.edits.at(selected.end)
        if selection != tracked.selection:
            tracked.selection = selection
            self._write(events.SelectionChanged(self._clock_ms(), tracked.id, (selection,)))

    def _track(self, document: Document) -> None:
        self._untrack(document.uri)
        if document.out_of_step or self._is_excluded(document):
            return
        id_ = self._ids.setdefault(document.uri, len(self._ids))
        edits = DocumentEdits(document)
        self._tracked[document.uri] = _Tracked(id_, document, edits, document.revision)
        now_ms = self._clock_ms()
        self._write(
            Encountered(now_ms, id_, document.path),
            SetContent(now_ms, id_, document.version, document.source),
            events.Opened(now_ms, id_),
        )

    def _untrack(self, uri: str) -> _Tracked | None:
        tracked = self._tracked.pop(uri, None)
        if tracked is not None:
            tracked.edits.stop()
        return tracked

    def _recorded(self, uri: str) -> _Tracked | None:
        """Return a document that is recorded now."""
        return self._tracked.get(uri) if self.look() else None

    def _is_excluded(self, document: Document) -> bool:
        settings, path = self._workspace.settings, document.path
        if self._workspace.exclusions.why(path, document.uri):
            return True
        text = document.text
        is_too_large = len(text) > settings.max_file_chars
        return is_too_large or "\0" in text or bool(secret_in(text, path))

    def _focus(self, uri: str) -> None:
        tracked = self._tracked.get(uri)
        if uri == self._focused or (uri and tracked is None):
            return
        self._focused = uri
        if tracked is not None:
            self._write(events.Focused(self._clock_ms(), tracked.id))

    def _accepted(self, tracked: _Tracked) -> Event:
        """Return the editors' event for a change that an accepted suggestion made."""
        data = {"sourceId": CHANGE_REASON, "source": ACCEPTED_REASON, "v": tracked.document.version}
        return Note(self._clock_ms(), "documentEvent", tracked.id, data)

    # --- suggestions ---------------------------------------------------------------------------

    def on_question(self, question: Question) -> None:
        """Record that a question goes to the model."""
        place = question.snapshot
        if not question.after and (tracked := self._recorded(place.uri)) is not None:
            about = tracked.document.version, question.task, place.is_invoked
            self._write(FetchStarted(self._clock_ms(), tracked.id, question.number, *about))

    def on_answer(self, answer: Answer, decision: Offer | Abstain) -> None:
        """Record the answer to a question, and the decision on it."""
        question = answer.question
        if (tracked := self._recorded(question.snapshot.uri)) is None:
            return
        at = (self._clock_ms(), tracked.id)
        decision = PREFETCHED if question.after else decision
        self._write(answer_event(at, answer, decision, self._memory))

    def on_decision(self, uri: str, decision: Offer | Abstain) -> None:
        """Record the decision that the client gets."""
        about = decision.suggestion.uri if isinstance(decision, Offer) else uri
        if (tracked := self._recorded(about)) is not None:
            self._write(decision_event(self._clock_ms(), tracked.id, decision))

    def on_display(self, suggestion: str) -> None:
        """Record that the client has drawn a suggestion on the screen."""
        if self.look():
            self._write(events.DrawnEvent(self._clock_ms(), suggestion))

    def on_end(self, ended: SuggestionEnded) -> None:
        """Record the outcome of a suggestion."""
        suggestion, outcome = ended.suggestion, ended.outcome
        if (tracked := self._recorded(suggestion.uri)) is not None:
            about = suggestion.id, suggestion.task, outcome
            self._write(events.OutcomeEvent(self._clock_ms(), tracked.id, *about))
            if outcome == "accepted" and suggestion.id in self._ended:
                # It had another outcome first: the last change came from it.
                self._write(self._accepted(tracked))
        self._ended.append(suggestion.id)

    # --- writing -------------------------------------------------------------------------------

    def _write(self, *lines: Event) -> None:
        if self._file is None:
            return
        try:
            self._file.write(lines)
        except OSError as error:
            self._fail(error)
            return
        if self._most_bytes and self._file.size > self._most_bytes:
            self._begin()

    def _fail(self, error: OSError) -> None:
        problem = f"recording ended, it cannot be written: {error}"
        logger.warning("%s", problem)
        self.stop()
        # Every editor and the command read the problem in the folder, until it is turned on again.
        is_kept = self._recordings is not None and self._recordings.end(problem)
        self._problem = "" if is_kept else problem


def _is_checked_out(uri: str, now_ms: int) -> bool:
    file = file_of(uri)
    return bool(file) and has_moved(Path(file), now_ms / 1000)
