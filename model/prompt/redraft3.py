"""The format redraft-3: infills as in redraft-2, next edits as the region written anew.

A next edit reads, the most stable part first::

    FILE path⏎ related text …      excerpts of other files, least relevant first
    FILE path⏎                     the file itself
    SUFFIX     far suffix          whole lines below the region
    FAR_PREFIX far prefix          whole lines above the region
    HISTORY    path:line⏎ diff …   recent edits, oldest first
    REGION     the region's lines, CURSOR where the cursor stands
    EDIT       → the region's lines after the edit, END

The same lines mean "no edit". The history follows the far parts, so that a key in the edit in
progress recomputes the end of the history and the region, not the file.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..config import ModelConfig
from ..records import EditRequest
from .answers import read_infill
from .fitting import encode
from .foreign import Declined, Read, read_region, says_something
from .render import Prompt, far_parts, render, window
from .tokens import CURSOR, EDIT, REGION, Tokenizer

#: Lines of a region above and below the cursor's: MARGIN at least, and fewer than MARGIN + STEP.
MARGIN, STEP = 3, 6
#: Tokens of a region at most, and tokens that an edit may add to it.
REGION_TOKENS, ROOM_TO_GROW = 200, 96


class Redraft3:
    """Render requests and read answers in the format redraft-3.

    Args:
        predicts_edits: False: for weights of the format before, which share the infills.
    """

    def __init__(self, predicts_edits: bool = True) -> None:
        self.predicts_edits = predicts_edits

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        """Return the prompt of ``request``, at most ``budget`` tokens."""
        if request.task == "next_edit" and not (self.predicts_edits and config.verifier == "ar"):
            return Declined(f"{config.name} was trained to fill in text, not to predict edits.")
        if request.task != "next_edit":
            return render(request, tokenizer, config, budget)
        lines = request.text.split("\n")
        at = request.text.count("\n", 0, request.cursor)
        column = request.cursor - (request.text.rfind("\n", 0, request.cursor) + 1)
        outer = request.region or window(at, len(lines))
        region = narrow(lines, at, outer, room_of_region(budget), tokenizer)
        body = region_tokens(lines[slice(*region)], at - region[0], column, tokenizer)
        near = [tokenizer.mark(REGION), *body, tokenizer.mark(EDIT)]
        far, cut = far_parts(request, lines, *region, tokenizer, budget - len(near))
        tokens = [*far.related, *far.title, *far.suffix, *far.prefix, *far.edits, *near]
        return Prompt(
            tuple(tokens),
            lines,
            at,
            region=region,
            rewrites=True,
            room=len(body) + ROOM_TO_GROW,
            cut=cut,
        )

    def read(self, prompt: Prompt, request: EditRequest, answer: str, ended: bool) -> Read | None:
        """Return the edit that ``answer`` makes, or None where it changes nothing.

        Raises:
            InvalidAnswer: the answer broke off before the region's end, or does not continue an
                unfinished word.
        """
        if request.task != "next_edit":
            return Read(*read_infill(prompt, request, answer))
        first, last = prompt.region
        if not answer and ended:  # every line of the region is deleted
            return read_region(request, (first, last), "") if last > first else None
        if not says_something(answer, ended, "region"):
            return None
        return read_region(request, (first, last), answer)


def room_of_region(budget: int) -> int:
    """Return the tokens that a region takes at most in a prompt of ``budget`` tokens."""
    return min(REGION_TOKENS, budget // 2)


def narrow(
    lines: Sequence[str], at: int, outer: tuple[int, int], room: int, tokenizer: Tokenizer
) -> tuple[int, int]:
    """Return the 0-based lines [first, last) around line ``at`` that may be rewritten.

    They lie within ``outer`` and take at most ``room`` tokens, but for a single longer line. Their
    edges are counted in steps from the top and the bottom of the document, so that neither a key
    nor Enter moves what stands before them in the prompt.
    """
    low, high = outer
    at = min(max(at, low), max(high - 1, low))
    first = max(low, (at - MARGIN) // STEP * STEP)
    last = min(high, len(lines) - max(0, (len(lines) - 1 - at - MARGIN) // STEP * STEP))
    costs = [len(encode(tokenizer, f"{line}\n")) for line in lines[first:last]]
    while sum(costs) > room and len(costs) > 1:
        if at - first >= last - 1 - at:
            del costs[0]
            first += 1
        else:
            del costs[-1]
            last -= 1
    return first, last


def region_tokens(lines: Sequence[str], line: int, column: int, tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of ``lines`` with CURSOR at ``line`` and ``column``, where it is inside."""
    text = "".join(f"{each}\n" for each in lines)
    if not 0 <= line < len(lines):
        return tokenizer.encode(text)
    offset = sum(len(each) + 1 for each in lines[:line]) + min(column, len(lines[line]))
    before, after = tokenizer.encode(text[:offset]), tokenizer.encode(text[offset:])
    return [*before, tokenizer.mark(CURSOR), *after]
