"""``redraft train ship``: an adapter takes its place beside a description."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.errors import SettingsError
from redraft.model.weights.adapter import load_adapter
from redraft.server.commands.train import app
from safetensors.numpy import save_file
from support.tiny_gguf import random
from typer.testing import CliRunner

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
    return CliRunner().invoke(app, [*arguments, "--model", "mine", *more])


@pytest.mark.parametrize("bits", [8, 16])
def test_the_adapter_is_stored_and_described(shipped: Path, bits: int) -> None:
    done = ship(shipped, "--bits", str(bits), base_sha256=BASE, adapter="all", verifier="ar")
    assert done.exit_code == 0, done.output
    about = json.loads((shipped / "mine.json").read_text())
    file = shipped / "mine.safetensors"
    assert about["adapter"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (about["version"], about["config"]["adapter"]) == ("1.0", "all")
    assert (file.stat().st_size < 12_000) == (bits == 8)
    found = load_adapter(file).lora["blocks.0.attn.q.lora_a"]
    np.testing.assert_allclose(found, random(64, 64, seed=3), atol=0.02)


def test_an_adapter_of_other_weights_is_not_shipped(shipped: Path) -> None:
    done = ship(shipped, base_sha256="c" * 64)
    assert isinstance(done.exception, SettingsError) and "was trained for" in str(done.exception)
    assert not (shipped / "mine.safetensors").exists()


def test_an_adapter_on_masks_is_cut_to_a_rank_and_described(shipped: Path) -> None:
    facts = {"base_sha256": BASE, "adapter": "masks", "masks": "4", "rank": "64"}
    done = ship(shipped, "--bits", "8", "--rank", "20", **facts)
    assert done.exit_code == 0, done.output
    config = json.loads((shipped / "mine.json").read_text())["config"]
    assert (config["adapter"], config["masks"], config["mask_rank"]) == ("masks", 4, 20)
    lora = load_adapter(shipped / "mine.safetensors").lora
    assert lora["blocks.0.attn.q.lora_a"].shape == (20, 64)
    whole = random(64, 64, seed=3) @ random(64, 64, seed=3)
    u, s, v = np.linalg.svd(whole)
    best = (u[:, :20] * s[:20]) @ v[:20]
    found = lora["blocks.0.attn.q.lora_b"] @ lora["blocks.0.attn.q.lora_a"]
    assert np.abs(found - best).max() < 0.05 * np.abs(best).max()
    again = ship(shipped, "--bits", "8", base_sha256=BASE, adapter="all")
    assert again.exit_code == 0
    assert "masks" not in json.loads((shipped / "mine.json").read_text())["config"]


def test_a_rank_is_cut_only_where_matrices_are_written_anew(shipped: Path) -> None:
    done = ship(shipped, "--rank", "8", base_sha256=BASE)
    assert isinstance(done.exception, SettingsError) and "--bits 8" in str(done.exception)
