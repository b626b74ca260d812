"""A second machine, reached by a real ssh: an sshd of this test on loopback.

The commands of a page run in a shell as people type them. Its ``ssh`` knows the host ``there``, and
its ``redraft`` is the real command. In place of weights it has a model that writes how often the
word ``typed`` is in the text. The home folders here and there differ.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
_PATIENCE_S = 30.0
_REDRAFT = f"""\
import sys
sys.path.insert(0, {str(_TESTS)!r})
sys.argv[0] = "redraft"
from redraft.server.commands import main, serve
from redraft.server.engine_process import client
from support.editors.predictor import ScriptedPredictor
serve.open_engine = client.EngineClient = lambda settings: ScriptedPredictor(
    [lambda request: f"seen({{request.text.count('typed')}})"]
)
main.main()
"""
_SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv PATH={path} HOME={folder}/there
"""
_SSH = """\
Host there
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking accept-new
  BatchMode yes
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def await_true(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Shell:
    """Shells whose ``ssh`` reaches ``there``, and what runs in them."""

    def __init__(self, folder: Path, start: type[subprocess.Popen[bytes]]) -> None:
        self.path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.homes = {name: folder / name for name in ("here", "there")}
        self._folder, self._start = folder, start
        self._running: list[subprocess.Popen[bytes]] = []

    def run(self, command: str, home: str = "here", **environment: str) -> subprocess.Popen[bytes]:
        """Start a command line in a new process group; its output goes to the log."""
        with (self._folder / "log").open("ab") as log:
            process = self._start(
                ["/bin/sh", "-c", command],
                env={**os.environ, **self.environment(home), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def environment(self, home: str = "here") -> dict[str, str]:
        return {"PATH": self.path, "HOME": str(self.homes[home])}

    def command(self, name: str) -> str:
        """Return the path of ``ssh`` or ``redraft``."""
        return str(self._folder / "bin" / name)

    def listening(
        self, command: str, port: int, home: str = "here", **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a command that opens a port, and wait until it does."""
        process = self.run(command, home, **environment)
        await_true(lambda: is_open(port) or process.poll() is not None, f"{command}: {self.log()}")
        assert process.poll() is None, f"{command}: {self.log()}"
        return process

    def log(self) -> str:
        return (self._folder / "log").read_text("utf-8", "replace")

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a command with all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_PATIENCE_S)

    def end_all(self) -> None:
        for process in self._running:
            self.end(process)


@contextlib.contextmanager
def there(folder: Path, start: type[subprocess.Popen[bytes]]) -> Iterator[Shell]:
    """Start an sshd with fresh keys, and yield shells here; skip where there is none."""
    programs = {name: shutil.which(name, path=_search()) for name in ("sshd", "ssh", "ssh-keygen")}
    for name, found in programs.items():
        if found is None:
            pytest.skip(f"no {name} on this machine; a package such as openssh-server has it")
    if os.geteuid() == 0 and not Path("/run/sshd").is_dir():
        pytest.skip("sshd of root needs the folder /run/sshd; run the tests as an ordinary user")
    shell, port = Shell(folder, start), free_port()
    for key in ("host", "user"):
        made = [str(programs["ssh-keygen"]), "-q", "-t", "ed25519", "-N", "", "-f", folder / key]
        subprocess.run(made, check=True)
    for home in shell.homes.values():
        home.mkdir()
    told = {"port": port, "folder": folder, "user": getpass.getuser(), "path": shell.path}
    (folder / "sshd_config").write_text(_SSHD.format(**told))
    (folder / "ssh_config").write_text(_SSH.format(**told))
    _write_command(folder, "ssh", [str(programs["ssh"]), "-F", str(folder / "ssh_config")])
    _write_command(folder, "redraft", [sys.executable, "-c", _REDRAFT])
    try:
        shell.listening(f"{programs['sshd']} -D -e -f {folder}/sshd_config", port)
        _check_login(shell)
        yield shell
    finally:
        shell.end_all()


def _search() -> str:
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


def _write_command(folder: Path, name: str, command: list[str]) -> None:
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    file.chmod(0o700)


def _check_login(shell: Shell) -> None:
    """Skip where this user cannot log in, such as one whose account is locked."""
    if shell.run("ssh there true").wait(_PATIENCE_S) != 0:
        pytest.skip(f"this user cannot log in by ssh: {shell.log()[-300:]}")
