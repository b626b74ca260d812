"""How comments are written, by language: what begins one, and what of a line is one.

By patterns, line by line, as lines may be broken. Languages go by their LSP ids; of one that is
not known whatever begins a comment somewhere does. Pure.
"""

from __future__ import annotations

import re

_HASH, _SLASHES, _DASHES, _OPENED = r"#(?!\[)", r"//", r"--", r"<!--"
#: A block, and the lines within one, which begin with a star: ``*pointer = 1`` is none.
_BLOCK = r"/\*|\*(?=[\s*/]|$)"
_LIKE_C = (_SLASHES, _BLOCK)
#: In style sheets a star is the selector of everything too: ``* {``, ``* > li,``, ``* html p {``.
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

#: A comment within a line of code whose language is not told, as a pattern: to its end, or to that
#: of the line.
WITHIN = r"(?:#|//).*|/\*.*?\*/"


def is_comment(line: str, language: str = "") -> bool:
    """Whether nothing but a comment stands in a line, or begins it."""
    return _BEGINS.get(language, _BEGINS_ANY).match(line) is not None
