"""Does an execution provider of onnxruntime compute what the CPU does? Tried once, before use.

A tiny network with random weights runs on both, in the variant that is about to be served and with
every operator of the graphs that are. A provider that gets one wrong, does not load,
or leaves every product to the CPU is refused with the reason. Knows nothing of models or settings.

How far apart it may be, as root mean square in per cent of the spread of the logits. Measured on a
Xeon with AMX, onnxruntime 1.32, the worse of :data:`PLAIN` and :data:`FULL`:

| what differs | fp32 | fp16 | q8 | int8 | q4 | q4f16 |
|---|---|---|---|---|---|---|
| the variant, from fp32 | – | 0.08 | 1.7 | 1.9 | 16 | 14 |
| OpenVINO 2026.4 in single precision | 0.0 | – | 0.8 | 0.7 | 0.6 | – |
| OpenVINO in bfloat16, as it would here | 0.7 | – | 1.4 | 1.8 | 1.4 | – |
| activations in floats, not in bytes; q4f16 from q4 | – | – | 1.2 | 0.6 | 1.2 | 1.5 |
| 4 % of the rows of one matrix lost | 11 | 11 | 14 | 11 | 14 | 14 |

Half precision is compared with whole: the CPU runs its graphs too, but for the adapter of masks
(its ScatterND adds no float16).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import LINEARS, ON_MASKS, ModelConfig
from ..network.quantize import float_type
from ..network.rope import rope_tables
from .backend import SUPPRESSED
from .providers import first_line

#: Largest difference from the CPU's logits, as a part of their spread; see above.
CLOSE: Mapping[str, float] = MappingProxyType(
    {"fp32": 0.01, "fp16": 0.01, "q8": 0.03, "int8": 0.03, "q4": 0.03, "q4f16": 0.03}
)
#: What the CPU computes instead of half precision, of which it lacks an operator that masks need.
_IN_FULL: Mapping[str, str] = MappingProxyType({"fp16": "fp32", "q4f16": "q4"})

_CACHED, _TOKENS, _MASKS, _SAMPLER = 8, 12, 3, 8
_ALL = _CACHED + _TOKENS
_KEPT_OUT = 7  # a token that must not be predicted
PLAIN = ModelConfig(
    name="probe", vocab=96, hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16,
    intermediate=96, adapter="none", max_positions=64,
)  # fmt: skip
_OF_MASKS: dict[str, Any] = {"adapter": "masks", "masks": _MASKS, "mask_rank": 4}
#: With whatever a model that writes on canvases may have besides.
FULL = replace(PLAIN, **_OF_MASKS, sampler=_SAMPLER, qkv_bias=True, qk_norm=True)

#: Opens a graph somewhere, noting which provider each operator is given to.
Opener = Callable[[Path], Any]
Array = NDArray[Any]
#: How a graph is read: causally or not, and with places that are told or not.
Way = tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Tried:
    """Why a provider cannot be used for a variant; "" when it can."""

    problem: str
    #: Whether it stays so until something of the machine is another: what does not even run may
    #: have lacked memory.
    lasts: bool = True


def provider_problem(
    on_cpu: Opener,
    on_other: Opener,
    name: str,
    variant: str,
    network: ModelConfig = PLAIN,
) -> Tried:
    """Try whether a provider can be used for a variant.

    Args:
        on_cpu, on_other: open a graph on the CPU, and on the provider, with
            ``session.record_ep_graph_assignment_info`` set.
        name: of the provider, as onnxruntime calls it.
        network: see :func:`network_like`.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        in_full = _IN_FULL.get(variant, variant)
        (path,) = write_network(Path(folder) / "full", network, in_full)
        expected = _logits(on_cpu(path), network, in_full, path.stem)
        for path in write_network(Path(folder) / "own", network, variant):
            try:
                session = on_other(path)
                if name not in session.get_providers():
                    problem = f"{name} does not load: a driver or a library is missing"
                    return Tried(problem, lasts=False)
                if problem := _left_out(session, name, variant):
                    return Tried(problem)
                found = _logits(session, network, variant, path.stem)
            except Exception as error:  # whatever keeps it from working: the CPU serves
                problem = f"{name} does not run our graphs in {variant}: {first_line(error)}"
                return Tried(problem, lasts=False)
            del session  # before its files go, which Windows insists on
            for way, logits in found.items():
                if problem := _apart(expected[way], logits, variant):
                    return Tried(f"{name} computes something else in {variant}: {problem}")
    return Tried("")


def network_like(config: ModelConfig) -> ModelConfig:
    """The tiny network whose graphs have the operators of a model's."""
    masks: dict[str, Any] = _OF_MASKS if config.adapter == "masks" else {}
    return replace(
        PLAIN,
        **masks,
        sampler=_SAMPLER if config.sampler else 0,
        attention=config.attention,
        block=4 if config.block else 0,
        qkv_bias=config.qkv_bias,
        qk_norm=config.qk_norm,
    )


def _apart(expected: Array, found: Array, variant: str) -> str:
    """How logits differ, or that the token which is kept from being predicted is not; else ""."""
    others = np.delete(found, _KEPT_OUT, axis=-1)
    if problem := difference(np.delete(expected, _KEPT_OUT, axis=-1), others, variant):
        return problem
    out = (found[..., _KEPT_OUT] < others.min(axis=-1)).all()
    return "" if out else "a token that must not be predicted can be"


def difference(expected: Array, found: Array, variant: str) -> str:
    """How logits [..., vocab] differ, for people, where it is by more than rounding; else ""."""
    if not np.isfinite(found).all():
        return "some logits are not finite"
    apart = float(np.sqrt(np.square(found - expected).mean()) / expected.std())
    if apart <= CLOSE[variant]:
        return ""
    most = float(np.abs(found - expected).max())
    return (
        f"logits differ from the CPU's by {apart:.1%} of their spread, {CLOSE[variant]:.0%} is "
        f"rounding (by {most:.2g} at most, of {np.abs(expected).max():.2g})"
    )


def products_on(session: Any, name: str) -> tuple[int, int]:
    """Of how many products of matrices a provider takes how many."""
    taken = total = 0
    for part in session.get_provider_graph_assignment_info():
        count = sum("MatMul" in node.op_type or "Gemm" in node.op_type for node in part.get_nodes())
        total += count
        taken += count if part.ep_name == name else 0
    return taken, total


def _left_out(session: Any, name: str, variant: str) -> str:
    """What a session leaves to the CPU without a word: everything, or all that is worth while."""
    taken, total = products_on(session, name)
    if not taken:
        return f"{name} takes none of the {total} products of {variant}: the CPU would run them"
    return ""


def write_network(folder: Path, config: ModelConfig, variant: str) -> list[Path]:
    """The graphs of a network with weights drawn at random, always the same."""
    from ..network.onnx_files import materialise  # here: most processes never probe
    from ..network.onnx_graph import forms_of, sampler_parts

    weights = _weights(config, np.random.default_rng(0))
    for part in sampler_parts(config):  # run outside the graphs, which only say what it asks
        weights[part.name] = np.zeros(part.shape, np.float32)
    materialise(config, weights, weights, variant, folder)
    return [folder / f"{form}.onnx" for form in forms_of(config, variant)]


def _weights(c: ModelConfig, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    wide, keys = c.heads * c.head_dim, c.kv_heads * c.head_dim
    sizes = {
        "attn.q": (wide, c.hidden), "attn.k": (keys, c.hidden), "attn.v": (keys, c.hidden),
        "attn.o": (c.hidden, wide), "mlp.gate": (c.intermediate, c.hidden),
        "mlp.up": (c.intermediate, c.hidden), "mlp.down": (c.hidden, c.intermediate),
    }  # fmt: skip
    found: dict[str, Array] = {"embed.weight": rng.normal(size=(c.vocab, c.hidden)) * 0.5}
    found["norm.weight"] = np.ones(c.hidden)
    for i in range(c.layers):
        block = f"blocks.{i}"
        for name in ("norm_attn", "norm_mlp"):
            found[f"{block}.{name}.weight"] = np.ones(c.hidden)
        for name in LINEARS:
            outputs, inputs = sizes[name]
            found[f"{block}.{name}.weight"] = rng.normal(size=(outputs, inputs)) / 8
            if c.mask_rank and name in ON_MASKS:
                found[f"{block}.{name}.lora_a"] = rng.normal(size=(c.mask_rank, inputs)) / 8
                found[f"{block}.{name}.lora_b"] = rng.normal(size=(outputs, c.mask_rank)) / 8
        for part in "qkv" if c.qkv_bias else "":
            found[f"{block}.attn.{part}.bias"] = rng.normal(size=sizes[f"attn.{part}"][0]) / 8
        for part in "qk" if c.qk_norm else "":
            found[f"{block}.attn.{part}_norm.weight"] = np.ones(c.head_dim)
    return {name: values.astype(np.float32) for name, values in found.items()}


def _logits(session: Any, config: ModelConfig, variant: str, form: str) -> dict[Way, Array]:
    """What a graph says in each of the ways that it can read. [tokens, vocab] each"""
    wanted = {entry.name for entry in session.get_inputs()}
    return {
        way: session.run(["logits"], {name: feed[name] for name in wanted})[0]
        for way, feed in _feeds(config, float_type(variant), form, wanted)
    }


def reader(session: Any, config: ModelConfig, variant: str, form: str) -> Callable[[], object]:
    """One causal pass, to be timed."""
    wanted = {entry.name for entry in session.get_inputs()}
    _, feed = next(_feeds(config, float_type(variant), form, wanted))
    given = {name: feed[name] for name in wanted}
    return lambda: session.run(["token"], given)


def _feeds(
    c: ModelConfig, dtype: np.dtype[Any], form: str, wanted: set[str]
) -> Iterator[tuple[Way, dict[str, Any]]]:
    """Some tokens behind others, read causally, as tokens that are told their places, the last ones
    masks, and as a canvas."""
    rng = np.random.default_rng(1)
    embedded = rng.normal(size=(1, _TOKENS, c.hidden)).astype(dtype)
    past = rng.normal(size=(1, c.kv_heads, _ALL, c.head_dim)).astype(dtype)
    cos, sin = rope_tables(c, _ALL)
    rows = np.arange(_TOKENS, dtype=np.int64)
    suppressed = np.zeros(c.vocab, np.float32)
    suppressed[_KEPT_OUT] = SUPPRESSED
    feed: dict[str, Any] = {
        "embedded": embedded, "cos": cos.astype(dtype), "sin": sin.astype(dtype), "rows": rows,
        "targets": rows, "seqlens_k": np.array([_ALL - 1], np.int32),
        "total": np.array(_ALL, np.int32), "suppressed": suppressed,
    }  # fmt: skip
    feed |= {f"past_{part}.{i}": past for i in range(c.layers) for part in ("key", "value")}
    for causal, placed in ((True, False), (True, True), (False, False)):
        if causal != (form == "prefill") and form != "shared":
            continue
        if placed and "placed" not in wanted:
            continue
        given = _TOKENS if placed or not causal else 0
        masks = rows[-_MASKS:] if placed and "mask_rows" in wanted else rows[:0]
        yield (
            (causal, placed),
            feed
            | {
                "causal": np.array(causal), "placed": np.array(placed),
                "positions": _CACHED + rows[None, :given],
                "bias": np.zeros((1, 1, given, _ALL if given else 0), dtype),
                "mask_rows": masks, "scored_masks": masks,
            },
        )  # fmt: skip
