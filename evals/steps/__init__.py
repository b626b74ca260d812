"""Ordered steps of an edit, played through the language server's session."""
