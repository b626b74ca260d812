"""Files of the Hugging Face hub, through ``huggingface_hub``.

The library brings mirrors (``HF_ENDPOINT``), tokens, proxies, offline mode (``HF_HUB_OFFLINE``) and
what its cache already holds. An interrupted download is continued where it ended, which its
``hf_hub_download`` does not do: it throws away what it had. Its functions that are called here are
public ones. Everything here blocks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from ..errors import FetchFailed, SourceSilent
from ..silence import import_silenced
from .catalog import HubFile
from .files import BytesCallback, explain_errors

PUBLIC_HUB = "https://huggingface.co"

#: Seconds a hub gets to open the connection, and to answer at all: looking up its name has no
#: limit.
_CONNECT_S, _ANSWER_S = 3.0, 6.0
#: Seconds without a byte after which a connection counts as broken; connections without a new byte
#: after which a download is given up, and the pause between two.
_SILENT_S, _TRIES, _PAUSE_S = 10.0, 5, 1.0


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as its repository lists it."""

    name: str
    size: int  # bytes
    sha256: str  # "": small, so that the hub does not tell


@dataclass(frozen=True, slots=True)
class Listing:
    """Content of a repository."""

    revision: str  # the commit
    files: tuple[Listed, ...]
    license: str  # "" where it does not say


def endpoint() -> str:
    """Return the hub that is asked: ``HF_ENDPOINT``, else the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or PUBLIC_HUB


def list_files(repo: str) -> Listing:
    """Return the files of a repository with what its hub knows of them.

    Raises:
        SourceSilent: nothing answers.
        FetchFailed: there is no such repository, or it wants a token.
    """
    api = _library().HfApi(endpoint=endpoint(), library_name="redraft")
    found = _answer(
        HubFile(repo, ""), lambda: api.model_info(repo, files_metadata=True, timeout=_CONNECT_S)
    )
    files = tuple(
        Listed(each.rfilename, each.size or 0, each.lfs.sha256 if each.lfs else "")
        for each in found.siblings or ()
    )
    stated = found.card_data.get("license") if found.card_data is not None else None
    return Listing(found.sha or "main", files, stated if isinstance(stated, str) else "")


def find_cached(source: HubFile) -> Path | None:
    """Return the file where other programs have fetched it before; None where they have not."""
    found = _library().try_to_load_from_cache(source.repo, source.file)
    return Path(found) if isinstance(found, str) and Path(found).is_file() else None


def download(
    source: HubFile,
    sha256: str,
    size: int,
    part: Path,
    progress: BytesCallback,
    revision: str | None = None,
) -> None:
    """Fill ``part`` up to ``size`` bytes, going on where it ends. The bytes are not hashed here.

    Args:
        sha256: of the whole file: a hub that says it has another is not asked for it. "": unknown.
        revision: commit of the repository; None: its newest.

    Raises:
        SourceSilent: nothing answers.
        FetchFailed: the hub does not deliver this file; ``part`` stays for a later attempt.
        WeightsError: the disk does not take it.
    """
    library, has = _library(), f"{endpoint()}/{source.repo} has another {source.file}"
    url: str = library.hf_hub_url(source.repo, source.file, endpoint=endpoint(), revision=revision)
    about = _answer(source, lambda: library.get_hf_file_metadata(url, timeout=_CONNECT_S))
    # The tag of a large file is its SHA-256; that of a mirror may be anything.
    tag = (about.etag or "").lower()
    if len(tag) == len(sha256) and tag != sha256:
        raise FetchFailed(f"{has} (SHA-256 {tag[:16]}…)")
    if about.size not in (None, size):
        raise FetchFailed(f"{has} ({about.size:,} bytes, not {size:,})")
    with explain_errors("write", part), part.open("ab") as file:
        try:
            _fill(url, _Counting(file, part, progress), size)
        except Exception as error:
            raise _failure(source, error) from error


def _fill(url: str, file: _Counting, size: int) -> None:
    """Append what a file lacks. A connection that breaks is opened again, where it ended.

    Raises:
        OSError: the hub sends more or less than it said, or ``_TRIES`` connections brought nothing.
    """
    session, tries = _library().get_session(), _TRIES
    while (start := file.size()) < size:
        try:
            _append(session, url, file)
        except Exception as error:
            is_broken = type(error).__module__.startswith(("httpx", "httpcore"))
            tries = _TRIES if file.size() > start else tries - 1
            if not is_broken or not tries:
                raise
            time.sleep(_PAUSE_S)
        else:
            break
    if file.size() != size:
        raise OSError(f"it sent {file.size():,} bytes of {size:,}")


def _append(session: Any, url: str, file: _Counting) -> None:
    """Append what one answer brings."""
    headers = _library("utils").build_hf_headers(library_name="redraft")
    headers["Accept-Encoding"] = "identity"  # ranges count the bytes of the file
    start = file.size()
    if start:
        headers["Range"] = f"bytes={start}-"
    options = {"headers": headers, "timeout": _SILENT_S, "follow_redirects": True}
    with session.stream("GET", url, **options) as answer:
        _library("utils").hf_raise_for_status(answer)
        if start and answer.status_code != 206:  # the whole file
            file.truncate()
        for data in answer.iter_bytes():
            file.write(data)


def _answer(source: HubFile, ask: Callable[[], Any]) -> Any:
    """Return what ``ask`` returns, if it does so in time; else leave its thread behind."""
    if any(
        os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE")
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    ):
        raise FetchFailed("HF_HUB_OFFLINE is set, so the Hugging Face hub is not asked")
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(ask())
        except Exception as error:  # raised in the thread that waits
            outcome.append(_failure(source, error))

    thread = threading.Thread(target=run, name="redraft-hub", daemon=True)
    thread.start()
    thread.join(_ANSWER_S)
    if not outcome:
        raise SourceSilent(f"{endpoint()} does not answer within {_ANSWER_S:.0f} s")
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _failure(source: HubFile, error: Exception) -> Exception:
    """Return what to raise for an error of the library; other errors stay."""
    if isinstance(error, _library("errors").HfHubHTTPError):
        return FetchFailed(_refusal(source, getattr(error.response, "status_code", 0)))
    if type(error) is OSError:
        if error.errno is not None:
            return error  # of the disk
        return FetchFailed(f"{endpoint()} broke off ({error})")
    module = type(error).__module__.partition(".")[0]
    if not module.startswith(("httpx", "httpcore", "huggingface_hub", "requests", "builtins")):
        return error
    what = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return SourceSilent(f"{endpoint()} does not answer ({what})")


def _refusal(source: HubFile, status: int) -> str:
    repo = f"{endpoint()}/{source.repo}"
    if status in (401, 403):
        return f"{repo} answers {status}: it wants a token; set HF_TOKEN or run 'hf auth login'"
    if status == 404:
        what = f"does not have {source.file}" if source.file else "does not exist"
        return f"{repo} {what} (404)"
    if status == 429:
        return f"{endpoint()} answers 429: too many requests; try again later"
    return f"{endpoint()} is out of order (it answers {status}); try again later"


class _Counting:
    """A file that reports how long it has become."""

    def __init__(self, file: BinaryIO, path: Path, progress: BytesCallback) -> None:
        self._file, self._path, self._progress = file, path, progress

    def write(self, data: bytes) -> None:
        """Write and flush, so that what was fetched stays when the process is killed."""
        with explain_errors("write", self._path):
            self._file.write(data)
            self._file.flush()
        self._progress(self._file.tell())

    def size(self) -> int:
        """Return the bytes so far."""
        return self._file.tell()

    def truncate(self) -> None:
        """Drop all bytes."""
        self._file.seek(0)
        self._file.truncate()


def _library(module: str = "") -> ModuleType:
    """Return ``huggingface_hub`` or a module of it, without reports and progress bars."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    return import_silenced(f"huggingface_hub.{module}".rstrip("."))
