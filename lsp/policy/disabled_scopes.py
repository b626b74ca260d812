"""Parts of a text in which the user wants no suggestions: comments or strings, by language."""

from __future__ import annotations

from collections.abc import Callable

from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from redraft.model.text.code_queries import Scope, scope_at
from redraft.model.text.lines import is_comment
from redraft.model.text.syntax import Syntax

from ..snapshot import Snapshot


def refuse_scope(snapshot: Snapshot, syntax: Callable[[Snapshot], Syntax | None]) -> Abstain | None:
    """Return why nothing is offered at the cursor without a gesture.

    Args:
        syntax: returns the tree of the text of a snapshot, None if there is none.
    """
    if snapshot.is_invoked or not (off := snapshot.settings.scopes_off(snapshot.language)):
        return None
    scope = _scope(snapshot.text, snapshot.cursor, snapshot.language, syntax(snapshot))
    return Abstain("scope_disabled", _reason(scope)) if scope in off else None


def refuse_edit_in_scope(
    snapshot: Snapshot, syntax: Callable[[Snapshot], Syntax | None], edit: Edit
) -> Abstain | None:
    """Return why an edit within such a part is not offered."""
    if snapshot.is_invoked or not (off := snapshot.settings.scopes_off(snapshot.language)):
        return None
    least, tree = edit.least(), syntax(snapshot)
    ends = {_scope(snapshot.text, at, snapshot.language, tree) for at in (least.start, least.end)}
    scope = ends.pop()
    return Abstain("scope_disabled", _reason(scope)) if scope in off and not ends else None


def _scope(text: str, cursor: int, language: str, syntax: Syntax | None) -> Scope:
    if syntax is not None:
        return scope_at(syntax, cursor)
    line = text[text.rfind("\n", 0, cursor) + 1 : cursor]
    return "comments" if is_comment(line, language) else ""


def _reason(scope: Scope) -> str:
    return f"Redraft is switched off in {scope} (setting disabledScopes)"
