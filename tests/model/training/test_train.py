"""The training loop on a tiny network: it learns, resumes to the step and ships its adapter."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the extra 'lab' (torch)")

from redraft.model.errors import SettingsError  # noqa: E402
from redraft.model.training.batches import Batches, causal_weights, plan_batches  # noqa: E402
from redraft.model.training.checkpoints import (  # noqa: E402
    FRESH,
    RunFolder,
    Start,
    TrainConfig,
    start_of,
)
from redraft.model.training.evaluate import evaluate  # noqa: E402
from redraft.model.training.loop import build, causal_loss, run  # noqa: E402
from redraft.model.training.moments import EditClass  # noqa: E402
from redraft.model.training.network import Network, canvas_mask  # noqa: E402
from redraft.model.training.shards import PackedRows  # noqa: E402
from redraft.model.weights.adapter import Adapter  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from support.models.tiny_training import (  # noqa: E402
    COMPARED,
    MODEL,
    QUICK,
    random_weights,
    take_part,
    trained,
)

torch.set_num_threads(1)  # tiny matrices: more threads only wait for each other


def toy_rows(count: int = 12) -> PackedRows:
    rng = np.random.default_rng(0)
    rows = [rng.integers(20, MODEL.vocab, 30 + i % 5) for i in range(count)]
    lengths = np.array([len(r) for r in rows])
    return PackedRows(
        np.concatenate(rows).astype(np.uint16),
        np.concatenate([[0], np.cumsum(lengths)]),
        (lengths - 5).astype(np.int32),
        np.full(count, 2, np.int32),
        np.where(np.arange(count) % 2 == 0, int(EditClass.NEXT_EDIT), 0).astype(np.uint8),
    )


def test_a_window_sees_the_cache_before_it_and_itself() -> None:
    mask = canvas_mask(torch.tensor([2, 3]), past=4, width=2)
    expected = [
        [1, 1, 0, 0, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 1, 0, 0],
        [1, 1, 1, 0, 0, 0, 1, 1],
        [1, 1, 1, 0, 0, 0, 1, 1],
    ]
    assert mask.int().tolist() == expected


def test_special_tokens_but_end_are_never_predicted() -> None:
    network = Network(MODEL)
    network.load(random_weights())
    logits = network.logits(torch.randn(5, MODEL.hidden))
    assert (logits[:, 1 : MODEL.special_tokens] < -1e8).all()
    assert (logits[:, MODEL.end_token] > -1e8).all()


def test_a_frozen_base_gets_no_gradient() -> None:
    network = build(QUICK, MODEL, random_weights(), device="cpu")
    batch = Batches(toy_rows(), QUICK, MODEL.end_token)[0]
    causal_loss(network, batch, "cpu")[0].backward()
    moved = {n for n, p in network.named_parameters() if p.grad is not None and p.grad.any()}
    assert moved and all(n.endswith("lora_b") for n in moved)


def test_a_higher_rank_says_the_same_until_it_learns() -> None:
    weights, batch = random_weights(), Batches(toy_rows(), COMPARED, MODEL.end_token)[0]
    small = build(COMPARED, MODEL, weights, device="cpu")
    start = {
        name: torch.randn_like(p).numpy() * 0.1
        for name, p in small.named_parameters()
        if name.endswith(("lora_a", "lora_b"))
    }
    small, large = (
        build(replace(COMPARED, rank=rank), MODEL, weights, Start({}, start), "cpu")
        for rank in (4, 6)
    )
    losses = [float(causal_loss(network, batch, "cpu")[0].detach()) for network in (small, large)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    with pytest.raises(SettingsError, match="has rank 4, the config says 2: raise it"):
        build(replace(COMPARED, rank=2), MODEL, weights, Start({}, start), "cpu")


def test_every_row_is_in_exactly_one_batch_of_an_epoch() -> None:
    planned = plan_batches(toy_rows(), replace(QUICK, batch_tokens=120), 0)
    assert sorted(int(i) for batch in planned for i in batch) == list(range(12))
    assert len(planned) > 3
    length = np.diff(toy_rows().offset) + 1
    assert all(length[batch].sum() <= 120 for batch in planned)


def test_loss_falls_on_rows_it_can_learn(packed: Path, tmp_path: Path) -> None:
    config = replace(QUICK, steps=40, evaluate_every=1_000)
    trained(config, packed, tmp_path / "run")
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    losses = [entry["loss"] for entry in entries]
    assert {entry["arithmetic"] for entry in entries} <= {"int8", "bf16", "fp32"}
    assert any(entry.get("loss_foreseeable", 0) > 0 for entry in entries), "by class of row"
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.3


def test_an_interrupted_run_resumes_and_ends_the_same(packed: Path, tmp_path: Path) -> None:
    log = tmp_path / "two" / "log.jsonl"

    def adapter(name: str, steps: int) -> dict[str, np.ndarray]:
        # the cosine runs over `steps`, so an interrupted run is emulated by its minutes
        config = replace(COMPARED, steps=steps, final_rate=1.0, evaluate_every=1_000)
        return trained(config, packed, tmp_path / name)

    at_once = adapter("one", 6)
    adapter("two", 3)
    log.write_text(log.read_text() + '{"kind": "step", "loss": 1, "step": 4}\n{"kind": "st')
    in_two = adapter("two", 6)
    for name, tensor in at_once.items():
        assert np.allclose(tensor, in_two[name], atol=1e-2), name
    assert [json.loads(line)["step"] for line in log.read_text().splitlines()] == [1, 2, 3, 4, 5, 6]


def test_evaluation_reports_each_class_of_rows(packed: Path, tmp_path: Path) -> None:
    network = build(QUICK, MODEL, random_weights(), device="cpu")
    written = run(QUICK, network, RunFolder(tmp_path / "run"), packed, packed)
    with safe_open(str(written), "np") as file:
        assert (file.metadata()["adapter"], file.metadata()["verifier"]) == ("all", "ar")
    entries = [json.loads(x) for x in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    found = [e for e in entries if e["kind"] == "evaluation"]
    assert len(found) == 2
    for group in ("infill", "foreseeable", "nothing_left", "chain"):
        assert found[0][f"{group}_loss"] > 0 and found[0][f"{group}_rows"] > 0
        assert found[0][f"{group}_nats"] > found[0][f"{group}_loss"]
        assert 0 <= found[0][f"{group}_exact"] <= 1


def test_an_adapter_is_exact_where_greedy_is_right() -> None:
    network = build(QUICK, MODEL, random_weights(), device="cpu")
    rows, written = toy_rows(2), []
    for i in range(2):
        tokens, prompt, _ = rows[i]
        ids = tokens[:prompt].tolist()
        while len(ids) < prompt + 5:
            hidden, _ = network.context(torch.tensor(ids))
            ids.append(int(network.logits(hidden[-1]).argmax()))
        written.append(np.array(ids))
    same = replace(rows, tokens=np.concatenate(written).astype(np.uint16))
    end = int(network.logits(network.context(torch.from_numpy(written[0]))[0][-1]).argmax())
    found = evaluate(network, same, QUICK)
    assert found["unrelated_exact"] == float(end == MODEL.end_token)
    assert evaluate(network, rows, QUICK)["unrelated_exact"] == 0


def test_shipped_configs_are_readable() -> None:
    folder = Path(__file__).parents[3] / "model" / "configs"
    found = {path.stem: TrainConfig.read(path) for path in folder.glob("*.toml")}
    assert set(found) == {"causal-cpu", "masks-cpu", "h100-causal", "h100-masks"}


def test_a_config_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("learning_rat = 1\n")
    with pytest.raises(SettingsError, match="learning_rat"):
        TrainConfig.read(tmp_path / "c.toml")


def test_cuda_is_asked_for_by_name_only_where_it_is() -> None:
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is present")
    with pytest.raises(SettingsError, match="No CUDA device"):
        build(QUICK, MODEL, {}, FRESH, "cuda")


@pytest.mark.usefixtures("spawn")
def test_two_processes_equal_one_that_accumulates(packed: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    together = tmp_path / "two"
    torch.multiprocessing.spawn(take_part, (port, packed, together), nprocs=2)
    alone = trained(replace(COMPARED, steps=3, accumulate=2), packed, tmp_path / "one")
    both = {n: t.float().numpy() for n, t in load_file(together / "adapter.safetensors").items()}
    assert all(np.allclose(both[name], alone[name], atol=1e-2) for name in alone)
    progress = [
        json.loads((tmp_path / name / "log.jsonl").read_text().splitlines()[-1])
        for name in ("one", "two")
    ]
    assert progress[0]["tokens"] == progress[1]["tokens"]


def test_what_an_adapter_stands_on_is_shipped_with_it(packed: Path, tmp_path: Path) -> None:
    ground = {"blocks.0.attn.q.lora_a": np.ones((2, MODEL.hidden), np.float32)}
    tensors = trained(QUICK, packed, tmp_path / "run", ground=ground)
    assert (tensors["base.blocks.0.attn.q.lora_a"] == 1).all()


def test_the_causal_pass_learns_answer_end_and_code() -> None:
    config = replace(QUICK, code_tokens=4)
    weight = causal_weights(20, 3, 10, config, np.random.default_rng(0))
    assert len(weight) == 24
    assert (weight[20:] == 1).all()
    assert (weight[:11] == 0).all()
    assert sorted(weight[11:20].tolist()) == [0.0] * 5 + [0.25] * 4
    assert causal_weights(20, 3, 0, config, np.random.default_rng(0))[:20].sum() == 0


def adapter_of(tensors: dict[str, np.ndarray], **metadata: str) -> Adapter:
    lora = {n: v for n, v in tensors.items() if n.startswith("blocks.")}
    ground = {n.removeprefix("base."): v for n, v in tensors.items() if n.startswith("base.")}
    return Adapter(metadata, lora, tensors.get("mask_embedding"), ground)


ONE = {
    f"blocks.{i}.mlp.up.lora_{side}": np.ones((4, 4), np.float32) for i in (0, 1) for side in "ab"
}
ON_MASKS = {"mask_embedding": np.ones(4, np.float32)}


def test_causal_loss_goes_on_from_a_shipped_adapter() -> None:
    shipped = adapter_of({f"base.{n}": v for n, v in ONE.items()} | ON_MASKS, adapter="masks")
    ground, tensors = start_of(shipped, shipped, QUICK)
    assert (set(ground), set(tensors)) == (set(), set(ONE))


def test_masks_go_on_from_the_shipped_ones() -> None:
    config = replace(QUICK, masks=3)
    causal = adapter_of(ONE, adapter="all", scale="2.0")
    shipped = adapter_of(ONE | ON_MASKS, adapter="masks", sampler="0")
    ground, tensors = start_of(causal, shipped, config)
    assert float(ground["blocks.0.mlp.up.lora_b"][0, 0]) == 2 and "mask_embedding" in tensors
    assert start_of(causal, None, config).tensors == {}
    assert start_of(None, shipped, config) == FRESH
    assert start_of(causal, shipped, replace(config, sampler=16)).tensors == {}


def test_layers_below_the_trained_must_start_unchanged() -> None:
    weights, config = random_weights(), replace(QUICK, low=1)
    start = {
        name: np.ones(p.shape, np.float32)
        for name, p in Network(MODEL, rank=4).named_parameters()
        if "lora" in name
    }
    with pytest.raises(SettingsError, match=r"changes layer 0, but low = 1 .* Set low = 0"):
        build(config, MODEL, weights, Start({}, start), "cpu")
    for name in start:
        if name.startswith("blocks.0."):
            start[name] = np.zeros_like(start[name])
    network = build(config, MODEL, weights, Start({}, start), "cpu")
    assert network.get_parameter("blocks.1.mlp.up.lora_b").detach().numpy().all()
