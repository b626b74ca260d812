"""Small deterministic backends for tests, in place of ``redraft.model.runtime.backend.Backend``.

:class:`ScriptedBackend` writes a given text with given confidences; :class:`NoiseBackend` derives
its logits from a hash of everything that a real network would read. Both record which tokens are
cached, so that a wrong truncation or window is noticed.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from redraft.model.config import CANDIDATES, ModelConfig
from redraft.model.network.layout import TOP
from redraft.model.prompts import tokenizer as marks
from redraft.model.prompts.tokenizer import Tokenizer, byte_alphabet
from redraft.model.runtime.backend import FloatArray, Follows, IntArray, MaskGuesses, Rows, Scores
from redraft.model.weights.vocabularies import build_bpe

SPECIAL = 17
MASK = 16
END = 0
#: Two tokens of several bytes, so that alternatives to single bytes exist.
WORDS = (b"return", b" self", b"    ", b"ret")
VOCAB = [b""] * SPECIAL + [bytes([b]) for b in range(256)] + list(WORDS)
TEXT = range(SPECIAL, len(VOCAB))


def small_config(width: int = 8, verifier: str = "none") -> ModelConfig:
    return ModelConfig(
        name="fake",
        vocab=len(VOCAB),
        canvas_width=width,
        verifier="ar" if verifier == "ar" else "none",
        mask_token=MASK,
        end_token=END,
        special_tokens=SPECIAL,
    )


def ids(text: str) -> list[int]:
    """Return a token for each byte."""
    return [SPECIAL + b for b in text.encode("utf-8")]


def word(data: bytes) -> int:
    """Id of one of :data:`WORDS`."""
    return VOCAB.index(data, SPECIAL + 256)


class Predict(Protocol):
    """Logits [B, vocab] for a window [B] behind a cached context."""

    def __call__(self, context: list[int], window: list[int]) -> FloatArray: ...


class Causal(Protocol):
    """Logits [vocab] of the token after a context."""

    def __call__(self, context: list[int]) -> FloatArray: ...


@dataclass
class FakeSequence:
    """Books of cached tokens over a ``Predict``."""

    predict: Predict
    causal: Causal
    capacity: int
    tokens: list[int] = field(default_factory=list)
    log: list[str] = field(default_factory=list)  # one entry a call, for tests to read
    permitted: Sequence[int] = (END,)
    follows: Follows | None = None  # the masks' sampler

    def permit(self, marks: Sequence[int]) -> None:
        self.permitted = marks

    def extend(self, tokens: IntArray) -> None:
        assert tokens.dtype == np.int64 and tokens.ndim == 1
        assert len(self.tokens) + len(tokens) <= self.capacity, "over capacity"
        assert MASK not in tokens, "a mask may never be cached"
        self.log.append(f"extend {len(tokens)}")
        self.tokens = [*self.tokens, *tokens.tolist()]

    def score(
        self,
        tokens: IntArray,
        targets: IntArray | None = None,
        logits: bool = False,
        short: bool = False,
    ) -> Scores:
        assert tokens.dtype == np.int64 and tokens.ndim == 1 and len(tokens)
        assert len(self.tokens) + len(tokens) <= self.capacity, "over capacity"
        assert MASK not in tokens, "a mask may never be cached"
        self.log.append(f"score {len(tokens)}")
        start = len(self.tokens)
        self.tokens = [*self.tokens, *tokens.tolist()]
        ends = range(start + 1, len(self.tokens) + 1)
        rows = np.stack([self.causal(self.tokens[:end]) for end in ends])  # [n, vocab]
        following = np.append(tokens[1:], tokens[-1:]) if targets is None else targets
        return _scores(rows, logits, self.permitted, following)

    def read(self, rows: Rows, logits: bool = False, short: bool = False) -> Scores:
        """Predict after each row what a causal pass over the rows that it sees would.

        Masks guess what ``predict`` would write behind their token and the one after it.
        """
        n, held = len(rows.tokens), len(self.tokens)
        kept = n - rows.masks
        assert (rows.tokens[kept:] == MASK).all() and MASK not in rows.tokens[:kept]
        assert len(rows.positions) == len(rows.sees) == len(rows.targets) == n
        assert held + n <= self.capacity, "over capacity"
        self.log.append(f"read {kept} + {rows.masks}" if rows.masks else f"read {kept}")
        base = held - (rows.sees.shape[1] - n)  # all see the tokens before
        seen = [
            [*self.tokens[:base], *np.asarray([*self.tokens[base:], *rows.tokens])[row].tolist()]
            for row in rows.sees
        ]
        assert [len(each) - 1 for each in seen] == rows.positions.tolist(), "a path has no gaps"
        self.tokens = [*self.tokens, *rows.tokens[:kept].tolist()]
        causal = np.stack([self.causal(each) for each in seen[:kept]])
        scores = _scores(causal, logits, self.permitted, rows.targets[:kept])
        if not rows.masks:
            return scores
        guesses = []
        for each in seen[kept:]:
            place = each.count(MASK)  # in its group, from 1
            text = each[:-place]
            guesses.append(self.predict(text[:-1], [text[-1], *[MASK] * place])[place])
        out = _scores(np.stack(guesses), True, self.permitted)
        assert out.logits is not None
        likeliest = np.argsort(-out.logits, axis=1)[:, :CANDIDATES]  # [masks, k]
        logit = np.take_along_axis(out.logits, likeliest, axis=1)
        hidden = np.zeros((rows.masks, 1), np.float32)
        confidence = np.exp(out.top_logprob[:, 0])
        masks = MaskGuesses(likeliest, confidence, logit, hidden, self.follows)
        return scores._replace(masks=masks)

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self.tokens)
        self.tokens = self.tokens[:length]

    def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
        assert not len(behind)
        assert len(self.tokens) + len(window) <= self.capacity, "over capacity"
        self.log.append("denoise")
        return _scores(self.predict(self.tokens, window.tolist()), logits, self.permitted)


def _scores(
    logits: FloatArray, wanted: bool, permitted: Sequence[int], targets: IntArray | None = None
) -> Scores:
    logits[..., [i for i in range(SPECIAL) if i not in permitted]] = -1e9  # as every backend does
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    with np.errstate(divide="ignore"):
        logp = np.log(weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
    top = np.argsort(-logits, axis=-1, kind="stable")[:, :TOP]  # [n, TOP]
    asked = top[:, 0] if targets is None else targets
    of_targets = np.take_along_axis(logp, asked.reshape(len(logits), -1), axis=1)
    return Scores(
        top.astype(np.int64),
        np.take_along_axis(logp, top, axis=1),
        of_targets.reshape(asked.shape),
        logits.astype(np.float32) if wanted else None,
    )


class FakeBackend:
    """A ``Backend`` over a ``Predict``."""

    variant = "fp32"
    provider = "CPU"
    bytes_per_token = 100

    def __init__(
        self,
        predict: Predict,
        config: ModelConfig,
        causal: Causal | None = None,
        follows: Follows | None = None,
    ) -> None:
        self.follows = follows
        self.predict = predict
        self.causal = causal
        self.config = config
        self.sequences: list[FakeSequence] = []
        self.closed = False

    def open(self, capacity: int) -> FakeSequence:
        sequence = FakeSequence(self._predict, self._causal, capacity, follows=self.follows)
        self.sequences.append(sequence)
        return sequence

    def fork(self, sequence: FakeSequence, length: int, capacity: int) -> FakeSequence:
        new = self.open(capacity)
        new.tokens = sequence.tokens[:length]
        return new

    def release(self, sequence: FakeSequence) -> None:
        self.sequences.remove(sequence)

    def interrupt(self, now: bool) -> None:
        """Let passes run to their end."""

    def why_changed(self) -> str:
        return ""

    def close(self) -> None:
        self.closed = True

    def _predict(self, context: list[int], window: list[int]) -> FloatArray:
        return self.predict(context, window)

    def _causal(self, context: list[int]) -> FloatArray:
        """Return the causal prediction. By default it agrees with the first one of the canvas."""
        if self.causal is not None:
            return self.causal(context)
        return self.predict(context[:-1], [context[-1], *[MASK] * (self.config.canvas_width - 1)])[
            0
        ]


#: How sure the scripted model is of a position of the answer; None asks for the default.
Sureness = Callable[[int, Sequence[int]], float]


def always(p: float) -> Sureness:
    return lambda position, window: p


SURE = always(0.99)


class Script:
    """Predicts ``target`` and then END, whatever stands on the canvas.

    It finds its place in the target by what the context ends with, so successive canvases and
    retries need no further state.

    Args:
        sure: (position in the answer, window) -> probability of the target's token there.
        rivals: position -> the token that gets half of the remaining probability.
        slips: called with (position, window); a token to say instead of the target's, or None.
        prompt_tokens: where the answer begins, for answers that stray from the target.
    """

    def __init__(
        self,
        target: Sequence[int],
        sure: Sureness = SURE,
        rivals: dict[int, int] | None = None,
        slips: Callable[[int, Sequence[int]], int | None] = lambda position, window: None,
        prompt_tokens: int | None = None,
    ) -> None:
        self.prompt_tokens = prompt_tokens
        self.target = [*target, END]
        self.sure = sure
        self.rivals = rivals or {}
        self.slips = slips
        self.windows: list[list[int]] = []
        self.gate: threading.Event | None = None  # tests may hold each pass up

    def __call__(self, context: list[int], window: list[int]) -> FloatArray:
        if self.gate is not None:
            assert self.gate.wait(10)
        self.windows.append(window)
        done = self._written([*context, window[0]])
        rows = np.zeros((len(window), len(VOCAB)))
        for i in range(len(window)):
            position = done + i
            token = self.target[position] if position < len(self.target) else END
            slip = self.slips(position, window)
            rows[i] = self._row(position, token if slip is None else slip, window)
        return np.log(rows).astype(np.float32)

    def _written(self, context: list[int]) -> int:
        if self.prompt_tokens is not None:
            return len(context) - self.prompt_tokens
        for count in range(min(len(self.target) - 1, len(context)), 0, -1):
            if context[-count:] == self.target[:count]:
                return count
        return 0

    def _row(self, position: int, token: int, window: list[int]) -> FloatArray:
        p = self.sure(position, window)
        row = np.full(len(VOCAB), (1 - p) / 2 / (len(VOCAB) - 1))
        rival = self.rivals.get(position, SPECIAL + ord("~"))
        row[rival] += (1 - p) / 2
        row[token] = p if rival != token else p + (1 - p) / 2
        return row.astype(np.float32)


class Noise:
    """Logits drawn from a hash of the context and the whole window, sharp enough to finish."""

    def __init__(self, seed: int = 0, scale: float = 6.0) -> None:
        self.seed = seed
        self.scale = scale

    def __call__(self, context: list[int], window: list[int]) -> FloatArray:
        key = np.asarray([self.seed, *context, -1, *window], dtype=np.int64).tobytes()
        rng = np.random.default_rng(zlib.crc32(key))
        logits = rng.normal(0, self.scale, (len(window), len(VOCAB)))
        return logits.astype(np.float32)


def fake_tokenizer() -> Tokenizer:
    """Return a real tokenizer with the ids of :data:`VOCAB`, which encodes byte by byte."""
    char_of = {byte: char for char, byte in byte_alphabet().items()}
    special = {END: marks.END, MASK: marks.MASK}
    names = [*marks.MARKS, "<|object_ref_end|>"]  # the last one marks the cursor
    others = [name for name in names if name not in special.values()]
    for i in range(1, SPECIAL - 1):
        special[i] = others[i - 1] if i <= len(others) else f"<unused_{i}>"
    vocab = {name: i for i, name in special.items()}
    for i, data in enumerate(VOCAB[SPECIAL:], start=SPECIAL):
        vocab["".join(char_of[byte] for byte in data)] = i
    return Tokenizer(build_bpe(vocab, [], special), special)
