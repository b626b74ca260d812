"""Battery and load: how much Redraft does while the machine saves power or others use it.

Looking takes milliseconds, so it happens in a thread, at most every ten seconds, while the user
works, and only if a setting asks for it. A decision uses what the last look found.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, get_args, runtime_checkable

import psutil

from ..editor_settings import Effort, LspSettings

LOOK_S = 10.0  # between two looks
#: Share of the processors that other programs use: at the first the machine is busy, below the
#: second it no longer is.
BUSY, QUIET = 0.75, 0.5
#: Seconds without a change after which the keys rest, for "calm".
CALM_S = 1.0

_ORDER: tuple[Effort, ...] = get_args(Effort)  # from the least saving to the most


@runtime_checkable
class HasProcess(Protocol):
    """A predictor whose model runs in a process of this machine."""

    def process(self) -> psutil.Process | None:
        """Return that process, None while there is none."""
        ...


class Reading(NamedTuple):
    """Result of a look."""

    on_battery: bool
    others: float | None  # share of the processors that other programs use; None: not known yet


class Load(NamedTuple):
    """The effort that the settings want now, and why it is not "full"."""

    effort: Effort = "full"
    why: str = ""  # shown to the user


class Machine:
    """Battery and processors of this machine.

    Args:
        engine: returns the process that computes suggestions: its work is no load.
    """

    def __init__(self, engine: Callable[[], psutil.Process | None]) -> None:
        self._engine = engine
        self._last: _Times | None = None

    def look(self) -> Reading:
        """Return the state since the last call. Takes a few milliseconds."""
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
        before, self._last = self._last, self._times()
        return Reading(
            on_battery=battery is not None and battery.power_plugged is False,
            others=None if before is None else self._last.others_since(before),
        )

    def _times(self) -> _Times:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        own = dict[int, float]()
        for process in (psutil.Process(), self._engine()):
            if process is not None:
                with contextlib.suppress(psutil.Error):
                    used = process.cpu_times()
                    own[process.pid] = used.user + used.system
        # Linux counts the time of guests in "user" too.
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return _Times(idle, sum(times) - guests, own)


@dataclass(frozen=True, slots=True)
class _Times:
    """Seconds of all processors since the machine started."""

    idle: float
    total: float
    own: dict[int, float]  # by process

    def others_since(self, before: _Times) -> float | None:
        """Return the share of the processors that other programs used meanwhile, 0 … 1."""
        passed = self.total - before.total
        if passed <= 0:
            return None
        used = passed - (self.idle - before.idle)
        own = sum(now - before.own[pid] for pid, now in self.own.items() if pid in before.own)
        return min(max(0.0, (used - own) / passed), 1.0)


class LoadWatch:
    """The effort that battery and load allow.

    Args:
        settings: as they are now.
        clock: in seconds.
    """

    def __init__(self, settings: Callable[[], LspSettings], clock: Callable[[], float]) -> None:
        self._settings, self._clock = settings, clock
        #: Looks at the machine, in a thread; None: the model does not run on this machine.
        self.look: Callable[[], Reading] | None = None
        self._looked_s: float | None = None
        self._looking: asyncio.Task[None] | None = None
        self._reading, self._is_busy = Reading(False, None), False

    def now(self) -> Load:
        """Return the effort by the last look, and look again in the background if that is old."""
        settings = self._settings()
        if self.look is None or settings.on_battery == settings.under_load == "full":
            return Load()
        self._look_soon()
        found = []
        if self._reading.on_battery:
            found.append(Load(settings.on_battery, "on battery (setting onBattery)"))
        if self._is_busy:
            share = f"{self._reading.others or 0:.0%}".replace("%", " %")
            why = f"while other programs use {share} of the processors (setting underLoad)"
            found.append(Load(settings.under_load, why))
        wanted = max(found, key=lambda each: _ORDER.index(each.effort), default=Load())
        return wanted if wanted.effort != "full" else Load()

    def _look_soon(self) -> None:
        now_s = self._clock()
        is_recent = self._looked_s is not None and now_s - self._looked_s < LOOK_S
        if is_recent or (self._looking is not None and not self._looking.done()):
            return
        self._looked_s = now_s
        self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        assert self.look is not None
        self._reading = await asyncio.to_thread(self.look)
        if self._reading.others is not None:
            self._is_busy = self._reading.others >= (QUIET if self._is_busy else BUSY)
