"""Families of open weights: how to tell them apart and what they were trained to do.

From a Hugging Face ``config.json`` to the fields of :class:`ModelConfig`, and from tensor names of
a layout to ours. Knows nothing of files, tokenizers or running.

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
from ..errors import SettingsError, WeightsError

Attention = Literal["canvas", "bidirectional", "block"]

#: Width of the canvas of weights that see everything; they were trained on any number of masks.
_WIDTH = 32


@dataclass(frozen=True, slots=True)
class Family:
    """What a family's weights were trained to do."""

    name: str
    attention: Attention
    logit_shift: bool  # position i predicts the token at i + 1
    mask: int | None = None  # None: by its name in the tokenizer
    block: int = 0  # unless config.json names another
    in_blocks: bool = False  # there are weights of it that read block by block
    olmo: bool = False  # LLaDA's names of tensors and of configuration fields
    encoder: bool = False  # Nemotron-Labs-Diffusion's names of tensors

    @property
    def plain(self) -> bool:
        """A language model that reads and writes from left to right alone."""
        return self.attention == "canvas" and not self.encoder


_BY_ARCHITECTURE = {  # beginning of architectures[0]
    "DreamModel": Family("Dream", "bidirectional", True, mask=151_666),
    "Fast_dLLM": Family("Fast-dLLM v2", "block", True, mask=151_665, block=32, in_blocks=True),
    "A2D": Family("Tiny-A2D", "bidirectional", False, in_blocks=True),
    "SDAR": Family("SDAR", "block", False, mask=151_669, block=4, in_blocks=True),
    "StableDiffcoder": Family("Stable-DiffCoder", "block", False, block=4, in_blocks=True),
    "NemotronLabsDiffusion": Family(
        "Nemotron-Labs-Diffusion", "canvas", False, mask=100, block=32, encoder=True
    ),
    "LLaDAModelLM": Family("LLaDA", "bidirectional", False, mask=126_336, olmo=True),
}
_BY_TYPE = {  # model_type, where no architecture is named
    "Dream": "DreamModel",
    "Fast_dLLM_Qwen": "Fast_dLLM",
    "a2d-qwen2": "A2D",
    "a2d-qwen3": "A2D",
    "a2d-llama": "A2D",
    "sdar": "SDAR",
    "llada": "LLaDAModelLM",
    "nemotron_labs_diffusion": "NemotronLabsDiffusion",
}
_OPEN_DCODER = Family("Open-dCoder", "bidirectional", True)
_PLAIN = {
    "llama": Family("Llama", "canvas", True),
    "qwen2": Family("Qwen2", "canvas", True),
    "qwen3": Family("Qwen3", "canvas", True),
}
#: DreamOn calls itself Dream; this mark in its vocabulary lets canvases grow.
EXPAND = "<|expand|>"
#: Open-dCoder calls itself plain Qwen2; only the mask in its vocabulary gives it away.
_OPEN_DCODER_MASK = "<M>"


def family_of(hf: Mapping[str, Any], special: Mapping[str, int]) -> Family:
    """The family of a checkpoint.

    Args:
        hf: content of config.json.
        special: ids of the tokenizer's special tokens by name.

    Raises:
        WeightsError: Redraft knows no such family, or its network is not the dense one.
    """
    named = hf.get("architectures") or []
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise _unknown(f"architectures is {named!r}, not a list of names")
    architecture = next(iter(named), "")
    kind = str(hf.get("model_type", ""))
    if "moe" in architecture.lower() or "moe" in kind.lower():
        raise _unknown(f"{architecture or kind} is a mixture of experts")
    for beginning, family in _BY_ARCHITECTURE.items():
        if architecture.startswith(beginning):
            return family
    if not architecture and kind in _BY_TYPE:
        return _BY_ARCHITECTURE[_BY_TYPE[kind]]
    if kind == "qwen2" and _OPEN_DCODER_MASK in special:
        return _OPEN_DCODER
    if kind in _PLAIN and architecture in ("", f"{kind.capitalize()}ForCausalLM"):
        return _PLAIN[kind]
    raise _unknown(f"model_type is {kind!r}, architectures {hf.get('architectures')}")


def _unknown(why: str) -> WeightsError:
    return WeightsError(
        f"These weights are of no family Redraft can run: {why}. Known are dense "
        f"{', '.join(sorted({f.name for f in _BY_ARCHITECTURE.values()}))}, Open-dCoder, Llama, "
        "Qwen2 and Qwen3."
    )


# ------------------------------------------------------------------------------ configuration


def architecture(hf: Mapping[str, Any], family: Family, block: int | None) -> dict[str, Any]:
    """The fields of :class:`ModelConfig` that config.json decides; ``vocab`` counts the rows of
    the embedding, and ``tied``, ``qkv_bias`` and ``qk_norm`` are left to the tensors.

    Args:
        block: tokens of a block, where config.json does not say or says otherwise.

    Raises:
        WeightsError: a field is missing or asks for something the network does not do.
    """
    fields = _olmo_fields(hf) if family.olmo else _llama_fields(hf)
    heads, kv_heads = fields["heads"], fields["kv_heads"]
    if heads % kv_heads or fields["head_dim"] % 2:
        raise _unsupported(f"{heads} heads of {fields['head_dim']}, {kv_heads} for keys")
    rope = _rope(hf, fields["max_positions"], exact=family.encoder)
    return fields | rope | conventions(hf, family, block)


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


def _rope(hf: Mapping[str, Any], trained: int, exact: bool = False) -> dict[str, Any]:
    """Base and scaling; ``rope_parameters`` holds both since version 5 of transformers.

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
    """YaRN that weights were trained with. Past its original positions Ministral scales queries
    too (``llama_4_scaling_beta``), which the network does not: they end there."""
    positions, factor = _count(found, "original_max_position_embeddings"), _number(found, "factor")
    one, all_ = (found.get(key) or 0.0 for key in ("mscale", "mscale_all_dim"))
    magnitude = _magnitude(factor, 1.0)
    if one and all_:
        magnitude = _magnitude(factor, float(one)) / _magnitude(factor, float(all_))
    turns = (_number(found, "beta_fast", 32.0), _number(found, "beta_slow", 1.0))
    return {
        "max_positions": positions,
        "rope_scaling": "none",
        "rope_yarn": (factor, *turns, float(positions), magnitude),
    }


def _magnitude(factor: float, scale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0


def conventions(hf: Mapping[str, Any], family: Family, block: int | None) -> dict[str, Any]:
    """The fields of :class:`ModelConfig` that say how a family's weights write.

    Raises:
        SettingsError: the family does not read in blocks of ``block``.
    """
    attention = family.attention
    if block is not None:
        if block < 2 or not family.in_blocks:
            raise SettingsError(
                f"{family.name} cannot be read in blocks of {block}: leave the block out."
            )
        attention = "block"
    if attention == "block":
        block = block or _count(hf, "bd_size", _count(hf, "block_size", family.block))
    width = 16 if family.plain else block or _WIDTH
    fields: dict[str, Any] = {
        "attention": attention,
        "block": block or 0,
        "canvas_width": width,
        "logit_shift": family.logit_shift,
        "adapter": "none",
    }
    if family.encoder:  # a block is the token before it and masks; it reads one mask more
        width = _count(hf, "block_size", family.block) - 1
        fields |= {"canvas_width": width, "verifier": "ar"}
    return fields


def _count(hf: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = hf.get(key)
    value = default if value is None else value
    if type(value) is not int or not 0 < value < 1 << 31:
        raise _unsupported(f"{key} = {value!r}, which is not a count")
    return value


def _number(hf: Mapping[str, Any], key: str, default: float | None = None) -> float:
    value = hf.get(key)
    value = default if value is None else value
    if type(value) not in (int, float) or not 0 < float(value) < 1e12:  # type: ignore[arg-type]
        raise _unsupported(f"{key} = {value!r}, which is not a positive number")
    return float(value)  # type: ignore[arg-type]


def _unsupported(what: str) -> WeightsError:
    return WeightsError(
        f"config.json asks for {what}. Redraft's network does not do that: choose other weights."
    )


# ------------------------------------------------------------------------------ tensor names

_LLAMA_LINEARS = dict(
    zip(
        LINEARS,
        (
            *(f"self_attn.{part}_proj" for part in "qkvo"),
            *(f"mlp.{part}_proj" for part in ("gate", "up", "down")),
        ),
        strict=True,
    )
)
_OLMO_LINEARS = dict(
    zip(
        LINEARS,
        ("q_proj", "k_proj", "v_proj", "attn_out", "ff_proj", "up_proj", "ff_out"),
        strict=True,
    )
)
#: Tables that some checkpoints carry along though they follow from config.json.
DERIVED = ("rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached")


def names(family: Family, layers: int) -> Iterator[tuple[str, str]]:
    """Our name of every tensor the layout can have, and the layout's; some may be absent."""
    if family.olmo:
        root, block = "model.transformer", "model.transformer.blocks"
        embed, norm, head = f"{root}.wte", f"{root}.ln_f", f"{root}.ff_out"
        norm_attn, norm_mlp, linears = "attn_norm", "ff_norm", _OLMO_LINEARS
    else:
        root = "encoder" if family.encoder else "model"
        block, embed, norm = f"{root}.layers", f"{root}.embed_tokens", f"{root}.norm"
        head = "diffusion_head" if family.encoder else "lm_head"
        norm_attn, norm_mlp = "input_layernorm", "post_attention_layernorm"
        linears = _LLAMA_LINEARS
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
