"""Sources of changes, as a recording names them, and whether git has just replaced files.

Git itself is not run: the log of ``HEAD`` has checkouts, merges, rebases, resets and stashes. It
does not mention ``stash pop`` and ``checkout -- file``. The index says less, because any git
command may rewrite it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from redraft.model.text.common import find_changed_part

from ..context.safe_reading import UnreadableFile, kind_of, read_file
from ..documents.history import BULK_CHARACTERS, BULK_LINES, ChangeKind
from ..documents.open_documents import Splice
from .recording_events import ChangeSource

#: So many visible characters put in at once were not typed: a paste, an entry of a completion menu.
#: An editor's own indentation and closing brackets stay below.
PASTED_CHARACTERS = 30


def source_of(
    kind: ChangeKind,
    splices: Sequence[Splice],
    focused: bool = True,
    checked_out: Callable[[], bool] = lambda: False,
) -> ChangeSource:
    """Return the source of a change.

    Args:
        kind: class of the change in the history.
        splices: lines that it changed.
        focused: the editor has the focus.
        checked_out: returns whether git has just replaced files; called only if that matters.
    """
    if kind == "accepted":
        return "suggestion"
    if kind == "undo":
        return "undo"
    if not splices:
        return "format"  # of line ends
    if (kind == "bulk" or not focused) and checked_out():
        return "git"
    if kind == "edit":
        return "paste" if _put_in(splices) >= PASTED_CHARACTERS else "user"
    if _only_blanks_differ(splices):
        return "format"
    return "paste" if focused and _is_one_insertion(splices) else "external"


def _only_blanks_differ(splices: Sequence[Splice]) -> bool:
    """Return whether only the blanks of two lines or more differ."""
    if sum(max(len(splice.removed), len(splice.added)) for splice in splices) < 2:
        return False
    return all(
        _visible(splice.removed) == _visible(splice.added) and splice.removed and splice.added
        for splice in splices
    )


def _visible(lines: Sequence[str]) -> str:
    return "".join("".join(lines).split())


def _is_one_insertion(splices: Sequence[Splice]) -> bool:
    """Return whether a bulk change is one insertion; many small ones in a row are an agent."""
    extent = splices[0].extent
    large = extent.characters >= BULK_CHARACTERS or extent.lines >= BULK_LINES
    return len(splices) == 1 and large and _inserted(splices[0])[0] == ""


def _put_in(splices: Sequence[Splice]) -> int:
    """Return the number of visible characters of the longest insertion."""
    return max(len("".join(_inserted(splice)[1].split())) for splice in splices)


def _inserted(splice: Splice) -> tuple[str, str]:
    """Return the removed and the inserted text, without the ends that both share."""
    return find_changed_part("\n".join(splice.removed), "\n".join(splice.added))[1:]


#: Seconds after it in which a change from outside is git's doing: editors look at their files
#: within a second or two of a change.
RECENT_S = 5.0

_POINTER = "gitdir:"  # of a worktree or a submodule, whose ``.git`` is a file
_LONGEST = 4_096  # characters of such a file, bytes of the log's last line


def has_moved(file: Path, now_s: float) -> bool:
    """Return whether git has just replaced files, by the log of ``HEAD`` of a file's repository.

    Args:
        file: path in the working tree.
        now_s: seconds since 1970.
    """
    try:
        folder = _git_folder(file)
        if folder is None:
            return False
        logged_s = _stamp(folder / "logs" / "HEAD")  # a repository may be set up to keep none
        moved_s = logged_s if logged_s is not None else _stamp(folder / "HEAD")
        if moved_s is None or abs(now_s - moved_s) > RECENT_S:
            return False
        if logged_s is None:
            return True
        last = read_file(folder, "logs/HEAD", _LONGEST, end=True)
    except (OSError, ValueError, UnreadableFile):  # ValueError: a pointer that is no path
        return False
    return _puts_files(last.rstrip(b"\n").rpartition(b"\n")[2])


def _stamp(file: Path) -> float | None:
    """Return when a regular file was last changed, in seconds; None if there is none."""
    try:
        status = os.lstat(file)
    except FileNotFoundError:
        return None
    return None if kind_of(status.st_mode) else status.st_mtime


def _git_folder(file: Path) -> Path | None:
    for parent in file.parents:
        try:
            mode = os.lstat(parent / ".git").st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(mode):
            return parent / ".git"
        if stat.S_ISREG(mode):
            return _pointed_at(parent)
        return None  # such as a link, which may lead anywhere
    return None


def _pointed_at(parent: Path) -> Path | None:
    """Return the folder that a ``.git`` file names, but none on another machine.

    Looking for a folder on another machine would reveal the user to it.
    """
    pointer = read_file(parent, ".git", _LONGEST).decode("utf-8", "replace")
    name = pointer.removeprefix(_POINTER).strip()
    if name.replace("\\", "/").startswith("//"):
        return None
    return parent / name


def _puts_files(line: bytes) -> bool:
    """Return whether a line of the log is from a command that replaces files, unlike a commit.

    Such a line is "OLD NEW WHO WHEN\\tcheckout: moving from main to other".
    """
    head, _, reason = line.partition(b"\t")
    old, _, rest = head.partition(b" ")
    stays = old == rest.partition(b" ")[0]
    return not (reason.startswith(b"commit") or (reason.startswith(b"checkout") and stays))
