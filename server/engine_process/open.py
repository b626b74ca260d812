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

    name = f"{settings.model} {settings.variant}" if settings.variant else settings.model
    loader = onnx_loader(settings.model, settings.variant, settings.provider, settings.threads)
    return Engine(loader, name, settings.queue_length)
