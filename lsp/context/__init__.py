"""Context of a request besides the file."""
