"""A report as one page of HTML that needs nothing else: no network, no file beside it.

``page/page.html`` says how it looks. Whatever comes out of a run is escaped, or data that the
script puts into the page as text; a policy in the page itself allows no other script than ours, by
its hash. Measures nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ..figures.intervals import LEAST, Figure
from ..figures.tables import LEGEND, Metric
from .build import Measured, NamedRun, ReportPart, Section, headlines
from .charts import bar, colour, curves, interval, latencies, reliability, utilities
from .curves import LatencyCurve
from .episodes import rows_of

#: Settings that every run has and that say nothing to a reader at a glance.
QUIET = frozenset({"benchmark", "source", "sample", "model_sha256", "seed"})


def page(sections: Sequence[Section]) -> str:
    """The whole page."""
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    template = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    ).from_string(_part("page.html"))
    text = template.render(
        _CALLED,
        sections=sections,
        policy=policy,
        title="Redraft: " + ", ".join(dict.fromkeys(s.benchmark.title or "run" for s in sections)),
        summary=_summary([run for section in sections for run in section.runs]),
        style=Markup(style),
        script=Markup(script),
        data=Markup(_data(rows_of(sections))),
    )
    return text.encode("utf-8", "replace").decode()


def _part(name: str) -> str:
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(content: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in, whatever its texts hold."""
    packed = json.dumps(content, separators=(",", ":"))  # ASCII alone
    return packed.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# --- words ----------------------------------------------------------------------------------------


def _summary(runs: Sequence[NamedRun]) -> str:
    total = sum(len(run.episodes) for run in runs)
    days = sorted({run.file.machine.get("date", "") for run in runs} - {""})
    told = [_count(len(runs), "run"), _count(total, "episode")]
    return " · ".join([*told, *dict.fromkeys([*days[:1], *days[-1:]])])


def _heading(section: Section) -> str:
    return section.benchmark.title or str(section.runs[0].file.settings.get("benchmark", "run"))


def _note(section: Section) -> str:
    right = f"Right: {section.benchmark.right}. " if section.benchmark.right else ""
    mixed = len({run.file.settings.get("sample") for run in section.runs}) > 1
    if mixed:
        right = f"These runs were not asked about the same sample. {right}"
    alone = any(one.by_episode for one in section.measured)
    way = (
        "episodes, as there are too few groups" if alone else "whole problems, commits or sessions"
    )
    return (
        f"{right}{section.benchmark.note} {LEGEND}. Intervals are 95 %, by resampling {way}; "
        "a share of 0 or 1 has Wilson's."
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _told(value: Any) -> str:
    """A setting."""
    if value is None or value is False or value == []:
        return "–"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _size(value: float | None, share: bool, sign: str = "") -> str:
    if value is None:
        return "–"
    return f"{value:{sign}.1%}" if share else f"{value:{sign},.2f}"


# --- runs, figures and parts ----------------------------------------------------------------------


def _differing(section: Section) -> list[str]:
    """Settings that runs do not share, the model's name in any case."""
    settings = [run.file.settings for run in section.runs]
    known = dict.fromkeys(name for one in settings for name in one if name not in QUIET)
    return [
        name
        for name in known
        if name == "model" or len({json.dumps(one.get(name) or None) for one in settings}) > 1
    ]


def _everything(run: NamedRun) -> dict[str, Any]:
    """A run's settings and machine."""
    return {**run.file.settings, **run.file.machine}


def _ends(metric: Metric, found: Sequence[Figure]) -> tuple[float, float]:
    """The scale that a row's intervals share."""
    highs = [one.high for one in found if one.high is not None]
    lows = [one.low for one in found if one.low is not None]
    top = max(highs, default=1.0)
    if metric.kind == "share":
        return 0.0, min(1.0, max(top * 1.15, 0.1))
    return min(0.0, *lows) if lows else 0.0, top * 1.15


def _better(metric: Metric, section: Section, run: int) -> str:
    """Whether a run differs from the first by more than chance, on the episodes of both; only
    where less is worse."""
    against = section.differences[run - 1] if run else None
    if against is None or metric.field not in section.benchmark.guarded:
        return ""
    for one in against[1]:
        if one.field == metric.field and one.p is not None and one.p < 0.05:
            return "wins" if (one.difference.value or 0) > 0 else "loses"
    return ""


def _parts(section: Section) -> tuple[list[ReportPart], list[tuple[ReportPart, int]]]:
    """The ways of parting in which anything is measured, and the others with the most episodes of
    a part."""
    found: list[ReportPart] = []
    others: list[tuple[ReportPart, int]] = []
    for part in section.parts:
        figures = [one for rows in part.figures for row in rows for one in row]
        if any(one.measured for one in figures):
            found.append(part)
        else:
            others.append((part, max(one.n for one in figures)))
    return found, others


# --- charts ---------------------------------------------------------------------------------------


def _charts(section: Section) -> list[tuple[str, Markup, str]]:
    """Title, drawing and caption of each that has something to draw."""
    names = [run.name for run in section.runs]
    measured = section.measured
    whole = [next(iter(one.stages.values()), None) for one in measured]
    drawn = [
        ("Acceptance against shown rate", curves([one.curve for one in measured], names),
         "As the threshold falls from the surest to all; bands are 95 %."),
        ("Reliability", reliability([one.calibration for one in measured], names),
         _errors(measured, names)),
        ("Utility against shown rate", utilities([one.curve for one in measured], names),
         "0.75 for what is right, -0.25 for what is not, for each moment."),
        ("Latency", latencies(whole, names), _latency(whole, names)),
    ]  # fmt: skip
    return [(title, Markup(chart), caption) for title, chart, caption in drawn if chart]


def _stage_names(section: Section) -> list[str]:
    """Where the time goes; none where only the whole is known."""
    names = list(dict.fromkeys(name for one in section.measured for name in one.stages))
    return names if len(names) > 1 else []


def _times(found: LatencyCurve | None) -> str:
    return f"{found.p50:,.0f} / {found.p95:,.0f}" if found is not None else "–"


def _errors(measured: Sequence[Measured], names: Sequence[str]) -> str:
    said = [
        f"{name} {one.calibration.ece:.3f}"
        for name, one in zip(names, measured, strict=True)
        if one.calibration is not None
    ]
    few = sum(one.calibration is None for one in measured)
    left = f" {_count(few, 'run')} with fewer than {LEAST} judged: not measured." if few else ""
    return f"Expected calibration error, less is better: {', '.join(said)}.{left}"


def _latency(whole: Sequence[LatencyCurve | None], names: Sequence[str]) -> str:
    said = [
        f"{name} {_times(one)} ms"
        for name, one in zip(names, whole, strict=True)
        if one is not None
    ]
    return f"p50 / p95: {', '.join(said)}."


#: What the template calls, by the names it has there.
_CALLED = {
    "bar": lambda value, most: Markup(bar(value, most)),
    "better": _better,
    "charts": _charts,
    "colour": colour,
    "counted": _count,
    "differing": _differing,
    "ends": _ends,
    "everything": _everything,
    "heading": _heading,
    "headlines": headlines,
    "interval": lambda *of: Markup(interval(*of)),
    "least": LEAST,
    "note": _note,
    "parts": _parts,
    "size": _size,
    "stage_names": _stage_names,
    "times": _times,
    "told": _told,
    "words": _words,
}
