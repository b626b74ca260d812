"""Where changes came from, for recordings that do not say.

The language server's own history is run over the stream and judges, as it does while recording:
there is no second inference. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from redraft.lsp.editor.documents import Document
from redraft.lsp.editor.history import History
from redraft.lsp.recording.change_sources import source_of

from .documents import StreamDocuments, content_changes
from .format import Changed, Event, RestoreContent, SetContent, Stream


def with_sources(stream: Stream) -> Stream:
    """The stream with a source for each of its changes.

    Raises:
        InvalidRequest: a change lies outside of its document.
    """
    if all(change.stated for change in stream.changes):
        return stream
    return replace(stream, events=tuple(_judged(stream.events)))


@dataclass(slots=True)
class _Judge:
    """The history of a user who does what the stream says, at the times it says."""

    now_ms: int = 0
    texts: StreamDocuments = field(default_factory=StreamDocuments)
    known: dict[int, Document] = field(default_factory=dict)
    history: History = field(init=False)

    def __post_init__(self) -> None:
        self.history = History(lambda: self.now_ms / 1000)

    def judge(self, event: Event) -> Event:
        self.now_ms = event.time_ms
        if isinstance(event, Changed):
            return self._changed(event)
        self.texts.apply(event)
        if isinstance(event, SetContent | RestoreContent):
            self._began(event.document)
        return event

    def _began(self, id_: int) -> None:
        document = self.known[id_] = Document(str(id_), self.texts.text(id_))
        self.history.opened(document.uri, self.texts.path(id_), document.lines)

    def _changed(self, event: Changed) -> Changed:
        changes = content_changes(self.texts.text(event.document), event.edits)
        self.texts.apply(event)
        document = self.known[event.document]
        splices = document.apply(changes, None)
        accepted = event.source == "suggestion"
        happening = self.history.changed(document.uri, splices, accepted=accepted)
        if event.stated:
            return event
        return replace(event, source=source_of(happening, splices))


def _judged(events: Iterable[Event]) -> Iterator[Event]:
    judge = _Judge()
    yield from map(judge.judge, events)
