"""Writes small GGUF files with the official package, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

HIDDEN, HEADS, KV_HEADS, INTERMEDIATE, VOCAB = 64, 4, 2, 96, 64

#: The special tokens of SmolLM2, a few letters and digits, and one merged token.
TOKENS = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>"),
    *("<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>"),
    *("<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>"),
    *("<jupyter_script>", "<empty_output>"),
    *"abcdefghijklmnopqrstuvwxyz0123456789Ċ(),.:=_",
    *("ab", "Ġ", "Ġa"),
]


def random(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def interleave(weight: Any, heads: int) -> Any:
    """Reorder the rows of Q and K as llama.cpp's converter does."""
    return (
        weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
        .swapaxes(1, 2)
        .reshape(weight.shape)
    )


def write_llama(
    path: Path,
    quant: str = "F32",
    arch: str = "llama",
    leave_out: str = "",
    extra: dict[str, Any] | None = None,
    strings: dict[str, str] | None = None,
    merges: list[str] | None = None,
    pre: str = "smollm",
    types: list[int] | None = None,
    quants: dict[str, Any] | None = None,
    begin: int | None = None,
    numbers: dict[str, int | float] | None = None,
) -> dict[str, Any]:
    """Write a two-layer file with the official writer; return its tensors by GGUF name."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(2)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(5e4)
    writer.add_layer_norm_rms_eps(1e-5)
    for key, value in (strings or {}).items():
        writer.add_string(key, value)
    for key, number in (numbers or {}).items():
        (writer.add_uint32 if isinstance(number, int) else writer.add_float32)(key, number)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types(types or [3] * 17 + [1] * (VOCAB - 17))
    writer.add_token_merges(merges or ["a b"])
    writer.add_eos_token_id(0)
    if begin is not None:
        writer.add_bos_token_id(begin)
        writer.add_add_bos_token(True)
    kv = HIDDEN // HEADS * KV_HEADS
    tensors: dict[str, Any] = {
        "token_embd.weight": random(VOCAB, HIDDEN),
        "output_norm.weight": random(HIDDEN),
    }
    for i in range(2):
        tensors |= {
            f"blk.{i}.attn_norm.weight": random(HIDDEN, seed=i),
            f"blk.{i}.ffn_norm.weight": random(HIDDEN, seed=i + 9),
            f"blk.{i}.attn_q.weight": random(HIDDEN, HIDDEN, seed=i),
            f"blk.{i}.attn_k.weight": random(kv, HIDDEN, seed=i),
            f"blk.{i}.attn_v.weight": random(kv, HIDDEN, seed=i + 9),
            f"blk.{i}.attn_output.weight": random(HIDDEN, HIDDEN, seed=i + 9),
            f"blk.{i}.ffn_gate.weight": random(INTERMEDIATE, HIDDEN, seed=i),
            f"blk.{i}.ffn_up.weight": random(INTERMEDIATE, HIDDEN, seed=i + 9),
            f"blk.{i}.ffn_down.weight": random(HIDDEN, INTERMEDIATE, seed=i),
        }
    tensors |= extra or {}
    tensors.pop(leave_out, None)
    kind = gguf.GGMLQuantizationType[quant]
    for name, values in tensors.items():
        if values.ndim == 2:
            own = (quants or {}).get(name, kind)
            writer.add_tensor(name, gguf.quants.quantize(values, own), raw_dtype=own)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors
