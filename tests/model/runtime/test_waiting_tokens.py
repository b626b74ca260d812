"""A few tokens of a prompt wait for the pass behind them: fewer passes, the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.decode.pass_costs import Groups
from redraft.model.decode.speculative import lay_out
from redraft.model.runtime.backend import Rows
from redraft.model.runtime.onnx_backend import OnnxBackend
from redraft.model.runtime.onnx_pass import Pass
from redraft.model.runtime.onnx_sequence import FEW, OnnxSequence
from support.models.onnx_models import shaped, store
from support.models.runtimes import is_same

CONFIG = shaped("masks")
HELD = 40


def some(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(CONFIG.special_tokens, CONFIG.vocab, count)


def opened(folder: Path, waiting: int, read: bool) -> OnnxSequence:
    """HELD tokens that were read, and ``waiting`` more, which wait unless ``read``."""
    sequence = OnnxBackend(folder, threads=1).open(256)
    sequence.extend(some(HELD, 1))
    sequence.extend(some(waiting, 2))
    if read:
        sequence.settle()
    return sequence


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of each pass that is run."""
    ran: list[int] = []
    real = Pass.run

    def run(one: Pass, tokens: Any, *rest: Any) -> None:
        ran.append(len(tokens))
        real(one, tokens, *rest)

    monkeypatch.setattr(Pass, "run", run)
    return ran


def branched(sequence: OnnxSequence) -> Any:
    """Return a root with two children and a grandchild."""
    base, sees = len(sequence.tokens), np.eye(4, dtype=np.bool_)
    sees[1:, 0] = sees[3, 1] = True
    tokens = some(4, 3)
    return sequence.read(Rows(tokens, base + np.array([0, 1, 1, 2]), sees, tokens), logits=True)


def judged(sequence: OnnxSequence) -> Any:
    groups, held = Groups(2, (0, 1, 2)), len(sequence.tokens)
    rows = lay_out(int(some(1, 5)[0]), some(2, 4).tolist(), held, groups, CONFIG.mask_token)
    return sequence.read(rows, logits=True)


def verified(sequence: OnnxSequence) -> Any:
    return sequence.score(some(1, 6), logits=True)


@pytest.mark.parametrize("variant", ["fp32", "int8"])
@pytest.mark.parametrize("waiting", [1, 5, 9, 16, FEW])
@pytest.mark.parametrize("ask", [verified, judged, branched])
def test_what_follows_waiting_tokens_saves_a_pass(
    ask: Any, waiting: int, variant: str, tmp_path: Path, passes: list[int]
) -> None:
    folder = store(CONFIG, variant, tmp_path)
    patient = opened(folder, waiting, read=False)
    passes.clear()
    found = ask(patient)
    assert len(passes) == 1 and passes[0] > waiting
    eager = opened(folder, waiting, read=True)
    expected = ask(eager)
    assert patient.tokens == eager.tokens
    assert is_same(found.logits, expected.logits)
    after = [each.score(some(3, 7), logits=True).logits for each in (patient, eager)]
    assert is_same(*after)


@pytest.mark.parametrize("variant", ["fp32", "int8"])
def test_a_chain_read_as_branches_equals_a_prompt(variant: str, tmp_path: Path) -> None:
    folder, tokens = store(CONFIG, variant, tmp_path), some(5, 8)
    chain, prompt = opened(folder, 3, read=True), opened(folder, 3, read=True)
    sees = np.tril(np.ones((5, 5), np.bool_))
    rows = Rows(tokens, len(chain.tokens) + np.arange(5), sees, tokens)
    found = chain.read(rows, logits=True)
    assert is_same(found.logits, prompt.score(tokens, logits=True).logits)


def test_cutting_takes_waiting_tokens_first(tmp_path: Path) -> None:
    folder = store(CONFIG, "fp32", tmp_path)
    for length in (HELD + 4, HELD, HELD - 3):
        patient, eager = opened(folder, 6, read=False), opened(folder, 6, read=True)
        for each in (patient, eager):
            each.truncate(length)
        assert patient.tokens == eager.tokens
        assert is_same(verified(patient).logits, verified(eager).logits)


def test_a_copy_has_what_waited(tmp_path: Path) -> None:
    folder = store(CONFIG, "fp32", tmp_path)
    backend = OnnxBackend(folder, threads=1)
    source = backend.open(256)
    source.extend(some(HELD, 1))
    source.extend(some(6, 2))
    fork = backend.fork(source, HELD + 6, 256)
    assert is_same(verified(fork).logits, verified(opened(folder, 6, read=True)).logits)


def test_more_than_a_few_are_read_at_once(tmp_path: Path, passes: list[int]) -> None:
    sequence = opened(store(CONFIG, "fp32", tmp_path), FEW, read=False)
    assert passes == [HELD]
    sequence.extend(some(1, 9))
    assert passes == [HELD, FEW + 1]


def test_tokens_that_wait_take_their_room_once(tmp_path: Path) -> None:
    sequence = opened(store(CONFIG, "fp32", tmp_path), 1, read=True)
    sequence.extend(some(sequence.capacity - HELD - 21, 6))
    sequence.extend(some(16, 7))  # these wait
    row, sees = some(4, 8), np.tril(np.ones((4, 4), np.bool_))
    rows = Rows(row, len(sequence.tokens) + np.arange(4), sees, row, masks=1)
    assert sequence.read(rows).masks is not None
    assert len(sequence.tokens) == sequence.capacity - 1
