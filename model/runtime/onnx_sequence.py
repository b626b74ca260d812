"""A sequence on onnxruntime: tokens with their keys and values in one buffer, and what can be asked
of them. Rolling back is only counting. Knows nothing of where buffers come from."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidRequest
from .backend import CHUNK, CanvasOutput, CausalOutput, IntArray, JudgedOutput, MaskGuesses
from .kv_memory import Buffer
from .onnx_graphs import Graphs, Purpose
from .onnx_pass import Outputs, Pass, room_for, room_for_masks

#: ``CHUNK`` where every row is judged: of 32 rows of 151,936 the logits take 19 MB and all that
#: they are made from 80 more, which stay with the process. A pass over 64 is hardly cheaper than
#: two over 32.
VERIFY_CHUNK = 32

#: Tokens of a prompt at most that wait to be read in the pass behind them, which they make hardly
#: dearer, instead of in one of their own: a key typed costs so many. From 33
#: rows on attention goes through other kernels, with other last bits.
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
        return self._tokens

    @property
    def capacity(self) -> int:
        return self.buffer.capacity

    @property
    def buffer(self) -> Buffer:
        assert self._buffer is not None, "this sequence was released"
        return self._buffer

    def adopt(self, tokens: list[int]) -> None:
        """The buffer already holds the keys and values of ``tokens``."""
        self._tokens, self._waiting = list(tokens), 0

    def pretend(self, tokens: list[int]) -> None:
        """Take ``tokens`` for cached without computing them, their keys and values in memory that
        is really there: for measuring, as zeros that were never touched are read faster."""
        self._graphs.memory.touch(self.buffer)
        self.adopt(tokens)

    def detach(self) -> Buffer:
        buffer = self.buffer
        self._buffer = None
        self._passes.clear()
        self.adopt([])
        return buffer

    def permit(self, marks: Seq[int]) -> None:
        self._permitted = tuple(marks)

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self._tokens)
        self._waiting = max(self._waiting - (len(self._tokens) - length), 0)
        del self._tokens[length:]

    def prefill(self, tokens: IntArray) -> None:
        self._check_room(len(tokens))
        if self._waiting + len(tokens) > FEW or not self._cached:  # behind nothing no row is placed
            self._prefill(np.append(self._ahead(), tokens))
        else:
            self._tokens.extend(tokens.tolist())
            self._waiting += len(tokens)

    def settle(self) -> None:
        """Read what waits, so that the buffer holds the keys and values of all tokens."""
        if self._waiting:
            self._prefill(self._ahead())

    @property
    def _cached(self) -> int:
        """Tokens whose keys and values are in the buffer."""
        return len(self._tokens) - self._waiting

    def _ahead(self) -> IntArray:
        """The tokens that wait: any pass begins with them."""
        return np.asarray(self._tokens[self._cached :], np.int64)

    def _hold(self, tokens: IntArray) -> None:
        """The pass is done that read what waited and whatever follows it in ``tokens``."""
        self._tokens[self._cached :] = tokens.tolist()
        self._waiting = 0

    def _prefill(self, tokens: IntArray) -> None:
        idle = self._graphs.idle_rows
        for start in range(0, len(tokens), CHUNK):
            chunk = tokens[start : start + CHUNK]
            self._append(chunk, chunk[:idle], {})

    def verify(self, tokens: IntArray, logits: bool = False) -> CausalOutput:
        self._check_room(len(tokens))
        if len(tokens) + self._waiting > VERIFY_CHUNK:
            self.settle()
        n = len(tokens)
        outputs = self._room_for(n, targets=True, logits=logits)
        following = np.append(tokens[1:], tokens[-1:])  # nobody reads the last one's target
        for start in range(0, n, VERIFY_CHUNK):
            part = slice(start, start + VERIFY_CHUNK)
            spoken = {name: values[part] for name, values in outputs.items()}
            read = np.append(self._ahead(), tokens[part])
            self._append(read, following[part], spoken, self._waiting)
        return _causal(outputs, n)

    def judge(
        self,
        tokens: IntArray,
        positions: IntArray,
        sees: NDArray[np.bool_],
        judging: int,
        logits: bool = False,
    ) -> JudgedOutput:
        if judging == len(tokens) or not self._cached:
            # Without a cache GroupQueryAttention takes only the first position and counts on.
            return JudgedOutput(self.verify(tokens[:judging], logits))
        sampler, masks = self._graphs.sampler, len(tokens) - judging
        outputs = self._room_for(len(tokens), targets=True, logits=logits)
        if sampler is not None:
            outputs |= room_for_masks(masks, self._graphs.config.hidden)
        at, following = len(self._tokens) + positions, np.append(tokens[1:], tokens[-1:])
        self._read_placed(tokens, at, sees, masks, following, outputs)
        sure = outputs["confidence"][judging:, 0]
        if sampler is None:
            alone = MaskGuesses(outputs["token"][judging:], sure)
            return JudgedOutput(_causal(outputs, judging), alone)
        logit, hidden = outputs["mask_logit"], outputs["mask_hidden"]
        guesses = MaskGuesses(outputs["mask_token"], sure, logit, hidden, sampler)
        return JudgedOutput(_causal(outputs, judging), guesses)

    @property
    def branches(self) -> bool:
        """Whether a graph that takes any positions reads as the judge does."""
        config = self._graphs.config
        if config.attention != "canvas":
            return False
        return self._graphs.places or config.adapter in ("none", "all")

    def branch(
        self, tokens: IntArray, depths: IntArray, sees: NDArray[np.bool_], base: int
    ) -> CausalOutput:
        outputs = self._room_for(len(tokens), logits=True)
        self._read_placed(tokens, base + depths, sees, 0, tokens, outputs)
        token, confidence = outputs["token"][:, 0], outputs["confidence"][:, 0]
        return CausalOutput(token, confidence, np.empty(0, np.float32), outputs["logits"])

    def _read_placed(
        self,
        tokens: IntArray,
        at: IntArray,
        sees: NDArray[np.bool_],
        masks: int,
        targets: IntArray,
        outputs: Outputs,
    ) -> None:
        """Read ``tokens`` [n] at the positions ``at`` [n] and append them, but for the last
        ``masks``; ``outputs`` speak of all.

        Args:
            sees: [n, k + n] what each looks at: the last k tokens held, and these; it sees all that
                comes before.

        What waits is read ahead of them, and a single row twice, as in :meth:`_append`.
        """
        if not self._graphs.places:
            self.settle()
        n, cached, first = len(tokens), self._cached, self._waiting
        twin = int(n == 1 and not first)
        self._check_room(n + twin)
        rows = first + np.arange(n, dtype=np.int64)
        read = np.concatenate([self._ahead(), tokens, tokens[:twin]])
        placed = np.concatenate([cached + np.arange(first), at, at[:twin] + 1])
        width, held = first + n + twin, cached + first
        unseen = np.zeros((n, cached + width), np.bool_)
        unseen[:, held + 1 : held + 1 + twin] = True
        before = np.arange(held - (sees.shape[1] - n), held)
        unseen[:, np.concatenate([before, cached + rows])] = ~sees
        bias = np.zeros((1, 1, width, cached + width), self._graphs.dtype)
        bias[0, 0, rows] = np.where(unseen, self._graphs.unseen, 0.0)
        one = self._pass("judge" if self._graphs.places else "packed", outputs)
        one.place(placed, bias)
        one.run(read, cached, rows, targets, outputs, masks)
        self._hold(read[: first + n - masks])

    def _append(self, chunk: IntArray, targets: IntArray, outputs: Outputs, first: int = 0) -> None:
        """Append ``chunk``; ``outputs`` are filled with what is said of ``targets``, each after
        the token of the same index from ``first`` on.

        A single token is run twice, one behind the other, and the second is forgotten: one row
        goes through other kernels than several, whose last bits differ, and quantised activations
        grow that to 7 % of a key over 30 layers (300 single tokens on the real weights). From two
        rows on, keys and values are equal bit by bit however a prompt is chunked, in fp32, q8 and
        int8; the second row costs a fifth of the first.
        """
        cached = self._cached
        alone = len(chunk) == 1 and cached + 2 <= self.capacity
        tokens = np.repeat(chunk, 2) if alone else chunk
        rows = first + np.arange(len(targets), dtype=np.int64)
        self._pass("prefill", outputs).run(tokens, cached, rows, targets, outputs)
        self._hold(chunk)

    def denoise(self, window: IntArray, logits: bool = False) -> CanvasOutput:
        self.settle()
        read = window if self._graphs.config.logit_shift else self._with_ahead(window)
        self._check_room(len(read))
        outputs = self._room_for(len(window), logits=logits)
        one = self._pass("denoise", outputs)
        cached, rows = len(self._tokens), np.arange(len(read), dtype=np.int64)
        if one.placed:
            nothing_hidden = np.zeros((1, 1, len(read), cached + len(read)), self._graphs.dtype)
            one.place(cached + rows, nothing_hidden)
        rows = rows[len(read) - len(window) :]
        one.run(read, cached, rows, read[rows], outputs)
        return CanvasOutput(
            outputs["token"][:, 0], outputs["confidence"][:, 0], outputs.get("logits")
        )

    def _with_ahead(self, window: IntArray) -> IntArray:
        """Return ``window`` with one mask more: weights without the shift predict a masked position
        in its own place, so they are asked one place further on."""
        return np.append(window, self._graphs.config.mask_token)

    def _pass(self, purpose: Purpose, outputs: Iterable[str]) -> Pass:
        """One binding per purpose and per set of outputs: they cannot be unbound one by one."""
        key = (purpose, frozenset(outputs))
        if key not in self._passes:
            self._passes[key] = Pass(self._graphs, purpose, self.buffer)
        one = self._passes[key]
        one.suppress(self._graphs.suppressed(self._permitted))
        one.ends = self._graphs.special_ends if len(self._permitted) > 1 else None
        if one.ends is not None and self._permitted != self._graphs.config.ends:
            one.ends = None  # a conversation, whose marks mean something each
        return one

    def _room_for(self, rows: int, *, targets: bool = False, logits: bool = False) -> Outputs:
        return room_for(rows, targets, self._graphs.config.vocab if logits else 0)

    def _check_room(self, count: int) -> None:
        if len(self._tokens) + count > self.capacity:
            raise InvalidRequest(
                f"{len(self._tokens):,} + {count:,} tokens do not fit in a sequence of "
                f"{self.capacity:,}: ask for more room when acquiring it."
            )


def _causal(outputs: Outputs, judged: int) -> CausalOutput:
    """What a pass said of its first ``judged`` rows, each one's target the next one's token."""
    logits = outputs.get("logits")
    return CausalOutput(
        outputs["token"][:judged, 0],
        outputs["confidence"][:judged, 0],
        outputs["log_probability"][: judged - 1, 0],
        None if logits is None else logits[:judged],
    )
