"""Training rows for both tasks, rendered by the very prompt that serves.

Pure given a ``random.Random``: a source document or commit in, rows of token ids out. Infill rows
come from files (line tails, whole lines, brackets' contents, a few random spans); next-edit rows
come from commits (some hunks applied as history, the next one is the target). Knows nothing of
torch. ``redraft train pack`` writes them to shards; ``redraft train show`` prints some.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .config import ModelConfig
from .histories import (
    CONTEXT_LINES,
    Hunk,
    apply_history,
    cursor_line_of,
    hunks_of,
    region_of,
)
from .histories import recent_edit as recent_edit  # until evals imports it from there
from .prompt import encode_edit, render
from .records import EditRequest, RecentEdit, RelatedFile, Task
from .tokens import PREFIX, Tokenizer

MAX_ANSWER = 64  # tokens; longer targets are skipped
BUDGETS = (256, 384, 512, 768, 1024)  # prompt budgets in tokens, drawn by BUDGET_WEIGHTS
BUDGET_WEIGHTS = (20, 35, 25, 15, 5)

Kind = Literal["tail", "line", "lines", "bracket", "span", "edit", "none", "typing"]


@dataclass(frozen=True, slots=True)
class Row:
    """One training example. The first canvas opens with the last token of ``prompt``."""

    task: Task
    kind: Kind
    prompt: tuple[int, ...]
    answer: tuple[int, ...]  # without END; () means END at once
    plain: int  # from this index on, the prompt is ordinary code to continue; 0: nowhere


_cursor_line, _region = cursor_line_of, region_of  # until evals has moved to histories.py

# --- infill -----------------------------------------------------------------------------------


def infill_row(
    path: str,
    text: str,
    tokenizer: Tokenizer,
    config: ModelConfig,
    rng: random.Random,
    *,
    lines: range | None = None,
    edits: tuple[RecentEdit, ...] = (),
    related: tuple[RelatedFile, ...] = (),
) -> Row | None:
    """A row whose middle begins in one of ``lines`` (default: any); None where none fits."""
    for _ in range(4):
        kind, start, end = choose_middle(text, rng, lines)
        middle = text[start:end]
        if middle.strip():
            break
    else:
        return None
    request = EditRequest(
        "infill", path, text[:start] + text[end:], start, edits=edits, related=related
    )
    prompt = render(request, tokenizer, config, draw_budget(rng))
    answer = tokenizer.encode(prompt.forced + middle)
    if not answer or len(answer) > MAX_ANSWER:
        return None
    tokens = prompt.tokens
    plain = len(tokens) - tokens[::-1].index(tokenizer.mark(PREFIX))
    return Row("infill", kind, tokens, tuple(answer), plain)


def choose_middle(
    text: str, rng: random.Random, lines: range | None = None
) -> tuple[Kind, int, int]:
    """The span [start, end) to remove."""
    starts = [0, *(m.end() for m in re.finditer("\n", text))]
    pool = lines if lines is not None and len(lines) else range(len(starts))
    line = min(rng.choice(pool), len(starts) - 1)
    start = starts[line]
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    indent = start + len(text[start:end]) - len(text[start:end].lstrip())
    draw = rng.random()
    if draw < 0.40:
        return "tail", _cut_in_line(text, indent, end, rng), end
    if draw < 0.65:
        return "line", *_whole_lines(starts, text, line, line + 1, indent, rng)
    if draw < 0.80:
        return "lines", *_whole_lines(starts, text, line, line + rng.randint(2, 5), indent, rng)
    if draw < 0.92:
        inside = _bracket(text, start, end, rng)
        if inside:
            return "bracket", *inside
    low = rng.randrange(indent, end + 1)
    return "span", low, min(len(text), low + rng.randint(4, 60))


def _whole_lines(
    starts: list[int], text: str, first: int, last: int, indent: int, rng: random.Random
) -> tuple[int, int]:
    """Lines [first, last): from the line's start with the newline, or from the indent without."""
    last = min(last, len(starts))
    end = starts[last] if last < len(starts) else len(text)
    if rng.random() < 0.5:
        return starts[first], end
    return indent, end - 1 if text[end - 1 : end] == "\n" else end


def _cut_in_line(text: str, indent: int, end: int, rng: random.Random) -> int:
    """Where a person pauses within a line: mostly after punctuation or between words."""
    if end <= indent:
        return indent
    if rng.random() < 0.3:
        return rng.randrange(indent, end)
    places = [m.end() + indent for m in re.finditer(r"[,;:(\[{=.]\s?|\s|\w\b", text[indent:end])]
    places = [p for p in places if p < end]
    return rng.choice(places) if places else indent


def _bracket(text: str, start: int, end: int, rng: random.Random) -> tuple[int, int] | None:
    """The contents of a bracket or string that opens and closes on this line."""
    found = [
        m.span(1) for m in re.finditer(r"[(\[{\"']([^()\[\]{}\"'\n]+)[)\]}\"']", text[start:end])
    ]
    if not found:
        return None
    low, high = rng.choice(found)
    return start + low, start + high


# --- next edit --------------------------------------------------------------------------------


def edit_row(
    path: str,
    before: str,
    after: str,
    tokenizer: Tokenizer,
    config: ModelConfig,
    rng: random.Random,
    related: tuple[RelatedFile, ...] = (),
) -> Row | None:
    """A next-edit row from one file of a commit; None where no hunk suits."""
    old, new = before.split("\n"), after.split("\n")
    if max(len(old), len(new)) > 6_000:
        return None
    hunks = hunks_of(old, new)
    if not hunks:
        return None
    if rng.random() < 0.1:
        return _nothing_left(path, old, new, hunks, tokenizer, config, rng, related)
    target = rng.randrange(len(hunks))
    state, edits, hunk = apply_history(path, old, hunks, target)
    edits = edits[-rng.randint(1, 5) :]
    kind: Kind = "edit"
    if rng.random() < 0.15:
        started = _begin_typing(hunk, rng)
        if started is not None:
            state[hunk.first : hunk.last] = started
            hunk = Hunk(hunk.first, hunk.first + len(started), hunk.new)
            kind = "typing"
    last_edit = edits[-1].line + min(CONTEXT_LINES, edits[-1].line) if edits else None
    cursor_line = cursor_line_of(hunk, last_edit, len(state), rng)
    region = region_of(cursor_line, hunk, len(state), rng)
    if region is None:
        return None
    first, last = hunk.first - region[0] + 1, hunk.last - region[0]
    reveal = (first, last) if rng.random() < 0.5 else None
    prompt = render(
        _request(path, state, cursor_line, region, edits, related, rng),
        tokenizer,
        config,
        max(512, draw_budget(rng)),
        reveal,
    )
    body = "".join(f"{line}\n" for line in hunk.new)
    answer = (
        tokenizer.encode(body) if reveal else encode_edit(first, last, list(hunk.new), tokenizer)
    )
    if len(answer) > MAX_ANSWER:
        return None
    return Row("next_edit", kind, prompt.tokens, tuple(answer), 0)


def _nothing_left(
    path: str,
    old: list[str],
    new: list[str],
    hunks: list[Hunk],
    tokenizer: Tokenizer,
    config: ModelConfig,
    rng: random.Random,
    related: tuple[RelatedFile, ...],
) -> Row | None:
    """Everything is done: the answer is END at once."""
    _, edits, _ = apply_history(path, old, hunks, len(hunks))
    line = min(len(new) - 1, edits[-1].line + rng.randint(0, 6))
    region = region_of(line, Hunk(line, line, ()), len(new), rng)
    if region is None:
        return None
    request = _request(path, new, line, region, edits[-rng.randint(1, 5) :], related, rng)
    prompt = render(request, tokenizer, config, max(512, draw_budget(rng)))
    return Row("next_edit", "none", prompt.tokens, (), 0)


def _begin_typing(hunk: Hunk, rng: random.Random) -> list[str] | None:
    """The replaced lines with the first new line typed in part; None where there is none."""
    if not hunk.new or len(hunk.new[0].strip()) < 4:
        return None
    line = hunk.new[0]
    indent = len(line) - len(line.lstrip())
    return [line[: _cut_in_line(line, indent, len(line), rng)]]


def _request(
    path: str,
    lines: list[str],
    cursor_line: int,
    region: tuple[int, int],
    edits: tuple[RecentEdit, ...],
    related: tuple[RelatedFile, ...],
    rng: random.Random,
) -> EditRequest:
    before = sum(len(line) + 1 for line in lines[:cursor_line])
    column = rng.choice((len(lines[cursor_line]), rng.randint(0, len(lines[cursor_line]))))
    return EditRequest(
        "next_edit",
        path,
        "\n".join(lines),
        before + column,
        edits=edits,
        related=related,
        region=region,
    )


# --- sources ----------------------------------------------------------------------------------


def rows_of(
    record: dict[str, Any], tokenizer: Tokenizer, config: ModelConfig, rng: random.Random
) -> Iterator[Row]:
    """From a line of either kind of file; a commit is known by its ``files``."""
    make = rows_of_commit if "files" in record else rows_of_file
    return make(record, tokenizer, config, rng)


def rows_of_file(
    record: dict[str, Any], tokenizer: Tokenizer, config: ModelConfig, rng: random.Random
) -> Iterator[Row]:
    """From a line of ``*-files.jsonl``: ``{repo, path, language, text}``."""
    text = record["text"].replace("\r\n", "\n")
    for _ in range(2):
        row = infill_row(record["path"], text, tokenizer, config, rng)
        if row:
            yield row


def rows_of_commit(
    record: dict[str, Any], tokenizer: Tokenizer, config: ModelConfig, rng: random.Random
) -> Iterator[Row]:
    """From a line of ``*-commits.jsonl``: ``{repo, commit, time, files: [{path, before, after}]}``.

    Next-edit rows, and infill rows inside what the commit added with its other hunks as history.
    """
    files = [f for f in record["files"] if f["before"] and f["after"]]
    rng.shuffle(files)
    for file in files[:2]:
        before = file["before"].replace("\r\n", "\n")
        after = file["after"].replace("\r\n", "\n")
        related = _related(file["path"], files, rng)
        row = edit_row(file["path"], before, after, tokenizer, config, rng, related)
        if row:
            yield row
        if rng.random() < 0.4:
            row = _infill_of_change(file["path"], before, after, tokenizer, config, rng, related)
            if row:
                yield row


def _infill_of_change(
    path: str,
    before: str,
    after: str,
    tokenizer: Tokenizer,
    config: ModelConfig,
    rng: random.Random,
    related: tuple[RelatedFile, ...],
) -> Row | None:
    """Infill inside the newest of some added lines, the earlier hunks being the recent edits."""
    old, new = before.split("\n"), after.split("\n")
    if max(len(old), len(new)) > 6_000:
        return None
    hunks = hunks_of(old, new)
    added = [i for i, hunk in enumerate(hunks) if any(line.strip() for line in hunk.new)]
    if not added:
        return None
    target = rng.choice(added)
    state, edits, hunk = apply_history(path, old, hunks, target)
    edits = edits[len(edits) - min(len(edits), rng.randint(0, 4)) :]
    state[hunk.first : hunk.last] = hunk.new
    return infill_row(
        path,
        "\n".join(state),
        tokenizer,
        config,
        rng,
        lines=range(hunk.first, hunk.first + len(hunk.new)),
        edits=edits,
        related=related,
    )


def _related(path: str, files: list[dict[str, Any]], rng: random.Random) -> tuple[RelatedFile, ...]:
    """Sometimes an excerpt of another file of the commit."""
    others = [f for f in files if f["path"] != path]
    if not others or rng.random() > 0.4:
        return ()
    other = rng.choice(others)
    lines = other["after"].split("\n")
    top = rng.randrange(max(1, len(lines) - 12))
    text = "\n".join(lines[top : top + rng.randint(6, 16)])
    return (RelatedFile(other["path"], text[:1_500], "changed in the same commit"),)


def draw_budget(rng: random.Random) -> int:
    return rng.choices(BUDGETS, BUDGET_WEIGHTS)[0]


def show_row(row: Row, tokenizer: Tokenizer) -> str:
    """The row as people read it, marks by name."""
    names = {tokenizer.mark(m): f"\n{m}" for m in _MARK_NAMES}

    def text(ids: tuple[int, ...]) -> str:
        parts: list[str] = []
        run: list[int] = []
        for i in ids:
            if i in names:
                parts.append(tokenizer.decode(run))
                parts.append(names[i])
                run = []
            else:
                run.append(i)
        return "".join([*parts, tokenizer.decode(run)])

    return (
        f"── {row.task} / {row.kind}: {len(row.prompt)} + {len(row.answer)} tokens"
        f"{text(row.prompt)}⟦{text(row.answer)}⟧END"
    )


_MARK_NAMES = (
    "<file_sep>",
    "<jupyter_start>",
    "<jupyter_text>",
    "<jupyter_output>",
    "<jupyter_script>",
    "<issue_start>",
)
