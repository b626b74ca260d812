"""Benchmarks and evaluation; imports `model` and `lsp`, never `server`."""

from redraft.model import silence  # noqa: F401 - before any library is imported
