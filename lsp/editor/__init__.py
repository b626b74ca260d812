"""The user's documents, and what was done in them."""
