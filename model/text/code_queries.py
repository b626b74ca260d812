"""Imports and prose of a text, by its syntax tree.

Imports are read in Python, JavaScript, TypeScript, Go, Rust and Java, at the top level of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Literal

from tree_sitter import Node, Query, QueryCursor

from .lines import is_comment
from .syntax import SCRIPTS, Syntax, grammar, parse_cached

#: "name": names of a module; "static": members of a class; "whole": the module itself, or its
#: default export; "alias": the module under another name; "all": every name of the module.
Form = Literal["name", "static", "whole", "alias", "all"]

_SCRIPT = """
(program (import_statement
  (import_clause (identifier) @whole) source: (string) @module) @import)
(program (import_statement
  (import_clause (namespace_import (identifier) @alias)) source: (string) @module) @import)
(program (import_statement
  (import_clause (named_imports (import_specifier) @name)) source: (string) @module) @import)
(program (_ (variable_declarator
  name: [(identifier) @whole (object_pattern (_) @name)]
  value: (call_expression
    function: (identifier) @function arguments: (arguments . (string) @module)))) @import)
"""
_IMPORTS = dict.fromkeys(SCRIPTS, _SCRIPT) | {
    "python": """
(module (import_statement name: (dotted_name) @module @whole) @import)
(module (import_statement
  name: (aliased_import name: (_) @module alias: (_) @alias)) @import)
(module (import_from_statement module_name: (_) @module name: (_) @name) @import)
(module (import_from_statement module_name: (_) @module (wildcard_import) @all) @import)
(module (future_import_statement "__future__" @module name: (_) @name) @import)
""",
    "go": "(import_spec path: (_) @module @whole) @import",
    "rust": """
(source_file (use_declaration . argument:
  (scoped_identifier path: (_) @module name: (_) @name)) @import)
(source_file (use_declaration . argument:
  (scoped_use_list path: (_) @module list: (use_list (_) @name))) @import)
(source_file (use_declaration . argument: (use_wildcard (_) @module) @all) @import)
""",
    "java": """
(program (import_declaration
  . (scoped_identifier scope: (_) @module name: (_) @name) . ";") @import)
(program (import_declaration . (_) @module (asterisk) @all) @import)
""",
}
IMPORT_LANGUAGES = frozenset(_IMPORTS)
#: Characters of a text whose tree is built to find prose; a longer one would take over 50 ms.
_PARSED_CHARS = 100_000


_Match = tuple[Node, Node, Form, Node]  # the statement, its module, the form, and one name


@dataclass(frozen=True, slots=True)
class Import:
    """Names that one statement imports from one module.

    ``import React, { useState } from "react"`` is two of them.
    """

    module: str  # without quotes
    names: tuple[str, ...]  # as the statement writes them: "a", "a as b"
    form: Form
    is_type: bool = False  # it imports types only
    first: int = -1  # 0-based line of the statement
    last: int = -1  # behind its last line
    spans: tuple[tuple[int, int], ...] = ()  # text[start:end] of each name

    @property
    def bound(self) -> tuple[str, ...]:
        """Return the names by which the text knows them."""
        return tuple(name.split()[-1] for name in self.names)


def imports_of(syntax: Syntax) -> list[Import]:
    """Return the imports at the top level of a text, in order, without those handed on."""
    source = _IMPORTS.get(syntax.language)
    if source is None:
        return []
    matches = QueryCursor(_query(syntax.language, source)).matches(syntax.tree.root_node)
    found: list[_Match] = [
        (match["import"][0], match["module"][0], form, match[form][0])
        for _, match in matches
        if _is_import(syntax, match)
        for form in ("name", "whole", "alias", "all")
        if form in match
    ]
    found.sort(key=lambda one: (one[0].start_byte, one[1].start_byte, one[3].start_byte))
    statements = groupby(found, key=lambda one: (one[0].start_byte, one[1].start_byte, one[2]))
    return [_import(syntax, *key[2:], list(group)) for key, group in statements]


def _is_import(syntax: Syntax, match: dict[str, list[Node]]) -> bool:
    """Return whether a call, if a match has one, is that of ``require``.

    A predicate of the query would read ``Node.text``, which ends the process where a text was
    read in pieces.
    """
    return all(syntax.text_of(node) == "require" for node in match.get("function", ()))


def _import(syntax: Syntax, form: Form, matches: list[tuple[Node, Node, Form, Node]]) -> Import:
    statement, source, *_ = matches[0]
    module = syntax.text_of(source).strip("'\"`")
    spans = tuple(syntax.span(name) for *_, name in matches)
    names = tuple(syntax.text[start:end] for start, end in spans)
    if syntax.language == "go":
        alias = statement.child_by_field_name("name")
        names = (syntax.text_of(alias) if alias else module.rpartition("/")[2],)
    elif form == "all":
        names = ("*",)
    first, last = statement.start_point.row, statement.end_point.row + 1
    text = syntax.text_of(statement)
    if text.startswith("import static "):
        form = "static"
    is_type = text.startswith("import type ")
    return Import(module, names, form, is_type, first, last, spans)


def prose_rows(text: str, language: str) -> set[int]:
    """Return the 0-based lines that are comments or docstrings.

    Docstrings of long texts, and of languages without a grammar, are not recognised.
    """
    syntax = parse_cached(text, language) if len(text) <= _PARSED_CHARS else None
    if syntax is None:
        return {row for row, line in enumerate(text.split("\n")) if is_comment(line, language)}
    return {row for node in _prose(syntax) for row in _rows(syntax, node)}


def _prose(syntax: Syntax) -> Iterator[Node]:
    """Yield comments, and strings that are quoted as docstrings are."""
    captures = QueryCursor(_query(syntax.language, _prose_source(syntax.language))).captures
    for node in captures(syntax.tree.root_node).get("prose", ()):
        opening = syntax.text_of(node)[:5].lstrip("rRbBfFuU")
        if "comment" in node.type or opening.startswith(('"""', "'''")):
            yield node


#: Parts of a text that people may want no suggestions in; "" is code.
Scope = Literal["comments", "strings", ""]

_QUOTED = re.compile(r"[A-Za-z@$]{0,3}#*[\"'`]")
_DOCSTRING = re.compile(r"[rRbBfFuU]{0,2}(?:\"\"\"|\'\'\')")
_CLOSINGS = ("*/", "-->", "*)", "-}", "]]")  # of comments that end before the line does


def scope_at(syntax: Syntax, cursor: int) -> Scope:
    """Return whether the cursor is inside a comment or a string.

    Docstrings count as comments, code inside a string (``f"{here}"``) as code. A string that is not
    closed yet is recognised if it begins with a double quote in the cursor's line.
    """
    at = syntax.byte_of(cursor)
    node = syntax.tree.root_node.descendant_for_byte_range(max(0, at - 1), at)
    while node is not None:
        scope = _scope_of(syntax, node, at)
        if scope is not None:
            return scope
        node = node.parent
    start = syntax.text.rfind("\n", 0, cursor) + 1
    quotes = re.findall(r'(?<!\\)"', syntax.text[start:cursor])
    return "strings" if len(quotes) % 2 and syntax.tree.root_node.has_error else ""


def _scope_of(syntax: Syntax, node: Node, at: int) -> Scope | None:
    """Return the scope that a node gives to a cursor at a byte; None: that of its parent."""
    if not node.is_named or not node.start_byte < at <= node.end_byte:
        return None
    text, is_at_end = syntax.text_of(node), at == node.end_byte
    if "comment" in node.type:
        return None if is_at_end and text.endswith(("\n", *_CLOSINGS)) else "comments"
    if is_at_end:
        return None
    if "interpolation" in node.type or "substitution" in node.type:
        return ""
    if "string" not in node.type or not _QUOTED.match(text):
        return None
    is_docstring = _DOCSTRING.match(text) and syntax.language == "python"
    return "comments" if is_docstring else "strings"


def _rows(syntax: Syntax, node: Node) -> range:
    """Return the lines of a node; without its first one where code stands before it."""
    start, end = syntax.char_of(node.start_byte), node.end_point
    before = syntax.text[syntax.text.rfind("\n", 0, start) + 1 : start]
    return range(node.start_point.row + bool(before.strip()), end.row + (end.column > 0))


@cache
def _prose_source(language: str) -> str:
    """Return a query for all comments and strings, by the kinds of nodes that a grammar has."""
    known = grammar(language)
    assert known is not None
    kinds = {
        known.node_kind_for_id(at)
        for at in range(known.node_kind_count)
        if known.node_kind_is_named(at) and known.node_kind_is_visible(at)
    }
    prose = sorted(kind for kind in kinds if kind and ("comment" in kind or "string" in kind))
    return f"[{' '.join(f'({kind})' for kind in prose)}] @prose"


@cache
def _query(language: str, source: str) -> Query:
    made = grammar(language)
    assert made is not None
    return Query(made, source)
