"""One file of the Hugging Face hub, through ``huggingface_hub``: mirrors (``HF_ENDPOINT``), tokens,
proxies, offline mode (``HF_HUB_OFFLINE``) and what its cache already holds.

An interrupted download is continued where it ended, which the library's ``hf_hub_download`` does
not do: it throws away what it had. Knows nothing of what the file is for. It blocks.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, cast

from ..errors import FetchFailed, SourceSilent
from ..silence import import_silenced
from .files import BytesCallback, explaining

PUBLIC_HUB = "https://huggingface.co"

#: Seconds a hub gets to open the connection, and to answer at all: looking up its name has no
#: limit of its own.
_CONNECT_S, _ANSWER_S = 3.0, 6.0


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository on the hub."""

    repo: str  # "owner/name"
    file: str

    @property
    def shown(self) -> str:
        return f"{endpoint()}/{self.repo}"


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as its repository lists it."""

    name: str
    size: int  # bytes
    sha256: str  # "": small, so that the hub does not tell


@dataclass(frozen=True, slots=True)
class Listing:
    """What a repository holds."""

    revision: str  # the commit
    files: tuple[Listed, ...]
    license: str  # "" where it does not say


def list_files(repo: str) -> Listing:
    """The files of a repository with what its hub knows of them.

    Raises:
        SourceSilent: nothing answers.
        FetchFailed: there is no such repository, or it wants a token.
    """
    source = HubFile(repo, "")
    if is_offline():
        raise FetchFailed("HF_HUB_OFFLINE is set, so the Hugging Face hub is not asked")
    api = _library().HfApi(endpoint=endpoint(), library_name="redraft")
    asked = partial(api.model_info, repo, files_metadata=True, timeout=_CONNECT_S)
    found = _in_time(source, asked)
    files = tuple(
        Listed(each.rfilename, each.size or 0, each.lfs.sha256 if each.lfs else "")
        for each in found.siblings or ()
    )
    card = found.card_data
    stated = card.get("license") if card is not None else None
    return Listing(found.sha or "main", files, stated if isinstance(stated, str) else "")


def endpoint() -> str:
    """The hub that is asked: ``HF_ENDPOINT``, else the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or PUBLIC_HUB


def is_offline() -> bool:
    """Whether ``HF_HUB_OFFLINE`` (or ``TRANSFORMERS_OFFLINE``) forbids asking the hub."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE") for name in names)


def cached(source: HubFile) -> Path | None:
    """The file where other programs have fetched it before; None where they have not."""
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
    if is_offline():
        raise FetchFailed("HF_HUB_OFFLINE is set, so the Hugging Face hub is not asked")
    url = _find(source, sha256, size, revision)
    http_get = _library("file_download").http_get
    build_hf_headers = _library("utils").build_hf_headers
    with explaining("write", part), part.open("ab") as file:
        have = file.tell()
        try:
            http_get(
                url,
                cast("BinaryIO", _Counting(file, part, progress)),
                resume_size=have,
                headers=build_hf_headers(library_name="redraft"),
                expected_size=size,
            )
        except Exception as error:
            raise _failure(source, error) from error


def _find(source: HubFile, sha256: str, size: int, revision: str | None) -> str:
    """The address of the file, once the hub has said that it is the one that is meant."""
    library = _library()
    url: str = library.hf_hub_url(source.repo, source.file, endpoint=endpoint(), revision=revision)
    asked = partial(library.get_hf_file_metadata, url, timeout=_CONNECT_S)
    answer = _in_time(source, asked)
    # The tag of a large file is its SHA-256; that of a mirror may be anything.
    tag = (answer.etag or "").lower()
    if len(tag) == len(sha256) and tag != sha256:
        raise FetchFailed(f"{source.shown} has another {source.file} (SHA-256 {tag[:16]}…)")
    if answer.size not in (None, size):
        raise FetchFailed(
            f"{source.shown} has another {source.file} ({answer.size:,} bytes, not {size:,})"
        )
    return url


def _in_time(source: HubFile, ask: Any) -> Any:
    """What ``ask`` returns, if it does so in time; the thread of one that does not is left."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(ask())
        except Exception as error:  # raised in the thread that waits
            outcome.append(error)

    thread = threading.Thread(target=run, name="redraft-hub", daemon=True)
    thread.start()
    thread.join(_ANSWER_S)
    if not outcome:
        raise SourceSilent(f"{endpoint()} does not answer within {_ANSWER_S:.0f} s")
    if isinstance(outcome[0], Exception):
        raise _failure(source, outcome[0]) from outcome[0]
    return outcome[0]


def _failure(source: HubFile, error: Exception) -> Exception:
    """What to make of an error of the library; those that are not its own stay as they are."""
    HfHubHTTPError = _library("errors").HfHubHTTPError

    if isinstance(error, HfHubHTTPError):
        return _of_status(source, getattr(error.response, "status_code", 0))
    if type(error) is OSError:
        if error.errno is not None:
            return error  # of the disk
        return FetchFailed(f"{endpoint()} broke off ({error})")
    module = type(error).__module__.partition(".")[0]
    if not module.startswith(("httpx", "httpcore", "huggingface_hub", "requests", "builtins")):
        return error
    what = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return SourceSilent(f"{endpoint()} does not answer ({what})")


def _of_status(source: HubFile, status: int) -> FetchFailed:
    if status in (401, 403):
        return FetchFailed(
            f"{source.shown} answers {status}: it wants a token; set HF_TOKEN or run "
            "'hf auth login'"
        )
    if status == 404:
        what = f"does not have {source.file}" if source.file else "does not exist"
        return FetchFailed(f"{source.shown} {what} (404)")
    if status == 429:
        return FetchFailed(f"{endpoint()} answers 429: too many requests; try again later")
    return FetchFailed(f"{endpoint()} is out of order (it answers {status}); try again later")


class _Counting:
    """A file that reports how long it has become."""

    def __init__(self, file: BinaryIO, path: Path, progress: BytesCallback) -> None:
        self._file, self._path, self._progress = file, path, progress

    def write(self, data: bytes) -> int:
        with explaining("write", self._path):
            written = self._file.write(data)
            self._file.flush()  # what was fetched stays when the process is killed
        self._progress(self._file.tell())
        return written

    def __getattr__(self, name: str) -> Any:  # seek, tell, truncate, …
        return getattr(self._file, name)


def _library(module: str = "") -> ModuleType:
    """``huggingface_hub`` or a module of it, forbidden to report and without bars of its own."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    return import_silenced(f"huggingface_hub.{module}".rstrip("."))
