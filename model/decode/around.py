"""Whether an infill fits the indentation of the lines around the cursor."""

from __future__ import annotations

from dataclasses import dataclass

from ..edits.half_blocks import whole_blocks
from ..errors import InvalidAnswer
from ..prompt.foreign import Read
from ..prompt.formats import Format
from ..prompt.render import Prompt
from ..records import EditRequest
from ..text.common import common_head
from ..text.indentation import Misfit, misfit
from ..text.syntax import language_of


@dataclass(frozen=True, slots=True)
class Around:
    """The surroundings of one infill, as ``decoding.second_try`` asks for them."""

    written_in: Format
    prompt: Prompt
    request: EditRequest

    def misfit(self, written: str, ended: bool) -> Unfit | None:
        """Return the answer if it does not fit at its cursor, else None."""
        text = self.request.text
        change = self._change(written, ended)
        if change is None:
            return None
        language = self.request.language or language_of(self.request.path)
        found = misfit(text[: change.start], change.text, text[change.end :], language, ended)
        return None if found is None else Unfit(self, found, text[: change.start] + change.text)

    def only_opens_block(self, written: str) -> bool:
        """Return whether the answer is nothing but the head of a block without its body."""
        change, asked = self._change(written, ended=True), self.request
        if change is None or not change.text.strip():
            return False
        return not whole_blocks(
            change.text, asked.text, change.start, asked.path, asked.language
        ).strip()

    def _change(self, written: str, ended: bool) -> Read | None:
        try:
            return self.written_in.read(self.prompt, self.request, written, ended)
        except InvalidAnswer:
            return None


@dataclass(frozen=True, slots=True)
class Unfit:
    """An answer that does not fit its surroundings."""

    around: Around
    misfit: Misfit
    text: str  # with what it writes at its end

    def stays(self, beginning: str) -> bool:
        """Return whether an answer that begins so does not fit either, however it continues."""
        request, forced = self.around.request, self.around.prompt.forced
        text = request.text[: request.cursor] + beginning[len(forced) :]
        return self.misfit.stays(text, common_head(text, self.text))
