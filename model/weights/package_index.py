"""Wheels of the user's package index, through pip.

pip brings configuration, mirrors, proxies, credentials and certificates. It runs as a separate
process, without dependencies and under a pinned SHA-256, and only downloads; nothing of a wheel
is installed, imported or run. It blocks.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import FetchFailed
from .catalog import Wheel
from .files import BytesCallback, explain_errors, make_folder

_POLL_S = 0.2
#: pip's usual five retries take half a minute where there is no network.
_OPTIONS = (
    *("--no-deps", "--require-hashes", "--only-binary", ":all:"),
    *("--no-cache-dir", "--retries", "2", "--no-input", "--disable-pip-version-check"),
)


def pip_command() -> list[str]:
    """Return the command that runs pip: of this Python, else through uv.

    Raises:
        FetchFailed: there is neither.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "tool", "run", "pip"]
    raise FetchFailed(
        f"{sys.executable} has no pip, which would ask the package index: install it with "
        f"'{sys.executable} -m ensurepip', or fetch the file elsewhere"
    )


def download(wheel: Wheel, folder: Path, progress: BytesCallback) -> Path:
    """Return the wheel, in ``folder``. Its bytes are what pip found under the pinned hash.

    Raises:
        FetchFailed: the index does not answer or deliver it; says what pip said.
        WeightsError: the disk does not take it.
    """
    command = pip_command()
    make_folder(folder / "tmp")
    requirements = folder / "requirements.txt"
    with explain_errors("write", requirements):
        requirements.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", "utf-8")
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder / "tmp"))  # this disk has room
    with (
        tempfile.TemporaryFile(dir=folder) as output,
        subprocess.Popen(
            [*command, "download", *_OPTIONS, "-d", str(folder), "-r", str(requirements)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            env={**os.environ, **places},
        ) as process,
    ):
        try:
            while not _has_ended(process):
                progress(min(_bytes_so_far(folder), wheel.size))
        except BaseException:
            process.kill()
            raise
        output.seek(0)
        complaint = output.read().decode("utf-8", "replace")
    found = folder / wheel.wheel
    if process.returncode != 0 or not found.is_file():
        raise FetchFailed(_reason(wheel, complaint, process.returncode))
    progress(wheel.size)  # it may have ended between two looks
    return found


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _bytes_so_far(folder: Path) -> int:
    """Return the size of the wheels that pip is writing: not every release of it shows that."""
    total = 0
    for place, _, names in os.walk(folder):  # passes over a folder that pip has just removed
        for name in names:
            with contextlib.suppress(OSError):  # it was just moved
                if name.endswith(".whl"):
                    total += (Path(place) / name).stat().st_size
    return total


def _reason(wheel: Wheel, complaint: str, code: int) -> str:
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    got = next((line for line in lines if line.startswith("Got ")), None)
    if got is not None:
        return (
            f"the package index has another {wheel.requirement} (SHA-256 "
            f"{got.split()[-1][:16]}…, not {wheel.sha256[:16]}…)"
        )
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    silent = "the package index does not answer, " if "Retrying (" in complaint else ""
    reason = " ".join(errors[-1:] or lines[-1:]).rstrip(".") or f"nothing, and ended with {code}"
    return f"{silent}pip could not download {wheel.requirement}: {reason}"
