"""The language server: documents, the session that decides, and translation to and from LSP."""
