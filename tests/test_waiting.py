"""The engine's queue: in order while it can be served, the newest first while it cannot."""

from __future__ import annotations

from redraft.model.engine.waiting import CROWD, PATIENCE_S, RELIEVED_S, STRAINED_S, Waiting

ONE_S = 0.1  # a computation


def crowd(length: int = 8, count: int = 3) -> Waiting[str]:
    """So many wait since second 0, one every 10 ms."""
    waiting: Waiting[str] = Waiting(length)
    for number in range(count):
        assert waiting.add(f"job {number}", number / 100)
    return waiting


def test_the_order_is_kept_while_all_can_be_served() -> None:
    waiting = crowd()
    assert [waiting.take(0.1, ONE_S) for _ in range(3)] == ["job 0", "job 1", "job 2"]


def test_while_more_arrive_than_can_be_served_the_newest_comes_first() -> None:
    waiting = crowd()
    waiting.add("new", STRAINED_S + 0.02)
    assert waiting.take(STRAINED_S + 0.03, ONE_S) == "new"


def test_a_crowd_at_once_is_no_burst_of_one_person() -> None:
    waiting = crowd(count=CROWD - 1)
    assert waiting.take(0.06, ONE_S) == "job 0"
    waiting = crowd(count=CROWD)
    assert waiting.take(0.06, ONE_S) == f"job {CROWD - 1}"


def test_a_moment_in_which_nobody_waits_ends_the_strain() -> None:
    waiting = crowd(count=1)
    waiting.take(0.1, ONE_S)
    waiting.add("a", STRAINED_S)
    waiting.add("b", STRAINED_S + 0.01)
    assert waiting.take(STRAINED_S + 0.02, ONE_S) == "a"


def test_under_strain_who_waited_for_a_computation_is_sent_away() -> None:
    waiting = crowd()
    waiting.add("new", STRAINED_S)
    assert waiting.take_stale(STRAINED_S + 0.05, ONE_S) == ["job 0", "job 1", "job 2"]
    assert len(waiting) == 1
    assert waiting.is_strained(STRAINED_S + 0.05 + RELIEVED_S / 2, ONE_S)
    assert waiting.take(STRAINED_S + 0.06, ONE_S) == "new"
    assert not waiting.is_strained(STRAINED_S + 0.05 + RELIEVED_S, ONE_S)


def test_under_strain_the_newest_is_answered_however_long_it_waited() -> None:
    waiting = crowd()
    assert waiting.take_stale(STRAINED_S + 1.0, ONE_S) == ["job 0", "job 1"]
    assert waiting.take(STRAINED_S + 1.0, ONE_S) == "job 2"


def test_slow_computations_are_waited_for_longer() -> None:
    waiting = crowd()
    assert waiting.take_stale(1.0, 2.0) == []
    assert waiting.take(1.0, 2.0) == "job 0"


def test_without_strain_only_who_waited_out_everybodys_patience_is_sent_away() -> None:
    waiting = crowd(count=1)
    assert waiting.take_stale(PATIENCE_S, 10.0) == []
    assert waiting.take_stale(PATIENCE_S + 0.01, 10.0) == ["job 0"]


def test_there_is_room_for_so_many() -> None:
    waiting = crowd(length=2, count=2)
    assert not waiting.add("third", 0.1)
    waiting.remove("job 0")
    assert waiting.add("third", 0.1)
    assert waiting.take_all() == ["job 1", "third"]
