"""The release and build that run in this process. After an upgrade, the disk has newer ones."""

from __future__ import annotations

import hashlib
from importlib import metadata

try:
    _distribution = metadata.distribution("redraft")
    RELEASE = _distribution.version
    _record = _distribution.read_text("RECORD") or ""
except metadata.PackageNotFoundError:  # a checkout that is not installed
    RELEASE, _record = "0", ""

#: Changes with every installed file. An editable install lists none of them: there it changes only
#: with the release.
BUILD = hashlib.sha256(
    (_record if "redraft/model/release.py" in _record else RELEASE).encode()
).hexdigest()[:12]

#: How to upgrade. The name on the public package index is not ours.
HOW_TO_UPGRADE = "run 'git pull' in your clone of Redraft's repository, then pip install '.[cpu]'"


def how_to_install(*extras: str) -> str:
    """Return the command that installs one of the ``extras`` from a clone.

    The name on the public package index is not ours.
    """
    commands = " or ".join(f"pip install '.[{extra}]'" for extra in extras)
    return f"{commands} in your clone of Redraft's repository"
