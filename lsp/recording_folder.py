"""Where recordings are kept: the folder, the switch in it, the limits, and deleting.

One file per running server and per rotation, readable by the user alone. The switch is a file too,
so that ``redraft record on`` and every running server mean the same. Knows nothing of what is in a
recording.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ..model.errors import SettingsError

SUFFIX = ".jsonl"
_SWITCH = "on.json"
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


@dataclass(frozen=True, slots=True)
class Kept:
    """A recording on disk."""

    path: Path
    size: int  # bytes
    changed_s: float  # when it was last written to, s since 1970


@dataclass(frozen=True, slots=True)
class Limits:
    file_bytes: int = FILE_BYTES
    total_bytes: int = TOTAL_BYTES


class Recordings:
    """The recordings of this user."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or recordings_folder()
        self._switch = self.folder / _SWITCH

    def is_on(self) -> bool:
        return self._switch.exists()

    def turn_on(self, limits: Limits | None = None) -> None:
        """
        Args:
            limits: the ones in effect stay if not given.

        Raises:
            SettingsError: the folder cannot be written to.
        """
        limits = limits or self.limits()
        told = {
            "since": int(time.time()),
            "fileBytes": limits.file_bytes,
            "totalBytes": limits.total_bytes,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            passing = self.folder / f"{_SWITCH}.{os.getpid()}"
            passing.write_text(json.dumps(told), encoding="utf-8")
            passing.replace(self._switch)
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
        try:
            self._switch.unlink(missing_ok=True)
        except OSError as error:
            raise SettingsError(
                f"recording cannot be turned off: delete {self._switch} by hand ({error})"
            ) from error

    def limits(self) -> Limits:
        """As they were set when recording was turned on."""
        try:
            told = json.loads(self._switch.read_bytes())
            return Limits(int(told["fileBytes"]), int(told["totalBytes"]))
        except (OSError, ValueError, KeyError, TypeError):
            return Limits()

    def kept(self) -> list[Kept]:
        """Every recording, oldest first."""
        found = []
        try:
            entries = list(os.scandir(self.folder))
        except OSError:
            return []
        for entry in entries:
            if not entry.name.endswith(SUFFIX):
                continue
            with contextlib.suppress(OSError):  # deleted by another one meanwhile
                stat = entry.stat(follow_symlinks=False)
                found.append(Kept(Path(entry.path), stat.st_size, stat.st_mtime))
        return sorted(found, key=lambda kept: (kept.changed_s, kept.path.name))

    def delete(self, paths: list[Path]) -> list[Path]:
        """Delete recordings; returns those that could not be (Windows: an editor writes to it)."""
        left = []
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError:
                left.append(path)
        return left

    def make_room(self) -> None:
        """Delete the oldest until one more file fits below the limit."""
        limits, kept = self.limits(), self.kept()
        total = sum(each.size for each in kept)
        for each in kept:
            if total + limits.file_bytes <= limits.total_bytes:
                break
            if not self.delete([each.path]):
                total -= each.size
