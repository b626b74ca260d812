"""A report on runs: every figure with its interval, side by side. ``redraft eval report``.

Runs of one benchmark over one source make a section; runs of one section are columns. What comes
out is plain data, written beside the page as JSON. Knows nothing of HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from redraft.model.errors import SettingsError

from ..figures.compare import Difference, compare
from ..figures.intervals import LEAST, Figure
from ..figures.resampling import Cell, Resampling, draws_over, figures
from ..figures.runs import Episode, RunFile
from ..figures.tables import Metric, order_of
from .curves import (
    Calibration,
    LatencyCurve,
    Point,
    calibration,
    spread,
    threshold_curve,
)
from .views import Benchmark, View, benchmark_of


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run, and what the report calls it."""

    name: str
    file: RunFile

    @property
    def episodes(self) -> list[Episode]:
        return list(self.file.episodes.values())


@dataclass(frozen=True, slots=True)
class ReportPart:
    """The episodes parted in one way."""

    title: str
    metrics: tuple[Metric, ...]
    labels: tuple[str, ...]
    #: By label, metric and run.
    figures: tuple[tuple[tuple[Figure, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run measured, besides its tables."""

    views: tuple[View, ...]  # as the episodes
    curve: tuple[Point, ...]
    calibration: Calibration | None
    stages: dict[str, LatencyCurve]  # the whole first
    by_episode: bool  # too few groups: intervals resample episodes


@dataclass(frozen=True, slots=True)
class Section:
    """Runs of one benchmark over one source, side by side."""

    benchmark: Benchmark
    source: str
    runs: tuple[NamedRun, ...]
    measured: tuple[Measured, ...]
    metrics: tuple[Metric, ...]
    overall: tuple[tuple[Figure, ...], ...]  # by metric and run
    parts: tuple[ReportPart, ...]
    #: Each further run against the first: episodes in common, fields. None: cannot be compared.
    differences: tuple[tuple[int, tuple[Difference, ...]] | None, ...]
    bars: tuple[tuple[str, float], ...] = ()  # of a gate: what each feature adds to the ranking


def build(runs: Sequence[NamedRun], seed: int = 0) -> list[Section]:
    """The sections, in the order in which their first runs come.

    Raises:
        SettingsError: no run is given.
    """
    if not runs:
        raise SettingsError("Name at least one file that 'redraft eval … --out' wrote.")
    held: dict[tuple[str, str, bool], list[NamedRun]] = {}
    for run in runs:
        settings = run.file.settings
        name, source = str(settings.get("benchmark", "?")), str(settings.get("source", ""))
        for simulated, part in _split(run):
            held.setdefault((name, source, simulated), []).append(part)
    return [_section(name, source, tuple(some), seed) for (name, source, _), some in held.items()]


def _split(run: NamedRun) -> list[tuple[bool, NamedRun]]:
    """A replay's recordings of people and its streams made from commits are never told together."""
    parts: dict[bool, dict[str, Episode]] = {}
    for name, each in run.file.episodes.items():
        parts.setdefault(bool(each.get("simulated")), {})[name] = each
    return [
        (simulated, NamedRun(run.name, replace(run.file, episodes=some)))
        for simulated, some in (parts or {False: {}}).items()
    ]


def _section(name: str, source: str, runs: tuple[NamedRun, ...], seed: int) -> Section:
    every = [each for run in runs for each in run.episodes]
    benchmark = benchmark_of(name, every)
    metrics = tuple(metric for metric in benchmark.metrics if _known(metric, every))
    measured, overall, parted = [], [], []
    labels = [_labels(label, every) for _, label in benchmark.parts]
    for run in runs:
        draws = draws_of(benchmark, run.episodes, seed)
        measured.append(_measured(benchmark, run.episodes, draws))
        whole, by_part = _tables(benchmark, metrics, labels, run.episodes, draws)
        overall.append(whole)
        parted.append(by_part)
    return Section(
        benchmark, source, runs, tuple(measured), metrics,
        overall=tuple(zip(*overall, strict=True)),
        parts=tuple(_parts(benchmark, metrics, labels, parted)),
        differences=tuple(_against(runs[0], run, seed) for run in runs[1:]),
    )  # fmt: skip


def headlines(section: Section) -> list[str]:
    """What each run found, in one sentence for people."""
    title = section.benchmark.title or str(section.runs[0].file.settings.get("benchmark", "run"))
    return [
        f"{title}, {run.name}: {_headline(measured.views)}"
        for run, measured in zip(section.runs, section.measured, strict=True)
    ]


def _headline(views: Sequence[View]) -> str:
    """Counts and shares; the figures below have the intervals."""
    if not views:
        return "no episode yet"
    shown = [view for view in views if view.shown]
    judged = [view for view in shown if view.right is not None]
    said = f"something is shown at {_of(len(shown), len(views), 'moments')}"
    if not judged:
        return f"{said}; none of it can be judged"
    right = sum(bool(view.right) for view in judged)
    return f"{said}; right are {_of(right, len(judged), 'that can be judged')}"


def _of(count: int, total: int, what: str) -> str:
    return f"{count:,} of {total:,} {what} ({count / total:.0%})"


def draws_of(benchmark: Benchmark, episodes: Sequence[Episode], seed: int) -> Resampling:
    """By the benchmark's groups."""
    return draws_over(benchmark.grouped(episodes), seed)


def _known(metric: Metric, episodes: Sequence[Episode]) -> bool:
    return any(each.get(metric.field) is not None for each in episodes)


def _labels(label: Any, episodes: Sequence[Episode]) -> tuple[str, ...]:
    return tuple(sorted({label(each) for each in episodes}, key=order_of))


def _tables(
    benchmark: Benchmark,
    metrics: Sequence[Metric],
    labels: Sequence[tuple[str, ...]],
    episodes: Sequence[Episode],
    draws: Resampling,
) -> tuple[tuple[Figure, ...], list[list[tuple[Figure, ...]]]]:
    """Figures over all episodes, and by way of parting and label: all of one run at once."""
    everything = np.ones(len(episodes), np.bool_)
    cells = [Cell(metric, everything) for metric in metrics]
    few = _by_part(benchmark, metrics)
    for (_, label), names in zip(benchmark.parts, labels, strict=True):
        found = np.asarray([label(each) for each in episodes])
        cells += [Cell(metric, found == name, LEAST) for name in names for metric in few]
    found_figures = iter(figures(episodes, cells, draws))
    whole = tuple(next(found_figures) for _ in metrics)
    parted = [[tuple(next(found_figures) for _ in few) for _ in names] for names in labels]
    return whole, parted


def _by_part(benchmark: Benchmark, metrics: Sequence[Metric]) -> list[Metric]:
    order = {name: place for place, name in enumerate(benchmark.by_part)}
    return sorted((m for m in metrics if m.field in order), key=lambda m: order[m.field])


def _parts(
    benchmark: Benchmark,
    metrics: Sequence[Metric],
    labels: Sequence[tuple[str, ...]],
    parted: Sequence[list[list[tuple[Figure, ...]]]],
) -> list[ReportPart]:
    few = tuple(_by_part(benchmark, metrics))
    return [
        ReportPart(
            title, few, names,
            tuple(
                tuple(zip(*(run[way][row] for run in parted), strict=True))
                for row in range(len(names))
            ),
        )
        for way, ((title, _), names) in enumerate(zip(benchmark.parts, labels, strict=True))
        if len(names) > 1
    ]  # fmt: skip


def _measured(benchmark: Benchmark, episodes: Sequence[Episode], draws: Resampling) -> Measured:
    views = tuple(benchmark.view(each) for each in episodes)
    scores, right = [view.score for view in views], [view.right for view in views]
    stages = {}
    for stage in benchmark.stages:
        times = [each[stage] for each in episodes if isinstance(each.get(stage), int | float)]
        if any(times) and (found := spread(times)) is not None:  # a rule takes no time
            stages[stage.removesuffix("_ms")] = found
    return Measured(
        views,
        tuple(threshold_curve(scores, right, draws)),
        calibration(scores, right),
        stages,
        draws.by_episode,
    )


def _against(
    first: NamedRun, other: NamedRun, seed: int
) -> tuple[int, tuple[Difference, ...]] | None:
    try:
        common, found = compare(first.file, other.file, seed)
    except SettingsError:  # other samples, or nothing in common
        return None
    return common, tuple(found)


# --- as JSON --------------------------------------------------------------------------------------


def as_json(sections: Sequence[Section]) -> dict[str, Any]:
    """What the page shows, without its episodes: those are in the runs' own files."""
    return {"format": 1, "sections": [_section_json(section) for section in sections]}


def _section_json(section: Section) -> dict[str, Any]:
    names = [run.name for run in section.runs]
    return {
        "benchmark": section.benchmark.title,
        "source": section.source,
        "right": section.benchmark.right,
        "runs": [
            {
                "name": run.name,
                "episodes": len(run.episodes),
                "settings": run.file.settings,
                "machine": run.file.machine,
                "intervals": "by episode" if measured.by_episode else "by group",
                "curve": [asdict(point) for point in measured.curve],
                "calibration": asdict(measured.calibration) if measured.calibration else None,
                "latency_ms": {
                    name: {"p50": one.p50, "p95": one.p95, "p99": one.p99, "n": one.n}
                    for name, one in measured.stages.items()
                },
            }
            for run, measured in zip(section.runs, section.measured, strict=True)
        ],
        "figures": {
            metric.name: _by_run(names, row)
            for metric, row in zip(section.metrics, section.overall, strict=True)
        },
        "parts": {part.title: _part_json(part, names) for part in section.parts},
        "differences": {
            run.name: {"episodes": found[0], "fields": [asdict(one) for one in found[1]]}
            for run, found in zip(section.runs[1:], section.differences, strict=True)
            if found is not None
        },
    }


def _part_json(part: ReportPart, names: Sequence[str]) -> dict[str, Any]:
    return {
        label: {
            metric.name: _by_run(names, row) for metric, row in zip(part.metrics, rows, strict=True)
        }
        for label, rows in zip(part.labels, part.figures, strict=True)
    }


def _by_run(names: Sequence[str], found: Sequence[Figure]) -> dict[str, Any]:
    return {name: asdict(figure) for name, figure in zip(names, found, strict=True)}
