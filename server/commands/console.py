"""Output of the command line: consoles, progress bars, and answers that grow in place.

Results go to standard output, everything else to standard error, so that results can be piped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redraft.model.errors import ModelNotReady, WeightsError
from redraft.model.records import CanvasState, ModelStatus, Prediction, Predictor
from rich.console import Console
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

MASK = "░"


def harmless(text: str) -> str:
    """Escape characters of a name that would control the terminal or the direction of writing."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


#: Lines of the file shown above and below the canvas.
CONTEXT_LINES = 6


@contextmanager
def bar() -> Iterator[Callable[[str, float | None], None]]:
    """Show a progress bar with the time left, which vanishes at the end.

    Yields:
        A function that takes a description and the share that is done, 0 to 1 or None.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    quiet = not err.is_terminal  # a log needs no bar
    with Progress(*columns, console=err, transient=True, disable=quiet) as progress:
        task = progress.add_task("", total=None)
        reached = 0.0

        def show(what: str, share: float | None) -> None:
            nonlocal reached
            if (share or 0.0) < reached:  # another stage: its speed is not the last one's
                progress.reset(task)
            reached = share or 0.0
            total = None if share is None else 1.0
            progress.update(task, description=what, total=total, completed=share or 0.0)

        yield show


async def until_ready(predictor: Predictor) -> ModelStatus:
    """Wait for the model, with a progress bar.

    Raises:
        WeightsError: it cannot be had; says what to do.
        ModelNotReady: the engine was closed meanwhile.
    """
    from redraft.model.remote import until_ready as wait  # brings aiohttp along

    def tell(status: ModelStatus) -> None:
        detail = f": {status.message}" if status.message else ""
        show(f"{status.state} {status.model}{detail}", status.progress)

    with bar() as show:
        status = await wait(predictor, tell)
    if status.state == "failed":
        raise WeightsError(status.message or f"The model {status.model} cannot be loaded.")
    if not status.can_answer:
        raise ModelNotReady(status.message or "There is no model.")
    return status


@dataclass(frozen=True, slots=True)
class ShownFile:
    """The file around the cursor, in which an answer is shown."""

    text: str
    cursor: int
    first_line: int  # 1-based line number of the scene's first line
    before: str
    after: str

    @classmethod
    def around(cls, text: str, cursor: int) -> ShownFile:
        above = text[:cursor].split("\n")
        below = text[cursor:].split("\n")
        before = above[-CONTEXT_LINES - 1 :]
        return cls(
            text,
            cursor,
            len(above) - len(before) + 1,
            "\n".join(before),
            "\n".join(below[: CONTEXT_LINES + 1]),
        )

    def with_middle(self, middle: Text) -> Text:
        """Return the lines with their numbers, and ``middle`` at the cursor."""
        whole = Text.assemble((self.before, "default"), middle, (self.after, "default"))
        shown = Text()
        for number, line in enumerate(whole.split("\n", allow_blank=True), self.first_line):
            shown.append(f"{number:>5} │ ", "dim")
            shown.append_text(line)
            shown.append("\n")
        return shown


def canvas_text(state: CanvasState) -> Text:
    """Return the canvas: written text in green, masked positions dim."""
    text = Text()
    for piece in state.pieces:
        text.append(MASK if piece is None else piece, "dim cyan" if piece is None else "bold green")
    return text


@contextmanager
def watch_model(scene: ShownFile) -> Iterator[Callable[[CanvasState | Prediction], None]]:
    """Show each state of the canvas in place; in a pipe, a line per step."""
    if not err.is_terminal:
        yield lambda event: _log_state(event)
        return
    with Live(scene.with_middle(Text("▏", "dim cyan")), console=err, auto_refresh=False) as live:

        def show(event: CanvasState | Prediction) -> None:
            if isinstance(event, CanvasState):
                middle = canvas_text(event)
            else:
                text = event.candidates[0].text if event.candidates else ""
                middle = Text(text, "bold green")
            live.update(scene.with_middle(middle), refresh=True)

        yield show


def _log_state(event: CanvasState | Prediction) -> None:
    if isinstance(event, CanvasState):
        err.print(f"step {event.step:>3}  {event.show(MASK)!r}", markup=False)


def describe(prediction: Prediction) -> str:
    """Return the figures of a prediction as one line."""
    stats = prediction.stats
    parts = [
        prediction.model,
        f"{stats.canvas_tokens} tokens in {stats.denoise_steps} steps "
        f"({stats.tokens_per_step:.1f} per step)",
        f"prompt {stats.prompt_tokens} tokens, {stats.reused_tokens} reused",
        f"prefill {stats.prefill_ms:.0f} ms, denoise {stats.denoise_ms:.0f} ms, "
        f"total {stats.total_ms:.0f} ms",
    ]
    if prediction.candidates:
        parts.append(f"confidence {prediction.candidates[0].confidence.mean:.2f}")
    if stats.cut:
        parts.append(stats.cut)
    return " · ".join(parts)
