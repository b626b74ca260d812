"""Values that became a constant: the places of the same value in its scope.

The user has just defined the constant. Python, JavaScript, TypeScript, Go, and strings of Rust.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from redraft.model.records import RecentEdit
from redraft.model.rules.alike.repeated_lines import ChangedLine, find_changed_lines, locate_lines
from redraft.model.rules.alike.shapes import literal_of
from redraft.model.rules.rule_edits import MOST_CHARS, MOST_EDITS, changes_in
from redraft.model.text.scopes import Occurrence
from redraft.model.text.syntax import SCRIPTS
from tree_sitter import Node

from .code_file import CodeFile, UnclearUse
from .whole_rename import FileRename, WholeRename

_NEW = re.compile(r"(?:[\w()]+\s+)*?(?P<name>[^\W\d]\w*)\s*(?::(?!=)[^=]+)?=(?!=)\s*(?P<value>.+)")
#: Calls that make values which never change and hold no state.
_PURE = re.compile(
    r"(?:\w+\.)*(?:timedelta|Decimal|Fraction|date|time|datetime|Path|frozenset|UUID)"
)
#: Calls whose readers look for literals: type checkers, bundlers, and mocks put above all else.
_READ_AS_LITERAL = re.compile(
    r"(?:\w+\.)*(?:TypeVar|TypeVarTuple|ParamSpec|NewType|namedtuple|NamedTuple|TypedDict|cast)"
    r"|import|require(?:\.\w+)*|(?:jest|vi)\.\w+"
)
_AROUND_DEFINITION = (
    *("expression_statement", "lexical_declaration", "export_statement", "const_declaration"),
)
#: Statements of Python by which a name gets another value, or none.
_CHANGES = ("augmented_assignment", "delete_statement", "global_statement", "nonlocal_statement")
_DEFINITIONS = ("assignment", "variable_declarator", "const_spec", "const_item")
_LEAST_LETTERS = 4  # of a string
_LEAST_BEGINNING = 8  # letters and digits of a string that others begin with
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
    lines = locate_lines(find_changed_lines(edits, own.path), own.text)
    for name in new_constants(edits, own.path):
        try:
            offered = _constant(own, lines, name)
        except UnclearUse:
            continue
        if offered is not None:
            yield offered


def new_constants(edits: Sequence[RecentEdit], path: str) -> Iterator[str]:
    """Yield names that edits of a file set to a value in a new line, the newest first.

    Those that are no constants by their looks count once a literal is gone elsewhere.
    """
    changes = [
        change
        for edit in edits[-MOST_EDITS:]
        if edit.path == path
        for change, _ in changes_in(edit.diff)
    ]
    texts = {line.strip()[:MOST_CHARS] for change in changes for line in change.old}
    is_used = any(_literals(change.old) > _literals(change.new) for change in changes)
    for line in (line for change in reversed(changes) for line in change.new):
        found = _NEW.match(line.strip()) if len(line) <= MOST_CHARS else None
        if found is None or not (is_used or found["name"].isupper() or "const " in line):
            continue  # no constant, or not yet
        if not any(_is_same(found, _NEW.match(text)) for text in texts):
            yield found["name"]


def _literals(lines: Sequence[str]) -> int:
    """Return the number of signs that literals are made of."""
    return sum(len(re.findall(r"['\"`\d]", line)) for line in lines)


def _is_same(one: re.Match[str], two: re.Match[str] | None) -> bool:
    """Return whether two lines set the same name, or set names to the same value."""
    return two is not None and (one["name"] == two["name"] or one["value"] == two["value"])


def _is_rare(literal: str) -> bool:
    if literal[0].isdigit():
        digits = literal.replace("_", "").replace(".", "").strip("0")
        return len(digits) >= _LEAST_DIGITS
    is_plain = literal[-1] == literal[0] and "${" not in literal
    return is_plain and sum(map(str.isalnum, literal)) >= _LEAST_LETTERS


def _constant(own: CodeFile, lines: Sequence[ChangedLine], name: str) -> WholeRename | None:
    """Return the constant in place of its value wherever that is certain.

    Raises:
        UnclearUse: it may not be certain anywhere.
    """
    place, node, value = _definition(own, name)
    literal, end = own.syntax.text_of(value), own.syntax.span(node)[1]
    known = (*_spans(own, value, name), *_beginnings(own, value, name))
    spans = sorted(span for span in known if span[0] >= end)
    uses = [each.line for each in own.occurrences(name) if each.line > place.line]
    rows = [own.text.count("\n", 0, at) for at, *_ in spans]
    changed = {line.row for line in lines}
    is_passed_over = any(row in changed or (uses and min(uses) < row < max(uses)) for row in rows)
    if not uses and not _is_constant(own, value):
        raise UnclearUse(f"{name} may be a variable, and is not used yet")
    if spans and spans[-1][0] >= own.syntax.span(_block_of(node))[1]:
        raise UnclearUse(f"{name} may not be set at a place of {literal}")
    if is_passed_over or any(_is_otherwise(line, literal, name) for line in lines):
        raise UnclearUse(f"a place of {literal} was left as it is")
    offered = FileRename(own, tuple(spans))
    after_it = replace(own, text=offered.result)
    if after_it.syntax.tree.root_node.has_error:
        raise UnclearUse(f"{own.path} would have errors")
    found = after_it.occurrences(name)
    scope = next(each.scope for each in found if each.role == "binding")
    is_meant = all(each.scope == scope and each.role != "shorthand" for each in found)
    if not is_meant or len(found) != len(own.occurrences(name)) + len(spans):
        raise UnclearUse(f"{name} means something else at a place")
    what = f"put `{name}` in place of `{literal}`"
    return WholeRename("", "", own.index(place), (offered,), what) if spans else None


def _is_otherwise(line: ChangedLine, literal: str, name: str) -> bool:
    """Return whether something else than a constant took the place of its value in a line."""
    return literal in line.old and literal not in line.new and name not in line.new


def _definition(own: CodeFile, name: str) -> tuple[Occurrence, Node, Node]:
    """Return where a constant is defined as a telling value, that definition, and the value.

    Raises:
        UnclearUse: it is not, or it may change.
    """
    bound = [each for each in own.occurrences(name) if each.role not in ("use", "member")]
    if len(bound) != 1 or bound[0].role != "binding":
        raise UnclearUse(f"{name} is not bound once")
    if any(_is_change(own.node(each)) for each in own.occurrences(name)):
        raise UnclearUse(f"{name} gets another value")
    node: Node | None = own.node(bound[0]).parent
    value = node.child_by_field_name("right") or node.child_by_field_name("value") if node else None
    if value is not None and value.type == "expression_list" and value.named_child_count == 1:
        value = value.named_children[0]  # Go
    if node is None or node.type not in _DEFINITIONS or value is None:
        raise UnclearUse(f"{name} is no constant")
    outer = own.syntax.text_of(node.parent) if node.parent is not None else ""
    is_constant = own.language not in SCRIPTS or outer.startswith("const ")
    is_typed = node.child_by_field_name("type") is not None and own.language not in (
        "python",
        "rust",
    )
    literal = own.syntax.text_of(value)
    is_number = own.language == "rust" and literal[0].isdigit()
    is_telling = _is_rare(literal) if literal_of(value) else _is_made(own, name, value)
    if not is_constant or is_typed or is_number or not is_telling:
        raise UnclearUse(f"{name} may have another value or type")
    return bound[0], node, value


def _block_of(node: Node) -> Node:
    """Return the block in which a constant is defined: outside of it, it may not be set."""
    while node.parent is not None:
        node = node.parent
        if node.type not in _AROUND_DEFINITION:
            break
    return node


def _is_change(node: Node) -> bool:
    """Return whether a name gets another value in Python, or may get one as a global."""
    above = node.parent
    if above is not None and above.type == "expression_list":
        above = above.parent
    if above is None or above.type not in _CHANGES:
        return False
    return above.type != "augmented_assignment" or above.child_by_field_name("left") == node


def _is_made(own: CodeFile, name: str, value: Node) -> bool:
    """Return whether a call makes a value of Python from literals, which never changes.

    Its name is written in capitals: ``SLOT = timedelta(minutes=10)``.
    """
    listed = value.child_by_field_name("arguments") if value.type == "call" else None
    given = listed.named_children if listed is not None else ()
    values = [each.child_by_field_name("value") or each for each in given]
    called = own.syntax.text_of(value).split("(")[0]
    return (
        name.isupper()
        and bool(values)
        and all(literal_of(each) and not each.has_error for each in values)
        and _PURE.fullmatch(called) is not None
    )


def _spans(own: CodeFile, value: Node, name: str) -> Iterator[tuple[int, int, str]]:
    """Yield what of a text becomes the name of a constant that has a value, and how."""
    literal = own.syntax.text_of(value)
    text, root = own.text, literal.split("(")[0].split(".")[0]
    at = text.find(literal)
    while at >= 0:
        end = at + len(literal)
        exact = (node for node, *span in own.syntax.around(at, end) if span == [at, end])
        node = next((each for each in exact if each.type == value.type or literal_of(each)), None)
        is_same = literal_of(value) or _scope_at(own, root, node) == _scope_at(own, root, value)
        is_same = is_same and _module_of(node) == _module_of(value)
        if node is not None and is_same and _is_value(own, node):
            if node != value and _is_constant(own, node):
                raise UnclearUse(f"another constant is {literal}")
            yield at, end, name
        at = text.find(literal, end)


def _beginnings(own: CodeFile, value: Node, name: str) -> Iterator[tuple[int, int, str]]:
    """Yield the strings that begin with a constant, and go on with another word.

    Those of Go are put together with ``+``, f-strings and templates hold its name. Addresses and
    paths begin so; prose, which has blanks, begins alike by chance.
    """
    content = own.syntax.text_of(value)[1:-1]
    if not literal_of(value) or sum(map(str.isalnum, content)) < _LEAST_BEGINNING:
        return
    quotes = {"python": ('f"', "f'"), "go": ('"',)}.get(own.language, ("`",))
    if own.language not in ("python", "go", *SCRIPTS) or re.search(r"[\\{}$\s]", content):
        return
    for quote in quotes:
        at = own.text.find(quote + content)
        while at >= 0:
            end = at + len(quote + content)
            found = (each for each in own.syntax.around(at, end) if each[1] == at)
            node = next((each for each, *_ in found if "string" in each.type), None)
            is_longer = own.text[end : end + 1] not in ("", quote[-1], "_")
            if node is not None and is_longer and not own.text[end].isalnum():
                if own.language == "go" and _is_value(own, node):
                    yield at, end, f'{name}{_plus(own, node)}"'
                elif own.language != "go" and _is_value(own, node):
                    yield at + len(quote), end, f"{'$' if quote == '`' else ''}{{{name}}}"
            at = own.text.find(quote + content, end)


def _plus(own: CodeFile, node: Node) -> str:
    """Return ``+`` as gofmt writes it behind a string."""
    above, end = node.parent, own.syntax.span(node)[1]
    if above is not None and above.type == "binary_expression":
        return " + " if own.text[end] == " " else "+"
    is_argument = above is not None and above.type == "argument_list"
    return "+" if is_argument and above is not None and above.named_child_count > 1 else " + "


def _is_constant(own: CodeFile, value: Node) -> bool:
    """Return whether a value is that of a constant."""
    node = value.parent
    if node is not None and node.type == "expression_list":  # Go
        node = node.parent
    named = (node.child_by_field_name("left") or node.child_by_field_name("name")) if node else None
    if node is None or node.type not in _DEFINITIONS or named is None:
        return False
    return own.syntax.text_of(named).isupper() or node.type in ("const_spec", "const_item")


def _scope_at(own: CodeFile, name: str, node: Node | None) -> object:
    """Return the scope that binds the name with which a node begins."""
    start = node.start_byte if node is not None else -1
    return next((each.scope for each in own.occurrences(name) if own.byte(each) == start), name)


def _module_of(node: Node | None) -> Node | None:
    """Return the inner module of Rust around a node, which sees no names of the outer one."""
    while node is not None and node.type != "mod_item":
        node = node.parent
    return node


def _is_value(own: CodeFile, node: Node) -> bool:
    """Return whether a name may stand in place of a literal."""
    above = node.parent
    # A docstring, "use strict", or the module of an export.
    if above is None or above.type in ("expression_statement", "export_statement"):
        return False
    if above.type in ("pair", "keyed_element") and above.child_by_field_name("key") == node:
        return False
    # ``declare module "x"``, a tagged template, ``"x" as const``.
    if any(above.child_by_field_name(each) == node for each in ("name", "arguments")):
        return False
    if above.type == "as_expression":
        return False
    while above is not None:
        of = above.child_by_field_name("value") if above.type == "subscript" else None
        is_type = of is not None and own.syntax.text_of(of).endswith("Literal")
        called = above.child_by_field_name("function") if "call" in above.type else None
        if called is not None and _READ_AS_LITERAL.fullmatch(own.syntax.text_of(called)):
            return False
        left = above.child_by_field_name("left") if above.type == "assignment" else None
        if left is not None and re.fullmatch(r"__\w+__", own.syntax.text_of(left)):
            return False  # ``__all__``, which tools read
        if is_type or _LITERAL_ONLY.search(above.type):
            return False
        above = above.parent
    return True
