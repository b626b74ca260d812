"""Training rows on disk: packed once, read many times.

A shard is a zstd-compressed ``.npz`` (no pickles) of flat uint16 tokens and row lengths; a
``manifest.json`` beside the shards names prompt format, tokenizer size, counts and SHA-256 sums.
``pack`` reads ``*-commits.jsonl.zst`` and ``*-files.jsonl.zst``; rows of one seed are the same on
every machine and for any number of processes.
"""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from .config import ModelConfig
from .errors import SettingsError, WeightsError
from .rows import Row, rows_of
from .tokens import Tokenizer

ROWS_PER_SHARD = 20_000  # about 20 MB packed
CHUNK = 64  # lines a worker gets at once


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in memory. Row i: tokens[offset[i] : offset[i+1]], its first prompt[i] the prompt."""

    tokens: NDArray[np.uint16]
    offset: NDArray[np.int64]
    prompt: NDArray[np.int32]
    plain: NDArray[np.int32]
    is_edit: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.prompt)

    def __getitem__(self, i: int) -> tuple[NDArray[np.int64], int, int]:
        """Tokens of prompt and answer, prompt length, plain index."""
        row = self.tokens[self.offset[i] : self.offset[i + 1]].astype(np.int64)
        return row, int(self.prompt[i]), int(self.plain[i])


def pack(
    sources: Sequence[Path],
    out: Path,
    tokenizer_file: Path,
    config: ModelConfig,
    *,
    rows: int,
    seed: int = 0,
    jobs: int = 2,
    progress: Any = None,
) -> Path:
    """Write shards of about ``rows`` rows from all ``sources`` to ``out``; returns the manifest.

    Args:
        sources: ``*.jsonl.zst`` files of commits or files; recognised by their first line.
        progress: called with (rows so far, rows wanted).
    """
    missing = [str(path) for path in sources if not path.is_file()]
    if missing or not sources:
        raise SettingsError(
            f"No training data at {', '.join(missing) or 'the given folder'}. Give *.jsonl.zst "
            "files of commits or files, as described in model/README.md."
        )
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    share = _shares(sources, rows)
    found: list[Row] = []
    with multiprocessing.get_context("spawn").Pool(
        jobs, _start_worker, (tokenizer_file, config)
    ) as pool:
        for source in sources:
            wanted, taken = share[source], 0
            chunks = _chunks(source, wanted, seed)
            for part in pool.imap(_rows_of_chunk, chunks, chunksize=1):
                found += part
                taken += len(part)
                if progress:
                    progress(len(found), rows)
    order = rng.permutation(len(found))
    shards = []
    for n, begin in enumerate(range(0, len(found), ROWS_PER_SHARD)):
        part = [found[i] for i in order[begin : begin + ROWS_PER_SHARD]]
        name = f"rows-{n:04d}.npz.zst"
        digest = _write_shard(out / name, part)
        shards.append({"file": name, "rows": len(part), "sha256": digest})
    manifest = out / "manifest.json"
    manifest.write_text(
        json.dumps(
            {
                "prompt_format": config.prompt_format,
                "vocab": config.vocab,
                "seed": seed,
                "rows": len(found),
                "tokens": int(sum(len(r.prompt) + len(r.answer) for r in found)),
                "sources": [path.name for path in sources],
                "shards": shards,
            },
            indent=1,
        )
    )
    return manifest


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
    parts = [_read_shard(folder / s["file"], s["sha256"]) for s in facts["shards"]]
    lengths = np.concatenate([p["length"] for p in parts]).astype(np.int64)
    return Rows(
        np.concatenate([p["tokens"] for p in parts]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([p["prompt"] for p in parts]),
        np.concatenate([p["plain"] for p in parts]),
        np.concatenate([p["is_edit"] for p in parts]),
    )


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a ``.jsonl.zst``."""
    return map(json.loads, _read_lines(path))


def _read_lines(path: Path) -> Iterator[str]:
    """Lines of a ``.zst`` with a window of up to 2 GiB."""
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file)
        yield from io.TextIOWrapper(stream, encoding="utf-8")


def _shares(sources: Sequence[Path], rows: int) -> dict[Path, int]:
    """Rows wanted of each source: three from commits to one from plain files."""
    weight = {path: 3.0 if "files" in next(read_records(path)) else 1.0 for path in sources}
    total = sum(weight.values())
    return {path: round(rows * w / total) for path, w in weight.items()}


def _chunks(source: Path, wanted: int, seed: int) -> Iterator[tuple[int, list[str]]]:
    """Raw lines, drawn evenly over the file so that about ``wanted`` rows come out."""
    total = sum(1 for _ in _read_lines(source))
    per_line = 1.35 if "commits" in source.name else 1.7  # rows a line yields on average
    keep = min(1.0, wanted / per_line / max(total, 1))
    rng = random.Random(f"{seed}:{source.name}")
    batch: list[str] = []
    number = 0
    for line in _read_lines(source):
        if rng.random() >= keep:
            continue
        batch.append(line)
        if len(batch) == CHUNK:
            yield hash_seed(seed, source.name, number), batch
            batch, number = [], number + 1
    if batch:
        yield hash_seed(seed, source.name, number), batch


def hash_seed(seed: int, name: str, number: int) -> int:
    """A seed that is the same on every machine."""
    digest = hashlib.sha256(f"{seed}:{name}:{number}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


_worker: tuple[Tokenizer, ModelConfig] | None = None


def _start_worker(tokenizer_file: Path, config: ModelConfig) -> None:
    global _worker
    _worker = (Tokenizer.from_file(tokenizer_file), config)


def _rows_of_chunk(chunk: tuple[int, list[str]]) -> list[Row]:
    assert _worker is not None
    tokenizer, config = _worker
    rng = random.Random(chunk[0])
    rows: list[Row] = []
    for line in chunk[1]:
        rows.extend(rows_of(json.loads(line), tokenizer, config, rng))
    return rows


def _write_shard(path: Path, rows: Sequence[Row]) -> str:
    buffer = io.BytesIO()
    np.savez(
        buffer,
        tokens=np.array([t for r in rows for t in (*r.prompt, *r.answer)], dtype=np.uint16),
        length=np.array([len(r.prompt) + len(r.answer) for r in rows], dtype=np.int32),
        prompt=np.array([len(r.prompt) for r in rows], dtype=np.int32),
        plain=np.array([r.plain for r in rows], dtype=np.int32),
        is_edit=np.array([r.task == "next_edit" for r in rows], dtype=np.bool_),
    )
    packed = zstandard.ZstdCompressor(level=12).compress(buffer.getvalue())
    path.write_bytes(packed)
    return hashlib.sha256(packed).hexdigest()


def _read_shard(path: Path, digest: str) -> dict[str, NDArray[Any]]:
    packed = path.read_bytes()
    if hashlib.sha256(packed).hexdigest() != digest:
        raise WeightsError(f"The shard {path} is damaged. Pack the data again.")
    raw = zstandard.ZstdDecompressor().decompress(packed, max_output_size=2**32)
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
