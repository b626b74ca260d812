"""Canvases that grow and shrink between prefix and suffix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from redraft.model.decode.canvas import BEGIN, grow
from redraft.model.decode.completion import Brief, Plan
from redraft.model.decode.endings import AnswerLimits
from redraft.model.decode.passes import Passes
from redraft.model.records import CanvasState
from redraft.model.runtime.backend import Cancelled, IntArray, Scores
from support.models.tiny import tiny_config, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
CONFIG = replace(tiny_config(expand_token=10, verifier="none"), canvas_width=8)
END, EXPAND, MASK = CONFIG.end_token, CONFIG.expand_token, CONFIG.mask_token
#: What the model thinks of a position: a token and how sure it is.
Thought = tuple[int, float]
RNG = np.random.default_rng(0)


def word(letter: str) -> int:
    (token,) = TOKENIZER.encode(letter)
    return token


class Thinking:
    """Sees the canvas and says of each position what ``think`` says."""

    def __init__(self, think: Callable[[list[int]], list[Thought]]) -> None:
        self.think = think
        self.seen: list[list[int]] = []
        self.behind: list[int] = []

    def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
        canvas = np.append(window[1:], behind[:1])
        self.seen.append(canvas.tolist())
        self.behind = behind[1:].tolist()
        return self.scores(canvas)

    def scores(self, canvas: IntArray) -> Scores:
        logits = np.full((len(canvas), CONFIG.vocab), -1e9, np.float32)
        for row, (token, p) in zip(logits, self.think(canvas.tolist()), strict=True):
            row[token], row[word("z")] = np.log(p), np.log(1 - p)
        nothing = np.zeros((len(canvas), 8), np.float32)
        return Scores(nothing.astype(np.int64), nothing, nothing[:, 0], logits)


def written(think: Callable[[list[int]], list[Thought]], **limits: int) -> tuple[str, Thinking]:
    model = Thinking(think)
    brief = Brief(
        CONFIG, TOKENIZER.vocab_bytes, Plan(0.9), AnswerLimits(**{"max_tokens": 32, **limits})
    )
    passes = Passes(cast(Any, model))
    draft = grow(passes, (word("x"), [word("a")]), brief, RNG)
    assert passes.count == len(model.seen)
    return draft.text, model


def test_it_grows_until_everything_fits() -> None:
    text = "bcdefghijk"

    def think(canvas: list[int]) -> list[Thought]:
        if len(canvas) < len(text):
            missing = len(text) - len(canvas)
            return [(EXPAND, 0.99 if i < missing else 0.2) for i in range(len(canvas))]
        return [(word(letter), 0.95) for letter in text]

    found, model = written(think)
    assert found == text
    assert [len(canvas) for canvas in model.seen] == [BEGIN, 8, 10]
    assert model.behind == [word("a")]


def test_what_it_deletes_goes_with_masks_behind() -> None:
    found, model = written(lambda canvas: [(word("b"), 0.99)] + [(END, 0.99)] * (len(canvas) - 1))
    assert found == "b"
    assert len(model.seen) == 1


def test_placed_text_behind_a_deleted_position_stays() -> None:
    def think(canvas: list[int]) -> list[Thought]:
        if canvas.count(MASK) == BEGIN:
            return [(word("b"), 0.99), (word("c"), 0.3), (word("d"), 0.99), (word("e"), 0.3)]
        return [(END, 0.99)] * len(canvas)

    assert written(think)[0] == "bd"


def test_an_answer_may_be_empty_unless_it_is_asked_for() -> None:
    def think(canvas: list[int]) -> list[Thought]:
        return [(END, 0.9)] * len(canvas)

    assert written(think)[0] == ""
    assert len(written(think, min_tokens=2)[0]) >= 2


def test_it_never_grows_past_the_limit_and_always_ends() -> None:
    found, model = written(lambda canvas: [(EXPAND, 0.99)] * len(canvas), max_tokens=16)
    assert max(len(canvas) for canvas in model.seen) == 16
    assert found == "z" * 16  # what it thinks of besides
    assert len(model.seen) <= 20


def test_growing_and_shrinking_in_turns_ends() -> None:
    def think(canvas: list[int]) -> list[Thought]:
        kind = EXPAND if len(canvas) < 8 else END
        return [(kind, 0.3)] * (len(canvas) - 1) + [(kind, 0.95)]

    _, model = written(think, max_tokens=12)
    assert len(model.seen) < 100


def test_the_canvas_is_shown_and_can_be_cancelled() -> None:
    states: list[CanvasState] = []
    model = Thinking(lambda canvas: [(word("b"), 0.5)] * len(canvas))
    brief = Brief(CONFIG, TOKENIZER.vocab_bytes, Plan(0.9), AnswerLimits(max_tokens=8))
    passes = Passes(cast(Any, model), on_step=states.append)
    grow(passes, (word("x"), []), brief, RNG)
    assert [state.show() for state in states] == ["b░░░", "bb░░", "bbb░", "bbbb"]
    with pytest.raises(Cancelled):
        grow(Passes(cast(Any, model), lambda: True), (word("x"), []), brief, RNG)
