"""Runs held against the accepted scores: ``redraft eval check``.

``baseline.json`` holds, for each way of asking, the accepted figures of at least 50 episodes with
their n and intervals and the command that made them. A score has fallen when the whole 95 %
interval of its difference lies below zero; the interval is put together from those of both figures
(the square-and-add method of Zou and Donner, https://doi.org/10.1002/sim.2779; for two shares with
Wilson's intervals that is Newcombe's). Runs nothing itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from redraft.model.errors import SettingsError

from ..figures.intervals import LEAST, Figure, unmeasured
from ..figures.resampling import Cell, figures
from ..figures.runs import RunFile
from ..figures.tables import Metric
from .build import NamedRun, draws_of
from .views import Benchmark, benchmark_of

ACCEPTED = Path(__file__).with_name("baseline.json")

FORMAT = 1
#: Settings that say who answered, not what was asked: they may differ from the accepted run's.
ANSWERED_BY = frozenset({"model", "model_sha256", "variant"})

Standing = Literal["holds", "better", "below", "too few", "missing"]
FAILING: frozenset[Standing] = frozenset({"below", "too few", "missing"})


@dataclass(frozen=True, slots=True)
class Line:
    """One score of one run."""

    run: str
    metric: Metric
    accepted: Figure
    found: Figure
    difference: Figure  # found - accepted
    verdict: Standing


Entry = dict[str, Any]


def read_accepted(path: Path = ACCEPTED) -> list[Entry]:
    """The accepted runs; none where there is no file.

    Raises:
        SettingsError: it is not a file of accepted scores.
    """
    if not path.exists():
        return []
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}, not {FORMAT}")
        entries: list[Entry] = content["entries"]
        for entry in entries:
            for score in entry["scores"].values():
                Figure(**score)
            dict(entry["asked"])
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"{path} is not a file of accepted scores ({type(error).__name__}: {error}). Make one "
            "with 'redraft eval check RUN --update'."
        ) from error
    return entries


def accept(runs: Sequence[NamedRun], path: Path = ACCEPTED, seed: int = 0) -> list[Entry]:
    """Write the runs' scores down as accepted, in place of those of the same way of asking.

    Raises:
        SettingsError: a run has no scores, or the file cannot be written.
    """
    entries = {_key(entry["asked"]): entry for entry in read_accepted(path)}
    made = []
    for run in runs:
        entry = _entry(run, seed)
        if not entry["scores"]:
            raise SettingsError(
                f"{run.name} holds no score to accept ({entry['episodes']} episodes, benchmark "
                f"{entry['asked'].get('benchmark')!r}). Name a finished run of infill, edits or "
                f"replay with at least {LEAST} episodes."
            )
        made.append(entry)
        entries[_key(entry["asked"])] = entry
    content = {"format": FORMAT, "entries": [entries[key] for key in sorted(entries)]}
    try:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}.") from error
    return made


def check(runs: Sequence[NamedRun], entries: Sequence[Entry], seed: int = 0) -> list[Line]:
    """Every accepted score beside the run's.

    Raises:
        SettingsError: nothing was accepted for a run's way of asking.
    """
    known = {_key(entry["asked"]): entry for entry in entries}
    lines = []
    for run in runs:
        entry = known.get(_key(asked(run.file)))
        if entry is None:
            raise SettingsError(_unknown(run, entries))
        metrics = {metric.name: metric for metric in _guarded(run)}
        found = scores(run, seed)
        for name, score in entry["scores"].items():
            accepted = Figure(**score)
            metric = metrics.get(name, Metric(name, "mean", name, digits=3))
            lines.append(_line(run.name, metric, accepted, found.get(name, unmeasured(0))))
    return lines


def _line(run: str, metric: Metric, accepted: Figure, found: Figure) -> Line:
    difference = difference_of(accepted, found)
    low, high = difference.low, difference.high
    verdict: Standing = "holds"
    if low is None or high is None:
        verdict = "missing"
    elif found.n < min(LEAST, accepted.n):
        verdict = "too few"
    elif high < 0:
        verdict = "below"
    elif low > 0:
        verdict = "better"
    return Line(run, metric, accepted, found, difference, verdict)


def difference_of(before: Figure, after: Figure) -> Figure:
    """``after`` - ``before`` with its 95 % interval, as if they were of different samples."""
    ends = before.value, before.low, before.high, after.value, after.low, after.high
    n = min(before.n, after.n)
    if None in ends:
        return unmeasured(n)
    a, a_low, a_high, b, b_low, b_high = (float(end) for end in ends if end is not None)
    down = math.hypot(b - b_low, a_high - a)
    up = math.hypot(b_high - b, a - a_low)
    return Figure(b - a, b - a - down, b - a + up, n)


def scores(run: NamedRun, seed: int = 0) -> dict[str, Figure]:
    """The guarded figures of a run, by name; only those that it has."""
    benchmark, metrics = _benchmark(run), _guarded(run)
    episodes = benchmark.grouped(run.episodes)
    everything = np.ones(len(episodes), np.bool_)
    draws = draws_of(benchmark, episodes, seed)
    found = figures(episodes, [Cell(metric, everything) for metric in metrics], draws)
    return {m.name: one for m, one in zip(metrics, found, strict=True) if one.measured}


def _benchmark(run: NamedRun) -> Benchmark:
    return benchmark_of(str(run.file.settings.get("benchmark", "")), run.episodes)


def _guarded(run: NamedRun) -> list[Metric]:
    benchmark = _benchmark(run)
    return [metric for metric in benchmark.metrics if metric.field in benchmark.guarded]


def asked(run: RunFile) -> dict[str, Any]:
    """What was asked and how, whoever answered."""
    return {name: value for name, value in run.settings.items() if name not in ANSWERED_BY}


def _key(settings: dict[str, Any]) -> str:
    told = {name: value for name, value in settings.items() if value}  # a later setting is off
    return json.dumps(told, sort_keys=True)


def _entry(run: NamedRun, seed: int) -> Entry:
    settings, machine = run.file.settings, run.file.machine
    return {
        "asked": asked(run.file),
        "model": settings.get("model", ""),
        "variant": settings.get("variant", ""),
        "command": machine.get("command", ""),
        "commit": machine.get("commit", ""),
        "date": machine.get("date", ""),
        "episodes": len(run.episodes),
        "scores": {
            name: asdict(figure) for name, figure in scores(run, seed).items() if figure.n >= LEAST
        },
    }


def _unknown(run: NamedRun, entries: Sequence[Entry]) -> str:
    """Why a run has nothing to be held against, and what comes nearest."""
    mine = asked(run.file)
    near = [
        sorted(k for k in mine.keys() | e["asked"].keys() if mine.get(k) != e["asked"].get(k))
        for e in entries
        if e["asked"].get("benchmark") == mine.get("benchmark")
    ]
    nearest = min(near, key=len, default=[])
    differs = f" The nearest differs in {', '.join(nearest)}." if nearest else ""
    return (
        f"No scores have been accepted for the way in which {run.name} was asked.{differs} Accept "
        "its own with --update, or make it as the accepted run was made."
    )
