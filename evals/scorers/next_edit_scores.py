"""Next edits: what would be shown, held against the true next edit.

Shown is the first candidate that the servers' own filters and gate let pass, by the history at the
moment; nothing was rejected yet. An edit is exact if the document after it equals one that is
right, character by character; it is at the right place if the lines that it changes overlap those
of the true edit. If several documents are right, the nearest counts. Where nothing is left to do,
right is to change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import situation_of, verdict
from redraft.model.gate.destruction import doubles, drops
from redraft.model.gate.filters import Situation, destroys, reverts
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest, Source
from redraft.model.text.common import common_ends

from ..example import Decision, Example, Row
from ..metrics import delta_chrf
from ..tables import Metric, Score, Table, overall, rows_of_parts, table_by_label
from .costs import costs


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
    Metric("delta chrF of those shown", "mean", "chrf_shown", better="more"),
    Metric("quiet where nothing is left", "share", "quiet", better="more"),
    Metric("right where nothing is changed", "share", "right_quiet", better="more"),
    Metric("destructive, of those answered", "share", "destructive", better="less"),
    Metric("destructive, of those shown", "share", "destructive_shown", better="less"),
    Metric("true edit refused as destructive", "share", "true_refused", better="less"),
    EditScore("show/quiet score", "mean", "chrf_shown", digits=3),
    Metric("ended by itself", "share", "ended"),
    Metric("tokens a pass", "ratio", "tokens", by="steps", digits=2, better="more"),
    Metric("passes", "mean", "steps", better="less"),
    Metric("decode ms", "mean", "decode_ms", digits=0, better="less"),
    Metric("total ms", "mean", "total_ms", digits=0, better="less"),
)
#: Candidates by where they come from, as if there were no others.
ALONE: dict[str, tuple[Source, ...]] = {"model": ("model", "both"), "rules": ("repeat", "both")}
#: Columns of the comparison of kinds of context.
BY_CONTEXT = (
    *(each for each in METRICS if each.field in ("exact", "place", "chrf", "nats")),
    Metric("prompt tokens", "mean", "prompt_tokens", digits=0),
)
_SHOWN = ("shown", "exact_shown", "place_shown", "chrf_shown", "quiet")
#: Fields shown for each part; of scenarios there are too few for more.
BY_PART = ("exact", "place", "chrf", "nats", "shown", "place_shown", "quiet", "tokens")
BY_SCENARIO = ("exact_shown", "chrf_shown", "shown", "quiet", "total_ms")
PARTS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("by where the next edit is", lambda row: str(row["kind"])),
    ("by the words it needs", lambda row: str(row.get("words") or "not recorded")),
    ("by language", lambda row: str(row["language"])),
    ("by lines from the cursor", lambda row: str(row.get("distance") or "nothing left")),
    ("by whom the likeliest edit comes from", lambda row: str(row.get("source") or "nobody")),
)
#: Of a family of rules: the moments at which it proposes something, shown or not.
BY_FAMILY = (
    Metric("right at the moment", "share", "family_right", better="more"),
    Metric("right, of those proposed", "ratio", "family_rights", by="family_proposed", digits=2),
)
_DISTANCES = ((3, "0-3"), (12, "4-12"), (40, "13-40"))  # lines, and what a row is called


def decide(example: Example, threshold: float) -> Decision:
    """Return why each candidate is not shown.

    Args:
        threshold: score from which an edit is shown.
    """
    assert example.prediction is not None
    situation = _situation(example, threshold)
    found = [verdict(each, situation) for each in example.prediction.candidates]
    return Decision(tuple(each.kind if isinstance(each, Abstain) else "" for each in found))


def _situation(example: Example, threshold: float = 0.0) -> Situation:
    moment = example.moment
    request = EditRequest(
        "next_edit", moment.path, moment.text, moment.cursor, moment.language, edits=moment.edits
    )
    return situation_of(request, threshold)


def score(example: Example) -> Row:
    """Return what an answer is worth; fields that do not apply are None.

    ``exact``, ``place`` and ``chrf`` are of the likeliest edit, shown or not; those that end in
    ``_shown`` of the one shown; those that begin with a name of :data:`ALONE` of its candidates.
    """
    assert example.prediction is not None and example.decision is not None
    text, to_do = example.moment.text, bool(example.truth.texts)
    edits = [Edit(text, c.start, c.end, c.text) for c in example.prediction.candidates]
    objections = example.decision.objections
    likeliest, shown = (edits[0] if edits else None), _shown(edits, objections)
    first = objections[0] if objections else ""
    region = example.request.region if example.request is not None else None
    truth = Edit(text, 0, len(text), example.truth.texts[0]).least() if to_do else None
    situation = _situation(example)
    harms = [harm_of(each, situation, region) for each in (likeliest, shown)]
    true_harm = harm_of(truth, situation, None)
    found: Row = {
        "distance": _distance(example) if to_do else None,
        "families": _families(example),
        "expected": change_of(text, _nearest(example, shown or likeliest)),
        "found": change_of(text, likeliest.result if likeliest else text),
        **_worth(example, likeliest),
        **_of_shown(example, shown),
        "destructive": None if likeliest is None else bool(harms[0]),
        "destructive_shown": None if shown is None else bool(harms[1]),
        "true_refused": bool(true_harm) if to_do else None,
        "true_harm": true_harm,
        "abstained": None if shown else (first or "nothing_to_do"),
        "barred": first not in ("", "below_threshold"),  # by something else than the threshold
        "right_quiet": None if shown else not to_do,
        **costs(example.prediction, "next_edit"),
    }
    for name, sources in ALONE.items():
        mine = [c.source in sources for c in example.prediction.candidates]
        some = zip(edits, objections, mine, strict=True)
        of_source = [(edit, objection) for edit, objection, is_mine in some if is_mine]
        alone = _of_shown(example, next((edit for edit, why in of_source if not why), None))
        found |= {f"{name}_{field}": alone[field] for field in _SHOWN}
    return found


def harm_of(edit: Edit | None, situation: Situation, region: tuple[int, int] | None) -> str:
    """Return what an edit destroys of the user's text, "" for nothing.

    Args:
        region: 0-based lines [first, last) that it may replace; None if it is not known.
    """
    if edit is None:
        return ""
    language, path = situation.language, situation.path
    if drops(edit, language, path, situation.removed, situation.changes) is not None:
        return "drops a definition"
    if doubles(edit, language, path) is not None:
        return "doubles a definition"
    if reverts(edit, situation) is not None:
        return "takes back what the user did"
    if _empties(edit, region):
        return "empties its region"
    return "deletes without a reason" if destroys(edit, situation) is not None else ""


def _empties(edit: Edit, region: tuple[int, int] | None) -> bool:
    if region is None:
        return False
    lines, result = edit.text.split("\n"), edit.result.split("\n")
    first, last = region
    left = result[first : last + len(result) - len(lines)]
    return any(map(str.strip, lines[first:last])) and not any(map(str.strip, left))


def _shown(edits: Sequence[Edit], objections: Sequence[str]) -> Edit | None:
    return next((edit for edit, why in zip(edits, objections, strict=True) if not why), None)


def _of_shown(example: Example, shown: Edit | None) -> Row:
    """Return the fields about the edit that is shown."""
    to_do = bool(example.truth.texts)
    worth = _worth(example, shown) if shown else dict.fromkeys(("exact", "place", "chrf"))
    return {
        **{f"{field}_shown": value for field, value in worth.items()},
        "shown": shown is not None if to_do else None,
        "quiet": None if to_do else shown is None,
    }


def _worth(example: Example, edit: Edit | None) -> Row:
    """Return how near an edit comes to the true one; None means no edit."""
    if not example.truth.texts:
        return dict.fromkeys(("exact", "place", "chrf"))
    text, wanted = example.moment.text, _nearest(example, edit)
    result = text if edit is None else edit.result
    lines, right = find_difference(text, result), find_difference(text, wanted)
    return {
        "exact": result == wanted,
        "place": edit is not None and overlap(lines, right),
        "chrf": delta_chrf(text, [wanted], result),
    }


def _nearest(example: Example, edit: Edit | None) -> str:
    """Return the right document that an edit comes nearest to."""
    text, texts = example.moment.text, example.truth.texts
    result = text if edit is None else edit.result
    if len(texts) < 2:
        return texts[0] if texts else text
    return max(texts, key=lambda each: (result == each, delta_chrf(text, [each], result)))


def _distance(example: Example) -> str:
    """Return how far from the cursor the next edit is."""
    text = example.moment.text
    line = text.count("\n", 0, example.moment.cursor)
    first, last = find_difference(text, example.truth.texts[0])
    away = max(first - line, line - max(last - 1, first), 0)
    return next((name for most, name in _DISTANCES if away <= most), "41+")


def _families(example: Example) -> dict[str, list[int]]:
    """Return of each family of rules how many edits it proposes, and how many are right."""
    assert example.prediction is not None
    found: dict[str, list[int]] = {}
    for each in example.prediction.candidates:
        if each.family:
            edit = Edit(example.moment.text, each.start, each.end, each.text)
            counts = found.setdefault(each.family, [0, 0])
            counts[0] += 1
            counts[1] += edit.result in example.truth.texts
    return found


def find_difference(before: str, after: str) -> tuple[int, int]:
    """Return the 0-based lines [first, last) of ``before`` that differ; empty for additions."""
    old, new = before.split("\n"), after.split("\n")
    head, tail = common_ends(old, new)
    return head, len(old) - tail


def change_of(before: str, after: str) -> dict[str, int | str]:
    """Return the change in short, for people who read a run's file."""
    first, last = find_difference(before, after)
    return {"first": first, "last": last, "text": "\n".join(lines_written(before, after))}


def lines_written(before: str, after: str) -> list[str]:
    """Return the lines of ``after`` in place of :func:`find_difference`."""
    first, last = find_difference(before, after)
    new = after.split("\n")
    return new[first : len(new) - (before.count("\n") + 1 - last)]


def overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Return whether two ranges of lines share one; an empty range meets what it touches."""
    if a[0] == a[1] or b[0] == b[1]:
        return a[0] <= b[1] and b[0] <= a[1]
    return a[0] < b[1] and b[0] < a[1]


def tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Return figures overall, by place, words, language, distance, source and family of rules."""
    if not any("exact" in each for each in rows):  # only likelihoods were asked for
        yield overall(
            "likelihood", [m for m in METRICS if m.field in ("nats", "reached")], rows, seed
        )
        return
    yield overall("next edit", METRICS, rows, seed)
    quality = [metric for metric in METRICS if metric.field in BY_PART]
    for title, label in PARTS:
        if len({label(each) for each in rows}) > 1:
            yield table_by_label(title, quality, rows, label, seed)
    yield from _by_family(rows, seed)


def suite_tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Return figures of scenarios overall, with model and rules apart, by language and by kind."""
    shown = [m for m in METRICS if m.field in (*_SHOWN, "total_ms")]
    yield overall("carrying on", shown, rows, seed)
    halves = {
        f"{name} alone": [row | {f: row[f"{name}_{f}"] for f in _SHOWN} for row in rows]
        for name in ALONE
    }
    timeless = [m for m in shown if m.field != "total_ms"]
    yield rows_of_parts("by whom the edit comes from", timeless, halves, seed)
    part = [m for m in shown if m.field in BY_SCENARIO]
    yield rows_of_parts("by language", part, _parts(rows, "language"), seed)
    no_score = [m for m in part if not isinstance(m, Score)]  # of a kind there are six
    yield rows_of_parts("by kind", no_score, _parts(rows, "kind"), seed)


def _parts(rows: Sequence[Row], field: str) -> dict[str, list[Row]]:
    """Return rows by the value of a field; last come those where nothing should be shown."""
    found: dict[str, list[Row]] = {}
    for each in rows:
        found.setdefault(str(each[field]), []).append(each)
    order = sorted(found, key=lambda name: (all(e["quiet"] is not None for e in found[name]), name))
    return {name: found[name] for name in order}


def _by_family(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Return a row for each family of rules, however seldom it proposes anything."""
    found: dict[str, list[Row]] = {}
    for each in rows:
        for family, (proposed, right) in each.get("families", {}).items():
            counts = {"family_right": right > 0, "family_rights": right}
            one = {"id": each["id"], "group": each["group"], "family_proposed": proposed}
            found.setdefault(family, []).append(one | counts)
    if found:
        yield rows_of_parts("by family of rules", BY_FAMILY, dict(sorted(found.items())), seed)
