"""Redraft's model: prompt, network, denoising, runtime, engine, weights and training."""

from . import silence  # noqa: F401 - before any library is imported
