"""Whether git has just put other files in place: a checkout, a merge, a rebase, a reset, a stash.

All of these are in the log of ``HEAD``. So are a commit and a branch that begins where the last one
stands, which leave the files alone. Not seen: ``stash pop`` and ``checkout -- file``, which the log
does not tell of. The index says less: whoever only looks at what changed rewrites it. Runs no git;
knows nothing of documents.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..context.reading import Unreadable, kind_of, read_file

#: Seconds after it in which a change from outside is git's doing: editors look at their files
#: within a second or two of a change.
RECENT_S = 5.0

_POINTER = "gitdir:"  # of a worktree or a submodule, whose ``.git`` is a file
_LONGEST = 4_096  # characters of such a file, bytes of the log's last line


def has_moved(file: Path, now_s: float) -> bool:
    """Does the log of ``HEAD`` of the repository that a file lies in tell of other files just now?

    Args:
        now_s: seconds since 1970.
    """
    try:
        folder = _git_folder(file)
        if folder is None:
            return False
        told = _stamp(folder / "logs" / "HEAD")  # a repository may be set up to keep none
        moved_s = told if told is not None else _stamp(folder / "HEAD")
        if moved_s is None or abs(now_s - moved_s) > RECENT_S:
            return False
        if told is None:
            return True
        last = read_file(folder, "logs/HEAD", _LONGEST, end=True)
    except (OSError, ValueError, Unreadable):  # ValueError: a pointer that is no path
        return False
    return _puts_files(last.rstrip(b"\n").rpartition(b"\n")[2])


def _stamp(file: Path) -> float | None:
    """When a regular file was last changed, in seconds; None where there is none."""
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
        return None  # such as a link: whoever made it may have put it anywhere
    return None


def _pointed_at(parent: Path) -> Path | None:
    """Return the folder that a ``.git`` file names, but none on another machine.

    Looking for a folder on another machine would reveal the user to it.
    """
    said = read_file(parent, ".git", _LONGEST).decode("utf-8", "replace")
    name = said.removeprefix(_POINTER).strip()
    if name.replace("\\", "/").startswith("//"):
        return None
    return parent / name


def _puts_files(line: bytes) -> bool:
    """Does a line of the log, such as "OLD NEW WHO WHEN\\tcheckout: moving from main to other",
    tell of files that changed? A stash is a reset to the same commit."""
    told, _, reason = line.partition(b"\t")
    old, _, rest = told.partition(b" ")
    stays = old == rest.partition(b" ")[0]
    return not (reason.startswith(b"commit") or (reason.startswith(b"checkout") and stays))
