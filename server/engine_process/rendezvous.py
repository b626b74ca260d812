"""The private folder where the engine process and its clients find each other.

It holds a lock, a record with address and token, and the socket. The engine holds the lock for as
long as it lives; the system releases it however the engine dies.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs
import psutil
from redraft.model.errors import SettingsError
from redraft.model.release import BUILD
from redraft.model.safe_files import atomic_file
from redraft.model.wire import SCHEMA

from ..settings import Settings

#: The function that makes the engine in its process, as ``module:callable``. It takes
#: :class:`Settings`. It stands here because importing ``host`` costs a client 6 MB.
DEFAULT_ENGINE = "redraft.server.engine_process.open:open_shared_engine"

#: Longest path of a Unix domain socket that every system takes, bytes (macOS: 104 with the NUL).
MAX_SOCKET_PATH_BYTES = 103

#: Environment variables that decide which weights a model's name means.
WEIGHTS_VARIABLES = ("REDRAFT_CACHE_DIR", "REDRAFT_MODELS")

RECORD_NAME = "engine.json"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a running engine process."""

    address: str  # a URL, or the path of a Unix domain socket
    socket: bool
    token: str
    pid: int
    started: float  # see ``started_at``; a later process may have the same pid
    release: str
    model: str = ""  # as the settings name it

    def process(self) -> psutil.Process | None:
        """Return the engine's process, or None if it has ended."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if abs(when_started(process) - self.started) < 1.0:
                return process
        return None


def when_started(process: psutil.Process) -> float:
    """Return when a process started, in seconds, unaffected by changes of the clock.

    On Linux psutil adds the boot time, which the kernel computes from the present clock.
    """
    at: float = process.create_time()
    return at - psutil.boot_time() if sys.platform == "linux" else at


class Rendezvous:
    """The folder of one engine: clients of one user, one build and one choice of model share it."""

    def __init__(self, folder: Path, log_dir: Path, name: str) -> None:
        self.folder = folder
        self.log_file = log_dir / f"engine-{name}.log"
        #: Output of the process before its log is set up, and when Python itself fails.
        self.start_log_file = log_dir / f"engine-{name}.start.log"
        self._record = folder / RECORD_NAME
        self._lock = folder / "engine.lock"
        socket = folder / "engine.sock"
        is_usable = sys.platform != "win32" and len(os.fsencode(socket)) <= MAX_SOCKET_PATH_BYTES
        #: None: the engine listens on loopback TCP instead.
        self.socket = socket if is_usable else None

    @classmethod
    def of(cls, settings: Settings) -> Rendezvous:
        """Return the rendezvous for ``settings``, and create its folders.

        Raises:
            SettingsError: the folder cannot be created, or other users could write to it.
        """
        wanted = settings.model_dump_json(include={"model", "variant", "provider", "threads"})
        weights = [os.environ.get(name, "") for name in WEIGHTS_VARIABLES]
        key = "\0".join([SCHEMA, BUILD, wanted, *weights])
        name = hashlib.sha256(key.encode()).hexdigest()[:12]
        return cls(_private(_runtime_root(settings) / name), _log_dir(settings), name)

    def read(self) -> Endpoint | None:
        """Return the engine's record, or None without a usable one. The engine may be dead."""
        return _read(self._record)

    def publish(self, endpoint: Endpoint) -> None:
        """Write the record, whole or not at all, readable by this user only."""
        with atomic_file(self._record, 0o600) as file:
            file.write(json.dumps(dataclasses.asdict(endpoint)).encode())

    def withdraw(self) -> None:
        """Remove the record and the socket. Only the holder of the lock may call this."""
        self._record.unlink(missing_ok=True)
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)

    def take(self) -> filelock.BaseFileLock | None:
        """Return the held lock, or None while an engine process holds it. Never waits."""
        lock = filelock.FileLock(self._lock)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return None
        return lock

    def is_taken(self) -> bool:
        """Return whether an engine process holds the lock."""
        lock = self.take()
        if lock is not None:
            lock.release()
        return lock is None


def find_running_engines(settings: Settings) -> Iterator[Endpoint]:
    """Yield each of this user's running engine processes, of any build and model."""
    for record in sorted(_runtime_root(settings).glob(f"*/{RECORD_NAME}")):
        endpoint = _read(record)
        if endpoint is not None and endpoint.process() is not None:
            yield endpoint


def _read(record: Path) -> Endpoint | None:
    try:
        data = json.loads(record.read_text(encoding="utf-8"))
        fields = {field.name for field in dataclasses.fields(Endpoint)}
        return Endpoint(**{name: data[name] for name in fields & data.keys()})
    except (OSError, ValueError, TypeError, AttributeError):
        return None  # absent or damaged


def _runtime_root(settings: Settings) -> Path:
    """Return the runtime folder of the platform, or one in the cache if there is none."""
    if settings.runtime_dir:
        return _private(settings.runtime_dir)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # platformdirs warns about a fallback
            folder = platformdirs.user_runtime_path("redraft", appauthor=False)
        return _private(folder)
    except (OSError, SettingsError):  # in containers, for example
        return _private(platformdirs.user_cache_path("redraft", appauthor=False) / "run")


def _private(folder: Path) -> Path:
    """Create ``folder`` for this user alone, and return it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform != "win32":  # Windows' profile folders are private by their ACLs
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                raise SettingsError(
                    f"{folder} belongs to another user or is not a folder, so the engine's token "
                    "would not be safe there. Remove it, or set REDRAFT_RUNTIME_DIR."
                )
            if status.st_mode & 0o077:
                folder.chmod(0o700)
    except OSError as error:
        raise SettingsError(
            f"The folder {folder} for the engine's socket cannot be created: {error.strerror}. "
            "Set REDRAFT_RUNTIME_DIR to one that can be written."
        ) from error
    return folder


def _log_dir(settings: Settings) -> Path:
    folder = settings.log_dir or platformdirs.user_log_path("redraft", appauthor=False)
    with contextlib.suppress(OSError):  # an engine can run without a log
        folder.mkdir(parents=True, exist_ok=True)
    return folder
