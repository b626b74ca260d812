"""``redraft bench``: runs the latency benchmark and shows its rows as they are measured, or JSON.

Measures nothing itself; see ``redraft.evals.latency.latency``. Tables fit 80 columns; ``--json``
writes all figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import typer
from redraft.model.records import Quality
from rich.text import Text

from ..settings import Settings
from .console import bar, out
from .options import check_writable, model_for, write_json

if TYPE_CHECKING:
    from redraft.evals.figures import Spread
    from redraft.evals.latency.bench_editing import Editing
    from redraft.evals.latency.latency import Amount, BenchReport, InfillRow, TypedInfills

_LOADED = 0.75  # processes per core above which the clock misleads
STOPPED = 130  # what a shell calls a command that Ctrl-C ended
_GAP = "  "

RowT = TypeVar("RowT")


def measure(
    settings: Settings,
    quality: Quality,
    contexts: Sequence[int] | None,
    runs: int | None,
    quick: bool,
    json_file: Path | None,
) -> None:
    """Measure, show each row once it is there, and write JSON to ``json_file`` if given. Ctrl-C
    ends it with what there is by then.

    Raises:
        SettingsError: ``json_file`` cannot be written.
        RedraftError: the model cannot be loaded.
        Exit: it was stopped.
    """
    from redraft.evals.latency.latency import as_json, run

    check_writable(json_file)
    shown = Shown(lambda line: out.print(Text(line), soft_wrap=True))
    with bar() as show:
        report = run(
            model_for(settings),
            settings.variant,
            settings.provider,
            settings.threads,
            quality,
            amount_of(contexts, runs, quick),
            lambda what: show(what, None),
            shown.seen,
        )
    shown.rest(report)
    write_json(json_file, as_json(report))
    if not report.complete:
        out.print("Stopped: the rows above were measured before, the others are missing.")
        raise typer.Exit(STOPPED)


def amount_of(contexts: Sequence[int] | None, runs: int | None, quick: bool) -> Amount:
    """What was asked for: budgets that are named are those of every part."""
    from redraft.evals.latency.latency import KEYS_PER_RUN, QUICK, Amount

    amount = QUICK if quick else Amount()
    if contexts:
        amount = replace(amount, contexts=tuple(contexts), typing_contexts=tuple(contexts))
    return replace(amount, runs=runs, keys=KEYS_PER_RUN * runs) if runs else amount


def measure_beside(
    settings: Settings, url: str, context: int, runs: int, json_file: Path | None
) -> None:
    """Ask a llama.cpp-style server at ``url`` and Redraft for the same lines, in turns; rows are
    shown as they are measured.

    Raises:
        SettingsError: the other server cannot be asked, or ``json_file`` cannot be written.
    """
    from redraft.evals.latency.beside import compare, headline
    from redraft.model.load import onnx_loader

    check_writable(json_file)
    with bar() as show:
        show("loading the model", None)
        model = model_for(settings)
        loaded = onnx_loader(model, settings.variant, settings.provider, settings.threads)(
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


# --- tables, row by row ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column(Generic[RowT]):
    """One column of a table whose rows come one at a time: its width is known beforehand."""

    heading: str
    width: int  # cells at least
    text: Callable[[RowT], str]


@dataclass(slots=True)
class Rows(Generic[RowT]):
    """A table, printed row by row: title and headings come with the first."""

    title: str
    columns: Sequence[Column[RowT]]
    begun: bool = False

    def lines(self, row: RowT) -> Iterator[str]:
        if not self.begun:
            self.begun = True
            yield ""
            yield self.title
            yield _line([(column.heading, column.width) for column in self.columns])
        yield _line([(column.text(row), column.width) for column in self.columns])


def _line(cells: Sequence[tuple[str, int]]) -> str:
    return _GAP.join(text.ljust(width) for text, width in cells).rstrip()


def _stage(name: str, show: Callable[[Spread], str]) -> Callable[[InfillRow | Editing], str]:
    return lambda row: show(row.stages[f"{name}_ms"])


def _cells() -> Rows[InfillRow]:
    return Rows(
        "single-line infills, ms p50 / p95: less is better; tokens per step: more is",
        (
            Column("context", 7, lambda row: str(row.context)),
            Column("cache", 14, lambda row: row.way.removeprefix("warm, ")),
            Column("total", 13, _stage("total", _spread)),
            Column("prefill", 13, _stage("prefill", _spread)),
            Column("denoise", 13, _stage("denoise", _spread)),
            Column("per step", 8, lambda row: f"{row.tokens_per_step:.2f}"),
        ),
    )


def _typing() -> Rows[TypedInfills]:
    return Rows(
        "typing into a real file, p50 / p95 per keystroke: less is better",
        (
            Column("context", 7, lambda row: str(row.context)),
            Column("total ms", 13, lambda row: _spread(row.total_ms)),
            Column("recomputed", 11, lambda row: _spread(row.recomputed_tokens)),
            Column("share of prompt", 15, lambda row: _shares(row.recomputed_share, "p95")),
            Column("as with an empty cache", 20, _same),
        ),
    )


def _same(row: TypedInfills) -> str:
    return f"{row.same_answer:.0%} of {row.compared} answers"


def _editing() -> Rows[Editing]:
    return Rows(
        "every key asked about, ms p50 / p99: less is better",
        (
            Column("context", 7, lambda row: str(row.context)),
            Column("asked for", 18, lambda row: row.way),
            Column("total", 13, _stage("total", _long_spread)),
            Column("denoise", 13, _stage("denoise", _long_spread)),
            Column("processor", 13, lambda row: _long_spread(row.processor_ms)),
        ),
    )


class Shown:
    """The report for people, as it comes; ``say`` takes one line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._cells, self._typing, self._editing = _cells(), _typing(), _editing()

    def seen(self, part: BenchReport | InfillRow | TypedInfills | Editing) -> None:
        from redraft.evals.latency.bench_editing import Editing
        from redraft.evals.latency.latency import InfillRow, TypedInfills

        if isinstance(part, InfillRow):
            self._print(self._cells.lines(part))
        elif isinstance(part, TypedInfills):
            self._print(self._typing.lines(part))
        elif isinstance(part, Editing):
            self._print(self._editing.lines(part))
        else:
            self._say(f"{part.model} on {part.provider}, {part.threads} threads,")
            self._say(f"quality {part.quality}, auto context {part.auto_context}")

    def rest(self, report: BenchReport) -> None:
        """What is known only at the end, or is one figure."""
        self._print(_passes(report.passes_ms))
        self._say("")
        for name, spread in report.editor.items():
            figure = f"{spread.p50:.2f} / {spread.p99:.2f} ms p50 / p99"
            self._say(f"server in 10,000 lines, {name}: {figure}")
        for name, megabytes in report.memory_mb.items():
            self._say(f"memory, {name}: {megabytes:.0f} MB")
        for name, share in report.load.items():
            self._say(f"load per core, {name}: {share:.2f}")
        for name, value in report.machine.items():
            self._say(f"{name}: {value}")
        if max(report.load.values(), default=0.0) > _LOADED:
            self._say("The machine had other work: times by the clock are too long.")

    def _print(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._say(line)


def _passes(passes_ms: dict[int, float]) -> Iterator[str]:
    rows: Rows[tuple[str, str, str]] = Rows(
        "a judging pass behind 1,000 tokens: less is better",
        (
            Column("positions", 9, lambda row: row[0]),
            Column("ms", 7, lambda row: row[1]),
            Column("ms for one more", 15, lambda row: row[2]),
        ),
    )
    before: tuple[int, float] | None = None
    for width, took in sorted(passes_ms.items()):
        more = "" if before is None else f"{(took - before[1]) / (width - before[0]):.1f}"
        yield from rows.lines((str(width), f"{took:.1f}", more))
        before = width, took


def _shares(spread: Spread, end: str) -> str:
    return f"{spread.p50:.1%} / {getattr(spread, end):.1%}"


def _long_spread(spread: Spread) -> str:
    digits = 0 if spread.p50 >= 10 else 1
    return f"{spread.p50:.{digits}f} / {spread.p99:.{digits}f}"


def _spread(spread: Spread) -> str:
    return f"{spread.p50:.0f} / {spread.p95:.0f}"
