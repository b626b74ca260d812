"""Prompts of Zed's edit prediction models, as Zed and cursortab.nvim write them: zeta 2, 2.1 and 1.

Read into an excerpt, and the rewritten region into the text their clients expect. Markers that
occur more often than a client writes them are code that holds a marker: then nobody can tell where
the region is, and the reader refuses. Pure; knows nothing of HTTP.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from redraft.model.records import RecentEdit
from redraft.model.text.common import common_ends

from .diffs import fenced_diffs, unified_diffs
from .regions import Excerpt, guess_cursor, related_files
from .reported import reports_in

CURSOR = "<|user_cursor|>"
SUFFIX, PREFIX, MIDDLE = "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"
CURRENT, SEPARATOR, UPDATED = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED\n"
HISTORY = "edit_history"

ZETA1_CURSOR = "<|user_cursor_is_here|>"
ZETA1_START, ZETA1_END = "<|editable_region_start|>", "<|editable_region_end|>"
ZETA1_EXCERPT = "### User Excerpt:\n"
ZETA1_FILE_START = "<|start_of_file|>\n"

_FILE = re.compile(r"^<filename>(?P<path>[^\n]*)\n", re.MULTILINE)
_MARKER = re.compile(r"<\|marker_(\d{1,6})\|>")


class Unreadable(Exception):
    """The prompt is torn, or a marker also occurs in the code; the text says which, for people."""


class Writer(Protocol):
    """How a format says what becomes of the region."""

    def __call__(self, excerpt: Excerpt, region: str | None) -> str:
        """
        Args:
            region: the whole rewritten region; ``None``: nothing changes.
        """
        ...


def take_cursor(region: str, marker: str, edits: tuple[RecentEdit, ...]) -> tuple[str, int]:
    """The region without the cursor's marker, and where it was.

    Raises:
        Unreadable: the marker is there more than once.
    """
    before, found, after = region.partition(marker)
    if marker in after:
        raise Unreadable(f"The region holds {marker} more than once: it is part of the code.")
    return before + after, len(before) if found else guess_cursor(region, edits)


# --- zeta 2 and 2.1 ----------------------------------------------------------------------------


def reads_zeta2(prompt: str) -> bool:
    return prompt.startswith(SUFFIX) and ("<<<<<<< CURRENT" in prompt or "<|marker_" in prompt)


def read_zeta2(prompt: str) -> tuple[Excerpt, Writer]:
    """
    Raises:
        Unreadable: see there.
    """
    body = prompt.rstrip("\n")
    if not body.endswith(MIDDLE):
        raise Unreadable(f"The prompt does not end with {MIDDLE}.")
    body = body.removesuffix(MIDDLE)
    if body.count(PREFIX) != 1:
        raise Unreadable(f"The prompt must hold {PREFIX} once, not {body.count(PREFIX)} times.")
    after, _, context = body.removeprefix(SUFFIX).partition(PREFIX)
    at_ends = after.startswith("\n")  # Zed's regions end before a line end, cursortab's behind it
    after = after.removeprefix("\n")
    if context.endswith(SEPARATOR):
        return _read_merge(context.removesuffix(SEPARATOR), after, at_ends)
    return _read_numbered(context, after)


def _read_merge(context: str, after: str, at_ends: bool) -> tuple[Excerpt, Writer]:
    found = [m.start() for m in re.finditer("^" + re.escape(CURRENT), context, re.MULTILINE)]
    if len(found) != 1:
        raise Unreadable(f"The prompt must hold {CURRENT.strip()} once, not {len(found)} times.")
    head, region = context[: found[0]], context[found[0] + len(CURRENT) :]
    excerpt = _excerpt(head, region.removesuffix("\n"), after)
    return excerpt, _write_merge_at_ends if at_ends else _write_merge


def _write_merge(excerpt: Excerpt, region: str | None) -> str:
    if region is None:
        return ""
    return f"{region}\n{UPDATED}" if region else UPDATED


def _write_merge_at_ends(excerpt: Excerpt, region: str | None) -> str:
    """Zed adds a line end to either side only where there is none: one more would be an edit."""
    if region is None:
        return ""
    return region + ("\n" if region and not region.endswith("\n") else "") + UPDATED


def _read_numbered(context: str, after: str) -> tuple[Excerpt, Writer]:
    tags = list(_MARKER.finditer(context))
    if [int(tag[1]) for tag in tags] != list(range(1, len(tags) + 1)) or len(tags) < 2:
        raise Unreadable("The markers <|marker_N|> do not count from 1 upwards, each once.")
    pieces = [context[a.end() : b.start()] for a, b in pairwise(tags)]
    if context[tags[-1].end() :].strip("\n"):
        raise Unreadable(f"Text follows {tags[-1][0]}, which ends the region.")
    excerpt = _excerpt(context[: tags[0].start()], "".join(pieces), after)
    offsets = [0]
    for piece in pieces:
        offsets.append(offsets[-1] + len(piece.replace(CURSOR, "")))
    return excerpt, NumberedWriter(tuple(offsets))


@dataclass(frozen=True, slots=True)
class NumberedWriter:
    """Marker N stands at ``offsets[N - 1]`` of the region; the answer goes from one to another."""

    offsets: tuple[int, ...]

    def __call__(self, excerpt: Excerpt, region: str | None) -> str:
        old, offsets = excerpt.region, self.offsets
        if region is None:
            near = max(bisect_right(offsets, excerpt.cursor), 1)
            return f"<|marker_{near}|><|marker_{near}|>"
        head, tail = common_ends(old, region)
        # Two markers at least: an insertion exactly at one takes the block behind it along.
        first = min(bisect_right(offsets, head) - 1, len(offsets) - 2)
        last = max(bisect_left(offsets, len(old) - tail), first + 1)
        text = region[offsets[first] : len(region) - (len(old) - offsets[last])]
        return f"<|marker_{first + 1}|>{text}<|marker_{last + 1}|>"


def _excerpt(head: str, region: str, after: str) -> Excerpt:
    """``head``: related files, the history and the text above the region, each behind its name."""
    names = list(_FILE.finditer(head))
    if not names:
        raise Unreadable("The prompt names no file with <filename>.")
    target = len(names) - 1
    history = [i for i, name in enumerate(names) if name["path"] == HISTORY]
    if history:  # what follows it is the file itself, whatever its lines look like
        target = min(history[-1] + 1, target)
    sections = (
        (name["path"], head[name.end() : following.start()])
        for name, following in pairwise(names[: target + 1])
    )
    files = [(path, text.removesuffix("\n")) for path, text in sections if path != HISTORY]
    edits: tuple[RecentEdit, ...] = ()
    if history:
        edits = unified_diffs(head[names[history[-1]].end() : names[target].start()])
    region, cursor = take_cursor(region, CURSOR, edits)
    return Excerpt(
        path=names[target]["path"].strip(),
        before=head[names[target].end() :],
        region=region,
        after=after,
        cursor=cursor,
        edits=edits,
        related=related_files(files),
        reports=reports_in(files),
    )


# --- zeta 1 --------------------------------------------------------------------------------------


def reads_zeta1(prompt: str) -> bool:
    return ZETA1_EXCERPT in prompt and ZETA1_START in prompt


def read_zeta1(prompt: str) -> tuple[Excerpt, Writer]:
    """
    Raises:
        Unreadable: see there.
    """
    for marker in (ZETA1_START, ZETA1_END):
        if prompt.count(marker) != 1:
            raise Unreadable(
                f"The prompt must hold {marker} once, not {prompt.count(marker)} times."
            )
    instructions, _, body = prompt.partition(ZETA1_EXCERPT)
    before, _, rest = body.partition(f"{ZETA1_START}\n")
    region, found, after = rest.partition(f"\n{ZETA1_END}")
    fence, _, before = before.lstrip("\n").partition("\n")
    if not found or not fence.startswith("```"):
        raise Unreadable(
            "The excerpt is not fenced, or its region's markers are not on their lines."
        )
    edits = fenced_diffs(instructions)
    region, cursor = take_cursor(region, ZETA1_CURSOR, edits)
    excerpt = Excerpt(
        path=fence.removeprefix("```").strip(),
        before=before.removeprefix(ZETA1_FILE_START),
        region=region,
        after=after[: max(after.rfind("\n```"), 0)].removeprefix("\n"),
        cursor=cursor,
        edits=edits,
    )
    return excerpt, _write_zeta1


def _write_zeta1(excerpt: Excerpt, region: str | None) -> str:
    """Always the whole region: an empty answer would delete it in Zed."""
    text = excerpt.region if region is None else region
    return f"{ZETA1_START}\n{text}\n{ZETA1_END}"
