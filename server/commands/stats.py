"""``redraft stats``: what became of suggestions, by day, language and kind."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from redraft.lsp.recording.counts import CountsRow


def stats(
    days: Annotated[
        int | None,
        typer.Option(min=1, max=90, help="Count this many days, today included. Default: 14."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, a row for each day, language and kind.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete all statistics, and print none.")
    ] = False,
) -> None:
    """Show what became of suggestions, and how long they took. No text of yours is counted."""
    from redraft.lsp.recording.counts import WAIT_ENDS_MS, StatisticsFolder
    from redraft.lsp.recording.statistics_text import DEFAULT_DAYS, statistics_text

    from .console import err, harmless, out

    kept = StatisticsFolder()
    if forget:
        out.print(f"Deleted {kept.forget()} files of {kept.folder}.", markup=False)
        return
    today, days = date.today(), days or DEFAULT_DAYS
    kept.prune(today)
    rows, problems = kept.read(days, today)
    for problem in problems:
        err.print(harmless(problem), markup=False)
    if as_json:
        content = {"folder": str(kept.folder), "days": days, "wait_ends_ms": WAIT_ENDS_MS}
        out.print_json(data=content | {"rows": [_row(row) for row in rows]}, ensure_ascii=True)
        return
    out.print(statistics_text(rows, days, today), markup=False)
    if not rows:
        out.print(
            f"They are kept in {kept.folder} while the setting statistics is on.", markup=False
        )


def _row(row: CountsRow) -> dict[str, Any]:
    counts = row.counts
    about = {"day": row.day, "language": row.language, "kind": row.kind, "shown": counts.shown}
    return {**about, **asdict(counts), "wait_p50_ms": counts.p50_ms, "wait_p95_ms": counts.p95_ms}
