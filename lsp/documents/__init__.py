"""Open documents, their notebooks, and the edits that the user makes in them."""
