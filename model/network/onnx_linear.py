"""Linear maps of a graph, as each variant stores them, and the change of them for masks."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .onnx_nodes import CONTRIB, Nodes, model_of
from .quantize import FLOAT16, FloatArray, Stored, Variant, variant_named

#: Of activations in bytes around 128, where the largest of a row is 1.
_STEP = 1.0 / 127.0
#: Steps of a second byte are so much smaller: what the first leaves over is half a step at most.
_FINER = 1.0 / 254.0
#: Inputs that share a scale in the masks' adapter, whose ranks are small: what fills up a larger
#: block would be multiplied for nothing.
_LOW_RANK_BLOCK = 32
#: Of a row's largest value, so that a row of zeros keeps its bias.
_LEAST = 1e-6
#: Far below the scale of any row, and far from numbers that float32 cannot divide by.
_TINY = 1e-30


class LinearMaps:
    """Products of one graph, appended to its nodes; a method returns the name that it computed."""

    def __init__(self, nodes: Nodes, variant: Variant, mask_rank: int = 0) -> None:
        self._nodes, self._variant, self._mask_rank = nodes, variant, mask_rank
        #: Bytes and scale of each row, by what was quantised.
        self._quantized: dict[str, tuple[str, str]] = {}
        self._zeros = ""  # the byte of zero for each row, which QuantizeLinear asks for

    def count(self, x: str) -> None:
        """Take note that products from here on have as many rows as x [..., n, inputs]."""
        if self._variant.linear == "rows":
            n = self._nodes.op("Shape", x, start=-2, end=-1)
            self._zeros = self._nodes.op("Expand", self._zero(), n)

    def apply(
        self, name: str, sources: list[str], x: str, inputs: int, outputs: int, bias: bool = False
    ) -> str:
        """Multiply x by the stacked weights: [..., inputs] -> [..., outputs]."""
        y = self.with_scale(*self.without_scale(name, sources, x, inputs, outputs))
        if not bias:
            return y
        parts = tuple(f"{source}.bias" for source in sources)
        added = Stored(f"{name}.bias", parts, "whole", (outputs,), self._variant.dtype)
        return self._nodes.op("Add", y, self._nodes.store(added))

    def without_scale(
        self, name: str, sources: list[str], x: str, inputs: int, outputs: int, factor: str = ""
    ) -> tuple[str, str]:
        """Multiply x by the stacked weights, but for a factor of each row.

        That is [..., inputs] -> [..., outputs] and the factor [..., 1], "" where there is none. A
        product that comes next gets the same bytes without it, so that it can be multiplied in at
        the end, over fewer numbers.

        Args:
            factor: that x is without.
        """
        variant = self._variant
        weights = tuple(f"{source}.weight" for source in sources)
        stored = Stored(
            name, weights, variant.linear, (outputs, inputs), variant.dtype, variant.block,
            adapted=True,
        )  # fmt: skip
        if stored.format != "rows":
            return self.product(stored, x), ""
        self._nodes.store(stored)
        y, own = self._rows_product(x, list(stored.tensors()))
        return y, self._nodes.op("Mul", own, factor) if factor else own

    def with_scale(self, y: str, factor: str) -> str:
        """Return y times the factor of each row, both from :meth:`without_scale`."""
        return self._nodes.op("Mul", y, factor) if factor else y

    def product(self, stored: Stored, x: str, bias: str = "", out: str = "") -> str:
        """Multiply x [..., inputs] by a matrix, in the format that it is stored in.

        Blocks have accuracy level 4, which quantises the activations per block as well, without
        which 16 rows take three times as long.

        Args:
            bias: of a matrix in blocks alone.
        """
        outputs, inputs = stored.shape
        self._nodes.store(stored)
        tensors = list(stored.tensors())
        if stored.format == "turned":
            return self._nodes.op("MatMul", x, tensors[0])
        if stored.format == "rows":
            return self.with_scale(*self._rows_product(x, tensors))
        arguments = [x, *tensors, *(["", "", bias] if bias else [])]
        return self._nodes.op(
            "MatMulNBits", *arguments, out=out, domain=CONTRIB, K=inputs, N=outputs,
            bits=8 if stored.format == "blocks" else 4, block_size=stored.block, accuracy_level=4,
        )  # fmt: skip

    def adapt_masks(
        self,
        source: str,
        x: str,
        y: tuple[str, str],
        shape: tuple[int, int],
        which: str,
        index: str,
    ) -> str:
        """Add B (A x) to y in the rows of masks; the other rows keep their bits.

        It copies y, of however few rows: 5 MB of a chunk of prompt.

        Args:
            y: x times the weights that the masks' adapter changes, from :meth:`without_scale`.
                The sum is without its factor as well.
            shape: inputs and outputs of those weights.
            which: rows are masks, [g].
            index: see :meth:`index_of`.
        """
        (inputs, outputs), (product, factor) = shape, y
        rows = self._nodes.op("Gather", x, which, axis=1)  # [1, g, inputs]
        low = self._low_rank(f"{source}.lora_a", rows, inputs, self._mask_rank)
        change = self._low_rank(
            f"{source}.lora_b", low, self._mask_rank, outputs
        )  # [1, g, outputs]
        if factor:
            own = self._nodes.op("Gather", factor, which, axis=1)
            own = self._nodes.op("Max", own, self._nodes.floats("tiny", _TINY))  # 0: a row of zeros
            change = self._nodes.op("Div", change, own)
        return self._nodes.op("ScatterND", product, index, change, reduction="add")

    def _low_rank(self, name: str, x: str, inputs: int, outputs: int) -> str:
        """Multiply x by one side of the masks' adapter."""
        variant = self._variant
        is_float = variant.linear == "turned" or variant.dtype == FLOAT16
        stored = Stored(
            name, (name,), "turned" if is_float else "blocks", (outputs, inputs), variant.dtype,
            _LOW_RANK_BLOCK, of_masks=True,
        )  # fmt: skip
        return self.product(stored, x)

    def index_of(self, rows: str) -> str:
        """Return the places of ``rows`` [g] in [1, n, outputs], for ScatterND: [1, g, 2]."""
        at = self._nodes.op("Unsqueeze", rows, self._nodes.ints("ends", [0, 2]))  # [1, g, 1]
        batch = self._nodes.op("Mul", at, self._nodes.ints("nothing", 0))
        return self._nodes.op("Concat", batch, at, axis=-1)

    def _rows_product(self, x: str, tensors: list[str]) -> tuple[str, str]:
        """Multiply in 8 bits, but for the scale of each row of activations, which is the second.

        The dynamic operators of onnxruntime take one scale for a whole tensor: outliers of one
        token then cost every token its precision (73 % top-1 agreement against 94 %), and results
        depend on which tokens share a chunk.
        """
        nodes = self._nodes
        if x not in self._quantized:
            scale = nodes.op("Mul", self._largest(x), nodes.floats("step", _STEP))  # [..., n, 1]
            scales = nodes.op("Reshape", scale, nodes.ints("last", [-1]))  # [n]
            assert self._zeros, "count was not called"
            values = nodes.op("QuantizeLinear", x, scales, self._zeros, axis=-2)
            self._quantized[x] = values, scale
        values, scale = self._quantized[x]
        return self._integer_product(values, tensors, nodes.floats("one", 1.0)), scale

    def fine_rows_product(self, stored: Stored, x: str, bias: str = "", out: str = "") -> str:
        """Multiply in 8 bits, with two bytes for each activation: [r, inputs] -> [r, outputs].

        A head whose activations have outliers (29 times the deviation, Qwen2.5-Coder-0.5B) needs
        them: over 1,200 rows KL to float32 is 0.00008 (one byte 0.0009, blocks of 64 0.0002),
        0.0014 for SmolLM2-135M (0.014 and 0.0028). What the first byte leaves over is a second
        row of the same product, which waits for the weights longer than for a few rows. One small
        product adds the two up: apart they would lie in memory three times.

        Args:
            bias: float32 [outputs] of zeros, and of numbers far below any product: it is added
                before a row's scale is known, which saves a pass over the outputs.
        """
        nodes, between = self._nodes, self._nodes.ints("between", [1])
        nodes.store(stored)
        largest = self._largest(x)
        unit = nodes.op("Div", x, largest)
        largest = nodes.op("Max", largest, nodes.floats("least", _LEAST))
        coarse = self._bytes(unit, _STEP)
        known = nodes.op("DequantizeLinear", coarse, nodes.floats("step", _STEP), self._zero())
        fine = self._bytes(nodes.op("Sub", unit, known), _STEP * _FINER)
        both = [nodes.op("Unsqueeze", half, between) for half in (coarse, fine)]
        pairs = nodes.op("Concat", *both, axis=1)  # [r, 2, inputs]
        step = nodes.floats("step", _STEP)
        products = self._integer_product(
            pairs, list(stored.tensors()), step, bias
        )  # [r, 2, outputs]
        less = nodes.op("Mul", largest, nodes.floats("finer", _FINER))
        units = nodes.op("Concat", largest, less, axis=-1)  # [r, 2]
        summed = nodes.op("MatMul", nodes.op("Unsqueeze", units, between), products)
        return nodes.op("Squeeze", summed, between, out=out)

    def _largest(self, x: str) -> str:
        """Return the largest magnitude of each row of x, [..., 1].

        A row of zeros is divided to 0 / 0, some byte, and multiplied to zeros again. Of no rows at
        all onnxruntime's ReduceMax made a wrong shape before 1.32: ``Graphs.idle_rows``.
        """
        last = self._nodes.ints("last", [-1])
        return self._nodes.op("ReduceMax", self._nodes.op("Abs", x), last, keepdims=1)

    def _bytes(self, unit: str, step: float) -> str:
        name = "step" if step == _STEP else "fine_step"
        return self._nodes.op("QuantizeLinear", unit, self._nodes.floats(name, step), self._zero())

    def _zero(self) -> str:
        return self._nodes.constant("zero", np.array(128, np.uint8))

    def _integer_product(self, values: str, tensors: list[str], unit: str, bias: str = "") -> str:
        """Multiply bytes around 128, in a unit, by a matrix in rows, and add a bias."""
        matrix, scales = tensors
        inputs = [values, matrix, unit, scales, self._zero()]
        return self._nodes.op(
            "MatMulIntegerToFloat", *inputs, *(["", bias] if bias else []), domain=CONTRIB
        )


def single_product(variant: str, matrix: FloatArray) -> bytes:
    """Return a graph "x" [n, inputs] -> "y" [n, outputs] that multiplies by one matrix.

    Args:
        matrix: [outputs, inputs], kept as a variant keeps linear maps.
    """
    how, nodes, (outputs, inputs) = variant_named(variant), Nodes(), matrix.shape
    stored = Stored("w", ("w",), how.linear, matrix.shape, how.dtype, how.block)
    linear = LinearMaps(nodes, how)
    linear.count("x")
    nodes.op("Identity", linear.product(stored, "x"), out="y")
    arrays = stored.encode({"w": matrix})
    graph = helper.make_graph(
        nodes.nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", inputs])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", outputs])],
        [*nodes.constants.values(), *(numpy_helper.from_array(a, n) for n, a in arrays.items())],
    )
    return bytes(model_of(graph).SerializeToString())
