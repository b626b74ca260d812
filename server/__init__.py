"""The HTTP service, the engine process and the ``redraft`` command."""

from redraft.model import silence  # noqa: F401 - before any library is imported
