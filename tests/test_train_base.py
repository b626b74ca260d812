"""Adapting a base of one's own: pack for it, train over it, import both together."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="training needs the 'train' extra (torch)")
pytest.importorskip("transformers", reason="the tiny base is written with transformers")

from redraft.model.weights.import_model import import_model
from redraft.server.commands.main import app
from support.tiny_hf import LAYOUTS, write_hf
from support.training_sources import commit, write_lines
from typer.testing import CliRunner


def test_an_own_base_trains_and_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("REDRAFT_DATA_DIR", str(tmp_path / "data"))
    base = tmp_path / "hf"
    write_hf(base, LAYOUTS["Qwen3"])
    data = write_lines(tmp_path / "x-commits.jsonl.zst", [commit()] * 20)
    config = tmp_path / "tiny.toml"
    config.write_text("rank = 2\nsteps = 2\nbatch_tokens = 2000\nmax_context = 4000\n")
    shards, run = tmp_path / "shards", tmp_path / "run"
    options = ["--base", str(base)]
    asked = ["train", "pack", str(data), "--out", str(shards), "--rows", "20", "--jobs", "1"]
    _redraft(*asked, *options)
    made = ["--shards", str(shards), "--out", str(run), "--config", str(config)]
    _redraft("train", "run", *made, "--device", "cpu", *options)
    model = import_model(base, "mine", ("fp32",), adapter=run / "adapter.safetensors")
    assert (model.config.adapter, model.config.verifier) == ("all", "ar")


def _redraft(*arguments: str) -> None:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
