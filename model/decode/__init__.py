"""Decoding: texts from a cached prompt."""
