"""Makes the engine that settings ask for. Imports it late: the command line starts without it."""

from __future__ import annotations

from redraft.model.errors import RedraftError
from redraft.model.records import Predictor

from ..settings import Settings


def open_engine(settings: Settings) -> Predictor:
    """The engine in this process; its weights are fetched and loaded in the background.

    Whatever goes wrong there, an unknown model or a missing onnxruntime included, is what its
    status says.
    """
    from redraft.model.conversation import ChatEngine, chat_abilities_of
    from redraft.model.engine import Engine
    from redraft.model.load import onnx_loader
    from redraft.model.weights.default_model import resolve
    from redraft.model.weights.registry import info

    def engine(model: str) -> Engine:
        name = f"{model} {settings.variant}" if settings.variant else model
        loader = onnx_loader(model, settings.variant, settings.provider, settings.threads)
        return Engine(loader, name, settings.queue_length)

    model = resolve(settings.model)
    edits = engine(model)
    try:
        chat = info(model).chat
        config = info(chat or model).config
    except RedraftError:  # there is no such model: what the engine's status says
        return edits
    if not chat:
        return edits
    # Only once it is loaded is its template known; each model that talks for another knows tools.
    abilities = chat_abilities_of(config, knows_tools=True)
    return ChatEngine(edits, chat, config.max_positions, abilities, lambda: engine(chat))
