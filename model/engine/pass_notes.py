"""What passes cost on this machine at their fastest, kept between starts.

Other programs can only make a machine look slower than it is, and an editor that starts makes it
busy: one start that is disturbed would have masks and drafts priced wrong until the next. So of
every pass the fastest of the last starts counts, and after a few it is not measured again.
A file that cannot be read or written only means that the next start measures again. Knows nothing
of how passes are measured.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import RedraftError
from ..runtime.pass_costs import MaskCosts
from ..weights.files import make_folder, write_atomically

#: The file in the cache folder.
FILE = "passes.json"
#: After so many starts nothing is measured.
ENOUGH = 5
#: Seconds after which it begins anew: a system that was updated, a machine that runs on battery.
LASTS_S = 7 * 86_400.0
#: Kinds of weights on a machine that the file holds at most.
_MOST = 32


@dataclass(frozen=True, slots=True)
class PassCosts:
    """Milliseconds of judging passes."""

    widths: Mapping[int, float]  # by positions
    masks: MaskCosts  # with masks behind judged tokens, and without


@dataclass(frozen=True, slots=True)
class _Note:
    costs: PassCosts
    at: float  # seconds since 1970, of the first start
    starts: int


def fastest_known(
    key: str, measure: Callable[[], PassCosts], file: Path, clock: Callable[[], float]
) -> PassCosts:
    """What is noted of ``key`` and what ``measure`` says, of each pass the faster; it is asked
    only while fewer than :data:`ENOUGH` starts have asked it.

    Args:
        key: names the weights, how they run and the machine.
        clock: seconds since 1970.
    """
    known = _read(file)
    note = known.get(key)
    if note is not None and not 0 <= clock() - note.at < LASTS_S:  # nor of the future
        note = None
    if note is not None and note.starts >= ENOUGH:
        return note.costs
    costs = measure()
    if note is None or set(note.costs.widths) != set(costs.widths):
        note = _Note(costs, clock(), 1)
    else:
        note = _Note(_faster(note.costs, costs), note.at, note.starts + 1)
    others = {other: each for other, each in known.items() if other != key}
    kept = {**dict([*others.items()][1 - _MOST :]), key: note}
    text = json.dumps({name: asdict(each) for name, each in kept.items()}, indent=1)
    with contextlib.suppress(RedraftError, OSError):
        make_folder(file.parent)
        write_atomically(file, text.encode("utf-8"))
    return note.costs


def _faster(one: PassCosts, other: PassCosts) -> PassCosts:
    """Of each pass the faster; both have the same widths."""
    widths = {width: min(ms, other.widths[width]) for width, ms in one.widths.items()}
    without = min(one.masks.without_ms, other.masks.without_ms)
    return PassCosts(widths, MaskCosts(without, min(one.masks.with_ms, other.masks.with_ms)))


def _read(file: Path) -> dict[str, _Note]:
    try:
        data = json.loads(file.read_text("utf-8"))
        return {str(key): _note(each) for key, each in data.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _note(found: Any) -> _Note:
    """
    Raises:
        ValueError, TypeError, KeyError: it is none.
    """
    costs, masks = found["costs"], found["costs"]["masks"]
    widths = {int(width): float(ms) for width, ms in costs["widths"].items()}
    of_masks = MaskCosts(float(masks["without_ms"]), float(masks["with_ms"]))
    times = [*widths.values(), of_masks.without_ms, of_masks.with_ms]
    if not widths or min(widths.values()) <= 0 or not all(0 <= ms < math.inf for ms in times):
        raise ValueError("these are no times")
    return _Note(PassCosts(widths, of_masks), float(found["at"]), int(found["starts"]))
