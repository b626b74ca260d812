"""Whom a command that ends at once asks: a named server, the engine process, or an engine here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redraft.model.records import Predictor

    from ..settings import Settings


async def ask_once(
    settings: Settings, server: str | None, ask: Callable[[Predictor], Awaitable[None]]
) -> None:
    """Of the named server; else of the engine process if one runs; else of an engine right here.

    A command that ends at once starts no process that stays.
    """
    from redraft.model.errors import EngineGone

    from ..engine_process.client import join_running
    from ..engine_process.open import open_engine

    if server is not None:
        return await ask(remote(settings, server))
    joined = await join_running(settings)
    if joined is not None:
        try:
            return await ask(joined)
        except EngineGone:  # it died over this, or was just leaving
            pass
    await ask(open_engine(settings))


def remote(settings: Settings, server: str) -> Predictor:
    from redraft.model.remote import RemotePredictor

    return RemotePredictor(server, settings.key())
