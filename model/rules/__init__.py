"""Edits that follow from recent ones by rule, with their odds."""
