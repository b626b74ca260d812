"""The engine process that all editors of a user share, and its clients."""
