"""Whole renames in a workspace that a test writes down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from redraft.lsp.context.index import IndexGeneration, make_entry
from redraft.lsp.documents.uris import code_language
from redraft.lsp.renames.async_calls import find_async
from redraft.lsp.renames.call_series import find_series
from redraft.lsp.renames.code_file import CodeFile, UnclearUse
from redraft.lsp.renames.constants import find_constants
from redraft.lsp.renames.definition import find_renamed
from redraft.lsp.renames.literals import find_literals
from redraft.lsp.renames.members import find_members
from redraft.lsp.renames.moves import find_moves
from redraft.lsp.renames.removed_definitions import find_removed
from redraft.lsp.renames.repeated_changes import find_repeats
from redraft.lsp.renames.whole_rename import WholeRename, WorkspaceFiles, find_uses
from redraft.model.records import RecentEdit

from support.rules import history


def whole_rename(
    files: dict[str, str], before: str, after: str, *, opened: tuple[str, ...] = ()
) -> WholeRename | str:
    """Return the rename that follows a change of the first file, or why there is none.

    Args:
        before: what becomes ``after``; it stands in the first file once.
        opened: paths of other files that are open.
    """
    edits, own, known = _edited(files, before, after, opened)
    targets = list(find_renamed(edits, own))
    if not targets:
        return "no definition was renamed"
    try:
        return find_uses(targets[0], known)
    except UnclearUse as why:
        return str(why)


def series(
    files: dict[str, str], *changes: tuple[str, str], opened: tuple[str, ...] = ()
) -> list[WholeRename]:
    """Return the changes of arguments that follow changes of the first file, one after another."""
    (path, _), *_ = files.items()
    edits: list[RecentEdit] = []
    for before, after in changes:
        made, own, known = _edited(files, before, after, opened)
        edits += made
        files = {**files, path: own.text}
    return list(find_series(edits, own, known))


def awaited(
    files: dict[str, str], before: str, after: str, *, opened: tuple[str, ...] = ()
) -> list[WholeRename]:
    """Return the calls that are awaited after a function of the first file was made async."""
    return list(find_async(*_edited(files, before, after, opened)))


def repeats(path: str, text: str, *changes: tuple[str, str]) -> list[WholeRename]:
    """Return the changes to carry on that follow changes of one file, one after another."""
    return list(find_repeats(*_steps(path, text, changes)))


def literals(files: dict[str, str], *changes: tuple[str, str]) -> list[WholeRename]:
    """Return the literals that follow changes of the first file, one after another."""
    (path, _), *_ = files.items()
    edits: list[RecentEdit] = []
    for before, after in changes:
        made, own, known = _edited(files, before, after, ())
        edits += made
        files = {**files, path: own.text}
    return list(find_literals(edits, own, known))


def constants(path: str, text: str, *changes: tuple[str, str]) -> list[WholeRename]:
    """Return the literals that become a constant after changes of one file."""
    return list(find_constants(*_steps(path, text, changes)))


def members(path: str, text: str, *changes: tuple[str, str]) -> list[WholeRename]:
    """Return the new members that follow changes of one file, at their other places."""
    return list(find_members(*_steps(path, text, changes)))


def _steps(
    path: str, text: str, changes: Sequence[tuple[str, str]]
) -> tuple[list[RecentEdit], CodeFile]:
    edits: list[RecentEdit] = []
    own = _file(path, text)
    for before, after in changes:
        made, own, _ = _edited({path: own.text}, before, after, ())
        edits += made
    return edits, own


def moves(
    saved: dict[str, str], now: dict[str, str], *names: str, user: str = ""
) -> list[WholeRename]:
    """Return the changes of imports that follow from definitions moved between files.

    Args:
        saved: the files of the workspace, as the index has them.
        now: the open ones, the one that had the definitions first.
        names: of the definitions.
        user: path of the document that the user is in, "" for the last open one.
    """
    entries = [make_entry(each, code_language(each) or "", saved[each], (0, 0)) for each in saved]
    opened = {path: replace(_file(path, text), revision=2) for path, text in now.items()}
    files = WorkspaceFiles(
        IndexGeneration(tuple(entries)),
        opened,
        lambda path: _file(path, saved[path]) if path in saved else None,
        is_indexed=True,
    )
    old, *_ = now
    lines = saved[old].split("\n")
    removed = find_removed((), old, code_language(old) or "", lines)
    moved = {name: removed[name] for name in names}
    return list(find_moves({old: moved}, opened[user or [*now][-1]], files))


def _file(path: str, text: str) -> CodeFile:
    return CodeFile(f"file:///w/{path}", path, code_language(path) or "", text)


def _edited(
    files: dict[str, str], before: str, after: str, opened: tuple[str, ...]
) -> tuple[tuple[RecentEdit, ...], CodeFile, WorkspaceFiles]:
    """Return the edit of the first file, that file after it, and the workspace."""
    (path, text), *_ = files.items()
    assert text.count(before) == 1, f"{text.count(before)} places"
    edited = text.replace(before, after)
    entries = tuple(
        make_entry(each, code_language(each) or "", content, (0, 0))
        for each, content in files.items()
    )

    def read(name: str) -> CodeFile | None:
        content = files.get(name)
        return None if content is None else _file(name, content)

    own = replace(_file(path, edited), revision=2)
    known = {each: found for each in opened if (found := read(each)) is not None}
    around = WorkspaceFiles(IndexGeneration(entries), {path: own, **known}, read, is_indexed=True)
    return history(text, edited, path), own, around


def results(found: WholeRename | str) -> dict[str, str]:
    """Return the new texts of the files that a rename changes, by path."""
    assert isinstance(found, WholeRename), found
    return {each.source.path: each.result for each in found.files}
