"""What an edit is, what repeats, and what is never shown."""
