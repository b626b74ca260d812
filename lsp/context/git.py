"""Calls of the ``git`` command that only read, and run no program that a repository names.

A repository's configuration can name programs (file system monitor, hooks, transports, pagers,
filters). Only commands that run none are allowed, without connections and writes. The user's and
the system's configuration stays in effect: it lists trusted repositories and files to ignore.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from redraft.model.errors import InstallError

Running = subprocess.Popen[bytes]

#: Commands that compare no file of the working tree with the index (filters would run) and show no
#: patch (external programs would), and how each has to be asked for that.
_ASKED = {
    "ls-files": ("--sparse",),  # else a sparse index is unpacked, and its missing trees are fetched
    "rev-list": (),
    "ls-tree": (),
}
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.sshCommand": "false",
    "core.askPass": "",
    "core.untrackedCache": "false",
    "core.quotepath": "false",
    "credential.helper": "",
    "fetch.bundleURI": "",
    "log.showSignature": "false",
    "protocol.allow": "never",  # not enough by itself: protocol.ssh.allow would outdo it
    "submodule.recurse": "false",
}
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # of all ways to a remote; nothing in a repository outdoes it
    "GIT_NO_LAZY_FETCH": "1",  # 2.45 and what its mend was carried back to
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
#: What is left of the user's own ``GIT_*``. The others say where a repository is, as hooks set
#: them, which programs to run, or where to write a trace.
_CONFIGURATION = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")
_KEPT = frozenset((*_CONFIGURATION, "GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH"))
_MOST_MEMORY = 4 << 30  # bytes of git's own: it would hold a ``.gitignore`` of any size in there
_LONGEST_WHY = 500  # bytes
_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows alone has it


@dataclass(frozen=True, slots=True)
class GitOutput:
    """Output of git."""

    code: int  # 0: all is well; negative: it was ended
    output: bytes  # as much as was wanted
    why: str  # the first line of its complaint


def ask(folder: Path, *arguments: str, within_s: float | None, most_bytes: int) -> GitOutput:
    """Run git in ``folder`` to its end, or to ``most_bytes`` of output.

    Raises:
        InstallError: there is no git.
        OSError: there is no such folder, or git cannot be run.
        ValueError: the folder's name is none.
    """
    with (
        tempfile.TemporaryFile() as complaints,
        _started(folder, *arguments, stderr=complaints) as process,
    ):
        assert process.stdout is not None
        ending = threading.Timer(within_s, process.kill) if within_s is not None else None
        if ending is not None:
            ending.daemon = True
            ending.start()
        try:
            output = process.stdout.read(most_bytes)
            if process.stdout.read(1):
                process.kill()
            code = process.wait()
        finally:
            if ending is not None:
                ending.cancel()
        complaints.seek(0)
        complaint = complaints.readline(_LONGEST_WHY)
    return GitOutput(code, output, complaint.decode("utf-8", "replace").strip())


_running: set[Running] = set()


@atexit.register
def _end_all() -> None:
    """End every running git when the server ends, because one may wait for a pipe forever."""
    for process in tuple(_running):
        process.kill()


@contextlib.contextmanager
def _started(folder: Path, *arguments: str, stderr: IO[bytes]) -> Iterator[Running]:
    """Run git in ``folder`` with its output as a pipe, and end it with the context."""
    command, *rest = arguments
    program = _program(folder, os.environ)
    if program is None:
        raise InstallError("git was not found; install it, and see that it is in the PATH")
    settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
    process = subprocess.Popen(
        [program, "--no-pager", *settings, command, *_ASKED[command], *rest],
        cwd=folder,
        env=_environment(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        creationflags=_NO_WINDOW,
    )
    _running.add(process)
    try:
        _bound_memory(process)
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        _running.discard(process)


def _bound_memory(process: Running) -> None:
    """Limit the memory of a running process, on Linux."""
    if sys.platform == "linux":
        import resource

        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in environment.items()
        if not name.upper().startswith("GIT_") or name.upper() in _KEPT
    }
    return {**kept, **_ENVIRONMENT}


def _program(folder: Path, environment: Mapping[str, str]) -> str | None:
    """Return the path of git, or None; never below ``folder`` or in the current directory.

    Windows looks there first, and so does a ``PATH`` with ".".
    """
    name = "git.exe" if sys.platform == "win32" else "git"
    inside = Path(os.path.abspath(folder))  # noqa: PTH100 - resolving would ask a network drive
    for entry in environment.get("PATH", os.defpath).split(os.pathsep):
        found = Path(entry, name)
        if found.is_absolute() and not found.is_relative_to(inside) and os.access(found, os.X_OK):
            return str(found)
    return None
