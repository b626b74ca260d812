"""Bindings of a name in a text, and the binding that each occurrence of it belongs to.

By syntax tree, for the languages of :data:`LANGUAGES`. Members of classes, structs and object
literals are no variables: no scope binds ``item.price``. Lines and columns are 0-based, columns
count characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tree_sitter import Node

from .syntax import SCRIPTS, Syntax


def _types(text: str) -> frozenset[str]:
    return frozenset(text.split())


Role = Literal["use", "binding", "import", "member", "field", "keyword", "shorthand"]

_SCRIPT = (
    "program function_declaration function_expression generator_function_declaration "
    "arrow_function generator_function method_definition method_signature function_signature "
    "class_declaration "
    "class interface_declaration object_type statement_block for_statement for_in_statement "
    "catch_clause"
)
_SCOPES = {
    "python": "module function_definition lambda class_definition list_comprehension "
    "set_comprehension dictionary_comprehension generator_expression",
    "typescript": _SCRIPT,
    "go": "source_file function_declaration method_declaration func_literal function_type block "
    "for_statement if_statement expression_case type_case communication_case struct_type "
    "interface_type expression_switch_statement type_switch_statement",
    "rust": "source_file mod_item function_item function_signature_item closure_expression block "
    "for_expression if_expression while_expression match_arm struct_item trait_item impl_item",
    "java": "program class_declaration interface_declaration record_declaration enum_declaration "
    "method_declaration constructor_declaration lambda_expression block for_statement "
    "enhanced_for_statement catch_clause try_with_resources_statement switch_rule",
}
#: Node types whose field binds the names in it, as "type.field"; "type." for a child without one.
_BINDS = {
    "python": "parameters. lambda_parameters. typed_parameter. default_parameter.name "
    "typed_default_parameter.name assignment.left for_statement.left for_in_clause.left "
    "as_pattern.alias named_expression.name function_definition.name class_definition.name "
    "case_pattern. splat_pattern. as_pattern.",
    "typescript": "variable_declarator.name required_parameter.pattern optional_parameter.pattern "
    "formal_parameters. function_declaration.name generator_function_declaration.name "
    "class_declaration.name abstract_class_declaration.name interface_declaration.name "
    "type_alias_declaration.name enum_declaration.name for_in_statement.left "
    "catch_clause.parameter arrow_function.parameter function_expression.name",
    "go": "short_var_declaration.left var_spec.name const_spec.name parameter_declaration.name "
    "variadic_parameter_declaration.name function_declaration.name type_spec.name "
    "range_clause.left type_alias.name receive_statement.left type_switch_statement.alias",
    "rust": "let_declaration.pattern parameter.pattern closure_parameters. function_item.name "
    "struct_item.name enum_item.name const_item.name static_item.name type_item.name "
    "trait_item.name mod_item.name for_expression.pattern let_condition.pattern match_pattern.",
    "java": "variable_declarator.name formal_parameter.name class_declaration.name "
    "interface_declaration.name record_declaration.name enum_declaration.name "
    "enhanced_for_statement.name catch_formal_parameter.name lambda_expression.parameters "
    "inferred_parameters. resource.name instanceof_expression.name type_pattern. "
    "record_pattern_component.",
}
_IMPORTS = {
    "python": "import_statement import_from_statement",
    "typescript": "import_statement",
    "go": "import_spec",
    "rust": "use_declaration",
    "java": "import_declaration",
}
#: Nodes between a name and the node that binds it.
_PATTERNS = _types(
    "pattern_list tuple_pattern list_pattern list_splat_pattern dictionary_splat_pattern tuple "
    "list as_pattern_target splat_pattern dotted_name object_pattern array_pattern rest_pattern "
    "pair_pattern assignment_pattern object_assignment_pattern expression_list mut_pattern "
    "ref_pattern reference_pattern tuple_struct_pattern struct_pattern field_pattern "
    "slice_pattern captured_pattern or_pattern union_pattern keyword_pattern"
)
#: The parts of a pattern that bind nothing, as "type.field".
_NO_PATTERN = _types(
    "pair_pattern.key assignment_pattern.right object_assignment_pattern.right "
    "tuple_struct_pattern.type struct_pattern.type"
)
_COMPREHENSIONS = _types(
    "list_comprehension set_comprehension dictionary_comprehension generator_expression"
)
#: Nodes of Go and Rust whose names hold behind them, or behind their value.
_HOLD_BEHIND = _types(
    "let_declaration let_condition short_var_declaration var_spec const_spec range_clause "
    "receive_statement"
)
_HOLD_BEHIND_VALUE = _types("for_expression type_switch_statement")
#: Definitions whose name is bound in the scope around them.
NAMED = _types(
    "function_definition class_definition function_declaration generator_function_declaration "
    "class_declaration interface_declaration enum_declaration record_declaration function_item "
    "struct_item trait_item mod_item"
)
#: Nodes that declare a member by their field "name"; of Java, the declarator in a field.
_FIELDS = _types(
    "public_field_definition field_definition property_signature method_definition "
    "method_signature field_declaration method_declaration method_spec method_elem"
)
_CLASSES = _types(
    "class_definition class_declaration class interface_declaration object_type struct_type "
    "interface_type struct_item trait_item impl_item record_declaration"
)
_FUNCTIONS = _types(
    "function_definition function_declaration method_definition function_item method_declaration "
    "constructor_declaration"
)
_MEMBERS = _types("property_identifier field_identifier")
_SHORTHAND = _types("shorthand_property_identifier shorthand_field_identifier")
_SELF = _types("self this cls")
#: Methods that are called by the name of their class.
CONSTRUCTORS = ("__init__", "__new__", "constructor")

_FAMILY = dict.fromkeys(SCRIPTS, "typescript")
LANGUAGES = frozenset((*_SCOPES, *_FAMILY))


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place where a name stands."""

    line: int
    column: int
    role: Role
    #: Of a binding, an import or a use: the scope of the binding. Of a field: the class that
    #: declares it. Of a member of ``self``: the class around it. Byte offsets; None: not known.
    scope: tuple[int, int] | None
    source: str = ""  # of an import, or of a use that one binds: the module, as written
    function: str = ""  # that has the parameter, or that is called with the keyword


class Bindings:
    """All occurrences of one name in one text."""

    def __init__(self, syntax: Syntax, name: str) -> None:
        self._syntax, self._name = syntax, name
        family = _FAMILY.get(syntax.language, syntax.language)
        self._family = family
        self._scope_types = _types(_SCOPES.get(family, ""))
        self._binds = _types(_BINDS.get(family, ""))
        self._imports = _types(_IMPORTS.get(family, ""))

    @cached_property
    def occurrences(self) -> list[Occurrence]:
        """The occurrences in the order of the text; none within comments and strings."""
        leaves = [leaf for leaf in self._leaves if not self._is_module(leaf)]
        made = [(found, leaf) for leaf in leaves if (found := self._bound(leaf)) is not None]
        bound = [found for found, _ in made]
        known = {
            each.scope: (each, self._first_byte(leaf))
            for each, leaf in reversed(made)
            if each.role != "field"
        }
        places = {(each.line, each.column) for each in bound}
        uses = [self._used(leaf, known) for leaf in leaves]
        uses = [each for each in uses if (each.line, each.column) not in places]
        return sorted([*bound, *uses], key=lambda each: (each.line, each.column))

    def find_unresolved(self) -> Iterator[Occurrence]:
        """Yield the occurrences one by one in the order of the text, uses without their scope."""
        for leaf in self._find_leaves():
            if not self._is_module(leaf):
                yield self._bound(leaf) or self._used(leaf, {})

    def at(self, line: int, column: int | None = None) -> list[Occurrence]:
        """Return the occurrences in a line, or the one at a column."""
        return [
            each for each in self.occurrences if each.line == line and column in (None, each.column)
        ]

    @cached_property
    def _leaves(self) -> list[Node]:
        return list(self._find_leaves())

    def _find_leaves(self) -> Iterator[Node]:
        leaves = self._syntax.leaves_named(self._name)
        return (leaf for leaf in leaves if "identifier" in leaf.type)

    def _occurrence(
        self, leaf: Node, role: Role, scope: Node | None, source: str = "", function: str = ""
    ) -> Occurrence:
        row = leaf.start_point[0]
        start = self._syntax.char_of(leaf.start_byte)
        column = start - (self._syntax.text.rfind("\n", 0, start) + 1)
        span = None if scope is None else (scope.start_byte, scope.end_byte)
        return Occurrence(row, column, role, span, source, function)

    def _bound(self, leaf: Node) -> Occurrence | None:
        """Return the occurrence if it binds or declares the name."""
        statement = self._import_around(leaf)
        if statement is not None:
            source = _source_of(statement) or statement
            text = self._syntax.text_of(source)
            return self._occurrence(leaf, "import", self._scope_of(statement), text)
        declared = self._declared(leaf)
        if declared is not None:
            return self._occurrence(leaf, "field", declared)
        binder = self._binder(leaf)
        if binder is None:
            return None
        scope = self._scope_bound(leaf, binder)
        if scope is not None and self._is_declared_outside(scope):
            return None
        if scope is not None and scope.type in _CLASSES:
            return self._occurrence(leaf, "field", scope)
        is_function = scope is not None and scope.type in _FUNCTIONS
        function = self._syntax.name_of(scope) if is_function else ""
        is_shorthand = leaf.type == "shorthand_field_identifier"  # ``let Size { width } = size``
        role: Role = "shorthand" if is_shorthand else "binding"
        return self._occurrence(leaf, role, scope, function=function)

    def _scope_bound(self, leaf: Node, binder: Node) -> Node | None:
        """Return the scope in which a node binds a name."""
        around = [one for one in _above(leaf) if one.type in self._scope_types]
        if binder.type in NAMED:
            return self._scope_of(binder)
        if binder.type == "named_expression":
            return next((one for one in around if one.type not in _COMPREHENSIONS), None)
        kind = binder.child_by_field_name("kind")
        is_var = binder.parent is not None and binder.parent.type == "variable_declaration"
        if self._family == "typescript" and (is_var or (kind and kind.type == "var")):
            wide = re.compile("function|method|program")
            return next((one for one in around if wide.search(one.type)), None)
        return around[0] if around else None

    def _first_byte(self, leaf: Node) -> int:
        """Return where a binding begins to hold; 0: everywhere in its scope."""
        binder = self._binder(leaf) if self._family in ("go", "rust") else None
        if binder is None or self._scope_bound(leaf, binder) == self._syntax.tree.root_node:
            return 0
        if binder.type in _HOLD_BEHIND:
            return binder.end_byte
        value = binder.child_by_field_name("value")
        return value.end_byte if value is not None and binder.type in _HOLD_BEHIND_VALUE else 0

    def _is_declared_outside(self, scope: Node) -> bool:
        """Return whether ``global`` or ``nonlocal`` takes the name from an outer scope."""
        return any(self._scope_of(leaf) == scope for leaf in self._outer_names)

    @cached_property
    def _outer_names(self) -> list[Node]:
        """The leaves in Python's ``global`` and ``nonlocal`` statements."""
        text = self._syntax.text
        if self._family != "python" or not ("global" in text or "nonlocal" in text):
            return []
        outside = ("global_statement", "nonlocal_statement")
        return [each for each in self._leaves if each.parent and each.parent.type in outside]

    def _import_around(self, leaf: Node) -> Node | None:
        """Return the import, or the export of another module's names, that a name stands in."""
        for one in _above(leaf):
            if one.type in self._imports or (one.type == "export_statement" and _source_of(one)):
                return one
        return None

    def _is_module(self, leaf: Node) -> bool:
        """Return whether a name is part of the name of an imported module."""
        statement = self._import_around(leaf)
        source = _source_of(statement) if statement is not None else None
        return source is not None and source.start_byte <= leaf.start_byte < source.end_byte

    def _declared(self, leaf: Node) -> Node | None:
        """Return the class that declares a member at ``leaf``."""
        parent = leaf.parent
        if parent is None:
            return None
        if self._family == "python":
            target = parent.parent
            own = parent.type == "attribute" and self._is_own(parent)
            assigned = target is not None and target.type == "assignment"
            left = target.child_by_field_name("left") if target is not None and assigned else None
            return self._class_of(leaf) if own and left == parent else None
        if parent.type == "variable_declarator" and parent.parent is not None:
            return self._class_of(leaf) if parent.parent.type == "field_declaration" else None
        if parent.type in _FIELDS and parent.child_by_field_name("name") == leaf:
            return self._class_of(leaf) or parent
        if parent.type == "field_declaration" and leaf.type == "field_identifier":
            return self._class_of(leaf)  # Go: one of several names
        return None

    def _binder(self, leaf: Node) -> Node | None:
        """Return the node that binds the name at ``leaf``."""
        node = leaf
        while (parent := node.parent) is not None:
            key = f"{parent.type}.{_field(parent, node)}"
            if _reads(parent, node, leaf):
                return None
            if key in self._binds:
                return parent
            if parent.type not in _PATTERNS or key in _NO_PATTERN:
                return None
            node = parent
        return None

    def _used(
        self, leaf: Node, known: dict[tuple[int, int] | None, tuple[Occurrence, int]]
    ) -> Occurrence:
        parent = leaf.parent
        assert parent is not None, "a name is never the whole text"
        if parent.type == "keyword_argument" and parent.child_by_field_name("name") == leaf:
            return self._occurrence(leaf, "keyword", None, function=self._called(parent))
        if leaf.type in _MEMBERS or _is_member(parent, leaf):
            scope = self._class_of(leaf) if self._is_own(parent) else None
            return self._occurrence(leaf, "member", scope)
        role: Role = "shorthand" if leaf.type in _SHORTHAND or _is_shorthand(parent) else "use"
        for scope in self._scopes(leaf):
            span = scope.start_byte, scope.end_byte
            if span in known and known[span][1] <= leaf.start_byte:
                return self._occurrence(leaf, role, scope, known[span][0].source)
        return self._occurrence(leaf, role, None)

    def _scopes(self, leaf: Node) -> Iterator[Node]:
        """Yield the scopes that a use sees, from inside outwards.

        Functions of a Python class do not see its body.
        """
        inner = True
        for node in _above(leaf):
            if node.type not in self._scope_types or _is_outside(node, leaf):
                continue
            if inner or self._family != "python" or node.type not in _CLASSES:
                yield node
            inner = False

    def _scope_of(self, node: Node) -> Node | None:
        return next((one for one in _above(node) if one.type in self._scope_types), None)

    def _class_of(self, node: Node) -> Node | None:
        return next((one for one in _above(node) if one.type in _CLASSES), None)

    def _is_own(self, member: Node) -> bool:
        """Return whether a member is of ``self`` or ``this``."""
        owner = member.child_by_field_name("object") or member.child_by_field_name("value")
        return owner is not None and self._syntax.text_of(owner) in _SELF

    def _called(self, keyword: Node) -> str:
        call = keyword.parent.parent if keyword.parent is not None else None
        callee = call.child_by_field_name("function") if call is not None else None
        return self._syntax.text_of(callee).rpartition(".")[2] if callee is not None else ""


def binds(syntax: Syntax, name: str) -> bool:
    """Return whether a text binds ``name`` for the text that continues it: at its top level."""
    root = syntax.tree.root_node
    whole = root.start_byte, root.end_byte
    return any(
        one.role in ("binding", "import") and one.scope == whole
        for one in Bindings(syntax, name).occurrences
    )


def _above(node: Node) -> Iterator[Node]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _source_of(statement: Node) -> Node | None:
    return statement.child_by_field_name("module_name") or statement.child_by_field_name("source")


def _field(parent: Node, child: Node) -> str:
    for at in range(parent.child_count):
        if parent.child(at) == child:
            return parent.field_name_for_child(at) or ""
    return ""


def _is_outside(scope: Node, leaf: Node) -> bool:
    """Return whether a name is in a part of a node that does not see what the node binds."""
    part = None
    if scope.type in _COMPREHENSIONS:
        first = next((one for one in scope.children if one.type == "for_in_clause"), None)
        part = first.child_by_field_name("right") if first is not None else None
    elif scope.type == "if_expression":
        part = scope.child_by_field_name("alternative")
    return part is not None and part.start_byte <= leaf.start_byte < part.end_byte


def _reads(parent: Node, node: Node, leaf: Node) -> bool:
    """Return whether a child of a node that may bind names is no name bound there."""
    if parent.type == "for_in_statement":  # ``for (x of …)`` of scripts sets a variable
        return parent.child_by_field_name("kind") is None
    if parent.type in ("range_clause", "receive_statement"):
        return all(one.type != ":=" for one in parent.children)
    if parent.type == "dotted_name":
        return parent.named_child_count > 1  # a constant of a module or class
    if parent.type == "keyword_pattern":
        return parent.children[0] == node
    if parent.type == "field_pattern":
        return leaf.type == "field_identifier"
    if parent.type == "as_pattern":  # of ``case``; that of ``with`` has a field
        return node.type != "as_pattern_target" and (
            parent.children[-1] != node or parent.parent is None or "case" not in parent.parent.type
        )
    return parent.type in ("type_pattern", "record_pattern_component") and "type" in leaf.type


def _is_member(parent: Node, leaf: Node) -> bool:
    """Return whether a plain identifier is the name of a member."""
    if parent.type in ("dotted_name", "keyword_pattern"):
        return (parent.children[0] == leaf) == (parent.type == "keyword_pattern")
    if parent.type == "attribute":
        return parent.child_by_field_name("attribute") == leaf
    if parent.type == "field_access":
        return parent.child_by_field_name("field") == leaf
    if parent.type == "method_invocation":
        receiver = parent.child_by_field_name("object")
        return receiver is not None and parent.child_by_field_name("name") == leaf
    element = parent.parent
    return (
        parent.type == "literal_element"
        and element is not None
        and element.type == "keyed_element"
        and element.child_by_field_name("key") == parent
    )


def _is_shorthand(parent: Node) -> bool:
    return parent.type == "shorthand_field_initializer"
