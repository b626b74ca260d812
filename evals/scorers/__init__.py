"""What an answer is worth, by task: decision, score, columns and tables."""
