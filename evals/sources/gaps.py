"""Gaps to fill: those of HumanEval-Infilling, and text cut out of held-out commits and files.

All official files of https://github.com/openai/human-eval-infilling are read (2207.14255; single
line, multi-line, random span and its light version, packed or not). The code of the training rows
is separate: it may change, a benchmark may not.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from redraft.model.edits.hunks import hunks_of
from redraft.model.errors import SettingsError
from redraft.model.text.syntax import language_of

from ..example import Example, gap
from .commits import MOST_LINES, CommitChange, unix

GZIP = b"\x1f\x8b"
MOST_CHARS = 240  # of a middle: 64 tokens mostly hold it
MOST_LINE_CHARS = 120
#: A line's tail begins after one of these, in this cumulative share of the cases.
CUTS = (
    (0.60, re.compile(r"[,;:(\[{=.]\s?")),
    (0.85, re.compile(r"[)\]}]|\w\b|\s")),
    (1.00, re.compile(r"\w(?=\w)")),
)


def human_eval(path: Path) -> list[Example]:
    """Return the problems of one official file.

    Raises:
        SettingsError: it cannot be read as one.
    """
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(GZIP) else data).decode()
        problems = [_human_eval(json.loads(line)) for line in text.split("\n") if line.strip()]
        if not problems:
            raise ValueError("it holds no problem")
        return problems
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise SettingsError(
            f"{path} is not a file of HumanEval-Infilling ({type(error).__name__}: {error}). Name "
            "one such as HumanEval-SingleLineInfilling.jsonl.gz."
        ) from error


def _human_eval(record: dict[str, Any]) -> Example:
    kind, *rest = record["task_id"].split("/")  # SingleLineInfilling/HumanEval/0/L5
    return gap(
        record["task_id"],
        "/".join(rest[:2]),
        {"kind": kind, "language": "python"},
        "solution.py",
        (record["prompt"], record["canonical_solution"], record["suffix"]),
        f"\n{record['test']}\ncheck({record['entry_point']})\n",
    )


# --- held-out commits and files -------------------------------------------------------------------


def whole_files(repository: str, files: Iterable[tuple[str, str]]) -> Iterator[CommitChange]:
    """Return (path, text) pairs of known languages as if one commit each had written them."""
    for path, text in files:
        language = language_of(path)
        if language is not None and text.count("\n") < MOST_LINES:
            name = f"{repository}:{path}"
            yield CommitChange(name, name, path, language, "", unix(text))


def gaps_of(change: CommitChange) -> Iterator[Example]:
    """Return at most one whole line, one tail of a line and one run of 2 to 5 lines.

    The commit wrote each of them; the file is as the commit left it.
    """
    lines = change.after.split("\n")
    runs = [
        range(first, last)
        for first, last in _written(change)
        if any(_usable(line) for line in lines[first:last])
    ]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for kind in ("line", "tail", "lines"):
        rng = random.Random(f"{change.id}:{kind}")
        found = _choose(kind, lines, starts, runs, rng)
        if found is not None:
            yield gap_of(change, kind, *found)


def _written(change: CommitChange) -> Iterator[tuple[int, int]]:
    """Return the lines [first, last) of ``after`` that the commit wrote."""
    shift = 0
    for hunk in hunks_of(change.before.split("\n"), change.after.split("\n")):
        first = hunk.first + shift
        yield first, first + len(hunk.new)
        shift += hunk.growth


def _usable(line: str) -> bool:
    return len(line.strip()) >= 4 and len(line) <= MOST_LINE_CHARS


def _choose(
    kind: str, lines: list[str], starts: list[int], runs: list[range], rng: random.Random
) -> tuple[int, int] | None:
    """Return the span [start, end) of the file to take out, None if the kind has no place."""
    if kind == "lines":
        runs = [run for run in runs if len(run) >= 2]
    places = [i for run in runs for i in run if _usable(lines[i])]
    for i in rng.sample(places, min(len(places), 8)):
        start = starts[i] + _indent(lines[i])
        end = starts[i] + len(lines[i])
        if kind == "tail":
            cut = _cut(lines[i], rng)
            if cut is None:
                continue
            return starts[i] + cut, end
        if kind == "line":
            return start, end
        run = next(run for run in runs if i in run)
        last = min(i + rng.randint(2, 5), run.stop) - 1
        end = starts[last] + len(lines[last])
        if last > i and lines[last].strip() and end - start <= MOST_CHARS:
            return start, end
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _cut(line: str, rng: random.Random) -> int | None:
    """Return a column where a person may pause, with something left to write."""
    draw, begin = rng.random(), _indent(line)
    for share, pattern in CUTS:
        if draw > share:
            continue
        ends = [m.end() for m in pattern.finditer(line, begin)]
        ends = [end for end in ends if len(line[end:].strip()) >= 3]
        if ends:
            return rng.choice(ends)
    return None


def gap_of(change: CommitChange, kind: str, start: int, end: int) -> Example:
    """Return the gap [start, end) of the file as the commit left it."""
    text = change.after
    tags = {"kind": kind, "language": change.language}
    parts = text[:start], text[start:end], text[end:]
    return gap(f"{change.id}:{kind}", change.commit, tags, change.path, parts)
