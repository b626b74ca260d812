"""A recording once more, with a model at the other end."""
