"""Edits by rule that follow after a text became another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redraft.model.edits.hunks import apply_history, hunks_of
from redraft.model.records import EditRequest, RecentEdit
from redraft.model.rules.propose import propose
from redraft.model.rules.rule_edits import RuleEdit


def history(before: str, after: str, path: str = "a.py") -> tuple[RecentEdit, ...]:
    """Return the edits that turned one text into the other, hunk by hunk."""
    old = before.split("\n")
    hunks = hunks_of(old, after.split("\n"))
    return tuple(apply_history(path, old, hunks, len(hunks))[1]) if hunks else ()


def proposed(
    edits: Sequence[RecentEdit],
    text: str,
    line: int = 0,
    region: tuple[int, int] | None = None,
    most: int | None = None,
    path: str = "",
    **fields: Any,
) -> list[RuleEdit]:
    """Return the edits by rule in a text whose cursor is at the start of a 0-based line."""
    lines = text.split("\n")
    cursor = sum(len(each) + 1 for each in lines[:line])
    request = EditRequest("next_edit", path, text, cursor, edits=tuple(edits), **fields)
    return propose(request, region or (0, len(lines)), most)


def results(edits: Sequence[RuleEdit], text: str) -> dict[str, RuleEdit]:
    """Return the edits by the text that each one makes."""
    return {each.in_text(text).result: each for each in edits}
