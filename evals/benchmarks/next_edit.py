"""The next edit, asked for as an editor asks, and judged: ``redraft eval edits``.

What is shown is what people would see: the first candidate that the servers' own verdict
(:mod:`redraft.model.gate.decide`) lets pass, by the history at the step; nothing was rejected
yet.

An edit is exact when the document after it equals the document after the true next hunk, character
by character; it is at the right place when the lines it changes overlap those of the true hunk. No
range is revealed. Where nothing is left to do, right is to change nothing. The question is the one
that the language server would put; see :mod:`.server_context`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from redraft.model.decode.completion import Plan
from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import Show, situation_of, verdict
from redraft.model.gate.reasons import Abstain
from redraft.model.predict import Model, predict
from redraft.model.records import Candidate, EditRequest, Prediction
from redraft.model.text.common import common_ends

from ..figures.metrics import delta_chrf
from ..figures.runs import Episode, said_of
from ..figures.tables import Metric, Score, Table, TableRow, overall, parted
from .baselines import Policy
from .commit_moments import CommitMoment
from .likelihood import has_likelihood, nats_of, nats_of_nothing, prompt_of
from .server_context import ContextKind, ContextRequest, gather


class EditScore(Score):
    """The show/quiet score, whose delta chrF is of what is shown."""

    TERMS = ("chrf_shown", "shown", "quiet")


METRICS = (
    Metric("exact", "share", "exact", better="more"),
    Metric("right place", "share", "place", better="more"),
    Metric("region reaches it", "share", "reached", better="more"),
    Metric("delta chrF", "mean", "chrf", better="more"),
    Metric("nats of the true edit", "mean", "nats", digits=2, better="less"),
    Metric("shown", "share", "shown"),
    Metric("exact, of those shown", "share", "exact_shown", better="more"),
    Metric("right place, of those shown", "share", "place_shown", better="more"),
    Metric("quiet where nothing is left", "share", "quiet", better="more"),
    Metric("right where nothing is changed", "share", "right_quiet", better="more"),
    EditScore("show/quiet score", "mean", "chrf_shown", digits=3),
    Metric("ended by itself", "share", "ended"),
    Metric("tokens/step", "ratio", "tokens", by="steps", digits=2, better="more"),
    Metric("steps", "mean", "steps", better="less"),
    Metric("denoise ms", "mean", "denoise_ms", digits=0, better="less"),
    Metric("total ms", "mean", "total_ms", digits=0, better="less"),
)
_WORTH = ("exact", "place", "chrf", "exact_shown", "place_shown", "chrf_shown")
#: Fields shown for each part.
BY_PART = ("exact", "place", "chrf", "nats", "shown", "place_shown", "quiet", "tokens")
PARTS: tuple[tuple[str, Callable[[Episode], str]], ...] = (
    ("by where the next edit is", lambda each: str(each["kind"])),
    ("by the words it needs", lambda each: str(each.get("words") or "not recorded")),
    ("by language", lambda each: str(each["language"])),
    ("by lines from the cursor", lambda each: str(each.get("distance") or "nothing left")),
    ("by whom the likeliest edit comes from", lambda each: str(each.get("source") or "nobody")),
)
#: Of a family of rules: the moments at which it proposes something, shown or not.
BY_FAMILY = (
    Metric("right at the moment", "share", "family_right", better="more"),
    Metric("right, of those proposed", "ratio", "family_rights", by="family_proposed", digits=2),
)
_NAME = re.compile(r"[^\W\d]\w{2,}")
_DISTANCES = ((3, "0-3"), (12, "4-12"), (40, "13-40"))  # lines, and what a row is called


@dataclass(frozen=True, slots=True)
class EditAsking:
    """How every step is asked about."""

    plan: Plan
    context: int  # prompt budget, tokens
    max_tokens: int  # of an answer
    seed: int
    least: float = 0.0  # sureness from which an edit is shown
    without: frozenset[ContextKind] = frozenset()  # kinds of context left out
    writes: bool = True  # else only how likely the true edit is


def ask_for(step: CommitMoment, asking: EditAsking) -> ContextRequest:
    """What the language server would ask, long enough and in any case: "no edit" is decided by how
    sure the likeliest edit is."""
    asked = gather(step, asking.context, asking.without)
    request = replace(asked.request, max_tokens=asking.max_tokens, min_tokens=1, seed=asking.seed)
    return replace(asked, request=request)


def ask(model: Model | Policy, step: CommitMoment, asking: EditAsking) -> Episode:
    """One step, asked and judged."""
    asked = ask_for(step, asking)
    if asking.writes:
        said = said_by(model, asked.request, asking.plan)
        found = episode(step, asked.answered(said), asking.least)
    else:
        found = _about(step)
    wanted = changed_lines(step.text, step.wanted)
    reached = asked.region[0] <= wanted[0] and wanted[1] <= asked.region[1]
    return {
        **found,
        "reached": reached if step.kind != "nothing left" else None,
        "parts": asked.parts,
        "words": _words(model, step, asked.request),
        **_likelihood(model, step, asked),
    }


def said_by(model: Model | Policy, request: EditRequest, plan: Plan) -> Prediction:
    if isinstance(model, Policy):
        return model.ask(request)
    return predict(model, request, time.perf_counter, plan=plan)


def _likelihood(model: Model | Policy, step: CommitMoment, asked: ContextRequest) -> Episode:
    """Return the nats of the true edit, or of no edit where that is right.

    They are None where the region does not reach the true edit.
    """
    if isinstance(model, Policy) or not has_likelihood(model):
        return {"nats": None, "nats_quiet": None}
    if step.kind == "nothing left":
        return {"nats": None, "nats_quiet": nats_of_nothing(model, asked.request)}
    first, last = changed_lines(step.text, step.wanted)
    above = asked.region[0] - (asked.request.region or asked.region)[0]  # lines cut off
    new = lines_written(step.text, step.wanted)
    return {
        "nats": nats_of(model, asked.request, first - above, last - above, new),
        "nats_quiet": None,
    }


def _words(model: Model | Policy, step: CommitMoment, request: EditRequest) -> str:
    """Return the class of a moment by the words that its true edit writes."""
    if step.kind == "nothing left":
        return "nothing left"
    needed = _names("\n".join(lines_written(step.text, step.wanted)))
    if isinstance(model, Policy) or not has_likelihood(model):
        parts = (request.text, *(e.diff for e in request.edits), *(r.text for r in request.related))
        known = "\n".join(parts)
    else:
        known = model.tokenizer.decode(prompt_of(model, request).tokens)
    if not needed <= _names(known):
        return "a word that is not in the prompt"
    lines = (line for edit in request.edits for line in edit.diff.split("\n"))
    changed = [line[1:] for line in lines if line[:1] in ("+", "-")]
    shared = needed & _names("\n".join(changed))
    return "all in the prompt, one of a recent edit" if shared else "all in the prompt, none recent"


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text))


def _about(step: CommitMoment) -> Episode:
    return {"id": step.id, "group": step.group, "language": step.language, "kind": step.kind}


def episode(step: CommitMoment, said: Prediction, least: float = 0.0) -> Episode:
    """What came of one step. Fields that do not apply are None; ``exact``, ``place`` and ``chrf``
    are of the likeliest edit, shown or not; those that end in ``_shown`` of the one shown."""
    known = EditRequest(
        "next_edit", step.path, step.text, step.cursor, step.language, edits=step.edits
    )
    situation = situation_of(known, least)
    verdicts = [verdict(each, situation) for each in said.candidates]
    likeliest = _edit(step, said.candidates[0]) if said.candidates else None
    seen = next((each.edit for each in verdicts if isinstance(each, Show)), None)
    objections = [each.kind for each in verdicts if isinstance(each, Abstain)]
    shown = seen is not None
    found = step.text if likeliest is None else likeliest.result
    to_do = step.kind != "nothing left"
    return {
        **_about(step),
        "distance": _distance(step) if to_do else None,
        "families": _families(step, said),
        **dict.fromkeys(_WORTH),
        "expected": change_of(step.text, step.wanted),
        "found": change_of(step.text, found),
        **(_worth(step, likeliest) if to_do else {}),
        **(_worth(step, seen, "_shown") if to_do and shown else {}),
        "shown": shown if to_do else None,
        "abstained": None if shown else next(iter(objections), "nothing_to_do"),
        "barred": _is_barred(verdicts),
        "quiet": None if to_do else not shown,
        "right_quiet": None if shown else not to_do,
        **said_of(said, "next_edit"),
    }


def _distance(step: CommitMoment) -> str:
    """How far from the cursor the next edit is."""
    line = step.text.count("\n", 0, step.cursor)
    first, last = changed_lines(step.text, step.wanted)
    away = max(first - line, line - max(last - 1, first), 0)
    return next((name for most, name in _DISTANCES if away <= most), "41+")


def _families(step: CommitMoment, said: Prediction) -> dict[str, list[int]]:
    """Of each family of rules, how many of its edits are candidates, and how many are right."""
    found: dict[str, list[int]] = {}
    for each in said.candidates:
        if each.family:
            counts = found.setdefault(each.family, [0, 0])
            counts[0] += 1
            counts[1] += step.kind != "nothing left" and _edit(step, each).result == step.wanted
    return found


def _edit(step: CommitMoment, candidate: Candidate) -> Edit:
    return Edit(step.text, candidate.start, candidate.end, candidate.text)


def _worth(step: CommitMoment, made: Edit | None, suffix: str = "") -> Episode:
    """How near an edit comes to the true one; None: no edit."""
    found = step.text if made is None else made.result
    lines, wanted = changed_lines(step.text, found), changed_lines(step.text, step.wanted)
    return {
        f"exact{suffix}": found == step.wanted,
        f"place{suffix}": made is not None and overlap(lines, wanted),
        f"chrf{suffix}": delta_chrf(step.text, [step.wanted], found),
    }


def _is_barred(verdicts: Sequence[Show | Abstain]) -> bool:
    """Does something else than the threshold keep the likeliest edit from being shown?"""
    first = verdicts[0] if verdicts else None
    return isinstance(first, Abstain) and first.kind != "below_threshold"


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """0-based lines [first, last) of ``before`` that differ; empty where lines are only added."""
    old, new = before.split("\n"), after.split("\n")
    head, tail = common_ends(old, new)
    return head, len(old) - tail


def change_of(before: str, after: str) -> dict[str, int | str]:
    """The change in short, for people who read the run's file."""
    first, last = changed_lines(before, after)
    return {"first": first, "last": last, "text": "\n".join(lines_written(before, after))}


def lines_written(before: str, after: str) -> list[str]:
    """The lines of ``after`` in place of :func:`changed_lines`."""
    first, last = changed_lines(before, after)
    new = after.split("\n")
    return new[first : len(new) - (before.count("\n") + 1 - last)]


def overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two ranges of lines share one; a place between lines meets what it touches."""
    if a[0] == a[1] or b[0] == b[1]:
        return a[0] <= b[1] and b[0] <= a[1]
    return a[0] < b[1] and b[0] < a[1]


def tables(episodes: Sequence[Episode], seed: int) -> Iterator[Table]:
    """Overall, by where the next edit is, by language, distance, source and family of rules."""
    yield overall("next edit", METRICS, episodes, seed)
    quality = [metric for metric in METRICS if metric.field in BY_PART]
    for title, label in PARTS:
        if len({label(each) for each in episodes}) > 1:
            yield parted(title, quality, episodes, label, seed)
    yield from _by_family(episodes, seed)


def _by_family(episodes: Sequence[Episode], seed: int) -> Iterator[Table]:
    """A row for each family of rules, however seldom it speaks."""
    spoke = [
        {
            "id": f"{each['id']} {family}",
            "group": each["group"],
            "family": family,
            "family_right": right > 0,
            "family_rights": right,
            "family_proposed": proposed,
        }
        for each in episodes
        for family, (proposed, right) in each.get("families", {}).items()
    ]
    rows: list[TableRow] = []
    for family in sorted({str(each["family"]) for each in spoke}):
        part = [each for each in spoke if each["family"] == family]
        rows += (replace(row, label=family) for row in overall("", BY_FAMILY, part, seed).rows)
    if rows:
        yield Table("by family of rules", BY_FAMILY, tuple(rows))
