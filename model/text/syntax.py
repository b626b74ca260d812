"""Syntax trees by tree-sitter: parsing, errors and enclosing nodes.

Languages are LSP ids. Each grammar is a wheel, imported when it is first needed; without it there
is no tree. Offsets are ``str`` indices.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray
from tree_sitter import Language, Node, Parser, Tree

from ..memo import Memo
from .common import common_ends
from .names import places_of

MAX_CHARS = 2_000_000  # of a text; a longer one is data, and parsing it would take seconds
#: Brackets or elements that are open at once in a text; a deeper one is data. Each check of a
#: suggestion parses several times, in which no message is answered: with 40,000 levels of JSON that
#: took 1.3 s, of HTML, which the parser reads in quadratic time, 8 s.
MAX_DEPTH = 4_000
REST_BYTES = 8_192  # between two rests of a parse in the background; 2 ms of work; a power of two

#: By LSP id: the module of the grammar, its function that returns the language, and the suffixes.
_GRAMMARS = {
    "python": ("tree_sitter_python", "language", ".py .pyi .pyw"),
    "typescript": ("tree_sitter_typescript", "language_typescript", ".ts .mts .cts"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx", ".tsx"),
    "javascript": ("tree_sitter_javascript", "language", ".js .mjs .cjs"),
    "javascriptreact": ("tree_sitter_javascript", "language", ".jsx"),
    "go": ("tree_sitter_go", "language", ".go"),
    "rust": ("tree_sitter_rust", "language", ".rs"),
    "java": ("tree_sitter_java", "language", ".java"),
    "c": ("tree_sitter_c", "language", ".c"),
    # The grammar of C++ reads nearly all headers of C too.
    "cpp": ("tree_sitter_cpp", "language", ".cpp .cc .cxx .h .hh .hpp .hxx"),
    "csharp": ("tree_sitter_c_sharp", "language", ".cs"),
    "ruby": ("tree_sitter_ruby", "language", ".rb .rake .gemspec"),
    "php": ("tree_sitter_php", "language_php", ".php"),
    "lua": ("tree_sitter_lua", "language", ".lua"),
    "shellscript": ("tree_sitter_bash", "language", ".sh .bash"),
    "json": ("tree_sitter_json", "language", ".json"),
    "jsonc": ("tree_sitter_json", "language", ".jsonc"),
    "html": ("tree_sitter_html", "language", ".html .htm"),
    "css": ("tree_sitter_css", "language", ".css"),
    "kotlin": ("tree_sitter_kotlin", "language", ".kt .kts"),
}
LANGUAGES = tuple(_GRAMMARS)
SCRIPTS = ("typescript", "typescriptreact", "javascript", "javascriptreact")
_LANGUAGE_OF = {end: name for name, (*_, ends) in _GRAMMARS.items() for end in ends.split()}


def language_of(path: str) -> str | None:
    """Return the LSP id of the language that the suffix of ``path`` names; None: unknown."""
    return _LANGUAGE_OF.get(PurePosixPath(path.replace("\\", "/")).suffix.lower())


def suffix_of(language: str) -> str:
    """Return the usual suffix of a language's files, "" for a language without a grammar."""
    *_, suffixes = _GRAMMARS.get(language, ("",))
    return suffixes.split(" ")[0]


@dataclass(frozen=True)
class Syntax:
    """A parsed text.

    Nodes count in bytes, which the methods translate. Do not use ``Node.text``: it fails where the
    text was read in pieces.
    """

    text: str
    language: str
    tree: Tree

    def span(self, node: Node) -> tuple[int, int]:
        """Return the start and the end of a node in the text."""
        return self.char_of(node.start_byte), self.char_of(node.end_byte)

    def text_of(self, node: Node) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def name_of(self, node: Node | None) -> str:
        """Return the name that a node has as its field, "" without one."""
        named = node.child_by_field_name("name") if node is not None else None
        return self.text_of(named) if named is not None else ""

    def node_at(self, start: int, end: int | None = None) -> Node | None:
        """Return the smallest node that holds ``text[start:end]``, by default one character."""
        low, high = self.byte_of(start), self.byte_of(start + 1 if end is None else end)
        return self.tree.root_node.descendant_for_byte_range(low, high)

    def leaves_named(self, name: str) -> Iterator[Node]:
        """Yield the leaves that are a name, found in the text: a walk over the tree takes long."""
        for at in places_of(name, self.text):
            leaf = self.node_at(at, at + len(name))
            if leaf is not None and not leaf.child_count and self.text_of(leaf) == name:
                yield leaf

    def around(self, start: int, end: int) -> Iterator[tuple[Node, int, int]]:
        """Yield the nodes that hold ``text[start:end]``, with their spans, innermost first."""
        node = self.node_at(start, end)
        while node is not None:
            yield node, *self.span(node)
            node = node.parent

    def char_of(self, byte: int) -> int:
        """Return the index of the character that holds a byte, or the length of the text."""
        if self._starts is None:
            return byte
        return int(np.searchsorted(self._starts, byte, side="right")) - 1

    def byte_of(self, char: int) -> int:
        """Return the index of the first byte of a character."""
        return char if self._starts is None else int(self._starts[char])

    @cached_property
    def _starts(self) -> NDArray[np.int64] | None:
        """The first byte of each character and the length in bytes; None: all have one byte."""
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
    """Return the syntax tree of a text.

    It is None without a grammar, above :data:`MAX_CHARS` or deeper than :data:`MAX_DEPTH`.

    Safe to call from several threads.

    Args:
        earlier: the tree of an earlier state of this text; only changes are parsed then: 2 ms in
            place of 80 ms after a keystroke in 10,000 lines.
        rest: called every :data:`REST_BYTES`. Parsing holds the interpreter lock, so a background
            thread must sleep now and then to let others run.
    """
    known = grammar(language)
    if known is None or len(text) > MAX_CHARS:
        return None
    data = text.encode("utf-8", "surrogatepass")
    if _depth(data, language) > MAX_DEPTH:
        return None
    parser, source = Parser(known), data if rest is None else _Pieces(data, rest)
    if earlier is None or earlier.language != language:
        return Syntax(text, language, parser.parse(source))
    return Syntax(text, language, parser.parse(source, _edited(earlier, data)))


#: 1 for an opening bracket, -1 for a closing one.
_STEPS = bytes.maketrans(b"([{)]}", b"\x01\x01\x01\xff\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"([{)]}"))
#: Elements but for those that have no end tag.
_TAG = re.compile(rb"<(/?)(?!(?:br|hr|img|input|link|meta|source|wbr)\b)[a-z]", re.IGNORECASE)


def _depth(data: bytes, language: str) -> int:
    """Return how many brackets, or elements of HTML, are open at once at most, about."""
    brackets = data.translate(_STEPS, _NO_BRACKETS)
    if len(brackets) <= MAX_DEPTH and language != "html":
        return 0  # nearly every text
    steps = np.frombuffer(brackets, np.int8)
    if language == "html":
        tags = np.array([-1 if tag[1] else 1 for tag in _TAG.finditer(data)], np.int8)
        return max(_highest(steps), _highest(tags))
    return _highest(steps)


def _highest(steps: NDArray[np.int8]) -> int:
    """Return the highest sum of consecutive steps."""
    sums = np.cumsum(steps, dtype=np.int32)
    lowest = np.minimum(np.minimum.accumulate(sums), 0)
    return int((sums - lowest).max(initial=0))


def parse_cached(text: str, language: str) -> Syntax | None:
    """Return the syntax tree of a text that is asked about repeatedly; see :func:`parse`.

    A text of 2,600 lines takes 20 ms to parse.
    """
    return _TREES.get((text, language), lambda asked: parse(*asked))


def parse_incrementally(text: str, language: str) -> Syntax | None:
    """Return the syntax tree of a text that changes with each key; see :func:`parse`.

    Only what differs from the last text of the language is parsed. Where the text is broken, the
    tree may differ from a fresh one.
    """
    tree = parse(text, language, _LATEST.get(language))
    if tree is not None:
        _LATEST[language] = tree
    return tree


_LATEST: dict[str, Syntax] = {}  # by language

_TREES: Memo[tuple[str, str], Syntax | None] = Memo(
    8 << 20, lambda tree: 0 if tree is None else 16 * len(tree.text)
)


class _Pieces:
    """A text that the parser reads in pieces.

    py-tree-sitter 0.26.1 never frees the objects that it is given: texts of 27 MB leaked 60 MB.
    So it gets views of one small buffer. Their lengths are powers of two to limit their number.
    """

    def __init__(self, data: bytes, rest: Callable[[], None]) -> None:
        self._data = data
        self._rest = rest
        self._buffer, self._views = _buffer_of_thread()

    def __call__(self, start: int, _point: object) -> memoryview:
        self._rest()
        left = min(REST_BYTES, len(self._data) - start)
        if left <= 0:
            return self._views[0]
        size = 1 << (left.bit_length() - 1)
        self._buffer[:size] = self._data[start : start + size]
        return self._views[size]


_threads = threading.local()


def _buffer_of_thread() -> tuple[bytearray, dict[int, memoryview]]:
    """Return the buffer of the thread, and views of its beginning by their lengths."""
    if not hasattr(_threads, "buffer"):
        buffer = bytearray(REST_BYTES)
        sizes = [0, *(1 << power for power in range(REST_BYTES.bit_length()))]
        _threads.buffer = buffer, {size: memoryview(buffer)[:size] for size in sizes}
    made: tuple[bytearray, dict[int, memoryview]] = _threads.buffer
    return made


def _edited(earlier: Syntax, data: bytes) -> Tree:
    """Return a copy of the earlier tree, with the span in which ``data`` differs marked."""
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
    """Return the 0-based row, and the column in bytes."""
    return data.count(b"\n", 0, byte), byte - (data.rfind(b"\n", 0, byte) + 1)


@cache
def grammar(language: str) -> Language | None:
    """Return the grammar; None if it is unknown, not installed or of an unsupported version."""
    if language not in _GRAMMARS:
        return None
    module, function, _ = _GRAMMARS[language]
    try:
        return Language(getattr(import_module(module), function)())
    except (ImportError, AttributeError, ValueError, OSError):
        return None


def count_errors(syntax: Syntax, start: int = 0, end: int | None = None) -> int:
    """Return the number of syntax errors in ``text[start:end]``."""
    low = syntax.byte_of(start)
    high = syntax.byte_of(len(syntax.text) if end is None else end)
    if not syntax.tree.root_node.has_error:
        return 0
    # A missing token is an empty error: count those at the very edge, too.
    nodes = nodes_between(syntax.tree, low, high + 1, only_errors=True)
    return sum(node.is_error or node.is_missing for node in nodes)


def rows_around(syntax: Syntax, char: int) -> list[tuple[int, int]]:
    """Return the 0-based first and last line of each node around a character, innermost first."""
    at = syntax.byte_of(char)
    node, rows = syntax.tree.root_node.descendant_for_byte_range(at, at), list[tuple[int, int]]()
    while node is not None:
        span = node.start_point[0], node.end_point[0]
        if rows[-1:] != [span]:
            rows.append(span)
        node = node.parent
    return rows


def descendants(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes in it, parents first."""
    cursor = node.walk()
    while True:
        found = cursor.node
        assert found is not None, "a cursor stands on a node"
        yield found
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return


def nodes_between(tree: Tree, low: int, high: int, *, only_errors: bool = False) -> Iterator[Node]:
    """Yield the nodes that overlap the bytes [low, high), parents first.

    Args:
        only_errors: skip nodes without errors.
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
