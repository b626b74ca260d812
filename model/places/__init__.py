"""Places of the next edit: a small ranker over the lines of the open files."""
