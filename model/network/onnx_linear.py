"""The linear maps of a graph, as each variant stores them: floats, blocks of 8 or 4 bits, or rows
of 8 bits; and the masks' own change of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..config import ModelConfig
from .onnx_nodes import CONTRIB, Nodes
from .quantize import HALF, Format, Stored, block_size, float_type, format_of

#: Of activations in bytes around 128, where the largest of a row is 1.
_STEP = 1.0 / 127.0
#: Steps of a second byte are so much smaller: what the first leaves over is half a step at most.
_FINER = 1.0 / 254.0
#: Inputs that share a scale in the masks' adapter, whose ranks are small: what fills up a larger
#: block would be multiplied for nothing.
_LOW_RANK_BLOCK = 32
#: Of a row's largest value, so that a row of zeros keeps its bias.
_LEAST = 1e-6


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
    #: By rows of masks their index.
    _indices: dict[str, str] = field(default_factory=dict)

    def apply(
        self,
        name: str,
        sources: list[str],
        x: str,
        inputs: int,
        outputs: int,
        bias: bool = False,
    ) -> str:
        """x times the stacked weights; [..., inputs] -> [..., outputs]."""
        how = format_of(self.variant, "linear")
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
        if not bias:
            return y
        parts = tuple(f"{source}.bias" for source in sources)
        added = Stored(f"{name}.bias", parts, "vector", (outputs,), self._dtype)
        return self.nodes.op("Add", y, self.nodes.store(added))

    @property
    def _dtype(self) -> np.dtype[Any]:
        return float_type(self.variant)

    def adapt_masks(
        self, sources: list[str], x: str, y: str, inputs: int, outputs: int, which: str
    ) -> str:
        """y plus B (A x) in the rows of masks; the other rows keep their bits. Copies y, of however
        few rows: 10 MB a layer of a chunk of prompt.

        Args:
            y: x times the weights that the masks' adapter changes.
            which: rows are masks; of these :meth:`index_of` was asked where all layers see it.
        """
        rank = self.config.mask_rank * len(sources)
        rows = self.nodes.op("Gather", x, which, axis=1)  # [1, g, inputs]
        low = self._low_rank("lora_a", sources, rows, inputs, rank)
        change = self._low_rank("lora_b", sources, low, rank, outputs)  # [1, g, outputs]
        return self.nodes.op("ScatterND", y, self.index_of(which), change, reduction="add")

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
            _LOW_RANK_BLOCK,
            of_masks=True,
            diagonal=side == "lora_b",
        )
        self.nodes.store(stored)
        tensors = list(stored.tensors())
        if how == "blocks":
            return self.blocks_product(x, tensors, inputs, outputs, block=_LOW_RANK_BLOCK)
        return self.nodes.op("MatMul", x, tensors[0])

    def index_of(self, rows: str) -> str:
        """Where ``rows`` [g] lie in [1, n, outputs], for ScatterND: [1, g, 2]. One for all
        layers."""
        if rows not in self._indices:
            at = self.nodes.op("Unsqueeze", rows, self.nodes.ints("ends", [0, 2]))  # [1, g, 1]
            batch = self.nodes.op("Mul", at, self.nodes.ints("nothing", 0))
            self._indices[rows] = self.nodes.op("Concat", batch, at, axis=-1)
        return self._indices[rows]

    def blocks_product(
        self,
        x: str,
        tensors: list[str],
        inputs: int,
        outputs: int,
        bias: str = "",
        out: str = "",
        bits: int = 8,
        block: int = 0,
    ) -> str:
        """Blocks of 8 or 4 bits; accuracy level 4 quantises the activations per block as well,
        without which 16 rows take three times as long.

        Args:
            block: inputs that share a scale; 0: as the variant has it.
        """
        arguments = [x, *tensors, "", "", bias] if bias else [x, *tensors]
        block = block or block_size(self.variant)
        return self.nodes.ops(
            "MatMulNBits", arguments, 1, out=[out] if out else None, domain=CONTRIB,
            K=inputs, N=outputs, bits=bits, block_size=block, accuracy_level=4,
        )[0]  # fmt: skip

    def _rows_product(self, x: str, tensors: list[str]) -> str:
        """8-bit product with one scale per row of activations and per output.

        The dynamic operators of onnxruntime take one scale for a whole tensor: outliers of one
        token then cost every token its precision (73 % top-1 agreement against 94 %), and results
        depend on which tokens share a chunk.
        """
        if x not in self.quantized:
            unit, largest = self._unit(x)
            self.quantized[x] = (self._bytes(unit, _STEP), largest)
        values, largest = self.quantized[x]
        return self.nodes.op("Mul", self._integer_product(values, tensors), largest)

    def fine_rows_product(self, x: str, tensors: list[str], bias: str, out: str) -> str:
        """The same with two bytes for each activation: [r, inputs] -> [r, outputs].

        A head whose activations have outliers (29 times the deviation, Qwen2.5-Coder-0.5B) needs
        them: over 1,200 rows KL to float32 is 0.00008 (one byte 0.0009, blocks of 64 0.0002),
        0.0014 for SmolLM2-135M (0.014 and 0.0028). What the first byte leaves over is a second
        row of the same product, which waits for the weights longer than for a few rows. One small
        product adds the two up: apart they would lie in memory three times.

        Args:
            bias: float32 [outputs] of zeros, and of numbers far below any product: it is added
                before a row's scale is known, which saves a pass over the outputs.
        """
        unit, largest = self._unit(x)
        largest = self.nodes.op("Max", largest, self.nodes.floats("least", _LEAST))
        coarse = self._bytes(unit, _STEP)
        known = self.nodes.op(
            "DequantizeLinear", coarse, self.nodes.floats("step", _STEP), self._zero()
        )
        fine = self._bytes(self.nodes.op("Sub", unit, known), _STEP * _FINER)
        between = self.nodes.ints("between", [1])
        both = [self.nodes.op("Unsqueeze", half, between) for half in (coarse, fine)]
        pairs = self.nodes.op("Concat", *both, axis=1)  # [r, 2, inputs]
        products = self._integer_product(pairs, tensors, bias)  # [r, 2, outputs]
        less = self.nodes.op("Mul", largest, self.nodes.floats("finer", _FINER))
        units = self.nodes.op("Concat", largest, less, axis=-1)  # [r, 2]
        summed = self.nodes.op("MatMul", self.nodes.op("Unsqueeze", units, between), products)
        return self.nodes.op("Squeeze", summed, between, out=out)

    def _unit(self, x: str) -> tuple[str, str]:
        """Each row of x divided by its largest value, and that: [..., 1].

        A row of zeros becomes 0 / 0, some byte, and times 0 zeros again. Of no rows at all
        onnxruntime's ReduceMax made a wrong shape before 1.32: ``Graphs.idle_rows``.
        """
        last = self.nodes.ints("last", [-1])
        largest = self.nodes.op("ReduceMax", self.nodes.op("Abs", x), last, keepdims=1)
        return self.nodes.op("Div", x, largest), largest

    def _bytes(self, unit: str, step: float) -> str:
        name = "step" if step == _STEP else "fine_step"
        return self.nodes.op("QuantizeLinear", unit, self.nodes.floats(name, step), self._zero())

    def _zero(self) -> str:
        return self.nodes.constant("zero", np.array(128, np.uint8))

    def _integer_product(self, values: str, tensors: list[str], bias: str = "") -> str:
        """Bytes around 128, in units of 1/127, times a matrix in rows, and a bias if there is."""
        matrix, scales = tensors
        inputs = [values, matrix, self.nodes.floats("step", _STEP), scales, self._zero()]
        inputs += ["", bias] if bias else []
        return self.nodes.op("MatMulIntegerToFloat", *inputs, domain=CONTRIB)
