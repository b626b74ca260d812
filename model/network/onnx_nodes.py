"""Nodes and tensors of one ONNX graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .layout import DATA_FILE
from .quantize import Stored

#: The domain of onnxruntime's own operators.
CONTRIB = "com.microsoft"
_OPSET = 23
_IR_VERSION = 11


def model_of(graph: GraphProto) -> ModelProto:
    """Return a graph as a model of the versions that onnxruntime is asked to run."""
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="redraft"
    )


@dataclass
class Nodes:
    """Parts of a graph; each method that appends a node returns the name that it computes."""

    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, TensorProto] = field(default_factory=dict)
    stored: dict[tuple[str, str], Stored] = field(default_factory=dict)
    scope: str = ""  # of the branch that nodes are appended to; its names begin with it

    def add(self, node: NodeProto) -> None:
        self.nodes.append(node)

    def name(self, op: str) -> str:
        return f"{self.scope}{op}.{len(self.nodes)}"

    @contextmanager
    def branch(self, scope: str) -> Iterator[list[NodeProto]]:
        """Append to a new list meanwhile, a branch of an If.

        It sees what was computed before, and nothing behind it sees what it computes.
        """
        outer = self.nodes, self.scope
        self.nodes, self.scope = [], f"{self.scope}{scope}."
        try:
            yield self.nodes
        finally:
            self.nodes, self.scope = outer

    def op(self, op: str, *inputs: str, out: str = "", domain: str = "", **attrs: Any) -> str:
        return self.ops(op, list(inputs), 1, [out] if out else None, domain, **attrs)[0]

    def ops(
        self,
        op: str,
        inputs: list[str],
        count: int,
        out: list[str] | None = None,
        domain: str = "",
        **attrs: Any,
    ) -> list[str]:
        name = self.name(op)
        outputs = out or [f"{name}.{i}" if count > 1 else name for i in range(count)]
        self.add(helper.make_node(op, inputs, outputs, name=name, domain=domain, **attrs))
        return outputs

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.setdefault(name, numpy_helper.from_array(value, name))
        return name

    def ints(self, name: str, value: int | list[int]) -> str:
        return self.constant(name, np.array(value, np.int64))

    def floats(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, np.float32))

    def store(self, stored: Stored) -> str:
        """Name a large tensor, to be placed in the data file."""
        self.stored[stored.name, stored.format] = stored
        return stored.name

    def initializers(self) -> list[TensorProto]:
        return [*self.constants.values(), *self._placeholders()]

    def _placeholders(self) -> Iterable[TensorProto]:
        for stored in self.stored.values():
            for name, (dtype, shape) in stored.tensors().items():
                tensor = TensorProto(name=name, dims=shape)
                tensor.data_type = helper.np_dtype_to_tensor_dtype(dtype)
                tensor.data_location = TensorProto.EXTERNAL
                tensor.external_data.add(key="location", value=DATA_FILE)
                yield tensor
