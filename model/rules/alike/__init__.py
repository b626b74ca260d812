"""Changes of one piece of code, carried on to pieces that are like it."""
