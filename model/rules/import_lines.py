"""Read the imports of a file, and write another one among them.

Python, JavaScript and TypeScript, Go, Rust and Java are supported. An import over several lines is
extended only if it has one name on each line. Pure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, takewhile

from .example import Found

_NODE = frozenset(
    re.findall(
        r"\S+",
        "assert async_hooks buffer child_process cluster crypto dns events fs fs/promises http "
        "http2 https module net os path perf_hooks process querystring readline stream "
        "stream/promises string_decoder test timers timers/promises tls tty url util v8 vm "
        "worker_threads zlib",
    )
)
MOST_ROWS = 400  # lines at the beginning of a file that are searched for imports

_PYTHON = re.compile(r"^(?:from (?P<module>[\w.]+) )?import (?P<names>[\w. ,]+?)\s*(?:#.*)?$")
_ESM = re.compile(
    r"^import (?:type )?(?:(?P<default>\w+)|\* as (?P<all>\w+)|\{(?P<names>[^}]*)\}) "
    r"from ['\"](?P<module>[^'\"]+)['\"];?\s*$"
)
_REQUIRE = re.compile(
    r"^(?:const|let|var) (?:(?P<default>\w+)|\{(?P<names>[^}]*)\}) = "
    r"require\(['\"](?P<module>[^'\"]+)['\"]\);?\s*$"
)
_GO = re.compile(r"^(?:import |\t)(?:\w+ )?\"(?P<module>[^\"]+)\"\s*$")
_RUST = re.compile(r"^use (?P<module>[\w:]+)::(?:(?P<name>\w+)|\{(?P<names>[\w, ]+)\});\s*$")
_ENTRY = re.compile(r"(?P<indent>\s+)(?P<name>\w+)(?P<end>,?)")
_JAVA = re.compile(r"^import (?P<static>static )?(?P<module>[\w.]+)\.(?P<name>\w+|\*);\s*$")


_PARTS = re.compile(r"::|(?<=\w)[./]|/")


@dataclass(frozen=True, slots=True)
class Import:
    """A module and the names that a line imports."""

    module: str  # without "node:"
    names: tuple[str, ...]
    #: "from": names of a module; "static": names of a class; "whole": the module; "all": the module
    #: under another name
    form: str
    row: int = -1
    is_type: bool = False  # it imports types only

    @classmethod
    def of_entry(cls, entry: str, name: str, language: str) -> Import:
        """Return the import that an entry of the table of known names describes."""
        if language == "python":
            found = _python(entry)
            return Import("", (name,), "whole") if found is None else found
        if language == "javascript":
            module, _, form = entry.partition(" ")
            return Import(module, (name,), {"{}": "from", "*": "all"}.get(form, "whole"))
        if language == "go":
            return Import(entry, (name,), "whole")
        mark = "::" if language == "rust" else "."
        return Import(entry.rpartition(mark)[0], (name,), "from")


def imports_in(lines: Sequence[str], language: str) -> list[Import]:
    """Return the imports at the head of a file."""
    found = []
    for row, line in enumerate(lines[:MOST_ROWS]):
        one = _read(line, language)
        if one is not None:
            found.append(replace(one, row=row))
    return found


def _read(line: str, language: str) -> Import | None:
    if language == "python":
        return _python(line)
    if language == "javascript":
        found = _ESM.match(line) or _REQUIRE.match(line)
        if found is None:
            return None
        parts, module = found.groupdict(), found["module"].removeprefix("node:")
        is_type = line.startswith("import type ")
        if parts["names"] is not None:
            return Import(module, _split(parts["names"]), "from", is_type=is_type)
        whole = parts["default"] or parts.get("all") or ""
        return Import(module, (whole,), _form(parts), is_type=is_type)
    if language == "go":
        found = _GO.match(line)
        return None if found is None else Import(found[1], (found[1].rpartition("/")[2],), "whole")
    found = (_RUST if language == "rust" else _JAVA).match(line)
    if found is None:
        return None
    parts = found.groupdict()
    names = _split(parts["names"]) if parts.get("names") else (found["name"],)
    return Import(found["module"], names, "static" if parts.get("static") else "from")


def _form(parts: dict[str, str | None]) -> str:
    return "all" if parts.get("all") else "whole"


def _python(line: str) -> Import | None:
    found = _PYTHON.match(line)
    if found is None:
        return None
    if found["module"] is not None:
        return Import(found["module"], _split(found["names"]), "from")
    module, _, name = found["names"].partition(" as ")
    return Import(module, (name or module,), "all" if name else "whole")


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


# --- one more ----------------------------------------------------------------------------------


def import_of(
    wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str
) -> Found | None:
    """Return the edit that adds ``wanted`` to the imports of a file."""
    block = _in_block(wanted, lines)
    if block is not None:
        return block
    same = [one for one in have if language != "java" and _takes(one, wanted)]
    if len(same) == 1 or any(len(one.names) > 1 for one in same):
        known = max(same, key=lambda one: len(one.names))
        made = _with_name(lines[known.row], known, wanted.names[0])
        return None if made is None else Found(known.row, known.row + 1, (made,), 0, 3)
    line = _line(wanted, have, lines, language)
    if line is None:
        return None
    if others := [one for one in have if one.form != "static"]:
        row = _place(wanted, others, lines, language)
        return Found(row, row, (line,), 0, 2)
    if have:
        row = have[-1].row + 1
        return Found(row, row, ("", line), 0, 2)
    row = _head(lines)
    apart = [""] if row < len(lines) and lines[row].strip() else []
    before = [""] if row and lines[row - 1].strip() else []
    return Found(row, row, (*before, line, *apart), 0, 1)


def _by_kind(name: str) -> str:
    """Return the sort key of a Python name: constants, then classes, then other names."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return f"{kind}{name}"


def _in_block(wanted: Import, lines: Sequence[str]) -> Found | None:
    """Return the edit that adds a name to an import of its module with one name on each line."""
    if wanted.form != "from":
        return None
    module, name = re.escape(wanted.module), wanted.names[0]
    heads = re.compile(rf"from {module} import \(|use {module}::\{{")
    plain = ("import {", "import type {") if wanted.is_type else ("import {",)
    ends = re.compile(rf"\}} from ['\"]{module}['\"];?")
    for row, line in enumerate(lines[:MOST_ROWS]):
        esm = ends.fullmatch(line) is not None
        if not (esm or heads.fullmatch(line)):
            continue
        step, at = (-1, row - 1) if esm else (1, row + 1)
        rows = []
        while 0 <= at < len(lines) and (one := _ENTRY.fullmatch(lines[at])) is not None:
            rows.append((at, one))
            at += step
        if esm and (at < 0 or lines[at] not in plain):
            continue  # an export, or an import of types only
        rows.sort(key=lambda each: each[0])
        names = [one["name"] for _, one in rows]
        if not rows or name in names:
            continue
        orders = (str, str.lower) if esm or line.endswith("{") else (_by_kind, str, str.lower)
        order = next((each for each in orders if names == sorted(names, key=each)), None)
        place = len(names) if order is None else sorted([*names, name], key=order).index(name)
        entry = f"{rows[0][1]['indent']}{name},"
        if place < len(rows):
            return Found(rows[place][0], rows[place][0], (entry,), 0, 3)
        last, one = rows[-1]
        if one["end"]:
            return Found(last + 1, last + 1, (entry,), 0, 3)
        return Found(last, last + 1, (f"{lines[last]},", entry[:-1]), 0, 3)
    return None


def _takes(one: Import, wanted: Import) -> bool:
    """Return whether a name may be added to an import."""
    alike = one.module == wanted.module and one.form == wanted.form == "from"
    return alike and (wanted.is_type or not one.is_type)


def _with_name(line: str, known: Import, name: str) -> str | None:
    """Return the line with another name of its module; None if its names cannot be listed."""
    names = list(known.names)
    if name in names or any(" " in each for each in names):
        return None
    orders = (_by_kind, str, str.lower) if line.startswith("from ") else (str, str.lower)
    order = next((each for each in orders if names == sorted(names, key=each)), None)
    joined = ", ".join([*names, name] if order is None else sorted([*names, name], key=order))
    was = ", ".join(names)
    if "{" in line:
        return re.sub(r"\{(\s*)[^}]*?,?(\s*)\}", rf"{{\g<1>{joined}\g<2>}}", line, count=1)
    if line.startswith("use "):
        return line.replace(f"::{was};", f"::{{{joined}}};")
    if line.startswith("from "):
        head, _, tail = line.partition(" import ")
        return f"{head} import {tail.replace(was, joined, 1)}" if was in tail else None
    return None


def _line(
    wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str
) -> str | None:
    name, module = wanted.names[0], wanted.module
    if language == "python":
        if wanted.form == "from":
            return f"from {module} import {name}"
        return f"import {module}" + (f" as {name}" if wanted.form == "all" else "")
    if language == "go":
        in_block = any(lines[one.row].startswith("\t") for one in have)
        return f'\t"{module}"' if in_block else f'import "{module}"'
    if language == "rust":
        return f"use {module}::{name};"
    if language == "java":
        return f"import {module}.{name};"
    return _script(wanted, have, lines, language)


def _script(wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str) -> str:
    """Return an import in the style of the other imports of the file."""
    rows = [lines[one.row] for one in have]
    text = rows or [line for line in lines if line.strip()][:20]
    required = any("require(" in row for row in rows)
    esm = any(row.startswith("import ") for row in rows) or language.startswith("typescript")
    esm = esm or (not required and any(line.startswith("export ") for line in lines))
    quote = (
        "'" if sum(row.count("'") for row in text) > sum(row.count('"') for row in text) else '"'
    )
    end = ";" if any(row.rstrip().endswith(";") for row in text) else ""
    marked = any(f"{quote}node:" in row for row in rows)
    module = f"node:{wanted.module}" if marked and wanted.module in _NODE else wanted.module
    name = f"{{ {wanted.names[0]} }}" if wanted.form == "from" else wanted.names[0]
    if not esm:
        return f"const {name} = require({quote}{module}{quote}){end}"
    whole = any(row.startswith("import * as") for row in rows) and wanted.module in _NODE
    if wanted.form == "all" or (wanted.form == "whole" and whole):
        name = f"* as {name}"
    kind = "type " if wanted.is_type and any(one.is_type for one in have) else ""
    return f"import {kind}{name} from {quote}{module}{quote}{end}"


def _place(wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str) -> int:
    """Return the line before which an import is inserted.

    It is the place that leaves the fewest imports of its kind out of order, or the end of them if
    they are not sorted.
    """
    kin = _kin(wanted, have, lines, language)
    if wanted.form == "from" and not any(one.form == "from" for one in kin):
        return kin[-1].row + 1
    keys, mine = [_key(one, language) for one in kin], _key(wanted, language)
    if len(kin) > 2 and sum(a > b for a, b in pairwise(keys)) * 3 > len(kin):
        return kin[-1].row + 1
    steps = ((key > mine) - (key < mine) for key in keys)
    wrong = [*accumulate(steps, initial=0)]  # at each place, up to a constant
    best = len(keys) - wrong[::-1].index(min(wrong))
    return kin[best].row if best < len(kin) else kin[-1].row + 1


def _kin(
    wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str
) -> list[Import]:
    """Return the group of imports into which an import is inserted.

    It is the group with modules of the same root, or else of the same kind. In Python it has the
    same form if there is such a group.
    """
    runs: list[list[Import]] = []
    for one in have:
        if runs and all(lines[row].strip() for row in range(runs[-1][-1].row + 1, one.row)):
            runs[-1].append(one)
        else:
            runs.append([one])
    if language == "java":
        return _kin_of_java(wanted, runs)
    kind, root = _kind(wanted.module, language), _root(wanted.module)
    akin = [run for run in runs if any(_root(one.module) == root for one in run)]
    akin.sort(key=lambda run: -sum(_root(one.module) == root for one in run))
    own = [run for run in runs if any(_kind(one.module, language) == kind for one in run)]
    run = (akin or own or [runs[0] if kind == 0 else runs[-1]])[0]
    alike = [one for one in run if _kind(one.module, language) == kind] or run
    alike = [one for one in alike if not akin or _root(one.module) == root] if kind == 2 else alike
    if language != "python":
        return alike
    return [one for one in alike if (one.form == "from") == (wanted.form == "from")] or alike


def _kin_of_java(wanted: Import, runs: list[list[Import]]) -> list[Import]:
    """Return the group of Java imports into which an import is inserted.

    Each project forms its groups differently. The group that shares most of the package's name is
    chosen, or else the group with the same kind of modules; all of it if it is sorted.
    """

    def shared(run: list[Import]) -> list[int]:
        return [_shared(one.module, wanted.module) for one in run]

    kind = _kind(wanted.module, "java")
    own = [run for run in runs if any(_kind(one.module, "java") == kind for one in run)]
    run = max(runs, key=lambda run: (max(shared(run)), sum(shared(run))))
    best = max(shared(run))
    if not best:
        run = (own or [runs[0] if kind == 0 else runs[-1]])[0]
    keys = [_key(one, "java") for one in run]
    if keys == sorted(keys):
        return run
    alike = [one for one in run if best and _shared(one.module, wanted.module) == best]
    return alike or [one for one in run if _kind(one.module, "java") == kind] or run


def _shared(one: str, other: str) -> int:
    """Return the number of parts with which the names of two packages begin alike."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _root(module: str) -> str:
    """Return the beginning that the modules of one project or package share."""
    if "/" in module and not module.startswith("."):
        return "/".join(module.split("/")[:3])
    return _PARTS.split(module)[0]


def _kind(module: str, language: str) -> int:
    """Return 0 for the standard library, 1 for packages, 2 for the project, -1 for the language."""
    if module.startswith((".", "crate", "self", "super", "@/")):
        return 2
    root = re.split(r"[.:/]", module)[0]
    if root == "__future__":
        return -1
    own = {
        "python": root in sys.stdlib_module_names,
        "go": "." not in module.partition("/")[0],
        "rust": root in ("std", "core", "alloc"),
        "java": root in ("java", "javax"),
    }
    return 0 if own.get(language, module in _NODE) else 1


def is_standard(module: str, language: str) -> bool:
    """Return whether ``module`` belongs to the standard library."""
    return _kind(module, language) == 0


def _key(one: Import, language: str) -> str:
    mark = {"rust": "::", "java": "."}.get(language)
    return one.module if mark is None else f"{one.module}{mark}{one.names[0]}"


def _head(lines: Sequence[str]) -> int:
    """Return the line before which a first import is inserted, behind the header of the file."""
    row, quoted = 0, False
    for at, line in enumerate(lines[:MOST_ROWS]):
        text = line.strip()
        if quoted or text.startswith(('"""', "'''")):
            ends = text.count('"""') + text.count("'''")
            quoted = quoted ^ (ends % 2 == 1)
            row = at + 1
        elif text.startswith(("#!", "# -*-", "package ", '"use strict"', "'use strict'")):
            row = at + 1
        elif text and not text.startswith(("//", "#", "/*", "*", "\ufeff")):
            break
    return row
