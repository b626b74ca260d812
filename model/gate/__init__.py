"""Decides which predicted edits are shown: filters, features and the learned gate."""
