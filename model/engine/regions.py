"""Regions that are rewritten, as texts: as they are, and as edits by rule make them."""

from __future__ import annotations

from collections.abc import Iterable

from ..decode.next_edit import RuleText
from ..prompt.render import Prompt
from ..prompt.tokens import Tokenizer
from ..records import EditRequest
from ..rules.propose import Proposed, propose
from ..text.syntax import language_of


def proposals(prompt: Prompt, request: EditRequest, most: int) -> list[Proposed]:
    """Return edits by rule of the prompt's region, the likeliest first."""
    return propose(
        request.edits,
        prompt.lines,
        *prompt.region,
        prompt.line,
        request.diagnostics,
        request.language or language_of(request.path) or "",
        [each.text for each in request.related],
        request.importable,
        most,
        path=request.path,
    )


def rule_texts(
    tokenizer: Tokenizer, prompt: Prompt, request: EditRequest, most: int
) -> list[RuleText]:
    """Return edits by rule as whole regions."""
    top = prompt.region[0]
    old = region_text(prompt, top, top, ())
    texts = (
        (each, region_text(prompt, each.first, each.last, each.lines))
        for each in proposals(prompt, request, most)
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
