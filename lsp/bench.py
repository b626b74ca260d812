"""What the language server adds to each keystroke, without any model.

``redraft bench`` calls :func:`keystroke_overhead`.
"""

from __future__ import annotations

import json
import time

from .documents import Documents
from .messages import changed
from .requests import Query
from .session import Session
from .settings import LspSettings
from .translate import Position

_LINE = "    total = total + values[index] * weights[index]  # the weighted sum so far"


def keystroke_overhead(lines: int = 10_000, keystrokes: int = 500) -> list[float]:
    """Milliseconds per keystroke typed into the middle of a file of ``lines`` lines.

    Each one reads a ``didChange`` from its JSON, applies it, and lets the session decide on a
    query at the new cursor.
    """
    documents, session = Documents(), Session(LspSettings(), time.monotonic)
    uri, line = "file:///bench.py", lines // 2
    document = documents.open(uri, "\n".join([_LINE] * lines), 0, "python")
    session.opened(uri, "bench.py", document.lines)
    spent = []
    for number in range(keystrokes):
        message = _typed(uri, line, len(_LINE) + number, number + 1)
        started = time.perf_counter()
        _press(documents, session, message)
        spent.append(1000 * (time.perf_counter() - started))
    return spent


def _press(documents: Documents, session: Session, message: bytes) -> None:
    change = changed(json.loads(message)["params"])
    splices = documents.change(change.uri, change.changes, change.version)
    document = documents.get(change.uri)
    assert document is not None
    session.changed(change.uri, splices, lambda: document.text)
    at = change.changes[0].range
    assert at is not None
    cursor = document.index(Position(at.start.line, at.start.character + 1))
    session.consider(
        Query(change.uri, "bench.py", "python", document.text, cursor, document.revision)
    )


def _typed(uri: str, line: int, character: int, version: int) -> bytes:
    """A ``didChange`` that inserts one character."""
    at = {"line": line, "character": character}
    change = {"range": {"start": at, "end": at}, "text": "x"}
    document = {"uri": uri, "version": version}
    params = {"textDocument": document, "contentChanges": [change]}
    return json.dumps({"method": "textDocument/didChange", "params": params}).encode()
