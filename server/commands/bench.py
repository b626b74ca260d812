"""``redraft bench``: runs the latency benchmark and shows its report as tables or JSON.

Measures nothing itself; see ``redraft.evals.latency.latency``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.model.records import Quality
from redraft.model.weights.default_model import resolve
from rich.table import Table

from ..settings import Settings
from .console import bar, out
from .json_file import check_writable, write_json

if TYPE_CHECKING:
    from redraft.evals.figures.spread import Spread
    from redraft.evals.latency.latency import Report

_LOADED = 0.75  # processes per core above which the clock misleads


def measure(
    settings: Settings,
    quality: Quality,
    contexts: Sequence[int] | None,
    runs: int,
    json_file: Path | None,
) -> None:
    """Measure, show, and write JSON to ``json_file`` if given.

    Raises:
        SettingsError: ``json_file`` cannot be written.
        RedraftError: the model cannot be loaded.
    """
    from redraft.evals.latency.latency import CONTEXTS, as_json, run

    check_writable(json_file)
    with bar() as show:
        report = run(
            resolve(settings.model).name,
            settings.variant,
            settings.provider,
            settings.threads,
            quality,
            contexts or CONTEXTS,
            runs,
            lambda what: show(what, None),
        )
    for table in tables(report):
        out.print(table, soft_wrap=False)
    write_json(json_file, as_json(report))


def measure_beside(
    settings: Settings, url: str, context: int, runs: int, json_file: Path | None
) -> None:
    """Ask a llama.cpp-style server at ``url`` and Redraft for the same lines, in turns; rows are
    shown as they are measured.

    Raises:
        SettingsError: the other server cannot be asked, or ``json_file`` cannot be written.
    """
    from redraft.evals.latency.beside import compare, headline
    from redraft.model.engine.load import onnx_loader

    check_writable(json_file)
    with bar() as show:
        show("loading the model", None)
        loaded = onnx_loader(settings.model, settings.variant, settings.provider, settings.threads)(
            lambda *_: None
        )
        rows = []
        try:
            for row in compare(loaded, url, context, runs, lambda what: show(what, None)):
                rows.append(row)
                out.print(
                    f"{row.state}, {row.way}: {row.ours_ms.p50:.0f} ms, there "
                    f"{row.theirs_ms.p50:.0f} ms, {row.ratio.p50:.2f}× (median of {row.lines}); "
                    f"exact {row.ours_exact} and {row.theirs_exact}"
                )
        finally:
            loaded.backend.close()
    out.print(headline(rows))
    write_json(
        json_file, {"model": loaded.label, "url": url, "rows": [asdict(row) for row in rows]}
    )


def tables(report: Report) -> Iterator[Table]:
    """The report for people: p50 / p95 in milliseconds."""
    from redraft.evals.figures.drafts import told

    about = (
        f"{report.model} on {report.provider}, {report.threads} threads, quality {report.quality}, "
        f"auto context {report.auto_context}"
    )
    latency = _table(
        f"{about}\nsingle-line infills, ms p50 / p95",
        (
            "context",
            "cache",
            "total",
            "prefill",
            "denoise",
            "recomputed",
            "steps",
            "tokens/step",
            "drafts right",
        ),
    )
    for cell in report.cells:
        latency.add_row(
            str(cell.context),
            cell.way,
            *(_spread(cell.stages[f"{name}_ms"]) for name in ("total", "prefill", "denoise")),
            f"{cell.recomputed:.0f} of {cell.prompt_tokens:.0f}",
            _spread(cell.steps),
            f"{cell.tokens_per_step:.2f}",
            told(cell.drafts),
        )
    yield latency
    typing = _table(
        "typing into a real file, p50 / p95 per keystroke",
        ("context", "total ms", "recomputed tokens", "recomputed share", "as with an empty cache"),
    )
    for one in report.typing:
        typing.add_row(
            str(one.context),
            _spread(one.total_ms),
            _spread(one.recomputed_tokens),
            f"{one.recomputed_share.p50:.1%} / {one.recomputed_share.p95:.1%}",
            f"{one.same_answer:.0%} of {one.compared} answers",
        )
    yield typing
    yield _editing(report)
    if report.passes_ms:
        passes = _table(
            "a judging pass behind 1,000 tokens", ("positions", "ms", "ms for one more")
        )
        before: tuple[int, float] | None = None
        for width, took in sorted(report.passes_ms.items()):
            more = "" if before is None else f"{(took - before[1]) / (width - before[0]):.1f}"
            passes.add_row(str(width), f"{took:.1f}", more)
            before = width, took
        yield passes
    rest = _table("the rest", ("what", "figure"))
    for name, spread in report.editor.items():
        figure = f"{spread.p50:.2f} / {spread.p99:.2f} ms"
        rest.add_row(f"language server per keystroke in 10,000 lines, {name}, p50 / p99", figure)
    for name, megabytes in report.memory_mb.items():
        rest.add_row(f"memory, {name}", f"{megabytes:.0f} MB")
    for name, share in report.load.items():
        rest.add_row(f"load per core, {name}", f"{share:.2f}")
    for name, value in report.machine.items():
        rest.add_row(name, value)
    yield rest
    if max(report.load.values()) > _LOADED:
        yield _table("the machine had other work: times by the clock are too long", ())


def _editing(report: Report) -> Table:
    """Both tasks, stage by stage."""
    names = ("context", "queue", "prompt", "prefill", "denoise", "parse", "total")
    table = _table(
        "every key asked about, ms p50 / p99",
        ("context", "asked for", *names, "processor", "recomputed share", "overtaken"),
    )
    for one in report.editing:
        table.add_row(
            str(one.context),
            one.way,
            *(_long_spread(one.stages[f"{name}_ms"]) for name in names),
            _long_spread(one.processor_ms),
            f"{one.recomputed_share.p50:.1%} / {one.recomputed_share.p99:.1%}",
            f"{one.behind_ms:.0f}",
        )
    return table


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 3, 0, 0))
    for heading in headings:
        table.add_column(heading)
    return table


def _long_spread(spread: Spread) -> str:
    digits = 0 if spread.p50 >= 10 else 1
    return f"{spread.p50:.{digits}f} / {spread.p99:.{digits}f}"


def _spread(spread: Spread) -> str:
    return f"{spread.p50:.0f} / {spread.p95:.0f}"
