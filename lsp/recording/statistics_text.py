"""Statistics as people read them: a table of counts, and the accepted share of each day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from redraft.model.records import Task

from .counts import WAIT_ENDS_MS, CountsRow, SuggestionCounts, sum_counts

DEFAULT_DAYS = 14

_HEADINGS = (*("shown", "accepted", "typed", "ignored", "rejected", "saved", "p50", "p95"),)
_KINDS: dict[Task, str] = {"infill": "ghost text", "next_edit": "next edit"}
_LEGEND = """\
accepted: by a key, wholly or in part. typed: all of it by hand. ignored: any
other end, or replaced by the next one. saved: keys not pressed. p50, p95: half
and 95 % of the suggestions came within that time after the editor had asked."""
_BAR_WIDTH = 30
_EIGHTHS = " ▏▎▍▌▋▊▉"


def statistics_text(rows: Sequence[CountsRow], days: int, today: date) -> str:
    """Return the counts of the last ``days`` days by kind, language and day."""
    first = (today - timedelta(days=days - 1)).isoformat()
    if not rows:
        return f"No suggestion was counted from {first} to {today.isoformat()}."
    by_day = sum_counts(rows, lambda row: row.day)
    groups = [
        sum_counts(rows, lambda _: "all"),
        sum_counts(rows, lambda row: _KINDS[row.kind]),
        sum_counts(rows, lambda row: row.language),
        by_day,
    ]
    title = f"Suggestions from {first} to {today.isoformat()}"
    plot = ["Accepted of those shown", *_plot(by_day)]
    return "\n".join([title, "", *_table(groups), "", *plot, "", _LEGEND])


def _table(groups: Iterable[Mapping[str, SuggestionCounts]]) -> list[str]:
    lines: list[tuple[str, ...]] = [("", *_HEADINGS)]
    for group in groups:
        lines += [(name, *_cells(counts)) for name, counts in group.items()]
        lines.append(())
    widths = [max(map(len, column)) for column in zip(*filter(None, lines), strict=True)]
    return [_line(cells, widths) for cells in lines[:-1]]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    if not cells:
        return ""
    numbers = zip(cells[1:], widths[1:], strict=True)
    return " ".join([cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in numbers)])


def _cells(counts: SuggestionCounts) -> list[str]:
    numbers = (
        *(counts.shown, counts.accepted, counts.typed, counts.ignored, counts.rejected),
        counts.saved,
    )
    return [*(f"{number:,}" for number in numbers), *map(_wait, (counts.p50_ms, counts.p95_ms))]


def _wait(wait_ms: int | None) -> str:
    if wait_ms is None:
        return f">{WAIT_ENDS_MS[-1] / 1000:g}s"
    return f"{wait_ms}ms" if wait_ms < 1000 else f"{wait_ms / 1000:g}s"


def _plot(by_day: Mapping[str, SuggestionCounts]) -> list[str]:
    return [
        f"{day} {_bar(counts.accepted_share)} {counts.accepted_share:4.0%} of {counts.shown:,}"
        for day, counts in by_day.items()
    ]


def _bar(share: float) -> str:
    eighths = round(8 * _BAR_WIDTH * share)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(_BAR_WIDTH, "·")
