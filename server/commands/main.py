"""The ``redraft`` command.

Each command imports what it needs, so that ``redraft --help`` is fast; only training imports torch.
Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from redraft.model.errors import InvalidRequest, RedraftError
from redraft.model.records import MAX_CONTEXT_TOKENS, MAX_TEMPERATURE, MIN_CONTEXT_TOKENS

from .chat import chat
from .complete import ask_once, remote
from .manage_models import app as models
from .manage_models import cell
from .more import group_of
from .options import RUNNING, Model, Running, load, with_options
from .personal_gate import app as gate_app
from .record import app as record_app
from .stats import stats
from .tour import tour

if TYPE_CHECKING:
    from redraft.model.records import Predictor


app = typer.Typer(
    name="redraft",
    cls=group_of(""),
    help="Suggest code on this machine: text at the cursor and the next edit, in editors, over "
    "HTTP and in the terminal.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
#: Groups of ``redraft --help``, in its order.
DAILY, MODELS, LEARNING, MEASURING = "Daily use", "Models", "Your own data", "Measuring"


PLACE = "Line and column of the cursor, both from 1; a column counts characters."

Quality = Annotated[
    Literal["low", "medium", "high"],
    typer.Option(help="How much work goes into an answer: low is fastest, high is most careful."),
]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Ask the 'redraft serve' at this address instead of this machine. Its key goes into "
        "REDRAFT_API_KEY.",
    ),
]


def main() -> None:
    """Run a command, and translate its errors into one line and an exit code."""
    try:
        _refuse_stdin(sys.argv[1:])
        app()
    except RedraftError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # as in 'redraft bench | head'
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _refuse_stdin(arguments: list[str]) -> None:
    """Explain why ``-:LINE:COL`` is no place; click takes it for an option.

    Raises:
        InvalidRequest: one of the arguments is such a place.
    """
    if any(re.fullmatch(r"-:\d+:\d+", each) for each in arguments):
        raise InvalidRequest(
            "Standard input ('-') cannot be completed: the name of a file tells its language. "
            "Write the text to a file and name that, such as /tmp/draft.py:11:16."
        )


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


@app.command(rich_help_panel=DAILY)
def doctor(
    warm_up: Annotated[bool, typer.Option(help="Load the model and time it.")] = True,
) -> None:
    """Check the installation, and say how to fix each problem."""
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


@app.command("setup", rich_help_panel=DAILY)
def set_up(
    editor: Annotated[
        str | None, typer.Argument(metavar="[EDITOR]", help="Without one, list editors.")
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Undo it; no trace of the client is left.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")] = False,
) -> None:
    """Install, update or remove Redraft in an editor, or list the editors of this machine.

    Editors: vscode, vscodium, cursor, windsurf, code-server, neovim, zed, helix, emacs.
    """
    from .setup.command import run_setup

    run_setup(editor, remove, yes)


# --- asking once ----------------------------------------------------------------------------------


@app.command(rich_help_panel=DAILY)
@with_options
def complete(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE:COL", help=PLACE)],
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the text while it is drafted and verified.")
    ] = False,
    max_tokens: Annotated[
        int, typer.Option(min=1, max=1024, help="Write at most this many tokens.")
    ] = 64,
    quality: Quality = "medium",
    temperature: Annotated[
        float,
        typer.Option(min=0, max=MAX_TEMPERATURE, help="Draw at random; 0 takes the likeliest."),
    ] = 0.0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Repeat the same random draw (with --temperature).")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the text alone, without figures.")
    ] = False,
    server: Server = None,
    running: Running = RUNNING,
) -> None:
    """Print what the model would write at one place of a file."""
    from . import complete as completing

    running.check_server(server)
    try:
        parsed = completing.FilePlace.parse(place)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE:LINE:COL") from None
    request = completing.request_for(parsed, max_tokens, quality, temperature, seed)
    settings = running.settings()

    async def ask(predictor: Predictor) -> None:
        await completing.complete(predictor, parsed, request, watch, quiet)

    asyncio.run(ask_once(settings, server, ask))


@app.command("context", rich_help_panel=MEASURING)
def show_context(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE:COL", help=PLACE)],
    budget: Annotated[
        int,
        typer.Option(
            min=MIN_CONTEXT_TOKENS, max=MAX_CONTEXT_TOKENS, help="Fill this many tokens of prompt."
        ),
    ] = 2048,
    infill: Annotated[
        bool, typer.Option("--infill", help="Show the prompt of ghost text, not of a next edit.")
    ] = False,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the prompt itself as well.")
    ] = False,
    model: Model = None,
) -> None:
    """Show what the model reads at one place of a file: each part, its reason and its tokens."""
    from . import complete
    from . import show_context as context

    try:
        parsed = complete.FilePlace.parse(place)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE:LINE:COL") from None
    task: Literal["infill", "next_edit"] = "infill" if infill else "next_edit"
    context.show(load(model=model), parsed, task, budget, prompt)


# --- serving --------------------------------------------------------------------------------------


@app.command(rich_help_panel=DAILY)
@with_options
def serve(
    host: Annotated[
        str | None,
        typer.Option(
            help="Listen on this address. Default: 127.0.0.1. Any other than loopback needs a key "
            "in REDRAFT_API_KEY."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Listen on this port. Default: 7331.")
    ] = None,
    running: Running = RUNNING,
    eagerness: Annotated[
        str | None,
        typer.Option(help="Show next edits rarely (low), medium or often (high). Default: medium."),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Serve on the Ray cluster at this address; 'local' starts one."
        ),
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, help="Start this many engines (--ray).")] = 1,
    max_replicas: Annotated[
        int | None, typer.Option(min=1, help="Start up to this many engines under load (--ray).")
    ] = None,
) -> None:
    """Serve completions over HTTP to OpenAI, Mercury, llama.cpp and Ollama clients.

    Without an option, 'redraft serve' listens on http://127.0.0.1:7331 and needs no key.
    """
    from ..settings import log_to_stderr
    from .serve import run_cluster, run_server

    log_to_stderr()
    settings = running.settings(host=host, port=port, eagerness=eagerness)
    if ray is None:
        asyncio.run(run_server(settings))
    else:
        asyncio.run(run_cluster(settings, ray, replicas, max_replicas))


def _refuse_port(value: str | None) -> None:
    """Refuse the options of a server on a port, and name what to use instead."""
    if value is not None:
        raise typer.BadParameter(
            "the language server no longer listens on a port. For one on another machine, let the "
            "editor start 'ssh HOST redraft lsp' (editor-clients/remote.md)."
        )


@app.command(rich_help_panel=DAILY)
@with_options
def lsp(
    stdio: Annotated[  # noqa: ARG001, as many clients add it to any command
        bool, typer.Option("--stdio", help="Speak over stdio: the default.")
    ] = False,
    port: Annotated[  # noqa: ARG001
        str | None, typer.Option("--tcp", "--token-file", hidden=True, callback=_refuse_port)
    ] = None,
    server: Server = None,
    running: Running = RUNNING,
) -> None:
    """Run the language server. Your editor starts this command; all editors share one engine."""
    from redraft.lsp.protocol.stdio import run_stdio

    from ..engine_process.client import EngineClient
    from ..settings import log_to_stderr
    from .console import err

    running.check_server(server)
    log_to_stderr()
    settings = running.settings()
    predictor = remote(settings, server) if server is not None else EngineClient(settings)
    if sys.stdin.isatty():
        err.print(
            "The language server waits for an editor on standard input. Editors start it "
            "themselves; Ctrl-C ends it.",
            markup=False,
        )
    raise typer.Exit(run_stdio(predictor))


@app.command(rich_help_panel=DAILY)
def stop() -> None:
    """End the engine processes that editors share. The next request of an editor starts one."""
    from .console import out
    from .serve import stop_engines

    if not stop_engines(load()):
        out.print("no engine process is running", markup=False)


app.command(rich_help_panel=DAILY)(tour)
app.command(rich_help_panel=DAILY)(chat)
app.add_typer(models, name="model", rich_help_panel=MODELS)
app.command(rich_help_panel=LEARNING)(stats)
app.add_typer(record_app, name="record", rich_help_panel=LEARNING)
app.add_typer(gate_app, name="gate", rich_help_panel=LEARNING)
