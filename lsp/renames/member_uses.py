"""Uses of a renamed member outside of its class, where the class of the object is written there.

``shop.area`` is a use if ``shop`` has one binding: a parameter of that type, or a new object. In
Python, scripts and Go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import dirname

from redraft.model.text.scopes import Occurrence
from redraft.model.text.syntax import SCRIPTS
from tree_sitter import Node

from .code_file import CodeFile, UnclearUse
from .definition import RenamedDefinition
from .reached_files import Modules, import_form

_TYPE = re.compile(r":?\s*[*&]?\s*([^\W\d]\w*)")
_DECLARATIONS = (
    *("assignment", "variable_declarator", "short_var_declaration", "var_spec"),
    *("typed_parameter", "typed_default_parameter", "required_parameter", "parameter_declaration"),
)


class MemberUses:
    """Uses of one renamed member.

    Args:
        target: the member.
        modules: imports of its class; None for uses in one file alone.
    """

    def __init__(self, target: RenamedDefinition, modules: Modules | None = None) -> None:
        self._target, self._modules = target, modules

    def others(self, source: CodeFile) -> Iterator[Occurrence]:
        """Yield the uses in another file.

        Raises:
            UnclearUse: a place may or may not be one.
        """
        for place in source.occurrences(self._target.old):
            is_taken_apart = source.node(place).type.startswith("shorthand")  # ``{ area } = shop``
            if not is_taken_apart and place.role not in ("member", "field", "keyword"):
                continue
            if self.has(source, place):
                yield place
            elif not is_of_unknown(source, place):
                raise UnclearUse(f"{source.path} may use the member {self._target.old}")

    def has(self, source: CodeFile, place: Occurrence) -> bool:
        """Return whether an occurrence outside of the class is the member for certain."""
        if place.role == "member":
            name = _class_at(source, place)
        elif place.role == "keyword" and _is_data_class(self._target):
            name = place.function
        else:
            return False
        return bool(name) and self._is_class(source, name)

    def _is_class(self, source: CodeFile, name: str) -> bool:
        """Return whether a name of a file is that of the member's class."""
        target = self._target
        places = [each for each in source.occurrences(name) if each.role in ("binding", "import")]
        if name != class_name(target.source, target.scope) or len(places) > 1:
            return False
        if source.path == target.source.path:
            return len(places) == 1 and places[0].role == "binding"
        if not places:
            return source.language == "go" and dirname(source.path) == dirname(target.source.path)
        (place,) = places
        is_named = place.role == "import" and import_form(source.node(place)) == "name"
        module = place.source.strip("'\"`")
        return is_named and self._modules is not None and self._modules.brings(module, source)


def is_of_unknown(source: CodeFile, place: Occurrence) -> bool:
    """Return whether a use may be left to the model: the class of an object is not always known.

    In languages whose classes are never known nearly all uses would be left.
    """
    return place.role == "member" and source.language in ("python", "go", *SCRIPTS)


def class_place(target: RenamedDefinition) -> Occurrence | None:
    """Return where the class of a member gets its name, None if it is not at the top level."""
    source = target.source
    places = source.occurrences(class_name(source, target.scope) or "?")
    return next((each for each in places if each.role == "binding"), None)


def class_name(source: CodeFile, scope: tuple[int, int]) -> str:
    """Return the name of the class, interface or struct that is a scope, "" without one."""
    return source.syntax.name_of(_class(source, scope))


def _class(source: CodeFile, scope: tuple[int, int]) -> Node | None:
    node = source.syntax.tree.root_node.descendant_for_byte_range(*scope)
    if node is not None and node.type in ("struct_type", "interface_body", "object_type"):
        node = node.parent
    is_class = node is not None and (node.type.startswith(("class", "interface")))
    return node if node is not None and (is_class or node.type == "type_spec") else None


def _is_data_class(target: RenamedDefinition) -> bool:
    """Return whether keywords of the constructor are the members of a class of Python."""
    node = _class(target.source, target.scope)
    above = node.parent if node is not None else None
    if above is None or above.type != "decorated_definition":
        return False
    return (
        re.match(r"@(?:dataclasses\.)?dataclass\b", target.source.syntax.text_of(above)) is not None
    )


def _class_at(source: CodeFile, place: Occurrence) -> str:
    """Return the name of the class that a member's object has for certain, "" if unclear."""
    receiver = source.receiver(place)
    if receiver is None:  # ``Shop{area: 1}``
        above = source.node(place).parent
        while above is not None and above.type in ("literal_element", "keyed_element"):
            above = above.parent
        made = above.parent if above is not None and above.type == "literal_value" else None
        return _made(source, made) if made is not None else ""
    if receiver.type != "identifier":
        return _made(source, receiver)
    name, at = source.syntax.text_of(receiver), receiver.start_byte
    places = source.occurrences(name)
    here = next((each for each in places if source.byte(each) == at), None)
    scope = here.scope if here is not None else None
    bound = [each for each in places if each.scope == scope and each.role == "binding"]
    if here is None or scope is None or len(bound) != 1:
        return ""
    node: Node | None = source.node(bound[0])
    while node is not None and node.type not in _DECLARATIONS:
        node = node.parent if "identifier" in node.type or node.type == "expression_list" else None
    return _declared(source, node) if node is not None else ""


def _declared(source: CodeFile, node: Node) -> str:
    """Return the class of the only name that a node declares."""
    syntax, typed = source.syntax, node.child_by_field_name("type")
    if typed is not None:
        found = _TYPE.fullmatch(syntax.text_of(typed))
        return found[1] if found is not None else ""
    value = node.child_by_field_name("right") or node.child_by_field_name("value")
    left = node.child_by_field_name("left") or node.child_by_field_name("name")
    outer = syntax.text_of(node.parent) if node.parent is not None else ""
    is_fixed = not source.language.startswith("javascript") or outer.startswith("const ")
    is_one = left is not None and (left.named_child_count < 2 or left.type != "expression_list")
    return _made(source, value) if value is not None and is_fixed and is_one else ""


def _made(source: CodeFile, node: Node) -> str:
    """Return the name of the class of a new object, "" for anything else."""
    if node.type in ("expression_list", "unary_expression") and node.named_child_count == 1:
        is_address = node.type == "expression_list" or source.syntax.text_of(node).startswith("&")
        return _made(source, node.named_children[0]) if is_address else ""
    field = {"call": "function", "new_expression": "constructor", "composite_literal": "type"}
    if node.type not in field or (node.type == "call" and source.language in SCRIPTS):
        return ""
    named = node.child_by_field_name(field[node.type])
    is_name = named is not None and named.type in ("identifier", "type_identifier")
    return source.syntax.text_of(named) if named is not None and is_name else ""
