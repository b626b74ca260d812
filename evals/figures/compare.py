"""Two runs over the same episodes: is one better? ``redraft eval compare``.

Differences are paired, with a bootstrap interval by group; where an episode succeeds or fails,
McNemar's exact test says how likely so uneven a difference is by chance. Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from redraft.model.errors import SettingsError

from .intervals import Figure, mcnemar, ratio
from .runs import RunFile

SHARES = (
    "passed", "exact", "first_line", "parse_ok", "place", "shown", "kept_shown", "exact_shown",
    "place_shown", "accepted", "accepted_white_space", "accepted_prefix", "quiet", "ended",
)  # fmt: skip
MEANS = (
    "chrf", "delta_chrf", "nats", "saved", "utility", "tokens", "steps",
    "denoise_ms", "total_ms", "nll",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One field in both runs, over the episodes that have it in both."""

    field: str
    share: bool
    a: float  # mean
    b: float
    difference: Figure  # b - a
    only_a: int | None = None  # shares: episodes that succeed in A alone
    only_b: int | None = None
    p: float | None = None  # shares: McNemar's exact two-sided p


def compare(a: RunFile, b: RunFile, seed: int = 0) -> tuple[int, list[Difference]]:
    """How many episodes both have, and every field that can be compared.

    Raises:
        SettingsError: the runs have no episode in common, or are of different benchmarks.
    """
    kinds = a.settings.get("benchmark"), b.settings.get("benchmark")
    if kinds[0] != kinds[1]:
        raise SettingsError(f"The first run is of {kinds[0]}, the second of {kinds[1]}.")
    if a.settings.get("sample") != b.settings.get("sample"):
        raise SettingsError(
            "The two runs were asked about different data (their samples differ): run one of them "
            "again with the files and the Redraft of the other."
        )
    common = [name for name in a.episodes if name in b.episodes]
    if not common:
        raise SettingsError("The two runs have no episode in common: run them on the same data.")
    return len(common), list(_differences(a, b, common, seed))


def _differences(a: RunFile, b: RunFile, common: list[str], seed: int) -> Iterator[Difference]:
    for field in (*SHARES, *MEANS):
        both = [
            (float(x[field]), float(y[field]), x["group"])
            for x, y in ((a.episodes[name], b.episodes[name]) for name in common)
            if x.get(field) is not None and y.get(field) is not None
        ]
        if not both:
            continue
        left, right, groups = zip(*both, strict=True)
        change = [y - x for x, y, _ in both]
        found = Difference(
            field=field,
            share=field in SHARES,
            a=sum(left) / len(both),
            b=sum(right) / len(both),
            difference=ratio(change, groups=groups, seed=seed),
        )
        yield _tested(found, change) if found.share else found


def _tested(found: Difference, change: list[float]) -> Difference:
    only_a = sum(1 for one in change if one < 0)
    only_b = sum(1 for one in change if one > 0)
    return Difference(
        found.field, found.share, found.a, found.b, found.difference,
        only_a, only_b, mcnemar(only_a, only_b),
    )  # fmt: skip
