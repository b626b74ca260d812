"""Training rows on disk: packed once, read many times.

A shard is a zstd-compressed ``.npz`` (no pickles) of flat tokens and row lengths;
``manifest.json`` beside the shards holds prompt format, tokenizer size, classes, counts and SHA-256
sums. PackedRows of one seed are the same on every machine and for any number of processes.
"""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from ..config import ModelConfig
from ..errors import SettingsError, WeightsError
from ..prompts.tokenizer import Tokenizer
from .excerpts import Neighbours
from .middles import MIX
from .moments import EditClass, group_of
from .rows import Recipe, RowMaker

Tokens = NDArray[np.unsignedinteger[Any]]

TOKENS_PER_SHARD = 8_000_000
_CHUNK = 64  # neighbouring lines of a source, which a process gets at once
_STRIDE = 16  # the first pass over a source takes each 16th chunk, so that it samples all of it
#: The classes that a row's byte encodes; shards with others are refused.
CLASSES = [*MIX, *(str(flag.name) for flag in EditClass)]


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows in memory. Row i: tokens[offset[i] : offset[i+1]], its first prompt[i] the prompt."""

    tokens: Tokens
    offset: NDArray[np.int64]
    prompt: NDArray[np.int32]
    plain: NDArray[np.int32]
    kind: NDArray[np.uint8]  # see EditClass

    @property
    def is_edit(self) -> NDArray[np.bool_]:
        """Return which rows ask for the next edit."""
        found: NDArray[np.bool_] = self.kind % 2 == EditClass.NEXT_EDIT
        return found

    def __len__(self) -> int:
        return len(self.prompt)

    def __getitem__(self, i: int) -> tuple[NDArray[np.int64], int, int]:
        """Return tokens of prompt and answer, prompt length, plain index."""
        row = self.tokens[self.offset[i] : self.offset[i + 1]].astype(np.int64)
        return row, int(self.prompt[i]), int(self.plain[i])


# --- reading ----------------------------------------------------------------------------------


def read_shards(folder: Path, config: ModelConfig) -> PackedRows:
    """Return all rows under ``folder``.

    Raises:
        SettingsError: there are none, or they were rendered for another prompt format.
        WeightsError: a shard does not match its checksum.
    """
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        raise SettingsError(
            f"No shards in {folder}. Make them with 'redraft train pack DATA --out {folder}'."
        )
    facts = json.loads(manifest.read_text())
    if facts["prompt_format"] != config.prompt_format or facts["vocab"] != config.vocab:
        raise SettingsError(
            f"The shards in {folder} hold prompt format {facts['prompt_format']!r} with "
            f"{facts['vocab']} tokens; this model wants {config.prompt_format!r} with "
            f"{config.vocab}. Pack them again."
        )
    if facts.get("classes") != CLASSES:
        raise SettingsError(f"The shards in {folder} have other classes of rows. Pack them again.")
    parts = [_read_shard(folder / s["file"], s["sha256"]) for s in facts["shards"]]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    offset = np.cumsum(joined.pop("length"), dtype=np.int64)
    return PackedRows(offset=np.concatenate([[0], offset]), **joined)


def _read_shard(path: Path, digest: str) -> dict[str, NDArray[Any]]:
    packed = path.read_bytes()
    if hashlib.sha256(packed).hexdigest() != digest:
        raise WeightsError(f"The shard {path} is damaged. Pack the data again.")
    raw = zstandard.ZstdDecompressor().decompress(packed, max_output_size=2**32)
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a ``.jsonl.zst``."""
    return map(json.loads, _read_lines(path))


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield lines of a ``.zst`` with a window of up to 2 GiB."""
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file)
        yield from io.BufferedReader(stream, 1 << 20)


# --- packing ----------------------------------------------------------------------------------


class PackedRow(NamedTuple):
    """A row as it is stored."""

    tokens: Tokens  # prompt and answer
    prompt: int
    plain: int
    kind: int


class _Chunk(NamedTuple):
    seed: int
    source: int
    round: int  # how often all of the source has been read before
    lines: list[bytes]


def pack(  # noqa: PLR0913 - the options of a command
    sources: Sequence[Path],
    out: Path,
    tokenizer_file: Path,
    config: ModelConfig,
    recipe: Recipe,
    *,
    rows: int,
    seed: int = 0,
    jobs: int = 2,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> Path:
    """Write shards of ``rows`` rows, or fewer where the sources give no more.

    Args:
        sources: ``*.jsonl.zst`` files of commits or files, distinguished by their first line.
        progress: called with (rows so far, rows wanted).

    Returns:
        The manifest.

    Raises:
        SettingsError: a source is missing or holds something else.
    """
    has_commits = [_holds_commits(path) for path in sources]
    wanted = _quotas(rows, recipe, any(has_commits), not all(has_commits))
    out.mkdir(parents=True, exist_ok=True)
    writer = _ShardWriter(out, seed)
    taken: Counter[tuple[bool, bool]] = Counter()
    news, finished = Counter[tuple[int, int]](), set[int]()

    def needs(source: int) -> bool:
        of_source = ((has_commits[source], is_edit) for is_edit in (True, False))
        return source not in finished and any(taken[each] < wanted[each] for each in of_source)

    with ExitStack() as stack:
        render = _renderer(stack, jobs, (tokenizer_file, config.vocab, recipe))
        for chunk, found in render(_chunks(sources, seed, needs)):
            # A round that gave nothing that is still wanted ends its source.
            if chunk.round and not news[chunk.source, chunk.round - 1]:
                finished.add(chunk.source)
            for row in found if chunk.source not in finished else ():
                origin = has_commits[chunk.source], bool(row.kind & EditClass.NEXT_EDIT)
                if taken[origin] < wanted[origin]:
                    taken[origin] += 1
                    news[chunk.source, chunk.round] += 1
                    writer.add(row)
            progress(taken.total(), rows)
    facts = {
        "prompt_format": config.prompt_format,
        "vocab": config.vocab,
        "classes": CLASSES,
        "seed": seed,
        "sources": [path.name for path in sources],
        **writer.close(),
    }
    manifest = out / "manifest.json"
    manifest.write_text(json.dumps(facts, indent=1))
    return manifest


def _holds_commits(path: Path) -> bool:
    if not path.is_file():
        raise SettingsError(
            f"No training data at {path}. Give *.jsonl.zst files of commits or files, as described "
            "in model/training/README.md."
        )
    try:
        first = json.loads(next(_read_lines(path), b"{}"))
        if "files" in first or "text" in first:
            return "files" in first
    except (zstandard.ZstdError, ValueError, TypeError) as error:
        raise SettingsError(f"{path} is no zstd-compressed file of JSON lines: {error}.") from error
    raise SettingsError(
        f"{path} holds neither commits ('files') nor files ('text'). Its lines should look as "
        "described in model/training/README.md."
    )


def _quotas(
    rows: int, recipe: Recipe, has_commits: bool, has_files: bool
) -> dict[tuple[bool, bool], int]:
    """Return how many rows to take, by (from a commit, is a next edit)."""
    edits = round(rows * (1 - recipe.infills))
    chains = round(edits * recipe.chains) if has_files else 0
    commits = edits - chains if has_commits else 0
    infills = rows - chains - commits
    of_files = infills // (1 + has_commits) if has_files else 0
    return {
        (True, True): commits,
        (False, True): chains,
        (True, False): infills - of_files,
        (False, False): of_files,
    }


def _chunks(sources: Sequence[Path], seed: int, needs: Callable[[int], bool]) -> Iterator[_Chunk]:
    """Yield chunks of the sources in turns, as long as they are needed."""

    def of_source(source: int) -> Iterator[_Chunk]:
        path = sources[source]
        for number in count():
            turn, part = divmod(number, _STRIDE)
            place, lines = 0, list[bytes]()
            for at, line in enumerate(_read_lines(path)):
                if not needs(source):
                    return
                place = at // _CHUNK
                if (place + seed) % _STRIDE == part:
                    lines.append(line)
                if lines and (at + 1) % _CHUNK == 0:
                    yield _Chunk(_seed(seed, path.name, turn, place), source, turn, lines)
                    lines = []
            if lines:
                yield _Chunk(_seed(seed, path.name, turn, place), source, turn, lines)
            if not needs(source):
                return

    for chunks in zip_longest(*map(of_source, range(len(sources)))):
        yield from (chunk for chunk in chunks if chunk is not None)


def _seed(*parts: object) -> int:
    """Return a seed that is the same on every machine."""
    digest = hashlib.sha256(":".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "little")


class _ShardWriter:
    """Collects rows and writes a shard, in random order, whenever enough tokens have come."""

    def __init__(self, out: Path, seed: int) -> None:
        self._out, self._draw = out, np.random.default_rng(seed)
        self._rows: list[PackedRow] = []
        self._tokens = 0  # of the rows that wait
        self._total = 0
        self._groups: Counter[str] = Counter()
        self._shards: list[dict[str, Any]] = []

    def add(self, row: PackedRow) -> None:
        self._rows.append(row)
        self._tokens += len(row.tokens)
        self._groups[group_of(row.kind)] += 1
        if self._tokens >= TOKENS_PER_SHARD:
            self._write()

    def close(self) -> dict[str, Any]:
        """Write the rows that wait; return the entries of the manifest."""
        if self._rows:
            self._write()
        return {
            "rows": self._groups.total(),
            "tokens": self._total,
            "groups": dict(sorted(self._groups.items())),
            "shards": self._shards,
        }

    def _write(self) -> None:
        rows = [self._rows[i] for i in self._draw.permutation(len(self._rows))]
        buffer = io.BytesIO()
        np.savez(
            buffer,
            tokens=np.concatenate([row.tokens for row in rows]),
            length=np.array([len(row.tokens) for row in rows], np.int32),
            prompt=np.array([row.prompt for row in rows], np.int32),
            plain=np.array([row.plain for row in rows], np.int32),
            kind=np.array([row.kind for row in rows], np.uint8),
        )
        packed = zstandard.ZstdCompressor(level=9).compress(buffer.getvalue())
        name = f"rows-{len(self._shards):04d}.npz.zst"
        (self._out / name).write_bytes(packed)
        digest = hashlib.sha256(packed).hexdigest()
        self._shards.append({"file": name, "rows": len(rows), "sha256": digest})
        self._total += self._tokens
        self._rows, self._tokens = [], 0


# --- processes --------------------------------------------------------------------------------


def _rows_of(chunk: _Chunk, maker: RowMaker, vocab: int) -> list[PackedRow]:
    """Return the rows of a chunk of lines."""
    rng, dtype = random.Random(chunk.seed), "uint16" if vocab <= 1 << 16 else "uint32"
    records = [json.loads(line) for line in chunk.lines]
    files: dict[str, list[tuple[str, str]]] = {}
    for record in records:
        if "text" in record:
            files.setdefault(record.get("repo", ""), []).append((record["path"], record["text"]))
    near = {repo: Neighbours(texts) for repo, texts in files.items()}
    found: list[PackedRow] = []
    for record in records:
        if "files" in record:
            rows = maker.of_commit(record, rng)
        else:
            rows = maker.of_file(record, rng, near[record.get("repo", "")])
        for row in rows:
            tokens: Tokens = np.array((*row.prompt, *row.answer), dtype)
            found.append(PackedRow(tokens, len(row.prompt), row.plain, row.kind))
    return found


_Arguments = tuple[Path, int, Recipe]  # tokenizer file, size of the vocabulary, recipe
_work: Callable[[_Chunk], list[PackedRow]]


def _start(tokenizer_file: Path, vocab: int, recipe: Recipe) -> None:
    global _work
    maker = RowMaker(Tokenizer.from_file(tokenizer_file), recipe)
    _work = partial(_rows_of, maker=maker, vocab=vocab)


def _run(chunk: _Chunk) -> list[PackedRow]:
    return _work(chunk)


def _renderer(
    stack: ExitStack, jobs: int, arguments: _Arguments
) -> Callable[[Iterator[_Chunk]], Iterator[tuple[_Chunk, list[PackedRow]]]]:
    """Return what renders chunks in order: this process where ``jobs`` is 1, else a pool."""
    if jobs == 1:
        _start(*arguments)
        return lambda chunks: ((chunk, _run(chunk)) for chunk in chunks)
    context = multiprocessing.get_context("spawn")
    pool = stack.enter_context(ProcessPoolExecutor(jobs, context, _start, arguments))

    def render(chunks: Iterator[_Chunk]) -> Iterator[tuple[_Chunk, list[PackedRow]]]:
        begun = ((chunk, pool.submit(_run, chunk)) for chunk in chunks)
        waiting = deque(islice(begun, 2 * jobs))
        while waiting:
            chunk, found = waiting.popleft()
            yield chunk, found.result()
            waiting.extend(islice(begun, 1))

    return render
