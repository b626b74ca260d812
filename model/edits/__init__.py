"""Edits, what recent edits did, and where they repeat."""
