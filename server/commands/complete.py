"""``redraft complete FILE:LINE:COL``: one infill at one place of a file, for people and scripts.

Standard output gets the infill alone; everything else goes to standard error.
:func:`ask_once` asks a named server, the engine process, or an engine in this process.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.model.errors import InvalidRequest
from redraft.model.records import CanvasState, EditRequest, Prediction, Predictor, Quality

from .console import ShownFile, describe, err, until_ready, watch_model

if TYPE_CHECKING:
    from redraft.model.records import Predictor

    from ..settings import Settings


async def ask_once(
    settings: Settings, server: str | None, ask: Callable[[Predictor], Awaitable[None]]
) -> None:
    """Ask the named server, the running engine process, or else an engine in this process.

    A short command does not start an engine process, because that would keep running.
    """
    from redraft.model.errors import EngineGone

    from ..engine_process.open import open_engine
    from ..engine_process.rendezvous import Rendezvous

    if server is not None:
        return await ask(remote(settings, server))
    if Rendezvous.of(settings).read() is not None:
        from ..engine_process.client import join_running  # brings aiohttp along

        joined = await join_running(settings)
        if joined is not None:
            try:
                return await ask(joined)
            except EngineGone:  # it died, or was leaving
                pass
    await ask(open_engine(settings))


def remote(settings: Settings, server: str) -> Predictor:
    """Return the predictor of a server."""
    from redraft.model.remote import RemotePredictor

    return RemotePredictor(server, settings.key())


#: Mean token probability below which an answer is more likely wrong than right.
LOW_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A place in a file, as the user writes it."""

    file: Path
    line: int  # 1-based
    column: int  # 1-based, in characters

    @classmethod
    def parse(cls, text: str) -> FilePlace:
        """Parse ``FILE:LINE:COL``. The name of the file may contain colons.

        Raises:
            ValueError: it is not of that form.
        """
        parts = text.rsplit(":", 2)
        numbers = all(part.isascii() and part.isdigit() for part in parts[1:])
        if len(parts) != 3 or not parts[0] or not numbers:
            raise ValueError(f"{text!r} is not FILE:LINE:COL. Write it like src/app.py:12:5.")
        line, column = int(parts[1][:9]), int(parts[2][:9])
        if not line or not column:
            raise ValueError(f"{text!r}: line and column count from 1.")
        return cls(Path(parts[0]), line, column)


def read_text(file: Path) -> str:
    """Read a file, with ``\\n`` as its line ends.

    Raises:
        InvalidRequest: it cannot be read, or is not a text file in UTF-8.
    """
    try:
        data = file.read_bytes()
        if wide := _wide_encoding(data):
            raise InvalidRequest(
                f"{file} is {wide}, not UTF-8: PowerShell and some editors write that. Save it as "
                "UTF-8."
            )
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"{file} is not UTF-8 (byte 0x{error.object[error.start]:02x} at offset "
            f"{error.start}). Convert it, or name a text file."
        ) from None
    if "\0" in text:
        raise InvalidRequest(
            f"{file} holds a NUL at offset {text.index(chr(0))}: it looks like a binary file. "
            "Name a text file."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _wide_encoding(data: bytes) -> str:
    """Return the encoding of text whose characters have two or four bytes; "" for any other.

    It has a mark, or every second byte of its beginning is 0 and no other one.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    begin = data[:4_096]
    even, odd = begin[::2], begin[1::2]
    if len(data) % 2 or not begin or (any(even) and any(odd)):
        return ""
    return "UTF-16" if all(even) or all(odd) else ""


def cursor_at(text: str, place: FilePlace) -> int:
    """Return the index of a place in ``text``.

    Raises:
        InvalidRequest: there is no such line or column; says how many there are.
    """
    lines = text.split("\n")
    if place.line > len(lines):
        raise InvalidRequest(f"{place.file} has {len(lines)} lines, there is no line {place.line}.")
    line = lines[place.line - 1]
    if place.column > len(line) + 1:
        raise InvalidRequest(
            f"Line {place.line} of {place.file} has {len(line)} characters, so columns 1 to "
            f"{len(line) + 1}; there is no column {place.column}."
        )
    return sum(len(above) + 1 for above in lines[: place.line - 1]) + place.column - 1


def display_path(file: Path) -> str:
    """Return the path that the model reads: relative to this folder, or only the name."""
    shown = file.name
    with contextlib.suppress(ValueError):  # another drive on Windows
        relative = Path(os.path.relpath(file))
        shown = shown if relative.parts[0] == os.pardir else relative.as_posix()
    return shown.encode("utf-8", "replace").decode()  # a name may be no Unicode


def request_for(
    place: FilePlace,
    max_tokens: int,
    quality: Quality,
    temperature: float,
    seed: int | None,
) -> EditRequest:
    """Return the request for an infill at a place of a file, see :func:`refuse_secret`.

    Raises:
        InvalidRequest: the file cannot be read or has no such place.
    """
    text = read_text(place.file)
    cursor = cursor_at(text, place)
    return EditRequest(
        task="infill",
        path=display_path(place.file),
        text=text,
        cursor=cursor,
        max_tokens=max_tokens,
        min_tokens=1,  # the user asked for text
        quality=quality,
        temperature=temperature,
        seed=seed,
    )


def workspace_of(file: Path) -> Path:
    """Return the root of a file: its repository, the current folder around it, or its folder."""
    file = file.resolve()
    for folder in file.parents:
        if (folder / ".git").exists():
            return folder
    here = Path.cwd().resolve()
    return here if file.is_relative_to(here) else file.parent


def refuse_secret(place: FilePlace, request: EditRequest) -> None:
    """Refuse a file that the language server never sends to the model.

    Raises:
        InvalidRequest: it is excluded, or its name, its text or its target looks like a secret.
    """
    from redraft.lsp.editor_settings import LspSettings
    from redraft.lsp.snapshot import RequestFlags
    from redraft.lsp.workspace import Workspace

    uri = Path(os.path.abspath(place.file)).as_uri()  # noqa: PTH100 - its name counts as well
    workspace = Workspace(LspSettings(), time.monotonic, reads=False)
    workspace.folders = [workspace_of(place.file).as_uri()]
    workspace.exclusions.on_open(uri)
    workspace.open(uri, request.text, None, "")
    document = workspace.snapshot(uri, request.cursor, RequestFlags(is_invoked=True)).document
    if reason := document.excluded or (document.secret and f"this file {document.secret}"):
        raise InvalidRequest(f"The language server would show nothing of {place.file}: {reason}")


async def complete(
    predictor: Predictor, place: FilePlace, request: EditRequest, watch: bool, quiet: bool
) -> None:
    """Ask once, print the infill, and close the predictor.

    Raises:
        InvalidRequest: the file is excluded. That is checked while the model is loaded.
    """
    try:
        refuse_secret(place, request)
        await until_ready(predictor)
        if watch:
            with watch_model(ShownFile.around(request.text, request.cursor)) as show:

                def on_step(state: CanvasState) -> None:
                    show(state)

                prediction = _fitted(request, await predictor.predict(request, on_step))
                show(prediction)
        else:
            prediction = _fitted(request, await predictor.predict(request))
    finally:
        await predictor.close()
    if not quiet:
        err.print(describe(prediction), style="dim", markup=False)
    if not prediction.candidates:
        err.print(f"nothing to suggest: {prediction.reason}", style="yellow", markup=False)
        return
    confidence = prediction.candidates[0].confidence.mean
    if not quiet and confidence < LOW_CONFIDENCE:
        err.print(
            f"low confidence ({confidence:.2f}): probably not what you want",
            style="yellow",
            markup=False,
        )
    if watch and sys.stdout.isatty():
        return  # it is shown in its place above
    # Bytes, so that neither the locale's encoding nor line end conversion touches the infill.
    sys.stdout.buffer.write(prediction.candidates[0].text.encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()


def _fitted(request: EditRequest, prediction: Prediction) -> Prediction:
    """Return the prediction after the filters of HTTP clients, with the text that fits."""
    if not prediction.candidates:
        return prediction
    from redraft.model.gate.decide import decide_insertion
    from redraft.model.gate.reasons import Abstain

    made = decide_insertion(prediction.candidates[0], request)
    if isinstance(made, Abstain):
        return replace(prediction, candidates=(), reason=made.reason)
    return replace(prediction, candidates=(replace(made.candidate, text=made.edit.new),))
