"""Paths that a model is shown: relative to the workspace, with the suffix of the language.

Works on URIs alone, never on the disk, so it is the same on every platform.
"""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import splitext
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


def shown_path(uri: str, folders: Iterable[str], language: str = "") -> str:
    """Return the path of ``uri`` below the innermost of the workspace ``folders``, or its name."""
    path = _path(uri)
    inner = max((_inside(path, _path(folder)) for folder in folders), key=_depth, default=None)
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
    path, known = _path(uri), [_path(folder) for folder in folders]
    return not known or any(_inside(path, folder) is not None for folder in known)


def path_below(uri: str, folder: str) -> str | None:
    """Return the path of ``uri`` below a folder, None if it lies elsewhere."""
    return _inside(_path(uri), _path(folder))


def end_of(uri: str) -> str:
    """Return the last parts of the whole path of ``uri``, regardless of the folders."""
    return "/".join(_path(uri).rsplit("/", _END_PARTS)[-_END_PARTS:])


def _path(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:  # such as "file://[": a name is still better than none
        return unquote(uri).replace("\\", "/").rstrip("/")
    path = unquote(parts.path).replace("\\", "/").rstrip("/")
    if path[2:3] == ":" and path[:1] == "/":
        path = path[:2].lower() + path[2:]  # /C:/x and /c:/x are one place
    # On a file server the machine is part of the path.
    return f"//{parts.netloc}{path}" if parts.netloc else path


def _inside(path: str, folder: str) -> str | None:
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
