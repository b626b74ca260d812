"""Folders to import: weights, vocabularies, positions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.errors import WeightsError
from redraft.model.prompts.tokenizer import END, MARKS, SUFFIX, find_marks
from redraft.model.runtime.rope import rope_tables
from redraft.model.weights.families import architecture, family_of
from redraft.model.weights.huggingface import read_folder
from redraft.model.weights.vocabularies import read_tokenizer
from safetensors.numpy import load_file, save_file
from support.weights.tiny_hf import (
    LAYOUTS,
    QWEN2_PRE_TOKENIZER,
    TEXT,
    torch,
    torch_files,
    transformers,
    write_hf,
)


def test_shards_and_bfloat16_read_the_same(tmp_path: Path) -> None:
    write_hf(tmp_path / "one", LAYOUTS["SDAR"])
    write_hf(tmp_path / "many", LAYOUTS["SDAR"], shards=4)
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    config, one, *_ = read_folder(tmp_path / "one", "x")
    again, many, *_ = read_folder(tmp_path / "many", "x")
    assert config == again and set(one) == set(many)
    for name in one:
        assert np.array_equal(one[name], many[name])
    path = tmp_path / "one" / "model.safetensors"
    halved = {
        name: values.to(torch.bfloat16) for name, values in torch_files.load_file(path).items()
    }
    torch_files.save_file(halved, path)
    _, rounded, *_ = read_folder(tmp_path / "one", "x")
    kept = halved["model.layers.0.mlp.up_proj.weight"].float().numpy()
    assert np.array_equal(rounded["blocks.0.mlp.up.weight"], kept)


def test_pickles_are_never_read(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    model = tmp_path / "hf" / "model.safetensors"
    model.rename(model.with_name("pytorch_model.bin"))
    with pytest.raises(WeightsError, match=r"pytorch_model\.bin, a pickle"):
        read_folder(tmp_path / "hf")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"architectures": ["SDARMoeForCausalLM"]}, "mixture of experts"),
        ({"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2"}, "mamba2"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "longrope"),
        ({"use_sliding_window": True, "sliding_window": 128}, "sliding window"),
        ({"num_key_value_heads": 3}, "3 for keys"),
        ({"num_hidden_layers": -1}, "num_hidden_layers = -1"),
        ({"num_hidden_layers": 3}, r"blocks\.2"),
        ({"num_hidden_layers": 1}, r"layers\.1"),
        ({"num_hidden_layers": 2_000_000_000}, "says 2,000,000,000 layers"),
        ({"intermediate_size": 64}, "has shape"),
        ({"vocab_size": 200}, "has shape"),
        ({"mask_token_id": 3}, "token 3"),
        ({"quantization": {"group_size": 64, "bits": 4}}, "quantised.*'bits': 4"),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, "compressed-tensors"),
        ({"architectures": 7}, "7, not a list of names"),
        ({"architectures": [7]}, r"\[7\], not a list of names"),
        ({"eos_token_id": [2, 151_645]}, "ends texts with the token 151,645, the tokenizer"),
    ],
)
def test_what_cannot_run_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(WeightsError, match=said):
        read_folder(tmp_path / "hf")


@pytest.mark.parametrize("damage", ["cut", "header", "lengths", "outside", "not finite"])
def test_damaged_tensor_files_are_refused(damage: str, tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "model.safetensors"
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    entry = header["model.norm.weight"]
    begin, end = entry["data_offsets"]
    if damage == "cut":
        raw = raw[: len(raw) // 2]
    elif damage == "header":
        raw = (1 << 40).to_bytes(8, "little") + raw[8:]
    elif damage == "not finite":
        at = 8 + length + begin
        raw = raw[:at] + np.float32(np.nan).tobytes() + raw[at + 4 :]
    else:
        entry["data_offsets"] = [begin, end - 4 if damage == "lengths" else 1 << 40]
        data = json.dumps(header).encode()
        raw = len(data).to_bytes(8, "little") + data + raw[8 + length :]
    path.write_bytes(raw)
    with pytest.raises(WeightsError, match=r"model\.safetensors"):
        _, tensors, *_ = read_folder(tmp_path / "hf")
        dict(tensors)


def test_an_index_reaches_no_files_elsewhere(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"], shards=4)
    index = tmp_path / "hf" / "model.safetensors.index.json"
    data = json.loads(index.read_text())
    data["weight_map"]["model.norm.weight"] = "../elsewhere.safetensors"
    index.write_text(json.dumps(data))
    with pytest.raises(WeightsError, match="files beside it"):
        read_folder(tmp_path / "hf")


def test_text_forges_no_mark_of_another_vocabulary(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["Dream"])
    tokenizer = read_tokenizer(tmp_path / "hf" / "tokenizer.json")
    for text in ("a <|fim_suffix|> b", "<|mask|>", "x<|endoftext|>"):
        ids = tokenizer.encode(text)
        assert not set(ids) & set(tokenizer.special)
        assert tokenizer.decode(ids) == text
    assert tokenizer.special[tokenizer.mark(SUFFIX)] == "<|fim_suffix|>"
    assert len({tokenizer.mark(mark) for mark in MARKS}) == len(MARKS)


def test_no_tokenizer_json_encodes_the_same(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["Dream"])
    folder = tmp_path / "hf"
    data = json.loads((folder / "tokenizer.json").read_text())
    data["pre_tokenizer"] = QWEN2_PRE_TOKENIZER
    (folder / "tokenizer.json").write_text(json.dumps(data))
    expected = read_tokenizer(folder / "tokenizer.json")
    added = {str(token["id"]): token for token in data["added_tokens"]}
    (folder / "tokenizer.json").unlink()
    names = {token["content"] for token in added.values()}
    vocab = {token: i for token, i in data["model"]["vocab"].items() if token not in names}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    merges = [" ".join(merge) for merge in data["model"]["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    found = read_folder(folder).tokenizer
    assert found.special == expected.special
    for text in ("def foo():\n        return  x1234\n\n", "don't <|fim_pad|> é日\t", TEXT):
        assert found.encode(text) == expected.encode(text)
        assert found.decode(found.encode(text)) == text


def test_reserved_tokens_become_unnamed_marks() -> None:
    special = {0: "<|begin_of_text|>", 1: "<|end_of_text|>", 2: "<|eot_id|>"}
    special |= {i: f"<|reserved_special_token_{i}|>" for i in range(3, 12)}
    found = find_marks(special)
    assert found[END] == 1
    assert set(found) == set(MARKS) and len(set(found.values())) == len(MARKS)
    assert not {0, 2} & set(found.values())


def few_marks(data: dict[str, Any]) -> None:
    data["added_tokens"] = data["added_tokens"][:3]


def more_tokens(data: dict[str, Any]) -> None:
    last = data["added_tokens"][-1]
    data["added_tokens"] += [{**last, "id": 286 + i, "content": f"<x{i}>"} for i in range(38)]


def far_beyond(data: dict[str, Any]) -> None:
    data["model"]["vocab"]["zzzz"] = 10**9


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (few_marks, "needs as marks"),
        (more_tokens, "325 tokens, the embedding has 320.*download them again"),
        (lambda data: data["model"].update(vocab=[1]), "invalid type"),
        (lambda data: data.update(model="BPE"), "not laid out as a tokenizer"),
        (far_beyond, r"up to 1,000,000,000 and has \d+ of them"),
        (lambda data: data.update(pre_tokenizer=None, decoder=None), "byte-level"),
    ],
)
def test_a_tokenizer_that_cannot_be_used_is_refused(
    spoil: Callable[[dict[str, Any]], None], said: str, tmp_path: Path
) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "tokenizer.json"
    data = json.loads(path.read_text())
    spoil(data)
    path.write_text(json.dumps(data))
    with pytest.raises(WeightsError, match=said):
        read_folder(tmp_path / "hf")


def test_integers_are_refused_before_any_is_read(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "model.safetensors"
    stored = load_file(path)
    stored["model.norm.weight"] = stored["model.norm.weight"].astype(np.int8)
    save_file(stored, path)
    with pytest.raises(WeightsError, match=r"as I8.*not quantised"):
        read_folder(tmp_path / "hf")


LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256, "rope_theta": 5e5,
}  # fmt: skip
LINEAR = {"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_theta": 1e5}


@pytest.mark.parametrize(
    "positions",
    [
        {"hidden_size": 256, "rope_parameters": LLAMA3},
        # As DeepSeek-Coder was trained: from the first position on.
        {"hidden_size": 64, **LINEAR},
    ],
)
def test_scaled_positions_equal_the_reference(positions: dict[str, Any]) -> None:
    hf = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_attention_heads": 4,
        "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 320,
        "max_position_embeddings": 2048, **positions,
    }  # fmt: skip
    config = ModelConfig(**architecture(hf, family_of(hf, {})))
    cos, sin = rope_tables(config, 300)
    rotary = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding
    theirs = rotary(transformers.LlamaConfig(**hf))(torch.zeros(1), torch.arange(300)[None])
    half = config.head_dim // 2
    for ours, other in zip((cos, sin), theirs, strict=True):
        assert np.abs(ours - other[0, :, :half].numpy()).max() < 1e-4
    assert config.max_positions == 2048
    plain, _ = rope_tables(replace(config, rope_llama3=(), rope_divisors=()), 300)
    assert np.abs(plain - cos).max() > 0.1
    assert ModelConfig.from_dict(json.loads(config.to_json())) == config


def test_older_configurations_are_written_as_they_were() -> None:
    written = json.loads(ModelConfig().to_json())
    assert not {"attention", "block", "special_from", "rope_llama3", "rope_divisors"} & set(written)
    assert ModelConfig.from_dict(written) == ModelConfig()
