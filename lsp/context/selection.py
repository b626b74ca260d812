"""Selection and order of the excerpts in the context.

Excerpts in use keep their order, and new ones follow behind them, so that the prefix cache keeps
its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .scored_excerpts import ScoredExcerpt

QUANTUM = 64  # tokens to which the room for excerpts is rounded, so that typing rarely moves it
#: This share of the room stays free in a new region, for what comes up in it; tokens at most.
_FREE, _MOST_FREE = 0.2, 1_024
_ONE = 0.6  # of the room at most goes to one excerpt
_STAYS = 1.3  # what an excerpt in use counts more than one that is not


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Candidate that was not chosen, with the reason."""

    piece: ScoredExcerpt
    reason: str


def add_to(
    used: Sequence[ScoredExcerpt], candidates: Sequence[ScoredExcerpt], room: int, most: int
) -> tuple[tuple[ScoredExcerpt, ...], tuple[LeftOut, ...]]:
    """Return the excerpts in use with new ones behind them, as far as there is room."""
    left = room - sum(piece.tokens for piece in used)
    fresh = [piece for piece in _ranked(candidates) if not _covered(piece, used)]
    chosen, left_out = _fill(fresh, left, room, most - len(used))
    return (*used, *reversed(chosen)), left_out


def select(
    used: Sequence[ScoredExcerpt], candidates: Sequence[ScoredExcerpt], room: int, most: int
) -> tuple[tuple[ScoredExcerpt, ...], tuple[LeftOut, ...]]:
    """Return the best excerpts: those in use in their order, then new ones, the best last."""
    by_place = {_key(piece): piece for piece in used}
    ranked = _ranked(
        replace(by_place[_key(p)], score=_STAYS * p.score) if _key(p) in by_place else p
        for p in candidates
    )
    first = room - min(_FREE * room, _MOST_FREE)
    chosen, left_out = _fill(ranked, first, room, most)
    kept = {_key(piece): piece for piece in chosen}
    stay = [kept[_key(piece)] for piece in used if _key(piece) in kept]
    fresh = [piece for piece in reversed(chosen) if _key(piece) not in by_place]
    return (*stay, *fresh), left_out


def _fill(
    ranked: Sequence[ScoredExcerpt], left: float, room: int, most: int
) -> tuple[list[ScoredExcerpt], tuple[LeftOut, ...]]:
    """Return the first of ``ranked`` that fit into ``left`` tokens; long ones are cut."""
    chosen: list[ScoredExcerpt] = []
    left_out: list[LeftOut] = []
    for piece in ranked:
        if _covered(piece, chosen):
            continue
        fitting = piece.cut(min(left, max(_ONE * room, QUANTUM)))
        if len(chosen) >= most:
            left_out.append(LeftOut(piece, "there are better ones"))
        elif fitting is None:
            left_out.append(LeftOut(piece, f"no room: {left:.0f} tokens are left"))
        else:
            chosen.append(fitting)
            left -= fitting.tokens
    return chosen, tuple(left_out)


def _ranked(pieces: Iterable[ScoredExcerpt]) -> list[ScoredExcerpt]:
    return sorted(pieces, key=lambda piece: (-piece.score, piece.path, piece.first))


def _key(piece: ScoredExcerpt) -> tuple[str, str, str, int]:
    """Return the identity of an excerpt."""
    return piece.kind, piece.path, piece.name, piece.first


def _covered(piece: ScoredExcerpt, others: Iterable[ScoredExcerpt]) -> bool:
    """Return whether most of an excerpt is in others already."""
    return any(
        other.path == piece.path
        and (other.kind == "diagnostic") == (piece.kind == "diagnostic")
        and other.first <= piece.first
        and (piece.first < other.last - 1 or piece.last <= other.last)
        for other in others
    )
