"""The last answers as drafts: one key later most of an answer is the same again.

Every draft is verified, so these answers change how fast an answer is written, never its text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from ..prompts.format import Prompt
from ..prompts.tokenizer import Tokenizer
from ..records import EditRequest
from .completion import Draft

#: Answers kept: editors ask in turns for ghost text and next edits, in a few files.
MOST = 8
#: Tokens at a prompt's end, before its answer, by which the answer is found again.
LEAD = 12
#: Characters before the cursor that must agree for an infill to continue, and how many of them may
#: have been deleted since.
REACH, BACK = 200, 16


@dataclass(frozen=True, slots=True)
class _Answered:
    place: tuple[str, str]  # task and path
    before: str  # infill: the end of the text before the cursor
    text: str  # infill: the answer
    tokens: tuple[int, ...]  # of the prompt's end and the answer

    def rest(self, before: str) -> str | None:
        """Return the rest of an infill if ``before`` is the text before the cursor, else None.

        Some of the infill may have been typed since, or some characters deleted.
        """
        whole, at = self.before + self.text, len(self.before)
        places = sorted(range(max(at - BACK, 1), len(whole) + 1), key=lambda j: abs(j - at))
        for place in places:
            if before.endswith(whole[max(place - REACH, 0) : place]):
                return whole[place:]
        return None


class RecentAnswers:
    """The last answers of the one thread that predicts."""

    def __init__(self) -> None:
        self._kept: deque[_Answered] = deque(maxlen=MOST)
        self._tried: tuple[str, Seq[tuple[int, ...]]] = ("", ())  # path, rewrites

    def note(self, request: EditRequest, prompt: Prompt, draft: Draft) -> None:
        """Keep ``draft`` as the answer to ``request``."""
        before, text = "", ""
        if request.task == "infill":
            before = request.text[max(request.cursor - REACH - BACK, 0) : request.cursor]
            text = draft.text[len(prompt.forced) :]
        tokens = (*prompt.tokens[-LEAD:], *draft.token_ids)
        self._kept.append(_Answered((request.task, request.path), before, text, tokens))

    def note_rewrites(self, path: str, tried: Seq[tuple[int, ...]]) -> None:
        """Keep the rewrites of a region that were begun, in place of those before.

        The next key raises nearly the same question, and most of the same rewrites are begun again,
        the hopeless ones too.
        """
        self._tried = path, tried

    def rewrites(self, path: str, end_token: int) -> list[int]:
        """Return the tokens of the last rewrites in a file to copy from, each before END."""
        if self._tried[0] != path:
            return []
        return [token for tokens in self._tried[1] for token in (*tokens, end_token)]

    def source(
        self, request: EditRequest, prompt: Prompt, tokenizer: Tokenizer, end_token: int
    ) -> list[int]:
        """Return the tokens to copy from, the latest answer last.

        Each answer stands behind the end of its prompt and before END. Of an infill that continues,
        the rest stands behind the end of ``prompt``.
        """
        found: list[int] = []
        begin = max(request.cursor - REACH - BACK, 0)
        before = request.text[begin : request.cursor]
        for each in self._kept:
            rest = None
            if request.task == "infill" and each.place == (request.task, request.path):
                rest = each.rest(before)
            if rest is None:
                found += each.tokens
            else:
                found += [*prompt.tokens[-LEAD:], *tokenizer.encode(prompt.forced + rest)]
            found.append(end_token)
        return found
