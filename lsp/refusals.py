"""Reasons for offering nothing in a file, in a text or at a moment."""

from __future__ import annotations

import math
import re

from redraft.model.edits.edit import Edit
from redraft.model.edits.syntax_errors import count_errors_of
from redraft.model.gate.filters import is_import
from redraft.model.gate.reasons import Abstain
from redraft.model.text.common import find_changed_part
from redraft.model.text.cursor import line_after, line_before

from .editor_settings import LspSettings
from .policy.secret_files import secret_in
from .snapshot import Snapshot

#: Seconds after the user's last edit, in any document, in which the next one is asked for.
AFTER_EDIT_S = 10.0

_WORD = re.compile(r"\w+")


def refuse(snapshot: Snapshot) -> Abstain | None:
    """Return why nothing is ever offered at a place, None if something may be."""
    settings, flags = snapshot.settings, snapshot.flags
    language, document = snapshot.language, snapshot.document
    if not settings.enabled:
        return Abstain("disabled", "Redraft is switched off (setting enabled)")
    if snapshot.load.effort == "off":
        return Abstain("saving", f"Redraft is off {snapshot.load.why}")
    if snapshot.snoozed_s and not flags.is_invoked:
        return Abstain("snoozed", snooze_sentence(snapshot.snoozed_s))
    if language and language in settings.disabled_languages:
        return Abstain("language_disabled", f"Redraft is switched off for {language} files")
    if document.out_of_step:
        return Abstain("lost_track", f"Redraft lost track of this file: {document.out_of_step}")
    if document.excluded:
        return Abstain("secret", document.excluded)
    unfit = refuse_text(document.text, snapshot.cursor, settings, document.path)
    if unfit is not None:
        return unfit
    if flags.selected:
        return Abstain("selection", "text is selected")
    if flags.cursors > 1:
        return Abstain("several_cursors", f"there are {flags.cursors} cursors")
    if flags.in_snippet:
        return Abstain("snippet", "you are filling in a snippet")
    return None


def snooze_sentence(left_s: float) -> str:
    """Return a sentence for the time without suggestions."""
    return f"paused for another {math.ceil(left_s / 60)} min"


def refuse_now(snapshot: Snapshot) -> Abstain | None:
    """Return why nothing is offered just now without a gesture."""
    if snapshot.is_invoked:
        return None
    if not snapshot.is_focused:
        return Abstain("unfocused", "the editor window is not active")
    if snapshot.edits.is_bulk(snapshot.uri):
        return Abstain("bulk_change", "a large change was just made, such as a paste")
    if snapshot.edits.last_change(snapshot.uri) == "undo":
        return Abstain("undoing", "you just undid or redid a change")
    return None


def refuse_long_after_edit(snapshot: Snapshot) -> Abstain | None:
    """Refuse new next edits long after the user's last edit, unless by a gesture."""
    if snapshot.is_invoked:
        return None
    since_s = snapshot.since_edit_s
    if since_s is None:
        return Abstain("nothing_edited", "you have not edited anything yet")
    if since_s > AFTER_EDIT_S:
        return Abstain("no_recent_edit", f"your last edit is more than {AFTER_EDIT_S:g} s ago")
    return None


def refuse_half_typed(snapshot: Snapshot) -> Abstain | None:
    """Refuse next edits while a name is to be typed in place of a deleted one at the cursor.

    The code is broken without that name. Where it is whole, as ``f()`` is without an argument, and
    in languages that are not known, next edits are offered.
    """
    changes = snapshot.edits.changes(snapshot.uri)
    if snapshot.is_invoked or not changes or len(changes[0].old) != 1 or len(changes[0].new) != 1:
        return None
    (old,), (new,) = changes[0].old, changes[0].new
    text, cursor = snapshot.text, snapshot.cursor
    head, written, gone = find_changed_part(new, old)
    column = cursor - text.rfind("\n", 0, cursor) - 1
    is_here = (snapshot.line, column) == (changes[0].first, head)
    if written or not _WORD.fullmatch(gone) or not is_here:
        return None
    put_back = Edit(text, cursor, cursor, gone)
    errors = count_errors_of(put_back, snapshot.path, snapshot.language)
    if errors is None or errors[1] >= errors[0]:
        return None
    return Abstain("half_typed", f"you have not typed yet what replaces '{gone}'")


#: Characters on either side of the cursor that show how dense a text is. Counting through all of a
#: large file at each keystroke would be the most expensive thing the server does.
_AROUND = 20_000


def refuse_text(text: str, cursor: int, settings: LspSettings, path: str = "") -> Abstain | None:
    """Return why a document is too large, too dense, binary or secret; None if it is not."""
    if len(text) > settings.max_file_chars:
        return Abstain(
            "too_large",
            f"the file is too large: {len(text):,} characters, at most {settings.max_file_chars:,}",
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        return Abstain(
            "binary", f"this looks like a binary file: line {line} contains a NUL character"
        )
    secret = secret_in(text, path)
    if secret:
        return Abstain("secret", f"this file {secret}")
    width = len(line_before(text, cursor)) + len(line_after(text, cursor))
    if width > settings.max_line_chars:
        return Abstain(
            "long_line",
            f"the line is too long: {width:,} characters, at most {settings.max_line_chars:,}",
        )
    start, end = max(0, cursor - _AROUND), min(len(text), cursor + _AROUND)
    mean = (end - start) // (text.count("\n", start, end) + 1)
    limit = settings.max_line_chars // 10
    if mean > limit and len(text) > settings.max_line_chars:
        return Abstain(
            "minified", f"the text looks minified: {mean:,} characters per line, at most {limit:,}"
        )
    return None


# --- empty bodies --------------------------------------------------------------------------------
# In a body where the user is about to write, ghost text comes before next edits. Bodies are found
# by indentation and line ends, the same for every language.

_OPENS = re.compile(r"(?:[:{(\[]|\bdo|\bthen|=>)\s*(?:(?:#|//).*)?$")
_DOCSTRING = re.compile(r"(?:\"\"\"|''')\s*$")


def is_empty_body_line(text: str, cursor: int) -> bool:
    """Return whether the cursor is in an empty line of a body.

    Such a line is indented, or right below a line that opens a block.
    """
    start, end = _line(text, cursor)
    line = text[start:end]
    return not line.strip() and (bool(line) or _opens(_above(text, start)))


def is_empty_body(text: str, cursor: int) -> bool:
    """Return whether the body around such a line has no statement yet."""
    start, end = _line(text, cursor)
    above = _above(text, start)
    if text[start:end].strip() or not (_opens(above) or _DOCSTRING.search(above)):
        return False
    below = next((line for line in text[end:].split("\n")[1:] if line.strip()), "")
    return _depth(below) < max(_depth(text[start:end]), 1) or _depth(below) <= _opener_depth(above)


def beside_empty_body(snapshot: Snapshot, edit: Edit) -> Abstain | None:
    """Refuse new lines beside a body that is still empty, imports excepted.

    The user is about to write that body.
    """
    start, end, new = edit.shape()
    added = [line for line in new.split("\n") if line.strip()]
    if edit.text[start:end].strip() or is_import(added):
        return None
    if not is_empty_body(snapshot.text, snapshot.cursor) or writes_body(edit, snapshot.cursor):
        return None
    return Abstain("body_first", "the body at the cursor is still empty and comes first")


def writes_body(edit: Edit, cursor: int) -> bool:
    """Return whether an edit writes the body that is empty at the cursor."""
    rows = [at for at, line in enumerate(edit.text[:cursor].split("\n")[:-1]) if line.strip()]
    if not rows or edit.lines[0] <= rows[-1]:
        return False
    lines = edit.result.split("\n")
    below = next((line for line in lines[rows[-1] + 1 :] if line.strip()), "")
    return _depth(below) > _opener_depth(lines[rows[-1]])


def _opener_depth(above: str) -> int:
    return _depth(above) if _opens(above) else _depth(above) - 1


def _opens(line: str) -> bool:
    return _OPENS.search(line) is not None


def _above(text: str, start: int) -> str:
    """Return the nearest line above that is not blank."""
    return next((line for line in reversed(text[:start].split("\n")) if line.strip()), "")


def _line(text: str, cursor: int) -> tuple[int, int]:
    end = text.find("\n", cursor)
    return text.rfind("\n", 0, cursor) + 1, len(text) if end < 0 else end


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
