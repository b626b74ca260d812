"""``redraft eval fleet``: how many engines so many developers need; simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .json_file import check_writable, write_json

if TYPE_CHECKING:
    from rich.table import Table

#: Hours of a month, for an engine that runs all the time.
MONTH_H = 730


def fleet(
    recordings: Annotated[
        list[Path], typer.Argument(help="Of people who type, for when they ask.")
    ],
    p50_ms: Annotated[float, typer.Option(min=1, help="Measured: an answer of an idle engine.")],
    p95_ms: Annotated[float, typer.Option(min=1, help="The slowest 5 % of them.")],
    miss_ms: Annotated[
        float, typer.Option(min=0, help="Measured: more where the prompt is not cached.")
    ] = 0.0,
    session_mb: Annotated[
        float, typer.Option(min=0.1, help="Keys and values of one developer's prompts.")
    ] = 125.0,
    cache_gb: Annotated[float, typer.Option(min=0.1, help="Of an engine, for those.")] = 1.0,
    active: Annotated[
        float, typer.Option(min=0.001, max=1, help="Share who type at a moment.")
    ] = 0.15,
    pause_ms: Annotated[float, typer.Option(min=10, help="Of typing, after which is asked.")] = 150,
    within_ms: Annotated[
        float | None, typer.Option(min=1, help="95 % of answers in. Default: 1.5 × --p95-ms.")
    ] = None,
    price: Annotated[float, typer.Option(min=0, help="Of an engine, an hour.")] = 0.0,
    developers: Annotated[
        list[int] | None, typer.Option(min=1, help="Default: 10, 1,000 and 100,000.")
    ] = None,
    hours: Annotated[float, typer.Option(min=0.01, help="That are simulated.")] = 8.0,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write it there.", callback=check_writable),
    ] = None,
) -> None:
    """How many engines do so many developers need? Simulated, from what was measured."""
    from redraft.evals.latency import fleet as simulation
    from redraft.evals.recordings.streams import read_stream

    from .console import out

    typing = simulation.typing_of([read_stream(path) for path in recordings], pause_ms / 1e3)
    held = max(1, int(1_000 * cache_gb / session_mb))
    engine = simulation.FleetEngine(simulation.latencies(p50_ms, p95_ms), miss_ms, held)
    wanted = within_ms or 1.5 * p95_ms
    best = simulation.most_developers(typing, engine, active, wanted, hours, seed)
    out.print(
        f"Simulated: {typing.per_minute:.0f} questions a minute of one who types; one engine "
        f"serves {best.developers} developers of whom {active:.0%} type: p50 "
        f"{best.total_ms.p50:.0f} ms, p95 {best.total_ms.p95:.0f} ms, {best.busy:.0%} busy, "
        f"{best.replaced / best.asked:.0%} of the questions replaced by newer ones."
    )
    rows = []
    for number in developers or [10, 1_000, 100_000]:
        engines, uneven = simulation.engines_for(number, best.developers, seed)
        cost = engines * price * MONTH_H / number
        rows.append(
            {"developers": number, "engines": engines, "uneven": uneven, "cost_month": cost}
        )
    caches = [
        min(n["developers"] * active * session_mb / 1e3, n["engines"] * cache_gb) for n in rows
    ]
    out.print(_table(rows, caches))
    write_json(json_file, {"simulated": rows, "developers_of_one_engine": best.developers})


def _table(rows: Sequence[Mapping[str, float]], caches_gb: Sequence[float]) -> Table:
    from rich.table import Table

    table = Table()
    for heading in ("developers", "engines", "fullest", "cache, GB in all", "a developer, a month"):
        table.add_column(heading, justify="right")
    for row, cache in zip(rows, caches_gb, strict=True):
        table.add_row(
            f"{row['developers']:,}",
            f"{row['engines']:,}",
            f"{row['uneven']:.2f} ×",
            f"{cache:,.1f}",
            f"{row['cost_month']:,.2f}",
        )
    return table
