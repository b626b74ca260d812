"""The release and build that run in this process. After an upgrade, the disk has newer ones."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path


def read_release(folder: Path) -> metadata.Distribution | None:
    """Return the installation whose packages lie in ``folder``, or else the first on the path.

    The path alone does not decide: Python may have put the working directory there, and a build
    leaves an ``egg-info`` in a checkout. Processes started in different folders would then name
    different builds.
    """
    for found in metadata.distributions(name="redraft", path=[str(folder)]):
        if found.read_text("RECORD"):
            return found
    return next(iter(metadata.distributions(name="redraft")), None)


_distribution = read_release(Path(__file__).resolve().parents[2])
RELEASE = _distribution.version if _distribution else "0"  # "0": a checkout, not installed
_record = (_distribution.read_text("RECORD") if _distribution else None) or ""

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
