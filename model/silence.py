"""Libraries that Redraft uses are kept from reporting to their makers.

Some of them send what they are used for, unless an environment variable forbids it before they are
imported: onnxruntime from 1.30 on uploads over HTTPS and keeps its reports in a database below the
user's cache folder. Importing this module sets those variables for this process and its children,
whatever they were before: nothing leaves this machine. The ``__init__`` of each of our packages
imports it before anything else, so there is no way around it into our code.

A library in ``REPORTERS`` is imported by :func:`import_silenced` alone (``tests/
test_nothing_leaves.py`` looks for others).
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from types import ModuleType

__all__ = ["REPORTERS", "SILENCED", "import_silenced"]

_log = logging.getLogger(__name__)

#: Variables that forbid reports, each with the only value it has in a process of ours.
SILENCED = {
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime: no uploader, no events, no device id
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray: the cluster that 'redraft eval replay --ray' starts
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface_hub, hf_xet, transformers
    "DO_NOT_TRACK": "1",  # what further libraries of a user's environment agreed on
}

#: The libraries that would report, and the variable that each of them reads as it is imported.
REPORTERS = {
    "onnxruntime": "ORT_DISABLE_TELEMETRY",
    "ray": "RAY_USAGE_STATS_ENABLED",
    "huggingface_hub": "HF_HUB_DISABLE_TELEMETRY",
    "hf_xet": "HF_HUB_DISABLE_TELEMETRY",
}


def _silence() -> set[str]:
    """Set the variables; which reporters a host program had imported without them."""
    late = {
        name
        for name, variable in REPORTERS.items()
        if name in sys.modules and os.environ.get(variable) != SILENCED[variable]
    }
    os.environ.update(SILENCED)
    return late


#: Imported before us by a program that uses Redraft as a library: what they read, they have read.
_too_late = _silence()


def import_silenced(name: str) -> ModuleType:
    """Import the library ``name`` of ``REPORTERS``, or a module of it, forbidden to report.

    A library that was imported before Redraft may go on reporting; the log says so, once.

    Raises:
        ImportError: it is not installed, or does not load.
    """
    library = name.partition(".")[0]
    variable = REPORTERS[library]
    if library in _too_late:
        _too_late.remove(library)
        _log.warning(
            "%s was imported before Redraft and may report to its maker. Import redraft.model "
            "first, or set %s=%s before the program starts.",
            library,
            variable,
            SILENCED[variable],
        )
    os.environ.update(SILENCED)  # a host program may have changed them since
    module = importlib.import_module(name)
    if name == "onnxruntime":
        # Builds for Windows apps report by the system's event tracing, which no variable forbids.
        module.disable_telemetry_events()
    return module
