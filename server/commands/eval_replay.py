"""``redraft eval replay``: what the language server would have shown to whoever made a recording.

Translates options into calls of ``redraft.evals``; measures nothing itself.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import Eagerness
from redraft.model.records import Quality

from . import eval_options as opt
from .options import with_options

if TYPE_CHECKING:
    from redraft.evals.predictors import PredictorChoice
    from redraft.evals.replay.script import Script
    from redraft.evals.run import RunSpec

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", help="Recordings, or folders of them.")
]
Server = Annotated[
    str, typer.Option(metavar="URL", help="A Redraft server to ask instead of loading a model.")
]
Key = Annotated[
    str | None, typer.Option(envvar="REDRAFT_API_KEY", help="The server's key.", show_envvar=True)
]
QualityOption = Annotated[Quality, typer.Option(help="Denoising effort.")]
EagernessOption = Annotated[
    Eagerness, typer.Option(help="Shows what is kept every second time, one time in four, in ten.")
]
Latency = Annotated[
    float | None,
    typer.Option(min=0, help="ms of every answer. Default: as long as each really takes."),
]
Jobs = Annotated[int, typer.Option(min=1, help="Recordings played side by side.")]
Ray = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Of a Ray cluster; 'local' starts one here.")
]


@with_options
def replay(
    paths: Paths,
    limit: opt.Limit = None,
    judged: opt.Judged = opt.USERS,
    server: Server = "",
    key: Key = None,
    context: opt.Context = opt.SERVED,
    quality: QualityOption = "medium",
    eagerness: EagernessOption = "medium",
    latency_ms: Latency = None,
    jobs: Jobs = 1,
    ray: Ray = None,
    kept: opt.Kept = opt.NOTHING_KEPT,
) -> None:
    """Play recordings through the language server and compare what it shows with what was typed.

    --model copy-last-edit is a baseline that repeats the last substitution; --model none never
    shows anything.
    """
    from redraft.evals.predictors import PredictorChoice, check_choice
    from redraft.evals.replay.runs import jobs_of, read_scripts, replay_all
    from redraft.evals.replay.tables import tables
    from redraft.lsp.settings import LspSettings

    from .eval_tables import show_tables

    keep = opt.folder_of(kept.out)
    who = PredictorChoice(
        **asdict(opt.settled(judged)), context_tokens=context, keep=keep, server=server, key=key
    )
    check_choice(who)
    scripts = read_scripts(paths)
    spec = replace(
        _described(who, scripts),
        eagerness=eagerness,
        quality=quality,
        context_tokens=context,
        latency_ms=latency_ms,
        seed=kept.seed,
    )
    lsp = LspSettings(eagerness=eagerness, quality=quality)
    with opt.open_run_for(kept.out, spec, kept.resume) as run:
        work = jobs_of(scripts, run, lsp, limit, latency_ms, kept.seed)
        with opt.progress_of("replaying") as progress:
            replay_all(work, who, run, progress, jobs, ray)
        rows = sorted(run.rows(), key=_order)
        if not rows:
            raise SettingsError("These recordings hold no edit to ask at; record a longer session.")
        show_tables(run, list(tables(rows, kept.seed)), kept.json_file)


def _described(who: PredictorChoice, scripts: list[Script]) -> RunSpec:
    """Return which model and which recordings; this fetches the model if it is missing."""
    from redraft.evals.replay.script import fingerprint
    from redraft.evals.run import RunSpec

    first, *more = [script.name for script in scripts]
    source = f"{first} and {len(more)} more" if more else first
    spec = RunSpec("replay", source, fingerprint(scripts))
    if who.server:
        from redraft.evals.predictors import open_predictor

        ready = open_predictor(who)
        ready.close()
        return replace(spec, model=ready.status.model, server=who.server)
    if who.is_policy:
        return replace(spec, model=who.model, baseline=who.model)
    from .console import bar

    with bar() as show:
        chosen_model = who.judged_model(lambda p: show(p.stage, p.fraction))
    return opt.with_model(spec, chosen_model)


def _order(row: dict[str, Any]) -> tuple[str, float]:
    return row["session"], row["at_s"]
