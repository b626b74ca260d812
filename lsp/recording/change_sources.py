"""Where a change came from: the kinds a recording knows, from what the history saw.

:class:`~redraft.lsp.editor.history.History` tells typing from undoing, accepting and bulk changes;
this only names them, and tells apart what the history need not: a paste, a formatter, something
else. Pure; knows nothing of recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redraft.model.text.common import common_ends

from ..editor.documents import Splice
from ..editor.history import BULK_CHARACTERS, BULK_LINES, Happening
from .format import ChangeSource

#: So many visible characters put in at once were not typed: a paste, an entry of a completion menu.
#: An editor's own indentation and closing brackets stay below.
PASTED_CHARACTERS = 30


def source_of(
    happening: Happening,
    splices: Sequence[Splice],
    focused: bool = True,
    checked_out: Callable[[], bool] = lambda: False,
) -> ChangeSource:
    """The source of a change, made by ``splices``, that the history took for ``happening``.

    Args:
        focused: whether the user was in the editor at all.
        checked_out: whether git has just put other files in place; asked only where that may be.
    """
    if happening == "accepted":
        return "suggestion"
    if happening == "undo":
        return "undo"
    if not splices:
        return "format"  # of line ends
    if (happening == "bulk" or not focused) and checked_out():
        return "git"
    if happening == "edit":
        return "paste" if _put_in(splices) >= PASTED_CHARACTERS else "user"
    if _only_blanks_differ(splices):
        return "format"
    return "paste" if focused and _is_one_insertion(splices) else "external"


def _only_blanks_differ(splices: Sequence[Splice]) -> bool:
    """Was more than one line laid out anew, and nothing else done?"""
    if sum(max(len(splice.removed), len(splice.added)) for splice in splices) < 2:
        return False
    return all(
        _visible(splice.removed) == _visible(splice.added) and splice.removed and splice.added
        for splice in splices
    )


def _visible(lines: Sequence[str]) -> str:
    return "".join("".join(lines).split())


def _is_one_insertion(splices: Sequence[Splice]) -> bool:
    """A bulk change by itself, at one place, for which nothing had to go? Many small ones in a row
    are an agent that writes."""
    extent = splices[0].extent
    large = extent.characters >= BULK_CHARACTERS or extent.lines >= BULK_LINES
    return len(splices) == 1 and large and _inserted(splices[0])[0] == ""


def _put_in(splices: Sequence[Splice]) -> int:
    """Visible characters of the longest insertion."""
    return max(len("".join(_inserted(splice)[1].split())) for splice in splices)


def _inserted(splice: Splice) -> tuple[str, str]:
    """What went and what came, without what stays at either end."""
    old, new = "\n".join(splice.removed), "\n".join(splice.added)
    head, tail = common_ends(old, new)
    return old[head : len(old) - tail], new[head : len(new) - tail]
