"""Small scenarios in which something was begun and is to be carried on: ``redraft eval edits
--suite carry-on``.

Written by hand, one of each kind in each of six languages, in ``scenarios/LANGUAGE.toml``: a file,
the edits made in it, and what should come next, which may be nothing. The question is put as an
editor puts it and the answer judged as ``next_edit`` judges those about commits; what the model
and the rules would have shown without each other is told apart. Reads its scenarios; knows nothing
of how a model answers.

A scenario in its file, all texts as they stand there::

    [[scenario]]
    kind = "rename"
    path = "shop/prices.py"
    before = '''…'''                    # the file before the first edit
    history = [["old", "new"], …]       # edits made, in order; "old" occurs once at that time
    typing = true                       # the last of them is still being typed
    cursor = "text behind‸and before"   # default: behind what the last edit wrote
    next = [["old", "new", "or new"]]   # places in order; each is right, and several in a row
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import combinations, product
from typing import Any

from redraft.model.edits.hunks import apply_history, hunks_of
from redraft.model.predict import Model
from redraft.model.records import Prediction, RecentEdit
from redraft.model.text.common import common_ends
from redraft.model.text.syntax import language_of

from ..figures.runs import Episode
from ..figures.tables import Metric, Table, TableRow, overall
from .baselines import Policy
from .commit_moments import CommitMoment
from .next_edit import EditAsking, EditScore, ask_for, episode, said_by

LANGUAGES = ("python", "typescript", "javascript", "go", "rust", "java")
CURSOR = "‸"

METRICS = (
    Metric("shown", "share", "shown"),
    Metric("right, of those shown", "share", "exact_shown"),
    Metric("right place, of those shown", "share", "place_shown"),
    Metric("delta chrF of those shown", "mean", "chrf_shown"),
    Metric("quiet where nothing should come", "share", "quiet"),
    EditScore("show/quiet score", "mean", "chrf_shown", digits=3),
    Metric("total ms", "mean", "total_ms", digits=0),
)
#: Of a kind there are six: their figures say where to look, not how good anything is.
BY_PART = ("exact_shown", "chrf_shown", "shown", "quiet", "total_ms")
#: Candidates by whom they come from, as if nobody else were there.
ALONE = {"model": ("model", "both"), "rules": ("repeat", "both")}
_APART = ("shown", "exact_shown", "place_shown", "chrf_shown", "quiet")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A document in the middle of some work."""

    id: str  # unlike that of any other
    kind: str
    path: str
    language: str
    before: str  # the document before the first edit
    text: str  # as it is now
    cursor: int  # index into text
    edits: tuple[RecentEdit, ...]  # oldest first; without the one that is still being typed
    wanted: tuple[str, ...]  # the whole text after any right edit; (): nothing should come

    @property
    def step(self) -> CommitMoment:
        """The moment, with the first of what may come."""
        return CommitMoment(
            id=self.id,
            group=self.id,
            path=self.path,
            language=self.language,
            kind="near the last edit" if self.wanted else "nothing left",
            text=self.text,
            cursor=self.cursor,
            edits=self.edits,
            wanted=self.wanted[0] if self.wanted else self.text,
        )


# --- reading ----------------------------------------------------------------------------------


def scenarios() -> list[Scenario]:
    """All, by language."""
    return [each for language in LANGUAGES for each in scenarios_of(language)]


def scenarios_of(language: str) -> Iterator[Scenario]:
    file = files("redraft.evals.benchmarks") / "scenarios" / f"{language}.toml"
    for data in tomllib.loads(file.read_text(encoding="utf-8"))["scenario"]:
        yield read_scenario(data)


def read_scenario(data: dict[str, Any]) -> Scenario:
    """One ``[[scenario]]``.

    Raises:
        ValueError: a text that should occur once does not; says which and where.
    """
    path, before = data["path"], data["before"]
    language = language_of(path) or ""
    name = f"{data['kind']} ({language})"
    text, cursor, edits = before, 0, []
    for old, new in data["history"]:
        at = _only(text, old, name)
        after = text[:at] + new + text[at + len(old) :]
        cursor = at + _end_of_change(old, new)
        edits.append(_edits(path, text, after))
        text = after
    if data.get("typing"):
        edits.pop()
    if "cursor" in data:
        above, below = data["cursor"].split(CURSOR)
        cursor = _only(text, above + below, name) + len(above)
    return Scenario(
        id=name,
        kind=data["kind"],
        path=path,
        language=language,
        before=before,
        text=text,
        cursor=cursor,
        edits=tuple(edit for made in edits for edit in made),
        wanted=tuple(_wanted(text, data["next"], name)),
    )


def _only(text: str, part: str, name: str) -> int:
    times = text.count(part)
    if times != 1:
        raise ValueError(f"{name}: {part!r} occurs {times} times in the text as it then is, not 1.")
    return text.index(part)


def _end_of_change(old: str, new: str) -> int:
    """How far into ``new`` whoever made it of ``old`` stands: behind the last new character."""
    return len(new) - common_ends(old, new)[1]


def _edits(path: str, before: str, after: str) -> tuple[RecentEdit, ...]:
    old = before.split("\n")
    hunks = hunks_of(old, after.split("\n"))
    return apply_history(path, old, hunks, len(hunks))[1]


def _wanted(text: str, places: Sequence[Sequence[str]], name: str) -> Iterator[str]:
    """The text with any of the places changed, and with several that follow each other."""
    ats = [_only(text, place[0], name) for place in places]
    for first, last in sorted(
        combinations(range(len(places) + 1), 2), key=lambda run: (run[1] - run[0], run)
    ):
        for new in product(*(place[1:] for place in places[first:last])):
            made = text
            changes = zip(ats[first:last], places[first:last], new, strict=True)
            for at, (old, *_), written in sorted(changes, reverse=True):  # from the end upwards
                made = made[:at] + written + made[at + len(old) :]
            yield made


# --- asking -----------------------------------------------------------------------------------


def ask(model: Model | Policy, scenario: Scenario, asking: EditAsking) -> Episode:
    """One scenario, asked and judged."""
    asked = ask_for(scenario.step, asking)
    begin_s = time.perf_counter()
    said = said_by(model, asked.request, asking.plan)
    took_ms = round((time.perf_counter() - begin_s) * 1e3, 1)
    return judged(scenario, asked.answered(said), asking.least) | {"total_ms": took_ms}


def judged(scenario: Scenario, said: Prediction, least: float) -> Episode:
    """What came of one scenario, and of either half of the candidates alone.

    Args:
        least: sureness from which an edit is shown.
    """
    alone = {
        who: replace(said, candidates=tuple(c for c in said.candidates if c.source in sources))
        for who, sources in ALONE.items()
    }
    return _best(scenario, said, least) | {
        "alone": {
            who: {field: found[field] for field in _APART}
            for who, part in alone.items()
            for found in [_best(scenario, part, least)]
        }
    }


def _best(scenario: Scenario, said: Prediction, least: float) -> Episode:
    """The episode by that of the wanted texts to which the answer comes nearest: what is shown, and
    apart from it the likeliest edit."""
    step = scenario.step
    found = [
        episode(replace(step, wanted=wanted), said, least)
        for wanted in scenario.wanted or (scenario.text,)
    ]
    shown = max(found, key=lambda each: _nearness(each, "_shown"))
    likeliest = max(found, key=lambda each: _nearness(each, ""))
    told = shown if shown["chrf_shown"] is not None else likeliest
    own = {field: likeliest[field] for field in ("exact", "place", "chrf")}
    return told | own | {"kind": scenario.kind}


def _nearness(found: Episode, suffix: str) -> tuple[float, ...]:
    return tuple(float(found[f"{field}{suffix}"] or 0.0) for field in ("exact", "chrf"))


# --- tables -----------------------------------------------------------------------------------


def tables(episodes: Sequence[Episode], seed: int) -> Iterator[Table]:
    """Overall, with the model and the rules apart, by language and by kind."""
    whole = {"as shown": list(episodes)}
    halves = {f"{who} alone": [each | each["alone"][who] for each in episodes] for who in ALONE}
    timeless = tuple(metric for metric in METRICS if metric.field != "total_ms")
    yield _table("carrying on", METRICS, whole, seed)
    yield _table("by whom the edit comes from", timeless, halves, seed)
    part = tuple(metric for metric in METRICS if metric.field in BY_PART)
    no_score = tuple(metric for metric in part if not isinstance(metric, EditScore))
    yield _table("by language", part, _parts(episodes, "language"), seed)
    yield _table("by kind", no_score, _parts(episodes, "kind"), seed)


def _parts(episodes: Sequence[Episode], field: str) -> dict[str, list[Episode]]:
    """By name; last come those where all should be quiet."""
    found: dict[str, list[Episode]] = {}
    for each in episodes:
        found.setdefault(str(each[field]), []).append(each)
    order = sorted(found, key=lambda name: (all(e["quiet"] is not None for e in found[name]), name))
    return {name: found[name] for name in order}


def _table(
    title: str, metrics: Sequence[Metric], parts: dict[str, list[Episode]], seed: int
) -> Table:
    """A row for each part, however small."""
    rows: list[TableRow] = []
    for label, episodes in parts.items():
        rows += (replace(row, label=label) for row in overall("", metrics, episodes, seed).rows)
    return Table(title, tuple(metrics), tuple(rows))
