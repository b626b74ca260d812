"""Battery and load: how much is done, when it is looked at, and what is said about it."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest
from redraft.lsp.editor_settings import LspSettings, update_settings
from redraft.lsp.policy.machine_load import BUSY, LOOK_S, QUIET, Load, LoadWatch, Machine, Reading
from redraft.model.gate.reasons import Abstain
from support.editors.next_edits import edited, shown_edit
from support.editors.workbench import Ask, Clock, Workbench, reason

BATTERY = "on battery (setting onBattery)"


class Looks:
    """Readings that a test chooses, and how many were taken."""

    def __init__(self, on_battery: bool = False, others: float | None = 0.0) -> None:
        self.reading, self.count = Reading(on_battery, others), 0

    def __call__(self) -> Reading:
        self.count += 1
        return self.reading


def watch_of(looks: Looks, clock: Clock, **settings: object) -> LoadWatch:
    made = LspSettings(**settings)  # type: ignore[arg-type]
    watch = LoadWatch(lambda: made, clock)
    watch.look = looks
    return watch


async def after_a_look(watch: LoadWatch, clock: Clock) -> Load:
    clock.now += LOOK_S
    watch.now()
    assert watch._looking is not None
    await watch._looking
    return watch.now()


def test_nothing_is_looked_at_unless_set_so() -> None:
    looks, clock = Looks(on_battery=True, others=1.0), Clock()
    assert watch_of(looks, clock).now() == Load()
    nowhere = watch_of(looks, clock, on_battery="off")
    nowhere.look = None  # the model runs on another machine
    assert nowhere.now() == Load() and looks.count == 0


async def test_a_look_is_taken_every_ten_seconds() -> None:
    looks, clock = Looks(on_battery=True), Clock()
    watch = watch_of(looks, clock, on_battery="calm")
    assert watch.now() == Load()  # nothing is known yet
    assert await after_a_look(watch, clock) == ("calm", BATTERY)
    count = looks.count
    clock.now += LOOK_S - 0.1
    assert watch.now().effort == "calm" and looks.count == count
    looks.reading = Reading(False, 0.0)
    assert await after_a_look(watch, clock) == Load()


async def test_load_ends_low_and_the_stricter_setting_counts() -> None:
    looks, clock = Looks(), Clock()
    watch = watch_of(looks, clock, on_battery="calm", under_load="off")
    for others, effort in ((BUSY - 0.01, "full"), (BUSY, "off"), (QUIET, "off"), (0.49, "full")):
        looks.reading = Reading(False, others)
        assert (await after_a_look(watch, clock)).effort == effort
    looks.reading = Reading(True, 0.8)
    found = await after_a_look(watch, clock)
    assert found.why == "while other programs use 80 % of the processors (setting underLoad)"
    assert found.effort == "off"


def strained(effort: str, desk: Workbench) -> Workbench:
    desk.session.workspace.load = SimpleNamespace(now=lambda: Load(effort, BATTERY))  # type: ignore[assignment,arg-type]
    return desk


def test_off_offers_nothing_and_says_why() -> None:
    desk = strained("off", edited())
    for decision in (desk.consider(invoked=True), desk.consider_edit(invoked=True)):
        assert reason(decision) == f"Redraft is off {BATTERY}"
        assert isinstance(decision, Abstain) and decision.is_lasting


def test_calm_asks_when_keys_rest_or_by_a_gesture() -> None:
    desk = strained("calm", Workbench("x = comput"))
    desk.type("e")
    assert desk.ask().delay_ms == pytest.approx(1000)
    assert strained("calm", edited()).ask_edit().delay_ms == pytest.approx(1000)
    assert desk.ask(invoked=True).delay_ms == 0
    desk.clock.now += 0.8
    assert desk.ask().delay_ms == pytest.approx(200)
    desk.clock.now += 5
    assert desk.ask().delay_ms == 0


def test_calm_computes_nothing_ahead() -> None:
    for effort, is_ahead in (("full", True), ("calm", False)):
        desk = strained(effort, edited())
        shown_edit(desk)
        assert isinstance(desk.session.follow_up(), Ask) is is_ahead


def test_what_redraft_uses_is_not_the_work_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([(10.0, 90.0), (18.0, 92.0)])  # busy, idle: 8 of 10 seconds

    def cpu_times() -> object:
        busy, idle = next(times)
        return Times(busy, idle)

    class Times(tuple[float, float]):
        __slots__ = ()

        def __new__(cls, busy: float, idle: float) -> Times:
            return super().__new__(cls, (busy, idle))

        @property
        def idle(self) -> float:
            return self[1]

    used = iter([3.0, 8.0])
    engine = SimpleNamespace(pid=-1, cpu_times=lambda: SimpleNamespace(user=next(used), system=0.0))
    own = SimpleNamespace(pid=-2, cpu_times=lambda: SimpleNamespace(user=0.0, system=0.0))
    monkeypatch.setattr(psutil, "cpu_times", cpu_times)
    monkeypatch.setattr(psutil, "Process", lambda: own)
    monkeypatch.setattr(
        psutil, "sensors_battery", lambda: SimpleNamespace(power_plugged=False), raising=False
    )
    machine = Machine(lambda: engine)  # type: ignore[arg-type,return-value]
    assert machine.look() == Reading(True, None)
    assert machine.look().others == pytest.approx(0.3)


def test_a_look_at_the_real_machine() -> None:
    machine = Machine(psutil.Process)
    assert machine.look().others is None
    sum(range(10**6))
    found = machine.look()
    assert found.others is None or 0 <= found.others <= 1


def test_bad_values_are_named() -> None:
    settings, (problem,) = update_settings(LspSettings(), {"onBattery": "half"})
    assert problem.startswith("setting on_battery cannot be 'half'")
    assert settings.on_battery == "full"
