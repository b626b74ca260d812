"""Recordings for tests: typing, pauses and pastes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from redraft.lsp.learning.recorded_moments import Script, script_of
from redraft.lsp.learning.recording_file import Recording
from redraft.lsp.recording.recording_events import (
    Changed,
    ChangeSource,
    Encountered,
    Event,
    Focused,
    Header,
    SelectionChanged,
    SetContent,
    TextEdit,
    encode_all,
)

KEY_MS = 40  # between two keys


@dataclass
class Typist:
    """Documents by number; offsets count UTF-16 code units, as recordings do."""

    texts: dict[int, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    now_ms: int = 1_000

    def opens(self, text: str, path: str = "a.py", document: int = 0) -> None:
        self.texts[document] = text
        self.events += [
            Encountered(self.now_ms, document, path),
            SetContent(self.now_ms, document, None, text),
            Focused(self.now_ms, document),
        ]

    def pauses(self, seconds: float) -> None:
        self.now_ms += round(1000 * seconds)

    def types(self, text: str, at: int, document: int = 0) -> None:
        for i, char in enumerate(text):
            self.puts(char, at + i, document=document)
            self.now_ms += KEY_MS

    def puts(
        self, text: str, at: int, removed: int = 0, source: ChangeSource = "user", document: int = 0
    ) -> None:
        edit = TextEdit(at, at + removed, text)
        changed = Changed(self.now_ms, document, None, (edit,), source)
        end = at + len(text.encode("utf-16-le")) // 2
        selected = SelectionChanged(self.now_ms + 1, document, ((end, end),))
        self.events += [changed, selected]
        units = self.texts[document].encode("utf-16-le")
        units = units[: 2 * at] + text.encode("utf-16-le") + units[2 * (at + removed) :]
        self.texts[document] = units.decode("utf-16-le")

    def leaves(self, seconds: float = 60.0) -> None:
        """Let time pass without changes of the document."""
        self.pauses(seconds)
        self.events.append(Focused(self.now_ms, 0))

    def script(self, name: str = "made-up") -> Script:
        return script_of(Recording(Header(1_000), tuple(self.events)), name)

    def write(self, path: Path) -> Path:
        """Write the recording as a file."""
        path.write_bytes(encode_all((Header(1_000), *self.events)))
        return path
