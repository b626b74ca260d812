"""GGUF reading: equal to the official package, and calm with damaged or hostile files."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.config import ModelConfig, tensor_shapes
from redraft.model.errors import WeightsError
from redraft.model.prompts.tokenizer import byte_alphabet
from redraft.model.runtime.rope import rope_tables
from redraft.model.weights import gguf as gguf_module
from redraft.model.weights.gguf import (
    GGUFFile,
    read_checkpoint,
)
from redraft.model.weights.vocabularies import build_bpe, gguf_tokenizer
from support.weights.tiny_gguf import (
    HEADS,
    HIDDEN,
    KV_HEADS,
    TOKENS,
    VOCAB,
    gguf,
    interleave,
    random,
    write_llama,
)

QUANTS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q8_0"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_llama(path, "Q4_1")
    return path


@pytest.mark.parametrize("quant", QUANTS)
def test_dequantises_like_the_official_package(tmp_path: Path, quant: str) -> None:
    path = tmp_path / "tiny.gguf"
    names = write_llama(path, quant)
    ours = GGUFFile(path)
    reader = gguf.GGUFReader(path)
    assert set(ours.shapes) == set(names)
    for tensor in reader.tensors:
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(ours.read(tensor.name), expected)


def test_a_checkpoint_has_our_names_and_shapes(file: Path) -> None:
    fields, weights = read_checkpoint(GGUFFile(file))
    config = ModelConfig.from_dict(fields)
    assert (config.layers, config.heads, config.kv_heads, config.head_dim) == (2, 4, 2, 16)
    assert (config.rope_base, config.norm_eps, config.max_positions) == (5e4, 1e-5, 128)
    assert config.tied
    assert {name: value.shape for name, value in weights.items()} == tensor_shapes(fields)


def test_query_and_key_rows_are_put_back_in_halves(tmp_path: Path) -> None:
    original = random(HIDDEN, HIDDEN, seed=5)
    key = random(HIDDEN // 2, HIDDEN, seed=6)
    extra = {
        "blk.0.attn_q.weight": interleave(original, HEADS),
        "blk.0.attn_k.weight": interleave(key, KV_HEADS),
    }
    written = write_llama(tmp_path / "a.gguf", extra=extra)
    _, weights = read_checkpoint(GGUFFile(tmp_path / "a.gguf"))
    np.testing.assert_array_equal(weights["blocks.0.attn.q.weight"], original)
    np.testing.assert_array_equal(weights["blocks.0.attn.k.weight"], key)
    np.testing.assert_array_equal(weights["blocks.0.attn.v.weight"], written["blk.0.attn_v.weight"])


def test_other_architectures_keep_row_order_and_biases(tmp_path: Path) -> None:
    biases = {
        f"blk.{i}.attn_{part}.bias": random(HIDDEN if part == "q" else HIDDEN // 2, seed=i)
        for i in range(2)
        for part in "qkv"
    }
    written = write_llama(tmp_path / "a.gguf", arch="qwen2", extra=biases)
    fields, weights = read_checkpoint(GGUFFile(tmp_path / "a.gguf"))
    assert fields["qkv_bias"]
    np.testing.assert_array_equal(weights["blocks.1.attn.q.weight"], written["blk.1.attn_q.weight"])
    np.testing.assert_array_equal(weights["blocks.1.attn.k.bias"], biases["blk.1.attn_k.bias"])


def test_an_untied_head_is_read(tmp_path: Path) -> None:
    head = random(VOCAB, HIDDEN, seed=3)
    fields, weights = read_checkpoint(GGUFFile(written(tmp_path, extra={"output.weight": head})))
    assert not fields["tied"]
    np.testing.assert_array_equal(weights["head.weight"], head)


def test_a_tied_matrix_is_the_copy_of_more_bits(tmp_path: Path) -> None:
    head, small = random(VOCAB, HIDDEN, seed=3), gguf.GGMLQuantizationType.Q5_0
    for quants, best in (
        ({"token_embd.weight": small}, "output"),
        ({"output.weight": small}, "token_embd"),
    ):
        path = tmp_path / f"{best}.gguf"
        write_llama(path, "Q8_0", extra={"output.weight": head}, quants=quants)
        fields, weights = read_checkpoint(GGUFFile(path), tied=True)
        assert fields["tied"] and "head.weight" not in weights
        np.testing.assert_array_equal(
            weights["embed.weight"], GGUFFile(path).read(f"{best}.weight")
        )


@pytest.mark.parametrize("quant", ["Q4_K", "Q5_K", "Q6_K", "Q2_K", "Q3_K", "Q5_1"])
def test_other_formats_equal(quant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package only reads these: a file of made-up blocks, whose scales are small numbers."""
    kind = gguf.GGMLQuantizationType[quant]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    raw = np.random.default_rng(0).integers(0, 256, (24, 2 * size), dtype=np.uint8)
    raw[:, 1::2] &= 0x3F  # half-precision numbers below two, wherever they lie
    writer = gguf.GGUFWriter(tmp_path / "k.gguf", "llama")
    writer.add_tensor("x.weight", raw, raw_dtype=kind)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file):
        write()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.setattr(gguf_module, "_SLICE", 1_100)  # so that it is read in several parts
    file = GGUFFile(tmp_path / "k.gguf")
    expected = gguf.quants.dequantize(raw, kind)
    assert np.ptp(expected) > 0.1
    np.testing.assert_array_equal(file.read("x.weight"), expected)
    np.testing.assert_array_equal(file.read("x.weight", rows=5), expected[:5])


def test_unused_tokens_at_the_end_are_left_out(tmp_path: Path) -> None:
    write_llama(tmp_path / "a.gguf", pre="qwen2", types=[3] * 16 + [4] + [1] * 45 + [5] * 2)
    fields, weights = read_checkpoint(GGUFFile(tmp_path / "a.gguf"))
    tokenizer = gguf_tokenizer(GGUFFile(tmp_path / "a.gguf"))
    assert fields["vocab"] == len(weights["embed.weight"]) == tokenizer.size == 62
    assert 16 in tokenizer.special


def test_arrays_can_be_changed_without_harm(file: Path) -> None:
    _, weights = read_checkpoint(GGUFFile(file))
    before = weights["norm.weight"].copy()
    weights["norm.weight"][:] = 0
    np.testing.assert_array_equal(weights["norm.weight"], before)


def test_a_tokenizer_is_read_whole(file: Path) -> None:
    tokenizer = gguf_tokenizer(GGUFFile(file))
    assert tokenizer.special == dict(enumerate(TOKENS[:17]))
    assert [TOKENS[i] for i in tokenizer.encode("aba")] == ["ab", "a"]
    assert tokenizer.size == len(TOKENS)
    assert GGUFFile(file).chat_template() == ""


@pytest.mark.parametrize("rule", ["a", "a b c", "a z é", " a", "b a"])
def test_a_merge_of_unknown_tokens_is_refused(tmp_path: Path, rule: str) -> None:
    write_llama(tmp_path / "a.gguf", merges=[rule])
    with pytest.raises(WeightsError, match="merges"):
        gguf_tokenizer(GGUFFile(tmp_path / "a.gguf"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"leave_out": "blk.1.ffn_up.weight"}, "no tensor 'blk.1.ffn_up.weight'"),
        ({"extra": {"rope_freqs.weight": random(4)}}, "rope_freqs.weight has shape [4]"),
        ({"extra": {"rope_freqs.weight": -np.ones(8, np.float32)}}, "rope_freqs.weight"),
        ({"extra": {"output_norm.weight": random(8)}}, "shape [8], not [64]"),
        ({"arch": "mamba"}, "'mamba'"),
        ({"strings": {"llama.rope.scaling.type": "longrope"}}, "scaled by 'longrope'"),
        ({"strings": {"llama.rope.scaling.type": "yarn"}}, "original_context_length"),
        ({"strings": {"llama.rope.scaling.type": "linear"}}, "scaling.factor"),
        ({"extra": {"output_norm.weight": np.full(HIDDEN, np.nan, np.float32)}}, "not finite"),
    ],
)
def test_what_cannot_run_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    write_llama(tmp_path / "a.gguf", **changes)
    with pytest.raises(WeightsError) as caught:
        _, weights = read_checkpoint(GGUFFile(tmp_path / "a.gguf"))
        weights["norm.weight"]
    assert said in str(caught.value)
    assert "redraft model pull" in str(caught.value)


def test_llama3_s_frequencies_are_those_of_its_config(tmp_path: Path) -> None:
    """llama.cpp's converter writes by what each frequency is divided; the folder says the rule."""
    rule = (8.0, 1.0, 4.0, 64.0)
    fields, _ = read_checkpoint(GGUFFile(written(tmp_path)))
    folder = ModelConfig(**fields, rope_llama3=rule)
    exponents = np.arange(0, folder.head_dim, 2) / folder.head_dim
    plain = folder.rope_base**-exponents
    slow = np.clip((64.0 * plain / (2 * np.pi) - 1.0) / 3.0, 0.0, 1.0)
    divisors = (1 / (slow + (1 - slow) / 8.0)).astype(np.float32)
    assert divisors.min() == 1.0 and divisors.max() == 8.0
    found, _ = read_checkpoint(GGUFFile(written(tmp_path, extra={"rope_freqs.weight": divisors})))
    config = ModelConfig(**found)
    for ours, theirs in zip(rope_tables(config, 100), rope_tables(folder, 100), strict=True):
        assert np.abs(ours - theirs).max() < 1e-5
    assert (
        np.abs(rope_tables(config, 100)[0] - rope_tables(ModelConfig(**fields), 100)[0]).max() > 1
    )
    assert ModelConfig.from_dict(json.loads(config.to_json())) == config


def written(folder: Path, **changes: Any) -> Path:
    write_llama(folder / "a.gguf", **changes)
    return folder / "a.gguf"


def test_positions_that_are_stretched_are_read(tmp_path: Path) -> None:
    key = "llama.rope.scaling"
    linear = {"strings": {f"{key}.type": "linear"}, "numbers": {f"{key}.factor": 4.0}}
    fields, _ = read_checkpoint(GGUFFile(written(tmp_path, **linear)))
    assert fields["rope_divisors"] == (4.0,)
    yarn = {"strings": {f"{key}.type": "yarn"}, "numbers": {f"{key}.original_context_length": 32}}
    fields, _ = read_checkpoint(GGUFFile(written(tmp_path, **yarn)))
    assert (fields["max_positions"], fields["rope_scaling"]) == (32, "yarn")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # One after another: letters with the space before them, punctuation, Chinese and Korean
        # alone, digits one by one.
        ("deepseek-coder", [" ", " foo", "(", "bar", "1", "2", ")", "\n", " ", "한글", "x"]),
        ("starcoder", [" ", " foo", "(", "bar", "1", "2", ")", "\n", " 한글x"]),
        ("qwen2", [" ", " foo", "(bar", "1", "2", ")\n", " 한글x"]),
    ],
)
def test_text_is_cut_as_the_file_says(rule: str, expected: list[str]) -> None:
    vocab = {token: i for i, token in enumerate((*byte_alphabet(), "</s>"))}
    cuts = build_bpe(vocab, [], {256: "</s>"}, rule).pre_tokenizer
    assert cuts is not None
    text = "  foo(bar12)\n 한글x"
    ends = [end for _, (_, end) in cuts.pre_tokenize_str(text)]
    assert [text[a:b] for a, b in pairwise([0, *ends])] == expected
    with pytest.raises(WeightsError, match=r"'tekken'.*starcoder.*deepseek-coder.*folder"):
        build_bpe(vocab, [], {256: "</s>"}, "tekken")


def test_a_file_cut_anywhere_is_refused(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in [0, 3, 20, *range(64, len(whole) - 1, 9_973), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(WeightsError, match=r"cut\.gguf is not a GGUF file"):
            GGUFFile(cut)


@pytest.mark.parametrize(
    "head",
    [
        b"PK\x03\x04" + bytes(60),
        b"GGUF" + struct.pack("<I", 77) + bytes(60),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62),
        b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 77),
    ],
)
def test_what_is_no_gguf_file_or_missing_is_named(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(head)
    with pytest.raises(WeightsError, match=r"bad\.gguf is not a GGUF file"):
        GGUFFile(path)
    with pytest.raises(WeightsError, match=r"nowhere\.gguf"):
        GGUFFile(tmp_path / "nowhere.gguf")
