"""The gate: how likely a candidate is to be kept, learned from outcomes; shipped, or personal.

For each task a head weighs the features of a candidate with two lists of weights. ``chance`` is the
probability that the candidate is kept (Bayesian logistic regression). ``score`` is the same moved
by KTO (``model/training/gate/kto.py``) and decides: a candidate needs the threshold of the user's
eagerness. ``gate.json`` is the shipped gate; a file holds a gate and its card.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SettingsError
from ..records import STANDARD, Candidate, Task
from .features import FEATURES, features_of

SHIPPED = Path(__file__).parent / "gate.json"

#: Raised whenever a feature or a weight changes its meaning.
FORMAT = 1

_LARGEST = 1e6  # of any number in a file
_LISTS = ("centre", "scale", "chance", "policy", "variance")


class Weighed(NamedTuple):
    """Both numbers that a gate gives a candidate, 0 … 1."""

    score: float  # compared with the threshold
    chance: float  # probability that it is kept


@dataclass(frozen=True, slots=True)
class Head:
    """The weights of one task's features, which are standardised.

    ``centre`` and ``scale`` are as long as ``features``, the weights one longer: the intercept
    comes first.
    """

    features: tuple[str, ...]
    centre: tuple[float, ...]  # mean of a feature
    scale: tuple[float, ...]  # standard deviation of a feature, above 0
    chance: tuple[float, ...]  # log-odds
    policy: tuple[float, ...]  # log-odds
    variance: tuple[float, ...]  # of the weights ``chance``

    def row(self, features: Mapping[str, float]) -> list[float]:
        """Return the standardised features behind a 1. Missing features are 0, the mean."""
        values = (features.get(name) for name in self.features)
        return [1.0, *map(_standardised, values, self.centre, self.scale)]

    def weigh(self, row: Sequence[float]) -> Weighed:
        """Return what the head gives a row of :meth:`row`."""
        return Weighed(_sigmoid(_dot(self.policy, row)), _sigmoid(_dot(self.chance, row)))


@dataclass(frozen=True, slots=True)
class Gate:
    """The heads of both tasks."""

    name: str  # for people and recordings: "shipped 1", "yours, 312 outcomes"
    heads: Mapping[Task, Head]

    def weigh(
        self, candidate: Candidate, task: Task, pace: Mapping[str, float] | None = None
    ) -> Weighed:
        """Return score and chance of a candidate.

        Args:
            pace: features of how the user types and accepts, if known.
        """
        head = self.heads[task]
        weighed = head.weigh(head.row(features_of(candidate, pace)))
        return weighed._replace(score=1.0) if candidate.family == STANDARD else weighed

    def score(
        self, candidate: Candidate, task: Task, pace: Mapping[str, float] | None = None
    ) -> float:
        """Return what is compared with the threshold, 0 … 1; see :meth:`weigh`."""
        return self.weigh(candidate, task, pace).score


def _standardised(value: float | None, centre: float, scale: float) -> float:
    return 0.0 if value is None else (value - centre) / scale


def _dot(weights: Sequence[float], row: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, row, strict=True))


def _sigmoid(log_odds: float) -> float:
    if log_odds < 0:
        return 1 - _sigmoid(-log_odds)
    return 1 / (1 + math.exp(-log_odds))


# --- files ---------------------------------------------------------------------------------------


@cache
def load_shipped() -> Gate:
    """Return the gate that comes with Redraft."""
    return read_gate(SHIPPED)[0]


def is_outdated(personal: Gate) -> bool:
    """Return whether a personal gate weighs other features than the shipped one.

    Then another version fitted it, from a gate that no longer ships.
    """
    heads = load_shipped().heads
    return any(head.features != heads[task].features for task, head in personal.heads.items())


def read_gate(path: Path) -> tuple[Gate, dict[str, Any]]:
    """Return a gate and its card, which says what it was fitted on.

    Raises:
        SettingsError: the file is missing or cannot be used; says why and what to do.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}, not {FORMAT}")
        heads = {task: _head(data["heads"][task]) for task in FEATURES}
        return Gate(str(data["name"]), heads), dict(data["card"])
    except OSError as error:
        raise SettingsError(f"The gate {path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SettingsError(
            f"{path} is no gate that this version can use ({type(error).__name__}: {error}). "
            "'redraft gate reset' deletes it, 'redraft gate fit' makes it anew."
        ) from error


def _head(data: dict[str, Any]) -> Head:
    features = tuple(map(str, data["features"]))
    unknown = set(features).difference(*FEATURES.values())
    if unknown:
        raise ValueError(f"unknown feature {min(unknown)!r}")
    lists = {name: tuple(map(_number, data[name])) for name in _LISTS}
    for name, values in lists.items():
        wanted = len(features) + (name not in ("centre", "scale"))
        if len(values) != wanted:
            raise ValueError(f"{len(values)} numbers in {name!r}, not {wanted}")
    if min(lists["scale"], default=1.0) <= 0 or min(lists["variance"]) < 0:
        raise ValueError("a scale or a variance below 0")
    return Head(features, **lists)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    if not math.isfinite(value) or abs(value) > _LARGEST:
        raise ValueError(f"{value!r} is too large")
    return float(value)


def write_gate(path: Path, gate: Gate, card: dict[str, Any]) -> None:
    """Write a gate. A reader finds either this gate or the one before, never a part.

    Raises:
        SettingsError: the file cannot be written.
    """
    heads = {
        task: {"features": list(head.features)}
        | {name: [float(f"{each:.6g}") for each in getattr(head, name)] for name in _LISTS}
        for task, head in gate.heads.items()
    }
    data = {"format": FORMAT, "name": gate.name, "card": card, "heads": heads}
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise SettingsError(f"The gate {path} cannot be written: {error.strerror}.") from error
