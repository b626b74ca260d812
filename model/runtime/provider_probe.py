"""Does an execution provider of onnxruntime compute what the CPU does? Tried once, before use.

A tiny network of our own with random weights runs on both: every operator of the real graphs is in
it, and a provider that gets one wrong, or does not load, is refused with the reason. Knows nothing
of models or settings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import LINEARS, ModelConfig
from ..network.rope import rope_tables

#: Largest difference of logits whose spread is about ten: half precision inside is fine, another
#: result is not.
CLOSE = 0.1

_TOKENS, _ROOM = 12, 16
_CONFIG = ModelConfig(
    name="probe", vocab=96, hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16,
    intermediate=96, adapter="none", max_positions=64,
)  # fmt: skip

#: Opens a graph on a provider.
Opener = Callable[[Path, str], Any]


def provider_problem(runtime: ModuleType, provider: str, opened: Opener | None = None) -> str:
    """Why ``provider`` (such as "CoreMLExecutionProvider") cannot be used; "" when it can.

    Args:
        opened: opens sessions; for tests.
    """
    if provider not in runtime.get_available_providers():
        return f"the installed onnxruntime has no {provider}"
    opens = opened or _opener(runtime)
    with tempfile.TemporaryDirectory() as folder:
        path = _write(Path(folder))
        expected = _logits(opens(path, "CPUExecutionProvider"))
        try:
            session = opens(path, provider)
            if provider not in session.get_providers():
                return f"{provider} does not load: a driver or a library is missing"
            found = _logits(session)
        except Exception as error:  # whatever keeps it from working: the CPU serves
            return f"{provider} does not run our graphs: {str(error).strip().splitlines()[0]}"
    apart = float(np.abs(found - expected).max()) if np.isfinite(found).all() else np.inf
    if apart > CLOSE:
        return f"{provider} computes something else: logits differ by {apart:.3g} from the CPU's"
    return ""


def _opener(runtime: ModuleType) -> Opener:
    def open_session(path: Path, provider: str) -> Any:
        options = runtime.SessionOptions()
        options.log_severity_level = 4  # a failure is reported by us, once
        options.intra_op_num_threads = 1
        names = list(dict.fromkeys((provider, "CPUExecutionProvider")))
        return runtime.InferenceSession(str(path), options, providers=names)

    return open_session


def _write(folder: Path) -> Path:
    from ..network.onnx_files import materialise  # here: most processes never probe
    from ..network.onnx_graph import forms_of

    weights = _weights(np.random.default_rng(0))
    materialise(_CONFIG, weights, weights, "q8", folder)
    (form,) = forms_of(_CONFIG, "q8")
    return folder / f"{form}.onnx"


def _weights(rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    c = _CONFIG
    wide, keys = c.heads * c.head_dim, c.kv_heads * c.head_dim
    sizes = {
        "attn.q": (wide, c.hidden), "attn.k": (keys, c.hidden), "attn.v": (keys, c.hidden),
        "attn.o": (c.hidden, wide), "mlp.gate": (c.intermediate, c.hidden),
        "mlp.up": (c.intermediate, c.hidden), "mlp.down": (c.hidden, c.intermediate),
    }  # fmt: skip
    found = {"embed.weight": rng.normal(size=(c.vocab, c.hidden)) * 0.5}
    found["norm.weight"] = np.ones(c.hidden)
    for i in range(c.layers):
        for name in ("norm_attn", "norm_mlp"):
            found[f"blocks.{i}.{name}.weight"] = np.ones(c.hidden)
        for name in LINEARS:
            found[f"blocks.{i}.{name}.weight"] = rng.normal(size=sizes[name]) / 8
    return {name: values.astype(np.float32) for name, values in found.items()}


def _logits(session: Any) -> NDArray[np.float32]:
    """Of a causal pass over some tokens, of one that is told their places, and of a canvas over the
    same. [3, tokens, vocab]"""
    c = _CONFIG
    embedded = np.random.default_rng(1).normal(size=(1, _TOKENS, c.hidden)).astype(np.float32)
    cos, sin = rope_tables(c, _ROOM)
    rows = np.arange(_TOKENS, dtype=np.int64)
    past = np.zeros((1, c.kv_heads, _ROOM, c.head_dim), np.float32)
    feed: dict[str, Any] = {
        "embedded": embedded, "cos": cos, "sin": sin, "rows": rows, "targets": rows,
        "seqlens_k": np.array([_TOKENS - 1], np.int32), "total": np.array(_TOKENS, np.int32),
        "suppressed": np.zeros(c.vocab, np.float32),
    }  # fmt: skip
    feed |= {f"past_{part}.{i}": past for i in range(c.layers) for part in ("key", "value")}
    said = []
    for causal, placed in ((True, False), (True, True), (False, False)):
        count = 0 if causal and not placed else _TOKENS
        feed |= {
            "causal": np.array(causal),
            "placed": np.array(placed),
            "positions": rows[None, :count],
            "bias": np.zeros((1, 1, count, count), np.float32),
        }
        wanted = {entry.name for entry in session.get_inputs()}
        given = {name: value for name, value in feed.items() if name in wanted}
        said.append(session.run(["logits"], given)[0])
    return np.stack(said)
