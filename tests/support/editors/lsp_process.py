"""A language server over stdio in a separate process, with a scripted model, and its client."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.command import RUN
from support.editors.lsp import LspClient

SERVER = Path(__file__).with_name("scripted_server.py")


def command_with_tour(folder: Path) -> Path:
    """Return a command whose server answers by rule, and whose ``tour`` is that of Redraft."""
    script = json.dumps({"answers": [{"rules": True}], "log": str(folder / "model.log")})
    server = shlex.join([sys.executable, str(SERVER), script])
    tour = shlex.join([sys.executable, "-c", RUN])
    command = folder / "redraft"
    command.write_text(f'#!/bin/sh\n[ "$1" = tour ] && exec {tour} "$@"\nexec {server}\n')
    command.chmod(0o755)
    return command


class LspProcess(LspClient):
    """A client and its server, which runs in a separate process.

    Args:
        folder: for the log of the scripted model and the server's standard error.
        start: ``subprocess.Popen``, or the start of a process under a guard.
        command: None: the scripted server.
    """

    def __init__(
        self,
        script: dict[str, Any],
        folder: Path,
        start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
        command: list[str] | None = None,
    ) -> None:
        super().__init__()
        self.log = folder / "model.log"
        self.stderr_file = folder / "stderr.txt"
        scripted = [sys.executable, str(SERVER), json.dumps({**script, "log": str(self.log)})]
        with self.stderr_file.open("wb") as stderr:
            self.process = start(
                command or scripted, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
            )
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        data = b"more"
        while data:
            data = stream.read1(1 << 16)  # type: ignore[attr-defined]
            self._receive(data)

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        return self.process.wait(timeout=60)

    def log_text(self) -> str:
        return self.stderr_file.read_text()

    def asked(self) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextlib.contextmanager
def lsp_processes(
    folder: Path, spawn: type[subprocess.Popen[bytes]]
) -> Iterator[Callable[..., LspProcess]]:
    """Yield a function that starts a server whose model gives the answers it is called with."""
    started: list[LspProcess] = []

    def start(*answers: Any, **script: Any) -> LspProcess:
        started.append(LspProcess({"answers": list(answers), **script}, folder, spawn))
        return started[-1]

    try:
        yield start
    finally:
        for client in started:
            client.process.kill()
            client.process.wait()
            for stream in (client.process.stdin, client.process.stdout):
                with contextlib.suppress(OSError):
                    stream and stream.close()
