"""What the language server adds to each keystroke, without any model.

``redraft bench`` calls :func:`keystroke_overhead`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from redraft.lsp.connection.messages import changed
from redraft.lsp.context.gather import BUDGET
from redraft.lsp.editor.documents import Documents
from redraft.lsp.editor.positions import Position
from redraft.lsp.session.client_context import ClientContext
from redraft.lsp.session.decisions import Ask
from redraft.lsp.session.door import Session
from redraft.lsp.session.questions import Query
from redraft.lsp.settings import LspSettings
from redraft.model.records import Task


@dataclass(frozen=True, slots=True)
class Keystrokes:
    """Milliseconds each keystroke took, by the clock and of the processor."""

    wall_ms: list[float] = field(default_factory=list)
    processor_ms: list[float] = field(default_factory=list)


def keystroke_overhead(lines: int = 10_000, keystrokes: int = 500) -> Keystrokes:
    """Type code into the middle of a file of ``lines`` lines, at a key a tenth of a second.

    Each keystroke reads a ``didChange`` from its JSON and applies it: document, history, outcomes.
    Then the session decides on ghost text and on the next edit, and what it would ask the model is
    made complete: syntax tree, region, definitions and edits.
    """
    code = code_lines()
    typist = Typist((code * (lines // len(code) + 1))[:lines], lines // 2)
    spent = Keystrokes()
    for key in _keys(code, keystrokes):
        message = typist.message(key)
        wall, processor = time.perf_counter(), time.thread_time()
        for question in typist.questions(typist.press(message)):
            typist.session.complete(question)
        spent.processor_ms.append(1000 * (time.thread_time() - processor))
        spent.wall_ms.append(1000 * (time.perf_counter() - wall))
        typist.now_s += 0.1
    return spent


def code_lines() -> list[str]:
    """Lines of code that is always there."""
    assert argparse.__file__ is not None
    return Path(argparse.__file__).read_text(encoding="utf-8").split("\n")


def _keys(code: list[str], count: int) -> str:
    """What is typed: a class, as an editor indents it."""
    start = next(at for at, line in enumerate(code) if line.startswith("class HelpFormatter"))
    return "\n".join(code[start:])[:count]


class Typist:
    """Somebody at a document and the server they type for, in one process and without a model.

    Args:
        lines: of the document.
        line: where typing begins, 0-based; at its start.
        budget: tokens of a prompt.
    """

    def __init__(self, lines: list[str], line: int, budget: int = BUDGET) -> None:
        self.now_s = 100.0
        self._uri, self._path, self._version = "file:///w/bench.py", "bench.py", 0
        self._line, self._column = line, 0
        self._documents = Documents()
        self.around = ClientContext(
            self._documents.all,
            lambda: ["file:///w"],
            lambda: self.session.settings,
            lambda: self.now_s,
            edits=lambda: self.session.history.edits(),
            background=False,
        )
        settings = LspSettings(context_tokens=budget)
        self.session = Session(settings, lambda: self.now_s, context=self.around)
        document = self._documents.open(self._uri, "\n".join(lines), 0, "python")
        self.session.opened(self._uri, self._path, document.lines)
        list(self.questions(self.press(self.message("#"))))
        self.around.catch_up()  # in the background the document is read, and a large one parsed

    def go(self, line: int) -> None:
        """Put the cursor at the beginning of another line."""
        self._line, self._column = line, 0

    def message(self, key: str) -> bytes:
        """The ``didChange`` of one key, which is then to be pressed."""
        at = {"line": self._line, "character": self._column}
        self._version += 1
        self._line += key == "\n"
        self._column = 0 if key == "\n" else self._column + 1
        change = {"range": {"start": at, "end": at}, "text": key}
        document = {"uri": self._uri, "version": self._version}
        params = {"textDocument": document, "contentChanges": [change]}
        return json.dumps({"method": "textDocument/didChange", "params": params}).encode()

    def press(self, message: bytes) -> Query:
        """Take a message in; the query that a client follows it with."""
        change = changed(json.loads(message)["params"])
        splices = self._documents.change(change.uri, change.changes, change.version)
        document = self._documents.get(change.uri)
        assert document is not None
        self.session.changed(change.uri, splices, lambda: document.text)
        cursor = document.index(Position(self._line, self._column))
        return Query(self._uri, self._path, "python", document.text, cursor, document.revision)

    def question(self, query: Query, task: Task) -> Ask:
        """What the model would be asked, whatever the moment: as by a gesture."""
        consider = self.session.consider if task == "infill" else self.session.consider_edit
        decision = consider(replace(query, invoked=True))
        assert isinstance(decision, Ask), decision  # nothing is known of a text just typed
        return decision

    def asked(self, query: Query, task: Task) -> Ask:
        """What a client that asks at every key makes the session ask the model."""
        consider = self.session.consider if task == "infill" else self.session.consider_edit
        decision = consider(query)
        assert isinstance(decision, Ask), decision
        return decision

    def questions(self, query: Query) -> Iterator[Ask]:
        """What the session would ask the model now: for ghost text, then for the next edit."""
        for consider in (self.session.consider, self.session.consider_edit):
            decision = consider(query)
            if isinstance(decision, Ask):
                yield decision
