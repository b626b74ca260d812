"""Fitting of the gate: the chance that an edit is kept, and when to show it."""
