"""Benchmarks: time and memory of typing, of the engine and of a start."""
