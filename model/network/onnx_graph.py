"""Builds the ONNX graphs of a model from its configuration, node by node, without weights.

The forms of one network: ``prefill`` (causal, appends to the KV cache), ``denoise`` (one window,
both directions), ``packed`` (windows side by side, none sees another, of which one is a special
case) and ``shared``, which is prefill or packed as an input says: onnxruntime packs the weights of
each graph anew, so only one graph means one copy of them. Weights that attend otherwise than to a
canvas (``ModelConfig.attention``) have ``denoise`` alone: it reads any part of a sequence. Tokens
are looked up outside (``runtime/embedding.py``): a table in the graph would stay in memory beside
the head that was packed from it. No exporter, no torch and no binary in git is involved. Attention
is onnxruntime's GroupQueryAttention: it appends keys and values to preallocated buffers and rotates
by tables that are inputs. Knows nothing of files, sessions or devices: ``onnx_files.py`` places the
weights, ``onnx_linear.py`` says how they are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, TensorProto, helper

from ..config import CANDIDATES, SAMPLER, ModelConfig
from ..errors import WeightsError
from .onnx_interface import Form, Graph, graph_of, reads_masks, reads_placed, samples
from .onnx_linear import LinearMaps
from .onnx_nodes import CONTRIB, Nodes
from .quantize import HALF, Role, Stored, block_size, check_variant, float_type, format_of

#: Source of the mask's embedding on the canvas: one row of the canvas embedding.
MASK_ROW = "mask.weight"
#: Names of the tables that are looked up outside the graphs.
EMBEDDING, MASK = "embed", "mask"


def forms_of(config: ModelConfig, variant: str) -> tuple[Form, ...]:
    """The graphs that a model of this configuration runs."""
    if config.attention != "canvas":
        return ("denoise",)
    if variant in HALF:  # CUDA packs no weights, and its fused attention takes no bias
        masks = config.adapter == "masks"
        return ("prefill", "packed") if masks else ("prefill", "denoise", "packed")
    return ("prefill", "packed") if config.adapter == "canvas" else ("shared",)


def tables_of(config: ModelConfig, variant: str) -> tuple[Stored, ...]:
    """What is looked up outside the graphs: the embedding, and the mask's row of it."""
    mask = Stored(MASK, (MASK_ROW,), "vector", (config.hidden,), float_type(variant))
    return (_vocabulary(config, variant, EMBEDDING, "embedding"), mask, *sampler_parts(config))


def sampler_parts(config: ModelConfig) -> tuple[Stored, ...]:
    """The tensors of a sampler, which is run outside the graphs."""
    hidden, width = config.hidden, config.sampler
    shapes = ((width, 2 * hidden), (width,), (width, width), (width,), (hidden, width))
    return tuple(
        Stored(name, (name,), "table", shape, np.dtype(np.float32), of_masks=True)
        for name, shape in zip(SAMPLER, shapes, strict=True)
        if width
    )


def _vocabulary(config: ModelConfig, variant: str, name: str, role: Role) -> Stored:
    return Stored(
        name,
        (f"{name}.weight",),
        format_of(variant, role),
        (config.vocab, config.hidden),
        float_type(variant),
        block_size(variant),
    )


def build(config: ModelConfig, variant: str, form: Form) -> Graph:
    """The graph of one form, of n positions of which r are spoken about. Inputs and outputs::

        embedded [1, n, hidden]
        seqlens_k int32 [1], cached + new tokens - 1; total int32, cached + new
        cos, sin [positions, head_dim / 2]
    suppressed float32 [vocab], added to the logits
        past_key.i, past_value.i -> present_key.i, present_value.i [1, kv_heads, capacity, head_dim]
        rows int64 [r] -> token int64 [r, 1], confidence float32 [r, 1], logits float32 [r, vocab]
        targets int64 [r] -> log_probability float32 [r, 1], of each target after its row
        shared: causal bool; where it is true, the next two may be empty
        packed, shared: positions int64 [1, n]; bias [1, 1, n, total]
        prefill, shared, but in half precision without masks: placed bool; where it is true,
                positions and bias are given as well, and hide more than what comes later
        the same, where the adapter is on masks: the last g rows may be masks behind judged
                tokens: mask_rows int64 [g] of the n, scored_masks int64 [g] of the r
        the same with a sampler: of the masks -> mask_token int64 and mask_logit float32
                [g, CANDIDATES], falling, and mask_hidden float32 [g, hidden]
        denoise, where the attention is by blocks: bias [1, 1, n, total]

    Raises:
        SettingsError: there is no such variant.
        WeightsError: onnxruntime cannot run heads of this size.
    """
    check_variant(variant)
    if config.head_dim % 16:
        raise WeightsError(
            f"The model {config.name} has attention heads of {config.head_dim} dimensions; "
            "onnxruntime rotates only multiples of 16. Choose another model."
        )
    return _Builder(config, variant, form).graph()


#: Nodes of a branch, given the names that its outputs are to have.
Branch = Callable[[list[str]], list[NodeProto]]


class _Builder:
    """Appends the nodes of one graph; methods return the names they computed."""

    def __init__(self, config: ModelConfig, variant: str, form: Form) -> None:
        self.config, self.variant, self.form = config, variant, form
        self.nodes = Nodes()
        self.linear = LinearMaps(self.nodes, config, variant, reads_masks(config, form))

    # --- the network, top to bottom

    def graph(self) -> Graph:
        x = "embedded"  # [1, n, hidden]
        skip: str | None = None
        for layer in range(self.config.layers):
            x, skip = self._block(layer, x, skip)
        assert skip is not None
        hidden, _ = self._norm("norm", x, skip)
        flat = self.nodes.op("Reshape", hidden, self.nodes.ints("flat", [-1, self.config.hidden]))
        self._logits(flat)  # [r, vocab]
        self._score()
        if samples(self.config, self.form):
            self._candidates(flat)
        return graph_of(self.nodes, self.config, self.variant, self.form)

    def _block(self, layer: int, x: str, skip: str | None) -> tuple[str, str]:
        """One transformer block; the residual stream is x + skip, added by the next norm."""
        c, name = self.config, f"blocks.{layer}"
        y, x = self._norm(f"{name}.norm_attn", x, skip)
        y = self._attention(layer, y)
        last = layer == c.layers - 1
        if last:  # after the last keys and values, only scored rows matter: none costs nothing
            y = self.nodes.op("Gather", y, "rows", axis=1)
            x = self.nodes.op("Gather", x, "rows", axis=1)
        width = c.heads * c.head_dim
        y = self.linear.apply(f"{name}.attn.o", [f"{name}.attn.o"], y, width, c.hidden)
        y, x = self._norm(f"{name}.norm_mlp", x, y)
        y = self._gated(name, y, last)
        down = f"{name}.mlp.down"
        y = self.linear.apply(down, [down], y, c.intermediate, c.hidden)
        return x, y

    def _gated(self, name: str, x: str, tail: bool) -> str:
        """silu(gate x) times up x; [1, n, hidden] -> [1, n, intermediate].

        Args:
            tail: x has the rows that are spoken about alone.
        """
        c, both = self.config, [f"{name}.mlp.gate", f"{name}.mlp.up"]
        wide = 2 * c.intermediate
        y = self.linear.apply(f"{name}.mlp.gate_up", both, x, c.hidden, wide)
        if not self.linear.masks:
            return self._activated(y)
        which = "scored_masks" if tail else "mask_rows"
        self.linear.index_of(which)  # here, for all layers: nothing sees into a branch
        out = f"{name}.mlp.gated"

        def adapted(own: list[str]) -> list[NodeProto]:
            with self.nodes.branch(f"{out}.masked") as nodes:
                changed = self.linear.adapt_masks(both, x, y, c.hidden, wide, which)
                self._activated(changed, own[0])
            return nodes

        def plain(own: list[str]) -> list[NodeProto]:
            with self.nodes.branch(f"{out}.plain") as nodes:
                self._activated(y, own[0])
            return nodes

        self.nodes.add(self._if("placed", [out], adapted, plain))
        return out

    def _activated(self, y: str, out: str = "") -> str:
        gate, up = self.nodes.ops("Split", [y], 2, axis=-1, num_outputs=2)
        return self.nodes.op("Mul", self._silu(gate), up, out=out)

    def _silu(self, x: str) -> str:
        return self.nodes.op("QuickGelu", x, domain=CONTRIB, alpha=1.0)

    def _attention(self, layer: int, y: str) -> str:
        c, name = self.config, f"blocks.{layer}.attn"
        width, kv_width = c.heads * c.head_dim, c.kv_heads * c.head_dim
        sources = [f"{name}.{part}" for part in "qkv"]
        total = width + 2 * kv_width
        qkv = self.linear.apply(f"{name}.qkv", sources, y, c.hidden, total, bias=c.qkv_bias)
        heads = [qkv, "", ""]
        if c.qk_norm:
            sizes = self.nodes.ints("qkv_sizes", [width, kv_width, kv_width])
            q, k, v = self.nodes.ops("Split", [qkv, sizes], 3, axis=-1)
            q = self._norm_heads(f"{name}.q_norm", q, c.heads)
            k = self._norm_heads(f"{name}.k_norm", k, c.kv_heads)
            heads = [q, k, v]
        inputs = [*heads, f"past_key.{layer}", f"past_value.{layer}"]
        inputs += ["seqlens_k", "total", "cos", "sin"]
        outputs = [f"attention.{layer}", f"present_key.{layer}", f"present_value.{layer}"]
        if self.form == "shared":
            self.nodes.add(
                self._if(
                    "causal",
                    outputs,
                    lambda own: [self._read(layer, inputs, own)],
                    lambda own: [self._attend(layer, inputs, own, "packed")],
                )
            )
        elif self.form == "prefill":
            self.nodes.add(self._read(layer, inputs, outputs))
        else:
            self.nodes.add(self._attend(layer, inputs, outputs, self.form))
        return outputs[0]  # [1, n, heads * head_dim]

    def _if(self, condition: str, outputs: list[str], then: Branch, otherwise: Branch) -> NodeProto:
        """One of two branches; what they write to is what the whole graph is bound to, so that no
        cache is copied."""
        branches = {}
        for name, made in (("then_branch", then), ("else_branch", otherwise)):
            own = [f"{condition}.{name}.{output}" for output in outputs]
            kind = helper.np_dtype_to_tensor_dtype(float_type(self.variant))
            values = [helper.make_tensor_value_info(output, kind, None) for output in own]
            branches[name] = helper.make_graph(made(own), f"{name}.{outputs[0]}", [], values)
        return helper.make_node("If", [condition], outputs, f"{condition}.{outputs[0]}", **branches)

    def _read(self, layer: int, inputs: list[str], outputs: list[str]) -> NodeProto:
        """Causal attention, with masks behind the tokens or side by side as branches where there
        are some. The kernel is the same and reads of each token as much as without, so that neither
        changes a bit of what a prompt's own tokens say."""
        if not reads_placed(self.config, self.variant, self.form):
            return self._attend(layer, inputs, outputs, "prefill")
        return self._if(
            "placed",
            outputs,
            lambda own: [self._attend(layer, inputs, own, "placed")],
            lambda own: [self._attend(layer, inputs, own, "prefill")],
        )

    def _attend(self, layer: int, inputs: list[str], outputs: list[str], kind: str) -> NodeProto:
        """As in one of the forms, or "placed": causal, positions and bias given."""
        if kind in ("packed", "placed"):
            inputs = [*inputs, "positions", "bias"]
        elif self.config.attention == "block":
            inputs = [*inputs, "", "bias"]  # positions count on from what is cached
        return helper.make_node(
            "GroupQueryAttention",
            inputs,
            outputs,
            name=f"GroupQueryAttention.{kind}.{layer}",
            domain=CONTRIB,
            num_heads=self.config.heads,
            kv_num_heads=self.config.kv_heads,
            do_rotary=1,
            causal=1 if kind in ("prefill", "placed") else 0,
        )

    def _norm_heads(self, name: str, x: str, heads: int) -> str:
        dim = self.config.head_dim
        split = self.nodes.op("Reshape", x, self.nodes.ints(f"split_{heads}", [1, -1, heads, dim]))
        normed = self._rms(name, split, dim)
        joined = self.nodes.ints(f"join_{heads}", [1, -1, heads * dim])
        return self.nodes.op("Reshape", normed, joined)

    def _norm(self, name: str, x: str, skip: str | None) -> tuple[str, str]:
        """RMS norm of x + skip, and that sum."""
        if skip is None:
            return self._rms(name, x, self.config.hidden), x
        weight = self._vector(f"{name}.weight", self.config.hidden)
        normed, total = self.nodes.name("norm"), self.nodes.name("sum")
        node = helper.make_node(
            "SkipSimplifiedLayerNormalization",
            [x, skip, weight],
            [normed, "", "", total],
            name=normed,
            domain=CONTRIB,
            epsilon=self.config.norm_eps,
        )
        self.nodes.add(node)
        return normed, total

    def _rms(self, name: str, x: str, size: int) -> str:
        weight = self._vector(f"{name}.weight", size)
        return self.nodes.op("RMSNormalization", x, weight, axis=-1, epsilon=self.config.norm_eps)

    # --- vocabulary: logits and what is taken from them

    def _logits(self, hidden: str) -> None:
        """Adds ``logits`` float32. Which tokens are never predicted is the caller's to say: an
        infill ends by another mark than what is said in a conversation."""
        c, suppressed = self.config, "suppressed"
        stored = _vocabulary(c, self.variant, EMBEDDING if c.tied else "head", "head")
        self.nodes.store(stored)
        head = list(stored.tensors())
        if stored.format == "rows":
            self.linear.fine_rows_product(hidden, head, suppressed, "logits")
        elif stored.format == "blocks":
            self.linear.blocks_product(hidden, head, c.hidden, c.vocab, suppressed, "logits")
        elif self.variant in HALF:
            half = self.nodes.op("Gemm", hidden, head[0], transB=1)
            full = self.nodes.op("Cast", half, to=TensorProto.FLOAT)
            self.nodes.op("Add", full, suppressed, out="logits")
        else:
            self.nodes.op("Gemm", hidden, head[0], suppressed, out="logits", transB=1)

    def _score(self) -> None:
        """The next token after each row, its probability, and what is thought of the targets.

        log Z = logit - log p of the likeliest: ReduceLogSumExp runs on one thread and takes 0.3 ms
        a row of 151,936, four times what Softmax takes.
        """
        last = self.nodes.ints("last", [-1])
        p = self.nodes.op("Softmax", "logits", axis=-1)  # [r, vocab]
        likeliest = ["logits", self.nodes.ints("one", [1])]
        best, _ = self.nodes.ops("TopK", likeliest, 0, out=["best", "token"], axis=-1)
        self.nodes.op("GatherElements", p, "token", out="confidence", axis=1)
        norm = self.nodes.op("Sub", best, self.nodes.op("Log", "confidence"))
        target = self.nodes.op("Unsqueeze", "targets", last)  # [r, 1]
        logit = self.nodes.op("GatherElements", "logits", target, axis=1)
        self.nodes.op("Sub", logit, norm, out="log_probability")

    def _candidates(self, hidden: str) -> None:
        """The likeliest tokens of each mask and its hidden state, for the sampler outside."""
        of_masks = self.nodes.op("Gather", "logits", "scored_masks", axis=0)  # [g, vocab]
        count = self.nodes.ints("candidates", [CANDIDATES])
        self.nodes.ops("TopK", [of_masks, count], 0, out=["mask_logit", "mask_token"], axis=-1)
        own = self.nodes.op("Gather", hidden, "scored_masks", axis=0)
        self.nodes.op("Cast", own, to=TensorProto.FLOAT, out="mask_hidden")

    def _vector(self, source: str, size: int) -> str:
        dtype = float_type(self.variant)
        return self.nodes.store(Stored(source, (source,), "vector", (size,), dtype))
