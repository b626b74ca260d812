"""A gate on disk: one small JSON file, its card inside. ``model/edits/gate.json`` is ours.

Read with care: one's own may be torn, of another version, or somebody else's. Knows nothing of how
a gate is fitted.
"""

from __future__ import annotations

import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from .gate import Gate, Head
from .gate_features import GATED, READINGS

SHIPPED = Path(__file__).parent / "gate.json"

#: Raised whenever a feature or a weight changes its meaning.
FORMAT = 1
_LARGEST = 1e6  # of any number in it
_LISTS = ("centre", "scale", "chance", "policy", "variance")


@cache
def shipped() -> Gate:
    """The gate that comes with Redraft."""
    return read_gate(SHIPPED)[0]


def is_outdated(own: Gate) -> bool:
    """Return whether a personal gate weighs other features than the shipped one.

    Then another version fitted it, from a gate that no longer ships.
    """
    return any(head.features != shipped().heads[task].features for task, head in own.heads.items())


def read_gate(path: Path) -> tuple[Gate, dict[str, Any]]:
    """A gate and its card: who made it of what.

    Raises:
        SettingsError: it is not there, or cannot be used; says why and what to do.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise ValueError(f"format {told['format']!r}, not {FORMAT}")
        heads = {task: _head(told["heads"][task]) for task in GATED}
        return Gate(str(told["name"]), heads), dict(told["card"])
    except OSError as error:
        raise SettingsError(f"The gate {path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SettingsError(
            f"{path} is no gate that this version can use ({type(error).__name__}: {error}). "
            "'redraft gate reset' deletes it, 'redraft gate fit' makes it anew."
        ) from error


def _head(told: dict[str, Any]) -> Head:
    features = tuple(map(str, told["features"]))
    unknown = [name for name in features if name not in READINGS]
    if unknown:
        raise ValueError(f"unknown feature {unknown[0]!r}")
    lists = {name: tuple(map(_number, told[name])) for name in _LISTS}
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
    """All or nothing: whoever reads it meanwhile finds the one before.

    Raises:
        SettingsError: it cannot be written.
    """
    heads = {
        task: {"features": list(head.features)}
        | {name: [float(f"{each:.6g}") for each in getattr(head, name)] for name in _LISTS}
        for task, head in gate.heads.items()
    }
    told = {"format": FORMAT, "name": gate.name, "card": card, "heads": heads}
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise SettingsError(f"The gate {path} cannot be written: {error.strerror}.") from error
