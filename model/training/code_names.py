"""Names, functions, calls and literals of a file, as made-up chains of edits need them.

By tree-sitter, in Python, TypeScript, JavaScript, Go, Rust and Java. Answers with places in the
text; what cannot be told for certain is left out, for a chain is only worth training on where its
truth is exact. Knows nothing of edits.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from ..text.names import places_of
from ..text.syntax import Syntax, language_of, parse


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LANGUAGES = _words("python typescript typescriptreact javascript javascriptreact go rust java")
_LONGEST = 120_000  # characters of a file

_FUNCTIONS = _words(
    "function_definition function_declaration method_definition method_declaration function_item "
    "constructor_declaration arrow_function"
)
#: Functions without a name of their own, as are arrow functions that nothing is called after.
_CLOSURES = _words(
    "lambda function_expression func_literal closure_expression lambda_expression "
    "list_comprehension set_comprehension dictionary_comprehension generator_expression"
)
_CLASSES = _words("class_definition class_body impl_item trait_item")
_CALLS = frozenset(("call", "call_expression", "method_invocation"))
_LITERALS = _words(
    "string integer float number int_literal float_literal interpreted_string_literal "
    "string_literal integer_literal decimal_integer_literal decimal_floating_point_literal"
)
#: What has keys and values: its own type, that of its entries, and the field of the key.
_RECORDS = {
    "dictionary": ("pair", "key"),
    "object": ("pair", "key"),
    "literal_value": ("keyed_element", "key"),
    "field_initializer_list": ("field_initializer", "field"),
}
#: "owner.name" by type: the fields of owner and name.
_OWNED = {
    "attribute": ("object", "attribute"),
    "member_expression": ("object", "property"),
    "selector_expression": ("operand", "field"),
    "field_expression": ("value", "field"),
    "scoped_identifier": ("path", "name"),
    "field_access": ("object", "field"),
    "method_invocation": ("object", "name"),
}
_RECEIVER = re.compile(r"^func \((\w+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Call:
    """``callee(arguments)``; indices into the text."""

    name: str
    start: int  # of the callee
    name_start: int  # of the name within it
    opens: int  # behind the opening bracket
    closes: int  # of the closing bracket
    node: Node

    @property
    def end(self) -> int:
        return self.closes + 1


@dataclass(frozen=True, slots=True)
class Function:
    """A function that has a name; indices into the text."""

    name: str
    start: int  # of the whole definition; of an arrow function without its name
    name_start: int
    opens: int  # behind the bracket before the parameters
    closes: int  # of the bracket behind them
    end: int
    node: Node


@dataclass(frozen=True, slots=True)
class Record:
    """A literal of keys and values; indices into the text."""

    keys: tuple[str, ...]
    entries: tuple[tuple[int, int], ...]  # [start, end) of each


@dataclass
class Code:
    """A file that was read once."""

    syntax: Syntax
    names: dict[str, list[Node]] = field(default_factory=lambda: defaultdict(list))
    functions: list[Function] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    literals: dict[str, list[Node]] = field(default_factory=lambda: defaultdict(list))
    records: list[Record] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.syntax.text

    @property
    def language(self) -> str:
        return self.syntax.language

    def owner(self, name: Node) -> str | None:
        """What stands before the dot of a name; None: no dot."""
        parent = name.parent
        fields = _OWNED.get(parent.type) if parent is not None else None
        if parent is None or fields is None or parent.child_by_field_name(fields[1]) != name:
            return None
        owner = parent.child_by_field_name(fields[0])
        return None if owner is None else self.syntax.text_of(owner)

    @property
    def own(self) -> frozenset[str]:
        """Names of the object whose method one is in."""
        return frozenset(("self", "this", "Self", "cls", *_RECEIVER.findall(self.text)))

    def is_only_here(self, name: str, start: int, end: int) -> bool:
        """Is every ``name`` in ``text[start:end]`` one that the parser knows as a name? Else some
        stand in strings or comments, of which nobody can say what should become of them."""
        said = sum(1 for _ in places_of(name, self.text[start:end]))
        nodes = [self.syntax.span(node)[0] for node in self.names[name]]
        return said == sum(start <= at < end for at in nodes)

    def function_around(self, node: Node) -> Function | None:
        """The innermost function a node is in; None where that has no name, or there is none."""
        above = node.parent
        while above is not None:
            if above.type in _FUNCTIONS | _CLOSURES:
                return next((each for each in self.functions if each.node == above), None)
            above = above.parent
        return None

    def calls_of(self, function: Function) -> list[Call]:
        """The calls of a function that cannot be of another; none where some might be."""
        if sum(each.name == function.name for each in self.functions) != 1:
            return []
        found = [call for call in self.calls if call.name == function.name]
        owners = {self.text[call.start : call.name_start].rstrip(".:") for call in found}
        if self.language != "java":  # where a method may be called without its object
            owned = self._is_method(function)
            return found if owners <= (self.own if owned else frozenset([""])) else []
        return found if owners <= {"", *self.own} else []

    def _is_method(self, function: Function) -> bool:
        above = function.node.parent
        while above is not None and above.type not in _FUNCTIONS:
            if above.type in _CLASSES:
                return True
            above = above.parent
        return function.node.type == "method_declaration"


def read_code(path: str, text: str) -> Code | None:
    """None: no language of ours, too large, or with syntax errors."""
    language = language_of(path)
    if language not in LANGUAGES or len(text) > _LONGEST:
        return None
    return _read(text, language or "")


@lru_cache(maxsize=2)  # a few draws in a row are from one file
def _read(text: str, language: str) -> Code | None:
    syntax = parse(text, language)
    if syntax is None or syntax.tree.root_node.has_error:
        return None
    code = Code(syntax)
    for node in _walk(syntax.tree.root_node):
        _note(code, node)
    return code


def _walk(root: Node) -> Iterator[Node]:
    """All named nodes, in the text's order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.named_children))


def _note(code: Code, node: Node) -> None:
    if node.type.endswith("identifier") and node.child_count == 0:
        code.names[code.syntax.text_of(node)].append(node)
    elif node.type in _LITERALS:
        code.literals[code.syntax.text_of(node)].append(node)
    elif node.type in _RECORDS:
        record = _record(code.syntax, node)
        if record is not None:
            code.records.append(record)
    if node.type in _FUNCTIONS:
        function = _function(code.syntax, node)
        if function is not None:
            code.functions.append(function)
    elif node.type in _CALLS:
        call = _call(code.syntax, node)
        if call is not None:
            code.calls.append(call)


def _function(syntax: Syntax, node: Node) -> Function | None:
    named = node.parent if node.type == "arrow_function" else node
    if named is None or (named is not node and named.type != "variable_declarator"):
        return None
    name, parameters = named.child_by_field_name("name"), node.child_by_field_name("parameters")
    if name is None or parameters is None:
        return None
    (start, end), (opens, closes) = syntax.span(node), syntax.span(parameters)
    name_start = syntax.span(name)[0]
    return Function(syntax.text_of(name), start, name_start, opens + 1, closes - 1, end, node)


def _call(syntax: Syntax, node: Node) -> Call | None:
    callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if node.type == "method_invocation":
        callee = node
    if callee is None or arguments is None or arguments.type not in ("arguments", "argument_list"):
        return None
    fields = _OWNED.get(callee.type)
    name = callee.child_by_field_name(fields[1]) if fields else callee
    if name is None or name.child_count:
        return None
    opens, closes = syntax.span(arguments)
    start, name_start = syntax.span(node)[0], syntax.span(name)[0]
    return Call(syntax.text_of(name), start, name_start, opens + 1, closes - 1, node)


def _record(syntax: Syntax, node: Node) -> Record | None:
    """None where an entry is no pair of key and value."""
    entry, key = _RECORDS[node.type]
    found: list[tuple[Node, Node]] = []
    for child in node.named_children:
        name = child.child_by_field_name(key)
        if child.type == entry and name is not None:
            found.append((child, name))
        elif child.type != "comment":
            return None
    if not found:
        return None
    return Record(
        tuple(syntax.text_of(name) for _, name in found),
        tuple(syntax.span(child) for child, _ in found),
    )
