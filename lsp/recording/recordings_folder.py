"""Folder of recordings: its files, the switch, the limits, and deleting.

The switch is a file, so that ``redraft record on`` and every running server agree. Only what a
recorder wrote is counted or deleted, recognised by its name and first line. Links are not followed.
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

from .recording_events import FORMAT, Event, Header, encode_all

_FOLDER = "REDRAFT_RECORDINGS_DIR"
_SWITCH, _LEARNED = "on.json", "gate.json"
#: Time of its beginning, first digits of the session's id, number of the file in that session.
_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-([0-9a-f]{8})-[0-9]+\.jsonl")
_HEADER_BYTES = 64 * 1024  # the longest first line that is read
#: The switch keeps room for this in bytes: a full disk has none for why the recording ended.
_SWITCH_BYTES = 4_096
_PROBLEM_CHARS = 300
_SETTLED_NS = 2_000_000_000  # the content of a file changed longer ago than this can be cached

_SAFE = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOINHERIT", 0) | _SAFE
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINK | _SAFE

#: A file of this size is closed and another begun: an hour or two of busy editing takes 3 MB, and
#: each file begins with the texts of all open documents.
FILE_BYTES = 16_000_000
#: All recordings together; the oldest are deleted first.
TOTAL_BYTES = 500_000_000


class RecordingFile:
    """A new file of lines, readable by the user alone.

    Whole lines are appended with one ``write``, which survives ``kill -9``. There is no ``fsync``,
    which takes milliseconds: a power failure may lose the last seconds. A process killed within a
    ``write`` may leave half a line, which readers drop.

    Args:
        first: its first events; a file that cannot take its header is removed again.

    Raises:
        OSError: it cannot be made. :meth:`write` raises it too.
    """

    def __init__(self, path: Path, first: Iterable[Header | Event]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        self.size = 0  # bytes
        self._file = os.open(path, _APPEND, 0o600)
        try:
            self.write(first)
        except OSError:
            self.close()
            with contextlib.suppress(OSError):
                path.unlink()
            raise

    def write(self, events: Iterable[Header | Event]) -> None:
        """Append the lines of some events."""
        data = encode_all(events)
        written = os.write(self._file, data)
        self.size += written
        if written < len(data):
            raise OSError(f"only {written} of {len(data)} bytes could be written: disk full?")

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            os.close(self._file)


def recordings_folder() -> Path:
    """Return ``REDRAFT_RECORDINGS_DIR``, or a folder within the platform's for user data."""
    named = os.environ.get(_FOLDER, "").strip()
    if named:
        return Path(named).expanduser().absolute()
    return platformdirs.user_data_path("redraft", appauthor=False) / "recordings"


def name_recording(began_s: float, session: str, part: int) -> str:
    """Return the name of a recorder's file; ``session`` has 32 hexadecimal digits."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(began_s))
    return f"{stamp}-{session[:8]}-{part}.jsonl"


@dataclass(frozen=True, slots=True)
class StoredRecording:
    """A recording on disk."""

    path: Path
    size: int  # bytes
    changed_s: float  # when it was last written to, s since 1970
    workspace: str  # URI of the workspace's root, "" for none


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """Sizes of one file and of all."""

    file_bytes: int = FILE_BYTES
    total_bytes: int = TOTAL_BYTES


class Recordings:
    """The recordings of this user."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or recordings_folder()
        self.learned = self.folder / _LEARNED  # the gate that was fitted on them
        self._switch = self.folder / _SWITCH
        #: The switch's stamp, and its state.
        self._cached: tuple[tuple[int, ...], bool] | None = None

    # --- the switch ----------------------------------------------------------------------------

    def is_on(self) -> bool:
        """Return whether recording is on. Every keystroke asks, so it is read when it changed."""
        try:
            status = self._switch.lstat()
        except OSError:
            return False
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
        if self._cached is not None and self._cached[0] == stamp:
            return self._cached[1]
        state = self._state()
        is_on = bool(state) and "problem" not in state
        is_settled = abs(time.time_ns() - status.st_mtime_ns) > _SETTLED_NS
        self._cached = (stamp, is_on) if is_settled else None
        return is_on

    def problem(self) -> str:
        """Return why the recording ended without being turned off; "" if it did not."""
        return str(self._state().get("problem", ""))

    def limits(self) -> FolderLimits:
        """Return the limits that were set when recording was turned on."""
        state = self._state()
        return FolderLimits(state["fileBytes"], state["totalBytes"]) if state else FolderLimits()

    def turn_on(self, limits: FolderLimits | None = None) -> None:
        """Turn recording on; without ``limits``, those in effect stay.

        Raises:
            SettingsError: the folder cannot be written to, or has another file of that name.
        """
        if not self._state() and os.path.lexists(self._switch):
            raise SettingsError(
                f"{self._switch} is none of Redraft's files and would be overwritten: move it "
                f"away, or name another folder with {_FOLDER}"
            )
        limits = limits or self.limits()
        state = {
            "since": int(time.time()),
            "fileBytes": limits.file_bytes,
            "totalBytes": limits.total_bytes,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=f"{_SWITCH}.") as beside:
                file = Path(beside) / _SWITCH
                file.write_text(json.dumps(state).ljust(_SWITCH_BYTES), encoding="ascii")
                file.replace(self._switch)
        except OSError as error:
            raise SettingsError(
                f"recordings cannot be kept in {self.folder} ({error}); name another folder with "
                f"{_FOLDER}"
            ) from error
        self._cached = None

    def turn_off(self) -> None:
        """Turn recording off.

        Raises:
            SettingsError: the switch cannot be removed.
        """
        if self._state():  # another file of that name stays
            _unlink(self._switch, "recording cannot be turned off")

    def end(self, problem: str) -> bool:
        """Turn recording off because of a problem; return whether the folder could keep it.

        It is written into the room that the switch has, since a full disk has no other.
        """
        state = self._state()
        if not state:
            return False
        data = json.dumps(state | {"problem": problem[:_PROBLEM_CHARS]}).encode("ascii")
        try:
            file = os.open(self._switch, os.O_WRONLY | _NO_LINK)
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
        self._cached = None
        return True

    def _state(self) -> dict[str, Any]:
        """Return what the switch holds; {} if there is none, or another file has its name."""
        state = object_of(_first_bytes(self._switch, _SWITCH_BYTES)[0])
        numbers = ("since", "fileBytes", "totalBytes")
        return state if all(type(state.get(name)) is int for name in numbers) else {}

    # --- the files -----------------------------------------------------------------------------

    def list_recordings(self) -> list[StoredRecording]:
        """Return every recording, oldest first."""
        found = [kept for name in self._names() if (kept := _kept(self.folder / name)) is not None]
        return sorted(found, key=lambda kept: (kept.changed_s, kept.path.name))

    def others(self) -> list[str]:
        """Return the names of other files in the folder, which are never counted or deleted."""
        ours = {kept.path.name for kept in self.list_recordings()}
        ours |= {_SWITCH} if self._state() else set()
        ours |= {_LEARNED} if self.has_learned() else set()
        return sorted(name for name in self._names() if name not in ours)

    def delete(self, paths: list[Path]) -> list[Path]:
        """Delete recordings and no other files; return those left, as an editor writes to them."""
        left = []
        for path in paths:
            try:
                if _kept(path) is not None:
                    path.unlink(missing_ok=True)
                elif os.path.lexists(path):
                    left.append(path)
            except OSError:
                left.append(path)
        return left

    def make_room(self, path: Path) -> None:
        """Delete the oldest recordings until the one at ``path``, when full, fits below the limit.

        Opens every recording, so call it in a thread.
        """
        limits, kept = self.limits(), [each for each in self.list_recordings() if each.path != path]
        total = sum(each.size for each in kept)
        for each in kept:
            if total + limits.file_bytes <= limits.total_bytes:
                break
            if not self.delete([each.path]):
                total -= each.size

    def has_learned(self) -> bool:
        """Return whether there is a gate that was fitted on recordings."""
        state = object_of(_first_bytes(self.learned, _HEADER_BYTES)[0])
        return "heads" in state and "card" in state

    def forget(self) -> bool:
        """Delete the gate that was fitted on recordings; return whether there was one.

        Raises:
            SettingsError: it cannot be deleted.
        """
        if not self.has_learned():
            return False
        _unlink(self.learned, "what was learned cannot be deleted")
        return True

    def _names(self) -> list[str]:
        try:
            return [each.name for each in self.folder.iterdir()]
        except OSError:
            return []


def _unlink(path: Path, problem: str) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(f"{problem}: delete {path} by hand ({error})") from error


def _kept(path: Path) -> StoredRecording | None:
    """Return the recording at a path; None if there is nothing, or something else."""
    name = _NAME.fullmatch(path.name)
    if name is None:
        return None
    line, status = _first_bytes(path, _HEADER_BYTES)
    header = object_of(line.split(b"\n", 1)[0])
    is_ours = (
        header.get("kind") == "header"
        and header.get("documentType") == FORMAT
        and str(header.get("madeBy", "")).startswith("redraft ")
        and str(header.get("uuid", "")).startswith(name[1])
        and "simulated" not in header
    )
    if not is_ours or status is None:
        return None
    return StoredRecording(
        path, status.st_size, status.st_mtime, str(header.get("repoRootUri", ""))
    )


def _first_bytes(path: Path, most: int) -> tuple[bytes, os.stat_result | None]:
    """Return the beginning of a regular file; nothing of a link, a folder, a pipe or a device."""
    # Opening a device may do something, so the status is read before; another file may take its
    # place meanwhile, so it is read again after.
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return b"", None
        file = os.open(path, _READ)
    except OSError:
        return b"", None
    try:
        status = os.fstat(file)
        return (os.read(file, most), status) if stat.S_ISREG(status.st_mode) else (b"", None)
    except OSError:
        return b"", None
    finally:
        os.close(file)
