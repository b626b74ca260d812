"""Suggestions while their text changes, and all that a session remembers of them."""
