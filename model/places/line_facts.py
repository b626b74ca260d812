"""Facts of single lines: words, calls, shape and kind of statement, read with regular expressions.

A regular expression per kind stands in for a syntax tree, because a full parse of 2,600 lines takes
20 ms and a line is read once (40 µs).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

LONGEST = 400  # characters of a line that are read
_KNOWN_LINES = 40_000  # lines whose facts are kept, of about 1 KB each

WORD = re.compile(r"[^\W\d]\w*|\d[\d.]*")
_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\w\s]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CALL = re.compile(r"([^\W\d]\w*)\s*!?\(")
_KEYWORD_ARGUMENT = re.compile(r"[(,]\s*([^\W\d]\w*)\s*=(?!=)")
_MEMBER = re.compile(r"\.([^\W\d]\w*)")
_DEFINED = re.compile(
    r"\b(?:def|class|function|fn|func|fun|struct|enum|trait|interface|type|const|let|var|static"
    r"|mod|namespace|val)\s+([^\W\d]\w*)|^\s*([^\W\d]\w*)\s*(?::[^=\n]+)?=(?!=)"
)
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "def class func function fn fun struct enum union trait interface impl type module "
        "namespace const mod let var val local global nonlocal static self this super None True "
        "False null nil true false undefined async await try catch except finally raise throw "
        "throws new return yield if elif else for while do in of is not and or with as from "
        "import export default extends implements public private protected use using package "
        "where match switch case break continue pass lambda del assert typeof instanceof void "
        "int str float bool string pub mut ref move dyn go defer chan map range select abstract "
        "final override",
    )
)
_SHAPE_TOKENS = 16


class Kind(IntEnum):
    """Kind of statement that a line looks like. The numbers are inputs of the weights."""

    BLANK = 0
    COMMENT = 1
    DOCSTRING = 2
    IMPORT = 3
    FUNCTION = 4
    CLASS = 5
    DECORATOR = 6
    RETURN = 7
    CONTROL = 8
    CASE = 9
    ENTRY = 10  # "key: value"
    ITEM = 11  # one element of a list
    CLOSING = 12  # brackets alone
    ASSERT = 13
    ASSIGNMENT = 14
    CALL = 15
    OTHER = 16
    RAISE = 17


_FIRST_WORDS = {
    "return": Kind.RETURN,
    "yield": Kind.RETURN,
    "raise": Kind.RAISE,
    "throw": Kind.RAISE,
    "panic!": Kind.RAISE,
}
_MODIFIERS = "export|pub(?:\\([^)]*\\))?|async|static|public|private|protected|default|abstract"
_HEADER = re.compile(
    rf"(?:(?:{_MODIFIERS}|final|override|unsafe|const|extern)\s+)*"
    r"(?:(?P<function>def|fn|func|function|fun)\b"
    r"|(?:class|struct|enum|trait|interface|impl|type|module|namespace|mod|record|object)\b)"
)
_FUNCTION = re.compile(
    r"(?:it|test|describe|t\.Run|suite|beforeEach|afterEach)\b[.\w]*\("
    r"|(?:export\s+)?(?:const|let|var)\s+\w+.*=>\s*[{(]?\s*$"
    r"|.*=\s*(?:async\s+)?function\b"
)
_METHOD = re.compile(
    r"(?:[\w<>\[\],.?@]+\s+)*[\w$]+\s*\([^;]*\)?\s*(?:throws [\w., ]+)?(?::\s*[^;{]+)?\{$"
)
#: The first pattern that matches a line without its indentation names its kind.
_PATTERNS = (
    (Kind.CLOSING, re.compile(r"[\s)\]};,]*$")),
    (
        Kind.IMPORT,
        re.compile(
            r"import\b|from\s+\S+\s+import\b|use\s|pub use\s|#include\b|require\b|package\b"
            r"|export\s+(?:\*|\{).*\bfrom\b|(?:const|let|var)\s+.*=\s*require\("
        ),
    ),
    (Kind.FUNCTION, _FUNCTION),
    (
        Kind.CONTROL,
        re.compile(
            r"(?:\}\s*)?(?:if|elif|else|for|while|do|try|except|catch|finally|switch|match|with"
            r"|loop|select)\b"
        ),
    ),
    (Kind.CASE, re.compile(r"case\b|default\s*:|[\w:|&'\"(){}., ]+=>\s*\S")),
    (Kind.FUNCTION, _METHOD),
    (Kind.ITEM, re.compile(r"(?:\"[^\"]*\"|'[^']*'|&?[\w.$:]+)\s*,$")),
    (Kind.ENTRY, re.compile(r"(?:\"[^\"]*\"|'[^']*'|[\w.$-]+\??)\s*:\s*.*,?$")),
    (
        Kind.ASSIGNMENT,
        re.compile(
            r"(?:(?:const|let|var|val|static|final|public|private|protected|readonly|mut|pub)\s+)*"
            r"[\w.$\[\]\"'<>,*&: ]+?\s*(?::=|[-+*/|&]?=)(?!=)"
        ),
    ),
    (Kind.CALL, re.compile(r"(?:await\s+)?[\w.$:]+!?\s*\(")),
)


class LineFacts(NamedTuple):
    """Facts of a line. Tokens are int64 hashes, the same within one process."""

    words: tuple[int, ...]  # different words, in order
    parts: tuple[int, ...]  # of names, in lower case: "read_file" has "read" and "file"
    uses: tuple[int, ...]  # calls, keyword arguments and members
    shape: int  # of the tokens with names, numbers and strings left open
    first: int  # token
    first_two: int  # tokens
    last: int  # token
    kind: int  # :class:`Kind`
    indent: int  # columns; -1: a blank line
    length: int  # characters, 200 at most
    text: int  # without the spaces around it
    brackets: int  # opened less closed


_known: dict[str, LineFacts] = {}


def facts_of(line: str) -> LineFacts:
    """Return the facts of a line, read once per text."""
    found = _known.get(line)
    if found is None:
        if len(_known) >= _KNOWN_LINES:
            _known.clear()
        found = _known[line] = _read(line[:LONGEST])
    return found


def is_known(line: str) -> bool:
    """Return whether the facts of a line are there already."""
    return line in _known


def kind_of(line: str) -> Kind:
    """Return the kind of statement that a line looks like."""
    text = line.strip()
    if not text:
        return Kind.BLANK
    if text.startswith(('"""', "'''")):
        return Kind.DOCSTRING
    is_hash = text[0] == "#" and not text.startswith(("#[", "#!", "#include"))
    if is_hash or text.startswith(("//", "/*", "* ", "*/")) or text == "*":
        return Kind.COMMENT
    if text.startswith(("@", "#[", "#!")):
        return Kind.DECORATOR
    if (header := _HEADER.match(text)) is not None:
        return Kind.FUNCTION if header["function"] else Kind.CLASS
    first = text.split(None, 1)[0].rstrip("(:;{")
    if first in _FIRST_WORDS:
        return _FIRST_WORDS[first]
    if first.startswith(("assert", "expect")):
        return Kind.ASSERT
    return next((kind for kind, pattern in _PATTERNS if pattern.match(text)), Kind.OTHER)


def words_of(lines: Iterable[str]) -> dict[str, None]:
    """Return the different words of some lines, in order."""
    return dict.fromkeys(word for line in lines for word in WORD.findall(line[:LONGEST]))


def parts_of(names: Iterable[str]) -> dict[str, None]:
    """Return the different parts of some names in lower case, keywords left out."""
    return dict.fromkeys(
        part.lower()
        for name in names
        if name not in KEYWORDS
        for part in _PART.findall(name)
        if len(part) > 1
    )


def names_defined(lines: Iterable[str]) -> set[str]:
    """Return the names that some lines define or assign."""
    return {one or other for line in lines for one, other in _DEFINED.findall(line[:LONGEST])}


def _read(line: str) -> LineFacts:
    names = words_of([line])
    tokens = _TOKEN.findall(line)
    uses = dict.fromkeys(
        hash(sign + name)
        for sign, pattern in (("(", _CALL), ("=", _KEYWORD_ARGUMENT), (".", _MEMBER))
        for name in pattern.findall(line)
    )
    text, body = line.strip(), line.expandtabs(4)
    opened, closed = (sum(map(line.count, signs)) for signs in ("([{", ")]}"))
    return LineFacts(
        tuple(map(hash, names)),
        tuple(map(hash, parts_of(names))),
        tuple(uses),
        hash(" ".join(map(_open_form, tokens[:_SHAPE_TOKENS]))),
        hash(tokens[0] if tokens else ""),
        hash(" ".join(tokens[:2]) if len(tokens) > 1 else ""),
        hash(tokens[-1] if tokens else ""),
        int(kind_of(line)),
        len(body) - len(body.lstrip()) if text else -1,
        min(len(line), 200),
        hash(text),
        opened - closed,
    )


def _open_form(token: str) -> str:
    """Return a token as the shape of a line has it: "i" for any name."""
    if token in KEYWORDS:
        return token
    if token[0].isalpha() or token[0] == "_":
        return "i"
    if token[0].isdigit():
        return "n"
    return "s" if token[0] in "\"'" and len(token) > 1 else token
