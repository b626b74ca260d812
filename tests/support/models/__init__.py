"""Builders of scripted and tiny models, engines and reference implementations."""
