"""Definitions that the user's last edits renamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from redraft.model.records import RecentEdit
from redraft.model.rules.renames import Renamed, find_renamed_by, short_renamed_by
from redraft.model.text.scopes import Occurrence

from .code_file import CodeFile

_MEMBERS = ("member", "field", "keyword")


@dataclass(frozen=True)
class RenamedDefinition:
    """A definition that now has another name, while uses of the old one may remain."""

    old: str
    new: str
    source: CodeFile
    place: Occurrence  # of the new name

    @property
    def at(self) -> int:
        """The index of the new name into the text."""
        return self.source.index(self.place)

    @property
    def scope(self) -> tuple[int, int]:
        """The scope that binds it, or the class that declares it, in bytes."""
        assert self.place.scope is not None, "a definition has a scope"
        return self.place.scope

    @property
    def kind(self) -> Literal["local", "module", "member"]:
        """The reach of its name."""
        if self.place.role == "field":
            return "member"
        return "module" if self.scope == self.source.whole else "local"


def find_renamed(edits: Sequence[RecentEdit], source: CodeFile) -> Iterator[RenamedDefinition]:
    """Yield the definitions of a document that the edits renamed, the newest first.

    A name that the document had before is left out: the edit joined two names. Of short names, such
    as ``n``, only local ones count.

    Args:
        edits: oldest first.
    """
    own = [edit for edit in edits if edit.path == source.path]
    short = [one for edit in own for one in short_renamed_by(edit)]
    here = [*short, *(one for edit in own for one in find_renamed_by(edit))]
    for old, new in dict.fromkeys((one.old, one.new) for one in reversed(here)):
        renamed = [one for one in here if (one.old, one.new) == (old, new)]
        places = source.occurrences(new)
        found = (_definition(source, places, one) for one in renamed)
        place = next((each for each in found if each is not None), None)
        if place is None or place.scope is None:
            continue
        is_member = place.role == "field"
        same_kind = [each for each in places if (each.role in _MEMBERS) is is_member]
        made = RenamedDefinition(old, new, source, place)
        if len(same_kind) <= len(renamed) and (made.kind == "local" or renamed[0] not in short):
            yield made


def _definition(
    source: CodeFile, places: Sequence[Occurrence], renamed: Renamed
) -> Occurrence | None:
    """Return where an edit renamed a definition, None if it renamed a use."""
    lines = source.text.split("\n")
    rows = [at for at, line in enumerate(lines) if line.strip() == renamed.line.strip()]
    row = min(rows, key=lambda at: abs(at - renamed.near), default=None)
    for place in places:
        if place.line == row and place.role in ("binding", "field"):
            # ``{ name }`` on the left names the property of an object as well.
            return None if source.node(place).type.startswith("shorthand") else place
    return None
