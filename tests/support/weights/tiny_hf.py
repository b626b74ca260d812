"""Writes tiny random Hugging Face folders in the exact layout of each family.

The weights come from transformers' own Llama, Qwen2 and Qwen3, which are also the independent
reference; only names and config.json are rewritten to what a family publishes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.model.weights.vocabularies import build_bpe

from support.models.tiny import _MERGES

torch = pytest.importorskip("torch", reason="needs torch (pip install '.[lab]')")
transformers = pytest.importorskip(
    "transformers", reason="the reference of imported weights comes with '.[dev]'"
)

torch_files = pytest.importorskip("safetensors.torch")

TEXT = "def area(w, h):\n    size = \n    return size\n\n\nprint(area(2, 3))\n" * 4

#: As Qwen2's own tokenizer.json has it.
QWEN2_PRE_TOKENIZER = {
    "type": "Sequence",
    "pretokenizers": [
        {
            "type": "Split",
            "pattern": {
                "Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
                " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
            },
            "behavior": "Isolated",
            "invert": False,
        },
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
    ],
}

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCAB = 64, 2, 4, 2, 16, 96, 320

#: Special tokens behind the text, as Qwen has them; the mask comes last.
MARKS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>",
    "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
    "<|repo_name|>", "<|file_sep|>",
]  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """The published layout of a family."""

    kind: str  # of transformers: llama, qwen2 or qwen3
    config: dict[str, Any] = field(default_factory=dict)  # what config.json says besides
    mask: str | None = "<|mask|>"  # its name in the tokenizer
    fixed_mask: bool = False  # the id is part of the family: named in config.json here
    tied: bool = False
    olmo: bool = False
    attention: str = "bidirectional"
    block: int = 0
    shift: bool = False
    rope_base: float = 1e6
    rope: dict[str, Any] = field(default_factory=dict)  # positions scaled as in training
    encoder: bool = False
    more: list[str] = field(default_factory=list)  # further special tokens


def _custom(architecture: str, model_type: str, **more: Any) -> dict[str, Any]:
    return {"architectures": [architecture], "model_type": model_type, **more}


LAYOUTS: dict[str, Layout] = {
    "Dream": Layout("qwen2", _custom("DreamModel", "Dream"), fixed_mask=True, shift=True),
    "DreamOn": Layout(
        "qwen2", _custom("DreamModel", "Dream"), fixed_mask=True, shift=True, more=["<|expand|>"]
    ),
    "Open-dCoder": Layout(
        "qwen2", _custom("Qwen2ForCausalLM", "qwen2"), mask="<M>", tied=True, shift=True
    ),
    "Fast-dLLM v2": Layout(
        "qwen2",
        _custom("Fast_dLLM_QwenForCausalLM", "Fast_dLLM_Qwen", bd_size=32),
        mask="|<MASK>|", fixed_mask=True, tied=True, shift=True, attention="block", block=32,
    ),
    "Tiny-A2D on Qwen2": Layout("qwen2", _custom("A2DQwen2LMHeadModel", "a2d-qwen2"), tied=True),
    "Tiny-A2D on Qwen3": Layout("qwen3", _custom("A2DQwen3LMHeadModel", "a2d-qwen3"), tied=True),
    "Tiny-A2D on Llama": Layout("llama", _custom("A2DLlamaLMHeadModel", "a2d-llama")),
    "Tiny-A2D by blocks": Layout(
        "qwen3", _custom("A2DQwen3LMHeadModel", "a2d-qwen3"), tied=True, attention="block", block=32
    ),
    "SDAR": Layout(
        "qwen3", _custom("SDARForCausalLM", "sdar"), mask="<|MASK|>", fixed_mask=True,
        attention="block", block=4,
    ),
    "Stable-DiffCoder": Layout(
        "llama", _custom("StableDiffcoderForCausalLM", "llama"), mask="<[MASK_TOKEN]>",
        attention="block", block=4, rope_base=5e5,
    ),
    "LLaDA": Layout(
        "llama", _custom("LLaDAModelLM", "llada"), mask="<|mdm_mask|>", fixed_mask=True, olmo=True,
        rope_base=5e5,
    ),
    "Nemotron-Labs-Diffusion": Layout(
        "llama", _custom("NemotronLabsDiffusionModel", "nemotron_labs_diffusion", block_size=32),
        mask="<SPECIAL_100>", fixed_mask=True, attention="canvas", encoder=True,
        rope={
            "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "beta_fast": 32.0,
            "beta_slow": 1.0, "original_max_position_embeddings": 128, "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
    ),
    "Llama": Layout("llama", mask=None, attention="canvas", shift=True),
    "Qwen2": Layout("qwen2", mask=None, attention="canvas", shift=True, tied=True),
    "Qwen3": Layout("qwen3", mask=None, attention="canvas", shift=True),
}  # fmt: skip


def reference_model(layout: Layout, seed: int = 0) -> Any:
    """Return transformers' model with random weights, norms and biases included."""
    kinds = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
        "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    }
    make, network = kinds[layout.kind]
    config = make(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS if layout.olmo else KV_HEADS,
        head_dim=HEAD_DIM,
        intermediate_size=INTERMEDIATE,
        max_position_embeddings=2048,
        rms_norm_eps=1e-5,
        **({"rope_parameters": layout.rope} if layout.rope else {"rope_theta": layout.rope_base}),
        tie_word_embeddings=layout.tied,
        attn_implementation="eager",
    )
    torch.manual_seed(seed)
    model = network(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1 and name.endswith("weight"):
                parameter.normal_(1.0, 0.2)
            else:
                scale = parameter.shape[-1] ** -0.5 if parameter.ndim == 2 else 0.3
                parameter.normal_(0.0, 0.5 if "embed" in name or "head" in name else scale)
    return model


def write_hf(folder: Path, layout: Layout, seed: int = 0, shards: int = 1) -> Any:
    """Write the folder of a family; returns the reference model it was made from."""
    folder.mkdir(parents=True)
    model = reference_model(layout, seed)
    model.save_pretrained(folder, max_shard_size="1GB" if shards == 1 else "40KB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    ids = write_tokenizer(folder, layout)
    config = json.loads((folder / "config.json").read_text()) | layout.config
    if layout.olmo:
        config = _olmo_config(config)
        _rename(folder / "model.safetensors")
    if layout.encoder:
        _rename_encoder(folder)
    if layout.fixed_mask:
        config["mask_token_id"] = ids[str(layout.mask)]
    (folder / "config.json").write_text(json.dumps(config))
    return model


def write_tokenizer(folder: Path, layout: Layout) -> dict[str, int]:
    """Byte-level BPE with its special tokens behind the text; returns their ids."""
    alphabet = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [chr(b) for b in alphabet] + [chr(0x100 + i) for i in range(256 - len(alphabet))]
    tokens = [*letters, *(merge.replace(" ", "") for merge in _MERGES)]
    names = MARKS + ([layout.mask] if layout.mask else []) + layout.more
    special = {len(tokens) + i: name for i, name in enumerate(names)}
    vocab = {token: i for i, token in enumerate(tokens)}
    merges = [tuple(merge.split(" ")) for merge in _MERGES]
    build_bpe(vocab, merges, special).save(str(folder / "tokenizer.json"))
    data = json.loads((folder / "tokenizer.json").read_text())
    for added in data["added_tokens"]:  # Qwen flags only some of its special tokens as such
        added["special"] = "fim" not in added["content"]
    (folder / "tokenizer.json").write_text(json.dumps(data))
    return {name: i for i, name in special.items()}


def _olmo_config(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "architectures": config["architectures"], "model_type": config["model_type"],
        "d_model": HIDDEN, "n_heads": HEADS, "n_kv_heads": HEADS, "n_layers": LAYERS,
        "mlp_hidden_size": INTERMEDIATE, "mlp_ratio": 4, "vocab_size": VOCAB,
        "embedding_size": VOCAB, "max_sequence_length": 2048, "rms_norm_eps": 1e-5,
        "rope": True, "rope_theta": 5e5, "weight_tying": False, "include_bias": False,
        "include_qkv_bias": False, "activation_type": "silu", "block_type": "llama",
        "layer_norm_type": "rms", "attention_layer_norm": False, "bias_for_layer_norm": False,
        "alibi": False, "input_emb_norm": False, "scale_logits": False,
    }  # fmt: skip


def _rename(path: Path) -> None:
    """Llama's names to LLaDA's, as its authors publish them."""
    from safetensors.numpy import load_file, save_file

    outer = {"embed_tokens": "wte", "norm": "ln_f", "lm_head": "ff_out"}
    inner = {
        "input_layernorm": "attn_norm", "post_attention_layernorm": "ff_norm", "q_proj": "q_proj",
        "k_proj": "k_proj", "v_proj": "v_proj", "o_proj": "attn_out", "gate_proj": "ff_proj",
        "up_proj": "up_proj", "down_proj": "ff_out",
    }  # fmt: skip
    renamed: dict[str, NDArray[Any]] = {}
    for name, values in load_file(path).items():
        parts = name.split(".")
        if "layers" in parts:
            renamed[f"model.transformer.blocks.{parts[2]}.{inner[parts[-2]]}.weight"] = values
        else:
            renamed[f"model.transformer.{outer[parts[-2]]}.weight"] = values
    save_file(renamed, path)


def _rename_encoder(folder: Path) -> None:
    """Llama's names to Nemotron-Labs-Diffusion's."""
    from safetensors.numpy import load_file, save_file

    for path in folder.glob("*.safetensors"):
        tensors = load_file(path)
        save_file(
            {
                name.replace("model.", "encoder.", 1).replace("lm_head", "diffusion_head"): values
                for name, values in tensors.items()
            },
            path,
        )


def reference_logits(
    model: Any, layout: Layout, tokens: NDArray[np.int64], canvas: int | None = None
) -> NDArray[np.float32]:
    """Logits [n, VOCAB] of a whole sequence under the family's attention.

    Args:
        canvas: from this token on each sees all others.
    """
    n = len(tokens)
    row, column = torch.arange(n)[:, None], torch.arange(n)[None]
    sees = {
        "canvas": column <= row,
        "bidirectional": torch.ones(n, n, dtype=torch.bool),
        "block": column // max(layout.block, 1) <= row // max(layout.block, 1),
    }[layout.attention]
    if canvas is not None:
        sees = sees | (row >= canvas)
    bias = torch.zeros(1, 1, n, n).masked_fill(~sees, torch.finfo(torch.float32).min)
    with torch.no_grad():
        out = model(input_ids=torch.from_numpy(tokens)[None], attention_mask=bias, use_cache=False)
    logits: NDArray[np.float32] = out.logits[0].numpy()
    return logits
