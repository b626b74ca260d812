"""Decisions: questions with given answers, in the bodies of three services."""
