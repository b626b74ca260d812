"""Recordings of editing, which the user turns on."""
