"""Lines that define a name, recognised by patterns, as text that does not parse yet needs them too.

Pure.
"""

from __future__ import annotations

import re

_DEFINING = (
    r"(?:def|class|func|fn|fun|function|struct|enum|union|trait|interface|type|typedef|protocol"
    r"|record|object|module|namespace|mod|const|let|var|val|static|sub|macro_rules!|#\s*define)"
)
#: Words that no name follows which they declare, as a type would.
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
#: Text before a name, or behind it, where the name is defined.
_BEFORE = re.compile(
    r"\b(?:class|def|fn|func|fun|function|struct|enum|trait|interface|type|const|let|var|val|mut|for"
    r"|import|from|as|use|package|namespace|mod|lambda|catch|except|global|goto|break|continue)\s+"
    r"(?:[\w\s,.*(]|::)*$|\|[\w\s,]*$"
)
_BEHIND = re.compile(r"\s*(?::=|=(?![=>])|:(?!:)|,[\w\s,]*(?::=|=(?!=))|\s+in\b|\s*=>)")
#: Characters before a name that are read.
NEAR_CHARS = 160


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


def is_defined_at(code: str, found: re.Match[str]) -> bool:
    """Return whether the name that ``found`` matches in a line of code is defined there."""
    before = code[: found.start()]
    if _BEFORE.search(code, max(0, found.start() - NEAR_CHARS), found.start()):
        return True
    owned = before.rstrip().endswith((".", "->", "::"))
    return not owned and _BEHIND.match(code[found.end() :]) is not None
