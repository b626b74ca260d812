"""A query with everything else that its context depends on, and the room that the prompt has."""

from __future__ import annotations

from dataclasses import dataclass

from redraft.model.records import Diagnostic, RecentEdit
from redraft.model.text.lines import estimate_text

from ..notebooks.above import CellsAbove
from ..suggestion import Query
from . import region as regions
from .excerpts import ScoredExcerpt, near_names
from .region import Lines, Region
from .selection import QUANTUM

_FOR_RELATED = 0.3  # of what the region leaves: what the prompt gives excerpts in a long file
_FOR_EDITS = 0.3  # at most, in the prompt
_SURE = 0.85  # estimates of tokens are at worst so much below the truth
_REGION_SHARE = 0.45  # of the budget at most


@dataclass(frozen=True, slots=True)
class GatherMoment:
    """Moment: a query and everything else that the choice of excerpts depends on."""

    query: Query
    edits: tuple[RecentEdit, ...]  # oldest first
    diagnostics: tuple[Diagnostic, ...]
    budget: int  # tokens of the prompt
    above: CellsAbove | None = None  # cells of its notebook

    @property
    def tokens(self) -> float:
        """Tokens of the region at most."""
        return min(regions.TOKENS, _REGION_SHARE * self.budget)

    @property
    def program(self) -> str:
        """The text of the document, behind that of the cells above."""
        return self.query.text if self.above is None else self.above.text + self.query.text

    @property
    def cells(self) -> tuple[ScoredExcerpt, ...]:
        """The cells above as an excerpt; () if there are none."""
        if (above := self.above) is None:
            return ()
        why = f"{above.cells} cells above"
        return (ScoredExcerpt("cells", self.query.path, 0, above.lines, above.text, why, 1.0),)

    def names(self, region: Region) -> dict[str, float]:
        """Return the names near the cursor, with what each counts.

        Those that the cells above define mean no definition in another file.
        """
        query = self.query
        column = query.cursor - (query.text.rfind("\n", 0, query.cursor) + 1)
        found = near_names(query.lines, region.lines, query.line, column, self.edits)
        for name in self.above.defined if self.above is not None else ():
            found.pop(name, None)
        return found

    def room(self, region: Region, pinned: float) -> int:
        """Return the tokens that the prompt leaves for excerpts besides the pinned ones."""
        query = self.query
        free = self.budget - regions.cost_of(region, query.lines) - 16
        edits = sum(estimate_text(edit.diff) for edit in self.edits)
        free -= min(edits, _FOR_EDITS * max(free, 0))
        free -= min(pinned, max(free, 0) / 3)
        outside = len(query.text) - sum(map(len, query.lines[region.first : region.last]))
        lines = len(query.lines) - region.last + region.first
        if self.above is not None:
            outside, lines = outside + len(self.above.text), lines + self.above.lines
        far = outside / 3.2 + 1.5 * lines
        room = _SURE * max(_FOR_RELATED * free, free - far)
        return max(0, int(room) // QUANTUM * QUANTUM)

    def reach(self, region: Region) -> Lines:
        """Return the lines that the prompt shows anyway: the region, and half of what fits."""
        lines = self.query.lines
        room = 0.5 * (1 - _FOR_RELATED) * max(0.0, self.budget - regions.TOKENS)
        first, last = region.lines
        above = below = 0.5 * room
        while first > 0 and (above := above - regions.tokens_of(lines[first - 1])) >= 0:
            first -= 1
        while last < len(lines) and (below := below - regions.tokens_of(lines[last])) >= 0:
            last += 1
        return first, last
