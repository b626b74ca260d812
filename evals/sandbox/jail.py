"""The inner half of the sandbox: limits itself, then runs one program that a model wrote.

Started by ``sandbox.py`` as ``python -I -S -B jail.py`` in an empty folder, with the order as JSON
on standard input; standard library only. The program runs under resource limits and an audit hook
that refuses sockets, other processes, native code and files outside the folder. The hook gives the
reason of a refusal. It does not stop a program that attacks the interpreter; bubblewrap does, if
``sandbox.py`` can use it. A program can always cheat tests that run in its interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import types
from typing import Any

#: Events by the beginning of their names (https://docs.python.org/3/library/audit_events.html).
REFUSED = (
    "socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile",
    "os.system", "os.kill", "os.chdir", "os.fchdir", "os.chmod", "os.chown", "os.link",
    "os.symlink", "os.setxattr", "os.removexattr", "pty.", "ctypes.", "winreg.", "_winapi.",
    "webbrowser.", "resource.", "sqlite3.", "gc.get_", "cpython.PyInterpreterState_New",
)  # fmt: skip
#: Modules in C that open files or make processes, memory or interpreters and raise no event.
REFUSED_IMPORTS = frozenset({
    "_ctypes", "_posixsubprocess", "_multiprocessing", "_posixshmem", "_sqlite3", "_ssl", "_dbm",
    "_gdbm", "_tkinter", "_curses", "readline", "_xxsubinterpreters", "_xxinterpchannels",
    "_interpreters", "_interpchannels", "_interpqueues", "_testcapi", "_testinternalcapi",
})  # fmt: skip
#: Functions that raise no event.
SILENT = (
    "mkfifo", "mknod", "chroot", "pidfd_open", "setns", "unshare", "setpriority",
    "sched_setaffinity", "sched_setscheduler", "sched_setparam",
)  # fmt: skip
#: Events whose string arguments are paths that the program writes to.
CHANGING = frozenset({
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.utime",
})  # fmt: skip
READING = frozenset({"os.listdir", "os.scandir"})
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MOST_CHANGES = 100  # of files: each may be a megabyte, and the folder is deleted afterwards


class Guard:
    """The audit hook."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.readable = (self.folder, *(os.path.realpath(path) for path in sys.path if path))
        self.busy = False
        self.changes = 0

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.busy:  # what this hook itself does
            return
        self.busy = True
        try:
            self.judge(event, args)
        finally:
            self.busy = False

    def judge(self, event: str, args: tuple[Any, ...]) -> None:
        if event.startswith(REFUSED):
            raise PermissionError(f"the sandbox refuses {event}")
        if event == "import" and args[0] in REFUSED_IMPORTS:
            raise ImportError(f"the sandbox refuses to import {args[0]}")
        if event == "open":
            writes = bool(args[2] & WRITES) if isinstance(args[2], int) else True
            self.check(args[0], (self.folder,) if writes else self.readable)
            if args[1] is None:  # os.open
                self.refuse_folders(args[0])
            self.changes += writes
        elif event in CHANGING:
            for path in args:
                self.check(path, (self.folder,))
            self.changes += 1
        elif event in READING:
            self.check("." if args[0] is None else args[0], self.readable)
        if self.changes > MOST_CHANGES:
            raise PermissionError(f"the sandbox refuses more than {MOST_CHANGES} changes of files")

    def refuse_folders(self, path: object) -> None:
        """Refuse to open a folder: relative names could then avoid this hook."""
        if isinstance(path, (str, bytes, os.PathLike)) and os.path.isdir(path):  # noqa: PTH112
            self.check(path, (self.folder,))

    def check(self, path: object, allowed: tuple[str, ...]) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return  # a descriptor that is open already
        name = os.fsdecode(path)
        if name == os.devnull:
            return
        real = os.path.realpath(name)
        if not any(real == root or real.startswith(root + os.sep) for root in allowed):
            raise PermissionError(f"the sandbox refuses {name!r}, which is outside its folder")


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


def hide_silent() -> None:
    """Delete functions that raise no audit event."""
    import signal

    for module in (os, sys.modules.get("posix"), signal, sys.modules.get("_signal")):
        for name in (*SILENT, "pidfd_send_signal"):
            if hasattr(module, name):
                delattr(module, name)


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
    hide_silent()
    sys.addaudithook(Guard("."))
    verdict, detail = run(order["program"])
    answer = {"secret": order["secret"], "verdict": verdict, "detail": detail}
    os.write(report, json.dumps(answer).encode())
    os._exit(0)  # no atexit handler or destructor of the program runs


if __name__ == "__main__":
    main()
