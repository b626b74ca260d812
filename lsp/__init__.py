"""The language server: documents, the session that decides, and translation to and from LSP."""

from redraft.model import silence  # noqa: F401 - before any library is imported
