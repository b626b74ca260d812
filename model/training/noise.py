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
FloatArray = NDArray[np.float32]

PADDING_WEIGHT = 0.05  # of END tokens after the first


@dataclass(frozen=True, slots=True)
class Noise:
    """How canvases are made; shares and chances lie in 0 … 1. What is 0 is off."""

    all_hidden: float = 0.4  # of an answer's canvases show nothing, as serving begins
    low: float = 0.2  # mask ratios of the others are drawn from U(low, 1)
    later: float = 0.0  # how much likelier the last position is hidden than the first
    settled_end: bool = False  # END padding is shown where the first END is, as when serving
    wrong: float = 0.0  # of the shown tokens are wrong ones, to be repaired
    wrong_weight: float = 1.0  # of a wrong token's repair in the loss
    right_weight: float = 0.1  # of shown right tokens beside wrong ones: they are to stay
    ordinary: tuple[int, int] = (17, 49_152)  # token ids [first, last) that wrong ones come from


NOISE = Noise()


@dataclass(frozen=True, slots=True)
class Canvas:
    """One window with its targets, each array [width]."""

    start: int  # position of window[0]; the canvas sees cached positions before it
    window: IntArray
    target: IntArray
    weight: FloatArray  # of each prediction in the loss; 0: it was shown and is not asked for


def full_mask(width: int) -> BoolArray:
    """Everything hidden: how every canvas begins when serving."""
    return np.ones(width, dtype=np.bool_)


def random_mask(width: int, low: float, rng: np.random.Generator) -> BoolArray:
    """Each position hidden with one ratio drawn from U(low, 1); at least one is hidden."""
    mask = rng.random(width) < rng.uniform(low, 1.0)
    mask[rng.integers(width)] = True
    return mask


def sloped_mask(width: int, low: float, slope: float, rng: np.random.Generator) -> BoolArray:
    """Like :func:`random_mask`, with chances that rise by ``slope`` from the first position to the
    last around the drawn ratio: serving places earlier positions first."""
    chance = rng.uniform(low, 1.0) + slope * np.linspace(-0.5, 0.5, width)
    mask = rng.random(width) < chance
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


def settle_end(hidden: BoolArray, end: int) -> BoolArray:
    """``hidden`` with all that follows position ``end``, the first END, hidden or shown as that is.

    Serving shows padding once END is placed and never before. A canvas that shows padding behind a
    hidden END gives away where the answer ends, and teaches to look there instead of at the text.
    """
    hidden = hidden.copy()
    hidden[end:] = hidden[end : end + 1]
    return hidden


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
    noise: Noise = NOISE,
) -> list[Canvas]:
    """``count`` canvases over one row: the answer's blocks fully hidden and partly shown, and
    where the prompt holds ordinary code after ``plain``, one or two that continue that.

    Args:
        tokens, prompt, answer: as in :func:`lay_canvas`; END for ``2 * width`` tokens behind the
            answer.
    """
    blocks = list(range(0, answer + 1, width))
    laid: list[Canvas] = []
    room = prompt - plain - width if plain else 0
    continued = min(2, count - 2) if room > width and rng.random() < 0.7 else 0
    pool = [int(b) for b in rng.permutation(blocks)]
    wanted = count - continued

    def lay(offset: int, mask: BoolArray) -> None:
        if noise.settled_end:
            mask = settle_end(mask, answer - offset)
        canvas = lay_canvas(tokens, prompt, answer, offset, mask, mask_token)
        if noise.wrong:
            left = answer + 1 - offset  # predictions up to the first END
            canvas = corrupt(canvas, mask, left, tokens[:prompt], noise, rng)
        laid.append(canvas)

    all_hidden = max(1, int(wanted * noise.all_hidden + 1e-9))
    for offset in [0, *(b for b in pool if b)][:all_hidden]:
        lay(offset, full_mask(width))
    while len(laid) < wanted:
        offset = int(rng.choice(blocks))
        for mask in _partly_hidden(width, noise, rng)[: wanted - len(laid)]:
            lay(offset, mask)
    for _ in range(continued):
        at = plain + int(rng.integers(1, room))
        mask = full_mask(width) if rng.random() < 0.4 else random_mask(width, 0.3, rng)
        laid.append(lay_canvas(tokens, at, 0, 0, mask, mask_token, plain=True))
    return laid


def _partly_hidden(width: int, noise: Noise, rng: np.random.Generator) -> list[BoolArray]:
    """A mask as in the middle of decoding, or one at random and its complement."""
    if rng.random() < 0.5:
        return [prefix_mask(width, rng)]
    if noise.later:
        mask = sloped_mask(width, noise.low, noise.later, rng)
    else:
        mask = random_mask(width, noise.low, rng)
    return [mask] if mask.all() else [mask, complement(mask)]


# --- wrong tokens, to be repaired -------------------------------------------------------------


def corrupt(
    canvas: Canvas,
    hidden: BoolArray,
    count: int,
    context: IntArray,
    noise: Noise,
    rng: np.random.Generator,
) -> Canvas:
    """``canvas`` with some shown tokens replaced by wrong ones, the true ones being the targets.

    A third each comes from the canvas itself (repeated or swapped words, the usual faults of
    filling in parallel), from the context, and from anywhere. Without any weight on shown tokens
    that are right, everything shown would seem wrong.

    Args:
        hidden: [width] which predictions are behind masks.
        count: how many predictions matter, the first END included; later ones stay as they are.
        context: tokens before the canvas.
    """
    width = len(hidden)
    shown = ~hidden & (np.arange(width) < min(count, width - 1))  # the last is never an input
    wrong = shown & (rng.random(width) < noise.wrong)
    if not wrong.any():
        return canvas
    low, high = noise.ordinary
    origin = rng.integers(3, size=width)
    nearby = context[-256:]
    replacement = np.select(
        [origin == 0, origin == 1],
        [rng.choice(canvas.target[:count], width), rng.choice(nearby, width)],
        rng.integers(low, high, width),
    )
    same = replacement == canvas.target
    other = low + (canvas.target - low + rng.integers(1, high - low, width)) % (high - low)
    replacement = np.where(same, other, replacement)
    window, weight = canvas.window.copy(), canvas.weight.copy()
    window[1:][wrong[:-1]] = replacement[:-1][wrong[:-1]]
    weight[shown] = noise.right_weight
    weight[wrong] = noise.wrong_weight
    return Canvas(canvas.start, window, canvas.target, weight)


# --- the causal pass --------------------------------------------------------------------------


def causal_weights(
    prompt: int,
    answer: int,
    plain: int,
    code_tokens: int,
    code_weight: float,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Weight [prompt + answer + 1] of each token as a target of the causal pass.

    The answer and its END count 1; up to ``code_tokens`` tokens of the ordinary code in the prompt
    after ``plain``, drawn anew for every batch, count ``code_weight``: more signal from a context
    that is read anyway.
    """
    weight = np.zeros(prompt + answer + 1, np.float32)
    if plain and code_tokens and prompt - plain > 1:
        room = np.arange(plain + 1, prompt)
        chosen = rng.choice(room, min(code_tokens, len(room)), replace=False)
        weight[chosen] = code_weight
    weight[prompt:] = 1.0
    return weight
