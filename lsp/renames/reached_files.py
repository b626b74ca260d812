"""Files that a renamed module-level name reaches, by their imports.

A module *carries* the name if it defines it, or exports it from another module that carries it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from posixpath import dirname

from redraft.model.text.code_queries import imports_of
from redraft.model.text.imported_files import ends_alike, parts_of, stem_of
from redraft.model.text.scopes import Occurrence
from redraft.model.text.syntax import SCRIPTS
from tree_sitter import Node

from ..context.index import IndexGeneration
from .code_file import CodeFile, UnclearUse
from .definition import RenamedDefinition

_ALL_ON = re.compile(r"""^[ \t]*export\s*\*\s*from\s*["']([^"'\n]+)["']""", re.MULTILINE)


class Modules:
    """Imports of a workspace that bring in one renamed name.

    Args:
        index: of the workspace, where the files of a module are found.
        read: returns the file at a path, None if it cannot be read.
    """

    def __init__(
        self,
        target: RenamedDefinition,
        index: IndexGeneration,
        read: Callable[[str], CodeFile | None],
    ) -> None:
        self._target, self._index, self._read = target, index, read
        self._carries = {target.source.path: True}
        self._receivers = dict[str, dict[str, str]]()  # by path

    def brings(self, module: str, source: CodeFile) -> bool:
        """Return whether the module that ``source`` imports carries the name.

        Raises:
            UnclearUse: the module may be several files, or passes names on in an unknown way.
        """
        found = {self._carried(path) for path in self._files(module, source)}
        if len(found) > 1:
            raise UnclearUse(f"{source.path} imports from {module}, which may be several files")
        return found == {True}

    def brings_all(self, source: CodeFile) -> bool:
        """Return whether a wildcard import brings the name into a file.

        Raises:
            UnclearUse: another wildcard import may bring it as well.
        """
        modules = [each.module for each in imports_of(source.syntax) if each.form == "all"]
        found = [self.brings(module, source) for module in modules]
        if any(found) and len(found) > 1:
            raise UnclearUse(f"{source.path} has several wildcard imports")
        return any(found)

    def receivers(self, source: CodeFile) -> dict[str, str]:
        """Return the modules that a file imports as a whole, by the names it has for them."""
        if source.path not in self._receivers:
            self._receivers[source.path] = whole_modules(source)
        return self._receivers[source.path]

    def names_own(self, receiver: str) -> bool:
        """Return whether an unknown receiver has the name of the module itself."""
        return receiver.rpartition(".")[2] == stem_of(self._target.source.path)[-1]

    def _files(self, module: str, source: CodeFile) -> list[str]:
        """Return the files that a module name in ``source`` may mean."""
        if source.language == "go":
            parts = parts_of(module, source.language, source.path)
            known = [self._target.source.path, *self._index.find_meant((parts,), source.language)]
            folders = dict.fromkeys(map(dirname, known))
            return [each for each in folders if not each or ends_alike(each.split("/"), parts)]
        return files_meant(module, source, self._index, self._target.source.path)

    def _carried(self, path: str) -> bool:
        """Return whether a file defines the name that was renamed, or passes it on."""
        if self._target.source.language == "go":
            if not path:
                raise UnclearUse("packages of the topmost folder are not known by name")
            return path == dirname(self._target.source.path)
        if path not in self._carries:
            self._carries[path] = False  # it may import itself
            self._carries[path] = self._passes_on(path)
        return self._carries[path]

    def _passes_on(self, path: str) -> bool:
        source, old = self._read(path), self._target.old
        if source is None:
            raise UnclearUse(f"{path} cannot be read")
        sources = [
            each.source.strip("'\"`")
            for each in source.occurrences(old)
            if each.role == "import" and import_form(source.node(each)) == "name"
        ]
        wild = [each.module for each in imports_of(source.syntax) if each.form == "all"]
        if source.language in SCRIPTS:
            wild = _ALL_ON.findall(source.text)
        if any(self.brings(module, source) for module in (*sources, *wild)):
            return True
        defined = {place.path for place in self._index.places(old, source.language)}
        if path in defined or sources:
            return False
        raise UnclearUse(f"{path} may pass {old} on")


def files_meant(module: str, source: CodeFile, index: IndexGeneration, *more: str) -> list[str]:
    """Return the files that a module name in a script or a file of Python may mean.

    Args:
        more: paths of files that the index may not know.
    """
    parts = parts_of(module, source.language, source.path)
    known = [*more, *index.find_meant((parts,), source.language)]
    fit = [path for path in dict.fromkeys(known) if ends_alike(stem_of(path), parts)]
    exact = [path for path in fit if tuple(stem_of(path)) == parts]
    return exact or fit


def whole_modules(source: CodeFile) -> dict[str, str]:
    """Return the modules that a file imports as a whole, by the names it has for them."""
    found = dict[str, str]()
    for each in imports_of(source.syntax):
        if each.form == "alias" or (each.form == "whole" and source.language not in SCRIPTS):
            found |= dict.fromkeys(each.bound, each.module)
        elif each.form == "name" and source.language == "python":  # it may be a module
            dot = "" if each.module.endswith(".") else "."
            names = zip(each.bound, each.names, strict=True)
            found |= {bound: f"{each.module}{dot}{name.split()[0]}" for bound, name in names}
    return found


def import_form(node: Node) -> str:
    """Return what a name is in an import.

    "name": a name of the module. "renamed": such a name that gets another one here. "other":
    something else, such as the module itself or the new name.
    """
    inner, outer = node, node.parent
    if outer is not None and outer.type == "dotted_name":
        inner, outer = outer, outer.parent
    if outer is None:
        return "other"
    if outer.type == "import_from_statement":
        return "name"
    if outer.type in ("aliased_import", "import_specifier", "export_specifier"):
        if outer.child_by_field_name("alias") is None:
            return "name"
        is_from = outer.type != "aliased_import" or _is_from(outer)
        is_name = outer.child_by_field_name("name") == inner
        return "renamed" if is_from and is_name else "other"
    return "other"


def _is_from(aliased: Node) -> bool:
    return aliased.parent is not None and aliased.parent.type == "import_from_statement"


def other_uses(
    target: RenamedDefinition, source: CodeFile, modules: Modules
) -> Iterator[Occurrence]:
    """Yield the uses of a renamed module-level name in another file.

    Raises:
        UnclearUse: an occurrence may or may not be a use.
    """
    places = source.occurrences(target.old)
    if places and source.language not in ("python", "go", *SCRIPTS):
        raise UnclearUse(f"{source.path} may use {target.old}")
    scopes = set[tuple[int, int] | None]()  # in which an import binds the name
    for place in places:
        if place.role == "import":
            form = import_form(source.node(place))
            if form != "other" and modules.brings(place.source.strip("'\"`"), source):
                yield place
                scopes |= {place.scope} if form == "name" else set()
    for place in places:
        receiver = source.receiver(place)
        if receiver is not None:
            is_use = _is_of_module(source, receiver, modules)
        else:
            is_use = _is_imported(target, source, place, scopes, modules)
        if is_use:
            yield place


def _is_imported(
    target: RenamedDefinition,
    source: CodeFile,
    place: Occurrence,
    scopes: set[tuple[int, int] | None],
    modules: Modules,
) -> bool:
    """Return whether a name without a receiver is the renamed one."""
    if place.role in ("import", "member", "field", "keyword"):
        return False
    if place.role == "binding":
        node = source.node(place)
        if place.scope in scopes or is_required(source, node):
            raise UnclearUse(f"{source.path}, line {place.line + 1} binds {target.old} again")
        return False
    if place.scope is not None:
        return place.scope in scopes
    if source.language == "go":
        return dirname(source.path) == dirname(target.source.path)
    if source.language == "python":
        return modules.brings_all(source)
    raise UnclearUse(f"{source.path}, line {place.line + 1} uses {target.old} without an import")


def _is_of_module(source: CodeFile, receiver: Node, modules: Modules) -> bool:
    """Return whether a receiver is the module that defines the renamed name."""
    name = source.syntax.text_of(receiver)
    module = modules.receivers(source).get(name)
    if module is not None:
        return modules.brings(module, source)
    if modules.names_own(name):
        raise UnclearUse(f"{source.path}, line {receiver.start_point.row + 1}: {name} is not known")
    return False


def is_required(source: CodeFile, node: Node) -> bool:
    """Return whether ``require`` binds a name."""
    above: Node | None = node
    while above is not None and above.type != "variable_declarator":
        above = above.parent
    value = above.child_by_field_name("value") if above is not None else None
    return value is not None and source.syntax.text_of(value).startswith("require(")
