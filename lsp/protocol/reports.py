"""Reports of clients about suggestions, commands of the user, and the requests of one old client.

No client reports everything; the session infers the rest from the document. The user's commands
are to be left alone for a while, to hear how things stand, and to record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsprotocol import types
from redraft.model.errors import InvalidRequest
from redraft.model.release import RELEASE

from . import messages
from .client import Client

SNOOZE_COMMAND = "redraft.snooze"
STATUS_COMMAND = "redraft.status"
RECORD_COMMAND = "redraft.record"

_LONGEST_MIN = 24 * 60.0  # who wants to be left alone for longer switches it off


def snooze(client: Client, minutes: str) -> dict[str, Any]:
    """``redraft.snooze [minutes]``: offer nothing by itself for so long; 0 ends it.

    Raises:
        InvalidRequest: that is no number of minutes.
    """
    try:
        length = float(minutes)
    except ValueError:
        length = -1.0
    if not 0 <= length <= _LONGEST_MIN:
        raise InvalidRequest(
            f"{SNOOZE_COMMAND} takes minutes from 0 to {_LONGEST_MIN:g}, got {minutes!r}"
        )
    client.snooze(60 * length)
    return {"snoozedS": round(client.session.snoozed_s())}


async def status(client: Client) -> dict[str, Any]:
    """Answer ``redraft.status`` with what the server knows about itself.

    That is: the status line; the last result for ghost text and for the next edit, one sentence
    each, "" where none was asked for; the model; the gate in use and the user's own; the settings
    in effect; and the folders that are not read, each with its reason.
    """
    model = await client.watch.look()
    return {
        **client.line.state(),
        "ghost_text": client.line.message_of("infill"),
        "next_edit": client.line.message_of("next_edit"),
        "version": RELEASE,
        "model": {
            "state": model.state,
            "name": model.model,
            "provider": model.provider,
            "message": model.message,
            "contextTokens": model.context_tokens,
        },
        "snoozedS": round(client.session.snoozed_s()),
        "gate": {"inUse": client.session.gate().name, "own": client.session.own_gate.told},
        "unreadFolders": client.session.context.unread,
        "settings": client.session.settings.model_dump(mode="json", by_alias=True),
    }


def record(client: Client, wanted: str) -> dict[str, Any]:
    """Answer ``redraft.record on|off|status``, for every editor of this user.

    The answer holds what is in effect, and the file.

    Raises:
        InvalidRequest: none of the three is wanted.
        SettingsError: the folder of recordings cannot be written to.
    """
    if wanted in ("on", "off"):
        client.session.recorder.turn(wanted == "on")
    elif wanted not in ("", "status"):
        raise InvalidRequest(f"{RECORD_COMMAND} takes on, off or status, got {wanted!r}")
    return client.session.recorder.status()


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
    SNOOZE_COMMAND,
    STATUS_COMMAND,
    RECORD_COMMAND,
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
    client.session.focus(messages.document_uri(params))


def _shown(client: Client, params: Any) -> None:
    client.session.shown(messages.suggestion_id(params))


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
        client.session.dismissed(argument)
        client.line.ended("hidden; it may come back")
    elif known == IGNORE_COMMAND:
        client.session.ignored(argument)
    elif known == SNOOZE_COMMAND:
        return snooze(client, argument)
    elif known == STATUS_COMMAND:
        return await status(client)
    elif known == RECORD_COMMAND:
        return record(client, argument)
    else:
        raise InvalidRequest(f"unknown command {name!r}; the server has {', '.join(COMMANDS)}")
    return None


def _rejected(client: Client, id_: str) -> None:
    client.session.rejected(id_)
    client.line.ended("rejected; it does not come back")


# --- one client of old -----------------------------------------------------------------


def _notify_shown(client: Client, params: Any) -> str:
    for id_ in messages.uuids(params):
        client.session.shown(id_)
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
