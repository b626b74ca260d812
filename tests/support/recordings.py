"""Recordings that tests write, read back."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

from redraft.evals.recordings.documents import StreamDocuments as Replayed
from redraft.evals.recordings.format import Changed
from redraft.evals.recordings.streams import read_stream

from support.workbench import Workbench, change


def replayed(path: Path) -> dict[str, str]:
    """Return the texts at the end of a recording by path."""
    documents = Replayed()
    for event in read_stream(path).events:
        documents.apply(event)
    return {documents.path(id_): documents.text(id_) for id_ in documents.ids}


def changes_in(path: Path) -> list[Changed]:
    return read_stream(path).changes


def write_until_killed(folder: str, told: Connection) -> None:
    """Type without end and send the number of keys after each of them."""
    bench = Workbench(None, Path(folder))
    bench.open("x = 1\n" * 50)
    number = 0
    while True:
        bench.change(change("é😀"[number % 2] * (1 + number % 3), number % 50, 0))
        number += 1
        told.send(number)
