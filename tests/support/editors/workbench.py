"""An editor without a screen: documents with their history, a session, a recorder and a clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from redraft.lsp.documents.history import ChangeKind
from redraft.lsp.documents.history_edits import PAUSE_S
from redraft.lsp.documents.open_documents import ContentChange, Document
from redraft.lsp.documents.positions import Position, Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.recording.recorder import Recorder
from redraft.lsp.recording.recordings_folder import Recordings
from redraft.lsp.snapshot import RequestFlags, Snapshot
from redraft.lsp.suggestions.outcomes import SuggestionEnded
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from redraft.model.records import (
    Prediction,
)

from support.editors.paused_session import (
    FOLDER,
    Ask,
    Decision,
    PausedSession,
    Shelf,
    in_loop,
    spin,
)
from support.editors.predictor import infill, rewrite

URI = FOLDER + "a.py"


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def ms(self) -> int:
        return round(1000 * self.now)


class Workbench:
    """A user at work: a document to type in, others beside it, and a clock to turn.

    Args:
        text: of the first document; None: none is open yet.
        folder: for recordings; None: there is no recorder.
        on: begin to record at once.
        settings: of the session and the recorder.
    """

    def __init__(
        self,
        text: str | None = "def f():\n    ",
        folder: Path | None = None,
        on: bool = True,
        **settings: object,
    ) -> None:
        self.clock = Clock()
        self.outcomes: list[str] = []
        self.use(PausedSession(LspSettings(**settings), self.clock))  # type: ignore[arg-type]
        if folder is not None:
            self._record(folder, on)
        self.text, self.cursor = text or "", len(text or "")
        if text is not None:
            self.document = self.open(text)

    def use(self, session: PausedSession) -> None:
        """Work with another session, which knows no document yet."""
        self.session, self.history = session, session.workspace.history
        self.documents: dict[str, Document] = session.workspace.documents._open
        self.shelf = Shelf(self.documents)
        session.workspace.context = self.shelf  # type: ignore[assignment]
        heard = session.memory.outcomes.listener

        def listen(settled: SuggestionEnded) -> None:
            self.outcomes.append(settled.outcome)
            heard(settled)

        session.memory.outcomes.listener = listen

    @property
    def revision(self) -> int:
        return self.document.revision

    def _record(self, folder: Path, on: bool) -> None:
        self.recordings = Recordings(folder)
        self.recorder = Recorder(
            self.recordings,
            self.session.workspace,
            self.session.memory,
            "redraft test",
            self.clock.ms,
        )
        if on:
            self.recordings.turn_on()

    def open(self, text: str, name: str = "a.py") -> Document:
        """Open a document without typing in it."""
        uri = name if ":" in name else FOLDER + name
        document = self.session.open(uri, text, 1, "python")
        if hasattr(self, "recorder"):
            self.recorder.on_open(document)
        return document

    def change(self, *changes: ContentChange, uri: str = URI, accepted: bool = False) -> ChangeKind:
        """Change a document behind the session's back and return the history's verdict."""
        document = self.documents[uri]
        if recorded := hasattr(self, "recorder"):
            self.clock.now += 0.2
            self.recorder.look()
        splices = document.apply(changes, (document.version or 0) + 1)
        happening = self.history.change(uri, splices, accepted=accepted)
        if recorded:
            self.recorder.on_change(document, splices, happening)
        return happening

    def put(self, line: int, start: int, end: int, text: str, uri: str = URI) -> ChangeKind:
        """Replace the characters [start, end) of a line in one change."""
        return self.change(change(text, line, start, end), uri=uri)

    def type_at(self, line: int, column: int, text: str, uri: str = URI) -> None:
        """Type ``text`` key by key."""
        for character in text:
            self.put(line, column, column, character, uri)
            line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
            self.clock.now += 0.1

    def pause(self, seconds: float = PAUSE_S + 0.1) -> None:
        self.clock.now += seconds

    def diffs(self) -> list[str]:
        return [edit.diff for edit in self.history.view().finished]

    def files(self) -> list[Path]:
        """Return the recordings that are kept."""
        return [kept.path for kept in self.recordings.list_recordings()]

    def becomes_elsewhere(self, document: Document, text: str) -> None:
        self.session.change(document.uri, [ContentChange(text)], None)

    def query(self, **fields: Any) -> Snapshot:
        names = ("selected", "cursors", "in_snippet", "other_documents", "whole_renames")
        flags = {name: fields.pop(name) for name in names if name in fields}
        flags["is_invoked"] = fields.pop("invoked", False)
        uri = fields.pop("uri", URI)
        cursor = fields.pop("cursor", self.cursor)
        if uri == URI:
            fields = {"text": self.text, "revision": self.revision, **fields}
        if uri not in self.documents:
            self.session.workspace.open(uri, fields.get("text", self.text), 1, "python")
        if "path" in fields:
            fields["excluded"] = self.session.workspace.exclusions.why(fields["path"], uri)
        self.session.workspace.on_diagnostics(URI, self.shelf.diagnostics(None))
        found = in_loop(lambda: self.session.at(uri, 0, RequestFlags(**flags)))
        if any(getattr(found.document, name) != value for name, value in fields.items()):
            found = replace(found, document=replace(found.document, **fields, _lines=None))
        return replace(found, cursor=cursor, line=found.text.count("\n", 0, cursor))

    def consider(self, **fields: object) -> Decision:
        return self.session.consider(self.query(**fields))

    def ask(self, **fields: object) -> Ask:
        return asking(self.consider(**fields))

    def answer(self, *texts: str, confidence: float = 0.9, took_ms: float = 0.0) -> Offer | Abstain:
        ask = self.ask(invoked=True)
        prediction = infill(ask.request, *texts, confidence=confidence)
        return self.settle(ask, prediction, took_ms)

    def settle(self, ask: Ask, prediction: Prediction, took_ms: float = 0.0) -> Offer | Abstain:
        """Answer a question while the documents are as they are now."""
        self.clock.now += took_ms / 1000
        return self.session.settle(ask, prediction)

    def consider_edit(self, **fields: object) -> Decision:
        return self.session.consider_edit(self.query(**fields))

    def ask_edit(self, **fields: object) -> Ask:
        return asking(self.consider_edit(**fields))

    def edit(
        self, old: str, new: str, confidence: float = 0.9, **fields: object
    ) -> Offer | Abstain:
        """Answer a question asked now: the first ``old`` becomes ``new``."""
        ask = self.ask_edit(**fields)
        prediction = rewrite(ask.request, old, new, confidence=confidence)
        return self.settle(ask, prediction)

    def swap(self, old: str, new: str) -> None:
        """Change the first ``old`` into ``new`` and stay there."""
        at = self.text.index(old)
        self.becomes(self.text.replace(old, new, 1), at + len(new))

    def accept(self, decision: Decision) -> None:
        made = showing(decision).suggestion
        self.becomes(made.result, made.landing)

    def becomes(self, text: str, cursor: int | None = None) -> None:
        self.text, self.cursor = text, len(text) if cursor is None else cursor
        self.session.change(URI, [ContentChange(text)], None)
        spin()

    def type(self, text: str) -> None:
        before, after = self.text[: self.cursor], self.text[self.cursor :]
        self.becomes(before + text + after, self.cursor + len(text))

    def erase(self, count: int) -> None:
        before, after = self.text[: self.cursor - count], self.text[self.cursor :]
        self.becomes(before + after, self.cursor - count)


def path_of(document: Document) -> str:
    return document.uri.removeprefix(FOLDER)


def change(text: str, line: int, start: int, end: int | None = None) -> ContentChange:
    """Return the change that puts ``text`` in place of the characters [start, end) of a line."""
    last = start if end is None else end
    return ContentChange(text, Range(Position(line, start), Position(line, last)))


def asking(decision: Decision) -> Ask:
    assert isinstance(decision, Ask), decision
    return decision


def showing(decision: Decision) -> Offer:
    assert isinstance(decision, Offer), decision
    return decision


def shown(decision: Decision) -> str:
    return showing(decision).text


def reason(decision: Decision) -> str:
    assert isinstance(decision, Abstain), decision
    return decision.reason
