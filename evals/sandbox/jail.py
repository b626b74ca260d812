"""The inner half of the sandbox: limits itself, then runs one program that a model wrote.

Started by ``sandbox.py`` as ``python -I -S -B jail.py`` in an empty folder, with the order as JSON
on standard input; standard library only. What it may reach, bubblewrap decides around it. A program
can always cheat tests that run in its interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import types


def limit(cpu_s: int, memory_mb: int, file_mb: int) -> None:
    """Set resource limits. Windows has none, macOS does not limit memory."""
    try:
        import resource
    except ModuleNotFoundError:
        return
    for kind, low, high in (
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_AS, memory_mb << 20, memory_mb << 20),
        (resource.RLIMIT_FSIZE, file_mb << 20, file_mb << 20),
        (resource.RLIMIT_NOFILE, 32, 32),
        (resource.RLIMIT_NPROC, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # a stricter limit is in force already
            resource.setrlimit(kind, (low, high))


def silence() -> None:
    """Make standard input empty and discard all output."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def run(program: str) -> tuple[str, str]:
    """Run a program; return (verdict, detail)."""
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    try:
        exec(compile(program, "solution.py", "exec"), module.__dict__)
    except BaseException as error:  # SystemExit too: a program that leaves early has not passed
        with contextlib.suppress(BaseException):  # a message may itself fail
            return "failed", f"{type(error).__name__}: {error}"[:300]
        return "failed", "an error that cannot be shown"
    return "passed", ""


def main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    report = os.dup(1)
    silence()
    limit(order["cpu_s"], order["memory_mb"], order["file_mb"])
    verdict, detail = run(order["program"])
    answer = {"secret": order["secret"], "verdict": verdict, "detail": detail}
    os.write(report, json.dumps(answer).encode())
    os._exit(0)  # no atexit handler or destructor of the program runs


if __name__ == "__main__":
    main()
