"""Which part of a file an infill row removes: what a person would be about to write there.

Line tails, whole lines, a few lines, the rest of a block, syntax nodes (brackets' contents where
the language has no grammar), what ends before text that stands in the same line already, the rest
of a word, and a few random spans. Pure given a ``random.Random``; knows nothing of tokens or
prompts.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from tree_sitter import Node

from ..text.syntax import Syntax, language_of, nodes_between, parse

MiddleKind = Literal["tail", "line", "lines", "block", "node", "inside", "word", "span"]

#: How often each kind is drawn. Most end where a line ends: that is where people stop. "inside" and
#: "word" end before text of the same line, which an answer must not write again.
MIX: dict[MiddleKind, float] = {
    "tail": 0.28,
    "line": 0.20,
    "lines": 0.13,
    "block": 0.07,
    "node": 0.14,
    "inside": 0.10,
    "word": 0.05,
    "span": 0.03,
}
LONGEST = 400  # characters of a middle; few longer ones fit an answer
_TRIES = 6

_PAUSE = re.compile(r"[,;:(\[{=.]\s?|\s|\w\b")
_STOP = re.compile(r"[)\]},;:\"']")  # what an editor or a person has put behind the cursor
_WORD = re.compile(r"[^\W\d]\w+")
_BRACKET = re.compile(r"[(\[{\"']([^()\[\]{}\"'\n]+)[)\]}\"']")


@dataclass(frozen=True)
class SourceText:
    """A text to remove something from; parsed and split once, on demand."""

    path: str
    text: str

    @cached_property
    def starts(self) -> list[int]:
        """Index of each line's first character."""
        return [0, *(m.end() for m in re.finditer("\n", self.text))]

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def syntax(self) -> Syntax | None:
        language = language_of(self.path)
        return parse(self.text, language) if language else None

    def line_end(self, line: int) -> int:
        """Index behind the line's last character, before its newline."""
        return self.starts[line + 1] - 1 if line + 1 < len(self.starts) else len(self.text)

    def indent(self, line: int) -> int:
        """Index of the line's first character that is no space."""
        start, end = self.starts[line], self.line_end(line)
        return end - len(self.text[start:end].lstrip())


@dataclass(frozen=True, slots=True)
class Middle:
    """``text[start:end]`` is removed."""

    kind: MiddleKind
    start: int
    end: int


def draw_kind(rng: random.Random) -> MiddleKind:
    """By :data:`MIX`."""
    return rng.choices(list(MIX), list(MIX.values()))[0]


def choose_middle(
    source: SourceText, kind: MiddleKind, rng: random.Random, lines: range | None = None
) -> Middle | None:
    """A middle that begins in one of ``lines`` (default: any) and is not blank; None where a few
    tries find none."""
    pool = lines if lines is not None and len(lines) else range(len(source.starts))
    for _ in range(_TRIES):
        line = min(rng.choice(pool), len(source.starts) - 1)
        if source.indent(line) == source.line_end(line):
            continue
        span = _span(source, kind, line, rng)
        if span is None or span[1] - span[0] > LONGEST:
            continue
        text = source.text[span[0] : span[1]].strip()
        if any(map(str.isalnum, text)) or (text and rng.random() < 0.3):  # mostly not a lone "}"
            return Middle(kind, *span)
    return None


def _span(
    source: SourceText, kind: MiddleKind, line: int, rng: random.Random
) -> tuple[int, int] | None:
    indent, end = source.indent(line), source.line_end(line)
    if kind == "tail":
        return cut_in_line(source.text, indent, end, rng), end
    if kind == "line":
        return _whole_lines(source, line, line + 1, rng)
    if kind == "lines":
        return _whole_lines(source, line, line + rng.randint(2, 5), rng)
    if kind == "block":
        return _whole_lines(source, line, _block_end(source, line), rng)
    if kind == "node":
        return _node(source, line, rng)
    if kind == "inside":
        return _inside(source, indent, end, rng)
    if kind == "word":
        return _rest_of_word(source, indent, end, rng)
    low = rng.randrange(indent, end)
    return low, min(len(source.text), low + rng.randint(4, 60))


def _whole_lines(source: SourceText, first: int, last: int, rng: random.Random) -> tuple[int, int]:
    """Lines [first, last): from the indent to the last line's end; from the line's start with the
    newline; or, as a cursor at the end of a finished line asks, from the line before."""
    last = min(last, len(source.starts))
    end = source.line_end(last - 1)
    draw = rng.random()
    if draw < 0.40:
        return source.indent(first), end
    if draw < 0.85 or first == 0:
        return source.starts[first], min(end + 1, len(source.text))
    return source.starts[first] - 1, end


def _block_end(source: SourceText, line: int) -> int:
    """The line behind the last of those that are indented at least as deep as ``line``."""
    depth = source.indent(line) - source.starts[line]
    last = line + 1
    for other in range(line + 1, len(source.starts)):
        if source.starts[other] - source.starts[line] > LONGEST:
            break
        indent = source.indent(other)
        if indent == source.line_end(other):
            continue
        if indent - source.starts[other] < depth:
            break
        last = other + 1
    return last


def _inside(
    source: SourceText, indent: int, end: int, rng: random.Random
) -> tuple[int, int] | None:
    """From a pause within a line to before a bracket, quote, comma, … that stands further right."""
    start = cut_in_line(source.text, indent, end, rng)
    stops = [m.start() for m in _STOP.finditer(source.text, start + 1, end)]
    return (start, rng.choice(stops[:4])) if stops else None


def _rest_of_word(
    source: SourceText, indent: int, end: int, rng: random.Random
) -> tuple[int, int] | None:
    """An identifier, or what is left of it after its first letters."""
    words = [m.span() for m in _WORD.finditer(source.text, indent, end)]
    if not words:
        return None
    start, stop = rng.choice(words)
    return start + rng.randrange(0, min(4, stop - start)), stop


def cut_in_line(text: str, indent: int, end: int, rng: random.Random) -> int:
    """Where a person pauses within a line: mostly after punctuation or between words, sometimes
    inside a word."""
    if end <= indent:
        return indent
    if rng.random() < 0.3:
        return rng.randrange(indent, end)
    places = [m.end() + indent for m in _PAUSE.finditer(text[indent:end])]
    places = [p for p in places if p < end]
    return rng.choice(places) if places else indent


def _node(source: SourceText, line: int, rng: random.Random) -> tuple[int, int] | None:
    """A syntax node that begins on the line, each kind of node as likely as the others."""
    start, end = source.starts[line], source.line_end(line)
    if source.syntax is None:
        inside = [m.span(1) for m in _BRACKET.finditer(source.text, start, end)]
        return rng.choice(inside) if inside else None
    found = pieces(source.syntax, start, end, LONGEST)
    if not found:
        return None
    kind = rng.choice(sorted({piece.kind for piece in found}))
    piece = rng.choice([piece for piece in found if piece.kind == kind])
    return piece.start, piece.end


# --- pieces of syntax ---------------------------------------------------------------------------

PieceKind = Literal["statement", "expression", "arguments", "body", "string"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece, ``text[start:end]``, without its brackets or quotes."""

    kind: PieceKind
    start: int
    end: int


def pieces(syntax: Syntax, start: int, end: int, longest: int = 400) -> list[Piece]:
    """Return pieces of 2 to ``longest`` characters that begin within ``text[start:end]``."""
    low, high = syntax.byte_of(start), syntax.byte_of(end)
    found: dict[tuple[int, int], Piece] = {}
    for node in nodes_between(syntax.tree, low, high):
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
    """Return the kind of a named node, by the last words of its type: grammars agree on them."""

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
    """Return the part of a node between its brackets or quotes, or all of it without these."""
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
