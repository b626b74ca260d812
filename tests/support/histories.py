"""A document and its edit history, as their tests use them."""

from __future__ import annotations

from hypothesis import strategies as st
from redraft.lsp.editor.documents import ContentChange, Document
from redraft.lsp.editor.history import (
    PAUSE_S,
    Happening,
    History,
)
from redraft.lsp.editor.positions import Position, Range
from unidiff import PatchedFile

URI = "file:///w/a.py"


CODE = "".join(f"value_{i} = compute({i})\n" for i in range(60))


class Desk:
    """Documents typed in, with a clock to turn."""

    def __init__(self, **texts: str) -> None:
        self.now = 1000.0
        self.history = History(lambda: self.now)
        self.documents: dict[str, Document] = {}
        for name, text in (texts or {"a": CODE}).items():
            self.open(f"file:///w/{name}.py", text)

    def open(self, uri: str, text: str) -> None:
        document = self.documents[uri] = Document(uri, text)
        self.history.opened(uri, uri.rsplit("/", 1)[-1], document.lines)

    def change(self, *changes: ContentChange, uri: str = URI, accepted: bool = False) -> Happening:
        splices = self.documents[uri].apply(changes, None)
        return self.history.changed(uri, splices, accepted=accepted)

    def put(self, line: int, start: int, end: int, text: str, uri: str = URI) -> Happening:
        """``text`` in place of the characters [start, end) of a line, in one change."""
        return self.change(
            ContentChange(text, Range(Position(line, start), Position(line, end))), uri=uri
        )

    def type(self, line: int, column: int, text: str, uri: str = URI) -> None:
        for character in text:
            self.put(line, column, column, character, uri)
            line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
            self.now += 0.1

    def delete_lines(self, first: int, last: int, uri: str = URI) -> Happening:
        return self.change(ContentChange("", Range(Position(first, 0), Position(last, 0))), uri=uri)

    def pause(self, seconds: float = PAUSE_S + 0.1) -> None:
        self.now += seconds

    def diffs(self) -> list[str]:
        return [edit.diff for edit in self.history.edits()]

    def lines(self, uri: str = URI) -> list[str]:
        return list(self.documents[uri].lines)

    def rebuilt(self, uri: str = URI) -> list[str]:
        """The newest snapshot with everything since applied to it."""
        lines = list(self.history.snapshot(uri))
        for patch in [*self.history.patches(uri), *self.history.in_progress(uri)]:
            apply(patch, lines)
        return lines


def apply(patch: PatchedFile, lines: list[str]) -> None:
    [hunk] = patch
    assert hunk.is_valid()
    old = [str(line)[1:-1] for line in hunk.source_lines()]
    new = [str(line)[1:-1] for line in hunk.target_lines()]
    first = hunk.source_start - bool(old)
    assert lines[first : first + len(old)] == old
    lines[first : first + len(old)] = new


places = st.tuples(st.integers(0, 14), st.integers(0, 4))
