"""Answers in pieces: server-sent events, or lines of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from typing import TypeVar

from aiohttp import web
from redraft.model.records import CanvasState, EditRequest, Prediction, Predictor
from redraft.model.validation import Json
from redraft.model.wire import error_to_json

from .responses import as_json, to_redraft_error

EVENT_STREAM = "text/event-stream"
LINES = "application/x-ndjson"

T = TypeVar("T")


async def follow(
    engine: Predictor, request: EditRequest
) -> AsyncGenerator[CanvasState | Prediction, None]:
    """Yield each intermediate state, then the prediction. Closing it stops the computation."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[CanvasState | Prediction | BaseException] = asyncio.Queue()

    def pass_on(state: CanvasState) -> None:
        # The engine may call from another thread.
        loop.call_soon_threadsafe(arrived.put_nowait, state)

    def finish(task: asyncio.Task[Prediction]) -> None:
        end = asyncio.CancelledError() if task.cancelled() else task.exception()
        # Through the loop as well, so that it arrives after the last state.
        loop.call_soon(arrived.put_nowait, end or task.result())

    computing = asyncio.create_task(engine.predict(request, pass_on))
    computing.add_done_callback(finish)
    try:
        while True:
            event = await arrived.get()
            if isinstance(event, BaseException):  # raised in the caller
                raise event
            yield event
            if isinstance(event, Prediction):
                return
    finally:
        computing.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await computing


async def only(event: T) -> AsyncGenerator[T, None]:
    """Yield ``event``."""
    yield event


async def send_stream(
    http: web.Request,
    media_type: str,
    events: AsyncGenerator[T, None],
    pieces_of: Callable[[T], Iterable[Json | str]],
    error_piece: Callable[[Json], Json] = lambda body: body,
) -> web.StreamResponse:
    """Send the pieces of each event as soon as it comes; a string goes as it is.

    The headers are sent with the first piece, so that an error before it still has a status. A
    later error becomes the last piece, in the form of ``error_piece``.
    """
    response = web.StreamResponse(
        headers={
            "Content-Type": media_type,
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",  # proxies must pass each piece on at once
        }
    )

    async def send(piece: Json | str) -> None:
        if not response.prepared:
            await response.prepare(http)
        text = piece if isinstance(piece, str) else as_json(piece)
        framed = f"data: {text}\n\n" if media_type == EVENT_STREAM else f"{text}\n"
        await response.write(framed.encode())

    try:
        async with aclosing(events):
            async for event in events:
                for piece in pieces_of(event):
                    await send(piece)
    except ConnectionResetError:
        raise  # the client has left
    except Exception as error:
        if not response.prepared:
            raise
        await send(error_piece(error_to_json(to_redraft_error(http, error))))
        response.force_close()
    with suppress(ConnectionResetError):  # the client has everything, and has left
        await response.write_eof()
    return response
