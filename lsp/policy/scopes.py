"""Parts of a text in which the user wants no suggestions: comments or strings, by language."""

from __future__ import annotations

from collections.abc import Callable

from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from redraft.model.text.code_queries import Scope, scope_at
from redraft.model.text.lines import is_comment
from redraft.model.text.syntax import Syntax

from ..settings import LspSettings
from ..suggestion import Query


def refuse_scope(
    query: Query, settings: LspSettings, syntax: Callable[[Query], Syntax | None]
) -> Abstain | None:
    """Return why nothing is offered at the cursor without a gesture.

    Args:
        syntax: returns the tree of a query's text, None if there is none.
    """
    if query.invoked or not (off := settings.scopes_off(query.language)):
        return None
    scope = _scope(query.text, query.cursor, query.language, syntax(query))
    return Abstain("scope_disabled", _reason(scope)) if scope in off else None


def refuse_edit_in_scope(
    query: Query, settings: LspSettings, syntax: Callable[[Query], Syntax | None], edit: Edit
) -> Abstain | None:
    """Return why an edit within such a part is not offered."""
    if query.invoked or not (off := settings.scopes_off(query.language)):
        return None
    least, tree = edit.least(), syntax(query)
    ends = {_scope(query.text, at, query.language, tree) for at in (least.start, least.end)}
    scope = ends.pop()
    return Abstain("scope_disabled", _reason(scope)) if scope in off and not ends else None


def _scope(text: str, cursor: int, language: str, syntax: Syntax | None) -> Scope:
    if syntax is not None:
        return scope_at(syntax, cursor)
    line = text[text.rfind("\n", 0, cursor) + 1 : cursor]
    return "comments" if is_comment(line, language) else ""


def _reason(scope: Scope) -> str:
    return f"Redraft is switched off in {scope} (setting disabledScopes)"
