"""The head of frequent tokens against the whole one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.network import frequent
from redraft.model.network.frequent import frequent_tokens, write_frequent
from redraft.model.runtime import short_head
from redraft.model.runtime.backend import Rows, Scores
from support.models.onnx_models import BASE, some_tokens, store
from support.models.reference import log_softmax

runtime = pytest.importorskip("redraft.model.runtime.onnx_backend", reason="needs onnxruntime")
pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")

CONFIG = dataclasses.replace(BASE, adapter="none", verifier="ar", draft_after=4096)
HELD = some_tokens(CONFIG, 20, seed=1)
TOKENS = some_tokens(CONFIG, 30, seed=2)  # one pass with either head


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a model of 160 tokens, of which the even ones are frequent, except marks."""
    ids = np.arange(CONFIG.vocab)
    counts = ((ids % 2 == 0) & (ids >= CONFIG.special_tokens)).astype(np.int64)
    write_frequent(counts, int(counts.sum()), tmp_path / "frequent.txt", always=0)
    monkeypatch.setitem(frequent.FILES, CONFIG.vocab, tmp_path / "frequent.txt")
    return runtime.OnnxBackend(store(CONFIG, "int8", tmp_path / "model"), threads=1)


def opened(backend: Any) -> Any:
    sequence = backend.open(256)
    sequence.extend(HELD)
    return sequence


def expected(whole: Scores, choice: np.ndarray) -> np.ndarray:
    """Return the log-probabilities [n, vocab] if only ``choice`` may be predicted."""
    assert whole.logits is not None
    among = np.full_like(whole.logits, -1e9)
    among[:, choice] = whole.logits[:, choice]
    return np.asarray(log_softmax(among))


def choice_of(*parts: np.ndarray) -> np.ndarray:
    frequent_ids = frequent_tokens(CONFIG)
    return np.unique(np.concatenate([frequent_ids, *parts, [CONFIG.end_token]]))


def is_near(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Return whether log-probabilities differ by rounding alone.

    Extra tokens are rounded as in the embedding, frequent ones as in the head. Logits have a
    deviation of 4 here, so any other token would be far off.
    """
    return bool(np.abs(found - wanted).mean() < 0.1)


def test_scores_are_those_of_the_whole_head(backend: Any) -> None:
    whole = opened(backend).score(TOKENS, logits=True)
    short = opened(backend).score(TOKENS, short=True)
    choice = choice_of(HELD, TOKENS)
    wanted = expected(whole, choice)
    assert np.isin(short.top, choice).all()
    assert is_near(short.target_logprob[:-1], wanted[np.arange(29), TOKENS[1:]])
    best = np.sort(wanted, axis=1)[:, ::-1][:, : short.top.shape[1]]
    assert is_near(short.top_logprob, best)


def test_a_row_may_have_several_targets(backend: Any) -> None:
    targets = np.stack([some_tokens(CONFIG, 30, seed=3), some_tokens(CONFIG, 30, seed=4)], axis=1)
    whole = opened(backend).score(TOKENS, logits=True)
    short = opened(backend).score(TOKENS, targets, short=True)
    wanted = expected(whole, choice_of(HELD, targets.ravel()))
    of_targets = np.take_along_axis(wanted, targets, axis=1)
    assert short.target_logprob.shape == targets.shape
    assert is_near(short.target_logprob, of_targets)
    both = opened(backend).score(TOKENS, targets)
    one = opened(backend).score(TOKENS, targets[:, 1])
    assert np.array_equal(both.target_logprob[:, 1], one.target_logprob)


def test_rows_at_given_positions_have_the_same_choice(backend: Any) -> None:
    chain = TOKENS[:6]
    held = len(HELD)
    rows = Rows(chain, held + np.arange(6), np.tri(6, dtype=np.bool_), np.append(chain[1:], 7))
    read = opened(backend).read(rows, short=True)
    scored = opened(backend).score(chain, rows.targets, short=True)
    assert np.array_equal(read.top[:, 0], scored.top[:, 0])
    assert np.allclose(read.target_logprob, scored.target_logprob, atol=1e-3)


def test_keys_and_values_do_not_depend_on_the_head(backend: Any) -> None:
    one, other = opened(backend), opened(backend)
    one.score(TOKENS[:20], short=True)
    other.score(TOKENS[:20])
    found = [each.score(TOKENS[20:], logits=True).logits for each in (one, other)]
    assert np.array_equal(*found)


def test_a_text_of_rare_tokens_has_the_whole_head(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_head, "MOST_EXTRA", 3)
    whole, short = opened(backend).score(TOKENS), opened(backend).score(TOKENS, short=True)
    assert np.array_equal(whole.top, short.top)
    assert np.array_equal(whole.target_logprob, short.target_logprob)


def test_other_vocabularies_have_no_short_head(tmp_path: Path) -> None:
    backend = runtime.OnnxBackend(store(CONFIG, "int8", tmp_path), threads=1)
    assert backend.short_head is None
    assert np.array_equal(
        opened(backend).score(TOKENS).top, opened(backend).score(TOKENS, short=True).top
    )


def test_the_frequent_tokens_of_qwen2_hold_every_byte() -> None:
    found = frequent_tokens(dataclasses.replace(CONFIG, vocab=151_665))
    assert len(found) == 32_768
    assert np.isin(np.arange(256), found).all()
    assert found.max() < 151_643, "marks are not among them"
