"""``redraft setup``: installs, updates and removes the clients of editors."""
