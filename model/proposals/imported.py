"""A name that was just written and that nothing brings in: the import it most likely comes from.

Known are names of standard libraries and of a few packages that most projects mean by a name, from
the files of the training repositories, and what other open files import. Where an import comes is
told by those that are there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files

from ..text.names import places_of
from .code_lines import code_of, quoted_rows
from .example import NAME, Example, Found, readable
from .import_lines import Import, import_of, imports_in
from .misspelt import is_born

_ALIKE = {
    "typescript": "javascript",
    "typescriptreact": "javascript",
    "javascriptreact": "javascript",
}
LANGUAGES = frozenset(("python", "javascript", "go", "rust", "java"))


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    language = _ALIKE.get(example.language, example.language)
    if language not in LANGUAGES or not example.come:
        return
    have = imports_in(lines, language)
    for name in first_used(example, lines):
        wanted = known_import(name, language, example.elsewhere)
        if wanted is None or any(wanted.module == one.module == "" for one in have):
            continue
        found = import_of(wanted, have, lines, example.language)
        if found is not None and first <= found.first and found.last <= last:
            yield replace(found, name=name)


def first_used(example: Example, lines: Sequence[str]) -> list[str]:
    """Names that stand in lines that were just written, and in no other, and are not made there."""
    language = _ALIKE.get(example.language, example.language)
    table = _table(language)
    come = [at for at in readable(lines, 0, len(lines)) if lines[at].strip() in example.come]
    quoted = quoted_rows(lines, example.language) if come else ()
    written = [code_of(lines[at]) for at in come if at not in quoted]
    used: dict[str, None] = {}
    for line in written:
        for found in NAME.finditer(line):
            name = found[0]
            known = name in table or any(name in text for text in example.elsewhere)
            if known and _is_used(name, line, found, table.get(name, "")):
                used[name] = None
    if not used:
        return []
    rest = "\n".join(line for line in lines if line.strip() not in example.come)
    made = {found[0] for line in written for found in NAME.finditer(line) if is_born(line, found)}
    made |= {line.strip().rstrip(",") for line in written}  # of an import of several lines
    return [name for name in used if name not in made and not _stands_alone(name, rest)]


def _stands_alone(name: str, text: str) -> bool:
    return any(text[at - 1 : at] != "." for at in places_of(name, text))


def _is_used(name: str, line: str, found: re.Match[str], known: str) -> bool:
    before, behind = line[: found.start()], line[found.end() :]
    if before.rstrip().endswith((".", "::", "->")) or is_born(line, found):
        return False
    whole = known.startswith("import ") or known.endswith((" default", " *")) or known == name
    if whole or known.endswith(f"/{name}"):
        return re.match(r"\.\w", behind) is not None
    if name.islower() and "_" not in name:  # a word of prose may read like it
        return behind[:1] in ("(", "[") or behind.startswith("::") or before.endswith("@")
    return re.match(r"[(\[.,)\]:<>{;|?!&]|\s*$|\s+[\w{=|&]", behind) is not None


def known_import(name: str, language: str, elsewhere: Sequence[str]) -> Import | None:
    """What brings ``name`` in; None where that is not known."""
    for text in elsewhere:
        for one in imports_in(text.split("\n"), language):
            if name in one.names and not one.module.startswith("."):
                return Import(one.module, (name,), one.form)
    told = _table(language).get(name)
    return None if told is None else Import.told(told, name, language)


@lru_cache(None)
def _table(language: str) -> Mapping[str, str]:
    """Of a name what it is imported from, for a language."""
    text = (files("redraft.model.proposals") / "imports.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, str]] = json.loads(text)
    return found.get(language, {})
