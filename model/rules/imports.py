"""Imports of names that were just written and that the document does not define.

The sources are a table of names of standard libraries and well-known packages, made from the files
of the training repositories; the imports of other open files; and names that exactly one place of
the workspace defines. The imports of the document decide the place and the style.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate

from ..records import STANDARD, Importable
from ..text.code_queries import IMPORT_LANGUAGES, Form, Import, imports_of
from ..text.scopes import Bindings, Occurrence, binds
from ..text.syntax import SCRIPTS, Syntax, parse_cached, parse_incrementally
from .import_places import NODE, head_of, kind_of, place_of, plain
from .rule_edits import MOST_CHARS, NAME, RuleEdit

#: Names that the language server looks up in the workspace, at most; and names checked in all.
_MOST_LOOKED_UP, _MOST_CHECKED = 32, 200
#: Lines just written that are searched for one by one, at most.
_SEARCHED = 16
#: Chances of the families. Imports precede their use in the order of our commits: left to the end
#: 307 times, they were proposed 96 times, 62 times to the letter, and falsely at 14 of 16,000
#: moments. Of 1,050 imports of a project's names taken out of files of training repositories,
#: "workspace" proposed 695, 392 of them to the letter. It names modules as other files do since: of
#: 350 such names it proposed 128 and named 122 modules right; before that 81 and 55.
CHANCES = {"imported": 0.5, STANDARD: 0.5, "workspace": 0.55}
#: Traits of Rust's standard library that can be derived without an import.
_DERIVED = ("Debug", "Hash")


_Lines = tuple[int, int, tuple[str, ...]]  # lines [first, last) become others


def find_imports(
    text: str,
    language: str,
    written: Collection[str],
    importable: Sequence[Importable] = (),
    elsewhere: Sequence[str] = (),
    above: str = "",
) -> Iterator[RuleEdit]:
    """Yield edits that import names which lines just written use and nothing defines.

    Imports from the standard library belong to the family "standard", which needs no gate. Names
    that exactly one place of the workspace defines belong to the family "workspace".

    Args:
        written: lines just written, without the spaces around them.
        importable: names that the workspace defines, as the document would import them.
        elsewhere: the texts of other files.
        above: the text that the document continues; what it binds needs no import.
    """
    if language not in IMPORT_LANGUAGES:
        return
    table, own = _table(language), {one.name: one for one in importable}

    def is_known(name: str) -> bool:
        return name in table or name in own or any(name in each for each in elsewhere)

    names = _names_in(text, written, is_known)
    syntax = parse_cached(text, language) if names else None
    if syntax is None:
        return
    lines, have = text.split("\n"), imports_of(syntax)
    before = parse_cached(above, language) if above else None
    brought = [*have, *(imports_of(before) if before is not None else ())]
    for name, uses in _undefined(syntax, written, names).items():
        if before is not None and name in above and binds(before, name):
            continue
        if name in own:
            whole = own[name].whole and language == "go"
        else:
            whole = _is_module(name, table.get(name, ""))
        wanted = _source(name, language, own, elsewhere)
        if wanted is None or not any(_is_use(name, use, whole) for use in uses):
            continue
        if any(_brings_in(one, wanted) for one in brought):
            continue
        if name in own and name not in table:
            family = "workspace"
        else:
            family = STANDARD if kind_of(wanted.module, language) == 0 else "imported"
        edit = addition(wanted, have, lines, syntax)
        if edit is not None:
            yield RuleEdit(*edit, family, CHANCES[family], name=name)


def names_to_look_up(
    text: str, language: str, written: Collection[str], is_defined: Callable[[str], bool]
) -> list[str]:
    """Return the names that may have to be imported; in Go ``package.Name``.

    Args:
        written: lines just written, without the spaces around them.
        is_defined: whether another file of the workspace defines a name. Packages of Go are not
            asked about, because no file defines them by their name.
    """
    if language not in IMPORT_LANGUAGES:
        return []
    written_names = _names_in(text, written, is_defined if language != "go" else lambda _: True)
    syntax = parse_incrementally(text, language) if written_names else None
    if syntax is None:
        return []
    undefined = _undefined(syntax, written, written_names)
    if language == "go":
        names = (
            f"{name}{member[0]}"
            for name, uses in undefined.items()
            for use in uses
            if (member := re.match(r"\.[A-Z]\w*", use[1:])) is not None
        )
    else:
        names = (
            name
            for name, uses in undefined.items()
            if any(_is_use(name, use, whole=False) for use in uses)
        )
    return list(dict.fromkeys(names))[:_MOST_LOOKED_UP]


# --- names without a definition -----------------------------------------------------------------


def _names_in(text: str, written: Collection[str], is_wanted: Callable[[str], bool]) -> list[str]:
    """Return the wanted names of lines just written that the text still holds, in order."""
    asked = {line: [name for name in NAME.findall(line) if is_wanted(name)] for line in written}
    lines = _still_there(text, [line for line, names in asked.items() if names])
    return list(dict.fromkeys(name for line in lines for name in asked[line]))[:_MOST_CHECKED]


def _still_there(text: str, written: Collection[str]) -> list[str]:
    """Return those of ``written`` that are lines of the text, in the order of the text.

    A few are searched for: to split 10,000 lines takes 4 ms, at every key.
    """
    if len(written) > _SEARCHED:
        return [line.strip() for line in text.split("\n") if _is_written(line, written)]
    places = ((_place(text, line), line) for line in written)
    return [line for place, line in sorted(places) if place >= 0]


def _place(text: str, line: str) -> int:
    """Return where the first line that is ``line`` without the spaces around it begins, or -1."""
    at = text.find(line)
    while at >= 0:
        begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        if _is_written(text[begin : end if end >= 0 else None], (line,)):
            return begin
        at = text.find(line, at + 1)
    return at


def _is_written(line: str, written: Collection[str]) -> bool:
    return len(line) <= MOST_CHARS and line.strip() in written


def _undefined(
    syntax: Syntax, written: Collection[str], names: Sequence[str]
) -> dict[str, list[str]]:
    """Return those of ``names`` that only lines just written use, and that the text does not bind.

    Each has its uses: the character before the name, or a space, and the text behind it.
    """
    lines = syntax.text.split("\n")
    rows = {row for row, line in enumerate(lines) if _is_written(line, written)}

    def is_variable(one: Occurrence, name: str) -> bool:
        before = lines[one.line][: one.column]
        is_member = before.rstrip().endswith((".", "::", "->"))
        is_derived = "#[derive(" in before and name in _DERIVED
        return not (is_member or is_derived or one.role in ("member", "field", "keyword"))

    def is_unbound(one: Occurrence) -> bool:
        return one.role in ("use", "shorthand") and not one.scope and one.line in rows

    def is_free(occurrences: Iterable[Occurrence], name: str) -> bool:
        return all(is_unbound(one) for one in occurrences if is_variable(one, name))

    found = dict[str, list[str]]()
    for name in names:
        bindings = Bindings(syntax, name)
        # Most names stand elsewhere too. To resolve all their places takes 60 ms in 10,000 lines.
        if is_free(bindings.find_unresolved(), name) and is_free(bindings.occurrences, name):
            uses = [one for one in bindings.occurrences if is_variable(one, name)]
            if uses:
                found[name] = [_use(lines[one.line], one.column, name) for one in uses]
    return found


def _use(line: str, column: int, name: str) -> str:
    return (line[:column][-1:] or " ") + line[column + len(name) :]


def _is_use(name: str, use: str, whole: bool) -> bool:
    """Return whether a use may need an import.

    Args:
        use: the character before the name and the text behind it.
        whole: the name is that of a module, whose members are used.
    """
    if whole:
        return re.match(r"\.\w", use[1:]) is not None
    if name.islower() and "_" not in name:  # as most local variables are
        return use[0] == "@" or use[1:].startswith(("(", "[", "::"))
    return True


# --- where a name comes from --------------------------------------------------------------------


def _source(
    name: str, language: str, own: Mapping[str, Importable], elsewhere: Sequence[str]
) -> Import | None:
    """Return the import of ``name``; None if it is not known or ambiguous."""
    for text in elsewhere:
        tree = parse_cached(text, language) if name in text else None
        for one in imports_of(tree) if tree is not None else ():
            fits = one.form not in ("static", "all") and not one.module.startswith(".")
            if fits and name in (one.names if one.form == "name" else one.bound):
                return Import(plain(one.module), (name,), one.form)
    entry = _table(language).get(name)
    if entry is not None:
        return None if name in own else _import_of_entry(entry, name, language)
    if name not in own:
        return None
    known = own[name]
    return Import(known.module, (name,), "whole" if known.whole else "name", known.is_type)


def _brings_in(one: Import, wanted: Import) -> bool:
    """Return whether an import of the document defines the name of another one."""
    brings_all = one.form == "all" and one.module == wanted.module
    return brings_all or wanted.names[0] in one.bound


@lru_cache(None)
def _table(language: str) -> Mapping[str, str]:
    """Return the modules from which the names of a language are imported."""
    text = (files("redraft.model.rules") / "imports.json").read_text(encoding="utf-8")
    tables: Mapping[str, Mapping[str, str]] = json.loads(text)
    return tables.get("javascript" if language in SCRIPTS else language, {})


def _import_of_entry(entry: str, name: str, language: str) -> Import:
    """Return the import that an entry of the table describes."""
    if language == "python":
        found = re.fullmatch(r"(?:from (\S+) )?import (\S+)(?: as \S+)?", entry)
        assert found is not None, entry
        if found[1]:
            return Import(found[1], (name,), "name")
        return Import(found[2], (name,), "alias" if " as " in entry else "whole")
    if language in SCRIPTS:
        module, _, mark = entry.partition(" ")
        forms: dict[str, Form] = {"{}": "name", "*": "alias", "default": "whole"}
        return Import(module, (name,), forms[mark])
    if language == "go":
        return Import(entry, (name,), "whole")
    mark = "::" if language == "rust" else "."
    return Import(entry.rpartition(mark)[0], (name,), "name")


def _is_module(name: str, entry: str) -> bool:
    """Return whether an entry of the table names a module, which is used by its members."""
    whole = entry.startswith("import ") or entry.endswith((" default", " *")) or entry == name
    return whole or entry.endswith(f"/{name}")


# --- one more import ----------------------------------------------------------------------------


def addition(
    wanted: Import, have: Sequence[Import], lines: Sequence[str], syntax: Syntax
) -> _Lines | None:
    """Return the edit that adds an import to a file, None if its imports are written oddly.

    Args:
        wanted: the import.
        have: the imports of the file.
        lines: of the file, as those of ``syntax``.
    """
    language = syntax.language
    same = [one for one in have if language != "java" and _takes(one, wanted)]
    if len(same) == 1 or any(len(one.names) > 1 for one in same):
        longest = max(same, key=lambda one: len(one.names))
        return _with_name(longest, wanted.names[0], lines, syntax)
    line = _statement(wanted, have, lines, language)
    if others := [one for one in have if one.form != "static"]:
        kinds = [kind_of(one.module, language) for one in others]
        if language == "python" and 0 <= max(kinds) < kind_of(wanted.module, language):
            return others[-1].last, others[-1].last, ("", line)  # so in 80 % of training commits
        row = place_of(wanted, others, lines, language)
        return row, row, (line,)
    if have:
        return have[-1].last, have[-1].last, ("", line)
    row = head_of(syntax)
    above = [""] if row and lines[row - 1].strip() else []
    below = [""] if row < len(lines) and lines[row].strip() else []
    return row, row, (*above, line, *below)


def _takes(one: Import, wanted: Import) -> bool:
    """Return whether a name may be added to an import."""
    same = plain(one.module) == wanted.module and one.form == wanted.form == "name"
    return same and (wanted.is_type or not one.is_type)


def _with_name(one: Import, name: str, lines: Sequence[str], syntax: Syntax) -> _Lines | None:
    """Return the edit that adds a name to an import, in the order of its names.

    None if its names are neither in one line nor each in a separate line.
    """
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    rows = [syntax.text.count("\n", 0, start) for start, _ in one.spans]
    ends = [end - starts[row] for row, (_, end) in zip(rows, one.spans, strict=True)]
    place = _index(name, one.names, syntax.language)
    at = min(place, len(rows) - 1)
    row, line = rows[at], lines[rows[at]]
    column = one.spans[at][0] - starts[row]
    if len({*rows}) == 1 and one.last == one.first + 1:
        if place < len(rows):
            made = f"{line[:column]}{name}, {line[column:]}"
        else:
            made = f"{line[: ends[-1]]}, {name}{line[ends[-1] :]}"
        if syntax.language == "rust" and "{" not in line:
            names = ", ".join((name, one.names[0]) if place == 0 else (one.names[0], name))
            made = f"{line[:column]}{{{names}}}{line[ends[0] :]}"
        return row, row + 1, (made,)
    alone = (
        lines[row].strip().rstrip(",") == text for row, text in zip(rows, one.names, strict=True)
    )
    if not all(alone):
        return None
    entry = f"{line[:column]}{name}"
    if place < len(rows):
        return row, row, (f"{entry},",)
    if line.rstrip().endswith(","):
        return row + 1, row + 1, (f"{entry},",)
    return row, row + 1, (f"{line},", entry)


def _index(name: str, names: Sequence[str], language: str) -> int:
    """Return the place of a name among others; behind them if they are in no known order."""
    orders: list[Callable[[str], str]] = [str, str.lower]
    if language == "python":
        orders.insert(0, _by_kind)
    order = next((key for key in orders if list(names) == sorted(names, key=key)), None)
    return len(names) if order is None else sorted([*names, name], key=order).index(name)


def _by_kind(name: str) -> str:
    """Return the sort key of a Python name: constants, then classes, then other names."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return f"{kind}{name}"


def _statement(wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str) -> str:
    """Return a line that imports ``wanted``."""
    name, module = wanted.names[0], wanted.module
    if language == "python":
        if wanted.form == "name":
            return f"from {module} import {name}"
        return f"import {module}" + (f" as {name}" if wanted.form == "alias" else "")
    if language == "go":
        in_block = any(lines[one.first].startswith("\t") for one in have)
        return f'\t"{module}"' if in_block else f'import "{module}"'
    if language == "rust":
        return f"use {module}::{name};"
    if language == "java":
        return f"import {module}.{name};"
    return _script(wanted, have, lines, language)


def _script(wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str) -> str:
    """Return an import in the style of the other imports of a script."""
    statements = ["\n".join(lines[one.first : one.last]) for one in have]
    text = statements or [line for line in lines if line.strip()][:20]
    is_module = (
        language.startswith("typescript")
        or any(each.startswith("import ") for each in statements)
        or (not statements and any(line.startswith("export ") for line in lines))
    )
    quote = "'" if sum(each.count("'") - each.count('"') for each in text) > 0 else '"'
    end = ";" if any(each.rstrip().endswith(";") for each in text) else ""
    is_node = wanted.module in NODE
    prefix = "node:" if is_node and any(f"{quote}node:" in each for each in statements) else ""
    source = f"{quote}{prefix}{wanted.module}{quote}"
    name = f"{{ {wanted.names[0]} }}" if wanted.form == "name" else wanted.names[0]
    if not is_module:
        return f"const {name} = require({source}){end}"
    stars = any(one.form == "alias" for one in have)
    if wanted.form == "alias" or (wanted.form == "whole" and stars and is_node):
        name = f"* as {name}"
    kind = "type " if wanted.is_type and any(one.is_type for one in have) else ""
    return f"import {kind}{name} from {source}{end}"
