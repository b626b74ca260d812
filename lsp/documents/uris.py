"""Paths of documents: on the disk, and as a model is shown them.

:func:`path_of` alone turns URIs into paths, and decodes them once. Nothing here looks at the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from posixpath import normpath, splitext
from urllib.parse import unquote, urlsplit

from redraft.model.text.syntax import language_of, suffix_of

from .positions import without_surrogates

_END_PARTS = 4  # enough for files recognised by their folder, such as ".config/gh/hosts.yml"
#: Languages without a grammar whose files define names, each with its suffixes.
_WITHOUT_GRAMMAR = {
    "dart": ".dart",
    "elixir": ".ex .exs",
    "groovy": ".groovy",
    "julia": ".jl",
    "nim": ".nim",
    "perl": ".pl .pm",
    "powershell": ".ps1",
    "r": ".r",
    "scala": ".scala",
    "svelte": ".svelte",
    "swift": ".swift",
    "vue": ".vue",
    "zig": ".zig",
}
_OTHER_SUFFIXES = {
    "bat": ".bat",
    "haskell": ".hs",
    "markdown": ".md",
    "objective-c": ".m",
    "scss": ".scss",
    "sql": ".sql",
    "toml": ".toml",
    "xml": ".xml",
    "yaml": ".yaml",
}
_LANGUAGES = {end: name for name, ends in _WITHOUT_GRAMMAR.items() for end in ends.split()}
_NOTEBOOK = ".ipynb"
#: Languages whose files define nothing that other files name.
_WITHOUT_NAMES = frozenset(("json", "jsonc", "html"))


def code_language(path: str) -> str | None:
    """Return the language of a file that may define names for others, or None."""
    language = language_of(path) or _LANGUAGES.get(splitext(path)[1].lower())
    return None if language in _WITHOUT_NAMES else language


def display_path(uri: str, folders: Iterable[str], language: str = "") -> str:
    """Return the path of ``uri`` below the innermost of the workspace ``folders``, or its name."""
    path = path_of(uri)
    inner = max((below(path, path_of(folder)) for folder in folders), key=_depth, default=None)
    shown = inner or path.rsplit("/", 1)[-1] or "untitled"
    return without_surrogates(_with_suffix(shown, uri, language))


def notebook_path(path: str) -> str:
    """Return the path of the notebook of a cell, as shown; other paths as they are."""
    return f"{path.rpartition(_NOTEBOOK)[0]}{_NOTEBOOK}" if f"{_NOTEBOOK}." in path else path


def lies_within(uri: str, folders: Iterable[str]) -> bool:
    """Return whether ``uri`` is in one of the workspace ``folders``.

    True if there are no folders, and for what is no file, such as a new buffer.
    """
    if not uri.startswith("file:"):
        return True
    path, known = path_of(uri), [path_of(folder) for folder in folders]
    return not known or any(below(path, folder) is not None for folder in known)


def path_below(uri: str, folder: str) -> str | None:
    """Return the path of ``uri`` below a folder, None if it lies elsewhere."""
    return below(path_of(uri), path_of(folder))


def end_of(uri: str) -> str:
    """Return the last parts of the whole path of ``uri``, regardless of the folders."""
    return "/".join(path_of(uri).rsplit("/", _END_PARTS)[-_END_PARTS:])


def path_of(uri: str) -> str:
    """Return the path that a URI names, "/" separated and without a "/" at its end.

    Bytes that are not UTF-8 become lone surrogates, as in names of files in Python. A drive of
    Windows is a lower-case folder ``/c:``: clients send ``file:///c%3A/`` and ``file:///C:/``. On a
    file server the machine is part of the path.
    """
    scheme, colon, rest = uri.partition(":")
    host, path = "", rest
    if colon and scheme.lower() == "file":
        # Clients that do not encode "#" and "?" mean them: a file has no fragment and no query.
        if rest.startswith("//"):
            host, slash, path = rest[2:].partition("/")
            path = slash + path
    else:
        try:
            parts = urlsplit(uri)
        except ValueError:  # such as "git://[": a name is still better than none
            path = uri
        else:
            host, path = parts.netloc, parts.path
    host = "" if host.lower() == "localhost" else host
    path = unquote(path, errors="surrogateescape")
    has_drive = path[:1] == "/" and path[2:3] in (":", "|") and path[1:2].isalpha()
    if has_drive:  # /C:/x and /c:/x are one place
        path = f"/{path[1].lower()}:{path[3:]}"
    if has_drive or host or scheme.lower() != "file":
        path = path.replace("\\", "/")  # elsewhere a name may have one
    if "//" in path or "/." in path:
        path = normpath(path)
    path = path.rstrip("/")
    return f"//{host}{path}" if host else path


def file_of(uri: str) -> str:
    """Return the name on the disk that a ``file:`` URI has, "" if it has none."""
    is_file = uri[:5].lower() == "file:"
    return on_disk(path_of(uri) or "/") if is_file else ""


def on_disk(path: str, *, is_windows: bool = os.name == "nt") -> str:
    """Return the name on the disk of the path of a URI, "/" separated; "" if it has none."""
    is_host = path.startswith("//") and path.count("/") < 3  # a machine without a folder
    if path[:1] != "/" or "\0" in path or is_host:
        return ""
    if not is_windows:
        return path
    if path[2:3] == ":":
        return path[1:] if path[3:] else f"{path[1:]}/"
    return path if path.startswith("//") else ""  # without a drive it is no file of Windows


def uri_of(name: str) -> str:
    """Return the URI of an absolute name on the disk."""
    return Path(name).as_uri()


def below(path: str, folder: str) -> str | None:
    """Return what a path adds to that of a folder, None if it lies elsewhere."""
    folder = folder.rstrip("/")
    return path[len(folder) + 1 :] if path.startswith(f"{folder}/") else None


def _depth(relative: str | None) -> float:
    """Return the rank of a path below a folder: the shorter, the deeper the folder."""
    return float("-inf") if relative is None else -len(relative)


def _with_suffix(path: str, uri: str, language: str) -> str:
    """Return ``path`` with a suffix where it has none: of new buffers and notebook cells."""
    name = path.rsplit("/", 1)[-1]
    is_cell = name.endswith(_NOTEBOOK) and language not in ("", "json")
    if not is_cell and ("." in name or uri.startswith("file:")):
        return path
    others = _WITHOUT_GRAMMAR.get(language) or _OTHER_SUFFIXES.get(language, "")
    return path + (suffix_of(language) or others.split(" ")[0])
