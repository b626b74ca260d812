"""Regions that are rewritten, as texts: as they are, and as edits by rule make them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..prompts.format import Prompt
from ..prompts.redraft3 import REGION_MARGIN, narrow, room_of_region, window
from ..prompts.tokenizer import Tokenizer
from ..records import EditRequest
from ..rules.propose import propose
from .next_edit import RuleText

#: Chance of an edit by rule from which the region is moved to it. A repeated edit is right at half
#: of the moments at which there is one, an edit of the model near the cursor at a tenth.
MOVES = 0.2


def at_likely_rule(request: EditRequest, tokenizer: Tokenizer, budget: int) -> EditRequest:
    """Return the request with its region around the likeliest edit by rule.

    The request stays as it is where the region around the cursor holds that edit, or where the
    edit's chance is below MOVES.

    Args:
        budget: tokens of the prompt.
    """
    lines = request.text.split("\n")
    at = request.text.count("\n", 0, request.cursor)
    outer = request.region or window(at, len(lines))
    best = next(iter(propose(request, outer, 1)), None)
    if best is None or best.chance < MOVES:
        return request
    first, last = best.first, max(best.last, best.first + 1)
    near = narrow(lines, at, outer, room_of_region(budget), tokenizer)
    if near[0] <= first and last <= near[1]:
        return request
    return replace(
        request, region=(max(outer[0], first - REGION_MARGIN), min(outer[1], last + REGION_MARGIN))
    )


def rule_texts(
    tokenizer: Tokenizer, prompt: Prompt, request: EditRequest, most: int
) -> list[RuleText]:
    """Return edits by rule as whole regions."""
    top = prompt.region[0]
    old = region_text(prompt, top, top, ())
    texts = (
        (each, region_text(prompt, each.first, each.last, each.lines))
        for each in propose(request, prompt.region, most)
    )
    return [
        RuleText(tuple(tokenizer.encode(text)), each.chance, each.family)
        for each, text in texts
        if text != old
    ]


def region_text(prompt: Prompt, first: int, last: int, new: Iterable[str]) -> str:
    """Return the region with its 0-based lines [first, last) replaced by ``new``."""
    top, bottom = prompt.region
    lines = [*prompt.lines[top:first], *new, *prompt.lines[last:bottom]]
    return "".join(f"{line}\n" for line in lines)
