"""A suggestion as a sentence, for screen readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from redraft.model.text.names import find_changed_words

from ..documents.open_documents import Document
from ..documents.uris import display_path
from ..renames.whole_rename import WholeRename
from ..suggestions.suggestion import Suggestion
from .jsonrpc import RedraftServer

_MOST_CHANGES = 2  # within a line that are listed one by one
_TAB = 4  # columns
_END = "\n"


def describe(server: RedraftServer, document: Document, cursor: int) -> dict[str, Any]:
    """Return the id of what is shown at an index into a document, and a sentence on it.

    Without a suggestion the id is "", and the sentence gives the reasons.
    """
    session = server.session
    outcomes = session.memory.outcomes
    shown = outcomes.find_shown(document.uri) or outcomes.find_seen_from(document.uri)
    sentence = _sentence(server, shown, document, cursor) if shown is not None else ""
    if shown is None or not sentence:
        reasons = server.line.reasons(document.uri, document.revision)
        return {"id": "", "text": " ".join(("Nothing is suggested here.", *reasons))}
    return {"id": shown.id, "text": f"{'Unsure. ' if shown.unsure else ''}{sentence}"}


def _sentence(server: RedraftServer, shown: Suggestion, document: Document, cursor: int) -> str:
    if shown.task == "infill":
        rest = shown.what_remains(document.text, cursor)
        return f"At the cursor: {_listed(rest.split(_END))}." if rest else ""
    is_here = shown.uri == document.uri
    file = "" if is_here else display_path(shown.uri, server.session.workspace.folders)
    return next_edit(shown, file)


def next_edit(suggestion: Suggestion, file: str = "") -> str:
    """Return what a next edit changes, line by line, and why; ``file`` names another document."""
    rename = suggestion.rename
    what = _of_edit(suggestion) if rename is None else _of_rename(suggestion, rename)
    sentence = f"in {file}, {what}." if file else f"{what}."
    return sentence[0].upper() + sentence[1:] + _explanation(suggestion)


def _explanation(suggestion: Suggestion) -> str:
    why = f" Reason: {suggestion.why}." if suggestion.why else ""
    places = "place" if suggestion.more == 1 else "places"
    return why + (f" {suggestion.more} more {places}." if suggestion.more else "")


def _of_rename(suggestion: Suggestion, rename: WholeRename) -> str:
    label = rename.label
    if not rename.what:
        names = f"`{rename.old}` to `{rename.new}`"
        label = label.replace(f"{rename.old} → {rename.new}", names)
    return f"line {suggestion.lines[0] + 1}: {label}"


def _of_edit(suggestion: Suggestion) -> str:
    start, end, new = suggestion.edit.shape()
    first, old = suggestion.text.count(_END, 0, start) + 1, suggestion.text[start:end]
    before, after = old.split(_END), new.split(_END)
    if not before[-1] and not after[-1]:  # behind the last line end
        before, after = before[:-1], after[:-1]
    return "; ".join(_parts(_changes(first, before, after)))


# --- changes of lines ------------------------------------------------------------------------

#: A line, 1-based, or a place without one, and what happens there.
_Change = tuple[int | str, str]


def _changes(first: int, old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    """Yield what becomes of the lines ``old``, of which the first has the number ``first``."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        top, removed, added = first + i1, old[i1:i2], new[j1:j2]
        if tag == "insert":
            where = f"after line {top - 1}" if top > 1 else "before line 1"
            yield where, f"insert {_listed(added)}"
        elif tag == "delete":
            yield _numbered(range(top, first + i2)), f"delete {_listed(removed)}"
        elif tag == "replace" and len(removed) == len(added):
            pairs = zip(removed, added, strict=True)
            yield from ((top + at, _of_line(*pair)) for at, pair in enumerate(pairs))
        elif tag == "replace":
            yield _numbered(range(top, first + i2)), f"replace by {_listed(added)}"


def _of_line(old: str, new: str) -> str:
    """Return what changes within a line."""
    if old.split() == new.split():
        depth, now = map(_depth, (old, new))
        return "change the spaces" if depth == now else f"indent by {now} columns, not {depth}"
    changes = [
        (old[:start], old[start:end], written)
        for start, end, written in find_changed_words(old, new)
        if (old[start:end] + written).strip()
    ]
    if not old.strip():
        return f"write {_quoted(new)}"
    size = sum(len(replaced) for _, replaced, _ in changes)
    if len(changes) > _MOST_CHANGES or (len(changes) > 1 and 2 * size > len(old.strip())):
        return f"replace the line by {_quoted(new)}"
    return " and ".join(_of_words(*each) for each in changes)


def _of_words(before: str, old: str, new: str) -> str:
    if not new.strip():
        return f"delete {_quoted(old)}"
    if old.strip():
        return f"replace {_quoted(old)} by {_quoted(new)}"
    words = before.split()
    return f"insert {_quoted(new)} " + (f"after {_quoted(words[-1])}" if words else "in front")


def _depth(line: str) -> int:
    line = line.expandtabs(_TAB)
    return len(line) - len(line.lstrip())


# --- words -----------------------------------------------------------------------------------


def _parts(changes: Iterator[_Change]) -> Iterator[str]:
    """Yield each change with its place; the same change of several lines comes once."""
    lines: dict[str, list[int]] = {}
    order: list[_Change | str] = []
    for place, what in changes:
        if isinstance(place, str):
            order.append((place, what))
        else:
            order += [] if what in lines else [what]
            lines.setdefault(what, []).append(place)
    for each in order:
        place, what = (_numbered(lines[each]), each) if isinstance(each, str) else each
        yield f"{place}: {what}"


def _numbered(lines: Sequence[int]) -> str:
    """Return "line 3", "lines 3 to 5" or "lines 3, 5 and 9"."""
    first, last = lines[0], lines[-1]
    if first == last:
        return f"line {first}"
    if last - first + 1 == len(lines) > 2:
        return f"lines {first} to {last}"
    return f"lines {', '.join(map(str, lines[:-1]))} and {last}"


def _listed(lines: Sequence[str]) -> str:
    count = f"{len(lines)} lines: " if len(lines) > 1 else ""
    return count + ", ".join(map(_quoted, lines))


def _quoted(text: str) -> str:
    return f"`{text.strip()}`" if text.strip() else "an empty line"
