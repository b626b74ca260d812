"""Imports of names that were just written and that the document does not import.

The sources are a table of names of standard libraries and well-known packages, made from the files
of the training repositories; the imports of other open files; and names that exactly one place of
the workspace defines. The imports of the document decide the place and the style.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files

from ..edits.gate_features import STANDARD
from ..text.names import places_of
from .code_lines import code_of, quoted_rows
from .definitions import NEAR_CHARS, is_defined_at
from .example import NAME, Example, Found, readable
from .import_lines import MOST_ROWS, Import, import_of, imports_in, is_standard
from .patterns import MOST_CHARS

_ALIKE = {
    "typescript": "javascript",
    "typescriptreact": "javascript",
    "javascriptreact": "javascript",
}
LANGUAGES = frozenset(("python", "javascript", "go", "rust", "java"))
#: Names looked up in the workspace, at most.
_MOST_USED = 32
#: Lines whose names are not uses: imports and exports.
_HANDED_ON = re.compile(
    r"\s*(?:(?:pub(?:\([^)]*\))?\s+)?(?:use|mod)\b|import\b|from\b.*\bimport\b|export\s+(?:type\s+)?[{*])"
)
#: Text before names that are used, not defined: base classes, loops, caught exceptions.
_MADE_BEFORE = re.compile(
    r"^\s*class\s+\w+\s*\((?:[^)]*,)?\s*$|\b(?:extends|implements)\s+(?:[\w.]+\s*,\s*)*$"
    r"|\bfor\b.*\b(?:in|of)\s+$|^\s*except\s+\(?(?:[\w.]+\s*,\s*)*$"
)
_PARTS_TAKEN = re.compile(r"\b(?:const|let|var)\s*[{\[][^}\]=]*$")
_OF_ARROW = re.compile(r"\(([\w\s,{}]*)\)\s*=>")
_OF_FUNCTION = re.compile(r"\b(?:def|function)\b\s*\w*\s*\(")
#: Text of a markup element before a word of it.
_IN_ELEMENT = re.compile(r"(?<![=-])>[^<>{}]*$")
_METHOD = re.compile(
    r"\s+(?:(?:async|static|get|set|public|private|protected|override|abstract) )*\*?"
)
_METHOD_HEAD = re.compile(r"\([^()]*\)(?: *: *[^={}]+)? *\{\s*")
_PARAMETER = re.compile(r"[(,]\s*[*&{.]*$")
_PACKAGE = re.compile(r"(?<![\w.])([a-z]\w*)\.([A-Z]\w*)")


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    """Yield edits that import well-known names, or names that other open files import.

    Imports from the standard library belong to the family "standard", which needs no gate. Names
    that exactly one place of the workspace defines belong to the family "workspace".
    """
    language = _ALIKE.get(example.language, example.language)
    if language not in LANGUAGES or not example.come:
        return
    have = imports_in(lines, language)
    there = {name for one in have for name in one.names}
    for name in first_used(example, lines):
        wanted, own = known_import(name, language, example)
        if wanted is None or name in there or brings_all(wanted.module, lines):
            continue
        if any(wanted.module == one.module == "" for one in have):
            continue
        found = import_of(wanted, have, lines, example.language)
        if found is not None and first <= found.first and found.last <= last:
            family = STANDARD if is_standard(wanted.module, language) else "imported"
            yield replace(found, name=name, family="workspace" if own else family)


def first_used(example: Example, lines: Sequence[str]) -> list[str]:
    """Return the names that only lines just written use, and that those do not define."""
    language = _ALIKE.get(example.language, example.language)
    table = _table(language)
    come = [at for at in readable(lines, 0, len(lines)) if lines[at].strip() in example.come]
    quoted = quoted_rows(lines, example.language) if come else ()
    listed = _listed_rows(lines) if come else ()
    written = [code_of(lines[at]) for at in come if at not in quoted and at not in listed]
    used: dict[str, None] = {}
    told = {one.name: one.whole and language == "go" for one in example.importable}
    for line in written:
        for found in NAME.finditer(line):
            name = found[0]
            known = name in table or any(name in text for text in example.elsewhere)
            whole = told.get(name, False) or _is_whole(name, table.get(name, ""))
            if (known or name in told) and _is_used(name, line, found, whole):
                used[name] = None
    if not used:
        return []
    rest = "\n".join(line for line in lines if line.strip() not in example.come)
    made = {found[0] for line in written for found in NAME.finditer(line) if _is_made(line, found)}
    made |= {name for at in come if at in listed for name in NAME.findall(lines[at])}
    return [name for name in used if name not in made and not _stands_alone(name, rest)]


def _stands_alone(name: str, text: str) -> bool:
    return any(text[at - 1 : at] != "." for at in places_of(name, text))


def _listed_rows(lines: Sequence[str]) -> set[int]:
    """Return the lines of imports and exports that span several lines."""
    rows, ends = set[int](), ""
    for at, line in enumerate(lines):
        if ends:
            rows.add(at)
            ends = "" if ends in line else ends
        elif line.endswith(("{", "(")) and _HANDED_ON.match(line):
            ends = "}" if line.endswith("{") else ")"
    return rows


def names_used(example: Example) -> list[str]:
    """Return the names in lines just written that may need an import; in Go ``package.Name``.

    The language server looks them up in the workspace.
    """
    language = _ALIKE.get(example.language, example.language)
    if language not in LANGUAGES:
        return []
    used: dict[str, None] = {}
    made: set[str] = set()
    for line in sorted(line for line in example.come if len(line) <= MOST_CHARS):
        code = code_of(line)
        if language == "go":
            used |= dict.fromkeys(found[0] for found in _PACKAGE.finditer(code))
            continue
        for found in NAME.finditer(code):
            if _is_made(code, found):
                made.add(found[0])
            elif _is_used(found[0], code, found, whole=False):
                used[found[0]] = None
    return [name for name in used if name not in made][:_MOST_USED]


def _is_whole(name: str, known: str) -> bool:
    """Return whether an entry of the table names a module, which is used by its members."""
    whole = known.startswith("import ") or known.endswith((" default", " *")) or known == name
    return whole or known.endswith(f"/{name}")


def _is_used(name: str, line: str, found: re.Match[str], whole: bool) -> bool:
    before, behind = line[: found.start()], line[found.end() :]
    if before.rstrip().endswith((".", "::", "->")) or _is_made(line, found):
        return False
    if before.endswith("$") or behind.startswith("$"):  # a part of another name
        return False
    if _IN_ELEMENT.search(before) and re.match(r"[^<>{}]*</", behind):
        return False
    if whole:
        return re.match(r"\.\w", behind) is not None
    if name.islower() and "_" not in name:  # a word of prose may read like it
        return behind[:1] in ("(", "[") or behind.startswith("::") or before.endswith("@")
    return re.match(r"[(\[.,)\]:<>{;|?!&]|\s*/?>|\s*$|\s+[\w{=|&]", behind) is not None


def _is_made(line: str, found: re.Match[str]) -> bool:
    """Return whether a name is defined where it stands, as a parameter or otherwise."""
    if _HANDED_ON.match(line):
        return True
    before, behind = line[: found.start()], line[found.end() :]
    near = max(0, found.start() - NEAR_CHARS)
    if _MADE_BEFORE.search(line, near, found.start()) and not re.match(r"\s*=(?!=)", behind):
        return False
    if is_defined_at(line, found) or _PARTS_TAKEN.search(before):
        return True
    if _METHOD.fullmatch(before) and _METHOD_HEAD.fullmatch(behind):  # of a class
        return True
    if any(one.start(1) <= found.start() < one.end(1) for one in _OF_ARROW.finditer(line)):
        return True
    takes = _OF_FUNCTION.search(before)
    return takes is not None and _PARAMETER.search(before) is not None and ")" not in before


def known_import(name: str, language: str, example: Example) -> tuple[Import | None, bool]:
    """Return the import of ``name``, and whether only the workspace knows it.

    The import is None if it is not known or ambiguous.
    """
    for text in example.elsewhere:
        for one in imports_in(text.split("\n"), language):
            fits = one.form != "static" and not one.module.startswith(".")
            if fits and name in one.names:
                return Import(one.module, (name,), one.form), False
    told = _table(language).get(name)
    own = next((one for one in example.importable if one.name == name), None)
    if told is not None:
        return (Import.of_entry(told, name, language) if own is None else None), False
    if own is None:
        return None, False
    form = "whole" if own.whole else "from"
    return Import(own.module, (name,), form, is_type=own.is_type), True


def brings_all(module: str, lines: Sequence[str]) -> bool:
    """Return whether a document imports everything from a module."""
    every = {f"from {module} import *", f"import {module}.*;", f"use {module}::*;"}
    return any(line.strip() in every for line in lines[:MOST_ROWS])


@lru_cache(None)
def _table(language: str) -> Mapping[str, str]:
    """Return the modules from which the names of a language are imported."""
    text = (files("redraft.model.rules") / "imports.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, str]] = json.loads(text)
    return found.get(language, {})
