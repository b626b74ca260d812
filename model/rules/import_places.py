"""The line of a file at which an import is inserted.

The order and the groups of the file's own imports decide it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile

from ..text.code_queries import Import
from ..text.syntax import Syntax

#: Modules of Node.js.
NODE = frozenset(
    re.findall(
        r"\S+",
        "assert async_hooks buffer child_process cluster crypto dns events fs fs/promises http "
        "http2 https module net os path perf_hooks process querystring readline stream "
        "stream/promises string_decoder test timers timers/promises tls tty url util v8 vm "
        "worker_threads zlib",
    )
)
_PARTS = re.compile(r"::|(?<=\w)[./]|/")


def place_of(wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str) -> int:
    """Return the line before which an import is inserted.

    It is the place that leaves the fewest imports of its kind out of order, or the end of them if
    they are not sorted.
    """
    kin = _kin(wanted, have, lines, language)
    if wanted.form == "name" and not any(one.form == "name" for one in kin):
        return kin[-1].last
    keys, own = [_key(one, language) for one in kin], _key(wanted, language)
    if len(kin) > 2 and sum(a > b for a, b in pairwise(keys)) * 3 > len(kin):
        return kin[-1].last
    steps = ((key > own) - (key < own) for key in keys)
    wrong = [*accumulate(steps, initial=0)]  # at each place, up to a constant
    best = len(keys) - wrong[::-1].index(min(wrong))
    return kin[best].first if best < len(kin) else kin[-1].last


def _kin(
    wanted: Import, have: Sequence[Import], lines: Sequence[str], language: str
) -> list[Import]:
    """Return the group of imports into which an import is inserted.

    It is the group with modules of the same root, or else of the same kind. In Python it has the
    same form if there is such a group.
    """
    groups: list[list[Import]] = []
    for one in have:
        if groups and all(map(str.strip, lines[groups[-1][-1].last : one.first])):
            groups[-1].append(one)
        else:
            groups.append([one])
    if language == "java":
        return _kin_in_java(wanted, groups)
    kind, root = kind_of(wanted.module, language), _root(wanted.module)
    akin = [group for group in groups if any(_root(one.module) == root for one in group)]
    akin.sort(key=lambda group: -sum(_root(one.module) == root for one in group))
    group = akin[0] if akin else _of_kind(groups, kind, language)
    alike = [one for one in group if kind_of(one.module, language) == kind] or group
    alike = [one for one in alike if not akin or _root(one.module) == root] if kind == 2 else alike
    if language != "python":
        return alike
    return [one for one in alike if (one.form == "name") == (wanted.form == "name")] or alike


def _kin_in_java(wanted: Import, groups: list[list[Import]]) -> list[Import]:
    """Return the group of Java imports into which an import is inserted.

    Each project forms its groups differently. The group that shares most of the package's name is
    chosen, or else the group with the same kind of modules; all of it if it is sorted.
    """

    def common_parts(one: Import) -> int:
        pairs = zip(one.module.split("."), wanted.module.split("."), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    best = max(common_parts(one) for group in groups for one in group)
    kind = kind_of(wanted.module, "java")
    if best:
        group = max(
            groups, key=lambda group: (max(map(common_parts, group)), sum(map(common_parts, group)))
        )
    else:
        group = _of_kind(groups, kind, "java")
    keys = [_key(one, "java") for one in group]
    if keys == sorted(keys):
        return group
    alike = [one for one in group if best and common_parts(one) == best]
    return alike or [one for one in group if kind_of(one.module, "java") == kind] or group


def _of_kind(groups: list[list[Import]], kind: int, language: str) -> list[Import]:
    """Return the first group with modules of a kind, or else the first or the last group."""
    same = (
        group for group in groups if any(kind_of(one.module, language) == kind for one in group)
    )
    return next(same, groups[0] if kind == 0 else groups[-1])


def _root(module: str) -> str:
    """Return the beginning that the modules of one project or package share."""
    if "/" in module and not module.startswith("."):
        return "/".join(module.split("/")[:3])
    return _PARTS.split(module)[0]


def kind_of(module: str, language: str) -> int:
    """Return 0 for the standard library, 1 for packages, 2 for the project, -1 for the language."""
    if module.startswith((".", "crate", "self", "super", "@/")):
        return 2
    root = re.split(r"[.:/]", module)[0]
    if root == "__future__":
        return -1
    standard = {
        "python": root in sys.stdlib_module_names,
        "go": "." not in module.partition("/")[0],
        "rust": root in ("std", "core", "alloc"),
        "java": root in ("java", "javax"),
    }
    return 0 if standard.get(language, plain(module) in NODE) else 1


def _key(one: Import, language: str) -> str:
    """Return the sort key of an import among others."""
    mark = {"rust": "::", "java": "."}.get(language)
    return plain(one.module) if mark is None else f"{one.module}{mark}{one.names[0]}"


def head_of(syntax: Syntax) -> int:
    """Return the line before which a first import is inserted, behind the header of the file."""
    row = 0
    for node in syntax.tree.root_node.named_children:
        text = syntax.text_of(node)
        quoted = text.lstrip("rRuU").startswith(('"', "'"))  # a docstring, or "use strict"
        header = node.type in ("package_clause", "package_declaration", "hash_bang_line")
        if header or quoted or text.startswith(("#!", "# -*-")):
            row = node.end_point.row + 1
        elif "comment" not in node.type:
            break
    return row


def plain(module: str) -> str:
    """Return the name of a module without the scheme of Node.js."""
    return module.removeprefix("node:")
