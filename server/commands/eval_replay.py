"""``redraft eval replay``: what the language server would have shown in a recorded session.

Translates options into calls of ``redraft.evals``; measures nothing itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from redraft.evals.spec import RunSpec
from redraft.model.errors import SettingsError

from . import eval_options as opt
from .options import with_options

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
    kept: opt.Kept = opt.NOTHING_KEPT,
) -> None:
    """Play recordings through the language server and compare what it shows with what was typed."""
    from redraft.evals.replay.runs import jobs_of, replay_all
    from redraft.evals.replay.tables import tables
    from redraft.evals.sources.recorded_moments import fingerprint, read_scripts
    from redraft.lsp.settings import LspSettings

    from .eval_tables import show_tables

    scripts = read_scripts(paths)
    first, *more = [script.name for script in scripts]
    source = f"{first} and {len(more)} more" if more else first
    spec = opt.settled(replace(spec, source=source, sample=fingerprint(scripts)))
    full = opt.described(spec)
    lsp = LspSettings(eagerness=spec.eagerness, quality=spec.quality)
    with opt.open_run_for(kept, full) as run:
        work = jobs_of(scripts, run, lsp, spec.limit, spec.latency_ms, spec.seed)
        with opt.progress_of("replaying") as progress:
            replay_all(work, spec, run, progress, jobs, ray)
        rows = sorted(run.rows(), key=_order)
        if not rows:
            raise SettingsError("These recordings hold no edit to ask at; record a longer session.")
        show_tables(run, list(tables(rows, spec.seed)), kept.json_file)


def _order(row: dict[str, Any]) -> tuple[str, float]:
    return row["session"], row["at_s"]
