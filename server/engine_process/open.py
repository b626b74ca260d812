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

    return Engine.start(
        model=settings.model,
        variant=settings.variant,
        provider=settings.provider,
        threads=settings.threads,
        queue_length=settings.queue_length,
    )
