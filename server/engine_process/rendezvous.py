"""Where the engine process and its clients find each other: a private folder on this machine.

Holds a lock that the engine keeps for as long as it lives (the system releases it however the
engine dies, so a lock left behind is no lock), a record of address and token, and the socket.
Knows nothing of HTTP and of how a process is started.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import stat
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs
import psutil
from redraft.model.errors import SettingsError
from redraft.model.wire import SCHEMA

from ..settings import Settings

#: What makes the engine in its process, as ``module:callable``; the callable takes
#: :class:`Settings`. Named here, as importing the process's own module costs clients 6 MB.
DEFAULT_ENGINE = "redraft.server.engine_process.open:open_engine"

#: Longest path of a Unix domain socket that every system takes, bytes (macOS: 104 with the NUL).
MAX_SOCKET_PATH_BYTES = 103

#: Environment variables that decide which weights a model's name means.
WEIGHTS_VARIABLES = ("REDRAFT_CACHE_DIR", "REDRAFT_MODELS")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How to reach a running engine process."""

    address: str  # a URL, or the path of a Unix domain socket
    socket: bool
    token: str
    pid: int
    started: float  # as :func:`began`; tells a reused pid from the engine's
    release: str

    def older_than(self, release: str) -> bool:
        return _ordered(self.release) < _ordered(release)

    def process(self) -> psutil.Process | None:
        """The engine's, if it still is there."""
        with contextlib.suppress(psutil.Error):
            found = psutil.Process(self.pid)
            if abs(began(found) - self.started) < 1.0:
                return found
        return None


def began(process: psutil.Process) -> float:
    """When a process began, seconds, on a scale that no change of the clock moves. On Linux psutil
    adds the time of the boot, which the kernel reckons from the clock as it is at the moment."""
    at: float = process.create_time()
    return at - psutil.boot_time() if sys.platform == "linux" else at


def _ordered(release: str) -> tuple[int, ...]:
    parts = (part for part in release.split("."))
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in parts)


class Rendezvous:
    """The meeting point of one user's clients of one schema that run the same model alike."""

    def __init__(self, folder: Path, log_dir: Path, name: str) -> None:
        self.folder = folder
        self.log_file = log_dir / f"engine-{name}.log"
        #: What the process says before its log is set up, and when Python itself dies.
        self.start_log_file = log_dir / f"engine-{name}.start.log"
        self._record = folder / "engine.json"
        self._lock = folder / "engine.lock"
        socket = folder / "engine.sock"
        usable = sys.platform != "win32" and len(os.fsencode(socket)) <= MAX_SOCKET_PATH_BYTES
        #: ``None`` where there are no such sockets, or the path is too long: loopback TCP then.
        self.socket = socket if usable else None

    @classmethod
    def of(cls, settings: Settings) -> Rendezvous:
        """The meeting point for ``settings``; its folders exist afterwards.

        Raises:
            SettingsError: the folder cannot be made, or others could write to it.
        """
        wanted = settings.model_dump_json(include={"model", "variant", "provider", "threads"})
        where = [os.environ.get(name, "") for name in WEIGHTS_VARIABLES]
        name = hashlib.sha256("\0".join([SCHEMA, wanted, *where]).encode()).hexdigest()[:12]
        root = _private(settings.runtime_dir) if settings.runtime_dir else _runtime_root()
        return cls(_private(root / name), _log_dir(settings), name)

    def read(self) -> Endpoint | None:
        """The record of the engine, which may be dead by now; ``None`` without a usable one."""
        try:
            data = json.loads(self._record.read_text(encoding="utf-8"))
            known = {field.name for field in dataclasses.fields(Endpoint)}
            return Endpoint(**{key: data[key] for key in known & data.keys()})
        except (OSError, ValueError, TypeError, AttributeError):
            return None  # absent, or damaged

    def publish(self, endpoint: Endpoint) -> None:
        """Write the record: nobody ever reads half of it, and other users cannot read it at all."""
        handle, name = tempfile.mkstemp(dir=self.folder, prefix="engine-")  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(dataclasses.asdict(endpoint), file)
            Path(name).replace(self._record)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def withdraw(self) -> None:
        """Remove the record and the socket; only for the holder of the lock."""
        self._record.unlink(missing_ok=True)
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)

    def take(self) -> filelock.BaseFileLock | None:
        """The lock, held, or ``None`` while an engine process holds it. Never waits."""
        lock = filelock.FileLock(self._lock)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return None
        return lock

    def is_taken(self) -> bool:
        lock = self.take()
        if lock is not None:
            lock.release()
        return lock is None


def _runtime_root() -> Path:
    """The platform's runtime folder, or one in the cache where there is none (as in containers)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its fallback, which _private checks
            folder = platformdirs.user_runtime_path("redraft", appauthor=False)
        return _private(folder)
    except (OSError, SettingsError):
        return _private(platformdirs.user_cache_path("redraft", appauthor=False) / "run")


def _private(folder: Path) -> Path:
    """``folder``, made if need be, that this user alone may use."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform != "win32":  # Windows' profile folders are private by their ACLs
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                raise SettingsError(
                    f"{folder} belongs to someone else or is no folder, so the engine's token "
                    "would not be safe there. Remove it, or set REDRAFT_RUNTIME_DIR."
                )
            if found.st_mode & 0o077:
                folder.chmod(0o700)
    except OSError as error:
        raise SettingsError(
            f"The folder {folder} for the engine's socket cannot be made: {error.strerror}. "
            "Set REDRAFT_RUNTIME_DIR to one that can be written."
        ) from error
    return folder


def _log_dir(settings: Settings) -> Path:
    folder = settings.log_dir or platformdirs.user_log_path("redraft", appauthor=False)
    with contextlib.suppress(OSError):  # an engine without a log is better than none
        folder.mkdir(parents=True, exist_ok=True)
    return folder
