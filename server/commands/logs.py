"""Where commands that stay log to: standard error, as much as ``REDRAFT_LOG_LEVEL`` says."""

from __future__ import annotations

import logging
import os
import sys

from redraft.model.errors import SettingsError


def log_to_stderr() -> None:
    level = os.environ.get("REDRAFT_LOG_LEVEL", "WARNING").upper()
    if level not in logging.getLevelNamesMapping():
        raise SettingsError(f"REDRAFT_LOG_LEVEL is {level!r}. Set it to DEBUG, INFO or WARNING.")
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
