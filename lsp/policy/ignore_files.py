"""Files that exclude others by their paths: ``.gitignore``, and ``.redraftignore`` of our own.

Both are heeded as git heeds a ``.gitignore``. They may come from anyone, so their size is bounded.
A ``.redraftignore`` that cannot be heeded excludes all of its folder: it was written to keep files
from the model, and nothing can say which.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..context.safe_reading import UnreadableFile, read_behind_links, read_file
from ..documents.uris import file_of, uri_of
from .git_patterns import Pattern, Patterns

REDRAFT_IGNORE = ".redraftignore"
GIT_IGNORE = ".gitignore"
_MOST_BYTES = 4 << 20
_MOST_PATTERNS = 50_000
_MOST_WILDCARDS = 5_000  # patterns; each takes 50 µs to compile and 0.15 µs for each path
#: Encodings by their marks. That of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """Patterns of one file, or why they cannot be heeded."""

    patterns: Patterns
    problem: str = ""  # a sentence without its subject, such as "is a folder"


def read_ignore_file(folder: str, name: str) -> IgnoreFile | None:
    """Return the patterns of the file ``name`` in ``folder``, None if there is none.

    Links are followed for our own files and not for those of git, as git itself does.
    """
    try:
        os.lstat(os.path.join(folder, name))  # noqa: PTH118 - names that are no Unicode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        return IgnoreFile(Patterns(()), f"cannot be read: {error.strerror or error}")
    try:
        read = read_behind_links if name == REDRAFT_IGNORE else read_file
        return parse_ignore_file(read(folder, name, _MOST_BYTES))
    except UnreadableFile as error:
        return IgnoreFile(Patterns(()), str(error))


def parse_ignore_file(data: bytes) -> IgnoreFile:
    r"""Return the patterns of a file's content. Lines end at ``\n`` alone.

    Its patterns are heeded as bytes where they are not UTF-8, as git does, and that is a problem.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    if encoding:
        try:
            data = data.decode(encoding).encode().removeprefix(codecs.BOM_UTF8)
        except UnicodeDecodeError:
            return IgnoreFile(Patterns(()), f"is not valid {encoding.upper()}, as its mark says")
    found: list[Pattern] = []
    wildcards = 0
    problem = "" if b"\0" not in data else "holds NUL characters; save it as UTF-8"
    if b"\r" in data.rstrip(b"\r") and b"\n" not in data:
        problem = "ends its lines with CR alone, which git reads as one line; save it with LF"
    for number, line in enumerate(data.split(b"\n"), 1):
        pattern = Pattern.of(number, line)
        if pattern is None:
            continue
        wildcards += pattern.literal is None
        if len(found) == _MOST_PATTERNS or wildcards > _MOST_WILDCARDS:
            problem = (
                f"has too many patterns: at most {_MOST_PATTERNS:,} are heeded, "
                f"{_MOST_WILDCARDS:,} of them with wildcards"
            )
            break
        found.append(pattern)
        problem = problem or _problem_of(pattern)
    return IgnoreFile(Patterns(found), problem)


def _problem_of(pattern: Pattern) -> str:
    try:
        pattern.text.decode()
    except UnicodeDecodeError:
        return f"has a line {pattern.line} that is not UTF-8; save it as UTF-8"
    return ""


class IgnoreRules:
    """The ``.redraftignore`` files above some files, up to the root of the disk.

    As in git, nothing in an excluded folder can be taken back. Other than in git the files above a
    repository count too, because not every folder that an editor opens is one.
    """

    def __init__(self) -> None:
        self._files: dict[str, IgnoreFile | None] = {}  # by folder, which ends with "/"
        self._read_s: dict[str, float] = {}  # when each was read
        #: Why a folder is excluded, as far as it was asked; by what is not shown of it.
        self._folders: dict[tuple[str, str], str] = {}
        self._inner_first: dict[str, list[tuple[str, IgnoreFile]]] = {}  # see _applying
        self.on_disk: set[str] = set()  # documents whose folders exist
        self._real: dict[str, str] = {}  # files of documents, and where their names lead

    def read(self, root: Path, folders: Iterable[str]) -> None:
        """Read the files that apply in ``folders`` below a root.

        Args:
            folders: "" for ``root`` itself, others end with "/".
        """
        for folder in folders:
            self.read_above(f"{_absolute(root)}/{folder}")

    def read_above(self, file: str) -> None:
        """Read the files that a file obeys; ``file`` is absolute and "/" separated."""
        for folder in _folders_above(file):
            if folder not in self._files:
                self._read_s[folder] = time.monotonic()
                self._files[folder] = read_ignore_file(folder, REDRAFT_IGNORE)
                self._forget_verdicts()

    def read_document(self, file: str) -> None:
        """Read the files that a document obeys; its name may be a link to another."""
        self.read_above(file)
        if os.path.isdir(os.path.dirname(file)):  # noqa: PTH112, PTH120 - any name, as bytes too
            self.on_disk.add(file)
        self.read_links((file,))
        self.read_above(self.real(file))

    def read_links(self, names: Iterable[str]) -> None:
        """Read where names of files and folders lead."""
        for name in names:
            with contextlib.suppress(OSError, ValueError):
                self._real[name] = file_of(uri_of(os.path.realpath(name)))

    def _forget_verdicts(self) -> None:
        self._folders.clear()
        self._inner_first.clear()

    def real(self, file: str) -> str:
        """Return where the name of a document or folder leads, as far as it was read."""
        return self._real.get(file, file)

    def add_missing(self, other: IgnoreRules) -> None:
        """Take from other rules what was not read for these, or was read later."""
        for folder, file in other._files.items():
            if folder not in self._files or other._read_s[folder] > self._read_s[folder]:
                self._files[folder], self._read_s[folder] = file, other._read_s[folder]
        self._real = other._real | self._real
        self.on_disk |= other.on_disk
        self._forget_verdicts()

    def why(self, root: Path, path: str) -> str:
        """Return why the file at ``path`` below ``root`` is excluded, "" if it is not."""
        return self.why_file(f"{_absolute(root)}/{path}", path)

    def why_file(self, file: str, shown: str) -> str:
        """Return why a file is excluded, "" if it is not, as far as ignore files were read.

        Args:
            file: absolute, "/" separated.
            shown: its path for people.
        """
        base = file.removesuffix(shown)
        folder = file[: file.rindex("/") + 1]
        if (base, folder) not in self._folders:
            reasons = (self._why(each, base) for each in _folders_above(file))
            self._folders[base, folder] = next(filter(None, reasons), "")
        why = self._folders[base, folder] or self._why(file, base)
        return f"{shown} is excluded {why}" if why else ""

    def _why(self, name: str, base: str) -> str:
        """Return what excludes a file or folder by itself, "" if nothing does."""
        own = self._files.get(name)
        if own is not None and own.problem:
            return f"because {name.removeprefix(base)}{REDRAFT_IGNORE} {own.problem}"
        path = name.removesuffix("/")
        for folder, file in self._applying(path[: path.rfind("/") + 1]):
            below = as_bytes(path[len(folder) :])
            pattern = file.patterns.last(below, is_folder=path != name)
            if pattern is not None:
                text = pattern.text.decode("utf-8", "replace").strip()
                where = f"line {pattern.line} of {folder.removeprefix(base)}{REDRAFT_IGNORE}"
                return f"by {where}: {text}" if pattern.excludes else ""
        return ""

    def _applying(self, inner: str) -> list[tuple[str, IgnoreFile]]:
        """Return the ignore files that apply in a folder, the innermost first."""
        if inner not in self._inner_first:
            found = ((each, self._files.get(each)) for each in reversed(_folders_above(inner)))
            self._inner_first[inner] = [(each, file) for each, file in found if file is not None]
        return self._inner_first[inner]

    @property
    def problems(self) -> dict[str, str]:
        """The files that cannot be heeded, and why."""
        found = self._files.items()
        return {f"{folder}{REDRAFT_IGNORE}": f.problem for folder, f in found if f and f.problem}

    def is_same(self, other: IgnoreRules) -> bool:
        """Return whether both exclude the same files."""
        return self._heeded() == other._heeded() and self._real == other._real

    def _heeded(self) -> dict[str, IgnoreFile]:
        return {folder: file for folder, file in self._files.items() if file is not None}


def as_bytes(path: str) -> bytes:
    """Return a path as git has it. Lone surrogates that no name of a file has stay apart."""
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")


def _absolute(root: Path) -> str:
    return root.as_posix().rstrip("/")


def _folders_above(file: str) -> list[str]:
    """Return the folders above an absolute path, from the root of its disk or network share."""
    return folders_above(file)[4 if file.startswith("//") else 1 :]


def folders_above(path: str) -> list[str]:
    """Return the folders that hold a path, the outermost first: "", "a/", "a/b/"."""
    parts = path.split("/")[:-1]
    return ["".join(f"{part}/" for part in parts[:depth]) for depth in range(len(parts) + 1)]
