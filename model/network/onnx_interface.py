"""Inputs and outputs of a graph, and the model around it."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from ..config import CANDIDATES, ModelConfig
from .frequent import has_short_head
from .layout import TOP, Form
from .onnx_nodes import Nodes, model_of
from .quantize import Stored, Variant


@dataclass(frozen=True, slots=True)
class Graph:
    """A model whose large tensors are named but not yet placed in a data file."""

    model: ModelProto
    stored: tuple[Stored, ...]


def reads_masks(config: ModelConfig, form: Form) -> bool:
    """Return whether a graph reads masks behind verified tokens."""
    return config.adapter == "masks" and form == "causal"


def samples(config: ModelConfig, form: Form) -> bool:
    """Return whether a graph computes what the sampler of masks needs."""
    return config.sampler > 0 and reads_masks(config, form)


def graph_of(nodes: Nodes, config: ModelConfig, variant: Variant, form: Form) -> Graph:
    """Return the model of all nodes, with the inputs and outputs of ``onnx_graph.build``."""
    kind = helper.np_dtype_to_tensor_dtype(variant.dtype)
    inputs = _inputs(config, form, kind)
    if has_short_head(config, variant, form):
        inputs.append(helper.make_tensor_value_info("short", TensorProto.BOOL, []))
        inputs.append(helper.make_tensor_value_info("extra", kind, [config.hidden, "e"]))
    graph = helper.make_graph(
        nodes.nodes,
        f"redraft.{form}",
        [*inputs, *_caches("past", config, kind)],
        [*_outputs(config, form), *_caches("present", config, kind)],
        initializer=nodes.initializers(),
    )
    return Graph(model_of(graph), tuple(nodes.stored.values()))


def _inputs(config: ModelConfig, form: Form, kind: int) -> list[ValueInfoProto]:
    info = helper.make_tensor_value_info
    half = config.head_dim // 2
    values = [
        info("embedded", kind, [1, "n", config.hidden]),
        info("seqlens_k", TensorProto.INT32, [1]),
        info("total", TensorProto.INT32, []),
        info("cos", kind, ["positions", half]),
        info("sin", kind, ["positions", half]),
        info("suppressed", TensorProto.FLOAT, [config.vocab]),
        info("rows", TensorProto.INT64, ["r"]),
        info("targets", TensorProto.INT64, ["r", "k"]),
    ]
    if form == "causal":
        values += [
            info("placed", TensorProto.BOOL, []),
            info("positions", TensorProto.INT64, [1, "given"]),
        ]
    if reads_masks(config, form):
        values += [
            info("mask_rows", TensorProto.INT64, ["g"]),
            info("scored_masks", TensorProto.INT64, ["g"]),
        ]
    if form == "causal" or config.attention == "block":
        values += [info("bias", kind, [1, 1, "given", "all"])]
    return values


def _outputs(config: ModelConfig, form: Form) -> list[ValueInfoProto]:
    info = helper.make_tensor_value_info
    values = [
        info("top", TensorProto.INT64, ["r", TOP]),
        info("top_logprob", TensorProto.FLOAT, ["r", TOP]),
        info("target_logprob", TensorProto.FLOAT, ["r", "k"]),
        info("logits", TensorProto.FLOAT, ["r", "predicted"]),
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
