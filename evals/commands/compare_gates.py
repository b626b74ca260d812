"""``redraft eval gate``: gates side by side on the same moments, and their features.

Translates options into calls of ``redraft.evals`` and shows what comes back; measures nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from redraft.model.errors import SettingsError
from redraft.server.commands.options import write_json

from . import run_options as opt

if TYPE_CHECKING:
    from redraft.evals.example import Row
    from redraft.evals.gate.curves import GateScores, Ranking, Worth
    from redraft.evals.run import Run

SEED = 0  # of the intervals

Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN.jsonl…", help="Runs of 'redraft gate outcomes', 'eval infill' or 'eval edits'."
    ),
]


def gate(
    runs: Runs,
    file: Annotated[
        Path | None,
        typer.Option(
            "--gate", metavar="GATE.json", help="Measure this gate. Default: the shipped one."
        ),
    ] = None,
    fitted_on: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RUN.jsonl",
            help="Also fit gates on these runs, with and without static features.",
        ),
    ] = None,
    sessions: Annotated[
        bool,
        typer.Option(
            help="Also fit on the sessions measured here, each left out where it is measured."
        ),
    ] = False,
    json_file: opt.Json = None,
) -> None:
    """Compare what gates would have shown: the shipped one, others, and logistic regression."""
    from redraft.evals.gate.curves import (
        METRICS,
        moments_of,
        policies,
        rankings,
        rows_of,
        scores_of,
        worths,
    )
    from redraft.evals.run import read_run
    from redraft.evals.tables import overall
    from redraft.model.gate.gate import SHIPPED, read_gate

    if sessions and not fitted_on:
        raise SettingsError("--sessions adds to what --fitted-on names. Name runs with it as well.")
    used, card = read_gate(file or SHIPPED)
    shipped = read_gate(SHIPPED)[0]
    read = [read_run(path) for path in runs]
    moments = moments_of(read)
    if not moments:
        raise SettingsError("These runs hold no moment. Make some with 'redraft gate outcomes'.")
    candidates = [each for moment in moments for each in moment.candidates]
    first, others = scores_of(used.name, lambda _: used), _fitted(fitted_on or [], read, sessions)
    control = scores_of("shipped", lambda _: shipped) if file is not None else None
    named = {each.name: rows_of(each, moments) for each in policies(first, others, control)}
    ranked, worth = rankings([first, *others], candidates, SEED), worths(used, candidates)
    tables = [overall(name, METRICS, rows, SEED) for name, rows in named.items()]
    _show(named, ranked, worth)
    write_json(
        json_file,
        {
            "gate": used.name, "card": card, "policies": [table.as_json() for table in tables],
            "ranking": [asdict(each) for each in ranked], "worth": [asdict(one) for one in worth],
        },
    )  # fmt: skip


def _fitted(paths: Sequence[Path], measured: Sequence[Run], sessions: bool) -> list[GateScores]:
    """Return gates fitted on other runs, with and without static features.

    With ``sessions`` one more is fitted on all sources measured here except a candidate's.
    """
    from redraft.evals.gate.curves import STATIC, scores_of
    from redraft.evals.gate.samples import candidates_for_gate, newest
    from redraft.evals.gate.shipped_fit import fit_gate, leave_source_out, samples_of
    from redraft.evals.run import read_run

    if not paths:
        return []
    read = [read_run(path) for path in paths]
    known = {name for run in measured for name in run.examples}
    if any(name in known for run in read for name in run.examples):
        raise SettingsError("--fitted-on names moments that are measured here. Name other runs.")
    samples = samples_of(candidates_for_gate(newest(read)))
    static = fit_gate(samples, "with static")
    without = fit_gate(samples, "without static", STATIC)
    found = [scores_of(each.name, lambda _, each=each: each) for each in (static, without)]  # type: ignore[misc]
    if sessions:
        free = [each for run in measured for each in candidates_for_gate(run)]
        found.append(scores_of("and other sessions", leave_source_out(samples, free)))
    return found


def _show(
    named: Mapping[str, list[Row]], ranked: Sequence[Ranking], worth: Sequence[Worth]
) -> None:
    from redraft.evals.gate.curves import METRICS
    from redraft.evals.tables import overall

    from .print_tables import Sheet, show_less, show_sheet

    drawn = Sheet("gates on the same moments", ("", "n", *(one.heading for one in METRICS)))
    for name, rows in named.items():
        row = overall("", METRICS, rows, SEED).rows[0]
        drawn.add_row(name, f"{row.n:,}", *(m.show(row.figures[m.name]) for m in METRICS))
    show_sheet(drawn)
    _show_places(named)
    show_less(named, ("shown", "accepted", "utility"), SEED)
    _show_ranking(ranked)
    features = Sheet(
        "features of the gate", ("feature", "task", "weight", "AUC lost if replaced by its mean")
    )
    for one in worth:
        if one.weight:
            features.add_row(one.feature, one.task, f"{one.weight:+.2f}", f"{one.auc_lost:+.3f}")
    show_sheet(features)


def _show_places(named: Mapping[str, list[Row]]) -> None:
    """Show what each eagerness of the gate would have shown, by place."""
    from redraft.evals.gate.curves import BY_PLACE, PLACES
    from redraft.evals.tables import overall

    from .print_tables import Sheet, show_sheet

    drawn = Sheet("by place", ("", "place", "n", *(one.heading for one in BY_PLACE)))
    for name, rows in named.items():
        if not name.startswith("gate, "):
            continue
        for place in PLACES:
            some = [one for one in rows if one["where"] == place]
            if some:
                row = overall("", BY_PLACE, some, SEED).rows[0]
                figures = (m.show(row.figures[m.name]) for m in BY_PLACE)
                drawn.add_row(name, place, f"{row.n:,}", *figures)
    show_sheet(drawn)


def _show_ranking(ranked: Sequence[Ranking]) -> None:
    from .print_tables import Sheet, show_sheet

    headings = ("", "task", "n", "right", "AUC", "risk–coverage (least)", "ECE (by chance)")
    drawn = Sheet("ranking of candidates", headings)
    for each in ranked:
        least = "" if each.least_risk is None else f" ({each.least_risk:.3f})"
        auc, risk, error = map(_with_interval, (each.auc, each.risk, each.error))
        drawn.add_row(
            each.name, each.task, f"{each.candidates:,}", f"{each.right:,}", auc,
            risk + least, f"{error} ({each.by_chance:.3f})",
        )  # fmt: skip
    show_sheet(drawn)
    bins = Sheet(
        "predicted → observed share of right ones, by fifths of the candidates",
        ("", "task", *"12345"),
    )
    for each in ranked:
        if each.name.endswith("chance"):
            shares = [f"{one.predicted:.2f} → {one.observed:.2f}" for one in each.bins]
            bins.add_row(each.name, each.task, *shares, *["–"] * (5 - len(shares)))
    show_sheet(bins)


def _with_interval(value: tuple[float, float, float] | None) -> str:
    return "–" if value is None else f"{value[0]:.3f} [{value[1]:.3f}, {value[2]:.3f}]"
