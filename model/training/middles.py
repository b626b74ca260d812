"""The part of a file that an infill row removes: what a person would write there in one go.

Most middles end where a line ends, because people stop there. Others end after one token, with a
block, or before text that stands in the same line already.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from tree_sitter import Node

from ..text.syntax import Syntax, language_of, nodes_between, parse

MiddleKind = Literal["token", "tail", "line", "lines", "block", "node", "inside"]

#: How often each kind is drawn.
MIX: dict[MiddleKind, float] = {
    "token": 0.08,  # the rest of a word, or a sign
    "tail": 0.27,  # the rest of a line
    "line": 0.20,
    "lines": 0.13,
    "block": 0.08,  # the rest of a block
    "node": 0.14,  # a piece of syntax
    "inside": 0.10,  # ends before text of the same line, which an answer must not write again
}
LONGEST = 400  # characters of a middle; few longer ones fit an answer
_TRIES = 6

_PAUSE = re.compile(r"[,;:(\[{=.]\s?|\s|\w\b")
_STOP = re.compile(r"[)\]},;:\"']")  # what an editor or a person has put behind the cursor
_TOKEN = re.compile(r"[^\W\d]\w*|\d+|[^\w\s]")
_BRACKET = re.compile(r"[(\[{\"']([^()\[\]{}\"'\n]+)[)\]}\"']")

Span = tuple[int, int]  # text[start:end]


@dataclass(frozen=True)
class SourceText:
    """A text to remove something from; parsed and split once, on demand."""

    path: str
    text: str

    @cached_property
    def starts(self) -> list[int]:
        """The index of each line's first character."""
        return [0, *(m.end() for m in re.finditer("\n", self.text))]

    @cached_property
    def lines(self) -> list[str]:
        """The lines without line ends."""
        return self.text.split("\n")

    @cached_property
    def syntax(self) -> Syntax | None:
        """The syntax tree; None without a grammar."""
        language = language_of(self.path)
        return parse(self.text, language) if language else None

    def line_end(self, line: int) -> int:
        """Return the index behind the line's last character, before its newline."""
        return self.starts[line] + len(self.lines[line])

    def indent(self, line: int) -> int:
        """Return the index of the line's first character that is no space."""
        text = self.lines[line]
        return self.starts[line] + len(text) - len(text.lstrip())


@dataclass(frozen=True, slots=True)
class RemovedSpan:
    """``text[start:end]`` is removed."""

    kind: MiddleKind
    start: int
    end: int


def draw_kind(rng: random.Random) -> MiddleKind:
    """Return a kind, drawn by :data:`MIX`."""
    return rng.choices(list(MIX), list(MIX.values()))[0]


def choose_middle(
    source: SourceText, kind: MiddleKind, rng: random.Random, lines: range | None = None
) -> RemovedSpan | None:
    """Return a middle that begins in one of ``lines`` (default: any) and is not blank.

    Returns:
        None where a few tries find none.
    """
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
            return RemovedSpan(kind, *span)
    return None


def _span(source: SourceText, kind: MiddleKind, line: int, rng: random.Random) -> Span | None:
    indent, end = source.indent(line), source.line_end(line)
    match kind:
        case "token":
            start, stop = rng.choice([m.span() for m in _TOKEN.finditer(source.text, indent, end)])
            return start + rng.randrange(0, min(4, stop - start)), stop
        case "tail":
            return _pause_in(source.text, indent, end, rng), end
        case "line":
            return _whole_lines(source, line, line + 1, rng)
        case "lines":
            return _whole_lines(source, line, line + rng.randint(2, 5), rng)
        case "block":
            return _whole_lines(source, line, _block_end(source, line), rng)
        case "node":
            return _node(source, line, rng)
        case "inside":
            start = _pause_in(source.text, indent, end, rng)
            stops = [m.start() for m in _STOP.finditer(source.text, start + 1, end)]
            return (start, rng.choice(stops[:4])) if stops else None


def _pause_in(text: str, indent: int, end: int, rng: random.Random) -> int:
    """Return where to pause in a line: mostly behind punctuation or a word, sometimes in a word."""
    if rng.random() < 0.3:
        return rng.randrange(indent, end)
    places = [m.end() + indent for m in _PAUSE.finditer(text[indent:end])]
    return rng.choice([place for place in places if place < end] or [indent])


def _whole_lines(source: SourceText, first: int, last: int, rng: random.Random) -> Span:
    """Return the span of lines [first, last).

    It reaches from the indent to the last line's end; or from the line's start to behind the
    newline; or from the end of the line before, where a cursor behind a finished line stands.
    """
    end = source.line_end(min(last, len(source.starts)) - 1)
    draw = rng.random()
    if draw < 0.40:
        return source.indent(first), end
    if draw < 0.85 or first == 0:
        return source.starts[first], min(end + 1, len(source.text))
    return source.starts[first] - 1, end


def _block_end(source: SourceText, line: int) -> int:
    """Return the line behind the last one that is indented at least as deep as ``line``."""
    depth, last = source.indent(line) - source.starts[line], line + 1
    for other in range(line + 1, len(source.starts)):
        if source.starts[other] - source.starts[line] > LONGEST:
            break
        if not source.lines[other].strip():
            continue
        if source.indent(other) - source.starts[other] < depth:
            break
        last = other + 1
    return last


def _node(source: SourceText, line: int, rng: random.Random) -> Span | None:
    """Return a syntax node that begins on the line, each kind of node as likely as the others.

    Without a grammar it is what stands in brackets or quotes.
    """
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
    found: dict[Span, Piece] = {}
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


#: Last words of node types, by kind: grammars agree on them. The first kind that fits counts.
_KINDS: dict[PieceKind, str] = {
    "string": "string string_literal char_literal quoted_attribute_value",
    "arguments": "arguments argument_list parameters parameter_list",
    "body": "block body compound_statement declaration_list object table_constructor",
    "statement": "statement declaration definition item assignment assert clause command pair "
    "rule_set element start_tag return import preproc_include",
    "expression": "expression operator call subscript comprehension lambda invocation list "
    "dictionary tuple array access literal attribute binary await function_call selector type "
    "condition template_substitution",
}


@cache
def _kind_of(node_type: str) -> PieceKind | None:
    for kind, names in _KINDS.items():
        if any(node_type == name or node_type.endswith(f"_{name}") for name in names.split()):
            return kind
    return None


def _written(syntax: Syntax, node: Node, kind: PieceKind) -> Span | None:
    """Return the part of a node between its brackets or quotes, or all of it without these."""
    if node.child_count == 0:
        return None
    if kind in ("statement", "expression"):
        return syntax.span(node)
    opens, closes = node.children[0], node.children[-1]
    if opens == closes:
        return None
    if kind == "body" and opens.is_named:
        start, end = syntax.span(node)
    elif opens.is_named and opens.type != "string_start":
        return None
    else:
        start, end = syntax.char_of(opens.end_byte), syntax.char_of(closes.start_byte)
    if kind != "string":
        inner = syntax.text[start:end]
        start += len(inner) - len(inner.lstrip())
        end -= len(inner) - len(inner.rstrip())
    return (start, end) if start < end else None
