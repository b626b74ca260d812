"""Listing of the files of a workspace that are worth reading, and reading them.

Git lists the files without ignored ones. Without git the folders are walked and their
``.gitignore`` files applied. Secrets, binaries, generated, minified and large files are not read.
It blocks on the disk, so it runs in the background.
"""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import TypeVar

from redraft.model.errors import InstallError

from ..documents.positions import has_lone_surrogates
from ..documents.uris import code_language, file_of
from ..policy.git_patterns import Patterns
from ..policy.ignore_files import (
    GIT_IGNORE,
    IgnoreRules,
    as_bytes,
    folders_above,
    read_ignore_file,
)
from ..policy.secret_files import secret_in
from . import git
from .safe_reading import UnreadableFile, kind_of, lies_below, read_file

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

MOST_FILES = 20_000  # of a workspace; what is nearest to the open files comes first
MOST_LISTED = 300_000  # names looked at in a folder without git
MOST_BYTES = 256 * 1024  # of a file; larger ones are data or made by a program
_NAMES_AT_ONCE = 256  # looked at between two rests: about 3 ms
_GIT_TIMEOUT_S = 30.0
_GIT_BYTES = 64 << 20  # of names that git lists

#: Folders of other people's code and of what a build leaves behind, even where git tracks them.
SKIPPED_FOLDERS = frozenset(
    (
        *(".git", ".hg", ".svn", "node_modules", "bower_components", "__pycache__", ".venv"),
        *("venv", "site-packages", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
        *(".gradle", ".idea", ".vs", ".next", ".nuxt", ".cache", ".yarn", ".terraform"),
        *("vendor", "third_party", "Pods", "DerivedData", "target", "bin", "obj", "dist", "build"),
    )
)
#: Such names that users also give to source folders: skipped only without git.
_OWN_WITH_GIT = frozenset(("bin", "build", "dist", "obj", "target", "third_party"))
#: Folders of code that is not the user's.
OTHERS_CODE = SKIPPED_FOLDERS - _OWN_WITH_GIT
_GENERATED_NAMES = re.compile(
    "|".join(
        map(
            translate,
            (
                *("*.min.js", "*.min.css", "*.bundle.js", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py"),
                *("*.pb.go", "*.pb.cc", "*.pb.h", "*.pb.rs", "*.g.cs", "*.designer.cs", "*.g.dart"),
                *("*.generated.*", "*_generated.*", "*.freezed.dart", "*.d.ts.map"),
            ),
        )
    )
)
_GENERATED = re.compile(
    r"@generated\b|\b(?:auto-?generated|automatically generated|code generated)\b|\bdo not edit\b",
    re.IGNORECASE,
)
_GENERATED_WITHIN = 600  # characters from the beginning that hold such a remark
_DENSE = 200  # characters of the mean line above which a text was not written by hand


@dataclass(frozen=True, slots=True)
class Found:
    """A file worth reading."""

    path: str  # as shown to the model: below its workspace folder, "/" separated
    folder: str  # of the workspace; a Path for each file would take a kilobyte
    language: str

    @property
    def file(self) -> str:
        """Its name on the disk."""
        return os.path.join(self.folder, self.path)  # noqa: PTH118


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
    """Return why nothing can be listed in ``folder``, or ""."""
    try:
        with os.scandir(folder):
            return ""
    except NotADirectoryError:
        return "it is no folder"
    except FileNotFoundError:
        return "it does not exist"
    except (OSError, ValueError) as error:
        return f"it cannot be read: {getattr(error, 'strerror', None) or error}"


def find_files(
    folder: Path,
    refuse: Callable[[str], str],
    rules: IgnoreRules | None = None,
    listed: Callable[[Path, Sequence[str]], None] = lambda _folder, _names: None,
    rest: Callable[[], None] = lambda: None,
) -> list[Found]:
    """Return the files below ``folder`` that are worth reading.

    Args:
        refuse: why a path must not be read, "" if it may be.
        rules: receives the ``.redraftignore`` files of all folders with code.
        listed: receives the folder and the names of all files but those of other people's code.
        rest: called every few milliseconds of work.
    """
    names, skipped = _by_git(folder), OTHERS_CODE
    if names is None:
        names, skipped = _by_walk(folder, rest), SKIPPED_FOLDERS
    # An index of git can hold any name. One that is not Unicode cannot be sent to a model.
    own = [
        name
        for name in _resting(names, rest)
        if skipped.isdisjoint(name.split("/")[:-1])
        and lies_below(name)
        and not has_lone_surrogates(name)
    ]
    listed(folder, own)
    found = [
        Found(name, str(folder), language)
        for name in _resting(own, rest)
        if (language := code_language(name)) is not None
        and not _GENERATED_NAMES.fullmatch(name.rpartition("/")[2].lower())
        and not refuse(name)
    ]
    rules = rules or IgnoreRules()
    one_of_each = {each.path.rpartition("/")[0]: each.path for each in _resting(found, rest)}
    folders = {above for path in one_of_each.values() for above in folders_above(path)}
    rules.read(folder, _resting(folders, rest))
    return [each for each in _resting(found, rest) if not rules.why(folder, each.path)]


def _resting(items: Iterable[_T], rest: Callable[[], None]) -> Iterator[_T]:
    """Yield items, with a rest every few milliseconds of work."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _NAMES_AT_ONCE == 0:
            rest()


def stamp_of(file: str | Path) -> tuple[int, int] | None:
    """Return the last change of a file in ns, and its bytes; None if it must not be read."""
    try:
        status = os.lstat(file)
    except (OSError, ValueError):
        return None
    if kind_of(status.st_mode) or status.st_size > MOST_BYTES:
        return None
    return status.st_mtime_ns, status.st_size


def read_code(folder: str | Path, path: str, *, for_edits: bool = False) -> str | None:
    """Return the text of the file at ``path`` below ``folder``, with ``\\n`` line ends.

    None if it is not code that people write, or is a secret.

    Args:
        for_edits: None also for a file with a lone CR: half of the editors begin no line there, so
            an edit by line numbers would hit another line.
    """
    try:
        data = read_file(folder, path, MOST_BYTES)
    except UnreadableFile as error:
        logger.debug("%s is not read: it %s", path, error)
        return None
    if b"\0" in data:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n")
    if for_edits and "\r" in text:
        logger.debug("%s is not edited: it has a lone CR", path)
        return None
    text = text.replace("\r", "\n")
    return None if is_generated(text) or secret_in(text, path) else text


def read_saved(uri: str) -> str | None:
    """Return the text of a document's file as :func:`read_code` does."""
    folder, _, name = file_of(uri).rpartition("/")
    return read_code(f"{folder}/", name) if name else None


def is_generated(text: str) -> bool:
    """Return whether a program wrote a text: it says so, or its lines are too long."""
    if _GENERATED.search(text, 0, _GENERATED_WITHIN):
        return True
    return len(text) > 5_000 and len(text) > _DENSE * (text.count("\n") + 1)


# --- listing ----------------------------------------------------------------------------------


def _by_git(folder: Path) -> list[str] | None:
    """Return what git tracks or would track; None without git or a repository."""
    try:
        answer = git.ask(
            folder,
            *("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
            within_s=_GIT_TIMEOUT_S,
            most_bytes=_GIT_BYTES,
        )
    except (InstallError, OSError, ValueError):
        return None
    names = answer.output.decode("utf-8", "replace").split("\0")
    del names[-1:]  # nothing, or a name cut short
    if answer.code and len(answer.output) < _GIT_BYTES:
        return None
    # None at all: perhaps a folder that the repository around it ignores.
    return list(dict.fromkeys(names)) or None


def _by_walk(folder: Path, rest: Callable[[], None]) -> list[str]:
    """Return files below ``folder`` in order of names, level by level, without following links."""
    names: list[str] = []
    waiting: deque[tuple[str, _Ignored]] = deque([("", ())])
    looked_at = 0
    while waiting and looked_at < MOST_LISTED:
        below, ignored = waiting.popleft()
        rest()
        own = read_ignore_file(str(folder), f"{below}{GIT_IGNORE}")
        if own is not None:
            if own.problem:
                logger.warning("%s of %s %s", f"{below}{GIT_IGNORE}", folder, own.problem)
            ignored = (*ignored, (below, own.patterns))
        try:
            with os.scandir(folder / below) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            looked_at += 1
            name = below + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS and not _is_ignored(f"{name}/", ignored):
                    waiting.append((f"{name}/", ignored))
            elif not _is_ignored(name, ignored):
                names.append(name)
    return names


_Ignored = tuple[tuple[str, Patterns], ...]  # folder with its "/", and what it ignores


def _is_ignored(name: str, ignored: _Ignored) -> bool:
    """Return what the innermost ``.gitignore`` with a pattern for a name says."""
    path = name.removesuffix("/")
    for folder, patterns in reversed(ignored):
        below = as_bytes(path[len(folder) :])
        pattern = patterns.last(below, is_folder=path != name)
        if pattern is not None:
            return pattern.excludes
    return False
