"""The reference that a fuzzed document is compared with: a text in UTF-16, changed as the protocol
says it, and nothing else. Slow, and simple enough to be believed."""

from __future__ import annotations

import re
from typing import Any

_LINE_END = re.compile("\r\n|\r|\n")


class Mirror:
    """One document as its editor has it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def apply(self, changes: list[dict[str, Any]]) -> None:
        """``contentChanges``, one after the other."""
        for change in changes:
            if "range" not in change:
                self.text = change["text"]
                continue
            start, end = (self.offset(change["range"][at]) for at in ("start", "end"))
            data = self.text.encode("utf-16-le", "surrogatepass")
            put = change["text"].encode("utf-16-le", "surrogatepass")
            data = data[: 2 * start] + put + data[2 * max(start, end) :]
            self.text = data.decode("utf-16-le", "surrogatepass")

    def offset(self, place: dict[str, int]) -> int:
        """In UTF-16 units; beyond the end of a line its end, beyond the last line the text's."""
        at = 0
        for number, (line, end) in enumerate(self._lines()):
            length = len(line.encode("utf-16-le", "surrogatepass")) // 2
            if number == place["line"]:
                return at + min(place["character"], length)
            at += length + len(end)
        return at

    def seen(self) -> str:
        """As a model is asked about it: ``\\n`` alone, and whole characters."""
        text = _LINE_END.sub("\n", self.text)
        return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text)

    def _lines(self) -> list[tuple[str, str]]:
        ends = [*_LINE_END.findall(self.text), ""]
        return list(zip(_LINE_END.split(self.text), ends, strict=True))
