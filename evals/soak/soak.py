"""Runs the modes one after the other, each in a place of its own: what ``redraft soak`` shows.

Translates amounts; measures nothing itself.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from redraft.model.errors import InstallError
from redraft.model.release import how_to_install

from ..recordings.format import Stream
from . import chaos, flood, replicas, typists
from .editor import Ended
from .installation import Commands, Installation, that_may_be_harmed
from .tally import SoakReport, Tally

Mode = Literal["typing", "fuzz", "chaos", "flood", "replicas"]
MODES: tuple[Mode, ...] = get_args(Mode)
#: Done where nobody says what to do: all but what needs Ray.
USUAL: tuple[Mode, ...] = ("typing", "fuzz", "chaos", "flood")

#: Hears of the tally that a mode fills, before it begins.
Watch = Callable[[Tally], None]


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much of each; the times are limits."""

    events: int  # of typing
    typing_s: float
    requests: int  # of the fuzz
    sessions: int
    blows: int
    chaos_s: float
    clients: tuple[int, ...]
    flood_s: float  # for each number of clients
    replicas_s: float  # for each number of replicas


#: A minute or two of all modes together; what CI runs is less still.
SHORT = Amounts(5_000, 20.0, 400, 60, 10, 40.0, (1, 20, 100), 5.0, 10.0)
#: A night: the amounts that we set ourselves.
NIGHT = Amounts(
    100_000, 4 * 3600.0, 15_000, 1_500, 500, 4 * 3600.0, (1, 10, 50, 100, 200), 60.0, 60.0
)


@dataclass(frozen=True, slots=True)
class Tested:
    """What is put to the test."""

    commands: Commands
    model: str
    models: Path | None  # a copy of the model that may be harmed
    streams: Sequence[Stream]  # what is typed
    routes: Sequence[tuple[str, str]]  # of the server: method, path


def run(
    mode: Mode, tested: Tested, amounts: Amounts, seed: int, watch: Watch = lambda tally: None
) -> SoakReport:
    """One mode from its beginning to its end.

    Raises:
        InstallError: the mode needs a library that is not installed.
    """
    tally, began = Tally(time.monotonic), time.monotonic()
    watch(tally)
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as root:
        installation = Installation(Path(root), tested.commands, tested.models, tested.model)
        try:
            _run(mode, installation, tested, amounts, seed, tally)
        except (TimeoutError, Ended) as error:
            tally.breaks(f"it ended early: {type(error).__name__} {error}")
        finally:
            installation.clear()
    return tally.report(mode, seed, time.monotonic() - began)


def _run(
    mode: Mode,
    installation: Installation,
    tested: Tested,
    amounts: Amounts,
    seed: int,
    tally: Tally,
) -> None:
    match mode:
        case "typing":
            much = typists.Amount(amounts.events, amounts.typing_s)
            asyncio.run(typists.type_(installation, tested.streams, much, seed, tally))
        case "fuzz":
            try:
                from . import fuzz
            except ImportError as error:
                raise InstallError(
                    f"The fuzz needs hypothesis. Run {how_to_install('soak')}, or choose the other "
                    "modes."
                ) from error
            how_many = fuzz.Amount(amounts.requests, amounts.sessions)
            fuzz.fuzz(installation, tested.routes, how_many, seed, tally)
        case "chaos":
            blows = chaos.Amount(amounts.blows, amounts.chaos_s)
            harmed = that_may_be_harmed(installation)
            asyncio.run(chaos.chaos(harmed, blows, seed, tally))
        case "flood":
            crowd = flood.Amount(amounts.clients, amounts.flood_s)
            asyncio.run(flood.flood(installation, crowd, seed, tally))
        case "replicas":
            fleet = replicas.Amount(seconds=amounts.replicas_s)
            asyncio.run(replicas.replicas(installation, fleet, seed, tally))
