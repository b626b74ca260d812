"""What a canvas shows and what it must predict during training; pure numpy.

A canvas at offset ``s`` of an answer opens with the token before it and holds ``width - 1`` of the
answer's tokens, some hidden behind masks; prediction i is the token after input i (logit shift).
The answer is followed by END, and by END padding that counts little: counted fully it would swamp
the code. Mask ratios follow the project's recipe: mostly everything hidden, as serving begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

PADDING_WEIGHT = 0.05  # of END tokens after the first


@dataclass(frozen=True, slots=True)
class Canvas:
    """One window with its targets, each array [width]."""

    start: int  # position of window[0]; the canvas sees cached positions before it
    window: IntArray
    target: IntArray
    weight: NDArray[np.float32]  # of each prediction in the loss; 0 where it was shown


def full_mask(width: int) -> BoolArray:
    """Everything hidden: how every canvas begins when serving."""
    return np.ones(width, dtype=np.bool_)


def random_mask(width: int, low: float, rng: np.random.Generator) -> BoolArray:
    """Each position hidden with one ratio drawn from U(low, 1); at least one is hidden."""
    mask = rng.random(width) < rng.uniform(low, 1.0)
    mask[rng.integers(width)] = True
    return mask


def prefix_mask(width: int, rng: np.random.Generator) -> BoolArray:
    """The first few shown, the rest hidden with later positions hidden more: how canvases look in
    the middle of decoding."""
    shown = rng.integers(1, width)
    mask = rng.random(width) < np.linspace(0.6, 1.1, width)
    mask[:shown] = False
    mask[width - 1] = True
    return mask


def complement(mask: BoolArray) -> BoolArray:
    """Hides what ``mask`` shows and shows what it hides, so that a pair covers every position."""
    return ~mask


def lay_canvas(
    tokens: IntArray,
    prompt: int,
    answer: int,
    offset: int,
    hidden: BoolArray,
    mask_token: int,
    plain: bool = False,
) -> Canvas:
    """The canvas at ``offset`` of the answer.

    Args:
        tokens: prompt, answer, then END for at least ``offset + width`` more tokens.
        prompt: number of prompt tokens. answer: number of answer tokens, without END.
        hidden: [width] which predictions are behind masks. The last one never is an input, so it
            always counts as hidden.
        plain: the canvas lies within ordinary code: every hidden token counts alike.
    """
    width = len(hidden)
    start = prompt - 1 + offset
    target = tokens[start + 1 : start + 1 + width]  # [width]
    window = tokens[start : start + width].copy()  # [width]
    window[1:][hidden[:-1]] = mask_token
    weight = hidden.astype(np.float32)
    weight[-1] = 1.0
    if not plain:
        beyond = np.arange(width) + offset > answer  # after the first END
        weight[beyond] *= PADDING_WEIGHT
    return Canvas(start, window, target, weight)


def canvases_of(
    tokens: IntArray,
    prompt: int,
    answer: int,
    plain: int,
    count: int,
    width: int,
    mask_token: int,
    rng: np.random.Generator,
) -> list[Canvas]:
    """``count`` canvases over one row: the answer's blocks fully hidden and partly shown, and
    where the prompt holds ordinary code after ``plain``, one or two that continue that.

    Args:
        tokens, prompt, answer: as in :func:`lay_canvas`.
    """
    blocks = list(range(0, answer + 1, width))
    laid: list[Canvas] = []
    room = prompt - plain - width if plain else 0
    continued = min(2, count - 2) if room > width and rng.random() < 0.7 else 0
    pool = [int(b) for b in rng.permutation(blocks)]
    wanted = count - continued
    hidden_all = [0, *(b for b in pool if b)][: max(1, wanted * 2 // 5)]
    for offset in hidden_all:
        laid.append(lay_canvas(tokens, prompt, answer, offset, full_mask(width), mask_token))
    while len(laid) < wanted:
        offset = int(rng.choice(blocks))
        draw = rng.random()
        if draw < 0.5:
            first = prefix_mask(width, rng)
            masks = [first]
        else:
            first = random_mask(width, 0.2, rng)
            masks = [first, complement(first)] if not first.all() else [first]
        for mask in masks[: wanted - len(laid)]:
            laid.append(lay_canvas(tokens, prompt, answer, offset, mask, mask_token))
    for _ in range(continued):
        at = plain + int(rng.integers(1, room))
        mask = full_mask(width) if rng.random() < 0.4 else random_mask(width, 0.3, rng)
        laid.append(lay_canvas(tokens, at, 0, 0, mask, mask_token, plain=True))
    return laid
