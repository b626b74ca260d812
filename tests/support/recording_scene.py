"""A recorder with documents to change, as its tests use it."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

from redraft.evals.recordings.documents import StreamDocuments as Replayed
from redraft.evals.recordings.format import Changed
from redraft.evals.recordings.streams import read_stream
from redraft.lsp.editor.documents import ContentChange, Document, Documents
from redraft.lsp.editor.history import History
from redraft.lsp.editor.positions import Position, Range
from redraft.lsp.recording.folder import Recordings
from redraft.lsp.recording.recorder import Recorder, Workplace
from redraft.lsp.session.exploring import Lot, lot_of
from redraft.lsp.session.questions import Query
from redraft.lsp.settings import LspSettings

URI = "file:///w/project/a.py"


class Scene:
    """A recorder with documents to change, and a clock to turn."""

    def __init__(self, folder: Path, on: bool = True, **settings: object) -> None:
        self.recordings = Recordings(folder)
        self.documents = Documents()
        self.settings = LspSettings(**settings)  # type: ignore[arg-type]
        self.now_ms = 1_700_000_000_000
        self.history = History(lambda: self.now_ms / 1000)
        workplace = Workplace(
            self.documents.all, path_of, lambda: "file:///w", self._settings, self._lot
        )
        self.recorder = Recorder(self.recordings, workplace, "redraft test", lambda: self.now_ms)
        if on:
            self.recordings.turn_on()

    def _settings(self) -> LspSettings:
        return self.settings

    def _lot(self, query: Query) -> Lot:
        return lot_of(self.settings.threshold, False, "")

    def open(self, text: str, uri: str = URI) -> Document:
        document = self.documents.open(uri, text, 1, "python")
        self.history.opened(uri, path_of(document), document.lines)
        self.recorder.opened(document)
        return document

    def change(self, *changes: ContentChange, uri: str = URI, accepted: bool = False) -> None:
        self.now_ms += 200
        document = self.documents.get(uri)
        assert document is not None
        self.recorder.before_change()
        splices = document.apply(changes, (document.version or 0) + 1)
        happening = self.history.changed(uri, splices, accepted=accepted)
        self.recorder.changed(document, splices, happening)

    def type(self, text: str, line: int, character: int, uri: str = URI) -> None:
        for at, letter in enumerate(text):
            self.change(insertion(letter, line, character + at), uri=uri)

    def files(self) -> list[Path]:
        return [kept.path for kept in self.recordings.kept()]


def path_of(document: Document) -> str:
    return document.uri.removeprefix("file:///w/")


def insertion(text: str, line: int, character: int) -> ContentChange:
    at = Position(line, character)
    return ContentChange(text, Range(at, at))


def replayed(path: Path) -> dict[str, str]:
    """The text that a recording leads to, by path."""
    documents = Replayed()
    for event in read_stream(path).events:
        documents.apply(event)
    return {documents.path(id_): documents.text(id_) for id_ in documents.ids}


def changes_in(path: Path) -> list[Changed]:
    return read_stream(path).changes


def write_until_killed(folder: str, told: Connection) -> None:
    """Type without end, and tell after each key how many there were."""
    scene = Scene(Path(folder))
    scene.open("x = 1\n" * 50)
    number = 0
    while True:
        scene.change(insertion("é😀"[number % 2] * (1 + number % 3), number % 50, 0))
        number += 1
        told.send(number)
