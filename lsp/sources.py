"""Where a change came from: the kinds a recording knows, from what the history saw.

:class:`~redraft.lsp.history.History` tells typing from undoing, accepting and bulk changes; this
only names them, and tells apart what the history need not: a paste, a formatter, something else.
Pure; knows nothing of recordings.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model.syntax import common_head, common_tail
from .documents import Splice
from .history import Happening
from .recorder_entries import Source

#: So many visible characters put in at once were not typed: a paste, an entry of a completion menu.
#: An editor's own indentation and closing brackets stay below.
PASTED_CHARACTERS = 30


def source_of(happening: Happening, splices: Sequence[Splice], focused: bool = True) -> Source:
    """The source of a change, made by ``splices``, that the history took for ``happening``.

    Args:
        focused: whether the user was in the editor at all.
    """
    if happening == "accepted":
        return "suggestion"
    if happening == "undo":
        return "undo"
    if not splices or _only_blanks_differ(splices):
        return "format" if happening != "edit" or not splices else "user"
    if happening == "edit":
        return "paste" if _put_in(splices) >= PASTED_CHARACTERS else "user"
    if len(splices) == 1 and focused and not "".join(splices[0].removed).strip():
        return "paste"  # in one place, and nothing had to go for it
    return "external"


def _only_blanks_differ(splices: Sequence[Splice]) -> bool:
    removed = "".join("".join(splice.removed) for splice in splices)
    added = "".join("".join(splice.added) for splice in splices)
    return "".join(removed.split()) == "".join(added.split())


def _put_in(splices: Sequence[Splice]) -> int:
    """Visible characters of the longest insertion."""
    return max(_inserted(splice) for splice in splices)


def _inserted(splice: Splice) -> int:
    old, new = "\n".join(splice.removed), "\n".join(splice.added)
    head = common_head(old, new)
    tail = common_tail(old[head:], new[head:], min(len(old), len(new)) - head)
    return len("".join(new[head : len(new) - tail].split()))
