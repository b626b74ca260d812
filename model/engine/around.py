"""What an infill has to fit: the lines around the cursor, where indentation makes the blocks.

Knows nothing of how answers are written.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..prompt.answers import InvalidAnswer
from ..prompt.formats import Format
from ..prompt.render import Prompt
from ..records import EditRequest
from ..text.indentation import hopeless, misfit
from ..text.syntax import language_of


@dataclass(frozen=True, slots=True)
class Around:
    """Of one request; see :class:`~redraft.model.decoding.second_try.Surroundings`."""

    written_in: Format
    prompt: Prompt
    request: EditRequest

    def misfit(self, written: str, ended: bool) -> str:
        """Why what is put in at the cursor of an answer does not fit there."""
        text = self.request.text
        try:
            change = self.written_in.read(self.prompt, self.request, written, ended)
        except InvalidAnswer:
            return ""
        if change is None:
            return ""
        language = self.request.language or language_of(self.request.path)
        return misfit(text[: change.start], change.text, text[change.end :], language, ended)

    def hopeless(self, beginning: str, reason: str) -> bool:
        """Whether the line on which an answer is cut off goes on where it cannot fit."""
        shown = beginning[len(self.prompt.forced) :]
        line = self.request.text[: self.request.cursor].rpartition("\n")[2]
        return hopeless((line + shown).rpartition("\n")[2], reason)
