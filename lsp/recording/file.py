"""One recording being written.

Each call writes whole lines with one ``write`` to a file opened for appending, in the caller's own
thread. That is on purpose: what has been handed to the system survives ``kill -9``, what waits in a
queue for another thread does not, and handing it over takes about 10 µs. Nothing is forced onto the
disk (``fsync`` takes milliseconds), so a power failure may take the last seconds with it, and a
process killed within a ``write`` may leave a line half written: reading drops that one.

Knows nothing of what it writes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from .format import Entry, line_of

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
_FLAGS |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0) | getattr(os, "O_CLOEXEC", 0)


class RecordingFile:
    """A new file of lines, readable by the user alone.

    Args:
        first: the entries it begins with. By its header it is known for a recording, so a file that
            cannot take it does not stay.

    Raises:
        OSError: it cannot be made; nor can :meth:`write` always write.
    """

    def __init__(self, path: Path, first: Iterable[Entry]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        self.size = 0  # bytes
        self._file = os.open(path, _FLAGS, 0o600)
        try:
            self.write(first)
        except OSError:
            self.close()
            with contextlib.suppress(OSError):
                path.unlink()
            raise

    def write(self, entries: Iterable[Entry]) -> None:
        data = b"".join(map(line_of, entries))
        written = os.write(self._file, data)
        self.size += written
        if written < len(data):
            raise OSError(f"only {written} of {len(data)} bytes could be written: disk full?")

    def is_there(self) -> bool:
        """Has nobody deleted it?"""
        return self.path.exists()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._file)
