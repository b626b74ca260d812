"""*Chaos*: kill -9 at random moments, weights that change underfoot, a disk without room, a clock
that jumps.

An editor types and asks all the time. Each of its questions must be answered, or failed with a
reason, in :data:`ANSWER_S`, whatever happens meanwhile; suggestions must come again within the time
that a load takes; never may two engines answer; and what the server had confirmed must be in the
recording, which can be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass
from pathlib import Path

import psutil
from redraft.model.errors import RedraftError

from ..figures.spread import Spread
from ..recordings.streams import read_stream
from .blows import Blows
from .busy_editor import READY_S, BusyEditor
from .installation import Installation
from .tally import Tally

#: Seconds in which a question is answered or failed with a reason.
ANSWER_S = 2.0


@dataclass(frozen=True, slots=True)
class Amount:
    blows: int
    seconds: float


async def chaos(installation: Installation, amount: Amount, seed: int, tally: Tally) -> None:
    """Harm the installation, blow after blow, and see that suggestions come again after each."""
    busy = BusyEditor(installation, random.Random(seed), tally)
    await busy.open()
    if not await busy.until_suggested():
        tally.breaks("there are no suggestions even before the first blow")
        return
    busy.asked_ms.clear()  # those that met the first load
    try:
        ready_ms = await _blow_after_blow(busy, amount)
    finally:
        await busy.close()
    _check_recordings(installation.recordings, tally)
    ready, answers = Spread.of(ready_ms), Spread.of(busy.asked_ms)
    tally.figures |= {
        "suggestions again, p50 ms": ready.p50,
        "suggestions again, p99 ms": ready.p99,
        "answers, p50 ms": answers.p50,
        "answers, p99 ms": answers.p99,
        "answers beyond 2 s": sum(one > 1e3 * ANSWER_S for one in busy.asked_ms),
    }


async def _blow_after_blow(busy: BusyEditor, amount: Amount) -> list[float]:
    """Milliseconds from each blow until suggestions came again."""
    ready_ms: list[float] = []
    tally, blows = busy.tally, Blows(busy).found()
    weights = [often for often, _ in blows.values()]
    until = tally.clock() + amount.seconds
    for number in range(amount.blows):
        if tally.clock() > until:
            break
        [name] = busy.chance.choices(list(blows), weights)
        await busy.typing(busy.chance.randrange(1, 6))
        tally.counts[f"blows: {name}"] += 1
        asked = len(busy.asked_ms)
        undo = await blows[name][1]()
        took_ms = await _recovers(busy, name)
        if undo is not None:
            undo()
        if took_ms is None:
            tally.breaks(f"blow {number}, {name}: no suggestion within {READY_S:g} s")
            break
        ready_ms.append(took_ms)
        _note_late(busy, name, asked)
    return ready_ms


async def _recovers(busy: BusyEditor, name: str) -> float | None:
    """Milliseconds until suggestions came again."""
    tally, began = busy.tally, busy.tally.clock()
    if not await busy.until_suggested():
        return None
    took_ms = 1e3 * (tally.clock() - began)
    _note_longest(tally, f"longest until suggestions after '{name}', ms", took_ms)
    living = [one for one in busy.installation.engines() if _answers(one)]
    if len(living) > 1:
        await asyncio.sleep(1.0)  # one that lost a race is leaving
        living = [one for one in busy.installation.engines() if _answers(one)]
    if len(living) > 1:
        tally.breaks(f"{name}: {len(living)} engines")
    return took_ms


def _note_late(busy: BusyEditor, name: str, since: int) -> None:
    """Which blow made somebody wait."""
    longest = max(busy.asked_ms[since:], default=0.0)
    if longest > 1e3 * ANSWER_S:
        _note_longest(busy.tally, f"longest answer after '{name}', ms", longest)


def _note_longest(tally: Tally, what: str, took_ms: float) -> None:
    tally.figures[what] = max(tally.figures.get(what, 0.0), round(took_ms, 1))


def _answers(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)
    return False


def _check_recordings(folder: Path, tally: Tally) -> None:
    """Whatever broke a recording off, what is there can be read."""
    for file in sorted(folder.glob("*.jsonl")):
        try:
            read_stream(file)
        except RedraftError as error:
            tally.breaks(f"a recording cannot be read: {error}")
        tally.counts["recordings read"] += 1
