"""Makes the engine that settings ask for. Imports it late: the command line starts without it."""

from __future__ import annotations

from redraft.model.records import Predictor

from ..settings import Settings


def open_engine(settings: Settings) -> Predictor:
    """The engine in this process; its weights are fetched and loaded in the background.

    Whatever goes wrong there, an unknown model or a missing onnxruntime included, is what its
    status says.
    """
    from redraft.model.engine.engine import Engine
    from redraft.model.engine.load import onnx_loader
    from redraft.model.weights.default_model import resolve

    choice, variant = resolve(settings.model), settings.variant
    name = f"{choice.name} {variant}" if variant else choice.name
    loader = onnx_loader(choice.name, variant, settings.provider, settings.threads, choice.fallback)
    return Engine(loader, name, settings.queue_length)
