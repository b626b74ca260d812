"""Ghost text that is accepted piece by piece: the pieces joined are the whole text."""

from __future__ import annotations

import re

import pytest
from redraft.lsp.suggestions.suggestion import Offer
from support.editors.workbench import Workbench, showing

#: The text with the cursor at ▏; what the model writes; the line that it becomes.
CASES = [
    ("print(▏)\n", "[1, 2], (3, 4)", "print([1, 2], (3, 4))\n"),
    ('s = "▏"\n', 'abc" + f(x)', 's = "abc" + f(x)\n'),
    ("foo(bar(▏))\n", "1), 2)", "foo(bar(1), 2)\n"),
    ("if ▏:\n    pass\n", "x and (y)", "if x and (y):\n    pass\n"),
    ("x = [▏]\n", "f(1), [2]", "x = [f(1), [2]]\n"),
    ("x = f(▏)  # a\n", "(1, 2)", "x = f((1, 2))  # a\n"),
    ("x = {▏}\n", "'a': {1: (2)}", "x = {'a': {1: (2)}}\n"),
    ('print(f"{▏}")\n', 'a["b"]}: {c', 'print(f"{a["b"]}: {c}")\n'),
    ("def f():\n    ▏\n", "if a:\n        b()\n    return (c)", None),
]


def words(text: str) -> list[str]:
    return re.findall(r"\s*(?:\w+|[^\w\s]+)", text)


def held(part: str, old: str) -> int:
    """Return how many characters of what is replaced a piece holds, as the clients count."""
    count = 0
    for char in part:
        count += count < len(old) and old[count] == char
    return count


def accept_piece(bench: Workbench, offer: Offer, part: str, *, is_last: bool) -> None:
    over = offer.suggestion.end - offer.suggestion.start
    behind = bench.text[bench.cursor :]
    gone = over if is_last else held(part, behind[:over])
    bench.becomes(bench.text[: bench.cursor] + part + behind[gone:], bench.cursor + len(part))
    bench.session.report_accepted(offer.suggestion.id, part=not is_last)


@pytest.mark.parametrize(("text", "written", "whole"), CASES)
def test_the_pieces_joined_are_the_whole_text(text: str, written: str, whole: str | None) -> None:
    before, _, behind = text.partition("▏")
    bench = Workbench(before + behind, delay_ms=0)
    bench.cursor = len(before)
    offer = showing(bench.answer(written))
    result = offer.suggestion.result
    assert whole is None or result == whole
    while True:
        pieces = words(offer.text)
        accept_piece(bench, offer, pieces[0], is_last=len(pieces) == 1)
        if len(pieces) == 1:
            break
        offer = showing(bench.consider())
        assert offer.text == "".join(pieces[1:])
    assert bench.text == result
    assert bench.outcomes[-1] == "accepted"
    assert set(bench.outcomes) == {"accepted"}
