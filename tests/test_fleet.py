"""The simulation of many developers at few engines."""

from __future__ import annotations

import pytest
from redraft.evals.latency.fleet import (
    FleetEngine,
    TypingTimes,
    engines_for,
    latencies,
    most_developers,
    simulate,
    typing_of,
    unevenness,
)
from redraft.evals.recordings.format import Changed, Header, Stream, TextEdit

#: Somebody who asks every 2 s.
STEADY = TypingTimes(tuple(2.0 * n for n in range(1, 100)), 200.0)

#: Somebody who asks every 20 s.
RARE = TypingTimes(tuple(20.0 * n for n in range(1, 10)), 200.0)


def stream(*times_ms: int) -> Stream:
    edit = (TextEdit(0, 0, "x"),)
    changes = tuple(Changed(time, 0, None, edit) for time in times_ms)
    return Stream(Header(0), changes)


def test_a_question_follows_each_pause_in_typing_and_absence_is_cut_short() -> None:
    found = typing_of([stream(0, 100, 200, 1_000, 1_100, 1_000_000)], pause_s=0.5)
    assert found.asks_s == pytest.approx((0.7, 1.6, 61.6))
    assert found.length_s == pytest.approx(1.1 + 60 + 60)


def test_a_distribution_goes_through_what_was_measured() -> None:
    drawn = sorted(latencies(200.0, 900.0))
    assert drawn[len(drawn) // 2] == pytest.approx(200, rel=0.01)
    assert drawn[int(0.95 * len(drawn))] == pytest.approx(900, rel=0.02)


def test_one_developer_waits_for_nobody() -> None:
    load = simulate(STEADY, FleetEngine((300.0,)), 1, active=1.0, hours=0.1, seed=1)
    assert load.wait_ms.p99 == 0
    assert load.total_ms.p50 == pytest.approx(300)
    assert load.busy == pytest.approx(0.15, abs=0.01)
    assert (load.answered, load.replaced) == (load.asked, 0)


def test_too_many_wait_and_their_older_questions_are_replaced() -> None:
    load = simulate(STEADY, FleetEngine((300.0,)), 20, active=1.0, hours=0.1, seed=1)
    assert load.busy > 0.95
    assert load.replaced > load.asked / 4
    assert load.answered + load.replaced == load.asked
    assert load.wait_ms.p50 > 500


def test_only_those_who_type_ask() -> None:
    engine = FleetEngine((100.0,))
    all_of_them = simulate(RARE, engine, 10, active=1.0, hours=60, seed=1)
    half = simulate(RARE, engine, 10, active=0.5, hours=60, seed=1)
    assert half.asked == pytest.approx(all_of_them.asked / 2, rel=0.1)


def test_that_more_are_there_at_times_makes_them_wait() -> None:
    """As many questions as two who are always there ask, but not evenly."""
    engine = FleetEngine((5_000.0,))
    even = simulate(RARE, engine, 2, active=1.0, hours=100, seed=1)
    uneven = simulate(RARE, engine, 20, active=0.1, hours=100, seed=1)
    assert uneven.asked == pytest.approx(even.asked, rel=0.2)
    assert uneven.wait_ms.p95 > 1.5 * even.wait_ms.p95


def test_a_cache_that_holds_too_few_sessions_costs_a_reading_each_time() -> None:
    large = simulate(STEADY, FleetEngine((50.0,), 400.0), 4, active=1.0, hours=0.1, seed=1)
    small = simulate(STEADY, FleetEngine((50.0,), 400.0, sessions=2), 4, 1.0, hours=0.1, seed=1)
    assert large.total_ms.p50 == pytest.approx(50, abs=1)
    assert small.total_ms.p50 > 400


def test_the_most_developers_are_found_within_the_time_that_is_wanted() -> None:
    engine = FleetEngine((100.0, 200.0))
    most = most_developers(STEADY, engine, active=0.5, p95_ms=400, hours=0.5, seed=1)
    assert most.total_ms.p95 <= 400
    more = simulate(STEADY, engine, 2 * most.developers, 0.5, hours=0.5, seed=1)
    assert more.total_ms.p95 > 400


def test_a_ring_is_uneven_and_engines_are_added_for_it() -> None:
    assert unevenness(1_000, 1, 1) == 1.0
    assert 1.02 < unevenness(20_000, 20, 1) < 1.5
    assert unevenness(700, 20, 1) > unevenness(20_000, 20, 1), "few sessions are spread worse"
    engines, uneven = engines_for(10_000, 500, 1)
    assert engines > 20
    assert 10_000 / engines * uneven <= 500
