"""Members that the user added to a type: written at the other places that list its members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from redraft.model.records import RecentEdit
from redraft.model.rules.siblings import SiblingPlace, find_sibling_places
from redraft.model.text.syntax import count_errors

from .code_file import CodeFile, UnclearUse
from .whole_rename import FileRename, WholeRename


def find_members(edits: Sequence[RecentEdit], own: CodeFile) -> Iterator[WholeRename]:
    """Yield the new members at the places that lack them, the newest first.

    Args:
        edits: oldest first.
        own: the document that the user is in, which defines the type.
    """
    try:
        places = list(find_sibling_places(edits, own.path, own.syntax))
    except UnclearUse:
        return
    for name in dict.fromkeys(each.member.name for each in places):
        same = sorted((each for each in places if each.member.name == name), key=lambda one: one.at)
        made, after = _written(own, same)
        free = _free(same, after)
        if free:
            same = [each for each in same if each not in free]
            made, after = _written(own, same)
        if same and count_errors(after.syntax) <= count_errors(own.syntax):
            what = f"add `{name}` beside `{same[0].beside.name}`"
            yield WholeRename("", "", same[0].at, (made,), what)


def _written(own: CodeFile, places: Sequence[SiblingPlace]) -> tuple[FileRename, CodeFile]:
    """Return the change that writes a member at places, and the file after it."""
    made = FileRename(own, tuple((each.at, each.at, each.text) for each in places))
    return made, replace(own, text=made.result)


def _free(places: Sequence[SiblingPlace], after: CodeFile) -> list[SiblingPlace]:
    """Return the places where the new member would be a variable that nothing binds."""
    shift, found = 0, list[SiblingPlace]()
    for each in places:
        start, end = each.at + shift, each.at + shift + len(each.text)
        shift += len(each.text)
        names = {*each.member.spellings.values()} - {""}
        named = (one for name in names for one in after.occurrences(name))
        uses = [one for one in named if after.receiver(one) is None]
        if any(
            one.role in ("use", "shorthand")
            and one.scope is None
            and start <= after.index(one) < end
            for one in uses
        ):
            found.append(each)
    return found
