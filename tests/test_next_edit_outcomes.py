"""What comes after a next edit was shown: acceptance, rejection, outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from redraft.lsp.memory import COOL_DOWN_S
from redraft.lsp.session.decisions import Ask, Show
from support.next_edits import edited, shown_edit
from support.predictor import rewrite
from support.workbench import URI, Workbench, reason, showing


def prefetch(desk: Workbench, show: Show, old: str, new: str) -> Ask | None:
    """What the model says beforehand about the text after acceptance."""
    ask = desk.session.follow_up(desk.query(), show.suggestion)
    if ask is not None:
        desk.session.prefetched(ask, rewrite(ask.request, old, new))
    return ask


def test_the_edit_after_acceptance_is_computed_beforehand() -> None:
    desk = edited()
    first = shown_edit(desk)
    ask = prefetch(desk, first, "show(2)", "show(2, 3)")
    assert ask is not None
    assert ask.request.text == first.suggestion.result
    assert ask.request.cursor == first.suggestion.landing
    made, accepted = ask.request.edits
    assert (made.accepted, accepted.accepted) == (False, True)
    desk.accept(first)
    assert desk.session.complete(desk.ask_edit(text=desk.text + "#")).request.edits[-2:] == (
        made,
        accepted,
    )
    again = showing(desk.consider_edit())
    assert again.reason == "computed beforehand"
    assert "show(2, 3)" in again.suggestion.result


def test_what_was_computed_ahead_is_used_though_acceptance_was_quicker() -> None:
    desk = edited()
    first = shown_edit(desk)
    ask = desk.session.follow_up(desk.query(), first.suggestion)
    assert ask is not None
    desk.accept(first)
    desk.session.prefetched(ask, rewrite(ask.request, "show(2)", "show(2, 3)"))
    again = showing(desk.consider_edit())
    assert "show(2, 3)" in again.suggestion.result


@pytest.mark.parametrize("first", ["computed", "rejected"])
def test_what_was_computed_ahead_is_of_no_use_once_the_edit_was_turned_down(first: str) -> None:
    desk = edited()
    shown = shown_edit(desk)
    ask = desk.session.follow_up(desk.query(), shown.suggestion)
    assert ask is not None
    if first == "rejected":
        desk.session.rejected(shown.suggestion.id)
    desk.session.prefetched(ask, rewrite(ask.request, "show(2)", "show(2, 3)"))
    desk.session.rejected(shown.suggestion.id)
    desk.becomes(shown.suggestion.result)
    assert isinstance(desk.consider_edit(invoked=True), Ask)


def test_two_tabs_later_the_edit_was_computed_while_the_first_was_shown() -> None:
    desk = edited()
    shown = shown_edit(desk)
    ahead = []
    for old, new in [("show(2)", "show(2, 3)"), ("return 3.14", "return pi")]:
        ask = desk.session.follow_up(desk.query(), shown.suggestion)
        assert ask is not None
        ahead.append(ask)
        desk.session.prefetched(ask, rewrite(ask.request, old, new))
    assert "show(2, 3)" in ahead[1].request.text
    assert len(ahead[1].request.edits) == len(ahead[0].request.edits) + 1
    assert desk.session.follow_up(desk.query(), shown.suggestion) is None  # as far ahead as it goes
    for _ in range(2):
        desk.accept(shown)
        following = desk.consider_edit()
        assert isinstance(following, Show), following  # the model is not asked
        shown = following


def test_edits_that_follow_each_other_are_one_chain() -> None:
    desk = edited()
    first = shown_edit(desk)
    prefetch(desk, first, "show(2)", "show(2, 3)")
    desk.accept(first)
    second = showing(desk.consider_edit())
    assert second.suggestion.id != first.suggestion.id
    assert second.suggestion.chain == first.suggestion.chain == first.suggestion.id


def test_an_edit_of_the_users_own_begins_another_chain() -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.accept(first)
    desk.type("  # done")
    second = showing(desk.edit("show(2)", "show(2, 3)"))
    assert second.suggestion.chain == second.suggestion.id


def test_nothing_is_computed_beforehand_where_that_is_switched_off() -> None:
    desk = edited(prefetch=False)
    assert prefetch(desk, shown_edit(desk), "show(2)", "show(2, 3)") is None


def test_a_rejected_edit_is_never_shown_again() -> None:
    desk = edited()
    desk.session.rejected(shown_edit(desk).suggestion.id)
    desk.clock.now += COOL_DOWN_S
    assert reason(desk.consider_edit()) == "you rejected this edit before"
    desk.swap("def area", "\n\n# circles\ndef area")  # the same edit, further down by now
    assert reason(desk.edit("print(area(r))", "print(area(r,  3))")) == (
        "you rejected this edit before"
    )


def test_the_same_edit_elsewhere_is_another_one() -> None:
    desk = Workbench("a = f(1)\n" + "x = 1\n" * 9 + "a = f(1)\n")
    desk.swap("x = 1", "x = 2")
    desk.session.rejected(str(desk.edit("a = f(1)", "a = g(1)").suggestion.id))
    desk.type("0")
    below = "x = 1\na = f(1)"
    assert isinstance(desk.edit(below, "x = 1\na = g(1)"), Show)


def test_after_a_rejection_nothing_is_offered_in_the_same_line_for_five_seconds() -> None:
    desk = edited()
    desk.session.rejected(shown_edit(desk).suggestion.id)
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
    desk.session.rejected(show.suggestion.id)
    assert "you rejected this text here before" in reason(desk.consider())


def test_rejections_lengthen_the_debounce_of_both() -> None:
    desk = edited()
    desk.session.rejected(shown_edit(desk).suggestion.id)
    desk.type("x")
    assert desk.ask_edit().delay_ms == pytest.approx(150)
    assert desk.ask().delay_ms == pytest.approx(150)


def test_an_accepted_edit_that_is_undone_does_not_come_back() -> None:
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
    assert isinstance(desk.consider_edit(invoked=True), Show)


def test_an_edit_that_followed_from_what_is_undone_is_dropped() -> None:
    desk = edited()
    shown_edit(desk)
    desk.swap("area(r, pi)", "area(r)")
    assert desk.outcomes == ["ignored"]
    desk.type(" ")
    assert isinstance(desk.consider_edit(), Ask)


def by_the_document(desk: Workbench, show: Show) -> None:
    desk.accept(show)


def by_a_report_first(desk: Workbench, show: Show) -> None:
    desk.session.accepted(show.suggestion.id)
    desk.accept(show)


def by_a_report_after(desk: Workbench, show: Show) -> None:
    desk.accept(show)
    desk.session.accepted(show.suggestion.id)


@pytest.mark.parametrize("way", [by_the_document, by_a_report_first, by_a_report_after])
def test_acceptance_is_told_once_and_in_history(way: Callable[[Workbench, Show], None]) -> None:
    desk = edited()
    way(desk, shown_edit(desk))
    assert desk.outcomes == ["accepted"]
    desk.clock.now += 2
    assert [edit.accepted for edit in desk.session.history.edits()] == [False, True]


def test_dismissal_and_indifference_are_told_apart() -> None:
    desk = edited()
    desk.session.ignored(shown_edit(desk).suggestion.id)
    assert desk.outcomes == ["ignored"]
    show = showing(desk.consider_edit())
    desk.session.rejected(show.suggestion.id)
    assert desk.outcomes == ["ignored", "rejected"]


def test_a_long_accepted_edit_is_no_bulk_change() -> None:
    desk = edited()
    body = "".join(f"    step_{i}()\n" for i in range(30))
    show = showing(desk.edit("    show(2)\n", body))
    desk.accept(show)
    assert isinstance(desk.consider_edit(), Ask)


def test_losing_track_of_a_document_forgets_what_was_shown() -> None:
    desk = edited()
    shown_edit(desk)
    desk.session.lost(URI)
    assert desk.outcomes == ["ignored"]
    assert "lost track" in reason(desk.consider_edit(out_of_step="a change was lost"))


def test_a_query_of_a_document_never_opened_is_no_trouble() -> None:
    desk = edited()
    query = replace(desk.query(), uri="file:///w/unknown.py", invoked=True)
    assert isinstance(desk.session.consider_edit(query), Ask)
