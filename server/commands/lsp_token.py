"""The token of ``redraft lsp --tcp``.

It is never taken from the command line, which every user of the machine can read.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import MutableMapping
from pathlib import Path

import typer
from redraft.lsp.protocol.tcp import checked_token
from redraft.model.errors import SettingsError

VARIABLE = "REDRAFT_LSP_TOKEN"
_MOST = 4_096  # bytes of a file that holds one


def given_token(environment: MutableMapping[str, str], file: Path | None) -> str | None:
    """Return the token that the user chose in a file or else in the variable, or None.

    The variable is removed from ``environment``, so that child processes do not inherit it.

    Raises:
        SettingsError: the file cannot be used, or does not contain a token.
    """
    from_variable = environment.pop(VARIABLE, "")
    if file is not None:
        return checked_token(_read(file), str(file))
    return checked_token(from_variable, VARIABLE) if from_variable else None


def tell_listening(host: str, port: int, token: str, is_known: bool) -> None:
    """Write the address to standard error, as a sentence and as JSON for programs.

    A token that the user chose is not repeated there.
    """
    address = {"host": host, "port": port} | ({} if is_known else {"token": token})
    people = f"the language server listens at {host}:{port} (Ctrl-C stops it)"
    sys.stderr.write(f"{people}\n{json.dumps({'listening': address})}\n")
    sys.stderr.flush()


def _read(file: Path) -> str:
    try:
        with open(file, "rb", opener=_open) as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise SettingsError(
                    f"{file} is not a file. Give --token-file a file with the token."
                )
            if os.name != "nt" and found.st_mode & 0o077:
                raise SettingsError(
                    f"{file} can be read by others (mode {found.st_mode & 0o777:o}), so the token "
                    f"in it is no secret: make a new one, and 'chmod 600 {file}'"
                )
            return opened.read(_MOST).decode("utf-8", "replace")
    except OSError as error:
        raise SettingsError(
            f"the token in {file} cannot be read ({error.strerror}); --token-file takes a file "
            "that you can read"
        ) from error


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait for its writer


def host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise typer.BadParameter(
            f"{text!r} is not HOST:PORT; write it like 127.0.0.1:7332", param_hint="--tcp"
        )
    return host.strip("[]"), int(port)
