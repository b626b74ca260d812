"""Copies from text that the prompt has no room for: the rest of the file, excerpts left out.

Texts are searched as bytes, which takes microseconds, and only what is copied is made tokens: a
file of any length costs a keystroke nothing. Knows nothing of prompts or models.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

from .drafting import LENGTHS, MOST_EVIDENCE, Copy

#: Fewer tokens alike are found by chance in any long text.
LEAST_ALIKE = 3
#: Bytes looked through on either side of the cursor, and of all excerpts together.
REACH = 128 * 1024
#: Bytes made tokens for one draft: enough for as many tokens as a copy has at most.
COPIED_BYTES = 64


class Beyond:
    """Texts in the order in which they are looked through.

    Args:
        text, cursor: the file, and the index where the answer goes: what is written there is no
            copy of itself. others: further texts, the most relevant last.
        encode: tokens of a text.
    """

    def __init__(
        self, text: str, cursor: int, others: Seq[str], encode: Callable[[str], list[int]]
    ) -> None:
        self._encode = encode
        self._before = _bytes(text[max(cursor - REACH, 0) : cursor])
        self._after = _bytes(text[cursor : cursor + REACH])
        self._others: list[bytes] = []
        left = REACH
        for other in reversed(others):
            self._others.append(_bytes(other[:left]))
            left -= len(self._others[-1])

    def copy(self, written: Seq[bytes]) -> Copy:
        """What follows the nearest place that reads like the end of ``written``, the bytes of all
        tokens before the draft; marks have none."""
        tail: list[bytes] = []
        for piece in reversed(written[-MOST_EVIDENCE:]):
            if not piece:
                break
            tail.insert(0, piece)
        if len(tail) < LEAST_ALIKE:
            return Copy()
        for text, at in self._places(b"".join(tail[-LEAST_ALIKE:])):
            found = self._following(text, at)
            if found:
                return Copy(found, _alike(text[:at], tail), "file")
        return Copy()

    def _places(self, end: bytes) -> list[tuple[bytes, int]]:
        """Texts with the index behind ``end`` in them, the nearest first."""
        found = [
            (self._before, self._before.rfind(end, 0, max(len(self._before) - 1, 0))),
            *((text, text.find(end)) for text in (self._after, *self._others)),
        ]
        return [(text, at + len(end)) for text, at in found if at >= 0]

    def _following(self, text: bytes, at: int) -> tuple[int, ...]:
        cut = text[at : at + COPIED_BYTES].decode("utf-8", "ignore")
        tokens = self._encode(cut)
        whole = at + COPIED_BYTES >= len(text)
        return tuple(tokens if whole else tokens[:-1])[: LENGTHS[0]]  # the last may be cut short


def _alike(text: bytes, tail: Seq[bytes]) -> int:
    """How many of the ``tail``'s tokens ``text`` ends with."""
    end = len(text)
    for count, piece in enumerate(reversed(tail)):
        if not text.endswith(piece, 0, end):
            return count
        end -= len(piece)
    return len(tail)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
