"""Runs a folder that is ready."""
