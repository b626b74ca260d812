"""The whole rename of a definition: all its places in the workspace, or why it is unclear.

A change that fits other places word for word has the same form; see :mod:`.call_series`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from redraft.model.text.imported_files import family_of
from redraft.model.text.scopes import Occurrence
from redraft.model.text.syntax import SCRIPTS

from ..context.index import IndexGeneration
from .code_file import CodeFile, UnclearUse
from .definition import RenamedDefinition
from .member_uses import MemberUses, class_name, class_place
from .reached_files import Modules, other_uses
from .uses import callee, own_uses, replacement

#: Files that are looked at, at most; more would take seconds.
MOST_FILES = 200
_SHORTEST = 3  # letters of the shortest word in the index
#: Languages whose files import names of scripts, and whose scopes are not known.
_HOLD_SCRIPTS = ("vue", "svelte")


@dataclass(frozen=True)
class FileRename:
    """The places of a rename in one file."""

    source: CodeFile
    spans: tuple[tuple[int, int, str], ...]  # text[start:end] and what replaces it, in order

    @cached_property
    def result(self) -> str:
        """The text with all places renamed."""
        text, end, parts = self.source.text, 0, list[str]()
        for start, last, new in self.spans:
            parts += [text[end:start], new]
            end = last
        return "".join(parts) + text[end:]


@dataclass(frozen=True)
class WholeRename:
    """A rename of a definition at all of its uses, or another change at all of its places."""

    old: str  # "" for another change
    new: str
    at: int  # index of the new name, or of what was changed, into the text of its document
    files: tuple[FileRename, ...]
    what: str = ""  # the other change, as a command: "drop `unit`"
    basis: tuple[CodeFile, ...] = ()  # files whose texts are the reason for it, besides

    @property
    def places(self) -> int:
        """The number of uses."""
        return sum(len(each.spans) for each in self.files)

    @property
    def label(self) -> str:
        """The sentence that the user sees."""
        many = "" if self.places == 1 else "s"
        files = f" ({len(self.files)} files)" if len(self.files) > 1 else ""
        if self.what:
            return f"{self.what} at {self.places} place{many}{files}"
        return f"rename {self.old} → {self.new} in {self.places} place{many}{files}"

    @property
    def size(self) -> int:
        """Characters that it writes and deletes."""
        spans = [span for each in self.files for span in each.spans]
        if not self.what:
            return len(spans) * len(self.new)
        return sum(end - start + len(new) for start, end, new in spans)

    def file(self, uri: str) -> FileRename | None:
        """Return the places in one file, None if it has none."""
        return next((each for each in self.files if each.source.uri == uri), None)


@dataclass(frozen=True)
class WorkspaceFiles:
    """The other files of the workspace.

    Args:
        index: of the workspace.
        opened: the other open documents, by path.
        read: returns a file of the workspace that is not open; None if it must not be read.
        is_indexed: the index has seen the whole workspace.
    """

    index: IndexGeneration
    opened: dict[str, CodeFile]
    read: Callable[[str], CodeFile | None]
    is_indexed: bool

    def source(self, path: str) -> CodeFile | None:
        """Return the file at a path as it is now."""
        return self.opened.get(path) or self.read(path)


def find_uses(target: RenamedDefinition, files: WorkspaceFiles) -> WholeRename:
    """Return the rename of a definition at all its uses.

    Raises:
        UnclearUse: a place may or may not be one of its uses.
    """
    found = [_renamed(target, target.source, own_uses(target))]
    found += [_renamed(target, each, uses) for each, uses in _elsewhere(target, files)]
    changed = tuple(each for each in found if each.spans)
    return WholeRename(target.old, target.new, target.at, changed)


def _renamed(
    target: RenamedDefinition, source: CodeFile, places: Iterable[Occurrence]
) -> FileRename:
    starts = ((source.index(place), replacement(target, place)) for place in places)
    spans = sorted((at, at + len(target.old), new) for at, new in starts)
    if spans and "__all__" in source.text and re.search(rf"""["']{target.old}["']""", source.text):
        raise UnclearUse(f"{source.path} lists {target.old} in a string, as __all__ does")
    if spans and source is not target.source and target.kind != "member":
        taken = [each for each in source.occurrences(target.new) if source.receiver(each) is None]
        if any(each.role in ("use", "binding", "import", "shorthand") for each in taken):
            raise UnclearUse(f"{source.path} has another {target.new}")
    return FileRename(source, tuple(spans))


def _elsewhere(
    target: RenamedDefinition, files: WorkspaceFiles
) -> Iterator[tuple[CodeFile, Iterator[Occurrence]]]:
    """Yield the other files that mention the name, with its uses there."""
    if target.kind == "local":
        called = callee(target)
        if called:
            for source in find_mentioning(
                target.source, files, max(called, target.old, key=len), target.old
            ):
                yield source, _calls(target, files, source, called)
        return
    modules = Modules(target, files.index, files.source)
    members = MemberUses(target)
    named = class_place(target) if target.kind == "member" else None
    if named is not None:
        name = class_name(target.source, target.scope)
        owner = replace(target, old=name, new=name, place=named)
        members = MemberUses(target, Modules(owner, files.index, files.source))
    for source in find_mentioning(target.source, files, target.old, target.old):
        if target.kind == "module":
            yield source, other_uses(target, source, modules)
        else:
            yield source, members.others(source)


def find_mentioning(
    own: CodeFile, files: WorkspaceFiles, word: str, name: str
) -> Iterator[CodeFile]:
    """Yield the other files with a name that mention a word.

    Raises:
        UnclearUse: the index does not know all of them, or there are too many.
    """
    if not files.is_indexed:
        raise UnclearUse("the files of the workspace are still being read")
    if len(word) < _SHORTEST and len(files.index) > 1:
        raise UnclearUse(f"the index knows no names as short as {word}")
    families = {family_of(own.language), *(_HOLD_SCRIPTS if own.language in SCRIPTS else ())}
    entries = map(files.index.get, files.index.find_mentions(word))
    unopened = [
        each.path
        for each in entries
        if each and each.path not in files.opened and family_of(each.language) in families
    ]
    if len(unopened) > MOST_FILES:
        raise UnclearUse(f"more than {MOST_FILES} files mention {word}")
    opened = [each for each in files.opened.values() if family_of(each.language) in families]
    for source in (*opened, *map(files.read, unopened)):
        if source is not None and source.path != own.path and name in source.text:
            yield source


def _calls(
    target: RenamedDefinition, files: WorkspaceFiles, source: CodeFile, called: str
) -> Iterator[Occurrence]:
    """Yield the keywords of a renamed parameter in the calls of another file."""
    for place in source.occurrences(target.old):
        if place.role == "keyword" and place.function == called:
            definers = files.index.places(called, target.source.language)
            if {each.path for each in definers} - {target.source.path}:
                raise UnclearUse(f"several files define {called}")
            yield place
