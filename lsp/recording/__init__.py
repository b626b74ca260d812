"""What is written down while the user wants it."""
