"""What passes cost on this machine, as the last starts have found, kept between starts.

A start may be disturbed, an editor that starts with it above all, and a machine changes its pace:
one start alone would have drafts and masks priced wrong until the next. So of what passes cost in
proportion to each other the middle of the last starts counts, and after a few nothing is measured
any more. A file that cannot be read or written only means that the next start measures again. Knows
nothing of how passes are measured.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..runtime.pass_costs import MaskCosts
from ..weights.files import write_notes

#: The file in the cache folder.
FILE = "passes.json"
#: After so many starts nothing is measured.
ENOUGH = 5
#: Seconds after which it begins anew: a system that was updated, a machine that runs on battery.
LASTS_S = 7 * 86_400.0
#: No pass takes longer: what says so is no note of ours.
_MOST_MS = 3.6e6
#: Kinds of weights on a machine that the file holds at most.
_MOST = 32


@dataclass(frozen=True, slots=True)
class PassCosts:
    """Milliseconds of judging passes."""

    widths: Mapping[int, float]  # by positions, one among them
    masks: MaskCosts


@dataclass(frozen=True, slots=True)
class _Note:
    at: float  # seconds since 1970, of the first start
    starts: tuple[PassCosts, ...]  # what each has found, of the same widths; one at least


def usual_costs(
    key: str, measure: Callable[[], PassCosts], file: Path, clock: Callable[[], float]
) -> PassCosts:
    """What the last starts with ``key`` have found, and this one, which asks ``measure`` where they
    were fewer than :data:`ENOUGH`.

    Args:
        key: names the weights, how they run and the machine.
        clock: seconds since 1970.
    """
    known = _read(file)
    note = known.get(key)
    if note is not None and not 0 <= clock() - note.at < LASTS_S:  # nor of the future
        note = None
    if note is not None and len(note.starts) >= ENOUGH:
        return middle(note.starts)
    costs = measure()
    if note is None or set(note.starts[0].widths) != set(costs.widths):
        note = _Note(clock(), (costs,))
    else:
        note = _Note(note.at, (*note.starts, costs))
    others = {other: each for other, each in _read(file).items() if other != key}
    kept = {**dict([*others.items()][1 - _MOST :]), key: note}
    write_notes(file, {name: asdict(each) for name, each in kept.items()})
    return middle(note.starts)


def middle(starts: Sequence[PassCosts]) -> PassCosts:
    """The median of each cost in proportion to its start's pace, at the pace of the fastest.

    Args:
        starts: at least one, all of the same widths.
    """
    pace = [sum(costs.widths.values()) for costs in starts]

    def of(ms: Iterable[float]) -> float:
        shares = [each / own for each, own in zip(ms, pace, strict=True)]
        return float(min(pace) * statistics.median(shares))

    widths = {width: of(costs.widths[width] for costs in starts) for width in starts[0].widths}
    any_ms = of(costs.masks.any_ms for costs in starts)
    return PassCosts(widths, MaskCosts(any_ms, of(costs.masks.each_ms for costs in starts)))


def _read(file: Path) -> dict[str, _Note]:
    try:
        data = json.loads(file.read_text("utf-8"))
        return {str(key): _note(each) for key, each in data.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError):
        return {}


def _note(found: Any) -> _Note:
    """
    Raises:
        ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError: it is none.
    """
    starts = tuple(_costs(each) for each in found["starts"])
    if len({tuple(sorted(costs.widths)) for costs in starts}) != 1:
        raise ValueError("the starts are not of the same widths")
    return _Note(float(found["at"]), starts)


def _costs(found: Any) -> PassCosts:
    """The same errors."""
    widths = {int(width): float(ms) for width, ms in found["widths"].items()}
    masks = MaskCosts(float(found["masks"]["any_ms"]), float(found["masks"]["each_ms"]))
    times = [*widths.values(), masks.any_ms, masks.each_ms]
    believed = all(0 <= ms < _MOST_MS for ms in times) and min(widths.values()) > 0
    if min(widths) != 1 or not believed:
        raise ValueError("these are no times")
    return PassCosts(widths, masks)
