"""Mask drafts: where their groups stand, what they learn from, how often they are right."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard

torch = pytest.importorskip("torch", reason="needs torch: pip install '.[lab]'")

from redraft.model.training.batches import Batches  # noqa: E402
from redraft.model.training.checkpoints import RunFolder, TrainConfig, start_of  # noqa: E402
from redraft.model.training.evaluate import evaluate  # noqa: E402
from redraft.model.training.loop import build, mask_loss, run  # noqa: E402
from redraft.model.training.masks import (  # noqa: E402
    DEPTH_WEIGHTS,
    PROMPT_WEIGHT,
    acceptance,
    draft_loss,
    draw_groups,
    guess,
)
from redraft.model.training.moments import EditClass  # noqa: E402
from redraft.model.training.network import Network  # noqa: E402
from redraft.model.training.shards import CLASSES, PackedRows, read_shards  # noqa: E402
from redraft.model.weights.adapter import load_adapter, save_in_8_bits  # noqa: E402
from support.models.tiny import tiny_config  # noqa: E402
from support.models.tiny_training import random_weights  # noqa: E402

torch.set_num_threads(1)
MODEL = tiny_config(adapter="masks")
MASKS = 3
CONFIG = TrainConfig(
    rank=4, learning_rate=1e-2, warmup_steps=2, average=0.99, final_rate=0.1,
    batch_tokens=400, steps=150, minutes=5,
    evaluate_every=1_000, evaluate_rows=8, max_context=2_000, masks=MASKS, groups=12,
)  # fmt: skip


def network(rank: int = 4) -> Network:
    made = Network(MODEL, rank=rank)
    made.load(random_weights(model=MODEL))
    return made


def rows(count: int = 8) -> PackedRows:
    """Return texts that repeat one phrase, so that the token after the next can be predicted."""
    rng = np.random.default_rng(0)
    phrase = rng.integers(20, MODEL.vocab, 6)
    texts = [np.roll(np.tile(phrase, 7), i)[: 36 + i % 3] for i in range(count)]
    lengths = np.array([len(text) for text in texts])
    return PackedRows(
        np.concatenate(texts).astype(np.uint16),
        np.concatenate([[0], np.cumsum(lengths)]),
        (lengths - 10).astype(np.int32),
        np.full(count, 2, np.int32),
        np.where(np.arange(count) % 2 == 0, int(EditClass.NEXT_EDIT), 0).astype(np.uint8),
    )


def test_groups_cover_the_answer_and_then_the_prompt() -> None:
    found = draw_groups(30, 5, 12, MASKS, np.random.default_rng(1))
    known = found[0] - 1
    assert set(range(29, 34)) <= set(known.tolist())  # the last guesses END, at index 35
    assert len(known) == 12 and (known[:-5] < 29).all()
    assert found[1][-1].tolist() == [1.0, 0.0, 0.0]  # nothing to guess behind END
    assert found[1][-2] == pytest.approx([1.0, DEPTH_WEIGHTS[1], 0.0])
    assert found[1][0] == pytest.approx(np.array(DEPTH_WEIGHTS[:3]) * PROMPT_WEIGHT)


def test_most_of_a_long_answer_is_left_for_later() -> None:
    found = draw_groups(30, 60, 12, MASKS, np.random.default_rng(1))
    assert (found[0] - 1 >= 29).sum() == 8 and len(found[0]) == 12


def test_an_answer_that_is_empty_leaves_the_prompt() -> None:
    found = draw_groups(30, 0, 12, MASKS, np.random.default_rng(1))
    assert (found[0] - 1 < 29).all() and (found[1] > 0).any()


def test_a_group_sees_what_is_before_it_and_itself() -> None:
    net = network()
    net.load(random_weights(model=MODEL) | {"mask_embedding": np.ones(MODEL.hidden, np.float32)})
    tokens = torch.from_numpy(rows()[0][0])
    changed = tokens.clone()
    changed[20:] = 25

    def guessed(ids: torch.Tensor, starts: list[int]) -> torch.Tensor:
        return guess(net, net.context(ids)[1], [len(ids)], torch.tensor([starts]), MASKS)[0]

    with torch.no_grad():
        seen = [guessed(ids, [10, 20, 30]) for ids in (tokens, changed)]
        alone = guessed(tokens, [20])
    assert torch.equal(seen[0][:2], seen[1][:2]) and not torch.equal(seen[0][2], seen[1][2])
    assert torch.allclose(seen[0][1], alone[0], atol=1e-5)


def test_only_the_adapter_and_the_mask_learn() -> None:
    net = network()
    batch = Batches(rows(), CONFIG, MODEL.end_token)[0]
    mask_loss(net, batch, "cpu").backward()
    moved = {n for n, p in net.named_parameters() if p.grad is not None and p.grad.any()}
    assert moved and all(n.endswith(("lora_b", "mask_embedding")) for n in moved)


def test_a_sampler_learns_what_follows_an_unseen_token() -> None:
    """Two texts that differ by the token in front of what is guessed, and by that alone before."""
    net = Network(replace(MODEL, sampler=16), rank=4)
    net.load(random_weights(model=MODEL))
    hidden, before = torch.randn(1, MODEL.hidden), torch.tensor([[30], [40]])
    candidates = torch.tensor([[50, 60]])
    assert not net.follow(hidden, before[0], candidates).any()  # an untrained one changes nothing
    optimiser = torch.optim.Adam(net.sampler.parameters(), lr=1e-2)
    for _ in range(80):
        optimiser.zero_grad()
        change = torch.cat([net.follow(hidden, token, candidates) for token in before])
        torch.nn.functional.cross_entropy(change, torch.tensor([0, 1])).backward()
        optimiser.step()
    assert change.argmax(1).tolist() == [0, 1]


def test_the_loss_is_nothing_where_masks_are_the_judge() -> None:
    """The divergence is that of the cut tail if guesses have the verifier's hidden states."""
    net = network()
    lengths = [len(rows()[i][0]) for i in (0, 3)]
    tokens = torch.from_numpy(np.concatenate([rows()[i][0] for i in (0, 3)]))
    starts = torch.tensor([[5, 12], [8, 20]])
    begins = torch.tensor([0, lengths[0]])
    with torch.no_grad():
        hidden, past = net.context(tokens, lengths=lengths)
        place = (begins[:, None] + starts)[..., None] + torch.arange(MASKS)
        guesses = [hidden[place], guess(net, past, lengths, starts, MASKS)]
    exact, blind = (
        draft_loss(net, hidden, each, tokens, place, torch.ones(2, 2, MASKS)) for each in guesses
    )
    tail = net.logits(hidden).softmax(-1).topk(32).values.sum(-1).log().neg()
    assert 0 <= float(exact.detach()) <= float(tail.detach().max()) + 1e-5 < float(blind.detach())


@pytest.mark.parametrize("width", [0, 16])
def test_training_makes_drafts_agree_with_the_judge(width: int, tmp_path: Path) -> None:
    """A sampler is trained too, and shipped beside the adapter."""
    config = replace(CONFIG, sampler=width)
    data = rows(12)
    net = network()
    before = acceptance(net, data, np.arange(6), MASKS)
    shards = tmp_path / "shards"
    save(data, shards)
    built = build(config, MODEL, random_weights(model=MODEL), device="cpu")
    path = run(config, built, RunFolder(tmp_path / "run"), shards, shards)
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    losses = [entry["loss"] for entry in log if entry["kind"] == "step"]
    assert np.mean(losses[-8:]) < 0.85 * np.mean(losses[:8])
    judged = [entry for entry in log if entry["kind"] == "evaluation"][-1]
    assert judged["infill_draft_chances"][0] > before["chances"][0] + 0.2
    assert judged["infill_draft_tokens_per_pass"] > before["tokens_per_pass"]
    trained = load_adapter(path)
    assert bool(trained.sampler) == bool(width)
    save_in_8_bits(trained, tmp_path / "shipped")
    trained = load_adapter(tmp_path / "shipped")
    built = build(
        config, MODEL, random_weights(model=MODEL), start_of(trained, None, config), "cpu"
    )
    found = evaluate(built, read_shards(shards, MODEL), config)
    told = {name: value for name, value in judged.items() if "_draft_" in name}
    assert set(found) == set(told), "the same figures as in training"
    assert found["infill_draft_chances"][0] > before["chances"][0] + 0.2


def test_acceptance_counts_drafts_behind_right_ones() -> None:
    net = network()
    data = rows()
    found = acceptance(net, data, np.arange(4), MASKS)
    first, second, third = found["chances"]
    assert found["places"] == 4 * 10  # nine of the ten and the prompt's last
    assert 0 <= first <= 1
    product = 1 + first + first * (second or 0) + first * (second or 0) * (third or 0)
    assert found["tokens_per_pass"] == pytest.approx(product, abs=0.01)


def save(data: PackedRows, folder: Path) -> None:
    """As ``redraft train pack`` writes shards."""
    raw = io.BytesIO()
    arrays = {name: getattr(data, name) for name in ("tokens", "prompt", "plain", "kind")}
    np.savez(raw, length=np.diff(data.offset), **arrays)
    packed = zstandard.ZstdCompressor().compress(raw.getvalue())
    folder.mkdir()
    (folder / "rows.npz.zst").write_bytes(packed)
    shard = {"file": "rows.npz.zst", "sha256": hashlib.sha256(packed).hexdigest()}
    facts = {"prompt_format": MODEL.prompt_format, "vocab": MODEL.vocab, "classes": CLASSES}
    facts["shards"] = [shard]
    (folder / "manifest.json").write_text(json.dumps(facts))
