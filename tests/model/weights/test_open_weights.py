"""Open weights as they serve: autoregressive ones, GGUF files, and what is refused beforehand."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model import load
from redraft.model.decode.completion import AUTOREGRESSIVE
from redraft.model.decode.grammar import ForcedText
from redraft.model.errors import InvalidRequest, SettingsError, WeightsError
from redraft.model.network.onnx_files import materialise
from redraft.model.predict import Model, predict
from redraft.model.prompts.format import Prompt
from redraft.model.prompts.registry import format_of
from redraft.model.records import EditRequest, Grammar
from redraft.model.runtime import onnx_backend
from redraft.model.weights import catalog
from redraft.model.weights import store as models
from redraft.model.weights.convert import estimate_bytes
from redraft.model.weights.huggingface import read_folder
from redraft.model.weights.import_model import find_fitting, import_weights
from redraft.server.commands.main import app
from safetensors.numpy import save_file
from support.models.onnx_models import BASE, store
from support.weights.tiny_gguf import write_llama
from support.weights.tiny_hf import LAYOUTS, Layout, reference_logits, torch, write_hf
from typer.testing import CliRunner

pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")

TEXT = "def area(w, h):\n    size = \n    return size\n\n\nprint(area(2, 3))\n" * 4
CURSOR = TEXT.index("= ") + 2


@contextlib.contextmanager
def loaded(name: str) -> Iterator[Model]:
    model = load.onnx_loader(name, None, "CPU", 1)(lambda *report: None)
    try:
        yield model
    finally:
        model.backend.close()


def infill(**more: Any) -> EditRequest:
    return EditRequest("infill", "a.py", TEXT, CURSOR, max_tokens=24, **more)


@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3"])
def test_autoregressive_weights_equal_the_reference(name: str, cache: Path, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    reference = write_hf(tmp_path / "mine", layout)
    imported = import_weights(tmp_path / "mine", variant="fp32")
    assert imported.config.prompt_format == "fim-qwen"
    with loaded("mine") as model:
        prompt = format_of("fim-qwen").render(
            infill(), model.tokenizer, model.backend.config, model.context_tokens
        )
        assert isinstance(prompt, Prompt) and prompt.forced == " "
        found = predict(model, infill(min_tokens=3), time.monotonic)
    expected = greedy(reference, layout, model, prompt, 24)
    (candidate,) = found.candidates
    assert expected.startswith(prompt.forced + candidate.text) and candidate.text
    assert found.stats.drafts == () or {d.source for d in found.stats.drafts} == {"copy"}


def greedy(reference: Any, layout: Layout, model: Model, prompt: Prompt, count: int) -> str:
    """Write the same by the reference, one token after the other, without a cache."""
    config, tokens, written = model.backend.config, list(prompt.tokens), list[int]()
    vocab = model.tokenizer.vocab_bytes
    for _ in range(count):
        logits = reference_logits(reference, layout, np.array(tokens))[-1][: config.vocab].copy()
        text = b"".join(vocab[i] for i in written).decode("utf-8", "replace")
        if not text.startswith(prompt.forced):
            free = ForcedText(prompt.forced, model.tokenizer).token_mask(text.encode())
            logits[~free if free is not None else slice(0)] = -np.inf
        if len(written) < 3:
            logits[[i for i in range(config.vocab) if i not in config.text_ids]] = -np.inf
        best = int(logits.argmax())
        if best not in config.text_ids:
            break
        tokens.append(best)
        written.append(best)
    return b"".join(vocab[i] for i in written).decode("utf-8", "replace")


def test_the_format_can_be_named(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "mine", LAYOUTS["Qwen2"])
    assert import_weights(tmp_path / "mine", prompt_format="sweep").config.prompt_format == "sweep"
    with pytest.raises(SettingsError, match="fim-suffix"):
        import_weights(tmp_path / "mine", prompt_format="zeta-2")
    write_hf(tmp_path / "other", LAYOUTS["Dream"])
    with pytest.raises(SettingsError, match="diffusion model"):
        import_weights(tmp_path / "other", prompt_format="sweep")


def test_any_special_token_ends_an_answer(tmp_path: Path) -> None:
    config = dataclasses.replace(BASE, specials_end=True)
    store(config, "fp32", tmp_path)
    backend = onnx_backend.OnnxBackend(tmp_path, threads=1)
    logits = np.zeros((2, config.vocab), np.float32)
    logits[0, 5], logits[1, 40] = 3.0, 2.0  # a mark, and a letter
    top = np.array([[5], [40]])
    backend.end_at_specials({"top": top, "logits": logits})
    assert top[:, 0].tolist() == [config.end_token, 40]
    assert logits.argmax(axis=1).tolist() == [config.end_token, 40]
    assert logits[0, config.end_token] == 3.0 and logits[0, 5] < -1e8


def nemotron(folder: Path, adapter: bool) -> Any:
    """Return the reference of tiny weights, with the adapter of drafts merged in or beside them."""
    reference = write_hf(folder, LAYOUTS["Nemotron-Labs-Diffusion"])
    if adapter:
        rng, lora = np.random.default_rng(3), {}
        (folder / "linear_spec_lora").mkdir()
        for i, layer in enumerate(reference.model.layers):
            low, high = rng.normal(size=(4, 64)) * 0.3, rng.normal(size=(64, 4)) * 0.3
            name = f"base_model.model.encoder.layers.{i}.self_attn.o_proj.lora"
            lora[f"{name}_A.weight"] = low.astype(np.float32)
            lora[f"{name}_B.weight"] = high.astype(np.float32)
            change = torch.from_numpy((high @ low * 2).astype(np.float32))
            layer.self_attn.o_proj.weight.data += change
        save_file(lora, folder / "linear_spec_lora" / "adapter_model.safetensors")
        about = json.dumps({"r": 4, "lora_alpha": 8, "target_modules": ["o_proj"]})
        (folder / "linear_spec_lora" / "adapter_config.json").write_text(about)
    return reference


def test_masks_are_predicted_behind_a_causal_context(cache: Path, tmp_path: Path) -> None:
    layout = LAYOUTS["Nemotron-Labs-Diffusion"]
    reference = nemotron(tmp_path / "mine", adapter=False)
    config = import_weights(tmp_path / "mine", variant="fp32").config
    assert (config.verifier, config.logit_shift, config.canvas_width) == ("ar", False, 31)
    assert config.rope_yarn == (16.0, 32.0, 1.0, 128.0, 1.0)
    ids = np.array(config.text_ids)
    tokens = np.random.default_rng(1).choice(ids, 90)
    tokens[59:] = config.mask_token
    sequence = onnx_backend.OnnxBackend(models.ensure("mine"), threads=1).open(256)
    sequence.extend(tokens[:58])
    found = sequence.denoise(tokens[58:89], tokens[:0], logits=True).logits  # one mask more is read
    assert found is not None
    expected = reference_logits(reference, layout, tokens, canvas=58)[59:]
    assert np.abs(found[:, ids] - expected[:, ids]).max() < 2e-4


def test_the_drafting_adapter_leaves_the_judge_alone(cache: Path, tmp_path: Path) -> None:
    layout = LAYOUTS["Nemotron-Labs-Diffusion"]
    changed = nemotron(tmp_path / "mine", adapter=True)
    plain = write_hf(tmp_path / "plain", layout)
    config = import_weights(tmp_path / "mine", variant="fp32").config
    assert config.adapter == "canvas"
    ids = np.array(config.text_ids)
    tokens = np.random.default_rng(1).choice(ids, 60)
    sequence = onnx_backend.OnnxBackend(models.ensure("mine"), threads=1).open(256)
    judged = sequence.score(tokens, logits=True).logits
    expected = reference_logits(plain, layout, tokens)
    assert judged is not None and np.abs(judged[:, ids] - expected[:, ids]).max() < 2e-4
    sequence.truncate(0)
    window = np.full(31, config.mask_token)
    window[0] = tokens[0]
    drafted = sequence.denoise(window, window[:0], logits=True).logits
    read = np.append(window, config.mask_token)
    expected = reference_logits(changed, layout, read, canvas=0)[1:]
    assert drafted is not None and np.abs(drafted[:, ids] - expected[:, ids]).max() < 2e-4


def test_canvases_draft_and_the_judge_decides(cache: Path, tmp_path: Path) -> None:
    nemotron(tmp_path / "mine", adapter=True)
    import_weights(tmp_path / "mine", variant="fp32")
    with loaded("mine") as model:
        found = predict(model, infill(min_tokens=8), time.monotonic)
        alone = predict(model, infill(min_tokens=8), time.monotonic, plan=AUTOREGRESSIVE)
    assert [c.text for c in found.candidates] == [c.text for c in alone.candidates]
    assert {count.source for count in found.stats.drafts} <= {"copy", "canvas"}


def test_a_canvas_sees_behind_as_the_reference_does(tmp_path: Path) -> None:
    layout = LAYOUTS["DreamOn"]
    reference = write_hf(tmp_path / "hf", layout)
    config, tensors, *_ = read_folder(tmp_path / "hf")
    materialise(config, tensors, tensors, "fp32", tmp_path / "fp32")
    sequence = onnx_backend.OnnxBackend(tmp_path / "fp32", threads=1).open(256)
    tokens = np.random.default_rng(0).choice(np.array(config.text_ids), 40)
    tokens[17:22] = config.mask_token
    sequence.extend(tokens[:16])
    found = sequence.denoise(tokens[16:21], tokens[21:], logits=True)
    assert found.logits is not None
    expected = reference_logits(reference, layout, tokens)[16:21]  # position i predicts i + 1
    ids = np.array(config.text_ids)
    assert np.abs(found.logits[:, ids] - expected[:, ids]).max() < 2e-4


def test_dreamon_answers_in_place(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "mine", LAYOUTS["DreamOn"])
    config = import_weights(tmp_path / "mine", variant="fp32").config
    assert config.prompt_format == "in-place" and config.expand_token
    with loaded("mine") as model:
        found = predict(model, infill(), time.monotonic)
        again = predict(model, infill(), time.monotonic)
        other = predict(model, EditRequest("next_edit", "a.py", TEXT, CURSOR), time.monotonic)
        with pytest.raises(InvalidRequest, match="in any order, so that no grammar"):
            predict(model, infill(grammar=Grammar("regex", "[0-9]+")), time.monotonic)
    assert found.candidates == again.candidates
    assert found.stats.denoise_steps > 0 and found.stats.canvas_tokens <= 24
    assert "fill in text" in other.reason


def test_what_gguf_says_of_a_text_s_beginning_is_done(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.gguf"
    write_llama(path, strings={"general.name": "Zeta 2"}, begin=1)
    model_info = import_weights(path, variant="fp32")
    assert model_info.config.prompt_format == "prefix"  # its vocabulary is not Zeta's
    with loaded("w") as model:
        assert model.tokenizer.begin == 1
        prompt = format_of("prefix").render(infill(), model.tokenizer, model.backend.config, 2_000)
    assert isinstance(prompt, Prompt) and prompt.tokens[0] == 1


@pytest.mark.parametrize("arch", ["dream", "llada"])
def test_diffusion_weights_in_gguf_are_read(arch: str, cache: Path, tmp_path: Path) -> None:
    write_llama(tmp_path / "d.gguf", arch=arch)
    config = import_weights(tmp_path / "d.gguf", variant="fp32").config
    assert (config.attention, config.logit_shift) == ("bidirectional", arch == "dream")
    assert config.prompt_format == "redraft-2" and not config.specials_end


def test_a_tied_matrix_stored_twice_is_read_once(cache: Path, tmp_path: Path) -> None:
    write_llama(tmp_path / "a.gguf")
    own = write_llama(tmp_path / "b.gguf")["token_embd.weight"]
    write_llama(tmp_path / "b.gguf", extra={"output.weight": own * 1.01})
    write_llama(tmp_path / "c.gguf", extra={"output.weight": own[::-1].copy()})
    tied = [import_weights(tmp_path / f"{name}.gguf").config.tied for name in "abc"]
    assert tied == [True, True, False]


def test_weights_over_memory_are_refused_beforehand(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "mine", LAYOUTS["Qwen2"])
    with pytest.raises(WeightsError, match=r"GB of memory.*smaller weights"):
        import_weights(tmp_path / "mine", memory=50_000)
    assert not cache.exists()


def test_the_variant_is_what_fits_where_it_is_to_run(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "mine", LAYOUTS["Qwen2"])
    config, *_ = read_folder(tmp_path / "mine")
    sizes = {
        variant: estimate_bytes(config, variant) for variant in ("int8", "q4", "fp16", "q4f16")
    }
    for gpu, usual, smaller in ((False, "int8", "q4"), (True, "fp16", "q4f16")):
        assert find_fitting(config, None, 2 * sizes[usual], gpu) == usual
        assert find_fitting(config, None, int(1.2 * sizes[smaller]), gpu) == smaller
        assert find_fitting(config, "fp32", 1 << 40, gpu) == "fp32"
        with pytest.raises(WeightsError, match="this GPU" if gpu else "this machine"):
            find_fitting(config, None, sizes[smaller], gpu)
    assert import_weights(tmp_path / "mine", memory=int(1.2 * sizes["q4"])).prebuilt == ("q4",)
    assert import_weights(tmp_path / "mine", gpu=True).prebuilt == ("fp16", "q4")


def short_of_a_shard(folder: Path) -> None:
    sorted(folder.glob("model-*.safetensors"))[1].unlink()


def not_finite(folder: Path) -> None:
    path = sorted(folder.glob("model-*.safetensors"))[-1]
    path.write_bytes(path.read_bytes()[:-4] + np.float32(np.nan).tobytes())


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(short_of_a_shard, r"model-0000.*safetensors"), (not_finite, "not finite.*again")],
)
def test_a_spoilt_folder_leaves_no_model_and_advises(
    spoil: Callable[[Path], None], said: str, cache: Path, tmp_path: Path
) -> None:
    write_hf(tmp_path / "mine", LAYOUTS["Qwen2"], shards=4)
    spoil(tmp_path / "mine")
    with pytest.raises(WeightsError, match=said):
        import_weights(tmp_path / "mine")
    left = {path.name for path in cache.rglob("*") if path.is_file()}
    assert left <= {"pull.lock"}
    assert "mine" not in {model.name for model in catalog.list_models()}


def test_spoilt_weights_leave_what_had_their_name(cache: Path, tmp_path: Path) -> None:
    write_hf(tmp_path / "mine", LAYOUTS["Qwen2"], shards=4)
    before = import_weights(tmp_path / "mine")
    not_finite(tmp_path / "mine")
    with pytest.raises(WeightsError, match="not finite"):
        import_weights(tmp_path / "mine")
    assert catalog.info("mine").version == before.version
    with loaded("mine"):
        pass


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"numbers": {"split.count": 3}}, "one of 3 parts.*llama-gguf-split --merge"),
        ({"pre": "tekken"}, "'tekken'.*import the original's folder"),
        ({"extra": {"blk.0.ffn_gate_inp.weight": np.ones((8, 64), np.float32)}}, "does not run"),
        ({"types": [3] * 16 + [1] * 40}, "one type for each token"),
        (
            {"extra": {"token_embd.weight": np.ones((67, 64), np.float32)}},
            "67 rows for its 64 tokens.*download",
        ),
    ],
)
def test_an_unservable_gguf_file_leaves_no_model(
    changes: dict[str, Any], said: str, cache: Path, tmp_path: Path
) -> None:
    write_llama(tmp_path / "w.gguf", **changes)
    with pytest.raises(WeightsError, match=said):
        import_weights(tmp_path / "w.gguf")
    assert not cache.exists()


def test_nothing_at_all_is_said_plainly(cache: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["model", "pull", str(tmp_path / "none.gguf")])
    assert done.exit_code != 0
    with pytest.raises(WeightsError, match="nothing at"):
        import_weights(tmp_path / "none.gguf")
