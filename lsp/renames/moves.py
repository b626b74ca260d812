"""Definitions that the user moved to another file: where they are imported from, in all files.

The old file no longer defines the name, and exactly one other file does. Python and scripts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import dirname, join
from typing import TypeAlias

from redraft.model.edits.edit import Edit
from redraft.model.rules.import_places import kind_of
from redraft.model.rules.imports import addition
from redraft.model.rules.rule_edits import RuleEdit
from redraft.model.text.code_queries import Import, imports_of
from redraft.model.text.imported_files import find_imported_modules, module_of, stem_of
from redraft.model.text.scopes import Occurrence
from redraft.model.text.syntax import SCRIPTS
from tree_sitter import Node

from .code_file import CodeFile, UnclearUse
from .reached_files import files_meant, import_form, is_required, whole_modules
from .removed_definitions import plain_lines
from .whole_rename import MOST_FILES, FileRename, WholeRename, WorkspaceFiles, find_mentioning

_STATEMENTS = ("import_from_statement", "import_statement", "export_statement")
#: Lines of each definition that was removed, by its name.
RemovedDefinitions: TypeAlias = Mapping[str, frozenset[str]]
_Span = tuple[int, int, str]  # what of a text becomes what


def find_moves(
    removed: Mapping[str, RemovedDefinitions], own: CodeFile, files: WorkspaceFiles
) -> Iterator[WholeRename]:
    """Yield the changes of imports that follow from definitions moved between two files.

    Args:
        removed: what the user removed, by the path of an open file.
        own: the document that the user is in, which must be one of the two files.
    """
    for path, names in removed.items():
        left = files.opened.get(path)
        homes = dict[str, list[str]]()
        if left is None:
            continue
        for name, lines in names.items():
            home = _home(name, left, files)
            found = files.source(home) if home else None
            # Another function of the same name shares few lines.
            if found is not None and 2 * len(lines & plain_lines(found.text)) > len(lines):
                homes.setdefault(home, []).append(name)
        for home, moved in homes.items():
            found = files.source(home)
            if found is None or own.path not in (path, home):
                continue
            try:
                made = _Move(moved, left, found, files).changes()
            except UnclearUse:
                continue
            if made:
                here = own.occurrences(moved[0])
                at = own.index(here[0]) if here else 0
                listed = ", ".join(f"`{name}`" for name in moved)
                is_within = all(each.source.path == home for each in made)
                what = f"import {listed} from `{home}`"
                what = f"import what {listed} needs" if is_within else what
                yield WholeRename("", "", at, made, what, (left, found))


def _home(name: str, left: CodeFile, files: WorkspaceFiles) -> str:
    """Return the path of the only other file that defines a name, "" if that is unclear."""
    if _defines(left, name):
        return ""
    known = files.index.places(name, left.language)
    found = {each.path for each in known if each.kind != "method"} - {*files.opened}
    opened = (each for each in files.opened.values() if each.path != left.path)
    found |= {
        each.path
        for each in opened
        if name in each.text and _is_akin(each, left) and _defines(each, name)
    }
    return found.pop() if len(found) == 1 else ""


def _is_akin(one: CodeFile, other: CodeFile) -> bool:
    return one.language == other.language or {one.language, other.language} <= {*SCRIPTS}


def _defines(source: CodeFile, name: str) -> bool:
    try:
        return _binding(source, name) is not None
    except UnclearUse:
        return False


def _binding(source: CodeFile, name: str) -> Occurrence:
    """Return where a file defines a name at its top level.

    Raises:
        UnclearUse: nowhere.
    """
    for place in source.occurrences(name):
        if place.role == "binding" and place.scope == source.whole:
            return place
    raise UnclearUse(f"{source.path} does not define {name}")


class _Move:
    """Move of definitions from one file to another.

    Args:
        names: of the definitions.
        left: the file that had them.
        home: the file that has them now.
    """

    def __init__(
        self, names: Sequence[str], left: CodeFile, home: CodeFile, files: WorkspaceFiles
    ) -> None:
        self._names, self._left, self._home, self._files = names, left, home, files

    def changes(self) -> tuple[FileRename, ...]:
        """Return the changes of imports, by file.

        Raises:
            UnclearUse: a file may import the names in a way that cannot be changed for certain.
        """
        for name in self._names:
            self._check_home(name)
        sources = {
            source.path: source
            for name in self._names
            for source in find_mentioning(self._left, self._files, name, name)
        }
        made = [FileRename(each, self._of_importer(each)) for each in sources.values()]
        made.append(FileRename(self._left, self._of_left(sources.values())))
        before = [each for each in made if each.source.path == self._home.path]
        made = [*(each for each in made if each not in before), self._of_home(before)]
        changed = tuple(each for each in made if each.spans)
        for each in changed:
            if replace(each.source, text=each.result).syntax.tree.root_node.has_error:
                raise UnclearUse(f"{each.source.path} would have errors")
        if self._left.language == "python":
            self._check_circles({each.source.path: each.result for each in changed})
        return changed

    def _check_home(self, name: str) -> None:
        """Refuse a definition that other files cannot import by its name."""
        node: Node | None = self._home.node(_binding(self._home, name))
        while node is not None and node.type != "export_statement":
            node = node.parent
        text = self._home.syntax.text_of(node) if node is not None else ""
        if self._home.language in SCRIPTS and (not text or text.startswith("export default")):
            raise UnclearUse(f"{self._home.path} does not export {name}")
        if f'"{name}"' in self._left.text or f"'{name}'" in self._left.text:
            raise UnclearUse(f"{self._left.path} has {name} in a string, as __all__ does")

    def _check_circles(self, changed: Mapping[str, str]) -> None:
        """Refuse imports of the new file by files that it imports itself, over others too.

        Args:
            changed: the new texts of files, by path.
        """
        seen, waiting = {self._home.path}, [self._home.path]
        while waiting:
            source = self._files.source(waiting.pop())
            if source is None:
                continue
            text = changed.get(source.path, source.text)
            modules = find_imported_modules(text, source.language, source.path)
            more = {*self._files.index.find_meant(modules, source.language)} - seen
            seen |= more
            waiting += more
            if len(seen) > MOST_FILES:
                raise UnclearUse("the new file imports too many others")
        circle = seen.intersection(changed) - {self._home.path}
        if circle:
            raise UnclearUse(f"{self._home.path} imports {circle.pop()} itself")

    # --- the file that had the definitions -------------------------------------------------------

    def _of_left(self, importers: Iterable[CodeFile]) -> tuple[_Span, ...]:
        """Return the import of the names that the old file still uses.

        Args:
            importers: files that mention the names.
        """
        left, used = self._left, list[str]()
        for name in self._names:
            places = [each for each in left.occurrences(name) if left.receiver(each) is None]
            roles = {each.role for each in places if each.scope in (None, left.whole)}
            if "import" not in roles and roles & {"use", "shorthand"}:
                used.append(name)
        if not used:
            return ()
        module = self._module_for_left(importers)
        if not module:
            raise UnclearUse(f"{left.path} cannot import {self._home.path}")
        wanted = Import(module, (", ".join(used),), "name")
        lines = left.text.split("\n")
        found = addition(wanted, imports_of(left.syntax), lines, left.syntax)
        if found is None:
            raise UnclearUse(f"{left.path} has imports of an odd form")
        edit = RuleEdit(*found, "", 1.0).in_text(left.text)
        return ((edit.start, edit.end, edit.new),)

    def _module_for_left(self, importers: Iterable[CodeFile]) -> str:
        """Return the module of the new file, as the old one writes the modules that it imports.

        Where it imports none of the workspace, files that import the old one in full show how.
        """
        left, home, own = self._left, self._home.path, dirname(self._left.path)
        for each in imports_of(left.syntax):
            if kind_of(each.module, left.language) <= 0:
                continue  # of the standard library, whatever files are called
            known = files_meant(each.module, left, self._files.index, home)
            found = self._module(home, each.module, known[0], left) if len(known) == 1 else ""
            if found:
                return found
        if left.language != "python":
            return self._module(home, "./x", join(own, "x.ts"), left)
        if self._is_package(own):
            return self._module(home, ".x", join(own, "x.py"), left)
        for source in importers:
            for each in imports_of(source.syntax) if source.path != left.path else ():
                is_whole = not each.module.startswith(".") and "." in each.module
                if is_whole and self._meant(each.module, source) == left.path:
                    found = self._module(home, each.module, left.path, left)
                    if found:
                        return found
        if own == dirname(home) and stem_of(home)[-1] not in sys.stdlib_module_names:
            return stem_of(home)[-1]
        raise UnclearUse(f"{left.path} imports nothing that shows how")

    # --- the file that has them now ---------------------------------------------------------------

    def _of_home(self, before: Sequence[FileRename]) -> FileRename:
        """Return the new file with the imports of the old one that the definitions need there.

        Args:
            before: the change of the new file without these imports, if there is one.
        """
        home, left = self._home, self._left
        now = replace(home, text=before[0].result) if before else home
        is_near = dirname(home.path) == dirname(left.path)
        bodies = [self._body(now, name) for name in self._names]
        for each in imports_of(left.syntax):
            if each.form not in ("name", "whole", "alias") or each.is_type:
                continue
            for written, bound in zip(each.names, each.bound, strict=True):
                is_free = any(
                    place.scope is None
                    and place.role in ("use", "shorthand")
                    and now.receiver(place) is None
                    and any(now.lies_in(place, body) for body in bodies)
                    for place in now.occurrences(bound)
                )
                if not is_free or (each.module.startswith(".") and not is_near):
                    continue
                wanted = Import(each.module, (written,), each.form)
                lines = now.text.split("\n")
                found = addition(wanted, imports_of(now.syntax), lines, now.syntax)
                if found is not None:
                    now = replace(now, text=RuleEdit(*found, "", 1.0).in_text(now.text).result)
                    bodies = [self._body(now, name) for name in self._names]
        edit = Edit(home.text, 0, len(home.text), now.text).least()
        is_same = now.text == home.text
        return FileRename(home, () if is_same else ((edit.start, edit.end, edit.new),))

    @staticmethod
    def _body(source: CodeFile, name: str) -> tuple[int, int]:
        """Return the bytes of the statement that defines a name."""
        node = source.node(_binding(source, name))
        while node.parent is not None and node.parent.parent is not None:
            node = node.parent
        return node.start_byte, node.end_byte

    # --- files that import them ------------------------------------------------------------------

    def _of_importer(self, source: CodeFile) -> tuple[_Span, ...]:
        statements = dict[int, tuple[Node, list[Node]]]()
        received, imports = whole_modules(source), imports_of(source.syntax)
        for name in self._names:
            for place in source.occurrences(name):
                receiver = source.receiver(place)
                if receiver is not None:
                    module = received.get(source.syntax.text_of(receiver))
                    self._refuse_left(source, [module] if module else [])
                elif place.role == "import":
                    found = self._specifier(source, place, name)
                    if found is not None:
                        statement, specifier = found
                        known = statements.setdefault(statement.start_byte, (statement, []))
                        known[1].append(specifier)
                elif place.role == "binding" and is_required(source, source.node(place)):
                    self._refuse_left(source, [one.module for one in imports if name in one.names])
                elif place.scope is None and place.role in ("use", "shorthand"):
                    self._refuse_left(source, [one.module for one in imports if one.form == "all"])
        spans = [
            span
            for statement, specifiers in statements.values()
            for span in self._without(source, statement, specifiers)
        ]
        return tuple(sorted(spans))

    def _refuse_left(self, source: CodeFile, modules: Sequence[str]) -> None:
        if any(self._meant(module, source) == self._left.path for module in modules):
            raise UnclearUse(f"{source.path} imports {self._left.path} as a whole")

    def _meant(self, module: str, source: CodeFile) -> str:
        """Return the path of a module of the workspace, "" if it is none.

        Raises:
            UnclearUse: it may be the old file or another one.
        """
        found = files_meant(module, source, self._files.index, self._left.path, self._home.path)
        if len(found) > 1 and self._left.path in found:
            raise UnclearUse(f"{source.path} imports from {module}, which may be several files")
        return found[0] if found else ""

    def _specifier(
        self, source: CodeFile, place: Occurrence, name: str
    ) -> tuple[Node, Node] | None:
        """Return the statement that imports a name from the old file, and the name's part of it."""
        node = source.node(place)
        path = self._meant(place.source.strip("'\"`"), source)
        if path != self._left.path:
            passing = self._files.source(path) if path not in ("", self._home.path) else None
            if passing is not None and name not in passing.text:
                raise UnclearUse(f"{path} may pass {name} on")
            return None
        form = import_form(node)
        specifier, statement = node, node.parent
        while statement is not None and statement.type not in _STATEMENTS:
            is_part = statement.type not in ("named_imports", "export_clause", "import_clause")
            specifier, statement = (statement if is_part else specifier), statement.parent
        if form == "other" or statement is None:
            raise UnclearUse(f"{source.path} imports {name} in another form")
        return statement, specifier

    def _without(
        self, source: CodeFile, statement: Node, specifiers: Sequence[Node]
    ) -> Iterator[_Span]:
        """Yield the changes that import some names of a statement from the new file."""
        syntax = source.syntax
        start, end = syntax.span(statement)
        module = statement.child_by_field_name("module_name") or statement.child_by_field_name(
            "source"
        )
        parent = specifiers[0].parent
        assert module is not None and parent is not None
        kind = specifiers[0].type if source.language in SCRIPTS else ""
        listed = [
            each
            for each in parent.named_children
            if (each.type == kind if kind else each != module)
        ]
        starts = {each.start_byte for each in specifiers}
        rest = [each.start_byte not in starts for each in listed]
        is_plain = len(specifiers) == len(starts) and "comment" not in str(statement)
        line_end = syntax.text.find("\n", end)
        line_end = line_end if line_end >= 0 else len(syntax.text)
        begin = syntax.text.rfind("\n", 0, start) + 1
        indent = syntax.text[begin:start]
        if not is_plain or indent.strip() or syntax.text[end:line_end].strip(" \t;"):
            raise UnclearUse(f"{source.path} has an import of an odd form")
        text = self._module_text(source, module)
        if not any(rest):
            if source.language in SCRIPTS and _has_default(statement):
                raise UnclearUse(f"{source.path} imports a default as well")
            block = statement.parent
            if source.path == self._home.path:
                if block is None or (block.parent is not None and block.named_child_count == 1):
                    raise UnclearUse(f"an import is all of a block of {source.path}")
                yield begin, min(line_end + 1, len(syntax.text)), ""
            else:
                yield (*syntax.span(module), text)
            return
        spans = [syntax.span(each) for each in listed]
        for at, is_kept in enumerate(rest):
            if is_kept:
                continue
            if any(rest[at:]):
                yield spans[at][0], spans[at + 1][0], ""
            else:
                last = max(i for i, kept in enumerate(rest) if kept)
                yield spans[last][1], spans[-1][1], ""
                break
        if source.path != self._home.path:
            moved = sorted(specifiers, key=lambda each: each.start_byte)
            names = ", ".join(map(syntax.text_of, moved))
            statement_text = self._statement(source, statement, names, text)
            made = line_end, line_end, f"\n{indent}{statement_text}"
            yield (None if indent else self._joined(source, names, text, (start, end))) or made

    def _joined(
        self, source: CodeFile, name: str, module: str, statement: tuple[int, int]
    ) -> _Span | None:
        """Return the change that adds a name to another import of the new file, if there is one."""
        syntax, imports = source.syntax, imports_of(source.syntax)
        wanted = Import(module.strip("'\"`"), (name,), "name")
        same = [one for one in imports if one.form == "name" and one.module == wanted.module]
        if not (name.isidentifier() and len(same) == 1):
            return None
        found = addition(wanted, same, syntax.text.split("\n"), syntax)
        edit = RuleEdit(*found, "", 1.0).in_text(syntax.text) if found is not None else None
        if edit is None or (edit.start < statement[1] and statement[0] < edit.end):
            return None
        return edit.start, edit.end, edit.new

    def _statement(self, source: CodeFile, statement: Node, names: str, module: str) -> str:
        if source.language == "python":
            return f"from {module} import {names}"
        text = source.syntax.text_of(statement)
        begin = text[: text.index("{")].split()
        words = " ".join(word for word in begin if word in ("import", "export", "type"))
        return f"{words} {{ {names} }} from {module}{';' if text.endswith(';') else ''}"

    def _module_text(self, source: CodeFile, module: Node) -> str:
        """Return the new module in place of the old one, with the same quotes."""
        text = source.syntax.text_of(module)
        quote = text[0] if source.language in SCRIPTS else ""
        if source.path == self._home.path:
            return text
        found = self._module(self._home.path, text.strip(quote or None), self._left.path, source)
        if not found:
            raise UnclearUse(f"{source.path} cannot import {self._home.path} in this form")
        return f"{quote}{found}{quote}"

    def _module(self, path: str, module: str, home: str, source: CodeFile) -> str:
        return module_of(path, module, home, source.path, self._is_package)

    def _is_package(self, folder: str) -> bool:
        path = join(folder, "__init__.py")
        return path in self._files.opened or self._files.index.get(path) is not None


def _has_default(statement: Node) -> bool:
    clause = next((each for each in statement.children if each.type == "import_clause"), None)
    return clause is not None and clause.named_child_count > 1
