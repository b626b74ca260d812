"""What the model is shown besides the file."""
