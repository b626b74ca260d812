"""Training of the ranker of places: moments of commits, rows, the loss, a whole run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.model.edits.hunks import hunks_of
from redraft.model.errors import SettingsError
from redraft.model.places.ranker import load_ranker
from redraft.model.training.places.fit import list_loss
from redraft.model.training.places.judged import area, is_right
from redraft.model.training.places.place_moments import (
    WHOLE,
    EditedFile,
    MomentMix,
    OpenFile,
    Step,
    in_steps,
    moments_of,
    with_open_files,
)
from redraft.model.training.places.place_rows import is_held_out, right_lines
from redraft.model.training.places.train_ranker import train

BEFORE = "".join(f"def f{n}(a):\n    return call(a, {n})\n\n\n" for n in range(12))
AFTER = BEFORE.replace("(a)", "(a, b)").replace("call(a,", "call(a, b,")
TEXTS = st.lists(
    st.sampled_from(["", "a = read(b)", "a = read(b, c)", "return a", "d"]), max_size=10
)


def a_commit(repo: str = "one/repo", number: int = 0) -> dict[str, object]:
    file = {"path": "src/a.py", "before": BEFORE, "after": AFTER}
    return {"repo": repo, "commit": f"{number:040d}", "files": [file]}


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 99))
def test_changes_in_steps_lead_to_the_new_text(old: list[str], new: list[str], seed: int) -> None:
    rng = random.Random(seed)
    hunks = hunks_of(old, new)
    coming = [in_steps(h, rng) if rng.random() < 0.7 else Step(h) for h in hunks]
    file = EditedFile("a.py", "python", old, rng.sample(coming, len(coming)))
    while file.coming:
        before = file.state()
        file.make_next()
        assert before.lines != file.lines
    assert file.lines == new


def test_after_the_last_change_nothing_is_left() -> None:
    moments = moments_of(a_commit(), (), WHOLE, random.Random(1))
    assert [moment for moment in moments if not moment.file.left]
    assert all((moment.next is None) == (not moment.file.left) for moment in moments)
    assert all(len(moment.edits) <= 5 for moment in moments)


def test_what_is_left_is_at_its_present_place() -> None:
    for moment in moments_of(a_commit(), (), MomentMix(), random.Random(3)):
        for first, last in moment.file.left:
            assert 0 <= first <= last <= len(moment.file.lines)


def test_files_of_earlier_commits_are_open() -> None:
    first, second = a_commit(number=0), a_commit(number=1)
    first["files"] = [{"path": "old.py", "before": "a\n", "after": "b\n"}]
    found = {r["commit"]: files for r, files in with_open_files([first, second], lambda _: True)}
    assert found[first["commit"]] == []
    assert found[second["commit"]] == [OpenFile("old.py", "python", ["b", ""], ())]


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        ((3, 5), [0, 0, -1, 1, 1, -1, 0, 0]),
        ((3, 3), [0, -1, 1, 1, -1, 0, 0, 0]),  # an insertion touches both sides
        ((0, 0), [1, -1, 0, 0, 0, 0, 0, 0]),
        ((8, 8), [0, 0, 0, 0, 0, 0, -1, 1]),
    ],
)
def test_lines_that_a_change_touches(span: tuple[int, int], labels: list[int]) -> None:
    assert right_lines([span], 8).tolist() == labels


@pytest.mark.parametrize(
    ("line", "hit"), [(7, False), (8, True), (10, True), (13, True), (14, False)]
)
def test_a_place_is_right_within_two_lines(line: int, hit: bool) -> None:
    assert is_right(line, [(10, 12)]) == hit


def test_gradient_of_the_list_loss_is_its_slope() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1, 9).astype(np.float32)
    starts = np.array([0, 4, 6])
    is_right = np.array([0, 1, 1, 0, 0, 0, 1, 0, 0], np.bool_)  # nothing is right in the second
    weights = np.log(rng.integers(1, 4, 9)).astype(np.float32)
    _, gradient = list_loss(scores, starts, is_right, weights)
    for at in range(9):
        moved = []
        for by in (-1e-2, 1e-2):
            there = scores.astype(np.float64)
            there[at] += by
            moved.append(list_loss(there, starts, is_right, weights)[0])
        assert gradient[at] == pytest.approx((moved[1] - moved[0]) / 2e-2, abs=1e-4)


def test_area_counts_ties_half() -> None:
    assert area([1.0, 2.0], [1.0, 0.0]) == pytest.approx(0.875)
    assert area([], [1.0]) == 0.5


def write(path: Path, repos: list[str]) -> Path:
    lines = [json.dumps(a_commit(repo, n)) for repo in repos for n in range(12)]
    path.write_bytes(zstandard.compress("\n".join(lines).encode()))
    return path


def test_a_run_writes_weights_that_load_and_a_card(tmp_path: Path) -> None:
    held_out = next(name for n in range(99) if is_held_out(name := f"some/repo{n}"))
    trained = [name for n in range(20) if not is_held_out(name := f"other/repo{n}")][:8]
    source = write(tmp_path / "train-commits.jsonl.zst", [*trained, held_out])
    card = train([source], tmp_path / "out", 700, 0, "redraft train places", lambda *_: None)
    assert load_ranker(tmp_path / "out" / "ranker.safetensors")
    assert card.validation_repositories == 1 and card.repositories == 9
    page = (tmp_path / "out" / "ranker.md").read_text(encoding="utf-8")
    assert "redraft train places" in page and f"{card.hit_at_3:.1%}" in page


def test_a_run_without_validation_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "train.jsonl.zst", ["other/repo0"])
    with pytest.raises(SettingsError, match="validation"):
        train([source], tmp_path / "out", 700, 0, "", lambda *_: None)
