"""Builders of weights on disk, and servers that offer them."""
