"""What a report needs to know of each benchmark: metrics, parts, and how to read an episode.

An episode of any benchmark becomes a :class:`View`, which curves, calibration and the browser read.
Runs of a benchmark that is not named here are shown by the fields their episodes have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..benchmarks import infill, next_edit
from ..figures.runs import Episode
from ..figures.scoring import length_class
from ..figures.tables import Metric
from ..gate import comparing
from ..replay import tables

Label = Callable[[Episode], str]

#: Classes of how much the truth changes, in lines.
LINE_CLASSES = ((1, "1 line"), (3, "2-3 lines"), (6, "4-6 lines"))
#: Classes of how long a suggestion is, in characters.
CHARACTER_CLASSES = (10, 40, 120)


@dataclass(frozen=True, slots=True)
class View:
    """An episode as every benchmark can tell it."""

    shown: bool
    right: bool | None  # would what was predicted have been accepted; None: there is nothing
    exact: bool | None
    score: float | None  # how sure: the probability of acceptance where there is one
    outcome: str  # one word for people


@dataclass(frozen=True, slots=True)
class Benchmark:
    """How the runs of one benchmark are shown."""

    title: str
    right: str  # what "right" means, for people
    note: str  # what must be known to read the figures
    metrics: tuple[Metric, ...]
    by_part: tuple[str, ...]  # fields shown for each part, the most telling one first
    parts: tuple[tuple[str, Label], ...]
    guarded: tuple[str, ...]  # fields of which less is worse: what 'redraft eval check' holds
    view: Callable[[Episode], View]
    stages: tuple[str, ...] = field(default=("total_ms",))  # the first is the whole
    #: The episodes with the groups that intervals resample.
    grouped: Callable[[Sequence[Episode]], list[Episode]] = field(default=list)


# --- infill ---------------------------------------------------------------------------------------


def _infill_view(each: Episode) -> View:
    shown = bool(each.get("shown"))
    passed, exact = each.get("passed"), each.get("exact")
    right = exact if passed is None else passed
    if not shown:
        outcome = "nothing shown"
    elif passed is None:
        outcome = "exact" if exact else "other"
    else:
        outcome = str(each.get("outcome") or ("passed" if passed else "failed"))
    return View(shown, right if shown else None, exact, each.get("confidence"), outcome)


INFILL = Benchmark(
    title="Infill",
    right="passes its tests, or without tests: equals the true text",
    note="Every gap has something to write. Commits replayed this way are simulated and say "
    "nothing about acceptance.",
    metrics=infill.METRICS,
    by_part=infill.BY_PART,
    parts=(
        ("language", lambda each: str(each.get("language", "?"))),
        ("length of the true answer", lambda each: length_class(each.get("answer_tokens", 0))),
        ("kind of gap", lambda each: str(each.get("kind", "?"))),
    ),
    guarded=("passed", "exact", "first_line", "similarity", "parse_ok", "tokens"),
    view=_infill_view,
    stages=("total_ms", "denoise_ms"),
)


# --- next edits -----------------------------------------------------------------------------------


def _edits_view(each: Episode) -> View:
    """What a rule keeps from being shown is in no curve: no threshold lets it pass."""
    to_do = each.get("quiet") is None
    shown = bool(each.get("shown")) if to_do else not each["quiet"]
    judged = each.get("confidence") is not None
    right = bool(each.get("exact")) if judged and not each.get("barred") else None
    if not shown:
        outcome = "missed" if to_do else "rightly quiet"
    elif not to_do:
        outcome = "not wanted"
    elif each.get("exact_shown"):
        outcome = "exact"
    else:
        outcome = "right place" if each.get("place_shown") else "wrong"
    return View(shown, right, each.get("exact"), each.get("confidence"), outcome)


def _edit_length(each: Episode) -> str:
    """Lines of the true change, the larger side."""
    expected = each.get("expected")
    if not isinstance(expected, dict):
        return "unknown"
    new = str(expected["text"])
    lines = max(expected["last"] - expected["first"], new.count("\n") + 1 if new else 0)
    return _line_class(lines)


def _line_class(lines: int) -> str:
    if not lines:
        return "nothing"
    return next((name for most, name in LINE_CLASSES if lines <= most), "7+ lines")


EDITS = Benchmark(
    title="Next edit",
    right="the document becomes what the commit made of it, character by character",
    note="Commits replayed as edits are simulated: they say nothing about acceptance.",
    metrics=next_edit.METRICS,
    by_part=next_edit.BY_PART,
    parts=(
        ("language", lambda each: str(each.get("language", "?"))),
        ("lines of the true change", _edit_length),
        ("where the next edit is", lambda each: str(each.get("kind", "?"))),
    ),
    guarded=("exact", "place", "place_shown", "chrf", "quiet", "tokens"),
    view=_edits_view,
    stages=("total_ms", "denoise_ms"),
)


# --- replay ---------------------------------------------------------------------------------------


def _replay_view(each: Episode) -> View:
    """Moments that repeat a suggestion are judged with the first, and those that a rule keeps from
    being shown are in no curve: no threshold lets them pass."""
    shown, exact = bool(each["shown"]), each.get("exact")
    right = None if each.get("barred") or each.get("repeat") else exact
    if not shown:
        outcome = "held back" if each.get("confidence") is not None else "nothing to show"
    elif each.get("repeat"):
        outcome = "the same again"
    elif exact is None:
        outcome = "cannot be told"
    else:
        near = "begun alike" if each.get("prefix") else "not written"
        outcome = "written" if exact else near
    return View(shown, right, exact, each.get("confidence"), outcome)


def _suggestion_length(each: Episode) -> str:
    size, low = len(str(each.get("suggested") or "")), 1
    if not size:
        return "no text"
    for high in CHARACTER_CLASSES:
        if size <= high:
            return f"{low}-{high} characters"
        low = high + 1
    return f"{low}+ characters"


def _replay(simulated: bool) -> Benchmark:
    told = tables.metrics(simulated)
    costs = [one for one in tables.COSTS if not one.field.endswith("_ms")]
    return Benchmark(
        title="Simulated streams" if simulated else "Replay",
        right="the document reaches exactly the suggested text afterwards, soon enough",
        note="Made from commits: how often the next change was foreseen, never how often people "
        "accept."
        if simulated
        else "What the language server would have shown to whoever made the recording. Offline "
        "does not predict online. A suggestion counts once, however often it is repeated; read "
        "acceptance beside the shown rate and the characters kept.",
        metrics=(*told, *costs),
        by_part=tables.BY_PART,
        parts=(
            ("language", lambda each: str(each.get("language", "?"))),
            ("length of the suggestion", _suggestion_length),
            ("kind of suggestion", lambda each: str(each.get("task") or "none")),
        ),
        guarded=("accepted", "kept_chars", "delta_chrf", "quiet", "saved", "utility"),
        view=_replay_view,
        stages=tables.STAGES,
        grouped=tables.regrouped,
    )


REPLAY, SIMULATED = _replay(simulated=False), _replay(simulated=True)


# --- anything else --------------------------------------------------------------------------------


def _plain_view(each: Episode) -> View:
    shown = bool(each.get("shown", True))
    right = next((each[name] for name in ("accepted", "right", "exact") if name in each), None)
    score = next((each[name] for name in ("p_show", "confidence") if name in each), None)
    return View(shown, right, each.get("exact"), score, "shown" if shown else "nothing shown")


def _by_fields(episodes: Sequence[Episode]) -> Benchmark:
    """A share of each field that is true or false, a mean of each that is a number."""
    kinds: dict[str, type] = {}
    for each in episodes[:1_000]:
        for name, value in each.items():
            if isinstance(value, bool | int | float):
                kinds[name] = bool if isinstance(value, bool) else float
    metrics = tuple(
        Metric(name.replace("_", " "), "share" if kind is bool else "mean", name, digits=2)
        for name, kind in kinds.items()
    )
    stages = [name for name in kinds if name.endswith("_ms")]
    ordered = sorted(stages, key=lambda name: name != "total_ms")
    return Benchmark(
        title="",
        right="",
        note="This benchmark is shown by the fields of its episodes.",
        metrics=metrics,
        by_part=tuple(kinds)[:4],
        parts=(("language", lambda each: str(each.get("language", "?"))),),
        guarded=(),
        view=_plain_view,
        stages=tuple(ordered),
    )


# --- gates ----------------------------------------------------------------------------------------


def _gate_view(each: Episode) -> View:
    shown, right = bool(each.get("any")), each.get("right")
    outcome = ("right" if right else "wrong") if shown else "held back"
    return View(shown, right, right, each.get("confidence"), outcome)


GATE = Benchmark(
    title="Gate",
    right="half of it or more is in the commit, at its place",
    note="The same candidates, shown or held back by each gate. Made from commits: how often a "
    "candidate was right, never how often people accept.",
    metrics=comparing.METRICS,
    by_part=comparing.BY_PART,
    parts=(
        ("language", lambda each: str(each.get("language", "?"))),
        ("kind of moment", lambda each: str(each.get("kind", "?"))),
        ("place", lambda each: str(each.get("where", "?"))),
    ),
    guarded=("kept_shown", "accepted", "utility"),
    view=_gate_view,
    stages=(),
)

KNOWN = {"infill": INFILL, "edits": EDITS, "replay": REPLAY, comparing.BENCHMARK: GATE}


def benchmark_of(name: str, episodes: Sequence[Episode]) -> Benchmark:
    """What is known of a benchmark; episodes of a replay are all simulated or none is."""
    if name == "replay" and episodes and episodes[0].get("simulated"):
        return SIMULATED
    return KNOWN.get(name) or _by_fields(episodes)
