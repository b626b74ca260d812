"""The engine's queue: in order while it can be served, the newest first while it cannot."""

from __future__ import annotations

from redraft.model.engine import CROWD, PATIENCE_S, RELIEVED_S, STRAINED_S, Queue

ONE_S = 0.1  # a computation


def crowd(length: int = 8, count: int = 3) -> Queue[str]:
    """Return a queue in which requests arrived every 10 ms since second 0."""
    queue: Queue[str] = Queue(length)
    for number in range(count):
        assert queue.add(f"job {number}", number / 100)
    return queue


def test_the_order_is_kept_while_all_can_be_served() -> None:
    queue = crowd()
    assert [queue.take(0.1, ONE_S) for _ in range(3)] == ["job 0", "job 1", "job 2"]


def test_idle_work_waits_for_others_and_counts_nowhere() -> None:
    queue: Queue[str] = Queue(2)
    assert queue.add_ahead("ahead 0") and queue.add_ahead("ahead 1")
    assert not queue.add_ahead("no room")
    assert queue.add("job", 0.0) and len(queue) == 1
    assert queue.take(0.1, ONE_S) == "job"
    assert queue.has_any() and len(queue) == 0
    assert queue.take_stale(PATIENCE_S + 1, ONE_S) == []
    queue.remove("ahead 0")
    assert queue.take(0.1, ONE_S) == "ahead 1"
    queue.put_back("ahead 1")
    assert queue.take_all() == ["ahead 1"]
    assert not queue.has_any()


def test_while_too_many_arrive_the_newest_comes_first() -> None:
    queue = crowd()
    queue.add("new", STRAINED_S + 0.02)
    assert queue.take(STRAINED_S + 0.03, ONE_S) == "new"


def test_a_crowd_at_once_is_no_burst_of_one_person() -> None:
    queue = crowd(count=CROWD - 1)
    assert queue.take(0.06, ONE_S) == "job 0"
    queue = crowd(count=CROWD)
    assert queue.take(0.06, ONE_S) == f"job {CROWD - 1}"


def test_a_moment_without_waiting_ends_the_strain() -> None:
    queue = crowd(count=1)
    queue.take(0.1, ONE_S)
    queue.add("a", STRAINED_S)
    queue.add("b", STRAINED_S + 0.01)
    assert queue.take(STRAINED_S + 0.02, ONE_S) == "a"


def test_under_strain_the_longest_waiting_is_sent_away() -> None:
    queue = crowd()
    queue.add("new", STRAINED_S)
    assert queue.take_stale(STRAINED_S + 0.05, ONE_S) == ["job 0", "job 1", "job 2"]
    assert len(queue) == 1
    assert queue.is_strained(STRAINED_S + 0.05 + RELIEVED_S / 2, ONE_S)
    assert queue.take(STRAINED_S + 0.06, ONE_S) == "new"
    assert not queue.is_strained(STRAINED_S + 0.05 + RELIEVED_S, ONE_S)


def test_under_strain_the_newest_waits_no_longer() -> None:
    queue = crowd()
    assert queue.take_stale(STRAINED_S + 1.0, ONE_S) == ["job 0", "job 1"]
    assert queue.take_stale(0.02 + PATIENCE_S, ONE_S) == []
    assert queue.take(STRAINED_S + 1.0, ONE_S) == "job 2"
    queue.add("last", 20.0)
    assert queue.is_strained(20.1 + PATIENCE_S, ONE_S)
    assert queue.take_stale(20.1 + PATIENCE_S, ONE_S) == ["last"]


def test_slow_computations_are_waited_for_longer() -> None:
    queue = crowd()
    assert queue.take_stale(1.0, 2.0) == []
    assert queue.take(1.0, 2.0) == "job 0"


def test_without_strain_only_the_outwaited_are_refused() -> None:
    queue = crowd(count=1)
    assert queue.take_stale(PATIENCE_S, 10.0) == []
    assert queue.take_stale(PATIENCE_S + 0.01, 10.0) == ["job 0"]


def test_there_is_room_for_so_many() -> None:
    queue = crowd(length=2, count=2)
    assert not queue.add("third", 0.1)
    queue.remove("job 0")
    assert queue.add("third", 0.1)
    assert queue.take_all() == ["job 1", "third"]
