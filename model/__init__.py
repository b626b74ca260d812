"""Redraft's model: prompt, network, denoising, runtime, engine, weights and training."""
