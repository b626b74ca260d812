"""Commands that a person gives by hand: to be left alone for a while, to hear how things stand, to
record.

Reached by ``workspace/executeCommand``, as what clients report is (:mod:`.reports`). Knows nothing
of suggestions.
"""

from __future__ import annotations

import asyncio
from typing import Any

from redraft.model.errors import InvalidRequest
from redraft.model.release import RELEASE

from ..session.decisions import snoozing
from .client import Client

SNOOZE_COMMAND = "redraft.snooze"
STATUS_COMMAND = "redraft.status"
RECORD_COMMAND = "redraft.record"
COMMANDS = (SNOOZE_COMMAND, STATUS_COMMAND, RECORD_COMMAND)

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
    if client.waking is not None:
        client.waking.cancel()
        client.waking = None
    client.session.snooze(60 * length)
    if length:
        client.line.tell(f"No suggestions: {snoozing(60 * length)}.", "Inactive")
        client.waking = asyncio.get_running_loop().call_later(60 * length, client.line.tell, "idle")
    else:
        client.line.tell("idle")
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
        "gate": {"inUse": client.learning.gate().name, "own": client.learning.told},
        "unreadFolders": client.context.unread,
        "settings": client.session.settings.model_dump(mode="json", by_alias=True),
    }


def record(client: Client, wanted: str) -> dict[str, Any]:
    """``redraft.record on|off|status``: recording, for every editor of this user. Answers with what
    is in effect, and the file.

    Raises:
        InvalidRequest: none of the three is wanted.
        SettingsError: the folder of recordings cannot be written to.
    """
    if wanted in ("on", "off"):
        client.recorder.turn(wanted == "on")
    elif wanted not in ("", "status"):
        raise InvalidRequest(f"{RECORD_COMMAND} takes on, off or status, got {wanted!r}")
    return client.recorder.status()
