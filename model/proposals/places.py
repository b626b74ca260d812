"""Where in a whole text something that was begun is to be carried on, however far away.

Of the families that tell a place by what stands there, and not by a name that was changed: lists
that grew, arguments that changed places, names that nothing imports. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from . import imported, listed, reordered
from .example import Example

#: Of one family, at most.
_MOST = 20

_WHY = {
    "listed": "its list grew",
    "reordered": "its arguments changed places",
    "imported": "it is not imported",
    "standard": "it is not imported",
    "workspace": "it is not imported",
}
BEGUN = frozenset(_WHY.values())


@dataclass(frozen=True, slots=True)
class Begun:
    """A place for a step of what was begun."""

    line: int  # 0-based
    name: str
    why: str  # for people: one of BEGUN


def places_in(example: Example, text: str, here: bool) -> list[Begun]:
    """Places of a document's text, in the order of the text.

    Args:
        here: whether the edits were made in it, so that it may lack what they use.
    """
    families = []
    if listed.may_stand_in(example, text):
        families.append(("listed", listed.find))
    if any(name in text for name in reordered.names_of(example)):
        families.append(("reordered", reordered.find))
    if here:
        families.append(("imported", imported.find))
    lines = text.split("\n") if families else []
    found = {
        Begun(min(one.first, len(lines) - 1), one.name, _WHY[one.family or family])
        for family, find in families
        for one in islice(find(example, lines, 0, len(lines)), _MOST)
    }
    return sorted(found, key=lambda one: one.line)
