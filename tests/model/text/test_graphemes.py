"""No ghost text between a character and what combines with it."""

from __future__ import annotations

import unicodedata

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.gate.filters import CHEAP, Situation, first_reason
from redraft.model.gate.reasons import Abstain
from redraft.model.text.graphemes import is_inside_character
from support.editors.workbench import Workbench

FAMILY = "\U0001f469\u200d\U0001f467"
FLAGS = "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7"  # of two countries

#: Text, and the indices that lie inside a character.
INSIDE = [
    ("abc", []),
    ("e\u0301", [1]),
    ("e\u0301\u0323x", [1, 2]),
    (FAMILY, [1, 2]),
    ("a" + FAMILY + "b", [2, 3]),
    (FLAGS, [1, 3]),
    ("x" + FLAGS, [2, 4]),
    ("\U0001f44d\U0001f3fd!", [1]),  # a skin tone
    ("\u2764\ufe0f", [1]),  # a variation selector
    ("1\ufe0f\u20e3", [1, 2]),  # a keycap
    ("\U0001f3f4\U000e0067\U000e0062\U000e007f", [1, 2, 3]),  # the flag of a region, by tags
    (unicodedata.normalize("NFD", "각"), [1, 2]),
    ("가\u11a8", [1]),
    ("각가", []),
    ("\u0e01\u0e33", []),
    ("\u0915\u093f", [1]),  # a vowel sign
    ("\n\u0301", []),
    ("a\r\nb\r", [2]),
    ("\u0645\u200dx", [1]),  # a joiner at the end of an Arabic word
    ("日本語", []),
    ("é", []),
    ("\u2764\u2764", []),
]


@pytest.mark.parametrize(("text", "inside"), INSIDE)
def test_an_index_inside_a_character_is_found(text: str, inside: list[int]) -> None:
    assert [at for at in range(len(text) + 1) if is_inside_character(text, at)] == inside


@pytest.mark.parametrize("text", ["e\u0301", FAMILY, FLAGS[:2]])
def test_nothing_is_written_inside_a_character(text: str) -> None:
    whole = f'name = "{text}"\n'
    for at in range(8, 8 + len(text) + 1):
        here = Situation("infill", "a.py", "python", whole, at, 0.0)
        refused = first_reason(CHEAP["infill"], Edit(whole, at, at, "xyz"), here)
        assert (refused is not None) is is_inside_character(whole, at)


@pytest.mark.parametrize("is_invoked", [False, True])
def test_the_model_is_not_asked_inside_a_character(is_invoked: bool) -> None:
    bench = Workbench('name = "e\u0301"\n')
    bench.cursor = 9
    decision = bench.consider(invoked=is_invoked)
    assert isinstance(decision, Abstain)
    assert decision.kind == "half_character"
