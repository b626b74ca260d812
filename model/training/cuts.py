"""Spans of a file that exist for one name only, found by syntax in every language with a grammar.

Without these spans the file is what it was before the name was added: its definition,
parameter, arguments, list elements, statements and lines are gone, and the rest still parses. The
shape of the tree decides what may be cut (commas, whole lines), not the names of a grammar.
"""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator

from tree_sitter import Node

from ..text.syntax import Syntax, count_errors, language_of, parse

Span = tuple[int, int]  # text[start:end]

MOST_LINES = 14  # of a span
MOST_SPANS = 14  # of one name
_MOST_PLACES = 14  # at which a name may stand
_MOST_NAMES = 4  # that are cut together
_MOST_TRIES = 4  # spans around one place
_LONGEST = 900  # characters of a node that is cut
_FILE_CHARS = range(300, 60_000)
_LONGEST_LINE = 400

NAME = re.compile(r"[^\W\d]\w{2,}")
#: The words of a name: ``HTTPServer_2`` has HTTP, Server and 2.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_KEYED = re.compile(r"(?:\w+\s*[=:]|\*\*)[^=:]")
#: Functions that take any number of arguments, so that one may be missing.
_VARIADIC = re.compile(
    r"print|log|debug|info|warn|error|format|join|append|push|concat|write|any|all|max|min|chain"
    r"|add",
    re.IGNORECASE,
)
_BINDERS = re.compile(
    r"declar|defin|spec|item|param|variant|enum|field_decl|_signature|import|use_list"
)
_ASSIGNS = re.compile(r"assign|declar|let|for|clause")
_FUNCTIONS = re.compile(r"function|method|closure|lambda|constructor")
_LISTS = ("arguments", "argument_list", "value_arguments")
_KEYS = re.compile(
    r"keyword_argument|pair|keyed_element|field_initializer|jsx_attribute|enum|variant"
    r"|assignment_pattern"
)


class NamedFile:
    """A parsed file and its leaves that are names.

    Attributes:
        leaves: by name, in the order of the text.
    """

    def __init__(self, syntax: Syntax) -> None:
        self.syntax, self.text = syntax, syntax.text
        self.leaves: dict[str, list[Node]] = defaultdict(list)
        self._is_python3 = syntax.language == "python" and _compiles(self.text)
        waiting = [syntax.tree.root_node]
        while waiting:
            node = waiting.pop()
            if node.child_count == 0 and node.is_named and node.end_byte - node.start_byte < 60:
                name = syntax.text_of(node)
                if NAME.fullmatch(name):
                    self.leaves[name].append(node)
            waiting.extend(reversed(node.children))

    @classmethod
    def of(cls, path: str, text: str) -> NamedFile | None:
        """Return the file; None if it has errors, no grammar, or an unusual length."""
        language = language_of(path)
        if language is None or len(text) not in _FILE_CHARS:
            return None
        syntax = parse(text, language)
        if (
            syntax is None
            or count_errors(syntax)
            or max(map(len, text.split("\n"))) > _LONGEST_LINE
        ):
            return None
        return cls(syntax)

    def start(self, leaf: Node) -> int:
        """Return where a leaf starts in the text."""
        return self.syntax.span(leaf)[0]

    def parses_without(self, spans: list[Span]) -> bool:
        """Return whether the file has no errors without ``spans``."""
        text = without(self.text, spans)
        syntax = parse(text, self.syntax.language)
        if syntax is None or count_errors(syntax):
            return False
        return not self._is_python3 or _compiles(text)  # the grammar lets an empty block pass


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def without(text: str, spans: list[Span]) -> str:
    """Return the text without the spans."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


# --- all spans of a name ----------------------------------------------------------------------


def spans_of(file: NamedFile, name: str, rng: random.Random) -> list[Span] | None:
    """Return the spans to cut to be rid of ``name`` and of what exists only for it, from the top.

    Half the time, longer names that hold it go too: ``with_timeout`` and ``TIMEOUT_MS`` with
    ``timeout``.

    Returns:
        None where something cannot be cut, or too much would be.
    """
    names, spans, takers = {name}, list[Span](), dict[str, int]()
    if rng.random() < 0.5 and len(name) > 4:
        names |= {other for other in file.leaves if _holds(other, name)}
    waiting = sorted(names)
    while waiting:
        wanted = waiting.pop()
        if len(names) > _MOST_NAMES or len(file.leaves[wanted]) > _MOST_PLACES:
            return None
        own = _takers_of(file, wanted)
        takers |= own
        leaves = [
            *file.leaves[wanted],
            *(node for each in own.items() for node in _given(file, *each)),
        ]
        for leaf in leaves:
            at = file.start(leaf)
            if any(start <= at < end for start, end in spans):
                continue
            span = _span_around(file, leaf, takers)
            if span is None or len(spans) == MOST_SPANS:
                return None
            spans = [each for each in spans if not (span[0] <= each[0] and each[1] <= span[1])]
            spans.append(span)
        orphans = _orphans(file, spans, names)
        names |= orphans
        waiting += sorted(orphans)
    return sorted(spans)


def _holds(other: str, name: str) -> bool:
    """Return whether the words of ``name`` stand side by side in those of ``other``."""
    words, wanted = ([w.lower() for w in WORD.findall(each)] for each in (other, name))
    size = len(wanted)
    return other != name and any(words[i : i + size] == wanted for i in range(len(words)))


def _span_around(file: NamedFile, leaf: Node, takers: dict[str, int]) -> Span | None:
    """Return the smallest span around a leaf without which the file still parses."""
    for tried, span in enumerate(_candidates(file, leaf, takers)):
        if tried == _MOST_TRIES or file.text.count("\n", *span) > MOST_LINES:
            return None
        if file.parses_without([span]):
            return span
    return None


def _candidates(file: NamedFile, leaf: Node, takers: dict[str, int]) -> Iterator[Span]:
    """Yield spans that may be cut to be rid of a leaf, the smallest first."""
    span, text, node = file.syntax.span, file.text, leaf
    while (parent := node.parent) is not None:
        start, end = span(node)
        if end - start > _LONGEST:
            return
        lines = whole_lines(text, start, end)
        before, after = node.prev_sibling, node.next_sibling
        has_comma = [each is not None and each.type == "," for each in (before, after)]
        if any(has_comma):
            if not _is_needed(file, node, parent, takers):
                if lines and has_comma[1]:
                    yield lines
                elif before is not None and has_comma[0]:
                    yield span(before)[0], end
                elif after is not None and after.next_sibling is not None:
                    yield start, span(after.next_sibling)[0]
        elif lines:
            if parent.named_child_count > 1:
                yield lines
        elif node.type in ("jsx_attribute", "attribute") and text[start - 1] == " ":
            if parent.type.startswith(("jsx", "start_tag", "self_closing")):
                yield start - 1, end
        elif parent.child_count == 3 and parent.children[1].type in ("&&", "||", "and", "or", "|"):
            left, right = span(parent.children[0]), span(parent.children[2])
            yield (left[1], right[1]) if node == parent.children[2] else (left[0], right[0])
        node = parent


def _is_needed(file: NamedFile, node: Node, parent: Node, takers: dict[str, int]) -> bool:
    """Return whether a call would miss the argument ``node``."""
    if parent.type not in _LISTS or _KEYED.match(file.syntax.text_of(node)):
        return False
    call = parent.parent
    if call is None:
        return True
    callee = call.child_by_field_name("function") or call.child_by_field_name("name")
    called = re.split(r"\.|::", file.syntax.text_of(callee or call.children[0]))[-1]
    return called not in takers and not _VARIADIC.search(called)


def whole_lines(text: str, start: int, end: int) -> Span | None:
    """Return the lines of ``text[start:end]``, with a comment above them that is about them alone.

    Returns:
        None where something else stands in these lines, or where they are too many.
    """
    top = text.rfind("\n", 0, start) + 1
    bottom = text.find("\n", end)
    bottom = len(text) if bottom < 0 else bottom + 1
    rest = text[end:bottom]
    if text[top:start].strip() or not re.fullmatch(r"\s*[,;]?\s*(?:(?://|#).*)?\s*", rest):
        return None
    if text.count("\n", start, end) >= MOST_LINES:
        return None
    while top > 0:
        above = text.rfind("\n", 0, top - 1) + 1
        if not re.match(r"\s*(?://|#(?!\[)|\*|/\*)", text[above:top]):
            break
        top = above
    has_gap_above = top == 0 or not text[text.rfind("\n", 0, top - 1) + 1 : top].strip()
    gap = re.compile(r"(?:[ \t]*\n)+").match(text, bottom)
    return top, gap.end() if gap and has_gap_above else bottom


# --- functions and scopes ---------------------------------------------------------------------


def is_bound(leaf: Node, reach: int) -> bool:
    """Return whether a leaf gives its name a meaning.

    Args:
        reach: bytes before the leaf at which a node that binds it may start.
    """
    node, top = leaf, leaf.start_byte - reach
    while (parent := node.parent) is not None and node.start_byte >= top:
        if "import" in parent.type or parent.type in ("use_declaration", "use_list"):
            return True
        if _BINDERS.search(parent.type) and parent.child_by_field_name("name") == node == leaf:
            return True
        targets = [parent.child_by_field_name(field) for field in ("left", "pattern")]
        if node in targets and "call" not in node.type:
            return _ASSIGNS.search(parent.type) is not None
        if parent.type == "variable_declarator":
            return parent.child_by_field_name("name") == node
        if parent.type.endswith(("parameters", "parameter_list")):
            return True
        node = parent
    return False


def has_role(leaf: Node) -> bool:
    """Return whether a leaf is bound, a key or a keyword.

    Others, such as methods of library objects, bring nothing along.
    """
    if is_bound(leaf, 300):
        return True
    node = leaf.parent
    while node is not None and node.end_byte - node.start_byte < 200:
        if _KEYS.search(node.type) and leaf.start_byte - node.start_byte < 3:
            return True
        node = node.parent
    return False


def _takers_of(file: NamedFile, name: str) -> dict[str, int]:
    """Return the functions, defined once, with a parameter ``name``, and its place among them."""
    found: dict[str, int] = {}
    for leaf in file.leaves[name]:
        node = leaf
        while node.parent is not None and not node.parent.type.endswith(
            ("parameters", "parameter_list")
        ):
            node = node.parent
        if node.parent is None or node.parent.parent is None:
            continue
        called = node.parent.parent.child_by_field_name("name")
        if called is None or leaf.start_byte > node.start_byte + 40:
            continue
        own = [
            each
            for each in node.parent.named_children
            if each.type != "comment"
            and file.syntax.text_of(each).lstrip("&mut ") not in ("self", "cls", "this")
        ]
        if node in own:
            found[file.syntax.text_of(called)] = own.index(node)
    return {
        function: place
        for function, place in found.items()
        if sum(is_bound(leaf, 1) for leaf in file.leaves[function]) == 1
    }


def _given(file: NamedFile, function: str, place: int) -> Iterator[Node]:
    """Yield the positional arguments at one place of the calls of a function."""
    for leaf in file.leaves[function]:
        for node in filter(None, (leaf.parent, leaf.parent and leaf.parent.parent)):
            lists = [each for each in node.children if each.type in _LISTS]
            if not lists or lists[0].start_byte < leaf.end_byte:
                continue
            given = [each for each in lists[0].named_children if each.type != "comment"]
            named = any(re.search("keyword|spread|splat", n.type) for n in given[: place + 1])
            if place < len(given) and not named:
                yield given[place]
            break


def _orphans(file: NamedFile, spans: list[Span], names: set[str]) -> set[str]:
    """Return further names that only the spans define, but that are used outside of them."""
    found = set()
    for name, leaves in file.leaves.items():
        inside = {
            node.start_byte: span
            for node in leaves
            for span in spans
            if span[0] <= file.start(node) < span[1]
        }
        if name in names or not inside or len(inside) == len(leaves):
            continue
        for node in leaves:
            if node.start_byte not in inside:
                continue
            begin = inside[node.start_byte][0]
            scope = _scope_of(node) or file.syntax.tree.root_node
            places = [n for n in leaves if scope.start_byte <= n.start_byte < scope.end_byte]
            is_first = min(map(file.start, places)) >= begin
            has_others = any(n.start_byte not in inside for n in places)
            reach = node.start_byte - file.syntax.byte_of(begin)
            if is_first and has_others and is_bound(node, reach):
                found.add(name)
                break
    return found


def _scope_of(node: Node) -> Node | None:
    """Return the outermost function around a leaf."""
    found = None
    while (parent := node.parent) is not None:
        node = parent
        is_call = node.parent is None or node.parent.type in ("call", "call_expression")
        if _FUNCTIONS.search(node.type) and not is_call:
            found = node
    return found
