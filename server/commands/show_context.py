"""``redraft context FILE:LINE:COL``: the prompt at one place, part by part, with reasons.

Indexes the workspace and gathers context as the language server does. Nothing is predicted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from redraft.lsp.context.gatherer import Gathered
from redraft.lsp.context.index import Index
from redraft.lsp.context.indexer import OnIndexed, fill
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.snapshot import RequestFlags, Snapshot
from redraft.lsp.workspace import Workspace
from redraft.model.config import ModelConfig
from redraft.model.errors import InvalidRequest, WeightsError
from redraft.model.prompts.format import Declined, Prompt
from redraft.model.prompts.registry import OTHERS, format_of
from redraft.model.prompts.tokenizer import (
    FAR_PREFIX,
    FILE,
    HISTORY,
    MARKS,
    PREFIX,
    SUFFIX,
    Tokenizer,
)
from redraft.model.records import EditRequest, Task
from redraft.model.weights.catalog import info
from redraft.model.weights.store import ensure, ready_variants
from rich.table import Table
from rich.text import Text

from ..settings import Settings
from .complete import FilePlace, cursor_at, read_text, workspace_of
from .console import bar, out
from .options import model_for

_SHOWN_LEFT_OUT = 8
_TEXT_BYTES = 1 << 30  # everything: the process ends at once
#: What stands behind a mark in the part of a prompt that is far from the cursor.
_PARTS = {
    SUFFIX: "lines below",
    HISTORY: "recent edits",
    PREFIX: "lines above",
    FAR_PREFIX: "lines above",
}


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of the prompt."""

    what: str
    where: str
    tokens: float
    why: str


@dataclass(frozen=True, slots=True)
class _Kit:
    """Tokenizer and configuration, which a prompt is rendered with."""

    tokenizer: Tokenizer
    config: ModelConfig


def show(settings: Settings, place: FilePlace, task: Task, budget: int, prompt: bool) -> None:
    """Print the context of ``place``.

    Args:
        budget: tokens of the whole prompt.
        prompt: print the rendered prompt as well.

    Raises:
        InvalidRequest: the file cannot be read, has no such place, or is excluded.
        WeightsError: ``prompt`` is asked for and the model is not here.
    """
    kit = _kit(settings, must=prompt)
    with bar() as progress:
        snapshot, gathered, index = gather_at(
            place, budget, lambda done, total: progress("indexing", done / max(1, total))
        )
    request = request_for(snapshot, gathered, task)
    parts = list(
        parts_of(request, gathered, kit, budget) if kit else _estimated(gathered, snapshot.path)
    )
    out.print(_table(parts, exact=kit is not None), soft_wrap=False)
    if gathered.left_out:
        out.print(_left_out(gathered), soft_wrap=False)
    held = index.bytes_held / 1e6
    out.print(
        f"{gathered.names} names near the cursor, {gathered.files} files indexed in {held:.1f} MB; "
        f"{gathered.spent:.0f} of about {gathered.room} tokens for excerpts used",
        style="dim",
        markup=False,
    )
    if prompt and kit is not None:
        out.print()
        out.print(spell(request, kit.tokenizer, kit.config, budget), markup=False, style="")


def gather_at(
    place: FilePlace, budget: int, progress: OnIndexed
) -> tuple[Snapshot, Gathered, Index]:
    """Index the workspace of a place, and return the snapshot there with its context.

    Raises:
        InvalidRequest: the file cannot be read, has no such place, or is excluded.
    """
    root, uri = workspace_of(place.file), place.file.resolve().as_uri()
    text = read_text(place.file)
    workspace = Workspace(LspSettings(), time.monotonic, reads=False)
    workspace.folders, workspace.context_tokens = [root.as_uri()], budget
    workspace.exclusions.on_open(uri)
    workspace.open(uri, text, None, "")
    cursor = cursor_at(text, place)
    refusal = workspace.refuse(workspace.snapshot(uri, cursor, RequestFlags()))
    if refusal is not None:
        raise InvalidRequest(
            f"The language server would show nothing of {place.file}: {refusal.reason}"
        )
    index = workspace.context.indexer.index = Index(_TEXT_BYTES)
    fill(index, [root], workspace.exclusions.why, progress)
    snapshot = workspace.snapshot(uri, cursor, RequestFlags())
    return snapshot, workspace.context.gather(snapshot), index


def request_for(snapshot: Snapshot, gathered: Gathered, task: Task) -> EditRequest:
    """Return the request for a snapshot with its context."""
    return EditRequest(
        task=task,
        path=snapshot.path,
        text=snapshot.text,
        cursor=snapshot.cursor,
        related=gathered.related,
        region=gathered.region.lines if task == "next_edit" else None,
    )


def parts_of(
    request: EditRequest, gathered: Gathered, kit: _Kit, budget: int
) -> Iterator[PromptPart]:
    """Yield the parts of the rendered prompt, in its order, with the tokens they take."""
    name = kit.config.prompt_format
    rendered = format_of(name).render(request, kit.tokenizer, kit.config, budget)
    if isinstance(rendered, Declined):
        yield PromptPart("not asked", request.path, 0, rendered.reason)
        return
    if name in OTHERS:  # not taken apart
        count = len(rendered.tokens) + len(rendered.behind)
        yield PromptPart("prompt", request.path, count, f"in the format {name}; --prompt shows it")
    else:
        yield from _own_parts(request, rendered, gathered, kit.tokenizer)
    if rendered.cut:
        yield PromptPart("left out", "", 0, rendered.cut)


def _own_parts(
    request: EditRequest, rendered: Prompt, gathered: Gathered, tokenizer: Tokenizer
) -> Iterator[PromptPart]:
    """Yield the parts of a prompt in one of Redraft's formats."""
    sections = _sections(rendered.tokens, tokenizer)
    files = [at for at, (mark, _) in enumerate(sections) if mark == FILE]
    left = len(gathered.pieces) - (len(files) - 1)  # cut from the front for want of room
    pieces = iter(gathered.pieces[left:])
    for piece in gathered.pieces[:left]:
        yield PromptPart("left out", piece.path, 0, f"{piece.why}: the prompt had no room for it")
    *far, (_, before), (_, behind) = sections  # the near window is the last two
    for at, (mark, count) in enumerate(far):
        if mark == FILE and at != files[-1]:
            piece = next(pieces)
            where = f"{piece.path}:{piece.first + 1}-{piece.last}"
            yield PromptPart(piece.kind, where, count, f"{piece.why} (score {piece.score:.2f})")
        elif mark == FILE:
            yield PromptPart("path", request.path, count, "the file itself")
        else:
            yield PromptPart(_PARTS[mark], request.path, count, _reach(count))
    first, last = rendered.region
    where, count = f"{request.path}:{first + 1}-{last}", before + behind
    if request.task == "next_edit":
        yield PromptPart("region", where, count, gathered.region.why)
    else:
        yield PromptPart("near window", where, count, "lines around the cursor")


def _reach(count: int) -> str:
    """Return why a part far from the cursor has this many tokens, its mark included."""
    return "as far as there is room" if count > 1 else "only the mark: there are no such lines"


def spell(request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int) -> str:
    """Return the rendered prompt as text, with the name of each mark on a new line."""
    found = format_of(config.prompt_format).render(request, tokenizer, config, budget)
    if isinstance(found, Declined):
        return found.reason
    if config.prompt_format in OTHERS:
        tokens = (*found.tokens, *found.behind)
        special = tokenizer.special
        return "".join(special[i] if i in special else tokenizer.decode([i]) for i in tokens)
    parts = {tokenizer.mark(mark) for mark in (FAR_PREFIX, *MARKS)}
    text, run = "", list[int]()
    for token in found.tokens:
        if token in tokenizer.special:  # the cursor's mark stands within its line
            begin = "\n" if token in parts else ""
            text += f"{tokenizer.decode(run)}{begin}{tokenizer.special[token]}"
            run = []
        else:
            run.append(token)
    return (text + tokenizer.decode(run)).removeprefix("\n")


def _sections(tokens: Iterable[int], tokenizer: Tokenizer) -> list[tuple[str, int]]:
    """Return each mark of a prompt with the number of tokens up to the next."""
    names = {tokenizer.mark(mark): mark for mark in (FAR_PREFIX, *MARKS)}
    found: list[tuple[str, int]] = []
    for token in tokens:
        if token in names:
            found.append((names[token], 1))
        else:
            mark, count = found[-1]
            found[-1] = mark, count + 1
    return found


def _estimated(gathered: Gathered, path: str) -> Iterator[PromptPart]:
    """Yield the gathered parts with estimated tokens, for use without a tokenizer."""
    for piece in gathered.pieces:
        where = f"{piece.path}:{piece.first + 1}-{piece.last}"
        yield PromptPart(piece.kind, where, piece.tokens, f"{piece.why} (score {piece.score:.2f})")
    first, last = gathered.region.lines
    yield PromptPart("region", f"{path}:{first + 1}-{last}", gathered.cost, gathered.region.why)


def _table(parts: Iterable[PromptPart], exact: bool) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0))
    for heading in ("part", "where", "tokens" if exact else "tokens, about", "why"):
        table.add_column(heading, overflow="fold", justify="left")
    for part in parts:
        cells = (part.what, part.where, f"{part.tokens:.0f}", part.why)
        table.add_row(*map(Text, cells))
    return table


def _left_out(gathered: Gathered) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), title="not chosen", title_justify="left")
    for heading in ("what", "where", "tokens, about", "score", "reason"):
        table.add_column(heading, overflow="fold")
    for each in gathered.left_out[:_SHOWN_LEFT_OUT]:
        piece = each.piece
        cells = (piece.why, f"{piece.path}:{piece.first + 1}-{piece.last}", f"{piece.tokens:.0f}")
        table.add_row(*map(Text, (*cells, f"{piece.score:.2f}", each.reason)), style="dim")
    return table


def _kit(settings: Settings, must: bool) -> _Kit | None:
    """Return tokenizer and configuration of the model, or None if it is not downloaded."""
    name = model_for(settings)
    ready = ready_variants(info(name))
    if not ready:
        if must:
            raise WeightsError(
                f"The prompt needs the tokenizer of {name}, which is not here yet. Run "
                f"'redraft model pull {name}' first, or leave out --prompt."
            )
        return None
    folder = ensure(name, ready[0])
    config = ModelConfig.from_dict(json.loads((folder / "config.json").read_text("utf-8")))
    return _Kit(Tokenizer.from_file(folder / "tokenizer.json"), config)
