"""Training rows and the loop that trains."""
