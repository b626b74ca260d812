"""The machine and the code that figures were taken with."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import time
from pathlib import Path

from redraft.lsp.context import git
from redraft.lsp.context.safe_reading import UnreadableFile, read_file
from redraft.model.errors import InstallError
from redraft.model.runtime.machine import processor

#: Folders of the checkout whose files decide answers: code, gates, adapters, scenarios.
_PACKAGES = ("model/", "lsp/", "server/", "evals/")
_LARGEST_LIST = 1 << 20  # bytes
_LARGEST_FILE = 1 << 28


def machine() -> dict[str, str]:
    """Return what figures are taken on: processor, cores, versions, date and commit."""
    found = {
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "date": time.strftime("%Y-%m-%d"),
    }
    for name in ("onnxruntime", "onnxruntime-gpu", "redraft"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if commit := commit_of(Path(__file__).resolve().parents[1]):
        found["commit"] = commit
    return found


def commit_of(root: Path) -> str:
    """Return the commit of the checkout at ``root``, "" if there is none.

    It ends in "-changed" if a file of the packages, other than a document, differs from it.
    """
    if not (root / ".git").exists():
        return ""
    try:
        commit, tree = (
            git.ask(root, *asked, within_s=10.0, most_bytes=_LARGEST_LIST)
            for asked in (
                ("rev-list", "-1", "--abbrev-commit", "HEAD"),
                ("ls-tree", "-r", "-z", "HEAD"),
            )
        )
    except (InstallError, OSError):
        return ""
    entries = (entry.partition("\t") for entry in tree.output.decode().split("\0"))
    files = [
        (described.split()[-1], path)
        for described, _, path in entries
        if path.startswith(_PACKAGES) and not path.endswith(".md")
    ]
    changed = any(blob not in _blobs(root, path) for blob, path in files)
    return commit.output.decode().strip() + "-changed" * changed


def _blobs(root: Path, path: str) -> set[str]:
    """Return what git may call a file's content: as it is, and with the line ends of Unix.

    Git itself would compare by filters that the repository names, which are programs.
    """
    try:
        data = read_file(root, path, _LARGEST_FILE)
    except UnreadableFile:
        return set()
    return {
        hashlib.sha1(b"blob %d\0%s" % (len(each), each), usedforsecurity=False).hexdigest()
        for each in (data, data.replace(b"\r\n", b"\n"))
    }
