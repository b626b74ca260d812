"""The engine's process: what it runs, and how its clients meet it."""
