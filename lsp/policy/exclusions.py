"""Files that get no suggestions and that no prompt shows, and which pattern says so.

Two kinds of patterns: those of secrets, in the user's settings, and ``.redraftignore`` files of the
workspace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from pathlib import Path

from redraft.model.memo import Memo

from ..context.listing import folder_of
from ..documents.notebooks import Notebooks
from ..documents.open_documents import Document
from ..documents.uris import end_of, notebook_path, path_below
from ..editor_settings import LspSettings
from .ignore_files import IgnoreRules

_WILD = re.compile(r"[*?[]")
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
        found = next(filter(None, map(self.fitting, {name, _BACKUP.sub("", name), path})), "")
        for glob, folders in self.below:
            if not found and fnmatchcase("/".join(place.split("/")[-folders:]), glob):
                found = glob
        if not found:
            return ""
        return (
            f'{name} may hold secrets (setting secretGlobs, pattern {found}; "!{found}" there '
            "allows such files)"
        )

    def fitting(self, path: str) -> str:
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


class Exclusions:
    """Exclusions of a workspace, as they are now.

    A file of the workspace is read only when a document is opened and by the index, in the
    background: :meth:`why` reads nothing.

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

    def why(self, path: str, uri: str = "") -> str:
        """Return why a file is excluded, "" if it is not; see :func:`refuse_file`."""
        return refuse_file(path, self.settings(), uri) or self._known.get(
            (path, uri), lambda _: self._ignored(path, uri)
        )

    def _ignored(self, path: str, uri: str) -> str:
        places = self._places(uri) if uri else [(root, path) for root in self._roots()]
        return next(filter(None, (self._rules.why(*place) for place in places)), "")

    def opened(self, uri: str) -> None:
        """Read the files that a document obeys."""
        for root, path in self._places(uri):
            self._rules.read_above(root, path)
        self._known = _memo()

    def renewed(self, rules: IgnoreRules, documents: Iterable[Document]) -> bool:
        """Take what the index has read; return whether other files are excluded than before."""
        if rules is self._taken:
            return False
        self._taken = rules
        for document in documents:
            for root, path in self._places(document.uri):
                rules.read_above(root, path)
        is_same = self._rules.is_same(rules)
        self._rules, self._known = rules, _memo()
        return not is_same

    def _roots(self) -> list[Path]:
        return [root for uri in self._folders() if (root := folder_of(uri)) is not None]

    def _places(self, uri: str) -> list[tuple[Path, str]]:
        """Return the folders of the workspace that hold a document, and its path below each."""
        uri = self.notebooks.file_of(uri)
        found = ((folder_of(folder), path_below(uri, folder)) for folder in self._folders())
        return [(root, path) for root, path in found if root is not None and path is not None]
