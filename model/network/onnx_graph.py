"""ONNX graphs of a model from its configuration, without weights.

``layout.forms_of`` names the graphs of a model. Tokens are looked up outside
(``runtime/embedding.py``): a table in the graph would stay in memory beside the head that was
packed from it. Attention is onnxruntime's GroupQueryAttention: it appends keys and values to
preallocated buffers and rotates by tables that are inputs. ``onnx_files.py`` places the weights,
``onnx_linear.py`` says how they are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx import NodeProto, TensorProto, helper

from ..config import CANDIDATES, SAMPLER, ModelConfig
from ..errors import WeightsError
from .frequent import frequent_tokens, has_short_head
from .layout import TOP, Form
from .onnx_interface import Graph, graph_of, reads_masks, samples
from .onnx_linear import LinearMaps
from .onnx_nodes import CONTRIB, Nodes
from .quantize import FLOAT16, FLOAT32, Format, Stored, Variant, variant_named

#: Source of the mask's embedding on the canvas: one row of the canvas embedding.
MASK_ROW = "mask.weight"
#: Source of the short head: the rows of the embedding that belong to frequent tokens.
SHORT_ROWS = "short.weight"
#: Names of the tables that are looked up outside the graphs.
EMBEDDING, MASK = "embed", "mask"


def tables_of(config: ModelConfig, name: str) -> tuple[Stored, ...]:
    """Return what is looked up outside the graphs: the embedding, the mask's row, the sampler."""
    variant = variant_named(name)
    mask = Stored(MASK, (MASK_ROW,), "whole", (config.hidden,), variant.dtype)
    embedding = _vocabulary(config, variant, EMBEDDING, variant.embedding)
    return (embedding, mask, *sampler_parts(config))


def sampler_parts(config: ModelConfig) -> tuple[Stored, ...]:
    """Return the tensors of a sampler, which is run outside the graphs."""
    hidden, width = config.hidden, config.sampler
    shapes = ((width, 2 * hidden), (width,), (width, width), (width,), (hidden, width))
    return tuple(
        Stored(name, (name,), "whole", shape, FLOAT32, of_masks=True)
        for name, shape in zip(SAMPLER, shapes, strict=True)
        if width
    )


def _vocabulary(config: ModelConfig, variant: Variant, name: str, how: Format) -> Stored:
    shape = config.vocab, config.hidden
    return Stored(name, (f"{name}.weight",), how, shape, variant.dtype, variant.block)


def build(config: ModelConfig, variant: str, form: Form) -> Graph:
    """Return the graph of one form, of n positions of which r are scored.

    Inputs and outputs::

        embedded [1, n, hidden]
        seqlens_k int32 [1], cached + new tokens - 1; total int32, cached + new
        cos, sin [positions, head_dim / 2]
    suppressed float32 [vocab], added to the logits
        past_key.i, past_value.i -> present_key.i, present_value.i [1, kv_heads, capacity, head_dim]
        rows int64 [r] -> top int64 [r, TOP], the likeliest tokens, falling; top_logprob float32
                [r, TOP]; logits float32 [r, vocab]
        targets int64 [r, k] -> target_logprob float32 [r, k], of each target after its row
        with a short head: short bool; where it is true, logits [r, f + e] are those of the f
                frequent tokens and of the e whose embeddings extra [hidden, e] holds, nothing is
                suppressed, and top and targets are indices into these
        causal: placed bool; where it is true, positions int64 [1, n] and bias [1, 1, n, total]
                are given and hide more than what comes later; else they are empty
        causal, where the adapter is on masks: the last g rows may be masks behind verified
                tokens: mask_rows int64 [g] of the n, scored_masks int64 [g] of the r
        the same with a sampler: of the masks -> mask_token int64 and mask_logit float32
                [g, CANDIDATES], falling, and mask_hidden float32 [g, hidden]
        denoise, where the attention is by blocks: bias [1, 1, n, total]

    Raises:
        SettingsError: there is no such variant.
        WeightsError: onnxruntime cannot run heads of this size.
    """
    stored_as = variant_named(variant)
    if config.head_dim % 16:
        raise WeightsError(
            f"The model {config.name} has attention heads of {config.head_dim} dimensions; "
            "onnxruntime rotates only multiples of 16. Choose another model."
        )
    return _Builder(config, stored_as, form).graph()


#: Nodes of a branch, given the names that its outputs are to have.
Branch = Callable[[list[str]], list[NodeProto]]


class _Builder:
    """Appends the nodes of one graph; methods return the names they computed."""

    def __init__(self, config: ModelConfig, variant: Variant, form: Form) -> None:
        self.config, self.variant, self.form = config, variant, form
        self.nodes = Nodes()
        self.linear = LinearMaps(self.nodes, variant, config.mask_rank)
        #: Indices of the rows of masks, which all layers see: nothing sees into a branch.
        self.indices = {
            rows: self.linear.index_of(rows)
            for rows in ("mask_rows", "scored_masks")
            if reads_masks(config, form)
        }

    # --- the network, top to bottom

    def graph(self) -> Graph:
        x = "embedded"  # [1, n, hidden]
        self.linear.count(x)
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
        """Append a transformer block; the residual stream is x + skip, added by the next norm."""
        c, name = self.config, f"blocks.{layer}"
        y, x = self._norm(f"{name}.norm_attn", x, skip)
        y = self._attention(layer, y)
        last = layer == c.layers - 1
        if last:  # after the last keys and values, only scored rows matter: none costs nothing
            y = self.nodes.op("Gather", y, "rows", axis=1)
            x = self.nodes.op("Gather", x, "rows", axis=1)
            self.linear.count(x)
        width = c.heads * c.head_dim
        y = self.linear.apply(f"{name}.attn.o", [f"{name}.attn.o"], y, width, c.hidden)
        y, x = self._norm(f"{name}.norm_mlp", x, y)
        gated, factor = self._gated(name, y, last)
        down = f"{name}.mlp.down"
        y, factor = self.linear.without_scale(down, [down], gated, c.intermediate, c.hidden, factor)
        return x, self.linear.with_scale(y, factor)

    def _gated(self, name: str, x: str, tail: bool) -> tuple[str, str]:
        """Append silu(gate x) times up x, but for a factor of each row: ``LinearMaps.unscaled``.

        That is [1, n, hidden] -> [1, n, intermediate], [1, n, 1].

        Args:
            tail: x has the rows that are spoken about alone.
        """
        c, sides = self.config, (f"{name}.mlp.gate", f"{name}.mlp.up")
        shape = c.hidden, c.intermediate
        gate, (up, factor) = (self.linear.without_scale(side, [side], x, *shape) for side in sides)
        gate = self.linear.with_scale(*gate), ""
        if not self.indices:
            return self._activated(gate[0], up), factor
        which, out = "scored_masks" if tail else "mask_rows", f"{name}.mlp.gated"

        def adapt(own: list[str]) -> list[NodeProto]:
            with self.nodes.branch(f"{out}.masked") as nodes:
                index = self.indices[which]
                one, other = (
                    self.linear.adapt_masks(side, x, y, shape, which, index)
                    for side, y in zip(sides, (gate, (up, factor)), strict=True)
                )
                self._activated(one, other, own[0])
            return nodes

        def plain(own: list[str]) -> list[NodeProto]:
            with self.nodes.branch(f"{out}.plain") as nodes:
                self._activated(gate[0], up, own[0])
            return nodes

        self.nodes.add(self._if("placed", [out], adapt, plain))
        return out, factor

    def _activated(self, gate: str, up: str, out: str = "") -> str:
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
        if self.form == "causal":
            # The kernel of both branches is the same and reads of each token as much, so neither
            # masks nor branches of a tree change a bit of what a prompt's own tokens say.
            attention = self._if(
                "placed",
                outputs,
                lambda own: [self._attend(layer, inputs, own, "placed")],
                lambda own: [self._attend(layer, inputs, own, "causal")],
            )
        else:
            attention = self._attend(layer, inputs, outputs, "denoise")
        self.nodes.add(attention)
        return outputs[0]  # [1, n, heads * head_dim]

    def _if(self, condition: str, outputs: list[str], then: Branch, otherwise: Branch) -> NodeProto:
        """Return a node of two branches.

        They write to what the whole graph is bound to, so that no cache is copied.
        """
        branches = {}
        for name, made in (("then_branch", then), ("else_branch", otherwise)):
            own = [f"{condition}.{name}.{output}" for output in outputs]
            kind = helper.np_dtype_to_tensor_dtype(self.variant.dtype)
            values = [helper.make_tensor_value_info(output, kind, None) for output in own]
            branches[name] = helper.make_graph(made(own), f"{name}.{outputs[0]}", [], values)
        return helper.make_node("If", [condition], outputs, f"{condition}.{outputs[0]}", **branches)

    def _attend(self, layer: int, inputs: list[str], outputs: list[str], kind: str) -> NodeProto:
        """Return the node of a form, or of "placed": causal with positions and bias given."""
        if kind == "placed":
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
            causal=0 if kind == "denoise" else 1,
        )

    def _norm_heads(self, name: str, x: str, heads: int) -> str:
        dim = self.config.head_dim
        split = self.nodes.op("Reshape", x, self.nodes.ints(f"split_{heads}", [1, -1, heads, dim]))
        normed = self._rms(name, split, dim)
        joined = self.nodes.ints(f"join_{heads}", [1, -1, heads * dim])
        return self.nodes.op("Reshape", normed, joined)

    def _norm(self, name: str, x: str, skip: str | None) -> tuple[str, str]:
        """Append the RMS norm of x + skip; return it and that sum."""
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
        """Append ``logits`` float32 [r, vocab], or those of a short head.

        The caller says which tokens are never predicted: an infill ends by another mark than an
        answer in a conversation.
        """
        if not has_short_head(self.config, self.variant, self.form):
            self._all_logits(hidden, "logits")
            return

        def short(own: list[str]) -> list[NodeProto]:
            with self.nodes.branch("logits.short") as nodes:
                self._short_logits(hidden, own[0])
            return nodes

        def whole(own: list[str]) -> list[NodeProto]:
            with self.nodes.branch("logits.whole") as nodes:
                self._all_logits(hidden, own[0])
            return nodes

        self.nodes.add(self._if("short", ["logits"], short, whole))

    def _short_logits(self, hidden: str, out: str) -> None:
        """Append the logits of frequent tokens and of those whose embeddings are given."""
        count = len(frequent_tokens(self.config))
        stored = Stored(
            "short", (SHORT_ROWS,), self.variant.head, (count, self.config.hidden),
            self.variant.dtype, self.variant.block,
        )  # fmt: skip
        frequent = self.linear.fine_rows_product(stored, hidden)
        others = self.nodes.op("MatMul", hidden, "extra")
        self.nodes.op("Concat", frequent, others, out=out, axis=-1)

    def _all_logits(self, hidden: str, out: str) -> None:
        c, suppressed = self.config, "suppressed"
        stored = _vocabulary(c, self.variant, EMBEDDING if c.tied else "head", self.variant.head)
        if stored.format == "rows":
            self.linear.fine_rows_product(stored, hidden, suppressed, out)
        elif stored.format == "blocks":
            self.linear.product(stored, hidden, suppressed, out)
        elif self.variant.dtype == FLOAT16:
            half = self.nodes.op("Gemm", hidden, self.nodes.store(stored), transB=1)
            full = self.nodes.op("Cast", half, to=TensorProto.FLOAT)
            self.nodes.op("Add", full, suppressed, out=out)
        else:
            head = self.nodes.store(stored)
            self.nodes.op("Gemm", hidden, head, suppressed, out=out, transB=1)

    def _score(self) -> None:
        """Append the likeliest tokens of each row, and log-probabilities of these and of targets.

        A log-probability is that of the likeliest token plus the difference of the logits:
        ReduceLogSumExp runs on one thread and takes 0.3 ms a row of 151,936, four times what
        Softmax takes.
        """
        first = self.nodes.ints("first", [0])
        p = self.nodes.op("Softmax", "logits", axis=-1)  # [r, vocab]
        wanted = ["logits", self.nodes.ints("top_count", [TOP])]
        best, top = self.nodes.ops("TopK", wanted, 0, out=["best", "top"], axis=-1)  # [r, TOP]
        likeliest = self.nodes.op("Gather", top, first, axis=1)  # [r, 1]
        p = self.nodes.op("GatherElements", p, likeliest, axis=1)  # [r, 1]
        logprob, logit = self.nodes.op("Log", p), self.nodes.op("Gather", best, first, axis=1)
        self._relative(best, logit, logprob, "top_logprob")
        target = self.nodes.op("GatherElements", "logits", "targets", axis=1)  # [r, k]
        self._relative(target, logit, logprob, "target_logprob")

    def _relative(self, logits: str, logit: str, logprob: str, out: str) -> None:
        """Append the log-probabilities of ``logits``, given both of one token."""
        self.nodes.op("Add", self.nodes.op("Sub", logits, logit), logprob, out=out)

    def _candidates(self, hidden: str) -> None:
        """Append likeliest tokens and hidden state of each mask, for the sampler outside."""
        of_masks = self.nodes.op("Gather", "logits", "scored_masks", axis=0)  # [g, vocab]
        count = self.nodes.ints("candidates", [CANDIDATES])
        self.nodes.ops("TopK", [of_masks, count], 0, out=["mask_logit", "mask_token"], axis=-1)
        own = self.nodes.op("Gather", hidden, "scored_masks", axis=0)
        self.nodes.op("Cast", own, to=TensorProto.FLOAT, out="mask_hidden")

    def _vector(self, source: str, size: int) -> str:
        return self.nodes.store(Stored(source, (source,), "whole", (size,), self.variant.dtype))
