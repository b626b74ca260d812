"""Modules that a file imports, and the paths of files that they may be.

Imports are read by pattern: they stand at the top and look alike within a family of languages. The
last parts of a module's name are compared with the last parts of a path; the disk is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from posixpath import dirname, normpath, relpath, splitext

from .syntax import language_of

HEAD_LINES = 300  # of a file, where imports stand
MOST = 100  # imports of one file

_PATTERNS = {
    "python": r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([.\w]+))",
    "script": r"""(?:\bfrom|\bimport|\brequire\(|\bimport\()\s*["'`]([^"'`\n]+)["'`]""",
    "go": r"""^[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?"([\w./~-]+)"[ \t]*$""",
    "rust": r"^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:use[ \t]+([\w:]+)|mod[ \t]+(\w+)[ \t]*;)",
    "jvm": r"^[ \t]*import[ \t]+(?:static[ \t]+)?([\w.]+)",
    "csharp": r"^[ \t]*(?:global[ \t]+)?using[ \t]+(?:static[ \t]+)?([\w.]+)[ \t]*;",
    "c": r"""^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]""",
    "ruby": r"""^[ \t]*require(?:_relative)?[ \t(]*["']([^"'\n]+)["']""",
    "php": r"""^[ \t]*(?:use[ \t]+(?:function[ \t]+)?([\w\\]+)"""
    r"""|(?:require|include)(?:_once)?\b[^"'\n]*["']([^"'\n]+)["'])""",
    "lua": r"""\brequire[ \t]*\(?[ \t]*["']([^"'\n]+)["']""",
    "shell": r"""^[ \t]*(?:source|\.)[ \t]+["']?([^\s"';]+)""",
    "css": r"""@import[ \t]+(?:url\()?["']?([^"')\s;]+)""",
    "html": r"""<(?:script|link)\b[^<>]*?\b(?:src|href)[ \t]*=[ \t]*["']?([^"'\s>]+)""",
}
_FAMILY = {
    "python": "python",
    "typescript": "script",
    "typescriptreact": "script",
    "javascript": "script",
    "javascriptreact": "script",
    "go": "go",
    "rust": "rust",
    "java": "jvm",
    "kotlin": "jvm",
    "csharp": "csharp",
    "c": "c",
    "cpp": "c",
    "ruby": "ruby",
    "php": "php",
    "lua": "lua",
    "shellscript": "shell",
    "css": "css",
    "html": "html",
}
_COMPILED = {
    family: re.compile(pattern, re.MULTILINE | re.IGNORECASE * (family == "html"))
    for family, pattern in _PATTERNS.items()
}
_SCRIPT_SUFFIXES = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_ANYWHERE = re.compile(r"[\\.:]+")
#: Files that are imported by the name of their folder, by family, without their suffix.
_FOLDER_FILES = {
    "python": ("__init__",),
    "script": ("index",),
    "rust": ("mod", "lib", "main"),
    "lua": ("init",),
}


def family_of(language: str) -> str:
    """Return the family of languages whose files use each other's definitions."""
    return _FAMILY.get(language, language)


def find_imported_modules(text: str, language: str, path: str) -> tuple[tuple[str, ...], ...]:
    """Return the parts of the name of each module that the beginning of ``text`` imports.

    ``from a.b import c`` is ``("a", "b")``.

    Args:
        path: of the file, against which relative imports are resolved.
    """
    pattern = _COMPILED.get(family_of(language))
    if pattern is None:
        return ()
    head = "\n".join(text.split("\n", HEAD_LINES)[:HEAD_LINES])
    found: dict[tuple[str, ...], None] = {}
    for match in pattern.finditer(head):
        name = next((group for group in match.groups() if group), "")
        parts = parts_of(name, language, path)
        if parts:
            found[parts] = None
        if len(found) == MOST:
            break
    return tuple(found)


def parts_of(name: str, language: str, path: str) -> tuple[str, ...]:
    """Return the parts of a module's name, as the file at ``path`` imports it."""
    family, folder = family_of(language), dirname(path)
    if family == "python":
        dots = len(name) - len(name.lstrip("."))
        name = name.strip(".").replace(".", "/")
        if dots:
            name = f"{folder}/{'../' * (dots - 1)}{name}"
    elif family in ("script", "c", "css", "html", "shell", "ruby", "go"):
        known = splitext(name)[1].lower()
        name = name[: len(name) - len(known)] if known and "/" not in known else name
        if name.startswith("."):
            name = f"{folder}/{name}"
    else:
        name = _ANYWHERE.sub("/", name)
    parts = normpath(name.replace("\\", "/")).split("/") if name else []
    return tuple(p for p in parts if p not in ("", ".", "..", "~", "@", "crate", "self", "super"))


def module_of(
    path: str, module: str, home: str, importer: str, is_package: Callable[[str], bool]
) -> str:
    """Return the module of a Python file or script in the style of another one, "" if unsure.

    Args:
        path: of the file whose module is wanted.
        module: of the file at ``home``, as the file at ``importer`` writes it, without quotes.
        is_package: whether a folder is a package of Python.
    """
    language = language_of(importer) or ""
    stem, known, suffix = stem_of(path), stem_of(home), splitext(module)[1]
    is_python = language == "python"
    if module.startswith("."):
        ways = relpath("/" + "/".join(stem), f"/{dirname(importer)}").split("/")
        if is_python:
            ups = ways.count("..")
            shared = dirname(importer).split("/")[: len(dirname(importer).split("/")) - ups]
            if ups and not is_package("/".join(shared)):
                return ""
            return "." * (ups + 1) + ".".join(ways[ups:]).lstrip(".")
        name = "/".join(ways if ways[0].startswith(".") else (".", *ways))
        is_named = suffix in _SCRIPT_SUFFIXES
        is_folder = stem[-1] != splitext(path)[0].rpartition("/")[2]
        return name + ("/index" if is_folder else "") + suffix if is_named else name
    parts = parts_of(module, language, importer)
    over = len(known) - len(parts)  # folders above those that the module names
    above, more = known[: max(over, 0)], parts[: max(-over, 0)]
    names = (*more, *stem[len(above) :])
    if (*more, *known[len(above) :]) != parts or stem[: len(above)] != above or not names:
        return ""
    if is_python:
        return ".".join(names)
    tail = "/".join(parts)
    is_inside = "/" in module and module.endswith(tail)  # else it may be a package
    return module[: -len(tail)] + "/".join(names) if is_inside else ""


def is_meant(path: str, modules: Iterable[tuple[str, ...]]) -> bool:
    """Return whether ``path`` is the file that one of ``modules`` names, or within that package."""
    stem = stem_of(path)
    return any(_agree(stem, parts) for parts in modules)


def stem_of(path: str) -> list[str]:
    """Return the parts of the name under which the file at ``path`` is imported."""
    parts = splitext(path)[0].split("/")
    own = _FOLDER_FILES.get(family_of(language_of(path) or ""), ())
    return parts[:-1] if parts[-1] in own and len(parts) > 1 else parts


def _agree(stem: list[str], parts: tuple[str, ...]) -> bool:
    """Return whether a module names a file.

    That is the file itself, one in the folder that the module names (Go, C#), or the file that
    defines what the last part names (Rust, PHP).
    """
    return (
        ends_alike(stem, parts)
        or ends_alike(stem[:-1], parts)
        or (len(parts) > 1 and ends_alike(stem, parts[:-1]))
    )


def ends_alike(place: list[str], parts: tuple[str, ...]) -> bool:
    """Return whether the last parts agree, as far as the shorter one goes."""
    shared = min(len(place), len(parts))
    return shared > 0 and tuple(place[-shared:]) == parts[-shared:]
