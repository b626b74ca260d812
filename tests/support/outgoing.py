"""A guard over real processes: which addresses outside this machine they and their children try.

``strace`` sees every system call of every thread, so nothing escapes it. Where it is missing or
may not trace, two others look together: a hook inside Python (``sitecustomize``), and a look at
the sockets of the processes every few milliseconds for what native libraries do, which may miss
a short exchange. Tests therefore ask as well whether a library has stored what it would send.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import psutil

#: Seconds that a process gets to end.
END_S = 60.0

_CALLS = "connect,sendto,sendmsg,sendmmsg"
_V4 = re.compile(r'sin_port=htons\((\d+)\), sin_addr=inet_addr\("([^"]+)"\)')
_V6 = re.compile(r'sin6_port=htons\((\d+)\),.*?inet_pton\(AF_INET6, "([^"]+)"')
_RESOLVED = re.compile(r'sun_path="(/run/systemd/resolve/[^"]+)"')

#: Written into a folder on PYTHONPATH; ``%r`` is the file it appends to.
_HOOK = """
import sys

def _note(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = args[1]
        if isinstance(address, tuple):
            line = f"{address[0]} {address[1]}"
        else:
            return
    elif event == "socket.getaddrinfo":
        line = f"{args[0]} 0"
    else:
        return
    with open(%r, "a") as file:
        file.write(line + "\\n")

sys.addaudithook(_note)
"""

Kind = Literal["strace", "hook"]


def outside(host: str, port: int) -> bool:
    """Return whether a connection to ``host`` leaves this machine.

    Name queries always do, because the resolver on loopback forwards them.
    """
    if port == 53:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host not in ("localhost", "None", "")
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    return not (address.is_loopback or address.is_unspecified)


def tried(trace: str) -> list[str]:
    """Return the calls in the output of ``strace`` that leave this machine."""
    found = []
    for line in trace.splitlines():
        pairs = [*_V4.findall(line), *_V6.findall(line)]
        found += [f"{host} {port}" for port, host in pairs if outside(host, int(port))]
        found += [f"{path} (asks for a name)" for path in _RESOLVED.findall(line)]
    return found


@functools.cache
def strace_works() -> bool:
    """Return whether strace may trace here; in some containers it may not."""
    if shutil.which("strace") is None:
        return False
    command = ["strace", "--seccomp-bpf", "-f", "-e", f"trace={_CALLS}", "-o", os.devnull]
    return subprocess.run([*command, sys.executable, "-c", ""], capture_output=True).returncode == 0


def best_guard() -> Kind:
    return "strace" if strace_works() else "hook"


class Guard:
    """Processes whose outgoing connections are recorded.

    Args:
        folder: for its notes.
        environment: of the processes; they inherit nothing else.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], kind: Kind) -> None:
        self._kind = kind
        self._folder = folder
        self._environment = dict(environment)
        self._peers: set[str] = set()
        self._started: list[subprocess.Popen[bytes]] = []
        self._family: dict[int, psutil.Process] = {}  # an orphan is looked at further
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)
        if kind == "hook":
            (folder / "sitecustomize.py").write_text(_HOOK % str(folder / "hook.notes"))
            path = [str(folder), environment.get("PYTHONPATH", "")]
            self._environment["PYTHONPATH"] = os.pathsep.join(part for part in path if part)
            self._looking.start()

    def start(
        self, command: list[str], *, stdin: Any = None, stdout: Any = None, stderr: Any = None
    ) -> subprocess.Popen[bytes]:
        if self._kind == "strace":
            notes = self._folder / f"{len(self._started)}.notes"
            options = ["--seccomp-bpf", "-f", "-e", f"trace={_CALLS}", "-o", str(notes)]
            command = ["strace", *options, *command]
        process = subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=stderr, env=self._environment
        )
        self._started.append(process)
        return process

    def program(self, process: subprocess.Popen[bytes]) -> psutil.Process:
        """Return the program of a command line, without strace before it."""
        started = psutil.Process(process.pid)
        return started.children()[0] if self._kind == "strace" else started

    def seen(self) -> list[str]:
        """Everything outside this machine that was tried so far."""
        notes = "".join(f.read_text(errors="replace") for f in self._folder.glob("*.notes"))
        if self._kind == "strace":
            return tried(notes)
        pairs = [line.rsplit(" ", 1) for line in notes.splitlines()]
        return [*self._peers, *(f"{h} {p}" for h, p in pairs if outside(h, int(p)))]

    def wait_for_all(self) -> None:
        """Until every process has ended, those that outlive who started them included."""
        for process in self._started:
            process.wait(END_S)
        gone, still = psutil.wait_procs(self._family.values(), timeout=END_S)
        assert not still, f"{still} did not end as {gone} did"

    def close(self) -> None:
        """End whatever still runs."""
        self._over.set()
        if self._looking.is_alive():
            self._looking.join()
        self._find_family()
        for each in self._family.values():
            with contextlib.suppress(psutil.Error):
                each.kill()  # nothing where the process number is another's by now
        for process in self._started:
            process.wait(END_S)

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self._find_family()
            for each in list(self._family.values()):
                self._peers |= _peers(each)

    def _find_family(self) -> None:
        for process in list(self._started):
            with contextlib.suppress(psutil.Error):
                first = psutil.Process(process.pid)
                for each in (first, *first.children(recursive=True)):
                    self._family.setdefault(each.pid, each)


def _peers(process: psutil.Process) -> set[str]:
    with contextlib.suppress(psutil.Error):
        addresses = [c.raddr for c in process.net_connections("inet") if c.raddr]
        return {f"{a.ip} {a.port}" for a in addresses if outside(a.ip, a.port)}
    return set()


@contextlib.contextmanager
def guarded(folder: Path, environment: Mapping[str, str], kind: Kind) -> Iterator[Guard]:
    folder.mkdir()
    guard = Guard(folder, environment, kind)
    try:
        yield guard
    finally:
        guard.close()
