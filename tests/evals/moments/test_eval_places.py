"""Measurement of ranked places: moments of both kinds of files, and the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from redraft.evals.places.place_tables import far_limit, measure, tables
from redraft.evals.places.sources import PER_PULL_REQUEST, read_moments
from redraft.model.errors import SettingsError
from redraft.model.places.ranker import load_shipped_ranker

BEFORE = "".join(f"def f{n}(a):\n    return call(a, {n})\n\n\n" for n in range(12))
AFTER = BEFORE.replace("call(a,", "call(a, a,")


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_bytes(zstandard.compress("\n".join(map(json.dumps, rows)).encode()))
    return path


def commits(folder: Path) -> Path:
    files = [{"path": "a.py", "before": BEFORE, "after": AFTER}]
    row = {"repo": "some/repo", "commit": "1" * 40, "files": files}
    return write(folder / "dev-commits.jsonl.zst", row)


def steps(folder: Path, count: int = 12) -> Path:
    lines = AFTER.split("\n")
    made = [
        {"step": n, "start_line": 4 * n + 1, "end_line": 4 * n + 2, "new_lines": [lines[4 * n + 1]]}
        for n in range(count)
    ]
    row = {"repo": "some/repo", "pr": 7, "path": "a.py", "before": BEFORE, "after": AFTER}
    return write(folder / "steps.jsonl.zst", {**row, "steps": made})


def test_moments_of_steps_follow_their_places(tmp_path: Path) -> None:
    moments = list(read_moments(steps(tmp_path)))
    assert len(moments) == PER_PULL_REQUEST
    by_left = {len(moment.file.left): moment for moment in moments}
    assert sorted(by_left) == list(range(12))
    assert by_left[11].next == (5, 6) and by_left[0].next is None
    assert "\n".join(by_left[0].file.lines) == AFTER


@pytest.mark.parametrize("source", [commits, steps])
def test_ranker_beats_lines_by_distance_at_repeats(source: Any, tmp_path: Path) -> None:
    systems = measure(load_shipped_ranker(), read_moments(source(tmp_path)), 0.15)
    first, *others = tables(systems)
    hits = {row[0]: row[2] for row in first.rows}
    assert float(hits["ranker"].split()[0]) >= float(hits["below, then above"].split()[0])
    assert [len(table.rows) for table in others] == [4, 1, 4]


def test_limit_of_far_places_lets_a_share_jump(tmp_path: Path) -> None:
    judged = measure(load_shipped_ranker(), read_moments(commits(tmp_path)), 0.15)["ranker"]
    limit = far_limit(judged, 0.5)
    jumps = sum(one.far is not None and one.far[0] >= limit for one in judged)
    assert 0 < jumps <= len(judged) / 2 + 1


def test_another_file_is_refused_with_what_to_name(tmp_path: Path) -> None:
    path = tmp_path / "x.zst"
    path.write_bytes(b"no archive")
    with pytest.raises(SettingsError, match=r"dev-commits\.jsonl\.zst"):
        list(read_moments(path))
