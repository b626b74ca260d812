"""``redraft eval steps``: what the language server would show after each step of a change.

Translates options into calls of ``redraft.evals``; measures nothing itself.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from redraft.evals.spec import RunSpec
from redraft.model.errors import SettingsError
from redraft.server.commands.options import with_options, write_json

from . import run_options as opt

STEPS = RunSpec("steps", context_tokens=1_024)
SCENES = RunSpec("scenes", context_tokens=1_024)
_PER_WALK = 2  # steps of a change that are asked after, besides the last
_TABS = 15  # suggestions that are taken in a scene, at most


@with_options
def steps(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A steps.jsonl.zst, or commits such as dev-commits.jsonl.zst."
        ),
    ],
    outcomes: Annotated[
        bool,
        typer.Option(
            "--outcomes",
            help="Ask about every place and show nothing, with hunks in the order and the parts "
            "in which people write; 'redraft gate ship' fits on the answers.",
        ),
    ] = False,
    spec: RunSpec = STEPS,
    kept: opt.SavedRun = opt.NOTHING_KEPT,
) -> None:
    """Type the steps of a change into the language server, and compare what it shows with them.

    The last table says of each question to the model how long after the last key it was decided,
    and how much of its prompt had been read before: first questions about a place, and later ones.
    """
    from redraft.evals.scorers.step_tables import tables
    from redraft.evals.steps.walk_runs import play_all
    from redraft.evals.steps.walks import AS_WRITTEN, IN_ORDER, choose_walks

    from .print_tables import show_tables

    mix = AS_WRITTEN if outcomes else IN_ORDER
    walks = choose_walks(source, spec.limit, spec.seed, _PER_WALK, mix)
    if not walks:
        raise SettingsError(f"{source.name} holds no change of two steps or more.")
    way = "every place" if outcomes else spec.eagerness
    sample = f"{spec.seed} {_PER_WALK} {way}"
    spec = replace(spec, source=source.name, sample=sample)
    with opt.open_and_identify(spec) as (full, ready), opt.open_run_for(kept, full) as run:
        with opt.progress_of("playing steps") as progress:
            play_all(walks, ready, full, run, progress, asks_all=outcomes)
        show_tables(run, list(tables(run.rows(), full.seed)), kept.json_file)


@with_options
def scenes(
    only: Annotated[str, typer.Option(metavar="NAME", help="Play this scene.")] = "",
    spec: RunSpec = SCENES,
    json_file: opt.Json = None,
) -> None:
    """Type the first steps of 26 small scenes, and see how far taking what is offered leads.

    They show that something works, not how good it is.
    """
    from redraft.evals.steps.scenes import play_scenes
    from redraft.evals.steps.walks import scenes as known
    from redraft.server.commands.console import out
    from rich.table import Table
    from rich.text import Text

    walks = [walk for walk in known() if only in ("", walk.id)]
    if not walks:
        raise SettingsError(
            f"No scene is {only!r}. Name one of {', '.join(w.id for w in known())}."
        )
    with (
        opt.open_and_identify(spec) as (full, ready),
        opt.progress_of("playing scenes") as progress,
    ):
        found = play_scenes(walks, ready, full, _TABS, progress)
    table = Table("scene", "places", "left", "wrong", "offered, and why nothing more was")
    for each in found:
        told = "\n".join((*each.offered, f"({each.reason})"))
        table.add_row(each.name, str(each.places), str(each.left), str(each.wrong), Text(told))
    out.print(table)
    carried = sum(each.is_carried_through for each in found)
    out.print(f"{carried} of {len(found)} are carried through.")
    write_json(json_file, {"model": full.model, "scenes": [asdict(each) for each in found]})
