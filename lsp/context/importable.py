"""Of names that a document uses and does not bring in, what it would import them from.

Where exactly one file of the workspace defines a name for others, that file; its module is named as
the document's other imports are. Nothing is told where there is a choice: two definitions, a name
that is private, a test's from code that is none, another package of the same repository, or a way
of importing that neither the language nor the document settles. Looks names up in the index alone.
"""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from posixpath import basename, dirname, relpath, splitext

from redraft.model.records import Importable
from redraft.model.text.code_queries import Import, imports_of
from redraft.model.text.imported_files import HEAD_LINES, imported
from redraft.model.text.syntax import parsed

from .index import Snapshot

_SCRIPTS = frozenset(("typescript", "typescriptreact", "javascript", "javascriptreact"))
_ALIKE = dict.fromkeys(_SCRIPTS, _SCRIPTS)
_TYPED = (".ts", ".tsx", ".mts", ".cts")
_SCRIPT_ENDINGS = frozenset((".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".cts"))

#: What scripts import that is none, always with its ending.
_ASSET = re.compile(
    r"\.(?:json5?|css|scss|sass|less|styl|svg|png|jpe?g|gif|webp|avif|ico|html|vue|svelte|astro|mdx?"
    r"|txt|wasm|node|graphql|gql|ya?ml|woff2?|glsl)(?:\?.*)?$"
)

#: Folders and files of what nobody else imports: tests, examples, documentation.
_ASIDE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|testing|specs?|e2e|docs?|docs_src|examples?|bench(?:es|marks?)?"
    r"|samples?|scripts|fixtures|_?vendor(?:ed)?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest|setup|[^/]*(?:_test|\.test|\.spec|\.stories)|[^/]*Tests?"
    r")\.\w+$"
)
#: Nobody imports from these, not even a test.
_TESTS = re.compile(r"(?:^|/)(?:test_[^/]*|conftest|setup|[^/]*(?:_test|\.test|\.spec))\.\w+$")
_ANY_NAME = re.compile(
    r"^(?:from \S+ import \*|import [\w.]+\.\*;|(?:pub )?use .*\*\}?;|[ \t]*(?:import )?\. \")",
    re.M,
)
_PARCEL = re.compile(r"/(?:packages|apps|libs|modules|examples|plugins)/(?:@[^/]+/)?[^/]+/")
_SCRIPT_BUILTIN = frozenset(
    re.findall(
        r"\w+",
        "Array ArrayBuffer BigInt Boolean Buffer DataView Date Error EvalError Function Infinity "
        "Intl JSON Map Math Number Object Promise Proxy RangeError Reflect RegExp Set String "
        "Symbol SyntaxError TypeError URL URLSearchParams WeakMap WeakSet AbortController Event "
        "EventTarget Headers Request Response FormData Blob File console document window global "
        "process module exports require fetch describe it test expect before after beforeEach "
        "afterEach beforeAll afterAll jest Record Partial Required Readonly Pick Omit Exclude "
        "Extract ReturnType Parameters Awaited Iterable Iterator AsyncIterable Element Node "
        "HTMLElement",
    )
)
#: What a language knows without an import.
_BUILTIN = dict.fromkeys(_SCRIPTS, _SCRIPT_BUILTIN) | {
    "python": frozenset(dir(builtins)),
    "rust": frozenset(
        re.findall(
            r"\w+",
            "Option Some None Ok Err Result String Vec Box Self Send Sync Sized Copy Clone Drop "
            "Default Into From Iterator IntoIterator ToString AsRef Fn FnMut FnOnce Eq PartialEq "
            "Ord PartialOrd Debug Hash",
        )
    ),
    "java": frozenset(
        re.findall(
            r"\w+",
            "Boolean Byte Character Double Float Integer Long Math Number Object Process Record "
            "Short String StringBuilder System Class Thread Runnable Iterable Comparable "
            "CharSequence Enum Error Exception Throwable RuntimeException Override Deprecated Void",
        )
    ),
}
#: The line that defines a name; what stands before it is ``export``, ``pub(crate)`` and the like.
_DEFINES = {
    "python": r"(?:(?:async )?def |class |type ){name}\b|{name}\s*(?::|=(?!=))",
    "rust": r"(?:\w+(?:\(\w+\))? )*?"
    r"(?:fn|struct|enum|union|trait|type|const|static(?: mut)?) {name}\b",
    "java": r"(?:\w+ )*?(?:class|interface|enum|record|@interface) {name}\b",
} | dict.fromkeys(
    _SCRIPTS,
    r"(?:\w+ )*?(?:function ?\*? ?|(?:class|interface|type|enum|namespace|const|let|var) ){name}"
    r"(?![\w$])|(?:module\.)?exports\.{name}\s*=",
)


@dataclass(frozen=True, slots=True)
class Asker:
    """The document that lacks names."""

    path: str  # as the index knows it
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class _Defined:
    """The one file that defines a name for others."""

    path: str
    text: str
    line: str  # that defines it, at its start


class Importer:
    """What can be imported, by one state of the index.

    Args:
        text_of: of a path in the index; None where it is not at hand.
    """

    def __init__(self, snapshot: Snapshot, text_of: Callable[[str], str | None]) -> None:
        self._snapshot, self._text_of = snapshot, text_of

    def find(self, names: Iterable[str], asker: Asker) -> tuple[Importable, ...]:
        """Where ``names`` come from, of those for which that is certain.

        Args:
            names: as the document writes them; in Go ``package.Name``.
        """
        how = {"python": self._python, "go": self._go, "rust": self._rust, "java": self._java}
        find = self._script if asker.language in _SCRIPTS else how.get(asker.language)
        head = "\n".join(asker.text.split("\n", HEAD_LINES)[:HEAD_LINES])
        asker = replace(asker, text=head)  # where imports stand, and all that is asked of it
        if find is None or _ANY_NAME.search(asker.text):
            return ()
        known = _BUILTIN.get(asker.language, frozenset())
        found = [find(name, asker) for name in names if name not in known]
        certain = {one.name: one for one in found if one is not None}
        modules = {(one.name, one.module) for one in found if one is not None}
        return tuple(
            one for one in certain.values() if sum(one.name == name for name, _ in modules) == 1
        )

    def _defined(self, name: str, asker: Asker) -> _Defined | None:
        """The only file besides the asker's own that defines ``name`` at its top."""
        languages = _ALIKE.get(asker.language, frozenset((asker.language,)))
        aside = _ASIDE.search(asker.path) is not None
        places = [
            each
            for each in self._snapshot.places(name, asker.language)
            if each.kind != "method" and each.entry.language in languages
            if aside or not _ASIDE.search(each.path)
            if not _TESTS.search(each.path)
        ]
        if len({each.path for each in places}) != 1 or places[0].path == asker.path:
            return None
        text = self._text_of(places[0].path)
        defines = re.compile(_DEFINES[asker.language].format(name=re.escape(name)))
        lines = [] if text is None else text.split("\n")
        for place in places:
            body = lines[place.first : place.last]
            line = next((each for each in body if defines.match(each)), "")
            if text is not None and line:
                return _Defined(place.path, text, line)
        return None

    def _has(self, path: str) -> bool:
        return self._snapshot.get(path.removeprefix("/")) is not None

    def _holder(self, folder: str, file: str) -> str | None:
        """The nearest folder, from ``folder`` upwards, that a file of that name lies in."""
        while not self._has(f"{folder}/{file}"):
            if folder == dirname(folder):
                return None
            folder = dirname(folder)
        return folder

    def _script_package(self, folder: str) -> str | None:
        """The folder of the package of scripts that ``folder`` belongs to. A ``package.json`` that
        names none only says how the files beside it are read."""
        while (holder := self._holder(folder, "package.json")) is not None:
            if _names_package(self._text_of(f"{holder}/package.json".removeprefix("/"))):
                return holder
            if holder == dirname(holder):
                return None
            folder = dirname(holder)
        return None

    # --- Python --------------------------------------------------------------------------------

    def _python(self, name: str, asker: Asker) -> Importable | None:
        found = None if name.startswith("_") else self._defined(name, asker)
        if found is None or _imports_back(found, asker):
            return None
        root, parts = self._module(found.path)
        if not parts or not all(map(str.isidentifier, parts)) or parts[-1] == "__main__":
            return None
        if not self._has(f"{dirname(found.path)}/__init__.py"):  # scripts beside each other
            loose = dirname(found.path) == dirname(asker.path) and self._is_loose(asker)
            return Importable(name, parts[-1]) if loose else None
        top, (own_root, own) = parts[0], self._module(asker.path)
        head = rf"^[ \t]*(?:from|import) {re.escape(top)}\b"
        whole = re.search(head, asker.text, re.M) is not None
        project = re.sub(r"(?:^|/)(?:src|lib|python)$", "", root)
        if not whole and not f"/{asker.path}".startswith(f"/{project}/".replace("//", "/")):
            return None
        package = own if basename(asker.path) == "__init__.py" else own[:-1]
        shared = 0
        while shared < min(len(package), len(parts)) and package[shared] == parts[shared]:
            shared += 1
        dots = "." * (1 + len(package) - shared)
        near = re.findall(r"^[ \t]*from (\.+)", asker.text, re.M)
        as_far = any(len(each) == len(dots) for each in near)
        if shared and own_root == root and (as_far or (near and not whole)):
            return Importable(name, dots + ".".join(parts[shared:]))
        if not root and self._has("__init__.py"):
            return None  # the workspace is a package itself, whose name nobody told
        return Importable(name, ".".join(self._handed_on(name, root, parts, own)))

    def _handed_on(
        self, name: str, root: str, parts: tuple[str, ...], own: tuple[str, ...]
    ) -> tuple[str, ...]:
        """The innermost package around a module that hands the name on to those outside of it."""
        for at in range(len(parts) - 1, 0, -1):
            if own[:at] == parts[:at]:
                break
            path = "/".join((root, *parts[:at], "__init__.py")).removeprefix("/")
            text = self._text_of(path) if self._has(path) else None
            again = {name, f"{name} as {name}"}
            if any(one.module[0] == "." and again & {*one.names} for one in _imports(text or "")):
                return parts[:at]
        return parts

    def _is_loose(self, asker: Asker) -> bool:
        """Whether a file's folder is just where scripts lie, not part of a package by its name."""
        folder = dirname(asker.path)
        named = rf"(?:[\w.]*\.)?{re.escape(basename(folder))}\b" if folder else r"\."
        while folder != dirname(folder):
            folder = dirname(folder)
            if self._has(f"{folder}/__init__.py"):
                return False
        return re.search(rf"^[ \t]*(?:from|import) (?:\.|{named})", asker.text, re.M) is None

    def _module(self, path: str) -> tuple[str, tuple[str, ...]]:
        """The folder that a file's package lies in, and the parts of its module's name."""
        root = dirname(path)
        while root and self._has(f"{root}/__init__.py"):
            root = dirname(root)
        parts = splitext(path)[0].removeprefix(root).strip("/").split("/")
        return root, tuple(parts[:-1] if parts[-1] == "__init__" else parts)

    # --- JavaScript and TypeScript -------------------------------------------------------------

    def _script(self, name: str, asker: Asker) -> Importable | None:
        found = self._defined(name, asker)
        if found is None or _are_apart(found.path, asker.path):
            return None
        theirs, own = (self._script_package(dirname(each.path)) for each in (found, asker))
        if theirs != own:
            return None
        typed = asker.path.endswith(_TYPED)
        if not typed and found.path.endswith(_TYPED):
            return None
        modern = typed or re.search(r"^(?:import|export)\b", asker.text, re.M) is not None
        told = _exported(name, found) if modern else _module_exports(name, found)
        if told is None or (not modern and "require(" not in asker.text):
            return None
        module = _script_module(found.path, asker, modern, typed)
        is_type = (
            re.match(r"(?:export )?(?:default |declare )?(?:interface|type)\b", found.line)
            is not None
        )
        return None if module is None else Importable(name, module, told == "default", is_type)

    # --- Go, Rust, Java ------------------------------------------------------------------------

    def _go(self, name: str, asker: Asker) -> Importable | None:
        package, _, used = name.partition(".")
        aside = _ASIDE.search(asker.path) is not None
        places = [
            each
            for each in self._snapshot.places(used, "go")
            if each.kind != "method" and not each.path.endswith("_test.go")
            if basename(dirname(each.path)) == package
            if aside or not _ASIDE.search(each.path)
        ]
        folders = {dirname(each.path) for each in places}
        if len(folders) != 1 or not used[:1].isupper():
            return None
        (folder,) = folders
        root, own = self._holder(folder, "go.mod"), dirname(asker.path)
        if folder == own or root is None or root != self._holder(own, "go.mod"):
            return None
        within, internal, _ = f"/{folder}/".partition("/internal/")
        if internal and not f"/{asker.path}".startswith(f"{within}/"):
            return None
        text = self._text_of(f"{root}/go.mod".removeprefix("/")) or ""
        told = re.search(r"^module\s+\"?([^\s\"]+)", text, re.M)
        if told is None:
            return None
        module, mine = (
            "/".join((told[1], each.removeprefix(root).strip("/"))).rstrip("/")
            for each in (folder, own)
        )
        if not self._go_fits({each.path for each in places}, package, mine):
            return None
        return Importable(package, module, True)

    def _go_fits(self, paths: set[str], package: str, own: str) -> bool:
        """Whether files are of the package that their folder is named after, which does not import
        the asker's."""
        folder = dirname(next(iter(paths)))
        for each in self._snapshot.entries:
            if dirname(each.path) != folder or not each.path.endswith(".go"):
                continue
            text = "" if each.path.endswith("_test.go") else self._text_of(each.path)
            if text is None or f'"{own}"' in text:
                return False
            named = re.search(r"^package[ \t]+(\w+)", text, re.M)
            if each.path in paths and (named is None or named[1] != package):
                return False
        return True

    def _rust(self, name: str, asker: Asker) -> Importable | None:
        found = self._defined(name, asker)
        if found is None or re.match(r"pub(?:\(crate\))?\s", found.line) is None:
            return None
        theirs, own = self._crate(found.path), self._crate(asker.path)
        if theirs is None or own is None or theirs[0] != own[0]:
            return None
        root, parts = theirs
        if not all(map(str.isidentifier, parts)):
            return None
        if basename(asker.path) == "main.rs" and self._has(f"{root}/lib.rs"):
            return None  # another crate than the library
        for at in range(1, len(parts)):
            if own[1][:at] != parts[:at] and not self._shows(root, parts[:at], parts[at]):
                return None
        return Importable(name, "::".join(("crate", *parts)))

    def _crate(self, path: str) -> tuple[str, tuple[str, ...]] | None:
        """The folder of a crate's sources, and the parts of a file's module in it."""
        at = f"/{path}".rfind("/src/")
        if at < 0:
            return None
        root, below = path[: at + 3], path[at + 4 :]
        if below.startswith("bin/") or not any(
            self._has(f"{root}/{file}") for file in ("lib.rs", "main.rs")
        ):
            return None
        parts = tuple(splitext(below)[0].split("/"))
        return root, parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts

    def _shows(self, root: str, parent: tuple[str, ...], part: str) -> bool:
        """Whether a module is open to all of its crate."""
        folder = "/".join((root, *parent))
        path = next((p for p in (f"{folder}.rs", f"{folder}/mod.rs") if self._has(p)), "")
        text = (self._text_of(path) if path else None) or ""
        return re.search(rf"^pub(?:\(crate\))? mod {part}\b", text, re.M) is not None

    def _java(self, name: str, asker: Asker) -> Importable | None:
        found = self._defined(name, asker) if name[:1].isupper() else None
        if found is None or splitext(basename(found.path))[0] != name:
            return None
        theirs, own = _java_package(found.text), _java_package(asker.text)
        if theirs is None or theirs == own or re.match(r"public\s", found.line) is None:
            return None
        module = re.compile(r"(?:^|/)src/.*")
        if module.sub("", found.path) != module.sub("", asker.path):
            return None
        return Importable(name, theirs)


# --- small parts ---------------------------------------------------------------------------------


def _imports(text: str) -> list[Import]:
    """Return the imports of names at the top level of a Python file."""
    syntax = parsed(text, "python")
    found = imports_of(syntax) if syntax is not None else []
    return [one for one in found if one.form == "name"]


def _imports_back(found: _Defined, asker: Asker) -> bool:
    """Whether the file that defines the name imports the one that lacks it."""
    own = tuple(splitext(asker.path)[0].removesuffix("/__init__").split("/"))
    taken = "\n".join(
        f"from {one.module.removesuffix('.')}.{name.split()[0]} import x"
        for one in _imports(found.text)
        for name in one.names
    )
    modules = imported(found.text, asker.language, found.path)
    modules += imported(taken, asker.language, found.path)
    return any(own[-len(parts) :] == parts for parts in modules)


def _are_apart(one: str, other: str) -> bool:
    """Whether files are of different packages of one repository."""
    heads = [f"/{path}".partition("/src/") for path in (one, other)]
    for (whole, src, _), path in zip(heads, (other, one), strict=True):
        if src and not f"/{path}".startswith(f"{whole}/"):
            return True
    parcels = [_PARCEL.search(whole + src[:1]) for whole, src, _ in heads]
    return len({found.string[: found.end()] if found else "" for found in parcels}) > 1


def _names_package(text: str | None) -> bool:
    """Whether a ``package.json`` says what its package is called, or cannot be read."""
    try:
        told = json.loads(text or "")
    except (ValueError, RecursionError):
        return True
    return not isinstance(told, dict) or bool(told.get("name"))


def _exported(name: str, found: _Defined) -> str | None:
    """How an ES module exports a name: "named", "default" or not at all."""
    if found.line.startswith("export default "):
        return "default"
    if found.line.startswith("export "):
        return "named"
    if re.search(rf"^export default {re.escape(name)};?\s*$", found.text, re.M):
        return "default"
    lists = re.findall(r"^export (?:type )?\{([^}]*)\};?\s*$", found.text, re.M)
    entries = {entry.strip() for each in lists for entry in each.split(",")}
    if name in entries or f"type {name}" in entries:
        return "named"
    return "default" if f"{name} as default" in entries else None


def _module_exports(name: str, found: _Defined) -> str | None:
    """The same of a CommonJS module."""
    word = re.escape(name)
    if re.search(rf"^module\.exports\s*=\s*{word};?\s*$", found.text, re.M):
        return "default"
    if re.search(rf"^(?:module\.)?exports\.{word}\s*=", found.text, re.M):
        return "named"
    for each in re.findall(r"^module\.exports\s*=\s*\{([^{}]*)\}", found.text, re.M):
        if name in {entry.partition(":")[0].strip() for entry in each.split(",")}:
            return "named"
    return None


def _script_module(path: str, asker: Asker, modern: bool, typed: bool) -> str | None:
    """A file as another names it, with the ending or without as its other imports have it."""
    named = re.findall(r"(?:\bfrom|\brequire\(|^import)\s*['\"]([^'\"\n]+)['\"]", asker.text, re.M)
    near = [each for each in named if each.startswith(".")]
    if not near and any(each.startswith(("@/", "~/", "#")) for each in named):
        return None
    endings = {splitext(basename(each))[1] for each in near if not _ASSET.search(each)}
    endings = {each if each in _SCRIPT_ENDINGS else "" for each in endings}
    if ("" in endings and len(endings) > 1) or (not endings and modern and not typed):
        return None
    stem, suffix = splitext(path)
    stem = stem.removesuffix(".d")
    ending = ""
    if suffix in (".mjs", ".cjs") or (endings and "" not in endings):
        compiled = typed and not endings & {".ts", ".tsx"}  # named as what becomes of it
        ending = suffix.replace("tsx", "js").replace("ts", "js") if compiled else suffix
    elif basename(stem) == "index":
        stem = dirname(stem)
    module = relpath(f"/{stem}", f"/{dirname(asker.path)}") + ending
    return module if module.startswith(("../", "./")) or module in (".", "..") else f"./{module}"


def _java_package(text: str) -> str | None:
    found = re.search(r"^package\s+([\w.]+)\s*;", text, re.M)
    return None if found is None else found[1]
