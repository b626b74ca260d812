"""``redraft soak``: work and mischief against the real processes, on this machine alone."""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from redraft.model.errors import ModelNotReady, SettingsError

from .json_file import check_writable, write_json
from .options import Group, with_options

if TYPE_CHECKING:
    from redraft.evals.recordings.format import Stream
    from redraft.evals.soak.soak import Amounts, Mode, Tested
    from redraft.evals.soak.tally import SoakReport, Tally
    from redraft.model.records import EditRequest, ModelStatus, Prediction, StepCallback
    from rich.table import Table


_RUN = "import sys; sys.argv[0] = 'redraft'; from redraft.server.commands.main import main; main()"


@dataclasses.dataclass(frozen=True, slots=True)
class HowMuch(Group):
    """The options that say how much is done."""

    night: Annotated[
        bool, typer.Option("--night", help="100,000 events, 500 blows, 20,000 messages; hours.")
    ] = False
    events: Annotated[int | None, typer.Option(min=100, help="Of typing.")] = None
    messages: Annotated[int | None, typer.Option(min=10, help="Of the fuzz, about.")] = None
    blows: Annotated[int | None, typer.Option(min=1, help="Of the chaos.")] = None
    clients: Annotated[
        list[int] | None, typer.Option(min=1, max=1_000, help="Of the flood; may be repeated.")
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option(min=1, help="Of typing and chaos at most, each flood, number of replicas."),
    ] = None

    def amounts(self) -> Amounts:
        from redraft.evals.soak.soak import NIGHT, SHORT

        base, messages, seconds = NIGHT if self.night else SHORT, self.messages, self.seconds
        return dataclasses.replace(
            base,
            events=self.events or base.events,
            requests=3 * messages // 4 if messages else base.requests,
            sessions=max(1, messages // 15) if messages else base.sessions,
            blows=self.blows or base.blows,
            clients=tuple(self.clients) if self.clients else base.clients,
            typing_s=seconds or base.typing_s,
            chaos_s=seconds or base.chaos_s,
            flood_s=seconds or base.flood_s,
            replicas_s=seconds or base.replicas_s,
        )


AS_USUAL = HowMuch()


@with_options
def soak(
    modes: Annotated[
        list[str] | None,
        typer.Argument(
            help="typing, fuzz, chaos, flood; replicas (needs Ray). Default: all but the last."
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="REPO|RECORDING",
            help="What is typed: a repository's commits, or a recording. Default: this folder.",
        ),
    ] = None,
    much: HowMuch = AS_USUAL,
    seed: Annotated[int, typer.Option(min=0, help="The same seed does the same.")] = 1,
    model: Annotated[str | None, typer.Option(help="See 'redraft model list'.")] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write it there.", callback=check_writable),
    ] = None,
) -> None:
    """Does it hold? Type, fuzz, kill and flood the real processes, and count what comes of it.

    Everything runs on loopback, in folders of its own. Exit code 1: something did not hold.
    """
    from redraft.evals.soak.soak import MODES, USUAL, run

    if unknown := set(modes or ()) - {*MODES}:
        raise typer.BadParameter(f"{min(unknown)!r} is none of {', '.join(MODES)}")
    chosen = [mode for mode in MODES if mode in (modes or USUAL)]
    amounts = much.amounts()
    reports: list[SoakReport] = []
    with _tested(model, source, chosen) as tested:
        for mode in chosen:
            with _telling(mode) as watch:
                report = run(mode, tested, amounts, seed, watch)
            reports.append(report)
            _show(report)
            write_json(
                json_file, {"soak": [dataclasses.asdict(one) for one in reports], "seed": seed}
            )
    if any(one.broken or one.lost for one in reports):
        raise typer.Exit(1)


@contextmanager
def _telling(mode: Mode) -> Iterator[Callable[[Tally], None]]:
    """Says every minute how far it is."""
    from .console import err

    over = threading.Event()

    def watch(tally: Tally) -> None:
        def tell() -> None:
            minutes = 0
            while not over.wait(60):
                minutes += 1
                err.print(
                    f"{mode}, {minutes} min: {tally.events:,} events, {tally.answers:,} answers, "
                    f"{tally.counts['kills']:,} kills, {len(tally.broken)} did not hold",
                    markup=False,
                )

        threading.Thread(target=tell, daemon=True).start()

    try:
        yield watch
    finally:
        over.set()


@contextmanager
def _tested(model: str | None, source: Path | None, modes: list[Mode]) -> Iterator[Tested]:
    """What is tested, with a copy of the model where that is to be harmed."""
    import tempfile

    from redraft.evals.soak.installation import Commands
    from redraft.evals.soak.soak import Tested
    from redraft.model.records import ModelStatus
    from redraft.model.weights.default_model import resolve
    from redraft.model.weights.provide import export

    from ..app import create_app
    from ..settings import load_settings

    settings = load_settings().with_options(model=model)
    name = resolve(settings.model)
    redraft = [sys.executable, "-P", "-c", _RUN]
    app = create_app(_Absent(ModelStatus("absent", name)), settings)
    with tempfile.TemporaryDirectory(prefix="soak-model-") as folder:
        models = Path(folder) if "chaos" in modes else None
        if models is not None:
            export(name, settings.variant, models / name)
        streams = _streams(source, Path(folder)) if "typing" in modes else []
        routes = sorted(
            {
                (route.method, route.resource.canonical)
                for route in app.router.routes()
                if route.resource is not None and route.method != "*"
            }
        )
        commands = Commands((*redraft, "lsp"), (*redraft, "serve", "--host", "127.0.0.1"))
        yield Tested(commands, name, models, streams, routes)


class _Absent:
    """Stands where the routes are looked at and nobody asks."""

    def __init__(self, status: ModelStatus) -> None:
        self._status = status

    async def status(self) -> ModelStatus:
        return self._status

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        raise ModelNotReady("There is no model here.")

    async def close(self) -> None: ...


def _streams(source: Path | None, folder: Path) -> list[Stream]:
    from redraft.evals.recordings.from_git import Wanted, import_git
    from redraft.evals.recordings.streams import read_stream

    found = source or Path.cwd()
    if not found.exists():
        raise SettingsError(f"{found} does not exist. Name a repository or a recording.")
    if found.is_file() and not found.name.endswith(".zst"):
        return [read_stream(found)]
    typed = folder / "typed.jsonl"
    import_git(found, typed, Wanted(most=40), "redraft soak", lambda what, done: None)
    return [read_stream(typed)]


def _show(report: SoakReport) -> None:
    from .console import out

    out.print(_table(report))
    for what in report.broken:
        out.print(f"did not hold: {what}", markup=False, style="red")


def _table(report: SoakReport) -> Table:
    from rich.table import Table

    table = Table(title=f"{report.mode}, seed {report.seed}, {report.seconds:g} s", width=72)
    table.add_column("what")
    table.add_column("figure", justify="right")
    latency = report.latency_ms
    rows = [
        ("events", f"{report.events:,}"),
        ("answers", f"{report.answers:,}"),
        ("errors", f"{report.errors:,}"),
        ("lost", f"{report.lost:,}"),
        ("latency p50 · p99, ms", f"{latency.p50:,.1f} · {latency.p99:,.1f}"),
        ("memory warm · at the end, MB", " · ".join(f"{one:,.0f}" for one in report.memory_mb)),
        ("MB per 10,000 events", _slope(report)),
        *((name, f"{value:,g}") for name, value in sorted(report.counts.items())),
    ]
    for what, figure in rows:
        table.add_row(what, figure)
    return table


def _slope(report: SoakReport) -> str:
    found = report.slope
    if found is None:
        return "not measured"
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"
