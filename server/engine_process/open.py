"""The engine that settings ask for. It stands alone because ``host`` imports the HTTP server."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from redraft.model.errors import RedraftError
from redraft.model.records import Predictor

from ..settings import Settings

if TYPE_CHECKING:
    from redraft.model.conversation import Companion

#: Seconds without a conversation after which the memory of its model is freed.
CHAT_IDLE_S = 600.0


def open_shared_engine(settings: Settings) -> Predictor:
    """Return the engine of the process that editors share; it frees its model when it is idle.

    The length of its queue is not the user's setting, which binds clients of ``redraft serve``.
    """
    own_queue = settings.with_options(queue_length=Settings.model_fields["queue_length"].default)
    return open_engine(own_queue, settings.idle_unload_s)


def open_engine(settings: Settings, unload_s: float | None = None) -> Predictor:
    """Return an engine in this process, which downloads and loads its weights in the background.

    Failures, such as an unknown model or a missing onnxruntime, are in its status.

    Args:
        unload_s: seconds without a request after which the model's memory is freed; None: never.
    """
    # Imported here so that the command line starts without them.
    from redraft.model.choice import usual_model
    from redraft.model.conversation import ChatEngine
    from redraft.model.engine import Engine
    from redraft.model.load import onnx_loader

    def engine(model: str, unload_s: float | None = CHAT_IDLE_S) -> Engine:
        name = usual_model(model)
        label = f"{name} {settings.variant}" if settings.variant else name
        loader = onnx_loader(model, settings.variant, settings.provider, settings.threads)
        return Engine(loader, label, settings.queue_length, unload_s=unload_s)

    return ChatEngine(engine(settings.model, unload_s), cache(companion_of), engine)


def companion_of(model: str) -> Companion | None:
    """Return the model that answers conversations in place of ``model``, or None."""
    from redraft.model.conversation import Companion, chat_abilities_of
    from redraft.model.weights.catalog import info

    try:
        chat = info(info(model).chat)
    except RedraftError:
        return None
    # Its template is known only once it is loaded. Every companion of ours can call tools.
    abilities = chat_abilities_of(chat.config, knows_tools=True)
    return Companion(chat.name, chat.config.max_positions, abilities)
