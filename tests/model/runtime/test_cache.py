"""The prefix cache: what a prompt continues, and that it never changes what comes out."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from redraft.model.config import ModelConfig
from redraft.model.errors import InvalidRequest
from redraft.model.runtime.backend import IntArray, Scores, Sequence
from redraft.model.runtime.prefix_cache import (
    LONG_TAIL,
    MOST_SEQUENCES,
    SHORT_PREFIX,
    Held,
    PrefixCache,
    Reuse,
    decide,
    excess,
    victims,
)
from support.models.onnx_models import BASE, some_tokens, some_window, store

LARGE = Held(900, 1_000, 16_896, stretch=2.0)


@pytest.mark.parametrize(
    ("held", "length", "stretch", "expected"),
    [
        ([], 100, 1.0, None),
        ([Held(common=0, length=50, capacity=2_048)], 100, 1.0, None),
        # The longest common prefix; of equal ones the sequence that loses least.
        ([Held(10, 20, 2_048), Held(90, 100, 2_048), Held(40, 41, 2_048)], 200, 1.0, Reuse(1)),
        ([Held(80, 300, 2_048), Held(80, 90, 2_048)], 200, 1.0, Reuse(1)),
        # A long tail is kept, and its prefix copied. A short prefix is not worth a copy.
        ([Held(500, 500 + LONG_TAIL + 1, 2_048)], 600, 1.0, Reuse(0, "beside")),
        ([Held(500, 500 + LONG_TAIL, 2_048)], 600, 1.0, Reuse(0)),
        ([Held(SHORT_PREFIX - 1, 1_000, 2_048)], 600, 1.0, None),
        # No tail of another task is cut, however short.
        ([Held(500, 520, 2_048, is_kin=False)], 600, 1.0, Reuse(0, "beside")),
        ([Held(500, 500, 2_048, is_kin=False)], 600, 1.0, Reuse(0)),
        ([Held(SHORT_PREFIX - 1, 100, 2_048, is_kin=False)], 600, 1.0, None),
        ([Held(2_000, 2_010, 2_048)], 2_100, 1.0, Reuse(0, "instead")),  # outgrows its buffer
        # A sequence with other rotations than a fresh one is not continued.
        ([LARGE], 1_100, 1.0, None),
        ([LARGE, Held(100, 120, 2_304, stretch=1.0)], 1_100, 1.0, Reuse(1)),
        ([LARGE], 16_000, 2.0, Reuse(0)),
    ],
)
def test_the_decision(held: list[Held], length: int, stretch: float, expected: object) -> None:
    assert decide(held, length, stretch=stretch) == expected


def test_a_second_oversized_one_displaces_the_first() -> None:
    assert excess([50, 300, 60], budget=200) is None
    assert victims([50, 300, 60], [400], budget=200) == [1]
    assert victims([300, 50, 60], [120], budget=200) == [1]


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 300), max_size=12),
    st.lists(st.integers(1, 300), max_size=3),
    st.integers(0, 400),
)
def test_victims_are_enough_and_needed(idle: list[int], others: list[int], budget: int) -> None:
    gone = victims(idle, others, budget)
    left = [size for i, size in enumerate(idle) if i not in gone]
    if excess(others, budget) is None:
        assert excess([*left, *others], budget) is None
    if gone:
        assert excess([*left, idle[gone[-1]], *others], budget) is not None or len(gone) > 1


@dataclass(eq=True)
class BookSequence:
    """Remembers, per position, all tokens its cached entry was computed from."""

    capacity: int
    entries: list[tuple[int, ...]] = field(default_factory=list)
    released: bool = False

    @property
    def tokens(self) -> Seq[int]:
        return [entry[-1] for entry in self.entries]

    def extend(self, tokens: IntArray) -> None:
        assert not self.released
        for token in tokens.tolist():
            before = self.entries[-1] if self.entries else ()
            self.entries.append((*before, token))
        assert len(self.entries) <= self.capacity

    def truncate(self, length: int) -> None:
        assert not self.released and length <= len(self.entries)
        del self.entries[length:]

    def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
        raise NotImplementedError


class BookBackend:
    config: ModelConfig = ModelConfig()
    variant = "fp32"
    provider = "CPU"
    bytes_per_token = 1

    def __init__(self) -> None:
        self.live: list[BookSequence] = []
        self.forks = 0

    def open(self, capacity: int) -> BookSequence:
        size = 16  # not the real classes: small ones, so that short prompts outgrow them
        while size < capacity:
            size *= 2
        self.live.append(BookSequence(size))
        return self.live[-1]

    def fork(self, sequence: Sequence, length: int, capacity: int) -> BookSequence:
        assert isinstance(sequence, BookSequence) and not sequence.released
        self.forks += 1
        fork = self.open(capacity)
        fork.entries = sequence.entries[:length]
        return fork

    def release(self, sequence: Sequence) -> None:
        assert isinstance(sequence, BookSequence) and not sequence.released
        sequence.released = True
        self.live = [each for each in self.live if each is not sequence]

    def close(self) -> None: ...


def use(cache: PrefixCache, tokens: list[int], room: int = 4) -> int:
    """Use the cache as an engine does; return the number of tokens that were reused."""
    with cache.acquire(tokens, room) as lease:
        assert list(lease.sequence.tokens) == tokens[: lease.reused]
        assert lease.sequence.capacity >= len(tokens) + room
        lease.sequence.extend(np.array(tokens[lease.reused :], np.int64))
        assert isinstance(lease.sequence, BookSequence)
        expected = [tuple(tokens[: i + 1]) for i in range(len(tokens))]
        assert lease.sequence.entries == expected
        lease.sequence.extend(np.array([7] * room, np.int64))  # a committed answer
        return lease.reused


prompts = st.lists(st.integers(0, 1), min_size=1, max_size=12).map(
    # Few distinct stems of varied length, so that prompts share long prefixes.
    lambda bits: [bit for bit in bits for _ in range(40)]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(prompts, max_size=12), st.sampled_from([0, 600, 3_000, 100_000]))
def test_a_cached_prompt_equals_computing_it_afresh(history: list[list[int]], budget: int) -> None:
    backend = BookBackend()
    cache = PrefixCache(backend, budget)
    for tokens in history:
        use(cache, tokens)
        assert excess([each.capacity for each in backend.live], budget) is None
        assert len(backend.live) <= MOST_SEQUENCES
    cache.clear()
    assert backend.live == []


def test_a_detour_does_not_destroy_a_long_tail() -> None:
    backend = BookBackend()
    cache = PrefixCache(backend, 100_000)
    long = list(range(1_000))
    use(cache, long)
    assert use(cache, [*long[:200], 5, 6]) == 200
    assert backend.forks == 1
    assert use(cache, long) == 1_000


def test_ghost_text_and_next_edits_cut_no_tail() -> None:
    cache = PrefixCache(BookBackend(), 100_000)
    ghost, edit = [*range(150), 1], [*range(100), 2]
    for _ in range(2):
        for task, tokens in (("infill", ghost), ("next_edit", edit)):
            with cache.acquire(tokens, 4, task) as lease:
                lease.sequence.extend(np.array(tokens[lease.reused :], np.int64))
                reused = lease.reused
        assert cache.count_held(ghost) == len(ghost)
    assert reused == len(edit)


def test_an_older_state_of_an_edit_is_cut_however_long() -> None:
    held = [Held(500, 500 + 2 * LONG_TAIL, 2_048)]
    assert decide(held, 600, stable=500) == Reuse(0)
    assert decide(held, 600, stable=501) == Reuse(0, "beside")
    other_task = [replace(held[0], is_kin=False)]
    assert decide(other_task, 600, stable=500) == Reuse(0, "beside")


def test_counting_what_is_held_lends_nothing() -> None:
    cache = PrefixCache(BookBackend(), 100_000)
    use(cache, list(range(100)))
    assert [cache.count_held(each) for each in ([0, 1, 5], [9], list(range(100)))] == [2, 0, 100]
    assert cache.count_held(range(50)) == 50, "what follows is of no matter"


def test_without_memory_for_a_copy_the_tail_is_cut() -> None:
    backend = BookBackend()
    cache = PrefixCache(backend, 1_100)
    long = list(range(1_000))
    use(cache, long)
    assert use(cache, [*long[:200], 5, 6]) == 200
    assert backend.forks == 0
    assert len(backend.live) == 1


def test_the_least_recently_used_goes_first() -> None:
    backend = BookBackend()
    cache = PrefixCache(backend, 3 * 128)
    files = [[name, *range(name, name + 99)] for name in (1_000, 2_000, 3_000, 4_000)]
    for each in files[:3]:
        use(cache, each)
    use(cache, files[0])
    use(cache, files[3])
    assert use(cache, files[0]) == 100
    assert use(cache, files[1]) == 0


def test_a_prompt_over_the_budget_survives_short_ones() -> None:
    backend = BookBackend()
    cache = PrefixCache(backend, 256)
    short, long = list(range(100)), list(range(5_000, 6_000))
    use(cache, long)
    assert [use(cache, short), use(cache, long), use(cache, short)] == [0, 1_000, 100]
    use(cache, list(range(7_000, 8_000)))
    assert len(backend.live) == 2, "only one is larger than the budget"


def test_a_prompt_of_a_stretched_context_starts_afresh() -> None:
    backend = BookBackend()
    backend.config = replace(ModelConfig(), max_positions=1_280)
    cache = PrefixCache(backend, 100_000)
    long = list(range(2_000))
    use(cache, long)
    assert use(cache, long[:900]) == 0
    assert use(cache, long[:950]) == 900
    assert use(cache, long) == 2_000


class ShortOfMemory(BookBackend):
    """Holds no more than a number of tokens at once."""

    limit = 1_000

    def open(self, capacity: int) -> BookSequence:
        if sum(each.capacity for each in self.live) + capacity > self.limit:
            raise InvalidRequest("no memory")
        return super().open(capacity)


def test_cached_sequences_go_when_memory_is_short() -> None:
    backend = ShortOfMemory()
    cache = PrefixCache(backend, 100_000)
    use(cache, list(range(500)))
    assert use(cache, list(range(1_000, 1_500))) == 0
    assert len(backend.live) == 1


def test_a_copy_without_memory_is_refused_without_loss() -> None:
    backend = ShortOfMemory()
    cache = PrefixCache(backend, 100_000)
    tokens = list(range(500))
    use(cache, tokens)
    with pytest.raises(InvalidRequest):
        cache.acquire([*tokens, *range(2_000, 2_100)], 4)
    assert use(cache, tokens) == 500


def test_sequences_on_loan_are_not_handed_out_twice() -> None:
    cache = PrefixCache(BookBackend(), 100_000)
    tokens = list(range(100))
    use(cache, tokens)
    with cache.acquire(tokens, 4) as one, cache.acquire(tokens, 4) as two:
        assert one.sequence is not two.sequence
        assert (one.reused, two.reused) == (100, 0)


def test_a_failed_request_gives_its_sequence_back() -> None:
    cache = PrefixCache(BookBackend(), 100_000)
    tokens = list(range(100))
    with pytest.raises(RuntimeError), cache.acquire(tokens, 4) as lease:
        lease.sequence.extend(np.array(tokens[:60], np.int64))
        raise RuntimeError
    assert use(cache, tokens) == 60


def test_giving_back_twice_is_harmless() -> None:
    backend = BookBackend()
    cache = PrefixCache(backend, 100_000)
    lease = cache.acquire([1, 2, 3], 4)
    lease.release()
    lease.release()
    cache.clear()
    assert backend.live == []


@pytest.mark.parametrize("variant", ["fp32", "int8"])
def test_reuse_gives_the_canvas_of_a_fresh_computation(tmp_path: Path, variant: str) -> None:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")
    from redraft.model.runtime.onnx_backend import OnnxBackend

    backend = OnnxBackend(store(BASE, variant, tmp_path), threads=1)
    cache = PrefixCache(backend, 1 << 30)
    stem = some_tokens(BASE, 500)
    window = some_window(BASE)

    def ask(cache: PrefixCache, tokens: NDArray[np.int64]) -> tuple[int, Scores]:
        with cache.acquire(tokens.tolist(), 40) as lease:
            lease.sequence.extend(tokens[lease.reused :])
            return lease.reused, lease.sequence.denoise(window, window[:0])

    ends: list[Any] = [stem, stem[:450], stem[:100], stem[:480], stem]
    for seed, start in enumerate(ends):
        tokens = np.concatenate([start, some_tokens(BASE, 20, seed + 50)])
        reused, found = ask(cache, tokens)
        _, expected = ask(PrefixCache(backend, 1 << 30), tokens)
        assert reused > 0 or seed == 0
        assert np.array_equal(found.top, expected.top)
        assert np.allclose(found.top_logprob, expected.top_logprob, atol=1e-4)
