"""``redraft eval replay``: what the language server would have shown in a recorded session.

Translates options into calls of ``redraft.evals``; measures nothing itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from redraft.evals.spec import RunSpec
from redraft.model.errors import SettingsError
from redraft.server.commands.options import with_options

from . import run_options as opt

REPLAY = RunSpec("replay", context_tokens=1_024)


@with_options
def replay(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Recordings, or folders of them.")
    ],
    spec: RunSpec = REPLAY,
    jobs: Annotated[int, typer.Option(min=1, help="Play this many recordings in parallel.")] = 1,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Play them on this Ray cluster; 'local' starts one here."
        ),
    ] = None,
    kept: opt.SavedRun = opt.NOTHING_KEPT,
) -> None:
    """Play recordings through the language server and compare what it shows with what was typed."""
    from redraft.evals.replay.replay_runs import replay_all
    from redraft.evals.scorers.replay_tables import tables
    from redraft.evals.sources.scripts import fingerprint, read_scripts

    from .print_tables import show_tables

    scripts = read_scripts(paths)
    first, *more = [script.name for script in scripts]
    source = f"{first} and {len(more)} more" if more else first
    spec = opt.apply_user_settings(replace(spec, source=source, sample=fingerprint(scripts)))
    with opt.open_run_for(kept, opt.identify_model(spec)) as run:
        with opt.progress_of("replaying") as progress:
            replay_all(scripts, spec, run, progress, jobs, ray)
        if not run.examples:
            raise SettingsError("These recordings hold no edit to ask at; record a longer session.")
        show_tables(run, list(tables(run.rows(), spec.seed)), kept.json_file)
