"""The page about runs, and the check against accepted figures."""
