"""Whether git has just put other files in place: a checkout, a merge, a rebase, a reset, a stash.

All of these are in the log of ``HEAD``. So are a commit and a branch that begins where the last one
stands, which leave the files alone. Not seen: ``stash pop`` and ``checkout -- file``, which the log
does not tell of. The index says less: whoever only looks at what changed rewrites it. Runs no git;
knows nothing of documents.
"""

from __future__ import annotations

import os
from pathlib import Path

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
        log = folder / "logs" / "HEAD"
        told = log.is_file()  # a repository may be set up to keep none
        moved_s = (log if told else folder / "HEAD").stat().st_mtime
        if abs(now_s - moved_s) > RECENT_S:
            return False
        return not told or _puts_files(_last_line(log))
    except (OSError, ValueError):  # ValueError: a pointer that is no path
        return False


def _git_folder(file: Path) -> Path | None:
    for parent in file.parents:
        found = parent / ".git"
        if found.is_dir():
            return found
        if found.is_file():
            with found.open(encoding="utf-8", errors="replace") as pointer:
                said = pointer.read(_LONGEST)
            return parent / said.removeprefix(_POINTER).strip()
    return None


def _puts_files(line: bytes) -> bool:
    """Does a line of the log, such as "OLD NEW WHO WHEN\\tcheckout: moving from main to other",
    tell of files that changed? A stash is a reset to the same commit."""
    told, _, reason = line.partition(b"\t")
    old, _, rest = told.partition(b" ")
    stays = old == rest.partition(b" ")[0]
    return not (reason.startswith(b"commit") or (reason.startswith(b"checkout") and stays))


def _last_line(log: Path) -> bytes:
    with log.open("rb") as lines:
        lines.seek(max(0, os.fstat(lines.fileno()).st_size - _LONGEST))
        return lines.read().rstrip(b"\n").rpartition(b"\n")[2]
