"""Texts as tokens, and what is kept of a text where there is no room for all of it.

Shared by all formats of prompts. Knows nothing of any.
"""

from __future__ import annotations

from ..memo import Memo
from .tokens import Tokenizer


def keep(tokenizer: Tokenizer, text: str, room: int, *, from_end: bool) -> list[int]:
    """Tokens of ``text`` within ``room``, cut at a line end; a single longer line is cut inside."""
    if room <= 0 or not text:
        return []
    longest = room * 24  # no token of ordinary text is longer: spare encoding what cannot fit
    if len(text) > longest:
        text = text[-longest:] if from_end else text[:longest]
    ids = encode(tokenizer, text)
    if len(ids) <= room:
        return list(ids)
    kept = list(ids[-room:] if from_end else ids[:room])
    cut = tokenizer.decode(kept)
    edge = cut.find("\n") + 1 if from_end else cut.rfind("\n") + 1
    whole = cut[edge:] if from_end else cut[:edge]
    return list(encode(tokenizer, whole)) if whole and edge else kept


def short_path(path: str) -> str:
    """A path of bounded length on one line; its end says most."""
    return path.replace("\n", " ").replace("\r", " ")[-200:]


def encode(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """Sections recur from keystroke to keystroke: encode each once."""
    return _ENCODED.get((tokenizer, text), _encode_anew)


def _encode_anew(asked: tuple[Tokenizer, str]) -> tuple[int, ...]:
    tokenizer, text = asked
    return tuple(tokenizer.encode(text))


_ENCODED: Memo[tuple[Tokenizer, str], tuple[int, ...]] = Memo(16 << 20, lambda ids: 32 * len(ids))
