"""Syntax trees of many languages by tree-sitter: parsing, errors, and pieces worth writing.

Languages go by their LSP ids. A grammar is a small wheel of its own, imported when a file of its
language first comes along; where it is missing, everything here answers "no tree" and callers do
without. Offsets are ``str`` indices on the way in and out, however many bytes a character takes.
Knows nothing of prompts, models or editors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import PurePosixPath
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tree_sitter import Language, Node, Parser, Tree

from ..memo import Memo
from .common import common_ends

MAX_CHARS = 2_000_000  # of a text; a longer one is data, and parsing it would take seconds
REST_BYTES = 8_192  # between two rests of a parse in the background; 2 ms of work; a power of two

#: LSP language id: module of the grammar, and its function that returns the language.
_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
    "javascript": ("tree_sitter_javascript", "language"),
    "javascriptreact": ("tree_sitter_javascript", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "lua": ("tree_sitter_lua", "language"),
    "shellscript": ("tree_sitter_bash", "language"),
    "json": ("tree_sitter_json", "language"),
    "jsonc": ("tree_sitter_json", "language"),
    "html": ("tree_sitter_html", "language"),
    "css": ("tree_sitter_css", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
}
LANGUAGES = tuple(_GRAMMARS)
SCRIPTS = ("typescript", "typescriptreact", "javascript", "javascriptreact")

_SUFFIXES = {
    "python": ".py .pyi .pyw",
    "typescript": ".ts .mts .cts",
    "typescriptreact": ".tsx",
    "javascript": ".js .mjs .cjs",
    "javascriptreact": ".jsx",
    "go": ".go",
    "rust": ".rs",
    "java": ".java",
    "c": ".c",
    "cpp": ".cc .cpp .cxx .h .hh .hpp .hxx",  # this grammar reads nearly all of C too
    "csharp": ".cs",
    "ruby": ".rb .rake .gemspec",
    "php": ".php",
    "lua": ".lua",
    "shellscript": ".sh .bash",
    "json": ".json",
    "jsonc": ".jsonc",
    "html": ".html .htm",
    "css": ".css",
    "kotlin": ".kt .kts",
}
_LANGUAGE_OF = {end: name for name, ends in _SUFFIXES.items() for end in ends.split()}


def language_of(path: str) -> str | None:
    """LSP id of the language that ``path`` names by its suffix; None: unknown."""
    return _LANGUAGE_OF.get(PurePosixPath(path.replace("\\", "/")).suffix.lower())


@dataclass(frozen=True)
class Syntax:
    """A parsed text. Nodes count in bytes; the methods here translate. ``Node.text`` must not be
    asked for: it fails where the text was read piece by piece."""

    text: str
    language: str
    tree: Tree

    def span(self, node: Node) -> tuple[int, int]:
        """``text[start:end]`` is the node."""
        return self.char_of(node.start_byte), self.char_of(node.end_byte)

    def text_of(self, node: Node) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def char_of(self, byte: int) -> int:
        """Index of the character that holds ``byte``; the text's length behind the last one."""
        if self._starts is None:
            return byte
        return int(np.searchsorted(self._starts, byte, side="right")) - 1

    def byte_of(self, char: int) -> int:
        return char if self._starts is None else int(self._starts[char])

    @cached_property
    def _starts(self) -> NDArray[np.int64] | None:
        """First byte of each character, and the text's length in bytes; None: all of one byte."""
        if self.text.isascii():
            return None
        codes = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), np.uint32)
        widths = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
        return np.concatenate([[0], np.cumsum(widths)])


def parse(
    text: str,
    language: str,
    earlier: Syntax | None = None,
    rest: Callable[[], None] | None = None,
) -> Syntax | None:
    """The syntax tree of ``text``; None where there is no grammar for the language, or the text is
    longer than :data:`MAX_CHARS`. Safe to call from several threads.

    Args:
        earlier: the tree of an earlier state of this text, which spares parsing what has not
            changed: 2 ms in place of 80 ms after a keystroke in 10,000 lines.
        rest: called every :data:`REST_BYTES`. Parsing holds the interpreter's lock, so a thread in
            the background must sleep for a moment now and then to let others run.
    """
    known = grammar(language)
    if known is None or len(text) > MAX_CHARS:
        return None
    data = text.encode("utf-8", "surrogatepass")
    parser, source = Parser(known), data if rest is None else _Pieces(data, rest)
    if earlier is None or earlier.language != language:
        return Syntax(text, language, parser.parse(source))
    return Syntax(text, language, parser.parse(source, _edited(earlier, data)))


def parsed(text: str, language: str) -> Syntax | None:
    """Return the syntax tree of a text that is asked about repeatedly; see :func:`parse`.

    A text of 2,600 lines takes 20 ms to parse.
    """
    return _TREES.get((text, language), lambda asked: parse(*asked))


_TREES: Memo[tuple[str, str], Syntax | None] = Memo(
    8 << 20, lambda tree: 0 if tree is None else 16 * len(tree.text)
)


class _Pieces:
    """Reads a text piece by piece for the parser, which borrows each until it wants the next.

    py-tree-sitter 0.26.1 never lets go of what it was given: texts of 27 MB left 60 MB behind. So
    it is given views of one small buffer again and again. Their lengths are powers of two, so that
    few views do for every end of a text.
    """

    def __init__(self, data: bytes, rest: Callable[[], None]) -> None:
        self._data = data
        self._rest = rest
        self._buffer, self._views = _buffer_of_thread()

    def __call__(self, start: int, point: object) -> memoryview:
        self._rest()
        left = min(REST_BYTES, len(self._data) - start)
        if left <= 0:
            return self._views[0]
        size = 1 << (left.bit_length() - 1)
        self._buffer[:size] = self._data[start : start + size]
        return self._views[size]


_threads = threading.local()


def _buffer_of_thread() -> tuple[bytearray, dict[int, memoryview]]:
    """The thread's one buffer, and views of its beginning by their lengths."""
    if not hasattr(_threads, "buffer"):
        buffer = bytearray(REST_BYTES)
        sizes = [0, *(1 << power for power in range(REST_BYTES.bit_length()))]
        _threads.buffer = buffer, {size: memoryview(buffer)[:size] for size in sizes}
    made: tuple[bytearray, dict[int, memoryview]] = _threads.buffer
    return made


def _edited(earlier: Syntax, data: bytes) -> Tree:
    """A copy of the earlier tree that knows where ``data`` differs from its text: in one span."""
    before = earlier.text.encode("utf-8", "surrogatepass")
    start, tail = common_ends(before, data)
    old_end, new_end = len(before) - tail, len(data) - tail
    tree = earlier.tree.copy()
    tree.edit(
        start,
        old_end,
        new_end,
        _point(before, start),
        _point(before, old_end),
        _point(data, new_end),
    )
    return tree


def _point(data: bytes, byte: int) -> tuple[int, int]:
    """0-based row, and column in bytes."""
    return data.count(b"\n", 0, byte), byte - (data.rfind(b"\n", 0, byte) + 1)


@cache
def grammar(language: str) -> Language | None:
    """The grammar, imported once; None where it is unknown, not installed or of another age."""
    if language not in _GRAMMARS:
        return None
    module, function = _GRAMMARS[language]
    try:
        return Language(getattr(import_module(module), function)())
    except (ImportError, AttributeError, ValueError, OSError):
        return None


def count_errors(syntax: Syntax, start: int = 0, end: int | None = None) -> int:
    """How many places of ``text[start:end]`` the parser could not make sense of."""
    low = syntax.byte_of(start)
    high = syntax.byte_of(len(syntax.text) if end is None else end)
    if not syntax.tree.root_node.has_error:
        return 0
    # An error may be empty (something is missing): count those at the very edge, too.
    nodes = _nodes_between(syntax.tree, low, high + 1, only_errors=True)
    return sum(node.is_error or node.is_missing for node in nodes)


def rows_around(syntax: Syntax, char: int) -> list[tuple[int, int]]:
    """0-based first and last line of each node that holds ``text[char]``, the innermost first."""
    at = syntax.byte_of(char)
    node, rows = syntax.tree.root_node.descendant_for_byte_range(at, at), list[tuple[int, int]]()
    while node is not None:
        span = node.start_point[0], node.end_point[0]
        if rows[-1:] != [span]:
            rows.append(span)
        node = node.parent
    return rows


# --- pieces -----------------------------------------------------------------------------------

PieceKind = Literal["statement", "expression", "arguments", "body", "string"]


@dataclass(frozen=True, slots=True)
class Piece:
    """``text[start:end]``, something a person writes in one go; without its brackets or quotes."""

    kind: PieceKind
    start: int
    end: int


def pieces(syntax: Syntax, start: int, end: int, longest: int = 400) -> list[Piece]:
    """Pieces of 2 to ``longest`` characters that begin within ``text[start:end]``."""
    low, high = syntax.byte_of(start), syntax.byte_of(end)
    found: dict[tuple[int, int], Piece] = {}
    for node in _nodes_between(syntax.tree, low, high):
        kind = _kind_of(node.type) if node.is_named else None
        if kind is None or node.start_byte < low or node.has_error:
            continue
        span = _written(syntax, node, kind)
        if span is None or not 2 <= span[1] - span[0] <= longest:
            continue
        if kind == "expression" and syntax.text[span[0] : span[1]].isidentifier():
            continue  # a lone name says too little
        found.setdefault(span, Piece(kind, *span))
    return list(found.values())


_ARGUMENTS = ("arguments", "argument_list", "parameters", "parameter_list")
_BODIES = ("block", "body", "compound_statement", "declaration_list", "object", "table_constructor")
_STATEMENTS = (
    *("statement", "declaration", "definition", "item", "assignment", "assert", "clause"),
    *("command", "pair", "rule_set", "element", "start_tag", "return", "import", "preproc_include"),
)
_EXPRESSIONS = (
    *("expression", "operator", "call", "subscript", "comprehension", "lambda", "invocation"),
    *("list", "dictionary", "tuple", "array", "access", "literal", "attribute", "binary", "await"),
    *("function_call", "selector", "type", "condition", "template_substitution"),
)
_STRINGS = ("string", "string_literal", "char_literal", "quoted_attribute_value")


@cache
def _kind_of(node_type: str) -> PieceKind | None:
    """What a named node counts as, by the last words of its type: grammars agree on them."""

    def ends(names: tuple[str, ...]) -> bool:
        return any(node_type == name or node_type.endswith(f"_{name}") for name in names)

    if ends(_STRINGS):
        return "string"
    if ends(_ARGUMENTS):
        return "arguments"
    if ends(_BODIES):
        return "body"
    if ends(_STATEMENTS):
        return "statement"
    return "expression" if ends(_EXPRESSIONS) else None


def _written(syntax: Syntax, node: Node, kind: PieceKind) -> tuple[int, int] | None:
    """The part of the node to write: what is between its brackets or quotes, else all of it."""
    if node.child_count == 0:
        return None
    if kind in ("statement", "expression"):
        return syntax.span(node)
    opens, closes = node.child(0), node.child(node.child_count - 1)
    if opens is None or closes is None or opens == closes:
        return None
    if kind != "body" or not opens.is_named:
        if opens.is_named and opens.type != "string_start":
            return None
        start, end = syntax.char_of(opens.end_byte), syntax.char_of(closes.start_byte)
    else:
        start, end = syntax.span(node)
    if kind != "string":
        inner = syntax.text[start:end]
        start += len(inner) - len(inner.lstrip())
        end -= len(inner) - len(inner.rstrip())
    return (start, end) if start < end else None


def _nodes_between(tree: Tree, low: int, high: int, *, only_errors: bool = False) -> Iterator[Node]:
    """Nodes that overlap the bytes [low, high), parents first.

    Args:
        only_errors: pass by what holds no error.
    """
    cursor = tree.walk()
    while True:
        node = cursor.node
        assert node is not None
        beyond = node.start_byte >= high
        if not beyond and node.end_byte >= low and (node.has_error or not only_errors):
            yield node
            if cursor.goto_first_child_for_byte(low) is not None:
                continue
        while beyond or not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            beyond = False
