"""Renames of a definition over the whole workspace, offered as one suggestion."""
