"""Mask drafts: masks that stand behind a known token and are read in the verifying pass (torch).

The causal pass over a known token ``t`` gives the next token. ``m`` masks behind ``t``, which see
the cache up to ``t`` and each other, guess the ``m`` tokens after that one. So the successors of
whatever is written next are drafted already, and no pass is spent on drafting alone. The causal
pass is frozen, and its distributions are the target, because it will verify the drafts.

Sources: TiDAR (2511.08923) drafts and verifies in one pass; masked multi-token prediction with a
gated adapter and the alignment of hidden states (2507.11851, 2605.06885).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ..config import CANDIDATES
from .network import KeyValues, Network
from .shards import PackedRows

DEPTH_WEIGHTS = (1.0, 0.8, 0.64, 0.5)  # of the first, second, … mask; the last for all further ones
PROMPT_WEIGHT = 0.5  # of a group that stands in the prompt, beside one in the answer
LIKELIEST = CANDIDATES  # tokens of the verifier's distribution that are learnt from
ALONE = 0.5  # weight of a guess that does not know the token before, beside one that does


def draw_groups(
    prompt: int, answer: int, groups: int, masks: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Draw groups of ``masks`` behind tokens of a row of ``prompt`` and ``answer`` tokens and END.

    Up to two thirds stand in the answer, where they are read when serving; the others anywhere in
    the prompt. Too few places repeat.

    Returns:
        [groups] positions of the first masks, each of which sees all that is before it, and
        [groups, masks] weights in the loss; 0 where there is no text to learn from.
    """
    end = prompt + answer  # index of END, the last token there is to guess
    own = np.arange(prompt - 1, max(prompt - 1, end - 1))  # known tokens whose second successor is
    if len(own) > groups * 2 // 3:
        own = rng.choice(own, groups * 2 // 3, replace=False)
    before = np.arange(min(4, prompt - 2), prompt - 1)
    wanted = groups - len(own)
    others = rng.choice(before, wanted, replace=len(before) < wanted)
    known = np.sort(np.concatenate([own, others]))
    guessed = known[:, None] + 2 + np.arange(masks)  # [groups, masks] index of what each guesses
    depth = [DEPTH_WEIGHTS[min(i, len(DEPTH_WEIGHTS) - 1)] for i in range(masks)]
    weight = np.where(guessed <= end, depth, 0.0)
    weight *= np.where(known >= prompt - 1, 1.0, PROMPT_WEIGHT)[:, None]
    return known + 1, weight.astype(np.float32)


def draft_loss(
    network: Network,
    hidden: Tensor,
    guesses: Tensor,
    tokens: Tensor,
    place: Tensor,
    weight: Tensor,
) -> Tensor:
    """Return how far the masks are from the causal pass, as a weighted mean.

    That is the KL divergence, and 1 - the cosine of their hidden states to those of the causal pass
    at the same positions. With a sampler, the divergence of what it makes of the guesses counts,
    and half of that of the guesses as they are.

    Args:
        hidden: [n, hidden] of the causal pass over ``tokens`` [n], without gradient.
        guesses: hidden states [rows, groups, masks, hidden] of the masks.
        place: [rows, groups, masks] index in ``tokens`` of the position of each mask.
        weight: [rows, groups, masks].
    """
    counted = weight > 0
    place, own = place[counted], guesses[counted]  # [n], [n, hidden]
    unique, inverse = torch.unique(place, return_inverse=True)
    wanted = hidden[unique]  # [u, hidden]
    with torch.no_grad():
        chance, token = network.logits(wanted).softmax(-1).topk(LIKELIEST)  # [u, LIKELIEST] each
        chance = (chance / chance.sum(-1, keepdim=True))[inverse]  # [n, LIKELIEST]
        token = token[inverse]
    logits = network.logits(own)  # [n, vocab]
    log_p = logits.log_softmax(-1).gather(-1, token)  # [n, LIKELIEST]
    loss = _divergence(chance, log_p)
    if network.sampler is not None:
        loss = ALONE * loss + _sampled_loss(network, own, logits, tokens[place], chance, token)
    loss = loss + 1 - F.cosine_similarity(own.float(), wanted[inverse].float(), dim=-1)
    return (loss * weight[counted]).sum() / weight.sum().clamp_min(1e-9)


def _sampled_loss(
    network: Network,
    masks: Tensor,
    logits: Tensor,
    before: Tensor,
    chance: Tensor,
    token: Tensor,
) -> Tensor:
    """Return the KL divergence once the token ``before`` [n] is known. [n].

    It is taken over the verifier's likeliest ``token`` [n, k], of probability ``chance``, and a
    mask's own likeliest. ``masks`` are hidden states [n, hidden], ``logits`` [n, vocab] theirs.
    """
    ids = logits.topk(LIKELIEST).indices  # [n, LIKELIEST]
    both = torch.cat([ids, token], -1)
    changed = logits.gather(-1, both) + network.follow(masks, before, both)
    theirs = changed[:, LIKELIEST:]
    twice = (token[:, :, None] == ids[:, None, :]).any(-1)  # [n, LIKELIEST]
    every = torch.cat([changed[:, :LIKELIEST], theirs.masked_fill(twice, -1e9)], -1)
    log_p = theirs - every.logsumexp(-1, keepdim=True)  # [n, LIKELIEST]
    return _divergence(chance, log_p)


def _divergence(chance: Tensor, log_p: Tensor) -> Tensor:
    """Return the KL divergence [n] of ``log_p`` from the verifier's ``chance``, [n, k] each."""
    return (chance * (chance.clamp_min(1e-9).log() - log_p)).sum(-1)


def likeliest(network: Network, hidden: Tensor, before: Tensor) -> Tensor:
    """Return the guesses [n] of masks with these hidden states [n, hidden].

    Args:
        before: [n] the tokens before; without a sampler they make no difference.
    """
    logits = network.logits(hidden)
    if network.sampler is None:
        return logits.argmax(-1)
    own, ids = logits.topk(LIKELIEST)
    best = (own + network.follow(hidden, before, ids)).argmax(-1, keepdim=True)
    return ids.gather(-1, best)[:, 0]


def guess(
    network: Network, past: KeyValues, lengths: Sequence[int], starts: Tensor, masks: int
) -> Tensor:
    """Return hidden states [rows, groups, masks, hidden] of groups at ``starts`` [rows, groups].

    That of mask i is to be the causal pass's at position start + i.

    Args:
        lengths: of the rows that lie behind one another in ``past``.
    """
    windows = torch.full(
        (*starts.shape, masks), network.config.mask_token, dtype=torch.int64, device=starts.device
    )
    return network.canvas(windows, starts, past, lengths, causal=True)


@torch.no_grad()
def acceptance(
    network: Network, rows: PackedRows, members: NDArray[np.int64], masks: int
) -> dict[str, Any]:
    """Measure how often drafts agree with the causal pass over the answers of ``members``.

    Returns:
        ``chances``: a₁, a₂, …: how often the draft at a depth is the verifier's likeliest token
        where those before it were. ``tokens_per_pass``: 1 + a₁ + a₁a₂ + …, copies not counted.
        ``places``: known tokens that were tried.
    """
    reached, right = np.zeros(masks), np.zeros(masks)
    device = network.embed.device
    for member in members:
        tokens, prompt, _ = rows[int(member)]
        ids = torch.from_numpy(np.append(tokens, network.config.end_token)).to(device)
        hidden, past = network.context(ids)
        last = len(ids) - 1  # END
        known = torch.arange(prompt - 1, last - 1, device=device)
        if not len(known):
            continue
        verified = network.logits(hidden[prompt - 1 :]).argmax(-1)  # [answer + 2], from prompt - 1
        index = known[:, None] + 1 + torch.arange(masks, device=device)  # position that verifies it
        found = guess(network, past, [len(ids)], known[None] + 1, masks)[0].flatten(0, 1)
        before = ids[index.clamp_max(last)].flatten()
        drafts = likeliest(network, found, before).view(-1, masks)
        there = index < last
        agree = (drafts == verified[(index - prompt + 1).clamp_max(len(verified) - 1)]) & there
        so_far = torch.cumprod(agree.int(), dim=1).bool()  # [known, masks]
        before = torch.cat([torch.ones_like(so_far[:, :1]), so_far[:, :-1]], dim=1) & there
        reached += before.sum(0).cpu().numpy()
        right += so_far.sum(0).cpu().numpy()
    chances = [round(float(r / n), 4) if n else None for r, n in zip(right, reached, strict=True)]
    product = np.cumprod([chance or 0.0 for chance in chances])
    return {
        "chances": chances,
        "tokens_per_pass": round(1 + float(product.sum()), 3),
        "places": int(reached[0]),
    }
