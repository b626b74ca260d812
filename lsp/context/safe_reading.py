"""Safe reading of files in a folder that the user opened.

Such a folder may come from anyone. Only regular files of bounded size are read, without following
links except to ignore files; anything else is refused with a reason. Opening a pipe would wait for
its writer, a device may do something when opened, a link leads anywhere, and ``/dev/zero`` never
ends.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePath

#: Without these Windows would change line ends, a pipe would wait, a link be followed, a terminal
#: become ours, and a child inherit the file.
_FLAGS = os.O_RDONLY
for _name in ("O_BINARY", "O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY", "O_CLOEXEC", "O_NOINHERIT"):
    _FLAGS |= getattr(os, _name, 0)
_FOLDER = _FLAGS | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)
#: Can a file be opened by its name in a folder that is open, so that no folder on the way becomes a
#: link meanwhile? Elsewhere the way is looked at first.
_STEPWISE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


class UnreadableFile(Exception):
    """Reason not to read a file, as a sentence without its subject: "is a link"."""


def read_file(folder: str | Path, name: str, most_bytes: int, *, end: bool = False) -> bytes:
    """Return the content of the file ``name`` below ``folder``.

    Args:
        folder: opened by the user's own choice; a link to it is theirs, links below are not.
        name: relative, "/" separated.
        most_bytes: a longer file is refused.
        end: of a longer file, the last ``most_bytes`` instead.

    Raises:
        UnreadableFile: it is no regular file, too large, not below ``folder``, or cannot be read.
    """
    try:
        descriptor = _open(str(folder), _steps(name))
        try:
            return _read(descriptor, most_bytes, end)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None
    except ValueError as error:  # a name that is none, such as one with a NUL
        raise UnreadableFile(f"has no possible name: {error}") from None


def read_behind_links(folder: str, name: str, most_bytes: int) -> bytes:
    """Return the content of a file, or of the file that its name leads to.

    For ignore files alone: their content reaches no prompt, and a link that is not followed would
    let the files that it names be read.

    Raises:
        UnreadableFile: it leads to no regular file, is too large, or cannot be read.
    """
    path = os.path.join(folder, name)  # noqa: PTH118 - names that are no Unicode
    try:
        if os.name == "nt" and os.path.islink(path) and _is_remote(os.readlink(path)):  # noqa: PTH114, PTH115
            raise UnreadableFile("is a link to another machine")
        _check(os.stat(path).st_mode)  # noqa: PTH116
        descriptor = os.open(path, _FLAGS & ~getattr(os, "O_NOFOLLOW", 0))
        try:
            return _read(descriptor, most_bytes, end=False)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise UnreadableFile("is a link that leads nowhere") from None
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None
    except ValueError as error:
        raise UnreadableFile(f"has no possible name: {error}") from None


def _is_remote(target: str) -> bool:
    """Return whether a link of Windows leads to a network share, which would learn of the user."""
    plain = target.replace("/", "\\").removeprefix("\\\\?\\")
    return plain.startswith(("\\\\", "UNC\\"))


def kind_of(mode: int) -> str:
    """Return the kind of an entry that is no regular file; "" for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    kinds = {
        stat.S_IFLNK: "a link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "no regular file")


def lies_below(name: str) -> bool:
    """Return whether a relative name stays below its folder."""
    pure = PurePath(name)
    return bool(pure.parts) and not (pure.is_absolute() or pure.drive or ".." in pure.parts)


def _steps(name: str) -> tuple[str, ...]:
    if not lies_below(name):
        raise UnreadableFile("does not lie in the folder")
    return PurePath(name).parts


def _open(folder: str, steps: tuple[str, ...]) -> int:
    if not _STEPWISE:
        return _open_by_path(folder, steps)
    place = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for step in steps[:-1]:
            inner = os.open(step, _FOLDER, dir_fd=place)
            os.close(place)
            place = inner
        _check(os.stat(steps[-1], dir_fd=place, follow_symlinks=False).st_mode)
        return os.open(steps[-1], _FLAGS, dir_fd=place)
    finally:
        os.close(place)


def _open_by_path(folder: str, steps: tuple[str, ...]) -> int:
    """Open a file after a check of each folder on the way."""
    place = Path(folder)
    for number, step in enumerate(steps, 1):
        place /= step
        mode = os.lstat(place).st_mode
        if number == len(steps):
            _check(mode)
        elif not stat.S_ISDIR(mode) or _is_junction(place):
            raise UnreadableFile("lies behind a link")
    return os.open(place, _FLAGS)


def _is_junction(place: Path) -> bool:
    """Return whether a folder is one of Windows' links, which have the mode of a folder."""
    tag: int = getattr(os.lstat(place), "st_reparse_tag", 0)
    return tag in (getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1),)


def _check(mode: int) -> None:
    """Refuse what is no regular file before opening it: that alone rewinds a tape."""
    kind = kind_of(mode)
    if kind:
        raise UnreadableFile(f"is {kind}")


def _read(descriptor: int, most_bytes: int, end: bool) -> bytes:
    status = os.fstat(descriptor)
    _check(status.st_mode)  # it may be another by now
    if end:
        os.lseek(descriptor, max(0, status.st_size - most_bytes), os.SEEK_SET)
    elif status.st_size > most_bytes:
        raise UnreadableFile(f"is too large: {status.st_size:,} bytes > {most_bytes:,}")
    parts, left = [], most_bytes + (not end)
    while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    if not left and not end:  # its size was a lie, as for much of /proc
        raise UnreadableFile(f"is too large: more than {most_bytes:,} bytes")
    return b"".join(parts)


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "is a link"
    if error.errno == errno.ENOTDIR:  # what a link to a folder is where none are followed
        return "lies behind a link, or behind what is no folder"
    return f"cannot be read: {error.strerror or error}"
