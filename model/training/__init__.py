"""Rows, noise and the loop that trains."""
