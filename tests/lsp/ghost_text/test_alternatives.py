"""Other suggestions for the same place, asked for by a gesture."""

from __future__ import annotations

from redraft.lsp.suggestions.outcomes import SuggestionEnded
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from support.editors.next_edits import edited
from support.editors.paused_session import LOOP, spin
from support.editors.predictor import infill, rewrite
from support.editors.workbench import Workbench, showing


def offered(desk: Workbench, *texts: str) -> tuple[Offer, ...]:
    """Ask for alternatives by a gesture, and let the model answer with ``texts``."""
    known = len(desk.session.model.asks)
    task = LOOP.create_task(desk.session.ghost_texts(desk.query(invoked=True)))
    spin()
    for ask in desk.session.model.asks[known:]:
        assert ask.request.candidates == 4
        ask.answer.set_result(infill(ask.request, *texts))
    spin()
    found = task.result()
    assert not isinstance(found, Abstain)
    return found


def texts(found: tuple[Offer, ...]) -> list[str]:
    return [each.text for each in found]


def desk_with_ghost(text: str = "return x") -> Workbench:
    desk = Workbench()
    desk.answer(text)
    return desk


def test_a_second_gesture_brings_other_texts() -> None:
    desk = desk_with_ghost()
    found = offered(desk, "return y", "return x", "pass", "return y", "raise ValueError", "yield x")
    assert texts(found) == ["return x", "return y", "pass", "raise ValueError"]
    assert len({each.suggestion.id for each in found}) == 4
    assert texts(offered(desk)) == texts(found)  # known: the model is not asked again


def test_the_first_gesture_asks_for_one_text() -> None:
    desk = Workbench()
    task = LOOP.create_task(desk.session.ghost_texts(desk.query(invoked=True)))
    spin()
    (ask,) = desk.session.model.asks
    assert ask.request.candidates == 1
    ask.answer.set_result(infill(ask.request, "return x"))
    spin()
    found = task.result()
    assert not isinstance(found, Abstain) and texts(found) == ["return x"]


def test_what_may_not_be_shown_is_no_alternative() -> None:
    found = offered(desk_with_ghost(), "  ", "return y")
    assert texts(found) == ["return x", "return y"]


def test_taking_another_text_replaces_the_first() -> None:
    desk = desk_with_ghost()
    _, other = offered(desk, "return y")
    desk.type(other.text)
    assert desk.outcomes == ["accepted"]
    assert desk.session.workspace.history.view().last_change(desk.document.uri) == "accepted"


def test_a_report_names_the_text_that_was_taken() -> None:
    desk = desk_with_ghost()
    first, other = offered(desk, "return y")
    desk.session.report_shown(other.suggestion.id)
    assert desk.session.memory.outcomes.find_shown(desk.document.uri) == other.suggestion
    desk.session.report_shown(first.suggestion.id)
    assert desk.session.memory.outcomes.find_shown(desk.document.uri) == first.suggestion
    desk.session.report_rejected(other.suggestion.id)
    assert desk.outcomes == ["rejected"]


def test_typing_another_text_goes_on_with_it() -> None:
    desk = desk_with_ghost()
    offered(desk, "print(x)")
    desk.type("pri")
    assert showing(desk.consider()).text == "nt(x)"
    assert desk.outcomes == []


def test_keys_another_text_saves_count_from_its_offer() -> None:
    desk = desk_with_ghost()
    settled: list[SuggestionEnded] = []
    desk.session.memory.outcomes.listener = settled.append
    desk.type("r")
    desk.type("e")
    offered(desk, "turn y")
    desk.type("turn y")
    assert [(each.outcome, each.saved) for each in settled] == [("accepted", len("turn y") - 1)]


def test_another_edit_is_shown_and_the_first_returns() -> None:
    desk = edited()
    ask = desk.ask_edit()
    both = [
        rewrite(ask.request, "print(area(r))", f"print(area(r, {pi}))", confidence=sure)
        for pi, sure in (("3", 0.9), ("4", 0.8))
    ]
    made = showing(
        desk.settle(
            ask,
            both[0].__class__(
                "p-1", both[0].model, (*both[0].candidates, *both[1].candidates), "", both[0].stats
            ),
        )
    )
    assert "3" in made.text

    def another() -> Offer:
        query = desk.query(invoked=True)
        task = LOOP.create_task(desk.session.next_edit(query, another=True))
        spin()
        for each in desk.session.model.asks:
            if each.is_open and not each.question.after:
                each.answer.set_result(rewrite(each.request, "nowhere", "x"))
                spin()
        return showing(task.result())

    assert "4" in another().text
    assert desk.outcomes == ["replaced"]
    assert "3" in another().text
