"""Families of open weights: how to tell them apart and what they were trained to do.

Sources: Dream (2508.15487), DiffuCoder (2506.20639), DreamOn (2602.01326), Fast-dLLM v2
(2509.26328), SDAR (2510.06303), Stable-DiffCoder (2601.15892), LLaDA (2502.09992), and the
configuration files published with each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..config import LINEARS
from ..errors import WeightsError

#: Width of the canvas of weights that see everything; they were trained on any number of masks.
_WIDTH = 32


@dataclass(frozen=True, slots=True)
class Family:
    """A family of weights, and what they were trained to do."""

    name: str
    architecture: str  # beginning of architectures[0] in config.json
    types: tuple[str, ...]  # model_type, where no architecture is named
    attention: Literal["canvas", "bidirectional", "block"]
    logit_shift: bool  # position i predicts the token at i + 1
    mask: int | None = None  # token; None: by its name in the tokenizer
    block: int = 0  # tokens of a block, unless config.json names another number
    layout: Literal["llama", "olmo", "encoder"] = "llama"  # names of tensors

    @property
    def plain(self) -> bool:
        """Return whether these language models read and write from left to right alone."""
        return self.attention == "canvas" and self.layout == "llama"


_DIFFUSION = (
    Family("Dream", "DreamModel", ("Dream",), "bidirectional", True, mask=151_666),
    Family("Fast-dLLM v2", "Fast_dLLM", ("Fast_dLLM_Qwen",), "block", True, 151_665, block=32),
    Family("LLaDA", "LLaDAModelLM", ("llada",), "bidirectional", False, 126_336, layout="olmo"),
    Family(
        "Nemotron-Labs-Diffusion", "NemotronLabsDiffusion", ("nemotron_labs_diffusion",), "canvas",
        False, mask=100, block=32, layout="encoder",
    ),
    Family("SDAR", "SDAR", ("sdar",), "block", False, mask=151_669, block=4),
    Family("Stable-DiffCoder", "StableDiffcoder", (), "block", False, block=4),
    Family(
        "Tiny-A2D", "A2D", ("a2d-qwen2", "a2d-qwen3", "a2d-llama"), "bidirectional", False
    ),
)  # fmt: skip
_PLAIN = tuple(
    Family(name, f"{name}ForCausalLM", (name.lower(),), "canvas", True)
    for name in ("Llama", "Qwen2", "Qwen3")
)
#: Open-dCoder calls itself plain Qwen2; only the mask in its vocabulary gives it away.
_OPEN_DCODER = Family("Open-dCoder", "Qwen2ForCausalLM", ("qwen2",), "bidirectional", True)
_OPEN_DCODER_MASK = "<M>"
#: DreamOn calls itself Dream; this mark in its vocabulary lets canvases grow.
EXPAND = "<|expand|>"


def family_of(hf: Mapping[str, Any], special: Mapping[int, str]) -> Family:
    """Return the family of a checkpoint.

    Args:
        hf: content of config.json.
        special: names of the tokenizer's special tokens by their ids.

    Raises:
        WeightsError: Redraft knows no such family, or its network is not the dense one.
    """
    named, kind = hf.get("architectures") or [], str(hf.get("model_type", ""))
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise _unknown(f"architectures is {named!r}, not a list of names")
    architecture = next(iter(named), "")
    if "moe" in f"{architecture} {kind}".lower():
        raise _unknown(f"{architecture or kind} is a mixture of experts")
    for family in _DIFFUSION:
        if architecture.startswith(family.architecture) or (
            not architecture and kind in family.types
        ):
            return family
    if kind == "qwen2" and _OPEN_DCODER_MASK in special.values():
        return _OPEN_DCODER
    for family in _PLAIN:
        if kind in family.types and architecture in ("", family.architecture):
            return family
    raise _unknown(f"model_type is {kind!r}, architectures {hf.get('architectures')}")


def _unknown(why: str) -> WeightsError:
    return WeightsError(
        f"These weights are of no family Redraft can run: {why}. Known are dense "
        f"{', '.join(family.name for family in _DIFFUSION)}, Open-dCoder, Llama, Qwen2 and Qwen3."
    )


# --- configuration --------------------------------------------------------------------------------


def architecture(hf: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """Return the fields of :class:`ModelConfig` that config.json decides.

    ``vocab`` counts the rows of the embedding; ``tied``, ``qkv_bias`` and ``qk_norm`` are left to
    the tensors.

    Raises:
        WeightsError: a field is missing or asks for something the network does not do.
    """
    fields = _olmo_fields(hf) if family.layout == "olmo" else _llama_fields(hf)
    heads, kv_heads = fields["heads"], fields["kv_heads"]
    if heads % kv_heads or fields["head_dim"] % 2:
        raise _unsupported(f"{heads} heads of {fields['head_dim']}, {kv_heads} for keys")
    rope = _rope(hf, fields["max_positions"], exact=family.layout == "encoder")
    return fields | rope | conventions(hf, family)


def conventions(hf: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """Return the fields of :class:`ModelConfig` that say how a family's weights write."""
    fields: dict[str, Any] = {
        "attention": family.attention,
        "block": 0,
        "canvas_width": 16 if family.plain else _WIDTH,
        "logit_shift": family.logit_shift,
        "adapter": "none",
    }
    if not family.block:
        return fields
    block = _count(hf, "bd_size", _count(hf, "block_size", family.block))
    if family.attention == "block":
        return fields | {"block": block, "canvas_width": block}
    # A block is the token before it and masks; it reads one mask more.
    return fields | {"canvas_width": block - 1, "verifier": "ar"}


def _llama_fields(hf: Mapping[str, Any]) -> dict[str, Any]:
    activation = hf.get("hidden_act", "silu")
    if activation != "silu":
        raise _unsupported(f"the activation {activation!r}; known is silu")
    window = hf.get("sliding_window") if hf.get("use_sliding_window") else None
    sliding = {kind for kind in hf.get("layer_types") or () if kind != "full_attention"}
    if window or sliding:
        raise _unsupported(f"a sliding window of {window} tokens {sorted(sliding)}")
    hidden, heads = _count(hf, "hidden_size"), _count(hf, "num_attention_heads")
    return {
        "vocab": _count(hf, "vocab_size"),
        "hidden": hidden,
        "layers": _count(hf, "num_hidden_layers"),
        "heads": heads,
        "kv_heads": _count(hf, "num_key_value_heads", heads),
        "head_dim": _count(hf, "head_dim", hidden // heads),
        "intermediate": _count(hf, "intermediate_size"),
        "norm_eps": _number(hf, "rms_norm_eps", 1e-6),
        "max_positions": _count(hf, "max_position_embeddings"),
    }


def _olmo_fields(hf: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {
        "activation_type": "silu", "block_type": "llama", "layer_norm_type": "rms", "rope": True,
        "alibi": False, "attention_layer_norm": False, "input_emb_norm": False,
        "scale_logits": False, "include_bias": False, "bias_for_layer_norm": False,
    }  # fmt: skip
    for key, value in wanted.items():
        if hf.get(key, value) not in (value, None):
            raise _unsupported(f"{key} = {hf[key]!r}; known is {value!r}")
    hidden, heads = _count(hf, "d_model"), _count(hf, "n_heads")
    ratio = _number(hf, "mlp_ratio", 4.0)
    return {
        "vocab": _count(hf, "embedding_size", _count(hf, "vocab_size")),
        "hidden": hidden,
        "layers": _count(hf, "n_layers"),
        "heads": heads,
        "kv_heads": _count(hf, "n_kv_heads", heads),
        "head_dim": hidden // heads,
        "intermediate": _count(hf, "mlp_hidden_size", round(hidden * ratio)),
        "norm_eps": _number(hf, "rms_norm_eps", 1e-5),
        "max_positions": _count(hf, "max_sequence_length"),
    }


def _rope(hf: Mapping[str, Any], trained: int, exact: bool) -> dict[str, Any]:
    """Return base and scaling; ``rope_parameters`` holds both since version 5 of transformers.

    A scaling that stretches weights past the range they were trained on acts here only past that
    range; one they were trained with has to be exact: Llama 3's, a linear one, and where ``exact``
    YaRN.
    """
    found = hf.get("rope_parameters") or hf.get("rope_scaling") or {}
    if not isinstance(found, Mapping):
        raise _unsupported(f"rope_scaling = {found!r}")
    base = found.get("rope_theta", hf.get("rope_theta", 10_000.0))
    kind = found.get("rope_type", found.get("type", "default"))
    fields: dict[str, Any] = {"rope_base": _number({"rope_theta": base}, "rope_theta")}
    if kind == "llama3":
        parts = ("factor", "low_freq_factor", "high_freq_factor")
        positions = float(_count(found, "original_max_position_embeddings"))
        return fields | {"rope_llama3": (*(_number(found, key) for key in parts), positions)}
    if kind == "yarn" and exact:
        return fields | _exact_yarn(found)
    if kind in ("yarn", "dynamic"):
        original = _count(found, "original_max_position_embeddings", trained)
        scaling = "yarn" if kind == "yarn" else "ntk"
        return fields | {"max_positions": original, "rope_scaling": scaling}
    if kind == "linear":
        return fields | {"rope_divisors": (_number(found, "factor"),)}
    if kind not in ("default", None):
        known = "llama3, yarn, dynamic and linear"
        raise _unsupported(f"positions scaled by {kind!r}; known are {known}")
    return fields


def _exact_yarn(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return YaRN that weights were trained with.

    Past its original positions Ministral scales queries too (``llama_4_scaling_beta``), which the
    network does not: they end there.
    """
    positions, factor = _count(found, "original_max_position_embeddings"), _number(found, "factor")

    def magnitude(scale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0

    one, every = (found.get(key) or 0.0 for key in ("mscale", "mscale_all_dim"))
    both = magnitude(float(one)) / magnitude(float(every)) if one and every else magnitude(1.0)
    turns = (_number(found, "beta_fast", 32.0), _number(found, "beta_slow", 1.0))
    return {
        "max_positions": positions,
        "rope_scaling": "none",
        "rope_yarn": (factor, *turns, float(positions), both),
    }


def _count(hf: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = default if hf.get(key) is None else hf[key]
    if type(value) is not int or not 0 < value < 1 << 31:
        raise _unsupported(f"{key} = {value!r}, which is not a count")
    return value


def _number(hf: Mapping[str, Any], key: str, default: float | None = None) -> float:
    value: Any = default if hf.get(key) is None else hf[key]
    if type(value) not in (int, float) or not 0 < value < 1e12:
        raise _unsupported(f"{key} = {value!r}, which is not a positive number")
    return float(value)


def _unsupported(what: str) -> WeightsError:
    return WeightsError(
        f"config.json asks for {what}. Redraft's network does not do that: choose other weights."
    )


# --- tensor names ---------------------------------------------------------------------------------


def _llama_names(root: str, head: str) -> tuple[str, ...]:
    return (
        *(f"{root}.embed_tokens", f"{root}.norm", head),
        *(f"{root}.layers", "input_layernorm", "post_attention_layernorm"),
        *(f"self_attn.{part}_proj" for part in "qkvo"),
        *(f"mlp.{part}_proj" for part in ("gate", "up", "down")),
    )


#: Per layout: embedding, norm and head; the blocks and their norms; their linear maps, as LINEARS.
_NAMES = {
    "llama": _llama_names("model", "lm_head"),
    "encoder": _llama_names("encoder", "diffusion_head"),
    "olmo": (
        *("model.transformer.wte", "model.transformer.ln_f", "model.transformer.ff_out"),
        *("model.transformer.blocks", "attn_norm", "ff_norm"),
        *("q_proj", "k_proj", "v_proj", "attn_out", "ff_proj", "up_proj", "ff_out"),
    ),
}
#: Tables that some checkpoints carry along though they follow from config.json.
DERIVED = ("rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached")


def names(family: Family, layers: int) -> Iterator[tuple[str, str]]:
    """Yield our name and the layout's of every tensor it can have; some may be absent."""
    embed, norm, head, block, norm_attn, norm_mlp, *maps = _NAMES[family.layout]
    linears = dict(zip(LINEARS, maps, strict=True))
    yield "embed.weight", f"{embed}.weight"
    yield "norm.weight", f"{norm}.weight"
    yield "head.weight", f"{head}.weight"
    for i in range(layers):
        ours, theirs = f"blocks.{i}", f"{block}.{i}"
        yield f"{ours}.norm_attn.weight", f"{theirs}.{norm_attn}.weight"
        yield f"{ours}.norm_mlp.weight", f"{theirs}.{norm_mlp}.weight"
        for name, their_name in linears.items():
            yield f"{ours}.{name}.weight", f"{theirs}.{their_name}.weight"
        for part in "qkv":
            yield f"{ours}.attn.{part}.bias", f"{theirs}.{linears[f'attn.{part}']}.bias"
        for part in "qk":
            yield f"{ours}.attn.{part}_norm.weight", f"{theirs}.self_attn.{part}_norm.weight"
