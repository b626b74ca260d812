"""Modules of names that one file of the workspace alone defines, as other files import them.

The nearest file that imports the name, or another name of the same file, shows how. Nothing is
returned where no file does, where several files define the name, or where the import would be
circular.
"""

from __future__ import annotations

import builtins
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from posixpath import basename, commonpath, dirname, join, normpath, relpath

from ..records import Importable
from ..text.code_queries import IMPORT_LANGUAGES, Import, imports_of
from ..text.imported_files import HEAD_LINES, find_imported_modules, is_meant, parts_of, stem_of
from ..text.syntax import SCRIPTS, language_of, parse_cached

_MOST_READ = 10  # files whose imports are read for one name
#: Imports of all names of a module, after which any name may be known.
_ANY_NAME = re.compile(r"^(?:from \S+ import \*|import [\w.]+\.\*;|(?:pub )?use .*\*\}?;)", re.M)
_TESTS = re.compile(
    r"(?:^|/)(?:tests?|__tests__|e2e)/|(?:^|/)(?:test_|conftest)|[._](?:test|spec)\."
)
#: What stands before the definition of a name that other files may import.
_PUBLIC = {"rust": r"pub(?:\(crate\))?\s", "java": r"public\s"} | dict.fromkeys(
    SCRIPTS, r"export\s"
)
_SUFFIX = re.compile(r"\.[mc]?[jt]sx?$")
_TYPE = re.compile(r"export (?:default |declare )?(?:interface|type)\b")


@dataclass(frozen=True, slots=True)
class WorkspaceModules:
    """Access to the files of a workspace, by their paths."""

    #: Paths and lines [first, last) of the definitions of a name, for a language; no methods.
    places: Callable[[str, str], Iterable[tuple[str, int, int]]]
    mentioning: Callable[[str], Iterable[str]]  # the files that mention a word
    text: Callable[[str], str | None]  # of a file; None: not at hand


@dataclass(frozen=True, slots=True)
class _Exporter:
    """The only file that defines a name."""

    name: str
    path: str
    lines: tuple[str, ...]  # of the definition
    stem: str  # the name that an import has for the file, or for the package in Go


def find_modules(
    names: Iterable[str], path: str, language: str, text: str, workspace: WorkspaceModules
) -> tuple[Importable, ...]:
    """Return where a document would import ``names`` from, of those for which that is certain.

    Args:
        names: as the document writes them; in Go ``package.Name``.
        path: of the document.
        language: LSP id.
        text: of the document.
    """
    if language not in IMPORT_LANGUAGES or _ANY_NAME.search(_head(text)):
        return ()
    found = dict[Importable, None]()
    for name in names:
        exporter = _exporter(name, path, language, workspace)
        if exporter is not None and name not in builtin_names(language):
            found.update(dict.fromkeys(_as_imported(exporter, path, language, text, workspace)))
    counts = Counter(one.name for one in found)
    return tuple(one for one in found if counts[one.name] == 1)


def _exporter(name: str, path: str, language: str, workspace: WorkspaceModules) -> _Exporter | None:
    package, _, used = name.rpartition(".")
    languages = SCRIPTS if language in SCRIPTS else (language,)
    places = [
        place
        for place in workspace.places(used, language)
        if language_of(place[0]) in languages
        if not package or basename(dirname(place[0])) == package
    ]
    owners = {dirname(place[0]) if package else place[0] for place in places}
    is_private = bool(package) and not used[0].isupper()
    if is_private or len(owners) != 1 or path in owners or dirname(path) in owners:
        return None
    found, first, last = places[0]
    text = workspace.text(found)
    is_circular = (
        language in ("python", "go")
        and text
        and is_meant(path, find_imported_modules(text, language, found))
    )
    if text is None or is_circular or (_TESTS.search(found) and not _TESTS.search(path)):
        return None
    stem = basename(dirname(found)) if package or language == "java" else stem_of(found)[-1]
    return _Exporter(package or used, found, tuple(text.split("\n")[first:last]), stem)


def _as_imported(
    exporter: _Exporter, path: str, language: str, text: str, workspace: WorkspaceModules
) -> Iterator[Importable]:
    """Yield the name as the nearest file imports it, or as it imports the module."""
    for word in (exporter.name, exporter.stem):
        near = sorted(
            {*workspace.mentioning(word)} - {exporter.path, path},
            key=lambda other: (-len(commonpath((f"/{other}", f"/{path}"))), other),
        )
        for witness in islice((path, *near), _MOST_READ):
            source = text if witness == path else workspace.text(witness) or ""
            for one in _imports(source, witness, language, exporter):
                found = _importable(one, exporter, language)
                module = _module_for(path, one.module, witness, workspace)
                if found is not None and module is not None:
                    yield Importable(exporter.name, module, *found)
                    return


def _imports(text: str, path: str, language: str, exporter: _Exporter) -> Iterator[Import]:
    """Yield the imports of a file that may be of the exporter."""
    head, own = _head(text), language_of(path) or language
    modules = find_imported_modules(head, own, path)  # by pattern, a tenth of the cost of parsing
    if not is_meant(exporter.path, (*modules, *(parts[:-1] for parts in modules))):
        return
    tree = parse_cached(head, own)
    for one in imports_of(tree) if tree is not None else ():
        parts = parts_of(one.module, own, path)
        if parts and is_meant(exporter.path, (parts,)):
            yield one


def _importable(one: Import, exporter: _Exporter, language: str) -> tuple[bool, bool] | None:
    """Return whether an import like ``one`` is of the whole module, and of a type.

    None if it says nothing about the exporter's name.
    """
    if exporter.name in one.names and one.form in ("name", "whole"):
        return one.form == "whole", one.is_type
    line = next((each for each in exporter.lines if exporter.name in each), "")
    by_module = re.split(r"[./:]+", _SUFFIX.sub("", one.module))[-1] == exporter.stem
    is_public = re.match(_PUBLIC.get(language, ""), line) is not None
    if one.form != "name" or exporter.name.startswith("_") or not (is_public and by_module):
        return None
    return line.startswith("export default "), _TYPE.match(line) is not None


def _module_for(path: str, module: str, witness: str, workspace: WorkspaceModules) -> str | None:
    """Return a module that ``witness`` imports, as the document at ``path`` names it."""
    folder, own = dirname(witness), dirname(path)
    if module.startswith(("self", "super")):
        return module if witness == path else None
    if not module.startswith(".") or folder == own:
        return module
    if language_of(path) != "python":
        name = relpath(f"/{join(folder, module)}", f"/{own}")
        return name if name.startswith(".") else f"./{name}"
    rest = module.lstrip(".")
    ups = len(module) - len(rest) - 1
    target = normpath(join(folder, "../" * ups, *rest.split(".")))
    shared = commonpath([f"/{target}", f"/{own}"])[1:]
    if workspace.text(join(shared, "__init__.py")) is None:
        return None  # no package holds both
    ways = relpath(f"/{target}", f"/{own}").split("/")
    ups = ways.count("..")
    return "." * (ups + 1) + ".".join(ways[ups:])


def _head(text: str) -> str:
    """Return the lines in which imports stand."""
    return "\n".join(text.split("\n", HEAD_LINES)[:HEAD_LINES])


@lru_cache(None)
def builtin_names(language: str) -> frozenset[str]:
    """Return the names that a language knows without an import."""
    if language == "python":
        return frozenset(dir(builtins))
    text = (files("redraft.model.rules") / "builtins.json").read_text(encoding="utf-8")
    return frozenset(
        json.loads(text).get("javascript" if language in SCRIPTS else language, "").split()
    )
