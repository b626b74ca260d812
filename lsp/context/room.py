"""Room of a prompt for excerpts, and what the choice of excerpts reads of a snapshot."""

from __future__ import annotations

from redraft.model.records import Diagnostic
from redraft.model.text.lines import estimate_text

from ..snapshot import Snapshot
from . import region as regions
from .region import Lines, Region
from .scored_excerpts import ScoredExcerpt, near_names
from .selection import QUANTUM

_FOR_RELATED = 0.3  # of what the region leaves: what the prompt gives excerpts in a long file
_FOR_EDITS = 0.3  # at most, in the prompt
_SURE = 0.85  # estimates of tokens are at worst so much below the truth
_REGION_SHARE = 0.45  # of the budget at most


def is_same_choice(one: Snapshot, two: Snapshot) -> bool:
    """Return whether the same excerpts are chosen for both."""
    return (
        one.document is two.document
        and one.cursor == two.cursor
        and one.budget == two.budget
        and one.above is two.above
        and one.edits.finished == two.edits.finished
        and reports_of(one) == reports_of(two)
    )


def reports_of(snapshot: Snapshot) -> tuple[Diagnostic, ...]:
    """Return what the editor reports of the document, as it came."""
    return snapshot.reported.get(snapshot.uri, ())


def region_tokens(snapshot: Snapshot) -> float:
    """Return the tokens that a region may have."""
    return min(regions.TOKENS, _REGION_SHARE * snapshot.budget)


def program_of(snapshot: Snapshot) -> str:
    """Return the text of the document, behind that of the cells above."""
    above = snapshot.above
    return snapshot.text if above is None else above.text + snapshot.text


def cells_of(snapshot: Snapshot) -> tuple[ScoredExcerpt, ...]:
    """Return the cells above as an excerpt; () if there are none."""
    if (above := snapshot.above) is None:
        return ()
    why = f"{above.cells} cells above"
    return (ScoredExcerpt("cells", snapshot.path, 0, above.lines, above.text, why, 1.0),)


def names_near(snapshot: Snapshot, region: Region) -> dict[str, float]:
    """Return the names near the cursor, with what each counts.

    Those that the cells above define mean no definition in another file.
    """
    column = snapshot.cursor - (snapshot.text.rfind("\n", 0, snapshot.cursor) + 1)
    edits = snapshot.edits.finished
    found = near_names(snapshot.lines, region.lines, snapshot.line, column, edits)
    for name in snapshot.above.defined if snapshot.above is not None else ():
        found.pop(name, None)
    return found


def room_for_excerpts(snapshot: Snapshot, region: Region, pinned: float) -> int:
    """Return the tokens that the prompt leaves for excerpts besides the pinned ones."""
    free = snapshot.budget - regions.cost_of(region, snapshot.lines) - 16
    edits = sum(estimate_text(edit.diff) for edit in snapshot.edits.finished)
    free -= min(edits, _FOR_EDITS * max(free, 0))
    free -= min(pinned, max(free, 0) / 3)
    outside = len(snapshot.text) - sum(map(len, snapshot.lines[region.first : region.last]))
    lines = len(snapshot.lines) - region.last + region.first
    if snapshot.above is not None:
        outside, lines = outside + len(snapshot.above.text), lines + snapshot.above.lines
    far = outside / 3.2 + 1.5 * lines
    room = _SURE * max(_FOR_RELATED * free, free - far)
    return max(0, int(room) // QUANTUM * QUANTUM)


def lines_in_prompt(snapshot: Snapshot, region: Region) -> Lines:
    """Return the lines that the prompt shows anyway: the region, and half of what fits."""
    lines = snapshot.lines
    room = 0.5 * (1 - _FOR_RELATED) * max(0.0, snapshot.budget - regions.TOKENS)
    first, last = region.lines
    above = below = 0.5 * room
    while first > 0 and (above := above - regions.tokens_of(lines[first - 1])) >= 0:
        first -= 1
    while last < len(lines) and (below := below - regions.tokens_of(lines[last])) >= 0:
        last += 1
    return first, last
