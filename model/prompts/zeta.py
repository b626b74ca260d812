"""Prompts of Zed's models Zeta 1, 2 and 2.1, in both directions.

Zeta 2 and 2.1 were trained on Seed-Coder's fill-in-the-middle. From Zed's crate ``zeta_prompt``,
formats ``V0211SeedCoder`` and ``V0318SeedMultiRegions``::

    <[fim-suffix]> text below the region
    <[fim-prefix]> <filename>path⏎ text …    other files, then an empty line
    <filename>edit_history⏎ diffs, oldest first, then an empty line
    <filename>path⏎ text above the region, and the region with <|user_cursor|> in it
    2:    <<<<<<< CURRENT⏎ region⏎ =======⏎ <[fim-middle]>
          → the region, >>>>>>> UPDATED
    2.1:  <|marker_1|> lines <|marker_2|> lines … <|marker_n|>⏎ <[fim-middle]>
          → <|marker_i|> lines <|marker_j|>; twice the same marker: no edit

Of other files the best excerpts that fit are shown, in their order, those of one file together. Zed
and cursortab.nvim send these prompts, and those of Zeta 1. In a received prompt, markers that occur
more often than a client writes them are code that holds a marker: the region cannot be found, and
the reader refuses.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import partial
from itertools import pairwise

from ..config import ModelConfig
from ..errors import InvalidAnswer
from ..records import EditRequest, RecentEdit
from ..text.common import common_ends
from .answer_edits import is_answered, parse_region, start_of
from .diffs import sides, write_fenced_diffs, write_unified_diffs
from .excerpt import Excerpt, Unreadable, Writer, render_related_files, reports_in, take_cursor
from .format import Declined, ParsedEdit, Prompt, place_of
from .pieces import (
    Mark,
    Piece,
    by_file,
    count,
    edits_then_files,
    join_pieces,
    refuse_forged_marks,
    short_path,
    title,
    tokens_of,
    with_last_line_end,
)
from .tokenizer import Tokenizer
from .zeta_region import regions_of

SUFFIX, PREFIX, MIDDLE = Mark("<[fim-suffix]>"), Mark("<[fim-prefix]>"), Mark("<[fim-middle]>")
FILE = Mark("<filename>")
CURSOR = "<|user_cursor|>"
CURRENT, SEPARATOR, UPDATED = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED"
NO_EDITS = "NO_EDITS"
HISTORY = "edit_history"

_EDITS = 6
#: Tokens of an answer beyond those of the region as it is.
_GROWTH = 64
_MARKER = re.compile(r"<\|marker_(\d{1,6})\|>")
_FILE = re.compile(r"^<filename>(?P<path>[^\n]*)\n", re.MULTILINE)


class Zeta:
    """Prompts for Zeta 2, or 2.1 with ``markers``: numbered ones that cut the region."""

    needs: tuple[str, ...] = (SUFFIX.name, PREFIX.name, MIDDLE.name)

    def __init__(self, markers: bool) -> None:
        self.markers = markers

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, _config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        """Return the prompt, or why a document that holds a marker cannot be asked about."""
        words = (CURSOR, "<|marker_") if self.markers else (CURSOR, CURRENT, UPDATED)
        if (declined := refuse_forged_marks(request, words)) is not None:
            return declined
        lines, at = request.text.split("\n"), place_of(request)[0]
        region, shown = regions_of(request, lines, at)
        first, last = region
        text = "\n".join(lines[first:last])
        cursor = request.cursor - start_of(lines, first)
        if self.markers:
            body = with_last_line_end(_marked(text, cursor))
        else:
            body = (
                f"{CURRENT}{with_last_line_end(text[:cursor] + CURSOR + text[cursor:])}{SEPARATOR}"
            )
        above = "".join(f"{line}\n" for line in lines[shown[0] : first])
        below = "\n".join(["", *lines[last : shown[1]]]) if last < len(lines) else ""
        suffix: list[Piece] = [SUFFIX, with_last_line_end(below)]
        near: list[Piece] = [FILE, title(request.path) + above + body, MIDDLE]
        far, cut = _far(request, tokenizer, budget - count([*suffix, *near], tokenizer) - 1)
        return Prompt(
            tuple(tokens_of([*suffix, PREFIX, *far, *near], tokenizer)),
            lines,
            at,
            region=region,
            cut=cut,
            room=count([text], tokenizer) + 2 * max(_GROWTH, request.max_tokens // 2),
            stop=(UPDATED,),
        )

    def parse(
        self, prompt: Prompt, request: EditRequest, answer: str, ended: bool
    ) -> ParsedEdit | None:
        """Return the edit of the region, or of the lines between two markers."""
        if not is_answered(answer, ended, "region"):
            return None
        if self.markers:
            return _parse_markers(prompt, request, answer)
        if answer.strip() == NO_EDITS:
            return None
        return parse_region(request, prompt.region, answer.replace(CURSOR, ""))


def _far(request: EditRequest, tokenizer: Tokenizer, room: int) -> tuple[list[Piece], str]:
    """Return other files and recent edits within ``room`` tokens, and what was cut."""
    recent: list[list[Piece]] = [[_event(edit)] for edit in request.edits[-_EDITS:]]
    history, files, cut = edits_then_files(recent, request, FILE, tokenizer, room)
    pieces = by_file(files, "...\n")
    pieces += ["\n"] if files else []
    pieces += [FILE, f"{HISTORY}\n", *join_pieces(history), "\n"] if history else []
    return pieces, cut


def _event(edit: RecentEdit) -> str:
    """Return an edit as Zed's unified diff, with its line after the edit for the one before."""
    path = short_path(edit.path)
    before, after = sides(edit)
    accepted = "// User accepted prediction:\n" if edit.accepted else ""
    where = f"@@ -{edit.line + 1},{len(before)} +{edit.line + 1},{len(after)} @@\n"
    return f"{accepted}--- a/{path}\n+++ b/{path}\n{where}{edit.diff}"


# --- numbered markers -------------------------------------------------------------------------

_LEAST, _MOST, _NUDGE = 6, 16, 5  # lines of a block, and how far its beginning may be moved


def marker_offsets(text: str) -> list[int]:
    """Return the indices of the markers of 2.1 in a region.

    They are at its ends, and between blocks of 6 to 16 lines that begin behind an empty line where
    there is one, and not with a closing bracket.
    """
    lines = text.split("\n")
    if text.endswith("\n") and len(lines) > 1:
        lines.pop()
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    offsets, begun, i = [0], 0, 0
    while i < len(lines):
        size, behind_blank = i - begun, i > 0 and not lines[i - 1].strip() and lines[i].strip()
        near = range(i, min(i + _NUDGE, len(lines)))
        block = next((j for j in near if _is_good_start(lines[j].strip())), i)
        may = size >= _LEAST and behind_blank and len(lines) - block >= _LEAST
        if (may or size >= _MOST) and starts[block] > offsets[-1]:
            offsets.append(starts[block])
            begun = i = block
        i += 1
    return offsets if offsets[-1] == len(text) and len(offsets) > 1 else [*offsets, len(text)]


def _is_good_start(line: str) -> bool:
    tails = ("break", "continue", "return", "throw", "end")
    return bool(line) and line[0] not in "}])" and line.rstrip(";") not in tails


def _marked(text: str, cursor: int) -> str:
    offsets, out = marker_offsets(text), ""
    for number, (start, end) in enumerate(pairwise(offsets), 1):
        block = text[start:end]
        if start <= cursor <= end and CURSOR not in out:
            block = block[: cursor - start] + CURSOR + block[cursor - start :]
        out += f"<|marker_{number}|>{block}"
    return f"{out}<|marker_{len(offsets)}|>"


def _parse_markers(prompt: Prompt, request: EditRequest, answer: str) -> ParsedEdit | None:
    tags = list(_MARKER.finditer(answer))
    if len(tags) < 2:
        raise InvalidAnswer(f"The answer {answer[:40]!r} does not stand between two markers.")
    first, last = int(tags[0][1]), int(tags[-1][1])
    if first == last:
        return None
    text = "\n".join(request.text.split("\n")[slice(*prompt.region)])
    offsets = marker_offsets(text)
    if not 1 <= first < last <= len(offsets):
        raise InvalidAnswer(
            f"The answer goes from marker {first} to {last}; the region has {len(offsets)}."
        )
    between = answer[tags[0].end() : tags[-1].start()]
    body = _MARKER.sub("", between).replace(CURSOR, "")
    new = text[: offsets[first - 1]] + body + text[offsets[last - 1] :]
    found = parse_region(request, prompt.region, new, tags[0].end() - offsets[first - 1])
    if found is None or found.written is None:
        return found
    low, high = (min(max(i, 0), len(answer)) for i in found.written)
    return ParsedEdit(found.start, found.end, found.text, (low, high))


# --- received prompts of 2 and 2.1 ------------------------------------------------------------


def read_zeta2(text: str) -> Excerpt | None:
    """Return the excerpt of a received prompt of Zeta 2 or 2.1; None: it is no such prompt.

    Raises:
        Unreadable: it is torn, or a marker also occurs in the code.
    """
    if not text.startswith(SUFFIX.name) or not (CURRENT.strip() in text or "<|marker_" in text):
        return None
    body = text.rstrip("\n")
    if not body.endswith(MIDDLE.name):
        raise Unreadable(f"The prompt does not end with {MIDDLE.name}.")
    body = body.removesuffix(MIDDLE.name)
    _check_once(PREFIX.name, body.count(PREFIX.name))
    after, _, context = body.removeprefix(SUFFIX.name).partition(PREFIX.name)
    at_ends = after.startswith("\n")  # Zed's regions end before a line end, cursortab's behind it
    after = after.removeprefix("\n")
    if not context.endswith(SEPARATOR):
        return _read_numbered(context, after)
    context = context.removesuffix(SEPARATOR)
    found = [m.start() for m in re.finditer("^" + re.escape(CURRENT), context, re.MULTILINE)]
    _check_once(CURRENT.strip(), len(found))
    head, region = context[: found[0]], context[found[0] + len(CURRENT) :]
    writer = _write_merge_at_ends if at_ends else _write_merge
    return _excerpt(head, region.removesuffix("\n"), after, writer)


def _check_once(marker: str, times: int) -> None:
    if times != 1:
        raise Unreadable(f"The prompt must hold {marker} once, not {times} times.")


def _write_merge(region: str | None) -> str:
    if region is None:
        return ""
    return f"{region}\n{UPDATED}\n" if region else f"{UPDATED}\n"


def _write_merge_at_ends(region: str | None) -> str:
    """Write as Zed reads: it ends either side with a line end only where there is none."""
    if region is None:
        return ""
    return (with_last_line_end(region) if region else "") + f"{UPDATED}\n"


def _read_numbered(context: str, after: str) -> Excerpt:
    tags = list(_MARKER.finditer(context))
    if [int(tag[1]) for tag in tags] != list(range(1, len(tags) + 1)) or len(tags) < 2:
        raise Unreadable("The markers <|marker_N|> do not count from 1 upwards, each once.")
    blocks = [context[a.end() : b.start()] for a, b in pairwise(tags)]
    if context[tags[-1].end() :].strip("\n"):
        raise Unreadable(f"Text follows {tags[-1][0]}, which ends the region.")
    offsets = [0]
    for block in blocks:
        offsets.append(offsets[-1] + len(block.replace(CURSOR, "")))
    excerpt = _excerpt(context[: tags[0].start()], "".join(blocks), after, _write_merge)
    write = partial(_write_numbered, offsets, excerpt.region, excerpt.cursor)
    return replace(excerpt, write=write)


def _write_numbered(offsets: list[int], old: str, cursor: int, region: str | None) -> str:
    """Write the blocks that change; marker N is at ``offsets[N - 1]`` of the region."""
    if region is None:
        near = max(bisect_right(offsets, cursor), 1)
        return f"<|marker_{near}|><|marker_{near}|>"
    end = len(old)
    head, tail = common_ends(old, region)
    # Two different markers: an insertion at one is written with the block behind it.
    first = min(bisect_right(offsets, head) - 1, len(offsets) - 2)
    last = max(bisect_left(offsets, end - tail), first + 1)
    text = region[offsets[first] : len(region) - (end - offsets[last])]
    return f"<|marker_{first + 1}|>{text}<|marker_{last + 1}|>"


def _excerpt(head: str, region: str, after: str, write: Writer) -> Excerpt:
    """Return the excerpt whose related files, history and lines above are in ``head``."""
    names = list(_FILE.finditer(head))
    if not names:
        raise Unreadable("The prompt names no file with <filename>.")
    target = len(names) - 1
    history = [i for i, name in enumerate(names) if name["path"] == HISTORY]
    if history:  # what follows it is the file itself, even if its lines look like other names
        target = min(history[-1] + 1, target)
    sections = (
        (name["path"], head[name.end() : following.start()])
        for name, following in pairwise(names[: target + 1])
    )
    files = [(path, text.removesuffix("\n")) for path, text in sections if path != HISTORY]
    edits: tuple[RecentEdit, ...] = ()
    if history:
        edits = write_unified_diffs(head[names[history[-1]].end() : names[target].start()])
    region, cursor = take_cursor(region, CURSOR, edits)
    return Excerpt(
        path=names[target]["path"].strip(),
        before=head[names[target].end() :],
        region=region,
        after=after,
        cursor=cursor,
        write=write,
        edits=edits,
        related=render_related_files(files),
        reports=reports_in(files),
    )


# --- received prompts of 1 --------------------------------------------------------------------

ZETA1_START, ZETA1_END = "<|editable_region_start|>", "<|editable_region_end|>"
_ZETA1_CURSOR = "<|user_cursor_is_here|>"
_ZETA1_EXCERPT = "### User Excerpt:\n"
_ZETA1_FILE_START = "<|start_of_file|>\n"


def read_zeta1(text: str) -> Excerpt | None:
    """Return the excerpt of a received prompt of Zeta 1; None: it is no such prompt.

    Raises:
        Unreadable: it is torn, or a marker also occurs in the code.
    """
    if _ZETA1_EXCERPT not in text or ZETA1_START not in text:
        return None
    for marker in (ZETA1_START, ZETA1_END):
        _check_once(marker, text.count(marker))
    instructions, _, body = text.partition(_ZETA1_EXCERPT)
    before, _, rest = body.partition(f"{ZETA1_START}\n")
    region, found, after = rest.partition(f"\n{ZETA1_END}")
    fence, _, before = before.lstrip("\n").partition("\n")
    if not found or not fence.startswith("```"):
        raise Unreadable(
            "The excerpt is not fenced, or its region's markers are not on their lines."
        )
    edits = write_fenced_diffs(instructions)
    region, cursor = take_cursor(region, _ZETA1_CURSOR, edits)
    return Excerpt(
        path=fence.removeprefix("```").strip(),
        before=before.removeprefix(_ZETA1_FILE_START),
        region=region,
        after=after[: max(after.rfind("\n```"), 0)].removeprefix("\n"),
        cursor=cursor,
        write=partial(_write_zeta1, region),
        edits=edits,
    )


def _write_zeta1(old: str, region: str | None) -> str:
    """Write the whole region even where it is unchanged: an empty answer deletes it in Zed."""
    text = old if region is None else region
    return f"{ZETA1_START}\n{text}\n{ZETA1_END}"
