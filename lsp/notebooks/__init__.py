"""Notebooks: the order of their cells, and the text that a cell continues."""
