"""An acceptance that is undone is a rejection: the same text is not offered again unasked."""

from __future__ import annotations

import pytest
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from support.editors.predictor import infill
from support.editors.workbench import Ask, Workbench, showing

TEXT = "import math\n\n\ndef f(r):\n    s = "
GHOST = "math.sqrt(r)"


def bench_with(written: str = GHOST, text: str = TEXT) -> tuple[Workbench, Offer]:
    bench = Workbench(text[:-2], delay_ms=0)
    bench.type(text[-2])
    bench.clock.now += 0.2
    bench.type(text[-1])
    return bench, showing(bench.answer(written))


def accept(bench: Workbench, offer: Offer) -> None:
    """Accept as editors do: the report comes before the change."""
    bench.clock.now += 1
    bench.session.report_accepted(offer.suggestion.id)
    text = offer.text
    bench.becomes(bench.text[: bench.cursor] + text + bench.text[bench.cursor :])
    bench.cursor = len(bench.text)


def undo(bench: Workbench, text: str) -> None:
    bench.clock.now += 1
    bench.becomes(text)


def offered(bench: Workbench, written: str) -> str:
    """Return what is offered now without a gesture, where the model writes the same again."""
    decision = bench.consider()
    if isinstance(decision, Ask):
        decision = bench.settle(decision, infill(decision.request, written))
    return decision.text if isinstance(decision, Offer) else ""


@pytest.mark.parametrize("after_s", [0.3, 4, 12])
def test_undone_ghost_text_does_not_come_back(after_s: float) -> None:
    bench, offer = bench_with()
    accept(bench, offer)
    undo(bench, TEXT)
    bench.clock.now += after_s
    assert offered(bench, GHOST) == ""


def test_nor_does_what_was_left_of_it(after_s: float = 12) -> None:
    bench, offer = bench_with()
    bench.type("m")
    bench.type("a")
    rest = showing(bench.consider())
    assert rest.text == GHOST[2:]
    accept(bench, rest)
    undo(bench, TEXT + "ma")
    bench.clock.now += after_s
    assert offered(bench, GHOST[2:]) == ""
    assert offer.text == GHOST


def test_nor_a_piece_of_it() -> None:
    bench, offer = bench_with()
    bench.clock.now += 1
    bench.becomes(TEXT + "math")
    bench.session.report_accepted(offer.suggestion.id, part=True)
    assert showing(bench.consider()).text == GHOST[4:]
    undo(bench, TEXT)
    bench.clock.now += 12
    assert offered(bench, GHOST) == ""


@pytest.mark.parametrize("lines", [1, 12])
def test_nor_several_lines_of_it(lines: int) -> None:
    written = GHOST + "".join(f"\n    print(s, {n})" for n in range(lines))
    bench, offer = bench_with(written)
    accept(bench, offer)
    undo(bench, TEXT)
    bench.clock.now += 70
    assert offered(bench, written) == ""


def test_a_gesture_brings_it_back() -> None:
    bench, offer = bench_with()
    accept(bench, offer)
    undo(bench, TEXT)
    assert showing(bench.consider(invoked=True)).text == GHOST


def test_another_text_may_be_offered() -> None:
    bench, offer = bench_with()
    accept(bench, offer)
    undo(bench, TEXT)
    bench.clock.now += 12
    bench.type("a")
    assert offered(bench, "bs(r)") == "bs(r)"


def test_a_later_undo_rejects_nothing() -> None:
    bench, offer = bench_with()
    accept(bench, offer)
    before = bench.text
    bench.clock.now += 1
    bench.type("\n")
    undo(bench, before)
    assert not bench.session.memory.rejections.has_rejected(
        offer.suggestion.uri, offer.suggestion.edit
    )


def test_an_undone_next_edit_does_not_come_back() -> None:
    bench = Workbench("def f(a):\n    return a\n\n\nprint(f(1))\n")
    bench.swap("def f(a)", "def f(a, b)")
    made = showing(bench.edit("f(1)", "f(1, 2)"))
    before = bench.text
    bench.accept(made)
    undo(bench, before)
    bench.clock.now += 8
    decision = bench.consider_edit()
    assert isinstance(decision, Abstain)
