"""Limits that the user sets: which files, where in them, and when."""
