"""Perplexity of the context pass over long real code: ``redraft eval perplexity``.

Files of one repository stand one behind the other, each under its file mark, as related files do in
the prompt. Windows of all lengths end at the same place and are scored over the same last tokens,
so that only what stands before them differs. A run has one scaling of positions beyond the trained
ones (``model/runtime/rope.py``); ``redraft eval compare`` compares two of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from redraft.model.config import ModelConfig, RopeScaling
from redraft.model.errors import SettingsError
from redraft.model.prompts.tokenizer import FILE, Tokenizer
from redraft.model.runtime.backend import Backend, FloatArray, IntArray
from redraft.model.runtime.backend import Sequence as Cached
from redraft.model.runtime.onnx_backend import OnnxBackend
from redraft.model.training.shards import read_records
from redraft.model.weights.files import read_json

from .example import Example, Row
from .figures import Figure, ratio, unmeasured
from .run import OnDone, Run, quiet
from .tables import Metric, Table, rows_of_parts

SCORED = 1_024  # last tokens of every window
BLOCK = 64  # tokens that are resampled together: neighbours are not independent
CHUNK = 512  # tokens between two signs of progress

#: What counts as code in a folder.
SUFFIXES = frozenset({
    ".py", ".pyi", ".rs", ".go", ".java", ".kt", ".scala", ".js", ".jsx", ".mjs", ".ts", ".tsx",
    ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rb", ".php", ".swift", ".lua",
})  # fmt: skip
SKIPPED = frozenset({"node_modules", "vendor", "dist", "build", "target", "__pycache__"})


@dataclass(frozen=True, slots=True)
class LongDocument:
    """Code of one repository, long enough for the longest window."""

    name: str
    tokens: IntArray


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens whose last :data:`SCORED` are scored."""

    id: str
    group: str
    tokens: IntArray  # [length]


class Rescaled(OnnxBackend):
    """A model folder run with another scaling than its config names; None: with that one."""

    def __init__(
        self, folder: Path, provider: str | None, threads: int | None, scaling: RopeScaling | None
    ) -> None:
        super().__init__(folder, provider, threads, kv_bytes=0)
        if scaling is not None:
            self.config = replace(self.config, rope_scaling=scaling)  # before any table is made


def sources(paths: Sequence[Path]) -> Iterator[tuple[str, Iterator[tuple[str, str]]]]:
    """(name of a repository, its (path, text) pairs) of folders, files and ``*.jsonl.zst``.

    Raises:
        SettingsError: a path is neither.
    """
    for path in paths:
        if path.is_dir():
            yield path.resolve().name, _folder(path)
        elif path.name.endswith(".jsonl.zst"):
            yield from _records(path)
        elif path.is_file():
            yield path.name, iter([(path.name, _text(path))])
        else:
            raise SettingsError(f"There is no {path}. Name files, folders or a *.jsonl.zst.")


def _folder(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") or part in SKIPPED for part in inside.parts)
        if path.suffix in SUFFIXES and not hidden and path.is_file():
            yield inside.as_posix(), _text(path)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _records(path: Path) -> Iterator[tuple[str, Iterator[tuple[str, str]]]]:
    """Return the newest text of each file in a file of commits or of files, by repository."""
    found: dict[str, dict[str, str]] = {}
    for record in sorted(read_records(path), key=lambda each: each.get("time", 0)):
        files: list[dict[str, Any]] = record.get("files") or [record]
        for file in files:
            text = file.get("after") or file.get("text")
            if text:
                found.setdefault(record["repo"], {})[file["path"]] = text
    for repo, texts in sorted(found.items()):
        yield repo, iter(sorted(texts.items()))


def documents(
    found: Iterable[tuple[str, Iterator[tuple[str, str]]]],
    tokenizer: Tokenizer,
    least: int,
    most: int,
) -> list[LongDocument]:
    """Return the first ``most`` of at least ``least`` tokens, each as long as one window needs.

    Raises:
        SettingsError: none is that long.
    """
    made, longest = [], 0
    for name, files in found:
        tokens: list[int] = []
        for path, text in files:
            head = [tokenizer.mark(FILE), *tokenizer.encode(f"{path}\n")]
            tokens += [*head, *tokenizer.encode(text if text.endswith("\n") else text + "\n")]
            if len(tokens) >= least:
                made.append(LongDocument(name, np.asarray(tokens[:least], np.int64)))
                break
        longest = max(longest, len(tokens))
        if len(made) == most:
            break
    if not made:
        raise SettingsError(
            f"The longest repository given has {longest:,} tokens of code; {least:,} are needed. "
            "Name a larger one, or shorter --lengths."
        )
    return made


def prepare(
    folder: Path, paths: Sequence[Path], lengths: Sequence[int], repositories: int = 3
) -> list[Window]:
    """Return the windows over the code at ``paths``, for the model in ``folder``.

    Raises:
        SettingsError: nothing there is long enough.
    """
    config = ModelConfig.from_dict(read_json(folder / "config.json"))
    if config.attention != "canvas":
        raise SettingsError(
            f"{config.name} does not read its context causally, token by token; its perplexity "
            "would be another figure. Name other weights."
        )
    tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
    made = documents(sources(paths), tokenizer, max(lengths), repositories)
    return [
        Window(f"{one.name}:{length}", one.name, one.tokens[-length:])
        for one in made
        for length in lengths
    ]


def fingerprint(found: Sequence[Window]) -> str:
    """Return a hash of the code that is read, whatever the lengths."""
    ends = sorted({(window.group, window.tokens[-SCORED:].tobytes()) for window in found})
    return hashlib.sha256(repr(ends).encode()).hexdigest()[:16]


def measure(
    found: Sequence[Window], load: Callable[[], Backend], run: Run, progress: OnDone = quiet
) -> None:
    """Score every window that ``run`` does not hold yet; the backend is loaded if there is one."""
    todo = [window for window in found if window.id not in run.examples]
    if not todo:
        return
    total = sum(len(window.tokens) for window in found)
    before = total - sum(len(window.tokens) for window in todo)
    backend = load()
    try:
        for window in todo:
            run.add(measured(window, backend, partial(_advance, progress, before, total)))
            before += len(window.tokens)
    finally:
        backend.close()


def _advance(progress: OnDone, before: int, total: int, read: int) -> None:
    progress(before + read, total)


def measured(window: Window, backend: Backend, progress: Callable[[int], None]) -> Example:
    """Return the negative log-likelihood of the window's last tokens, in blocks."""
    sequence = backend.open(len(window.tokens))
    try:
        nll = -score_tail(sequence, window.tokens, SCORED, progress)
    finally:
        backend.release(sequence)
    blocks = [nll[i : i + BLOCK] for i in range(0, len(nll), BLOCK)]
    sums = [[round(float(block.sum()), 5), len(block)] for block in blocks]
    tags = {"length": str(len(window.tokens))}
    score = {"nll": float(nll.mean()), "blocks": sums}
    return Example(window.id, window.group, "infill", tags, score=score)


def score_tail(
    sequence: Cached, tokens: IntArray, count: int, progress: Callable[[int], None] | None = None
) -> FloatArray:
    """Return log-probabilities [count] of the last ``count`` tokens, each given all before it.

    The token before them is part of the scored call, so that none is lost between two calls.
    """
    start = len(tokens) - count - 1
    if start < 0:
        raise SettingsError(f"{len(tokens):,} tokens are too few to score {count:,} of them.")
    for at in range(0, start, CHUNK):
        sequence.extend(tokens[at : min(at + CHUNK, start)])
        if progress is not None:
            progress(at)
    scored = sequence.score(tokens[start:]).target_logprob[:-1]
    if progress is not None:
        progress(len(tokens))
    return scored


@dataclass(frozen=True, slots=True)
class Perplexity(Metric):
    """Exp of the mean negative log-likelihood, bootstrapped over blocks of neighbours."""

    alone: ClassVar[bool] = True

    def figure(self, rows: Iterable[Row], least: int = 1, seed: int = 0) -> Figure:
        """Return the perplexity of some windows; n counts tokens."""
        blocks = [block for each in rows for block in each["blocks"]]
        if len(blocks) < max(least, 1):
            return unmeasured(len(blocks))
        sums, counts = [total for total, _ in blocks], [count for _, count in blocks]
        found = ratio(sums, counts, seed=seed)
        low, high = math.exp(found.low or 0.0), math.exp(found.high or 0.0)
        return Figure(math.exp(found.value or 0.0), low, high, int(sum(counts)))


METRIC = Perplexity("perplexity", "mean", "nll", digits=3, better="less")


def tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Return the perplexities by length."""
    parts: dict[str, list[Row]] = {}
    for each in sorted(rows, key=lambda row: int(row["length"])):
        parts.setdefault(f"{int(each['length']):,} tokens", []).append(each)
    yield rows_of_parts("perplexity of the last tokens", (METRIC,), parts, seed)
