"""A sequence on onnxruntime: tokens with their keys and values in one buffer.

Truncating only changes a count.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq

import numpy as np

from ..errors import InvalidRequest
from .backend import CHUNK, IntArray, MaskGuesses, Rows, Scores
from .kv_memory import Buffer
from .onnx_pass import Outputs, Pass, room_for
from .onnx_session import Graphs, Purpose
from .short_head import Predictable

#: ``CHUNK`` where every row is scored: of 32 rows of 151,936 the logits take 19 MB and all that
#: they are made from 80 more, which stay with the process. A short head takes a fifth of that.
SCORED_CHUNK, SHORT_CHUNK = 32, 96

#: Tokens of a prompt at most that wait to be read in the pass behind them, which they make hardly
#: dearer, instead of in another one: a key typed costs so many. From 33 rows on attention goes
#: through other kernels, with other last bits.
FEW = 24


class OnnxSequence:
    """Tokens and their keys and values in one buffer. See ``backend.Sequence``."""

    def __init__(self, graphs: Graphs, buffer: Buffer) -> None:
        self._graphs = graphs
        self._buffer: Buffer | None = buffer
        self._tokens: list[int] = []
        self._waiting = 0  # of the last tokens: their keys and values are not computed yet
        self._passes: dict[tuple[Purpose, frozenset[str]], Pass] = {}
        self._permitted: tuple[int, ...] = graphs.config.ends

    @property
    def tokens(self) -> list[int]:
        """The tokens held, with those that wait."""
        return self._tokens

    @property
    def capacity(self) -> int:
        """The most tokens it holds."""
        return self.buffer.capacity

    @property
    def buffer(self) -> Buffer:
        """The memory of keys and values."""
        assert self._buffer is not None, "this sequence was released"
        return self._buffer

    def adopt(self, tokens: list[int]) -> None:
        """Set the tokens whose keys and values the buffer already holds."""
        self._tokens, self._waiting = list(tokens), 0

    def pretend(self, tokens: list[int]) -> None:
        """Take ``tokens`` for cached without computing them, for measuring.

        Their keys and values are backed by memory, as zeros that were never touched are read
        faster.
        """
        self._graphs.memory.touch(self.buffer)
        self.adopt(tokens)

    def detach(self) -> Buffer:
        """Return the buffer; the sequence cannot be used any more."""
        buffer = self.buffer
        self._buffer = None
        self._passes.clear()
        self.adopt([])
        return buffer

    def permit(self, marks: Seq[int]) -> None:
        """Set the special tokens that may be predicted."""
        self._permitted = tuple(marks)

    def truncate(self, length: int) -> None:
        """Keep the first ``length`` tokens."""
        assert 0 <= length <= len(self._tokens)
        self._waiting = max(self._waiting - (len(self._tokens) - length), 0)
        del self._tokens[length:]

    def extend(self, tokens: IntArray) -> None:
        """Append ``tokens`` [n]; a few wait for the next pass."""
        self._check_room(len(tokens))
        if self._waiting + len(tokens) > FEW or not self._cached:  # behind nothing no row is placed
            self._extend(np.append(self._ahead(), tokens))
        else:
            self._tokens.extend(tokens.tolist())
            self._waiting += len(tokens)

    def settle(self) -> None:
        """Read what waits, so that the buffer holds the keys and values of all tokens."""
        if self._waiting:
            self._extend(self._ahead())

    @property
    def _cached(self) -> int:
        """Tokens whose keys and values are in the buffer."""
        return len(self._tokens) - self._waiting

    def _ahead(self) -> IntArray:
        """Return the tokens that wait: any pass begins with them."""
        return np.asarray(self._tokens[self._cached :], np.int64)

    def _hold(self, tokens: IntArray) -> None:
        """Note that a pass has read what waited and whatever follows it in ``tokens``."""
        self._tokens[self._cached :] = tokens.tolist()
        self._waiting = 0

    def _extend(self, tokens: IntArray) -> None:
        idle = self._graphs.idle_rows
        for start in range(0, len(tokens), CHUNK):
            chunk = tokens[start : start + CHUNK]
            self._append(chunk, chunk[:idle], {})

    def score(
        self,
        tokens: IntArray,
        targets: IntArray | None = None,
        logits: bool = False,
        short: bool = False,
    ) -> Scores:
        """Append ``tokens`` [n] and predict the token after each; see ``backend.Sequence``."""
        self._check_room(len(tokens))
        if len(tokens) + self._waiting > SCORED_CHUNK:
            self.settle()
        following = np.append(tokens[1:], tokens[-1:]) if targets is None else targets
        following = following if following.ndim == 2 else following[:, None]
        vocab = self._graphs.config.vocab if logits else 0
        outputs = room_for(len(tokens), vocab, targets=following.shape[1])
        choice = self._choice(following) if short and not logits else None
        if choice is not None:
            following = choice.indices(following)
        step = SCORED_CHUNK if choice is None else SHORT_CHUNK
        for start in range(0, len(tokens), step):
            part = slice(start, start + step)
            scored = {name: values[part] for name, values in outputs.items()}
            read = np.append(self._ahead(), tokens[part])
            self._append(read, following[part], scored, self._waiting, choice)
        return scores_of(outputs, choice=choice)

    def _choice(self, targets: IntArray) -> Predictable | None:
        """Return what a pass with the short head may predict; None: it has the whole head."""
        head = self._graphs.short_head
        if head is None:
            return None
        named = np.append(targets.ravel(), np.asarray(self._permitted, np.int64))
        return head.choice(np.asarray(self._tokens, np.int64), named)

    def read(self, rows: Rows, logits: bool = False, short: bool = False) -> Scores:
        """Append ``rows``, except masks, and predict the token after each; see ``Sequence``.

        What waits is read ahead of them, and a single row twice, as in :meth:`_append`.
        """
        n = len(rows.tokens)
        kept = n - rows.masks
        if not self._cached:
            # Without a cache GroupQueryAttention takes only the first position and counts on.
            assert rows.sees.shape[1] == n, "nothing is held that rows could see"
            return self.score(rows.tokens[:kept], rows.targets[:kept], logits, short)
        cached, first = self._cached, self._waiting
        twin = int(n == 1 and not first)
        self._check_room(n + twin)
        scored = first + np.arange(n, dtype=np.int64)
        read = np.concatenate([self._ahead(), rows.tokens, rows.tokens[:twin]])
        at = rows.positions
        placed = np.concatenate([cached + np.arange(first), at, at[:twin] + 1])
        width, held = first + n + twin, cached + first
        unseen = np.zeros((n, cached + width), np.bool_)
        unseen[:, held + 1 : held + 1 + twin] = True
        before = np.arange(held - (rows.sees.shape[1] - n), held)
        unseen[:, np.concatenate([before, cached + scored])] = ~rows.sees
        bias = np.zeros((1, 1, width, cached + width), self._graphs.dtype)
        bias[0, 0, scored] = np.where(unseen, self._graphs.unseen, 0.0)
        config, sampler = self._graphs.config, self._graphs.sampler if rows.masks else None
        vocab, guessed = config.vocab if logits else 0, rows.masks if sampler else 0
        outputs = room_for(n, vocab, guessed, config.hidden)
        is_short = short and not logits and not rows.masks
        choice = self._choice(rows.targets) if is_short else None
        one = self._pass("placed", outputs)
        one.place(placed, bias)
        one.predict_among(choice)
        targets = rows.targets if choice is None else choice.indices(rows.targets)
        one.run(read, cached, scored, targets, outputs, rows.masks)
        self._hold(read[: first + kept])
        if not rows.masks:
            return scores_of(outputs, choice=choice)
        confidence = np.exp(outputs["top_logprob"][kept:, 0])
        guesses = MaskGuesses(outputs["top"][kept:], confidence)
        if sampler is not None:
            logit, hidden = outputs["mask_logit"], outputs["mask_hidden"]
            guesses = MaskGuesses(outputs["mask_token"], confidence, logit, hidden, sampler)
        return scores_of(outputs, kept)._replace(masks=guesses)

    def _append(
        self,
        chunk: IntArray,
        targets: IntArray,
        outputs: Outputs,
        first: int = 0,
        choice: Predictable | None = None,
    ) -> None:
        """Append ``chunk`` and score ``targets``, each after the token of its index past ``first``.

        A single token is run twice, one behind the other, and the second is forgotten: one row
        goes through other kernels than several, whose last bits differ, and quantised activations
        grow that to 7 % of a key over 30 layers (300 single tokens on the real weights). From two
        rows on, keys and values are equal bit by bit however a prompt is chunked, in fp32 and int8;
        the second row costs a fifth of the first.
        """
        cached = self._cached
        alone = len(chunk) == 1 and cached + 2 <= self.capacity
        tokens = np.repeat(chunk, 2) if alone else chunk
        rows = first + np.arange(len(targets), dtype=np.int64)
        one = self._pass("causal", outputs)
        one.predict_among(choice)
        one.run(tokens, cached, rows, targets, outputs)
        self._hold(chunk)

    def _pass(self, purpose: Purpose, outputs: Iterable[str]) -> Pass:
        """Return a binding per purpose and per set of outputs: these cannot be unbound singly."""
        key = (purpose, frozenset(outputs))
        if key not in self._passes:
            self._passes[key] = Pass(self._graphs, purpose, self.buffer)
        one = self._passes[key]
        one.suppress(self._graphs.suppression_bias(self._permitted))
        config = self._graphs.config  # in a conversation each special token has its meaning
        one.ends_at_specials = config.specials_end and self._permitted == config.ends
        return one

    def _check_room(self, count: int) -> None:
        if len(self._tokens) + count > self.capacity:
            raise InvalidRequest(
                f"{len(self._tokens):,} + {count:,} tokens do not fit in a sequence of "
                f"{self.capacity:,}: ask for more room when acquiring it."
            )


def scores_of(
    outputs: Outputs, rows: int | None = None, choice: Predictable | None = None
) -> Scores:
    """Return what a pass computed of its first ``rows``; None: of all."""
    logits, of_targets = outputs.get("logits"), outputs["target_logprob"][:rows]
    top = outputs["top"][:rows]
    return Scores(
        top if choice is None else choice.tokens[top],
        outputs["top_logprob"][:rows],
        of_targets[:, 0] if of_targets.shape[1] == 1 else of_targets,
        None if logits is None else logits[:rows],
    )
