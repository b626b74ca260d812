"""What a model is asked, and who is asked."""
