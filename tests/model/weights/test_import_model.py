"""Open weights of every family: what is read, and that it computes what its publisher's does."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.model import choice, load
from redraft.model.config import ModelConfig
from redraft.model.decode.recent import RecentAnswers
from redraft.model.errors import SettingsError, UnknownModel, WeightsError
from redraft.model.network.onnx_files import materialise
from redraft.model.network.quantize import quantize_blocks, quantize_nibbles, variant_named
from redraft.model.predict import predict
from redraft.model.prompts.tokenizer import END, MASK
from redraft.model.records import EditRequest, Prediction
from redraft.model.runtime import device, onnx_backend
from redraft.model.runtime.prefix_cache import PrefixCache
from redraft.model.weights import catalog, store
from redraft.model.weights.huggingface import checkpoint_sha256, read_folder
from redraft.model.weights.import_model import import_weights
from redraft.server.commands.main import app
from safetensors.numpy import save_file
from support.models.reference import Reference
from support.weights.tiny_hf import LAYOUTS, TEXT, Layout, reference_logits, torch, write_hf
from typer.testing import CliRunner

pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")


#: Largest difference of logits whose spread is about ten: float32 sums in another order.
CLOSE = 2e-4


def some_text(config: ModelConfig, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Text with the mask in every fifth place."""
    tokens = np.random.default_rng(seed).choice(np.array(config.text_ids), count)
    tokens[::5] = config.mask_token
    return tokens.astype(np.int64)


def predictable(config: ModelConfig) -> NDArray[np.int64]:
    return np.array([*config.text_ids, config.end_token])


def compare(config: ModelConfig, found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Logits [n, vocab] of ours and [n, rows] of the reference agree wherever text may follow."""
    ids = predictable(config)
    assert np.ptp(expected[:, ids]) > 5  # neither side is flat
    assert np.abs(found[:, ids] - expected[:, ids]).max() < CLOSE
    assert (np.delete(found, ids, axis=1) < -1e8).all()


class Published:
    """A folder of one family and the reference its weights came from."""

    def __init__(self, folder: Path, layout: Layout, shards: int = 1) -> None:
        self.folder, self.layout = folder, layout
        self.model: Any = write_hf(folder, layout, shards=shards)


@pytest.fixture(scope="module", params=list(LAYOUTS))
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    name = "x-bd3lm" if request.param == "Tiny-A2D by blocks" else "x"
    return Published(tmp_path_factory.mktemp("hf") / name, LAYOUTS[request.param])


def test_conventions_come_from_the_family(published: Published) -> None:
    layout = published.layout
    config, tensors, tokenizer, _ = read_folder(published.folder)
    assert (config.attention, config.block) == (layout.attention, layout.block)
    assert config.logit_shift == layout.shift
    assert config.rope_base == layout.rope_base
    assert config.adapter == "none"
    assert config.vocab == tokenizer.size == len(tensors["embed.weight"])
    assert tokenizer.special[config.end_token] == "<|endoftext|>"
    assert tokenizer.special[config.mask_token] == (layout.mask or "<|fim_pad|>")
    if not layout.encoder:  # which names it by its number alone
        assert config.mask_token == tokenizer.mark(MASK)
    assert config.end_token == tokenizer.mark(END)
    assert set(config.text_ids) == set(range(tokenizer.size)) - set(tokenizer.special)
    assert ("head.weight" in tensors) is not layout.tied


def test_torch_computes_what_the_reference_does(published: Published) -> None:
    from redraft.model.training.network import Network

    config, tensors, *_ = read_folder(published.folder)
    network = Network(config).eval()
    network.load(tensors)
    tokens = some_text(config, 75)
    with torch.no_grad():
        found = network.logits(network.whole(torch.from_numpy(tokens))).numpy()
    compare(config, found, reference_logits(published.model, published.layout, tokens))


@pytest.fixture(scope="module")
def stored(published: Published) -> Published:
    """Return the same with its ONNX graphs in fp32 beside it."""
    config, tensors, *_ = read_folder(published.folder)
    materialise(config, tensors, tensors, "fp32", published.folder / "fp32")
    return published


@pytest.mark.parametrize("cached", [0, 1, 41, 64])
def test_onnx_computes_what_the_reference_does(stored: Published, cached: int) -> None:
    backend = onnx_backend.OnnxBackend(stored.folder / "fp32", threads=1)
    config, sequence = backend.config, backend.open(256)
    tokens = some_text(config, 75)
    sequence.extend(tokens[:cached])
    if config.attention == "canvas":
        rest = tokens[cached:]
        found = sequence.score(rest, logits=True).logits
        expected = reference_logits(stored.model, stored.layout, tokens)[cached:]
    else:
        found = sequence.denoise(tokens[cached:], tokens[:0], logits=True).logits
        expected = reference_predictions(stored, config, tokens)[cached:]
    compare(config, found, expected)


def reference_predictions(
    published: Published, config: ModelConfig, tokens: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Logits of the token after each of ``tokens``, where masks fill the last block."""
    layout = published.layout
    ahead = 0 if layout.shift else 1
    length = len(tokens) + ahead
    length = -(-length // layout.block) * layout.block if layout.block else length
    masked = np.full(length, config.mask_token, np.int64)
    masked[: len(tokens)] = tokens
    return reference_logits(published.model, layout, masked)[ahead : ahead + len(tokens)]


@pytest.mark.parametrize("variant", ["int8", "fp16", "q4", "q4f16"])
def test_quantised_variants_stay_near(published: Published, variant: str, tmp_path: Path) -> None:
    config, tensors, *_ = read_folder(published.folder)
    materialise(config, tensors, tensors, variant, tmp_path)
    sequence = onnx_backend.OnnxBackend(tmp_path, provider="CPU", threads=1).open(256)
    tokens = some_text(config, 60)
    if config.attention == "canvas":
        found = sequence.score(tokens, logits=True).logits
        expected = reference_logits(published.model, published.layout, tokens)
    else:
        sequence.extend(tokens[:33])
        found = sequence.denoise(tokens[33:], tokens[:0], logits=True).logits
        expected = reference_predictions(published, config, tokens)[33:]
    ids = predictable(config)
    wrong = np.abs(found[:, ids] - expected[:, ids]).max() / np.abs(expected[:, ids]).max()
    assert wrong < {"int8": 0.08, "fp16": 0.01, "q4": 0.45, "q4f16": 0.45}[variant]


@pytest.mark.parametrize("name", ["Qwen2", "Qwen3", "SDAR", "Nemotron-Labs-Diffusion"])
@pytest.mark.parametrize("variant", ["q4", "q4f16"])
def test_four_bits_compute_the_rounded_weights(name: str, variant: str, tmp_path: Path) -> None:
    """Four bits change the weights alone: with rounded weights, fp32 computes the same.

    The kernel of the CPU rounds activations to 8 bits in blocks as well; q4f16 is for CUDA.
    """
    write_hf(tmp_path / "hf", LAYOUTS[name])
    config, tensors, *_ = read_folder(tmp_path / "hf")
    vocabulary = variant_named(variant).head
    rounded = {
        key: as_stored(values, "nibbles" if key.startswith("blocks") else vocabulary)
        for key, values in tensors.items()
    }
    said = []
    for weights, how in ((tensors, variant), (rounded, "fp32")):
        materialise(config, weights, weights, how, tmp_path / how)
        backend = onnx_backend.OnnxBackend(tmp_path / how, provider="CPU", threads=1)
        sequence, tokens = backend.open(256), some_text(config, 40)
        if config.attention == "canvas":
            found = sequence.score(tokens, logits=True).logits
        else:
            found = sequence.denoise(tokens, tokens[:0], logits=True).logits
        assert found is not None
        said.append(found[:, predictable(config)])
    assert np.abs(said[0] - said[1]).max() < 0.04 * np.abs(said[1]).max()


def as_stored(values: NDArray[np.float32], how: str) -> NDArray[np.float32]:
    """Return what a graph reads of a matrix."""
    if values.ndim == 1 or how == "whole":
        return values
    if how == "nibbles":
        halves, scales = quantize_nibbles(values, 32)
        levels = np.stack([halves & 15, halves >> 4], axis=-1).reshape(*halves.shape[:2], 32)
        blocks = (levels.astype(np.float32) - 8) * scales[..., None]
    else:
        levels, scales = quantize_blocks(values, 32)
        blocks = (levels.astype(np.float32) - 128) * scales[..., None]
    return blocks.reshape(len(values), -1)[:, : values.shape[1]]


@pytest.mark.parametrize("name", ["SDAR", "Fast-dLLM v2", "Dream"])
def test_cached_tokens_equal_fresh_ones(name: str, tmp_path: Path) -> None:
    backend, config = backend_of(name, tmp_path)
    tokens, window = some_text(config, 90), some_text(config, config.canvas_width, 1)
    fresh, grown = backend.open(512), backend.open(512)
    fresh.extend(tokens)
    for end in (1, 2, 35, 36, 70, 90):  # with a detour that is taken back
        grown.extend(tokens[len(grown.tokens) : end])
        grown.extend(window)
        grown.denoise(window, window[:0])
        grown.truncate(end)
    fork = backend.fork(grown, 66, 512)
    fork.extend(tokens[66:])
    assert list(fork.tokens) == list(grown.tokens) == tokens.tolist()
    for sequence in (grown, fork):
        found, expected = (each.denoise(window, window[:0], True) for each in (sequence, fresh))
        assert np.array_equal(found.top, expected.top)
        assert np.abs(found.logits - expected.logits).max() < CLOSE


def test_a_block_is_written_before_the_next_one(tmp_path: Path) -> None:
    backend, config = backend_of("SDAR", tmp_path)
    sequence = backend.open(64)
    sequence.extend(some_text(config, 5))
    window = np.array([*some_text(config, 2)[1:], *[config.mask_token] * 3])
    # The window's token is the sixth; the block ends with the eighth: two masks are in it.
    confidence = np.exp(sequence.denoise(window, window[:0]).top_logprob[:, 0])
    assert (confidence[:2] > 1e-3).all() and (confidence[2:] < 1e-5).all()
    window[1:3] = some_text(config, 4)[1:3]
    assert (np.exp(sequence.denoise(window, window[:0]).top_logprob[:, 0]) > 1e-3).all()


def backend_of(name: str, folder: Path) -> tuple[Any, ModelConfig]:
    write_hf(folder / "hf", LAYOUTS[name])
    config, tensors, *_ = read_folder(folder / "hf")
    materialise(config, tensors, tensors, "fp32", folder / "fp32")
    return onnx_backend.OnnxBackend(folder / "fp32", threads=1), config


@pytest.mark.parametrize("name", ["Dream", "LLaDA", "SDAR", "Fast-dLLM v2", "Qwen3"])
def test_an_imported_model_is_listed_and_answers(name: str, cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "Open weights", LAYOUTS[name])
    (tmp_path / "Open weights" / "README.md").write_text("---\ntags: []\nlicense: mit\n---\n# It\n")
    import_weights(tmp_path / "Open weights", variant="q4")
    imported = import_weights(tmp_path / "Open weights", variant="fp32")
    shutil.rmtree(tmp_path / "Open weights")  # it is not needed any more
    (listed,) = (model for model in catalog.list_models() if model.name == "Open-weights")
    assert listed == imported
    assert listed.license == "mit" and name.split()[0] in listed.summary
    assert store.ready_variants(listed) == ["fp32", "q4"]
    assert store.pull("Open-weights") == cache / "models" / "Open-weights" / "fp32"

    model = load.onnx_loader("Open-weights", None, "CPU", 1)(lambda *report: None)
    try:
        assert model.label == "Open-weights fp32"
        request = EditRequest("infill", "a.py", TEXT, TEXT.index("= ") + 2, max_tokens=24)
        first = predict(model, request, time.monotonic)
        assert first.stats.denoise_steps > 0
        # What is drafted and what is cached decide how wide passes are, and that the last bits.
        model = replace(model, recent=RecentAnswers())
        again = predict(model, request, time.monotonic)
        emptied = PrefixCache(model.backend, 1 << 30)
        fresh = replace(model, cache=emptied, recent=RecentAnswers())
        other = predict(fresh, request, time.monotonic)
        assert written(again) == written(first) == written(other)
        sure = [each.candidates[0].confidence.mean for each in (first, again, other)]
        assert sure[1:] == pytest.approx([sure[0]] * 2, rel=1e-3)
        assert again.stats.reused_tokens > 0
        declined = predict(model, replace(request, task="next_edit"), time.monotonic)
        assert (declined.candidates, declined.stats.denoise_steps) == ((), 0)
        assert "predict edits" in declined.reason
    finally:
        model.backend.close()


def written(prediction: Prediction) -> list[tuple[int, int, str]]:
    return [(each.start, each.end, each.text) for each in prediction.candidates]


def test_a_changed_file_of_an_imported_model_is_found(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "mine", LAYOUTS["SDAR"])
    import_weights(tmp_path / "mine")
    data = cache / "models" / "mine" / "int8" / "weights.bin"
    content = bytearray(data.read_bytes())
    content[5000] ^= 1
    data.write_bytes(content)
    with pytest.raises(WeightsError, match=r"weights\.bin.*import"):
        store.ensure("mine")


def test_importing_again_adds_or_replaces_variants(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "one", LAYOUTS["SDAR"])
    write_hf(tmp_path / "two", LAYOUTS["SDAR"], seed=1)
    import_weights(tmp_path / "one", "mine")
    with pytest.raises(WeightsError, match="--variant fp32"):
        store.ensure("mine", "fp32")
    assert import_weights(tmp_path / "one", "mine", "fp32").prebuilt == ("fp32", "int8")
    assert import_weights(tmp_path / "two", "mine", "q4").prebuilt == ("q4",)
    assert store.ready_variants(catalog.info("mine")) == ["q4"]
    assert not (cache / "models" / "mine" / "int8").exists()


def test_imports_are_removed(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    import_weights(tmp_path / "hf", "mine")
    choice.store_model("mine", "int8")
    done = CliRunner().invoke(app, ["model", "remove", "mine"])
    assert done.exit_code == 0 and "Removed mine: " in done.output, done.output
    assert choice.read_stored_model() == "" and "'auto' chooses now" in done.output
    assert not list((cache / "models").iterdir())
    with pytest.raises(UnknownModel):
        store.remove("mine")


def test_exports_elsewhere_are_not_removed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    import_weights(tmp_path / "hf", "mine")
    store.export("mine", None, tmp_path / "stick")
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path / "stick"))
    with pytest.raises(WeightsError, match="outside Redraft's cache"):
        store.remove("mine")
    assert (tmp_path / "stick" / "int8").is_dir()


def test_imports_are_exported(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["Dream"])
    import_weights(tmp_path / "hf", "mine")
    store.export("mine", None, tmp_path / "stick")
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path / "other machine"))
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path / "stick"))
    assert store.pull("mine") == tmp_path / "stick" / "int8"


def test_without_fp16_an_import_runs_on_the_cpu(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    import_weights(tmp_path / "hf", "mine")
    monkeypatch.setattr(device, "cuda_problem", lambda _: "")
    model = load.onnx_loader("mine", None, None, 1)(lambda *report: None)
    model.backend.close()
    assert (model.backend.provider, model.backend.variant) == ("CPU", "int8")
    assert "neither in fp16 nor in q4f16" in model.notice
    with pytest.raises(WeightsError, match="--variant fp16"):
        load.onnx_loader("mine", None, "CUDA", 1)(lambda *report: None)


def test_names_of_other_models_are_not_taken(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["SDAR"])
    with pytest.raises(SettingsError, match="--name"):
        import_weights(tmp_path / "hf", "redraft-0.5b")
    with pytest.raises(SettingsError, match=r"\.\./x"):
        import_weights(tmp_path / "hf", "../x")
    assert not list(cache.rglob("*.onnx"))


def test_the_command_imports_and_says_how_to_go_on(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "base", LAYOUTS["Qwen2"])
    done = CliRunner().invoke(app, ["model", "pull", str(tmp_path / "base"), "--name", "mine"])
    assert done.exit_code == 0
    assert "mine: Qwen2 of " in done.output and "in the prompt fim-qwen" in done.output
    assert catalog.info("mine").prebuilt == ("int8",)


def test_an_adapter_of_a_base_is_merged_into_it(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "hf", LAYOUTS["Qwen3"])
    config, tensors, *_ = read_folder(tmp_path / "hf")
    rng = np.random.default_rng(0)
    low, high = rng.normal(size=(4, 64)), rng.normal(size=(64, 4)) * 0.1
    parts = {"blocks.1.attn.q.lora_a": low, "blocks.1.attn.q.lora_b": high}
    path = tmp_path / "adapter.safetensors"
    said = {"base_sha256": checkpoint_sha256(tmp_path / "hf"), "adapter": "all", "verifier": "ar"}
    save_file({name: values.astype(np.float32) for name, values in parts.items()}, path, said)
    model = import_weights(tmp_path / "hf", "mine", "fp32", adapter=path)
    assert (model.config.adapter, model.config.verifier) == ("all", "ar")
    tokens = some_text(config, 40)
    changed = {**tensors, "blocks.1.attn.q.weight": tensors["blocks.1.attn.q.weight"] + high @ low}
    reference = Reference(model.config, changed, changed, 1_280)
    sequence = onnx_backend.OnnxBackend(store.ensure("mine"), threads=1).open(64)
    sequence.extend(tokens[:32])
    found = sequence.score(tokens[32:], logits=True).logits
    ids = predictable(config)
    expected = reference.causal_logits(tokens)[32:]
    assert np.abs(found[:, ids] - expected[:, ids]).max() < CLOSE
    save_file({"mask_embedding": np.zeros(64, np.float32)}, path, {"base_sha256": "0" * 64})
    with pytest.raises(WeightsError, match="causal-cpu"):
        import_weights(tmp_path / "hf", "other", adapter=path)
    other = {**said, "base_sha256": "0" * 64}
    save_file({"mask_embedding": np.zeros(64, np.float32)}, path, other)
    with pytest.raises(WeightsError, match="base_sha256"):
        import_weights(tmp_path / "hf", "other", adapter=path)
