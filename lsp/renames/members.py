"""Members that the user added to a type: written at the other places that list its members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redraft.model.records import RecentEdit
from redraft.model.rules.siblings import sibling_places
from redraft.model.text.syntax import count_errors, parse

from .code_file import CodeFile, UnclearUse
from .whole_rename import FileRename, WholeRename


def find_members(edits: Sequence[RecentEdit], own: CodeFile) -> Iterator[WholeRename]:
    """Yield the new members at the places that lack them, the newest first.

    Args:
        edits: oldest first.
        own: the document that the user is in, which defines the type.
    """
    try:
        places = list(sibling_places(edits, own.path, own.syntax))
    except UnclearUse:
        return
    for name in dict.fromkeys(each.member for each in places):
        same = sorted((each for each in places if each.member == name), key=lambda one: one.at)
        made = FileRename(own, tuple((each.at, each.at, each.text) for each in same))
        after = parse(made.result, own.language)
        if after is not None and count_errors(after) <= count_errors(own.syntax):
            what = f"add `{name}` beside `{same[0].beside}`"
            yield WholeRename("", "", same[0].at, (made,), what)
