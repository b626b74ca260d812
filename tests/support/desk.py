"""A session with a clock to turn and one document to type in, as its tests use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from redraft.lsp.editor.documents import ContentChange, Document
from redraft.lsp.session.decisions import Ask, Decision, Show
from redraft.lsp.session.door import Session
from redraft.lsp.session.mentions import OpenText
from redraft.lsp.session.outcomes import Settled
from redraft.lsp.session.questions import PlainContext, Query
from redraft.lsp.settings import LspSettings
from redraft.model.edits.abstained import Abstained

from support.predictor import infill, rewrite

URI = "file:///w/a.py"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Shelf(PlainContext):
    """Knows the texts of the open documents, and which files define a name."""

    def __init__(self) -> None:
        self.opened: dict[str, Document] = {}
        self.defined: dict[str, set[str]] = {}

    def documents(self) -> Sequence[OpenText]:
        return [
            OpenText(uri, uri.rpartition("/")[2], "python", each.revision, self._text_of(each))
            for uri, each in self.opened.items()
        ]

    def definers(self, name: str, language: str) -> Collection[str]:
        return self.defined.get(name, set())

    @staticmethod
    def _text_of(document: Document) -> Callable[[], str]:
        return lambda: document.text


class Desk:
    """A session with a clock to turn and one document to type in; others may lie open beside it."""

    def __init__(self, text: str = "def f():\n    ", **settings: object) -> None:
        self.clock = Clock()
        self.outcomes: list[str] = []
        self.shelf = Shelf()
        self.session = Session(LspSettings(**settings), self.clock, self._note, self.shelf)  # type: ignore[arg-type]
        self.document = self.shelf.opened[URI] = Document(URI, text)
        self.session.opened(URI, "a.py", self.document.lines)
        self.text, self.cursor, self.revision = text, len(text), 0

    def _note(self, settled: Settled) -> None:
        self.outcomes.append(settled.outcome)

    def open(self, name: str, text: str) -> Document:
        """Another document, in which nobody types yet."""
        document = self.shelf.opened[f"file:///w/{name}"] = Document(f"file:///w/{name}", text)
        self.session.opened(document.uri, name, document.lines)
        return document

    def becomes_elsewhere(self, document: Document, text: str) -> None:
        splices = document.apply([ContentChange(text)], None)
        self.session.changed(document.uri, splices, lambda: document.text)

    def query(self, **fields: object) -> Query:
        here = Query(URI, "a.py", "python", self.text, self.cursor, self.revision)
        return replace(here, **fields)  # type: ignore[arg-type]

    def consider(self, **fields: object) -> Decision:
        return self.session.consider(self.query(**fields))

    def ask(self, **fields: object) -> Ask:
        decision = self.consider(**fields)
        assert isinstance(decision, Ask), decision
        return decision

    def answer(
        self, *texts: str, confidence: float = 0.9, took_ms: float = 0.0
    ) -> Show | Abstained:
        ask = self.ask(invoked=True)
        prediction = infill(ask.request, *texts, confidence=confidence)
        return self.session.settle(ask, prediction, self.revision, took_ms)

    # --- next edits ------------------------------------------------------------------------

    def consider_edit(self, **fields: object) -> Decision:
        return self.session.consider_edit(self.query(**fields))

    def ask_edit(self, **fields: object) -> Ask:
        decision = self.consider_edit(**fields)
        assert isinstance(decision, Ask), decision
        return self.session.complete(decision)

    def edit(
        self, old: str, new: str, confidence: float = 0.9, **fields: object
    ) -> Show | Abstained:
        """The model's answer to a question asked now: the first ``old`` becomes ``new``."""
        ask = self.ask_edit(**fields)
        prediction = rewrite(ask.request, old, new, confidence=confidence)
        return self.session.settle(ask, prediction, self.revision, 0.0, lambda: self.text)

    def swap(self, old: str, new: str) -> None:
        """The user changes the first ``old`` into ``new`` and stays there."""
        at = self.text.index(old)
        self.becomes(self.text.replace(old, new, 1), at + len(new))

    def accept(self, show: Decision) -> None:
        assert isinstance(show, Show), show
        self.becomes(show.suggestion.result, show.suggestion.landing)

    # --- typing ----------------------------------------------------------------------------

    def becomes(self, text: str, cursor: int | None = None) -> None:
        self.text, self.cursor = text, len(text) if cursor is None else cursor
        self.revision += 1
        splices = self.document.apply([ContentChange(text)], None)
        self.session.changed(URI, splices, lambda: self.text)

    def type(self, text: str) -> None:
        before, after = self.text[: self.cursor], self.text[self.cursor :]
        self.becomes(before + text + after, self.cursor + len(text))

    def erase(self, count: int) -> None:
        before, after = self.text[: self.cursor - count], self.text[self.cursor :]
        self.becomes(before + after, self.cursor - count)


def shown(decision: Decision) -> str:
    assert isinstance(decision, Show), decision
    return decision.text


def reason(decision: Decision) -> str:
    assert isinstance(decision, Abstained), decision
    return decision.reason
