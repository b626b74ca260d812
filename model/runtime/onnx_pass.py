"""A pass through a graph that is bound to a KV buffer.

Past and present are the same memory, so a pass copies no cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import CANDIDATES
from ..network.layout import TOP
from .backend import IntArray
from .kv_memory import Buffer
from .onnx_session import Graphs, Purpose
from .short_head import Predictable

#: What a pass fills, by the names of the graph's outputs.
Outputs = dict[str, NDArray[Any]]


def room_for(
    rows: int, vocab: int = 0, masks: int = 0, hidden: int = 0, targets: int = 1
) -> Outputs:
    """Return memory for the scores of ``rows``.

    That is top int64 and top_logprob float32 [rows, TOP], target_logprob float32 [rows, targets];
    with a ``vocab`` logits float32 [rows, vocab]; and for the sampler of ``masks`` mask_token int64
    and mask_logit float32 [masks, CANDIDATES], mask_hidden float32 [masks, hidden].
    """
    outputs: Outputs = {
        "top": np.empty((rows, TOP), np.int64),
        "top_logprob": np.empty((rows, TOP), np.float32),
        "target_logprob": np.empty((rows, targets), np.float32),
    }
    if vocab:
        outputs["logits"] = np.empty((rows, vocab), np.float32)
    if masks:
        outputs["mask_token"] = np.empty((masks, CANDIDATES), np.int64)
        outputs["mask_logit"] = np.empty((masks, CANDIDATES), np.float32)
        outputs["mask_hidden"] = np.empty((masks, hidden), np.float32)
    return outputs


class Pass:
    """A graph bound to one KV buffer; only the small inputs and the outputs change per run."""

    def __init__(self, graphs: Graphs, purpose: Purpose, buffer: Buffer) -> None:
        self._graphs, self._runtime = graphs, graphs.runtime
        # On a canvas masks have the embedding that it has learnt. In weights that never read
        # causally it is in the table like that of any other token.
        self._canvas = graphs.config.attention == "canvas" and purpose != "causal"
        self._form = form = graphs.form_for(purpose)
        self.ends_at_specials = False  # any special token is read as END
        self._binding = graphs.sessions[form].io_binding()
        self._nothing = self._value(np.empty(0, np.float32))
        self._fed: dict[str, Any] = {}  # the binding does not keep the arrays alive
        for name, value in buffer.values():
            self._binding.bind_ortvalue_input(f"past_{name}", value)
            self._binding.bind_ortvalue_output(f"present_{name}", value)
        cos, sin = graphs.tables(buffer.capacity)
        self._binding.bind_ortvalue_input("cos", cos)
        self._binding.bind_ortvalue_input("sin", sin)
        if form == "causal":
            self.feed("placed", np.array(purpose == "placed"))
            self.place(np.empty(0, np.int64), np.empty((1, 1, 0, 0), graphs.dtype))
        self._takes_masks = form == "causal" and graphs.config.adapter == "masks"
        self.predict_among(None)

    def suppress(self, bias: Any) -> None:
        """Set the OrtValue [vocab] that is added to the logits of the next pass."""
        self._binding.bind_ortvalue_input("suppressed", bias)

    def place(self, positions: IntArray, bias: NDArray[Any]) -> None:
        """Set the positions [n] of the next tokens and their attention bias [1, 1, n, total]."""
        self.feed("positions", positions[None])
        self.feed("bias", bias)

    def predict_among(self, choice: Predictable | None) -> None:
        """Set what the next pass may predict: a choice of the short head, or None: all tokens.

        ``targets`` and ``top`` are indices into a choice.
        """
        if self._graphs.short_head is None or self._form != "causal":
            return
        self.feed("short", np.array(choice is not None))
        nothing = np.empty((self._graphs.config.hidden, 0), self._graphs.dtype)
        self.feed("extra", nothing if choice is None else choice.extra)

    def feed(self, name: str, array: NDArray[Any]) -> None:
        """Bind a small input; where the device is not the CPU, this copies it there."""
        value = self._value(array)
        self._fed[name] = value
        self._binding.bind_ortvalue_input(name, value)

    def run(
        self,
        tokens: IntArray,
        cached: int,
        rows: IntArray,
        targets: IntArray,
        outputs: Outputs,
        masks: int = 0,
    ) -> None:
        """Run over ``tokens`` [n] behind ``cached`` tokens and fill ``outputs``.

        Args:
            rows: [r] indices of the tokens that are scored.
            targets: [r] or [r, k] tokens behind these.
            masks: so many of the last tokens are masks behind verified tokens.
        """
        total = cached + len(tokens)
        if self._takes_masks:
            self.feed("mask_rows", np.arange(len(tokens) - masks, len(tokens), dtype=np.int64))
            self.feed("scored_masks", np.flatnonzero(rows >= len(tokens) - masks))
        self.feed("embedded", self._graphs.embedding.rows(tokens, self._canvas))
        self.feed("seqlens_k", np.array([total - 1], np.int32))
        self.feed("total", np.array(total, np.int32))
        self.feed("rows", rows)
        self.feed("targets", targets if targets.ndim == 2 else targets[:, None])
        for name, array in outputs.items():
            self._binding.bind_ortvalue_output(name, self._value(array))
        self._graphs.run(self._form, self._binding)
        for name in outputs:  # the binding would hold them, a pass for each sequence of the cache
            self._binding.bind_ortvalue_output(name, self._nothing)
        if self.ends_at_specials and outputs:
            self._graphs.end_at_specials(outputs)

    def _value(self, array: NDArray[Any]) -> Any:
        return self._runtime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
