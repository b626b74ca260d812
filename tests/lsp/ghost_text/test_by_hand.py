"""Requests by a key: they pass the gate, not the filters, and unsure answers are marked."""

from __future__ import annotations

from dataclasses import replace

from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from support.editors.lsp import lsp_client
from support.editors.neovim import NeovimDesk, ghost, needs_neovim
from support.editors.predictor import infill, predicted
from support.editors.workbench import Ask, Decision, Workbench, reason, shown

CODE = "def area(width, height):\n    return width * height\n\n\nprint(area(3))\n"


def doubt(decision: Decision) -> str:
    assert isinstance(decision, Offer), decision
    return decision.suggestion.unsure


def answered(desk: Workbench, text: str, confidence: float, invoked: bool) -> Offer | Abstain:
    ask = desk.ask(invoked=invoked)
    prediction = infill(ask.request, text, confidence=confidence)
    return desk.settle(ask, prediction)


def test_unsure_ghost_text_is_shown_on_request() -> None:
    desk = Workbench("x = ")
    assert (
        reason(answered(desk, "f(1)", 0.2, invoked=False))
        == "20 % likely to be kept (medium shows from 25 %)"
    )
    by_hand = desk.consider(invoked=True)
    assert (shown(by_hand), doubt(by_hand)) == (
        "f(1)",
        "20 % likely to be kept (medium shows from 25 %)",
    )
    desk.type("f(")
    assert shown(desk.consider()) == "1)"  # it stays while it is typed


def test_what_is_sure_has_no_mark() -> None:
    assert doubt(answered(Workbench("x = "), "f(1)", 0.9, invoked=True)) == ""


def test_the_rules_hold_for_who_asks_by_hand_too() -> None:
    desk = Workbench("print(area(7, 8))\n")
    desk.cursor = len("print(a")
    refused = answered(desk, "rea(5, 6))", 0.9, invoked=True)
    assert isinstance(refused, Abstain)
    assert refused.kind == "does_not_fit"


def edited() -> Workbench:
    desk = Workbench(CODE.replace("width, height", "width"))
    desk.swap("(width)", "(width, height)")
    return desk


def test_an_unsure_edit_is_shown_on_request_and_stays() -> None:
    desk = edited()
    assert reason(desk.edit("area(3)", "area(3, 4)", 0.04)).startswith(
        "4 % likely to be kept (high shows from 5 %)"
    )
    by_hand = desk.consider_edit(invoked=True)
    assert shown(by_hand).strip() == ", 4"
    assert doubt(by_hand) == "4 % likely to be kept (high shows from 5 %)"
    # Tab goes there first, and the editor asks again by itself: it is still there.
    assert shown(desk.consider_edit(cursor=0)) == shown(by_hand)


def test_ghost_text_comes_before_an_unsure_edit() -> None:
    desk = edited()
    desk.edit("area(3)", "area(3, 4)", 0.04)
    answered(desk, " -> int", 0.2, invoked=True)
    assert isinstance(desk.consider_edit(invoked=True), Abstain)


def test_over_lsp_the_answer_says_that_it_is_unsure() -> None:
    with lsp_client({"text": "f(1)", "confidence": 0.01}) as client:
        client.initialize(initializationOptions={"eagerness": "low"})
        client.open("x = \n")
        by_itself = client.complete(0, 4, context={"triggerKind": 2})["result"]
        assert by_itself["items"] == []
        assert by_itself["reason"].startswith("Ghost text hidden: ")
        assert by_itself["reason"].endswith(" likely to be kept (low shows from 50 %).")
        assert by_itself["revealable"] is True
        [item] = client.complete(0, 4)["result"]["items"]
        assert by_itself["reason"] == f"Ghost text hidden: {item['unsure']}."


@needs_neovim
def test_neovim_marks_what_it_shows_by_hand(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)", confidence=0.01))
    editor.command("Redraft eagerness low")
    editor.keys("oname = ")
    editor.until(lambda: any(request.task == "infill" for request in desk.predictor.requests))
    editor.keys("<M-Bslash>")
    editor.sees("name = str(total) ?")
    editor.picture("unsure")
    editor.keys("<Tab>")
    editor.has("total = 0", "name = str(total)")


def test_hidden_ghost_text_is_revealable_by_a_gesture() -> None:
    hidden = answered(Workbench("x = "), "f(1)", 0.2, invoked=False)
    assert isinstance(hidden, Abstain) and hidden.is_revealable
    broken = Workbench("print(area(7, 8))\n")
    broken.cursor = len("print(a")
    refused = answered(broken, "rea(5, 6))", 0.2, invoked=False)
    assert isinstance(refused, Abstain) and refused.kind == "below_threshold"
    assert not refused.is_revealable, "it does not fit there, however sure"


def test_ghost_text_the_model_gave_up_is_revealable() -> None:
    desk = Workbench("x = ")
    given_up = replace(predicted(reason="not sure enough"), is_given_up=True)
    told = desk.settle(desk.ask(), given_up)
    assert isinstance(told, Abstain) and told.is_revealable
    assert isinstance(desk.consider(invoked=True), Ask), "the model finishes it"


def test_a_hidden_edit_is_revealable_by_a_gesture() -> None:
    desk, broken = edited(), edited()
    desk.edit("area(3)", "area(3, 4)", 0.04)
    hidden = desk.consider_edit()
    assert isinstance(hidden, Abstain) and hidden.is_revealable
    broken.edit("area(3)", "area(3, (4", 0.04)
    refused = broken.consider_edit()
    assert isinstance(refused, Abstain) and not refused.is_revealable
