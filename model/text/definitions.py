"""Definitions of a text: functions, types and values, in every language that has a grammar.

The walk over the tree leaves function bodies out, so a file costs a fraction of its parse. Grammars
agree on most names of nodes; the tables below hold the other names. Languages without a grammar are
searched for the usual keywords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from .syntax import Syntax

DefinitionKind = Literal["function", "method", "type", "value"]

MOST = 1_000  # definitions of one file; more is a table, not code
_DEEPEST = 40  # levels: a file of nothing but brackets must not exhaust anything
_LONGEST_NAME = 100  # characters


@dataclass(frozen=True, slots=True)
class Definition:
    """``name`` is defined on the 0-based lines [first, last)."""

    name: str
    kind: DefinitionKind
    first: int
    last: int


_FUNCTIONS = frozenset(
    (
        *("function_definition", "function_declaration", "generator_function_declaration"),
        *("method_definition", "method_declaration", "constructor_declaration", "function_item"),
        *("function_signature", "method_signature", "abstract_method_signature", "method"),
        *("function_signature_item", "singleton_method", "macro_definition", "method_elem"),
        *("preproc_function_def", "delegate_declaration"),
    )
)
_TYPES = frozenset(
    (
        *("class_definition", "class_declaration", "abstract_class_declaration", "class"),
        *("class_specifier", "struct_specifier", "union_specifier", "enum_specifier"),
        *("interface_declaration", "enum_declaration", "record_declaration", "module"),
        *("struct_declaration", "trait_declaration", "annotation_type_declaration"),
        *("object_declaration", "struct_item", "enum_item", "union_item", "trait_item"),
        *("type_spec", "type_alias", "type_alias_declaration", "type_item", "concept_definition"),
        *("type_alias_statement", "type_definition", "alias_declaration"),
    )
)
_VALUES = frozenset(
    (
        *("const_spec", "var_spec", "const_item", "static_item", "preproc_def"),
        *("variable_declarator", "const_element", "assignment", "variable_assignment"),
        *("assignment_statement", "assignment_expression", "property_declaration"),
        *("rule_set", "keyframes_statement", "pair"),
    )
)
_DECLARATIONS = frozenset(("declaration", "field_declaration"))
#: Nodes that define nothing themselves but hold what does; bodies of types among them.
_HOLDERS = frozenset(
    (
        *("program", "source_file", "translation_unit", "compilation_unit", "chunk", "document"),
        *("stylesheet", "ERROR", "decorated_definition", "export_statement", "block", "class_body"),
        *("body_statement", "declaration_list", "field_declaration_list", "interface_body"),
        *("enum_body", "enum_class_body", "enum_declaration_list", "enum_body_declarations"),
        *("namespace_definition", "namespace_declaration", "file_scoped_namespace_declaration"),
        *("internal_module", "ambient_declaration", "statement_block", "template_declaration"),
        *("linkage_specification", "preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif"),
        *("impl_item", "mod_item", "companion_object", "foreign_mod_item", "if_statement"),
        *("try_statement", "const_declaration", "var_declaration", "type_declaration"),
        *("lexical_declaration", "variable_declaration", "expression_statement", "object"),
        *("declaration_command", "media_statement", "global_statement", "declaration"),
        *("interface_type", "object_type", "struct_type", "type_spec_list", "var_spec_list"),
    )
)
#: Their lines belong to what they hold: decorators, ``export``, ``template <…>``.
_WRAPPERS = frozenset(("decorated_definition", "export_statement", "template_declaration"))
#: Nodes whose name is not in a field "name", and where it is.
_NAME_FIELDS = ("name", "declarator", "left", "key", "property")
_WORD = re.compile(r"[^\W\d][\w$]*[?!]?")
_HTML_ID = re.compile(r"""\bid\s*=\s*["']?([^\W\d][\w-]*)""")
_STYLE = re.compile(r"[.#](-?[^\W\d][\w-]*)")
_KEYWORDED = re.compile(
    r"^[ \t]*(?:(?:export|default|pub|async|public|private|protected|internal|static|abstract"
    r"|final|open|override|sealed|case|inline|local)\s+)*"
    r"(?P<keyword>def|defp|defmodule|class|function|fn|func|fun|sub|proc|struct|enum|trait"
    r"|interface|protocol|extension|mixin|object|type|const|val|module)\s+"
    r"(?P<name>[^\W\d]\w{1,99})",
    re.MULTILINE,
)
_KEYWORD_TYPES = frozenset(
    (
        *("class", "struct", "enum", "trait", "interface", "protocol", "extension", "mixin"),
        *("object", "type", "module"),
    )
)


def definitions(syntax: Syntax) -> list[Definition]:
    """Return what the text defines outside of function bodies, from top to bottom."""
    if syntax.language == "html":
        return list(_html_ids(syntax.text))
    found: list[Definition] = []
    # Nodes to look at, each with its depth, whether it is within a type, and the line where its
    # wrapper begins, if it has one.
    waiting: list[tuple[Node, int, bool, int | None]] = [(syntax.tree.root_node, 0, False, None)]
    while waiting and len(found) < MOST:
        node, depth, inside, begins = waiting.pop()
        kind = _kind_of(node)
        if kind is not None:
            found += _defined(syntax, node, kind, inside, begins)
        if depth < _DEEPEST and _holds_more(node, kind):
            begins = _line(node) if node.type in _WRAPPERS and begins is None else None
            inside = inside or (kind == "type" and node.type != "module")
            body = node.child_by_field_name("body") if kind == "type" else None
            held = [body] if body is not None else node.named_children
            waiting += ((child, depth + 1, inside, begins) for child in reversed(held))
    # A name twice on a line is "typedef struct A {…} A".
    return list({(each.name, each.first): each for each in found}.values())


def definitions_by_keyword(text: str) -> list[Definition]:
    """Return the definitions of a text without a grammar; each ends where the next one begins."""
    found = list(_KEYWORDED.finditer(text))[:MOST]
    lines = _lines_of(text, [match.start("name") for match in found])
    total = text.count("\n") + 1
    return [
        Definition(
            match["name"],
            "type" if match["keyword"] in _KEYWORD_TYPES else "function",
            line,
            max(line + 1, following),
        )
        for match, line, following in zip(found, lines, [*lines[1:], total], strict=False)
    ]


def _kind_of(node: Node) -> DefinitionKind | None:
    if node.type in _FUNCTIONS:
        return "function"
    if node.type in _TYPES:
        return "type"
    if node.type in _DECLARATIONS and _declares_function(node):
        return "function"
    return "value" if node.type in _VALUES else None


def _declares_function(node: Node) -> bool:
    """Return whether a declaration of C or C++ is a prototype."""
    inner = node.child_by_field_name("declarator")
    while inner is not None and inner.type != "function_declarator":
        inner = inner.child_by_field_name("declarator")
    return inner is not None


def _holds_more(node: Node, kind: DefinitionKind | None) -> bool:
    if kind == "type":
        return True
    return kind is None and node.type in _HOLDERS


def _defined(
    syntax: Syntax, node: Node, kind: DefinitionKind, inside: bool, begins: int | None
) -> list[Definition]:
    """Return what a node defines: mostly one name, in style sheets one for each selector.

    Of the values within a type only constants count: its fields are shown with it, and their names
    are common.
    """
    first = _line(node) if begins is None else begins
    last = node.end_point.row + (node.end_point.column > 0)
    if node.type == "rule_set":
        selectors = node.named_child(0)
        written = syntax.text_of(selectors) if selectors is not None else ""
        names = list(dict.fromkeys(_STYLE.findall(written)))
    else:
        name = _name(syntax, node)
        names = [name] if name else []
    if kind == "value" and _holds_function(node):
        kind = "function"
    if inside and kind == "function":
        kind = "method"
    elif inside and kind == "value":
        names = [name for name in names if name.isupper()]
    return [Definition(name, kind, first, max(last, first + 1)) for name in names]


def _name(syntax: Syntax, node: Node) -> str:
    """Return the name that a node defines; "" if it defines none, as a destructuring pattern."""
    for field in _NAME_FIELDS:
        named = node.child_by_field_name(field)
        if named is not None:
            break
    else:
        named = _unlabelled_name(node)
    if named is None or (node.type.endswith("_specifier") and not node.child_by_field_name("body")):
        return ""  # such as "struct A" where a variable of that type is declared
    while (inner := named.child_by_field_name("declarator")) is not None:
        named = inner  # C: from pointers, arrays and parameters to the name itself
    if named.type.endswith("_pattern") or named.end_byte - named.start_byte > _LONGEST_NAME:
        return ""
    words = _WORD.findall(syntax.text_of(named).removeprefix("#"))
    return words[-1] if words else ""


def _unlabelled_name(node: Node) -> Node | None:
    """Return the first child that looks like a name, for nodes without a labelled one."""
    for child in node.named_children:
        if child.type in ("variable_list", "variable_declaration"):  # Lua, Kotlin
            return _unlabelled_name(child) or child.child_by_field_name("name")
        if child.type in ("identifier", "name", "type_identifier", "keyframes_name", "constant"):
            return child
        if child.type.endswith("_index_expression"):
            return child
    return None


def _holds_function(node: Node) -> bool:
    """Return whether the value is a function, as in ``const f = () => 1``."""
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if value is None and node.type == "assignment_statement":  # Lua
        values = node.named_child(node.named_child_count - 1)
        value = values.named_child(0) if values is not None else None
    return value is not None and value.type in (
        *("arrow_function", "function_expression", "function_definition", "lambda"),
        "generator_function",
    )


def _html_ids(text: str) -> Iterator[Definition]:
    found = list(_HTML_ID.finditer(text))[:MOST]
    for match, line in zip(found, _lines_of(text, [m.start(1) for m in found]), strict=True):
        yield Definition(match[1], "value", line, line + 1)


def _lines_of(text: str, places: list[int]) -> list[int]:
    """Return the 0-based line of each place; the places ascend."""
    lines, line, counted = [], 0, 0
    for place in places:
        line += text.count("\n", counted, place)
        counted = place
        lines.append(line)
    return lines


def _line(node: Node) -> int:
    return node.start_point.row
