"""However next edits are computed, they come out the same."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.decoding.denoise import AUTOREGRESSIVE, Run
from redraft.model.decoding.plan import Plan
from redraft.model.decoding.tree import Tree
from redraft.model.predict import predict
from redraft.model.runtime.backend import FloatArray
from redraft.model.runtime.onnx_backend import OnnxBackend
from support.candidates import (
    CALLS,
    FIELD,
    MARK,
    PLAIN,
    PROMPT,
    RENAMED,
    REQUEST,
    asked,
    clock,
    history,
    over,
    written,
)
from support.fake_backend import (
    SPECIAL,
    FakeBackend,
    Noise,
    ids,
    small_config,
)
from support.onnx_models import store
from support.tiny import tiny_config, tiny_tokenizer

# --- equal paths --------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", [PLAIN, AUTOREGRESSIVE])
@pytest.mark.parametrize("seed", range(3))
def test_every_text_is_what_the_causal_pass_alone_would_write(seed: int, plan: Plan) -> None:
    noise = Noise(seed, scale=3.0)

    def causal(context: list[int]) -> FloatArray:
        row = noise(context, [0])[0]
        row[1:SPECIAL] = -1e9
        return row

    backend = FakeBackend(noise, small_config(8, "ar"), causal)
    drafts = written(backend, plan, FIELD.proposals[:1]).drafts
    assert {draft.source for draft in drafts} == {"model", "repeat"}
    for draft in drafts:
        if draft.source == "model":
            start = draft.text.index("\n") + 1
            for place in range(start, len(draft.token_ids)):
                likeliest = int(causal([*PROMPT, *draft.token_ids[:place]]).argmax())
                assert draft.token_ids[place] == likeliest


def graph_config() -> ModelConfig:
    return tiny_config(hidden=64, heads=6, kv_heads=2, head_dim=16, intermediate=96)


def test_judged_candidates_of_real_graphs_are_scored_the_same_from_a_warm_cache(
    tmp_path: Path,
) -> None:
    store(graph_config(), "fp32", tmp_path)
    backend = OnnxBackend(tmp_path, "CPU", threads=1)
    model = over(backend, tiny_tokenizer())
    request = dataclasses.replace(
        REQUEST, text=CALLS, edits=history(CALLS, RENAMED), candidates=4, max_tokens=30
    )
    cold = predict(model, request, clock)
    warm = predict(model, request, clock)
    assert warm.stats.reused_tokens > cold.stats.reused_tokens
    assert warm.candidates == cold.candidates
    backend.close()


def test_branches_of_real_graphs_are_judged_as_texts_alone(tmp_path: Path) -> None:
    config = dataclasses.replace(graph_config(), adapter="all")
    store(config, "fp32", tmp_path)
    backend = OnnxBackend(tmp_path, "CPU", threads=1)
    sequence = backend.open(200)
    first = config.text_ids.start
    sequence.extend(np.arange(first, first + 20))
    tree = Tree(Run(sequence, lambda: False, None), first + 3, config.end_token, keep=99)
    texts = [[first + 5, first + 6, first + 7], [first + 5, first + 9], [first + 8]]
    assert len(tree.read(texts)) == 6 and tree.read(texts[:1]) == []
    assert len(sequence.tokens) == 20 + 6  # what begins alike is read once
    for text in texts:
        sequence.truncate(20)
        alone = sequence.score(np.asarray([first + 3, *text]), logits=True)
        node = tree.node(text)
        assert node is not None and node.logits is not None and alone.logits is not None
        np.testing.assert_allclose(node.logits, alone.logits[-1], rtol=1e-3, atol=1e-3)
        logs = [one.logs[two.token] for one, two in pairwise(node.path())]
        np.testing.assert_allclose(logs, alone.target_logprob[:-1], rtol=1e-3, atol=1e-3)
    backend.close()


def test_where_there_is_no_room_for_all_branches_texts_are_read_again() -> None:
    backend = FakeBackend(Noise(1), small_config(8, "ar"))
    wide, narrow = backend.open(400), backend.open(len(PROMPT) + 12)
    for sequence in (wide, narrow):
        sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
    trees = [Tree(Run(each, lambda: False, None), MARK, 0) for each in (wide, narrow)]
    for text in (ids("some text"), ids("other"), ids("some more")):
        for tree in trees:
            tree.read([text])
    for text in (ids("some text"), ids("other"), ids("some more")):
        one, two = (tree.node(text) for tree in trees)
        assert one is not None and two is not None and one.read and two.read
        assert (one.best, one.log) == (two.best, two.log)


def test_proposals_are_priced_in_the_pass_that_prices_no_edit() -> None:
    text = "def shown(x):\n    print(show(x))\n"
    prediction = asked({"2-2\n    print(shown(x))\n": 0.9, "": 0.1}, RENAMED, text=text)
    assert prediction.candidates[0].source == "both"
    assert prediction.stats.denoise_steps == 1
