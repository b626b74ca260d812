"""Code of one shape: two pieces that differ in some parts, and the pieces that are like them.

``print(a)`` and ``print(b)`` have the shape ``print(…)``. What differs may be an argument, an
operand or an index; a function that is called, and the object whose member it is, must be the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ...text.syntax import Syntax

#: Nodes that may change as a whole, of all grammars.
UNITS = frozenset(
    (
        *("call", "call_expression", "new_expression", "method_invocation"),
        *("object_creation_expression", "macro_invocation", "subscript", "subscript_expression"),
        *("index_expression", "array_access", "attribute", "member_expression"),
        *("selector_expression", "field_expression", "field_access", "binary_expression"),
        *("binary_operator", "comparison_operator", "boolean_operator", "not_operator"),
        *("unary_expression", "unary_operator", "ternary_expression", "conditional_expression"),
        *("await", "await_expression", "expression_statement", "return_statement"),
        *("assert_statement", "raise_statement", "throw_statement", "delete_statement"),
        *("assignment", "assignment_statement", "assignment_expression", "augmented_assignment"),
        *("lexical_declaration", "variable_declaration", "local_variable_declaration"),
        *("let_declaration", "short_var_declaration", "go_statement", "defer_statement"),
    )
)
#: Fields that hold a name or what it belongs to, and those of what is called or subscripted.
_FIXED = frozenset(
    (
        *("name", "attribute", "property", "field", "function", "constructor", "macro", "object"),
        *("operator", "operators", "type", "key", "kind", "body", "alternative", "array"),
        *("type_arguments", "parameters", "arguments", "label", "alias"),
    )
)
_RECEIVERS = frozenset(
    (
        *("subscript.value", "field_expression.value", "index_expression.operand"),
        *("selector_expression.operand", "scoped_identifier.path"),
    )
)
_MEMBERS = frozenset(("attribute", "property", "field"))
#: Endings of nodes that are no single values.
_NO_VALUE = (
    *("_list", "_statement", "_declaration", "_declarator", "_clause", "_block", "_content"),
    *("_fragment", "_sequence", "_start", "_end", "_splat", "_element", "_argument", "_pair"),
    *("arguments", "block", "pair", "comment", "body", "token_tree", "type"),
)
_NAME = re.compile(r"[^\W\d]\w*")
ANY = "any value"
_TELLING = 3  # letters of a name by which a shape is recognised


@dataclass(frozen=True, slots=True)
class Shape:
    """Piece of code, some parts of which may differ."""

    type: str  # of the node; of a part that may differ: of the literal that it must be, or ANY
    text: str = ""  # of code that never differs
    parts: tuple[Shape, ...] = ()
    gaps: tuple[str, ...] = ()  # before each part, and behind the last one
    hole: int | None = None  # the number of a part that may differ; ~number: within its quotes

    @property
    def holes(self) -> Iterator[int]:
        """Yield the numbers of the parts that may differ, in the order of the text."""
        if self.hole is not None:
            yield self.hole
        for part in self.parts:
            yield from part.holes

    def fill(self, parts: dict[int, str]) -> str:
        """Return the code with the parts that differ filled in."""
        if self.hole is not None:
            return parts[self.hole]
        if not self.parts:
            return self.text
        inner = zip(self.gaps, (part.fill(parts) for part in self.parts), strict=False)
        return "".join(gap + text for gap, text in inner) + self.gaps[-1]


def shapes_of(
    before: Syntax, old: tuple[Node, Node], after: Syntax, new: tuple[Node, Node]
) -> tuple[Shape, Shape] | None:
    """Return the shape of two pieces of code, and that of what became of them.

    None if they have none in common, or if a part that differs was dropped or doubled.
    """
    holes: dict[tuple[str, str], int] = {}
    shape = _common(before, *old, holes, old[0])
    if shape is None:
        return None
    made = _common(after, *new, holes, None)
    if made is None or sorted(shape.holes) != sorted(map(_whole, made.holes)):
        return None
    return shape, made


def parts_like(syntax: Syntax, shape: Shape, node: Node) -> dict[int, str] | None:
    """Return the parts of a node that may differ, by number; None if its shape is another."""
    found: dict[int, str] = {}
    return found if _fits(syntax, shape, node, found) else None


def find_fixed_leaves(shape: Shape, node: Node) -> Iterator[Node]:
    """Yield the leaves of a node that never differ in its shape, in the order of the text."""
    if shape.hole is not None:
        return
    if shape.parts:
        for part, child in zip(shape.parts, node.children, strict=True):
            yield from find_fixed_leaves(part, child)
    else:
        yield from leaves(node)


def leaves(node: Node) -> Iterator[Node]:
    """Yield the leaves of a node in the order of the text."""
    if not node.child_count:
        yield node
    for child in node.children:
        yield from leaves(child)


def find_telling_name(syntax: Syntax, shape: Shape, node: Node) -> str:
    """Return the longest name that never differs in a shape, "" if all are short."""
    texts = (syntax.text_of(leaf) for leaf in find_fixed_leaves(shape, node) if _is_name(leaf))
    longest = max(texts, key=len, default="")
    return longest if len(longest) >= _TELLING else ""


def is_called(node: Node) -> bool:
    """Return whether a node is what a call calls."""
    return _field(node) in ("function", "constructor", "macro")


def is_target(node: Node) -> bool:
    """Return whether something is assigned to a node, or deletes it."""
    inner, outer = node, node.parent
    while outer is not None and outer.type in ("pattern_list", "expression_list", "tuple_pattern"):
        inner, outer = outer, outer.parent
    if outer is None:
        return False
    is_left = "assignment" in outer.type and _field(inner) == "left"
    return is_left or outer.type in ("delete_statement", "update_expression", "inc_statement")


def content_of(syntax: Syntax, node: Node) -> str:
    """Return what a plain string has between its quotes if that is a name, else ""."""
    text = syntax.text_of(node)
    is_name = "string" in node.type and _NAME.fullmatch(text[1:-1]) is not None
    return text[1:-1] if is_name and text[0] == text[-1] and text[0] in "\"'`" else ""


def _whole(hole: int) -> int:
    return hole if hole >= 0 else ~hole


def _is_name(leaf: Node) -> bool:
    return "identifier" in leaf.type


def _field(node: Node) -> str:
    parent = node.parent
    if parent is None:
        return ""
    at = next((i for i in range(parent.child_count) if parent.child(i) == node), 0)
    return parent.field_name_for_child(at) or ""


def literal_of(node: Node) -> str:
    """Return the type of a node that is a string or a number, else ""."""
    is_literal = any(word in node.type for word in ("string", "literal", "integer", "float"))
    return node.type if is_literal or node.type == "number" else ""


def _may_differ(node: Node, unit: Node | None) -> bool:
    """Return whether a part of a unit may be another one elsewhere."""
    parent = node.parent
    if unit is None or parent is None or node == unit or not node.is_named:
        return False
    field = _field(node)
    if field in _MEMBERS and parent == unit:  # ``config.host`` became ``config["host"]``
        return not is_called(unit)
    is_fixed = field in _FIXED or f"{parent.type}.{field}" in _RECEIVERS
    return not (is_fixed or node.has_error or node.type.endswith(_NO_VALUE))


def is_part(node: Node, unit: Node, *, is_wide: bool) -> bool:
    """Return whether a part of a unit that an edit left as it was may be another one elsewhere.

    Args:
        is_wide: so may the object of a member that is called.
    """
    parent, field = node.parent, _field(node)
    if parent is None or not node.is_named or node.has_error or node.type.endswith(_NO_VALUE):
        return False
    if field in _MEMBERS:
        return not is_called(parent)
    if field == "object" or f"{parent.type}.{field}" in _RECEIVERS:
        return is_wide or not (is_called(parent) or parent == unit)
    return field not in _FIXED


def pieces_between(syntax: Syntax, node: Node) -> tuple[str, ...]:
    """Return the texts before, between and behind the children of a node."""
    start, end = syntax.span(node)
    found = list[str]()
    for child in node.children:
        first, last = syntax.span(child)
        found.append(syntax.text[start:first])
        start = last
    return (*found, syntax.text[start:end])


def _common(
    syntax: Syntax, one: Node, two: Node, holes: dict[tuple[str, str], int], unit: Node | None
) -> Shape | None:
    """Return the shape of two nodes, None if they have none in common.

    Args:
        holes: the parts that differ, by their texts in both; new ones are added within ``unit``.
        unit: that holds ``one``; None: no parts may differ but those that are known.
    """
    texts = syntax.text_of(one), syntax.text_of(two)
    if one.type == two.type and texts[0] == texts[1]:
        return Shape(one.type, texts[0])
    if unit is None and texts in holes:
        return Shape("", hole=holes[texts])
    if one.parent is not None and _may_differ(one, unit) and not two.type.endswith(_NO_VALUE):
        number = holes.setdefault(texts, len(holes))
        inner = content_of(syntax, one), content_of(syntax, two)
        if all(inner) and holes.setdefault(inner, ~number) != ~number:
            return None  # a name and a text that are the same
        kind = (one.type == two.type and literal_of(one)) or ANY
        return None if number < 0 else Shape(kind, hole=number)
    gaps = pieces_between(syntax, one)
    if one.type != two.type or not one.child_count or gaps != pieces_between(syntax, two):
        return None
    if one.child_count != two.child_count:
        return None
    parts = [
        _common(syntax, *pair, holes, unit) for pair in zip(one.children, two.children, strict=True)
    ]
    known = tuple(each for each in parts if each is not None)
    return Shape(one.type, parts=known, gaps=gaps) if len(known) == len(parts) else None


def _fits(syntax: Syntax, shape: Shape, node: Node, found: dict[int, str]) -> bool:
    text = syntax.text_of(node)
    if shape.hole is not None:
        is_value = node.is_named and not node.has_error and not node.type.endswith(_NO_VALUE)
        if shape.type and not (is_value and shape.type in (ANY, node.type)):
            return False
        content = content_of(syntax, node)
        if content:
            found[~shape.hole] = content
        return found.setdefault(shape.hole, text) == text
    if node.type != shape.type:
        return False
    if not shape.parts:
        return text == shape.text
    return (
        node.child_count == len(shape.parts)
        and pieces_between(syntax, node) == shape.gaps
        and all(
            _fits(syntax, part, child, found)
            for part, child in zip(shape.parts, node.children, strict=True)
        )
    )
