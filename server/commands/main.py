"""The ``redraft`` command: reads the arguments, calls, and shows errors as one red line.

Whatever is heavy is imported by the command that needs it, so that ``redraft --help`` is fast and
nothing here ever imports torch, training apart. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from redraft.model.errors import RedraftError
from redraft.model.records import MAX_CONTEXT_TOKENS, MAX_TEMPERATURE, MIN_CONTEXT_TOKENS

from .asking import ask_once, remote
from .chat import chat
from .eval import app as eval_app
from .gate import app as gate_app
from .models import app as models
from .models import cell
from .options import RUNNING, Model, Running, load, with_options
from .record import app as record_app
from .soak import soak
from .train import app as train_app

if TYPE_CHECKING:
    from redraft.model.records import Predictor


app = typer.Typer(
    name="redraft",
    help="Local infill and next edit for your editor, written by a diffusion model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(models, name="model")
app.add_typer(train_app, name="train")
app.add_typer(eval_app, name="eval")
app.add_typer(record_app, name="record")
app.add_typer(gate_app, name="gate")
app.command()(soak)
app.command()(chat)

Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A 'redraft serve' to ask instead of this machine; its key in REDRAFT_API_KEY.",
    ),
]


def main() -> None:
    """The entry point: the one place where the command line translates errors."""
    try:
        app()
    except RedraftError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # as in 'redraft bench | head'
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _fail(message: str) -> None:
    from .console import err

    err.print(f"error: {message}", style="bold red", markup=False)
    sys.exit(1)


def _version(wanted: bool) -> None:
    if wanted:
        from redraft.model.release import RELEASE

        typer.echo(f"redraft {RELEASE}")
        raise typer.Exit


@app.callback()
def _redraft(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the release.")
    ] = False,
) -> None:
    pass


# --- looking around -------------------------------------------------------------------------------


@app.command()
def doctor(
    warm_up: Annotated[bool, typer.Option(help="Load the model and time it.")] = True,
) -> None:
    """What is installed, what would run, and what to do about each problem."""
    from rich.table import Table

    from .console import out
    from .doctor import examine

    findings = asyncio.run(examine(warm_up))
    marks = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "bold red")}
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        mark, style = marks[finding.verdict]
        what = finding.what + (f"\n→ {finding.advice}" if finding.advice else "")
        table.add_row(cell(mark, style), cell(finding.subject, "bold"), cell(what, ""))
    out.print(table, soft_wrap=False)
    if any(finding.verdict == "problem" for finding in findings):
        raise typer.Exit(1)


# --- asking once ----------------------------------------------------------------------------------


@app.command()
@with_options
def complete(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE:COL", help="1-based, in characters.")],
    watch: Annotated[bool, typer.Option("--watch", help="Show the canvas resolving.")] = False,
    max_tokens: Annotated[int, typer.Option(min=1, max=1024)] = 64,
    max_lines: Annotated[int | None, typer.Option(min=1, help="Cut after so many lines.")] = None,
    quality: Literal["low", "medium", "high"] = "medium",
    temperature: Annotated[float, typer.Option(min=0, max=MAX_TEMPERATURE)] = 0.0,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No numbers.")] = False,
    server: Server = None,
    running: Running = RUNNING,
) -> None:
    """Write what belongs at one place of a file to standard output."""
    from . import complete as completing

    try:
        parsed = completing.FilePlace.parse(place)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE:LINE:COL") from None
    request = completing.request_for(parsed, max_tokens, max_lines, quality, temperature, seed)
    settings = running.settings()

    async def ask(predictor: Predictor) -> None:
        await completing.complete(predictor, request, watch, quiet)

    asyncio.run(ask_once(settings, server, ask))


@app.command("context")
def show_context(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE:COL", help="1-based, in characters.")],
    budget: Annotated[
        int,
        typer.Option(min=MIN_CONTEXT_TOKENS, max=MAX_CONTEXT_TOKENS, help="Tokens of the prompt."),
    ] = 2048,
    infill: Annotated[
        bool, typer.Option("--infill", help="Of an infill, not a next edit.")
    ] = False,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the prompt itself, too.")] = False,
    model: Model = None,
) -> None:
    """What the model is shown at one place of a file: each part, why, and its cost in tokens."""
    from . import complete
    from . import show_context as context

    try:
        parsed = complete.FilePlace.parse(place)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE:LINE:COL") from None
    task: Literal["infill", "next_edit"] = "infill" if infill else "next_edit"
    context.show(load(model=model), parsed, task, budget, prompt)


@eval_app.command("latency")
@app.command()
@with_options
def bench(
    quality: Literal["low", "medium", "high"] = "medium",
    context: Annotated[
        list[int] | None,
        typer.Option(
            min=MIN_CONTEXT_TOKENS,
            max=MAX_CONTEXT_TOKENS,
            help="Prompt budgets in tokens; may be given repeatedly.",
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Requests per budget and way of asking. Default: 12.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Less of everything: under a minute, for a first look.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="All columns, for wide terminals and files.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write it as JSON there.")
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Only the index, the context and the memory of a workspace; a *-files.jsonl.zst "
            "stands for 5,000 of its files.",
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Only compare with the llama.cpp-style server there: the same lines in turns.",
        ),
    ] = None,
    running: Running = RUNNING,
) -> None:
    """Measure this machine: latency per stage, tokens per step, cost of a keystroke, memory."""
    if workspace is not None:
        from .show_context import measure_workspace

        return measure_workspace(workspace, json_file)
    settings = running.settings()
    if beside is not None:
        from .bench import measure_beside

        return measure_beside(
            settings, beside, context[0] if context else 1_024, runs or 12, json_file
        )
    from .bench import measure

    measure(settings, quality, context, runs, quick, wide, json_file)


# --- serving --------------------------------------------------------------------------------------


@app.command()
@with_options
def serve(
    host: Annotated[str | None, typer.Option(help="Any but loopback demands a key.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535)] = None,
    running: Running = RUNNING,
    eagerness: Annotated[
        str | None,
        typer.Option(help="How readily next edits are given: low, medium or high."),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Of a Ray cluster that serves; 'local' starts one."),
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, help="Engines, with --ray.")] = 1,
    max_replicas: Annotated[
        int | None, typer.Option(min=1, help="So many under load, with --ray.")
    ] = None,
) -> None:
    """Answer completions over HTTP (OpenAI's and Mercury's formats). The key: REDRAFT_API_KEY."""
    from .logs import log_to_stderr
    from .serve import run_cluster, run_server

    log_to_stderr()
    settings = running.settings(host=host, port=port, eagerness=eagerness)
    if ray is None:
        asyncio.run(run_server(settings))
    else:
        asyncio.run(run_cluster(settings, ray, replicas, max_replicas))


@app.command()
@with_options
def lsp(
    tcp: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Listen there instead of stdio, for clients that tell the token: a new one, "
            "printed to stderr, or that of REDRAFT_LSP_TOKEN or --token-file.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Holds the token for --tcp, readable by its owner alone."
        ),
    ] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="The default; clients send it.")] = False,
    server: Server = None,
    running: Running = RUNNING,
) -> None:
    """The language server for editors. Shares one engine process with all of them.

    Over TCP, a client tells the token as the header Redraft-Token of its first message, or as
    initializationOptions.token of initialize.
    """
    from redraft.lsp.connection.access import new_token
    from redraft.lsp.connection.server import run_stdio, run_tcp

    from ..engine_process.client import EngineClient
    from .logs import log_to_stderr
    from .lsp_token import given_token, host_and_port, tell_listening

    if tcp is not None and stdio:
        raise typer.BadParameter("choose one of --stdio and --tcp", param_hint="--tcp")
    if token_file is not None and tcp is None:
        raise typer.BadParameter("only --tcp asks for a token", param_hint="--token-file")
    address = host_and_port(tcp) if tcp is not None else None
    given = given_token(os.environ, token_file) if address is not None else None
    log_to_stderr()
    settings = running.settings()
    predictor = remote(settings, server) if server is not None else EngineClient(settings)
    if address is None:
        raise typer.Exit(run_stdio(predictor))
    token = given or new_token()

    def listening(host: str, port: int) -> None:
        tell_listening(host, port, token, is_known=given is not None)

    run_tcp(predictor, *address, token, listening)
