"""Scorers of each task: they decide, score the answer and lay out its tables."""
