"""Training rows on disk: packed once, read many times.

A shard is a zstd-compressed ``.npz`` (no pickles) of flat tokens and row lengths; a
``manifest.json`` beside the shards names prompt format, tokenizer size, counts and SHA-256 sums.
``pack`` reads ``*-commits.jsonl.zst`` and ``*-files.jsonl.zst``: a first look at each file tells
how many rows a line yields, then rows stream through worker processes into one temporary file for
each shard, at random, and each shard is shuffled by itself; no more than one is ever in memory.
Rows of one seed are the same on every machine and for any number of processes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import multiprocessing
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from ..config import ModelConfig
from ..errors import SettingsError, WeightsError
from ..prompts.tokenizer import Tokenizer
from .neighbours import Neighbours
from .rows import FIRST_EDIT, KINDS, RECIPE, Recipe, Row, rows_of

Tokens = NDArray[np.unsignedinteger[Any]]
_Fact = tuple[int, int, int, int]  # of a row: length, prompt, plain, kind

TOKENS_PER_SHARD = 24_000_000  # 48 MB, and about 18 packed
CHUNK = 64  # lines a worker gets at once
_SAMPLE = 48  # lines of a source that are tried to see what they yield


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in memory. Row i: tokens[offset[i] : offset[i+1]], its first prompt[i] the prompt."""

    tokens: Tokens
    offset: NDArray[np.int64]
    prompt: NDArray[np.int32]
    plain: NDArray[np.int32]
    kind: NDArray[np.uint8]  # number in KINDS

    @property
    def is_edit(self) -> NDArray[np.bool_]:
        """Return which rows ask for the next edit."""
        found: NDArray[np.bool_] = self.kind >= FIRST_EDIT
        return found

    def __len__(self) -> int:
        return len(self.prompt)

    def __getitem__(self, i: int) -> tuple[NDArray[np.int64], int, int]:
        """Tokens of prompt and answer, prompt length, plain index."""
        row = self.tokens[self.offset[i] : self.offset[i + 1]].astype(np.int64)
        return row, int(self.prompt[i]), int(self.plain[i])


# --- reading ----------------------------------------------------------------------------------


def read_shards(folder: Path, config: ModelConfig) -> Rows:
    """All rows under ``folder``.

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
    if facts.get("row_kinds") != list(KINDS):
        raise SettingsError(f"The shards in {folder} have other classes of rows. Pack them again.")
    parts = [_read_shard(folder / s["file"], s["sha256"]) for s in facts["shards"]]
    lengths = np.concatenate([p["length"] for p in parts]).astype(np.int64)
    return Rows(
        np.concatenate([p["tokens"] for p in parts]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([p["prompt"] for p in parts]),
        np.concatenate([p["plain"] for p in parts]),
        np.concatenate([p["kind"] for p in parts]),
    )


def _read_shard(path: Path, digest: str) -> dict[str, NDArray[Any]]:
    packed = path.read_bytes()
    if hashlib.sha256(packed).hexdigest() != digest:
        raise WeightsError(f"The shard {path} is damaged. Pack the data again.")
    raw = zstandard.ZstdDecompressor().decompress(packed, max_output_size=2**32)
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a ``.jsonl.zst``."""
    return map(json.loads, _read_lines(path))


def _read_lines(path: Path) -> Iterator[bytes]:
    """Lines of a ``.zst`` with a window of up to 2 GiB."""
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file)
        yield from io.BufferedReader(stream, 1 << 20)


# --- packing ----------------------------------------------------------------------------------

#: Lines for a worker: the seed of its draws, and each line with how often to draw from it.
Chunk = tuple[int, list[tuple[int, bytes]]]


def pack(
    sources: Sequence[Path],
    out: Path,
    tokenizer_file: Path,
    config: ModelConfig,
    *,
    rows: int,
    seed: int = 0,
    jobs: int = 2,
    recipe: Recipe = RECIPE,
    progress: Callable[[int, int], object] | None = None,
) -> Path:
    """Write shards of about ``rows`` rows from all ``sources`` to ``out``; returns the manifest.

    Args:
        sources: ``*.jsonl.zst`` files of commits or files, told apart by their first line. Files
            give infills, commits give next edits as well: ``recipe.edit_share`` says how many.
        progress: called with (rows so far, rows wanted).

    Raises:
        SettingsError: a source is missing or holds something else.
    """
    _check(sources)
    out.mkdir(parents=True, exist_ok=True)
    surveys = [_survey(path) for path in sources]
    with ExitStack() as stack:
        # 1. How much the lines of each source give, by some of them.
        run = _start(stack, tokenizer_file, config, recipe, jobs)
        tries = ((_seed(seed, s.path.name, -1), [(1, line) for line in s.sample]) for s in surveys)
        yields = [_Yield.of(s, part) for s, part in zip(surveys, run(tries), strict=True)]
        rates = _rates(yields, rows, recipe.edit_share)
        tokens = rows * sum(y.tokens for y in yields) / max(1, sum(y.rows for y in yields))

        # 2. Rows of all of them, each into a shard by chance.
        writer = stack.enter_context(ShardWriter(out, config, math.ceil(tokens / TOKENS_PER_SHARD)))
        draw = np.random.default_rng(seed)
        for survey, rate in zip(surveys, rates, strict=True):
            for part in run(_chunks(survey.path, rate, seed)):
                writer.add(part, draw)
                if progress:
                    progress(writer.rows, rows)

        # 3. The shards, and what they hold.
        facts = {
            "prompt_format": config.prompt_format,
            "vocab": config.vocab,
            "row_kinds": KINDS,
            "seed": seed,
            "rows": writer.rows,
            "tokens": writer.tokens,
            "kinds": dict(sorted(writer.kinds.items())),
            "sources": [path.name for path in sources],
            "shards": writer.write(draw),
        }
    manifest = out / "manifest.json"
    manifest.write_text(json.dumps(facts, indent=1))
    return manifest


def _check(sources: Sequence[Path]) -> None:
    missing = [str(path) for path in sources if not path.is_file()]
    if missing or not sources:
        raise SettingsError(
            f"No training data at {', '.join(missing) or 'the given folder'}. Give *.jsonl.zst "
            "files of commits or files, as described in model/README.md."
        )


def _seed(seed: int, name: str, number: int) -> int:
    """A seed that is the same on every machine."""
    digest = hashlib.sha256(f"{seed}:{name}:{number}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


# --- how much to take of each source ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Survey:
    path: Path
    lines: int
    sample: list[bytes]  # spread evenly over the file


def _survey(path: Path) -> _Survey:
    sample: list[bytes] = []
    stride, count = 1, 0
    try:
        for count, line in enumerate(_read_lines(path), 1):
            if (count - 1) % stride == 0:
                sample.append(line)
                if len(sample) == 2 * _SAMPLE:
                    sample, stride = sample[::2], 2 * stride
        known = sample and {"files", "text"} & json.loads(sample[0]).keys()
    except (zstandard.ZstdError, ValueError, AttributeError) as error:
        raise SettingsError(f"{path} is no zstd-compressed file of JSON lines: {error}.") from error
    if not known:
        raise SettingsError(
            f"{path} holds neither commits ('files') nor files ('text'). Its lines should look as "
            "described in model/README.md."
        )
    return _Survey(path, count, sample)


@dataclass(frozen=True, slots=True)
class _Yield:
    """What drawing once from every line of a source gives, by its sample."""

    commits: bool
    edits: float  # next-edit rows
    infills: float
    rows: int  # in the sample
    tokens: int  # in the sample

    @classmethod
    def of(cls, survey: _Survey, part: PackedRows) -> _Yield:
        scale = survey.lines / len(survey.sample)
        edits, found = int((part.kind >= FIRST_EDIT).sum()), len(part.length)
        commits = "files" in json.loads(survey.sample[0])
        return cls(commits, edits * scale, (found - edits) * scale, found, len(part.tokens))


def _rates(yields: Sequence[_Yield], rows: int, edit_share: float) -> list[float]:
    """How often to draw from each line of each source: all commits alike, and all files alike."""
    edits = sum(y.edits for y in yields if y.commits)
    beside = sum(y.infills for y in yields if y.commits)
    plain = sum(y.infills for y in yields if not y.commits)
    if not edits or not plain:
        every = rows / max(edits + beside + plain, 1e-9)
        return [every for _ in yields]
    from_commits = rows * edit_share / edits
    from_files = max(0.0, rows * (1 - edit_share) - from_commits * beside) / plain
    return [from_commits if y.commits else from_files for y in yields]


def _chunks(source: Path, rate: float, seed: int) -> Iterator[Chunk]:
    """Lines to draw from, ``rate`` draws a line on average; neighbours in the file stay together.
    No chunk has many more draws than :data:`CHUNK`."""
    rng = random.Random(f"{seed}:{source.name}")
    batch: list[tuple[int, bytes]] = []
    number = 0
    for line in _read_lines(source):
        times = int(rate) + (rng.random() < rate % 1)
        if times:
            batch.append((times, line))
        if sum(times for times, _ in batch) >= CHUNK:
            yield _seed(seed, source.name, number), batch
            batch, number = [], number + 1
    if batch:
        yield _seed(seed, source.name, number), batch


# --- the writer -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows of one chunk."""

    tokens: Tokens  # of all rows, one behind the other
    length: NDArray[np.int32]
    prompt: NDArray[np.int32]
    plain: NDArray[np.int32]
    kind: NDArray[np.uint8]


def pack_rows(rows: Sequence[Row], config: ModelConfig) -> PackedRows:
    return PackedRows(
        np.array([t for r in rows for t in (*r.prompt, *r.answer)], dtype=_dtype(config)),
        np.array([len(r.prompt) + len(r.answer) for r in rows], dtype=np.int32),
        np.array([len(r.prompt) for r in rows], dtype=np.int32),
        np.array([r.plain for r in rows], dtype=np.int32),
        np.array([KINDS.index(r.kind) for r in rows], dtype=np.uint8),
    )


def _dtype(config: ModelConfig) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if config.vocab <= 1 << 16 else np.uint32


class ShardWriter:
    """Rows on their way into shards: each goes to one of them by chance; their tokens wait on disk,
    their lengths in memory."""

    def __init__(self, out: Path, config: ModelConfig, shards: int) -> None:
        self.rows = 0
        self.tokens = 0
        self.kinds: Counter[str] = Counter()
        self._out = out
        self._dtype = _dtype(config)
        self._count = max(1, shards)
        self._facts: list[list[_Fact]] = [[] for _ in range(self._count)]
        self._stack = ExitStack()

    def __enter__(self) -> ShardWriter:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(dir=self._out))
        self._files = [
            self._stack.enter_context((Path(folder) / str(n)).open("w+b"))
            for n in range(self._count)
        ]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, part: PackedRows, draw: np.random.Generator) -> None:
        facts = zip(
            part.length.tolist(),
            part.prompt.tolist(),
            part.plain.tolist(),
            part.kind.tolist(),
            strict=True,
        )
        begin = 0
        for shard, fact in zip(
            draw.integers(self._count, size=len(part.length)), facts, strict=True
        ):
            end = begin + fact[0]
            self._files[shard].write(part.tokens[begin:end].tobytes())
            self._facts[shard].append(fact)
            begin = end
        self.rows += len(part.length)
        self.tokens += begin
        self.kinds.update(KINDS[kind] for kind in part.kind.tolist())

    def write(self, draw: np.random.Generator) -> list[dict[str, Any]]:
        """The shards' entries in the manifest."""
        found = []
        for n, (file, facts) in enumerate(zip(self._files, self._facts, strict=True)):
            if not facts:
                continue
            file.seek(0)
            tokens = np.frombuffer(file.read(), self._dtype)
            name = f"rows-{n:04d}.npz.zst"
            digest = _write_shard(self._out / name, tokens, facts, draw)
            found.append({"file": name, "rows": len(facts), "sha256": digest})
        return found


def _write_shard(
    path: Path,
    tokens: Tokens,
    facts: Sequence[_Fact],
    draw: np.random.Generator,
) -> str:
    """Rows in random order; returns the file's SHA-256."""
    order = draw.permutation(len(facts))
    length, prompt, plain, kind = (np.array(column)[order] for column in zip(*facts, strict=True))
    begin = np.cumsum([0, *(fact[0] for fact in facts)])
    buffer = io.BytesIO()
    np.savez(
        buffer,
        tokens=np.concatenate([tokens[begin[i] : begin[i + 1]] for i in order]),
        length=length.astype(np.int32),
        prompt=prompt.astype(np.int32),
        plain=plain.astype(np.int32),
        kind=kind.astype(np.uint8),
    )
    packed = zstandard.ZstdCompressor(level=9).compress(buffer.getvalue())
    path.write_bytes(packed)
    return hashlib.sha256(packed).hexdigest()


# --- workers ----------------------------------------------------------------------------------


class _Worker:
    """Turns chunks of lines into rows."""

    def __init__(self, tokenizer_file: Path, config: ModelConfig, recipe: Recipe) -> None:
        self._tokenizer = Tokenizer.from_file(tokenizer_file)
        self._config = config
        self._recipe = recipe

    def rows_of(self, chunk: Chunk) -> PackedRows:
        rng = random.Random(chunk[0])
        records = [(times, json.loads(line)) for times, line in chunk[1]]
        near = _neighbours(record for _, record in records)
        rows: list[Row] = []
        for times, record in records:
            rows.extend(
                rows_of(
                    record,
                    self._tokenizer,
                    self._config,
                    rng,
                    recipe=self._recipe,
                    times=times,
                    neighbours=near.get(record.get("repo", "")),
                )
            )
        return pack_rows(rows, self._config)


def _neighbours(records: Iterable[dict[str, Any]]) -> dict[str, Neighbours]:
    """Of the plain files in a chunk, by repository."""
    files: dict[str, list[tuple[str, str]]] = {}
    for record in records:
        if "text" in record:
            files.setdefault(record.get("repo", ""), []).append((record["path"], record["text"]))
    return {repo: Neighbours(texts) for repo, texts in files.items()}


_worker: _Worker | None = None


def _start_worker(*arguments: Any) -> None:
    global _worker
    _worker = _Worker(*arguments)


def _rows_of_chunk(chunk: Chunk) -> PackedRows:
    assert _worker is not None
    return _worker.rows_of(chunk)


def _start(
    stack: ExitStack, tokenizer_file: Path, config: ModelConfig, recipe: Recipe, jobs: int
) -> Callable[[Iterable[Chunk]], Iterator[PackedRows]]:
    """What turns chunks into rows, in order: this process where ``jobs`` is 1, else a pool."""
    if jobs == 1:
        worker = _Worker(tokenizer_file, config, recipe)
        return lambda chunks: map(worker.rows_of, chunks)
    context = multiprocessing.get_context("spawn")
    pool = stack.enter_context(context.Pool(jobs, _start_worker, (tokenizer_file, config, recipe)))
    return lambda chunks: pool.imap(_rows_of_chunk, chunks)
