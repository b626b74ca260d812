"""HTML page about runs: tables, charts, differences and examples, without scripts."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment
from markupsafe import Markup
from redraft.model.errors import InstallError, SettingsError
from redraft.model.release import how_to_install

from .compare import Difference, compare
from .example import Example, Row
from .pipeline import TABLES
from .run import Run
from .tables import Metric, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXAMPLES = 40  # of each run, on the page
_AROUND = 8  # lines of a text that are shown on each side of the cursor
_SIZE = 6.4, 3.2  # inches


@dataclass(frozen=True, slots=True)
class _Shown:
    """Run as the template reads it."""

    name: str
    run: Run
    tables: list[Table]

    def figure(self, metric: Metric) -> tuple[float, float, float] | None:
        """Return a figure over all examples with its interval."""
        found = self.tables[0].rows[0].figures[metric.name]
        if found.value is None or found.low is None or found.high is None:
            return None
        return found.value, found.low, found.high


def page(runs: Mapping[str, Run], seed: int = 0) -> str:
    """Return the page about ``runs``, by name. The first is compared with each of the others.

    Raises:
        SettingsError: a run has no tables.
        InstallError: matplotlib is not installed.
    """
    shown = [_Shown(name, run, _tables(name, run, seed)) for name, run in runs.items()]
    source = (files("redraft.evals") / "report.html.j2").read_text(encoding="utf-8")
    template = Environment(autoescape=True).from_string(source)
    return template.render(
        runs=shown,
        charts=_charts(shown),
        differences=_differences(shown, seed),
        facts=_facts,
        most=EXAMPLES,
    )


def _tables(name: str, run: Run, seed: int) -> list[Table]:
    make = TABLES.get(run.spec.task)
    if make is None or not run.examples:
        raise SettingsError(
            f"{name} holds no figures to draw: it is a run of {run.spec.task} with "
            f"{len(run.examples)} examples."
        )
    return list(make(run.rows(), seed))


def _differences(shown: Sequence[_Shown], seed: int) -> list[tuple[str, list[Difference]]]:
    first, *others = shown
    return [
        (f"{other.name} less {first.name}", compare(first.run, other.run, seed)[1])
        for other in others
        if _asked_alike(other.run, first.run)
    ]


def _asked_alike(a: Run, b: Run) -> bool:
    return (a.spec.task, a.spec.sample) == (b.spec.task, b.spec.sample)


# --- examples ------------------------------------------------------------------------------------


def _facts(example: Example) -> list[tuple[str, str]]:
    """Return what the page says of an example, each with its name."""
    moment, prediction, truth = example.moment, example.prediction, example.truth
    found: list[tuple[str, str]] = []
    if moment.text:
        found.append(("text", _excerpt(moment.text, moment.cursor)))
    if truth.texts:
        wanted = example.middle if example.task == "infill" else _written(example)
        found.append(("wanted", wanted))
    objections = example.decision.objections if example.decision else ()
    for at, each in enumerate(prediction.candidates if prediction else ()):
        why = objections[at] if at < len(objections) else ""
        found.append((f"candidate {at + 1}{f', not shown: {why}' if why else ''}", each.text))
    if prediction and prediction.reason:
        found.append(("no candidate", prediction.reason))
    found.append(("score", json.dumps(_short(example.score or {}), indent=1, ensure_ascii=False)))
    return found


def _excerpt(text: str, cursor: int) -> str:
    """Return the lines around the cursor, which is marked."""
    above, below = text[:cursor].split("\n"), text[cursor:].split("\n")
    return "\n".join(above[-_AROUND - 1 :]) + "‸" + "\n".join(below[: _AROUND + 1])


def _written(example: Example) -> str:
    from .scorers.next_edit_scores import lines_written

    return "\n".join(lines_written(example.moment.text, example.truth.texts[0]))


def _short(score: Row) -> dict[str, Any]:
    return {name: value for name, value in score.items() if value is not None}


# --- charts --------------------------------------------------------------------------------------


def _charts(shown: Sequence[_Shown]) -> list[tuple[str, Markup]]:
    """Return up to four drawings, each with its title."""
    found = [
        ("Shares with their 95 % intervals", _svg(_draw_shares, shown)),
        ("Parts: the first share of the table by kind", _svg(_draw_parts, shown)),
        ("Time of an answer", _svg(_draw_times, shown)),
        ("Right among the most confident answers", _svg(_draw_coverage, shown)),
    ]
    return [(title, drawing) for title, drawing in found if drawing]


def _svg(draw: Callable[[Axes, Sequence[_Shown]], bool], shown: Sequence[_Shown]) -> Markup:
    """Return a drawing, empty if there is nothing to draw."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InstallError(f"matplotlib is not installed. Run {how_to_install('lab')}.") from error
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": draw.__name__}):
        drawing = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasSVG(drawing)
        axes = drawing.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        if not draw(axes, shown):
            return Markup("")
        if len(shown) > 1:
            axes.legend(frameon=False, fontsize="small")
        written = io.StringIO()
        drawing.savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue()
    return Markup(text[text.index("<svg") :])


def _draw_shares(axes: Axes, shown: Sequence[_Shown]) -> bool:
    """Draw the shares of the first table, a point with its interval for each run."""
    names: list[str] = []
    for number, each in enumerate(shown):
        shares = [m for m in each.tables[0].metrics if m.kind == "share" and not m.alone]
        spots, values, ends = [], [], []
        for metric in shares:
            figure = each.figure(metric)
            if figure is None:
                continue
            if metric.name not in names:
                names.append(metric.name)
            value, low, high = figure
            spots.append(names.index(metric.name) + 0.16 * number)
            values.append(100 * value)
            ends.append((100 * max(value - low, 0.0), 100 * max(high - value, 0.0)))
        if values:
            axes.errorbar(values, spots, xerr=np.array(ends).T, fmt="o", ms=4, label=each.name)
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel("%")
    return bool(names)


def _draw_parts(axes: Axes, shown: Sequence[_Shown]) -> bool:
    """Draw the first share of the first table that has parts."""
    drawn = False
    for number, each in enumerate(shown):
        table = next((t for t in each.tables[1:] if len(t.rows) > 1), None)
        metric = next((m for m in table.metrics if m.kind == "share"), None) if table else None
        if table is None or metric is None:
            continue
        rows = [row for row in table.rows if row.figures[metric.name].value is not None]
        heights = [100 * (row.figures[metric.name].value or 0.0) for row in rows]
        if rows:
            places = np.arange(len(rows)) + 0.25 * number
            axes.barh(places, heights, height=0.22, label=each.name)
            axes.set_yticks(
                range(len(rows)), [f"{r.label} ({r.n})" for r in rows], fontsize="small"
            )
            axes.set_xlabel(f"{metric.name}, %")
            drawn = True
    if drawn:
        axes.invert_yaxis()
    return drawn


def _draw_times(axes: Axes, shown: Sequence[_Shown]) -> bool:
    """Draw the share of answers that were there after so many milliseconds."""
    drawn = False
    for each in shown:
        times = sorted(r["total_ms"] for r in each.run.rows() if r.get("total_ms") is not None)
        if times:
            shares = 100 * np.arange(1, len(times) + 1) / len(times)
            axes.step(times, shares, where="post", label=f"{each.name} (n = {len(times)})")
            drawn = True
    axes.set_xlabel("ms")
    axes.set_ylabel("% of answers")
    return drawn


def _draw_coverage(axes: Axes, shown: Sequence[_Shown]) -> bool:
    """Draw the share of right answers among the most confident 1, 2, …, n."""
    drawn = False
    for each in shown:
        scored = [
            (row["confidence"], bool(row["exact"]))
            for row in each.run.rows()
            if row.get("confidence") is not None and row.get("exact") is not None
        ]
        if scored:
            right = np.array([exact for _, exact in sorted(scored, key=lambda one: -one[0])])
            counts = np.arange(1, len(right) + 1)
            axes.plot(100 * counts / len(right), 100 * np.cumsum(right) / counts, label=each.name)
            drawn = True
    axes.set_xlabel("% of answers, the most confident first")
    axes.set_ylabel("% right")
    return drawn
