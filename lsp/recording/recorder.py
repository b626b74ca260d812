"""The recorder: what the user does and what they were offered, as lines of a recording.

Off until the user turns it on, with ``redraft record on`` or from an editor; a running server sees
that at its next message. Recorded are the open documents, every change of them with its source,
where the cursor is when a suggestion is wanted, every candidate and what became of it. Never
recorded: files that the setting ``secretGlobs`` names, private keys, files too large or binary.

Nothing here may disturb the editor: what cannot be written ends the recording, with one line in the
log. A keystroke costs 25 µs more while recording, and 3 µs while not, in a file of 100 lines as in
one of 10,000 (medians on a busy x86 server). Knows nothing of the protocol.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from redraft.model.gate.explore import ExplorationDraw
from redraft.model.gate.features import Features
from redraft.model.gate.gate import Gate, shipped
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Prediction

from ..context.workspace import folder_of
from ..documents import ContentChange, Document, Splice
from ..history import Happening
from ..outcomes import Settled
from ..positions import Range
from ..refusals import refuse_file
from ..secret_files import secret_in
from ..settings import LspSettings
from ..suggestion import PlacedRequest, Query, Show
from . import format as entries
from .folder import RecordingFile, Recordings, recording_name
from .format import Entry, Replacement
from .offsets import Offsets, together
from .sources import has_moved, source_of

logger = logging.getLogger(__name__)

_ENDED = 50  # as many as outcomes may still be reported for


#: What is recorded of an answer that nobody waits for yet.
PREFETCHED = Abstain("prefetched", "computed ahead of time")


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a recorder learns what it does not hear of by itself."""

    documents: Callable[[], Iterable[Document]]
    path: Callable[[Document], str]  # relative to the workspace, "/" separated
    root: Callable[[], str]  # URI of the workspace, "" for none
    settings: Callable[[], LspSettings]
    drawn: Callable[[Query], ExplorationDraw]  # the threshold at a moment
    gate: Callable[[], Gate] = shipped
    pace: Callable[[], Features] = dict  # features of how the user types and accepts


#: Makes an event.
_Make = Callable[[], dict[str, Any]]


@dataclass(slots=True)
class _Tracked:
    """A document that is recorded."""

    id: int
    document: Document
    offsets: Offsets
    revision: int  # of the text that the recording has
    changes: list[Replacement] = field(default_factory=list)  # under way, each on the one before
    selection: tuple[int, int] | None = None


class RecordedQuestion:
    """A question to the model, to be told of its answer."""

    def __init__(self, tell: Callable[[Prediction, Show | Abstain, float], None]):
        self.is_answered = False
        self._tell = tell

    def answered(self, prediction: Prediction, decision: Show | Abstain, took_ms: float) -> None:
        self.is_answered = True
        self._tell(prediction, decision, took_ms)


class Recorder:
    """Records one client's session; ``recordings`` None: never."""

    def __init__(
        self,
        recordings: Recordings | None,
        workplace: Workplace,
        made_by: str,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._recordings = recordings
        self._workplace = workplace
        self._made_by = made_by
        self._clock_ms = clock_ms
        self._file: RecordingFile | None = None
        self._most = 0  # bytes of the file
        self._problem = ""  # why nothing can be recorded, where the folder cannot tell it
        self._session = uuid.uuid4().hex
        self._parts = 0
        self._ids: dict[str, int] = {}  # by URI, the same for all parts
        self._tracked: dict[str, _Tracked] = {}
        self._focused = ""
        self._left = False  # the editor
        self._questions = 0
        self._ended: deque[str] = deque(maxlen=_ENDED)  # suggestions whose outcome is told

    # --- the switch ----------------------------------------------------------------------------

    def look(self) -> bool:
        """Is it on? Begins or ends the recording where someone turned the switch, or deleted it."""
        if self._recordings is None:
            return False
        if not self._recordings.is_on():
            self._problem = ""
            self.stop()
            return False
        if self._problem:
            return False
        return (self._file is not None and self._file.is_there()) or self._begin()

    def turn(self, on: bool) -> None:
        """The user says so.

        Raises:
            SettingsError: the folder cannot be used.
        """
        if self._recordings is not None:
            (self._recordings.turn_on if on else self._recordings.turn_off)()
        self.look()

    def status(self) -> dict[str, Any]:
        """For people and clients."""
        on = self.look()
        recordings = self._recordings
        return {
            "on": on,
            "folder": str(recordings.folder) if recordings else "",
            "file": str(self._file.path) if self._file else "",
            "bytes": self._file.size if self._file else 0,
            "problem": self._problem or (recordings.problem() if recordings else ""),
            "otherFiles": len(recordings.others()) if recordings else 0,
        }

    def stop(self) -> None:
        """Close the file and let go of the documents."""
        for tracked in self._tracked.values():
            tracked.document.watcher = None
        self._tracked.clear()
        self._focused = ""
        if self._file is not None:
            logger.info("recording to %s ended", self._file.path)
            self._file.close()
            self._file = None

    def close(self) -> None:
        """End the recording for good, when the client has left; late answers begin no other."""
        self.stop()
        self._recordings = None

    def _begin(self) -> bool:
        """A new file, with the text of every open document."""
        assert self._recordings is not None
        self.stop()
        self._most = 0  # no other file begins before this one has
        self._parts += 1
        now_ms = self._clock_ms()
        self._create(self._recordings, now_ms)
        for document in self._workplace.documents():
            self._track(document)
        if self._file is None:  # it cannot be written
            self.stop()
            return False
        # What is open when it begins does not count: else a lot of text would begin file on file.
        self._most = self._recordings.limits().file_bytes + self._file.size
        return True

    def _create(self, recordings: Recordings, now_ms: int) -> None:
        name = recording_name(now_ms / 1000, self._session, self._parts)
        first = (
            entries.header(self._session, self._workplace.root(), now_ms, self._made_by),
            entries.application_start(now_ms),
        )
        try:
            recordings.make_room()
            self._file = RecordingFile(recordings.folder / name, first)
        except OSError as error:
            self._fail(error)
        else:
            logger.info("recording to %s; 'redraft record off' ends it", self._file.path)

    # --- documents -----------------------------------------------------------------------------

    def opened(self, document: Document) -> None:
        """A document is there, or can be trusted again."""
        if self.look():
            tracked = self._tracked.get(document.uri)
            if tracked is None or tracked.revision != document.revision:
                self._track(document)

    def closed(self, uri: str) -> None:
        tracked = self._untrack(uri)
        if tracked is not None:
            self._write(entries.closed(tracked.id, self._clock_ms()))

    def exclusions_changed(self) -> None:
        """The setting ``secretGlobs`` names other files from now on."""
        for uri, tracked in list(self._tracked.items()):
            if self._is_excluded(tracked.document):
                self.closed(uri)

    def focused(self, uri: str) -> None:
        """The user looks at a document, or with "" has left the editor."""
        self._left = not uri
        if uri != self._focused and self.look():
            self._focus(uri)

    def before_change(self) -> None:
        """A document is about to change: last chance to record what it was."""
        self.look()

    def changed(self, document: Document, splices: Iterable[Splice], happening: Happening) -> None:
        """A document was changed, as the history took it."""
        tracked = self._tracked.get(document.uri)
        if tracked is None:
            return
        if document.out_of_step:
            self.closed(document.uri)
            return
        edits, tracked.changes = tracked.changes, []
        tracked.revision = document.revision
        if not edits:
            return
        now_ms, version = self._clock_ms(), document.version
        source = source_of(
            *(happening, tuple(splices), not self._left),
            lambda: _is_checked_out(document.uri, now_ms),
        )
        self._focus(document.uri)
        lines = [
            entries.changed(tracked.id, version, group, source, now_ms) for group in together(edits)
        ]
        if source == "suggestion":  # other readers know it by this
            lines.append(self._accepted(tracked))
        self._write(*lines)

    def cursor(self, document: Document, selected: Range) -> None:
        """Where the user is, and what they have selected."""
        tracked = self._tracked.get(document.uri) if self.look() else None
        if tracked is None:
            return
        self._focus(document.uri)
        selection = tracked.offsets.at(selected.start), tracked.offsets.at(selected.end)
        if selection != tracked.selection:
            tracked.selection = selection
            self._write(entries.selection_changed(tracked.id, [selection], self._clock_ms()))

    def _track(self, document: Document) -> None:
        self._untrack(document.uri)
        if document.out_of_step or self._is_excluded(document):
            return
        id_ = self._ids.setdefault(document.uri, len(self._ids))
        tracked = _Tracked(id_, document, Offsets(document), document.revision)

        def watch(change: ContentChange) -> None:
            if not document.out_of_step:
                tracked.changes.append(tracked.offsets.of(change))

        document.watcher = watch
        self._tracked[document.uri] = tracked
        now_ms = self._clock_ms()
        self._write(
            entries.encountered(id_, self._workplace.path(document), now_ms),
            entries.set_content(id_, document.version, document.source, now_ms),
            entries.opened(id_, now_ms),
        )

    def _untrack(self, uri: str) -> _Tracked | None:
        tracked = self._tracked.pop(uri, None)
        if tracked is not None:
            tracked.document.watcher = None
        return tracked

    def _is_excluded(self, document: Document) -> bool:
        settings, path = self._workplace.settings(), self._workplace.path(document)
        if refuse_file(path, settings, document.uri):
            return True
        text = document.text
        too_large = len(text) > settings.max_file_chars
        return too_large or "\0" in text or bool(secret_in(text, path))

    def _focus(self, uri: str) -> None:
        tracked = self._tracked.get(uri)
        if uri == self._focused or (uri and tracked is None):
            return
        self._focused = uri
        if tracked is not None:
            self._write(entries.focused(tracked.id, self._clock_ms()))

    def _accepted(self, tracked: _Tracked) -> Entry:
        version = tracked.document.version
        return entries.change_reason(tracked.id, version, entries.ACCEPTED_REASON, self._clock_ms())

    # --- suggestions ---------------------------------------------------------------------------

    @contextmanager
    def asking(self, question: PlacedRequest) -> Iterator[RecordedQuestion]:
        """A question goes to the model; what it is not told of the answer is told as an error."""
        self._questions += 1
        number, began_ms = self._questions, self._clock_ms()
        uri = question.query.uri

        def tell(prediction: Prediction, decision: Show | Abstain, took_ms: float) -> None:
            shown = decision if isinstance(decision, Show) else None
            self._note(
                uri,
                lambda: self._answer(number, question, prediction, decision, took_ms),
                lambda: entries.fetch_end(number, took_ms, shown=shown),
            )

        asked, error = RecordedQuestion(tell), "failed"
        tracked = self._tracked.get(uri)
        version = tracked.document.version if tracked else None
        self._note(uri, lambda: entries.fetch_start(number, question, version))
        try:
            yield asked
        except BaseException:
            error = "canceled"  # as the format spells it
            raise
        finally:
            if not asked.is_answered:
                took_ms = max(0, self._clock_ms() - began_ms)  # the clock may be set back
                self._note(uri, None, lambda: entries.fetch_end(number, took_ms, error))

    def prefetched(self, question: PlacedRequest, prediction: Prediction) -> None:
        """An answer came ahead of time, for the text that accepting a suggestion leads to."""
        self._questions += 1
        number, took_ms = self._questions, prediction.stats.total_ms

        def told() -> dict[str, Any]:
            return {
                **self._answer(number, question, prediction, PREFETCHED, took_ms),
                "after": question.ahead_of,
            }

        self._note(question.query.uri, told)

    def _answer(
        self,
        number: int,
        question: PlacedRequest,
        prediction: Prediction,
        decision: Show | Abstain,
        took_ms: float,
    ) -> dict[str, Any]:
        place = self._workplace
        return entries.answer(
            *(number, question, prediction, decision, took_ms, place.settings()),
            gate=place.gate(),
            pace=place.pace(),
            draw=place.drawn(question.query),
        )

    def decided(self, uri: str, decision: Show | Abstain) -> None:
        """The client is told what to show, or why nothing is."""
        about = decision.suggestion.uri if isinstance(decision, Show) else uri
        self._note(about, lambda: entries.decision(decision))

    def drawn(self, suggestion: str) -> None:
        """The client put it on the screen only now."""
        if self.look():
            self._write(entries.event(entries.drawn(suggestion), self._clock_ms()))

    def settled(self, settled: Settled) -> None:
        """What became of a suggestion."""
        suggestion = settled.suggestion
        self._note(suggestion.uri, lambda: entries.outcome(settled))
        tracked = self._tracked.get(suggestion.uri)
        if tracked is not None and settled.outcome == "accepted" and suggestion.id in self._ended:
            # It was taken for something else first: the last change came from it.
            self._write(self._accepted(tracked))
        self._ended.append(suggestion.id)

    def _note(self, uri: str, about: _Make | None, also: _Make | None = None) -> None:
        """Events of a document, made only if it is recorded."""
        tracked = self._tracked.get(uri) if self.look() else None
        if tracked is None:
            return
        now_ms = self._clock_ms()
        lines = [entries.document_event(tracked.id, about(), now_ms)] if about else []
        lines += [entries.event(also(), now_ms)] if also else []
        self._write(*lines)

    # --- writing -------------------------------------------------------------------------------

    def _write(self, *lines: Entry) -> None:
        if self._file is None:
            return
        try:
            self._file.write(lines)
        except OSError as error:
            self._fail(error)
            return
        if self._most and self._file.size > self._most:
            self._begin()

    def _fail(self, error: OSError) -> None:
        problem = f"recording ended, it cannot be written: {error}"
        logger.warning("%s", problem)
        self.stop()
        # What the folder tells, every editor and the command know, until it is turned on again.
        known = self._recordings is not None and self._recordings.end(problem)
        self._problem = "" if known else problem


def _is_checked_out(uri: str, now_ms: int) -> bool:
    file = folder_of(uri)
    return file is not None and has_moved(file, now_ms / 1000)
