"""Caches of results over texts: they stay within a number of bytes."""

from __future__ import annotations

import threading

import pytest
from redraft.lsp.context import scored_excerpts as excerpts
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.policy import exclusions
from redraft.model.memo import Memo
from redraft.model.prompts import pieces, redraft3
from redraft.model.prompts.tokenizer import Tokenizer
from redraft.model.text import syntax


def test_a_value_is_computed_once_and_none_is_a_value() -> None:
    memo: Memo[str, str | None] = Memo(10_000)
    asked: list[str] = []

    def double(key: str) -> str | None:
        asked.append(key)
        return None if key == "b" else key * 2

    assert [memo.get(key, double) for key in "abab"] == ["aa", None, "aa", None]
    assert asked == ["a", "b"]


def test_bytes_stay_bounded_whatever_the_keys() -> None:
    memo: Memo[str, int] = Memo(100_000)
    for number in range(500):
        assert memo.get(f"{number}" * (1 + number % 100), len) > 0
        assert memo.bytes_held <= 100_000
    assert 10 < len(memo) < 500


def test_what_would_fill_it_alone_is_not_kept() -> None:
    memo: Memo[str, int] = Memo(10_000)
    memo.get("a", len)
    memo.get("x" * 6_000, len)
    assert len(memo) == 1


def test_what_was_asked_for_last_stays() -> None:
    memo: Memo[int, str] = Memo(10_000)
    for number in range(100):
        memo.get(0, str)
        memo.get(number, lambda key: "x" * 300)
    assert memo.get(0, lambda key: "forgotten") == "0"


def test_values_count_with_what_they_hold() -> None:
    memo: Memo[int, list[str]] = Memo(100_000, lambda value: sum(map(len, value)))
    for number in range(100):
        memo.get(number, lambda key: ["x" * 10_000])
    assert len(memo) < 10


def test_threads_do_not_disturb_each_other() -> None:
    memo: Memo[int, str] = Memo(20_000)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for number in range(3_000):
            key = (number * seed) % 97
            if memo.get(key, lambda asked: f"{asked}") != f"{key}":
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 7, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert memo.bytes_held <= 20_000
    assert memo.bytes_held == sum(size for _, size in memo._known.values())


class Letters(Tokenizer):
    """A token a character, without a vocabulary."""

    def __init__(self) -> None:
        pass

    def encode(self, text: str) -> list[int]:
        return [1] * len(text)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Letters()


def test_costs_of_long_lines_are_bounded_in_bytes(tokenizer: Tokenizer) -> None:
    before = redraft3._cost_of_short.cache_info().currsize
    for number in range(60):
        for length in (300, 19_000, 400_000):
            line = f"{number}".rjust(length, "x")
            cost = length + 1 if length < 20_000 else length // 2
            assert redraft3.line_cost(tokenizer, line) == cost
    assert pieces._ENCODED.bytes_held <= 16 << 20
    assert redraft3._cost_of_short.cache_info().currsize == before  # counted, so short ones alone


def test_encoded_sections_are_bounded_in_bytes(tokenizer: Tokenizer) -> None:
    for number in range(100):
        pieces.encode(tokenizer, f"{number}".rjust(100_000, "x"))
    assert pieces._ENCODED.bytes_held <= 16 << 20


def test_lines_of_texts_are_bounded_in_bytes() -> None:
    for number in range(20):
        assert len(excerpts._lines_of(f"{number}\n" * 50_000)) == 50_001
    assert excerpts._LINES.bytes_held <= 8 << 20


def test_trees_are_bounded_in_bytes() -> None:
    for number in range(8):
        assert syntax.parse_cached(f"x = {number}\n" * 10_000, "python") is not None
    assert syntax._TREES.bytes_held <= 8 << 20
    known = len(syntax._TREES)
    assert syntax.parse_cached("x = 99\n" * 100_000, "python") is not None
    assert len(syntax._TREES) == known


def test_paths_are_bounded_in_bytes() -> None:
    for number in range(200):
        exclusions.refuse_file(f"{number}/".rjust(100_000, "x"), LspSettings())
    globs = exclusions._sorted_out(LspSettings().secrets)
    assert globs.refusals.bytes_held <= 4 << 20
