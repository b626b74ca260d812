"""Comments, definitions and tokens, recognised or estimated from single lines.

By patterns, for lines of diffs and of text that does not parse. Languages are LSP ids.
"""

from __future__ import annotations

import re

_HASH, _SLASHES, _DASHES, _OPENED = r"#(?!\[)", r"//", r"--", r"<!--"
#: A block comment, and lines in one, which begin with a star. ``*pointer = 1`` is no comment.
_BLOCK = r"/\*|\*(?=[\s*/]|$)"
_LIKE_C = (_SLASHES, _BLOCK)
#: In style sheets a star is a selector too: ``* {``, ``* > li,``, ``* html p {``.
_STYLED = r"/\*|\*(?!\s*[{>+~]|.*\{\s*$)(?=[\s*/]|$)"

_ANY = (r"#(?!\[|\s*(?:define|include)\b)", *_LIKE_C, _DASHES, ";", "%", _OPENED)
_BEGINNINGS = {
    (): "json",
    ("#",): "python ruby shellscript yaml toml dockerfile makefile perl r julia elixir powershell",
    _LIKE_C: "javascript javascriptreact typescript typescriptreact go rust java c cpp csharp "
    "kotlin swift scala dart jsonc",
    (_STYLED,): "css",
    (_SLASHES, _STYLED): "scss less",
    (_HASH, *_LIKE_C): "php",
    (_DASHES,): "lua haskell elm ada",
    (_DASHES, _BLOCK): "sql",
    (";",): "clojure lisp scheme",
    ("#", ";"): "ini properties",
    ("%",): "latex tex erlang matlab",
    (_OPENED,): "html xml",
}
_BEGINS = {
    language: re.compile(rf"\s*(?:{'|'.join(marks)})" if marks else "(?!)")
    for marks, languages in _BEGINNINGS.items()
    for language in languages.split()
}
_BEGINS_ANY = re.compile(rf"\s*(?:{'|'.join(_ANY)})")

#: A pattern of comments within a line of code of any language.
WITHIN = r"(?:#|//).*|/\*.*?\*/"


def is_comment(line: str, language: str = "") -> bool:
    """Return whether a line begins with a comment.

    A language that is not known has the comments of all languages.
    """
    return _BEGINS.get(language, _BEGINS_ANY).match(line) is not None


_IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|use\s+[\w:\\]|#\s*include\b|using\s+[\w.=\s]+;"
    r"|(?:local\s+\w+\s*=\s*)?require(?:_relative|_once)?\b|(?:const|let|var)\b.*=\s*require\("
    r"|export\b.*\bfrom\s|package\s+[\w.]+;?\s*$)"
    r"|\t\"[\w./-]+\"$"  # in a block of Go
)


def imports(line: str) -> bool:
    """Return whether a line imports something."""
    return _IMPORT.match(line) is not None


_DEFINING = (
    r"(?:def|class|func|fn|fun|function|struct|enum|union|trait|interface|type|typedef|protocol"
    r"|record|object|module|namespace|mod|const|let|var|val|static|sub|macro_rules!|#\s*define)"
)
#: Words before a name that are not its type.
NO_TYPES = frozenset(
    re.findall(
        r"\w+",
        "return new await yield throw raise else case in not and or is print del delete if elif "
        "for while import from as assert with go defer echo typeof instanceof lambda when unless",
    )
)
_FUNCTION = re.compile(
    r"\b(?:def|func|fn|fun|function)\b|^\s*(?:[\w<>\[\],.?]+\s+)*\w+\s*\([^()]*\)[^(){};]*\{\s*$"
)
_NO_FUNCTION = re.compile(r"^\s*(?:\}\s*)?(?:else\s+)?(?:if|for|while|switch|match|catch)\b")


def defines(line: str, name: str) -> bool:
    """Return whether a line of code looks like the definition of ``name``."""
    place = re.search(rf"(?<![\w.]){re.escape(name)}\b", line)
    if place is None:
        return False
    before, after = line[: place.start()], line[place.end() :]
    if re.search(rf"\b{_DEFINING}\s+(?:\([^()]*\)\s*)?[*&]*$", before):
        return True
    if re.match(r"\s*(?::[^=]*)?=(?![=>])", after):
        return not before.strip()  # an assignment
    typed = re.search(r"([^\W\d]\w*)[\w<>\[\],:.?]*[\s*&]+$", before)
    if re.match(r"\s*(?:<[^<>]*>)?\(", after):
        if typed is not None:  # int area(…
            return typed[1] not in NO_TYPES and "(" not in before and "=" not in before
        return not before.strip() and line.rstrip().endswith("{")  # area(…) {
    return False


def defines_function(line: str) -> bool:
    """Return whether a line begins the definition of a function."""
    return bool(_FUNCTION.search(line)) and not _NO_FUNCTION.match(line)


# --- estimates --------------------------------------------------------------------------------

_CHARS_PER_TOKEN = 3.2  # of code without its indentation


def estimate(line: str) -> float:
    """Return the tokens of a line with its newline."""
    return 1.5 + len(line.strip()) / _CHARS_PER_TOKEN


def estimate_text(text: str) -> float:
    """Return the tokens of a text."""
    return sum(map(estimate, text.split("\n")))
