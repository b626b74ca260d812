"""Commands that other packages add to ``redraft``, imported only when they are asked for.

A package names them as entry points of the group ``redraft.commands``: ``eval``, or ``gate.ship``
for a command of ``redraft gate``. The product knows none of them, so that it runs without them.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

ENTRY_POINTS = "redraft.commands"


@cache
def group_of(name: str) -> type[TyperGroup]:
    """Return the class of a group to which other packages add commands.

    Args:
        name: of the group; "": ``redraft`` itself.
    """

    class Group(TyperGroup):
        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return super().get_command(ctx, cmd_name) or _command(name, cmd_name)

        def list_commands(self, ctx: Any) -> list[str]:
            return [*dict.fromkeys((*super().list_commands(ctx), *_added_to(name)))]

    return Group


def _added_to(group: str) -> dict[str, EntryPoint]:
    """Return what other packages add to a group, by name."""
    found = {}
    for point in entry_points(group=ENTRY_POINTS):
        parent, _, name = point.name.rpartition(".")
        if parent == group:
            found[name] = point
    return found


def _command(group: str, name: str) -> Any:
    """Return a command that another package adds; None without one, or if it does not load."""
    point = _added_to(group).get(name)
    if point is None:
        return None
    try:
        added = point.load()
        made: Any = get_command(added)
    except Exception as error:  # whatever another package does, the commands of this one work
        sys.stderr.write(f"warning: the command {name!r} cannot be loaded: {error}\n")
        return None
    made.name = name
    if isinstance(added.info.rich_help_panel, str):
        made.rich_help_panel = added.info.rich_help_panel
    return made
