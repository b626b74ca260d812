"""Measurement of the ranker of places."""
