"""The tokens that code is mostly made of, for a head that predicts only these and a few others.

The whole head of 151,665 tokens takes as long as 9 of 24 layers. Where a long text is only scored,
the 32,768 tokens that are most frequent in code, and those that the prompt holds, are enough: of
the tokens of training files 0.5 % are neither.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig
from .layout import Form
from .quantize import Variant

#: The file in a ready folder whose graph has a short head.
FREQUENT_FILE = "frequent.txt"
#: Files of frequent tokens by the size of the vocabulary: that of Qwen2 without unused rows.
FILES = {151_665: Path(__file__).with_name("frequent_qwen2.txt")}
_LINE = 96  # characters of a line of such a file
_CHARS = 20_000  # of a text that are counted


def has_short_head(config: ModelConfig, variant: Variant, form: Form) -> bool:
    """Return whether a graph has a head of frequent tokens beside the whole one."""
    is_served = config.tied and variant.head == "rows" and form == "causal"
    return is_served and config.verifier == "ar" and len(frequent_tokens(config)) > 0


def frequent_tokens(config: ModelConfig) -> NDArray[np.int64]:
    """Return the ids of frequent tokens, rising; none where they are unknown."""
    file = FILES.get(config.vocab)
    return np.empty(0, np.int64) if file is None else read_frequent(file)


@lru_cache(maxsize=4)
def read_frequent(file: Path) -> NDArray[np.int64]:
    """Return the ids in a file that :func:`write_frequent` wrote, rising."""
    packed = "".join(file.read_text("ascii").split())
    bits = np.unpackbits(np.frombuffer(zlib.decompress(base64.b64decode(packed)), np.uint8))
    return np.flatnonzero(bits)


def count_tokens(
    texts: Iterable[str], encode: Callable[[str], Sequence[int]], config: ModelConfig
) -> NDArray[np.int64]:
    """Return how often each token of text occurs, [ids], in the beginnings of texts."""
    counts = np.zeros(config.text_ids.stop, np.int64)
    for text in texts:
        tokens = np.asarray(encode(text[:_CHARS]), np.int64)
        counts += np.bincount(tokens, minlength=len(counts))[: len(counts)]
    return counts


def write_frequent(counts: NDArray[np.int64], most: int, file: Path, always: int = 256) -> float:
    """Write the ids of the ``most`` most frequent tokens to a file.

    Args:
        counts: [ids] how often each occurs.
        always: ids below are written in any case: those of Qwen2's single bytes, of which any text
            can be made.

    Returns:
        Their share of all occurrences, 0 … 1.
    """
    named = counts.copy()
    named[:always] += counts.sum() + 1
    chosen = np.argsort(-named, kind="stable")[:most]
    bits = np.zeros(len(counts), np.uint8)
    bits[chosen] = 1
    text = base64.b64encode(zlib.compress(np.packbits(bits).tobytes(), 9)).decode("ascii")
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    file.write_text("\n".join([*lines, ""]), "ascii")
    return float(counts[chosen].sum() / max(counts.sum(), 1))
