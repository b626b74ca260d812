"""Figures: intervals, scores, and the runs they are taken from."""
