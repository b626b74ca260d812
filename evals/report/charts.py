"""The drawings of a report as SVG: curves, reliability, latency, intervals. Static, no script.

Colours are classes (``c0`` … ``c7``), which the page's style sheet gives for light and dark. All
text is escaped. Knows nothing of runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from ..figures.intervals import Figure
from .curves import Calibration, LatencyCurve, Point

COLOURS = 8
WIDTH, HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 40
FEW = 5  # candidates of a bin of confidence, under which no line runs through it

Scale = Callable[[float], float]


def colour(run: int) -> str:
    """The class of a run's colour."""
    return f"c{run % COLOURS}"


def curves(runs: Sequence[Sequence[Point]], names: Sequence[str]) -> str:
    """Acceptance of what is shown against how much is shown; "" where nothing is known."""
    if not any(runs):
        return ""
    x = _scale(0, 1, LEFT, WIDTH - RIGHT)
    top = _round_up(max(point.right for run in runs for point in _steady(run)))
    y = _scale(0, top, HEIGHT - BOTTOM, TOP)
    parts = list(_axes(x, y, _percents(1), _percents(top), "shown, of all moments", "right"))
    for number, run in enumerate(runs):
        points = _steady(run)
        if not points:
            continue
        edge = [(x(p.shown), y(min(p.high, top))) for p in points]
        edge += [(x(p.shown), y(p.low)) for p in reversed(points)]
        parts.append(f'<polygon class="band {colour(number)}" points="{_points(edge)}"/>')
    for number, run in enumerate(runs):
        points = _steady(run)
        line = [(x(p.shown), y(p.right)) for p in points]
        parts.append(f'<polyline class="line {colour(number)}" points="{_points(line)}"/>')
        for p in points:
            told = (
                f"{names[number]}: shown at {p.threshold:.2f} or surer\n{p.n} shown "
                f"({p.shown:.0%}), right {p.right:.1%} [{p.low:.1%}, {p.high:.1%}]"
            )
            parts.append(_spot(x(p.shown), y(p.right), 7, number, told, "hit"))
        if points:
            parts.append(_spot(x(points[-1].shown), y(points[-1].right), 3.5, number, "all shown"))
    return _svg(parts, "Acceptance against shown rate")


def utilities(runs: Sequence[Sequence[Point]], names: Sequence[str]) -> str:
    """What showing so much is worth, a moment; "" where nothing is known."""
    told = [[(p, p.shown * (p.right - 0.25)) for p in _steady(run)] for run in runs]
    worths = [worth for run in told for _, worth in run]
    if not worths:
        return ""
    low, high = min(0.0, *worths), max(0.01, *worths)
    x, y = _scale(0, 1, LEFT, WIDTH - RIGHT), _scale(low, high, HEIGHT - BOTTOM, TOP)
    ticks = [(low + (high - low) * at / 4, f"{low + (high - low) * at / 4:.2f}") for at in range(5)]
    parts = list(_axes(x, y, _percents(1), ticks, "shown, of all moments", "utility"))
    for number, run in enumerate(told):
        line = [(x(p.shown), y(worth)) for p, worth in run]
        parts.append(f'<polyline class="line {colour(number)}" points="{_points(line)}"/>')
        for p, worth in run:
            said = f"{names[number]}: shown at {p.threshold:.2f} or surer\nutility {worth:+.3f}"
            parts.append(_spot(x(p.shown), y(worth), 7, number, said, "hit"))
    return _svg(parts, "Utility against shown rate")


def bar(value: float, most: float) -> str:
    """A value of a list as a bar; what is below nought has none."""
    width = 118 * max(value, 0.0) / most if most > 0 else 0.0
    return (
        '<svg class="bar" viewBox="0 0 120 8" aria-hidden="true"><line class="span c0" x1="1" '
        f'y1="4" x2="{1 + width:.1f}" y2="4"/></svg>'
    )


def _steady(run: Sequence[Point]) -> list[Point]:
    """Without the first few candidates, whose share jumps about."""
    most = max((point.n for point in run), default=0)
    return [point for point in run if point.n >= min(10, most)]


def reliability(runs: Sequence[Calibration | None], names: Sequence[str]) -> str:
    """How often what is so sure is right; the diagonal is perfect."""
    if not any(runs):
        return ""
    x, y = _scale(0, 1, LEFT, WIDTH - RIGHT), _scale(0, 1, HEIGHT - BOTTOM, TOP)
    parts = list(_axes(x, y, _percents(1), _percents(1), "confidence", "right"))
    parts.append(f'<line class="ideal" x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>')
    for number, run in enumerate(runs):
        if run is None:
            continue
        name = colour(number)
        line = [(x(one.said), y(one.right)) for one in run.bins if one.n >= FEW]
        parts.append(f'<polyline class="line {name}" points="{_points(line)}"/>')
        for one in run.bins:
            at = f"{x(one.said):.1f}"
            if one.n >= FEW:
                parts.append(
                    f'<line class="whisker {name}" x1="{at}" y1="{y(one.low):.1f}" x2="{at}" '
                    f'y2="{y(one.high):.1f}"/>'
                )
            told = (
                f"{names[number]}: {one.n} about {one.said:.0%} sure\nright {one.right:.1%} "
                f"[{one.low:.1%}, {one.high:.1%}]"
            )
            size = 2 + 6 * math.sqrt(one.n / run.n)
            kind = "spot" if one.n >= FEW else "spot faint"
            parts.append(_spot(x(one.said), y(one.right), size, number, told, kind))
    return _svg(parts, "Reliability: confidence against how often it is right")


def latencies(runs: Sequence[LatencyCurve | None], names: Sequence[str]) -> str:
    """The share of answers that took at most so long; time is logarithmic."""
    timed = [run for run in runs if run is not None]
    if not timed:
        return ""
    low = max(0.1, min(run.steps[0][0] for run in timed))
    high = max(low * 2, max(run.steps[-1][0] for run in timed))
    logs = _scale(math.log10(low), math.log10(high), LEFT, WIDTH - RIGHT)

    def x(ms: float) -> float:
        return logs(math.log10(max(ms, low)))

    y = _scale(0, 1, HEIGHT - BOTTOM, TOP)
    parts = list(_axes(x, y, _decades(low, high), _percents(1), "ms, logarithmic", "of answers"))
    for number, run in enumerate(runs):
        if run is None:
            continue
        line = [(x(ms), y(at)) for ms, at in run.steps]
        parts.append(f'<polyline class="line {colour(number)}" points="{_points(line)}"/>')
        for at, ms in ((0.5, run.p50), (0.95, run.p95)):
            told = f"{names[number]}: {at:.0%} within {ms:,.0f} ms"
            parts.append(_spot(x(ms), y(at), 3.5, number, told))
    return _svg(parts, "Latency: share of answers within a time")


def interval(figure: Figure, low: float, high: float, run: int) -> str:
    """A figure's interval as a small bar on a scale that its row shares."""
    if figure.value is None or figure.low is None or figure.high is None or high <= low:
        return ""
    x = _scale(low, high, 2, 118)
    return (
        f'<svg class="bar" viewBox="0 0 120 8" aria-hidden="true"><line class="rail" x1="2" y1="4" '
        f'x2="118" y2="4"/><line class="span {colour(run)}" x1="{x(figure.low):.1f}" y1="4" '
        f'x2="{x(figure.high):.1f}" y2="4"/><circle class="spot {colour(run)}" '
        f'cx="{x(figure.value):.1f}" cy="4" r="3"/></svg>'
    )


# --- pieces ---------------------------------------------------------------------------------------


def _svg(parts: Sequence[str], title: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )


def _axes(
    x: Scale,
    y: Scale,
    x_ticks: Sequence[tuple[float, str]],
    y_ticks: Sequence[tuple[float, str]],
    x_name: str,
    y_name: str,
) -> Iterator[str]:
    base, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value, text in y_ticks:
        at = f"{y(value):.1f}"
        yield f'<line class="grid" x1="{LEFT}" y1="{at}" x2="{end}" y2="{at}"/>'
        yield _label("tick", LEFT - 6, y(value) + 3.5, "end", text)
    for value, text in x_ticks:
        at = f"{x(value):.1f}"
        yield f'<line class="grid" x1="{at}" y1="{TOP}" x2="{at}" y2="{base}"/>'
        yield _label("tick", x(value), base + 15, "middle", text)
    yield _label("name", (LEFT + end) / 2, HEIGHT - 6, "middle", x_name)
    yield _label("name", LEFT + 6, TOP + 11, "start", y_name)


def _label(kind: str, x: float, y: float, anchor: str, text: str) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _spot(x: float, y: float, size: float, run: int, told: str, kind: str = "spot") -> str:
    return (
        f'<circle class="{kind} {colour(run)}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}">'
        f"<title>{escape(told)}</title></circle>"
    )


def _points(found: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in found)


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    factor = (end - start) / (high - low)
    return lambda value: start + (value - low) * factor


def _round_up(share: float) -> float:
    """The next fifth or tenth above, for an axis."""
    step = 0.1 if share <= 0.5 else 0.2
    return min(1.0, max(step, math.ceil(share / step - 1e-9) * step))


def _percents(top: float) -> list[tuple[float, str]]:
    step = 0.2 if top > 0.5 else 0.1 if top > 0.2 else 0.05
    return [(step * i, f"{step * i:.0%}") for i in range(round(top / step) + 1)]


def _decades(low: float, high: float) -> list[tuple[float, str]]:
    """1, 2 and 5 of each power of ten within the range; fewer where they are many."""
    steps = (1, 2, 5) if math.log10(high / low) < 3 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return [(tick, f"{tick:,.10g}") for tick in ticks if low <= tick <= high]
