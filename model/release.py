"""The release that runs in this process; what is on disk may be newer after an upgrade."""

from __future__ import annotations

from importlib import metadata

try:
    RELEASE = metadata.version("redraft")
except metadata.PackageNotFoundError:  # run from a checkout that is not installed
    RELEASE = "0"
