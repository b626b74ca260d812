"""Calls that no longer fit the parameters of a function, found in syntax trees.

After a parameter was added or dropped, these are the places of the next edits for certain. What
is not certain counts as fitting: calls with spread arguments, functions of several definitions or
under decorators of the project, methods of an object whose class is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import dirname

from tree_sitter import Node

from ..text.imported_files import ends_alike, parts_of, stem_of
from ..text.scopes import Bindings
from ..text.syntax import SCRIPTS, Syntax, descendants

_FUNCTIONS = frozenset(
    (
        *("function_definition", "function_declaration", "method_definition", "function_item"),
        *("method_declaration", "constructor_declaration", "generator_function_declaration"),
    )
)
_VALUES = frozenset(("arrow_function", "function_expression"))
_TYPES = frozenset(("class_definition", "class_declaration", "class", "impl_item"))
#: Functions of scripts whose ``this`` is not that around them.
_OWN_THIS = frozenset(
    ("function_expression", "function_declaration", "generator_function_declaration")
)
_CALLS = frozenset(
    ("call", "call_expression", "new_expression", "method_invocation", "object_creation_expression")
)
_CONSTRUCTORS = frozenset(("__init__", "constructor"))
#: Parameters that take any number of arguments.
_SPREAD_PARAMETERS = frozenset(
    (
        *("list_splat_pattern", "rest_pattern", "spread_parameter", "variadic_parameter"),
        "variadic_parameter_declaration",
    )
)
_SPREAD_ARGUMENTS = frozenset(
    ("list_splat", "dictionary_splat", "spread_element", "variadic_argument")
)
_OPTIONAL = frozenset(
    ("default_parameter", "typed_default_parameter", "optional_parameter", "assignment_pattern")
)
#: Decorators of Python that leave the parameters as they are.
_TRANSPARENT = frozenset(
    (
        *("abstractmethod", "cache", "classmethod", "contextmanager", "final", "lru_cache"),
        *("override", "staticmethod"),
    )
)
#: Macros of Rust whose arguments are expressions.
_PLAIN_MACROS = re.compile(
    r"(?:debug_)?assert(?:_eq|_ne)?|e?print(?:ln)?|format|write(?:ln)?|panic|dbg|vec"
)
LANGUAGES = frozenset(("python", "go", "rust", "java", *SCRIPTS))


_MISSING = "Argument missing for parameter"


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of a function."""

    name: str  # "" for a pattern
    is_optional: bool = False
    by_name_only: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters of a function as its callers see them, without ``self``."""

    name: str  # by which it is called: the class for a constructor
    parameters: tuple[Parameter, ...]
    takes_more: bool = False  # any number of arguments
    takes_names: bool = False  # any keyword
    owner: tuple[int, int] | None = None  # bytes of the type of a member; None: a function or type

    def objection(self, positional: int, keywords: Sequence[str]) -> str:
        """Return what is wrong with a call, "" if it fits."""
        in_order = [one for one in self.parameters if not one.by_name_only]
        if positional > len(in_order) and not self.takes_more:
            count = len(in_order)
            return f"Expected {count} positional argument{'s' * (count != 1)}, but got {positional}"
        known = {one.name for one in self.parameters}
        unknown = [each for each in keywords if each not in known]
        if unknown and not self.takes_names:
            return f'No parameter named "{unknown[0]}"'
        for at, one in enumerate(self.parameters):
            is_given = (not one.by_name_only and at < positional) or one.name in keywords
            if not (one.is_optional or is_given):
                return f'{_MISSING} "{one.name}"'
        return ""


@dataclass(frozen=True, slots=True)
class Argument:
    """Argument of a call, ``text[start:end]`` of its file."""

    start: int
    end: int
    name: str = ""  # of a keyword argument


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a function by its name."""

    line: int  # 0-based, of the called name
    at: int  # index into the text behind the called name
    opens: int  # index behind the opening bracket
    end: int  # index behind the closing bracket
    arguments: tuple[Argument, ...]
    has_comments: bool = False  # among the arguments
    is_in_string: bool = False  # an interpolation

    def objection(self, signature: Signature) -> str:
        """Return why the call does not fit a signature, "" if it does."""
        keywords = [each.name for each in self.arguments if each.name]
        return signature.objection(len(self.arguments) - len(keywords), keywords)


def is_missing(objection: str) -> bool:
    """Return whether an objection to a call is that an argument is missing."""
    return objection.startswith(_MISSING)


def signatures(syntax: Syntax, name: str) -> list[Signature]:
    """Return the signatures of the functions that a file defines under a name.

    A constructor is found under the name of its class.
    """
    found = []
    for named in syntax.leaves_named(name):
        node = named.parent
        if node is None or node.child_by_field_name("name") != named:
            continue
        functions = [node]
        if node.type in _TYPES:
            functions = [
                each
                for each in descendants(node)
                if each.type in _FUNCTIONS
                and _owner(each) == node
                and syntax.name_of(each) in (*_CONSTRUCTORS, name)
            ]
        for each in functions:
            function = _function(each)
            is_class_of_it = node.type not in _TYPES and each.type == "constructor_declaration"
            if function is None or is_class_of_it:
                continue  # a constructor of Java is found with its class
            owner = _owner(each)
            is_built = owner is not None and owner == node  # a constructor, by its class
            made = _signature(syntax, function, name, owner, is_built=is_built)
            found += [made] if made is not None else []
    return found


def calls(syntax: Syntax, signature: Signature) -> Iterator[Call]:
    """Yield the calls in a file by the name of a signature, from top to bottom.

    Members are found by ``self`` and ``this`` in their type, functions by the name alone: what
    another receiver means is not certain. Calls with spread arguments are left out.
    """
    for called in syntax.leaves_named(signature.name):
        in_macro = _call_in_macro(syntax, called) if signature.owner is None else None
        if in_macro is not None:
            yield in_macro
            continue
        node = _call_of(called)
        listed = node.child_by_field_name("arguments") if node is not None else None
        if node is None or listed is None:
            continue
        is_plain = called.parent == node and node.child_by_field_name("object") is None
        if signature.owner is None:
            is_meant = is_plain
        else:
            first, last = signature.owner
            is_inside = first <= called.start_byte < last and not _is_in_other(
                syntax, called, first
            )
            is_own = syntax.language == "java" if is_plain else _is_of_self(syntax, called)
            is_meant = is_inside and is_own
        given = [each for each in listed.named_children if "comment" not in each.type]
        if not is_meant or any(each.type in _SPREAD_ARGUMENTS or each.is_error for each in given):
            continue
        yield Call(
            called.start_point.row,
            syntax.char_of(called.end_byte),
            syntax.char_of(listed.start_byte) + 1,
            syntax.char_of(listed.end_byte),
            tuple(_argument(syntax, each) for each in given),
            len(given) < listed.named_child_count,
            _is_in_string(node),
        )


def _is_in_other(syntax: Syntax, called: Node, first: int) -> bool:
    """Return whether an object within the type that begins at a byte is the ``self`` here."""
    above = called.parent
    while above is not None and above.start_byte > first:
        is_literal = above.parent is not None and above.parent.type == "object"
        is_method = above.type == "method_definition" and is_literal
        if is_method or above.type in _TYPES or above.type in _OWN_THIS:
            return True
        if above.type == "method_definition" and any(
            one.type == "static" for one in above.children
        ):
            return True
        if above.type == "function_definition" and _has_self(syntax, above):
            outer, is_static = above.parent, False
            if outer is not None and outer.type == "decorated_definition":
                is_static = "@staticmethod" in syntax.text_of(outer)
                outer = outer.parent
            owner = outer.parent if outer is not None else None
            return is_static or owner is None or owner.start_byte != first
        above = above.parent
    return False


def _has_self(syntax: Syntax, function: Node) -> bool:
    """Return whether a function of Python has a parameter ``self``."""
    listed = function.child_by_field_name("parameters")
    return listed is not None and re.search(r"\bself\b", syntax.text_of(listed)) is not None


def _call_in_macro(syntax: Syntax, called: Node) -> Call | None:
    """Return the call of a name among the arguments of a known macro of Rust, None if it is none.

    The tree has only tokens there: generics and closures, which may hold commas, are left out.
    """
    outer, listed = called.parent, called.next_sibling
    macro = outer.parent if outer is not None and outer.type == "token_tree" else None
    if macro is None or macro.type != "macro_invocation" or listed is None:
        return None
    named, before = macro.child_by_field_name("macro"), called.prev_sibling
    is_plain = before is None or before.type not in (".", "::", "fn", "!")
    is_known = named is not None and _PLAIN_MACROS.fullmatch(syntax.text_of(named)) is not None
    text = syntax.text_of(listed)
    if listed.type != "token_tree" or not (is_plain and is_known and text.startswith("(")):
        return None
    if re.search(rf"[<|$]|\b{re.escape(syntax.text_of(called))}\b", text):
        return None  # of a call within a call the tree has only the outer one
    groups: list[list[Node]] = [[]]
    for each in listed.children[1:-1]:
        if each.type == ",":
            groups.append([])
        elif "comment" not in each.type:
            groups[-1].append(each)
    spans = [(syntax.span(one[0])[0], syntax.span(one[-1])[1]) for one in groups if one]
    start, end = syntax.span(listed)
    return Call(
        called.start_point.row,
        syntax.char_of(called.end_byte),
        start + 1,
        end,
        tuple(Argument(*span) for span in spans),
        any("comment" in each.type for each in listed.children),
    )


def with_argument(
    text: str, call: Call, argument: str, index: int | None = None
) -> tuple[int, int, str]:
    """Return the span that adds an argument to a call, on a new line if the others are.

    Args:
        index: among the arguments; None: behind all.
    """
    if index is not None and index < len(call.arguments):
        at = call.arguments[index].start
        return at, at, f"{argument}, "
    if not call.arguments:
        return call.opens, call.opens, argument
    last = call.arguments[-1]
    begin = text.rfind("\n", 0, last.start) + 1
    indent = text[begin : last.start]
    is_alone = begin > call.opens and not indent.strip()
    return last.end, last.end, f",\n{indent}{argument}" if is_alone else f", {argument}"


def means(syntax: Syntax, path: str, signature: Signature, home: str) -> bool:
    """Return whether the name of a function means it wherever a file calls it.

    Args:
        syntax: of the file at ``path``.
        home: path of the file that defines the function.
    """
    if signature.owner is not None:  # members are found in their type
        return path == home
    name = signature.name
    bound = [one for one in Bindings(syntax, name).occurrences if one.role in ("binding", "import")]
    if not bound:  # a package of Go needs no import
        return syntax.language == "go" and dirname(path) == dirname(home)
    if len(bound) > 1:
        return False
    if path == home:
        return bound[0].role == "binding"
    return bound[0].role == "import" and _names_file(bound[0].source, syntax, path, home)


def _names_file(source: str, syntax: Syntax, path: str, home: str) -> bool:
    """Return whether the module of an import, as the file at ``path`` writes it, is ``home``."""
    stem = stem_of(home)
    if syntax.language != "python" and syntax.language not in SCRIPTS:  # a whole statement
        return re.search(rf"\b{re.escape(stem[-1])}\b", source) is not None
    return ends_alike(stem, parts_of(source.strip("'\"`"), syntax.language, path))


def _argument(syntax: Syntax, node: Node) -> Argument:
    label = node.child_by_field_name("name") if node.type == "keyword_argument" else None
    return Argument(*syntax.span(node), syntax.text_of(label) if label is not None else "")


# --- definitions -------------------------------------------------------------------------------


def _call_of(called: Node) -> Node | None:
    """Return the call whose function a name is, None if it is none."""
    above: Node | None = called
    for _ in range(3):
        above = above.parent if above is not None else None
        if above is not None and above.type in _CALLS:
            return above if _called(above) == called else None
    return None


def _function(node: Node) -> Node | None:
    """Return the function that a node defines, None if it defines none."""
    if node.type in _FUNCTIONS:
        return node
    if node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        return value if value is not None and value.type in _VALUES else None
    return None


def _owner(node: Node) -> Node | None:
    """Return the type that a function belongs to, None for one of a module."""
    if node.type == "method_declaration" and node.child_by_field_name("receiver") is not None:
        return node  # Go
    above = node.parent
    while above is not None:
        if above.type in _TYPES:
            return above
        if above.type in _FUNCTIONS or above.type in _VALUES:
            return None
        above = above.parent
    return None


def _signature(
    syntax: Syntax, function: Node, name: str, owner: Node | None, *, is_built: bool
) -> Signature | None:
    listed = function.child_by_field_name("parameters")
    if (
        listed is None
        or listed.has_error
        or not _TRANSPARENT.issuperset(_decorators(syntax, function))
    ):
        return None
    parameters: list[Parameter] = []
    takes_more = takes_names = by_name_only = False
    for index, node in enumerate(listed.named_children):
        kind = node.type
        if "comment" in kind or kind in ("self_parameter", "positional_separator"):
            continue
        inner = _inner(node)
        if kind == "keyword_separator":
            by_name_only = True
        elif kind in _SPREAD_PARAMETERS or inner.type in _SPREAD_PARAMETERS:
            takes_more = by_name_only = True
        elif inner.type == "dictionary_splat_pattern" or kind == "dictionary_splat_pattern":
            takes_names = True
        else:
            is_first = index == 0 and owner is not None and syntax.language == "python"
            if is_first and not _is_static(syntax, function):
                continue
            is_optional = kind in _OPTIONAL or node.child_by_field_name("value") is not None
            for label in _labels(syntax, node):
                parameters.append(Parameter(label, is_optional, by_name_only))
    of_type = None if owner is None or is_built else (owner.start_byte, owner.end_byte)
    return Signature(name, tuple(parameters), takes_more, takes_names, of_type)


def _inner(node: Node) -> Node:
    """Return the pattern of a typed parameter, or the node itself."""
    named = node.child_by_field_name("pattern")
    if named is None and node.type == "typed_parameter" and node.named_children:
        named = node.named_children[0]
    return named or node


def _labels(syntax: Syntax, node: Node) -> list[str]:
    """Return the names of a parameter; Go writes several with one type."""
    if node.type == "parameter_declaration":  # Go
        names = [syntax.text_of(each) for each in node.children_by_field_name("name")]
        return names or [""]
    for field in ("name", "left", "pattern"):
        named = node.child_by_field_name(field)
        if named is not None:
            return [syntax.text_of(named)]
    return [syntax.text_of(_inner(node))]


def _is_static(syntax: Syntax, function: Node) -> bool:
    return "staticmethod" in _decorators(syntax, function)


def _decorators(syntax: Syntax, function: Node) -> list[str]:
    """Return the last names of the decorators of a function of Python."""
    above = function.parent
    if above is None or above.type != "decorated_definition":
        return []
    found = [each for each in above.children if each.type == "decorator"]
    return [syntax.text_of(each).partition("(")[0].rpartition(".")[2].strip("@ ") for each in found]


def _is_in_string(node: Node) -> bool:
    above: Node | None = node
    while above is not None and "string" not in above.type:
        above = above.parent
    return above is not None


# --- calls -------------------------------------------------------------------------------------


def _called(node: Node) -> Node | None:
    """Return the name of what a node calls, None for something without a name."""
    for field in ("function", "constructor", "name", "type"):
        target = node.child_by_field_name(field)
        if target is not None:
            break
    else:
        return None
    for field in ("attribute", "property", "field", "name"):
        last = target.child_by_field_name(field)
        if last is not None:
            return last
    return target if target.named_child_count == 0 else None


def _is_of_self(syntax: Syntax, called: Node) -> bool:
    """Return whether the name is that of a member of the object itself."""
    whole = called.parent
    target = whole.named_child(0) if whole is not None else None
    return target is not None and target != called and syntax.text_of(target) in ("self", "this")
