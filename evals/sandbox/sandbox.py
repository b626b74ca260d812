"""Runs programs that a model wrote, each in a separate process, with limits.

This outer half starts ``jail.py``, waits, kills, and reads the verdict. A program has passed only
if the jail says so with the secret of this run; a program that exits early has failed.
The jail runs in bubblewrap (https://github.com/containers/bubblewrap): without a network, without
other processes, and without files other than Python's and those it writes, which are in memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from redraft.model.errors import SettingsError

JAIL = Path(__file__).with_name("jail.py")

Ending = Literal["passed", "failed", "timeout", "died"]

MOST_BYTES = 100_000  # of what the jail may say; a verdict has a few hundred
TRIAL_S = 20.0  # for bubblewrap to run an empty program
#: Where the libraries of Python and its modules may be, besides its prefix.
LIBRARIES = ("/usr", "/lib", "/lib64", "/nix/store", "/etc/ld.so.cache")
FOLDER = "/program"  # where a program begins, within bubblewrap
FOLDER_MB = 100  # of all files that it writes there

#: Exit codes after a signal for too much processor time; 128 + signal is that of bubblewrap.
KILLED = (
    ()
    if sys.platform == "win32"
    else (-signal.SIGXCPU, -signal.SIGKILL, 128 + signal.SIGXCPU, 128 + signal.SIGKILL)
)


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Limits of one program."""

    cpu_s: int = 3  # processor time: a busy machine makes no program fail
    wall_s: float = 20.0  # for a program that sleeps; on Windows the only limit of time
    memory_mb: int = 512  # address space
    file_mb: int = 1  # of each file it writes


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """Outcome of a program."""

    outcome: Ending
    detail: str = ""  # the error, for people

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


#: Runs a program and says how it ended.
Execute = Callable[[str], ProgramResult]


def check_bubblewrap() -> None:
    """Refuse to run programs where bubblewrap cannot hold them.

    Raises:
        SettingsError: says what to install, and what goes without it.
    """
    if bubblewrap() is None:
        why = "is not installed" if shutil.which("bwrap") is None else "does not work here"
        raise SettingsError(
            f"Programs that a model wrote run in bubblewrap, and it {why}. Install the package "
            "bubblewrap (Linux, version 0.7 or newer), or give --no-sandbox: that limits their "
            "time and memory alone, and they can read and delete your files."
        )


@cache
def bubblewrap() -> str | None:
    """Return the path of a bubblewrap that can run Python here, or None."""
    path = shutil.which("bwrap") if sys.platform == "linux" else None
    if path is None:
        return None
    command = [*_wrapped(path), *_python(), "-c", "pass"]
    try:
        done = subprocess.run(command, capture_output=True, env={}, timeout=TRIAL_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if done.returncode == 0 else None


def _python() -> list[str]:
    """Return the command of an interpreter without settings and installed packages."""
    return [str(Path(sys.executable).resolve()), "-I", "-S", "-B"]


def _wrapped(path: str) -> list[str]:
    """Return the beginning of a command that runs in bubblewrap, in an empty folder in memory."""
    prefix = str(Path(sys.base_prefix).resolve())
    readable = [*LIBRARIES, sys.base_prefix, prefix, str(JAIL)]
    binds = [part for each in readable for part in ("--ro-bind-try", each, each)]
    return [
        path, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        *binds, "--dev", "/dev", "--size", str(FOLDER_MB << 20), "--tmpfs", FOLDER,
        "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", FOLDER, "--",
    ]  # fmt: skip


def run_program(
    program: str, limits: ProgramLimits | None = None, confined: bool = True
) -> ProgramResult:
    """Run ``program`` to its end or to its limits.

    Args:
        confined: in bubblewrap; False: it can do all that this user can.

    Raises:
        SettingsError: it is to be confined, and bubblewrap does not work here.
    """
    limits = limits or ProgramLimits()
    if confined:
        check_bubblewrap()
    said, code, secret, late = _ask(program, limits, bubblewrap() if confined else None)
    if late:
        return ProgramResult("timeout", f"ran for more than {limits.wall_s:g} s")
    return _read(said, secret, code)


def _ask(program: str, limits: ProgramLimits, wrapper: str | None) -> tuple[bytes, int, str, bool]:
    """Return the output of the jail, its exit code, the secret of the run, and if it timed out."""
    secret = secrets.token_hex(16)
    order = json.dumps({
        "program": program, "secret": secret, "cpu_s": limits.cpu_s,
        "memory_mb": limits.memory_mb, "file_mb": limits.file_mb,
    })  # fmt: skip
    with _folder() as folder:
        process = subprocess.Popen(
            [*(_wrapped(wrapper) if wrapper else ()), *_python(), str(JAIL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(),
            start_new_session=True,  # a separate group, to be killed as one; Windows ignores it
        )
        try:
            said, late = _converse(process, order.encode(), limits.wall_s)
        finally:
            _kill(process)
    return said, process.returncode, secret, late


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """Yield an empty folder, and delete it with all that a program wrote."""
    folder = tempfile.mkdtemp(prefix="redraft-")
    try:
        yield folder
    finally:
        with contextlib.suppress(RecursionError):  # folders within folders within folders
            shutil.rmtree(folder, ignore_errors=True)


def _converse(process: subprocess.Popen[bytes], order: bytes, wall_s: float) -> tuple[bytes, bool]:
    """Send the order; return the verdict and whether time ran out.

    At most :data:`MOST_BYTES` are read: a program that finds the pipe cannot fill the memory.
    """
    said = b""

    def talk() -> None:
        nonlocal said
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError, ValueError):  # it is over already
            process.stdin.write(order)
            process.stdin.close()
            said = process.stdout.read(MOST_BYTES)

    talking = threading.Thread(target=talk, daemon=True)
    talking.start()
    talking.join(wall_s)
    late = talking.is_alive()
    if not late and len(said) < MOST_BYTES:
        try:
            process.wait(wall_s)
        except subprocess.TimeoutExpired:  # it has closed its pipe and goes on
            late = True
    return said, late


def _answer(said: bytes, secret: str) -> dict[str, Any] | None:
    """Return the jail's answer, or None if its secret is wrong."""
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        answer: dict[str, Any] = json.loads(said)
        if answer["secret"] == secret:
            return answer
    return None


def _read(said: bytes, secret: str, code: int) -> ProgramResult:
    if len(said) >= MOST_BYTES:
        return ProgramResult("died", "wrote into the pipe that its verdict takes")
    answer = _answer(said, secret)
    if answer is not None:
        passed = answer.get("verdict") == "passed"
        return ProgramResult("passed" if passed else "failed", str(answer.get("detail", "")))
    if code in KILLED:
        return ProgramResult("timeout", "used up its processor time")
    return ProgramResult("died", f"ended with code {code} before its tests did")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()


def _environment() -> dict[str, str]:
    """Nothing of ours; Windows' Python does not start without its system's folder."""
    kept = ("SYSTEMROOT",) if sys.platform == "win32" else ()
    return {name: os.environ[name] for name in kept if name in os.environ}
