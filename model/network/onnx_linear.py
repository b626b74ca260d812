"""The linear maps of a graph, as each variant stores them: floats, blocks of 8 or 4 bits, or rows
of 8 bits; and the masks' own change of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..config import ModelConfig
from .onnx_nodes import CONTRIB, Nodes
from .quantize import HALF, Format, Stored, block_size, float_type, format_of


@dataclass
class LinearMaps:
    """Appends the products of one graph to its nodes; each method returns the name it computed.

    Args:
        masks: whether the rows of masks behind judged tokens have an adapter of their own.
    """

    nodes: Nodes
    config: ModelConfig
    variant: str
    masks: bool
    quantized: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: Rows of masks of a tensor, and their index.
    masked: dict[str, str] = field(default_factory=dict)

    def apply(
        self,
        name: str,
        sources: list[str],
        x: str,
        inputs: int,
        outputs: int,
        bias: bool = False,
        tail: bool = False,
    ) -> str:
        """x times the stacked weights; [..., inputs] -> [..., outputs]."""
        how = format_of(self.variant, "linear")
        if tail and how == "rows":
            how = "blocks"  # ReduceMax of no rows returns a wrong shape in onnxruntime 1.31
        stored = Stored(
            name,
            tuple(f"{source}.weight" for source in sources),
            how,
            (outputs, inputs),
            self._dtype,
            block_size(self.variant),
            adapted=True,
        )
        self.nodes.store(stored)
        tensors = list(stored.tensors())
        if how in ("blocks", "nibbles"):
            y = self.blocks_product(x, tensors, inputs, outputs, bits=4 if how == "nibbles" else 8)
        elif how == "rows":
            y = self._rows_product(x, tensors)
        else:
            y = self.nodes.op("MatMul", x, tensors[0])
        if self.masks:
            y = self._adapt_masks(sources, x, y, inputs, outputs, tail)
        if not bias:
            return y
        parts = tuple(f"{source}.bias" for source in sources)
        added = Stored(f"{name}.bias", parts, "vector", (outputs,), self._dtype)
        return self.nodes.op("Add", y, self.nodes.store(added))

    @property
    def _dtype(self) -> np.dtype[Any]:
        return float_type(self.variant)

    def _adapt_masks(
        self, sources: list[str], x: str, y: str, inputs: int, outputs: int, tail: bool
    ) -> str:
        """y plus B (A x) in the rows of masks; the other rows keep their bits. No rows cost
        nothing, as the sum goes into y's own memory."""
        rank = self.config.mask_rank * len(sources)
        which = "scored_masks" if tail else "mask_rows"
        if x not in self.masked:
            self.masked[x] = self.nodes.op("Gather", x, which, axis=1)  # [1, g, inputs]
        low = self._low_rank("lora_a", sources, self.masked[x], inputs, rank)
        change = self._low_rank("lora_b", sources, low, rank, outputs)  # [1, g, outputs]
        return self.nodes.op("ScatterND", y, self._index_of(which), change, reduction="add")

    def _low_rank(self, side: str, sources: list[str], x: str, inputs: int, outputs: int) -> str:
        """x times one side of the masks' adapter, of all ``sources`` in one product: each has a
        rank of its own, so their ``lora_b`` lie along a diagonal."""
        whole = format_of(self.variant, "linear") == "plain" or self.variant in HALF
        how: Format = "plain" if whole else "blocks"
        stored = Stored(
            f"{sources[0]}.{side}",
            tuple(f"{source}.{side}" for source in sources),
            how,
            (outputs, inputs),
            self._dtype,
            block_size(self.variant),
            of_masks=True,
            diagonal=side == "lora_b",
        )
        self.nodes.store(stored)
        tensors = list(stored.tensors())
        if how == "blocks":
            return self.blocks_product(x, tensors, inputs, outputs)
        return self.nodes.op("MatMul", x, tensors[0])

    def _index_of(self, rows: str) -> str:
        """Where ``rows`` [g] lie in [1, n, outputs], for ScatterND: [1, g, 2]."""
        if rows not in self.masked:
            at = self.nodes.op("Unsqueeze", rows, self.nodes.ints("ends", [0, 2]))  # [1, g, 1]
            batch = self.nodes.op("Mul", at, self.nodes.ints("nothing", 0))
            self.masked[rows] = self.nodes.op("Concat", batch, at, axis=-1)
        return self.masked[rows]

    def blocks_product(
        self,
        x: str,
        tensors: list[str],
        inputs: int,
        outputs: int,
        bias: str = "",
        out: str = "",
        bits: int = 8,
    ) -> str:
        """Blocks of 8 or 4 bits; accuracy level 4 quantises the activations per block as well,
        without which 16 rows take three times as long."""
        arguments = [x, *tensors, "", "", bias] if bias else [x, *tensors]
        return self.nodes.ops(
            "MatMulNBits", arguments, 1, out=[out] if out else None, domain=CONTRIB,
            K=inputs, N=outputs, bits=bits, block_size=block_size(self.variant), accuracy_level=4,
        )[0]  # fmt: skip

    def _rows_product(self, x: str, tensors: list[str]) -> str:
        """8-bit product with one scale per row of activations and per output.

        The dynamic operators of onnxruntime take one scale for a whole tensor: outliers of one
        token then cost every token its precision (73 % top-1 agreement against 94 %), and results
        depend on which tokens share a chunk.
        """
        step = self.nodes.floats("step", 1.0 / 127.0)
        zero = self.nodes.constant("zero", np.array(128, np.uint8))
        if x not in self.quantized:
            largest = self.nodes.op(
                "ReduceMax", self.nodes.op("Abs", x), self.nodes.ints("last", [-1]), keepdims=1
            )  # [1, n, 1]; a row of zeros becomes 0 / 0, some byte, and times 0 zeros again
            unit = self.nodes.op("Div", x, largest)
            self.quantized[x] = (self.nodes.op("QuantizeLinear", unit, step, zero), largest)
        values, largest = self.quantized[x]
        matrix, scales = tensors
        inputs = [values, matrix, step, scales, zero]
        y = self.nodes.op("MatMulIntegerToFloat", *inputs, domain=CONTRIB)
        return self.nodes.op("Mul", y, largest)
