"""Files and folders that are either whole or absent, and manifests with their SHA-256.

Every ``OSError`` of the disk becomes a :class:`WeightsError` that names the file and says what to
do.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import RedraftError, WeightsError
from ..safe_files import atomic_file, sync_names
from ..validation import object_of

#: Called with the bytes handled so far.
BytesCallback = Callable[[int], None]

#: In every ready folder: the SHA-256 of its files and of the recipe it was made by.
MANIFEST = "manifest.json"
#: Sizes and times of the files when they were last hashed.
STAMPS = ".checked.json"

_SPARE = 64 << 20  # bytes left free on the disk whatever we write
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_ELSEWHERE = ", or set REDRAFT_CACHE_DIR to a folder on another disk."


@contextlib.contextmanager
def explain_errors(action: str, path: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into a :class:`WeightsError` about ``path``.

    Use it around disk work alone: network failures are ``OSError`` too.
    """
    try:
        yield
    except OSError as error:
        raise WeightsError(_explanation(action, path, error)) from error


def _explanation(action: str, path: Path, error: OSError) -> str:
    if error.errno in _FULL or getattr(error, "winerror", None) == 112:
        return f"The disk is full: cannot {action} {path}. Free some space{_ELSEWHERE}"
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return (
            f"Not allowed to {action} {path} ({error.strerror}). Correct its permissions, or close "
            f"the program that holds it{_ELSEWHERE}"
        )
    if error.errno == errno.ENOENT:
        return f"Cannot {action} {path}: it does not exist. Check the path."
    return f"Cannot {action} {path}: {error.strerror or error}. Check the disk it lies on."


def make_folder(path: Path) -> None:
    """Create ``path`` and its parents.

    Raises:
        WeightsError: a file is in the way, or the place is read-only.
    """
    with explain_errors("create the folder", path):
        path.mkdir(parents=True, exist_ok=True)


def require_space(folder: Path, nbytes: int) -> None:
    """Refuse early when ``nbytes`` more would not fit beside ``folder``.

    Raises:
        WeightsError: with how much is free and how much is needed.
    """
    with explain_errors("look at the disk of", folder):
        free = shutil.disk_usage(folder).free
    missing = nbytes + _SPARE - free
    if missing > 0:
        raise WeightsError(
            f"The disk of {folder} has {free / 1e6:.0f} MB free, {(nbytes + _SPARE) / 1e6:.0f} MB "
            f"are needed: {missing / 1e6:.0f} MB are missing. Free as much{_ELSEWHERE}"
        )


def size_of(path: Path) -> int:
    """Return the bytes of a file or of all files in a folder; 0 where there is nothing."""
    with contextlib.suppress(OSError):
        files = path.rglob("*") if path.is_dir() else (path,)
        return sum(file.stat().st_size for file in files if file.is_file())
    return 0


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with explain_errors("read", path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def delete(path: Path) -> None:
    """Delete a file or a folder with all that it holds; nothing happens where there is none.

    Raises:
        WeightsError: it cannot be deleted.
    """
    with explain_errors("delete", path):
        if not path.is_dir():
            path.unlink(missing_ok=True)
            return
        hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
        path.replace(hidden)  # never seen half deleted; fails where Windows has it open
        shutil.rmtree(hidden, ignore_errors=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder that replaces ``path`` when the block succeeds and vanishes when not.

    Raises:
        WeightsError: the disk does not take it, or another program holds files of ``path`` open
            (Windows).
    """
    make_folder(path.parent)
    for leftover in path.parent.glob(f".{path.name}.*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    make_folder(temporary)
    try:
        with explain_errors("write", temporary):
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    with file.open("rb+") as written:
                        os.fsync(written.fileno())
        _replace_folder(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace_folder(new: Path, target: Path) -> None:
    old = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
    with explain_errors("replace", target):
        if target.exists():
            target.replace(old)
        try:
            new.replace(target)
        except OSError:
            if old.exists():
                old.replace(target)
            raise
    sync_names(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a small file whole or not at all."""
    with explain_errors("write", path), atomic_file(path) as file:
        file.write(content)


def write_notes(path: Path, notes: Mapping[str, object]) -> None:
    """Write ``notes`` as JSON. Ignore write errors: the next start measures them again."""
    with contextlib.suppress(RedraftError, OSError):
        make_folder(path.parent)
        write_atomically(path, json.dumps(notes, indent=1).encode("utf-8"))


# --- ready folders --------------------------------------------------------------------------------


def write_manifest(folder: Path, recipe: str) -> None:
    """Write the SHA-256 of all files of ``folder``, and the recipe that they were made by."""
    files = {
        path.name: {"sha256": sha256_of(path), "size": path.stat().st_size}
        for path in sorted(folder.iterdir())
    }
    content = json.dumps({"recipe": recipe, "files": files}, indent=1)
    stamps = {name: _stamp(folder / name) for name in files}
    write_atomically(folder / STAMPS, json.dumps(stamps).encode())
    write_atomically(folder / MANIFEST, content.encode())


def _stamp(path: Path) -> list[int]:
    """Return what changes when a file is written to: its size and times."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def problem_of(folder: Path, recipe: str | None, thorough: bool | None) -> str:
    """Return what is wrong with a ready folder; "" where nothing is.

    Args:
        recipe: that it must be made by; None: any.
        thorough: True hashes every file, False those that changed since the last time, None none.
    """
    manifest = read_json(folder / MANIFEST)
    files = manifest.get("files")
    if not isinstance(files, dict) or not files:
        return "its manifest is missing or damaged"
    if recipe is not None and manifest.get("recipe") != recipe:
        return "it was made from other weights or by another version"
    checked = read_json(folder / STAMPS) if thorough is False else {}
    stamps: dict[str, list[int]] = {}
    for name, entry in files.items():
        path = folder / name
        try:
            stamps[name] = _stamp(path)
            if stamps[name][0] != entry["size"]:
                return f"{name} has {stamps[name][0]} bytes, not {entry['size']}"
            if thorough is None or checked.get(name) == stamps[name]:
                continue
            if sha256_of(path) != entry["sha256"]:
                return f"{name} does not have the SHA-256 of the manifest"
        except (OSError, WeightsError, KeyError, TypeError):
            return f"{name} is missing or cannot be read"
    if thorough is not None and stamps != checked:
        with contextlib.suppress(WeightsError):  # a read-only folder: hash again next time
            write_atomically(folder / STAMPS, json.dumps(stamps).encode())
    return ""


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object, empty where the file is missing or holds anything else."""
    try:
        return object_of(path.read_bytes())
    except OSError:
        return {}
