"""Literals that became a constant: the other places of the same literal in its scope.

The user has just defined the constant and put its name in place of the literal once. Python,
JavaScript, TypeScript, Go, and strings of Rust.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from redraft.model.records import RecentEdit
from redraft.model.rules.example import written_lines
from redraft.model.rules.repeated_lines import ChangedLine, changed_lines, located
from redraft.model.rules.shapes import literal_of
from redraft.model.text.scopes import Occurrence
from redraft.model.text.syntax import SCRIPTS
from tree_sitter import Node

from .code_file import CodeFile, UnclearUse
from .repeats import changed_nodes, text_before
from .whole_rename import FileRename, WholeRename

_DEFINITIONS = ("assignment", "variable_declarator", "const_spec", "const_item")
_LEAST_LETTERS = 4  # of a string
_LEAST_DIGITS = 2  # of a number, without zeros at its ends: 100 and 0.5 stand everywhere
#: Nodes in which only a literal may stand, or a name means something else.
_LITERAL_ONLY = re.compile(
    r"import|pattern|type|annotation|token_tree|attribute_item|jsx_attribute"
    r"|concatenated_string|interpolation|template|field_declaration|property_signature|enum"
)


def find_constants(edits: Sequence[RecentEdit], own: CodeFile) -> Iterator[WholeRename]:
    """Yield the literals that become a constant at their other places, the newest first.

    Args:
        edits: oldest first.
        own: the document that the user is in.
    """
    lines = located(changed_lines(edits, own.path), own.text)
    written, done, before = written_lines(edits), set[str](), text_before(own, lines)
    for line in reversed(lines):
        try:
            found = _replaced(before, own, line) if constant_in(line) else None
            name = found[1] if found is not None else ""
            if found is None or name in done:
                continue
            done.add(name)
            offered = _constant(own, lines, *found, written)
        except UnclearUse:
            continue
        if offered is not None:
            yield offered


def constant_in(line: ChangedLine) -> bool:
    """Return whether a name may have taken the place of a literal in a changed line."""
    return len(re.findall(r"['\"`\d]", line.old)) > len(re.findall(r"['\"`\d]", line.new))


def _replaced(before: CodeFile, own: CodeFile, line: ChangedLine) -> tuple[str, str] | None:
    """Return the literal that a name took the place of in a line, and the name; None if none."""
    for old, new in changed_nodes(before, own, line):
        if new.type == "identifier" and literal_of(old):
            literal = before.syntax.text_of(old)
            return (literal, own.syntax.text_of(new)) if _is_rare(literal) else None
    return None


def _is_rare(literal: str) -> bool:
    if literal[0].isdigit():
        digits = literal.replace("_", "").replace(".", "").strip("0")
        return len(digits) >= _LEAST_DIGITS
    is_plain = literal[-1] == literal[0] and "${" not in literal
    return is_plain and sum(map(str.isalnum, literal)) >= _LEAST_LETTERS


def _constant(
    own: CodeFile, lines: Sequence[ChangedLine], literal: str, name: str, written: frozenset[str]
) -> WholeRename | None:
    """Return the constant in place of the literal wherever that is certain.

    Raises:
        UnclearUse: it may not be certain anywhere.
    """
    place, end = _definition(own, literal, name, written)
    after = [at for at in _places(own, literal) if at >= end]
    uses = [each.line for each in own.occurrences(name) if each.line > place.line]
    rows = [own.text.count("\n", 0, at) for at in after]
    changed = {line.row for line in lines}
    if any(min(uses) < row < max(uses) or row in changed for row in rows):
        raise UnclearUse(f"a place of {literal} was left as it is")
    offered = FileRename(own, tuple((at, at + len(literal), name) for at in after))
    after_it = replace(own, text=offered.result)
    if after_it.syntax.tree.root_node.has_error:
        raise UnclearUse(f"{own.path} would have errors")
    found = after_it.occurrences(name)
    scope = next(each.scope for each in found if each.role == "binding")
    is_meant = all(each.scope == scope and each.role != "shorthand" for each in found)
    if not is_meant or len(found) != len(own.occurrences(name)) + len(after):
        raise UnclearUse(f"{name} means something else at a place")
    what = f"put `{name}` in place of `{literal}`"
    return WholeRename("", "", own.index(place), (offered,), what) if after else None


def _definition(
    own: CodeFile, literal: str, name: str, written: frozenset[str]
) -> tuple[Occurrence, int]:
    """Return where a constant was just defined as a literal, and where that ends.

    Raises:
        UnclearUse: it was not, or it may change.
    """
    bound = [each for each in own.occurrences(name) if each.role not in ("use", "member")]
    if len(bound) != 1 or bound[0].role != "binding":
        raise UnclearUse(f"{name} is not bound once")
    node: Node | None = own.node(bound[0]).parent
    value = node.child_by_field_name("right") or node.child_by_field_name("value") if node else None
    row = own.text.split("\n")[bound[0].line]
    if node is None or node.type not in _DEFINITIONS or value is None:
        raise UnclearUse(f"{name} is no constant")
    outer = own.syntax.text_of(node.parent) if node.parent is not None else ""
    is_constant = own.language not in SCRIPTS or outer.startswith("const ")
    is_typed = node.child_by_field_name("type") is not None and own.language not in (
        "python",
        "rust",
    )
    is_number = own.language == "rust" and literal[0].isdigit()
    if not is_constant or is_typed or is_number or own.syntax.text_of(value) != literal:
        raise UnclearUse(f"{name} may have another value or type")
    if row.strip() not in written:
        raise UnclearUse(f"{name} was not just defined")
    return bound[0], own.syntax.span(node)[1]


def _places(own: CodeFile, literal: str) -> Iterator[int]:
    """Yield where a literal stands in code as a value."""
    at = own.text.find(literal)
    while at >= 0:
        end = at + len(literal)
        exact = (node for node, *span in own.around(at, end) if span == [at, end])
        node = next((each for each in exact if literal_of(each)), None)
        if node is not None and _is_value(own, node):
            yield at
        at = own.text.find(literal, end)


def _is_value(own: CodeFile, node: Node) -> bool:
    """Return whether a name may stand in place of a literal."""
    above = node.parent
    # A docstring, "use strict", or the module of an export.
    if above is None or above.type in ("expression_statement", "export_statement"):
        return False
    if above.type in ("pair", "keyed_element") and above.child_by_field_name("key") == node:
        return False
    while above is not None:
        of = above.child_by_field_name("value") if above.type == "subscript" else None
        is_type = of is not None and own.syntax.text_of(of).endswith("Literal")
        if is_type or _LITERAL_ONLY.search(above.type):
            return False
        above = above.parent
    return True
