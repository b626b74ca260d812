"""What clients report about suggestions, each in its own way, and what one old client asks.

No client reports everything; the session infers the rest from the document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsprotocol import types
from redraft.model.errors import InvalidRequest
from redraft.model.release import RELEASE

from . import commands, messages
from .client import Client

ACCEPT_COMMAND = "redraft.accept"
REJECT_COMMAND = "redraft.reject"
IGNORE_COMMAND = "redraft.ignore"
#: The user hid it with Esc: it is not offered again at once, and the second time it is rejected.
DISMISS_COMMAND = "redraft.dismiss"
COMMANDS = (
    ACCEPT_COMMAND,
    REJECT_COMMAND,
    IGNORE_COMMAND,
    DISMISS_COMMAND,
    *commands.COMMANDS,
)

#: What clients written for another server send. Understood, but not announced: where that server
#: runs too, two of a name would clash.
_ALIASES = {
    "github.copilot.didAcceptCompletionItem": ACCEPT_COMMAND,
    "github.copilot.didAcceptNextEditSuggestionItem": ACCEPT_COMMAND,
    "github.copilot.didRejectNextEditSuggestionItem": REJECT_COMMAND,
    "github.copilot.didIgnoreNextEditSuggestionItem": IGNORE_COMMAND,
}


def _focused(client: Client, params: Any) -> None:
    """``textDocument/didFocus``, which names a document, or none when the editor is left."""
    uri = messages.document_uri(params)
    client.session.focus(bool(uri))
    client.recorder.focused(uri)


def _shown(client: Client, params: Any) -> None:
    _drawn(client, messages.suggestion_id(params))


def _drawn(client: Client, id_: str) -> None:
    client.session.shown(id_)
    client.recorder.drawn(id_)


def _accepted_part(client: Client, params: Any) -> None:
    if messages.accepted_length(params):
        client.session.accepted_part(messages.suggestion_id(params))


async def _execute_command(client: Client, params: Any) -> Any:
    """A request for most clients, a notification for one: both end here."""
    name, argument = messages.command(params)
    known = _ALIASES.get(name, name)
    if known == ACCEPT_COMMAND:
        client.session.accepted(argument)
    elif known == REJECT_COMMAND:
        _rejected(client, argument)
    elif known == DISMISS_COMMAND:
        _prefetch_stops(client, client.session.dismissed(argument))
        client.line.ended("hidden; it may come back")
    elif known == IGNORE_COMMAND:
        client.session.ignored(argument)
    elif known == commands.SNOOZE_COMMAND:
        return commands.snooze(client, argument)
    elif known == commands.STATUS_COMMAND:
        return await commands.status(client)
    elif known == commands.RECORD_COMMAND:
        return commands.record(client, argument)
    else:
        raise InvalidRequest(f"unknown command {name!r}; the server has {', '.join(COMMANDS)}")
    return None


def _rejected(client: Client, id_: str) -> None:
    _prefetch_stops(client, client.session.rejected(id_))
    client.line.ended("rejected; it does not come back")


def _prefetch_stops(client: Client, uri: str) -> None:
    """What would follow the acceptance of a suggestion of the document is of no use."""
    if uri:
        client.stop_prefetch(uri)


# --- one client of old -----------------------------------------------------------------


def _notify_shown(client: Client, params: Any) -> str:
    for id_ in messages.uuids(params):
        _drawn(client, id_)
    return "OK"


def _notify_accepted(client: Client, params: Any) -> str:
    partly = isinstance(params, dict) and params.get("acceptedLength") is not None
    for id_ in messages.uuids(params):
        if partly and messages.accepted_length(params):
            client.session.accepted_part(id_)
        elif not partly:
            client.session.accepted(id_)
    return "OK"


def _notify_rejected(client: Client, params: Any) -> str:
    for id_ in messages.uuids(params):
        _rejected(client, id_)
    return "OK"


def _check_status(client: Client, params: Any) -> dict[str, str]:
    return {"status": "OK", "user": "local"}  # nobody has to sign in


def _get_version(client: Client, params: Any) -> dict[str, str]:
    return {"version": RELEASE}


def _set_editor_info(client: Client, params: Any) -> str:
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
