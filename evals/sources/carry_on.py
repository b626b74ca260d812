"""Small scenarios in which something was begun and is to be continued.

They are written by hand, one of each kind in each of six languages, in ``scenarios/LANGUAGE.toml``:
a file, the edits made in it, and what should come next, which may be nothing. All texts are as they
stand there::

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

import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import combinations, product
from typing import Any

from redraft.model.edits.hunks import apply_history, hunks_of
from redraft.model.records import RecentEdit
from redraft.model.text.common import common_ends
from redraft.model.text.syntax import language_of

from ..example import Example, Moment, Truth

LANGUAGES = ("python", "typescript", "javascript", "go", "rust", "java")
CURSOR = "‸"


def records() -> Iterator[dict[str, Any]]:
    """Return all scenarios as they are written, by language."""
    for language in LANGUAGES:
        file = files("redraft.evals.sources") / "scenarios" / f"{language}.toml"
        yield from tomllib.loads(file.read_text(encoding="utf-8"))["scenario"]


def scenarios() -> list[Example]:
    """Return all scenarios, by language."""
    return [read_scenario(each) for each in records()]


def read_scenario(data: dict[str, Any]) -> Example:
    """Return one ``[[scenario]]``.

    Raises:
        ValueError: a text that should occur once does not; names it and the scenario.
    """
    path, text = data["path"], data["before"]
    language = language_of(path) or ""
    name = f"{data['kind']} ({language})"
    cursor, edits = 0, []
    for old, new in data["history"]:
        at = _only(text, old, name)
        after = text[:at] + new + text[at + len(old) :]
        cursor = at + len(new) - common_ends(old, new)[1]  # behind the last new character
        edits.append(_edits(path, text, after))
        text = after
    if data.get("typing"):
        edits.pop()
    if "cursor" in data:
        above, below = data["cursor"].split(CURSOR)
        cursor = _only(text, above + below, name) + len(above)
    wanted = tuple(_wanted(text, data["next"], name))
    made = tuple(edit for each in edits for edit in each)
    return Example(
        name,
        name,
        "next_edit",
        {"kind": data["kind"], "language": language},
        Moment(path, language, text, cursor, made),
        Truth(wanted, wanted[-1] if wanted else text),
    )


def _only(text: str, part: str, name: str) -> int:
    times = text.count(part)
    if times != 1:
        raise ValueError(f"{name}: {part!r} occurs {times} times in the text as it then is, not 1.")
    return text.index(part)


def _edits(path: str, before: str, after: str) -> tuple[RecentEdit, ...]:
    old = before.split("\n")
    hunks = hunks_of(old, after.split("\n"))
    return apply_history(path, old, hunks, len(hunks))[1]


def _wanted(text: str, places: Sequence[Sequence[str]], name: str) -> Iterator[str]:
    """Return the text with any of the places changed, and with several in a row."""
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
