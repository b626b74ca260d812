"""Runs programs that a model wrote, each in a process, folder and limits of its own.

The outer half: starts ``jail.py``, waits, kills, reads the verdict. A program has passed only if
the jail says so with the secret of this very run: leaving early, however politely, is not passing.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

JAIL = Path(__file__).with_name("jail.py")

Outcome = Literal["passed", "failed", "timeout", "died"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one program."""

    cpu_s: int = 3  # processor time: a busy machine makes no program fail
    wall_s: float = 20.0  # for a program that sleeps; on Windows the only limit of time
    memory_mb: int = 512  # address space
    file_mb: int = 1  # of each file it writes


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a program ended."""

    outcome: Outcome
    detail: str = ""  # the error, for people

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


def weakness() -> str:
    """What this system cannot enforce, for people; "" nothing."""
    if sys.platform == "win32":
        return "Windows limits neither memory nor processor time here, only the wall clock"
    if sys.platform == "darwin":
        return "macOS does not enforce the limit of memory"
    return ""


def run_program(program: str, limits: Limits | None = None) -> Verdict:
    """Run ``program`` to its end or to its limits."""
    limits = limits or Limits()
    secret = secrets.token_hex(16)
    order = json.dumps({
        "program": program, "secret": secret, "cpu_s": limits.cpu_s,
        "memory_mb": limits.memory_mb, "file_mb": limits.file_mb,
    })  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="redraft-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(JAIL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(),
            start_new_session=True,  # a group of its own, to be killed as one; Windows ignores it
        )
        try:
            said, _ = process.communicate(order.encode(), timeout=limits.wall_s)
        except subprocess.TimeoutExpired:
            return Verdict("timeout", f"ran for more than {limits.wall_s:g} s")
        finally:
            _kill(process)
    return _read(said, secret, process.returncode)


def _read(said: bytes, secret: str, code: int) -> Verdict:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        answer = json.loads(said)
        if answer["secret"] == secret:
            passed = answer["verdict"] == "passed"
            return Verdict("passed" if passed else "failed", str(answer["detail"]))
    if sys.platform != "win32" and code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Verdict("timeout", "used up its processor time")
    return Verdict("died", f"ended with code {code} before its tests did")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The process and whatever it may have started."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _environment() -> dict[str, str]:
    """Nothing of ours; Windows' Python does not start without its system's folder."""
    kept = ("SYSTEMROOT",) if sys.platform == "win32" else ()
    return {name: os.environ[name] for name in kept if name in os.environ}
