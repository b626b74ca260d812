"""What is read of a folder to import: weights, vocabularies, positions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.network.rope import rope_tables
from redraft.model.prompt.marks import find_marks
from redraft.model.prompt.tokens import END, MARKS, SUFFIX, Tokenizer
from redraft.model.weights.families import architecture, family_of
from redraft.model.weights.huggingface import read_hf_checkpoint
from safetensors.numpy import load_file, save_file
from support.tiny_hf import (
    LAYOUTS,
    QWEN2_PRE_TOKENIZER,
    TEXT,
    torch,
    torch_files,
    transformers,
    write_hf,
)

# ------------------------------------------------------------------------------ reading


def test_shards_and_bfloat16_read_the_same(tmp_path: Path) -> None:
    write_hf(tmp_path / "one", LAYOUTS["SDAR"])
    write_hf(tmp_path / "many", LAYOUTS["SDAR"], shards=4)
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    config, one, _ = read_hf_checkpoint(tmp_path / "one", "x")
    again, many, _ = read_hf_checkpoint(tmp_path / "many", "x")
    assert config == again and set(one) == set(many)
    for name in one:
        assert np.array_equal(one[name], many[name])
    path = tmp_path / "one" / "model.safetensors"
    halved = {
        name: values.to(torch.bfloat16) for name, values in torch_files.load_file(path).items()
    }
    torch_files.save_file(halved, path)
    _, rounded, _ = read_hf_checkpoint(tmp_path / "one", "x")
    kept = halved["model.layers.0.mlp.up_proj.weight"].float().numpy()
    assert np.array_equal(rounded["blocks.0.mlp.up.weight"], kept)


def test_pickles_are_never_read(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    model = tmp_path / "hf" / "model.safetensors"
    model.rename(model.with_name("pytorch_model.bin"))
    with pytest.raises(WeightsError, match=r"pytorch_model\.bin, a pickle"):
        read_hf_checkpoint(tmp_path / "hf")


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
def test_what_the_network_cannot_run_is_refused(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(WeightsError, match=said):
        read_hf_checkpoint(tmp_path / "hf")


def test_blocks_are_refused_where_weights_know_none(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["LLaDA"])
    with pytest.raises(SettingsError, match="LLaDA cannot be read in blocks of 8"):
        read_hf_checkpoint(tmp_path / "hf", block=8)
    write_hf(tmp_path / "sdar", LAYOUTS["SDAR"])
    config, _, _ = read_hf_checkpoint(tmp_path / "sdar", block=64)
    assert (config.block, config.canvas_width) == (64, 64)


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
        _, tensors, _ = read_hf_checkpoint(tmp_path / "hf")
        dict(tensors)


def test_an_index_reaches_no_files_elsewhere(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"], shards=4)
    index = tmp_path / "hf" / "model.safetensors.index.json"
    data = json.loads(index.read_text())
    data["weight_map"]["model.norm.weight"] = "../elsewhere.safetensors"
    index.write_text(json.dumps(data))
    with pytest.raises(WeightsError, match="files beside it"):
        read_hf_checkpoint(tmp_path / "hf")


# ------------------------------------------------------------------------------ vocabularies


def test_text_forges_no_mark_of_another_vocabulary(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["Dream"])
    tokenizer = Tokenizer.from_file(tmp_path / "hf" / "tokenizer.json")
    for text in ("a <|fim_suffix|> b", "<|mask|>", "x<|endoftext|>"):
        ids = tokenizer.encode(text)
        assert not set(ids) & set(tokenizer.special)
        assert tokenizer.decode(ids) == text
    assert tokenizer.special[tokenizer.mark(SUFFIX)] == "<|fim_suffix|>"
    assert len({tokenizer.mark(mark) for mark in MARKS}) == len(MARKS)


def test_a_vocabulary_without_tokenizer_json_encodes_the_same(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["Dream"])
    folder = tmp_path / "hf"
    data = json.loads((folder / "tokenizer.json").read_text())
    data["pre_tokenizer"] = QWEN2_PRE_TOKENIZER
    (folder / "tokenizer.json").write_text(json.dumps(data))
    expected = Tokenizer.from_file(folder / "tokenizer.json")
    added = {str(token["id"]): token for token in data["added_tokens"]}
    (folder / "tokenizer.json").unlink()
    names = {token["content"] for token in added.values()}
    vocab = {token: i for token, i in data["model"]["vocab"].items() if token not in names}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    merges = [" ".join(merge) for merge in data["model"]["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    _, _, path = read_hf_checkpoint(folder)
    found = Tokenizer.from_file(path)
    assert found.special == expected.special
    for text in ("def foo():\n        return  x1234\n\n", "don't <|fim_pad|> é日\t", TEXT):
        assert found.encode(text) == expected.encode(text)
        assert found.decode(found.encode(text)) == text


def test_reserved_tokens_become_marks_where_no_name_fits() -> None:
    special = {0: "<|begin_of_text|>", 1: "<|end_of_text|>", 2: "<|eot_id|>"}
    special |= {i: f"<|reserved_special_token_{i}|>" for i in range(3, 12)}
    found = find_marks(special, MARKS)
    assert found[END] == 1
    assert set(found) == set(MARKS) and len(set(found.values())) == len(MARKS)
    assert not {0, 2} & set(found.values())


def test_a_vocabulary_with_too_few_marks_is_refused(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "tokenizer.json"
    data = json.loads(path.read_text())
    data["added_tokens"] = data["added_tokens"][:3]
    path.write_text(json.dumps(data))
    with pytest.raises(WeightsError, match="needs as marks"):
        read_hf_checkpoint(tmp_path / "hf")


def test_a_tokenizer_of_more_tokens_than_the_embedding_is_refused(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "tokenizer.json"
    data = json.loads(path.read_text())
    last = data["added_tokens"][-1]
    data["added_tokens"] += [{**last, "id": 286 + i, "content": f"<x{i}>"} for i in range(38)]
    path.write_text(json.dumps(data))
    with pytest.raises(WeightsError, match="324 tokens, the embedding has 320"):
        read_hf_checkpoint(tmp_path / "hf")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vocab": [1]}, "invalid type"),
        ("BPE", "not laid out as a tokenizer"),
    ],
)
def test_a_tokenizer_that_is_none_is_refused(changes: Any, said: str, tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "tokenizer.json"
    data = json.loads(path.read_text())
    if isinstance(changes, dict):
        changes = data["model"] | changes
    path.write_text(json.dumps(data | {"model": changes}))
    with pytest.raises(WeightsError, match=said):
        read_hf_checkpoint(tmp_path / "hf")


def test_a_token_far_beyond_the_others_is_refused(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "tokenizer.json"
    data = json.loads(path.read_text())
    data["model"]["vocab"]["zzzz"] = 10**9
    path.write_text(json.dumps(data))
    with pytest.raises(WeightsError, match=r"up to 1,000,000,000 and has \d+ of them"):
        read_hf_checkpoint(tmp_path / "hf")


def test_integers_are_refused_before_any_is_read(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "model.safetensors"
    stored = load_file(path)
    stored["model.norm.weight"] = stored["model.norm.weight"].astype(np.int8)
    save_file(stored, path)
    with pytest.raises(WeightsError, match=r"as I8.*not quantised"):
        read_hf_checkpoint(tmp_path / "hf")


def test_sentencepiece_is_refused(tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    path = tmp_path / "hf" / "tokenizer.json"
    data = json.loads(path.read_text())
    data["pre_tokenizer"] = data["decoder"] = None
    path.write_text(json.dumps(data))
    with pytest.raises(WeightsError, match="byte-level"):
        read_hf_checkpoint(tmp_path / "hf")


# ------------------------------------------------------------------------------ positions


def test_llama3_positions_equal_the_reference() -> None:
    scaling = {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 256, "rope_theta": 5e5,
    }  # fmt: skip
    hf = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,
        "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 96,
        "vocab_size": 320, "max_position_embeddings": 2048, "rope_parameters": scaling,
    }  # fmt: skip
    config = ModelConfig(**architecture(hf, family_of(hf, {}), None))
    cos, sin = rope_tables(config, 300)
    table = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(
        transformers.LlamaConfig(**hf)
    )
    their_cos, their_sin = table(torch.zeros(1), torch.arange(300)[None])
    assert np.abs(cos - their_cos[0, :, :32].numpy()).max() < 1e-4
    assert np.abs(sin - their_sin[0, :, :32].numpy()).max() < 1e-4
    plain, _ = rope_tables(replace(config, rope_llama3=()), 300)
    assert np.abs(plain - cos).max() > 0.1
    assert ModelConfig.from_dict(json.loads(config.to_json())) == config


def test_linear_positions_equal_the_reference() -> None:
    """As DeepSeek-Coder was trained: from the first position on."""
    scaling = {"type": "linear", "factor": 4.0}
    hf = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
        "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 96,
        "vocab_size": 320, "max_position_embeddings": 2048, "rope_scaling": scaling,
        "rope_theta": 1e5,
    }  # fmt: skip
    config = ModelConfig(**architecture(hf, family_of(hf, {}), None))
    cos, _ = rope_tables(config, 300)
    rotary = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding
    theirs, _ = rotary(transformers.LlamaConfig(**hf))(torch.zeros(1), torch.arange(300)[None])
    assert config.max_positions == 2048
    assert np.abs(cos - theirs[0, :, :8].numpy()).max() < 1e-4


def test_older_configurations_are_written_as_they_were() -> None:
    written = json.loads(ModelConfig().to_json())
    assert not {"attention", "block", "special_from", "rope_llama3", "rope_divisors"} & set(written)
    assert ModelConfig.from_dict(written) == ModelConfig()
