"""What the gate weighs of a candidate, as numbers: the one place, for serving, training and
replays.

All follow from the candidate (its confidence and its facts) and from the situation at the moment.
What nobody told is None, and counts as average. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..records import Candidate, Task

#: The family of proposals that are shown without a gate: imports of a module of the standard
#: library for a name that nothing defines. The rule speaks falsely at 14 of 16,000 moments.
STANDARD = "standard"

#: A token less likely than one half is a doubt.
_DOUBT = math.log(0.5)
_LEAST = 1e-4  # of a probability whose logit is taken


@dataclass(frozen=True, slots=True)
class Situation:
    """What the user was doing, as far as somebody followed it."""

    since_edit_ms: float | None = None  # since their last edit
    keys_per_s: float | None = None  # typed in the last seconds
    previous: float | None = None  # last outcome: 1 accepted, 0 let pass, -1 rejected
    acceptance: float | None = None  # of the last ten outcomes, 0 … 1


UNKNOWN = Situation()

Reading = Callable[[Candidate, Situation], float | None]


def _logit(probability: float) -> float:
    kept = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(kept / (1 - kept))


def _log(count: float | None) -> float | None:
    return None if count is None else math.log1p(max(count, 0.0))


def _of_facts(read: Callable[..., float | None]) -> Reading:
    return lambda each, now: None if each.facts is None else read(each.facts)


def _text(each: Candidate) -> float:
    """Log-probability of the text alone, the place of a next edit aside."""
    return max(each.confidence.total - (each.confidence.place or 0.0), -60.0)


def _first_line(each: Candidate) -> float | None:
    """Return a root of the first line's log-probability; None where it is not recorded."""
    lines = each.confidence.lines
    return -math.sqrt(-max(min(lines[0], 0.0), -60.0)) if lines else None


def _at_least(least: float, log: float | None) -> float | None:
    return None if log is None else max(log, least)


def _negated(log: float | None) -> float | None:
    return None if log is None else -log


def _doubts(each: Candidate) -> float | None:
    logs = each.confidence.logs
    return math.log1p(sum(log < _DOUBT for log in logs)) if logs else None


#: How to read each, and whether more of it can only speak for a candidate.
READINGS: dict[str, tuple[Reading, bool]] = {
    # the confidence
    "mean": (lambda each, now: _logit(each.confidence.mean), True),
    "minimum": (lambda each, now: _logit(each.confidence.minimum), True),
    "first": (lambda each, now: _logit(each.confidence.first), True),
    "text": (lambda each, now: -math.sqrt(-min(_text(each), 0.0)), True),
    "line": (lambda each, now: _first_line(each), True),
    "place": (lambda each, now: _at_least(-9.0, each.confidence.place), True),
    "not_nothing": (lambda each, now: _negated(_at_least(-12.0, each.confidence.nothing)), True),
    "repeat": (lambda each, now: each.confidence.repeat or 0.0, True),
    "both": (lambda each, now: float(each.source == "both"), True),
    "doubts": (lambda each, now: _doubts(each), False),
    "tokens": (lambda each, now: _log(each.tokens), False),
    "ended": (lambda each, now: float(each.finish == "end"), False),
    # static: what can be told without a model
    "ahead": (_of_facts(lambda f: None if f.ahead is None else max(min(f.ahead, 6), -6)), False),
    "lines": (_of_facts(lambda f: _log(f.lines)), False),
    "removes": (_of_facts(lambda f: _log(f.removed)), False),
    "away": (_of_facts(lambda f: _log(f.away)), False),
    "after": (_of_facts(lambda f: _log(f.after)), False),
    "errors": (_of_facts(lambda f: None if f.errors is None else max(min(f.errors, 2), -2)), False),
    "unknown": (_of_facts(lambda f: min(f.unknown, 3)), False),
    "quoted": (_of_facts(lambda f: float(f.quoted)), False),
    "begun": (_of_facts(lambda f: None if f.begun is None else float(f.begun)), False),
    "above": (_of_facts(lambda f: _log(f.above)), False),
    "below": (_of_facts(lambda f: _log(f.below)), False),
    "again": (_of_facts(lambda f: float(f.again)), False),
    "undone": (_of_facts(lambda f: float(f.undone)), False),
    # the situation
    "rested": (lambda each, now: _log(now.since_edit_ms), False),
    "speed": (lambda each, now: _log(now.keys_per_s), False),
    "previous": (lambda each, now: now.previous, False),
    "acceptance": (lambda each, now: now.acceptance, False),
}

_SITUATION = ("rested", "speed", "previous", "acceptance")

#: Tasks whose answers are suggestions that a gate decides on.
GATED: tuple[Task, ...] = ("infill", "next_edit")

#: What is weighed for each task.
WEIGHED: dict[Task, tuple[str, ...]] = {
    "infill": (
        *("mean", "minimum", "first", "text", "line", "doubts", "tokens", "ended"),
        *("lines", "after", "begun", "above", "below", "errors", "unknown", "quoted", "again"),
        *_SITUATION,
    ),
    "next_edit": (
        *("mean", "minimum", "text", "place", "not_nothing", "repeat", "both", "doubts"),
        *("ahead", "lines", "removes", "away", "errors", "unknown", "again", "undone"),
        *_SITUATION,
    ),
}


def read(name: str, candidate: Candidate, now: Situation = UNKNOWN) -> float | None:
    """One feature of a candidate; None: nobody told."""
    return READINGS[name][0](candidate, now)
