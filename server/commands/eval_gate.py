"""``redraft eval gate``: gates side by side on the same moments, and what they go by.

Translates options into calls of ``redraft.evals`` and shows what comes back; measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from redraft.model.errors import SettingsError

from . import eval_options as opt
from .json_file import write_json

if TYPE_CHECKING:
    from redraft.evals.figures.runs import RunFile
    from redraft.evals.gate.ranking import Ranking, Worth
    from redraft.evals.report.build import NamedRun, Section
    from redraft.model.edits.gate import Gate

Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN.jsonl…", help="Of 'redraft gate outcomes'.")
]


def register(app: typer.Typer) -> None:
    """The command under ``redraft eval``."""
    app.command()(gate)


def gate(
    runs: Runs,
    file: Annotated[
        Path | None, typer.Option("--gate", metavar="GATE.json", help="Default: the shipped one.")
    ] = None,
    fitted_on: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN.jsonl", help="Fit gates with and without static features anew."),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="OUT.html", help="The page.")] = None,
    json_file: opt.Json = None,
    seed: opt.Seed = 0,
) -> None:
    """What gates would have shown: thresholds by hand, logistic regression, KTO."""
    from redraft.evals.figures.runs import read_run
    from redraft.evals.figures.tables import overall
    from redraft.evals.gate.comparing import METRICS, moments_of, policies, run_of
    from redraft.evals.gate.ranking import rankings, worths
    from redraft.evals.report.build import NamedRun
    from redraft.model.edits.gate_file import SHIPPED, read_gate

    used, card = read_gate(file or SHIPPED)
    read = [read_run(path) for path in runs]
    moments = moments_of(read)
    if not moments:
        raise SettingsError("These runs hold no moment. Make some with 'redraft gate outcomes'.")
    candidates = [each for moment in moments for each in moment.candidates]
    about = {"source": " ".join(path.stem for path in runs), "gate": used.name}
    named = [
        NamedRun(policy.name, run_of(policy, moments, about)) for policy in policies(used, moments)
    ]
    gates = [(used.name, used), *_fitted(fitted_on or [], read)]
    ranked, worth = rankings(gates, candidates, seed), worths(used, candidates)
    tables = [overall(run.name, METRICS, run.episodes, seed) for run in named]
    _show(named, ranked, worth, seed)
    if html is not None:
        _draw(html, named, worth, seed)
    write_json(
        json_file,
        {
            "gate": used.name, "card": card, "policies": [table.as_json() for table in tables],
            "ranking": [asdict(each) for each in ranked], "worth": [asdict(one) for one in worth],
        },
    )  # fmt: skip


def _fitted(paths: Sequence[Path], judged: Sequence[RunFile]) -> list[tuple[str, Gate]]:
    """Gates with and without static features, of runs that are not judged here."""
    from redraft.evals.figures.runs import read_run
    from redraft.evals.gate.fitting import fit_gate, samples_of, shown_to_gate
    from redraft.evals.gate.ranking import STATIC

    if not paths:
        return []
    read = [read_run(path) for path in paths]
    known = {name for run in judged for name in run.episodes}
    if any(name in known for run in read for name in run.episodes):
        raise SettingsError("--fitted-on names moments that are judged here. Name other runs.")
    samples = samples_of(each for run in read for each in shown_to_gate(run))
    return [
        ("with static", fit_gate(samples, "with static")),
        ("without static", fit_gate(samples, "without static", STATIC)),
    ]


def _show(
    named: Sequence[NamedRun], ranked: Sequence[Ranking], worth: Sequence[Worth], seed: int
) -> None:
    from redraft.evals.figures.compare import compare
    from redraft.evals.figures.tables import overall
    from redraft.evals.gate.comparing import METRICS

    from .eval_tables import Sheet, show_sheet

    drawn = Sheet("gates on the same moments", ("", "n", *(one.heading for one in METRICS)))
    for run in named:
        row = overall("", METRICS, run.episodes, seed).rows[0]
        drawn.add_row(run.name, f"{row.n:,}", *(m.show(row.figures[m.name]) for m in METRICS))
    show_sheet(drawn)
    against = Sheet(f"less {named[0].name}", ("", "shown", "accepted", "utility"))
    for run in named[1:]:
        found = {one.field: one for one in compare(named[0].file, run.file, seed)[1]}
        cells = []
        for name, scale in (("shown", 100), ("accepted", 100), ("utility", 1)):
            change = found[name].difference if name in found else None
            if change is None or change.value is None or change.low is None or change.high is None:
                cells.append("–")
                continue
            value, low, high = (scale * each for each in (change.value, change.low, change.high))
            cells.append(f"{value:+.1f} [{low:+.1f}, {high:+.1f}]")
        against.add_row(run.name, *cells)
    show_sheet(against)
    ranking = Sheet("ranking of candidates", ("", "task", "n", "right", "AUC", "ECE"))
    for each in ranked:
        auc = (
            "–"
            if each.auc is None
            else f"{each.auc:.3f} [{each.low or 0:.3f}, {each.high or 0:.3f}]"
        )
        error = "–" if each.error is None else f"{each.error:.3f}"
        ranking.add_row(each.name, each.task, f"{each.candidates:,}", f"{each.right:,}", auc, error)
    show_sheet(ranking)
    features = Sheet("what the gate goes by", ("feature", "task", "weight", "AUC lost without"))
    for one in worth:
        if one.weight:
            features.add_row(one.feature, one.task, f"{one.weight:+.2f}", f"{one.auc_lost:+.3f}")
    show_sheet(features)


def _draw(html: Path, named: Sequence[NamedRun], worth: Sequence[Worth], seed: int) -> None:
    from redraft.evals.report.build import build
    from redraft.evals.report.html_page import page

    from .console import out

    try:
        html.write_text(page(_with_bars(build(named, seed), worth)), encoding="utf-8", newline="\n")
    except OSError as error:
        raise SettingsError(f"{html} cannot be written: {error.strerror}.") from error
    out.print(f"{html} ({html.stat().st_size / 1e6:.1f} MB)", markup=False)


def _with_bars(sections: Sequence[Section], worth: Sequence[Worth]) -> list[Section]:
    from dataclasses import replace

    told = tuple((f"{one.task}: {one.feature}", one.auc_lost) for one in worth if one.weight)
    return [replace(section, bars=told) for section in sections]
