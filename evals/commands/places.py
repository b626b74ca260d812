"""``redraft eval places``: how often a place that must change is among the first ones.

Translates options into calls of ``redraft.evals``; measures nothing itself.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def places(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Held-out commits (dev-commits.jsonl.zst) or steps.jsonl.zst."
        ),
    ],
    weights: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Weights to measure instead of the shipped ones."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Moments at most.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the tables as JSON.")
    ] = None,
) -> None:
    """Rank the lines of open files after each edit and compare them with the edits that follow."""
    from itertools import islice

    from redraft.evals.places.place_tables import measure, tables
    from redraft.evals.places.sources import read_moments
    from redraft.lsp.edit_places import SURE_CHANCE
    from redraft.model.places.ranker import load_ranker, load_shipped_ranker
    from redraft.server.commands.console import out
    from redraft.server.commands.options import write_json
    from rich.table import Table

    ranker = load_shipped_ranker() if weights is None else load_ranker(weights)
    found = list(tables(measure(ranker, islice(read_moments(source), limit), SURE_CHANCE)))
    for table in found:
        shown = Table(*table.headings, title=table.title, title_justify="left")
        for row in table.rows:
            shown.add_row(*row)
        out.print(shown)
    write_json(json_file, {"source": source.name, "tables": [asdict(table) for table in found]})
