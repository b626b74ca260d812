"""Rows on their way to disk: spooled at random into shards, each shuffled by itself, compressed.

Only lengths and one shard's tokens are ever in memory. Knows nothing of where rows come from.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from ..config import ModelConfig
from .rows import Kind, Row

Tokens = NDArray[np.unsignedinteger[Any]]
_Fact = tuple[int, int, int, bool]  # of a row: length, prompt, plain, is it a next edit


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows of one chunk."""

    tokens: Tokens  # of all rows, one behind the other
    length: NDArray[np.int32]
    prompt: NDArray[np.int32]
    plain: NDArray[np.int32]
    is_edit: NDArray[np.bool_]
    kinds: Counter[Kind]


def pack_rows(rows: Sequence[Row], config: ModelConfig) -> PackedRows:
    return PackedRows(
        np.array([t for r in rows for t in (*r.prompt, *r.answer)], dtype=_dtype(config)),
        np.array([len(r.prompt) + len(r.answer) for r in rows], dtype=np.int32),
        np.array([len(r.prompt) for r in rows], dtype=np.int32),
        np.array([r.plain for r in rows], dtype=np.int32),
        np.array([r.task == "next_edit" for r in rows], dtype=np.bool_),
        Counter(r.kind for r in rows),
    )


def _dtype(config: ModelConfig) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if config.vocab <= 1 << 16 else np.uint32


class Spool:
    """Rows on their way into shards: each goes to one of them by chance; their tokens wait on disk,
    their lengths in memory."""

    def __init__(self, out: Path, config: ModelConfig, shards: int) -> None:
        self.rows = 0
        self.tokens = 0
        self.kinds: Counter[Kind] = Counter()
        self._out = out
        self._dtype = _dtype(config)
        self._count = max(1, shards)
        self._facts: list[list[_Fact]] = [[] for _ in range(self._count)]
        self._stack = ExitStack()

    def __enter__(self) -> Spool:
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
            part.is_edit.tolist(),
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
        self.kinds += part.kinds

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
    length, prompt, plain, is_edit = (
        np.array(column)[order] for column in zip(*facts, strict=True)
    )
    begin = np.cumsum([0, *(fact[0] for fact in facts)])
    buffer = io.BytesIO()
    np.savez(
        buffer,
        tokens=np.concatenate([tokens[begin[i] : begin[i + 1]] for i in order]),
        length=length.astype(np.int32),
        prompt=prompt.astype(np.int32),
        plain=plain.astype(np.int32),
        is_edit=is_edit.astype(np.bool_),
    )
    packed = zstandard.ZstdCompressor(level=9).compress(buffer.getvalue())
    path.write_bytes(packed)
    return hashlib.sha256(packed).hexdigest()
