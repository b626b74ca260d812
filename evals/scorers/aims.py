"""Aims of performance, each with what a bench measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..example import Row

#: The prompt budget at which aims are compared, tokens; another one counts if it was not measured.
BUDGET = 1_024
#: Memory of the process with the model, MB, by the beginning of the model's name.
MEMORY_MB = {"redraft-0.5b": 900.0, "redraft-1.5b": 2_200.0}

READ_AHEAD = "first next edit, read ahead"

Measure = Callable[[Sequence[Row]], float | None]


@dataclass(frozen=True, slots=True)
class Aim:
    """Aim: what is measured of which examples, and the limit."""

    name: str
    kind: str
    measure: Measure
    limit: float
    is_most: bool = True  # the limit is the most that is good; else the least


@dataclass(frozen=True, slots=True)
class AimResult:
    """Aim with what was measured."""

    name: str
    value: float
    limit: float
    is_most: bool

    @property
    def is_met(self) -> bool:
        return self.value <= self.limit if self.is_most else self.value >= self.limit


def _at(field: str, share: float = 0.5) -> Measure:
    def measure(rows: Sequence[Row]) -> float | None:
        values = [float(each[field]) for each in rows if each.get(field) is not None]
        return float(np.quantile(values, share)) if values else None

    return measure


def _ratio(field: str, by: str) -> Measure:
    def measure(rows: Sequence[Row]) -> float | None:
        values = [each[field] / each[by] for each in rows if each.get(by)]
        return float(np.median(values)) if values else None

    return measure


def _tokens_per_pass(rows: Sequence[Row]) -> float | None:
    steps = sum(each["steps"] for each in rows)
    return sum(each["tokens"] for each in rows) / steps if steps else None


def _reused(rows: Sequence[Row]) -> float | None:
    asked = (each for each in rows if each.get("prompt_tokens"))
    shares = [1 - each["recomputed"] / each["prompt_tokens"] for each in asked]
    return float(np.median(shares)) if shares else None


AIMS = (
    Aim("one line, prompt cached: ms", "warm", _at("total_ms"), 100),
    Aim("ghost text at a key: ms", "ghost text", _at("total_ms"), 90),
    Aim("first next edit at a place, nothing read: ms", "first next edit", _at("total_ms"), 800),
    Aim("first next edit, read ahead: ms", "first next edit, read ahead", _at("total_ms"), 350),
    Aim(
        "its prompt read before: share", "first next edit, read ahead", _reused, 0.6, is_most=False
    ),
    Aim("later next edit at a place: ms", "next edit", _at("total_ms"), 300),
    Aim("its prompt read before: share", "next edit", _reused, 0.75, is_most=False),
    Aim("next edit by a gesture: ms", "next edit by gesture", _at("total_ms"), 400),
    Aim("a region scored ÷ read", "region", _at("ratio"), 1.3),
    Aim("tokens per pass of infills", "warm", _tokens_per_pass, 3, is_most=False),
    Aim("tokens per pass of next edits", "next edit", _tokens_per_pass, 5, is_most=False),
    Aim("int8 ÷ float32, time of a product", "product int8", _ratio("product_ms", "fp32_ms"), 1),
    Aim("from the command to an answer: s", "start", _at("start_s"), 2),
    Aim("a key without a model: ms", "server", _at("wall_ms"), 1),
    Aim("a key without a model: ms, p99", "server", _at("wall_ms", 0.99), 5),
)


def results(rows: Sequence[Row], model: str) -> Iterator[AimResult]:
    """Yield the aims that ``rows`` of a bench of ``model`` measured."""
    memory = next((mb for name, mb in MEMORY_MB.items() if model.startswith(name)), None)
    aims = [*AIMS]
    if memory is not None:
        aims.append(Aim("memory after typing: MB", "machine", _at("end_mb"), memory))
    for aim in aims:
        found = [each for each in rows if each["kind"] == aim.kind]
        at_budget = [each for each in found if each.get("context") == str(BUDGET)]
        value = aim.measure(at_budget or found)
        if value is not None:
            yield AimResult(aim.name, value, aim.limit, aim.is_most)
    recomputed = {
        kind: [each["recomputed"] for each in rows if each["kind"] == kind]
        for kind in ("next edit", "next edit by gesture")
    }
    if all(recomputed.values()):
        key, gesture = (statistics.median(each) for each in recomputed.values())
        ratio = gesture / max(key, 1)
        yield AimResult("prompt computed again by a gesture ÷ by a key", ratio, 1, is_most=True)
