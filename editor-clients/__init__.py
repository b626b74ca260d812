"""Editor clients as data: ``redraft setup`` installs them from here."""

from redraft.model import silence  # noqa: F401 - before any library is imported
