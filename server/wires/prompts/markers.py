"""Which text around the cursor a raw prompt means, told by its markers alone.

A model's name says nothing: clients send each model's markers under any name. Pure; knows nothing
of HTTP or models.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from redraft.model.records import RelatedFile

from .regions import Excerpt, related_files
from .sweep import read_sweep, reads_sweep
from .zeta import (
    Unreadable,
    Writer,
    read_zeta1,
    read_zeta2,
    reads_zeta1,
    reads_zeta2,
)

#: Name shown to the model where the client does not say which file it is.
NO_PATH = "untitled"


@dataclass(frozen=True, slots=True)
class FimFormat:
    """A fill-in-the-middle format: what precedes each of its parts."""

    prefix: str
    suffix: str
    middle: str  # "" where the prompt begins with the suffix and ends after the prefix
    spaced: bool = False  # one space after the prefix marker, one before each of the others


#: Qwen, CodeGemma, Granite · StarCoder and SmolLM · DeepSeek · CodeLlama · Codestral · GLM.
FIM_FORMATS = (
    FimFormat("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    FimFormat("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    FimFormat("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    FimFormat("<PRE>", "<SUF>", "<MID>", spaced=True),
    FimFormat("[PREFIX]", "[SUFFIX]", ""),
    FimFormat("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
)

#: What precedes each file of a repository in front of a fill-in-the-middle prompt.
FILE_MARKERS = ("<|file_sep|>", "<file_sep>")

#: Formats whose prompts hold a region to be rewritten.
EDIT_FORMATS: tuple[tuple[Callable[[str], bool], Callable[[str], tuple[Excerpt, Writer]]], ...] = (
    (reads_zeta2, read_zeta2),
    (reads_sweep, read_sweep),
    (reads_zeta1, read_zeta1),
)

#: Markers of formats that are not answered (yet): chat and edit templates of other models.
UNKNOWN_MARKERS = re.compile(
    r"<\|[a-z][a-z0-9_]*\|>|<｜[^\n｜]{1,40}｜>|<\[fim-(?:prefix|suffix|middle)\]>"
    r"|^### User Excerpt:|^<<<<<<< CURRENT$|\[INST\]",
    re.MULTILINE,
)
#: With one of these each of them begins.
MARKERS_BEGIN = ("<|", "<｜", "<[fim-", "### User Excerpt:", "<<<<<<< CURRENT", "[INST]")


@dataclass(frozen=True, slots=True)
class Middle:
    """The text that surrounds what is asked for."""

    before: str
    after: str
    path: str = ""  # "" where the client does not say it
    related: tuple[RelatedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A region that is asked for anew, and how the client wants to read it."""

    excerpt: Excerpt
    write: Writer


@dataclass(frozen=True, slots=True)
class Unknown:
    """A prompt made for another kind of model, or one that cannot be read."""

    marker: str  # gave it away
    reason: str = ""  # why nothing is suggested, for people


def recognise(prompt: str) -> Middle | Rewrite | Unknown:
    """What a prompt without a ``suffix`` field means.

    Markers of an edit format: the region between them. Fill-in-the-middle markers: the text between
    them. No markers at all: a file that ends at the cursor, as clients mean that leave an empty
    suffix out. Other markers, and such that occur in the code too: unknown, because answering at
    the wrong place would put nonsense into the user's file.
    """
    for reads, read in EDIT_FORMATS:
        if reads(prompt):
            try:
                return Rewrite(*read(prompt))
            except Unreadable as error:
                return Unknown(_marker(prompt), str(error))
    for form in FIM_FORMATS:
        middle = _split(prompt, form)
        if middle is not None:
            return middle
    marker = _marker(prompt)
    if not marker:
        return Middle(prompt, "")
    return Unknown(marker, f"The prompt holds {marker!r}, which belongs to no format known here.")


def _marker(prompt: str) -> str:
    if not any(begin in prompt for begin in MARKERS_BEGIN):
        return ""  # as in most files, and told a hundred times sooner
    found = UNKNOWN_MARKERS.search(prompt)
    return found.group() if found else ""


def _split(prompt: str, form: FimFormat) -> Middle | Unknown | None:
    """The parts of ``prompt``, prefix first or suffix first; what precedes them are other files."""
    body = prompt.rstrip("\n") if form.middle else prompt
    if not body.endswith(form.middle) or not (form.middle or body.startswith(form.suffix)):
        return None
    body = body.removesuffix(form.middle)
    at_prefix, at_suffix = body.find(form.prefix), body.find(form.suffix)
    if at_prefix < 0 or at_suffix < 0:
        return None
    for marker in (form.prefix, form.suffix):
        if body.count(marker) > 1:
            return Unknown(marker, f"The code holds {marker} too: where it ends cannot be told.")
    if at_prefix < at_suffix:
        before = body[at_prefix + len(form.prefix) : at_suffix]
        after = body[at_suffix + len(form.suffix) :]
    else:
        after = body[at_suffix + len(form.suffix) : at_prefix]
        before = body[at_prefix + len(form.prefix) :]
    if form.spaced:
        before = before.removeprefix(" ").removesuffix(" ")
        after = after.removesuffix(" ")
    if "<|marker_1|>" in before:
        return Unknown("<|marker_1|>", "Numbered regions between these markers are not known here.")
    path, related = _repository(body[: min(at_prefix, at_suffix)])
    return Middle(before, after, path, related)


def _repository(head: str) -> tuple[str, tuple[RelatedFile, ...]]:
    """The file's own path and the other files that stand before a fill-in-the-middle prompt."""
    for marker in FILE_MARKERS:
        *others, own = [part.partition("\n") for part in head.split(marker)]
        if others:  # the first part stands before any file: the repository's name
            files = ((path, text) for path, _, text in others[1:] if not path.endswith(".diff"))
            return own[0].strip(), related_files(files)
    return "", ()
