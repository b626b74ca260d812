"""Which files of a workspace are worth reading, and reading them.

Git says which files there are, ignored ones left out; without it the folders are walked and their
``.gitignore`` files heeded. Secrets, binaries, what is generated, minified or too large stay
unread. Blocks on the disk, so it runs in the background. Knows nothing of the index.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from redraft.model.errors import InstallError

from ..paths import code_language
from ..positions import has_lone_surrogates
from ..secret_files import secret_in
from . import git
from .files import Unreadable, kind_of, lies_below, read_file

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

logger = logging.getLogger(__name__)

_PACKAGES = ("go.mod", "package.json")  # of Go, and of scripts
MOST_FILES = 20_000  # of a workspace; what is nearest to the open files comes first
MOST_LISTED = 300_000  # names looked at in a folder without git
MOST_BYTES = 256 * 1024  # of a file; larger ones are data or made by a program
_GIT_TIMEOUT_S = 30.0
_GIT_BYTES = 64 << 20  # of names that git lists
_IGNORE_BYTES = 64 * 1024  # of a ``.gitignore``
#: Stars of one pattern in it, ``**`` as one. Patterns become regular expressions, and each star
#: multiplies the time that one of them takes for a name made to fit by the length of that name.
_IGNORE_STARS = 3
_IGNORE_PATTERNS = 1_000
_STARS = re.compile(r"\*+")

#: Folders of other people's code and of what a build leaves behind, even where git tracks them.
SKIPPED_FOLDERS = frozenset(
    (
        *(".git", ".hg", ".svn", "node_modules", "bower_components", "__pycache__", ".venv"),
        *("venv", "site-packages", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
        *(".gradle", ".idea", ".vs", ".next", ".nuxt", ".cache", ".yarn", ".terraform"),
        *("vendor", "third_party", "Pods", "DerivedData", "target", "bin", "obj", "dist", "build"),
    )
)
#: Of those, the names that are also given to people's own code: skipped only where git does not
#: say that they belong to it.
_OWN_WITH_GIT = frozenset(("bin", "build", "dist", "obj", "target", "third_party"))
#: Folders in which nobody writes code of their own.
OTHERS_CODE = SKIPPED_FOLDERS - _OWN_WITH_GIT
_GENERATED_NAMES = (
    *("*.min.js", "*.min.css", "*.bundle.js", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py"),
    *("*.pb.go", "*.pb.cc", "*.pb.h", "*.pb.rs", "*.g.cs", "*.designer.cs", "*.g.dart"),
    *("*.generated.*", "*_generated.*", "*.freezed.dart", "*.d.ts.map"),
)
_GENERATED = re.compile(
    r"@generated\b|\b(?:auto-?generated|automatically generated|code generated)\b|\bdo not edit\b",
    re.IGNORECASE,
)
_GENERATED_WITHIN = 600  # characters from the beginning, where such a remark stands
_DENSE = 200  # characters of the mean line above which a text was not written by hand


@dataclass(frozen=True, slots=True)
class Found:
    """A file worth reading."""

    path: str  # as shown to the model: below its workspace folder, "/" separated
    folder: str  # of the workspace: a Path of its own for each file takes a kilobyte
    language: str

    @property
    def file(self) -> str:
        return os.path.join(self.folder, self.path)  # noqa: PTH118


def folder_of(uri: str) -> Path | None:
    """The folder that a ``file:`` URI names; None for any other, and where it names none."""
    try:
        parts = urlsplit(uri)
        if parts.scheme != "file":
            return None
        host = "" if parts.netloc in ("", "localhost") else f"//{parts.netloc}"
        path = host + url2pathname(parts.path)
    except (ValueError, OSError):  # OSError: no drive of Windows
        return None
    return Path(path) if path and "\0" not in path else None


def no_project(folder: Path | None) -> str:
    """Return why a folder is not to be read, "" if it is.

    Some clients name the disk or the home folder where a file belongs to no project.
    """
    if folder is None:
        return "it is no folder on this machine"
    try:
        home = Path.home()
    except RuntimeError:  # there is none
        home = None
    whole = folder in (folder.parent, home)
    return "it is a whole disk or the home folder; open a project in it" if whole else ""


def unfit_folder(folder: Path) -> str:
    """Why nothing can be listed in ``folder``; "" where something can. Asks the disk."""
    try:
        with os.scandir(folder):
            return ""
    except NotADirectoryError:
        return "it is no folder"
    except FileNotFoundError:
        return "it does not exist"
    except (OSError, ValueError) as error:
        return f"it cannot be read: {getattr(error, 'strerror', None) or error}"


def find_files(folder: Path, refuse: Callable[[str], str]) -> list[Found]:
    """The files below ``folder`` that are worth reading.

    Args:
        refuse: why a path must not be read, "" if it may be.
    """
    names = _by_git(folder)
    if names is None:
        names = _by_walk(folder)
        skipped = SKIPPED_FOLDERS
    else:
        skipped = OTHERS_CODE
    found = []
    for name in names:
        language = _language_of(name)
        if language is None or not skipped.isdisjoint(name.split("/")[:-1]):
            continue
        if not lies_below(name) or refuse(name):  # an index can be made to say anything
            continue
        if has_lone_surrogates(name):  # it is not Unicode, and no model can be told it
            continue
        base = name.rsplit("/", 1)[-1].lower()
        if not any(fnmatchcase(base, glob) for glob in _GENERATED_NAMES):
            found.append(Found(name, str(folder), language))
    return found


def _language_of(name: str) -> str | None:
    """Of what may define names for others; what tells where a package begins goes by its name."""
    base = name.rsplit("/", 1)[-1]
    return base if base in _PACKAGES else code_language(name)


def stamp_of(file: str | Path) -> tuple[int, int] | None:
    """What changes when a file does: ns of its last change, and bytes. None: nothing to read."""
    try:
        status = os.lstat(file)
    except (OSError, ValueError):
        return None
    if kind_of(status.st_mode) or status.st_size > MOST_BYTES:
        return None
    return status.st_mtime_ns, status.st_size


def read_code(folder: str | Path, path: str) -> str | None:
    """The text of the file at ``path`` below ``folder``, with ``\\n`` line ends; None where it is
    not code that people write, or holds what must not be read."""
    try:
        data = read_file(folder, path, MOST_BYTES)
    except Unreadable as error:
        logger.debug("%s is not read: it %s", path, error)
        return None
    if b"\0" in data:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return None if is_made(text) or secret_in(text, path) else text


def saved_text(uri: str) -> str | None:
    """The text of the file that a document is of, as :func:`read_code` gives it."""
    file = folder_of(uri)
    return None if file is None else read_code(file.parent, file.name)


def is_made(text: str) -> bool:
    """Was this made by a program: does it say so, or is it too dense?"""
    if _GENERATED.search(text, 0, _GENERATED_WITHIN):
        return True
    return len(text) > 5_000 and len(text) > _DENSE * (text.count("\n") + 1)


# --- listing ----------------------------------------------------------------------------------


def _by_git(folder: Path) -> list[str] | None:
    """What git tracks or would track; None where there is no git, or it knows nothing of this."""
    try:
        said = git.ask(
            folder,
            *("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
            within_s=_GIT_TIMEOUT_S,
            most_bytes=_GIT_BYTES,
        )
    except (InstallError, OSError, ValueError):
        return None
    names = said.output.decode("utf-8", "replace").split("\0")
    del names[-1:]  # nothing, or a name cut short
    if said.code and len(said.output) < _GIT_BYTES:
        return None
    # None at all: perhaps a folder that the repository around it ignores.
    return list(dict.fromkeys(names)) or None


def _by_walk(folder: Path) -> list[str]:
    """Files below ``folder`` in alphabetical order, level by level; links are not followed."""
    names: list[str] = []
    waiting: list[tuple[str, _Ignored]] = [("", ())]
    looked_at = 0
    while waiting and looked_at < MOST_LISTED:
        below, ignored = waiting.pop(0)
        own = _ignore_file(folder, f"{below}.gitignore")
        if own is not None:
            ignored = (*ignored, (below, own))
        for entry in _entries(folder / below):
            looked_at += 1
            name = below + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS and not _is_ignored(f"{name}/", ignored):
                    waiting.append((f"{name}/", ignored))
            elif not _is_ignored(name, ignored):
                names.append(name)
    return names


_Ignored = tuple[tuple[str, "GitIgnoreSpec"], ...]  # folder with its "/", and what it ignores


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return


def _ignore_file(folder: Path, name: str) -> GitIgnoreSpec | None:
    if not os.path.lexists(folder / name):
        return None
    from pathspec import GitIgnoreSpec  # 40 ms that a server in a repository never needs

    try:
        lines = read_file(folder, name, _IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    except Unreadable as error:
        logger.info("%s is not heeded: it %s", name, error)
        return None
    heeded = [line for line in lines if len(_STARS.findall(line)) <= _IGNORE_STARS]
    if len(heeded) < len(lines) or len(heeded) > _IGNORE_PATTERNS:
        logger.info("%s: only %d simple patterns are heeded", name, _IGNORE_PATTERNS)
    try:
        return GitIgnoreSpec.from_lines(heeded[:_IGNORE_PATTERNS])
    except ValueError:
        return None


def _is_ignored(name: str, ignored: _Ignored) -> bool:
    """The innermost ``.gitignore`` that says anything decides."""
    for folder, spec in reversed(ignored):
        said = spec.check_file(name[len(folder) :]).include
        if said is not None:
            return said
    return False
