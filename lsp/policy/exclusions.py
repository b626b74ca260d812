"""Files that get no suggestions and that no prompt shows, and which pattern says so.

Two kinds of patterns: those of secrets, in the user's settings, and the ``.redraftignore`` files
above them.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from pathlib import Path

from redraft.model.memo import Memo

from ..documents.notebooks import Notebooks
from ..documents.uris import (
    below,
    code_language,
    display_path,
    end_of,
    file_of,
    notebook_path,
    on_disk,
    path_below,
    path_of,
    uri_of,
)
from ..editor_settings import LspSettings
from .ignore_files import IgnoreRules

_WILD = re.compile(r"[*?[]")
_MOST_OPENED = 2_000  # files whose ignore files are read again with each look at the disk
_BACKUP = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|swp|tmp))+$")


def refuse_file(path: str, settings: LspSettings, uri: str = "") -> str:
    """Return why the file at ``path`` gets no suggestions, "" if it may.

    Args:
        path: as shown to the model, "/" separated.
        uri: of its document, where there is one: "config" may be ".kube/config".
    """
    globs = _sorted_out(settings.secrets)
    return globs.refusals.get((path, uri), globs.refuse)


@dataclass(frozen=True, slots=True)
class _Globs:
    """Patterns by what it takes to match them. One by one they would take 20,000 files seconds."""

    names: frozenset[str]
    endings: tuple[str, ...]
    others: re.Pattern[str]
    each: tuple[str, ...]
    below: tuple[tuple[str, int], ...]  # with folders in them, and how many parts of a path
    #: By path and URI: each open file is looked at with every question.
    refusals: Memo[tuple[str, str], str] = field(default_factory=lambda: _memo())

    def refuse(self, file: tuple[str, str]) -> str:
        """Return why a file, given as path and URI, is refused; "" if it is allowed."""
        path, uri = notebook_path(file[0]).lower(), file[1]
        name, place = path.rsplit("/", 1)[-1], end_of(uri).lower() if uri else path
        found = next(filter(None, map(self.find_pattern, {name, _BACKUP.sub("", name), path})), "")
        for glob, folders in self.below:
            if not found and fnmatchcase("/".join(place.split("/")[-folders:]), glob):
                found = glob
        if not found:
            return ""
        return (
            f'{name} may hold secrets (setting secretGlobs, pattern {found}; "!{found}" there '
            "allows such files)"
        )

    def find_pattern(self, path: str) -> str:
        """Return a pattern that fits, "" if none does."""
        if path in self.names:
            return path
        if path.endswith(self.endings) or self.others.match(path):
            return next(glob for glob in self.each if fnmatchcase(path, glob))
        return ""


@lru_cache(maxsize=4)
def _sorted_out(globs: tuple[str, ...]) -> _Globs:
    each = tuple(glob.lower() for glob in globs)
    names = [glob for glob in each if not _WILD.search(glob)]
    endings = [glob[1:] for glob in each if glob[:1] == "*" and not _WILD.search(glob[1:])]
    others = sorted({*each} - {*names} - {f"*{ending}" for ending in endings})
    return _Globs(
        names=frozenset(names),
        endings=tuple(endings),
        others=re.compile("|".join(map(translate, others)) or r"(?!)"),
        each=each,
        below=tuple((glob, glob.count("/") + 1) for glob in each if "/" in glob),
    )


def _memo() -> Memo[tuple[str, str], str]:
    """Return an empty memory of reasons by path and URI."""
    return Memo(4 << 20)


def _refuse_disguise(path: str, real: str) -> str:
    """Refuse data under the name of code: secrets in it would not be found."""
    if code_language(path) is None or code_language(real) is not None:
        return ""
    return f"{path} is a link to {real}, which is no code"


class Exclusions:
    """Exclusions of a workspace, as they are now.

    :meth:`why` decides whether a file may be read for a prompt. Every reader asks it at the time of
    use. It reads nothing itself: :meth:`read` and the index do, in the background.

    Args:
        settings: as they are now.
        folders: URIs of the workspace.
        notebooks: a cell is excluded with its notebook.
    """

    def __init__(
        self,
        settings: Callable[[], LspSettings],
        folders: Callable[[], Sequence[str]],
        notebooks: Notebooks | None = None,
    ) -> None:
        self.settings, self._folders = settings, folders
        self.notebooks = notebooks or Notebooks()
        self._rules = self._taken = IgnoreRules()
        self._known = _memo()
        #: Files that were opened, closed ones too: their edits may still be in prompts.
        self._opened: OrderedDict[str, None] = OrderedDict()
        self._expected: set[str] = set()  # URIs of documents whose ignore files are not read yet

    def why(self, path: str, uri: str = "") -> str:
        """Return why a file is excluded, "" if it is not; see :func:`refuse_file`."""
        if uri in self._expected:
            return f"what excludes {path} is not read yet"
        settings = self.settings()
        why = refuse_file(path, settings, uri)
        if not why and uri and (target := self._target(uri)):
            real = display_path(target, self._folders())
            why = refuse_file(real, settings, target) or _refuse_disguise(path, real)
        return why or self._known.get((path, uri), lambda _: self._ignored(path, uri))

    def _file(self, uri: str) -> str:
        """Return the name on the disk of a document's file, "" if it has none."""
        return on_disk(path_of(self.notebooks.file_of(uri)))

    def _roots(self) -> list[str]:
        return [root for uri in self._folders() if (root := file_of(uri))]

    def _target(self, uri: str) -> str:
        """Return the URI of the file that a document's name leads to, "" if it is no link."""
        file = self._file(uri)
        real = self._rules.real(file)
        return "" if real == file else uri_of(real)

    def _ignored(self, path: str, uri: str) -> str:
        if not uri:
            return next(
                filter(None, (self._rules.why(Path(root), path) for root in self._roots())), ""
            )
        file = self._file(uri)
        return (self._why_file(file) or self._why_file(self._rules.real(file))) if file else ""

    def _why_file(self, file: str) -> str:
        shown = [path for root in self._roots() if (path := below(file, root))]
        return self._rules.why_file(file, min(shown, key=len, default=file))

    def expect(self, uri: str) -> bool:
        """Exclude a document until :meth:`take` is called; return whether it has a file."""
        file = self._file(uri)
        if file:
            self._opened[file] = None
            self._opened.move_to_end(file)
            self._expected.add(uri)
            if len(self._opened) > _MOST_OPENED:
                self._opened.popitem(last=False)
        return bool(file)

    def read(self, uri: str) -> IgnoreRules:
        """Return what a document obeys, read from the disk; any thread may call it."""
        rules = IgnoreRules()
        rules.read_document(self._file(uri))
        rules.read_links(self._roots())
        return rules

    def take(self, uri: str, rules: IgnoreRules) -> None:
        """Take what was read for a document."""
        rules.add_missing(self._rules)
        self._rules, self._known = rules, _memo()
        self._expected.discard(uri)

    def on_open(self, uri: str) -> None:
        """Read what a document obeys at once; for commands."""
        if self.expect(uri):
            self.take(uri, self.read(uri))

    def read_opened(self, rules: IgnoreRules) -> None:
        """Read what documents obey into other rules; for the index."""
        for file in list(self._opened):
            rules.read_document(file)
        rules.read_links(self._roots())

    def renew(self, rules: IgnoreRules) -> bool:
        """Take what the index has read; return whether other files are excluded than before."""
        if rules is self._taken:
            return False
        self._taken = rules
        rules.add_missing(self._rules)  # of documents that were opened meanwhile
        is_same = self._rules.is_same(rules)
        self._rules, self._known = rules, _memo()
        return not is_same

    @property
    def unheeded(self) -> dict[str, str]:
        """The ignore files that cannot be heeded, and why; their folders are excluded."""
        return self._rules.problems

    def is_on_disk(self, uri: str) -> bool:
        """Return whether the folder of a document exists, as far as it was read."""
        return self._file(uri) in self._rules.on_disk

    def in_workspace(self, uri: str) -> str:
        """Return the URI of a file by the name of its workspace folder, where one is a link."""
        if any(path_below(uri, folder) is not None for folder in self._folders()):
            return uri
        real = self._rules.real(self._file(uri))
        for root in self._roots():
            path = below(real, self._rules.real(root))
            if path:
                return uri_of(f"{root}/{path}")
        return uri
