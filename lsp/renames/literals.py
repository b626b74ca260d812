"""Dictionaries that the user writes as calls of a class, or maps as structs: the others follow.

Once the opening of one was rewritten (``{`` to ``Tour(``), so is its rest; once it is whole, so is
each other one whose keys are among its keys.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redraft.model.records import RecentEdit
from redraft.model.rules.alike.repeated_lines import ChangedLine, find_changed_lines, locate_lines
from redraft.model.text.syntax import Syntax, descendants
from tree_sitter import Node

from .code_file import CodeFile, UnclearUse
from .repeated_changes import text_before
from .whole_rename import FileRename, WholeRename, WorkspaceFiles

_LITERALS = {"python": "dictionary", "go": "composite_literal"}
_OPENS = {"python": re.compile(r"[^\W\d][\w.]*(?=\()"), "go": re.compile(r"&?[^\W\d][\w.]*(?=\{)")}
_KEY = re.compile(r"[\"'`]([^\W\d]\w*)[\"'`]")
_TAG = re.compile(r"\w+:\"(\w+)")
_LEAST_KEYS = 2
#: Nodes that need a dictionary.
_NO_PARENTS = frozenset(
    (
        *("attribute", "subscript", "dictionary_splat", "comparison_operator", "binary_operator"),
        *("index_expression", "selector_expression", "range_clause"),
    )
)
#: What makes a class whose fields are the arguments of its calls.
_DECORATORS = re.compile(r"@(?:\w+\.)?(?:dataclass|define|frozen|mutable|attrs?|s)\b")
_BASES = re.compile(r"\((?:\w+\.)?(?:NamedTuple|BaseModel|TypedDict)\)")

Span = tuple[int, int, str]  # text[start:end] and what replaces it


@dataclass(frozen=True)
class _Type:
    """Class or struct by whose name a literal is made."""

    fields: dict[str, str]  # by key
    required: frozenset[str]  # keys


@dataclass(frozen=True)
class _Literal:
    """Dictionary or map with names as keys."""

    node: Node
    start: int  # index into the text
    end: int
    keys: dict[str, tuple[int, int]]  # spans by key; in Python up to the value
    callee: str  # function whose argument it is, "" for none

    def convert_to(self, name: str, fields: dict[str, str], language: str) -> list[Span]:
        """Return the changes that make it a value of a type."""
        if language == "go":
            kind = self.node.child_by_field_name("type")
            assert kind is not None, "a map has a type"
            end = self.start + kind.end_byte - kind.start_byte
            keys = [(*span, fields[key]) for key, span in self.keys.items()]
            return [(self.start, end, name), *keys]
        keys = [(*span, f"{fields[key]}=") for key, span in self.keys.items()]
        close = (self.end - 1, self.end, ")")
        return [(self.start, self.start + 1, f"{name}("), *keys, close]


def opens_literals(lines: Sequence[ChangedLine], language: str) -> bool:
    """Return whether one of some changed lines may have rewritten the opening of a literal."""
    opens = _OPENS.get(language)
    return opens is not None and any("{" in each.old and opens.search(each.new) for each in lines)


def find_literals(
    edits: Sequence[RecentEdit], own: CodeFile, files: WorkspaceFiles
) -> Iterator[WholeRename]:
    """Yield the literals that follow one which the user rewrites, and the rest of that one.

    Args:
        edits: oldest first.
        own: the document that the user is in.
    """
    lines = locate_lines(find_changed_lines(edits, own.path), own.text)
    if not opens_literals(lines, own.language):
        return
    try:
        before = text_before(own, lines)
        known = list(_literals(before.syntax))
        for line in reversed(lines):
            for literal in known:
                if literal.node.start_point.row == line.row:
                    yield from _carried_on(before, own, files, line, literal)
    except UnclearUse:
        return


def _carried_on(
    before: CodeFile, own: CodeFile, files: WorkspaceFiles, line: ChangedLine, literal: _Literal
) -> Iterator[WholeRename]:
    opens = _OPENS[own.language].match(line.new, literal.start - before.start_of(line.row))
    type_ = _type(opens[0], own, files) if opens is not None else None
    if opens is None or type_ is None or not _fits(literal, type_):
        return
    name = opens[0]
    spans = literal.convert_to(name, type_.fields, own.language)
    result = FileRename(before, tuple(spans)).result.split("\n")
    was, rows = before.text.split("\n"), own.text.split("\n")
    first, last = line.row, literal.node.end_point.row
    if rows[first] != result[first]:
        return
    left = list[Span]()
    for row in range(first, last + 1):
        if rows[row] == result[row]:
            continue
        if rows[row] != was[row]:
            return  # the user made something else of it
        start = own.start_of(row)
        left.append((start, start + len(rows[row]), result[row]))
    if left:
        what = f"write the rest of `{name}`"
        yield WholeRename("", "", left[0][0], (_joined(own, left),), what)
        return
    others = [
        each
        for each in _literals(own.syntax)
        if each.keys.keys() <= literal.keys.keys()
        and each.callee == literal.callee
        and _fits(each, type_)
    ]
    row = literal.node.start_point.row
    others.sort(key=lambda each: (each.node.start_point.row < row, each.start))
    for each in others:
        made = _joined(own, each.convert_to(name, type_.fields, own.language))
        what = f"write line {each.node.start_point.row + 1} as `{name}`"
        yield WholeRename("", "", each.start, (made,), what)


def _joined(own: CodeFile, left: Sequence[Span]) -> FileRename:
    """Return changes, from top to bottom, as one."""
    start, end = left[0][0], left[-1][1]
    text, at = "", start
    for low, high, new in left:
        text, at = text + own.text[at:low] + new, high
    return FileRename(own, ((start, end, text),))


def _literals(syntax: Syntax) -> Iterator[_Literal]:
    """Yield the literals of a text that have nothing but names as keys, none within another."""
    end = 0
    for node in descendants(syntax.tree.root_node):
        if node.type == _LITERALS[syntax.language] and node.start_byte >= end:
            found = _literal(syntax, node)
            if found is not None:
                end = node.end_byte
                yield found


def _literal(syntax: Syntax, node: Node) -> _Literal | None:
    parent = node.parent
    if node.has_error or parent is None or parent.type in _NO_PARENTS:
        return None
    if any("string" in each.type for each in _above(node)):
        return None
    body = node
    if syntax.language == "go":
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("body")
        if kind is None or value is None or not syntax.text_of(kind).startswith("map[string]"):
            return None
        body = value
    keys = dict[str, tuple[int, int]]()
    for pair in body.named_children:
        if pair.type == "comment":
            continue
        parts = [each for each in pair.named_children if each.type != "comment"]
        match = _KEY.fullmatch(syntax.text_of(parts[0])) if len(parts) == 2 else None
        if pair.type not in ("pair", "keyed_element") or match is None or match[1] in keys:
            return None
        start, end = syntax.span(parts[0])
        value_at, _ = syntax.span(parts[1])
        if syntax.text[end:value_at].strip() != ":" or keyword.iskeyword(match[1]):
            return None
        keys[match[1]] = start, value_at if syntax.language == "python" else end
    if len(keys) < _LEAST_KEYS:
        return None
    return _Literal(node, *syntax.span(node), keys, _callee(syntax, node))


def _above(node: Node) -> Iterator[Node]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _callee(syntax: Syntax, node: Node) -> str:
    """Return the function whose argument a node is, "" for none."""
    above = node.parent
    if above is not None and above.type == "keyword_argument":
        above = above.parent
    call = above.parent if above is not None and above.type == "argument_list" else None
    function = call.child_by_field_name("function") if call is not None else None
    return syntax.text_of(function) if function is not None else ""


def _fits(literal: _Literal, type_: _Type) -> bool:
    return type_.required <= literal.keys.keys() <= type_.fields.keys()


def _type(name: str, own: CodeFile, files: WorkspaceFiles) -> _Type | None:
    """Return the only class or struct of a name, None if there is none."""
    bare = name.lstrip("&").rpartition(".")[2]
    others = {each.path for each in files.index.places(bare, own.language)} - {own.path}
    sources = [own, *(each for path in others if (each := files.source(path)) is not None)]
    found = [type_ for each in sources for type_ in _types(each.syntax, bare)]
    return found[0] if len(found) == 1 else None


def _types(syntax: Syntax, name: str) -> Iterator[_Type]:
    kinds = {"python": "class_definition", "go": "type_spec"}
    for node in descendants(syntax.tree.root_node):
        if node.type in kinds.values() and syntax.name_of(node) == name:
            found = (_class if syntax.language == "python" else _struct)(syntax, node)
            if found is not None:
                yield found


def _class(syntax: Syntax, node: Node) -> _Type | None:
    """Return a class whose fields are its arguments: a dataclass or the like."""
    body, bases = (node.child_by_field_name(each) for each in ("body", "superclasses"))
    above = node.parent
    if bases is not None and not _BASES.fullmatch(syntax.text_of(bases)):
        return None
    if body is None or above is None or (bases is None and not _is_decorated(syntax, above)):
        return None
    fields, required = dict[str, str](), set[str]()
    for statement in body.named_children:
        field = statement.named_children[0] if statement.named_child_count else statement
        left = field.child_by_field_name("left") if field.type == "assignment" else None
        if left is not None and field.child_by_field_name("type") is not None:
            key = syntax.text_of(left)
            fields[key] = key
            if field.child_by_field_name("right") is None:
                required.add(key)
    return _Type(fields, frozenset(required)) if fields else None


def _is_decorated(syntax: Syntax, node: Node) -> bool:
    head = syntax.text_of(node).partition("class ")[0]
    return node.type == "decorated_definition" and _DECORATORS.search(head) is not None


def _struct(syntax: Syntax, node: Node) -> _Type | None:
    kind = node.child_by_field_name("type")
    if kind is None or kind.type != "struct_type":
        return None
    fields = dict[str, str]()
    for field in descendants(kind):
        if field.type != "field_declaration":
            continue
        tag = _TAG.search(syntax.text_of(field).partition("`")[2])
        for named in field.children_by_field_name("name"):
            name = syntax.text_of(named)
            fields[name[0].lower() + name[1:] if tag is None else tag[1]] = name
    return _Type(fields, frozenset()) if fields else None
