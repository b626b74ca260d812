"""Reports of clients about suggestions, commands of the user, and requests of copilot.el.

No client reports everything; the session infers the rest from the document.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from redraft.model.errors import InvalidRequest
from redraft.model.release import RELEASE

from ..recording.counts import KEPT_DAYS
from ..recording.statistics_text import DEFAULT_DAYS
from .jsonrpc import RedraftServer
from .messages import CommandParams, ItemParams, UuidParams, UuidsParams, document_uri
from .workspace_edits import workspace_edit

ACCEPT_COMMAND = "redraft.accept"
REJECT_COMMAND = "redraft.reject"
IGNORE_COMMAND = "redraft.ignore"
#: The user hid it with Esc: it is not offered again at once, and the second time it is rejected.
DISMISS_COMMAND = "redraft.dismiss"
#: The user accepted a whole rename: the answer holds the edit of all its files.
RENAME_COMMAND = "redraft.rename"
SNOOZE_COMMAND = "redraft.snooze"
STATUS_COMMAND = "redraft.status"
RECORD_COMMAND = "redraft.record"
STATISTICS_COMMAND = "redraft.statistics"
DECLINE_COMMAND = "redraft.declineModel"

_REJECTED, _HIDDEN = "rejected; it does not come back", "hidden; it may come back"
_LONGEST_MIN = 24 * 60.0  # of a pause; the setting enabled serves for longer


def accept(server: RedraftServer, id_: str) -> None:
    """Note that the user accepted a suggestion."""
    task = server.session.task_of(id_)
    server.session.report_accepted(id_)
    server.line.end(task, "accepted")


def reject(server: RedraftServer, id_: str) -> None:
    """Note that the user rejected a suggestion."""
    task = server.session.task_of(id_)
    server.session.report_rejected(id_)
    server.line.end(task, _REJECTED)


def dismiss(server: RedraftServer, id_: str) -> None:
    """Note that the user hid a suggestion."""
    task = server.session.task_of(id_)
    is_rejected = server.session.report_dismissed(id_)
    server.line.end(task, _REJECTED if is_rejected else _HIDDEN)


def ignore(server: RedraftServer, id_: str) -> None:
    """Note that the user let a suggestion pass."""
    server.session.report_ignored(id_)


async def rename(server: RedraftServer, id_: str) -> dict[str, Any]:
    """Note that the user accepted a whole rename, and return its edit.

    Raises:
        InvalidRequest: no rename of this id is shown.
        StaleDocument: one of its files has changed.
    """
    accepted = await server.session.edits.renames.accept(id_)
    accept(server, id_)
    return {"edit": workspace_edit(accepted)}


def snooze(server: RedraftServer, minutes: str) -> dict[str, Any]:
    """Offer nothing without a gesture for so many minutes; 0 ends it.

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
    server.snooze(60 * length)
    return {"snoozedS": round(server.session.workspace.snooze_left_s())}


async def status(server: RedraftServer, _: str) -> dict[str, Any]:
    """Return the state of the server.

    That is: the status line; the last result for ghost text and for the next edit, one sentence
    each, "" where none was asked for; the model, and what a larger one would bring and cost or why
    it does not run; the gate in use and the user's own; the settings
    in effect; the folders that are not read, each with its reason; and the ignore files that cannot
    be heeded, each with its reason: their folders are excluded.
    """
    model, session = await server.watch.look(), server.session
    about_larger = "" if model.larger else model.about_larger
    if larger := server.watch.find_larger_model(model):
        about_larger = f"{larger['offer']} {larger['answers']}"
    return {
        **server.line.state(),
        "ghost_text": server.line.message_of("infill"),
        "next_edit": server.line.message_of("next_edit"),
        "version": RELEASE,
        "model": {
            "state": model.state,
            "name": model.model,
            "provider": model.provider,
            "message": model.message,
            "contextTokens": model.context_tokens,
            "aboutLarger": about_larger,
        },
        "snoozedS": round(session.workspace.snooze_left_s()),
        "load": session.workspace.load.now()._asdict(),
        "gate": {"inUse": session.gates.gate().name, "own": session.gates.own.summary},
        "unreadFolders": session.workspace.context.unread,
        "unheededFiles": session.workspace.exclusions.unheeded,
        "settings": session.workspace.settings.model_dump(mode="json", by_alias=True),
    }


def record(server: RedraftServer, wanted: str) -> dict[str, Any]:
    """Turn recording ``on`` or ``off`` for every editor of this user; ``status`` changes nothing.

    Return what is in effect, and the file.

    Raises:
        InvalidRequest: none of the three is wanted.
        SettingsError: the folder of recordings cannot be written to.
    """
    recorder = server.session.recorder
    if wanted in ("on", "off"):
        recorder.turn(wanted == "on")
    elif wanted not in ("", "status"):
        raise InvalidRequest(f"{RECORD_COMMAND} takes on, off or status, got {wanted!r}")
    return recorder.status()


async def statistics(server: RedraftServer, days: str) -> dict[str, str]:
    """Return the counts of suggestions of the last days as text: see ``redraft stats``.

    Raises:
        InvalidRequest: ``days`` is out of range or no number.
    """
    wanted = int(days or DEFAULT_DAYS) if re.fullmatch(r"\d{0,3}", days) else 0
    if not 1 <= wanted <= KEPT_DAYS:
        raise InvalidRequest(f"{STATISTICS_COMMAND} takes days from 1 to {KEPT_DAYS}, got {days!r}")
    return {"text": await server.session.statistics.text(wanted)}


def decline_model(_: RedraftServer, name: str) -> None:
    """Offer a larger model no more, in any editor of this user.

    Raises:
        InvalidRequest: it is never offered.
        WeightsError: that cannot be stored.
    """
    from redraft.model.choice import decline_model as decline  # takes 50 ms

    decline(name)


COMMANDS: dict[str, Callable[[RedraftServer, str], Any]] = {
    ACCEPT_COMMAND: accept,
    REJECT_COMMAND: reject,
    IGNORE_COMMAND: ignore,
    DISMISS_COMMAND: dismiss,
    RENAME_COMMAND: rename,
    SNOOZE_COMMAND: snooze,
    STATUS_COMMAND: status,
    RECORD_COMMAND: record,
    STATISTICS_COMMAND: statistics,
    DECLINE_COMMAND: decline_model,
}

#: Commands of clients written for another server. They are not announced: where that server runs
#: too, two of a name would clash.
_ALIASES = {
    "github.copilot.didAcceptCompletionItem": accept,
    "github.copilot.didAcceptNextEditSuggestionItem": accept,
    "github.copilot.didRejectNextEditSuggestionItem": reject,
    "github.copilot.didIgnoreNextEditSuggestionItem": ignore,
}


async def _execute_command(server: RedraftServer, params: Any) -> Any:
    """Answer ``workspace/executeCommand``, a request of most clients and a notification of one."""
    sent = CommandParams.of(params)
    command = COMMANDS.get(sent.command) or _ALIASES.get(sent.command)
    if command is None:
        known = ", ".join(COMMANDS)
        raise InvalidRequest(f"unknown command {sent.command!r}; the server has {known}")
    result = command(server, sent.argument)
    return await result if inspect.isawaitable(result) else result


def _focused(server: RedraftServer, params: Any) -> None:
    """Take ``textDocument/didFocus``, which names no document when the editor is left."""
    server.session.focus(document_uri(params))


def _shown(server: RedraftServer, params: Any) -> None:
    server.session.report_shown(ItemParams.of(params).item.command.argument)


def _accepted_part(server: RedraftServer, params: Any) -> None:
    sent = ItemParams.of(params)
    if sent.accepted_length:
        server.session.report_accepted(sent.item.command.argument, part=sent.accepted_length)


# --- copilot.el --------------------------------------------------------------------------


def _notify_shown(server: RedraftServer, params: Any) -> str:
    server.session.report_shown(UuidParams.of(params).uuid)
    return "OK"


def _notify_accepted(server: RedraftServer, params: Any) -> str:
    sent = UuidParams.of(params)
    if sent.accepted_length != 0:
        server.session.report_accepted(sent.uuid, part=sent.accepted_length or 0)
    return "OK"


def _notify_rejected(server: RedraftServer, params: Any) -> str:
    for uuid in UuidsParams.of(params).uuids:
        reject(server, uuid)
    return "OK"


HANDLERS: dict[str, Callable[[RedraftServer, Any], Any]] = {
    types.WORKSPACE_EXECUTE_COMMAND: _execute_command,
    "textDocument/didFocus": _focused,
    "textDocument/didShowCompletion": _shown,
    "textDocument/didShowInlineEdit": _shown,
    "textDocument/didPartiallyAcceptCompletion": _accepted_part,
    "notifyShown": _notify_shown,
    "notifyAccepted": _notify_accepted,
    "notifyRejected": _notify_rejected,
    "checkStatus": lambda _server, _params: {"status": "OK", "user": "local"},  # no sign-in
    "getVersion": lambda _server, _params: {"version": RELEASE},
    "setEditorInfo": lambda _server, _params: "OK",
}
