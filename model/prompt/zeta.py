"""Zed's Zeta 2 and Zeta 2.1, trained on Seed-Coder's fill-in-the-middle.

From Zed's crate ``zeta_prompt``, formats ``V0211SeedCoder`` and ``V0318SeedMultiRegions``::

    <[fim-suffix]> text below the region
    <[fim-prefix]> <filename>path⏎ text …    other files, then an empty line
    <filename>edit_history⏎ diffs, oldest first, then an empty line
    <filename>path⏎ text above the region, and the region with <|user_cursor|> in it
    2:    <<<<<<< CURRENT⏎ region⏎ =======⏎ <[fim-middle]>
          → the region, >>>>>>> UPDATED
    2.1:  <|marker_1|> lines <|marker_2|> lines … <|marker_n|>⏎ <[fim-middle]>
          → <|marker_i|> lines <|marker_j|>; twice the same marker: no edit

The region holds about 350 tokens and what is shown around it 150, see ``zeta_region.py``. Of
other files the best excerpts that fit are shown, in the order in which they come, those of one file
behind one name.
"""

from __future__ import annotations

import re

from ..config import ModelConfig
from ..errors import InvalidAnswer
from ..records import EditRequest, RecentEdit
from .foreign import (
    Declined,
    Mark,
    Piece,
    Read,
    begin_of,
    by_file,
    count,
    edits_then_files,
    ended,
    forged,
    joined,
    read_region,
    says_something,
    sides,
    title,
    tokens_of,
)
from .render import Prompt
from .tokens import Tokenizer
from .zeta_region import regions_of

SUFFIX, PREFIX, MIDDLE = Mark("<[fim-suffix]>"), Mark("<[fim-prefix]>"), Mark("<[fim-middle]>")
FILE = Mark("<filename>")
CURSOR = "<|user_cursor|>"
CURRENT, SEPARATOR, UPDATED = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED"
NO_EDITS = "NO_EDITS"

_EDITS = 6
#: Tokens of an answer beyond those of the region as it is.
_GROWTH = 64
_TAG = re.compile(r"<\|marker_(\d{1,6})\|>")


class Zeta:
    """See the module.

    Args:
        markers: the region is cut by numbered markers, as in 2.1.
    """

    def __init__(self, markers: bool) -> None:
        self.markers = markers

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        words = (CURSOR, "<|marker_") if self.markers else (CURSOR, CURRENT, UPDATED)
        if (no := forged(request, words)) is not None:
            return no
        lines = request.text.split("\n")
        at = request.text.count("\n", 0, request.cursor)
        region, shown = regions_of(request, lines, at)
        suffix, near = self._near(request, lines, region, shown)
        spare = budget - count([*suffix, *near], tokenizer) - 1
        far, cut = _far(request, tokenizer, spare)
        size = count(["\n".join(lines[region[0] : region[1]])], tokenizer)
        return Prompt(
            tuple(tokens_of([*suffix, PREFIX, *far, *near], tokenizer)),
            lines,
            at,
            region=region,
            cut=cut,
            room=size + 2 * max(_GROWTH, request.max_tokens // 2),
            stop=(UPDATED,),
        )

    def read(self, prompt: Prompt, request: EditRequest, answer: str, ended: bool) -> Read | None:
        if not says_something(answer, ended, "region"):
            return None
        if self.markers:
            return _read_markers(prompt, request, answer)
        if answer.strip() == NO_EDITS:
            return None
        return read_region(request, prompt.region, answer.replace(CURSOR, ""))

    def _near(
        self,
        request: EditRequest,
        lines: list[str],
        region: tuple[int, int],
        shown: tuple[int, int],
    ) -> tuple[list[Piece], list[Piece]]:
        """What stands below the region, and the file from its name to the end of the region."""
        first, last = region
        below = "\n".join(["", *lines[last : shown[1]]]) if last < len(lines) else ""
        above = "".join(f"{line}\n" for line in lines[shown[0] : first])
        text = "\n".join(lines[first:last])
        cursor = request.cursor - begin_of(lines, first)
        if self.markers:
            body = ended(_marked(text, cursor))
        else:
            body = f"{CURRENT}{ended(text[:cursor] + CURSOR + text[cursor:])}{SEPARATOR}"
        return [SUFFIX, ended(below)], [FILE, title(request.path) + above + body, MIDDLE]


def _far(request: EditRequest, tokenizer: Tokenizer, room: int) -> tuple[list[Piece], str]:
    """Other files and recent edits within ``room`` tokens, and what was left out."""
    recent: list[list[Piece]] = [[_event(edit)] for edit in request.edits[-_EDITS:]]
    history, files, cut = edits_then_files(recent, request, FILE, tokenizer, room)
    pieces = by_file(files, "...\n")
    pieces += ["\n"] if files else []
    pieces += [FILE, "edit_history\n", *joined(history), "\n"] if history else []
    return pieces, cut


def _event(edit: RecentEdit) -> str:
    """A recent edit as Zed's unified diff; where it began before the edit is not known exactly."""
    path = title(edit.path).removesuffix("\n")
    before, after = sides(edit)
    begun = "// User accepted prediction:\n" if edit.accepted else ""
    where = f"@@ -{edit.line + 1},{len(before)} +{edit.line + 1},{len(after)} @@\n"
    return f"{begun}--- a/{path}\n+++ b/{path}\n{where}{edit.diff}"


# ------------------------------------------------------------------------------ numbered markers

_LEAST, _MOST, _NUDGE = 6, 16, 5  # lines of a block, and how far its beginning may be moved


def marker_offsets(text: str) -> list[int]:
    """Where the markers of 2.1 stand in a region: at its ends, and between blocks of 6 to 16 lines
    that begin behind an empty line where there is one, and not with a closing bracket."""
    lines = text.split("\n")
    if text.endswith("\n") and len(lines) > 1:
        lines.pop()
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    offsets, begun, i = [0], 0, 0
    while i < len(lines):
        size, behind_blank = i - begun, i > 0 and not lines[i - 1].strip() and lines[i].strip()
        block = _begin_of_block(lines, i)
        may = size >= _LEAST and behind_blank and len(lines) - block >= _LEAST
        if (may or size >= _MOST) and starts[block] > offsets[-1]:
            offsets.append(starts[block])
            begun = i = block
        i += 1
    return offsets if offsets[-1] == len(text) and len(offsets) > 1 else [*offsets, len(text)]


def _begin_of_block(lines: list[str], at: int) -> int:
    """The first line from ``at`` on, not far behind it, with which a block may well begin."""
    near = range(at, min(at + _NUDGE, len(lines)))
    return next((i for i in near if _is_good_start(lines[i].strip())), at)


def _is_good_start(line: str) -> bool:
    tails = ("break", "continue", "return", "throw", "end")
    return bool(line) and line[0] not in "}])" and line.rstrip(";") not in tails


def _marked(text: str, cursor: int) -> str:
    offsets = marker_offsets(text)
    out = ""
    for number, (start, end) in enumerate(zip(offsets, [*offsets[1:], None], strict=True), 1):
        out += f"<|marker_{number}|>"
        if end is None:
            break
        block = text[start:end]
        if start <= cursor <= end and CURSOR not in out:
            block = block[: cursor - start] + CURSOR + block[cursor - start :]
        out += block
    return out


def _read_markers(prompt: Prompt, request: EditRequest, answer: str) -> Read | None:
    tags = list(_TAG.finditer(answer))
    if len(tags) < 2:
        raise InvalidAnswer(f"The answer {answer[:40]!r} does not stand between two markers.")
    first, last = int(tags[0][1]), int(tags[-1][1])
    if first == last:
        return None
    text = "\n".join(request.text.split("\n")[prompt.region[0] : prompt.region[1]])
    offsets = marker_offsets(text)
    if not 1 <= first < last <= len(offsets):
        raise InvalidAnswer(
            f"The answer goes from marker {first} to {last}; the region has {len(offsets)}."
        )
    between = answer[tags[0].end() : tags[-1].start()]
    body = _TAG.sub("", between).replace(CURSOR, "")
    new = text[: offsets[first - 1]] + body + text[offsets[last - 1] :]
    found = read_region(request, prompt.region, new, tags[0].end() - offsets[first - 1])
    if found is None or found.written is None:
        return found
    low, high = (min(max(i, 0), len(answer)) for i in found.written)
    return Read(found.start, found.end, found.text, (low, high))
