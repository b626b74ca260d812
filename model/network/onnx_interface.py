"""What goes into and comes out of a graph, and the model around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from ..config import CANDIDATES, ModelConfig
from .onnx_nodes import CONTRIB, Nodes
from .quantize import HALF, Stored, float_type

Form = Literal["shared", "prefill", "denoise", "packed"]
FORMS: tuple[Form, ...] = get_args(Form)

_OPSET = 23
_IR_VERSION = 11


@dataclass(frozen=True, slots=True)
class Graph:
    """A model whose large tensors are named but not yet placed in a data file."""

    model: ModelProto
    stored: tuple[Stored, ...]


def reads_masks(config: ModelConfig, form: Form) -> bool:
    """Whether a graph reads masks behind judged tokens."""
    return config.adapter == "masks" and form in ("shared", "prefill")


def samples(config: ModelConfig, form: Form) -> bool:
    """Whether a graph says of masks what a sampler asks."""
    return config.sampler > 0 and reads_masks(config, form)


def reads_placed(config: ModelConfig, variant: str, form: Form) -> bool:
    """Whether a causal graph also reads rows whose positions, and what each sees, are given: masks
    behind judged tokens, or the branches of a tree. CUDA's fused attention takes no bias."""
    if config.attention != "canvas" or form not in ("shared", "prefill"):
        return False
    return variant not in HALF or config.adapter == "masks"


def graph_of(nodes: Nodes, config: ModelConfig, variant: str, form: Form) -> Graph:
    """The model of all nodes; its inputs and outputs are those of ``onnx_graph.build``."""
    kind = helper.np_dtype_to_tensor_dtype(float_type(variant))
    graph = helper.make_graph(
        nodes.nodes,
        f"redraft.{form}",
        [*_inputs(config, variant, form, kind), *_caches("past", config, kind)],
        [*_outputs(config, form), *_caches("present", config, kind)],
        initializer=nodes.initializers(),
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="redraft"
    )
    return Graph(model, tuple(nodes.stored.values()))


def _inputs(config: ModelConfig, variant: str, form: Form, kind: int) -> list[ValueInfoProto]:
    info = helper.make_tensor_value_info
    half, placed = config.head_dim // 2, reads_placed(config, variant, form)
    values = [
        info("embedded", kind, [1, "n", config.hidden]),
        info("seqlens_k", TensorProto.INT32, [1]),
        info("total", TensorProto.INT32, []),
        info("cos", kind, ["positions", half]),
        info("sin", kind, ["positions", half]),
        info("suppressed", TensorProto.FLOAT, [config.vocab]),
        info("rows", TensorProto.INT64, ["r"]),
        info("targets", TensorProto.INT64, ["r"]),
    ]
    if form == "shared":
        values += [info("causal", TensorProto.BOOL, [])]
    if placed:
        values += [info("placed", TensorProto.BOOL, [])]
    if form in ("packed", "shared") or placed:
        values += [info("positions", TensorProto.INT64, [1, "given"])]
    if reads_masks(config, form):
        values += [
            info("mask_rows", TensorProto.INT64, ["g"]),
            info("scored_masks", TensorProto.INT64, ["g"]),
        ]
    if form in ("packed", "shared") or placed or config.attention == "block":
        values += [info("bias", kind, [1, 1, "given", "all"])]
    return values


def _outputs(config: ModelConfig, form: Form) -> list[ValueInfoProto]:
    info = helper.make_tensor_value_info
    values = [
        info("log_probability", TensorProto.FLOAT, ["r", 1]),
        info("token", TensorProto.INT64, ["r", 1]),
        info("confidence", TensorProto.FLOAT, ["r", 1]),
        info("logits", TensorProto.FLOAT, ["r", config.vocab]),
    ]
    if samples(config, form):
        values += [
            info("mask_token", TensorProto.INT64, ["g", CANDIDATES]),
            info("mask_logit", TensorProto.FLOAT, ["g", CANDIDATES]),
            info("mask_hidden", TensorProto.FLOAT, ["g", config.hidden]),
        ]
    return values


def _caches(prefix: str, config: ModelConfig, kind: int) -> list[ValueInfoProto]:
    shape: list[str | int | None] = [1, config.kv_heads, "capacity", config.head_dim]
    return [
        helper.make_tensor_value_info(f"{prefix}_{part}.{layer}", kind, shape)
        for layer in range(config.layers)
        for part in ("key", "value")
    ]
