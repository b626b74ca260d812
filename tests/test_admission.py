"""The door before the queue: open to bursts, nearly shut while more arrive than can be served."""

from __future__ import annotations

import contextlib

import pytest
from redraft.model.errors import Overloaded
from redraft.model.queue import RELIEVED_S, STRAINED_S
from redraft.server.http.admission import LEAST_AWAY_S, MOST_AWAY_S, STRAINED_ROOM, Admission
from support.engines_of import Clock

MOST = 8


def crowded(stack: contextlib.ExitStack, clock: Clock, count: int = STRAINED_ROOM) -> Admission:
    """So many are under way; a computation takes 100 ms."""
    admission = Admission(MOST, clock)
    for _ in range(60):
        admission.computed(0.1)
    for _ in range(count):
        stack.enter_context(admission.entered())
    return admission


def test_a_burst_finds_room() -> None:
    with contextlib.ExitStack() as stack:
        admission = crowded(stack, Clock(), MOST)
        with pytest.raises(Overloaded), admission.entered():
            pass
    assert admission.under_way == 0


def test_while_more_arrive_than_can_be_served_only_the_next_few_come_in() -> None:
    clock = Clock()
    with contextlib.ExitStack() as stack:
        admission = crowded(stack, clock)
        admission.check()  # a crowd that lasts a moment is a burst
        clock.now += STRAINED_S + 0.01
        with pytest.raises(Overloaded):
            admission.check()
        with pytest.raises(Overloaded), admission.entered():
            pass


def test_a_moment_alone_ends_the_crowd() -> None:
    clock = Clock()
    with contextlib.ExitStack() as stack:
        admission = crowded(stack, clock)
        clock.now += STRAINED_S / 2
    with contextlib.ExitStack() as stack:
        for _ in range(STRAINED_ROOM):
            stack.enter_context(admission.entered())
        clock.now += STRAINED_S / 2 + 0.01
        admission.check()


@pytest.mark.parametrize("where", ["here", "in the engine's queue"])
def test_who_was_sent_away_lately_is_a_sign_of_strain(where: str) -> None:
    clock = Clock()
    with contextlib.ExitStack() as stack:
        admission = crowded(stack, clock, MOST if where == "here" else 2)
        with pytest.raises(Overloaded), admission.entered():
            raise Overloaded("too late", retry_after_s=1.0)
    with contextlib.ExitStack() as stack:
        for _ in range(STRAINED_ROOM):
            stack.enter_context(admission.entered())
        with pytest.raises(Overloaded):
            admission.check()
        clock.now += RELIEVED_S
    with contextlib.ExitStack() as stack:
        for _ in range(MOST):
            stack.enter_context(admission.entered())


def test_when_to_come_back_follows_from_how_long_answers_take_and_how_many_want_one() -> None:
    clock = Clock()
    with contextlib.ExitStack() as stack:
        admission = crowded(stack, clock, MOST)
        told = []
        for _ in range(200):
            with pytest.raises(Overloaded) as caught, admission.entered():
                pass
            told.append(caught.value.retry_after_s)
        assert told[0] == LEAST_AWAY_S
        assert told[31] == pytest.approx(0.1 * (MOST + 32), rel=0.01)
        assert told[-1] == MOST_AWAY_S
        clock.now += 1.5
        with pytest.raises(Overloaded) as caught, admission.entered():
            pass
        assert caught.value.retry_after_s == LEAST_AWAY_S
