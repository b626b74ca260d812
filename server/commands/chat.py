"""``redraft chat``: a conversation in the terminal, or one question from a script.

The final part of an answer is printed to standard output as it grows. With ``--watch`` each state
of the answer is shown in place on standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from redraft.model.errors import RedraftError
from redraft.model.records import (
    MAX_TEMPERATURE,
    CanvasState,
    Conversation,
    EditRequest,
    Message,
    ModelStatus,
    Quality,
)

if TYPE_CHECKING:
    from redraft.model.records import Predictor


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The options."""

    system: str
    max_tokens: int
    quality: Quality
    temperature: float
    seed: int | None
    watch: bool


def chat(
    say: Annotated[
        str | None, typer.Argument(help="Send this one message. Default: a conversation.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the text while it is written.")
    ] = False,
    system: Annotated[str, typer.Option(help="System prompt.")] = "",
    max_tokens: Annotated[
        int, typer.Option(min=1, max=1024, help="Write at most this many tokens per answer.")
    ] = 512,
    quality: Literal["low", "medium", "high"] = "medium",
    temperature: Annotated[float, typer.Option(min=0, max=MAX_TEMPERATURE)] = 0.0,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Ask the 'redraft serve' at this address instead of this machine."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Run this model (see 'redraft model list').")
    ] = None,
) -> None:
    """Chat with the model in the terminal. An empty line or Ctrl-D ends the chat."""
    from ..settings import load_settings
    from .complete import ask_once
    from .options import Running

    Running(model=model).check_server(server)
    how = ChatOptions(system, max_tokens, quality, temperature, seed, watch)

    async def ask(predictor: Predictor) -> None:
        await converse(predictor, how, say, is_local=server is None)

    asyncio.run(ask_once(load_settings().with_options(model=model), server, ask))


async def converse(
    predictor: Predictor, how: ChatOptions, say: str | None, is_local: bool = False
) -> None:
    """Answer ``say``, or each line of standard input, and close the predictor.

    Raises:
        NoChatTemplate: the model cannot hold a conversation.
        RedraftError: a single question failed. In a conversation the error is printed instead.
    """
    from redraft.model.errors import NoChatTemplate

    from .console import err, until_ready

    said = [Message("system", how.system)] if how.system else []
    try:
        status = await until_ready(predictor)
        if not status.chat_model:
            raise NoChatTemplate(
                f"{status.model} came without a chat template. 'redraft model list' shows the "
                "models; choose another one with --model."
            )
        if is_local:
            _announce_first_use(status)
        if say is not None:
            await _answer(predictor, how, [*said, Message("user", say)])
            return
        while line := await asyncio.to_thread(_read_line):
            turn = [*said, Message("user", line)]
            try:
                said = [*turn, Message("assistant", await _answer(predictor, how, turn))]
            except RedraftError as error:
                err.print(f"error: {error}", style="bold red", markup=False)
    finally:
        await predictor.close()


def _announce_first_use(status: ModelStatus) -> None:
    """Say what the first conversation on this machine takes, where its model is not ready."""
    from redraft.model.weights.catalog import cache_dir, info
    from redraft.model.weights.store import bytes_to_pull, ready_variants

    from .console import err

    name = status.chat_model.partition(" ")[0]
    if name == status.model.partition(" ")[0]:
        return  # it is loaded
    model = info(name)
    if not ready_variants(model):
        size = bytes_to_pull(model, model.default_variant) / 1e6
        err.print(
            f"The first chat prepares {name}: about {size:.0f} MB in {cache_dir()}, once.",
            style="dim",
            markup=False,
        )


def _read_line() -> str:
    """Return the next line, or "" at the end."""
    from .console import err

    if sys.stdin.isatty():
        err.print("› ", style="bold cyan", end="")
    return sys.stdin.readline().strip()


async def _answer(predictor: Predictor, how: ChatOptions, said: list[Message]) -> str:
    """Return what the assistant says; print it as it comes."""
    from .console import bar

    request = EditRequest(
        task="chat",
        path="",
        text="",
        cursor=0,
        max_tokens=how.max_tokens,
        quality=how.quality,
        temperature=how.temperature,
        seed=how.seed,
        conversation=Conversation(tuple(said)),
    )
    if how.watch:
        return await _watched(predictor, request)
    printed, waiting = "", contextlib.ExitStack()
    waiting.enter_context(bar())("waiting for the model", None)

    def on_step(state: CanvasState) -> None:
        nonlocal printed
        waiting.close()
        settled = "".join(piece or "" for piece in state.pieces[: state.sure])
        if settled.startswith(printed):
            _print(settled[len(printed) :])
            printed = settled

    with waiting:
        prediction = await predictor.predict(request, on_step)
    text = prediction.candidates[0].text
    _print(f"{text.removeprefix(printed)}\n")
    return text


async def _watched(predictor: Predictor, request: EditRequest) -> str:
    from .console import ShownFile, watch_model

    with watch_model(ShownFile("", 0, 1, "", "")) as show:

        def on_step(state: CanvasState) -> None:
            show(state)

        prediction = await predictor.predict(request, on_step)
        show(prediction)
    text = prediction.candidates[0].text
    if not sys.stdout.isatty():
        _print(f"{text}\n")
    return text


def _print(text: str) -> None:
    """Print a model's text, without control characters other than line breaks."""
    from .console import harmless

    if sys.stdout.isatty():
        text = "\n".join(map(harmless, text.split("\n")))
    sys.stdout.write(text)
    sys.stdout.flush()
