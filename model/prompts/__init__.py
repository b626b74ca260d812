"""Prompt formats: a request as tokens, and an answer as an edit."""
