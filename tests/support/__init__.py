"""Builders for tests: scripted models, live servers, real editors, samples."""
