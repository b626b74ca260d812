"""The command `redraft`; alone may import `lsp` and `evals`."""
