"""What passes cost, as several starts have found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redraft.model.engine.pass_notes import ENOUGH, LASTS_S, PassCosts, usual_costs
from redraft.model.runtime.pass_costs import MaskCosts

DAY = 86_400.0


@dataclass
class Starts:
    """Starts of one model, one after another."""

    file: Path
    now: float = 1e9
    asked: list[PassCosts] = field(default_factory=list)

    def __call__(
        self, *ms: float, masks: tuple[float, float] = (0.0, 0.0), key: str = "m"
    ) -> PassCosts:
        """One start that would measure ``ms`` for 1, 2, … positions."""

        def measure() -> PassCosts:
            costs = PassCosts(dict(enumerate(ms, 1)), MaskCosts(*masks))
            self.asked.append(costs)
            return costs

        return usual_costs(key, measure, self.file, lambda: self.now)


@pytest.fixture
def start(tmp_path: Path) -> Starts:
    return Starts(tmp_path / "new" / "passes.json")


def test_a_single_start_counts_as_it_is(start: Starts) -> None:
    assert start(30, 50, masks=(4, 1)) == PassCosts({1: 30, 2: 50}, MaskCosts(4, 1))


def test_one_disturbed_start_of_three_changes_nothing(start: Starts) -> None:
    start(30, 50, masks=(4, 0.5))
    start(30, 50, masks=(92, 0.5))
    found = start(90, 35, masks=(4, 9))
    assert found.widths == pytest.approx({1: 30, 2: 50})
    assert found.masks.any_ms == pytest.approx(4)
    assert found.masks.each_ms == pytest.approx(0.5)


def test_a_machine_at_another_pace_says_the_same(start: Starts) -> None:
    start(30, 50, masks=(4, 1))
    assert start(15, 25, masks=(2, 0.5)).widths == {1: 15, 2: 25}, "the fastest pace counts"
    found = start(60, 100, masks=(8, 2))
    assert found == PassCosts({1: 15, 2: 25}, MaskCosts(2, 0.5))


def test_after_a_few_starts_nothing_is_measured(start: Starts) -> None:
    for number in range(ENOUGH):
        start(30.0 + number)
    assert len(start.asked) == ENOUGH
    assert start(1.0).widths == {1: 30.0}, "the pace of the fastest"
    assert len(start.asked) == ENOUGH
    start(1.0, key="another")
    assert len(start.asked) == ENOUGH + 1


def test_it_begins_anew_after_a_week_or_where_the_clock_was_set_back(start: Starts) -> None:
    start(30)
    start.now += LASTS_S - 1
    assert start(40).widths == {1: 30}
    start.now += 1
    assert start(40).widths == {1: 40}, "the first start counts, not the last"
    start.now -= DAY
    assert start(50).widths == {1: 50}


def test_other_widths_begin_anew(start: Starts) -> None:
    start(30)
    assert start(40, 50).widths == {1: 40, 2: 50}
    assert start(20, 30).widths == pytest.approx({1: 50 * 38 / 90, 2: 50 * 52 / 90}, rel=0.02)


def started(widths: str) -> str:
    """Return the text of a file with one start that measured ``widths``."""
    start = f'{{"widths": {widths}, "masks": {{"any_ms": 0, "each_ms": 0}}}}'
    return f'{{"m": {{"at": 1e9, "starts": [{start}]}}}}'


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "null", "\x00", '{"m": 1}', '{"m": {"costs": 1}}', '{"m": {"at": 1}}'),
        *map(started, ("{}", '{"2": 5}', '{"one": 5}', "[5]", "5")),
        *(
            started(f'{{"1": {ms}}}')
            for ms in ("NaN", "Infinity", "1e999", "1e300", "0", "-3", '"fast"', "null")
        ),
    ],
)
def test_a_file_that_is_none_or_not_believed_means_measuring_again(
    start: Starts, content: str
) -> None:
    start.file.parent.mkdir()
    start.file.write_text(content, "utf-8")
    assert start(30).widths == {1: 30}
    assert start(40).widths == {1: 30}, "and is replaced"


def test_a_folder_that_cannot_be_written_to_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    start = Starts(tmp_path / "file" / "passes.json")
    assert start(30).widths == {1: 30}
    assert start(40).widths == {1: 40}


def test_the_oldest_of_many_are_forgotten(start: Starts) -> None:
    for number in range(50):
        start(30, key=f"m{number}")
    kept = json.loads(start.file.read_text("utf-8"))
    assert len(kept) == 32 and "m49" in kept and "m0" not in kept
