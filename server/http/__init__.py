"""Listening, limits, bodies and figures, for every wire."""
