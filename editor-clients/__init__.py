"""Editor clients as data: ``redraft setup`` installs them from here."""  # noqa: N999 - a given name

from redraft.model import silence  # noqa: F401 - before any library is imported
