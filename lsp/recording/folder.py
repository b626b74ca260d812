"""Where recordings are kept: the folder, the switch in it, the limits, and deleting.

One file per running server and per rotation, readable by the user alone. The switch is a file too,
so that ``redraft record on`` and every running server mean the same. Only what a recorder wrote is
counted or deleted, by its name and by its first line: whatever else a folder holds, which may be
the user's own, is none of ours. Links are never followed.

Each call to :class:`RecordingFile` writes whole lines with one ``write`` to a file opened for
appending, in the caller's own thread: what has been handed to the system survives ``kill -9``, and
handing it over takes about 10 µs. Nothing is forced onto the disk (``fsync`` takes milliseconds),
so a power failure may take the last seconds, and a process killed within a ``write`` may leave a
line half written: reading drops that one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
from redraft.model.errors import SettingsError
from redraft.model.validation import object_of

from .format import FORMAT, Entry, line_of

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
        """Return whether the file still exists."""
        return self.path.exists()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._file)


#: When it began, the beginning of its session's id, which of that session's files it is.
_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-([0-9a-f]{8})-[0-9]+\.jsonl")
_HEADER_BYTES = 64 * 1024  # the longest first line that is looked at
#: The switch has room for this in bytes, and for why the recording ended: a full disk has none.
_SWITCH_BYTES = 4_096
_PROBLEM_CHARS = 300
_SETTLED_NS = 2_000_000_000  # a file changed longer ago than a clock's tick: it can be remembered
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_READ |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_SWITCH = "on.json"
_LEARNED = "gate.json"
_FOLDER = "REDRAFT_RECORDINGS_DIR"

#: A file of this size is closed and another begun: an hour or two of busy editing takes 3 MB, and
#: the texts of all open documents stand at its beginning.
FILE_BYTES = 16_000_000
#: All recordings together; the oldest go first.
TOTAL_BYTES = 500_000_000


def recordings_folder() -> Path:
    """``REDRAFT_RECORDINGS_DIR``, or below the platform's folder for a user's data."""
    named = os.environ.get(_FOLDER, "").strip()
    if named:
        return Path(named).expanduser().absolute()
    return platformdirs.user_data_path("redraft", appauthor=False) / "recordings"


def recording_name(began_s: float, session: str, part: int) -> str:
    """The name of a recorder's file.

    Args:
        session: the id in its header, 32 hexadecimal digits.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(began_s))
    return f"{stamp}-{session[:8]}-{part}.jsonl"


@dataclass(frozen=True, slots=True)
class Kept:
    """A recording on disk."""

    path: Path
    size: int  # bytes
    changed_s: float  # when it was last written to, s since 1970
    workspace: str  # URI of the workspace's root, "" for none


@dataclass(frozen=True, slots=True)
class FolderLimits:
    file_bytes: int = FILE_BYTES
    total_bytes: int = TOTAL_BYTES


class Recordings:
    """The recordings of this user."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or recordings_folder()
        self._switch = self.folder / _SWITCH
        self.learned = self.folder / _LEARNED  # what was learned from them: one's own gate
        self._seen: tuple[tuple[int, ...], bool] | None = None  # the switch, and was it on?

    # --- the switch ----------------------------------------------------------------------------

    def is_on(self) -> bool:
        """Asked at every keystroke: the switch is read where it has changed."""
        try:
            found = self._switch.lstat()
        except OSError:
            return False
        sign = (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode)
        if self._seen is not None and self._seen[0] == sign:
            return self._seen[1]
        told = self._told()
        on = told is not None and "problem" not in told
        is_settled = abs(time.time_ns() - found.st_mtime_ns) > _SETTLED_NS
        self._seen = (sign, on) if is_settled else None
        return on

    def problem(self) -> str:
        """Why the recording ended although nobody turned it off; "" where it did not."""
        return str((self._told() or {}).get("problem", ""))

    def turn_on(self, limits: FolderLimits | None = None) -> None:
        """
        Args:
            limits: the ones in effect stay if not given.

        Raises:
            SettingsError: the folder cannot be written to, or has a file of that name already.
        """
        limits = limits or self.limits()
        told = {
            "since": int(time.time()),
            "fileBytes": limits.file_bytes,
            "totalBytes": limits.total_bytes,
        }
        self._check_switch()
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._replace_switch(json.dumps(told).ljust(_SWITCH_BYTES).encode("ascii"))
        except OSError as error:
            raise SettingsError(
                f"recordings cannot be kept in {self.folder} ({error}); name another folder with "
                f"{_FOLDER}"
            ) from error

    def turn_off(self) -> None:
        """
        Raises:
            SettingsError: the switch cannot be removed.
        """
        if self._told() is None:  # there is none, or another file of that name
            return
        try:
            self._switch.unlink(missing_ok=True)
        except OSError as error:
            raise SettingsError(
                f"recording cannot be turned off: delete {self._switch} by hand ({error})"
            ) from error

    def end(self, problem: str) -> bool:
        """Nothing can be written any more: turn it off for everyone, and tell why. Writes into the
        room that the switch has, since a full disk has no other. Was that possible?"""
        told = self._told()
        if told is None:
            return False
        data = json.dumps(told | {"problem": problem[:_PROBLEM_CHARS]}).encode("ascii")
        try:
            file = os.open(self._switch, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return False
        try:
            os.write(file, data)
            os.ftruncate(file, len(data))
        except OSError:
            with contextlib.suppress(OSError):
                self._switch.unlink()
            return False
        finally:
            os.close(file)
        self._seen = None
        return True

    def limits(self) -> FolderLimits:
        """As they were set when recording was turned on."""
        told = self._told()
        return (
            FolderLimits() if told is None else FolderLimits(told["fileBytes"], told["totalBytes"])
        )

    def _told(self) -> dict[str, Any] | None:
        """What the switch says; None where there is none, or what is there is another's."""
        told = object_of(_first_bytes(self._switch, _SWITCH_BYTES)[0])
        numbers = ("since", "fileBytes", "totalBytes")
        return told if all(type(told.get(name)) is int for name in numbers) else None

    def _check_switch(self) -> None:
        """
        Raises:
            SettingsError: a file that is not ours has the name of the switch.
        """
        if self._told() is None and os.path.lexists(self._switch):
            raise SettingsError(
                f"{self._switch} is none of Redraft's files and would be overwritten: move it "
                f"away, or name another folder with {_FOLDER}"
            )

    def _replace_switch(self, data: bytes) -> None:
        file, passing = tempfile.mkstemp(prefix=f"{_SWITCH}.", dir=self.folder)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(data)
            Path(passing).replace(self._switch)
        except OSError:
            with contextlib.suppress(OSError):
                Path(passing).unlink()
            raise
        self._seen = None

    # --- what is kept --------------------------------------------------------------------------

    def kept(self) -> list[Kept]:
        """Every recording, oldest first."""
        found = [kept for name in self._names() if (kept := _kept(self.folder / name)) is not None]
        return sorted(found, key=lambda kept: (kept.changed_s, kept.path.name))

    def others(self) -> list[str]:
        """What else lies in the folder, by name: never counted, never deleted."""
        ours = {kept.path.name for kept in self.kept()}
        if self._told() is not None:
            ours.add(_SWITCH)
        if self.has_learned():
            ours.add(_LEARNED)
        return sorted(name for name in self._names() if name not in ours)

    def delete(self, paths: list[Path]) -> list[Path]:
        """Delete recordings, and nothing but recordings; returns those that are left (Windows: an
        editor writes to it)."""
        left = []
        for path in paths:
            if not os.path.lexists(path):
                continue
            try:
                if _kept(path) is None:
                    raise OSError(f"{path} is no recording any more")
                path.unlink(missing_ok=True)
            except OSError:
                left.append(path)
        return left

    def has_learned(self) -> bool:
        """Is there a gate that was fitted on recordings?"""
        told = object_of(_first_bytes(self.learned, _HEADER_BYTES)[0])
        return "heads" in told and "card" in told

    def forget(self) -> bool:
        """Delete what was learned from recordings; was there anything?

        Raises:
            SettingsError: it cannot be deleted.
        """
        if not self.has_learned():
            return False
        try:
            self.learned.unlink(missing_ok=True)
        except OSError as error:
            raise SettingsError(
                f"what was learned cannot be deleted: delete {self.learned} by hand ({error})"
            ) from error
        return True

    def make_room(self) -> None:
        """Delete the oldest until one more file fits below the limit."""
        limits, kept = self.limits(), self.kept()
        total = sum(each.size for each in kept)
        for each in kept:
            if total + limits.file_bytes <= limits.total_bytes:
                break
            if not self.delete([each.path]):
                total -= each.size

    def _names(self) -> list[str]:
        try:
            return [each.name for each in self.folder.iterdir()]
        except OSError:
            return []


# --- which files are ours ------------------------------------------------------------------------


def _kept(path: Path) -> Kept | None:
    """The recording at a path; None where something else is there, or nothing."""
    name = _NAME.fullmatch(path.name)
    if name is None:
        return None
    line, found = _first_bytes(path, _HEADER_BYTES)
    header = object_of(line.split(b"\n", 1)[0])
    is_ours = (
        header.get("kind") == "header"
        and header.get("documentType") == FORMAT
        and str(header.get("madeBy", "")).startswith("redraft ")
        and str(header.get("uuid", "")).startswith(name[1])
        and "simulated" not in header
    )
    if not is_ours or found is None:
        return None
    return Kept(path, found.st_size, found.st_mtime, str(header.get("repoRootUri", "")))


def _first_bytes(path: Path, most: int) -> tuple[bytes, os.stat_result | None]:
    """What a file begins with; nothing where it is a link, a folder, a pipe, or cannot be read.

    It is looked at before it is opened, as opening a device may do something, and again after, in
    case another took its place.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return b"", None
        file = os.open(path, _READ)
    except OSError:
        return b"", None
    try:
        found = os.fstat(file)
        return (os.read(file, most), found) if stat.S_ISREG(found.st_mode) else (b"", None)
    except OSError:
        return b"", None
    finally:
        os.close(file)
