"""Changes of documents, passed on to history, outcomes and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .documents import Document, Splice
from .history import ChangeKind
from .policy.secret_files import secret_in

if TYPE_CHECKING:
    from .session import Session


def begin(session: Session, document: Document) -> None:
    """Follow a document that was opened, or whose text is known again."""
    path = session.path(document)
    if secret_in("\n".join(document.lines), path):
        session.history.closed(document.uri)  # its edits reach no request
    else:
        session.history.opened(document.uri, path, document.lines)
    session.recorder.opened(document)


def follow(session: Session, document: Document, splices: Sequence[Splice]) -> ChangeKind:
    """Keep outcomes, history and suggestions in step with a change; return its kind."""
    uri, now, text = document.uri, session.clock(), document.text
    confirmed = session.outcomes.changed(uri, text, now)
    session.rejections.changed(uri, splices)
    # A single key that ends a suggestion typed by hand belongs to the user's own edit.
    accepted = confirmed and sum(splice.extent.characters for splice in splices) > 1
    kind = session.history.changed(uri, splices, accepted=accepted)
    session.is_focused = True  # the user types here
    if kind == "edit":
        session.pace.changed(now)
    if kind == "undo":
        _undone(session, uri, text)
    memory = session.memory(uri)
    memory.changed(splices, kind, text)
    if memory.away is not None:  # typing here dismisses it
        away, memory.away = memory.away, None
        if session.outcomes.live(away.id) is not None:
            session.outcomes.dismiss(away.uri)
    return kind


def _undone(session: Session, uri: str, text: str) -> None:
    """Drop the edit that builds on what was undone; undoing an accepted one rejects it."""
    memory, shown = session.memory(uri), session.outcomes.showing(uri)
    if shown is not None and shown.task == "next_edit":
        session.outcomes.dismiss(uri)
    if memory.accepted is not None and memory.accepted.text == text:
        session.rejections.note(memory.accepted, session.clock())
        memory.accepted = None
