"""Recordings made up for tests: somebody types, pauses, pastes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redraft.evals.recordings.format import (
    Changed,
    Encountered,
    Event,
    Focused,
    Header,
    SelectionChanged,
    SetContent,
    Stream,
    TextEdit,
)
from redraft.evals.replay.script import Script, script_of
from redraft.lsp.recording.format import ChangeSource

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
        changed = Changed(self.now_ms, document, None, (edit,), source, stated=True)
        end = at + len(text.encode("utf-16-le")) // 2
        selected = SelectionChanged(self.now_ms + 1, document, ((end, end),))
        self.events += [changed, selected]
        units = self.texts[document].encode("utf-16-le")
        units = units[: 2 * at] + text.encode("utf-16-le") + units[2 * (at + removed) :]
        self.texts[document] = units.decode("utf-16-le")

    def leaves(self, seconds: float = 60.0) -> None:
        """Looks elsewhere for so long: the recording goes on, the document does not."""
        self.pauses(seconds)
        self.events.append(Focused(self.now_ms, 0))

    def stream(self, simulated: bool = False) -> Stream:
        return Stream(Header(1_000, simulated=simulated), tuple(self.events))

    def script(self, name: str = "made-up", simulated: bool = False) -> Script:
        return script_of(self.stream(simulated), name)

    def write(self, path: Path) -> Path:
        """The same as a file."""
        header = {"kind": "header", "documentType": "workspaceRecording@1.0", "time": 1_000}
        lines = [header, *(entry for event in self.events for entry in _entries(event))]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path


def _entries(event: Event) -> list[dict[str, Any]]:
    match event:
        case Encountered():
            return [_entry("documentEncountered", event, relativePath=event.path)]
        case SetContent():
            return [_entry("setContent", event, content=event.text)]
        case Focused():
            return [_entry("focused", event)]
        case Changed():
            edits = [[edit.start, edit.end, edit.text] for edit in event.edits]
            return [_entry("changed", event, edit=edits, source=event.source)]
        case SelectionChanged():
            return [_entry("selectionChanged", event, selection=[*map(list, event.selections)])]
    raise AssertionError(event)


def _entry(kind: str, event: Any, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "id": event.document, "time": event.time_ms, **fields}
