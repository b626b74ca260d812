"""A plain numpy forward pass, written to be obviously right: what every faster path must equal.

No cache, no fused operators, float64 inside. Also makes random weights for tiny configurations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from redraft.model.config import ModelConfig
from redraft.model.runtime.rope import rope_tables

Weights = dict[str, NDArray[np.float32]]
Array = NDArray[np.float64]


def random_weights(config: ModelConfig, seed: int = 0) -> Weights:
    """Weights with activations of about one everywhere and logits that differ clearly."""
    rng = np.random.default_rng(seed)
    c = config
    width, kv_width = c.heads * c.head_dim, c.kv_heads * c.head_dim
    shapes = {
        "attn.q": (width, c.hidden),
        "attn.k": (kv_width, c.hidden),
        "attn.v": (kv_width, c.hidden),
        "attn.o": (c.hidden, width),
        "mlp.gate": (c.intermediate, c.hidden),
        "mlp.up": (c.intermediate, c.hidden),
        "mlp.down": (c.hidden, c.intermediate),
    }
    weights: Weights = {}

    def normal(name: str, shape: tuple[int, ...], scale: float, mean: float = 0.0) -> None:
        weights[name] = (rng.normal(size=shape) * scale + mean).astype(np.float32)

    normal("embed.weight", (c.vocab, c.hidden), 0.5)
    normal("norm.weight", (c.hidden,), 0.1, 1.0)
    if not c.tied:
        normal("head.weight", (c.vocab, c.hidden), 0.5)
    for i in range(c.layers):
        for name, shape in shapes.items():
            normal(f"blocks.{i}.{name}.weight", shape, shape[1] ** -0.5)
            if c.qkv_bias and name in ("attn.q", "attn.k", "attn.v"):
                normal(f"blocks.{i}.{name}.bias", shape[:1], 0.3)
        for name in ("norm_attn", "norm_mlp"):
            normal(f"blocks.{i}.{name}.weight", (c.hidden,), 0.1, 1.0)
        if c.qk_norm:
            for name in ("q_norm", "k_norm"):
                normal(f"blocks.{i}.attn.{name}.weight", (c.head_dim,), 0.1, 1.0)
    return weights


def adapted(config: ModelConfig, weights: Weights, seed: int = 1) -> Weights:
    """Return the weights with changed linear maps and mask embedding, for the canvas."""
    rng = np.random.default_rng(seed)
    moved = dict(weights)
    for name, value in weights.items():
        if name.startswith("blocks") and name.endswith(".weight") and value.ndim == 2:
            noise = rng.normal(size=value.shape) * 0.3 * value.shape[1] ** -0.5
            moved[name] = (value + noise).astype(np.float32)
    embed = weights["embed.weight"].copy()
    embed[config.mask_token] = rng.normal(size=config.hidden) * 0.5
    moved["embed.weight"] = embed
    return moved


class Reference:
    """The two passes over whole sequences, without any cache.

    Args:
        capacity: of the sequence it is compared with; decides the rotary tables.
    """

    def __init__(
        self, config: ModelConfig, context: Weights, canvas: Weights, capacity: int
    ) -> None:
        self.config = config
        self.context = context
        self.canvas = canvas
        self.cos, self.sin = rope_tables(config, capacity)

    def scores(self, tokens: NDArray[np.int64]) -> Array:
        """Return the log-probabilities of tokens[1:], each given all before it: [n - 1]."""
        logits = self.causal_logits(tokens)[:-1]  # [n - 1, vocab]
        return log_softmax(logits)[np.arange(len(logits)), tokens[1:]]

    def causal_logits(self, tokens: NDArray[np.int64]) -> Array:
        """Return the logits of all positions: [n] -> [n, vocab]."""
        n = len(tokens)
        causal = np.tril(np.ones((n, n), bool))
        x, _ = self._run(self.context, self._embed(self.context, tokens), np.arange(n), [], causal)
        return self._logits(x)

    def canvas_logits(self, cached: NDArray[np.int64], window: NDArray[np.int64]) -> Array:
        """Return the logits of a window [B] after the tokens ``cached``: [B, vocab]."""
        n, width = len(cached), len(window)
        causal = np.tril(np.ones((n, n), bool))
        past: list[tuple[Array, Array]] = []
        if n:
            x = self._embed(self.context, cached)
            _, past = self._run(self.context, x, np.arange(n), [], causal)
        everyone = np.ones((width, n + width), bool)
        x = self._embed(self.canvas, window)
        hidden, _ = self._run(self.canvas, x, n + np.arange(width), past, everyone)
        return self._logits(hidden)

    def _embed(self, weights: Weights, tokens: NDArray[np.int64]) -> Array:
        return weights["embed.weight"][tokens].astype(np.float64)

    def _logits(self, hidden: Array) -> Array:
        c = self.config
        head = self.context["embed.weight" if c.tied else "head.weight"]
        logits = self._norm(hidden, self.context["norm.weight"]) @ head.T.astype(np.float64)
        special = np.arange(c.vocab) < c.special_tokens
        special[c.end_token] = False
        logits[:, special] = -1e9
        return logits

    def _run(
        self,
        weights: Weights,
        x: Array,
        positions: NDArray[np.int64],
        past: list[tuple[Array, Array]],
        sees: NDArray[np.bool_],
    ) -> tuple[Array, list[tuple[Array, Array]]]:
        own = []
        for i in range(self.config.layers):
            block = {
                k.removeprefix(f"blocks.{i}."): v
                for k, v in weights.items()
                if k.startswith(f"blocks.{i}.")
            }
            y = self._norm(x, block["norm_attn.weight"])
            y, kv = self._attend(block, y, positions, past[i] if past else None, sees)
            own.append(kv)
            x = x + y
            y = self._norm(x, block["norm_mlp.weight"])
            gate, up = y @ block["mlp.gate.weight"].T, y @ block["mlp.up.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ block["mlp.down.weight"].T
        return x, own

    def _attend(
        self,
        block: Weights,
        y: Array,
        positions: NDArray[np.int64],
        past: tuple[Array, Array] | None,
        sees: NDArray[np.bool_],
    ) -> tuple[Array, tuple[Array, Array]]:
        c = self.config
        q, k, v = (
            (y @ block[f"attn.{part}.weight"].T + block.get(f"attn.{part}.bias", 0.0)).reshape(
                len(y), heads, c.head_dim
            )
            for part, heads in (("q", c.heads), ("k", c.kv_heads), ("v", c.kv_heads))
        )
        if c.qk_norm:
            q = self._norm(q, block["attn.q_norm.weight"])
            k = self._norm(k, block["attn.k_norm.weight"])
        q, k = self._rotate(q, positions), self._rotate(k, positions)
        own = (k, v)
        if past is not None:
            k, v = np.concatenate([past[0], k]), np.concatenate([past[1], v])
        out = np.empty_like(q)
        for head in range(c.heads):
            group = head // (c.heads // c.kv_heads)
            scores = q[:, head] @ k[:, group].T / np.sqrt(c.head_dim)
            scores = np.where(sees, scores, -np.inf)
            out[:, head] = np.exp(log_softmax(scores)) @ v[:, group]
        return out.reshape(len(y), -1) @ block["attn.o.weight"].T, own

    def _rotate(self, x: Array, positions: NDArray[np.int64]) -> Array:
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        first, second = np.split(x, 2, axis=-1)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

    def _norm(self, x: Array, weight: NDArray[np.float32]) -> Array:
        scale = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.config.norm_eps)
        return x / scale * weight


def log_softmax(x: Array) -> Array:
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
