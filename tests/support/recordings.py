"""Recordings that tests write, read back."""

from __future__ import annotations

from pathlib import Path

from redraft.evals.recordings.documents import StreamDocuments as Replayed
from redraft.evals.recordings.format import Changed
from redraft.evals.recordings.streams import read_stream


def replayed(path: Path) -> dict[str, str]:
    """Return the texts at the end of a recording by path."""
    documents = Replayed()
    for event in read_stream(path).events:
        documents.apply(event)
    return {documents.path(id_): documents.text(id_) for id_ in documents.ids}


def changes_in(path: Path) -> list[Changed]:
    return read_stream(path).changes
