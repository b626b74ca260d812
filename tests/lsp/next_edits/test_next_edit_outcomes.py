"""Acceptance, rejection and other outcomes of next edits, and what follows them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Position, Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.rejections import COOL_DOWN_S
from redraft.lsp.suggestions.suggestion import Offer
from support.editors.next_edits import edited, shown_edit
from support.editors.paused_session import PausedSession
from support.editors.predictor import rewrite
from support.editors.workbench import URI, Ask, Clock, Workbench, asking, reason, showing


def prefetch(desk: Workbench, show: Offer, old: str, new: str) -> Ask | None:
    """Answer the next question about the text after acceptance."""
    ask = desk.session.follow_up()
    if ask is not None:
        desk.session.prefetched(ask, rewrite(ask.request, old, new))
    return ask


def test_the_edit_after_acceptance_is_ready_before() -> None:
    desk = edited()
    first = shown_edit(desk)
    ask = prefetch(desk, first, "show(2)", "show(2, 3)")
    assert ask is not None
    assert ask.request.text == first.suggestion.result
    assert ask.request.cursor == first.suggestion.landing
    made, accepted = ask.request.edits
    assert (made.accepted, accepted.accepted) == (False, True)
    desk.accept(first)
    assert desk.ask_edit(text=desk.text + "#").request.edits[-2:] == (
        made,
        accepted,
    )
    again = showing(desk.consider_edit())
    assert again.reason == "same text as before"  # the model is not asked
    assert "show(2, 3)" in again.suggestion.result


def test_what_is_computed_ahead_serves_a_quick_user() -> None:
    desk = edited()
    first = shown_edit(desk)
    ask = desk.session.follow_up()
    assert ask is not None
    desk.accept(first)
    desk.session.prefetched(ask, rewrite(ask.request, "show(2)", "show(2, 3)"))
    again = showing(desk.consider_edit())
    assert "show(2, 3)" in again.suggestion.result


def test_a_rejection_cancels_what_is_computed_ahead() -> None:
    desk = edited()
    shown = shown_edit(desk)
    ask = desk.session.follow_up()
    assert ask is not None
    desk.session.report_rejected(shown.suggestion.id)
    assert desk.session.follow_up() is None
    assert ask.answer.cancelled()


def test_the_second_edit_is_computed_during_the_first() -> None:
    desk = edited()
    shown = shown_edit(desk)
    ahead = []
    for old, new in [("show(2)", "show(2, 3)"), ("return 3.14", "return pi")]:
        ask = desk.session.follow_up()
        assert ask is not None
        ahead.append(ask)
        desk.session.prefetched(ask, rewrite(ask.request, old, new))
    assert "show(2, 3)" in ahead[1].request.text
    assert len(ahead[1].request.edits) == len(ahead[0].request.edits) + 1
    assert desk.session.follow_up() is None  # as far ahead as it goes
    for _ in range(2):
        desk.accept(shown)
        following = desk.consider_edit()
        assert isinstance(following, Offer), following  # the model is not asked
        shown = following


def test_nothing_is_computed_ahead_if_switched_off() -> None:
    desk = edited(prefetch=False)
    assert prefetch(desk, shown_edit(desk), "show(2)", "show(2, 3)") is None


def test_a_rejected_edit_is_never_shown_again() -> None:
    desk = edited()
    desk.session.report_rejected(shown_edit(desk).suggestion.id)
    desk.clock.now += COOL_DOWN_S
    assert reason(desk.consider_edit()) == "you rejected this edit before"
    desk.swap("def area", "\n\n# circles\ndef area")  # the same edit, further down by now
    assert reason(desk.edit("print(area(r))", "print(area(r,  3))")) == (
        "you rejected this edit before"
    )


def test_the_same_edit_elsewhere_is_another_one() -> None:
    desk = Workbench("a = f(1)\n" + "x = 1\n" * 9 + "a = f(1)\n")
    desk.swap("x = 1", "x = 2")
    desk.session.report_rejected(str(desk.edit("a = f(1)", "a = g(1)").suggestion.id))
    desk.type("0")
    below = "x = 1\na = f(1)"
    assert isinstance(desk.edit(below, "x = 1\na = g(1)"), Offer)


def test_a_rejection_silences_a_line_for_five_seconds() -> None:
    desk = edited()
    desk.session.report_rejected(shown_edit(desk).suggestion.id)
    desk.clock.now += 3
    assert reason(desk.consider_edit()) == "you rejected a suggestion here 3 s ago"
    assert reason(desk.consider(cursor=desk.cursor - 1)) == "you rejected a suggestion here 3 s ago"
    assert isinstance(desk.consider_edit(invoked=True, text=desk.text + "#"), Ask)
    elsewhere = desk.text.index("show(2)")
    assert "you rejected this edit before" in reason(desk.consider_edit(cursor=elsewhere))
    desk.clock.now += 2
    assert isinstance(desk.consider(cursor=desk.cursor - 1), Ask)


def test_rejected_ghost_text_does_not_come_back_either() -> None:
    desk = Workbench()
    show = showing(desk.answer("return x"))
    desk.session.report_rejected(show.suggestion.id)
    assert "you rejected this text here before" in reason(desk.consider())


def test_rejections_lengthen_the_debounce_of_both() -> None:
    desk = edited()
    desk.session.report_rejected(shown_edit(desk).suggestion.id)
    desk.type("x")
    desk.clock.now += 0.2  # the keys rest soon
    assert desk.ask_edit().delay_ms == pytest.approx(150, abs=0.1)
    assert desk.ask().delay_ms == pytest.approx(150, abs=0.1)


def test_an_undone_edit_does_not_come_back() -> None:
    desk = edited()
    show = shown_edit(desk)
    desk.accept(show)
    desk.clock.now += 2
    desk.becomes(show.suggestion.text)
    assert reason(desk.consider_edit()) == "you just undid or redid a change"
    assert "rejected" in reason(desk.consider_edit(invoked=True))
    assert desk.outcomes == ["accepted"]


def test_an_edit_undone_after_others_is_no_rejection() -> None:
    desk = edited()
    show = shown_edit(desk)
    desk.accept(show)
    desk.type("  # more")
    desk.becomes(show.suggestion.text)
    assert isinstance(desk.consider_edit(invoked=True), Offer)


def test_edits_that_followed_an_undone_one_are_dropped() -> None:
    desk = edited()
    shown_edit(desk)
    desk.swap("area(r, pi)", "area(r)")
    assert desk.outcomes == ["ignored"]
    desk.type(" ")
    assert isinstance(desk.consider_edit(), Ask)


def by_the_document(desk: Workbench, show: Offer) -> None:
    desk.accept(show)


def by_a_report_first(desk: Workbench, show: Offer) -> None:
    desk.session.report_accepted(show.suggestion.id)
    desk.accept(show)


def by_a_report_after(desk: Workbench, show: Offer) -> None:
    desk.accept(show)
    desk.session.report_accepted(show.suggestion.id)


@pytest.mark.parametrize("way", [by_the_document, by_a_report_first, by_a_report_after])
def test_acceptance_is_told_once_and_in_history(way: Callable[[Workbench, Offer], None]) -> None:
    desk = edited()
    way(desk, shown_edit(desk))
    assert desk.outcomes == ["accepted"]
    desk.clock.now += 2
    assert [edit.accepted for edit in desk.session.workspace.history.view().finished] == [
        False,
        True,
    ]


def test_dismissal_and_indifference_are_told_apart() -> None:
    desk = edited()
    desk.session.memory.outcomes.report_turned_down(shown_edit(desk).suggestion.id, "ignored")
    assert desk.outcomes == ["ignored"]
    show = showing(desk.consider_edit())
    desk.session.report_rejected(show.suggestion.id)
    assert desk.outcomes == ["ignored", "rejected"]


def test_a_long_accepted_edit_is_no_bulk_change() -> None:
    desk = edited()
    body = "".join(f"    step_{i}()\n" for i in range(30))
    show = showing(desk.edit("    show(2)\n", body))
    desk.accept(show)
    assert isinstance(desk.consider_edit(), Ask)


def test_losing_track_of_a_document_forgets_the_shown() -> None:
    desk = edited()
    shown_edit(desk)
    desk.session.lose_track(URI, "a change was lost")
    assert desk.outcomes == ["ignored"]
    assert "lost track" in reason(desk.consider_edit(out_of_step="a change was lost"))


def test_computing_ahead_leaves_the_users_region() -> None:
    clock = Clock()
    session = PausedSession(LspSettings(), clock)
    code = "".join(f"def f{i}(a):\n    b = a + {i}\n    return b * {i}\n\n\n" for i in range(40))
    document = session.open(URI, code, 0, "python")

    def query(line: int):
        return session.at(URI, document.index(Position(line, 0)), RequestFlags())

    session.workspace.context.gather(query(60))
    place = Position(41, 0)
    session.change(URI, [ContentChange("x", Range(place, place))], 1)
    clock.now += 1
    region = session.workspace.context.gather(query(41)).region
    ask = asking(session.consider_edit(query(41)))
    old = document.text.split("\n")[40]
    showing(session.settle(ask, rewrite(ask.request, old, old + " + 1")))
    ahead = session.follow_up()
    assert ahead is not None and ahead.request.region != region.lines
    assert session.workspace.context.gather(query(41)).region == region


def test_a_refused_edit_has_no_second_computed_ahead() -> None:
    desk = edited()
    shown_edit(desk)
    ask = desk.session.follow_up()
    assert ask is not None
    desk.session.prefetched(ask, rewrite(ask.request, "show(2)", "show((2"))
    assert desk.session.follow_up() is None
