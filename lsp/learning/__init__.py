"""Outcomes of recordings, on which the personal gate is fitted."""
