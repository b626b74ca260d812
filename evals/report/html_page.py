"""A report as one page of HTML that needs nothing else: no network, no file beside it.

Whatever comes out of a run is escaped, or data that the script puts into the page as text; a
policy in the page itself allows no other script than ours, by its hash. Measures nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from ..figures.intervals import LEAST, Figure
from ..figures.tables import LEGEND, Metric
from .build import Measured, NamedRun, Part, Section, headlines
from .charts import bar, colour, curves, interval, latencies, reliability, utilities
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
    body = "\n".join(_body(sections)).encode("utf-8", "replace").decode()
    return Template(_part("page.html")).substitute(
        policy=policy,
        title=escape(_title(sections)),
        style=style,
        script=script,
        body=body,
        data=_data(rows_of(sections)),
    )


def _part(name: str) -> str:
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(content: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in, whatever its texts hold."""
    packed = json.dumps(content, separators=(",", ":"))  # ASCII alone
    return packed.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _title(sections: Sequence[Section]) -> str:
    return "Redraft: " + ", ".join(dict.fromkeys(s.benchmark.title or "run" for s in sections))


# --- the body -------------------------------------------------------------------------------------


def _body(sections: Sequence[Section]) -> Iterator[str]:
    runs = [run for section in sections for run in section.runs]
    total = sum(len(run.episodes) for run in runs)
    days = sorted({run.file.machine.get("date", "") for run in runs} - {""})
    told = [
        _count(len(runs), "run"),
        _count(total, "episode"),
        *dict.fromkeys([*days[:1], *days[-1:]]),
    ]
    yield f"<header><h1>Redraft evaluation</h1><p>{escape(' · '.join(told))}</p>"
    links = "".join(
        f'<a href="#s{i}">{escape(_heading(one))} <span>{escape(one.source)}</span></a>'
        for i, one in enumerate(sections)
    )
    yield f'<nav>{links}<a href="#episodes-of">Episodes</a></nav></header>'
    for number, section in enumerate(sections):
        yield from _section(section, number)
    yield '<section id="episodes-of"><h2>Episodes</h2>'
    yield '<p class="note">What was there, what was predicted, what it became.</p>'
    yield '<div id="browser"></div></section>'


def _heading(section: Section) -> str:
    return section.benchmark.title or str(section.runs[0].file.settings.get("benchmark", "run"))


def _section(section: Section, number: int) -> Iterator[str]:
    source = f'<span class="source">{escape(section.source)}</span>' if section.source else ""
    yield f'<section id="s{number}"><h2>{escape(_heading(section))} {source}</h2>'
    for line in headlines(section):
        yield f"<p><b>{escape(line)}.</b></p>"
    yield f'<p class="note">{escape(_note(section))}</p>'
    yield _card(_runs(section))
    if not any(run.episodes for run in section.runs):
        yield '<p class="unmeasured">No episode has been written yet.</p></section>'
        return
    yield _card(_figures(section))
    yield from _charts(section)
    if section.bars:
        yield _card(_bars(section))
    yield from _parts(section)
    yield from _differences(section)
    yield "</section>"


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


def _card(content: str) -> str:
    return f'<div class="card">{content}</div>'


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# --- which runs -----------------------------------------------------------------------------------


def _runs(section: Section) -> str:
    """The runs, and whatever sets them apart."""
    names = _differing([run.file.settings for run in section.runs])
    head = "".join(f"<th>{escape(_words(name))}</th>" for name in ("run", "episodes", *names))
    rows = "".join(_run_row(number, run, names) for number, run in enumerate(section.runs))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{_how(section)}"


def _differing(settings: Sequence[dict[str, Any]]) -> list[str]:
    """Settings that runs do not share, the model's name in any case."""
    known = dict.fromkeys(name for one in settings for name in one if name not in QUIET)
    return [
        name
        for name in known
        if name == "model" or len({json.dumps(one.get(name) or None) for one in settings}) > 1
    ]


def _run_row(number: int, run: NamedRun, names: Sequence[str]) -> str:
    values = "".join(f"<td>{escape(_value(run.file.settings.get(name)))}</td>" for name in names)
    return f"<tr><th>{_named(number, run)}</th><td>{len(run.episodes):,}</td>{values}</tr>"


def _named(number: int, run: NamedRun) -> str:
    return f'<span class="key {colour(number)}"></span>{escape(run.name)}'


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if value is None or value is False or value == []:
        return "–"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _how(section: Section) -> str:
    """Every run's whole settings and machine, folded away."""
    told = []
    for number, run in enumerate(section.runs):
        everything = {**run.file.settings, **run.file.machine}
        said = " · ".join(f"{_words(k)} {_value(v)}" for k, v in everything.items())
        told.append(f'<p class="note">{_named(number, run)}<br><code>{escape(said)}</code></p>')
    return f"<details><summary>How they were made</summary>{''.join(told)}</details>"


# --- figures --------------------------------------------------------------------------------------


def _figures(section: Section) -> str:
    head = "".join(f"<th>{_named(i, run)}</th>" for i, run in enumerate(section.runs))
    rows = []
    for metric, found in zip(section.metrics, section.overall, strict=True):
        ends = _ends(metric, found)
        marks = [""] + [_better(metric, section, i) for i in range(1, len(section.runs))]
        cells = "".join(
            f'<td class="figure {mark}">{_figure(metric, one, len(section.runs[run].episodes))}'
            f"{interval(one, *ends, run)}</td>"
            for run, (one, mark) in enumerate(zip(found, marks, strict=True))
        )
        rows.append(f"<tr><th>{escape(metric.heading)}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


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
    against = section.differences[run - 1]
    if against is None or metric.field not in section.benchmark.guarded:
        return ""
    for one in against[1]:
        if one.field == metric.field and one.p is not None and one.p < 0.05:
            return "wins" if (one.difference.value or 0) > 0 else "loses"
    return ""


def _figure(metric: Metric, figure: Figure, total: int = -1) -> str:
    """Value, interval, and how many episodes count where that is not the whole run."""
    if figure.value is None or figure.low is None or figure.high is None:
        said = f"not measured (n = {figure.n})" if figure.n else "–"
        return f'<span class="unmeasured">{said}</span>'
    value, _, rest = metric.show(figure).partition(" ")
    many = "" if figure.n == total else f" n = {figure.n:,}"
    return f"<b>{escape(value)}</b> <small>{escape(rest)}{many}</small>"


def _parts(section: Section) -> Iterator[str]:
    """Every way of parting: the most telling metric open, the others folded away."""
    drawn = [_card(_part_tables(section, part)) for part in section.parts if _any_measured(part)]
    if drawn:
        yield f'<div class="{"parts" if len(section.runs) < 3 else ""}">{"".join(drawn)}</div>'
    for part in section.parts:
        if not _any_measured(part):
            most = max(one.n for rows in part.figures for row in rows for one in row)
            yield _card(
                f"<h3>By {escape(part.title)}</h3>"
                f'<span class="unmeasured">Not measured: {LEAST} episodes are needed and the '
                f"largest of {len(part.labels)} parts has {most}.</span>"
            )


def _any_measured(part: Part) -> bool:
    return any(one.measured for rows in part.figures for row in rows for one in row)


def _part_tables(section: Section, part: Part) -> str:
    tables = [_part_table(section, part, column) for column in range(len(part.metrics))]
    names = [escape(metric.heading) for metric in part.metrics]
    folded = "".join(
        f"<details><summary>{name}</summary>{table}</details>"
        for name, table in zip(names[1:], tables[1:], strict=True)
    )
    return f"<h3>{names[0]} by {escape(part.title)}</h3>{tables[0]}{folded}"


def _part_table(section: Section, part: Part, column: int) -> str:
    head = "".join(f"<th>{_named(i, run)}</th>" for i, run in enumerate(section.runs))
    rows = []
    for label, figures in zip(part.labels, part.figures, strict=True):
        cells = "".join(
            f'<td class="figure">{_figure(part.metrics[column], one)}</td>'
            for one in figures[column]
        )
        rows.append(f"<tr><th>{escape(label)}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


# --- charts ---------------------------------------------------------------------------------------


def _charts(section: Section) -> Iterator[str]:
    names = [run.name for run in section.runs]
    measured = section.measured
    drawn = [
        ("Acceptance against shown rate", curves([one.curve for one in measured], names),
         "As the threshold falls from the surest to all; bands are 95 %."),
        ("Reliability", reliability([one.calibration for one in measured], names),
         _errors(measured, names)),
        ("Utility against shown rate", utilities([one.curve for one in measured], names),
         "0.75 for what is right, -0.25 for what is not, for each moment."),
        ("Latency", latencies([_whole(one) for one in measured], names), _times(measured, names)),
    ]  # fmt: skip
    cards = "".join(
        _card(f"<h3>{title}</h3>{chart}<p>{escape(caption)}</p>")
        for title, chart, caption in drawn
        if chart
    )
    stages = _card(found) if (found := _stages(section)) else ""
    beside = len(section.runs) < 3  # a wider table stands below
    if cards:
        yield f'<div class="charts">{cards}{stages if beside else ""}</div>'
    if stages and not (cards and beside):
        yield stages


def _bars(section: Section) -> str:
    """What each feature of a gate adds to its ranking."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{bar(lost, max(one for _, one in section.bars))} "
        f"<small>{lost:+.3f}</small></td></tr>"
        for name, lost in section.bars
    )
    return (
        "<h3>What the gate goes by</h3><p>Area under the ROC curve that is lost where a feature "
        f"is taken for average.</p><table><tbody>{rows}</tbody></table>"
    )


def _stages(section: Section) -> str:
    """Where the time goes; "" where only the whole is known."""
    names = list(dict.fromkeys(name for one in section.measured for name in one.stages))
    if len(names) < 2:
        return ""
    head = "".join(f"<th>{_named(i, run)}</th>" for i, run in enumerate(section.runs))
    rows = []
    for name in names:
        cells = "".join(f"<td>{_times_of(one, name)}</td>" for one in section.measured)
        rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    return (
        '<h3>Latency by stage, ms, p50 / p95</h3><table class="stages"><thead><tr><th></th>'
        f"{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _times_of(measured: Measured, stage: str) -> str:
    found = measured.stages.get(stage)
    return f"{found.p50:,.0f} / {found.p95:,.0f}" if found is not None else "–"


def _whole(measured: Measured) -> Any:
    return next(iter(measured.stages.values()), None)


def _errors(measured: Sequence[Measured], names: Sequence[str]) -> str:
    said = [
        f"{name} {one.calibration.ece:.3f}"
        for name, one in zip(names, measured, strict=True)
        if one.calibration is not None
    ]
    few = sum(one.calibration is None for one in measured)
    left = f" {_count(few, 'run')} with fewer than {LEAST} judged: not measured." if few else ""
    return f"Expected calibration error, less is better: {', '.join(said)}.{left}"


def _times(measured: Sequence[Measured], names: Sequence[str]) -> str:
    said = [
        f"{name} {whole.p50:,.0f} / {whole.p95:,.0f} ms"
        for name, whole in zip(names, map(_whole, measured), strict=True)
        if whole is not None
    ]
    return f"p50 / p95: {', '.join(said)}."


# --- one run against another ----------------------------------------------------------------------


def _differences(section: Section) -> Iterator[str]:
    for number, (run, found) in enumerate(
        zip(section.runs[1:], section.differences, strict=True), 1
    ):
        if found is None:
            continue
        count, fields = found
        rows = "".join(
            f"<tr><th>{escape(_words(one.field))}</th><td>{one.difference.n:,}</td>"
            f"<td>{_size(one.a, one.share)}</td><td>{_size(one.b, one.share)}</td>"
            f'<td class="figure"><b>{_size(one.difference.value, one.share, "+")}</b> <small>['
            f"{_size(one.difference.low, one.share, '+')}, "
            f"{_size(one.difference.high, one.share, '+')}]</small></td>"
            f"<td>{'' if one.p is None else f'{one.only_a} / {one.only_b}'}</td>"
            f"<td>{'' if one.p is None else f'{one.p:.2g}'}</td></tr>"
            for one in fields
        )
        first, other = _named(0, section.runs[0]), _named(number, run)
        yield _card(
            f"<details><summary>{other} against {first}, on {_count(count, 'episode')} that both "
            f"have</summary><table><thead><tr><th></th><th>n</th><th>{first}</th><th>{other}</th>"
            "<th>difference</th><th>only first / other</th><th>p (McNemar)</th></tr></thead>"
            f"<tbody>{rows}</tbody></table></details>"
        )


def _size(value: float | None, share: bool, sign: str = "") -> str:
    if value is None:
        return "–"
    return f"{value:{sign}.1%}" if share else f"{value:{sign},.2f}"
