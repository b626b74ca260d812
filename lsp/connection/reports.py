"""What clients report about suggestions, each in its own way, and what one old client asks.

No client reports everything; the session infers the rest from the document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from redraft.model.errors import InvalidRequest

from . import commands, messages
from .asking import stop_ahead

if TYPE_CHECKING:
    from .server import RedraftServer

ACCEPT_COMMAND = "redraft.accept"
REJECT_COMMAND = "redraft.reject"
IGNORE_COMMAND = "redraft.ignore"
COMMANDS = (ACCEPT_COMMAND, REJECT_COMMAND, IGNORE_COMMAND, *commands.COMMANDS)

#: What clients written for another server send. Understood, but not announced: where that server
#: runs too, two of a name would clash.
_ALIASES = {
    "github.copilot.didAcceptCompletionItem": ACCEPT_COMMAND,
    "github.copilot.didAcceptNextEditSuggestionItem": ACCEPT_COMMAND,
    "github.copilot.didRejectNextEditSuggestionItem": REJECT_COMMAND,
    "github.copilot.didIgnoreNextEditSuggestionItem": IGNORE_COMMAND,
}


def _focused(ls: RedraftServer, params: Any) -> None:
    """``textDocument/didFocus``, which names a document, or none when the editor is left."""
    uri = messages.document_uri(params)
    ls.session.focus(bool(uri))
    ls.recorder.focused(uri)


def _shown(ls: RedraftServer, params: Any) -> None:
    _drawn(ls, messages.suggestion_id(params))


def _drawn(ls: RedraftServer, id_: str) -> None:
    ls.session.shown(id_)
    ls.recorder.drawn(id_)


def _accepted_part(ls: RedraftServer, params: Any) -> None:
    if messages.accepted_length(params):
        ls.session.accepted_part(messages.suggestion_id(params))


async def _execute_command(ls: RedraftServer, params: Any) -> Any:
    """A request for most clients, a notification for one: both end here."""
    name, argument = messages.command(params)
    known = _ALIASES.get(name, name)
    if known == ACCEPT_COMMAND:
        ls.session.accepted(argument)
    elif known == REJECT_COMMAND:
        _rejected(ls, argument)
    elif known == IGNORE_COMMAND:
        ls.session.ignored(argument)
    elif known == commands.SNOOZE_COMMAND:
        return commands.snooze(ls, argument)
    elif known == commands.STATUS_COMMAND:
        return await commands.status(ls)
    elif known == commands.RECORD_COMMAND:
        return commands.record(ls, argument)
    else:
        raise InvalidRequest(f"unknown command {name!r}; the server has {', '.join(COMMANDS)}")
    return None


def _rejected(ls: RedraftServer, id_: str) -> None:
    uri = ls.session.rejected(id_)
    if uri:
        stop_ahead(ls, uri)


# --- one client of old -----------------------------------------------------------------


def _notify_shown(ls: RedraftServer, params: Any) -> str:
    for id_ in messages.uuids(params):
        _drawn(ls, id_)
    return "OK"


def _notify_accepted(ls: RedraftServer, params: Any) -> str:
    partly = isinstance(params, dict) and params.get("acceptedLength") is not None
    for id_ in messages.uuids(params):
        if partly and messages.accepted_length(params):
            ls.session.accepted_part(id_)
        elif not partly:
            ls.session.accepted(id_)
    return "OK"


def _notify_rejected(ls: RedraftServer, params: Any) -> str:
    for id_ in messages.uuids(params):
        _rejected(ls, id_)
    return "OK"


def _check_status(ls: RedraftServer, params: Any) -> dict[str, str]:
    return {"status": "OK", "user": "local"}  # nobody has to sign in


def _get_version(ls: RedraftServer, params: Any) -> dict[str, str]:
    return {"version": ls.version or "0"}


def _set_editor_info(ls: RedraftServer, params: Any) -> str:
    return "OK"


HANDLERS: dict[str, Callable[..., Any]] = {
    types.WORKSPACE_EXECUTE_COMMAND: _execute_command,
    "textDocument/didFocus": _focused,
    "textDocument/didShowCompletion": _shown,
    "textDocument/didShowInlineEdit": _shown,
    "textDocument/didPartiallyAcceptCompletion": _accepted_part,
    "notifyShown": _notify_shown,
    "notifyAccepted": _notify_accepted,
    "notifyRejected": _notify_rejected,
    "checkStatus": _check_status,
    "getVersion": _get_version,
    "setEditorInfo": _set_editor_info,
}
