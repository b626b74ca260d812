"""Comparison of two runs over the same examples.

Differences are paired by example and have a bootstrap interval by group. For fields that are true
or false, an exact sign test over groups says how likely so uneven a difference is by chance: the
gaps of a problem, or the moments of a session, succeed or fail together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from redraft.model.errors import SettingsError

from .example import Row
from .figures import Figure, ratio, sign_test
from .run import Run
from .scorers.latency import part_of
from .tables import group_by_session

SHARES = (
    "passed", "exact", "first_line", "parse_ok", "place", "shown", "kept_shown", "exact_shown",
    "place_shown", "accepted", "accepted_white_space", "accepted_prefix", "quiet", "ended", "done",
    "same",
)  # fmt: skip
MEANS = (
    "chrf", "delta_chrf", "nats", "saved", "utility", "tokens", "steps",
    "decode_ms", "total_ms", "prefill_ms", "processor_ms", "recomputed", "pass_ms",
)  # fmt: skip
#: Fields of which less is better; of those in neither list more is.
LESS = frozenset({
    "nats", "steps", "decode_ms", "total_ms", "prefill_ms", "processor_ms", "recomputed",
    "pass_ms",
})  # fmt: skip
#: Fields that are neither good nor bad by themselves.
NEITHER = frozenset({"shown", "tokens", "ended"})


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a field between two runs, over the examples that both runs have it for."""

    field: str
    share: bool
    a: float  # mean
    b: float
    difference: Figure  # b - a
    only_a: int | None = None  # shares: examples that succeed in A alone
    only_b: int | None = None
    p: float | None = None  # shares: exact two-sided sign test over groups

    @property
    def is_worse(self) -> bool:
        """True if the whole confidence interval says that the second run is worse."""
        low, high = self.difference.low, self.difference.high
        name = self.field.rpartition(": ")[2]
        if low is None or high is None or name in NEITHER:
            return False
        return low > 0 if name in LESS else high < 0


def compare(a: Run, b: Run, seed: int = 0) -> tuple[int, list[Difference]]:
    """Return how many examples both runs have, and every field that can be compared.

    Raises:
        SettingsError: the runs have no example in common, or are of different tasks or data.
    """
    if a.spec.task != b.spec.task:
        raise SettingsError(f"The first run is of {a.spec.task}, the second of {b.spec.task}.")
    if a.spec.sample != b.spec.sample:
        raise SettingsError(
            "The two runs were asked about different data (their samples differ): run one of them "
            "again with the files and the Redraft of the other."
        )
    found = compare_rows(a.rows(), b.rows(), seed)
    if a.spec.task == "bench":
        found = found[0], list(_by_part(a.rows(), b.rows(), seed))
    if not found[0]:
        raise SettingsError("The two runs have no example in common: run them on the same data.")
    return found


def _by_part(a: Sequence[Row], b: Sequence[Row], seed: int) -> Iterator[Difference]:
    """Return the differences of each kind of request, whose name goes before the field's."""
    parts: dict[str, list[Row]] = {}
    for each in a:
        parts.setdefault(part_of(each), []).append(each)
    for part, rows in parts.items():
        for one in compare_rows(rows, b, seed)[1]:
            yield replace(one, field=f"{part}: {one.field}")


def compare_rows(a: Sequence[Row], b: Sequence[Row], seed: int = 0) -> tuple[int, list[Difference]]:
    """Return how many rows both have, and every field that can be compared."""
    others = {each["id"]: each for each in b}
    common = group_by_session([each for each in a if each["id"] in others])
    return len(common), list(_differences(common, others, seed))


def _differences(rows: Sequence[Row], others: Mapping[str, Row], seed: int) -> Iterator[Difference]:
    for field in (*SHARES, *MEANS):
        both = [
            (float(x[field]), float(y[field]), x["group"])
            for x, y in ((each, others[each["id"]]) for each in rows)
            if x.get(field) is not None and y.get(field) is not None
        ]
        if not both:
            continue
        left, right, groups = zip(*both, strict=True)
        change = [y - x for x, y, _ in both]
        by_group: dict[str, float] = {}
        for each, group in zip(change, groups, strict=True):
            by_group[group] = by_group.get(group, 0.0) + each
        signs = [sum(each < 0 for each in by_group.values())]
        signs.append(sum(each > 0 for each in by_group.values()))
        share = field in SHARES
        yield Difference(
            field=field,
            share=share,
            a=sum(left) / len(both),
            b=sum(right) / len(both),
            difference=ratio(change, groups=groups, seed=seed),
            only_a=sum(each < 0 for each in change) if share else None,
            only_b=sum(each > 0 for each in change) if share else None,
            p=sign_test(*signs) if share else None,
        )
