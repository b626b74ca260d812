"""Labels of candidates, gates fitted on them, and gates side by side."""
