"""Recordings that tests write, read back."""

from __future__ import annotations

from pathlib import Path

from redraft.lsp.learning.recording_file import read_recording
from redraft.lsp.learning.texts import Texts
from redraft.lsp.recording.recording_events import Changed


def replayed(path: Path) -> dict[str, str]:
    """Return the texts at the end of a recording by path."""
    texts = Texts()
    for event in read_recording(path).events:
        texts.apply(event)
    return {texts.path(id_): texts.text(id_) for id_ in texts.ids}


def changes_in(path: Path) -> list[Changed]:
    return read_recording(path).changes
