"""Training from end to end by its commands, over a tiny base with random weights."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs the 'train' extra (torch)")
pytest.importorskip("transformers", reason="the tiny base is written with transformers")

import torch
from redraft.model.config import ModelConfig
from redraft.model.decode.pass_costs import Groups
from redraft.model.decode.speculative import lay_out
from redraft.model.network.onnx_files import materialise
from redraft.model.runtime.onnx_backend import OnnxBackend
from redraft.model.training.network import Network
from redraft.model.weights.adapter import load_adapter, merge
from redraft.model.weights.huggingface import checkpoint_sha256, read_folder
from redraft.model.weights.import_model import import_weights
from redraft.server.commands.main import app
from support.command import RUN
from support.models.torch_sequence import TorchSequence
from support.weights.tiny_hf import LAYOUTS, write_hf
from support.weights.training_sources import CHAINED, commit, write_lines
from typer.testing import CliRunner

CAUSAL = """
rank = 2
steps = 24
batch_tokens = 1000
max_context = 4000
learning_rate = 1e-2
save_every_s = 0
arithmetic = "fp32"
"""
MASKS = CAUSAL.replace("steps = 24", "steps = 4") + "masks = 2\ngroups = 8\nsampler = 8\n"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "DATA"):
        monkeypatch.setenv(f"REDRAFT_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # sums do not depend on the machine
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    write_hf(tmp_path / "base", LAYOUTS["Qwen3"])
    file: dict[str, object] = {"repo": "r", "path": "b.py", "text": CHAINED}
    write_lines(tmp_path / "train-commits.jsonl.zst", [commit()] * 20)
    write_lines(tmp_path / "train-files.jsonl.zst", [file] * 20)
    (tmp_path / "causal.toml").write_text(CAUSAL)
    (tmp_path / "masks.toml").write_text(MASKS)
    return tmp_path / "base"


def redraft(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


ADAPTER = "adapter.safetensors"
TRAIN = ("train", "run", "--base", "base", "--device", "cpu")


@pytest.mark.usefixtures("spawn")
def test_a_killed_run_goes_on_and_ships_its_training(base: Path, tmp_path: Path) -> None:
    # 1. Rows of both tasks.
    printed = redraft("train", "pack", ".", "--rows", "40", "--jobs", "1", "--base", "base")
    assert printed.strip().startswith("40 rows") and "foreseeable" in printed

    # 2. A run that is killed in the middle ends as one that is not.
    causal = (*TRAIN, "--config", "causal.toml", "--out")
    command = [sys.executable, "-c", RUN, *causal, "killed"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _wait_for_steps(tmp_path / "killed" / "log.jsonl", 5, process)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert "resuming" in redraft(*causal, "killed")
    assert "resuming" not in redraft(*causal, "whole")
    killed, whole = (load_adapter(tmp_path / name / ADAPTER) for name in ("killed", "whole"))
    assert set(killed.lora) == set(whole.lora)
    assert all(np.array_equal(killed.lora[name], whole.lora[name]) for name in whole.lora)
    log = (tmp_path / "killed" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == [*range(1, 25)]

    # 3. Masks over it, shipped in 8 bits.
    start = str(tmp_path / "whole" / ADAPTER)
    redraft(*TRAIN, "--config", "masks.toml", "--start", start, "--out", "masks")
    evaluated = redraft(
        "train", "evaluate", "masks/adapter.safetensors", "--held-out", "shards", "--rows", "24",
        "--base", "base",
    )  # fmt: skip
    assert {"foreseeable_nats", "edit_draft_tokens_per_pass"} <= json.loads(evaluated).keys()
    described = {
        "name": "mine",
        "version": "0",
        "base": {"gguf_sha256": checkpoint_sha256(base)},
        "adapter": {"file": "mine.safetensors", "sha256": ""},
        "config": {"canvas_width": 8, "adapter": "none", "verifier": "ar"},
    }
    (tmp_path / "mine.json").write_text(json.dumps(described))
    redraft(
        "train", "ship", "masks/adapter.safetensors", "--version", "1.0", "--model", "mine",
        "--to", ".",
    )  # fmt: skip
    config = json.loads((tmp_path / "mine.json").read_text())["config"]
    assert (config["adapter"], config["masks"], config["mask_rank"]) == ("masks", 2, 2)

    # 4. The served graph computes what torch does; a causal adapter can be imported, too.
    _compare(base, config, tmp_path / "mine.safetensors", tmp_path / "fp32")
    model = import_weights(base, "mine", "fp32", adapter=tmp_path / "whole" / ADAPTER)
    assert (model.config.adapter, model.config.verifier) == ("all", "ar")


def _wait_for_steps(log: Path, steps: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a run has taken some steps."""
    while process.poll() is None:
        if log.is_file() and log.read_text().count("\n") >= steps:
            return
        time.sleep(0.01)
    pytest.fail(f"the run ended with {process.returncode} before step {steps}")


def _compare(base: Path, described: dict[str, Any], adapter: Path, folder: Path) -> None:
    """Compare logits behind text, and guesses of masks behind tokens of a draft, with torch."""
    plain, tensors, *_ = read_folder(base)
    config = ModelConfig.from_dict({**plain.to_dict(), **described})
    given = load_adapter(adapter)
    context, canvas = merge(config, tensors, given)
    materialise(config, context, canvas, "fp32", folder)
    backend = OnnxBackend(folder, threads=1)
    network = Network(config, rank=config.mask_rank, reach=256).eval()
    own = {**given.lora, **given.sampler, "mask_embedding": given.mask_embedding}
    network.load({**context, **own})
    served, twin = backend.open(256), TorchSequence(network, 256)
    rng = np.random.default_rng(0)
    tokens = rng.choice(np.array(config.text_ids), 40)
    scores = [each.score(tokens, logits=True) for each in (served, twin)]
    ids = np.array(config.text_ids)
    np.testing.assert_allclose(scores[0].logits[:, ids], scores[1].logits[:, ids], atol=1e-3)
    last, *drafts = tokens[:3].tolist()
    laid = lay_out(last, drafts, len(tokens), Groups(2, (0, 1, 2)), config.mask_token)
    found, expected = (each.read(laid).masks for each in (served, twin))
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=1e-4)
    assert np.array_equal(found.token[:, 0], expected.token[:, 0])
