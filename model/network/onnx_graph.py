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
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from onnx import (
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from ..config import ModelConfig
from ..errors import WeightsError
from .quantize import Format, Stored, block_size, check_variant, float_type, format_of

Form = Literal["shared", "prefill", "denoise", "packed"]
FORMS: tuple[Form, ...] = get_args(Form)

#: The file beside the graphs that holds every large tensor.
DATA_FILE = "weights.bin"
#: Source of the mask's embedding on the canvas: one row of the canvas embedding.
MASK_ROW = "mask.weight"
#: Names of the tables that are looked up outside the graphs.
EMBEDDING, MASK = "embed", "mask"

_OPSET = 23
_IR_VERSION = 11
_CONTRIB = "com.microsoft"


@dataclass(frozen=True, slots=True)
class Graph:
    """A model whose large tensors are named but not yet placed in a data file."""

    model: ModelProto
    stored: tuple[Stored, ...]


def forms_of(config: ModelConfig, variant: str) -> tuple[Form, ...]:
    """The graphs that a model of this configuration runs."""
    if config.attention != "canvas":
        return ("denoise",)
    if variant == "fp16":  # CUDA packs no weights, and its fused attention takes no bias
        masks = config.adapter == "masks"
        return ("prefill", "packed") if masks else ("prefill", "denoise", "packed")
    return ("prefill", "packed") if config.adapter == "canvas" else ("shared",)


def tables_of(config: ModelConfig, variant: str) -> tuple[Stored, ...]:
    """What is looked up outside the graphs: the embedding, stored as the head is."""
    mask = Stored(MASK, (MASK_ROW,), "vector", (config.hidden,), float_type(variant))
    return (_vocabulary(config, variant, EMBEDDING), mask)


def _vocabulary(config: ModelConfig, variant: str, name: str) -> Stored:
    return Stored(
        name,
        (f"{name}.weight",),
        format_of(variant, "vocabulary"),
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
        prefill, shared, where the adapter is on masks: masked bool; where it is true the last g
                rows are masks behind judged tokens: mask_rows int64 [g] of the n, scored_masks
                int64 [g] of the r; positions and bias then are of all n
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


@dataclass
class _Builder:
    """Collects nodes and tensors; each method appends nodes and returns the name it computed."""

    config: ModelConfig
    variant: str
    form: Form
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, TensorProto] = field(default_factory=dict)
    stored: dict[tuple[str, str], Stored] = field(default_factory=dict)
    quantized: dict[str, tuple[str, str]] = field(default_factory=dict)
    masked: dict[str, str] = field(
        default_factory=dict
    )  # rows of masks of a tensor, and their index

    # --- the network, top to bottom

    def graph(self) -> Graph:
        x = "embedded"  # [1, n, hidden]
        skip: str | None = None
        for layer in range(self.config.layers):
            x, skip = self._block(layer, x, skip)
        assert skip is not None
        hidden, _ = self._norm("norm", x, skip)
        flat = self._op("Reshape", hidden, self._ints("flat", [-1, self.config.hidden]))
        self._logits(flat)  # [r, vocab]
        self._score()
        return Graph(self._model(), tuple(self.stored.values()))

    def _block(self, layer: int, x: str, skip: str | None) -> tuple[str, str]:
        """One transformer block; the residual stream is x + skip, added by the next norm."""
        c, name = self.config, f"blocks.{layer}"
        y, x = self._norm(f"{name}.norm_attn", x, skip)
        y = self._attention(layer, y)
        last = layer == c.layers - 1
        if last:  # after the last keys and values, only scored rows matter: none costs nothing
            y = self._op("Gather", y, "rows", axis=1)
            x = self._op("Gather", x, "rows", axis=1)
        width = c.heads * c.head_dim
        y = self._linear(f"{name}.attn.o", [f"{name}.attn.o"], y, width, c.hidden, tail=last)
        y, x = self._norm(f"{name}.norm_mlp", x, y)
        both = [f"{name}.mlp.gate", f"{name}.mlp.up"]
        y = self._linear(f"{name}.mlp.gate_up", both, y, c.hidden, 2 * c.intermediate, tail=last)
        gate, up = self._ops("Split", [y], 2, axis=-1, num_outputs=2)
        y = self._op("Mul", self._silu(gate), up)
        down = f"{name}.mlp.down"
        return x, self._linear(down, [down], y, c.intermediate, c.hidden, tail=last)

    def _silu(self, x: str) -> str:
        return self._op("QuickGelu", x, domain=_CONTRIB, alpha=1.0)

    def _attention(self, layer: int, y: str) -> str:
        c, name = self.config, f"blocks.{layer}.attn"
        width, kv_width = c.heads * c.head_dim, c.kv_heads * c.head_dim
        sources = [f"{name}.{part}" for part in "qkv"]
        total = width + 2 * kv_width
        qkv = self._linear(f"{name}.qkv", sources, y, c.hidden, total, bias=c.qkv_bias)
        heads = [qkv, "", ""]
        if c.qk_norm:
            sizes = self._ints("qkv_sizes", [width, kv_width, kv_width])
            q, k, v = self._ops("Split", [qkv, sizes], 3, axis=-1)
            q = self._norm_heads(f"{name}.q_norm", q, c.heads)
            k = self._norm_heads(f"{name}.k_norm", k, c.kv_heads)
            heads = [q, k, v]
        inputs = [*heads, f"past_key.{layer}", f"past_value.{layer}"]
        inputs += ["seqlens_k", "total", "cos", "sin"]
        outputs = [f"attention.{layer}", f"present_key.{layer}", f"present_value.{layer}"]
        if self.form == "shared":
            self.nodes.append(
                self._if(
                    "causal",
                    outputs,
                    lambda own: [self._read(layer, inputs, own)],
                    lambda own: [self._attend(layer, inputs, own, "packed")],
                )
            )
        elif self.form == "prefill":
            self.nodes.append(self._read(layer, inputs, outputs))
        else:
            self.nodes.append(self._attend(layer, inputs, outputs, self.form))
        return outputs[0]  # [1, n, heads * head_dim]

    def _if(self, condition: str, outputs: list[str], then: Branch, otherwise: Branch) -> NodeProto:
        """One of two branches; what they write to is what the whole graph is bound to, so that no
        cache is copied."""
        branches = {}
        for name, made in (("then_branch", then), ("else_branch", otherwise)):
            own = [f"{condition}.{name}.{output}" for output in outputs]
            kind = helper.np_dtype_to_tensor_dtype(self._float)
            values = [helper.make_tensor_value_info(output, kind, None) for output in own]
            branches[name] = helper.make_graph(made(own), f"{name}.{outputs[0]}", [], values)
        return helper.make_node("If", [condition], outputs, f"{condition}.{outputs[0]}", **branches)

    def _read(self, layer: int, inputs: list[str], outputs: list[str]) -> NodeProto:
        """Causal attention, with masks behind the tokens where there are some. The kernel is the
        same and reads of each token as much as without, so that masks change no bit of theirs."""
        if not self._on_masks:
            return self._attend(layer, inputs, outputs, "prefill")
        return self._if(
            "masked",
            outputs,
            lambda own: [self._attend(layer, inputs, own, "judged")],
            lambda own: [self._attend(layer, inputs, own, "prefill")],
        )

    def _attend(self, layer: int, inputs: list[str], outputs: list[str], kind: str) -> NodeProto:
        """As in one of the forms, or "judged": causal, positions and bias given."""
        if kind in ("packed", "judged"):
            inputs = [*inputs, "positions", "bias"]
        elif self.config.attention == "block":
            inputs = [*inputs, "", "bias"]  # positions count on from what is cached
        return helper.make_node(
            "GroupQueryAttention",
            inputs,
            outputs,
            name=f"GroupQueryAttention.{kind}.{layer}",
            domain=_CONTRIB,
            num_heads=self.config.heads,
            kv_num_heads=self.config.kv_heads,
            do_rotary=1,
            causal=1 if kind in ("prefill", "judged") else 0,
        )

    def _norm_heads(self, name: str, x: str, heads: int) -> str:
        dim = self.config.head_dim
        split = self._op("Reshape", x, self._ints(f"split_{heads}", [1, -1, heads, dim]))
        normed = self._rms(name, split, dim)
        return self._op("Reshape", normed, self._ints(f"join_{heads}", [1, -1, heads * dim]))

    def _norm(self, name: str, x: str, skip: str | None) -> tuple[str, str]:
        """RMS norm of x + skip, and that sum."""
        if skip is None:
            return self._rms(name, x, self.config.hidden), x
        weight = self._vector(f"{name}.weight", self.config.hidden)
        normed, total = self._name("norm"), self._name("sum")
        node = helper.make_node(
            "SkipSimplifiedLayerNormalization",
            [x, skip, weight],
            [normed, "", "", total],
            name=normed,
            domain=_CONTRIB,
            epsilon=self.config.norm_eps,
        )
        self.nodes.append(node)
        return normed, total

    def _rms(self, name: str, x: str, size: int) -> str:
        weight = self._vector(f"{name}.weight", size)
        return self._op("RMSNormalization", x, weight, axis=-1, epsilon=self.config.norm_eps)

    # --- vocabulary: logits and what is taken from them

    def _logits(self, hidden: str) -> None:
        """Adds ``logits`` float32. Which tokens are never predicted is the caller's to say: an
        infill ends by another mark than what is said in a conversation."""
        c, suppressed = self.config, "suppressed"
        stored = _vocabulary(c, self.variant, EMBEDDING if c.tied else "head")
        self._store(stored)
        head = list(stored.tensors())
        if len(head) == 2:
            self._blocks_matmul(hidden, head, c.hidden, c.vocab, suppressed, "logits")
        elif self.variant == "fp16":
            half = self._op("Gemm", hidden, head[0], transB=1)
            self._op("Add", self._op("Cast", half, to=TensorProto.FLOAT), suppressed, out="logits")
        else:
            self._op("Gemm", hidden, head[0], suppressed, out="logits", transB=1)

    def _score(self) -> None:
        """The next token after each row, its probability, and what is thought of the targets.

        log Z = logit - log p of the likeliest: ReduceLogSumExp runs on one thread and takes 0.3 ms
        a row of 151,936, four times what Softmax takes.
        """
        last = self._ints("last", [-1])
        p = self._op("Softmax", "logits", axis=-1)  # [r, vocab]
        best, _ = self._ops(
            "TopK", ["logits", self._ints("one", [1])], 0, out=["best", "token"], axis=-1
        )
        self._op("GatherElements", p, "token", out="confidence", axis=1)
        norm = self._op("Sub", best, self._op("Log", "confidence"))
        target = self._op("Unsqueeze", "targets", last)  # [r, 1]
        logit = self._op("GatherElements", "logits", target, axis=1)
        self._op("Sub", logit, norm, out="log_probability")

    # --- linear maps

    def _linear(
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
            self._float,
            block_size(self.variant),
            adapted=True,
        )
        self._store(stored)
        tensors = list(stored.tensors())
        if how in ("blocks", "nibbles"):
            y = self._blocks_matmul(x, tensors, inputs, outputs, bits=4 if how == "nibbles" else 8)
        elif how == "rows":
            y = self._rows_matmul(x, tensors)
        else:
            y = self._op("MatMul", x, tensors[0])
        if self._on_masks:
            y = self._adapt_masks(sources, x, y, inputs, tail)
        if not bias:
            return y
        parts = tuple(f"{source}.bias" for source in sources)
        added = Stored(f"{name}.bias", parts, "vector", (outputs,), self._float)
        return self._op("Add", y, self._store(added))

    def _adapt_masks(self, sources: list[str], x: str, y: str, inputs: int, tail: bool) -> str:
        """y plus B (A x) in the rows of masks; the other rows keep their bits. No rows cost
        nothing, as the sum goes into y's own memory."""
        rank, widths = self.config.mask_rank, self._widths()
        which = "scored_masks" if tail else "mask_rows"
        if x not in self.masked:
            self.masked[x] = self._op("Gather", x, which, axis=1)  # [1, g, inputs]
        down = [f"{source}.lora_a" for source in sources]
        low = self._low_rank(f"{sources[0]}.low", down, self.masked[x], inputs, rank * len(sources))
        lows = [low]
        if len(sources) > 1:
            lows = self._ops("Split", [low], len(sources), axis=-1, num_outputs=len(sources))
        ups = []
        for source, part in zip(sources, lows, strict=True):
            width = widths[source.split(".", 2)[2]]
            ups.append(self._low_rank(f"{source}.high", [f"{source}.lora_b"], part, rank, width))
        change = ups[0] if len(ups) == 1 else self._op("Concat", *ups, axis=-1)  # [1, g, outputs]
        return self._op("ScatterND", y, self._index_of(which), change, reduction="add")

    def _low_rank(self, name: str, sources: list[str], x: str, inputs: int, outputs: int) -> str:
        """x times a matrix of the masks' adapter."""
        how: Format = "plain" if format_of(self.variant, "linear") == "plain" else "blocks"
        stored = Stored(
            name,
            tuple(sources),
            how,
            (outputs, inputs),
            self._float,
            block_size(self.variant),
            of_masks=True,
        )
        self._store(stored)
        tensors = list(stored.tensors())
        if how == "blocks":
            return self._blocks_matmul(x, tensors, inputs, outputs)
        return self._op("MatMul", x, tensors[0])

    def _index_of(self, rows: str) -> str:
        """Where ``rows`` [g] lie in [1, n, outputs], for ScatterND: [1, g, 2]."""
        if rows not in self.masked:
            at = self._op("Unsqueeze", rows, self._ints("ends", [0, 2]))  # [1, g, 1]
            batch = self._op("Mul", at, self._ints("nothing", 0))
            self.masked[rows] = self._op("Concat", batch, at, axis=-1)
        return self.masked[rows]

    def _widths(self) -> dict[str, int]:
        """Outputs of each linear map."""
        c = self.config
        kv = c.kv_heads * c.head_dim
        return {
            "attn.q": c.heads * c.head_dim,
            "attn.k": kv,
            "attn.v": kv,
            "attn.o": c.hidden,
            "mlp.gate": c.intermediate,
            "mlp.up": c.intermediate,
            "mlp.down": c.hidden,
        }

    def _blocks_matmul(
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
        return self._ops(
            "MatMulNBits", arguments, 1, out=[out] if out else None, domain=_CONTRIB,
            K=inputs, N=outputs, bits=bits, block_size=block_size(self.variant), accuracy_level=4,
        )[0]  # fmt: skip

    def _rows_matmul(self, x: str, tensors: list[str]) -> str:
        """8-bit product with one scale per row of activations and per output.

        The dynamic operators of onnxruntime take one scale for a whole tensor: outliers of one
        token then cost every token its precision (73 % top-1 agreement against 94 %), and results
        depend on which tokens share a chunk.
        """
        step = self._floats("step", 1.0 / 127.0)
        zero = self._constant("zero", np.array(128, np.uint8))
        if x not in self.quantized:
            largest = self._op(
                "ReduceMax", self._op("Abs", x), self._ints("last", [-1]), keepdims=1
            )  # [1, n, 1]; a row of zeros becomes 0 / 0, some byte, and times 0 zeros again
            unit = self._op("Div", x, largest)
            self.quantized[x] = (self._op("QuantizeLinear", unit, step, zero), largest)
        values, largest = self.quantized[x]
        matrix, scales = tensors
        y = self._op("MatMulIntegerToFloat", values, matrix, step, scales, zero, domain=_CONTRIB)
        return self._op("Mul", y, largest)

    # --- nodes and tensors

    @property
    def _on_masks(self) -> bool:
        """Whether this graph reads masks behind judged tokens."""
        return self.config.adapter == "masks" and self.form in ("shared", "prefill")

    @property
    def _float(self) -> np.dtype[Any]:
        return float_type(self.variant)

    def _name(self, op: str) -> str:
        return f"{op}.{len(self.nodes)}"

    def _op(self, op: str, *inputs: str, out: str = "", domain: str = "", **attrs: Any) -> str:
        return self._ops(op, list(inputs), 1, [out] if out else None, domain, **attrs)[0]

    def _ops(
        self,
        op: str,
        inputs: list[str],
        count: int,
        out: list[str] | None = None,
        domain: str = "",
        **attrs: Any,
    ) -> list[str]:
        name = self._name(op)
        outputs = out or [f"{name}.{i}" if count > 1 else name for i in range(count)]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, domain=domain, **attrs))
        return outputs

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.setdefault(name, numpy_helper.from_array(value, name))
        return name

    def _ints(self, name: str, value: int | list[int]) -> str:
        return self._constant(name, np.array(value, np.int64))

    def _floats(self, name: str, value: float) -> str:
        return self._constant(name, np.array(value, np.float32))

    def _vector(self, source: str, size: int) -> str:
        return self._store(Stored(source, (source,), "vector", (size,), self._float))

    def _store(self, stored: Stored) -> str:
        self.stored[stored.name, stored.format] = stored
        return stored.name

    # --- the model around them

    def _model(self) -> ModelProto:
        graph = helper.make_graph(
            self.nodes,
            f"redraft.{self.form}",
            self._inputs(),
            self._outputs(),
            initializer=[*self.constants.values(), *self._placeholders()],
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="redraft"
        )

    def _placeholders(self) -> Iterable[TensorProto]:
        for stored in self.stored.values():
            for name, (dtype, shape) in stored.tensors().items():
                tensor = TensorProto(name=name, dims=shape)
                tensor.data_type = helper.np_dtype_to_tensor_dtype(dtype)
                tensor.data_location = TensorProto.EXTERNAL
                tensor.external_data.add(key="location", value=DATA_FILE)
                yield tensor

    def _inputs(self) -> list[ValueInfoProto]:
        info = helper.make_tensor_value_info
        kind = helper.np_dtype_to_tensor_dtype(self._float)
        half = self.config.head_dim // 2
        values = [
            info("embedded", kind, [1, "n", self.config.hidden]),
            info("seqlens_k", TensorProto.INT32, [1]),
            info("total", TensorProto.INT32, []),
            info("cos", kind, ["positions", half]),
            info("sin", kind, ["positions", half]),
            info("suppressed", TensorProto.FLOAT, [self.config.vocab]),
            info("rows", TensorProto.INT64, ["r"]),
            info("targets", TensorProto.INT64, ["r"]),
        ]
        if self.form == "shared":
            values += [info("causal", TensorProto.BOOL, [])]
        if self.form in ("packed", "shared") or self._on_masks:
            values += [info("positions", TensorProto.INT64, [1, "placed"])]
        if self._on_masks:
            values += [
                info("masked", TensorProto.BOOL, []),
                info("mask_rows", TensorProto.INT64, ["g"]),
                info("scored_masks", TensorProto.INT64, ["g"]),
            ]
        if self.form in ("packed", "shared") or self._on_masks or self.config.attention == "block":
            values += [info("bias", kind, [1, 1, "placed", "all"])]
        return values + self._caches("past")

    def _outputs(self) -> list[ValueInfoProto]:
        info = helper.make_tensor_value_info
        values = [
            info("log_probability", TensorProto.FLOAT, ["r", 1]),
            info("token", TensorProto.INT64, ["r", 1]),
            info("confidence", TensorProto.FLOAT, ["r", 1]),
            info("logits", TensorProto.FLOAT, ["r", self.config.vocab]),
        ]
        return values + self._caches("present")

    def _caches(self, prefix: str) -> list[ValueInfoProto]:
        c = self.config
        kind = helper.np_dtype_to_tensor_dtype(self._float)
        shape: list[str | int | None] = [1, c.kv_heads, "capacity", c.head_dim]
        return [
            helper.make_tensor_value_info(f"{prefix}_{part}.{layer}", kind, shape)
            for layer in range(c.layers)
            for part in ("key", "value")
        ]
