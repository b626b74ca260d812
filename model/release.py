"""The release that runs in this process; what is on disk may be newer after an upgrade."""

from __future__ import annotations

from importlib import metadata

try:
    RELEASE = metadata.version("redraft")
except metadata.PackageNotFoundError:  # run from a checkout that is not installed
    RELEASE = "0"


#: How to upgrade. The name on the public package index is not ours.
HOW_TO_UPGRADE = "run 'git pull' in your clone of Redraft's repository, then pip install '.[cpu]'"


def how_to_install(*extras: str) -> str:
    """Return the command that installs one of the ``extras`` from a clone.

    The name on the public package index is not ours.
    """
    commands = " or ".join(f"pip install '.[{extra}]'" for extra in extras)
    return f"{commands} in your clone of Redraft's repository"
