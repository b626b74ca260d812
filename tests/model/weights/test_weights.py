"""The registry and the combine step: what is made, what is re-made, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.evals.commands import train
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.weights.adapter import Adapter, load_adapter, merge, save_in_8_bits, to_8_bits
from redraft.model.weights.gguf import GGUFFile, read_checkpoint
from safetensors.numpy import save_file
from support.weights.models_on_disk import LINEAR, MASK_TOKEN, RANK, World, merged
from support.weights.tiny_gguf import HIDDEN, random
from typer.testing import CliRunner


def test_a_canvas_adapter_changes_the_canvas_alone(world: World) -> None:
    base, context, canvas = merged(world, adapter="canvas")
    assert context is base
    a, b = random(RANK, HIDDEN, seed=1), random(HIDDEN, RANK, seed=2)
    a, b = a.astype(np.float16).astype(np.float32), b.astype(np.float16).astype(np.float32)
    x = random(HIDDEN, seed=8)
    expected = base[f"{LINEAR}.weight"] @ x + 0.5 * (b @ (a @ x))
    np.testing.assert_allclose(canvas[f"{LINEAR}.weight"] @ x, expected, rtol=1e-4, atol=1e-4)
    row = random(HIDDEN, seed=3).astype(np.float16)
    np.testing.assert_array_equal(canvas["embed.weight"][MASK_TOKEN], row)
    others = np.arange(len(base["embed.weight"])) != MASK_TOKEN
    np.testing.assert_array_equal(canvas["embed.weight"][others], base["embed.weight"][others])
    for name in set(base) - {f"{LINEAR}.weight", "embed.weight"}:
        np.testing.assert_array_equal(canvas[name], base[name])


def test_an_adapter_for_all_positions_changes_passes(world: World) -> None:
    base, context, canvas = merged(world, adapter="all")
    assert context is canvas
    assert not np.array_equal(canvas[f"{LINEAR}.weight"], base[f"{LINEAR}.weight"])


def test_an_adapter_is_never_silently_left_or_added(world: World) -> None:
    _, base = read_checkpoint(GGUFFile(world.gguf))
    with pytest.raises(WeightsError, match="no adapter file is named"):
        merge(world.config(adapter="canvas"), base, None)
    with pytest.raises(WeightsError, match="an adapter file is named"):
        merged(world, adapter="none")
    assert merge(world.config(adapter="none"), base, None) == (base, base)


def test_bfloat16_is_read_without_torch(world: World) -> None:
    values = np.array([1.0, -2.5, 0.15625, 3e38, -1e-30], np.float32)
    bf16 = (values.view(np.uint32) >> 16).astype("<u2")
    head = {"mask_embedding": {"dtype": "BF16", "shape": [5], "data_offsets": [0, 10]}}
    raw = json.dumps(head).encode()
    world.adapter.write_bytes(len(raw).to_bytes(8, "little") + raw + bf16.tobytes())
    found = load_adapter(world.adapter).mask_embedding
    assert found is not None
    np.testing.assert_allclose(found, values, rtol=2**-7)
    assert found[:3].tolist() == [1.0, -2.5, 0.15625]


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({f"{LINEAR}.lora_a": random(4, 64)}, "lora_b missing"),
        ({f"{LINEAR}.lora_a": random(4, 64), f"{LINEAR}.lora_b": random(64, 5)}, "does not fit"),
        ({f"{LINEAR}.lora_a": random(4, 63), f"{LINEAR}.lora_b": random(64, 4)}, "does not fit"),
        (
            {"blocks.7.mlp.up.lora_a": random(4, 64), "blocks.7.mlp.up.lora_b": random(96, 4)},
            "no such layer",
        ),
        ({"mask_embedding": random(63)}, "mask embedding"),
        ({"embed.weight": random(64, 64)}, "not an adapter"),
        ({"mask_embedding": np.full(64, np.inf, np.float32)}, "not finite"),
        ({"mask_embedding": np.ones(64, np.int32)}, "I32"),
    ],
)
def test_an_adapter_must_fit_the_network(world: World, tensors: dict[str, Any], said: str) -> None:
    save_file(tensors, world.adapter)
    with pytest.raises(WeightsError, match=said):
        merged(world)


def test_8_bits_keep_a_matrix_to_half_a_step(tmp_path: Path) -> None:
    names = [f"{LINEAR}.lora_{side}" for side in "ab"]
    low, high = random(RANK, 70, seed=4), random(40, RANK, seed=5) * 1e-3
    low[1] = 0  # nothing to scale
    low[2, :32] *= 1e-6  # a scale below what float16 has exactly
    written = Adapter({"scale": "0.5"}, dict(zip(names, (low, high), strict=True)), low[0], {})
    save_in_8_bits(written, tmp_path / "a.safetensors", prompt_format="x")
    found = load_adapter(tmp_path / "a.safetensors")
    assert found.metadata == {"scale": "0.5", "prompt_format": "x"}
    assert found.mask_embedding is not None
    np.testing.assert_allclose(found.mask_embedding, low[0], rtol=1e-3, atol=1e-6)
    for name, values in written.lora.items():
        _, scales = to_8_bits(values)
        step = np.repeat(scales.astype(np.float32), 32, axis=1)[:, : values.shape[1]]
        assert (np.abs(found.lora[name] - values) <= step / 2 + 1e-9).all()
    plain = sum(values.nbytes for values in written.lora.values())
    assert (tmp_path / "a.safetensors").stat().st_size < plain


def test_8_bits_without_their_scales_are_refused(world: World) -> None:
    values, scales = to_8_bits(random(RANK, HIDDEN))
    for stored in ({}, {f"{LINEAR}.lora_a.scales": scales[:, :1]}):
        save_file({f"{LINEAR}.lora_a": values, **stored}, world.adapter)
        with pytest.raises(WeightsError, match="without its scales"):
            load_adapter(world.adapter)


@pytest.mark.parametrize("damage", [b"", b"abc", b"\xff" * 100, b"\x80" + bytes(7) + b"{" * 128])
def test_a_file_that_is_no_safetensors_is_refused(world: World, damage: bytes) -> None:
    world.adapter.write_bytes(damage)
    with pytest.raises(WeightsError, match="not a whole safetensors file"):
        load_adapter(world.adapter)


def test_a_cut_adapter_is_refused(world: World) -> None:
    whole = world.adapter.read_bytes()
    for length in range(0, len(whole), 37):
        world.adapter.write_bytes(whole[:length])
        with pytest.raises(WeightsError):
            load_adapter(world.adapter)


BASE = "b" * 64


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    about = {
        "name": "mine",
        "version": "0",
        "base": {"gguf_sha256": BASE},
        "adapter": {"file": "mine.safetensors", "sha256": ""},
        "config": {"canvas_width": 8, "adapter": "canvas", "verifier": "none"},
    }
    (tmp_path / "mine.json").write_text(json.dumps(about))
    return tmp_path


def ship(folder: Path, *more: str, **metadata: str) -> Any:
    tensors = {f"blocks.0.attn.q.lora_{side}": random(64, 64, seed=3) for side in "ab"}
    save_file(tensors, folder / "run.safetensors", metadata=metadata)
    arguments = ["ship", str(folder / "run.safetensors"), "--version", "1.0", "--to", str(folder)]
    return CliRunner().invoke(train.app, [*arguments, "--model", "mine", *more])


def test_the_adapter_is_stored_in_8_bits_and_described(shipped: Path) -> None:
    done = ship(shipped, base_sha256=BASE, adapter="all", verifier="ar")
    assert done.exit_code == 0, done.output
    about = json.loads((shipped / "mine.json").read_text())
    file = shipped / "mine.safetensors"
    assert about["adapter"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (about["version"], about["config"]["adapter"]) == ("1.0", "all")
    assert file.stat().st_size < 12_000
    found = load_adapter(file).lora["blocks.0.attn.q.lora_a"]
    np.testing.assert_allclose(found, random(64, 64, seed=3), atol=0.02)


def test_an_adapter_of_other_weights_is_not_shipped(shipped: Path) -> None:
    done = ship(shipped, base_sha256="c" * 64)
    assert isinstance(done.exception, SettingsError) and "was trained for" in str(done.exception)
    assert not (shipped / "mine.safetensors").exists()


def test_an_adapter_on_masks_is_described(shipped: Path) -> None:
    done = ship(shipped, base_sha256=BASE, adapter="masks", masks="4", rank="64")
    assert done.exit_code == 0, done.output
    config = json.loads((shipped / "mine.json").read_text())["config"]
    assert (config["adapter"], config["masks"], config["mask_rank"]) == ("masks", 4, 64)
    assert ship(shipped, base_sha256=BASE, adapter="all").exit_code == 0
    assert "masks" not in json.loads((shipped / "mine.json").read_text())["config"]


def test_an_adapter_that_is_too_large_is_not_shipped(
    shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "MOST_BYTES", 1_000)
    done = ship(shipped, base_sha256=BASE, adapter="all")
    assert isinstance(done.exception, SettingsError) and "lower rank" in str(done.exception)
    assert [path.suffix for path in shipped.iterdir() if "mine" in path.name] == [".json"]
