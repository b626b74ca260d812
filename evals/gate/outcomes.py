"""Moments whose outcome is known, and what the model proposes there: ``redraft gate outcomes``.

Moments are gaps and hunks of commits, gaps and half-typed lines of files. A commit says what came
next, and what came in the end: whatever a candidate writes or deletes can be held against that.
They are drawn by hashes, a small part of a large file, sources taking turns, so that an interrupted
run holds a fair part of the whole.

The model is asked as the language server asks, with as many candidates, but in any case, however
sure it is that nothing is to be done. An episode holds the request and all that came back: what is
made of that (:mod:`redraft.model.gate.features`) can change without asking again.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from redraft.lsp.ghost_text import infill_request
from redraft.lsp.settings import LspSettings
from redraft.lsp.suggestion import Query
from redraft.model.decode.completion import Plan
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import apply_history, last_burst
from redraft.model.errors import SettingsError
from redraft.model.predict import Model, predict
from redraft.model.records import LEAST_LOG, Prediction, RecentEdit
from redraft.model.text.syntax import language_of
from redraft.model.training.shards import read_records

from ..benchmarks.carry_on import scenarios
from ..benchmarks.commit_moments import CommitMoment, steps_of
from ..benchmarks.infill_gaps import Problem, gaps_of
from ..benchmarks.server_context import ContextRequest, gather
from ..figures.runs import Episode, OnDone, RunFile
from ..figures.samples import MOST_LINES, CommitChange, changes_of, in_turn, rank, unix
from .places import begun_gaps


@dataclass(frozen=True, slots=True)
class HalfTyped:
    """A document with a line of which only a part is there, and the recent edits."""

    text: str
    edits: tuple[RecentEdit, ...]
    cursor: int  # index into text
    wanted: str  # the document with the whole line


def half_typed(path: str, text: str, rng: random.Random) -> HalfTyped | None:
    """Return a line that is half typed, behind the lines typed above it; None where none fits.

    Its names stand elsewhere in the file too, all but one, so that the rest can be foreseen.
    """
    lines = text.split("\n")
    for _ in range(10):
        at = rng.randrange(len(lines))
        line = lines[at]
        cut = _pause_in(line, rng)
        if cut is None or not _is_foreseeable(line, lines[:at] + lines[at + 1 :]):
            continue
        first = at
        while at - first < rng.randint(0, 3) and first > 0 and lines[first - 1].strip():
            first -= 1
        state = [*lines[:first], *lines[at + 1 :]]
        edits: tuple[RecentEdit, ...] = ()
        if first < at:
            written = LineChange(first, (), tuple(lines[first:at]))
            state, edits, _ = apply_history(path, state, [written], 1)
        state.insert(at, line[:cut])
        cursor = sum(len(above) + 1 for above in state[:at]) + cut
        return HalfTyped("\n".join(state), edits, cursor, text)
    return None


_PAUSE = re.compile(r"[,;:(\[{.=] ?|(?<=\w)(?=\W)|(?<=\W)(?=\w)")


def _pause_in(line: str, rng: random.Random) -> int | None:
    """Return where to stop within a line: mostly behind a mark or a name, rarely in a name."""
    begin, end = len(line) - len(line.lstrip()), len(line.rstrip())
    if not 12 <= end - begin <= 100:
        return None
    places = [m.end() for m in _PAUSE.finditer(line, begin + 3, end - 2)]
    if rng.random() < 0.2 or not places:
        return rng.randrange(begin + 3, end - 2)
    return rng.choice(places)


def _is_foreseeable(line: str, others: Sequence[str]) -> bool:
    """Return whether its names stand elsewhere in the file, all but one."""
    words = set(re.findall(r"[^\W\d]\w{2,}", line))
    known = set(re.findall(r"[^\W\d]\w{2,}", "\n".join(others)))
    return len(words) > 1 and len(words - known) < 2


#: How many of each kind come in a turn: about as much ghost text as next edits.
TURN = {"commit": 4, "gap": 3, "begun": 4, "typing": 1}


@dataclass(frozen=True, slots=True)
class Known:
    """A moment, and the text that came of it in the end."""

    kind: str  # commit, gap, begun, typing or carry-on
    asked: CommitMoment | Problem
    after: str  # the whole text in the end; for a gap, with the gap filled
    wanted: tuple[str, ...] = ()  # whole texts that are right besides

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.asked.id}"

    @property
    def language(self) -> str:
        return self.asked.language

    @property
    def group(self) -> str:
        """Moments of one group stand or fall together."""
        return self.asked.group


def known_moments(
    commits: Path | None, files: Path | None, share: float, limit: int | None, seed: int
) -> list[Known]:
    """The moments of a sample, sources and languages taking turns.

    Args:
        commits: a ``*-commits.jsonl.zst``; files: a ``*-files.jsonl.zst``.
        share: of their lines, how many are looked at, 0 … 1.
    """
    found: dict[str, list[Known]] = {kind: [] for kind in TURN}
    if commits is not None:
        for each in _of_commits(_some(commits, share, seed)):
            found[each.kind].append(each)
    if files is not None:
        for each in _of_files(_some(files, share, seed), seed):
            found[each.kind].append(each)
    lists = {kind: in_turn(each, None, seed) for kind, each in found.items()}
    return list(_taking_turns(lists))[:limit]


def in_suite() -> list[Known]:
    """Return the scenarios of ``redraft eval edits --suite carry-on``.

    They judge, and nothing is fitted on them.
    """
    return [
        Known("carry-on", each.step, each.wanted[-1] if each.wanted else each.text, each.wanted)
        for each in scenarios()
    ]


def _taking_turns(lists: dict[str, list[Known]]) -> Iterator[Known]:
    left = {kind: iter(each) for kind, each in lists.items() if each}
    while left:
        for kind in list(left):
            for _ in range(TURN[kind]):
                one = next(left[kind], None)
                if one is None:
                    del left[kind]
                    break
                yield one


def _some(path: Path, share: float, seed: int) -> Iterator[dict[str, Any]]:
    """Records of a file, a ``share`` of them by the hash of their name."""
    most = int(share * 2**32)
    try:
        for record in read_records(path):
            name = f"{record['repo']}@{record.get('commit', record.get('path'))}"
            if int.from_bytes(rank(seed, name)[:4], "big") < most:
                yield record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path} is not a file of commits or files ({type(error).__name__}: {error}). Name one "
            "such as train-commits.jsonl.zst."
        ) from error


def _of_commits(records: Iterable[dict[str, Any]]) -> Iterator[Known]:
    changes = (change for record in records for change in changes_of(record))
    for _, group in groupby(changes, key=lambda change: change.commit):
        files = list(group)
        for at, change in enumerate(files):
            for step in steps_of(change, files[:at], files[at + 1 :]):
                yield Known("commit", step, change.after)
            for gap in gaps_of(change):
                yield Known("gap", gap, change.after)
            yield from _begun(change)


def _begun(change: CommitChange) -> Iterator[Known]:
    return (Known("begun", gap, gap.filled(gap.middle)) for gap in begun_gaps(change))


def _of_files(records: Iterable[dict[str, Any]], seed: int) -> Iterator[Known]:
    for record in records:
        path, text = record["path"], unix(record["text"])
        language = language_of(path)
        if language is None or text.count("\n") >= MOST_LINES:
            continue
        name = f"{record['repo']}:{path}"
        rng = random.Random(f"{seed}:{name}")
        yield from _typed(name, path, language, text, rng)
        change = CommitChange(name, name, path, language, "", text)
        yield from _begun(change)
        yield from (Known("gap", gap, change.after) for gap in gaps_of(change))


def _typed(name: str, path: str, language: str, text: str, rng: random.Random) -> Iterator[Known]:
    """Return a moment within a line being typed, where the file has a suitable line."""
    moment = half_typed(path, text, rng)
    if moment is None:
        return
    step = CommitMoment(
        id=f"{name}:typing",
        group=name,
        path=path,
        language=language,
        kind="near the last edit",
        text=moment.text,
        cursor=moment.cursor,
        edits=tuple(map(last_burst, moment.edits)),
        wanted=moment.wanted,
    )
    yield Known("typing", step, step.wanted)


def make_outcomes(
    model: Model,
    moments: Sequence[Known],
    plan: Plan,
    context: int,
    run: RunFile,
    progress: OnDone = lambda done, total: None,
) -> None:
    """Ask at every moment that ``run`` does not hold yet.

    Args:
        context: tokens of a prompt.
    """

    def ask(known: Known) -> Episode:
        asked = question(known.asked, context)
        said = predict(model, asked.request, time.perf_counter, plan=plan)
        return episode(known, asked, said)

    run.fill(moments, ask, progress)


def question(asked: CommitMoment | Problem, context: int) -> ContextRequest:
    """What the language server would ask, and in any case."""
    if isinstance(asked, CommitMoment):
        found = gather(asked, context)
        return replace(found, request=replace(found.request, min_tokens=1, seed=0))
    text = asked.prefix + asked.suffix
    query = Query("", asked.path, asked.language, text, len(asked.prefix), 0)
    request = infill_request(query, LspSettings(context_tokens=context))
    whole = (0, text.count("\n") + 1)
    least = replace(request, min_tokens=1, seed=0, least_total=LEAST_LOG)
    return ContextRequest(least, 0, whole, {})


def episode(known: Known, asked: ContextRequest, said: Prediction) -> Episode:
    """What was asked and what came back."""
    request = asked.request
    return {
        "id": known.id,
        "group": known.group,
        "language": known.language,
        "kind": known.kind,
        "task": request.task,
        "path": request.path,
        "text": request.text,
        "cursor": request.cursor,
        "edits": [asdict(each) for each in request.edits],
        "related": [asdict(each) for each in request.related],
        "after": known.after,
        "wanted": list(known.wanted),
        "candidates": [asdict(each) for each in asked.answered(said).candidates],
        "reason": said.reason,
        "prompt_tokens": said.stats.prompt_tokens,
        "steps": said.stats.denoise_steps,
        "total_ms": round(said.stats.total_ms, 1),
    }
