"""Benchmarks and evaluation; imports `model` and `lsp`, never `server`."""
