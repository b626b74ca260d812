"""Calls of a function that the user made asynchronous: they are awaited, and their functions too.

In Python, scripts and Rust. One step goes as far as the functions that call it; once that is
accepted, they have become asynchronous, and the next step goes on from them. Left alone is what is
awaited or passed on already, and functions that others may rely on: with a decorator, constructors,
generators, components, functions passed as values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from redraft.model.records import RecentEdit
from redraft.model.rules.rule_edits import changes_in
from redraft.model.text.scopes import Occurrence
from redraft.model.text.syntax import SCRIPTS, parse
from tree_sitter import Node

from .code_file import CodeFile, UnclearUse
from .definition import RenamedDefinition
from .whole_rename import FileRename, WholeRename, WorkspaceFiles, find_uses

_LANGUAGES = frozenset(("python", "rust", *SCRIPTS))
#: ``async def load(``, ``async function load(``, ``async fn load(``, ``async load(`` of a class.
_HEAD = re.compile(r"\basync\s+(?:def\s+|function\s+|(?:unsafe\s+)?fn\s+)?([^\W\d]\w*)\s*[(<]")
#: ``const load = async (``.
_ARROW = re.compile(r"\b(?:const|let)\s+([^\W\d]\w*)\s*(?::[^=]+)?=\s*async\b")
_FUNCTIONS = frozenset(
    (
        *("function_definition", "function_declaration", "method_definition", "function_item"),
        *("arrow_function", "function_expression", "lambda", "closure_expression"),
        *("generator_function_declaration", "generator_function", "async_block"),
    )
)
_MAY_AWAIT = frozenset(
    ("function_definition", "function_declaration", "method_definition", "function_item")
)
#: A generator of Python that awaits is another kind of object.
_LAZY = frozenset(("generator_expression",))
_CALLS = frozenset(("call", "call_expression"))
_AWAITS = frozenset(("await", "await_expression"))
#: Functions that take what is to be awaited.
_TAKERS = frozenset(
    (
        *("run", "gather", "create_task", "ensure_future", "wait_for", "wait", "shield"),
        *("run_until_complete", "run_coroutine_threadsafe", "as_completed", "start_soon"),
        *("all", "allSettled", "race", "any", "resolve", "waitUntil", "then"),
        *("spawn", "block_on", "join", "spawn_local", "select"),
    )
)
_MEMBERS = frozenset(
    ("attribute", "member_expression", "subscript", "subscript_expression", "non_null_expression")
)
_FIXED = re.compile(r"__\w+__|constructor")
#: Components and hooks of React, which cannot be asynchronous.
_DRAWS = re.compile(r"[A-Z]|use[A-Z]")
_BEFORE = re.compile(r"(?:(?:pub(?:\([^)]*\))?|public|private|protected|static|override)\s+)*")


def find_made_async(edits: Sequence[RecentEdit]) -> list[tuple[str, str]]:
    """Return the functions that edits made asynchronous, the newest first, as path and name."""
    found = list[tuple[str, str]]()
    for edit in reversed(edits):
        for change, _ in changes_in(edit.diff):
            before = [line for line in change.old if not re.search(r"\basync\b", line)]
            named = (_HEAD.search(line) or _ARROW.search(line) for line in change.new)
            for name in (match[1] for match in named if match is not None):
                if any(re.search(rf"\b{name}\b\s*[=(<]", line) for line in before):
                    found.append((edit.path, name))
    return list(dict.fromkeys(found))


def find_async(
    edits: Sequence[RecentEdit], own: CodeFile, files: WorkspaceFiles
) -> Iterator[WholeRename]:
    """Yield the calls that are to be awaited since edits made functions asynchronous.

    Args:
        edits: oldest first.
        own: the document that the user is in.
    """
    for path, name in find_made_async(edits):
        source = own if path == own.path else files.opened.get(path)
        if source is None or source.language not in _LANGUAGES:
            continue
        try:
            found = _awaited(source, name, files)
        except UnclearUse:
            continue
        if found:
            here = next((each for each in found if each.source.path == own.path), None)
            at = here.spans[0][0] if here is not None else max(own.text.find(name), 0)
            yield WholeRename("", "", at, tuple(found), f"await `{name}`")


def _awaited(source: CodeFile, name: str, files: WorkspaceFiles) -> list[FileRename]:
    """Return the awaited calls of a function by file.

    The uses are those that a rename of the function would have. So it is looked for as if it had
    just got another name of the same length.

    Raises:
        UnclearUse: a place may or may not be one of its uses.
    """
    place = next((each for each in source.occurrences(name) if _is_async(source, each)), None)
    if place is None:
        return []
    at, other = source.index(place), _unlike(name, source.text)
    renamed = replace(source, text=source.text[:at] + other + source.text[at + len(name) :])
    new = next(each for each in renamed.occurrences(other) if renamed.index(each) == at)
    opened = {path: each for path, each in files.opened.items() if path != source.path}
    uses = find_uses(RenamedDefinition(name, other, renamed, new), replace(files, opened=opened))
    found = []
    for each in uses.files:
        code = source if each.source.path == source.path else each.source
        changes = _Changes(code, name)
        for start, _, _ in each.spans:
            changes.add(start)
        if changes.spans:
            found.append(changes.to_rename())
    return found


def _is_async(source: CodeFile, place: Occurrence) -> bool:
    """Return whether an occurrence is the name of an asynchronous function."""
    node = source.node(place).parent
    if place.role not in ("binding", "field") or node is None:
        return False
    if node.type == "variable_declarator":
        node = node.child_by_field_name("value")
    return node is not None and node.type in _FUNCTIONS and _awaits(source, node)


def _awaits(source: CodeFile, function: Node) -> bool:
    """Return whether a function is asynchronous."""
    head = source.syntax.text_of(function)[:80].split("(")[0]
    return function.type == "async_block" or re.search(r"\basync\b", head) is not None


def _is_fixed(body: Node | None) -> bool:
    """Return whether the functions of a body are those of a trait or an interface."""
    owner = body.parent if body is not None else None
    if body is None or owner is None:
        return False
    if body.type == "declaration_list":  # Rust
        return owner.type == "trait_item" or owner.child_by_field_name("trait") is not None
    heritage = (each for part in owner.children for each in part.children)
    return body.type == "class_body" and any(each.type == "implements_clause" for each in heritage)


def _unlike(name: str, text: str) -> str:
    """Return a name of the same length that a text does not have."""
    for letter in "qxzjvkQXZJVK":
        other = name[:-1] + letter
        if not re.search(rf"\b{re.escape(other)}\b", text):
            return other
    raise UnclearUse(f"every name like {name} is taken")


@dataclass(frozen=True)
class _Function:
    node: Node
    name: str


class _Changes:
    """Changes in one file that await the calls of a name."""

    def __init__(self, source: CodeFile, name: str) -> None:
        self._source, self._syntax, self._name = source, source.syntax, name
        self.spans = set[tuple[int, int, str]]()
        self._functions = set[int]()  # made asynchronous, by their first byte

    def to_rename(self) -> FileRename:
        """Return the changes.

        Raises:
            UnclearUse: the file would have errors.
        """
        made = FileRename(self._source, tuple(sorted(self.spans)))
        after = parse(made.result, self._source.language)
        if after is None or after.tree.root_node.has_error:
            raise UnclearUse(f"{self._source.path} would have errors")
        return made

    def add(self, at: int) -> None:
        """Await the call of the name at an index, if it is one that can be."""
        call = self._call_at(at)
        around = self._function_around(call) if call is not None else None
        if call is None or around is None or self._is_passed_on(call):
            return
        if not _awaits(self._source, around.node):
            if self._source.language == "python" and around.name == "main":
                start, end = self._syntax.span(call)
                self.spans |= {(start, start, "asyncio.run("), (end, end, ")")}
                return
            if not self._make_async(around):
                return
        self._await(call)

    def _call_at(self, at: int) -> Node | None:
        """Return the call whose function the name at an index is, None if it is not called."""
        nodes = [node for node, *_ in self._syntax.around(at, at + len(self._name))][:4]
        for inner, outer in pairwise(nodes):
            if outer.type in _CALLS and outer.child_by_field_name("function") == inner:
                return outer
            if outer.child_by_field_name("object") == inner:
                return None  # a member of it is called
        return None

    def _is_passed_on(self, call: Node) -> bool:
        """Return whether a call is awaited, or given to what awaits it."""
        above = call.parent
        while above is not None and above.type in ("parenthesized_expression", "argument_list"):
            above = above.parent
        if above is None:
            return True
        if above.type in _AWAITS or above.type in ("list", "array", "array_expression"):
            return True
        if above.type in (*_CALLS, "arguments", "macro_invocation", "token_tree"):
            taker = above.parent if above.type == "arguments" else above
            called = taker.child_by_field_name("function") if taker is not None else None
            text = self._syntax.text_of(called) if called is not None else ""
            if called is not None and self._syntax.span(called)[0] == self._syntax.span(call)[0]:
                return False  # the call is what is called
            return re.split(r"\W+", text)[-1] in _TAKERS
        if above.type in _MEMBERS:
            named = above.child_by_field_name("attribute") or above.child_by_field_name("property")
            return named is not None and self._syntax.text_of(named) in ("then", "catch", "finally")
        return False

    def _function_around(self, node: Node) -> _Function | None:
        """Return the function that a call runs in; None if there is none that could await it."""
        above = node.parent
        while above is not None and above.type not in _FUNCTIONS:
            if above.type in _LAZY or above.type in ("decorator", "default_parameter"):
                return None
            above = above.parent
        if above is None:
            return None
        outer = above.parent
        is_value = outer is not None and outer.type == "variable_declarator"
        name = self._syntax.name_of(outer if is_value else above)
        is_free = is_value or above.type in _MAY_AWAIT or _awaits(self._source, above)
        return _Function(above, name) if is_free else None

    def _make_async(self, function: _Function) -> bool:
        """Make a function asynchronous; return whether it may be."""
        node, text = function.node, self._syntax.text_of(function.node)
        if node.start_byte in self._functions:
            return True
        outer = node.parent
        is_decorated = outer is not None and outer.type == "decorated_definition"
        is_accessor = any(each.type in ("get", "set", "*") for each in node.children)
        is_generator = re.search(r"\byield\b", text) is not None
        if is_decorated or is_accessor or is_generator or _FIXED.fullmatch(function.name):
            return False
        if self._source.language.endswith("react") and _DRAWS.match(function.name):
            return False
        if _is_fixed(outer):
            return False
        start = self._syntax.span(node)[0]
        head = _BEFORE.match(text)
        assert head is not None, "it matches nothing too"
        self.spans.add((start + head.end(), start + head.end(), "async "))
        self._promise(node)
        self._functions.add(node.start_byte)
        return True

    def _promise(self, function: Node) -> None:
        """Make the return type of a function of TypeScript that of a promise."""
        told = function.child_by_field_name("return_type")
        if told is None or self._source.language not in SCRIPTS:
            return
        kind = told.named_children[-1]
        start, end = self._syntax.span(kind)
        if not self._source.text[start:end].startswith("Promise"):
            self.spans |= {(start, start, "Promise<"), (end, end, ">")}

    def _await(self, call: Node) -> None:
        start, end = self._syntax.span(call)
        if self._source.language == "rust":
            self.spans.add((end, end, ".await"))
            return
        outer = call.parent
        is_object = outer is not None and (
            outer.type in _MEMBERS or outer.child_by_field_name("function") == call
        )
        if is_object:
            self.spans |= {(start, start, "(await "), (end, end, ")")}
        else:
            self.spans.add((start, start, "await "))
