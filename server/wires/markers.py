"""Which text around the cursor a raw prompt means, told by its markers alone.

A model's name says nothing: clients send each model's markers under any name. Pure; knows nothing
of HTTP or models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FimFormat:
    """A fill-in-the-middle format: what precedes each of its parts."""

    prefix: str
    suffix: str
    middle: str  # "" where the prompt begins with the suffix and ends after the prefix
    spaced: bool = False  # one space after the prefix marker, one before each of the others


#: Qwen, CodeGemma, Granite and Zed · StarCoder and SmolLM · DeepSeek · CodeLlama · Codestral.
FIM_FORMATS = (
    FimFormat("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    FimFormat("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    FimFormat("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    FimFormat("<PRE>", "<SUF>", "<MID>", spaced=True),
    FimFormat("[PREFIX]", "[SUFFIX]", ""),
)

#: Markers of formats that are not answered (yet): chat and edit templates of other models.
UNKNOWN_MARKERS = re.compile(
    r"<\|[a-z][a-z0-9_]*\|>|<｜[^\n｜]{1,40}｜>|<\[fim-(?:prefix|suffix|middle)\]>"
    r"|^### User Excerpt:|^<<<<<<< CURRENT$|\[INST\]",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Middle:
    """The text that surrounds what is asked for."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A prompt made for another kind of model; ``marker`` gave it away."""

    marker: str


def recognise(prompt: str) -> Middle | Unknown:
    """What a prompt without a ``suffix`` field means.

    Fill-in-the-middle markers: the text between them. No markers at all: a file that ends at the
    cursor, as clients mean that leave an empty suffix out. Other markers: unknown, because
    answering them as if they were code would put nonsense into the user's file.
    """
    for form in FIM_FORMATS:
        middle = _split(prompt, form)
        if middle is not None:
            return middle
    marker = UNKNOWN_MARKERS.search(prompt)
    return Unknown(marker.group()) if marker else Middle(prompt, "")


def _split(prompt: str, form: FimFormat) -> Middle | None:
    """The parts of ``prompt``, prefix first or suffix first; what precedes them is not code."""
    body = prompt.rstrip("\n") if form.middle else prompt
    if not body.endswith(form.middle) or not (form.middle or body.startswith(form.suffix)):
        return None
    body = body.removesuffix(form.middle)
    at_prefix, at_suffix = body.find(form.prefix), body.find(form.suffix)
    if at_prefix < 0 or at_suffix < 0:
        return None
    if at_prefix < at_suffix:
        before = body[at_prefix + len(form.prefix) : at_suffix]
        after = body[at_suffix + len(form.suffix) :]
    else:
        after = body[at_suffix + len(form.suffix) : at_prefix]
        before = body[at_prefix + len(form.prefix) :]
    if form.spaced:
        before = before.removeprefix(" ").removesuffix(" ")
        after = after.removesuffix(" ")
    return Middle(before, after)
